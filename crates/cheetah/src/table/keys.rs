//! Temporarily disabled secondary indexes: disabling them, and rebuilding them in one pass.
//!
//! Invariants
//!   K1  The definition says which indexes are disabled. From the mini-transaction that logs it,
//!       nothing is written to their trees, no reader uses them, and CHECK skips them. The trees
//!       keep their contents until the indexes are enabled.
//!   K2  Clustered and unique indexes and indexes used by foreign keys are never disabled, because
//!       they enforce constraints.
//!   K3  An index is enabled with a new tree, built from the rows under an exclusive table lock.
//!       Until the tree belongs to the table, it is on the list of dropped trees (M10). A
//!       checkpoint makes the tree durable before the definition that names it is logged.
//!   K4  An enabled index gets a new number: earlier undo records name entries of the old tree.
//!       Older snapshots may not use an index created later (M2), because the new tree has entries
//!       of the newest rows only.
//!   K5  A statement that disables indexes only if the table is empty does nothing, and waits for
//!       no transaction, if the clustered index has a record, visible or not.
//!
//!   docs/developers/durability.md, "Disabled indexes", describes the steps and the state that a
//!   crash after each step leaves.

use crate::base::{reach, sound, Error, Result};
use crate::format::catalog::TableDef;
use crate::table::definitions::ddl::{self, Ddl};
use crate::table::definitions::foreign_keys;
use crate::table::definitions::handle::Table;
use crate::table::definitions::shadow;
use crate::table::definitions::spec::ExpectedEntries;
use crate::table::load::{IndexBuilds, Watch};
use crate::table::rows::large;
use crate::table::rows::stored_row::{find_values, inline_row, Value};
use crate::table::shared::parts::Core;
use crate::table::shared::room::Need;
use crate::tree::SeekMode;
use std::sync::Arc;

/// Rows between two checks for an interrupt.
const ROWS_PER_QUESTION: u64 = 512;

/// Disables the indexes in `which`, except those of K2, of an exclusively locked table. Returns the
/// table to use from now on. Durable on return.
pub(crate) fn disable(core: &Core, table: &Arc<Table>, which: &[usize]) -> Result<Arc<Table>> {
    let _ddl = core.catalog.lock_ddl();
    let mut def = definition(core, table)?;
    let mut changes = false;
    for (no, index) in def.indexes.iter_mut().enumerate() {
        let stays = no == 0 || index.unique || foreign_keys::serves(&core.catalog, table, no);
        if !stays && !index.disabled && which.contains(&no) {
            (index.disabled, changes) = (true, true);
        }
    }
    match changes {
        true => alter(core, table, def),
        false => Ok(Arc::clone(table)),
    }
}

/// Whether the table has no row for any reader: none committed, uncommitted, deleted but restorable
/// by a rollback, or visible to an older snapshot. Rows that wait for purge count. May do I/O.
pub(crate) fn has_no_rows(table: &Table) -> Result<bool> {
    let _usage = table.use_it()?;
    let has_record = || table.clustered().cursor().seek(SeekMode::First, b"");
    Ok(table.row_count() == 0 && !sound!(has_record()?, "keys: count the rows to see whether there are any"))
}

/// Builds and enables the disabled indexes of an exclusively locked table. Returns the table to use
/// from now on. Durable on return. After an error the indexes stay disabled. `watch` is as for a
/// load.
pub(crate) fn enable(
    core: &Core,
    table: &Arc<Table>,
    entries_of: &mut ExpectedEntries<'_>,
    watch: &Watch<'_>,
) -> Result<Arc<Table>> {
    let disabled = (1..table.indexes().len()).filter(|&no| table.is_disabled(no)).collect::<Vec<_>>();
    if disabled.is_empty() {
        return Ok(Arc::clone(table));
    }
    core.make_room(Need::New, table.indexes().len())?;
    let built = core.catalog.create_trees_for_load(&core.pool.enter(), table)?;
    let is_first = sound!(true, "keys: enable them before they are built");
    if is_first {
        build_and_write(core, table, &built, &disabled, entries_of, watch)?;
    }
    if sound!(true, "keys: enable them before a checkpoint") {
        core.checkpoint()?;
    }
    let enabled = {
        let _ddl = core.catalog.lock_ddl();
        let mut def = definition(core, table)?;
        for (index, built) in def.indexes.iter_mut().zip(built.indexes()).filter(|(index, _)| index.disabled)
        {
            (index.disabled, index.tree, index.root) = (false, built.tree, built.root);
            // Earlier undo records know no entries of the new tree.
            (index.number, def.next_number) = (def.next_number, def.next_number + 1);
        }
        alter(core, table, def)?
    };
    if !is_first {
        build_and_write(core, table, &built, &disabled, entries_of, watch)?;
    }
    Ok(enabled)
}

/// The table must be the one in the catalog.
fn definition(core: &Core, table: &Arc<Table>) -> Result<TableDef> {
    shadow::check_not_awaited(core, table)?;
    match core.catalog.by_id(table.id()) {
        Some(found) if Arc::ptr_eq(&found, table) => Ok(table.definition()),
        _ => Err(Error::NoSuchTable(table.name())),
    }
}

fn alter(core: &Core, table: &Arc<Table>, def: TableDef) -> Result<Arc<Table>> {
    ddl::change(core, Ddl::Alter(vec![(Arc::clone(table), def)], Vec::new()))?;
    core.catalog.by_id(table.id()).ok_or_else(|| Error::NoSuchTable(table.name()))
}

/// Like [`build`], while another thread already writes new rows for the checkpoint that follows.
fn build_and_write(
    core: &Core,
    table: &Table,
    built: &Arc<Table>,
    disabled: &[usize],
    entries_of: &mut ExpectedEntries<'_>,
    watch: &Watch<'_>,
) -> Result<()> {
    let _usage = table.use_it()?;
    let tree = table.clustered().def().id;
    let mut build = || build(core, table, built, disabled, entries_of, watch);
    match core.pace.has_threads() {
        true => core.pool.write_beside(tree, build),
        false => build().and_then(|()| core.pool.trial(tree).finish()),
    }
}

/// Builds the trees in `built` for the indexes in `disabled`, as many at a time as fit in memory.
fn build(
    core: &Core,
    table: &Table,
    built: &Arc<Table>,
    disabled: &[usize],
    entries_of: &mut ExpectedEntries<'_>,
    watch: &Watch<'_>,
) -> Result<()> {
    let (mut left, mut entries) = (disabled, Vec::new());
    while !left.is_empty() {
        let mut builds = IndexBuilds::new(core, built, left)?;
        let (now, later) = left.split_at(builds.len());
        left = later;
        let mut take = |key: &[u8], row: &[u8]| {
            entries.clear();
            entries_of(key, row, &mut entries)?;
            let mut wanted = entries.iter().filter(|entry| now.contains(&entry.index_no));
            wanted.try_for_each(|entry| builds.add(entry.index_no, &entry.key, key, &entry.payload))
        };
        each_row(core, table, &mut take, watch)?;
        builds.finish(core, watch)?;
    }
    reach::mark("disabled indexes built");
    Ok(())
}

/// Receives a key, and the row with its large values inline.
type TakeRow<'t> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 't;

fn each_row(core: &Core, table: &Table, take: &mut TakeRow<'_>, watch: &Watch<'_>) -> Result<()> {
    let (mut values, mut row): (Vec<Value>, Vec<u8>) = (Vec::new(), Vec::new());
    let mut room = Vec::new();
    let mut cursor = table.clustered().cursor();
    let (mut rows, total) = (0, table.row_count());
    let mut found = cursor.seek(SeekMode::First, b"")?;
    while found {
        // Skip delete-marked records, which wait for purge.
        if let Some(record) = cursor.record().filter(|record| !record.is_marked()) {
            row.clear();
            let current = table.current_row(record.payload, &mut room)?;
            find_values(table.row_format(), current, &mut values)?;
            inline_row(table.row_format(), current, &values, &mut row, |locator, value| {
                large::read_value(&core.pool, table.blob_owner(), locator, value)
            })?;
            take(cursor.key(), &row)?;
            rows += 1;
            if rows % ROWS_PER_QUESTION == 0 {
                core.health.check()?;
                if watch(rows, total) {
                    return Err(Error::Interrupted);
                }
            }
        }
        found = cursor.next()?;
    }
    Ok(())
}

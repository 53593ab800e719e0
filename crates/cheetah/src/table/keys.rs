//! Secondary indexes that are not kept for a while: disabling them, and building them again in one
//! pass.
//!
//! Invariants
//!   K1  The definition says which indexes are disabled. From the mini-transaction that logs it
//!       nothing is written to their trees, nobody reads them, and CHECK passes them by. The trees
//!       keep their contents until the indexes are enabled.
//!   K2  Clustered and unique indexes are never disabled, nor are those that serve constraints:
//!       they refuse rows.
//!   K3  An index is enabled with a new tree, built from the rows with the table locked as a whole.
//!       Until it is the table's the tree is on the list of dropped ones (M10), and it is durable
//!       by a checkpoint before the definition that names it is logged.
//!   K4  It gets a new number: undo records from before name entries of the old tree, and older
//!       snapshots are refused an index that is younger (M2), as the new tree has entries of the
//!       newest rows only.
//!   K5  A statement that disables the indexes of empty tables only does nothing, and waits for
//!       nobody, if the clustered index has a record, whether or not anybody sees it.
//!       docs/developers/durability.md, "Disabled indexes", has the steps and what a crash after
//!       each finds.

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

/// Rows between two questions whether the statement is to end.
const ROWS_PER_QUESTION: u64 = 512;

/// Disables the indexes in `which`, but for those of K2, of a table that the caller has locked
/// exclusively; the table to use from now on. Durable on return.
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

/// Whether the table has no row for anybody: none that is committed, none that somebody has written
/// and may commit, and none that somebody has deleted and may bring back, or that an older snapshot
/// sees. Rows that wait for purge count, too. May do I/O.
pub(crate) fn has_no_rows(table: &Table) -> Result<bool> {
    let _usage = table.use_it()?;
    let has_record = || table.clustered().cursor().seek(SeekMode::First, b"");
    Ok(table.row_count() == 0 && !sound!(has_record()?, "keys: count the rows to see whether there are any"))
}

/// Builds the disabled indexes of a table that the caller has locked exclusively, and enables them;
/// the table to use from now on. Durable on return. After an error they are disabled as before.
/// `watch` as for a load.
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
            // Undo records from before know no entries of the new tree.
            (index.number, def.next_number) = (def.next_number, def.next_number + 1);
        }
        alter(core, table, def)?
    };
    if !is_first {
        build_and_write(core, table, &built, &disabled, entries_of, watch)?;
    }
    Ok(enabled)
}

/// The definition as it is now; the table must be the one in the catalog.
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

/// As [`build`]. Rows that came just before are still to be written, by the checkpoint that
/// follows: meanwhile another thread begins with them.
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

/// Builds the trees that `built` has for the indexes in `disabled` from the rows of `table`, as
/// many at a time as there is memory for.
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

/// Takes a row: its key, and the row with its large values in it.
type TakeRow<'t> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 't;

/// Hands every row to `take`.
fn each_row(core: &Core, table: &Table, take: &mut TakeRow<'_>, watch: &Watch<'_>) -> Result<()> {
    let (mut values, mut row): (Vec<Value>, Vec<u8>) = (Vec::new(), Vec::new());
    let mut room = Vec::new();
    let mut cursor = table.clustered().cursor();
    let (mut rows, total) = (0, table.row_count());
    let mut found = cursor.seek(SeekMode::First, b"")?;
    while found {
        // Deleted ones wait for purge.
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

//! Creates, drops, renames, alters and empties tables: one mini-transaction and one log record
//! each, durable on return. Also ends a load.
//!
//! Invariants
//!   I1  The record is durable before the caller learns of success, whatever the flush mode,
//!       because the server changes its own files next.
//!   I2  Dropping takes no table lock: the caller ensures that no statement uses the table.
//!       Transactions that have changed it may still be open; their rollback skips it.
//!   I3  An emptied table is a new one under the old name: undo records of the old one must not
//!       touch it.
//!   I4  Changed definitions take effect for all tables of one statement at once. New trees are
//!       complete and durable before the change is logged.
//!   I5  A change of columns keeps an older row-format version only if rows may have it. A table
//!       never written since its creation keeps a single version, so it can be loaded. This is
//!       decided when no thread uses the table any more.
//!   I6  The end of a load is the exception to I1: it has no log record, and is made durable by a
//!       checkpoint.
//!   I7  Operations on a temporary table are neither logged nor made durable.

use super::catalog::Catalog;
use super::foreign_keys::{self, Constrained, Constraints, Referenced};
use super::fulltext;
use super::handle::{class_of, stored_key_bytes_max, StillTable, Table};
use super::shadow_name;
use super::spec::{IndexSpec, TableSpec};
use crate::base::{reach, sound, Error, Lsn, PageId, Result, TableId, TreeId};
use crate::format::catalog::{IndexDef, TableDef, INDEXES_MAX};
use crate::format::foreign_key::Description;
use crate::format::log_record::LogRecord;
use crate::pool::MiniTransaction;
use crate::table::shared::parts::Core;
use crate::table::shared::room::Need;
use crate::tree::Path;
use std::collections::HashSet;
use std::sync::Arc;

const NAME_BYTES_MAX: usize = 2048;

pub(in crate::table) const PAGES_OF_CHANGE: usize = 8;

#[derive(Debug)]
pub(crate) enum Ddl {
    /// Creates a table; the definition has its IDs.
    Create(TableDef),
    Drop(Arc<Table>),
    /// Renames the first table, which may have no foreign keys, and sets the foreign keys of all.
    Rename(String, Vec<Constrained>),
    /// Gives tables new definitions under their IDs, and other tables only changed foreign keys.
    Alter(Vec<(Arc<Table>, TableDef)>, Vec<Constrained>),
    /// Replaces a table with a new, empty one; the definition has its IDs.
    Truncate(Arc<Table>, TableDef),
}

impl Ddl {
    /// Removes the older row-format versions from the new definitions of tables that were never
    /// written (I5): by I6 of `handle` they have no row, and no undo record of one. The caller must
    /// ensure that no thread uses these tables.
    fn leave_out_formats_of_no_row(&mut self) {
        let Ddl::Alter(tables, _) = self else { return };
        let has_rows = |table: &Table| {
            sound!(!table.is_untouched(), "row-format version: leave out those of tables with rows")
        };
        for (_, def) in tables.iter_mut().filter(|(table, _)| !has_rows(table)) {
            def.older_formats.clear();
        }
    }
}

pub(crate) fn create_table(core: &Core, spec: &TableSpec, constraints: &Constraints) -> Result<Arc<Table>> {
    let (description, list) = (constraints.description.clone(), constraints.foreign_keys.clone());
    let copy_of = constraints.copy_of.clone().unwrap_or_default();
    let mut def = TableDef { description, foreign_keys: list, copy_of, ..definition(core, spec)? };
    refuse_existing(&core.catalog, &spec.name)?;
    // Before the lock: the key service may be slow, and all other DDL would wait (durability::E11).
    let is_early = sound!(true, "encryption: ask for a key while definitions wait");
    let held = (!is_early).then(|| core.catalog.lock_ddl());
    core.use_keys_of(&def)?;
    drop(held);
    let _ddl = core.catalog.lock_ddl();
    // Another thread may have created the table meanwhile.
    refuse_existing(&core.catalog, &spec.name)?;
    let copied = constraints.copy_of.as_deref().and_then(|name| core.catalog.by_name(name).ok());
    if let Some(copied) = copied {
        def.foreign_keys = foreign_keys::kept(&copied, constraints);
    }
    foreign_keys::check(&core.catalog, &mut def, constraints, None)?;
    def.fulltext = fulltext::create(core, &def, &spec.fulltext)?;
    let postings = def.fulltext.clone();
    core.catalog.number(&mut def)?;
    change(core, Ddl::Create(def)).inspect_err(|_| fulltext::drop_postings(core, &postings))?;
    core.catalog.by_name(&spec.name)
}

/// Creates a table as another database has defined it, with new IDs. The name of a posting table
/// follows its new ID. Foreign keys are not checked.
pub(crate) fn create_defined(core: &Core, mut def: TableDef) -> Result<Arc<Table>> {
    core.use_keys_of_defined(&def)?;
    let _ddl = core.catalog.lock_ddl();
    core.catalog.number(&mut def)?;
    if fulltext::is_posting_name(&def.name) {
        def.name = fulltext::posting_name(def.id);
    }
    refuse_existing(&core.catalog, &def.name)?;
    let name = def.name.clone();
    change(core, Ddl::Create(def))?;
    core.catalog.by_name(&name)
}

pub(crate) fn drop_table(core: &Core, name: &str, referenced: Referenced) -> Result<()> {
    let _ddl = core.catalog.lock_ddl();
    let table = core.catalog.by_name(name)?;
    foreign_keys::check_drop(&core.catalog, name, referenced)?;
    let postings = fulltext::postings_of(&table);
    let trees = trees_of_temporary(&table);
    fulltext::drop_behind(core, &postings, || change(core, Ddl::Drop(table)))?;
    if trees.is_empty() {
        return Ok(());
    }
    if let Some(mut dropping) = core.dropping.try_lock() {
        dropping.free_at_once(&trees, &core.catalog, &core.pool);
    }
    Ok(())
}

fn trees_of_temporary(table: &Table) -> HashSet<TreeId> {
    let indexes = table.indexes().iter().filter(|_| table.id().is_temporary());
    indexes.map(|index| index.tree).collect()
}

pub(crate) fn rename_table(core: &Core, from: &str, to: &str) -> Result<()> {
    check_name(to)?;
    let _ddl = core.catalog.lock_ddl();
    let table = core.catalog.by_name(from)?;
    refuse_existing(&core.catalog, to)?;
    let changed = foreign_keys::after_rename(&core.catalog, &table, to);
    foreign_keys::check_rename(&core.catalog, &table, to, &changed)?;
    change(core, Ddl::Rename(to.to_owned(), changed))
}

/// Does nothing if the rename is already done.
pub(crate) fn rename_table_again(core: &Core, from: &str, to: &str) -> Result<()> {
    match rename_table(core, from, to) {
        Err(Error::NoSuchTable(_)) if core.catalog.by_name(to).is_ok() => Ok(()),
        result => result,
    }
}

/// Notes that the tables with this name prefix remain from a larger table, some of whose rows were
/// removed without being deleted. Older snapshots, which still see these rows, may not use them
/// (durability::M2).
pub(crate) fn note_remainders(core: &Core, prefix: &str) {
    let _ddl = core.catalog.lock_ddl();
    let stamp = core.transactions.versions.take_stamp();
    if sound!(true, "partitions: show what is left to older snapshots") {
        core.catalog.by_prefix(prefix).iter().for_each(|table| table.set_known_since(stamp));
    }
}

pub(crate) fn truncate_table(core: &Core, name: &str, referenced: Referenced) -> Result<Arc<Table>> {
    let _ddl = core.catalog.lock_ddl();
    let table = core.catalog.by_name(name)?;
    foreign_keys::check_drop(&core.catalog, name, referenced)?;
    let mut def = TableDef {
        name: name.to_owned(),
        auto_increment: 1,
        older_formats: Vec::new(),
        ..table.definition()
    };
    def.indexes.iter_mut().for_each(|index| index.root = PageId::NONE);
    let before = std::mem::take(&mut def.fulltext);
    def.fulltext = fulltext::create(core, &def, &fulltext::specs_of(core, &table)?)?;
    if !sound!(true, "full text: keep the postings of an emptied table") {
        def.fulltext.clone_from(&before);
    }
    let postings = def.fulltext.clone();
    let changed_at = table.changed_at();
    core.catalog.number(&mut def)?;
    let emptied = fulltext::drop_behind(core, &before, || change(core, Ddl::Truncate(table, def)));
    emptied.inspect_err(|_| fulltext::drop_postings(core, &postings))?;
    core.catalog.by_name(name).inspect(|table| table.set_changed_at(changed_at))
}

pub(crate) fn set_auto_increment(core: &Core, table: &Arc<Table>, next: u64) -> Result<()> {
    // The table must not be replaced, because redo would not find it.
    let _ddl = core.catalog.lock_ddl();
    let table = table.newest();
    let _usage = table.use_it()?;
    let mut record = Vec::new();
    LogRecord::AutoIncrement(table.id(), next).encode(&mut record);
    core.make_room(Need::New, 0)?;
    let end = {
        let mtr = core.pool.enter();
        table.set_auto_increment(next);
        if table.id().is_temporary() {
            return Ok(());
        }
        core.journal.append(&mtr, &record)?
    };
    core.journal.sync(end)
}

/// Assigns the trees built by a load, with their `rows`, to an untouched table, and makes that
/// durable, without a log record. After an error the table can only be dropped, emptied or renamed:
/// redo of any other operation would not fit both an epoch with the load and one without.
pub(crate) fn install_loaded(core: &Core, table: &Arc<Table>, loaded: &Arc<Table>, rows: u64) -> Result<()> {
    {
        let _ddl = core.catalog.lock_ddl();
        if !core.catalog.by_id(table.id()).is_some_and(|found| Arc::ptr_eq(&found, table)) {
            return Err(Error::NoSuchTable(table.name()));
        }
        core.make_room(Need::New, PAGES_OF_CHANGE)?;
        let mut path = Path::default();
        core.catalog.prepare(table.id(), &mut path)?;
        table.mark_dropped();
        let mtr = core.pool.enter();
        loaded.take_over(table, rows);
        loaded.set_known_since(core.transactions.versions.take_stamp());
        core.health.must("the end of a load", core.catalog.replace_trees(&mtr, &mut path, table, loaded))?;
    }
    if !sound!(true, "load: return before the checkpoint") {
        return Ok(());
    }
    core.checkpoint().inspect_err(|_| loaded.mark_dropped())
}

/// Also called by redo.
pub(crate) fn change(core: &Core, mut ddl: Ddl) -> Result<()> {
    let need = if matches!(ddl, Ddl::Create(_)) { Need::New } else { Need::Back };
    let is_redo = core.journal.log().is_none();
    if is_redo {
        reach::mark("catalog change redone");
    }
    let (ids, pages) = extent(&ddl);
    // I7: temporary tables have no foreign keys, so no change concerns both kinds of tables.
    let is_temporary = ids.iter().any(|id| id.is_temporary());
    core.make_room(need, pages)?;
    let mut paths = ids.iter().map(|_| Path::default()).collect::<Vec<_>>();
    ids.iter().zip(&mut paths).try_for_each(|(&id, path)| core.catalog.prepare(id, path))?;
    let (mut altered, mut gone) = (Vec::new(), None);
    match &ddl {
        Ddl::Drop(table) | Ddl::Truncate(table, _) => {
            table.mark_dropped();
            gone = Some(Arc::clone(table));
        }
        Ddl::Alter(tables, _) => altered.extend(tables.iter().map(|(table, _)| Arc::clone(table))),
        Ddl::Create(_) | Ddl::Rename(..) => {}
    }
    let held: Vec<StillTable<'_>> = altered.iter().map(|table| table.hold_still()).collect();
    // In redo, the record lists the row-format versions, which rows before startup may have.
    if !is_redo {
        ddl.leave_out_formats_of_no_row();
    }
    let mut record = Vec::new();
    if !is_temporary {
        encode(&ddl, &mut record);
    }
    let end = {
        let mtr = core.pool.enter();
        core.health.must("a change of the catalog", apply(core, &mtr, &mut paths, ddl))?;
        match is_temporary {
            true => {
                core.pace.note_unlogged();
                Lsn(0)
            }
            false => core.journal.append(&mtr, &record)?,
        }
    };
    held.into_iter().for_each(StillTable::replaced);
    if let Some(table) = &gone {
        core.forget_statistics(table);
    }
    if !sound!(!is_temporary, "ddl: return before the log is durable") {
        return Ok(());
    }
    core.journal.sync(end)
}

/// The tables whose definitions change, and the pages that the mini-transaction may allocate.
fn extent(ddl: &Ddl) -> (Vec<TableId>, usize) {
    match ddl {
        Ddl::Create(def) => (vec![def.id], 2 * def.indexes.len() + PAGES_OF_CHANGE),
        Ddl::Drop(table) => (vec![table.id()], PAGES_OF_CHANGE),
        Ddl::Rename(_, changed) => {
            (changed.iter().map(|(table, _)| table.id()).collect(), PAGES_OF_CHANGE * changed.len())
        }
        Ddl::Truncate(table, def) => (vec![table.id()], 2 * def.indexes.len() + PAGES_OF_CHANGE),
        Ddl::Alter(tables, following) => {
            let altered = tables.iter().map(|(table, _)| table.id());
            let ids: Vec<_> = altered.chain(following.iter().map(|(table, _)| table.id())).collect();
            let pages = PAGES_OF_CHANGE * ids.len();
            (ids, pages)
        }
    }
}

/// `paths` has one path for each table whose definition changes.
fn apply(core: &Core, mtr: &MiniTransaction<'_>, paths: &mut [Path], ddl: Ddl) -> Result<()> {
    // Snapshots older than the change find another table under that name, or none (durability::M2).
    let stamp = core.transactions.versions.take_stamp();
    if let Ddl::Rename(name, changed) = &ddl {
        return core.catalog.rename_table(mtr, paths, name, changed, stamp);
    }
    if let Ddl::Alter(tables, following) = &ddl {
        let (paths, following_paths) = paths.split_at_mut(tables.len());
        for ((table, def), path) in tables.iter().zip(paths) {
            core.catalog.alter_table(mtr, path, table, def, stamp)?;
        }
        return core.catalog.set_constraints(mtr, following_paths, following);
    }
    let Some(path) = paths.first_mut() else { return Ok(()) };
    match ddl {
        Ddl::Alter(..) | Ddl::Rename(..) => {}
        Ddl::Create(def) => {
            let is_sound = sound!(true, "create: show the table to older snapshots");
            let known_since = if is_sound { stamp } else { 0 };
            core.catalog.create_table(mtr, path, def, known_since)?;
        }
        Ddl::Drop(table) => core.catalog.drop_table(mtr, path, &table)?,
        Ddl::Truncate(table, def) => {
            core.catalog.drop_table(mtr, path, &table)?;
            core.catalog.create_table(mtr, path, def, stamp)?;
        }
    }
    Ok(())
}

fn encode(ddl: &Ddl, record: &mut Vec<u8>) {
    let bytes = |def: &TableDef| {
        let mut bytes = Vec::new();
        def.encode(&mut bytes);
        bytes
    };
    match ddl {
        Ddl::Create(def) => LogRecord::CreateTable(&bytes(def)).encode(record),
        Ddl::Drop(table) => LogRecord::DropTable(table.id()).encode(record),
        Ddl::Rename(name, changed) => encode_rename(name, changed, record),
        Ddl::Alter(tables, following) => {
            let of_altered = |(table, def): &(Arc<Table>, TableDef)| {
                let is_sound = sound!(true, "row-format version: log a definition without its older ones");
                let older_formats = if is_sound { def.older_formats.clone() } else { Vec::new() };
                (table.id(), bytes(&TableDef { older_formats, ..def.clone() }))
            };
            let of_following =
                |(table, list): &Constrained| (table.id(), bytes(&table.definition_with_constraints(list)));
            let all = tables.iter().map(of_altered).chain(following.iter().map(of_following));
            let all = all.collect::<Vec<_>>();
            LogRecord::AlterTables(borrowed(&all)).encode(record);
        }
        Ddl::Truncate(table, def) => LogRecord::TruncateTable(table.id(), &bytes(def)).encode(record),
    }
}

/// Includes the changed foreign keys: redo cannot compute them, because they depend on state in
/// memory, such as the foreign keys that have followed a copy.
fn encode_rename(name: &str, changed: &[Constrained], record: &mut Vec<u8>) {
    let only_name = matches!(changed, [(_, constraints)] if constraints.is_empty());
    let more = sound!(!only_name, "foreign keys: log a rename without the constraints that follow");
    if let (Some((table, _)), false) = (changed.first(), more) {
        return LogRecord::RenameTable(table.id(), name).encode(record);
    }
    let encoded = |(no, (table, list)): (usize, &Constrained)| {
        let mut def = table.definition_with_constraints(list);
        if no == 0 {
            name.clone_into(&mut def.name);
        }
        let mut bytes = Vec::new();
        def.encode(&mut bytes);
        (table.id(), bytes)
    };
    let all = changed.iter().enumerate().map(encoded).collect::<Vec<_>>();
    LogRecord::RenameWithConstraints(borrowed(&all)).encode(record);
}

fn borrowed(all: &[(TableId, Vec<u8>)]) -> Vec<(TableId, &[u8])> {
    all.iter().map(|(table, def)| (*table, def.as_slice())).collect()
}

fn refuse_existing(catalog: &Catalog, name: &str) -> Result<()> {
    match catalog.by_name(name) {
        Ok(_) => Err(Error::TableExists(name.to_owned())),
        Err(_) => Ok(()),
    }
}

/// Returns the checked definition, without IDs.
pub(in crate::table) fn definition(core: &Core, spec: &TableSpec) -> Result<TableDef> {
    check_name(&spec.name)?;
    let count = spec.indexes.len();
    if count == 0 || count > INDEXES_MAX {
        let what = "number of indexes (at least the clustered one)";
        return Err(Error::Limit { what, actual: count as u64, limit: INDEXES_MAX as u64 });
    }
    let index = |(index_no, index): (usize, &IndexSpec)| IndexDef {
        name: index.name.clone(),
        number: index_no as u32,
        unique: index.unique || index_no == 0,
        disabled: false,
        max_key_bytes: index.max_key_bytes,
        row_format: if index_no == 0 { spec.row_format.clone() } else { index.row_format.clone() },
        tree: TreeId::default(),
        root: PageId::NONE,
    };
    let def = TableDef {
        id: if spec.is_temporary { TableId::TEMPORARY } else { TableId::default() },
        name: spec.name.clone(),
        compression: spec.compression,
        encryption: spec.encryption,
        hidden_key: spec.hidden_key,
        auto_increment: spec.auto_increment.max(1),
        extra: spec.extra.clone(),
        mark: Vec::new(),
        changes: 0,
        next_number: count as u32,
        indexes: spec.indexes.iter().enumerate().map(index).collect(),
        older_formats: Vec::new(),
        description: Description::default(),
        foreign_keys: Vec::new(),
        copy_of: String::new(),
        fulltext: Vec::new(),
    };
    for index_no in 0..count {
        class_of(&core.pool, stored_key_bytes_max(&def, index_no))?;
    }
    Ok(def)
}

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        let (actual, limit) = (name.len() as u64, NAME_BYTES_MAX as u64);
        return Err(Error::Limit { what: "length of a table's name (bytes)", actual, limit });
    }
    if shadow_name::parse(name).is_some() || fulltext::is_posting_name(name) {
        let detail = "the name is reserved for the engine's own tables; choose another one";
        return Err(Error::Unsupported { place: format!("table '{name}'"), detail: detail.into() });
    }
    Ok(())
}

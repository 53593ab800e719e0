//! Shadow tables: loads fill them for a transaction, and they replace empty tables when it commits.
//!
//! A shadow table is in the catalog under a reserved name. It is created, loaded and, if need be,
//! dropped like any other table.
//!
//! Invariants
//!   U1  Its name contains its transaction and the table that it will replace. So COMMIT needs no
//!       extra log record: the commit, also in redo, finds its shadow tables in the catalog.
//!   U2  It replaces the table in the mini-transaction that logs COMMIT, before the commit is
//!       published: with the rows of the transaction, or not at all (I3 of
//!       [`crate::table::history::rollback`]).
//!   U3  It is loaded, and made durable by a checkpoint, before PREPARE or COMMIT is logged (L3 of
//!       [`crate::table::load`]). Otherwise both are refused.
//!   U4  The table to replace is untouched, and locked exclusively by the transaction until its
//!       end, even if startup finds the transaction prepared: no other transaction has changes in
//!       the table or waits for a row of it.
//!   U5  The shadow tables of a rolled-back transaction are dropped by the rollback, or else by the
//!       next startup, which keeps only those of prepared transactions.
//! Locks     the DDL lock, taken before the gate, from reading the list of shadow tables until they
//!           have replaced their tables.

use super::ddl::{self, Ddl, PAGES_OF_CHANGE};
use super::foreign_keys::Referenced;
use super::handle::Table;
use super::shadow_name::name_of;
use crate::base::{reach, sound, Error, PageId, Result, TableId, TxnId};
use crate::format::catalog::TableDef;
use crate::pool::MiniTransaction;
use crate::table::shared::parts::Core;
use crate::tree::Path;
use parking_lot::MutexGuard;
use std::sync::Arc;

/// Creates the shadow table that will replace `target`, which the transaction has locked
/// exclusively (U4). Returns `None` if `target` is no longer the current table with its ID, or has
/// a shadow table of the transaction already.
pub(crate) fn create(core: &Core, target: &Arc<Table>, txn: TxnId) -> Result<Option<Arc<Table>>> {
    let _ddl = core.catalog.lock_ddl();
    let is_there = core.catalog.by_id(target.id()).is_some_and(|now| Arc::ptr_eq(&now, target));
    if !is_there || targets_of(core, txn).contains(&target.id()) {
        return Ok(None);
    }
    let name = name_of(txn, target.id());
    // Replacing the table sets the foreign keys.
    let (auto_increment, foreign_keys) = (1, Vec::new());
    let mut def = TableDef { name: name.clone(), auto_increment, foreign_keys, ..target.definition() };
    def.indexes.iter_mut().for_each(|index| index.root = PageId::NONE);
    core.catalog.number(&mut def)?;
    ddl::change(core, Ddl::Create(def))?;
    core.catalog.by_name(&name).map(Some)
}

/// Returns `Unsupported` if a load of the transaction did not succeed (U3), or if the transaction
/// has written to the replaced table in another way (U4). Then it can only be rolled back.
pub(in crate::table) fn check_whole(core: &Core, txn: TxnId) -> Result<()> {
    let is_whole = |table: &Table| !table.is_untouched() && !table.is_dropped();
    let is_empty = |target: &Option<Arc<Table>>| target.as_ref().is_none_or(|target| target.is_untouched());
    if core.catalog.shadow_of(txn).iter().all(|(table, target)| is_whole(table) && is_empty(target)) {
        // Unreadable pages are met here, while the commit can still be refused.
        return Places::prepare(core, txn).map(drop);
    }
    let detail = "one of its loads failed or did not end, or other rows were inserted meanwhile; roll the transaction back";
    Err(Error::Unsupported { place: format!("transaction {txn}"), detail: detail.into() })
}

/// Returns `Unsupported` if a shadow table is about to replace the table: a new definition would be
/// lost. The caller holds the DDL lock.
pub(in crate::table) fn check_not_awaited(core: &Core, table: &Table) -> Result<()> {
    // A shadow table that could not be dropped will not replace anything.
    let is_open = |txn: &TxnId| core.transactions.active.get(*txn).is_some();
    match core.catalog.loaders_of(table.id()).iter().any(is_open) {
        false => Ok(()),
        true => Err(Error::Unsupported {
            place: format!("table '{}'", table.name()),
            detail: "an uncommitted load is about to replace it".into(),
        }),
    }
}

pub(in crate::table) fn pages_needed(core: &Core, txn: TxnId) -> usize {
    core.catalog.shadow_of(txn).len() * PAGES_OF_CHANGE
}

/// The tables that a transaction will replace, and has locked exclusively (U4).
pub(in crate::table) fn targets_of(core: &Core, txn: TxnId) -> Vec<TableId> {
    let shadow = core.catalog.shadow_of(txn);
    shadow.into_iter().filter_map(|(_, target)| Some(target?.id())).collect()
}

/// The replacements that a commit makes with the shadow tables of its transaction.
pub(in crate::table) struct Places<'c> {
    core: &'c Core,
    list: Vec<Place>,
    _ddl: MutexGuard<'c, ()>,
}

struct Place {
    loaded: Arc<Table>,
    /// `None` if the table was dropped meanwhile: then the loaded rows are dropped, too.
    target: Option<Arc<Table>>,
    paths: [Path; 2],
}

impl<'c> Places<'c> {
    /// Usually returns `None`: nothing to replace. Outside mini-transactions; may do I/O.
    pub(in crate::table) fn prepare(core: &'c Core, txn: TxnId) -> Result<Option<Self>> {
        if !sound!(!core.catalog.shadow_of(txn).is_empty(), "load: forget it at the commit") {
            return Ok(None);
        }
        reach::mark("a load takes its place");
        let _ddl = core.catalog.lock_ddl();
        let mut list = Vec::new();
        for (loaded, target) in core.catalog.shadow_of(txn) {
            let mut paths = <[Path; 2]>::default();
            let ids = [target.as_ref().map_or(loaded.id(), |target| target.id()), loaded.id()];
            for (path, id) in paths.iter_mut().zip(ids) {
                core.catalog.prepare(id, path)?;
            }
            if target.is_none() {
                loaded.mark_dropped();
            }
            list.push(Place { loaded, target, paths });
        }
        Ok(Some(Self { core, list, _ddl }))
    }

    /// Changes the catalog tree, in the mini-transaction of the commit (U2).
    pub(in crate::table) fn write(&mut self, mtr: &MiniTransaction<'_>) -> Result<()> {
        let catalog = &self.core.catalog;
        self.list.iter_mut().try_for_each(|Place { loaded, target, paths }| match target {
            Some(target) => catalog.write_place(mtr, paths, target, loaded),
            None => catalog.drop_table(mtr, &mut paths[1], loaded),
        })
    }

    /// Changes the catalog in memory, for readers that see `stamp`: in the same mini-transaction,
    /// before the stamp is published.
    pub(in crate::table) fn take(&self, stamp: u64) {
        for Place { loaded, target, .. } in &self.list {
            let Some(target) = target else { continue };
            // First, so that every thread that finds the new table knows which snapshots see it.
            target.give_way_to(loaded, stamp);
            self.core.catalog.put_in_place(target, loaded, stamp);
            self.core.forget_statistics(target);
            self.core.statistics.add(loaded.id());
        }
    }
}

/// Leaves tables that cannot be dropped now to the next startup (U5).
pub(in crate::table) fn drop_of(core: &Core, txn: TxnId) {
    for (table, _) in core.catalog.shadow_of(txn) {
        core.note_cleanup(
            "dropping shadow tables",
            ddl::drop_table(core, &table.name(), Referenced::Ignored),
        );
    }
}

/// Called by startup, with the log open. Keeps the tables of prepared transactions (U5).
pub(crate) fn drop_lost(core: &Core) -> Result<()> {
    let is_promised =
        |txn: &TxnId| core.transactions.active.get(*txn).is_some_and(|slot| slot.state().xid.is_some());
    let is_lost = |txn: &TxnId| sound!(!is_promised(txn), "load: keep what a startup finds of one");
    for txn in core.catalog.shadow_txns().into_iter().filter(is_lost) {
        reach::mark("a lost load is dropped at open");
        for (table, _) in core.catalog.shadow_of(txn) {
            ddl::drop_table(core, &table.name(), Referenced::Ignored)?;
        }
    }
    Ok(())
}

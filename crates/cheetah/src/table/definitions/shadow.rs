//! Tables that loads fill for a transaction, and that take the places of empty ones when it
//! commits.
//!
//! A shadow table is in the catalog like any other, under a name that nobody asks for. It is
//! created, loaded and, if need be, dropped as any other.
//!
//! Invariants
//!   U1  Its name says to which transaction it belongs, and whose place it will take. So COMMIT
//!       needs no other record: its execution, also in redo, finds the tables that belong to it in
//!       the catalog.
//!   U2  It takes the place in the mini-transaction that logs COMMIT, before the commit is
//!       published: with the rows of the transaction, or not at all (I3 of
//!       [`crate::table::history::rollback`]).
//!   U3  It is loaded, and durable by a checkpoint, before PREPARE or COMMIT is logged (L3 of
//!       [`crate::table::load`]); both are refused otherwise.
//!   U4  The table whose place it takes is untouched and locked exclusively by its transaction to
//!       the end, also by one that a startup finds prepared: nobody has a change in it, or waits
//!       for a row of it.
//!   U5  Those of a transaction that has been rolled back are dropped, by the rollback or else by
//!       the next startup, which knows of which transactions there may be some: of prepared ones.
//! Locks     that of the catalog's changes, before the gate, from looking at the places to having
//!           taken them.

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

/// Creates a shadow table of the transaction that will take the place of `target`, which it has
/// locked exclusively (U4). None when that is not the table of its number any more, or the
/// transaction has one for it already.
pub(crate) fn create(core: &Core, target: &Arc<Table>, txn: TxnId) -> Result<Option<Arc<Table>>> {
    let _ddl = core.catalog.lock_ddl();
    let is_there = core.catalog.by_id(target.id()).is_some_and(|now| Arc::ptr_eq(&now, target));
    if !is_there || targets_of(core, txn).contains(&target.id()) {
        return Ok(None);
    }
    let name = name_of(txn, target.id());
    // Constraints come with the place.
    let (auto_increment, foreign_keys) = (1, Vec::new());
    let mut def = TableDef { name: name.clone(), auto_increment, foreign_keys, ..target.definition() };
    def.indexes.iter_mut().for_each(|index| index.root = PageId::NONE);
    core.catalog.number(&mut def)?;
    ddl::change(core, Ddl::Create(def))?;
    core.catalog.by_name(&name).map(Some)
}

/// `Unsupported` when a load of the transaction has not ended well (U3), or it has written in
/// another way where that will take the place (U4): then it can only be rolled back.
pub(in crate::table) fn check_whole(core: &Core, txn: TxnId) -> Result<()> {
    let is_whole = |table: &Table| !table.is_untouched() && !table.is_dropped();
    let is_empty = |target: &Option<Arc<Table>>| target.as_ref().is_none_or(|target| target.is_untouched());
    if core.catalog.shadow_of(txn).iter().all(|(table, target)| is_whole(table) && is_empty(target)) {
        // Pages that cannot be read are met while that may still be refused.
        return Places::prepare(core, txn).map(drop);
    }
    let detail = "one of its loads failed or did not end, or other rows were inserted meanwhile; roll the transaction back";
    Err(Error::Unsupported { place: format!("transaction {txn}"), detail: detail.into() })
}

/// `Unsupported` for a change of the definition of a table whose place a shadow one is to take,
/// with the definition of before. The catalog's changes are locked.
pub(in crate::table) fn check_not_awaited(core: &Core, table: &Table) -> Result<()> {
    // One that could not be dropped takes no place any more.
    let is_open = |txn: &TxnId| core.transactions.active.get(*txn).is_some();
    match core.catalog.loaders_of(table.id()).iter().any(is_open) {
        false => Ok(()),
        true => Err(Error::Unsupported {
            place: format!("table '{}'", table.name()),
            detail: "a load that has not been committed is to take its place".into(),
        }),
    }
}

/// Pages that a commit needs for the shadow tables of its transaction.
pub(in crate::table) fn pages_needed(core: &Core, txn: TxnId) -> usize {
    core.catalog.shadow_of(txn).len() * PAGES_OF_CHANGE
}

/// The tables whose places those of a transaction will take: it has them locked as a whole (U4).
pub(in crate::table) fn targets_of(core: &Core, txn: TxnId) -> Vec<TableId> {
    let shadow = core.catalog.shadow_of(txn);
    shadow.into_iter().filter_map(|(_, target)| Some(target?.id())).collect()
}

/// The places that a commit gives to the shadow tables of its transaction.
pub(in crate::table) struct Places<'c> {
    core: &'c Core,
    list: Vec<Place>,
    _ddl: MutexGuard<'c, ()>,
}

struct Place {
    loaded: Arc<Table>,
    /// None when that has been dropped meanwhile: then the rows go too.
    target: Option<Arc<Table>>,
    paths: [Path; 2],
}

impl<'c> Places<'c> {
    /// Those of the transaction; mostly none. Outside mini-transactions; may do I/O.
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

    /// Changes what is in memory, for whoever sees `stamp`: in the same mini-transaction, before
    /// that is published.
    pub(in crate::table) fn take(&self, stamp: u64) {
        for Place { loaded, target, .. } in &self.list {
            let Some(target) = target else { continue };
            // Nobody may find it who does not know from which snapshot on.
            target.give_way_to(loaded, stamp);
            self.core.catalog.put_in_place(target, loaded, stamp);
            self.core.forget_statistics(target);
            self.core.statistics.add(loaded.id());
        }
    }
}

/// Drops the shadow tables of a transaction that has been rolled back. Tables that cannot be
/// dropped now are left to the next startup (U5).
pub(in crate::table) fn drop_of(core: &Core, txn: TxnId) {
    for (table, _) in core.catalog.shadow_of(txn) {
        core.note_cleanup(
            "dropping shadow tables",
            ddl::drop_table(core, &table.name(), Referenced::Ignored),
        );
    }
}

/// Drops what a startup finds of transactions that have not promised to commit (U5). The log is
/// open.
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

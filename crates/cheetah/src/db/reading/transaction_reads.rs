//! A transaction's reads: the locks that they take, and the versions that they see (I1 of
//! [`crate::db::transaction`]).

use super::how_to_read::{HowToRead, Reading};
use super::scan_step::Locking;
use crate::base::{sound, Error, Result};
use crate::db::{Cursor, Isolation, OnLocked, Read, Transaction};
use crate::format::page::RecordRef;
use crate::table::history::visible;
use crate::table::rows::large;
use crate::table::rows::locker::{Locked, Patience};
use crate::table::shared::counters::Counters;
use crate::table::Table;
use crate::txn::{Lock, LockMode, ReadView, TableMode};
use std::ops::Bound;
use std::sync::Arc;

impl Transaction {
    /// Reads the stored row with the key `key` into `row`, with large values as locators. Returns
    /// whether the row exists. May do I/O, and wait for a lock: errors are those of
    /// [`lock_table`](Self::lock_table), and `RecordChanged` under [snapshot
    /// isolation](Self::set_snapshot_isolation).
    pub fn get(&mut self, table: &Arc<Table>, key: &[u8], read: Read, row: &mut Vec<u8>) -> Result<bool> {
        let how = self.lock_to_read(table, read)?;
        self.get_as(table, key, how, OnLocked::Wait, row)
    }

    /// Like [`get`](Self::get), but treats a row that another transaction has locked as missing.
    pub fn get_unless_locked(
        &mut self,
        table: &Arc<Table>,
        key: &[u8],
        read: Read,
        row: &mut Vec<u8>,
    ) -> Result<bool> {
        let how = self.lock_to_read(table, read)?;
        self.get_as(table, key, how, OnLocked::Skip, row)
    }

    pub(in crate::db) fn get_as(
        &mut self,
        table: &Arc<Table>,
        key: &[u8],
        (reading, moved): HowToRead,
        on_locked: OnLocked,
        row: &mut Vec<u8>,
    ) -> Result<bool> {
        let table = moved.as_ref().unwrap_or(table);
        let view = match reading {
            Reading::Rows(mode) => return self.get_locked(table, key, mode, on_locked, row),
            Reading::View(view) => Some(view),
            Reading::Newest => None,
        };
        let _usage = table.use_it()?;
        row.clear();
        Counters::add(&self.core.counters.rows_read);
        let found = visible::read_row(&self.core, table, key, view.as_deref(), row)?;
        if found {
            table.make_current(row)?;
        }
        Ok(found)
    }

    fn get_locked(
        &mut self,
        table: &Arc<Table>,
        key: &[u8],
        mode: LockMode,
        on_locked: OnLocked,
        row: &mut Vec<u8>,
    ) -> Result<bool> {
        Counters::add(&self.core.counters.rows_read);
        let see = |record: RecordRef<'_>| {
            row.clear();
            row.extend_from_slice(record.payload);
            self.locker.check_unchanged(record.version)
        };
        let patience = if on_locked == OnLocked::Skip { Patience::None } else { Patience::Waits };
        let locked = self.locker.lock_row(table, key, None, patience, |_| mode, see)?;
        if locked == Locked::Refused {
            return Ok(false);
        }
        let is_live = matches!(locked, Locked::Live(_));
        if is_live {
            table.make_current(row)?;
        }
        if !is_live && self.isolation != Isolation::ReadCommitted {
            // Rolling back an insertion removes the row's lock with it, but its gap stays locked.
            let (tree, range) = (table.clustered().def().id, (Bound::Included(key), Bound::Included(key)));
            self.locker.ask(Lock::Gap { tree, range, mode }, Patience::None)?;
        }
        Ok(is_live)
    }

    /// Returns an unpositioned cursor over an index, for use while this transaction is open. May
    /// wait for a lock: errors are those of [`lock_table`](Self::lock_table).
    pub fn cursor(&mut self, table: &Arc<Table>, index_no: usize, read: Read) -> Result<Cursor> {
        self.cursor_on(table, index_no, read, OnLocked::Wait)
    }

    /// Like [`cursor`](Self::cursor). `on_locked`: how a locking cursor treats rows that other
    /// transactions have locked.
    pub fn cursor_on(
        &mut self,
        table: &Arc<Table>,
        index_no: usize,
        read: Read,
        on_locked: OnLocked,
    ) -> Result<Cursor> {
        let how = self.lock_to_read(table, read)?;
        self.cursor_as(table, index_no, how, on_locked)
    }

    pub(in crate::db) fn cursor_as(
        &mut self,
        table: &Arc<Table>,
        index_no: usize,
        (reading, moved): HowToRead,
        on_locked: OnLocked,
    ) -> Result<Cursor> {
        if let Reading::View(view) = &reading {
            table.check_usable_since(index_no, view.stamp())?;
        }
        let table = moved.as_ref().unwrap_or(table);
        if table.is_disabled(index_no) {
            let place = format!("index {index_no} of table '{}'", table.name());
            return Err(Error::Unsupported {
                place,
                detail: "its entries are not maintained while it is disabled".into(),
            });
        }
        match reading {
            Reading::View(view) => Cursor::new(&self.locker, table, index_no, Some(view)),
            Reading::Newest => Cursor::new(&self.locker, table, index_no, None),
            Reading::Rows(mode) => {
                let ranges = sound!(self.isolation != Isolation::ReadCommitted, "locks: lock no ranges");
                let how = Locking { mode, ranges, on_locked, any_version: false };
                Cursor::locking(&self.locker, table, index_no, how)
            }
        }
    }

    /// Returns the number of rows that a consistent read of the table finds, if it is known without
    /// a scan. A read that has to lock rows does not know it. May wait for a lock: errors are those
    /// of [`lock_table`](Self::lock_table).
    pub fn count(&mut self, table: &Arc<Table>) -> Result<Option<u64>> {
        let how = self.lock_to_read(table, Read::Consistent)?;
        self.count_as(table, how)
    }

    pub(in crate::db) fn count_as(
        &self,
        table: &Arc<Table>,
        (reading, moved): HowToRead,
    ) -> Result<Option<u64>> {
        let Reading::View(view) = reading else { return Ok(None) };
        let table = moved.as_ref().unwrap_or(table);
        let _usage = table.use_it()?;
        let own = self.slot_of(table).and_then(|slot| slot.rows_of(table.id()));
        Ok(view.stamp().and_then(|stamp| table.counts().count(stamp, own)))
    }

    /// Reads a large value by the locator from a row that this transaction may read. May do I/O.
    pub fn fetch_large(&self, table: &Arc<Table>, locator: &[u8], value: &mut Vec<u8>) -> Result<()> {
        // A table that a load replaced never had rows.
        let table = table.newest();
        let _usage = table.use_it()?;
        value.clear();
        large::read_value(&self.core.pool, table.blob_owner(), locator, value)
    }

    /// Fails with `TableChanged` if the snapshot sees the empty table `seen`, which a later load
    /// has replaced, and the transaction has written rows into the loaded table: the loaded rows
    /// have no versions, so the snapshot cannot see the transaction's rows without them.
    fn check_not_written_behind(&self, seen: &Arc<Table>) -> Result<()> {
        let slot = self.slot_of(seen).filter(|_| seen.has_moved());
        match slot.and_then(|slot| slot.rows_of(seen.newest().id())) {
            Some(_) => Err(Error::TableChanged(seen.name())),
            None => Ok(()),
        }
    }

    /// The new snapshot includes the transaction's own changes so far.
    pub(in crate::db) fn new_view(&self) -> Arc<ReadView> {
        let view = ReadView::new(&self.core.transactions.versions);
        view.belong_as(&self.view);
        view.open();
        Arc::new(view)
    }

    /// Whether another transaction has changed the row since `view`, or is changing it. May do I/O.
    pub(in crate::db) fn has_changed_since(
        &self,
        table: &Arc<Table>,
        key: &[u8],
        view: &ReadView,
    ) -> Result<bool> {
        let table = table.newest();
        let _usage = table.use_it()?;
        let is_seen = |record: RecordRef<'_>| {
            record.version.is_none_or(|(txn, _)| view.reader().sees(txn, self.view.own_if(txn)))
        };
        Ok(!table.clustered().get(key, is_seen)?.unwrap_or(false))
    }

    /// Fails with `TableChanged` if the open snapshot is too old for the table.
    pub(in crate::db) fn see(&self, table: &Arc<Table>, view: &Arc<ReadView>) -> Result<HowToRead> {
        let stamp = view.stamp();
        table.check_known_at(stamp)?;
        let seen = table.seen_at(stamp);
        seen.as_ref().unwrap_or(table).check_not_replaced_since(stamp)?;
        self.check_not_written_behind(seen.as_ref().unwrap_or(table))?;
        Ok((Reading::View(Arc::clone(view)), seen))
    }

    /// Takes the locks that this kind of read needs besides row locks, or opens the snapshot (I1).
    /// Also returns the table to read if it is not `table`: the loaded table that replaced it, or,
    /// for an older snapshot, the replaced one.
    pub(in crate::db) fn lock_to_read(&mut self, table: &Arc<Table>, read: Read) -> Result<HowToRead> {
        self.catch_up()?;
        self.core.health.check()?;
        let is_blind =
            self.isolation == Isolation::Serializable && !sound!(true, "serializable: read without locks");
        let (mode, intention) = match (read, self.isolation) {
            (Read::Consistent, _) if is_blind => {
                self.view.open();
                return Ok((Reading::View(Arc::clone(&self.view)), None));
            }
            (Read::Exclusive, _) => (LockMode::Exclusive, TableMode::IntentExclusive),
            (Read::Shared, _) | (Read::Consistent, Isolation::Serializable) => {
                (LockMode::Shared, TableMode::IntentShared)
            }
            (Read::Consistent, _) => {
                self.note_begin();
                self.view.open();
                return self.see(table, &self.view);
            }
        };
        let is_whole = self.has_whole(table.newest(), mode);
        if !is_whole {
            self.lock_table_as(table, intention)?;
        }
        let moved = table.has_moved().then(|| Arc::clone(table.newest()));
        if is_whole {
            return Ok((Reading::Newest, moved));
        }
        if self.isolation == Isolation::Serializable && self.has_snapshot_isolation {
            self.view.open();
        }
        Ok((Reading::Rows(mode), moved))
    }
}

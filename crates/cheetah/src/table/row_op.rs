//! Insert, update and delete of a row with all its index entries, forward and at redo.
//!
//! Order: lock the rows of the old and of the new key, look (old row, old entries, uniqueness, and delete-marked records
//! where something new comes), write large values, pin every page, make room; then one mini-transaction does it all: undo record, trees
//! and row count, log record. The locks keep other writers away from the row, and its standing ([`super::standing`]) purge,
//! so what was looked at still holds in the mini-transaction.
//!
//! What somebody else has in the way, a row with the same unique key or a locked range, is waited for with nothing held but
//! locks, and then all begins again. Ranges are asked for before anything is changed, and once more afterwards: a scan that has
//! locked one in between has not seen what came, so that goes again; a later one sees it.
//!
//! Invariants
//!   I1  A refusal (duplicate key, limit, disk full) changes nothing: large values that were written are rolled back.
//!   I2  Redo runs the same code with the values that the log carries, without uniqueness checks and locks; without undo records too,
//!       if it knows that the transaction commits.
//!   I3  Once it is done, its versions are the locks of its rows: those that were asked for are given back.
//!   I4  The undo record is appended before the trees change: whoever meets the new version finds it.

use super::change::{Change, EntryChange, Paths, TreePaths};
use super::core::{Core, Counters};
use super::handle::Table;
use super::large::{Buffers, Unclaimed};
use super::locker::Locker;
use super::rollback;
use super::row_locks::{forget_locks, give_back_place, lock_rows, unique_keys, Obstacle};
use super::row_values::RowSource;
use super::spec::{NewRow, OldEntry};
use super::standing::Standing;
use super::stored_row::Value;
use crate::base::{planted, reach, Error, Result};
use crate::format::log_record::{LargeSource, LoggedEntry, LoggedRow, RowOp};
use crate::format::page::max_payload_bytes;
use crate::format::varint;
use crate::txn::{LockMode, Slot};
use std::sync::Arc;

/// The buffers and pins of one transaction's row operations; once they have grown, only unique keys need an allocation per row.
#[derive(Default, Debug)]
pub(crate) struct Writer {
    pub(crate) paths: Paths,
    pub(crate) change: Change,
    pub(crate) buffers: Buffers,
    pub(crate) unclaimed: Unclaimed,
    pub(super) values: Vec<Value>,
    pub(super) old_values: Vec<Value>,
    pub(super) large: Vec<LargeSource>,
    /// Locators of the values that die when the transaction commits.
    pub(super) freed: Vec<u8>,
    /// The row with the same unique key that was waited for last, and is locked since then.
    pub(super) duplicate: Option<Vec<u8>>,
}

/// What came of an attempt.
#[derive(Debug)]
enum Attempt {
    Done,
    /// Nothing has changed.
    Wait(Obstacle),
    /// It is done, and is to be rolled back.
    RollBack(Obstacle),
}

/// Who writes, and where.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) core: &'a Core,
    pub(crate) slot: &'a Arc<Slot>,
    pub(crate) table: &'a Table,
    /// The locks to take; none when nobody else can get at the rows.
    pub(crate) locks: Option<Locks<'a>>,
    /// Whether the statement is to end, asked while it waits and before it tries again.
    pub(crate) interrupted: &'a dyn Fn() -> bool,
}

impl Target<'_> {
    /// `Interrupted` when the statement is to end: asked before something is tried again.
    pub(super) fn check_interrupted(&self) -> Result<()> {
        match (self.interrupted)() {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }
}

/// How a row operation locks.
#[derive(Clone, Copy)]
pub(crate) struct Locks<'a> {
    pub(crate) locker: &'a Locker,
    /// How the row is locked that has a unique key already: as what the caller does then needs it.
    pub(crate) duplicates: LockMode,
    /// Whether keys of a refused row that are not there stay so: see [`row_locks::keep_absent`](super::row_locks::keep_absent).
    pub(crate) keeps_absent: bool,
}

impl Writer {
    /// Unpins everything; to be called when a statement ends.
    pub(crate) fn release(&mut self) {
        self.paths.release();
    }

    /// Inserts a row.
    pub(crate) fn insert(&mut self, on: Target<'_>, new: &NewRow<'_>) -> Result<()> {
        self.run(on, RowOp::Insert, b"", Some(new), &[])?;
        Counters::add(&on.core.counters.rows_inserted);
        Ok(())
    }

    /// Changes the row of `old_key`.
    pub(crate) fn update(
        &mut self,
        on: Target<'_>,
        old_key: &[u8],
        new: &NewRow<'_>,
        old_entries: &[OldEntry<'_>],
    ) -> Result<()> {
        self.run(on, RowOp::Update, old_key, Some(new), old_entries)?;
        Counters::add(&on.core.counters.rows_updated);
        Ok(())
    }

    /// Deletes the row of `key`.
    pub(crate) fn delete(&mut self, on: Target<'_>, key: &[u8], old_entries: &[OldEntry<'_>]) -> Result<()> {
        self.run(on, RowOp::Delete, key, None, old_entries)?;
        Counters::add(&on.core.counters.rows_deleted);
        Ok(())
    }

    /// Repeats a logged row operation, of a transaction that `commits` for certain or may have to be rolled back.
    pub(crate) fn redo(
        &mut self,
        on: Target<'_>,
        commits: bool,
        op: RowOp,
        logged: &LoggedRow<'_>,
        large: &[LargeSource],
        entries: &[LoggedEntry<'_>],
    ) -> Result<()> {
        let table = on.table;
        let _usage = table.use_it()?;
        table.note_written();
        let new_key =
            if op == RowOp::Update && logged.new_key.is_empty() { logged.old_key } else { logged.new_key };
        self.change.start(op, logged.old_key, new_key);
        let _standing = self.standing(on);
        self.read_old_row(table)?;
        if self.look_at_new_row(table)? {
            return Err(Error::corrupt(format!("table '{}'", table.name()), "the new row is there already"));
        }
        for entry in entries {
            self.add_entry(table, table.position_of_logged(entry.index)?, entry, new_key.len())?;
        }
        if op != RowOp::Delete {
            self.build_row(on, logged.row, RowSource::Log(large))?;
            table.note_hidden_key(new_key);
            table.advance_auto_increment(logged.auto_increment);
            table.take_auto_increment_to_log();
        }
        self.collect_freed(table)?;
        if commits && self.leaves_nothing() {
            return self.execute_for_good(on);
        }
        self.execute(on)
    }

    fn run(
        &mut self,
        on: Target<'_>,
        op: RowOp,
        old_key: &[u8],
        new: Option<&NewRow<'_>>,
        old_entries: &[OldEntry<'_>],
    ) -> Result<()> {
        if on.table.has_disabled() {
            return self.run_without_disabled(on, op, old_key, new, old_entries);
        }
        self.run_all(on, op, old_key, new, old_entries)
    }

    /// As [`run`](Self::run), without the entries of disabled indexes.
    fn run_without_disabled(
        &mut self,
        on: Target<'_>,
        op: RowOp,
        old_key: &[u8],
        new: Option<&NewRow<'_>>,
        old_entries: &[OldEntry<'_>],
    ) -> Result<()> {
        let is_kept = |index_no: usize| !on.table.is_disabled(index_no);
        let secondary = new.map_or(&[][..], |new| new.secondary);
        let secondary = secondary.iter().filter(|entry| is_kept(entry.index_no)).copied().collect::<Vec<_>>();
        let old_entries =
            old_entries.iter().filter(|entry| is_kept(entry.index_no)).copied().collect::<Vec<_>>();
        let new = new.map(|new| NewRow { secondary: &secondary, ..*new });
        self.run_all(on, op, old_key, new.as_ref(), &old_entries)
    }

    fn run_all(
        &mut self,
        on: Target<'_>,
        op: RowOp,
        old_key: &[u8],
        new: Option<&NewRow<'_>>,
        old_entries: &[OldEntry<'_>],
    ) -> Result<()> {
        check_limits(on.table, new)?;
        on.table.note_written();
        self.duplicate = None;
        let mut places = 0;
        let done = self.run_until_done(on, op, old_key, new, old_entries, &mut places);
        match done {
            Ok(()) => forget_locks(on, op, old_key, new),
            Err(_) => give_back_place(on, new, &mut places),
        }
        done
    }

    /// `places` counts the requests for the key of a new row that is not there.
    fn run_until_done(
        &mut self,
        on: Target<'_>,
        op: RowOp,
        old_key: &[u8],
        new: Option<&NewRow<'_>>,
        old_entries: &[OldEntry<'_>],
        places: &mut u32,
    ) -> Result<()> {
        loop {
            let before = on.slot.state().undo_no;
            *places += u32::from(lock_rows(on, op, old_key, new)?);
            let obstacle = match self.attempt(on, op, old_key, new, old_entries)? {
                Attempt::Done => return Ok(()),
                Attempt::Wait(obstacle) => obstacle,
                Attempt::RollBack(obstacle) => {
                    reach::mark("row operation rolled back for a range");
                    rollback::roll_back_to(on.core, on.slot, before, &[], self)?;
                    obstacle
                }
            };
            if let Obstacle::Range(..) = obstacle {
                // Whoever has the range may put the row there himself.
                give_back_place(on, new, places);
            }
            self.wait_for(on, obstacle)?;
            on.check_interrupted()?;
        }
    }

    fn attempt(
        &mut self,
        on: Target<'_>,
        op: RowOp,
        old_key: &[u8],
        new: Option<&NewRow<'_>>,
        old_entries: &[OldEntry<'_>],
    ) -> Result<Attempt> {
        let Target { core, slot, table, .. } = on;
        let _usage = table.use_it()?;
        let _unique = on.locks.map(|_| core.unique_keys.take(unique_keys(table, new)));
        self.change.start(op, old_key, new.map_or(b"", |new| new.key));
        let _standing = self.standing(on);
        self.read_old_row(table)?;
        if let Some(new) = new {
            if let Some(obstacle) = self.check_unique(on, new)? {
                return Ok(Attempt::Wait(obstacle));
            }
        }
        self.add_entries(table, new, old_entries)?;
        if let Some(obstacle) = self.range_of_others(on)? {
            return Ok(Attempt::Wait(obstacle));
        }
        let done = self.build_and_execute(on, new);
        if done.is_err() && core.health.check().is_ok() {
            rollback::roll_back_large_values(core, slot, &mut self.unclaimed, &mut self.buffers)?;
        }
        done?;
        match self.range_of_others(on)?.filter(|_| !planted::is_on("rows: do not ask for ranges again")) {
            Some(obstacle) => Ok(Attempt::RollBack(obstacle)),
            None => Ok(Attempt::Done),
        }
    }

    fn build_and_execute(&mut self, on: Target<'_>, new: Option<&NewRow<'_>>) -> Result<()> {
        let table = on.table;
        if let Some(new) = new {
            self.build_row(on, new.row, RowSource::Caller)?;
        }
        self.collect_freed(table)?;
        self.execute(on)
    }

    /// Keeps purge away from the rows of the change.
    fn standing<'a>(&self, on: Target<'a>) -> Standing<'a> {
        let Change { op, old_key, new_key, .. } = self.change;
        let old = (op != RowOp::Insert).then(|| self.change.get(old_key));
        let new = (op != RowOp::Delete).then(|| self.change.get(new_key));
        on.core.standings.of_rows(on.table.id(), old, new)
    }

    /// Reads the row that changes or goes.
    fn read_old_row(&mut self, table: &Table) -> Result<()> {
        self.old_values.clear();
        if self.change.op == RowOp::Insert {
            return Ok(());
        }
        let Writer { change, paths, old_values, .. } = self;
        let path = &mut paths.of(table, 0)?.old;
        match change.look(table.clustered(), change.old_key, path)? {
            Some((false, held)) => change.old = held,
            _ => return Err(Error::RowNotFound),
        }
        table.find_stored_values(change.held(&change.old), old_values)
    }

    /// Looks at where a row comes that was not there: whether one is there.
    pub(super) fn look_at_new_row(&mut self, table: &Table) -> Result<bool> {
        let Writer { change, paths, .. } = self;
        if change.op == RowOp::Delete || change.keeps_key() {
            return Ok(false);
        }
        let path = &mut paths.of(table, 0)?.new;
        match change.look(table.clustered(), change.new_key, path)? {
            None => {}
            Some((true, held)) => change.marked = Some(held),
            Some((false, _)) => return Ok(true),
        }
        Ok(false)
    }

    /// Pairs the entries that go with those that come.
    fn add_entries(&mut self, table: &Table, new: Option<&NewRow<'_>>, old: &[OldEntry<'_>]) -> Result<()> {
        let new_entries = new.map_or(&[][..], |new| new.secondary);
        let clustered_len = self.change.get(self.change.new_key).len();
        for no in 0..old.len().max(new_entries.len()) {
            let (old, new) = (old.get(no), new_entries.get(no));
            let index_no = old.map(|old| old.index_no).or(new.map(|new| new.index_no)).unwrap_or_default();
            let mismatch = new.is_some_and(|new| new.index_no != index_no)
                || (self.change.op == RowOp::Update && old.is_some() != new.is_some())
                || index_no == 0;
            if mismatch {
                let what = "index numbers of old and new entries that differ";
                return Err(Error::Limit { what, actual: index_no as u64, limit: 0 });
            }
            let entry = LoggedEntry {
                index: table.number_of(index_no),
                old_key: old.map_or(b"", |old| old.key),
                new_key: new.map_or(b"", |new| new.key),
                payload: new.map_or(b"", |new| new.payload),
            };
            self.add_entry(table, index_no, &entry, clustered_len)?;
        }
        Ok(())
    }

    /// Adds one entry, looking at what goes and making sure that what comes is not there.
    fn add_entry(
        &mut self,
        table: &Table,
        index_no: usize,
        entry: &LoggedEntry<'_>,
        new_len: usize,
    ) -> Result<()> {
        let op = self.change.op;
        let old_key = (op != RowOp::Insert).then_some(entry.old_key);
        let new_key = (op != RowOp::Delete).then_some(entry.new_key);
        let mut length = [0u8; varint::MAX_BYTES];
        let used = varint::write(&mut length, new_len as u64);
        let head = length.get(..used).unwrap_or_default();
        let payload: [&[u8]; 2] = if new_key.is_some() { [head, entry.payload] } else { [b"", b""] };
        let mut added = *self.change.add_entry(index_no, old_key, new_key, &payload);
        self.look_at_entry(table, &mut added)?;
        if let Some(last) = self.change.entries.last_mut() {
            *last = added;
        }
        Ok(())
    }

    fn look_at_entry(&mut self, table: &Table, entry: &mut EntryChange) -> Result<()> {
        let Writer { change, paths, .. } = self;
        let tree = table.tree(entry.index_no)?;
        let into = paths.of(table, entry.index_no)?;
        let damaged =
            |detail| Error::corrupt(format!("index {} of table '{}'", entry.index_no, table.name()), detail);
        if let Some((old, _)) = entry.old_key {
            match change.look(tree, old, &mut into.old)? {
                Some((false, held)) => entry.old = held,
                _ => return Err(damaged("the entry of the row to change is missing; run CHECK TABLE")),
            }
        }
        let Some((new, _)) = entry.new_key.filter(|_| !change.entry_keeps_key(entry)) else { return Ok(()) };
        let TreePaths { old, new: path, .. } = into;
        match change.look_near(tree, new, path, old)? {
            None => {}
            Some((true, held)) => entry.marked = Some(held),
            Some((false, _)) => {
                return Err(damaged("an entry of the new row is there already; run CHECK TABLE"))
            }
        }
        Ok(())
    }
}

/// Refuses keys and payloads that are too long for their trees, so that nothing can be refused in the mini-transaction.
pub(super) fn check_limits(table: &Table, new: Option<&NewRow<'_>>) -> Result<()> {
    let Some(new) = new else { return Ok(()) };
    let key_max =
        |index_no: usize| table.indexes().get(index_no).map_or(0, |index| index.max_key_bytes as usize);
    check("clustered key length (bytes)", new.key.len(), key_max(0))?;
    for entry in new.secondary {
        let tree = table.tree(entry.index_no)?;
        check("index key length (bytes)", entry.key.len(), key_max(entry.index_no))?;
        let payload_max = max_payload_bytes(tree.page_bytes(), tree.def().key_bytes_max);
        check("index payload length (bytes)", entry.payload.len() + varint::MAX_BYTES, payload_max)?;
    }
    Ok(())
}

fn check(what: &'static str, actual: usize, limit: usize) -> Result<()> {
    if actual <= limit {
        return Ok(());
    }
    Err(Error::Limit { what, actual: actual as u64, limit: limit as u64 })
}

//! The locks of a row operation, and the locks of other transactions that it has to wait for: rows
//! with the same key, rows with the same unique key, and locked ranges. [`super::operation`]
//! defines the order of the steps and the locks of each.

use super::locker::{Asked, Locked, Patience, ScannedBy, VersionWriter};
use super::request::{must_be_unique, Locks, RowRequest, Target};
use super::writer::Writer;
use crate::base::{reach, sound, Error, Result, TreeId};
use crate::format::log_record::RowOp;
use crate::format::page::RecordRef;
use crate::leaves::KeyPart;
use crate::table::definitions::spec::{NewRow, SecondaryEntry};
use crate::tree::{successor, SeekMode};
use crate::txn::{Lock, LockMode};
use std::ops::Bound;

/// Why an operation has to wait before it can start over.
#[derive(Debug)]
pub(in crate::table) enum Obstacle {
    /// The row of this key has or had the same unique key.
    Row(Vec<u8>),
    /// Another transaction has locked the index range that contains this key.
    Range(TreeId, Vec<u8>),
}

#[derive(Clone, Copy, Default, Debug)]
pub(in crate::table) struct RowLocks {
    /// How a scan locked the old row, if it was not locked again.
    pub(in crate::table) gone_by: Option<ScannedBy>,
    /// The lock of a new key was requested, and no row exists there.
    pub(in crate::table) has_new_key: bool,
}

impl Writer {
    /// Locks the rows of the old and the new key, and leaves the paths to them prepared for the
    /// operation. Waits, with no latch held (I1 of [`super::locker`]).
    pub(in crate::table) fn lock_rows(
        &mut self,
        on: Target<'_>,
        request: &RowRequest<'_>,
    ) -> Result<RowLocks> {
        let mut done = RowLocks::default();
        let Some(Locks { locker, duplicates, .. }) = on.locks else { return Ok(done) };
        let see = |record: RecordRef<'_>| locker.check_unchanged(record.version);
        let tree = on.table.clustered().def().id;
        if let Some(key) = request.gone_key() {
            let path = &mut self.paths.of(on.table, 0)?.old;
            done.gone_by = locker.scanned_by(tree, key, path);
            if done.gone_by.is_none() {
                locker.lock_row(on.table, key, Some(path), Patience::Waits, |_| LockMode::Exclusive, see)?;
            }
        }
        let Some(key) = request.added_key() else { return Ok(done) };
        let mode = |record: Option<RecordRef<'_>>| match record {
            Some(record) if !record.is_marked() => duplicates,
            _ => LockMode::Exclusive,
        };
        let path = &mut self.paths.of(on.table, 0)?.new;
        let locked = locker.lock_row(on.table, key, Some(path), Patience::Waits, mode, see)?;
        done.has_new_key = matches!(locked, Locked::Gone(Some(_)));
        Ok(done)
    }

    /// Returns `false` if `obstacle` is a row that no longer exists.
    pub(in crate::table) fn wait_for(&mut self, on: Target<'_>, obstacle: Obstacle) -> Result<bool> {
        let Some(Locks { locker, duplicates, .. }) = on.locks else { return Ok(true) };
        match obstacle {
            Obstacle::Row(key) => {
                let locked =
                    locker.lock_row(on.table, &key, None, Patience::Waits, |_| duplicates, |_| Ok(()))?;
                if let Locked::Gone(Some(mode)) = locked {
                    locker.unlock_row(on.table, &key, mode);
                }
                let is_there = matches!(locked, Locked::Live(_));
                self.duplicate = is_there.then_some(key);
                Ok(is_there)
            }
            Obstacle::Range(tree, key) => {
                locker.acquire(Lock::InsertIntention { tree, key: &key }).map(|()| true)
            }
        }
    }

    /// The first key that the operation puts into a range locked by another transaction.
    pub(in crate::table) fn range_of_others(&self, on: Target<'_>) -> Result<Option<Obstacle>> {
        let (Some(Locks { locker, .. }), change) = (on.locks, &self.change) else { return Ok(None) };
        if !sound!(true, "rows: do not ask for ranges") {
            return Ok(None);
        }
        let row = (change.op != RowOp::Delete && !change.keeps_key()).then_some((0, change.new_key));
        let entries = change.entries.iter().filter(|entry| !change.entry_keeps_key(entry));
        let entries = entries.filter_map(|entry| entry.new_key.map(|(key, _)| (entry.index_no, key)));
        for (index_no, key) in row.into_iter().chain(entries) {
            let (tree, key) = (on.table.tree(index_no)?.def().id, change.get(key));
            if on.core.locks.has_ranges(tree) {
                let asked = locker.ask(Lock::InsertIntention { tree, key }, Patience::None)?;
                if let Asked::Refused = asked {
                    return Ok(Some(Obstacle::Range(tree, key.to_vec())));
                }
            }
        }
        Ok(None)
    }

    /// Refuses a row with another's unique key. Returns the row to wait for if that is undecided.
    pub(in crate::table) fn check_unique(
        &mut self,
        on: Target<'_>,
        new: &NewRow<'_>,
    ) -> Result<Option<Obstacle>> {
        if self.look_at_new_row(on.table)? {
            return Err(Error::DuplicateKey { index_no: 0, existing: new.key.to_vec() });
        }
        for entry in new.secondary.iter().filter(|entry| must_be_unique(on.table, entry)) {
            let found = self.find_same_key(on, entry);
            if let (Err(Error::DuplicateKey { index_no, .. }), RowOp::Insert) = (&found, self.change.op) {
                keep_absent(on, new, *index_no)?;
            }
            if let Some(row) = found? {
                return Ok(Some(Obstacle::Row(row)));
            }
        }
        Ok(None)
    }

    /// Returns `DuplicateKey`, or the row that must be locked first to decide whether it has the
    /// unique key of `entry`.
    fn find_same_key(&mut self, on: Target<'_>, entry: &SecondaryEntry<'_>) -> Result<Option<Vec<u8>>> {
        let Writer { change, paths, duplicate, .. } = self;
        let tree = on.table.tree(entry.index_no)?;
        if tree.lacks_beginning(entry.key)? {
            reach::mark("unique key that a filter lacks");
            change.lacking.push(entry.index_no);
            return Ok(None);
        }
        let cursor = &mut paths.of(on.table, entry.index_no)?.cursor;
        let mut found = cursor.seek(SeekMode::AtLeast, entry.key)?;
        while found && cursor.key().starts_with(entry.key) {
            let existing = cursor.key().get(entry.key.len()..).unwrap_or_default();
            let (is_live, version) =
                cursor.record().map_or((false, None), |record| (!record.is_marked(), record.version));
            let is_own_row = change.op != RowOp::Insert && existing == change.get(change.old_key);
            let writer = on.locks.map_or(VersionWriter::Own, |locks| locks.locker.writer_of(version));
            if !cursor.is_fresh() {
                on.check_interrupted()?;
                // The copied version may have been rolled back before its writer was looked up.
                found = cursor.seek(SeekMode::AtLeast, entry.key)?;
                continue;
            }
            let is_decided = writer == VersionWriter::Own || duplicate.as_deref() == Some(existing);
            match writer {
                _ if is_own_row => {}
                VersionWriter::Other(_) => return Ok(Some(existing.to_vec())),
                _ if !is_live => {}
                _ if is_decided => {
                    let (index_no, existing) = (entry.index_no, existing.to_vec());
                    return Err(Error::DuplicateKey { index_no, existing });
                }
                _ => return Ok(Some(existing.to_vec())),
            }
            found = cursor.next()?;
        }
        if tree.leaves().has_tickets() {
            tree.leaves().note_absent(tree.def().id, KeyPart::BeforeRowKey);
        }
        Ok(None)
    }
}

/// The row is not inserted, or not yet.
pub(in crate::table) fn give_back_key(on: Target<'_>, request: &RowRequest<'_>, key_locks: &mut u32) {
    let requests = std::mem::take(key_locks);
    if let (Some(Locks { locker, .. }), Some(new)) = (on.locks, &request.new) {
        (0..requests).for_each(|_| locker.unlock_row(on.table, new.key, LockMode::Exclusive));
    }
}

/// Locks the absent unique keys of a new row in the indexes before `index_no`, so that no other
/// transaction inserts them. The caller changes the row that has the key of `index_no`, which is
/// correct only while no row has the earlier keys. Must be called with the row's key locked and the
/// latches of its unique keys held.
pub(in crate::table) fn keep_absent(on: Target<'_>, new: &NewRow<'_>, index_no: usize) -> Result<()> {
    let Some(Locks { locker, keeps_absent: true, .. }) = on.locks else { return Ok(()) };
    let mode = LockMode::Shared;
    if !on.table.hidden_key() {
        // A record lock, not a range lock, so that a transaction can take a million of them.
        let tree = on.table.clustered().def().id;
        locker.ask(Lock::Record { tree, key: new.key, mode }, Patience::None)?;
    }
    let unique = new.secondary.iter().filter(|entry| must_be_unique(on.table, entry));
    for entry in unique.take_while(|entry| entry.index_no != index_no) {
        let (tree, end) = (on.table.tree(entry.index_no)?.def().id, successor(entry.key));
        let range = (Bound::Included(entry.key), end.as_deref().map_or(Bound::Unbounded, Bound::Excluded));
        locker.ask(Lock::Gap { tree, range, mode }, Patience::None)?;
    }
    Ok(())
}

/// Releases the locks of the rows that the operation changed (I2 of [`super::operation`]).
/// `gone_by`: how a scan had locked the old row. A row inside a range locked by a scan has no lock
/// of its own, unless an earlier statement locked the row alone, until the transaction ends.
pub(in crate::table) fn forget_locks(on: Target<'_>, request: &RowRequest<'_>, gone_by: Option<ScannedBy>) {
    let Some(Locks { locker, .. }) = on.locks else { return };
    let tree = on.table.clustered().def().id;
    let gone = request.gone_key().filter(|_| gone_by != Some(ScannedBy::Range));
    for key in gone.into_iter().chain(request.added_key()) {
        on.core.locks.forget_changed(locker.owner, tree, key);
    }
}

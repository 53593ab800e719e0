//! The locks of a row operation, and the locks of others for which it has to wait: rows of the same
//! key, rows with the same unique key, and ranges that others have locked. [`super::operation`] has
//! the order of the steps, and what is held at each.

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

/// The obstacle for which an operation has to wait before it can begin again.
#[derive(Debug)]
pub(in crate::table) enum Obstacle {
    /// The row of this key has the same unique key, or had it.
    Row(Vec<u8>),
    /// Somebody has locked the range of an index in which this key lies.
    Range(TreeId, Vec<u8>),
}

/// The locks that [`Writer::lock_rows`] has found or got.
#[derive(Clone, Copy, Default, Debug)]
pub(in crate::table) struct RowLocks {
    /// How a scan has locked the row that changes or goes, if that was not locked anew.
    pub(in crate::table) gone_by: Option<ScannedBy>,
    /// Whether the lock of a new key was asked for, where there is no row.
    pub(in crate::table) has_new_key: bool,
}

impl Writer {
    /// Locks the rows of the old key and of the new one. Leaves the paths to them prepared, so that
    /// the operation searches for neither again. Waits, with no latch held (I1 of
    /// [`super::locker`]).
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

    /// Waits for what is in the way. `false` when that was a row which is gone.
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

    /// The first place where the operation puts a record into a range that somebody else has
    /// locked.
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

    /// Refuses a row whose unique keys another row has; the row to wait for, where that is not
    /// decided.
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

    /// Looks for another row with the unique key of `entry`: `DuplicateKey`, or one that must be
    /// locked first to say.
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
                // The version that was copied may have been rolled back before its writer was asked
                // for.
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

/// Gives back the requests for the key of a row that does not come, or not yet.
pub(in crate::table) fn give_back_key(on: Target<'_>, request: &RowRequest<'_>, key_locks: &mut u32) {
    let requests = std::mem::take(key_locks);
    if let (Some(Locks { locker, .. }), Some(new)) = (on.locks, &request.new) {
        (0..requests).for_each(|_| locker.unlock_row(on.table, new.key, LockMode::Exclusive));
    }
}

/// Keeps others from the unique keys of a new row that were looked for before that of index
/// `index_no`, and are not there: the caller changes the row that has that one, which is right as
/// long as none has those. To be called with the place of the row locked, and the latches of its
/// unique keys.
pub(in crate::table) fn keep_absent(on: Target<'_>, new: &NewRow<'_>, index_no: usize) -> Result<()> {
    let Some(Locks { locker, keeps_absent: true, .. }) = on.locks else { return Ok(()) };
    let mode = LockMode::Shared;
    if !on.table.hidden_key() {
        // A lock of a record, not of a range: a transaction that does this a million times has room
        // for those.
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

/// Gives the locks of the rows back that the operation has changed (I2 of [`super::operation`]),
/// whose old row was locked by `gone_by` before. A row that a scan has in a range has no other
/// lock, unless an earlier statement has locked it alone: that one stays to the end of the
/// transaction.
pub(in crate::table) fn forget_locks(on: Target<'_>, request: &RowRequest<'_>, gone_by: Option<ScannedBy>) {
    let Some(Locks { locker, .. }) = on.locks else { return };
    let tree = on.table.clustered().def().id;
    let gone = request.gone_key().filter(|_| gone_by != Some(ScannedBy::Range));
    for key in gone.into_iter().chain(request.added_key()) {
        on.core.locks.forget_changed(locker.owner, tree, key);
    }
}

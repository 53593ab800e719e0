//! A client turns plans into calls of the library, and the calls' results into operations of a
//! history.
//!
//! The caller of `advance` chooses the next client. In one thread, a client does not wait for a
//! locked row: it retries at its next turn. A read advances by one row at a time. So a seed
//! reproduces the order of all operations.

use crate::history::{Op, Seen, Txn, What};
use crate::plan::{How, Plan, Reading, Step, Via, GROUP_KEYS};
use crate::words::{find, list_of};
use crate::Run;
use cheetah::testing::base::{Error, Result};
use cheetah::testing::db::{
    Cursor, Isolation, LockMode, Read, RowWords, Savepoint, SeekEnd, SeekMode, Transaction,
};
use cheetah::testing::table::{NewRow, OldEntry, SecondaryEntry};
use std::collections::BTreeMap;

/// The number of times that a client finds a row locked before its transaction is rolled back.
const PATIENCE: u32 = 12;
/// The lock wait of a client that waits for rows.
const LOCK_WAIT_NS: u64 = 2_000_000_000;
/// The number of rows read from a leaf at once.
const ROWS_AT_ONCE: usize = 8;
/// The index by group and number, whose entries move with every change of a row. The next index is
/// the unique index by the last value.
const BY_NUMBER: usize = 1;
/// The index by group alone, whose entries never move.
const BY_GROUP: usize = 3;

/// A row's values: the only value of a register, or the values of a list in insertion order.
struct Row(Vec<u64>);

impl Row {
    fn parse(stored: &[u8]) -> Self {
        Row(stored.chunks(8).map(number).collect())
    }

    fn stored(&self) -> Vec<u8> {
        self.0.iter().flat_map(|value| value.to_be_bytes()).collect()
    }

    fn last(&self) -> u64 {
        self.0.last().copied().unwrap_or_default()
    }

    /// Returns the keys of the row's index entries, in the order of the secondary indexes.
    fn entries(&self, key: u64, run: &Run) -> Vec<Vec<u8>> {
        if !run.has_indexes {
            return Vec::new();
        }
        let group = (key / GROUP_KEYS).to_be_bytes();
        let number = if run.is_list { self.0.len() as u64 } else { self.last() };
        vec![[group, number.to_be_bytes()].concat(), self.last().to_be_bytes().to_vec(), group.to_vec()]
    }

    fn seen(&self, is_list: bool) -> Seen {
        if is_list {
            return Seen::List(self.0.clone());
        }
        Seen::Value(self.0.last().copied())
    }
}

/// The values of a stored row.
pub(crate) fn values_of(stored: &[u8]) -> Vec<u64> {
    Row::parse(stored).0
}

/// A number as stored in keys and rows.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// The visible content of a stored row.
pub(crate) fn seen_of(stored: &[u8], is_list: bool) -> Seen {
    Row::parse(stored).seen(is_list)
}

/// The visible content of a key without a row.
pub(crate) fn nothing(is_list: bool, is_length: bool) -> Seen {
    match (is_list, is_length) {
        (true, true) => Seen::Length(0),
        (true, false) => Seen::List(Vec::new()),
        (false, _) => Seen::Value(None),
    }
}

/// A read in progress.
struct Scan {
    /// `None` for a read that looks up key after key.
    cursor: Option<Cursor>,
    keys: Vec<u64>,
    steps_count: usize,
    seen: BTreeMap<u64, Seen>,
}

/// A client; see the module head.
pub(crate) struct Client {
    no: usize,
    txn: Transaction,
    plan: Option<Plan>,
    /// The client's position in the plan.
    at: usize,
    /// The operations of the current transaction, and the ended transactions.
    ops: Vec<Op>,
    txns: Vec<Txn>,
    tried: u32,
    sent: Option<u64>,
    scan: Option<Scan>,
    /// The savepoint, and the number of statements before it.
    saved: Option<(Savepoint, usize)>,
}

impl Client {
    /// Creates a client. A client that does not wait for locks retries.
    pub(crate) fn new(no: usize, mut txn: Transaction, has_snapshot_isolation: bool, waits: bool) -> Self {
        txn.set_lock_wait(if waits { LOCK_WAIT_NS } else { 0 });
        txn.set_snapshot_isolation(has_snapshot_isolation);
        txn.set_duplicate_lock(LockMode::Exclusive);
        let (plan, sent, scan, saved) = (None, None, None, None);
        Self { no, txn, plan, at: 0, ops: Vec::new(), txns: Vec::new(), tried: 0, sent, scan, saved }
    }

    /// Returns all transactions of the client. An open transaction counts as not ended.
    pub(crate) fn into_txns(mut self) -> Vec<Txn> {
        let end = (u64::MAX >> 1, u64::MAX >> 1);
        self.note_end(false, end);
        self.txns
    }

    /// Runs one statement, or one row of a read. Returns false if there are no more transactions.
    /// An error stops the run.
    pub(crate) fn advance(&mut self, run: &Run) -> Result<bool> {
        if self.plan.is_none() {
            self.plan = run.next_plan();
            self.plan.iter().for_each(|plan| self.txn.set_isolation(plan.level));
            return Ok(self.plan.is_some());
        }
        if self.sent.is_none() {
            self.sent = Some(run.clock());
        }
        match self.act(run) {
            Ok(true) => (self.sent, self.tried) = (None, 0),
            Ok(false) => {}
            Err(Error::LockTimeout) if self.tried < PATIENCE => {
                self.tried += 1;
                self.scan = None;
            }
            Err(Error::LockTimeout | Error::Deadlock | Error::RecordChanged) => self.end(run, false)?,
            Err(fatal @ Error::Fatal(_)) => return Err(fatal),
            Err(other) => {
                run.note_failure(&other);
                self.end(run, false)?;
            }
        }
        Ok(true)
    }

    /// Continues the current statement. Returns whether the statement is complete.
    fn act(&mut self, run: &Run) -> Result<bool> {
        let Some(plan) = &self.plan else { return Ok(true) };
        let Some(step) = plan.steps.get(self.at).cloned() else {
            let commits = plan.commits;
            self.end(run, commits)?;
            return Ok(true);
        };
        let what = match step {
            Step::Read(reading) => match self.read(run, &reading)? {
                Some(what) => Some(what),
                None => return Ok(false),
            },
            Step::Write { key, value, how } => Some(self.write(run, key, value, how)?),
            Step::Savepoint => {
                self.saved = Some((self.txn.savepoint(), self.ops.len()));
                None
            }
            Step::Back => {
                self.back()?;
                None
            }
            Step::Snapshot => {
                self.txn.take_snapshot()?;
                Some(What::Snapshot)
            }
        };
        self.txn.end_statement();
        self.at += 1;
        let during = (self.sent.unwrap_or_default(), run.clock());
        self.ops.extend(what.map(|what| Op::new(what, during)));
        Ok(true)
    }

    fn end(&mut self, run: &Run, commits: bool) -> Result<()> {
        let sent = run.clock();
        match commits {
            true => self.txn.commit()?,
            false => self.txn.rollback()?,
        }
        self.note_end(commits, (sent, run.clock()));
        (self.at, self.scan, self.saved, self.sent, self.tried) = (0, None, None, None, 0);
        Ok(())
    }

    fn note_end(&mut self, is_committed: bool, end: (u64, u64)) {
        let level = match self.plan.take().map(|plan| plan.level) {
            Some(Isolation::ReadCommitted) => "READ COMMITTED",
            Some(Isolation::RepeatableRead) => "REPEATABLE READ",
            Some(Isolation::Serializable) => "SERIALIZABLE",
            None => return,
        };
        let ops = std::mem::take(&mut self.ops);
        self.txns.push(Txn { client: self.no, level, is_committed, end, ops });
    }

    fn back(&mut self) -> Result<()> {
        let Some((savepoint, ops_count)) = self.saved else { return Ok(()) };
        self.txn.rollback_to(savepoint)?;
        let now = self.ops.len();
        let undone = self.ops.iter_mut().skip(ops_count).filter(|op| op.undone == 0);
        undone.for_each(|op| op.undone = now);
        Ok(())
    }

    /// Continues a read. Returns its findings once the read is complete.
    fn read(&mut self, run: &Run, reading: &Reading) -> Result<Option<What>> {
        let mut scan = match self.scan.take() {
            Some(scan) => scan,
            None => self.scan(run, reading)?,
        };
        let goes_on = match &mut scan.cursor {
            None => self.read_key(run, reading, &mut scan)?,
            Some(_) => read_next(run.is_list, reading, &mut scan)?,
        };
        scan.steps_count += 1;
        if goes_on {
            self.scan = Some(scan);
            return Ok(None);
        }
        Ok(Some(self.what(run.is_list, reading, scan)))
    }

    fn scan(&mut self, run: &Run, reading: &Reading) -> Result<Scan> {
        let keys = match reading.via {
            Via::Words => find(&mut self.txn, run, &format!("g{}", reading.keys[0] / GROUP_KEYS))?,
            Via::Found => {
                let words = reading.words.iter().map(|(_, value)| format!("v{value}"));
                find(&mut self.txn, run, &words.collect::<Vec<_>>().join(" "))?
            }
            _ => reading.keys.clone(),
        };
        Ok(Scan { cursor: self.cursor(run, reading)?, keys, steps_count: 0, seen: BTreeMap::new() })
    }

    fn cursor(&mut self, run: &Run, reading: &Reading) -> Result<Option<Cursor>> {
        let index_no = match reading.via {
            Via::Keys | Via::Words | Via::Found => return Ok(None),
            Via::Range | Via::Rows | Via::Picked => 0,
            Via::Numbers | Via::Covered => BY_NUMBER,
            Via::Group => BY_GROUP,
        };
        self.txn.cursor(&run.table, index_no, how_of(reading)).map(Some)
    }

    fn read_key(&mut self, run: &Run, reading: &Reading, scan: &mut Scan) -> Result<bool> {
        let Some(&key) = scan.keys.get(scan.steps_count) else { return Ok(false) };
        let mut stored = Vec::new();
        if self.txn.get(&run.table, &key.to_be_bytes(), how_of(reading), &mut stored)? {
            scan.seen.insert(key, seen_of(&stored, run.is_list));
        }
        Ok(scan.steps_count + 1 < scan.keys.len())
    }

    fn what(&self, is_list: bool, reading: &Reading, mut scan: Scan) -> What {
        // A locking scan without gap locks may miss a row if the row's value decreases while the
        // scan waits, because the row's entry then moves back in the index. A row may exist
        // although a search by values did not find it.
        let may_miss = reading.via == Via::Found
            || matches!(reading.via, Via::Numbers | Via::Covered)
                && reading.lock.is_some()
                && !self.locks_ranges();
        let wanted = if reading.via == Via::Picked { &reading.keys[..1] } else { &reading.keys[..] };
        let absent = (!may_miss).then(|| nothing(is_list, reading.via == Via::Covered));
        let seen = wanted.iter().filter_map(|key| Some((*key, scan.seen.remove(key).or(absent.clone())?)));
        let by_index = matches!(reading.via, Via::Numbers | Via::Group | Via::Covered);
        let words = matches!(reading.via, Via::Words | Via::Found).then(|| reading.words.clone());
        What::Read { locks: reading.lock.is_some(), by_index, seen: seen.collect(), words }
    }

    /// Writes a row completely, or changes nothing.
    fn write(&mut self, run: &Run, key: u64, value: u64, how: How) -> Result<What> {
        let before = self.txn.savepoint();
        let done = self.try_write(run, key, value, how);
        if done.is_err() {
            self.txn.rollback_to(before)?;
        }
        done
    }

    fn try_write(&mut self, run: &Run, key: u64, value: u64, how: How) -> Result<What> {
        let is_list = run.is_list;
        if how == How::Upsert {
            match self.insert(run, key, &Row(vec![value])) {
                Err(Error::DuplicateKey { index_no: 0, .. }) => {}
                done => return done.map(|()| What::Write { key, value: Some(value) }),
            }
        }
        let mut stored = Vec::new();
        let is_there = self.txn.get(&run.table, &key.to_be_bytes(), Read::Exclusive, &mut stored)?;
        let old = is_there.then(|| Row::parse(&stored));
        let before = old.as_ref().filter(|_| is_list).map(|row| row.0.clone()).unwrap_or_default();
        let new = Row(before.into_iter().chain([value]).collect());
        match (how, old) {
            (How::Replace, None) => match self.insert(run, key, &new) {
                // Without range locks, another transaction may insert a row after the lookup. The
                // refused insert has locked that row.
                Err(Error::DuplicateKey { index_no: 0, .. }) if !self.locks_ranges() => {
                    return self.try_write(run, key, value, how);
                }
                done => done?,
            },
            (_, None) => {
                let seen = vec![(key, nothing(is_list, false))];
                return Ok(What::Read { locks: true, by_index: false, seen, words: None });
            }
            (How::Replace, Some(old)) => {
                self.delete(run, key, &old)?;
                self.insert(run, key, &new)?;
            }
            (How::Delete, Some(old)) => {
                self.delete(run, key, &old)?;
                return Ok(What::Write { key, value: None });
            }
            (How::Upsert | How::Update, Some(old)) => self.update(run, key, &old, &new)?,
        }
        Ok(What::Write { key, value: Some(value) })
    }

    /// Returns whether the client's transaction prevents inserts into ranges that it has read.
    fn locks_ranges(&self) -> bool {
        self.plan.as_ref().is_none_or(|plan| plan.level != Isolation::ReadCommitted)
    }

    fn insert(&mut self, run: &Run, key: u64, row: &Row) -> Result<()> {
        let (entries, stored) = (row.entries(key, run), key.to_be_bytes());
        self.txn.insert(
            &run.table,
            &NewRow { key: &stored, row: &row.stored(), secondary: &secondary(&entries) },
        )?;
        let Some(postings) = &run.postings else { return Ok(()) };
        let words = &mut list_of(key, &row.0);
        self.txn.insert_words(postings, RowWords { key: &stored, words })
    }

    fn update(&mut self, run: &Run, key: u64, old: &Row, new: &Row) -> Result<()> {
        let (old_words, new_words) = (&mut list_of(key, &old.0), &mut list_of(key, &new.0));
        let (old, entries) = (old.entries(key, run), new.entries(key, run));
        // The entry by group does not change.
        let changed = ..old.len().min(BY_GROUP - 1);
        let key = key.to_be_bytes();
        let new = NewRow { key: &key, row: &new.stored(), secondary: &secondary(&entries[changed]) };
        self.txn.update(&run.table, &key, &new, &old_entries(&old[changed]))?;
        let Some(postings) = &run.postings else { return Ok(()) };
        let old = RowWords { key: &key, words: old_words };
        self.txn.change_words(postings, old, RowWords { key: &key, words: new_words })
    }

    fn delete(&mut self, run: &Run, key: u64, old: &Row) -> Result<()> {
        let (words, stored) = (&mut list_of(key, &old.0), key.to_be_bytes());
        let old = old.entries(key, run);
        self.txn.delete(&run.table, &stored, &old_entries(&old))?;
        let Some(postings) = &run.postings else { return Ok(()) };
        self.txn.delete_words(postings, RowWords { key: &stored, words })
    }
}

fn how_of(reading: &Reading) -> Read {
    match reading.lock {
        None => Read::Consistent,
        Some(LockMode::Shared) => Read::Shared,
        Some(LockMode::Exclusive) => Read::Exclusive,
    }
}

/// Reads the next row of a scan. Returns whether there may be more rows.
fn read_next(is_list: bool, reading: &Reading, scan: &mut Scan) -> Result<bool> {
    let Scan { cursor: Some(cursor), steps_count, seen, .. } = scan else { return Ok(false) };
    let is_first = *steps_count == 0;
    let lowest = reading.keys.iter().min().copied().unwrap_or_default();
    let (low, high) = (lowest.to_be_bytes(), (lowest + GROUP_KEYS - 1).to_be_bytes());
    let group = (lowest / GROUP_KEYS).to_be_bytes();
    match reading.via {
        Via::Keys | Via::Words | Via::Found => Ok(false),
        Via::Range | Via::Picked => {
            let found = match is_first {
                true => cursor.seek_to(SeekMode::AtLeast, &low, SeekEnd::UpTo(&high))?,
                false => cursor.next()?,
            };
            let key = number(cursor.key());
            let is_inside = found && key <= number(&high);
            if is_inside && reading.via == Via::Picked && key != reading.keys[0] {
                cursor.unlock_row();
            } else if is_inside {
                seen.insert(key, seen_of(cursor.row(), is_list));
            }
            Ok(is_inside)
        }
        Via::Rows => {
            let mut rows = Vec::new();
            let mut take = |prefix: &[u8], suffix: &[u8], row: &[u8]| {
                rows.push((number(&[prefix, suffix].concat()), seen_of(row, is_list)));
            };
            let found = match is_first {
                true => {
                    let found = cursor.seek(SeekMode::AtLeast, &low)?;
                    if found {
                        take(&[], cursor.key(), cursor.row());
                    }
                    found
                }
                false => cursor.next_rows(ROWS_AT_ONCE, take)?,
            };
            let is_inside = found && rows.iter().all(|(key, _)| *key <= number(&high));
            seen.extend(rows.into_iter().filter(|(key, _)| *key <= number(&high)));
            Ok(is_inside)
        }
        Via::Numbers | Via::Group | Via::Covered => {
            let found = match is_first {
                true => cursor.seek_to(SeekMode::AtLeast, &group, SeekEnd::Prefix)?,
                false => cursor.next()?,
            };
            if !found || !cursor.secondary_key().starts_with(&group) {
                return Ok(false);
            }
            let key = number(cursor.clustered_key());
            let told = number(cursor.secondary_key().get(8..).unwrap_or_default());
            let value = match (reading.via, is_list) {
                (Via::Covered, true) => Seen::Length(told as usize),
                (Via::Covered, false) => Seen::Value(Some(told)),
                _ => {
                    let mut stored = Vec::new();
                    cursor.get_row(&mut stored)?;
                    seen_of(&stored, is_list)
                }
            };
            seen.entry(key).or_insert(value);
            Ok(true)
        }
    }
}

fn secondary(entries: &[Vec<u8>]) -> Vec<SecondaryEntry<'_>> {
    let entry = |(no, key)| SecondaryEntry {
        index_no: no + 1,
        key: Vec::as_slice(key),
        payload: b"",
        check_unique: true,
    };
    entries.iter().enumerate().map(entry).collect()
}

fn old_entries(entries: &[Vec<u8>]) -> Vec<OldEntry<'_>> {
    let old = |(no, key)| OldEntry { index_no: no + 1, key: Vec::as_slice(key), payload: b"" };
    entries.iter().enumerate().map(old).collect()
}

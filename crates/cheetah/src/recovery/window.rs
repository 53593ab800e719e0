//! The part of the log that has been read and not applied yet: what lies ahead tells how
//! transactions end.
//!
//! A transaction whose commit is in the log will not be rolled back. Nobody reads before redo is
//! done, so nobody asks what its rows were before. So its operations leave no undo records, no
//! versions and no delete marks: see [`Window::commits`].
//!
//! Invariants
//!   I1  What the window tells of a transaction is told of all its records: asked before its first
//!       record is applied, the window has all of them up to the commit.
//!   I2  Frames come from the reader of the log, which has verified them; whether they are durable
//!       does not matter, as they are made so before anybody is served, and before an epoch has
//!       what redo did.
//!   I3  Its memory counts in the memory budget, by whole chunks. The chunk that is being filled,
//!       one sixteenth of the window and a record, does not.

use crate::base::{planted, Result, TxnId};
use crate::format::log_record::LogRecord;
use crate::memory::{MemoryBudget, MemoryUse, Reservation};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// Parts in which the window moves.
const CHUNKS: usize = 16;

/// Records that follow each other.
#[derive(Default)]
pub(super) struct Chunk {
    records: Vec<(u8, Range<usize>)>,
    bytes: Vec<u8>,
    /// Its memory, once it is full (I3).
    reserved: Option<Reservation>,
}

impl Chunk {
    /// Kinds and bodies of the records.
    pub(super) fn records(&self) -> impl Iterator<Item = (u8, &[u8])> {
        let record =
            |(kind, at): &(u8, Range<usize>)| (*kind, self.bytes.get(at.clone()).unwrap_or_default());
        self.records.iter().map(record)
    }

    fn heap_bytes(&self) -> usize {
        self.records.capacity() * size_of::<(u8, Range<usize>)>() + self.bytes.capacity()
    }
}

/// What lies ahead of a transaction.
#[derive(Clone, Copy, Default, Debug)]
struct Ahead {
    commits: bool,
    rolls_back: bool,
}

/// See the module.
pub(super) struct Window {
    memory: Arc<MemoryBudget>,
    chunk_bytes: usize,
    /// Oldest first; the last one is being filled.
    chunks: VecDeque<Chunk>,
    ahead: HashMap<TxnId, Ahead>,
}

impl Window {
    /// An empty window for about so many bytes of records, which count in `memory`.
    pub(super) fn new(bytes: usize, memory: &Arc<MemoryBudget>) -> Self {
        let (memory, chunk_bytes) = (Arc::clone(memory), bytes / CHUNKS);
        Self { memory, chunk_bytes, chunks: VecDeque::new(), ahead: HashMap::new() }
    }

    /// Adds the next record of the log. `Corruption` if it is none.
    pub(super) fn add(&mut self, kind: u8, body: &[u8]) -> Result<()> {
        if !LogRecord::is_operation(kind) {
            match LogRecord::decode(kind, body)? {
                LogRecord::Commit(txn, _) => self.ahead.entry(txn).or_default().commits = true,
                LogRecord::Undo(txn, _) => self.ahead.entry(txn).or_default().rolls_back = true,
                _ => {}
            }
        }
        let last = self.chunks.back_mut();
        if last.as_ref().is_none_or(|last| last.bytes.len() >= self.chunk_bytes) {
            if let Some(full) = last {
                full.reserved = Some(self.memory.reserve(MemoryUse::Redo, full.heap_bytes()));
            }
            self.chunks.push_back(Chunk::default());
        }
        if let Some(Chunk { records, bytes, .. }) = self.chunks.back_mut() {
            let at = bytes.len();
            bytes.extend_from_slice(body);
            records.push((kind, at..bytes.len()));
        }
        Ok(())
    }

    /// Takes the oldest records out, if the window is full.
    pub(super) fn take_surplus(&mut self) -> Option<Chunk> {
        if self.chunks.len() > CHUNKS {
            self.take()
        } else {
            None
        }
    }

    /// Takes the oldest records out.
    pub(super) fn take(&mut self) -> Option<Chunk> {
        self.chunks.pop_front()
    }

    /// Whether a transaction, of which nothing has been applied, is known to commit all that it
    /// does (I1).
    pub(super) fn commits(&self, txn: TxnId) -> bool {
        let rolls_back_for_good = planted::is_on("redo: apply for good what is rolled back");
        self.ahead.get(&txn).is_some_and(|ahead| (ahead.commits && !ahead.rolls_back) || rolls_back_for_good)
    }

    /// Forgets a transaction that has ended.
    pub(super) fn forget(&mut self, txn: TxnId) {
        self.ahead.remove(&txn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(window: &mut Window, record: &LogRecord<'_>) {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        window.add(bytes[0], &bytes[1..]).unwrap();
    }

    #[test]
    fn it_tells_who_commits_without_rolling_anything_back() {
        let mut window = Window::new(1 << 10, &Arc::new(MemoryBudget::new(1 << 20)));
        add(&mut window, &LogRecord::Undo(TxnId(1), 1));
        (1..=2).for_each(|txn| add(&mut window, &LogRecord::Commit(TxnId(txn), txn)));
        add(&mut window, &LogRecord::Abort(TxnId(3)));
        assert_eq!([1, 2, 3, 4].map(|txn| window.commits(TxnId(txn))), [false, true, false, false]);
        window.forget(TxnId(2));
        assert!(!window.commits(TxnId(2)));
    }

    #[test]
    fn records_leave_in_their_order_once_it_is_full() {
        let memory = Arc::new(MemoryBudget::new(1 << 20));
        let mut window = Window::new(64, &memory);
        let mut left = Vec::new();
        for txn in 0..1000 {
            add(&mut window, &LogRecord::Abort(TxnId(txn)));
            left.extend(window.take_surplus());
        }
        assert!(window.chunks.len() <= CHUNKS && !left.is_empty());
        assert!(memory.used(MemoryUse::Redo) > 64);
        left.extend(std::iter::from_fn(|| window.take()));
        let records =
            left.iter().flat_map(Chunk::records).map(|(kind, body)| LogRecord::decode(kind, body).unwrap());
        assert!(records.eq((0..1000).map(|txn| LogRecord::Abort(TxnId(txn)))));
        drop((window, left));
        assert_eq!(memory.used(MemoryUse::Redo), 0);
    }
}

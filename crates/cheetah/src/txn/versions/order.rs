//! The order in which transactions end, and when their outcomes are forgotten.

use super::map::{Map, Outcome, State};
use super::number::Number;
use super::reader::Reader;
use super::snapshots::{published_before_slots, Snapshots};
use crate::base::{sound, Result, TxnId};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// The outcomes of transactions, their order, and the snapshots that read them.
#[derive(Debug)]
pub struct Versions(pub(super) Arc<Shared>);

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) map: Map,
    pub(super) snapshots: Snapshots,
    pub(super) published: Line,
    pub(super) next_txn: Line,
    commits: Mutex<u64>,
}

/// A number in its own cache line.
#[repr(align(128))]
#[derive(Debug)]
pub(super) struct Line(pub(super) AtomicU64);

impl Versions {
    /// Continues where an epoch ended: all transactions before `next_txn` have ended, except those
    /// that are [adopted](Self::adopt), and stamps continue at `next_stamp`.
    pub fn new(next_txn: TxnId, next_stamp: u64) -> Self {
        let (next_txn, next_stamp) = (next_txn.0.max(1), next_stamp.max(1));
        Self(Arc::new(Shared {
            map: Map::new(next_txn),
            snapshots: Snapshots::new(),
            published: Line(AtomicU64::new(next_stamp - 1)),
            next_txn: Line(AtomicU64::new(next_txn)),
            commits: Mutex::new(next_stamp),
        }))
    }

    /// Starts a transaction and returns its ID.
    pub fn start(&self) -> TxnId {
        let txn = self.0.next_txn.0.fetch_add(1, Ordering::Relaxed);
        self.0.map.extend_to(txn);
        TxnId(txn)
    }

    /// Makes `txn` active, because an epoch lists it, or redo finds it in the log. The next ID is
    /// then after `txn`, and skipped IDs count as ended. Returns whether `txn` counted as ended
    /// until now: then earlier results of [`visible_below`](Self::visible_below) no longer hold.
    /// Only while the database is being opened: by one thread, without readers.
    pub fn adopt(&self, txn: TxnId) -> bool {
        let next = self.0.next_txn.0.load(Ordering::Relaxed);
        if txn.0 >= next {
            self.0.map.skip_to(next, txn.0);
            self.0.next_txn.0.store(txn.0 + 1, Ordering::Relaxed);
            return false;
        }
        let has_ended = self.state(txn) != State::Active;
        if has_ended {
            self.0.map.revive(txn.0);
        }
        has_ended
    }

    /// Ends a transaction: takes the next stamp, calls `publish` for the log record and the counts,
    /// sets the outcome, and publishes the stamp. Only one transaction at a time ends, so `publish`
    /// must be short, and must not wait for a thread that waits for this call. It does I/O only
    /// where a mini-transaction must: for a full log buffer, or a page that the ended epoch needs.
    /// After an error of `publish`, nothing is published; the caller stops the engine.
    pub fn finish<R>(
        &self,
        txn: TxnId,
        outcome: Outcome,
        publish: impl FnOnce(u64) -> Result<R>,
    ) -> Result<R> {
        let mut next_stamp = self.0.commits.lock();
        let stamp = *next_stamp;
        debug_assert!(self.published() < stamp, "I2: stamps are published in their order");
        if !sound!(true, "versions: publish a stamp before its counts") {
            self.0.published.0.set(stamp);
        }
        let done = publish(stamp)?;
        *next_stamp = stamp + 1;
        self.end(txn, outcome, stamp);
        Ok(done)
    }

    /// Sets the outcome before the stamp is published (I1).
    fn end(&self, txn: TxnId, outcome: Outcome, stamp: u64) {
        self.0.map.end(txn, outcome, stamp);
        let published = &self.0.published.0;
        let late = u64::from(!sound!(true, "versions: publish a stamp with the next one"));
        published.set((stamp - late).max(published.get()));
    }

    /// Records a stamp that redo finds: later stamps are larger.
    pub fn note_stamp(&self, stamp: u64) {
        let mut next_stamp = self.0.commits.lock();
        *next_stamp = (*next_stamp).max(stamp + 1);
        self.0.published.0.set(*next_stamp - 1);
    }

    /// Takes a stamp that no transaction has, for a change that older snapshots must not see.
    pub fn take_stamp(&self) -> u64 {
        let mut next_stamp = self.0.commits.lock();
        let stamp = *next_stamp;
        *next_stamp = stamp + 1;
        self.0.published.0.set(stamp);
        stamp
    }

    /// Returns the state of a transaction. An ID that has not been assigned counts as active.
    pub fn state(&self, txn: TxnId) -> State {
        self.0.map.state(txn)
    }

    /// Returns whether `txn` was committed and all live and future snapshots see it. `horizon` must
    /// have been [returned](Self::horizon) earlier; the answer may be that for a later horizon. A
    /// frozen transaction counts as committed: if it was rolled back, none of its changes exist.
    pub fn is_committed_for_all(&self, txn: TxnId, horizon: u64) -> bool {
        self.0.map.is_committed_for_all(txn, horizon)
    }

    /// Returns whether `txn` has ended for every snapshot that is opened after this call. The
    /// outcome alone does not tell: it is set shortly before its stamp is published (I2).
    pub fn has_ended(&self, txn: TxnId) -> bool {
        let state = self.state(txn);
        if !sound!(true, "versions: take an outcome for published") {
            return state != State::Active;
        }
        state.has_ended_at(self.published())
    }

    /// Returns the last published stamp, which a snapshot opened now has.
    pub fn published(&self) -> u64 {
        self.0.published.0.get()
    }

    /// Returns a stamp that all live and all future snapshots see. Visits every reader's slot.
    pub fn horizon(&self) -> u64 {
        let mut horizon = published_before_slots(&self.0.published.0);
        self.0.snapshots.for_each(|stamp, _| horizon = horizon.min(stamp));
        horizon
    }

    /// Sets `stamps` to the stamps of all live snapshots, sorted and without duplicates, followed
    /// by the last published stamp, which every other snapshot sees.
    pub fn live_stamps(&self, stamps: &mut Vec<u64>) {
        self.live_and_watched(stamps);
    }

    /// Like [`live_stamps`](Self::live_stamps). Returns the stamp after which a reader
    /// [watches](Reader::watch): that of the oldest snapshot whose reader watches, or the last
    /// published stamp.
    pub fn live_and_watched(&self, stamps: &mut Vec<u64>) -> u64 {
        stamps.clear();
        let published = published_before_slots(&self.0.published.0);
        let mut unwatched = published;
        self.0.snapshots.for_each(|stamp, watches| {
            stamps.push(stamp);
            if watches {
                unwatched = unwatched.min(stamp);
            }
        });
        // A snapshot opened meanwhile may be newer; it sees the stamp that was published before it.
        stamps.retain(|&stamp| stamp < published);
        stamps.push(published);
        stamps.sort_unstable();
        stamps.dedup();
        unwatched
    }

    /// Returns an ID below which all transactions have ended at or before the
    /// [horizon](Self::horizon): their versions count as frozen. Frees their entries in the map;
    /// must be called regularly.
    pub fn visible_below(&self) -> TxnId {
        let next = self.0.next_txn.0.load(Ordering::Acquire);
        let live = || {
            let mut live = Vec::new();
            self.live_stamps(&mut live);
            live
        };
        TxnId(self.0.map.sweep(next, self.horizon(), live))
    }

    /// Returns the ID of the next transaction; for the epoch switch.
    pub fn next_txn(&self) -> TxnId {
        TxnId(self.0.next_txn.0.load(Ordering::Acquire))
    }

    /// Returns the next stamp; for the epoch switch, when no transaction ends.
    pub fn next_stamp(&self) -> u64 {
        *self.0.commits.lock()
    }

    /// Returns the bytes that the outcomes occupy.
    pub fn bytes(&self) -> usize {
        self.0.map.bytes()
    }

    /// Creates a reader.
    pub fn reader(&self) -> Reader {
        Reader::new(Arc::clone(&self.0))
    }
}

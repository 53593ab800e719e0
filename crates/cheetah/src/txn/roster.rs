//! The list of transaction handles: an entry for each handle, so that views can show transactions
//! while they run.
//!
//! Invariants
//!   I1  An entry is written without a lock by the user of its handle. A view reads the values at
//!       about one moment. Each value is correct by itself, but values of one transaction may be
//!       mixed with values of the next transaction of the same handle.
//!   I2  An entry outlives its handle if the background or a coordinator takes the transaction
//!       over: the entry is handed over, too.
//!   I3  A session is passed to other transactions, and cleared, under the lock of its shard: once
//!       it is cleared, or the handle dropped, no thread uses it any more.
//!   I4  The session of a transaction is not reported for the next transaction of its handle. A
//!       handle with a session ends its transaction under the lock of its shard, before it releases
//!       its locks.
//! Locks     one shard of the list, briefly, when a handle is added or removed, and by views; two
//!           shards in their order, when two sessions are passed.

use super::locks::Owner;
use super::read_view::ReadView;
use crate::base::{sound, SessionId, TxnId};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicU8, Ordering::Relaxed};
use std::sync::Arc;

/// The number of shards of the list, so that handles on many cores do not contend.
const SHARDS_COUNT: usize = 64;

/// What the thread of a transaction is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Nothing yet: the transaction has neither read nor locked.
    Idle,
    /// It reads and writes.
    Running,
    /// It is being rolled back.
    RollingBack,
    /// It is being committed.
    Committing,
}

impl Phase {
    const ALL: [Phase; 4] = [Phase::Idle, Phase::Running, Phase::RollingBack, Phase::Committing];
}

/// The data of a handle and its current transaction.
#[derive(Debug)]
pub struct Entry {
    owner: Owner,
    view: Option<Arc<ReadView>>,
    connection: AtomicU64,
    tables_in_use: AtomicU32,
    phase: AtomicU8,
    isolation: AtomicU8,
    /// 0 before the transaction has written.
    txn: AtomicU64,
    since_ns: AtomicU64,
    /// When its wait for a lock began; 0 if it does not wait.
    waits_since_ns: AtomicU64,
    /// The caller's session, for transactions that wait for this one; 0 if none is set. Changed and
    /// used under the shard's lock (I3).
    session: AtomicU64,
    /// The number of transactions that have ended. Changed under the shard's lock if there is a
    /// session (I4).
    turn: AtomicU64,
}

impl Entry {
    /// Returns its owner in the lock table.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Returns the stamp of its snapshot, if it is open.
    pub fn stamp(&self) -> Option<u64> {
        self.view.as_ref().and_then(|view| view.stamp())
    }

    /// Returns the ID of the caller's connection; 0 if none is set.
    pub fn connection(&self) -> u64 {
        self.connection.load(Relaxed)
    }

    /// Returns the number of tables in use, as set by the caller.
    pub fn tables_in_use(&self) -> u32 {
        self.tables_in_use.load(Relaxed)
    }

    /// Returns what its thread is doing.
    pub fn phase(&self) -> Phase {
        Phase::ALL.get(usize::from(self.phase.load(Relaxed))).copied().unwrap_or(Phase::Idle)
    }

    /// Returns the isolation level, as numbered by the caller.
    pub fn isolation(&self) -> u8 {
        self.isolation.load(Relaxed)
    }

    /// Returns the transaction's ID, once it has written something.
    pub fn txn(&self) -> Option<TxnId> {
        let txn = self.txn.load(Relaxed);
        (txn != 0).then_some(TxnId(txn))
    }

    /// Returns when the transaction began, by the engine's clock.
    pub fn since_ns(&self) -> u64 {
        self.since_ns.load(Relaxed)
    }

    /// Returns when its wait for a lock began, if it waits.
    pub fn waits_since_ns(&self) -> Option<u64> {
        let since_ns = self.waits_since_ns.load(Relaxed);
        (since_ns != 0).then_some(since_ns)
    }

    /// Sets the ID of the connection.
    pub fn set_connection(&self, connection: u64) {
        self.connection.store(connection, Relaxed);
    }

    /// Sets the number of tables in use.
    pub fn set_tables_in_use(&self, count: u32) {
        self.tables_in_use.store(count, Relaxed);
    }

    /// Sets the isolation level.
    pub fn set_isolation(&self, level: u8) {
        self.isolation.store(level, Relaxed);
    }

    /// Records that the transaction reads or locks; `now_ns` is called if this is its first action.
    #[inline]
    pub fn begin(&self, now_ns: impl FnOnce() -> u64) {
        if self.phase() == Phase::Idle {
            self.since_ns.store(now_ns(), Relaxed);
            self.set_phase(Phase::Running);
        }
    }

    /// Sets what its thread is doing.
    pub fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
    }

    /// Records the ID of a transaction that has written.
    pub fn set_txn(&self, txn: TxnId) {
        self.txn.store(txn.0, Relaxed);
    }

    /// Records when its wait for a lock began; with `None`, that it no longer waits.
    pub fn set_waiting(&self, now_ns: Option<u64>) {
        self.waits_since_ns.store(now_ns.map_or(0, |now_ns| now_ns.max(1)), Relaxed);
    }

    /// Returns the ordinal of the handle's current transaction: it changes when a transaction ends.
    pub fn turn(&self) -> u64 {
        self.turn.load(Relaxed)
    }
}

type List = Arc<[Mutex<BTreeMap<u64, Arc<Entry>>>]>;

/// See the module documentation. Clones share the list.
#[derive(Clone, Debug)]
pub struct Roster(List);

/// An entry in the list, which is removed when this is dropped.
#[derive(Debug)]
pub struct Listed {
    list: List,
    entry: Arc<Entry>,
}

impl Listed {
    /// Sets the session of the caller. [`SessionId::NONE`] clears it, and waits until no thread
    /// uses it (I3).
    pub fn set_session(&self, session: SessionId) {
        let _shard = shard(&self.list, self.entry.owner).lock();
        self.entry.session.store(session.0, Relaxed);
    }

    /// Records that the transaction has ended. To be called before it releases its locks (I4).
    pub fn end(&self) {
        let has_session = self.entry.session.load(Relaxed) != SessionId::NONE.0;
        let shard = has_session.then(|| shard(&self.list, self.entry.owner).lock());
        self.entry.turn.fetch_add(1, Relaxed);
        drop(shard);
        self.entry.txn.store(0, Relaxed);
        self.entry.set_phase(Phase::Idle);
    }

    /// Returns the entry.
    pub fn entry(&self) -> Arc<Entry> {
        Arc::clone(&self.entry)
    }
}

impl std::ops::Deref for Listed {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        &self.entry
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        shard(&self.list, self.entry.owner).lock().remove(&self.entry.owner.0);
    }
}

impl Default for Roster {
    fn default() -> Self {
        Self((0..SHARDS_COUNT).map(|_| Mutex::default()).collect())
    }
}

impl Roster {
    /// Lists an owner; `view` is the view with which its transactions read.
    pub fn enter(&self, owner: Owner, view: Option<Arc<ReadView>>) -> Listed {
        let entry = Arc::new(Entry {
            owner,
            view,
            connection: AtomicU64::new(0),
            tables_in_use: AtomicU32::new(0),
            phase: AtomicU8::new(Phase::Idle as u8),
            isolation: AtomicU8::new(0),
            txn: AtomicU64::new(0),
            since_ns: AtomicU64::new(0),
            waits_since_ns: AtomicU64::new(0),
            session: AtomicU64::new(0),
            turn: AtomicU64::new(0),
        });
        shard(&self.0, owner).lock().insert(owner.0, Arc::clone(&entry));
        Listed { list: Arc::clone(&self.0), entry }
    }

    /// Returns the entry of an owner.
    pub fn get(&self, owner: Owner) -> Option<Arc<Entry>> {
        shard(&self.0, owner).lock().get(&owner.0).cloned()
    }

    /// Calls `f` with the session of an owner, if one is set and the owner's transaction still has
    /// the ordinal `turn`; neither changes during the call (I3, I4). `f` must not wait, nor use the
    /// engine.
    pub fn with_session(&self, owner: Owner, turn: u64, f: impl FnOnce(SessionId)) {
        let shard = shard(&self.0, owner).lock();
        let is_at_turn = shard.get(&owner.0).is_some_and(|entry| entry.turn() == turn);
        if sound!(!is_at_turn, "roster: tell the session of an ended transaction") {
            return;
        }
        if let Some(session) = session(&shard, owner) {
            f(session);
        }
    }

    /// Returns the result of `f` for the sessions of two owners, if both have one; neither changes
    /// during the call (I3). `f` must not wait, nor use the engine.
    pub fn with_two_sessions<T>(
        &self,
        (first, second): (Owner, Owner),
        f: impl FnOnce(SessionId, SessionId) -> Option<T>,
    ) -> Option<T> {
        let (low, high) = match shard_number(first) <= shard_number(second) {
            true => (first, second),
            false => (second, first),
        };
        let low_shard = shard(&self.0, low).lock();
        let high_shard = (shard_number(low) != shard_number(high)).then(|| shard(&self.0, high).lock());
        let high_shard = high_shard.as_ref().unwrap_or(&low_shard);
        let (low_session, high_session) = (session(&low_shard, low), session(high_shard, high));
        let (first, second) = match low == first {
            true => (low_session?, high_session?),
            false => (high_session?, low_session?),
        };
        f(first, second)
    }

    /// Returns all entries with a transaction, in the order in which their owners were created.
    pub fn open(&self) -> Vec<Arc<Entry>> {
        let is_open = |entry: &&Arc<Entry>| entry.phase() != Phase::Idle;
        let mut open = Vec::new();
        for shard in self.0.iter() {
            open.extend(shard.lock().values().filter(is_open).cloned());
        }
        open.sort_by_key(|entry| entry.owner.0);
        open
    }
}

fn session(shard: &BTreeMap<u64, Arc<Entry>>, owner: Owner) -> Option<SessionId> {
    let session = SessionId(shard.get(&owner.0)?.session.load(Relaxed));
    (session != SessionId::NONE).then_some(session)
}

fn shard_number(owner: Owner) -> usize {
    owner.0 as usize % SHARDS_COUNT
}

fn shard(list: &List, owner: Owner) -> &Mutex<BTreeMap<u64, Arc<Entry>>> {
    list.get(shard_number(owner)).expect("the index is a remainder by their number")
}

#[cfg(test)]
mod tests;

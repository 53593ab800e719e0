//! The holders of transactions: an entry for each handle, so that views can tell of them while they
//! are used.
//!
//! Invariants
//!   I1  An entry is written without a lock by whoever uses its handle. A view reads values of
//!       about one moment: each is right by itself, and those of one transaction may be mixed with
//!       those of the next one of the same handle.
//!   I2  An entry outlives its handle when the background or a coordinator takes the transaction
//!       over: the entry goes with it.
//!   I3  A session is told to others under the lock of its shard, where it is forgotten too: once
//!       it is forgotten, or the handle dropped, nobody uses it any more.
//!   I4  The session of a transaction is not told as that of the next one of its handle: a handle
//!       that has named one ends its transaction under the lock of its shard, before its locks go.
//! Locks     one shard of the list, for a moment, when a handle comes or goes and by views; two of
//!           them in their order, when two sessions are told.

use super::locks::Owner;
use super::read_view::ReadView;
use crate::base::{sound, SessionId, TxnId};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicU8, Ordering::Relaxed};
use std::sync::Arc;

/// Shards of the list, so that handles that come and go on many cores do not meet.
const SHARDS_COUNT: usize = 64;

/// The activity of the thread of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Nothing yet: it has neither read nor locked.
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

/// The data of a handle and its transaction.
#[derive(Debug)]
pub struct Entry {
    owner: Owner,
    view: Option<Arc<ReadView>>,
    connection: AtomicU64,
    tables_in_use: AtomicU32,
    phase: AtomicU8,
    isolation: AtomicU8,
    /// 0 before it has written.
    txn: AtomicU64,
    since_ns: AtomicU64,
    /// Since when it waits for a lock; 0 when it does not.
    waits_since_ns: AtomicU64,
    /// The caller's session, for those who wait; 0 when it has named none. Changed and used under
    /// its shard's lock (I3).
    session: AtomicU64,
    /// Transactions that have ended. Changed under its shard's lock while there is a session (I4).
    turn: AtomicU64,
}

impl Entry {
    /// Its owner in the lock table.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// The stamp of its snapshot, when that is open.
    pub fn stamp(&self) -> Option<u64> {
        self.view.as_ref().and_then(|view| view.stamp())
    }

    /// The number that the caller has given to its connection; 0 when it has none.
    pub fn connection(&self) -> u64 {
        self.connection.load(Relaxed)
    }

    /// How many tables the caller says it uses.
    pub fn tables_in_use(&self) -> u32 {
        self.tables_in_use.load(Relaxed)
    }

    /// Its activity.
    pub fn phase(&self) -> Phase {
        Phase::ALL.get(usize::from(self.phase.load(Relaxed))).copied().unwrap_or(Phase::Idle)
    }

    /// The isolation level, as the caller has numbered it.
    pub fn isolation(&self) -> u8 {
        self.isolation.load(Relaxed)
    }

    /// Its number, once it has written something.
    pub fn txn(&self) -> Option<TxnId> {
        let txn = self.txn.load(Relaxed);
        (txn != 0).then_some(TxnId(txn))
    }

    /// When it began, by the engine's clock.
    pub fn since_ns(&self) -> u64 {
        self.since_ns.load(Relaxed)
    }

    /// Since when it waits for a lock, if it does.
    pub fn waits_since_ns(&self) -> Option<u64> {
        let since_ns = self.waits_since_ns.load(Relaxed);
        (since_ns != 0).then_some(since_ns)
    }

    /// Sets the number of the connection.
    pub fn set_connection(&self, connection: u64) {
        self.connection.store(connection, Relaxed);
    }

    /// Sets how many tables are used.
    pub fn set_tables_in_use(&self, count: u32) {
        self.tables_in_use.store(count, Relaxed);
    }

    /// Sets the isolation level.
    pub fn set_isolation(&self, level: u8) {
        self.isolation.store(level, Relaxed);
    }

    /// Notes that the transaction reads or locks; `now_ns` is asked when that is new.
    #[inline]
    pub fn begin(&self, now_ns: impl FnOnce() -> u64) {
        if self.phase() == Phase::Idle {
            self.since_ns.store(now_ns(), Relaxed);
            self.set_phase(Phase::Running);
        }
    }

    /// Sets what it is about.
    pub fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
    }

    /// Notes that it has written.
    pub fn set_txn(&self, txn: TxnId) {
        self.txn.store(txn.0, Relaxed);
    }

    /// Notes that it waits for a lock since `now_ns`, or no more.
    pub fn set_waiting(&self, now_ns: Option<u64>) {
        self.waits_since_ns.store(now_ns.map_or(0, |now_ns| now_ns.max(1)), Relaxed);
    }

    /// Which transaction of its handle it is: it changes when one has ended.
    pub fn turn(&self) -> u64 {
        self.turn.load(Relaxed)
    }
}

type List = Arc<[Mutex<BTreeMap<u64, Arc<Entry>>>]>;

/// See the module. Clones share the list.
#[derive(Clone, Debug)]
pub struct Roster(List);

/// An entry in the list; it goes when this is dropped.
#[derive(Debug)]
pub struct Listed {
    list: List,
    entry: Arc<Entry>,
}

impl Listed {
    /// Names the session of the caller; [`SessionId::NONE`] forgets it, and waits until nobody uses
    /// it (I3).
    pub fn set_session(&self, session: SessionId) {
        let _shard = shard(&self.list, self.entry.owner).lock();
        self.entry.session.store(session.0, Relaxed);
    }

    /// Notes that the transaction has ended. To be called before its locks go (I4).
    pub fn end(&self) {
        let has_session = self.entry.session.load(Relaxed) != SessionId::NONE.0;
        let shard = has_session.then(|| shard(&self.list, self.entry.owner).lock());
        self.entry.turn.fetch_add(1, Relaxed);
        drop(shard);
        self.entry.txn.store(0, Relaxed);
        self.entry.set_phase(Phase::Idle);
    }

    /// The entry.
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
    /// Lists an owner; `view` is what its transactions read by.
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

    /// The entry of an owner.
    pub fn get(&self, owner: Owner) -> Option<Arc<Entry>> {
        shard(&self.0, owner).lock().get(&owner.0).cloned()
    }

    /// Calls `f` with the session of an owner, if it has named one and is at that turn of its
    /// transactions still; both stay so meanwhile (I3, I4). `f` must not wait, nor use the engine.
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

    /// The result of `f` for the sessions of two owners, if both have named one; they stay
    /// meanwhile (I3). `f` must not wait, nor use the engine.
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

    /// All entries with a transaction, in the order in which their owners came.
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

/// The session that an owner has named.
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

//! A listing of transactions and locks, for the server's views and for reports.
//!
//! The listing stops nothing: each transaction and each lock is shown as it was at some moment
//! during the listing. Transactions and locks that end meanwhile are left out.

use super::NS_PER_S;
use crate::base::Xid;
use crate::db::{Db, Isolation};
use crate::table::shared::parts::Core;
use crate::txn::{Blocking, BlockingKind, Entry, LockInfo, LockedOn, Owner, Phase, TableMode, WaitInfo};
use std::collections::HashMap;
use std::fmt::Write as _;

/// Record locks in a listing; there may be millions.
const RECORDS_LISTED_MAX: usize = 100_000;

/// The activity of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransactionState {
    /// It reads and writes, or its client is idle.
    Running,
    /// It waits for a lock.
    Waiting,
    /// It has promised to end as a coordinator decides.
    Prepared,
    /// It is being rolled back.
    RollingBack,
    /// It is being committed.
    Committing,
}

impl TransactionState {
    /// The name that users of InnoDB know.
    pub fn name(self) -> &'static str {
        match self {
            TransactionState::Running => "RUNNING",
            TransactionState::Waiting => "LOCK WAIT",
            TransactionState::Prepared => "PREPARED",
            TransactionState::RollingBack => "ROLLING BACK",
            TransactionState::Committing => "COMMITTING",
        }
    }
}

/// An open transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransactionInfo {
    /// Its ID; if it has written nothing, a large one that no other transaction will receive.
    pub id: u64,
    /// Its activity.
    pub state: TransactionState,
    /// Its connection's ID, as [set](crate::db::Transaction::set_connection); 0 without connection.
    pub connection: u64,
    /// How long it has been open, or the time since startup if it began before.
    pub age_ns: u64,
    /// Its isolation level.
    pub isolation: Isolation,
    /// The lock that it waits for, and for how long.
    pub waits_for: Option<(String, u64)>,
    /// Its undo records: changes of rows, and pieces of large values.
    pub changes: u64,
    /// The tables that its statement uses, as [set](crate::db::Transaction::set_tables_in_use).
    pub tables_in_use: u32,
    /// The number of its table locks.
    pub tables_locked: u64,
    /// The number of its record locks, without locked ranges and records that it changed.
    pub records_locked: u64,
    /// The number of its locks. A range counts as one.
    pub locks: u64,
    /// The approximate memory of its locks.
    pub lock_bytes: u64,
    /// Transactions that ended after its snapshot was taken and cannot be purged because of it.
    pub kept_from_purge: u64,
    /// The bytes of the undo log that are kept because of its records.
    pub undo_bytes: u64,
    /// Its XID, if it is prepared.
    pub xid: Option<Xid>,
}

/// A lock, or a waiting request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockEntry {
    /// Identifies the lock.
    pub id: String,
    /// The owner: its [`TransactionInfo::id`].
    pub transaction: u64,
    /// "S", "X", "S,GAP", "X,GAP", "IS", "IX" or "AUTO_INC".
    pub mode: &'static str,
    /// The name of the table.
    pub table: String,
    /// The name of the index; `None` for a table lock.
    pub index: Option<String>,
    /// The position in the index, as text with key values; `None` for a table lock.
    pub data: Option<String>,
    /// Whether this is a waiting request.
    pub is_waiting: bool,
}

/// A lock or an earlier request that keeps a request waiting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockWait {
    /// The waiting transaction.
    pub requesting: u64,
    /// The [`LockEntry`] that it requests.
    pub requested_lock: String,
    /// The blocking transaction.
    pub blocking: u64,
    /// The lock that blocks the request.
    pub blocking_lock: String,
}

impl Db {
    /// All open transactions, including those that hold only a snapshot.
    pub fn transactions(&self) -> Vec<TransactionInfo> {
        let core = &self.0.core;
        let waits = core.locks.list_waits();
        let requests = waits.iter().map(|wait| (wait.owner, wait.request())).collect::<HashMap<_, _>>();
        core.transactions
            .roster
            .open()
            .iter()
            .map(|entry| describe(core, entry, requests.get(&entry.owner())))
            .collect()
    }

    /// The locks that are held or requested: at most 100,000 record locks, plus those in
    /// [`lock_waits`](Self::lock_waits).
    pub fn locks(&self) -> Vec<LockEntry> {
        let names = Names(&self.0.core);
        let (locks, waits) = list(&self.0.core);
        let mut told = HashMap::new();
        let blocking = waits.iter().flat_map(|wait| {
            let blocking = wait.blocked_by.iter().filter_map(|by| blocking_lock(&locks, &waits, wait, by));
            blocking.chain([wait.request()])
        });
        let all = locks.list.iter().cloned().chain(blocking);
        all.filter_map(|lock| names.entry(&lock))
            .filter(|entry| told.insert(entry.id.clone(), ()).is_none())
            .collect()
    }

    /// The waiting transactions and what they wait for.
    pub fn lock_waits(&self) -> Vec<LockWait> {
        let names = Names(&self.0.core);
        let (locks, waits) = list(&self.0.core);
        let mut list = Vec::new();
        for wait in &waits {
            let requested = wait.request();
            for by in &wait.blocked_by {
                let Some(blocking) = blocking_lock(&locks, &waits, wait, by) else { continue };
                list.push(LockWait {
                    requesting: names.number(requested.owner),
                    requested_lock: names.id(&requested),
                    blocking: names.number(blocking.owner),
                    blocking_lock: names.id(&blocking),
                });
            }
        }
        list
    }

    /// Makes reports describe connections by calling `describe` with the connection's ID, on
    /// threads of the caller's transactions. Only the first call has an effect.
    pub fn describe_connections(&self, describe: impl Fn(u64) -> String + Send + Sync + 'static) {
        let _ = self.0.core.for_people.connection.set(Box::new(describe));
    }

    /// Makes reports and views show key values with `show`, which receives what the key part is
    /// [shown as](crate::table::KeyPartEncoding::shown_as). Where it returns an empty string, the
    /// value is shown in hexadecimal. Only the first call has an effect.
    pub fn show_values_with(&self, show: impl Fn(u32, &[u8]) -> String + Send + Sync + 'static) {
        let _ = self.0.core.for_people.value.set(Box::new(show));
    }

    /// Sets the source of date and time in reports. Only the first call has an effect.
    pub fn tell_time_with(&self, time: impl Fn() -> String + Send + Sync + 'static) {
        let _ = self.0.core.for_people.time.set(Box::new(time));
    }

    /// Sends a report of every deadlock to `listener`, on the victim's thread, before the victim is
    /// rolled back. Only the first call has an effect.
    pub fn announce_deadlocks_to(&self, listener: impl Fn(&str) + Send + Sync + 'static) {
        let _ = self.0.core.for_people.deadlock.set(Box::new(listener));
    }
}

fn describe(core: &Core, entry: &Entry, request: Option<&LockInfo>) -> TransactionInfo {
    let slot = entry.txn().and_then(|txn| core.transactions.active.get(txn));
    let state = slot.as_ref().map(|slot| *slot.state()).unwrap_or_default();
    let locks = core.locks.summary(entry.owner());
    let now_ns = core.clock.now_ns();
    let phase = match (entry.phase(), request, state.xid) {
        (Phase::RollingBack, ..) => TransactionState::RollingBack,
        (Phase::Committing, ..) => TransactionState::Committing,
        (_, Some(_), _) => TransactionState::Waiting,
        (_, _, Some(_)) => TransactionState::Prepared,
        _ => TransactionState::Running,
    };
    let waits = |request: &LockInfo| {
        let since_ns = entry.waits_since_ns().unwrap_or(now_ns);
        (Names(core).id(request), now_ns.saturating_sub(since_ns))
    };
    let first = state.first.0;
    TransactionInfo {
        id: core.number_of(entry.owner()),
        state: phase,
        connection: entry.connection(),
        age_ns: now_ns.saturating_sub(entry.since_ns()),
        isolation: isolation_of(entry.isolation()),
        waits_for: request.map(waits),
        changes: state.undo_no,
        tables_in_use: entry.tables_in_use(),
        tables_locked: locks.tables as u64,
        records_locked: locks.records as u64,
        locks: (locks.tables + locks.records + locks.ranges) as u64,
        lock_bytes: locks.bytes as u64,
        kept_from_purge: entry
            .stamp()
            .map_or(0, |stamp| core.transactions.versions.published().saturating_sub(stamp)),
        undo_bytes: if first == 0 { 0 } else { core.transactions.undo.end().0.saturating_sub(first) },
        xid: state.xid,
    }
}

fn isolation_of(level: u8) -> Isolation {
    let levels = [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable];
    levels.into_iter().find(|other| *other as u8 == level).unwrap_or_default()
}

struct Locks {
    list: Vec<LockInfo>,
    of: HashMap<Owner, Vec<usize>>,
}

impl Locks {
    fn of(&self, owner: Owner) -> impl Iterator<Item = &LockInfo> {
        self.of.get(&owner).into_iter().flatten().filter_map(|&at| self.list.get(at))
    }
}

fn list(core: &Core) -> (Locks, Vec<WaitInfo>) {
    let waits = core.locks.list_waits();
    let list = core.locks.list_locks(RECORDS_LISTED_MAX);
    let mut of = HashMap::<_, Vec<_>>::new();
    list.iter().enumerate().for_each(|(at, lock)| of.entry(lock.owner).or_default().push(at));
    (Locks { list, of }, waits)
}

/// `None` if the lock was released meanwhile.
fn blocking_lock(locks: &Locks, waits: &[WaitInfo], wait: &WaitInfo, by: &Blocking) -> Option<LockInfo> {
    let wanted = &wait.waits_for.0;
    let held = |on: LockedOn| LockInfo { owner: by.owner, on, mode: by.mode, is_waiting: false };
    if by.kind == BlockingKind::EarlierRequest {
        return waits.iter().find(|other| other.owner == by.owner).map(WaitInfo::request);
    }
    let mut own = locks.of(by.owner);
    let found = own.find(|lock| lock.mode == by.mode && lock.on.blocks(by.kind, wanted)).cloned();
    let compressed = || {
        let mut own = locks.of(by.owner);
        own.find(|lock| matches!(lock.on, LockedOn::Records { tree, .. } if Some(tree) == wanted.tree()))
    };
    let record = || match wanted {
        LockedOn::Record { .. } => Some(held(wanted.clone())),
        _ => None,
    };
    found.or_else(|| compressed().cloned()).or_else(record)
}

/// Names the objects that are locked, and the owners.
struct Names<'c>(&'c Core);

impl Names<'_> {
    fn number(&self, owner: Owner) -> u64 {
        self.0.number_of(owner)
    }

    /// An ID like InnoDB's: the transaction and the locked object, followed by the lock mode.
    fn id(&self, lock: &LockInfo) -> String {
        let (number, mode) = (self.number(lock.owner), mode_of(lock));
        match lock.on.tree() {
            None => format!("{number}:{}:{mode}", lock.on.hash()),
            Some(tree) => format!("{number}:{tree}:{:016x}:{mode}", lock.on.hash()),
        }
    }

    fn show_key(&self, lock: &LockInfo, key: &[u8]) -> String {
        lock.on.tree().map_or_else(String::new, |tree| self.0.show_key(tree, key))
    }

    /// `None` if the table was dropped.
    fn entry(&self, lock: &LockInfo) -> Option<LockEntry> {
        let (table, index) = match &lock.on {
            LockedOn::Table(table) => (self.0.catalog.by_id(*table)?, None),
            row => {
                let (table, index_no) = self.0.catalog.by_tree(row.tree()?)?;
                let index = table.indexes().get(index_no)?.name.clone();
                (table, Some(index))
            }
        };
        Some(LockEntry {
            id: self.id(lock),
            transaction: self.number(lock.owner),
            mode: mode_of(lock),
            table: table.name(),
            index,
            data: lock.on.data(&|key| self.show_key(lock, key)),
            is_waiting: lock.is_waiting,
        })
    }
}

fn mode_of(lock: &LockInfo) -> &'static str {
    let is_gap = matches!(lock.on, LockedOn::Range { has_records: false, .. } | LockedOn::Insert { .. });
    match (is_gap, lock.mode) {
        (true, TableMode::Shared) => "S,GAP",
        (true, _) => "X,GAP",
        (false, mode) => mode.name(),
    }
}

impl TransactionInfo {
    pub(in crate::db) fn text(&self) -> String {
        let mut text =
            format!("TRANSACTION {}, {}, {} s", self.id, self.state.name(), self.age_ns / NS_PER_S);
        if self.connection != 0 {
            let _ = write!(text, ", connection {}", self.connection);
        }
        if let Some(xid) = &self.xid {
            let _ = write!(text, ", XA {xid}");
        }
        let _ = write!(text, ": {} changes, {} locks", self.changes, self.locks);
        if self.kept_from_purge > 0 {
            let _ = write!(text, ", keeps {} transactions from purge", self.kept_from_purge);
        }
        if self.undo_bytes > 0 {
            let _ =
                write!(text, ", {} KiB of undo log since its first change", self.undo_bytes.div_ceil(1024));
        }
        if let Some((lock, ns)) = &self.waits_for {
            let _ = write!(text, ", waits {} s for lock {lock}", ns / NS_PER_S);
        }
        text
    }
}

//! The lock table: shared and exclusive locks of tables, held to the end of the transaction.
//!
//! Invariants
//!   I1  The table never sleeps: a request answers [`Answer::Granted`], [`Answer::Wait`] or `Err(Deadlock)`.
//!       Who waits, and how, is the caller's affair, so that a simulator can interleave transactions.
//!   I2  Requests of a table are granted first come, first served; only an upgrade goes before those who hold
//!       nothing, as they would wait for the upgrader anyway.
//!   I3  A request that would close a cycle of waiters is refused, so some waiter can always be granted.
//! Locks     one mutex over everything; never held across I/O or a wait.

use crate::base::{Error, Result, TableId};
use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How a table is locked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LockMode {
    /// Together with other readers.
    Shared,
    /// Alone.
    Exclusive,
}

/// Who locks: one for each transaction handle, whether it has written or not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Owner(pub u64);

/// The answer to a request.
#[derive(Debug)]
pub enum Answer {
    /// The lock is held.
    Granted,
    /// The request is queued.
    Wait(Ticket),
}

/// A queued request.
#[derive(Clone, Debug)]
pub struct Ticket {
    owner: Owner,
    table: TableId,
    slot: Arc<Slot>,
}

#[derive(Default, Debug)]
struct Slot {
    granted: Mutex<bool>,
    changed: Condvar,
}

impl Ticket {
    /// Whether the lock has been granted.
    pub fn is_granted(&self) -> bool {
        *self.slot.granted.lock()
    }

    /// Blocks until the grant, at most for `ns` nanoseconds; returns whether it was granted.
    pub fn wait_ns(&self, ns: u64) -> bool {
        let mut granted = self.slot.granted.lock();
        if !*granted {
            self.slot.changed.wait_for(&mut granted, Duration::from_nanos(ns));
        }
        *granted
    }
}

#[derive(Debug)]
struct Waiter {
    owner: Owner,
    mode: LockMode,
    slot: Arc<Slot>,
}

#[derive(Default, Debug)]
struct Queue {
    holders: Vec<(Owner, LockMode)>,
    waiters: Vec<Waiter>,
}

impl Queue {
    fn held(&self, owner: Owner) -> Option<LockMode> {
        self.holders.iter().find(|holder| holder.0 == owner).map(|holder| holder.1)
    }

    fn compatible(&self, owner: Owner, mode: LockMode) -> bool {
        let shared = |other: LockMode| other == LockMode::Shared && mode == LockMode::Shared;
        self.holders.iter().all(|&(other, held)| other == owner || shared(held))
    }

    fn grant(&mut self, owner: Owner, mode: LockMode) {
        match self.holders.iter_mut().find(|holder| holder.0 == owner) {
            Some(holder) => holder.1 = holder.1.max(mode),
            None => self.holders.push((owner, mode)),
        }
    }

    /// Grants from the front of the queue as long as that works (I2).
    fn advance(&mut self) {
        while let Some(first) = self.waiters.first() {
            if !self.compatible(first.owner, first.mode) {
                return;
            }
            let first = self.waiters.remove(0);
            self.grant(first.owner, first.mode);
            *first.slot.granted.lock() = true;
            first.slot.changed.notify_all();
        }
    }

    /// Those whom the waiter at `at` waits for: holders in the way, and everyone queued before it.
    fn blockers(&self, at: usize) -> Vec<Owner> {
        let Some(waiter) = self.waiters.get(at) else { return Vec::new() };
        let conflicts = |mode: LockMode| mode == LockMode::Exclusive || waiter.mode == LockMode::Exclusive;
        let holders = self.holders.iter().filter(|&&(owner, held)| owner != waiter.owner && conflicts(held));
        let before = self.waiters.iter().take(at).map(|other| other.owner);
        holders.map(|&(owner, _)| owner).chain(before).collect()
    }
}

/// The locks of all tables.
#[derive(Default, Debug)]
pub struct LockTable(Mutex<Locks>);

#[derive(Default, Debug)]
struct Locks {
    tables: HashMap<TableId, Queue>,
    /// The table that each waiting owner waits for; an owner waits for one at a time.
    waiting: HashMap<Owner, TableId>,
}

impl LockTable {
    /// Asks for a lock. `Err(Deadlock)` when waiting for it would never end.
    pub fn acquire(&self, owner: Owner, table: TableId, mode: LockMode) -> Result<Answer> {
        let mut locks = self.0.lock();
        let queue = locks.tables.entry(table).or_default();
        let held = queue.held(owner);
        if held >= Some(mode) {
            return Ok(Answer::Granted);
        }
        if queue.compatible(owner, mode) && (queue.waiters.is_empty() || held.is_some()) {
            queue.grant(owner, mode);
            return Ok(Answer::Granted);
        }
        let slot = Arc::new(Slot::default());
        let waiter = Waiter { owner, mode, slot: Arc::clone(&slot) };
        let upgrades = queue.waiters.iter().take_while(|other| queue.held(other.owner).is_some()).count();
        let at = if held.is_some() { upgrades } else { queue.waiters.len() };
        queue.waiters.insert(at, waiter);
        locks.waiting.insert(owner, table);
        if locks.closes_cycle(owner) {
            locks.remove_waiter(owner, table);
            return Err(Error::Deadlock);
        }
        Ok(Answer::Wait(Ticket { owner, table, slot }))
    }

    /// Takes a queued request back; false when it was granted meanwhile, and the lock is held.
    pub fn cancel(&self, ticket: &Ticket) -> bool {
        let mut locks = self.0.lock();
        if ticket.is_granted() {
            locks.waiting.remove(&ticket.owner);
            return false;
        }
        locks.remove_waiter(ticket.owner, ticket.table);
        true
    }

    /// Whether `owner` holds `mode` or more.
    pub fn holds(&self, owner: Owner, table: TableId, mode: LockMode) -> bool {
        self.0.lock().tables.get(&table).is_some_and(|queue| queue.held(owner) >= Some(mode))
    }

    /// Releases the locks of `owner` on `tables`, and grants what waited for them.
    pub fn release(&self, owner: Owner, tables: impl Iterator<Item = TableId>) {
        let mut locks = self.0.lock();
        locks.waiting.remove(&owner);
        for table in tables {
            if let Some(queue) = locks.tables.get_mut(&table) {
                queue.holders.retain(|holder| holder.0 != owner);
                queue.advance();
                if queue.holders.is_empty() && queue.waiters.is_empty() {
                    locks.tables.remove(&table);
                }
            }
        }
    }
}

impl Locks {
    fn remove_waiter(&mut self, owner: Owner, table: TableId) {
        self.waiting.remove(&owner);
        if let Some(queue) = self.tables.get_mut(&table) {
            queue.waiters.retain(|waiter| waiter.owner != owner);
            queue.advance();
        }
    }

    /// Whether following "waits for" from `start` comes back to it.
    fn closes_cycle(&self, start: Owner) -> bool {
        let mut seen = Vec::new();
        let mut next = self.blockers_of(start);
        while let Some(owner) = next.pop() {
            if owner == start {
                return true;
            }
            if !seen.contains(&owner) {
                seen.push(owner);
                next.extend(self.blockers_of(owner));
            }
        }
        false
    }

    fn blockers_of(&self, owner: Owner) -> Vec<Owner> {
        let Some(queue) = self.waiting.get(&owner).and_then(|table| self.tables.get(table)) else {
            return Vec::new();
        };
        let at = queue.waiters.iter().position(|waiter| waiter.owner == owner);
        at.map_or_else(Vec::new, |at| queue.blockers(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LockMode::{Exclusive, Shared};

    const A: Owner = Owner(1);
    const B: Owner = Owner(2);
    const C: Owner = Owner(3);
    const T: TableId = TableId(1);
    const U: TableId = TableId(2);

    fn granted(locks: &LockTable, owner: Owner, table: TableId, mode: LockMode) {
        assert!(
            matches!(locks.acquire(owner, table, mode), Ok(Answer::Granted)),
            "{owner:?} {table:?} {mode:?}"
        );
    }

    fn waits(locks: &LockTable, owner: Owner, table: TableId, mode: LockMode) -> Ticket {
        match locks.acquire(owner, table, mode) {
            Ok(Answer::Wait(ticket)) => ticket,
            other => panic!("{owner:?} should wait, got {other:?}"),
        }
    }

    #[test]
    fn readers_share_and_a_writer_waits_for_all_of_them() {
        let locks = LockTable::default();
        granted(&locks, A, T, Shared);
        granted(&locks, B, T, Shared);
        let writer = waits(&locks, C, T, Exclusive);
        locks.release(A, [T].into_iter());
        assert!(!writer.is_granted());
        locks.release(B, [T].into_iter());
        assert!(writer.is_granted() && locks.holds(C, T, Exclusive));
    }

    #[test]
    fn a_reader_behind_a_waiting_writer_waits_its_turn() {
        let locks = LockTable::default();
        granted(&locks, A, T, Shared);
        let writer = waits(&locks, B, T, Exclusive);
        let reader = waits(&locks, C, T, Shared);
        locks.release(A, [T].into_iter());
        assert!(writer.is_granted() && !reader.is_granted());
        locks.release(B, [T].into_iter());
        assert!(reader.is_granted());
    }

    #[test]
    fn an_upgrade_passes_waiters_who_hold_nothing() {
        let locks = LockTable::default();
        granted(&locks, A, T, Shared);
        let writer = waits(&locks, B, T, Exclusive);
        granted(&locks, A, T, Exclusive);
        assert!(!writer.is_granted());
        locks.release(A, [T].into_iter());
        assert!(writer.is_granted());
    }

    #[test]
    fn two_upgrades_are_a_deadlock_of_the_second() {
        let locks = LockTable::default();
        granted(&locks, A, T, Shared);
        granted(&locks, B, T, Shared);
        let upgrade = waits(&locks, A, T, Exclusive);
        assert!(matches!(locks.acquire(B, T, Exclusive), Err(Error::Deadlock)));
        locks.release(B, [T].into_iter());
        assert!(upgrade.is_granted());
    }

    #[test]
    fn a_cycle_over_two_tables_is_a_deadlock() {
        let locks = LockTable::default();
        granted(&locks, A, T, Exclusive);
        granted(&locks, B, U, Exclusive);
        let waiting = waits(&locks, A, U, Shared);
        assert!(matches!(locks.acquire(B, T, Shared), Err(Error::Deadlock)));
        locks.release(B, [U].into_iter());
        assert!(waiting.is_granted());
    }

    #[test]
    fn a_cancelled_request_lets_the_next_one_pass() {
        let locks = LockTable::default();
        granted(&locks, A, T, Shared);
        let writer = waits(&locks, B, T, Exclusive);
        let reader = waits(&locks, C, T, Shared);
        assert!(locks.cancel(&writer));
        assert!(reader.is_granted());
        assert!(!locks.cancel(&reader), "granted meanwhile");
        granted(&locks, C, T, Shared);
    }

    #[test]
    fn random_requests_never_grant_conflicting_locks_and_always_drain() {
        let mut seed = 7u64;
        let mut random = |n: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        for _ in 0..200 {
            let locks = LockTable::default();
            let mut tickets: HashMap<u64, Ticket> = HashMap::new();
            for _ in 0..100 {
                let owner = random(6);
                tickets.retain(|_, ticket| !ticket.is_granted());
                if tickets.contains_key(&owner) {
                    continue;
                }
                if random(5) == 0 {
                    locks.release(Owner(owner), (0..3).map(TableId));
                    continue;
                }
                let mode = if random(2) == 0 { Shared } else { Exclusive };
                match locks.acquire(Owner(owner), TableId(random(3) as u32), mode) {
                    Ok(Answer::Wait(ticket)) => drop(tickets.insert(owner, ticket)),
                    Ok(Answer::Granted) => {}
                    Err(_) => locks.release(Owner(owner), (0..3).map(TableId)),
                }
                for queue in locks.0.lock().tables.values() {
                    let exclusive = queue.holders.iter().filter(|holder| holder.1 == Exclusive).count();
                    assert!(exclusive == 0 || queue.holders.len() == 1, "{queue:?}");
                }
            }
            for _ in 0..20 {
                tickets.retain(|_, ticket| !ticket.is_granted());
                let running = (0..6).filter(|owner| !tickets.contains_key(owner)).collect::<Vec<_>>();
                running.iter().for_each(|&owner| locks.release(Owner(owner), (0..3).map(TableId)));
            }
            tickets.retain(|_, ticket| !ticket.is_granted());
            assert!(tickets.is_empty(), "no waiter is left behind");
        }
    }
}

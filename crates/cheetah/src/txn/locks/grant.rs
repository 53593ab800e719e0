//! The rules that decide whether a request can be granted.
//!
//! A request conflicts with locks of other owners, and with earlier waiting requests of other
//! owners:
//!
//! - A record, and the record of a next-key lock, conflict with the same record of other owners,
//!   depending on the modes.
//! - A range conflicts with nothing: of a next-key lock, only the record at its end counts. Its
//!   owner has seen that the added range contains no other records, except deleted ones. If another
//!   owner has locked the key of a deleted record, both owners hold it. An owner that inserts a row
//!   there requests the record itself, and checks all ranges around the key. The owner's range does
//!   not grant the record while the other lock exists.
//! - An insert intention conflicts with other owners' ranges around the key, and with their
//!   next-key requests for such a range. Requests for that very key are an exception if they wait
//!   for the owner of the intention.
//! - A table lock conflicts with other owners' locks on the table, depending on the modes.

use super::granted::point::{Point, HOLD_BYTES, POINT_BYTES};
use super::granted::shared::{TreeShared, Trees};
use super::granted::stripe::Stripe;
use super::granted::tables::{forget_if_unused, TableLocks};
use super::lock_table::LockTable;
use super::modes::{Level, LockMode, TableMode};
use super::request::{RowRequest, RowWant, Want};
use super::waits::Waits;
use super::Owner;
use crate::base::{Result, TableId};
use parking_lot::{RwLockReadGuard, RwLockWriteGuard};
use std::sync::atomic::Ordering::Relaxed;

#[derive(Debug)]
pub(super) enum Tried {
    /// `is_long`: the owner's list of records is worth compressing.
    Granted {
        is_long: bool,
    },
    AlreadyHeld,
    /// `upgrades`: the owner already holds the record, or another lock on the table.
    Blocked {
        upgrades: bool,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Turn<'a> {
    /// Now, without reading the queues: the request is blocked if any owner waits.
    Now,
    /// Before the requests with a later turn.
    At(&'a Waits, u64),
    /// After all other requests. If the request is blocked, the waiter is recorded.
    Last(&'a Waits),
    /// Like `At`, for an owner that has waited: memory is allocated for it in any case.
    Granting(&'a Waits, u64),
}

impl<'a> Turn<'a> {
    fn queues(self) -> Option<(&'a Waits, u64)> {
        match self {
            Turn::Now => None,
            Turn::At(waits, turn) | Turn::Granting(waits, turn) => Some((waits, turn)),
            Turn::Last(waits) => Some((waits, waits.now())),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HeldAs {
    Record,
    Compressed,
    Range,
}

/// Calls `f` for every holder of a record, once for each way of holding it.
pub(super) fn for_each_holder(
    point: Option<&Point>,
    shared: Option<&TreeShared>,
    request: &RowRequest,
    mut f: impl FnMut(Owner, LockMode, HeldAs),
) {
    let holds = point.into_iter().flat_map(Point::holds);
    holds.for_each(|hold| hold.mode().into_iter().for_each(|mode| f(hold.owner, mode, HeldAs::Record)));
    let Some(shared) = shared else { return };
    for compressed in &shared.compressed {
        compressed
            .mode_of(request.hash)
            .into_iter()
            .for_each(|mode| f(compressed.owner, mode, HeldAs::Compressed));
    }
    for cover in shared.ranges.covers(request.key.as_slice()) {
        cover.level.records().into_iter().for_each(|mode| f(cover.owner, mode, HeldAs::Range));
    }
}

struct Seen {
    /// The owner's mode on the record alone, and its mode if ranges count, too.
    own_record: Option<LockMode>,
    own: Option<LockMode>,
    is_held_by_others: bool,
}

fn see(
    point: Option<&Point>,
    shared: Option<&TreeShared>,
    request: &RowRequest,
    (owner, wanted): (Owner, LockMode),
) -> Seen {
    let mut seen = Seen { own_record: None, own: None, is_held_by_others: false };
    for_each_holder(point, shared, request, |holder, mode, how| {
        if holder != owner {
            seen.is_held_by_others |= mode.conflicts(wanted);
            return;
        }
        seen.own = seen.own.max(Some(mode));
        if how != HeldAs::Range {
            seen.own_record = seen.own_record.max(Some(mode));
        }
    });
    seen
}

/// The trees of a shard, locked as needed for a request.
enum Guard<'a> {
    Unused,
    Read(RwLockReadGuard<'a, Trees>),
    Write(RwLockWriteGuard<'a, Trees>),
}

impl Guard<'_> {
    fn get(&self, request: &RowRequest) -> Option<&TreeShared> {
        match self {
            Guard::Unused => None,
            Guard::Read(trees) => trees.get(request.tree),
            Guard::Write(trees) => trees.get(request.tree),
        }
    }
}

impl LockTable {
    /// Grants a request if possible. Fails with `LockTableFull` if there is no memory, unless the
    /// turn is `Granting`.
    pub(super) fn try_want(&self, owner: Owner, want: &Want, turn: Turn<'_>) -> Result<Tried> {
        match want {
            Want::Table(table, mode) => Ok(self.try_table(owner, (*table, *mode), turn)),
            Want::Row(request) => match &request.want {
                RowWant::Insert => Ok(self.try_insert(owner, request, turn)),
                RowWant::Record(mode) | RowWant::NextKey(mode, _) => {
                    self.try_record(owner, request, *mode, turn)
                }
            },
        }
    }

    fn try_table(&self, owner: Owner, (table, mode): (TableId, TableMode), turn: Turn<'_>) -> Tried {
        let mut shard = self.tables.lock(table);
        let locks = shard.entry(table).or_default();
        if locks.has(owner, mode) {
            return Tried::AlreadyHeld;
        }
        let own = locks.modes_of(owner);
        if locks.conflicts(owner, mode) || is_behind(locks, turn, (owner, own), (table, mode)) {
            if let Turn::Last(_) = turn {
                locks.waiters_count += 1;
            }
            return Tried::Blocked { upgrades: own != 0 };
        }
        if locks.give(owner, mode) {
            self.owners.add_table(owner, table);
        }
        Tried::Granted { is_long: false }
    }

    fn guard(&self, request: &RowRequest, turn: Turn<'_>) -> Guard<'_> {
        let shard = self.tree_shard(request.tree);
        match (&request.want, turn) {
            (RowWant::NextKey(..), _) => Guard::Write(shard.trees.write()),
            // A request that may be queued must be counted under the lock, see `waiters`.
            (_, Turn::Now) if shard.in_use.load(Relaxed) == 0 => Guard::Unused,
            _ => Guard::Read(shard.trees.read()),
        }
    }

    fn try_record(
        &self,
        owner: Owner,
        request: &RowRequest,
        mode: LockMode,
        turn: Turn<'_>,
    ) -> Result<Tried> {
        let mut stripe = self.stripes.lock(request.hash);
        let mut guard = self.guard(request, turn);
        let point = stripe.get(request.hash);
        let seen = see(point, guard.get(request), request, (owner, mode));
        let is_free = seen.own_record >= Some(mode) || !seen.is_held_by_others;
        let is_next = seen.own >= Some(mode)
            || match turn.queues() {
                None => point.is_none_or(|point| point.waiters_count == 0),
                Some((waits, turn)) => {
                    !waits.keeps_from_record((request.place(), turn), (owner, seen.own), mode)
                }
            };
        if !is_free || !is_next {
            if let Turn::Last(_) = turn {
                self.note_waiter(&mut stripe, request);
            }
            return Ok(Tried::Blocked { upgrades: seen.own.is_some() });
        }
        let is_checked = !matches!(turn, Turn::Granting(..));
        match (&request.want, &mut guard) {
            (RowWant::NextKey(_, span), Guard::Write(trees)) => {
                let level = Level::next_key(mode);
                if trees.get(request.tree).is_some_and(|shared| shared.ranges.has(owner, level, span)) {
                    return Ok(Tried::AlreadyHeld);
                }
                if is_checked {
                    self.check_room_for_range(trees, request.tree, span)?;
                }
                self.add_range(trees, owner, request.tree, level, span);
                Ok(Tried::Granted { is_long: false })
            }
            _ => self.give_record(&mut stripe, (owner, &seen), request, mode, is_checked),
        }
    }

    fn give_record(
        &self,
        stripe: &mut Stripe,
        (owner, seen): (Owner, &Seen),
        request: &RowRequest,
        mode: LockMode,
        is_checked: bool,
    ) -> Result<Tried> {
        if seen.own >= Some(mode) {
            stripe.get_mut(request.hash).map(|point| point.count(owner, mode));
            return Ok(Tried::AlreadyHeld);
        }
        if is_checked {
            self.memory.check(POINT_BYTES + HOLD_BYTES + request.key.heap_bytes())?;
        }
        let is_new = stripe.give(&self.memory, request, owner, mode);
        let is_long = is_new && self.owners.add_point(owner, request.tree, request.hash);
        Ok(Tried::Granted { is_long })
    }

    fn try_insert(&self, owner: Owner, request: &RowRequest, turn: Turn<'_>) -> Tried {
        let shard = self.tree_shard(request.tree);
        let is_unused = shard.in_use.load(Relaxed) == 0 && shard.waiters.load(Relaxed) == 0;
        if is_unused && matches!(turn, Turn::Now) {
            return Tried::Granted { is_long: false };
        }
        let mut stripe = self.stripes.lock(request.hash);
        let trees = shard.trees.read();
        let shared = trees.get(request.tree);
        let covers = shared.map_or(&[][..], |shared| shared.ranges.covers(request.key.as_slice()));
        let is_free = covers.iter().all(|cover| cover.owner == owner);
        let is_next = match turn.queues() {
            None => shard.waiters.load(Relaxed) == 0,
            Some((waits, turn)) => {
                let own = see(stripe.get(request.hash), shared, request, (owner, LockMode::Exclusive)).own;
                waits.next_keys_around(request, turn, (owner, own)).next().is_none()
            }
        };
        if is_free && is_next {
            return Tried::Granted { is_long: false };
        }
        if let Turn::Last(_) = turn {
            self.note_waiter(&mut stripe, request);
        }
        Tried::Blocked { upgrades: false }
    }

    /// Records a waiter, for the owners that release locks.
    fn note_waiter(&self, stripe: &mut Stripe, request: &RowRequest) {
        stripe.add_waiter(&self.memory, request);
        self.tree_shard(request.tree).waiters.fetch_add(1, Relaxed);
    }

    /// Records that a waiter no longer waits.
    pub(super) fn note_waiter_gone(&self, want: &Want) {
        match want {
            Want::Table(table, _) => {
                let mut shard = self.tables.lock(*table);
                shard.get_mut(table).into_iter().for_each(|locks| locks.waiters_count -= 1);
                forget_if_unused(&mut shard, *table);
            }
            Want::Row(request) => {
                self.stripes.lock(request.hash).remove_waiter(&self.memory, request.hash);
                self.tree_shard(request.tree).waiters.fetch_sub(1, Relaxed);
            }
        }
    }
}

/// Returns whether waiters for a table keep `owner`, which holds the modes `own`, from locking it.
fn is_behind(
    locks: &TableLocks,
    turn: Turn<'_>,
    own: (Owner, u8),
    (table, mode): (TableId, TableMode),
) -> bool {
    match turn.queues() {
        None => locks.waiters_count > 0,
        Some((waits, turn)) => waits.before_in_table((table, turn), own, mode).next().is_some(),
    }
}

//! The waiting requests, the objects that they wait for, and their order.

use super::deadlock::report::Deadlock;
use super::modes::{LockMode, TableMode};
use super::pending_lock::Slot;
use super::request::{QueueKey, RowRequest, RowWant, Want};
use super::Owner;
use crate::base::hash::FastMap;
use crate::base::{TableId, TreeId};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Waiter {
    /// Its position in the order of all requests.
    pub(super) turn: u64,
    pub(super) owner: Owner,
    pub(super) undo_records_count: u64,
    pub(super) want: Want,
    /// Whether it may pass other requests, because its owner holds a lock here that they wait for.
    pub(super) upgrades: bool,
    pub(super) slot: Arc<Slot>,
}

impl Waiter {
    pub(super) fn record_mode(&self) -> Option<LockMode> {
        match &self.want {
            Want::Row(request) => request.record_mode(),
            Want::Table(..) => None,
        }
    }

    pub(super) fn is_insert(&self) -> bool {
        matches!(self.want, Want::Row(RowRequest { want: RowWant::Insert, .. }))
    }

    pub(super) fn table_mode(&self) -> Option<TableMode> {
        match self.want {
            Want::Table(_, mode) => Some(mode),
            Want::Row(_) => None,
        }
    }

    /// Returns whether no later request in a record's queue can be granted first, except upgrades.
    pub(super) fn closes_queue(&self) -> bool {
        self.record_mode().is_some() && !self.upgrades
    }
}

/// All queues. An owner waits in only one queue at a time.
#[derive(Default, Debug)]
pub(super) struct Waits {
    queues: BTreeMap<QueueKey, VecDeque<Waiter>>,
    waiting: FastMap<Owner, (QueueKey, u64)>,
    next_turn: u64,
    pub(super) deadlocks_count: u64,
    pub(super) latest: Option<Deadlock>,
}

impl Waits {
    pub(super) fn now(&self) -> u64 {
        self.next_turn
    }

    pub(super) fn push(
        &mut self,
        owner: Owner,
        undo_records_count: u64,
        want: Want,
        upgrades: bool,
    ) -> Arc<Slot> {
        let (place, turn, slot) = (want.place(), self.next_turn, Arc::<Slot>::default());
        let waiter = Waiter { turn, owner, undo_records_count, want, upgrades, slot: Arc::clone(&slot) };
        self.next_turn += 1;
        self.queues.entry(place).or_default().push_back(waiter);
        self.waiting.insert(owner, (place, turn));
        slot
    }

    pub(super) fn queue(&self, place: QueueKey) -> impl Iterator<Item = &Waiter> {
        self.queues.get(&place).into_iter().flatten()
    }

    pub(super) fn of_tree(&self, tree: TreeId) -> impl Iterator<Item = &Waiter> {
        self.queues.range(QueueKey::Row(tree, 0)..=QueueKey::Row(tree, u64::MAX)).flat_map(|(_, queue)| queue)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Waiter> {
        self.queues.values().flatten()
    }

    pub(super) fn places(&self, tree: TreeId) -> Vec<QueueKey> {
        let range = QueueKey::Row(tree, 0)..=QueueKey::Row(tree, u64::MAX);
        self.queues.range(range).map(|(place, _)| *place).collect()
    }

    /// Returns the first waiter of a queue whose turn is at or after `from`; in a closed queue,
    /// only a waiter that may pass others.
    pub(super) fn next_waiter(&self, place: QueueKey, from: u64, is_closed: bool) -> Option<&Waiter> {
        let queue = self.queues.get(&place)?;
        let behind = queue.range(queue.partition_point(|waiter| waiter.turn < from)..);
        behind.into_iter().find(|waiter| !is_closed || !waiter.closes_queue())
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_waiting(&self, owner: Owner) -> bool {
        self.waiting.contains_key(&owner)
    }

    pub(super) fn waiter(&self, owner: Owner) -> Option<&Waiter> {
        let (place, turn) = self.waiting.get(&owner)?;
        let queue = self.queues.get(place)?;
        let at = queue.binary_search_by_key(turn, |waiter| waiter.turn).ok()?;
        queue.get(at)
    }

    /// Records that `owner` now holds a lock on the object at `place`, which it waits for.
    pub(super) fn note_upgrade(&mut self, owner: Owner, place: QueueKey) {
        let queue = self.queues.get_mut(&place).into_iter().flatten();
        queue.filter(|waiter| waiter.owner == owner).for_each(|waiter| waiter.upgrades = true);
    }

    pub(super) fn remove(&mut self, owner: Owner) -> Option<Waiter> {
        let (place, turn) = self.waiting.remove(&owner)?;
        let queue = self.queues.get_mut(&place)?;
        let at = queue.binary_search_by_key(&turn, |waiter| waiter.turn).ok()?;
        let waiter = queue.remove(at);
        if queue.is_empty() {
            self.queues.remove(&place);
        }
        waiter
    }

    /// Returns whether a waiter before `turn` for the record itself keeps `owner`, which holds the
    /// record in `own` mode, from the record. A waiter that waits for `owner` does not, because it
    /// would wait in any case (as in InnoDB since MDEV-34877).
    pub(super) fn keeps_from_record(
        &self,
        (place, turn): (QueueKey, u64),
        (owner, own): (Owner, Option<LockMode>),
        mode: LockMode,
    ) -> bool {
        self.before_in_record(place, turn, owner, own, mode).next().is_some()
    }

    /// Like [`keeps_from_record`](Self::keeps_from_record), but returns these waiters by turn.
    pub(super) fn before_in_record(
        &self,
        place: QueueKey,
        turn: u64,
        owner: Owner,
        own: Option<LockMode>,
        mode: LockMode,
    ) -> impl DoubleEndedIterator<Item = &Waiter> {
        let before =
            self.queues.get(&place).map_or(0, |queue| queue.partition_point(|other| other.turn < turn));
        self.queues.get(&place).into_iter().flat_map(move |queue| queue.range(..before)).filter(
            move |other| {
                let blocks = |wanted: LockMode| {
                    wanted.conflicts(mode) && !own.is_some_and(|own| own.conflicts(wanted))
                };
                other.owner != owner && other.record_mode().is_some_and(blocks)
            },
        )
    }

    /// Returns the waiters before `turn` for a range with records that contains the key that
    /// `owner` wants to insert. A waiter for that very key that waits because `owner` holds it in
    /// `own` mode does not count: it would wait in any case, and will read again.
    pub(super) fn next_keys_around<'a>(
        &'a self,
        insert: &'a RowRequest,
        turn: u64,
        (owner, own): (Owner, Option<LockMode>),
    ) -> impl Iterator<Item = &'a Waiter> {
        self.of_tree(insert.tree).filter(move |other| {
            let blocks = |want: &Want| match want {
                Want::Row(RowRequest { want: RowWant::NextKey(mode, span), hash, .. }) => {
                    let waits_for_owner = *hash == insert.hash && own.is_some_and(|own| own.conflicts(*mode));
                    span.contains(insert.key.as_slice()) && !waits_for_owner
                }
                _ => false,
            };
            other.turn < turn && other.owner != owner && blocks(&other.want)
        })
    }

    /// Returns the waiters before `turn` that keep `owner`, which holds the modes in `own`, from
    /// the table lock.
    pub(super) fn before_in_table(
        &self,
        (table, turn): (TableId, u64),
        (owner, own): (Owner, u8),
        mode: TableMode,
    ) -> impl Iterator<Item = &Waiter> {
        self.queue(QueueKey::Table(table)).take_while(move |other| other.turn < turn).filter(move |other| {
            let blocks =
                |wanted: TableMode| mode.conflicting() & wanted.bit() != 0 && wanted.conflicting() & own == 0;
            other.owner != owner && other.table_mode().is_some_and(blocks)
        })
    }
}

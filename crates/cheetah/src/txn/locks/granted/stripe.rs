//! Record locks by the hash of tree and key, partitioned into stripes so that transactions on
//! different records do not contend.

use super::point::{Point, HOLD_BYTES, POINT_BYTES};
use crate::base::hash::{shard_index, FastMap};
use crate::txn::locks::memory::{LockMemory, Share};
use crate::txn::locks::modes::LockMode;
use crate::txn::locks::request::RowRequest;
use crate::txn::locks::Owner;
use parking_lot::{Mutex, MutexGuard};
use std::collections::hash_map::Entry;

/// The number of stripes; a power of two.
const STRIPES_COUNT: usize = 256;
/// A stripe's map with at most this capacity does not release memory.
const SHRUNK_ABOVE: usize = 512;

/// The records of one stripe. A record without holders and waiters is not listed.
#[derive(Default, Debug)]
#[repr(align(64))]
pub(crate) struct Stripe {
    points: FastMap<u64, Point>,
    share: Share,
}

impl Stripe {
    pub(crate) fn get(&self, hash: u64) -> Option<&Point> {
        self.points.get(&hash)
    }

    pub(crate) fn get_mut(&mut self, hash: u64) -> Option<&mut Point> {
        self.points.get_mut(&hash)
    }

    pub(crate) fn points(&self) -> impl Iterator<Item = &Point> {
        self.points.values()
    }

    fn entry(&mut self, memory: &LockMemory, request: &RowRequest) -> &mut Point {
        let Self { points, share } = self;
        points.entry(request.hash).or_insert_with(|| {
            share.add(memory, POINT_BYTES + request.key.heap_bytes());
            Point::new(request.tree, request.key.clone())
        })
    }

    /// Grants a record to an owner; returns true if the owner did not already hold it.
    pub(crate) fn give(
        &mut self,
        memory: &LockMemory,
        request: &RowRequest,
        owner: Owner,
        mode: LockMode,
    ) -> bool {
        let is_new = self.entry(memory, request).give(owner, mode);
        if is_new {
            self.share.add(memory, HOLD_BYTES);
        }
        is_new
    }

    /// Removes an owner's lock on a record. Returns whether there are waiters; `None` if it held
    /// none.
    pub(crate) fn remove(&mut self, memory: &LockMemory, hash: u64, owner: Owner) -> Option<bool> {
        let Entry::Occupied(mut entry) = self.points.entry(hash) else { return None };
        if !entry.get_mut().remove(owner) {
            return None;
        }
        let has_waiters = entry.get().waiters_count > 0;
        self.share.subtract(memory, HOLD_BYTES);
        if entry.get().is_unused() {
            self.share.subtract(memory, POINT_BYTES + entry.remove().key.heap_bytes());
            self.shrink();
        }
        Some(has_waiters)
    }

    /// Withdraws one request for a record. Returns `None` if that does not weaken the owner's lock;
    /// otherwise whether the owner has no lock left, and whether there are waiters.
    pub(crate) fn withdraw(
        &mut self,
        memory: &LockMemory,
        hash: u64,
        owner: Owner,
        mode: LockMode,
    ) -> Option<(bool, bool)> {
        let point = self.points.get_mut(&hash)?;
        if !point.withdraw(owner, mode) {
            return None;
        }
        let result = (point.mode_of(owner).is_none(), point.waiters_count > 0);
        if result.0 {
            self.share.subtract(memory, HOLD_BYTES);
        }
        self.forget_if_unused(memory, hash);
        Some(result)
    }

    pub(crate) fn add_waiter(&mut self, memory: &LockMemory, request: &RowRequest) {
        self.entry(memory, request).waiters_count += 1;
    }

    pub(crate) fn remove_waiter(&mut self, memory: &LockMemory, hash: u64) {
        if let Some(point) = self.points.get_mut(&hash) {
            point.waiters_count -= 1;
        }
        self.forget_if_unused(memory, hash);
    }

    fn forget_if_unused(&mut self, memory: &LockMemory, hash: u64) {
        if !self.points.get(&hash).is_some_and(Point::is_unused) {
            return;
        }
        if let Some(point) = self.points.remove(&hash) {
            self.share.subtract(memory, POINT_BYTES + point.key.heap_bytes());
        }
        self.shrink();
    }

    fn shrink(&mut self) {
        let count = self.points.len();
        if self.points.capacity() > SHRUNK_ABOVE && count < self.points.capacity() / 8 {
            self.points.shrink_to(2 * count);
        }
    }
}

#[derive(Debug)]
pub(crate) struct Stripes(Vec<Mutex<Stripe>>);

impl Default for Stripes {
    fn default() -> Self {
        Self((0..STRIPES_COUNT).map(|_| Mutex::default()).collect())
    }
}

impl Stripes {
    pub(crate) fn lock(&self, hash: u64) -> MutexGuard<'_, Stripe> {
        self.0.get(shard_index(hash, STRIPES_COUNT)).expect("the index is masked by their number").lock()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = MutexGuard<'_, Stripe>> {
        self.0.iter().map(Mutex::lock)
    }
}

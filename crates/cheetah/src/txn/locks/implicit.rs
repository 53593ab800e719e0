//! The lock table: implicit locks. The writer of a version of a record has the record, without an
//! entry here.

use super::grant::{for_each_holder, HeldAs};
use super::granted::point::{HOLD_BYTES, POINT_BYTES};
use super::granted::stripe::Stripe;
use super::key::KeyBytes;
use super::lock_table::LockTable;
use super::modes::LockMode;
use super::request::{RowRequest, RowWant};
use super::Owner;
use crate::base::hash::hash_key;
use crate::base::{sound, Error, Result, TreeId};

impl LockTable {
    /// Makes the lock explicit that `holder` has on a record through an active version of it, for
    /// somebody who wants to wait for it. Whether it is there; false when the holder has ended:
    /// look at the record again.
    ///
    /// `is_active` tells whether the version's transaction has neither committed nor rolled back.
    /// It is asked after the lock was put there, and the lock is taken away again if it has. As the
    /// holder leaves that state before it calls [`release_all`](Self::release_all), no lock is left
    /// behind (M8). It is called under a mutex: it must not wait, nor call the lock table.
    /// `LockTableFull` if there is no room.
    pub fn convert_implicit(
        &self,
        holder: Owner,
        tree: TreeId,
        key: &[u8],
        is_active: impl Fn() -> bool,
    ) -> Result<bool> {
        let (hash, key) = (hash_key(tree.0, key), KeyBytes::new(key));
        let request = RowRequest { tree, hash, key, want: RowWant::Record(LockMode::Exclusive) };
        let mut stripe = self.stripes.lock(hash);
        if stripe.get(hash).is_none_or(|point| point.waiters_count == 0) {
            return self.convert(&mut stripe, holder, &request, is_active);
        }
        drop(stripe);
        let mut waits = self.waits.lock();
        let is_converted = self.convert(&mut self.stripes.lock(hash), holder, &request, is_active)?;
        if is_converted {
            // Waiters here wait for the holder too from now on, and the holder may be waiting.
            waits.note_upgrade(holder, request.place());
            let waiters = waits.queue(request.place()).map(|waiter| waiter.owner).collect::<Vec<_>>();
            self.advance_place(&mut waits, request.place());
            for waiter in waiters {
                self.resolve_deadlocks(&mut waits, waiter);
            }
        }
        Ok(is_converted)
    }

    /// Puts a lock in the place of a version that `owner` rolls back while its transaction goes on:
    /// it keeps the record. To be called before that, by the owner's own thread. `LockTableFull` if
    /// there is no room, even for compressed locks.
    pub fn keep_changed(&self, owner: Owner, tree: TreeId, key: &[u8]) -> Result<()> {
        match self.convert_implicit(owner, tree, key, || true) {
            Err(Error::LockTableFull) => {
                self.compress_all(owner);
                self.convert_implicit(owner, tree, key, || true)?;
            }
            converted => {
                converted?;
            }
        }
        if self.owners.is_long(owner, tree) {
            self.compress(owner, tree);
        }
        Ok(())
    }

    /// How an owner has a record, not counting ranges.
    fn record_of(&self, stripe: &Stripe, owner: Owner, request: &RowRequest) -> Option<LockMode> {
        let trees = self.tree_shard(request.tree).trees.read();
        let mut own = None;
        for_each_holder(stripe.get(request.hash), trees.get(request.tree), request, |holder, mode, how| {
            if holder == owner && how != HeldAs::Range {
                own = own.max(Some(mode));
            }
        });
        own
    }

    fn convert(
        &self,
        stripe: &mut Stripe,
        holder: Owner,
        request: &RowRequest,
        is_active: impl Fn() -> bool,
    ) -> Result<bool> {
        let exclusive = LockMode::Exclusive;
        if self.record_of(stripe, holder, request) == Some(exclusive) {
            return Ok(true);
        }
        self.memory.check(POINT_BYTES + HOLD_BYTES + request.key.heap_bytes())?;
        if stripe.give(&self.memory, request, holder, exclusive) {
            // Compressing is left to the holder's own thread: its end may come while another one
            // does it.
            self.owners.add_point(holder, request.tree, request.hash);
        }
        if !sound!(!is_active(), "locks: convert for a holder that has ended") {
            return Ok(true);
        }
        if let Some((true, _)) = stripe.withdraw(&self.memory, request.hash, holder, exclusive) {
            self.owners.remove_point(holder, request.tree, request.hash);
            self.owners.forget_if_unused(holder);
        }
        Ok(false)
    }
}

//! The lock table: implicit locks. The writer of a version of a record holds the record without an
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
    /// Makes an implicit lock explicit: the lock that `holder` has through an active version of a
    /// record. Called for a transaction that wants to wait for the record. Returns whether the lock
    /// exists; false if the holder has ended, and the caller must read the record again.
    ///
    /// `is_active` returns whether the version's transaction has neither committed nor rolled back.
    /// It is called after the lock was added; if it returns false, the lock is removed again.
    /// Because the holder leaves that state before it calls [`release_all`](Self::release_all), no
    /// lock is left behind (durability::M8). `is_active` is called under a mutex: it must not wait,
    /// nor call the lock table. Fails with `LockTableFull` if there is no memory.
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
            // From now on waiters here also wait for the holder, and the holder may itself be
            // waiting.
            waits.note_upgrade(holder, request.place());
            let waiters = waits.queue(request.place()).map(|waiter| waiter.owner).collect::<Vec<_>>();
            self.advance_place(&mut waits, request.place());
            for waiter in waiters {
                self.resolve_deadlocks(&mut waits, waiter);
            }
        }
        Ok(is_converted)
    }

    /// Adds a lock in place of a version that `owner` rolls back while its transaction continues,
    /// so that it still holds the record. Must be called before the rollback, on the owner's own
    /// thread. Fails with `LockTableFull` if there is no memory, not even for compressed locks.
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

    /// Returns the mode in which an owner holds a record, not counting ranges.
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
            // Compression is left to the holder's own thread: the holder might end while another
            // thread compresses.
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

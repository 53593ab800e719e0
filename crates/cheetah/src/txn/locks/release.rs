//! The lock table: releases, and the grants that they make possible.

use super::grant::{Tried, Turn};
use super::granted::owners::OnTree;
use super::granted::tables::forget_if_unused;
use super::lock_table::LockTable;
use super::modes::{LockMode, TableMode};
use super::pending_lock::Outcome;
use super::request::{QueueKey, RowRequest, RowWant, Want};
use super::waits::{Waiter, Waits};
use super::Owner;
use crate::base::hash::hash_key;
use crate::base::{TableId, TreeId};
use std::sync::atomic::Ordering::Relaxed;

enum Freed {
    At(QueueKey),
    Tree(TreeId),
}

impl LockTable {
    /// Releases all locks of `owner`, withdraws its queued request, and grants the requests that
    /// waited for it. Takes time proportional to the number of its locks.
    pub fn release_all(&self, owner: Owner) {
        let Some(owned) = self.owners.take(owner) else { return };
        let mut freed = Vec::new();
        for table in &owned.tables {
            self.free_table(owner, *table, u8::MAX, &mut freed);
        }
        for on in &owned.trees {
            self.free_tree(owner, on, &mut freed);
        }
        if owned.is_queued || !freed.is_empty() {
            let mut waits = self.waits.lock();
            self.withdraw(&mut waits, owner);
            self.advance(&mut waits, &freed);
        }
        self.owners.recycle(owner, owned);
    }

    fn free_table(&self, owner: Owner, table: TableId, modes: u8, freed: &mut Vec<Freed>) -> bool {
        let mut shard = self.tables.lock(table);
        let Some(locks) = shard.get_mut(&table) else { return false };
        let is_last = locks.take(owner, modes);
        if locks.waiters_count > 0 {
            freed.push(Freed::At(QueueKey::Table(table)));
        }
        forget_if_unused(&mut shard, table);
        is_last
    }

    fn free_tree(&self, owner: Owner, on: &OnTree, freed: &mut Vec<Freed>) {
        for &hash in &on.points {
            if self.stripes.lock(hash).remove(&self.memory, hash, owner) == Some(true) {
                freed.push(Freed::At(QueueKey::Row(on.tree, hash)));
            }
        }
        if on.pieces.is_empty() && !on.is_compressed {
            return;
        }
        let shard = self.tree_shard(on.tree);
        let mut trees = shard.trees.write();
        trees.remove_ranges(&self.memory, on.tree, owner, (&on.pieces, on.pieces_bytes));
        trees.remove_compressed(&self.memory, on.tree, owner);
        shard.in_use.store(trees.len(), Relaxed);
        if shard.waiters.load(Relaxed) > 0 {
            freed.push(Freed::Tree(on.tree));
        }
    }

    /// Releases the ranges of an owner that is being rolled back completely, so that no other
    /// transaction waits for the end of a long rollback. The owner will not repeat its reads.
    /// Versions protect its changes, and record locks do if other owners wait for them.
    pub fn release_ranges(&self, owner: Owner) {
        let mut freed = Vec::new();
        for (tree, pieces, bytes) in self.owners.take_pieces(owner) {
            let shard = self.tree_shard(tree);
            let mut trees = shard.trees.write();
            trees.remove_ranges(&self.memory, tree, owner, (&pieces, bytes));
            shard.in_use.store(trees.len(), Relaxed);
            if shard.waiters.load(Relaxed) > 0 {
                freed.push(Freed::Tree(tree));
            }
        }
        self.advance_all(&freed);
    }

    /// Releases the whole-table locks, except those in `kept`, of an owner that is being rolled
    /// back, so that no other transaction waits for a long rollback: X becomes IX, because versions
    /// protect its changes, and S is released.
    pub fn release_whole_tables(&self, owner: Owner, kept: &[TableId]) {
        let whole = TableMode::Exclusive.bit() | TableMode::Shared.bit();
        let mut freed = Vec::new();
        for table in self.owners.tables(owner).into_iter().filter(|table| !kept.contains(table)) {
            let mut shard = self.tables.lock(table);
            let Some(locks) = shard.get_mut(&table).filter(|locks| locks.modes_of(owner) & whole != 0) else {
                continue;
            };
            if locks.modes_of(owner) & TableMode::Exclusive.bit() != 0 {
                locks.give(owner, TableMode::IntentExclusive);
            }
            drop(shard);
            if self.free_table(owner, table, whole, &mut freed) {
                self.owners.remove_table(owner, table);
            }
        }
        self.advance_all(&freed);
    }

    /// Releases one mode of a table, such as AUTO-INC at the end of a statement.
    pub fn release_table(&self, owner: Owner, table: TableId, mode: TableMode) {
        let mut freed = Vec::new();
        if self.free_table(owner, table, mode.bit(), &mut freed) {
            self.owners.remove_table(owner, table);
        }
        self.advance_all(&freed);
    }

    /// Withdraws one granted request for a record (whose row did not match, under READ COMMITTED).
    /// The record stays locked if an earlier request of the owner has locked it, or if it is in a
    /// range or among the compressed locks. Returns whether the lock was released or weakened.
    pub fn unlock_row(&self, owner: Owner, tree: TreeId, key: &[u8], mode: LockMode) -> bool {
        let hash = hash_key(tree.0, key);
        let taken = self.stripes.lock(hash).withdraw(&self.memory, hash, owner, mode);
        let Some((is_last, has_waiters)) = taken else { return false };
        self.after_record(owner, (tree, hash), is_last, has_waiters);
        true
    }

    /// Releases the lock on a record that the owner has changed, unless another owner waits for it.
    /// An owner that finds the record's version turns it into a lock again. So a statement that
    /// changes millions of rows needs no memory for their locks.
    pub fn forget_changed(&self, owner: Owner, tree: TreeId, key: &[u8]) {
        let hash = hash_key(tree.0, key);
        let mut stripe = self.stripes.lock(hash);
        if stripe.get(hash).is_none_or(|point| point.waiters_count > 0) {
            return;
        }
        let was_held = stripe.remove(&self.memory, hash, owner).is_some();
        drop(stripe);
        if was_held {
            self.owners.remove_point(owner, tree, hash);
        }
    }

    /// Releases all of the owner's locks on a record whose insertion it rolled back.
    pub fn release_row(&self, owner: Owner, tree: TreeId, key: &[u8]) {
        let hash = hash_key(tree.0, key);
        let removed = self.stripes.lock(hash).remove(&self.memory, hash, owner);
        if let Some(has_waiters) = removed {
            self.after_record(owner, (tree, hash), true, has_waiters);
        }
    }

    fn after_record(&self, owner: Owner, (tree, hash): (TreeId, u64), is_last: bool, has_waiters: bool) {
        if is_last {
            self.owners.remove_point(owner, tree, hash);
        }
        if has_waiters {
            self.advance_all(&[Freed::At(QueueKey::Row(tree, hash))]);
        }
    }

    fn advance_all(&self, freed: &[Freed]) {
        if !freed.is_empty() {
            self.advance(&mut self.waits.lock(), freed);
        }
    }

    /// Grants the requests that can now be granted, inserts first. An insert that has waited longer
    /// than a request for its range must not find that request granted. A later insert finds the
    /// request waiting.
    fn advance(&self, waits: &mut Waits, freed: &[Freed]) {
        let trees = freed.iter().filter_map(|freed| match freed {
            Freed::Tree(tree) => Some(*tree),
            Freed::At(_) => None,
        });
        trees.clone().for_each(|tree| self.advance_inserts(waits, tree));
        trees.flat_map(|tree| waits.places(tree)).collect::<Vec<_>>().into_iter().for_each(|place| {
            self.advance_place(waits, place);
        });
        for freed in freed {
            if let Freed::At(place) = freed {
                self.advance_place(waits, *place);
            }
        }
    }

    fn advance_inserts(&self, waits: &mut Waits, tree: TreeId) {
        let inserts = waits.of_tree(tree).filter(|waiter| waiter.is_insert());
        let granted = |waiter: &&Waiter| {
            let turn = Turn::Granting(waits, waiter.turn);
            matches!(self.try_want(waiter.owner, &waiter.want, turn), Ok(Tried::Granted { .. }))
        };
        let granted = inserts.filter(granted).map(|waiter| waiter.owner).collect::<Vec<_>>();
        for owner in granted {
            self.finish(waits, owner, Outcome::Granted);
        }
    }

    pub(super) fn advance_place(&self, waits: &mut Waits, place: QueueKey) {
        let (mut from, mut is_closed) = (0, false);
        while let Some(waiter) = waits.next_waiter(place, from, is_closed) {
            let (owner, mode) = (waiter.owner, waiter.record_mode());
            from = waiter.turn + 1;
            match self.try_want(owner, &waiter.want, Turn::Granting(waits, waiter.turn)) {
                Ok(Tried::Blocked { .. }) | Err(_) => is_closed |= mode.is_some(),
                Ok(_) => {
                    is_closed |= mode == Some(LockMode::Exclusive);
                    self.finish(waits, owner, Outcome::Granted);
                }
            }
        }
    }

    pub(super) fn finish(&self, waits: &mut Waits, owner: Owner, outcome: Outcome) -> Option<Waiter> {
        let waiter = waits.remove(owner)?;
        self.note_waiter_gone(&waiter.want);
        self.owners.set_queued(owner, false);
        waiter.slot.answer(outcome);
        Some(waiter)
    }

    /// Withdraws a queued request, and grants the requests that waited for it.
    pub(super) fn withdraw(&self, waits: &mut Waits, owner: Owner) {
        let Some(waiter) = waits.remove(owner) else { return };
        self.note_waiter_gone(&waiter.want);
        self.owners.set_queued(owner, false);
        self.advance_behind(waits, &waiter.want);
    }

    pub(super) fn advance_behind(&self, waits: &mut Waits, want: &Want) {
        match want {
            Want::Row(RowRequest { tree, want: RowWant::NextKey(..), .. }) => {
                self.advance(waits, &[Freed::Tree(*tree)]);
            }
            want => self.advance_place(waits, want.place()),
        }
    }
}

//! The lock table: requests.

use super::grant::{Tried, Turn};
use super::key::KeySpan;
use super::lock_table::LockTable;
use super::modes::Level;
use super::pending_lock::{Outcome, PendingLock};
use super::request::{wanted, Answer, Lock, Wait, Want};
use super::Owner;
use crate::base::{sound, Error, Result, TreeId};

impl LockTable {
    /// Requests a lock. Does not block. Fails with `Deadlock` if the request would close a cycle of
    /// waiters and its owner is the [victim](super::Deadlock::victim), and with `LockTableFull` if
    /// there is no memory for it. After an error, the owner has the same locks as before.
    pub fn request(&self, owner: Owner, lock: Lock<'_>, wait: Wait) -> Result<Answer> {
        match self.request_once(owner, lock, wait) {
            Err(Error::LockTableFull) => {
                self.compress_all(owner);
                self.request_once(owner, lock, wait)
            }
            answer => answer,
        }
    }

    fn request_once(&self, owner: Owner, lock: Lock<'_>, wait: Wait) -> Result<Answer> {
        debug_assert!(
            !sound!(self.owners.is_queued(owner), "scan: lock what it passed while it waits"),
            "I6: an owner whose request is queued asks for nothing else"
        );
        match lock {
            Lock::Gap { tree, range, mode } => {
                self.request_range(owner, tree, &KeySpan::new(range), Level::gap(mode))
            }
            Lock::Range { tree, range, mode } => {
                self.request_range(owner, tree, &KeySpan::new(range), Level::next_key(mode))
            }
            other => match wanted(other) {
                Some(want) => self.request_want(owner, &want, wait),
                None => Ok(Answer::AlreadyHeld),
            },
        }
    }

    fn request_want(&self, owner: Owner, want: &Want, wait: Wait) -> Result<Answer> {
        match self.try_want(owner, want, Turn::Now)? {
            Tried::Blocked { .. } => self.request_behind(owner, want, wait),
            tried => Ok(self.answer_of(owner, want, &tried)),
        }
    }

    fn answer_of(&self, owner: Owner, want: &Want, tried: &Tried) -> Answer {
        match (tried, want) {
            (Tried::AlreadyHeld, _) => return Answer::AlreadyHeld,
            (Tried::Granted { is_long: true }, Want::Row(request)) => self.compress(owner, request.tree),
            _ => {}
        }
        Answer::Granted
    }

    /// Tries again, taking the waiters into account, and queues the request if it must wait.
    fn request_behind(&self, owner: Owner, want: &Want, wait: Wait) -> Result<Answer> {
        let mut waits = self.waits.lock();
        debug_assert!(!waits.is_waiting(owner), "I4: an owner waits for one thing at a time");
        let turn = match wait {
            Wait::Queue { .. } => Turn::Last(&waits),
            Wait::Never => Turn::At(&waits, waits.now()),
        };
        let tried = self.try_want(owner, want, turn)?;
        let (Tried::Blocked { upgrades }, Wait::Queue { undo_records_count }) = (&tried, wait) else {
            drop(waits);
            let is_blocked = matches!(tried, Tried::Blocked { .. });
            return Ok(if is_blocked { Answer::Refused } else { self.answer_of(owner, want, &tried) });
        };
        let slot = waits.push(owner, undo_records_count, want.clone(), *upgrades);
        self.owners.set_queued(owner, true);
        if self.resolve_deadlocks(&mut waits, owner) {
            return Err(Error::Deadlock);
        }
        let pending = PendingLock { owner, slot };
        Ok(if pending.is_granted() { Answer::Granted } else { Answer::Wait(pending) })
    }

    fn request_range(&self, owner: Owner, tree: TreeId, span: &KeySpan, level: Level) -> Result<Answer> {
        if span.is_empty() {
            return Ok(Answer::AlreadyHeld);
        }
        let shard = self.tree_shard(tree);
        let mut trees = shard.trees.write();
        if trees.get(tree).is_some_and(|shared| shared.ranges.has(owner, level, span)) {
            return Ok(Answer::AlreadyHeld);
        }
        self.check_room_for_range(&trees, tree, span)?;
        self.add_range(&mut trees, owner, tree, level, span);
        Ok(Answer::Granted)
    }

    /// Withdraws a queued request. Returns `None` if it was withdrawn, or else the answer that it
    /// received meanwhile.
    pub fn cancel(&self, pending: &PendingLock) -> Option<Outcome> {
        let mut waits = self.waits.lock();
        if let Some(outcome) = pending.outcome() {
            return Some(outcome);
        }
        self.withdraw(&mut waits, pending.owner);
        None
    }
}

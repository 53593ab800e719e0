//! The locks of one record.

use crate::base::{sound, TreeId};
use crate::txn::locks::key::KeyBytes;
use crate::txn::locks::modes::LockMode;
use crate::txn::locks::Owner;

/// The memory of a record in its map, which is two thirds full on average.
pub(crate) const POINT_BYTES: usize = (std::mem::size_of::<(u64, Point)>() + 1) * 3 / 2;
/// The memory of one hold of a record, including its entry in the owner's list.
pub(crate) const HOLD_BYTES: usize = 16;

/// One owner's lock. It counts the owner's requests in each mode, so that a row which an earlier
/// request has also locked stays locked when the last request is withdrawn. A saturated count never
/// decreases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hold {
    pub(crate) owner: Owner,
    shared_count: u8,
    exclusive_count: u8,
}

impl Hold {
    fn new(owner: Owner, mode: LockMode) -> Self {
        let mut hold = Self { owner, shared_count: 0, exclusive_count: 0 };
        hold.count(mode);
        hold
    }

    fn count(&mut self, mode: LockMode) {
        let count = self.count_of(mode);
        *count = count.saturating_add(1);
    }

    fn uncount(&mut self, mode: LockMode) {
        let count = self.count_of(mode);
        if *count < u8::MAX {
            *count = count.saturating_sub(1);
        }
    }

    fn count_of(&mut self, mode: LockMode) -> &mut u8 {
        match mode {
            LockMode::Shared => &mut self.shared_count,
            LockMode::Exclusive => &mut self.exclusive_count,
        }
    }

    /// Returns the mode; `None` once all requests are withdrawn.
    pub(crate) fn mode(&self) -> Option<LockMode> {
        match (self.shared_count, self.exclusive_count) {
            (0, 0) => None,
            (_, 0) => Some(LockMode::Shared),
            _ => Some(LockMode::Exclusive),
        }
    }
}

/// Holders after the first one; rare.
#[derive(Debug)]
struct More(Vec<Hold>);

#[derive(Debug)]
pub(crate) struct Point {
    pub(crate) tree: TreeId,
    pub(crate) waiters_count: u32,
    pub(crate) key: KeyBytes,
    first: Option<Hold>,
    more: Option<Box<More>>,
}

impl Point {
    pub(crate) fn new(tree: TreeId, key: KeyBytes) -> Self {
        Self { tree, waiters_count: 0, key, first: None, more: None }
    }

    pub(crate) fn holds(&self) -> impl Iterator<Item = &Hold> {
        self.first.iter().chain(self.more.iter().flat_map(|more| more.0.iter()))
    }

    fn hold_mut(&mut self, owner: Owner) -> Option<&mut Hold> {
        let more = self.more.iter_mut().flat_map(|more| more.0.iter_mut());
        self.first.iter_mut().chain(more).find(|hold| hold.owner == owner)
    }

    pub(crate) fn mode_of(&self, owner: Owner) -> Option<LockMode> {
        self.holds().find(|hold| hold.owner == owner).and_then(Hold::mode)
    }

    /// Counts a request of an owner that holds the lock; returns false if it does not hold it.
    pub(crate) fn count(&mut self, owner: Owner, mode: LockMode) -> bool {
        self.hold_mut(owner).map(|hold| hold.count(mode)).is_some()
    }

    /// Grants the lock; returns true if the owner did not already hold it.
    pub(crate) fn give(&mut self, owner: Owner, mode: LockMode) -> bool {
        if self.count(owner, mode) {
            return false;
        }
        let hold = Hold::new(owner, mode);
        match &mut self.first {
            None => self.first = Some(hold),
            Some(_) => self.more.get_or_insert_with(|| Box::new(More(Vec::new()))).0.push(hold),
        }
        true
    }

    /// Withdraws one request; returns true if that weakens the owner's lock.
    pub(crate) fn withdraw(&mut self, owner: Owner, mode: LockMode) -> bool {
        let Some(hold) = self.hold_mut(owner) else { return false };
        let before = hold.mode();
        match sound!(true, "locks: give back all requests for a row") {
            true => hold.uncount(mode),
            false => (hold.shared_count, hold.exclusive_count) = (0, 0),
        }
        let after = hold.mode();
        if after.is_none() {
            self.remove(owner);
        }
        after < before
    }

    pub(crate) fn remove(&mut self, owner: Owner) -> bool {
        let next = match &mut self.more {
            None => None,
            Some(more) => {
                let count = more.0.len();
                more.0.retain(|hold| hold.owner != owner);
                if more.0.len() < count {
                    return true;
                }
                Some(more)
            }
        };
        if self.first.is_none_or(|hold| hold.owner != owner) {
            return false;
        }
        self.first = next.and_then(|more| more.0.pop());
        true
    }

    pub(crate) fn is_unused(&self) -> bool {
        self.first.is_none() && self.waiters_count == 0
    }

    /// Returns the mode if `owner` is the only holder and there are no waiters.
    pub(crate) fn mode_of_only(&self, owner: Owner) -> Option<LockMode> {
        let is_shared = self.more.as_ref().is_some_and(|more| !more.0.is_empty());
        let only = self.first.filter(|hold| hold.owner == owner && !is_shared && self.waiters_count == 0);
        only.and_then(|hold| hold.mode())
    }
}

//! The switch from one epoch to the next: many are inside at a time, each through one of several doors, or somebody moves
//! the epoch on and has closed all doors.
//!
//! Invariants
//!   D1  The epoch is constant while anybody is inside.
//!   D2  At the cut, all is done that anybody has begun inside before, and nothing has begun that comes after it.
//! `interleaving_tests.rs` goes through this file too.

use super::sync::{AtomicU64, Ordering, RwLock, RwLockReadGuard};
use crate::base::{planted, Epoch};

/// Alone in its cache line, so that threads at different doors do not meet.
#[repr(align(128))]
#[derive(Debug)]
struct Door(RwLock<Epoch>);

/// See the module.
#[derive(Debug)]
pub(super) struct Doors<const COUNT: usize> {
    doors: [Door; COUNT],
    /// As behind the doors, for those who must not wait.
    epoch: AtomicU64,
}

/// The right to be inside, and the epoch while it lasts.
pub(super) type Inside<'a> = RwLockReadGuard<'a, Epoch>;

impl<const COUNT: usize> Doors<COUNT> {
    pub(super) fn new(epoch: Epoch) -> Self {
        Self { doors: std::array::from_fn(|_| Door(RwLock::new(epoch))), epoch: AtomicU64::new(epoch.0) }
    }

    /// Goes in through a door, any number counts; waits while the doors are closed, or about to be.
    pub(super) fn enter(&self, door_no: usize) -> Inside<'_> {
        let door = self.doors.get(door_no % COUNT).expect("the index is a remainder by their number");
        door.0.read()
    }

    /// Waits until nobody is inside, moves on to the next epoch, and runs `at_switch`, which gets the one that has ended, before
    /// anybody goes in.
    pub(super) fn move_on<T>(&self, at_switch: impl FnOnce(Epoch) -> T) -> T {
        let mut closed: Vec<_> = self.doors.iter().map(|door| door.0.write()).collect();
        let ended = closed.first().map(|door| **door).expect("there is a door");
        for door in &mut closed {
            **door = Epoch(ended.0 + 1);
        }
        self.epoch.store(ended.0 + 1, Ordering::Release);
        if planted::is_on("pool: open the doors before the cut") {
            closed.clear();
        }
        at_switch(ended)
    }

    /// The epoch of those who are inside, or would go in, now. From outside it may be outdated by the time it is looked at.
    /// Never waits.
    pub(super) fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
    }
}

//! The snapshot that is pinned and waits to be written (durability::Z8).

use crate::backup::Snapshot;
use crate::base::{sound, Error, Result};
use crate::table::shared::parts::Core;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Default age after which an unwritten snapshot is abandoned.
const AGE_NS_MAX: u64 = 3_600_000_000_000;
const NS_PER_S: u64 = 1_000_000_000;
pub(in crate::db) const PLACE: &str = "snapshots";

/// A name and a value for the manifest of a snapshot.
pub type Note = (String, String);

/// Pinned for the next statement that writes a snapshot.
pub(in crate::db) struct Waiting {
    pub(in crate::db) snapshot: Snapshot,
    pub(in crate::db) notes: Vec<Note>,
    pub(in crate::db) since_ns: u64,
}

enum Place {
    Empty,
    Taken(Box<Waiting>),
    /// Why the snapshot was abandoned.
    GivenUp(String),
}

pub(in crate::db) struct WaitingSnapshot {
    place: Mutex<Place>,
    /// To release: the background unlinks the files held for them.
    set_aside: Mutex<Vec<Waiting>>,
    age_ns_max: AtomicU64,
}

impl Default for WaitingSnapshot {
    fn default() -> Self {
        Self {
            place: Mutex::new(Place::Empty),
            set_aside: Mutex::default(),
            age_ns_max: AtomicU64::new(AGE_NS_MAX),
        }
    }
}

impl WaitingSnapshot {
    /// Abandons the waiting snapshot if it is too old, and all pinned ones if the disk is so full
    /// that statements are refused, and pins hold space.
    pub(in crate::db) fn step(&self, core: &Core) {
        if sound!(true, "backup: keep a forgotten pin") {
            self.give_up_old(core);
            self.give_up_on_full_disk(core);
        }
    }

    fn give_up_old(&self, core: &Core) {
        let age_ns_max = self.age_ns_max.load(Relaxed);
        let mut place = self.place.lock();
        let Place::Taken(waiting) = &*place else { return };
        if core.clock.now_ns().saturating_sub(waiting.since_ns) < age_ns_max {
            return;
        }
        let seconds = age_ns_max / NS_PER_S;
        let reason = format!("it was not written within {seconds} s");
        let old = std::mem::replace(&mut *place, Place::GivenUp(reason.clone()));
        drop(place);
        self.put_aside(old);
        self.note_reason(core, &reason);
    }

    fn give_up_on_full_disk(&self, core: &Core) {
        let durable = core.pool.segments().durable();
        let takes_space = || durable.pinned().1 > 0 && !core.pool.has_space(0);
        if !takes_space() {
            return;
        }
        // Release a snapshot that will not be written first.
        self.let_go();
        if takes_space() {
            durable.give_up_pins();
            self.drop_if_given_up(core);
        }
    }

    /// Drops the waiting snapshot, and records an error, if its own pin was abandoned.
    pub(in crate::db) fn drop_if_given_up(&self, core: &Core) {
        let mut place = self.place.lock();
        let Place::Taken(waiting) = &*place else { return };
        let waits_on = match waiting.snapshot.check() {
            Ok(()) => sound!(true, "backup: give up what was pinned since"),
            Err(_) => !sound!(true, "backup: wait with what was given up"),
        };
        if waits_on {
            return;
        }
        let reason = "the disk was full, and the snapshot kept files that the database no longer needs";
        let before = std::mem::replace(&mut *place, Place::GivenUp(reason.to_owned()));
        drop(place);
        self.put_aside(before);
        self.note_reason(core, reason);
    }

    fn note_reason(&self, core: &Core, reason: &str) {
        let errors = core.health.background_errors();
        errors.note(PLACE, &given_up(reason));
        let place = self.place.lock();
        if !matches!(*place, Place::GivenUp(_)) {
            errors.clear(PLACE);
        }
    }

    /// In seconds; 0: no snapshot may wait.
    pub(in crate::db) fn set_max_age(&self, seconds: u64) {
        self.age_ns_max.store(seconds.saturating_mul(NS_PER_S), Relaxed);
    }

    pub(in crate::db) fn may_be(&self) -> bool {
        self.age_ns_max.load(Relaxed) > 0
    }

    /// Why no snapshot could be pinned: the next [`take`](Self::take) reports it.
    pub(in crate::db) fn give_up(&self, reason: String) {
        let before = std::mem::replace(&mut *self.place.lock(), Place::GivenUp(reason));
        self.put_aside(before);
    }

    /// Removes the waiting snapshot. The background releases its files: there may be thousands, and
    /// the caller blocks commits.
    pub(in crate::db) fn set_aside(&self) {
        let before = std::mem::replace(&mut *self.place.lock(), Place::Empty);
        self.put_aside(before);
    }

    fn put_aside(&self, place: Place) {
        if let Place::Taken(waiting) = place {
            self.set_aside.lock().push(*waiting);
        }
    }

    /// Releases the snapshots set aside. May take long: it unlinks files.
    pub(in crate::db) fn let_go(&self) {
        let waiting = std::mem::take(&mut *self.set_aside.lock());
        drop(waiting);
    }

    pub(in crate::db) fn clear(&self) {
        self.set_aside();
        self.let_go();
    }

    /// Sets the previous waiting snapshot aside.
    pub(in crate::db) fn put(&self, core: &Core, waiting: Waiting) {
        let before = std::mem::replace(&mut *self.place.lock(), Place::Taken(Box::new(waiting)));
        self.put_aside(before);
        self.drop_if_given_up(core);
    }

    /// The first call after the snapshot was abandoned fails: its caller expects that snapshot.
    pub(in crate::db) fn take(&self) -> Result<Option<Waiting>> {
        match std::mem::replace(&mut *self.place.lock(), Place::Empty) {
            Place::Empty => Ok(None),
            Place::Taken(waiting) => Ok(Some(*waiting)),
            Place::GivenUp(reason) => Err(given_up(&reason)),
        }
    }

    /// For another try, unless there is a newer snapshot.
    pub(in crate::db) fn put_back(&self, core: &Core, waiting: Waiting) {
        let mut place = self.place.lock();
        if let Place::Empty = *place {
            *place = Place::Taken(Box::new(waiting));
        }
        drop(place);
        self.drop_if_given_up(core);
    }

    /// 0 if no snapshot waits.
    pub(in crate::db) fn age_ns(&self, now_ns: u64) -> u64 {
        match &*self.place.lock() {
            Place::Taken(waiting) => now_ns.saturating_sub(waiting.since_ns),
            _ => 0,
        }
    }
}

fn given_up(reason: &str) -> Error {
    Error::Unsupported {
        place: "the snapshot pinned for this statement was abandoned".into(),
        detail: format!("{reason}; begin the backup again, or repeat the statement for a current snapshot"),
    }
}

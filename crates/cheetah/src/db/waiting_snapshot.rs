//! The snapshot that is pinned and waits to be written (Z8).

use crate::backup::Snapshot;
use crate::base::{sound, Error, Result};
use crate::table::shared::parts::Core;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Age after which one that nobody writes goes, unless it is set.
const AGE_NS_MAX: u64 = 3_600_000_000_000;
const NS_PER_S: u64 = 1_000_000_000;
/// Where errors of it are noted.
pub(in crate::db) const PLACE: &str = "snapshots";

/// A word and a text for the manifest of a snapshot.
pub type Note = (String, String);

/// A snapshot that was pinned for whoever asks next.
pub(in crate::db) struct Waiting {
    pub(in crate::db) snapshot: Snapshot,
    pub(in crate::db) notes: Vec<Note>,
    pub(in crate::db) since_ns: u64,
}

enum Place {
    Empty,
    Taken(Box<Waiting>),
    /// The one that was there has been given up, for this reason.
    GivenUp(String),
}

/// See the module.
pub(in crate::db) struct WaitingSnapshot {
    place: Mutex<Place>,
    /// Those that are to go: the background unlinks what they hold.
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
    /// Gives it up when it is too old; and all that are pinned, when the disk is so full that
    /// statements are refused and pins hold space.
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
        // A snapshot that nobody will write goes first.
        self.let_go();
        if takes_space() {
            durable.give_up_pins();
            self.drop_if_given_up(core);
        }
    }

    /// Drops the one that waits if its pin was given up, and tells of it. One that was pinned since
    /// then is good.
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
        // A good one may have been pinned since.
        if !matches!(*place, Place::GivenUp(_)) {
            errors.clear(PLACE);
        }
    }

    /// Age in seconds after which it goes; 0: none may wait.
    pub(in crate::db) fn set_max_age(&self, seconds: u64) {
        self.age_ns_max.store(seconds.saturating_mul(NS_PER_S), Relaxed);
    }

    /// Whether one may wait.
    pub(in crate::db) fn may_be(&self) -> bool {
        self.age_ns_max.load(Relaxed) > 0
    }

    /// Nothing could be pinned, for this reason: the next call of [`take`](Self::take) says so.
    pub(in crate::db) fn give_up(&self, reason: String) {
        let before = std::mem::replace(&mut *self.place.lock(), Place::GivenUp(reason));
        self.put_aside(before);
    }

    /// Takes it away, for the background to let go of: thousands of files may be there for it
    /// alone, and the caller holds commits up.
    pub(in crate::db) fn set_aside(&self) {
        let before = std::mem::replace(&mut *self.place.lock(), Place::Empty);
        self.put_aside(before);
    }

    fn put_aside(&self, place: Place) {
        if let Place::Taken(waiting) = place {
            self.set_aside.lock().push(*waiting);
        }
    }

    /// Lets go of those that were set aside. May take long: it unlinks files.
    pub(in crate::db) fn let_go(&self) {
        let waiting = std::mem::take(&mut *self.set_aside.lock());
        drop(waiting);
    }

    /// Lets go of it, and of those that were set aside.
    pub(in crate::db) fn clear(&self) {
        self.set_aside();
        self.let_go();
    }

    /// Takes the place of the one before, which is set aside.
    pub(in crate::db) fn put(&self, core: &Core, waiting: Waiting) {
        let before = std::mem::replace(&mut *self.place.lock(), Place::Taken(Box::new(waiting)));
        self.put_aside(before);
        self.drop_if_given_up(core);
    }

    /// Takes it out. The first call after it was given up fails: the caller means that one.
    pub(in crate::db) fn take(&self) -> Result<Option<Waiting>> {
        match std::mem::replace(&mut *self.place.lock(), Place::Empty) {
            Place::Empty => Ok(None),
            Place::Taken(waiting) => Ok(Some(*waiting)),
            Place::GivenUp(reason) => Err(given_up(&reason)),
        }
    }

    /// Puts it back for another try, unless a newer one is there.
    pub(in crate::db) fn put_back(&self, core: &Core, waiting: Waiting) {
        let mut place = self.place.lock();
        if let Place::Empty = *place {
            *place = Place::Taken(Box::new(waiting));
        }
        drop(place);
        self.drop_if_given_up(core);
    }

    /// How old it is; 0 without one.
    pub(in crate::db) fn age_ns(&self, now_ns: u64) -> u64 {
        match &*self.place.lock() {
            Place::Taken(waiting) => now_ns.saturating_sub(waiting.since_ns),
            _ => 0,
        }
    }
}

fn given_up(reason: &str) -> Error {
    Error::Unsupported {
        place: "the snapshot pinned for this statement was given up".into(),
        detail: format!("{reason}; begin the backup again, or repeat the statement for a snapshot of now"),
    }
}

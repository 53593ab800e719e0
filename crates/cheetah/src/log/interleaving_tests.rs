//! Group commit under the model checker: threads append and commit.

use crate::base::model as sync;
use crate::base::{Error, Lsn, Result};
use std::sync::Arc;
use sync::{check, finds, AtomicBool, AtomicU64, Ordering};

#[path = "group.rs"]
#[expect(clippy::duplicate_mod, reason = "the engine's own source, over the model checker's primitives")]
mod group;

use group::Group;

/// A log reduced to lengths.
struct World {
    group: Group,
    end: AtomicU64,
    is_syncing: AtomicBool,
    synced_end: AtomicU64,
    has_stopped: AtomicBool,
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            group: Group::new(Lsn(0)),
            end: AtomicU64::new(0),
            is_syncing: AtomicBool::new(false),
            synced_end: AtomicU64::new(0),
            has_stopped: AtomicBool::new(false),
        })
    }

    fn health(&self) -> Result<()> {
        match self.has_stopped.load(Ordering::Acquire) {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }

    fn sync(&self) -> Result<Lsn> {
        assert!(!self.is_syncing.swap(true, Ordering::Relaxed), "G1");
        let end = self.end.load(Ordering::Acquire);
        self.synced_end.store(end, Ordering::Relaxed);
        self.is_syncing.store(false, Ordering::Relaxed);
        Ok(Lsn(end))
    }

    fn fail(&self) -> Result<Lsn> {
        self.has_stopped.store(true, Ordering::Release);
        Err(Error::Interrupted)
    }

    fn commit(&self, lead: fn(&Self) -> Result<Lsn>) -> Result<()> {
        let end = Lsn(self.end.fetch_add(1, Ordering::AcqRel) + 1);
        self.group.sync_to(end, || self.health(), || lead(self))?;
        assert!(self.group.durable_end() >= end && self.synced_end.load(Ordering::Relaxed) >= end.0, "G3");
        Ok(())
    }
}

/// Three threads commit concurrently.
fn commit_together(lead: fn(&World) -> Result<Lsn>) {
    let world = World::new();
    let others = [0, 1].map(|_| {
        let world = Arc::clone(&world);
        loom::thread::spawn(move || world.commit(lead).is_ok())
    });
    let done = [world.commit(lead).is_ok(), others.map(|other| other.join().unwrap()) == [true; 2]];
    assert_eq!(done, [!world.has_stopped.load(Ordering::Relaxed); 2]);
}

#[test]
fn all_return_when_what_they_have_appended_is_durable_and_none_waits_for_ever() {
    check(|| commit_together(World::sync));
}

#[test]
fn all_fail_when_the_leader_does() {
    check(|| commit_together(World::fail));
}

#[test]
fn the_model_finds_a_leader_who_wakes_the_others_too_early() {
    assert!(finds("log: wake the group before the leadership ends", || commit_together(World::sync)));
}

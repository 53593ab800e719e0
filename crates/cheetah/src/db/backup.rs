//! Snapshots of an open database.

use super::waiting_snapshot::{Note, Waiting, PLACE};
use super::Db;
use crate::backup::{Pace, Snapshot, Sources, Written};
use crate::base::{opaque, Error, Result, Xid};
use std::path::Path;

const NS_PER_S: u64 = 1_000_000_000;

/// A request for a snapshot.
pub struct SnapshotOrder<'a> {
    /// The directory to create; it must not exist.
    pub path: &'a Path,
    /// A directory that must not contain the snapshot. Nor may this database's, except in
    /// `snapshots`.
    pub outside_of: &'a Path,
    /// Selects the prepared transactions to roll back in the snapshot, where their coordinator will
    /// not know them.
    pub is_own: &'a dyn Fn(&Xid) -> bool,
    /// Notes for the manifest, if the snapshot is pinned now.
    pub notes: &'a [Note],
    /// Returns whether to stop.
    pub interrupted: &'a dyn Fn() -> bool,
}

opaque!(SnapshotOrder<'_>);

impl Db {
    /// Pins the state of the database with everything committed before the call. Takes
    /// milliseconds: one sync of the log. Fails with `Limit` if there are too many pins.
    pub fn pin_snapshot(&self) -> Result<Snapshot> {
        let core = &self.0.core;
        let log = core.journal.log().expect("the log is there once the database is open");
        let (map, segments) = (core.checkpointer.map(), core.pool.segments());
        let pinned = Snapshot::pin(&Sources {
            durable: segments.durable(),
            map,
            segments,
            log,
            keys: core.pool.keys(),
        })?;
        core.health.background_errors().clear(PLACE);
        Ok(pinned)
    }

    /// Pins a snapshot for the next [`create_snapshot`](Self::create_snapshot). A snapshot already
    /// waiting is set aside: the background releases its files. `notes` will be in the manifest.
    /// Returns false if waiting snapshots are disabled, otherwise true. After an error the next
    /// call that would write the snapshot fails, too.
    pub fn pin_waiting_snapshot(&self, notes: Vec<Note>) -> Result<bool> {
        let since_ns = self.0.core.clock.now_ns();
        let waiting = &self.0.background.waiting_snapshot;
        waiting.set_aside();
        if !waiting.may_be() {
            return Ok(false);
        }
        let snapshot = self.pin_snapshot().inspect_err(|error| waiting.give_up(error.to_string()))?;
        waiting.put(&self.0.core, Waiting { snapshot, notes, since_ns });
        Ok(true)
    }

    /// Writes the waiting snapshot, or else one pinned now. If writing fails, the snapshot
    /// continues to wait, unless the error (`DiskFull`) says that it was abandoned. After a waiting
    /// snapshot was abandoned for another reason, the next call fails, because its caller may mean
    /// that snapshot. Blocks for I/O, for as long as copying takes.
    pub fn create_snapshot(&self, order: &SnapshotOrder<'_>) -> Result<Written> {
        let waiting = &self.0.background.waiting_snapshot;
        let Some(found) = waiting.take()? else {
            return self.write_snapshot(&self.pin_snapshot()?, order, order.notes);
        };
        let written = self.write_snapshot(&found.snapshot, order, &found.notes);
        // This error reports the abandoned snapshot, so the next call writes a newly pinned one.
        let is_told = matches!(written, Err(Error::DiskFull(_))) && found.snapshot.check().is_err();
        if written.is_err() && !is_told {
            waiting.put_back(&self.0.core, found);
        }
        written
    }

    fn write_snapshot(
        &self,
        snapshot: &Snapshot,
        order: &SnapshotOrder<'_>,
        notes: &[Note],
    ) -> Result<Written> {
        let core = &self.0.core;
        let bytes_per_second = u64::from(core.pace.io_capacity()) * u64::from(core.pool.page_bytes());
        let pace = Pace { clock: &*core.clock, bytes_per_second, interrupted: order.interrupted };
        snapshot.write_to(order.path, order.outside_of, pace, order.is_own, notes)
    }

    /// Sets the age in seconds after which a waiting snapshot is abandoned. With 0, none waits.
    pub fn set_snapshot_max_age(&self, seconds: u64) {
        self.0.background.waiting_snapshot.set_max_age(seconds);
        self.0.background.call();
    }

    /// The pins, the age of the waiting snapshot, and the bytes of files kept only for pins.
    pub(in crate::db) fn snapshot_status(&self) -> [(&'static str, u64); 3] {
        let core = &self.0.core;
        let (pins_count, held_bytes) = core.pool.segments().durable().pinned();
        let age_ns = self.0.background.waiting_snapshot.age_ns(core.clock.now_ns());
        [
            ("backup_pins", pins_count as u64),
            ("backup_pin_seconds", age_ns / NS_PER_S),
            ("backup_held_bytes", held_bytes),
        ]
    }
}

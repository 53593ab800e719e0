//! Snapshots of an open database.

use super::waiting_snapshot::{Note, Waiting, PLACE};
use super::Db;
use crate::backup::{Pace, Snapshot, Sources, Written};
use crate::base::{Error, Result, Xid};
use std::path::Path;

const NS_PER_S: u64 = 1_000_000_000;

/// The order for a snapshot.
pub struct SnapshotOrder<'a> {
    /// The directory that it will be; it must not exist.
    pub path: &'a Path,
    /// A directory in which it may not be, as this database may not.
    pub outside_of: &'a Path,
    /// Which prepared transactions are rolled back in it: those of which their coordinator will
    /// know nothing there.
    pub is_own: &'a dyn Fn(&Xid) -> bool,
    /// For the manifest, if it is pinned now.
    pub notes: &'a [Note],
    /// Whether to give up.
    pub interrupted: &'a dyn Fn() -> bool,
}

impl std::fmt::Debug for SnapshotOrder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SnapshotOrder").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Db {
    /// Pins the state of the database: everything that was committed before the call. Takes
    /// milliseconds: one sync of the log. `Limit` when there are too many.
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

    /// Pins a snapshot for the next [`create_snapshot`](Self::create_snapshot). One that waits
    /// already is set aside: the background lets go of its files. `notes` will stand in the
    /// manifest. Whether one waits now: not when none may. After an error the next call that would
    /// write it fails, too.
    pub fn pin_waiting_snapshot(&self, notes: Vec<Note>) -> Result<bool> {
        let since_ns = self.0.core.clock.now_ns();
        let waiting = &self.0.background.waiting_snapshot;
        // The one before is of no use for whoever begins a backup.
        waiting.set_aside();
        if !waiting.may_be() {
            return Ok(false);
        }
        let snapshot = self.pin_snapshot().inspect_err(|error| waiting.give_up(error.to_string()))?;
        waiting.put(&self.0.core, Waiting { snapshot, notes, since_ns });
        Ok(true)
    }

    /// Writes the snapshot that waits, or one of now. A failed one goes on waiting, unless the
    /// error says that it was given up (`DiskFull`). Otherwise the next call after it was given up
    /// fails: the caller may mean that one. Blocks for I/O, as long as copying takes.
    pub fn create_snapshot(&self, order: &SnapshotOrder<'_>) -> Result<Written> {
        let waiting = &self.0.background.waiting_snapshot;
        let Some(found) = waiting.take()? else {
            return self.write_snapshot(&self.pin_snapshot()?, order, order.notes);
        };
        let written = self.write_snapshot(&found.snapshot, order, &found.notes);
        // Then the next call writes one of now.
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

    /// Age in seconds after which a snapshot that waits is given up; with 0 none will wait.
    pub fn set_snapshot_max_age(&self, seconds: u64) {
        self.0.background.waiting_snapshot.set_max_age(seconds);
        self.0.background.call();
    }

    /// Pins, the age of the snapshot that waits, and bytes of files that are there for pins alone.
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

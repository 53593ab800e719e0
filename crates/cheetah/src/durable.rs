//! The barriers: the only code in the engine that calls `sync_data` and `sync_dir`.
//!
//! Invariants
//!   D1  When a barrier returns `Ok`, everything that it covers is durable, even after a power cut.
//!   D2  A failed sync stops the engine. The sync is never retried, and no write that relies on it
//!       follows. (The kernel reports a lost page once and marks it clean, so a second sync would
//!       succeed and prove nothing.)
//!   D3  docs/developers/durability.md lists the barriers between writes; it is updated before the
//!       code.
//!
//! This module also has the only function that unlinks files that a pinned snapshot may name
//! ([`pins`]), and it owns the free space ([`space`]).
//!
//! Errors    A barrier fails only with `Fatal`.

pub mod pins;
pub mod space;

use self::pins::{Pin, Pins};
use self::space::Space;
use crate::base::{opaque, Error, Health, Result};
use cheetah_io::{Disk, File};
use parking_lot::Mutex;
use std::fmt;
use std::io;
use std::sync::Arc;

/// The kinds of barriers. For each kind, docs/developers/durability.md says what it makes durable
/// and which steps rely on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Barrier {
    /// Images in a segment file, before a page map names them.
    Segment,
    /// Blocks in a file of the page map, before CONTROL names them.
    Map,
    /// Pending changes of leaves, before a page map names their file.
    ChangeFile,
    /// One copy of CONTROL.
    Control,
    /// Records in a log file, before they are acknowledged or anything relies on them.
    Log,
    /// Names in a directory, before anything durable relies on the files.
    Directory,
    /// A file of a snapshot, before its CONTROL or its MANIFEST names it.
    Snapshot,
}

impl fmt::Display for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Barrier::Segment => "segment",
            Barrier::Map => "map",
            Barrier::ChangeFile => "change file",
            Barrier::Control => "control",
            Barrier::Log => "log",
            Barrier::Directory => "directory",
            Barrier::Snapshot => "snapshot",
        })
    }
}

/// A disk with its barriers. All layers that write files share it.
pub struct Durable {
    disk: Arc<dyn Disk>,
    health: Arc<Health>,
    trace: Mutex<Option<Vec<(Barrier, String)>>>,
    pins: Pins,
    space: Space,
}

impl Durable {
    /// Creates the barriers of `disk`. A failed barrier stops the engine through `health`.
    pub fn new(disk: Arc<dyn Disk>, health: Arc<Health>) -> Self {
        let space = Space::new(Arc::clone(&disk));
        Self { disk, health, trace: Mutex::new(None), pins: Pins::default(), space }
    }

    /// The disk.
    pub fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    /// The free space of the disk.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The health of the engine, which a failed barrier stops.
    pub fn health(&self) -> &Arc<Health> {
        &self.health
    }

    /// Makes the images in a segment file durable.
    pub fn segment_barrier(&self, file: &dyn File, path: &str) -> Result<()> {
        self.pass(Barrier::Segment, path, || file.sync_data())
    }

    /// Makes the blocks in a file of the page map durable.
    pub fn map_barrier(&self, file: &dyn File, path: &str) -> Result<()> {
        self.pass(Barrier::Map, path, || file.sync_data())
    }

    /// Makes the changes in a change file durable.
    pub fn change_file_barrier(&self, file: &dyn File, path: &str) -> Result<()> {
        self.pass(Barrier::ChangeFile, path, || file.sync_data())
    }

    /// Makes a copy of CONTROL durable.
    pub fn control_barrier(&self, file: &dyn File, path: &str) -> Result<()> {
        self.pass(Barrier::Control, path, || file.sync_data())
    }

    /// Makes the records in a log file durable.
    pub fn log_barrier(&self, file: &dyn File, path: &str) -> Result<()> {
        self.pass(Barrier::Log, path, || file.sync_data())
    }

    /// Makes creations, renames and removals in a directory durable. `""` is the root of the
    /// database.
    pub fn directory_barrier(&self, dir: &str) -> Result<()> {
        self.pass(Barrier::Directory, dir, || self.disk.sync_dir(dir))
    }

    /// Makes a file of a snapshot durable. `self` must belong to the snapshot, with its own disk
    /// and health, because a failure of the snapshot must not stop the engine (Z7).
    pub fn snapshot_barrier(&self, file: &dyn File, path: &str) -> Result<()> {
        self.pass(Barrier::Snapshot, path, || file.sync_data())
    }

    /// Pins files (Z2). Until the pin is dropped, [`let_go`](Self::let_go) does not unlink them.
    /// Fails with `Limit` if there are too many pins.
    pub fn pin(self: &Arc<Self>, paths: impl IntoIterator<Item = String>) -> Result<Pin> {
        Pin::new(self, paths)
    }

    /// Unlinks a file that the database no longer needs. If a pin names the file, keeps it until no
    /// pin names it. Returns whether the file was unlinked now.
    pub fn let_go(&self, path: &str) -> io::Result<bool> {
        self.pins.let_go(self.disk(), path).inspect(|is_gone| {
            if *is_gone {
                self.space.freed();
            }
        })
    }

    /// Returns whether a pin names the file.
    pub fn is_pinned(&self, path: &str) -> bool {
        self.pins.names(path)
    }

    /// The number of pins, and the total bytes of the files that are kept only for pins.
    pub fn pinned(&self) -> (usize, u64) {
        self.pins.counts()
    }

    /// Ends all pins because the disk is full (Z8).
    pub fn give_up_pins(&self) {
        self.pins.give_up(self);
    }

    /// Starts recording the barriers passed.
    pub fn start_trace(&self) {
        *self.trace.lock() = Some(Vec::new());
    }

    /// Returns the barriers passed since the trace was started or last taken, each with its file or
    /// directory.
    pub fn take_trace(&self) -> Vec<(Barrier, String)> {
        self.trace.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn pass(&self, barrier: Barrier, path: &str, sync: impl FnOnce() -> io::Result<()>) -> Result<()> {
        self.health.check()?;
        sync().map_err(|error| self.failed(barrier, path, &error))?;
        if let Some(trace) = self.trace.lock().as_mut() {
            trace.push((barrier, path.to_owned()));
        }
        Ok(())
    }

    fn failed(&self, barrier: Barrier, path: &str, error: &io::Error) -> Error {
        self.health.stop(format!("{barrier} barrier on '{path}' failed: {error}"))
    }
}

opaque!(Durable);

#[cfg(test)]
mod tests {
    use super::*;
    use cheetah_io::sim::{Fault, Op, SimDisk};

    fn on(disk: &SimDisk) -> Durable {
        Durable::new(Arc::new(disk.clone()), Arc::new(Health::default()))
    }

    #[test]
    fn the_trace_lists_barriers_in_their_order() {
        let disk = SimDisk::new();
        let durable = on(&disk);
        let file = disk.create("a").unwrap();
        durable.map_barrier(&*file, "a").unwrap();
        durable.start_trace();
        durable.segment_barrier(&*file, "a").unwrap();
        durable.directory_barrier("").unwrap();
        let text: Vec<String> =
            durable.take_trace().iter().map(|(b, path)| format!("{b} '{path}'")).collect();
        assert_eq!(text, ["segment 'a'", "directory ''"]);
        assert!(durable.take_trace().is_empty());
    }

    #[test]
    fn a_failed_sync_stops_the_engine_and_is_not_retried() {
        let disk = SimDisk::new();
        let durable = on(&disk);
        let file = disk.create("a").unwrap();
        disk.inject(Fault::on(Op::SyncData));
        let first = durable.log_barrier(&*file, "a").unwrap_err().to_string();
        assert!(first.contains("log barrier on 'a'"), "{first}");
        let syncs = disk.calls();
        assert_eq!(durable.log_barrier(&*file, "a").unwrap_err().to_string(), first);
        assert_eq!(durable.directory_barrier("").unwrap_err().to_string(), first);
        assert_eq!(disk.calls(), syncs, "D2: no sync is tried after one has failed");
    }
}

//! The barriers: the only caller of `sync_data` and `sync_dir` in the engine.
//!
//! Invariants
//!   D1  Everything that a barrier covers is durable when it returns `Ok`, even if the power fails
//!       afterwards.
//!   D2  A failed sync stops the engine: it is never retried, and nothing that relies on it is
//!       written any more. (The kernel reports a lost page once and marks it clean; a second sync
//!       would succeed and mean nothing.)
//!   D3  docs/developers/durability.md lists which barrier comes between which writes, before the
//!       barrier is coded.
//!
//! This is also the only place that unlinks files that a pinned snapshot may name ([`pins`]), and
//! the owner of free space ([`space`]).
//!
//! Errors    Barriers return only Fatal.

pub mod pins;
pub mod space;

use self::pins::{Pin, Pins};
use self::space::Space;
use crate::base::{Error, Health, Result};
use cheetah_io::{Disk, File};
use parking_lot::Mutex;
use std::fmt;
use std::io;
use std::sync::Arc;

/// The barriers by name. docs/developers/durability.md says what each makes durable, and which
/// steps rely on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Barrier {
    /// Images in a segment file, before a page map names them.
    Segment,
    /// Blocks in a file of the page map, before CONTROL names them.
    Map,
    /// Changes that waited for leaves, before a page map names their file.
    ChangeFile,
    /// One copy of CONTROL.
    Control,
    /// Records in a log file, before they are acknowledged or relied upon.
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

/// A disk with its barriers. Shared by all layers that write files.
pub struct Durable {
    disk: Arc<dyn Disk>,
    health: Arc<Health>,
    trace: Mutex<Option<Vec<(Barrier, String)>>>,
    pins: Pins,
    space: Space,
}

impl Durable {
    /// The barriers of `disk`. A failed barrier stops the engine through `health`.
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

    /// The health that a failed barrier sets to stopped.
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

    /// Makes creations, renames and removals in a directory durable; `""` is the root of the
    /// database.
    pub fn directory_barrier(&self, dir: &str) -> Result<()> {
        self.pass(Barrier::Directory, dir, || self.disk.sync_dir(dir))
    }

    /// Makes a file of a snapshot durable. Called on a disk with a health of its own, because the
    /// failure of a snapshot does not stop the engine (Z7).
    pub fn snapshot_barrier(&self, file: &dyn File, path: &str) -> Result<()> {
        self.pass(Barrier::Snapshot, path, || file.sync_data())
    }

    /// Pins files (Z2): until the pin is dropped, [`let_go`](Self::let_go) holds them. Fails with
    /// `Limit` if there are too many pins.
    pub fn pin(self: &Arc<Self>, paths: impl IntoIterator<Item = String>) -> Result<Pin> {
        Pin::new(self, paths)
    }

    /// Unlinks a file that the database no longer needs, or, if a pin names it, holds it until no
    /// pin does. Returns whether the file was unlinked.
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

    /// Returns the number of pins, and the bytes of the files held only for them.
    pub fn pinned(&self) -> (usize, u64) {
        self.pins.counts()
    }

    /// Abandons all pins because the disk is full (Z8).
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

impl fmt::Debug for Durable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Durable").field("health", &self.health).finish_non_exhaustive()
    }
}

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

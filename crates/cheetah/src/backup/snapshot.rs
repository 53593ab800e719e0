//! Pinning a state of the database, and writing it to a directory.

use super::promises::withdrawals;
use super::target::{Pace, Target, Written};
use crate::base::{opaque, sound, Error, Lsn, Result, Xid};
use crate::durable::pins::Pin;
use crate::durable::Durable;
use crate::format::control::ControlBlock;
use crate::format::manifest::Manifest;
use crate::format::state::State;
use crate::keys::Keys;
use crate::leaves::change_file;
use crate::log::{self, Log, PinnedLog};
use crate::page_map::{self, MapStore};
use crate::segment::{NamedSegment, Segments};
use std::path::Path;
use std::sync::Arc;

/// The parts of a database that make a snapshot.
#[derive(Clone, Copy)]
#[expect(missing_docs, reason = "named by their types")]
pub struct Sources<'a> {
    pub durable: &'a Arc<Durable>,
    pub map: &'a MapStore,
    pub segments: &'a Segments,
    pub log: &'a Log,
    pub keys: &'a Arc<Keys>,
}

opaque!(Sources<'_>);

/// A state of the database that can be written while this value exists (durability::Z2), which
/// keeps files that the database no longer needs.
#[derive(Debug)]
pub struct Snapshot {
    pin: Pin,
    control: ControlBlock,
    segments: Vec<NamedSegment>,
    log: PinnedLog,
    keys: Arc<Keys>,
}

impl Snapshot {
    /// Pins everything committed before the call. Syncs the log, and waits for an epoch that is
    /// being committed to the map; makes no checkpoint, reads no files. Fails with `Limit` for too
    /// many pins.
    pub fn pin(sources: &Sources<'_>) -> Result<Self> {
        let Sources { durable, map, segments, log, keys } = *sources;
        if sound!(true, "backup: pin what is not synced") {
            log.sync_to(log.end())?;
        }
        map.with_committed(|control| {
            let segments = segments.named(control.epoch, control.next_segment);
            // The log was durable up to the switch of this epoch before it committed.
            let log = log.durable_since(control.log_start);
            let paths = page_map::named_files(control).into_iter().flat_map(|file| [file.path, file.copy]);
            let paths = paths.chain(segments.iter().map(|segment| segment.path.clone()));
            let paths = paths.chain(log.files.iter().map(|file| file.path.clone()));
            let pin = durable.pin(paths.chain(change_file::paths(durable)?))?;
            Ok(Self { pin, control: control.clone(), segments, log, keys: Arc::clone(keys) })
        })
    }

    /// Fails with `DiskFull` if the snapshot had to be abandoned.
    pub fn check(&self) -> Result<()> {
        self.pin.check()
    }

    /// Writes the snapshot into the directory `path`, which must not exist, and must be neither in
    /// this database (except in its directory `snapshots`) nor in `outside_of`. The snapshot rolls
    /// back the prepared transactions that `is_own` selects (durability::Z6); its manifest has
    /// `notes`. Durable on return. After an error nothing remains, unless removing it fails, too.
    /// Blocks for I/O, for as long as copying takes at the rate of `pace`.
    pub fn write_to(
        &self,
        path: &Path,
        outside_of: &Path,
        pace: Pace<'_>,
        is_own: &dyn Fn(&Xid) -> bool,
        notes: &[(String, String)],
    ) -> Result<Written> {
        let health = self.pin.durable().health();
        health.check()?;
        self.check()?;
        let mut target = Target::create(&self.pin, path, outside_of, pace)?;
        let written = self.fill(&mut target, is_own, notes);
        if let Err(error) = &written {
            target.remove();
            if !sound!(true, "backup: stop for a failed snapshot") {
                return Err(health.stop(error.to_string()));
            }
        }
        // A file may be missing because the pin was abandoned meanwhile.
        written.map_err(|error| self.check().err().unwrap_or_else(|| target.own(error)))?;
        Ok(target.written())
    }

    /// Follows the steps in docs/developers/durability.md, in their order (Z5).
    fn fill(
        &self,
        target: &mut Target<'_>,
        is_own: &dyn Fn(&Xid) -> bool,
        notes: &[(String, String)],
    ) -> Result<()> {
        target.create_directories()?;
        // The whole map is read, so at least one of the two copies of each file is intact.
        let map = page_map::read(self.pin.durable(), &self.control, &mut |_, _| ())?;
        let state = State::decode(&map.state)?;
        for segment in &self.segments {
            target.take(&segment.path, segment.bytes, segment.is_final)?;
        }
        if sound!(true, "backup: forget the change files") {
            for file in &state.change_files {
                target.take(&change_file::path_of(file.epoch), file.bytes, true)?;
            }
        }
        for file in page_map::named_files(&self.control) {
            target.take(&file.path, file.bytes, file.is_final)?;
            // The first opening of the snapshot makes the missing copies.
            if map.is_damaged && !map.without_copy.contains(&file.number) {
                target.take(&file.copy, file.bytes, file.is_final)?;
            }
        }
        let withdrawn_count = self.take_log(target, &state, is_own)?;
        target.sync_directories()?;
        target.put_control(&self.control)?;
        let Self { control, log, .. } = self;
        target.put_manifest(Manifest {
            database: control.identity.uuid,
            epoch: control.epoch,
            log_start: log.from,
            log_end: log.end,
            withdrawn_count,
            notes: notes.to_vec(),
            files: Vec::new(),
        })
    }

    /// Copies the log up to the snapshot's position, followed by the records that withdraw
    /// promises; returns their number.
    fn take_log(&self, target: &mut Target<'_>, state: &State, is_own: &dyn Fn(&Xid) -> bool) -> Result<u64> {
        let Self { log, keys, .. } = self;
        let (chain, records) = withdrawals(log, self.pin.durable().disk(), keys, state, is_own)?;
        let withdrawn_count = records.len() as u64;
        let behind = log::frames_behind(chain, records);
        let (last, before) = log
            .files
            .split_last()
            .ok_or_else(|| Error::corrupt("log", "no file has the snapshot's position"))?;
        for file in before {
            target.copy(&file.path, file.bytes(), &[])?;
        }
        target.copy(&last.path, last.bytes(), &behind)?;
        // A startup will read the log like this, and must find its end here.
        let end = Lsn(log.end.0 + behind.len() as u64);
        log::read_from(target.disk(), keys, log.from, end, |_| Ok(()))?;
        Ok(withdrawn_count)
    }
}

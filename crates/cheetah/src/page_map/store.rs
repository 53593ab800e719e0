//! Opening the page map, and committing epochs to it.
//!
//! Locks     `merging`, then `inner`. `inner` is held while a commit writes and syncs.

use super::control_file::ControlFile;
use super::map_file::{self, BlockWriter, MapFile, PLACE};
use super::{load, merge, Change, Identity, Loaded, MapEntry};
use crate::base::{sound, Config, Epoch, Error, Lsn, PageId, Result, SegmentId};
use crate::durable::space::Reserve;
use crate::durable::Durable;
use crate::format::control::{ControlBlock, Features, MapPart, KEYS_MAX, PARTS_MAX};
use crate::format::encryption::KeyName;
use crate::format::map_block::{Begin, FileHeader, FileKind, FILE_HEADER_BYTES};
use crate::memory::Shares;
use parking_lot::Mutex;
use std::sync::Arc;

/// Logs may grow to this part (in percent) of the base before a new base is written.
const LOG_PERCENT_MAX: u64 = 30;
/// Logs may always have this part of a segment's size.
const LOG_SEGMENT_PART: u64 = 64;
/// The number of times that the logs may contain the newest state before a new base is written, if
/// the state is most of them.
const LOG_STATES_MAX: u64 = 4;
/// Most log files before a new base is written: each startup that commits adds one.
const LOG_FILES_MAX: usize = 16;
/// With at most this number of free entries in the list of files, a merge takes precedence.
const PARTS_SPARE: usize = 4;
/// The remedy if a file and its copy are damaged while the database is open.
const WHILE_IT_RUNS: &str = "all pages are known until the database is closed: dump its tables now";
/// The approximate memory of a change during a merge.
const MERGE_CHANGE_BYTES: usize = 64;

/// An epoch to commit.
#[derive(Debug)]
pub struct Commit<'a> {
    /// Its number; greater than that of any epoch committed or attempted before.
    pub epoch: Epoch,
    /// The pages that changed since the last committed epoch, each once, in any order (they get
    /// sorted).
    pub changes: &'a mut [Change],
    /// Opaque bytes of the layers above; `MapStore::load` returns them.
    pub state: &'a [u8],
    /// The position at which redo starts for this epoch.
    pub log_start: Lsn,
    /// See `Segments::next_segment`.
    pub next_segment: SegmentId,
}

/// An opened database.
#[derive(Debug)]
pub struct Opened {
    /// The map; `load` it next.
    pub store: MapStore,
    /// The database, and the number of this startup.
    pub identity: Identity,
    /// The configuration, in which settings fixed at creation have their original values.
    pub config: Config,
    /// The committed epoch; 0 in a new database.
    pub epoch: Epoch,
    /// The number for the first epoch of this startup: greater than any attempted before.
    pub first_epoch: Epoch,
    /// The position at which redo starts.
    pub log_start: Lsn,
    /// For `Segments::open`.
    pub next_segment: SegmentId,
}

/// See the module `page_map`. Every method may be called from any thread.
pub struct MapStore {
    durable: Arc<Durable>,
    log_bytes_min: u64,
    merge_held_max: usize,
    merging: Mutex<()>,
    inner: Mutex<Inner>,
}

struct Inner {
    file: ControlFile,
    /// The content of CONTROL.
    control: ControlBlock,
    /// The log to append to; if `None`, the next commit creates one.
    log: Option<OpenLog>,
    next_map_file: u64,
    /// Length of the newest block's state; 0 if it is not known.
    state_bytes: u64,
    /// The newest epoch that a copy of CONTROL may name since the database was opened.
    may_be_named: Epoch,
    /// IDs of files that CONTROL names and for which the file or its copy is missing.
    without_copy: Vec<u64>,
    /// Whether something that CONTROL names is damaged in one of two files.
    is_damaged: bool,
    /// Whether both files were found damaged at the same place.
    is_unreadable: bool,
    /// The number of times that damage was found since the database was opened.
    findings_count: u64,
}

/// A log file of this startup, and the end of the part that CONTROL names.
struct OpenLog {
    file: MapFile,
    end: u64,
    crc: u32,
}

impl MapStore {
    /// Opens the database on the disk, or creates one with `new_uuid`. On return, a new incarnation
    /// is durable, and map files that CONTROL does not name were removed.
    pub fn open(durable: Arc<Durable>, config: &Config, new_uuid: [u8; 16]) -> Result<Opened> {
        Self::open_after(durable, config, new_uuid, |_| Ok(()))
    }

    /// Like [`open`](Self::open), but `look` sees the control block of an existing database first.
    /// If it returns an error, nothing is written.
    pub fn open_after(
        durable: Arc<Durable>,
        config: &Config,
        new_uuid: [u8; 16],
        look: impl FnOnce(&ControlBlock) -> Result<()>,
    ) -> Result<Opened> {
        let (mut file, mut control) = match ControlFile::open(&durable)? {
            Some(found) => found,
            None => {
                let control = first_control(config, new_uuid);
                (ControlFile::create(&durable, &control)?, control)
            }
        };
        let config = Config {
            page_bytes: control.page_bytes,
            segment_bytes: control.segment_bytes.into(),
            ..config.clone()
        };
        config.validate()?;
        look(&control)?;
        control.identity.incarnation += 1;
        file.write(&durable, &mut control)?;
        let next_map_file = remove_unnamed(&durable, &control)?;
        let (epoch, identity) = (control.epoch, control.identity);
        let (log_start, next_segment) = (control.log_start, control.next_segment);
        let first_epoch = Epoch(epoch.0 + 1).max(Epoch(identity.incarnation << 32));
        let inner = Inner {
            file,
            control,
            log: None,
            next_map_file,
            state_bytes: 0,
            may_be_named: Epoch(0),
            without_copy: Vec::new(),
            is_damaged: false,
            is_unreadable: false,
            findings_count: 0,
        };
        let shares = Shares::of(config.buffer_pool_bytes);
        let store = MapStore {
            durable,
            log_bytes_min: config.segment_bytes / LOG_SEGMENT_PART,
            merge_held_max: shares.map_merge_bytes_max() / MERGE_CHANGE_BYTES,
            merging: Mutex::new(()),
            inner: Mutex::new(inner),
        };
        Ok(Opened { store, identity, config, epoch, first_epoch, log_start, next_segment })
    }

    /// Reads the committed map: calls `visit` for entries and removals of pages; a later call for a
    /// page replaces an earlier one. Returns the state of the committed epoch (empty in a new
    /// database). Every byte that CONTROL names is checked. Returns Corruption if a byte is wrong
    /// both in a file and in its copy. Damage to only one of them is a background error until a new
    /// base, which is then due, is written.
    pub fn load(&self, visit: &mut dyn FnMut(PageId, Option<MapEntry>)) -> Result<Vec<u8>> {
        let control = self.inner.lock().control.clone();
        let loaded = load::load(&self.durable, &control, visit)?;
        let mut inner = self.inner.lock();
        inner.note_files(&loaded);
        inner.state_bytes = loaded.state.len() as u64;
        Ok(loaded.state)
    }

    /// Reads the committed map and compares all copies, to find damage. Damage is a background
    /// error, and if it is in one of two files, a new base is due. Blocks for I/O; commits and
    /// merges can run concurrently.
    pub fn scrub(&self) {
        let control = self.inner.lock().control.clone();
        let loaded = load::load(&self.durable, &control, &mut |_, _| ());
        let mut inner = self.inner.lock();
        if inner.control.base != control.base {
            return; // merged meanwhile: the files read may have been removed
        }
        let errors = self.durable.health().background_errors();
        match loaded {
            Ok(loaded) => {
                inner.note_files(&loaded);
                if !inner.is_flawed() {
                    errors.clear(PLACE);
                }
            }
            Err(error) => {
                inner.is_unreadable = error.is_of_unreadable_bytes();
                inner.findings_count += 1;
                errors.note(PLACE, &error.with_words(WHILE_IT_RUNS));
            }
        }
    }

    /// The committed epoch.
    pub fn epoch(&self) -> Epoch {
        self.inner.lock().control.epoch
    }

    /// Bytes of the map's files, including their copies.
    pub fn file_bytes(&self) -> u64 {
        let inner = self.inner.lock();
        let copies = |part: &MapPart| if inner.without_copy.contains(&part.file) { 1 } else { 2 };
        inner.control.parts().map(|part| part.end * copies(part)).sum()
    }

    /// Passes the control block of the committed epoch to `take`, while no epoch commits: the files
    /// that it names exist then, and `take` may note files that are removed later (Z1, Z3). Waits
    /// for a commit that is in progress.
    pub fn with_committed<T>(&self, take: impl FnOnce(&ControlBlock) -> T) -> T {
        take(&self.inner.lock().control)
    }

    /// Commits an epoch: appends its block, makes it durable, and writes CONTROL. The caller must
    /// have made durable everything that the changes and the state rely on. After `Ok` the epoch is
    /// committed. After DiskFull or Io the previous epoch must still be treated as the committed
    /// one; the changes must be part of a later commit.
    ///
    /// # Panics
    /// If the epoch is not greater than the committed one, or a page appears twice.
    pub fn commit(&self, commit: Commit<'_>) -> Result<()> {
        self.durable.health().check()?;
        commit.changes.sort_unstable_by_key(|(pid, _)| *pid);
        let twice = commit.changes.windows(2).any(|pair| pair[0].0 == pair[1].0);
        assert!(!twice, "a page appears twice in the changes of an epoch");
        let mut inner = self.inner.lock();
        assert!(commit.epoch > inner.control.epoch, "P4: epochs ascend");
        let mut control = inner.control.clone();
        let mut log = self.log_for_commit(&mut inner)?;
        let is_new = log.end == FILE_HEADER_BYTES as u64;
        if let Err(error) = self.write_block(&commit, &mut log, &mut control) {
            self.give_up_block(&mut inner, log, is_new);
            return Err(error);
        }
        control.epoch = commit.epoch;
        control.log_start = commit.log_start;
        control.next_segment = commit.next_segment;
        // If this fails, a copy may name the new block, so the log stays closed and the block is
        // never overwritten (P3).
        inner.may_be_named = commit.epoch;
        inner.write_control(&self.durable, control)?;
        if !sound!(true, "control: write it before the map is synced") {
            log.file.sync(&self.durable)?;
        }
        inner.log = Some(log);
        inner.state_bytes = commit.state.len() as u64;
        Ok(())
    }

    /// Makes CONTROL name these keys, in both copies once this returns `Ok`. Returns `Limit` if
    /// there are too many. Blocks for I/O.
    pub fn name_keys(&self, keys: &[KeyName]) -> Result<()> {
        if keys.len() > KEYS_MAX {
            let (actual, limit) = (keys.len() as u64, KEYS_MAX as u64);
            return Err(Error::Limit { what: "encryption keys in use, with their versions", actual, limit });
        }
        self.durable.health().check()?;
        let mut inner = self.inner.lock();
        let control = ControlBlock { keys: keys.to_vec(), ..inner.control.clone() };
        inner.write_control(&self.durable, control)
    }

    /// Returns whether `epoch` may be durable although its commit failed.
    pub fn may_be_durable(&self, epoch: Epoch) -> bool {
        self.inner.lock().may_be_named >= epoch
    }

    /// Takes the open log out of `inner`, or creates one.
    fn log_for_commit(&self, inner: &mut Inner) -> Result<OpenLog> {
        if let Some(log) = inner.log.take() {
            return Ok(log);
        }
        if inner.control.parts().count() == PARTS_MAX {
            let actual = PARTS_MAX as u64 + 1;
            return Err(Error::Limit { what: "files of the page map", actual, limit: PARTS_MAX as u64 });
        }
        let header = FileHeader {
            kind: FileKind::Log,
            uuid: inner.control.identity.uuid,
            number: inner.take_number(),
            incarnation: inner.control.identity.incarnation,
        };
        let (file, crc) = MapFile::create(&self.durable, &header)?;
        Ok(OpenLog { file, end: FILE_HEADER_BYTES as u64, crc })
    }

    /// Appends the block to the log and makes it durable; notes it in `log` and in `control`.
    fn write_block(&self, commit: &Commit<'_>, log: &mut OpenLog, control: &mut ControlBlock) -> Result<()> {
        let begin = Begin { epoch: commit.epoch, incarnation: control.identity.incarnation };
        let mut writer = BlockWriter::begin(&log.file, log.end, log.crc, &begin);
        writer.entries(commit.changes)?;
        writer.state(commit.state)?;
        let (end, crc) = writer.finish()?;
        if sound!(true, "control: write it before the map is synced") {
            log.file.sync(&self.durable)?;
        }
        let part = MapPart { file: log.file.number, start: log.end, end, start_crc: log.crc, end_crc: crc };
        match control.logs.last_mut() {
            Some(last) if last.file == part.file => (last.end, last.end_crc) = (part.end, part.end_crc),
            _ => {
                control.logs.push(part);
                self.durable.directory_barrier("")?;
            }
        }
        (log.end, log.crc) = (end, crc);
        Ok(())
    }

    /// Abandons a block after a failure before CONTROL was written: removes its bytes.
    fn give_up_block(&self, inner: &mut Inner, log: OpenLog, is_new: bool) {
        if self.durable.health().check().is_err() {
            return;
        }
        if is_new {
            log.file.remove(&self.durable);
            return;
        }
        log.file.trim(log.end);
        inner.log = Some(log);
    }

    /// Writes a new base if the logs have grown enough. Called after commits, from any thread;
    /// commits can run concurrently. Returns whether it wrote one. DiskFull and Io leave the map
    /// unchanged.
    pub fn merge_if_due(&self) -> Result<bool> {
        let _one = self.merging.lock();
        let (merged, number, findings_count) = {
            let mut inner = self.inner.lock();
            if !self.is_merge_due(&inner) {
                return Ok(false);
            }
            (inner.control.clone(), inner.take_number(), inner.findings_count)
        };
        self.durable.health().check()?;
        self.take_space_to_merge(&merged)?;
        let (file, base) = merge::write_base(&self.durable, &merged, number, self.merge_held_max.max(16))?;
        file.sync(&self.durable)?;
        self.durable.directory_barrier("")?;
        let mut inner = self.inner.lock();
        let before = inner.control.clone();
        let mut control = before.clone();
        control.base = Some(base);
        control.logs = without(&before.logs, &merged.logs);
        inner.write_control(&self.durable, control)?;
        inner.remove_unused(&self.durable, &before);
        inner.forget_copies_of_removed_files();
        // Damage found meanwhile may be after the merged part; then the next base is due.
        if !sound!(inner.findings_count != findings_count, "map: forget what a scrub finds") {
            inner.is_damaged = false;
            self.durable.health().background_errors().clear(PLACE);
        }
        Ok(true)
    }

    /// Returns `DiskFull` if a base and its copy would leave too little space for work that frees
    /// space. Near the end of the list of files, the merge may take all space: otherwise no more
    /// epochs could be committed.
    fn take_space_to_merge(&self, merged: &ControlBlock) -> Result<()> {
        let bytes = 2 * merged.parts().map(MapPart::bytes).sum::<u64>();
        let is_last = merged.parts().count() + PARTS_SPARE >= PARTS_MAX;
        self.durable.space().take(bytes, if is_last { Reserve::Nothing } else { Reserve::Quarter })
    }

    fn is_merge_due(&self, inner: &Inner) -> bool {
        if inner.is_unreadable {
            return false; // it would fail, and each checkpoint with it
        }
        let control = &inner.control;
        let log_bytes: u64 = control.logs.iter().map(MapPart::bytes).sum();
        let base_bytes = control.base.as_ref().map_or(0, MapPart::bytes);
        let allowed = base_bytes * LOG_PERCENT_MAX / 100;
        let allowed = allowed.max(self.log_bytes_min).max(inner.state_bytes * LOG_STATES_MAX);
        let is_flawed = sound!(inner.is_flawed(), "map: leave a file without its copy");
        is_flawed || log_bytes > allowed || control.logs.len() > LOG_FILES_MAX
    }
}

impl Inner {
    /// Notes the state of the files that were read. A flawed file is not continued, so that a merge
    /// removes all of it.
    fn note_files(&mut self, loaded: &Loaded) {
        self.without_copy.clone_from(&loaded.without_copy);
        self.is_damaged = loaded.is_damaged;
        self.is_unreadable = false;
        self.findings_count += u64::from(loaded.is_damaged);
        if self.is_flawed() {
            self.log = None;
        }
    }

    /// Returns whether something that CONTROL names is in one file only (P6).
    fn is_flawed(&self) -> bool {
        self.is_damaged || !self.without_copy.is_empty()
    }

    /// Called after a merge.
    fn forget_copies_of_removed_files(&mut self) {
        let control = &self.control;
        self.without_copy.retain(|number| control.parts().any(|part| part.file == *number));
    }

    fn take_number(&mut self) -> u64 {
        self.next_map_file += 1;
        self.next_map_file - 1
    }

    /// Writes `control` to CONTROL; it is in effect once this returns `Ok`.
    fn write_control(&mut self, durable: &Durable, mut control: ControlBlock) -> Result<()> {
        control.next_map_file = self.next_map_file;
        if let Err(error) = self.file.write(durable, &mut control) {
            self.log = None;
            return Err(error);
        }
        self.control = control;
        Ok(())
    }

    /// Called after a merge: removes files that `before` named and CONTROL no longer names. If no
    /// part of the open log is named, it is not continued, to free its space.
    fn remove_unused(&mut self, durable: &Durable, before: &ControlBlock) {
        let names = |control: &ControlBlock, file| control.parts().any(|part| part.file == file);
        if self.log.as_ref().is_some_and(|log| !names(&self.control, log.file.number)) {
            self.log = None;
        }
        let base = before.base.iter().map(|part| (part, FileKind::Base));
        let logs = before.logs.iter().map(|part| (part, FileKind::Log));
        for (part, kind) in base.chain(logs).filter(|(part, _)| !names(&self.control, part.file)) {
            let path = map_file::path(part.file, kind);
            // If this fails, the next startup removes the file.
            let _ = durable.let_go(&map_file::copy_path(&path));
            let _ = durable.let_go(&path);
        }
    }
}

/// The remaining part of `logs` when `merged`, an earlier state of them, is in the base.
fn without(logs: &[MapPart], merged: &[MapPart]) -> Vec<MapPart> {
    let rest = |log: &MapPart| match merged.iter().find(|part| part.file == log.file) {
        None => Some(*log),
        Some(part) if part.end == log.end => None,
        Some(part) => Some(MapPart { start: part.end, start_crc: part.end_crc, ..*log }),
    };
    logs.iter().filter_map(rest).collect()
}

fn first_control(config: &Config, uuid: [u8; 16]) -> ControlBlock {
    ControlBlock {
        features: Features::default(),
        identity: Identity { uuid, incarnation: 0 },
        sequence: 1,
        epoch: Epoch(0),
        log_start: Lsn(0),
        next_map_file: 1,
        next_segment: SegmentId(1),
        page_bytes: config.page_bytes,
        segment_bytes: config.segment_bytes as u32,
        base: None,
        logs: Vec::new(),
        keys: Vec::new(),
    }
}

/// Removes map files that CONTROL does not name (P3); returns an ID that no file has had.
fn remove_unnamed(durable: &Durable, control: &ControlBlock) -> Result<u64> {
    let mut next = control.next_map_file;
    let names = durable.disk().list("").map_err(|e| Error::io("list", "", e))?;
    for name in names {
        let Some(number) = map_file::parse_name(&name) else { continue };
        next = next.max(number + 1);
        if !control.parts().any(|part| part.file == number) {
            durable.disk().unlink(&name).map_err(|e| Error::io("unlink", &name, e))?;
        }
    }
    Ok(next)
}

impl std::fmt::Debug for MapStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MapStore").field("epoch", &self.epoch()).finish_non_exhaustive()
    }
}

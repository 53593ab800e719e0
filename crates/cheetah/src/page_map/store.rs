//! Opens the page map, and commits epochs to it.
//!
//! Locks     `merging`, then `inner`. `inner` is held while a commit writes and syncs.

use super::control_file::ControlFile;
use super::map_file::{self, BlockWriter, MapFile, PLACE};
use super::{load, merge, Change, Identity, Loaded, MapEntry};
use crate::base::{opaque, sound, Config, Epoch, Error, Lsn, PageId, Result, SegmentId};
use crate::durable::space::Reserve;
use crate::durable::Durable;
use crate::format::control::{ControlBlock, Features, MapPart, KEYS_MAX, PARTS_MAX};
use crate::format::encryption::KeyName;
use crate::format::map_block::{Begin, FileHeader, FileKind, FILE_HEADER_BYTES};
use crate::memory::Shares;
use parking_lot::Mutex;
use std::sync::Arc;

/// The logs may grow to this percentage of the base before a new base is written.
const LOG_PERCENT_MAX: u64 = 30;
/// The logs may always grow to the size of a segment divided by `LOG_SEGMENT_PART`.
const LOG_SEGMENT_PART: u64 = 64;
/// The logs may always grow to this multiple of the newest state's size.
const LOG_STATES_MAX: u64 = 4;
/// The maximum number of log files before a new base is written. Each startup that commits an epoch
/// adds one.
const LOG_FILES_MAX: usize = 16;
/// If at most this number of entries in the list of files is free, a merge may use the whole
/// reserve.
const PARTS_SPARE: usize = 4;
/// The advice to users if a file and its copy are damaged while the database is open.
const WHILE_IT_RUNS: &str = "all pages are known until the database is closed: dump its tables now";
/// The approximate memory of a change during a merge.
const MERGE_CHANGE_BYTES: usize = 64;

/// An epoch to commit.
#[derive(Debug)]
pub struct Commit<'a> {
    /// Its number, which must be greater than that of any epoch that was committed or attempted.
    pub epoch: Epoch,
    /// The pages that changed since the last committed epoch, each once, in any order. `commit`
    /// sorts them.
    pub changes: &'a mut [Change],
    /// Opaque bytes of the layers above, which `MapStore::load` returns.
    pub state: &'a [u8],
    /// The position at which redo starts for this epoch.
    pub log_start: Lsn,
    /// See `Segments::next_segment`.
    pub next_segment: SegmentId,
}

/// An opened database.
#[derive(Debug)]
pub struct Opened {
    /// The map. The caller must `load` it next.
    pub store: MapStore,
    /// The database, and the number of this startup.
    pub identity: Identity,
    /// The configuration, in which settings fixed at creation have their original values.
    pub config: Config,
    /// The committed epoch, or 0 in a new database.
    pub epoch: Epoch,
    /// The number for the first epoch of this startup. It is greater than any number attempted
    /// before.
    pub first_epoch: Epoch,
    /// The position at which redo starts.
    pub log_start: Lsn,
    /// The argument for `Segments::open`.
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
    control: ControlBlock,
    /// The log to append to. If it is `None`, the next commit creates one.
    log: Option<OpenLog>,
    next_map_file: u64,
    /// The length of the newest block's state, or 0 if it is not known.
    state_bytes: u64,
    /// The newest epoch for which writing CONTROL was started since the database was opened.
    may_be_named: Epoch,
    /// The IDs of files that CONTROL names and of which the file or its copy is missing.
    without_copy: Vec<u64>,
    /// Whether any bytes that CONTROL names are damaged in one of the two files.
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
    /// Opens the database on the disk, or creates one with `new_uuid`. Makes a new incarnation
    /// durable, and removes map files that CONTROL does not name.
    pub fn open(durable: Arc<Durable>, config: &Config, new_uuid: [u8; 16]) -> Result<Opened> {
        Self::open_after(durable, config, new_uuid, |_| Ok(()))
    }

    /// Like [`open`](Self::open), but first passes the control block to `look`. If `look` returns
    /// an error, an existing database is not changed.
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

    /// Reads the committed map. Calls `visit` for entries and removals of pages. A later call for a
    /// page replaces an earlier one. Returns the state of the committed epoch (empty in a new
    /// database). Checks every byte that CONTROL names. Fails with `Corruption` if a part is
    /// damaged both in a file and in its copy. Damage to only one of them is a background error and
    /// makes a new base due. The error ends when the base is written.
    pub fn load(&self, visit: &mut dyn FnMut(PageId, Option<MapEntry>)) -> Result<Vec<u8>> {
        let control = self.inner.lock().control.clone();
        let loaded = load::load(&self.durable, &control, visit)?;
        let mut inner = self.inner.lock();
        inner.note_files(&loaded);
        inner.state_bytes = loaded.state.len() as u64;
        Ok(loaded.state)
    }

    /// Reads the committed map and compares all copies, to find damage. Damage is a background
    /// error. If only one of the two files is damaged, a new base is due. Blocks for I/O. Commits
    /// and merges can run concurrently.
    pub fn scrub(&self) {
        let control = self.inner.lock().control.clone();
        let loaded = load::load(&self.durable, &control, &mut |_, _| ());
        let mut inner = self.inner.lock();
        if inner.control.base != control.base {
            return; // a merge may have removed the files during the read
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

    /// Passes the control block of the committed epoch to `take`. No epoch is committed while
    /// `take` runs, so the files that the block names exist, and `take` may pin them
    /// (durability::Z1, durability::Z3). Waits for a commit that is in progress.
    pub fn with_committed<T>(&self, take: impl FnOnce(&ControlBlock) -> T) -> T {
        take(&self.inner.lock().control)
    }

    /// Commits an epoch: appends its block, makes it durable, and writes CONTROL. The caller must
    /// have made everything durable that the changes and the state rely on. After `Ok` the epoch is
    /// committed. After `DiskFull` or `Io` the caller must treat the previous epoch as the
    /// committed one, and include the changes in a later commit.
    ///
    /// # Panics
    /// If the epoch is not greater than the committed one, or a page appears twice.
    pub fn commit(&self, commit: Commit<'_>) -> Result<()> {
        self.durable.health().check()?;
        commit.changes.sort_unstable_by_key(|(pid, _)| *pid);
        let twice = commit.changes.windows(2).any(|pair| pair[0].0 == pair[1].0);
        assert!(!twice, "E2: a page appears once in the changes of an epoch");
        let mut inner = self.inner.lock();
        assert!(commit.epoch > inner.control.epoch, "P4: epochs ascend");
        assert!(commit.log_start >= inner.control.log_start, "K3: an epoch needs no log that is let go");
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
        // If this write fails, a copy of CONTROL may name the new block. Then the log is not
        // continued, so that the block is never overwritten (P3).
        inner.may_be_named = commit.epoch;
        inner.write_control(&self.durable, control)?;
        if !sound!(true, "control: write it before the map is synced") {
            log.file.sync(&self.durable)?;
        }
        inner.log = Some(log);
        inner.state_bytes = commit.state.len() as u64;
        Ok(())
    }

    /// Writes the names of these keys to CONTROL. After `Ok` both copies have them. Fails with
    /// `Limit` if there are too many keys. Blocks for I/O.
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

    /// Appends the block to the log, makes it durable, and adds it to `log` and `control`.
    fn write_block(&self, commit: &Commit<'_>, log: &mut OpenLog, control: &mut ControlBlock) -> Result<()> {
        let named = control.logs.last().filter(|last| last.file == log.file.number);
        assert!(named.is_none_or(|named| named.end <= log.end), "P3: a block is behind what CONTROL names");
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

    /// Abandons a block after a failure that happened before CONTROL was written, and removes its
    /// bytes.
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

    /// Writes a new base if one is due, and returns whether it did. Called after commits, from any
    /// thread. Commits can run concurrently. `DiskFull` and `Io` leave the map unchanged.
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
        // Damage that was found during the merge may be after the merged part. In that case another
        // base is due.
        if !sound!(inner.findings_count != findings_count, "map: forget what a scrub finds") {
            inner.is_damaged = false;
            self.durable.health().background_errors().clear(PLACE);
        }
        Ok(true)
    }

    /// Fails with `DiskFull` if a base and its copy would leave too little space for work that
    /// frees space. If the list of files is nearly full, the merge may use all space, because
    /// otherwise no more epochs could be committed.
    fn take_space_to_merge(&self, merged: &ControlBlock) -> Result<()> {
        let bytes = 2 * merged.parts().map(MapPart::bytes).sum::<u64>();
        let is_last = merged.parts().count() + PARTS_SPARE >= PARTS_MAX;
        self.durable.space().take(bytes, if is_last { Reserve::Nothing } else { Reserve::Quarter })
    }

    fn is_merge_due(&self, inner: &Inner) -> bool {
        if inner.is_unreadable {
            return false; // a merge would fail, and each checkpoint too
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
    /// Notes the state of the files that were read. If any file is flawed, the log is not
    /// continued, so that the next merge can remove all flawed files.
    fn note_files(&mut self, loaded: &Loaded) {
        self.without_copy.clone_from(&loaded.without_copy);
        self.is_damaged = loaded.is_damaged;
        self.is_unreadable = false;
        self.findings_count += u64::from(loaded.is_damaged);
        if self.is_flawed() {
            self.log = None;
        }
    }

    /// Returns whether any bytes that CONTROL names are intact in only one of the two files (P6).
    fn is_flawed(&self) -> bool {
        self.is_damaged || !self.without_copy.is_empty()
    }

    /// Forgets missing copies of files that CONTROL no longer names. Called after a merge.
    fn forget_copies_of_removed_files(&mut self) {
        let control = &self.control;
        self.without_copy.retain(|number| control.parts().any(|part| part.file == *number));
    }

    fn take_number(&mut self) -> u64 {
        self.next_map_file += 1;
        self.next_map_file - 1
    }

    /// Writes `control` to CONTROL. After `Ok` it is in effect.
    fn write_control(&mut self, durable: &Durable, mut control: ControlBlock) -> Result<()> {
        control.next_map_file = self.next_map_file;
        if let Err(error) = self.file.write(durable, &mut control) {
            self.log = None;
            return Err(error);
        }
        self.control = control;
        Ok(())
    }

    /// Called after a merge. Removes files that `before` named and CONTROL no longer names. If no
    /// part of the open log is named, the log is not continued, so that its space is freed.
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

/// Returns the parts of `logs` that are not in the base. The base contains `merged`, an earlier
/// state of the logs.
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

/// Removes map files that CONTROL does not name (P3). Returns an ID that no file has had.
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

opaque!(MapStore);

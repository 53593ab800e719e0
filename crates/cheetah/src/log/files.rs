//! Log files: their names, and how they are created, recycled and removed.
//!
//! Invariants
//!   I1  A file named `<sequence>.log` has a durable header of that sequence. New and recycled
//!       files are prepared under a reserve name and renamed when their header is durable.
//!   I2  Retiring a file needs no sync of the directory. After a crash a retired file may have its
//!       old name again, even if it was reused and its header was overwritten. This does no harm: a
//!       reader goes back only to the file with the oldest needed position, which has a higher
//!       sequence, and the next startup retires the old file again.
//!   I3  Before an operation begins, the next file is *ready*: it exists, it is as long as the tail
//!       assumes, and no frame has been appended for it yet. So a full disk may fail a statement
//!       but never a commit (`make_ready`).
//!   I4  Ready files are started in the order in which they were made ready. Once the tail has
//!       taken a ready file, that file is used even if the wanted length of files changes, because
//!       frames were appended for it.

use super::tail::Opening;
use crate::base::{reach, sound, Error, Lsn, Result};
use crate::durable::space::Reserve;
use crate::durable::Durable;
use crate::format::encryption::KeyName;
use crate::format::log_frame::{FileHeader, HEADER_BYTES};
use crate::keys::Keys;
use cheetah_io::{Disk, File};
use std::collections::VecDeque;
use std::sync::Arc;

pub(super) const DIR: &str = "wal";

const RESERVE_PREFIX: &str = "reserve-";

/// The number of zero bytes that one write overwrites.
const ZEROS_BYTES: u64 = 1 << 18;

pub(super) fn path_of(sequence: u64) -> String {
    format!("{DIR}/{sequence:012}.log")
}

/// Returns the sequence numbers of the log files in the directory, in ascending order.
pub(super) fn sequences(disk: &dyn Disk) -> Result<Vec<u64>> {
    let names = disk.list(DIR).map_err(|e| Error::io("list", DIR, e))?;
    let mut sequences: Vec<u64> =
        names.iter().filter_map(|name| name.strip_suffix(".log")?.parse().ok()).collect();
    sequences.sort_unstable();
    Ok(sequences)
}

/// A log file that may still be needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LiveFile {
    pub(super) sequence: u64,
    pub(super) start: Lsn,
    pub(super) key: Option<KeyName>,
}

pub(super) struct ReserveFile {
    path: String,
    bytes: u64,
    /// Whether it may contain unencrypted frames.
    may_be_plain: bool,
}

impl LiveFile {
    pub(super) fn of(header: &FileHeader) -> Self {
        let FileHeader { sequence, start, closed, .. } = *header;
        Self { sequence, start, key: closed.map(|salt| salt.key) }
    }
}

/// The limits of a file's length, including the header.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileLimits {
    pub(super) least_bytes: u64,
    pub(super) most_bytes: u64,
}

pub(super) struct Files {
    durable: Arc<Durable>,
    keys: Arc<Keys>,
    limits: FileLimits,
    /// The maximum number of old files kept for reuse while files are longer than the minimum.
    reserve_max: usize,
    /// The length that files should have now.
    usual_bytes: u64,
    live: VecDeque<LiveFile>,
    /// The files that are started next (I3): the files that the tail has taken, and at most one
    /// that it has not.
    ready: VecDeque<ReserveFile>,
    /// The number of ready files that were started.
    begun_count: u64,
    reserve: Vec<ReserveFile>,
    reserve_next: u64,
}

impl Files {
    /// Takes over the files in the directory.
    pub(super) fn adopt(
        durable: Arc<Durable>,
        keys: Arc<Keys>,
        limits: FileLimits,
        bytes_max: u64,
        live: Vec<LiveFile>,
    ) -> Result<Self> {
        let mut files = Self {
            durable,
            keys,
            limits,
            // A checkpoint retires about a quarter of the log at once.
            reserve_max: (bytes_max / 4 / limits.most_bytes.max(1)).clamp(1, 16) as usize,
            usual_bytes: limits.least_bytes,
            live: live.into(),
            ready: VecDeque::new(),
            begun_count: 0,
            reserve: Vec::new(),
            reserve_next: 0,
        };
        files.adopt_reserve()?;
        files.retire_older()?;
        Ok(files)
    }

    fn adopt_reserve(&mut self) -> Result<()> {
        let names = self.disk().list(DIR).map_err(|e| Error::io("list", DIR, e))?;
        for name in names {
            let Some(number) = name.strip_prefix(RESERVE_PREFIX).and_then(|n| n.parse::<u64>().ok()) else {
                continue;
            };
            self.reserve_next = self.reserve_next.max(number + 1);
            let path = format!("{DIR}/{name}");
            let len =
                self.disk().open(&path).and_then(|f| f.len()).map_err(|e| Error::io("open", &path, e))?;
            self.keep_or_remove(path, len, true)?;
        }
        Ok(())
    }

    /// Retires files older than the oldest file in use. Such files exist if a crash undid the
    /// renaming or removal of retired files.
    fn retire_older(&mut self) -> Result<()> {
        let Some(oldest) = self.live.front().map(|file| file.sequence) else { return Ok(()) };
        for sequence in sequences(self.disk())?.into_iter().filter(|sequence| *sequence < oldest) {
            self.retire(&path_of(sequence), true)?;
        }
        Ok(())
    }

    fn disk(&self) -> &dyn Disk {
        self.durable.disk()
    }

    /// Returns whether a file must be removed instead of reused because it may contain unencrypted
    /// frames while the log is encrypted (durability::E6). If it were reused, old rows would remain
    /// readable in it.
    fn must_go(&self, may_be_plain: bool) -> bool {
        sound!(may_be_plain && self.keys.of_log().is_some(), "encryption: recycle a plain log file")
    }

    pub(super) fn keys_in_use(&self) -> impl Iterator<Item = KeyName> + '_ {
        self.live.iter().filter_map(|file| file.key)
    }

    /// Returns whether to keep one more file of this length.
    fn has_use_for(&self, bytes: u64) -> bool {
        let FileLimits { least_bytes, most_bytes } = self.limits;
        if self.durable.space().is_short() {
            return self.reserve.is_empty() && bytes <= 2 * least_bytes;
        }
        // While little is logged, at most one old file is kept.
        let is_small = self.usual_bytes <= least_bytes && least_bytes < most_bytes;
        fits(bytes, self.usual_bytes) && self.reserve.len() < if is_small { 1 } else { self.reserve_max }
    }

    fn keep_or_remove(&mut self, path: String, bytes: u64, may_be_plain: bool) -> Result<()> {
        if self.has_use_for(bytes) && !self.must_go(may_be_plain) {
            self.reserve.push(ReserveFile { path, bytes, may_be_plain });
            return Ok(());
        }
        self.remove(&path)
    }

    fn remove(&self, path: &str) -> Result<()> {
        self.durable.space().freed();
        self.disk().unlink(path).map_err(|e| Error::io("unlink", path, e))
    }

    /// The number of files in use, and of ready and reserve files.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.live.len(), self.ready.len() + self.reserve.len())
    }

    /// Makes sure that one more file is ready than the tail has taken; `taken_count` is the number
    /// of files that it has taken. The length of the file is `bytes`, or on a full disk at least
    /// `least_bytes`. Returns its usable length, at most `bytes`. Fails with `DiskFull` if the file
    /// does not fit on the disk without using the part of the space reserve that `stays` names.
    pub(super) fn make_ready(
        &mut self,
        taken_count: u64,
        bytes: u64,
        least_bytes: u64,
        stays: Reserve,
    ) -> Result<u64> {
        self.usual_bytes = bytes;
        while self.ready.len() as u64 <= taken_count - self.begun_count {
            let file = self.find(bytes, least_bytes, stays)?;
            self.ready.push_back(file);
        }
        Ok(self.ready.back().map_or(0, |file| file.bytes.min(bytes)))
    }

    /// Replaces the current ready file with `file`, of which `bytes` are usable, and moves the
    /// replaced file into the reserve. If a taken file was not started yet, moves `file` into the
    /// reserve instead and returns false (I4).
    pub(super) fn exchange_ready(&mut self, taken_count: u64, file: ReserveFile, bytes: u64) -> bool {
        let exchanges = taken_count == self.begun_count;
        if exchanges {
            self.usual_bytes = bytes;
            self.reserve.extend(self.ready.drain(..));
            self.ready.push_back(file);
        } else {
            self.reserve.push(file);
        }
        exchanges
    }

    /// Takes a file for `bytes` from the reserve, or creates one. On a full disk takes any file
    /// that is long enough, or one of half that length and so on, down to `least_bytes`.
    pub(super) fn find(&mut self, mut bytes: u64, least_bytes: u64, stays: Reserve) -> Result<ReserveFile> {
        loop {
            if let Some(file) = self.take_reserve(|file| fits(file.bytes, bytes)) {
                return Ok(file);
            }
            let full = match self.create_reserve(bytes, stays) {
                Err(full @ Error::DiskFull(_)) => full,
                other => return other,
            };
            if let Some(longer) = self.take_reserve(|file| file.bytes >= bytes) {
                return Ok(longer);
            }
            if bytes <= least_bytes {
                return Err(full);
            }
            bytes = (bytes / 2).max(least_bytes);
        }
    }

    fn take_reserve(&mut self, wanted: impl Fn(&ReserveFile) -> bool) -> Option<ReserveFile> {
        let found = self.reserve.iter().position(wanted);
        found.map(|position| self.reserve.swap_remove(position))
    }

    fn create_reserve(&mut self, bytes: u64, stays: Reserve) -> Result<ReserveFile> {
        match stays {
            // Appended frames need this space, even if it is promised to other users of the disk.
            Reserve::Nothing => self.durable.space().make_way(bytes),
            _ => self.durable.space().take(bytes, stays)?,
        }
        let path = format!("{DIR}/{RESERVE_PREFIX}{}", self.reserve_next);
        self.reserve_next += 1;
        let file = self.disk().create(&path).map_err(|e| Error::io("create", &path, e))?;
        if let Err(error) = file.allocate(bytes) {
            // Nothing relies on the file. If removing it fails too, the next startup removes it.
            let _ = self.disk().unlink(&path);
            let error = Error::io("allocate", path, error);
            if matches!(error, Error::DiskFull(_)) {
                self.durable.space().was_refused(bytes);
            }
            return Err(error);
        }
        Ok(ReserveFile { path, bytes, may_be_plain: false })
    }

    /// Starts the file of `opening`. The caller must have made the previous file durable (L3).
    pub(super) fn start(&mut self, opening: &Opening) -> Result<Arc<dyn File>> {
        let Opening { header, bytes, is_ready } = opening;
        let reserve = match is_ready {
            true => self.begin_ready(),
            false => self.find(*bytes, *bytes, Reserve::Nothing)?,
        };
        let file = self.disk().open(&reserve.path).map_err(|e| Error::io("open", &reserve.path, e))?;
        if header.closed.is_some() && reserve.may_be_plain {
            empty(&*file, reserve.bytes).map_err(|e| Error::io("empty", &reserve.path, e))?;
        }
        file.write_at(0, &header.encode()).map_err(|e| Error::io("write", &reserve.path, e))?;
        self.durable.log_barrier(&*file, &reserve.path)?;
        let is_new = self.live.back().is_none_or(|last| last.sequence < header.sequence);
        assert!(is_new, "I2: log files begin in the order of their sequences");
        let path = path_of(header.sequence);
        self.disk().rename(&reserve.path, &path).map_err(|e| Error::io("rename", &reserve.path, e))?;
        if sound!(true, "log: skip the directory sync of a new file") {
            self.durable.directory_barrier(DIR)?;
        }
        self.live.push_back(LiveFile::of(header));
        self.disk().open(&path).map_err(|e| Error::io("open", &path, e))
    }

    fn begin_ready(&mut self) -> ReserveFile {
        self.begun_count += 1;
        self.ready.pop_front().expect("a file that was taken is ready (I4)")
    }

    /// Retires the files that end at or before position `before`, except the last file. Returns the
    /// number of retired files.
    pub(super) fn recycle(&mut self, before: Lsn) -> Result<usize> {
        let mut gone_count = 0;
        while self.live.get(1).is_some_and(|next| next.start <= before) {
            let file = self.live[0];
            self.retire(&path_of(file.sequence), file.key.is_none())?;
            self.live.pop_front();
            gone_count += 1;
        }
        self.trim()?;
        Ok(gone_count)
    }

    /// Removes reserve files that are no longer useful.
    pub(super) fn trim(&mut self) -> Result<()> {
        let mut files = std::mem::take(&mut self.reserve).into_iter();
        let mut keep = |file: ReserveFile| self.keep_or_remove(file.path, file.bytes, file.may_be_plain);
        let trimmed = files.by_ref().try_for_each(&mut keep);
        // If removing a file fails, the next startup removes it, and the remaining files stay in
        // the reserve.
        self.reserve.extend(files);
        trimmed
    }

    /// Returns the files that contain the log from `from` to `end`, each with the end of its needed
    /// part. Both positions must be in files.
    pub(super) fn with_range(&self, from: Lsn, end: Lsn) -> Vec<(LiveFile, Lsn)> {
        let first = self.live.iter().rposition(|file| file.start <= from).unwrap_or(0);
        let files = self.live.range(first..).enumerate();
        let files = files.take_while(|(number, file)| *number == 0 || file.start < end);
        let next_start = |number: usize| self.live.get(first + number + 1).map_or(end, |next| next.start);
        files.map(|(number, file)| (*file, next_start(number).min(end))).collect()
    }

    /// Renames a file to a reserve name, or removes it. A file that a snapshot needs is removed
    /// when the snapshot ends.
    fn retire(&mut self, path: &str, may_be_plain: bool) -> Result<()> {
        if sound!(self.durable.is_pinned(path), "backup: recycle a pinned log file") {
            return self.durable.let_go(path).map(drop).map_err(|e| Error::io("unlink", path, e));
        }
        let bytes = self.disk().open(path).and_then(|f| f.len()).map_err(|e| Error::io("open", path, e))?;
        if !self.has_use_for(bytes) || self.must_go(may_be_plain) {
            return self.remove(path);
        }
        let target = format!("{DIR}/{RESERVE_PREFIX}{}", self.reserve_next);
        self.reserve_next += 1;
        self.disk().rename(path, &target).map_err(|e| Error::io("rename", path, e))?;
        self.reserve.push(ReserveFile { path: target, bytes, may_be_plain });
        Ok(())
    }
}

/// Overwrites a file with zeros. The file keeps its blocks, because on a full disk it might not get
/// new ones (I3).
fn empty(file: &dyn File, bytes: u64) -> std::io::Result<()> {
    if !sound!(true, "encryption: recycle a plain log file") {
        return Ok(());
    }
    if !sound!(true, "encryption: give up the blocks of a plain log file") {
        file.set_len(0)?;
        return file.allocate(bytes);
    }
    reach::mark("plain log file emptied");
    let zeros = vec![0; ZEROS_BYTES.min(bytes) as usize];
    (0..bytes).step_by(ZEROS_BYTES as usize).try_for_each(|at| {
        let zeros = zeros.get(..(bytes - at).min(ZEROS_BYTES) as usize).unwrap_or(&zeros);
        file.write_at(at, zeros)
    })
}

/// Returns whether a file of `bytes` bytes is long enough for `wanted` bytes but not twice as long,
/// which would waste space.
fn fits(bytes: u64, wanted: u64) -> bool {
    (wanted..2 * wanted).contains(&bytes)
}

/// Reads the header of a log file and checks that it is the right file.
pub(super) fn read_header(file: &dyn File, sequence: u64, database: &[u8; 16]) -> Result<FileHeader> {
    let path = path_of(sequence);
    let mut bytes = [0; HEADER_BYTES];
    let len = file.len().map_err(|e| Error::io("read", &path, e))?;
    if len < HEADER_BYTES as u64 {
        return Err(Error::corrupt(&path, format!("the file has only {len} bytes")));
    }
    file.read_at(0, &mut bytes).map_err(|e| Error::io("read", &path, e))?;
    let header = FileHeader::decode(&bytes, &path)?;
    if header.sequence != sequence {
        let detail = format!("the header says that this is log file {}", header.sequence);
        return Err(Error::corrupt(&path, detail));
    }
    if header.database != *database {
        return Err(Error::corrupt(&path, "the file belongs to another database"));
    }
    Ok(header)
}

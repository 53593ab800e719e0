//! Log files: their names, how one comes to be, and where old ones go.
//!
//! Invariants
//!   I1  A file named `<sequence>.log` has a durable header of that sequence. New and recycled
//!       files are prepared under a reserve name and renamed when their header is durable.
//!   I2  Letting go of a file needs no sync. A crash may bring it back under its old name, even
//!       with the header of the file that it became; but its sequence is lower than that of the
//!       file with the oldest position needed, where reading stops to look, and the next startup
//!       lets it go again.
//!   I3  A file is *ready* before an operation begins: it is there, as long as the tail will take
//!       it for, and no frame that was appended before goes to it. So a full disk refuses
//!       statements and not commits (`make_ready`).
//!   I4  Files that are ready are begun in the order in which they were made ready. Those that the
//!       tail has taken stay, however long files should be by now: frames for them exist.

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

/// Directory of the log.
pub(super) const DIR: &str = "wal";

const RESERVE_PREFIX: &str = "reserve-";

/// Zeros that are written at once.
const ZEROS_BYTES: u64 = 1 << 18;

/// Path of a log file.
pub(super) fn path_of(sequence: u64) -> String {
    format!("{DIR}/{sequence:012}.log")
}

/// Sequence numbers of the log files in the directory, ascending.
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
    /// The key that closes it.
    pub(super) key: Option<KeyName>,
}

/// A file that waits to be used.
pub(super) struct ReserveFile {
    path: String,
    bytes: u64,
    /// Whether frames may stand in it that are not closed.
    may_be_plain: bool,
}

impl LiveFile {
    pub(super) fn of(header: &FileHeader) -> Self {
        let FileHeader { sequence, start, closed, .. } = *header;
        Self { sequence, start, key: closed.map(|salt| salt.key) }
    }
}

/// How long files may be, header included.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileLimits {
    pub(super) least_bytes: u64,
    pub(super) most_bytes: u64,
}

/// The files of the log.
pub(super) struct Files {
    durable: Arc<Durable>,
    keys: Arc<Keys>,
    limits: FileLimits,
    /// Old files that wait for their next use, at most, while files are longer than the shortest.
    reserve_max: usize,
    /// How long files should be now.
    usual_bytes: u64,
    live: VecDeque<LiveFile>,
    /// The files that come next (I3): those that the tail has taken, and perhaps one more.
    ready: VecDeque<ReserveFile>,
    /// How many files that were ready have been begun.
    begun_count: u64,
    reserve: Vec<ReserveFile>,
    reserve_next: u64,
}

impl Files {
    /// Takes over the directory as it stands.
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
            // A checkpoint lets go of about a quarter of the log at once.
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

    /// Lets go of files older than the oldest in use, which a crash has brought back.
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

    /// Whether a file with frames that may not be closed is one too many: rows would stand behind
    /// the end of a closed file, or in the reserve (E6).
    fn must_go(&self, may_be_plain: bool) -> bool {
        sound!(may_be_plain && self.keys.of_log().is_some(), "encryption: recycle a plain log file")
    }

    /// The keys of the files in use.
    pub(super) fn keys_in_use(&self) -> impl Iterator<Item = KeyName> + '_ {
        self.live.iter().filter_map(|file| file.key)
    }

    /// Whether one more file of this length is to be kept.
    fn has_use_for(&self, bytes: u64) -> bool {
        let FileLimits { least_bytes, most_bytes } = self.limits;
        if self.durable.space().is_short() {
            return self.reserve.is_empty() && bytes <= 2 * least_bytes;
        }
        // With little to log, an old file at a time is let go.
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

    /// Number of files in use and of those that wait.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.live.len(), self.ready.len() + self.reserve.len())
    }

    /// Makes sure that a file is ready beside those `taken_count` that have been taken, of `bytes`,
    /// or on a full disk at least of `least_bytes`. Returns what it has room for, at most `bytes`.
    /// `DiskFull` when there is no space for one beside the part of the reserve that `stays`.
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

    /// Makes `file` ready, with room for `bytes`, instead of the one that is, which goes into the
    /// reserve. Not while one that has been taken is not begun: then `file` goes there, and the
    /// answer is false (I4).
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

    /// A file of the reserve for `bytes`, or a new one. On a full disk any that is long enough, or
    /// one of half that length and so on, down to `least_bytes`.
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
            // Frames that are written need it, whatever else is promised.
            Reserve::Nothing => self.durable.space().make_way(bytes),
            _ => self.durable.space().take(bytes, stays)?,
        }
        let path = format!("{DIR}/{RESERVE_PREFIX}{}", self.reserve_next);
        self.reserve_next += 1;
        let file = self.disk().create(&path).map_err(|e| Error::io("create", &path, e))?;
        if let Err(error) = file.allocate(bytes) {
            // Nothing relies on the file; if it cannot even be removed, the next startup does it.
            let _ = self.disk().unlink(&path);
            let error = Error::io("allocate", path, error);
            if matches!(error, Error::DiskFull(_)) {
                self.durable.space().was_refused(bytes);
            }
            return Err(error);
        }
        Ok(ReserveFile { path, bytes, may_be_plain: false })
    }

    /// Starts the file of `opening`. The caller has made the file before durable (L3).
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

    /// Lets go of the files that end at or before `before`; the last one always stays. Returns how
    /// many went.
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

    /// Removes files of the reserve for which there is no use any more.
    pub(super) fn trim(&mut self) -> Result<()> {
        let mut files = std::mem::take(&mut self.reserve).into_iter();
        let mut keep = |file: ReserveFile| self.keep_or_remove(file.path, file.bytes, file.may_be_plain);
        let trimmed = files.by_ref().try_for_each(&mut keep);
        // One that failed is left to the next startup; the others stay.
        self.reserve.extend(files);
        trimmed
    }

    /// The files with the log from `from` to `end`, both of which are in files, and where what is
    /// wanted of each ends.
    pub(super) fn with_range(&self, from: Lsn, end: Lsn) -> Vec<(LiveFile, Lsn)> {
        let first = self.live.iter().rposition(|file| file.start <= from).unwrap_or(0);
        let files = self.live.range(first..).enumerate();
        let files = files.take_while(|(number, file)| *number == 0 || file.start < end);
        let next_start = |number: usize| self.live.get(first + number + 1).map_or(end, |next| next.start);
        files.map(|(number, file)| (*file, next_start(number).min(end))).collect()
    }

    /// Renames a file into the reserve, or removes it; one that a snapshot needs is held.
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

/// Writes zeros over all that stands in a file. Its blocks stay its own: on a full disk it might
/// get no others (I3).
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

/// Whether a file of this length is one for `wanted` bytes: a longer one would hold space for
/// nothing.
fn fits(bytes: u64, wanted: u64) -> bool {
    (wanted..2 * wanted).contains(&bytes)
}

/// Reads the header of a log file and checks that it belongs there.
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

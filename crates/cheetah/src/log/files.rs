//! Log files: their names, how one comes to be, and where old ones go.
//!
//! Invariants
//!   I1  A file named `<sequence>.log` has a durable header of that sequence. New and recycled
//!       files are prepared under a reserve name and renamed when their header is durable.
//!   I2  Letting go of a file needs no sync. A crash may bring it back under its old name, even
//!       with the header of the file that it became; but its sequence is lower than that of the
//!       file with the oldest position needed, where reading stops to look, and the next startup
//!       lets it go again.
//!   I3  Reserve files of at least the usual size exist before they are needed, so that a full disk
//!       refuses statements and not commits (`prepare_reserve`).

use crate::base::{planted, Error, Lsn, Result};
use crate::durable::Durable;
use crate::format::log_frame::{FileHeader, HEADER_BYTES};
use cheetah_io::{Disk, File};
use std::collections::VecDeque;
use std::sync::Arc;

/// Directory of the log.
pub(super) const DIR: &str = "wal";

const RESERVE_PREFIX: &str = "reserve-";

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
}

/// A file that waits to be used.
struct ReserveFile {
    path: String,
    bytes: u64,
}

/// The files of the log.
pub(super) struct Files {
    durable: Arc<Durable>,
    file_bytes: u64,
    reserve_max: usize,
    live: VecDeque<LiveFile>,
    reserve: Vec<ReserveFile>,
    reserve_next: u64,
}

impl Files {
    /// Takes over the directory as it stands.
    pub(super) fn adopt(
        durable: Arc<Durable>,
        file_bytes: u64,
        bytes_max: u64,
        live: Vec<LiveFile>,
    ) -> Result<Self> {
        // A checkpoint lets go of about a quarter of the log at once.
        let reserve_max = (bytes_max / 4 / file_bytes.max(1)).clamp(1, 16) as usize + 1;
        let live = live.into();
        let mut files = Self { durable, file_bytes, reserve_max, live, reserve: Vec::new(), reserve_next: 0 };
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
            self.keep_or_remove(path, len)?;
        }
        Ok(())
    }

    /// Lets go of files older than the oldest in use, which a crash has brought back.
    fn retire_older(&mut self) -> Result<()> {
        let Some(oldest) = self.live.front().map(|file| file.sequence) else { return Ok(()) };
        for sequence in sequences(self.disk())?.into_iter().filter(|sequence| *sequence < oldest) {
            self.retire(&path_of(sequence))?;
        }
        Ok(())
    }

    fn disk(&self) -> &dyn Disk {
        self.durable.disk()
    }

    /// Whether a file of this length is worth keeping.
    fn is_usual(&self, bytes: u64) -> bool {
        (self.file_bytes..=2 * self.file_bytes).contains(&bytes)
    }

    fn keep_or_remove(&mut self, path: String, bytes: u64) -> Result<()> {
        if self.is_usual(bytes) && self.reserve.len() < self.reserve_max {
            self.reserve.push(ReserveFile { path, bytes });
            return Ok(());
        }
        self.disk().unlink(&path).map_err(|e| Error::io("unlink", path, e))
    }

    /// The last of the files in use.
    #[cfg(feature = "planted-bugs")]
    pub(super) fn last(&self) -> Option<LiveFile> {
        self.live.back().copied()
    }

    /// Number of files in use and of those that wait.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.live.len(), self.reserve.len())
    }

    /// Makes sure that a file waits. `DiskFull` when there is no space for one.
    pub(super) fn prepare_reserve(&mut self) -> Result<()> {
        if self.reserve.is_empty() {
            let file = self.create_reserve(self.file_bytes)?;
            self.reserve.push(file);
        }
        Ok(())
    }

    fn create_reserve(&mut self, bytes: u64) -> Result<ReserveFile> {
        let path = format!("{DIR}/{RESERVE_PREFIX}{}", self.reserve_next);
        self.reserve_next += 1;
        let file = self.disk().create(&path).map_err(|e| Error::io("create", &path, e))?;
        if let Err(error) = file.allocate(bytes) {
            // Nothing relies on the file; if it cannot even be removed, the next startup does it.
            let _ = self.disk().unlink(&path);
            return Err(Error::io("allocate", path, error));
        }
        Ok(ReserveFile { path, bytes })
    }

    /// Starts the file of `header`, with room for `bytes` in all. The caller has made the file
    /// before durable (L3).
    pub(super) fn start(&mut self, header: &FileHeader, bytes: u64) -> Result<Arc<dyn File>> {
        let found = self.reserve.iter().position(|reserve| reserve.bytes >= bytes);
        let reserve = match found {
            Some(position) => self.reserve.swap_remove(position),
            None => self.create_reserve(bytes)?,
        };
        let file = self.disk().open(&reserve.path).map_err(|e| Error::io("open", &reserve.path, e))?;
        file.write_at(0, &header.encode()).map_err(|e| Error::io("write", &reserve.path, e))?;
        self.durable.log_barrier(&*file, &reserve.path)?;
        let path = path_of(header.sequence);
        self.disk().rename(&reserve.path, &path).map_err(|e| Error::io("rename", &reserve.path, e))?;
        if !planted::is_on("log: skip the directory sync of a new file") {
            self.durable.directory_barrier(DIR)?;
        }
        self.live.push_back(LiveFile { sequence: header.sequence, start: header.start });
        self.disk().open(&path).map_err(|e| Error::io("open", &path, e))
    }

    /// Lets go of the files that end at or before `before`; the last one always stays. Returns how
    /// many went.
    pub(super) fn recycle(&mut self, before: Lsn) -> Result<usize> {
        let mut gone_count = 0;
        while self.live.get(1).is_some_and(|next| next.start <= before) {
            self.retire(&path_of(self.live[0].sequence))?;
            self.live.pop_front();
            gone_count += 1;
        }
        Ok(gone_count)
    }

    /// Renames a file into the reserve, or removes it.
    fn retire(&mut self, path: &str) -> Result<()> {
        let bytes = self.disk().open(path).and_then(|f| f.len()).map_err(|e| Error::io("open", path, e))?;
        if !self.is_usual(bytes) || self.reserve.len() >= self.reserve_max {
            return self.disk().unlink(path).map_err(|e| Error::io("unlink", path, e));
        }
        let target = format!("{DIR}/{RESERVE_PREFIX}{}", self.reserve_next);
        self.reserve_next += 1;
        self.disk().rename(path, &target).map_err(|e| Error::io("rename", path, e))?;
        self.reserve.push(ReserveFile { path: target, bytes });
        Ok(())
    }
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

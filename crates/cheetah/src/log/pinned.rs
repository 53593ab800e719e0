//! The part of the log that a snapshot of the database needs: from the position at which redo of
//! its epoch starts to the position of the snapshot.

use super::files::{path_of, read_header, LiveFile};
use super::frames::{Frame, FrameReader};
use super::writer::Log;
use crate::base::{sound, Error, Lsn, Result};
use crate::format::encryption::KeyName;
use crate::format::log_frame::{is_closed, put_frame, HEADER_BYTES, KIND_SYNC_MARK};
use crate::keys::Keys;
use cheetah_io::Disk;

/// A log file, and the part of it that is needed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PinnedFile {
    /// Its path.
    pub path: String,
    sequence: u64,
    start: Lsn,
    end: Lsn,
}

impl PinnedFile {
    fn new((file, end): (LiveFile, Lsn)) -> Self {
        Self { path: path_of(file.sequence), sequence: file.sequence, start: file.start, end }
    }

    /// The length of the file's beginning up to the end of the needed part.
    pub fn bytes(&self) -> u64 {
        HEADER_BYTES as u64 + (self.end.0 - self.start.0)
    }
}

/// A range of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PinnedLog {
    /// The position at which redo starts.
    pub from: Lsn,
    /// The end of the log, which is the end of a frame.
    pub end: Lsn,
    /// The files, oldest first.
    pub files: Vec<PinnedFile>,
}

impl Log {
    /// Returns the part of the log from `from`, at which redo of a committed epoch starts, to its
    /// durable end. Its files exist now. A reader must pin them before the next epoch commits
    /// (durability::Z2). Waits for files that are being created, but does no I/O itself.
    pub fn durable_since(&self, from: Lsn) -> PinnedLog {
        let end =
            if sound!(true, "backup: cut the log at the checkpoint") { self.durable_end() } else { from };
        debug_assert!(from <= end, "Z1: the log of a snapshot reaches its epoch");
        let files = self.files.lock().with_range(from, end);
        PinnedLog { from, end, files: files.into_iter().map(PinnedFile::new).collect() }
    }

    /// The keys that encrypt the files in use.
    pub fn keys_in_use(&self) -> Vec<KeyName> {
        self.files.lock().keys_in_use().collect()
    }
}

impl PinnedLog {
    /// Passes the frames to `apply`, in order; returns the chain at the end. Returns `Corruption`
    /// if a frame is missing. Blocks for I/O.
    pub fn read(
        &self,
        disk: &dyn Disk,
        keys: &Keys,
        mut apply: impl FnMut(Frame<'_>) -> Result<()>,
    ) -> Result<u32> {
        let mut chain = 0;
        for file in &self.files {
            let open = disk.open(&file.path).map_err(|e| Error::io("open", &file.path, e))?;
            let header = read_header(&*open, file.sequence, keys.database())?;
            let mut reader = FrameReader::new(open, header, keys)?;
            while reader.end < file.end {
                let Some(frame) = reader.next()? else { break };
                if frame.start >= self.from && frame.kind != KIND_SYNC_MARK {
                    apply(frame)?;
                }
            }
            if reader.end != file.end {
                let detail =
                    format!("bad frame at {}, but the log was durable up to {}", reader.end, self.end);
                return Err(Error::corrupt(&file.path, detail));
            }
            chain = reader.chain;
        }
        Ok(chain)
    }
}

/// Encodes `records`, each of which begins with its kind, as frames that continue `chain`. No
/// record may be of an encrypted kind, because the database writes other frames at the same
/// positions (durability::E5).
pub fn frames_behind(mut chain: u32, records: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut frames = Vec::new();
    for record in records {
        if let Some((kind, body)) = record.split_first() {
            debug_assert!(!is_closed(*kind), "E5: no record behind a position is encrypted");
            chain = put_frame(&mut frames, chain, *kind, body);
        }
    }
    frames
}

//! One segment file: its lengths, and the open file.
//!
//! Invariants
//!   F1  Bytes `0..written_bytes` are in the file (not necessarily durable); later bytes are in the
//!       tail of its stream.
//!   F2  A sealed file has nothing in the tail and is never written. Only such a file may be closed
//!       and reopened.
//! Locks     `handle`, taken to copy or change it, and never held across I/O (durability::T7).

use super::tail::TailFile;
use super::{Location, Stream};
use crate::base::{sound, Error, Result, SegmentId};
use crate::durable::Durable;
use cheetah_io::File;
use parking_lot::RwLock;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;

pub(super) struct SegmentFile {
    pub(super) id: SegmentId,
    pub(super) path: String,
    /// The stream whose tail holds its last bytes, or `None` for a file of an earlier startup.
    pub(super) stream: Option<Stream>,
    written_bytes: AtomicU32,
    /// The open file, if it is open.
    handle: RwLock<Option<Arc<dyn File>>>,
    used: AtomicBool,
}

impl TailFile for Arc<SegmentFile> {
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(self, other)
    }

    fn set_written_bytes(&self, bytes: u32) {
        self.written_bytes.store(bytes, Ordering::Release);
    }
}

pub(super) const DIR: &str = "seg";

pub(super) fn path(id: SegmentId) -> String {
    format!("{DIR}/{:08}.seg", id.0)
}

pub(super) fn missing(path: &str) -> Error {
    Error::corrupt(path, "the segment file is missing")
}

pub(super) fn parse_name(name: &str) -> Option<SegmentId> {
    let id = SegmentId(name.strip_suffix(".seg")?.parse().ok()?);
    (path(id).strip_prefix(DIR)?.strip_prefix('/')? == name).then_some(id)
}

impl SegmentFile {
    /// Creates a new, empty file, which is open.
    pub(super) fn create(durable: &Durable, id: SegmentId, stream: Stream) -> Result<Self> {
        let path = path(id);
        let file = durable.disk().create(&path).map_err(|e| Error::io("create", &path, e))?;
        Ok(Self::new(id, path, Some(stream), 0, Some(file)))
    }

    /// Returns an existing file, which is sealed, and its length. The file is opened again when it
    /// is read.
    pub(super) fn existing(durable: &Durable, id: SegmentId) -> Result<(Self, u64)> {
        let path = path(id);
        let file = durable.disk().open(&path).map_err(|e| Error::io("open", &path, e))?;
        let bytes = file.len().map_err(|e| Error::io("length", &path, e))?;
        let written = u32::try_from(bytes).map_err(|_| Error::corrupt(&path, "longer than any segment"))?;
        Ok((Self::new(id, path, None, written, None), bytes))
    }

    fn new(
        id: SegmentId,
        path: String,
        stream: Option<Stream>,
        written_bytes: u32,
        handle: Option<Arc<dyn File>>,
    ) -> Self {
        let (written_bytes, used) = (AtomicU32::new(written_bytes), AtomicBool::new(false));
        Self { id, path, stream, written_bytes, handle: RwLock::new(handle), used }
    }

    /// Returns the open file, and whether this call opened it. Only one of several concurrent calls
    /// gets `true`. If this call opens the file, `is_cached` says whether reads go through the page
    /// cache.
    pub(super) fn opened(&self, durable: &Durable, is_cached: bool) -> Result<(Arc<dyn File>, bool)> {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        if let Some(file) = self.handle.read().as_ref() {
            return Ok((file.clone(), false));
        }
        let disk = durable.disk();
        let opened = if is_cached { disk.open(&self.path) } else { disk.open_uncached(&self.path) };
        let file = opened.map_err(|e| match e.kind() {
            ErrorKind::NotFound => missing(&self.path),
            _ => Error::io("open", &self.path, e),
        })?;
        let mut handle = self.handle.write();
        match handle.as_ref() {
            Some(other) => Ok((other.clone(), false)),
            None => {
                *handle = Some(file.clone());
                Ok((file, true))
            }
        }
    }

    /// Returns whether the file was used since the last call.
    pub(super) fn take_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    /// Drops the file from the page cache, and closes it like [`close`](Self::close).
    pub(super) fn leave_cache(&self) {
        self.kept_open().leave_cache();
        self.close();
    }

    /// Closes the file once its current users are done.
    pub(super) fn close(&self) {
        let closed = self.handle.write().take();
        drop(closed);
    }

    /// Returns the open file of a segment that is being written or not synced yet.
    fn kept_open(&self) -> Arc<dyn File> {
        let handle = self.handle.read();
        Arc::clone(handle.as_ref().expect("I1 of handles: a file that is written or unsynced stays open"))
    }

    /// Writes bytes at `start`, and starts their writeback to the device.
    pub(super) fn write_at(&self, start: u32, bytes: &[u8]) -> Result<()> {
        let file = self.kept_open();
        let start = u64::from(start);
        assert!(
            !sound!(start != self.written_bytes(), "segment: count a half as written before it is"),
            "F1: a half is written where the file ends"
        );
        file.write_at(start, bytes).map_err(|e| Error::io("write", &self.path, e))?;
        file.start_writeback(start, bytes.len() as u64);
        Ok(())
    }

    pub(super) fn sync(&self, durable: &Durable) -> Result<()> {
        let file = self.kept_open();
        durable.segment_barrier(&*file, &self.path)
    }

    /// Bytes that are in the file (F1).
    pub(super) fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Acquire).into()
    }

    /// Returns whether all bytes at `location` are in the file.
    pub(super) fn has(&self, location: &Location) -> bool {
        location.end() <= self.written_bytes()
    }

    /// Reads from the file. Fails with `Corruption` if the file ends early.
    pub(super) fn read_at(&self, file: &dyn File, offset: u64, bytes: &mut [u8]) -> Result<()> {
        file.read_at(offset, bytes).map_err(|e| match e.kind() {
            ErrorKind::UnexpectedEof => Error::corrupt(&self.path, "the file ends early"),
            _ => Error::io("read", &self.path, e),
        })
    }
}

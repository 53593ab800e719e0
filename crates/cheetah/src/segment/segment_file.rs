//! One segment file: its bytes on disk, and the newest of them that are still in the write buffer.
//!
//! Invariants
//!   F1  Bytes `0..buffer.start` are in the file (not necessarily durable), `buffer` follows.
//!   F2  A failed write leaves the buffer as it was: its images stay readable and are written
//!       later.
//!   F3  A sealed file has no buffer and is never written. Only such a file may be closed and
//!       opened again.

use super::Location;
use crate::base::{Error, Result, SegmentId};
use crate::durable::Durable;
use crate::format::control::Identity;
use crate::format::segment_header::{SegmentHeader, HEADER_BYTES};
use cheetah_io::File;
use parking_lot::Mutex;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// See the module.
pub(super) struct SegmentFile {
    pub(super) id: SegmentId,
    pub(super) path: String,
    pub(super) buffer: Mutex<Buffer>,
    /// The open file, if it is open.
    handle: Mutex<Option<Arc<dyn File>>>,
    /// Read since `take_used`.
    used: AtomicBool,
}

/// Bytes that are not in the file yet.
#[derive(Default)]
pub(super) struct Buffer {
    start: u32,
    bytes: Vec<u8>,
}

impl Buffer {
    /// Position after the last byte.
    pub(super) fn end(&self) -> u32 {
        self.start + self.bytes.len() as u32
    }

    /// Bytes held.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds `image` at `offset`, at or after the end; the gap is zero.
    pub(super) fn put(&mut self, offset: u32, image: &[u8]) {
        assert!(offset >= self.end(), "F1: segments are appended to");
        self.bytes.resize((offset - self.start) as usize, 0);
        self.bytes.extend_from_slice(image);
    }

    fn image(&self, location: &Location) -> Option<&[u8]> {
        let from = location.offset.checked_sub(self.start)? as usize;
        self.bytes.get(from..)?.get(..location.stored_bytes as usize)
    }
}

/// Directory of the segment files.
pub(super) const DIR: &str = "seg";

/// Name of a segment's file.
pub(super) fn path(id: SegmentId) -> String {
    format!("{DIR}/{:08}.seg", id.0)
}

/// The segment that a file name stands for.
pub(super) fn parse_name(name: &str) -> Option<SegmentId> {
    let id = SegmentId(name.strip_suffix(".seg")?.parse().ok()?);
    (path(id).strip_prefix(DIR)?.strip_prefix('/')? == name).then_some(id)
}

impl SegmentFile {
    /// A new file with its header in the buffer, which is to use the memory of `bytes`.
    pub(super) fn create(
        durable: &Durable,
        id: SegmentId,
        identity: &Identity,
        stream: u8,
        mut bytes: Vec<u8>,
    ) -> Result<Self> {
        let path = path(id);
        let file = durable.disk().create(&path).map_err(|e| Error::io("create", &path, e))?;
        let header =
            SegmentHeader { uuid: identity.uuid, segment: id, incarnation: identity.incarnation, stream };
        bytes.clear();
        bytes.extend_from_slice(&header.encode());
        let buffer = Mutex::new(Buffer { start: 0, bytes });
        Ok(Self { id, path, buffer, handle: Mutex::new(Some(file)), used: AtomicBool::new(false) })
    }

    /// An existing file, sealed, and its length. It is opened again when it is read.
    pub(super) fn existing(durable: &Durable, id: SegmentId) -> Result<(Self, u64)> {
        let path = path(id);
        let file = durable.disk().open(&path).map_err(|e| Error::io("open", &path, e))?;
        let bytes = file.len().map_err(|e| Error::io("length", &path, e))?;
        let start = u32::try_from(bytes).map_err(|_| Error::corrupt(&path, "longer than any segment"))?;
        let buffer = Mutex::new(Buffer { start, bytes: Vec::new() });
        Ok((Self { id, path, buffer, handle: Mutex::new(None), used: AtomicBool::new(false) }, bytes))
    }

    /// The open file; the second value says whether it had to be opened.
    pub(super) fn opened(&self, durable: &Durable) -> Result<(Arc<dyn File>, bool)> {
        self.used.store(true, Ordering::Relaxed);
        let mut handle = self.handle.lock();
        if let Some(file) = handle.as_ref() {
            return Ok((file.clone(), false));
        }
        let file = durable.disk().open(&self.path).map_err(|e| match e.kind() {
            ErrorKind::NotFound => Error::corrupt(&self.path, "the page map names it, but it is missing"),
            _ => Error::io("open", &self.path, e),
        })?;
        *handle = Some(file.clone());
        Ok((file, true))
    }

    /// Whether it was read since the last call.
    pub(super) fn take_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    /// Closes the file, once those that use it just now are done.
    pub(super) fn close(&self) {
        *self.handle.lock() = None;
    }

    /// Checks that the file is what its name says.
    pub(super) fn check_header(&self, file: &dyn File, uuid: &[u8; 16]) -> Result<()> {
        let mut bytes = [0; HEADER_BYTES];
        self.read_at(file, 0, &mut bytes)?;
        let header = SegmentHeader::decode(&bytes).map_err(|defect| defect.in_place(&self.path))?;
        if header.segment != self.id || &header.uuid != uuid {
            return Err(Error::corrupt(&self.path, "belongs to another database or another place"));
        }
        Ok(())
    }

    /// Writes the buffer to the file. True if there was anything to write.
    pub(super) fn write_out(&self, durable: &Durable, buffer: &mut Buffer) -> Result<bool> {
        if buffer.bytes.is_empty() {
            return Ok(false);
        }
        let (file, _) = self.opened(durable)?;
        let start = u64::from(buffer.start);
        file.write_at(start, &buffer.bytes).map_err(|e| Error::io("write", &self.path, e))?;
        file.start_writeback(start, buffer.bytes.len() as u64);
        buffer.start = buffer.end();
        buffer.bytes.clear();
        Ok(true)
    }

    /// Takes the memory of the buffer, which is empty.
    pub(super) fn take_buffer(&self) -> Vec<u8> {
        let mut buffer = self.buffer.lock();
        debug_assert!(buffer.bytes.is_empty(), "F3");
        std::mem::take(&mut buffer.bytes)
    }

    /// Makes what has been written out durable.
    pub(super) fn sync(&self, durable: &Durable) -> Result<()> {
        let (file, _) = self.opened(durable)?;
        durable.segment_barrier(&*file, &self.path)
    }

    /// The bytes at `location` in `image`, if they are still in the buffer. Corruption when the
    /// file ends before them.
    pub(super) fn read_buffer(&self, location: &Location, image: &mut Vec<u8>) -> Result<bool> {
        image.clear();
        let buffer = self.buffer.lock();
        if location.end() > u64::from(buffer.end()) {
            let detail = format!("image at {} lies beyond the end at {}", location.offset, buffer.end());
            return Err(Error::corrupt(&self.path, detail));
        }
        let found = buffer.image(location);
        found.inspect(|bytes| image.extend_from_slice(bytes));
        Ok(found.is_some())
    }

    /// Bytes that are in the file (F1).
    pub(super) fn written_bytes(&self) -> u64 {
        self.buffer.lock().start.into()
    }

    /// Bytes of the file itself.
    pub(super) fn read_at(&self, file: &dyn File, offset: u64, bytes: &mut [u8]) -> Result<()> {
        file.read_at(offset, bytes).map_err(|e| match e.kind() {
            ErrorKind::UnexpectedEof => Error::corrupt(&self.path, "the file ends early"),
            _ => Error::io("read", &self.path, e),
        })
    }
}

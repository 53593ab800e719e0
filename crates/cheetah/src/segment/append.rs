//! Appends images, and writes out full halves to make space in a tail.

use super::segment_file::SegmentFile;
use super::tail::{End, Put, Tail, Write};
use super::{placement, Location, Segments, Stream};
use crate::base::{sound, Error, Result, SegmentId};
use crate::format::image;
use crate::format::location::address;
use crate::format::segment_header::{SegmentHeader, HEADER_BYTES};
use parking_lot::Mutex;
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// A segment ID has 27 bits.
const SEGMENT_MAX: u32 = (1 << 27) - 1;
/// While space is short, a new segment has at most the bytes of the reserve divided by
/// `SHORT_PART`, or [`SHORT_BYTES_MIN`] if that is more.
const SHORT_PART: u64 = 8;
const SHORT_BYTES_MIN: u64 = 1 << 20;

/// A stream: the segment that it appends to, and the part of that segment that is not in the file
/// yet.
pub(super) struct OpenStream {
    /// Only one thread at a time appends to a stream. It holds this lock.
    open: Mutex<Option<OpenSegment>>,
    pub(super) tail: Tail<Arc<SegmentFile>>,
}

struct OpenSegment {
    file: Arc<SegmentFile>,
    end: u32,
    /// The length at which the segment is full.
    full_bytes: u64,
}

/// A write of a half, which the caller performs after releasing its locks.
type PendingWrite<'t> = Option<Write<'t, Arc<SegmentFile>>>;

impl OpenStream {
    /// A stream without an open segment.
    pub(super) fn new(half_bytes: usize) -> Self {
        Self { open: Mutex::default(), tail: Tail::new(half_bytes) }
    }
}

impl Segments {
    /// Appends an image, writes its address and checksum into it, and counts it as live. The caller
    /// must install or release the location. The image is readable at once, and durable after
    /// `sync`. May write half of the stream's tail to its file. After `DiskFull` or `Io` no image
    /// was added, but the open segment may have ended.
    pub fn append(&self, stream: Stream, image: &mut [u8]) -> Result<Location> {
        self.durable.health().check()?;
        let limit = self.segment_bytes - HEADER_BYTES as u64;
        if image.len() as u64 > limit {
            return Err(Error::Limit { what: "bytes of an image", actual: image.len() as u64, limit });
        }
        let mut open = self.stream(stream).open.lock();
        let (location, write) = self.append_to(stream, &mut open, image)?;
        self.table.lock().appended(&location);
        drop(open);
        if let Some(write) = write {
            // The image is already in the tail. If the write fails, the half stays full, and the
            // next thread that needs the space or syncs repeats the write (T4).
            let _kept = self.write(write);
        }
        Ok(location)
    }

    fn append_to(
        &self,
        stream: Stream,
        open: &mut Option<OpenSegment>,
        image: &mut [u8],
    ) -> Result<(Location, PendingWrite<'_>)> {
        if let Some(segment) = open.as_mut() {
            let image_bytes = image.len() as u32;
            let offset = placement::place(segment.end, image_bytes);
            if u64::from(offset) + u64::from(image_bytes) <= segment.full_bytes {
                let location = seal(image, segment.file.id, offset);
                let write = self.put(stream, offset, image)?;
                self.durable.space().appended(u64::from(offset + image_bytes - segment.end));
                segment.end = offset + image_bytes;
                return Ok((location, write));
            }
        }
        self.start_segment(stream, open, image)
    }

    /// Ends the open segment and appends the image to a new one.
    fn start_segment(
        &self,
        stream: Stream,
        open: &mut Option<OpenSegment>,
        image: &mut [u8],
    ) -> Result<(Location, PendingWrite<'_>)> {
        let write = self.end_segment(stream, open)?;
        let image_bytes = image.len() as u32;
        let file = Arc::new(self.create(stream)?);
        let offset = placement::place(HEADER_BYTES as u32, image_bytes);
        let location = seal(image, file.id, offset);
        self.files.write().insert(file.id, file.clone());
        self.table.lock().add_open(file.clone());
        self.stream(stream).tail.start(file.clone(), &self.header(&file, stream), offset, image);
        self.durable.space().appended(u64::from(offset + image_bytes));
        // IDs are not reused, so once half of them are used, segments are made as long as possible.
        let full_bytes = match file.id.0 > SEGMENT_MAX / 2 {
            true => self.segment_bytes,
            false => self.table.lock().full_bytes(self.longest_bytes()),
        };
        *open = Some(OpenSegment { file, end: offset + image_bytes, full_bytes });
        Ok((location, write))
    }

    /// The maximum length of a segment that is started now. It is small if space is short, because
    /// collecting a long segment would need too much space.
    fn longest_bytes(&self) -> u64 {
        let space = self.durable.space();
        match space.is_short() {
            true => self.segment_bytes.min((space.reserve_bytes() / SHORT_PART).max(SHORT_BYTES_MIN)),
            false => self.segment_bytes,
        }
    }

    fn put(&self, stream: Stream, offset: u32, image: &[u8]) -> Result<PendingWrite<'_>> {
        loop {
            match self.stream(stream).tail.put(offset, image) {
                Put::Done(write) => return Ok(write),
                Put::After(write) => self.write(write)?,
            }
        }
    }

    /// Ends the open segment of a stream, if there is one. Its last write seals it (T6).
    fn end_segment(&self, stream: Stream, open: &mut Option<OpenSegment>) -> Result<PendingWrite<'_>> {
        let Some(segment) = open.as_ref() else { return Ok(None) };
        let file = segment.file.clone();
        let ended = loop {
            match self.stream(stream).tail.end() {
                End::After(write) => self.write(write)?,
                ended => break ended,
            }
        };
        *open = None;
        if !sound!(true, "segment: seal before the last half is written") {
            self.table.lock().seal(file.id);
        }
        match ended {
            End::Last(write) => Ok(write),
            _ => {
                self.table.lock().seal(file.id);
                Ok(None)
            }
        }
    }

    fn create(&self, stream: Stream) -> Result<SegmentFile> {
        // The ID is used up even if the creation fails, because IDs are never reused.
        let id = self.next_segment.fetch_add(1, Ordering::AcqRel);
        if id > SEGMENT_MAX {
            return Err(Error::Limit {
                what: "segments ever created",
                actual: id.into(),
                limit: SEGMENT_MAX.into(),
            });
        }
        SegmentFile::create(&self.durable, SegmentId(id), stream)
    }

    fn header(&self, file: &SegmentFile, stream: Stream) -> [u8; HEADER_BYTES] {
        let (uuid, incarnation) = (self.identity.uuid, self.identity.incarnation);
        SegmentHeader { uuid, segment: file.id, incarnation, stream: stream as u8 }.encode()
    }

    /// Writes the full half of a tail to its file, without holding locks that readers take
    /// (durability::T7).
    pub(super) fn write(&self, write: Write<'_, Arc<SegmentFile>>) -> Result<()> {
        let ended = write.run(|file, start, bytes| {
            file.write_at(start, bytes).inspect_err(|error| self.note_refused(bytes, error))?;
            if !sound!(true, "segment: sync what is appended") {
                let (open, _) = file.opened(&self.durable, true)?;
                self.durable.segment_barrier(&*open, &file.path)?;
            }
            self.durable.space().landed(bytes.len() as u64);
            self.table.lock().wrote(file.id);
            Ok(())
        })?;
        if let Some(file) = ended {
            self.table.lock().seal(file.id);
        }
        Ok(())
    }

    fn note_refused(&self, bytes: &[u8], error: &Error) {
        if matches!(error, Error::DiskFull(_)) {
            self.durable.space().was_refused(bytes.len() as u64);
        }
    }

    /// Writes everything that was appended to the stream before the call to its file.
    pub(super) fn write_tail(&self, stream: Stream) -> Result<()> {
        let tail = &self.stream(stream).tail;
        let goal = tail.goal();
        while let Some(write) = tail.next_write(goal) {
            self.write(write)?;
        }
        Ok(())
    }

    /// Ends open segments with a lot of garbage, so that garbage collection can empty them. Called
    /// when the database is idle and segments would not fill up. Writes their tails to the files.
    pub fn seal_sparse(&self) -> Result<()> {
        for stream in Stream::ALL {
            let mut open = self.stream(stream).open.lock();
            let is_sparse =
                |segment: &OpenSegment| self.table.lock().is_sparse(segment.file.id, self.segment_bytes);
            if !open.as_ref().is_some_and(is_sparse) {
                continue;
            }
            let write = self.end_segment(stream, &mut open)?;
            drop(open);
            if let Some(write) = write {
                self.write(write)?;
            }
        }
        Ok(())
    }

    pub(super) fn stream(&self, stream: Stream) -> &OpenStream {
        &self.streams[stream as usize]
    }
}

/// Writes an image's address and checksum into it.
fn seal(image: &mut [u8], segment: SegmentId, offset: u32) -> Location {
    let crc = image::seal(image, address(segment, offset));
    Location { segment, offset, stored_bytes: image.len() as u32, crc }
}

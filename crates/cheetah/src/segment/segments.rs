//! The segment store: appending, reading, syncing and removing.
//!
//! Locks     stream, then buffer of its open file, then table. None is held across a sync;
//!           `syncing` is, alone.

use super::handles::{Handles, HANDLES_MAX};
use super::segment_file::{self, Buffer, SegmentFile, DIR};
use super::space::{Reserve, Space};
use super::table::{SegmentStat, Table, Totals};
use super::{placement, scan, Image, ImageRef, Location, Stream};
use crate::base::{planted, Config, Epoch, Error, Result, SegmentId};
use crate::durable::Durable;
use crate::format::control::Identity;
use crate::format::image;
use crate::format::segment_header::HEADER_BYTES;
use crate::memory::Shares;
use cheetah_io::File;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;

/// A segment number takes 27 bits.
const SEGMENT_MAX: u32 = (1 << 27) - 1;
/// The largest write buffer of a stream.
const BUFFER_BYTES_MAX: usize = 1 << 20;

/// All segments of a database. Every method may be called from any thread.
pub struct Segments {
    durable: Arc<Durable>,
    identity: Identity,
    segment_bytes: u64,
    buffer_bytes: usize,
    space: Space,
    next_segment: AtomicU32,
    streams: [Mutex<Option<Arc<SegmentFile>>>; 3],
    /// Memory of write buffers for the files that come next.
    spare_buffers: Mutex<Vec<Vec<u8>>>,
    table: Mutex<Table>,
    handles: Handles,
    syncing: Mutex<()>,
    /// The whole map has been retained (S4).
    loaded: AtomicBool,
}

/// What a removal of dead segments has freed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[expect(missing_docs, reason = "named by their unit")]
pub struct Unlinked {
    pub files_count: u64,
    pub bytes: u64,
}

impl Segments {
    /// Opens the segments of a database. Then comes `retain` for every entry of the map, then
    /// `loaded`; until then nothing is unlinked. New segments get numbers from `next_segment` on
    /// (from CONTROL). Reads the directory and the lengths of all files.
    pub fn open(
        durable: Arc<Durable>,
        config: &Config,
        identity: Identity,
        next_segment: SegmentId,
    ) -> Result<Self> {
        let mut table = Table::default();
        let mut next = next_segment.0.max(1);
        for id in segment_ids(&durable)? {
            let (file, bytes) = SegmentFile::existing(&durable, id)?;
            table.add_sealed(Arc::new(file), bytes);
            next = next.max(id.0 + 1);
        }
        let space = Space::new(durable.disk(), config.segment_bytes, table.totals().file_bytes)?;
        let share_bytes = Shares::of(config.buffer_pool_bytes).write_buffers_bytes_max();
        let buffer_bytes = BUFFER_BYTES_MAX.min(share_bytes / Stream::ALL.len());
        Ok(Self {
            durable,
            identity,
            segment_bytes: config.segment_bytes,
            buffer_bytes,
            space,
            next_segment: AtomicU32::new(next),
            streams: Default::default(),
            spare_buffers: Mutex::default(),
            table: Mutex::new(table),
            handles: Handles::new(HANDLES_MAX),
            syncing: Mutex::new(()),
            loaded: AtomicBool::new(false),
        })
    }

    /// Ends the startup: the whole map of epoch `committed` has been retained. Unlinks what it does
    /// not name, that is what a crash or an interrupted removal has left.
    pub fn loaded(&self, committed: Epoch) -> Result<Unlinked> {
        self.loaded.store(true, Ordering::Release);
        self.remove_dead(committed)
    }

    /// Numbers from here on have never been a segment: for CONTROL, read after the `sync` of the
    /// epoch.
    pub fn next_segment(&self) -> SegmentId {
        SegmentId(self.next_segment.load(Ordering::Acquire))
    }

    /// Appends an image, which gets its own address and checksum, and counts it as live: the caller
    /// installs the location or releases it. It is readable at once, and durable after `sync`. May
    /// write the buffer of the stream to its file. Errors: DiskFull and Io leave everything as it
    /// was.
    pub fn append(&self, stream: Stream, image: &mut [u8]) -> Result<Location> {
        self.durable.health().check()?;
        let limit = self.segment_bytes - HEADER_BYTES as u64;
        if image.len() as u64 > limit {
            return Err(Error::Limit { what: "bytes of an image", actual: image.len() as u64, limit });
        }
        let image_bytes = image.len() as u32;
        let mut open = self.streams[stream as usize].lock();
        let file = self.open_segment(stream, &mut open, image_bytes)?;
        let mut buffer = file.buffer.lock();
        let offset = placement::place(buffer.end(), image_bytes);
        let grown = buffer.len() + (offset - buffer.end()) as usize + image.len();
        if grown > self.buffer_bytes {
            self.write_out(&file, &mut buffer)?;
        }
        let address = crate::format::location::address(file.id, offset);
        let crc = image::seal(image, address);
        let location = Location { segment: file.id, offset, stored_bytes: image_bytes, crc };
        buffer.put(offset, image);
        self.table.lock().appended(&location);
        Ok(location)
    }

    /// The open segment of a stream with room for the image; a full one is sealed and a new one
    /// created.
    fn open_segment(
        &self,
        stream: Stream,
        open: &mut Option<Arc<SegmentFile>>,
        image_bytes: u32,
    ) -> Result<Arc<SegmentFile>> {
        if let Some(file) = open.as_ref() {
            let mut buffer = file.buffer.lock();
            let offset = placement::place(buffer.end(), image_bytes);
            if u64::from(offset) + u64::from(image_bytes) <= self.segment_bytes {
                drop(buffer);
                return Ok(file.clone());
            }
            self.write_out(file, &mut buffer)?;
        }
        if let Some(full) = open.take() {
            self.seal(&full);
        }
        let file = Arc::new(self.create(stream)?);
        self.table.lock().add_open(file.clone());
        *open = Some(file.clone());
        Ok(file)
    }

    fn create(&self, stream: Stream) -> Result<SegmentFile> {
        // Claimed even if the creation fails: numbers are never reused.
        let id = self.next_segment.fetch_add(1, Ordering::AcqRel);
        if id > SEGMENT_MAX {
            return Err(Error::Limit {
                what: "segments ever created",
                actual: id.into(),
                limit: SEGMENT_MAX.into(),
            });
        }
        let spare = self.spare_buffers.lock().pop();
        let buffer = spare.unwrap_or_else(|| Vec::with_capacity(self.buffer_bytes));
        SegmentFile::create(&self.durable, SegmentId(id), &self.identity, stream as u8, buffer)
    }

    fn seal(&self, file: &SegmentFile) {
        let mut buffer = file.take_buffer();
        buffer.shrink_to(self.buffer_bytes);
        self.spare_buffers.lock().push(buffer);
        self.table.lock().seal(file.id);
    }

    fn write_out(&self, file: &SegmentFile, buffer: &mut Buffer) -> Result<()> {
        let bytes = buffer.len() as u64;
        if file.write_out(&self.durable, buffer)? {
            self.space.wrote(bytes);
            if let Some(row) = self.table.lock().rows.get_mut(&file.id) {
                row.unsynced = true;
            }
        }
        Ok(())
    }

    /// Reads an image into `bytes` and checks it against its checksum and its own address. Errors:
    /// Corruption when it is not what was written. A caller that does not hold the image live must
    /// look in the map again first.
    pub fn read(&self, image: &ImageRef, bytes: &mut Vec<u8>) -> Result<()> {
        self.read_unchecked(image, bytes)?;
        if !image::is_intact(bytes, image.location.address(), image.location.crc) {
            return Err(Error::corrupt(image.to_string(), "checksum or address of the image is wrong"));
        }
        Ok(())
    }

    /// As [`read`](Self::read) for a caller that checks the image itself.
    pub fn read_unchecked(&self, image: &ImageRef, bytes: &mut Vec<u8>) -> Result<()> {
        let location = &image.location;
        let file = self.file(location.segment)?;
        if !file.read_buffer(location, bytes)? {
            let handle = self.handle(&file)?;
            bytes.resize(location.stored_bytes as usize, 0);
            file.read_at(&*handle, u64::from(location.offset), bytes)?;
        }
        Ok(())
    }

    /// Reads in one go into `bytes` all from the start of image `first` to the end of image `last`,
    /// which lies behind it in the same segment. `Ok(false)` if that is not all in the file yet:
    /// read the images one by one. Nothing is checked.
    pub fn read_span(&self, first: &Location, last: &Location, bytes: &mut Vec<u8>) -> Result<bool> {
        let file = self.file(first.segment)?;
        if last.end() > file.written_bytes() {
            return Ok(false);
        }
        let handle = self.handle(&file)?;
        bytes.resize((last.end() - u64::from(first.offset)) as usize, 0);
        file.read_at(&*handle, u64::from(first.offset), bytes)?;
        Ok(true)
    }

    fn file(&self, segment: SegmentId) -> Result<Arc<SegmentFile>> {
        self.durable.health().check()?;
        let file = self.table.lock().rows.get(&segment).map(|row| row.file.clone());
        file.ok_or_else(|| {
            let path = segment_file::path(segment);
            Error::corrupt(path, "the page map names it, but it is missing")
        })
    }

    /// The open file; may close others.
    fn handle(&self, file: &Arc<SegmentFile>) -> Result<Arc<dyn File>> {
        let (handle, is_new) = file.opened(&self.durable)?;
        if is_new {
            self.handles.add(file.clone());
        }
        Ok(handle)
    }

    /// Makes every image appended before the call durable, with the names of the files.
    pub fn sync(&self) -> Result<()> {
        let _one = self.syncing.lock();
        for stream in &self.streams {
            if let Some(file) = stream.lock().as_ref() {
                self.write_out(file, &mut file.buffer.lock())?;
            }
        }
        let (files, names) = self.take_unsynced();
        for file in files {
            if !planted::is_on("segment: skip the sync of images") {
                file.sync(&self.durable)?;
            }
        }
        if names && !planted::is_on("segment: skip the directory sync of a new file") {
            self.durable.directory_barrier(DIR)?;
        }
        let closable = self.table.lock().take_closable();
        closable.into_iter().for_each(|file| self.handles.add(file));
        Ok(())
    }

    fn take_unsynced(&self) -> (Vec<Arc<SegmentFile>>, bool) {
        let mut table = self.table.lock();
        let mut names = false;
        let mut files = Vec::new();
        for row in table.rows.values_mut().filter(|row| row.unsynced) {
            row.unsynced = false;
            names |= std::mem::take(&mut row.unnamed);
            files.push(row.file.clone());
        }
        (files, names)
    }

    /// Counts an entry of the map as live (S1), while the map is loaded.
    pub fn retain(&self, location: &Location) {
        self.table.lock().retain(location);
    }

    /// Ends the life of an image in the maps from `epoch` on: its replacement, or that the page is
    /// gone, is among the changes of `epoch`; or the image has never been installed (then any
    /// epoch, such as 0, will do).
    ///
    /// # Panics
    /// When more is released than was live: an image that a map needs could be lost.
    pub fn release(&self, location: &Location, epoch: Epoch) {
        self.table.lock().release(location, epoch);
    }

    /// Unlinks segments that no map needs any more (S3), given that `committed` is the last epoch
    /// for which `MapStore::commit` has returned. A file that cannot be removed does no harm and is
    /// tried again by the next call.
    pub fn remove_dead(&self, committed: Epoch) -> Result<Unlinked> {
        self.table.lock().committed(committed);
        let mut unlinked = Unlinked::default();
        if !self.loaded.load(Ordering::Acquire) {
            return Ok(unlinked);
        }
        let dead = self.table.lock().dead(planted::is_on("segment: unlink an epoch too early"));
        let mut failure = Ok(());
        for file in dead {
            match self.durable.disk().unlink(&file.path) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    failure = failure.and(Err(Error::io("unlink", &file.path, e)));
                    continue;
                }
                _ => {}
            }
            let row = self.table.lock().rows.remove(&file.id);
            self.handles.remove(&file);
            unlinked.files_count += 1;
            unlinked.bytes += row.map_or(0, |row| row.end);
        }
        failure.map(|()| unlinked)
    }

    /// The segment that garbage collection should empty next, if any is worth it.
    pub fn victim(&self) -> Option<SegmentId> {
        self.table.lock().victim(self.segment_bytes)
    }

    /// Whether more commits would free a segment or make one a victim, even if nothing else
    /// happens.
    pub fn waits_for_commit(&self) -> bool {
        self.table.lock().waits_for_commit()
    }

    /// Closes open segments that are full of garbage, so that they become victims: for times of
    /// rest, when they would not fill up by themselves. Writes their buffers to the files.
    pub fn seal_sparse(&self) -> Result<()> {
        for stream in &self.streams {
            let mut open = stream.lock();
            let Some(file) = open.as_ref() else { continue };
            if !self.table.lock().is_sparse(file.id, self.segment_bytes) {
                continue;
            }
            self.write_out(file, &mut file.buffer.lock())?;
            if let Some(sparse) = open.take() {
                self.seal(&sparse);
            }
        }
        Ok(())
    }

    /// Takes a segment out of the choice of victims: it could not be emptied (damaged images).
    pub fn quarantine(&self, segment: SegmentId) {
        if let Some(row) = self.table.lock().rows.get_mut(&segment) {
            row.quarantined = true;
        }
    }

    /// Calls `visit` for every intact image of a segment, dead ones included, in the order of
    /// position. Only the map says which are live.
    pub fn iterate(&self, segment: SegmentId, visit: &mut dyn FnMut(Image<'_>) -> Result<()>) -> Result<()> {
        let found = self.table.lock().rows.get(&segment).map(|row| (row.file.clone(), row.open, row.end));
        let Some((file, open, end)) = found else { return Ok(()) };
        if open {
            self.write_out(&file, &mut file.buffer.lock())?;
        }
        scan::scan(&file, &*self.handle(&file)?, end, visit)
    }

    /// Checks that a segment's file says of itself what its name says: for the check of a database.
    pub fn check_header(&self, segment: SegmentId) -> Result<()> {
        let file = self.table.lock().rows.get(&segment).map(|row| row.file.clone());
        file.map_or(Ok(()), |file| file.check_header(&*self.handle(&file)?, &self.identity.uuid))
    }

    /// `Err(DiskFull)` unless `needed_bytes` can be written and so much of the reserve still stays
    /// free. Cheap: the file system is asked only now and then.
    pub fn check_space(&self, needed_bytes: u64, reserve: Reserve) -> Result<()> {
        self.space.check(self.durable.disk(), needed_bytes, reserve)
    }

    /// Notes bytes that were written to the disk, but not to a segment.
    pub fn wrote_beside(&self, bytes: u64) {
        self.space.wrote(bytes);
    }

    /// Bytes that the file system still takes.
    pub fn free_bytes(&self) -> Result<u64> {
        self.durable.disk().free_bytes().map_err(|e| Error::io("free space", "", e))
    }

    /// Memory that the write buffers take at most.
    pub fn buffer_bytes_max(&self) -> usize {
        self.buffer_bytes * Stream::ALL.len()
    }

    /// Bytes that are in the files; what is in write buffers is still to come.
    pub fn written_bytes(&self) -> u64 {
        let files: Vec<_> = self.table.lock().rows.values().map(|row| row.file.clone()).collect();
        files.iter().map(|file| file.written_bytes()).sum()
    }

    /// Sums over all segments.
    pub fn totals(&self) -> Totals {
        self.table.lock().totals()
    }

    /// All segments, oldest first.
    pub fn stats(&self) -> Vec<SegmentStat> {
        self.table.lock().stats()
    }
}

impl std::fmt::Debug for Segments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Segments").field("totals", &self.totals()).finish_non_exhaustive()
    }
}

/// The segments in the directory, ascending. Files with other names are left alone.
fn segment_ids(durable: &Durable) -> Result<Vec<SegmentId>> {
    let disk = durable.disk();
    disk.create_dir(DIR).map_err(|e| Error::io("create", DIR, e))?;
    durable.directory_barrier("")?;
    let names = disk.list(DIR).map_err(|e| Error::io("list", DIR, e))?;
    let mut ids: Vec<_> = names.iter().filter_map(|name| segment_file::parse_name(name)).collect();
    ids.sort_unstable();
    Ok(ids)
}

//! The segment store: reading, syncing and removing segments. Appending is in `append`.
//!
//! Locks, outermost first
//!   `syncing`               one sync, including its I/O.
//!   `open` of a stream      one append; across I/O only while a segment is created or a failed
//!                           write is repeated.
//!   `halves`, `table`, `files`, `handle`, `handles`: one at a time, never across I/O
//!   (durability::T7).

use super::append::OpenStream;
use super::handles::{Handles, HANDLES_MAX};
use super::segment_file::{self, SegmentFile, DIR};
use super::table::{NamedSegment, SegmentStat, Table, Totals};
use super::{scan, Image, ImageBuffer, ImageRef, Location, Stream};
use crate::base::hash::FastMap;
use crate::base::{opaque, sound, Config, Epoch, Error, Result, SegmentId};
use crate::durable::space::{Reserve, SpaceSizes};
use crate::durable::Durable;
use crate::format::control::Identity;
use crate::format::image;
use crate::memory::Shares;
use cheetah_io::aligned::ALIGN_BYTES;
use cheetah_io::{AlignedBytes, File};
use parking_lot::{Mutex, RwLock};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;

/// The maximum size of a stream's tail, both halves together.
const TAIL_BYTES_MAX: usize = 1 << 20;

/// All segments of a database. Every method may be called from any thread.
pub struct Segments {
    pub(super) durable: Arc<Durable>,
    pub(super) identity: Identity,
    pub(super) segment_bytes: u64,
    half_bytes: usize,
    pub(super) next_segment: AtomicU32,
    pub(super) streams: [OpenStream; 3],
    pub(super) table: Mutex<Table>,
    /// The files of the table, for readers.
    pub(super) files: RwLock<FastMap<SegmentId, Arc<SegmentFile>>>,
    handles: Handles,
    /// Whether files that are no longer written are read through the page cache.
    is_cached: bool,
    /// Only one thread at a time syncs: `take_unsynced` clears the marks before the files are
    /// synced, so a concurrent sync would return too early.
    syncing: Mutex<()>,
    /// Whether all entries of the map were retained (S4).
    is_map_retained: AtomicBool,
}

/// The space that was freed by removing dead segments.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[expect(missing_docs, reason = "named by their unit")]
pub struct Unlinked {
    pub files_count: u64,
    pub bytes: u64,
}

impl Segments {
    /// Opens the segments of a database. The caller must then call `retain` for every entry of the
    /// map, and `end_startup`; until then no file is unlinked. The IDs of new segments start at
    /// `next_segment`, which is from CONTROL. Reads the directory and the lengths of all files.
    pub fn open(
        durable: Arc<Durable>,
        config: &Config,
        identity: Identity,
        next_segment: SegmentId,
    ) -> Result<Self> {
        let mut table = Table::default();
        let mut files = FastMap::default();
        let is_sound = sound!(true, "segment: give numbers out again after a startup");
        let mut next = if is_sound { next_segment.0.max(1) } else { 1 };
        for id in segment_ids(&durable)? {
            let (file, bytes) = SegmentFile::existing(&durable, id)?;
            let file = Arc::new(file);
            files.insert(id, file.clone());
            table.add_sealed(file, bytes);
            next = next.max(id.0 + 1);
        }
        let (segment_bytes, log_file_bytes) = (config.segment_bytes, config.log_file_bytes_min);
        durable.space().begin(SpaceSizes { segment_bytes, log_file_bytes })?;
        let share_bytes = Shares::of(config.buffer_pool_bytes).tails_bytes_max();
        let half_bytes = TAIL_BYTES_MAX.min(share_bytes / Stream::ALL.len()) / 2;
        Ok(Self {
            durable,
            identity,
            segment_bytes: config.segment_bytes,
            half_bytes,
            next_segment: AtomicU32::new(next),
            streams: Stream::ALL.map(|_| OpenStream::new(half_bytes)),
            table: Mutex::new(table),
            files: RwLock::new(files),
            handles: Handles::new(HANDLES_MAX),
            is_cached: config.buffers_data_files,
            syncing: Mutex::new(()),
            is_map_retained: AtomicBool::new(false),
        })
    }

    /// Ends the startup. All entries of the map of epoch `committed` must have been retained.
    /// Unlinks segments that the map does not name, which are left over from a crash or an
    /// interrupted removal.
    pub fn end_startup(&self, committed: Epoch) -> Result<Unlinked> {
        self.is_map_retained.store(true, Ordering::Release);
        self.durable.space().end_startup();
        self.remove_dead(committed)
    }

    /// The ID of the next segment, for CONTROL. No segment has had this ID or a higher one. Must be
    /// read after the `sync` of the epoch.
    pub fn next_segment(&self) -> SegmentId {
        SegmentId(self.next_segment.load(Ordering::Acquire))
    }

    /// Reads an image into `bytes` and verifies its checksum and address. Fails with `Corruption`
    /// if it is not the image that was written. An error may also mean that the image was released
    /// concurrently, so the caller must check the map again before reporting damage.
    pub fn read(&self, image: &ImageRef, bytes: &mut ImageBuffer) -> Result<()> {
        self.read_unchecked(image, bytes)?;
        if !image::is_intact(bytes, image.location.address(), image.location.crc) {
            return Err(Error::corrupt(image.to_string(), "checksum or address of the image is wrong"));
        }
        Ok(())
    }

    /// Like [`read`](Self::read), for a caller that checks the image itself.
    pub fn read_unchecked(&self, image: &ImageRef, bytes: &mut ImageBuffer) -> Result<()> {
        let location = &image.location;
        let file = self.file(location.segment)?;
        if !file.has(location) && self.read_tail(&file, location, bytes)? {
            return Ok(());
        }
        let handle = self.handle(&file)?;
        let block_bytes = handle.block_bytes() as u64;
        let offset = u64::from(location.offset);
        let start = offset - offset % block_bytes;
        let end = location.end().next_multiple_of(block_bytes).min(file.written_bytes());
        let (before, image_bytes) = ((offset - start) as usize, location.stored_bytes as usize);
        file.read_at(&*handle, start, bytes.receive(before, image_bytes, (end - start) as usize))
    }

    /// Copies the bytes at `location` to `bytes` and returns true if the tail has them. Returns
    /// false if the file has them (T1). Fails with `Corruption` if neither has them.
    fn read_tail(
        &self,
        file: &Arc<SegmentFile>,
        location: &Location,
        bytes: &mut ImageBuffer,
    ) -> Result<bool> {
        let len = location.stored_bytes as usize;
        let tail = file.stream.map(|stream| &self.stream(stream).tail);
        if tail.is_some_and(|tail| tail.copy(file, location.offset, len, bytes)) {
            return Ok(true);
        }
        if file.has(location) {
            return Ok(false);
        }
        let detail = format!("no image at {} was ever appended", location.offset);
        Err(Error::corrupt(&file.path, detail))
    }

    /// Reads the bytes from the start of image `first` to the end of image `last`, a later image in
    /// the same segment, with one read. `buffer` receives the device blocks that contain these
    /// bytes. Returns `None` if they are not all in the file yet; the caller must then read the
    /// images one by one. Verifies nothing.
    pub fn read_span<'b>(
        &self,
        first: &Location,
        last: &Location,
        buffer: &'b mut AlignedBytes,
    ) -> Result<Option<&'b [u8]>> {
        let file = self.file(first.segment)?;
        if !file.has(last) {
            return Ok(None);
        }
        let handle = self.handle(&file)?;
        let before = first.offset as usize % ALIGN_BYTES;
        let start = u64::from(first.offset) - before as u64;
        let end = last.end().next_multiple_of(ALIGN_BYTES as u64).min(file.written_bytes());
        buffer.resize((end - start) as usize);
        file.read_at(&*handle, start, buffer)?;
        Ok(buffer.get(before..(last.end() - start) as usize))
    }

    fn file(&self, segment: SegmentId) -> Result<Arc<SegmentFile>> {
        self.durable.health().check()?;
        let file = self.files.read().get(&segment).cloned();
        file.ok_or_else(|| segment_file::missing(&segment_file::path(segment)))
    }

    /// Returns the open file. May close other files.
    fn handle(&self, file: &Arc<SegmentFile>) -> Result<Arc<dyn File>> {
        let (handle, is_new) = file.opened(&self.durable, self.is_cached)?;
        if is_new {
            self.handles.add(file.clone());
            // The file was removed concurrently. Closing it frees its space.
            if !self.files.read().contains_key(&file.id) {
                self.handles.remove(file);
                file.close();
            }
        }
        Ok(handle)
    }

    /// Makes every image appended before the call durable, together with the names of the files.
    pub fn sync(&self) -> Result<()> {
        let _one = self.syncing.lock();
        for stream in Stream::ALL {
            self.write_tail(stream)?;
        }
        let (files, names) = self.take_unsynced();
        for file in files {
            if sound!(true, "segment: skip the sync of images") {
                file.sync(&self.durable)?;
            }
        }
        if sound!(names, "segment: skip the directory sync of a new file") {
            self.durable.directory_barrier(DIR)?;
        }
        let closable = self.table.lock().take_closable();
        for file in closable {
            match self.is_cached {
                true => self.handles.add(file),
                false => file.leave_cache(),
            }
        }
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

    /// Counts the image of a map entry as live (S1). Called while the map is loaded.
    pub fn retain(&self, location: &Location) {
        self.table.lock().retain(location);
    }

    /// Notes that the maps of `epoch` and later epochs do not need an image: the changes of `epoch`
    /// contain its replacement or the deletion of the page. For an image that was never installed,
    /// any epoch is correct, such as 0.
    ///
    /// # Panics
    /// If more bytes are released than were live: an image that a map needs could be lost.
    pub fn release(&self, location: &Location, epoch: Epoch) {
        self.table.lock().release(location, epoch);
    }

    /// Unlinks segments that no map needs any more (S3). `committed` is the last epoch for which
    /// `MapStore::commit` has returned. If a file cannot be removed, this does no harm, and the
    /// next call tries it again.
    pub fn remove_dead(&self, committed: Epoch) -> Result<Unlinked> {
        self.table.lock().committed(committed);
        let mut unlinked = Unlinked::default();
        if !self.is_map_retained.load(Ordering::Acquire) {
            return Ok(unlinked);
        }
        let dead = self.table.lock().dead();
        let mut failure = Ok(());
        for file in dead {
            let is_gone = match self.durable.let_go(&file.path) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    failure = failure.and(Err(Error::io("unlink", &file.path, e)));
                    continue;
                }
                let_go => let_go.unwrap_or(true),
            };
            self.files.write().remove(&file.id);
            let row = self.table.lock().rows.remove(&file.id);
            self.handles.remove(&file);
            // The removal of a pinned file frees no space yet.
            if is_gone {
                unlinked.files_count += 1;
                unlinked.bytes += row.map_or(0, |row| row.end);
            }
        }
        failure.map(|()| unlinked)
    }

    /// Returns the segments that the map of `committed` may name. `committed` is the last epoch
    /// whose commit has returned, and `next_segment` is from its control block. Must be called
    /// while no epoch is being committed.
    pub fn named(&self, committed: Epoch, next_segment: SegmentId) -> Vec<NamedSegment> {
        self.table.lock().named(committed, next_segment)
    }

    /// Returns the segment that garbage collection should empty next. Its collection is worth the
    /// cost, and the copies of its images fit on the disk.
    pub fn victim(&self) -> Option<SegmentId> {
        let space = self.durable.space();
        let room_bytes = space.is_short().then(|| space.room_above(Reserve::Last));
        self.table.lock().victim(self.segment_bytes, room_bytes)
    }

    /// Returns whether further commits alone would free a segment or make one a victim.
    pub fn waits_for_commit(&self) -> bool {
        self.table.lock().waits_for_commit()
    }

    /// Excludes a segment from being a victim, because it could not be emptied (damaged images).
    pub fn quarantine(&self, segment: SegmentId) {
        if let Some(row) = self.table.lock().rows.get_mut(&segment) {
            row.quarantined = true;
        }
    }

    /// Calls `visit` for every intact image of a segment, including dead images, in the order of
    /// their positions. Used by tests. Only the map says which images are live.
    pub fn iterate(&self, segment: SegmentId, visit: &mut dyn FnMut(Image<'_>) -> Result<()>) -> Result<()> {
        let found = self.table.lock().rows.get(&segment).map(|row| (row.file.clone(), row.end));
        let Some((file, end)) = found else { return Ok(()) };
        if let (Some(stream), true) = (file.stream, file.written_bytes() < end) {
            self.write_tail(stream)?;
        }
        scan::scan(&file, &*self.handle(&file)?, end, visit)
    }

    /// Like [`Space::check`](crate::durable::space::Space::check).
    #[inline]
    pub fn check_space(&self, promised_bytes: u64, bytes: u64, stays: Reserve) -> Result<()> {
        self.durable.space().check(promised_bytes, bytes, stays)
    }

    /// The disk, with its barriers.
    pub fn durable(&self) -> &Arc<Durable> {
        &self.durable
    }

    /// The UUID of the database.
    pub fn database(&self) -> &[u8; 16] {
        &self.identity.uuid
    }

    /// Notes bytes that were written to the disk, but not to a segment.
    pub fn wrote_beside(&self, bytes: u64) {
        self.durable.space().wrote(bytes);
    }

    /// Free bytes of the file system.
    pub fn free_bytes(&self) -> Result<u64> {
        self.durable.disk().free_bytes().map_err(|e| Error::io("free space", "", e))
    }

    /// The maximum memory of all tails, unless an image is longer than a half.
    pub fn tail_bytes_max(&self) -> usize {
        2 * AlignedBytes::memory_bytes(self.half_bytes) * Stream::ALL.len()
    }

    /// Bytes in the files, without those in tails.
    pub fn written_bytes(&self) -> u64 {
        self.files.read().values().map(|file| file.written_bytes()).sum()
    }

    /// Returns the share of the files' garbage that corresponds to `stored_bytes` bytes of live
    /// images. Garbage is all bytes outside live images. Garbage collection will free it, except
    /// for headers and gaps.
    pub fn free_share(&self, stored_bytes: u64) -> u64 {
        let totals = self.totals();
        let free_bytes = totals.file_bytes.saturating_sub(totals.live_bytes);
        let share = u128::from(stored_bytes) * u128::from(free_bytes);
        share.checked_div(totals.live_bytes.into()).unwrap_or_default() as u64
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

opaque!(Segments);

/// Returns the segments in the directory, in ascending order. Ignores files with other names.
fn segment_ids(durable: &Durable) -> Result<Vec<SegmentId>> {
    let disk = durable.disk();
    disk.create_dir(DIR).map_err(|e| Error::io("create", DIR, e))?;
    durable.directory_barrier("")?;
    let names = disk.list(DIR).map_err(|e| Error::io("list", DIR, e))?;
    let mut ids: Vec<_> = names.iter().filter_map(|name| segment_file::parse_name(name)).collect();
    ids.sort_unstable();
    Ok(ids)
}

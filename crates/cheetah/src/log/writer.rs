//! [`Log`]: appending frames, and writing them to files.

use super::file_sizes::FileSizes;
use super::files::{path_of, sequences, FileLimits, Files, LiveFile, DIR};
use super::group::Group;
use super::read::Recovered;
use super::tail::{lock_of_file, Opening, Piece, Tail, BUFFERS_COUNT, BUFFER_MARGIN_BYTES};
use crate::base::latency::{Latency, LatencyCounts};
use crate::base::stalls::Reason;
use crate::base::{opaque, sound, Config, Error, Health, Lsn, Result};
use crate::durable::Durable;
use crate::format::control::Identity;
use crate::format::log_frame::{FileHeader, BODY_BYTES_MAX, HEADER_BYTES, KIND_SYNC_MARK};
use crate::keys::Keys;
use crate::memory::Shares;
use cheetah_io::{Clock, File};
use parking_lot::{Condvar, Mutex};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

/// The number of bytes copied at a time when the used part of a file is rewritten.
const REWRITE_BYTES: u64 = 1 << 20;

/// The parameters of a log.
#[derive(Clone)]
pub struct LogSetup {
    /// The barriers, which also give access to the disk and the health.
    pub durable: Arc<Durable>,
    /// The clock for waiting and measuring.
    pub clock: Arc<dyn Clock>,
    /// The keys that encrypt log files.
    pub keys: Arc<Keys>,
    /// The ID of the database, and the incarnation: the number of this startup, which must be
    /// higher than that of any previous startup.
    pub identity: Identity,
    /// The maximum length of a file, except for a file with one long frame.
    pub file_bytes: u64,
    /// The minimum length of a file, at most `file_bytes`.
    pub file_bytes_min: u64,
    /// The size of the log at which writers wait.
    pub bytes_max: u64,
    /// The size of a buffer. A thread that appends to a full buffer first writes the buffer out.
    /// There are two buffers.
    pub buffer_bytes: usize,
}

opaque!(LogSetup);

impl LogSetup {
    /// Parameters with the sizes of `config`.
    pub fn new(
        config: &Config,
        durable: Arc<Durable>,
        clock: Arc<dyn Clock>,
        keys: Arc<Keys>,
        identity: Identity,
    ) -> Self {
        Self {
            durable,
            clock,
            keys,
            identity,
            file_bytes: config.log_file_bytes,
            file_bytes_min: config.log_file_bytes_min.min(config.log_file_bytes),
            bytes_max: config.log_bytes_max,
            buffer_bytes: Shares::of(config.buffer_pool_bytes).log_buffer_bytes(),
        }
    }

    fn files(&self, live: Vec<LiveFile>) -> Result<Files> {
        let limits = FileLimits { least_bytes: self.file_bytes_min, most_bytes: self.file_bytes };
        Files::adopt(Arc::clone(&self.durable), Arc::clone(&self.keys), limits, self.bytes_max, live)
    }

    fn sizes(&self, end: Lsn) -> FileSizes {
        FileSizes::new(self.file_bytes_min, self.file_bytes, end)
    }
}

/// Counters since the log was opened, and its state.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct LogStatus {
    /// The end of the log.
    pub end: Lsn,
    /// Everything before this position is durable.
    pub durable_end: Lsn,
    /// The oldest position that is needed. Everything before it may be removed.
    pub oldest_needed: Lsn,
    /// Frames appended.
    pub frames_count: u64,
    /// Writes to files.
    pub writes_count: u64,
    /// Syncs for commits, without the syncs of full files.
    pub syncs_count: u64,
    /// Files in use.
    pub files_count: usize,
    /// Files for future use.
    pub reserve_count: usize,
}

#[derive(Default)]
pub(super) struct Counters {
    writes: AtomicU64,
    pub(super) syncs: AtomicU64,
    pub(super) commit_waits: Latency,
    /// Syncs, including those of full files.
    sync_times: Latency,
}

/// The file that is being written.
struct Writer {
    file: Arc<dyn File>,
    path: String,
    start: Lsn,
}

/// The log of an open database. Shared by all threads.
pub struct Log {
    pub(super) durable: Arc<Durable>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) bytes_max: u64,
    buffer_bytes: usize,
    pub(super) tail: Mutex<Tail>,
    writer: Mutex<Writer>,
    pub(super) files: Mutex<Files>,
    pub(super) group: Group,
    pub(super) recycling: Mutex<()>,
    pub(super) recycled: Condvar,
    /// Whether the next file is ready. It is read before every change, and so is not under a lock.
    pub(super) reserve_is_ready: AtomicBool,
    /// The time of the last check of how much was logged.
    pub(super) looked_at_ns: AtomicU64,
    /// The end of the tail, readable without its lock.
    end: AtomicU64,
    written_end: AtomicU64,
    oldest_needed: AtomicU64,
    pub(super) counters: Counters,
}

impl Log {
    /// Creates the log of a new database. No existing file in the log directory is needed. The log
    /// starts at position 0 and is durable.
    pub fn create(setup: &LogSetup) -> Result<Self> {
        let disk = setup.durable.disk();
        disk.create_dir(DIR).map_err(|e| Error::io("create", DIR, e))?;
        setup.durable.directory_barrier("")?;
        disk.write_in_place(DIR);
        // These files are left over from an unfinished creation. Their sequence numbers are not
        // used again.
        let left_over = sequences(disk)?;
        for sequence in &left_over {
            let path = path_of(*sequence);
            disk.unlink(&path).map_err(|e| Error::io("unlink", path, e))?;
        }
        let files = setup.files(Vec::new())?;
        let sequence = left_over.last().map_or(1, |last| last + 1);
        Self::start(setup, files, sequence, Lsn(0), 0)
    }

    /// Continues after the end that [`super::read_from`] found, in a new file (L4). `oldest_needed`
    /// is the position at which the reading started. Blocks for I/O; when it returns, everything
    /// that was read is durable (L5).
    pub fn open(setup: &LogSetup, recovered: &Recovered, oldest_needed: Lsn) -> Result<Self> {
        let last = recovered.live.last().map_or(0, |file| file.sequence);
        if setup.identity.incarnation < recovered.incarnation {
            let detail =
                "the file is newer than the control file: parts of different copies of a database are mixed";
            return Err(Error::corrupt(path_of(last), detail));
        }
        setup.durable.disk().write_in_place(DIR);
        let files = setup.files(recovered.live.clone())?;
        if sound!(true, "log: serve an unsynced tail") {
            rewrite(&setup.durable, &path_of(last), recovered.last_file_bytes)?;
        }
        let log = if sound!(true, "log: go on in the old file") {
            Self::start(setup, files, last + 1, recovered.end, recovered.chain)?
        } else {
            let path = path_of(last);
            let file = setup.durable.disk().open(&path).map_err(|e| Error::io("open", &path, e))?;
            let header = super::files::read_header(&*file, last, &setup.identity.uuid)?;
            let writer = Writer { file, path, start: header.start };
            let header = FileHeader { start: recovered.end, ..header };
            let (keys, sizes) = (Arc::clone(&setup.keys), setup.sizes(recovered.end));
            let tail = Tail::new(header, recovered.chain, None, keys, sizes, setup.buffer_bytes);
            Self::assemble(setup, files, writer, tail)
        };
        // After a clean shutdown no file before the new one is needed.
        log.files.lock().recycle(oldest_needed)?;
        log.note_oldest_needed(oldest_needed);
        Ok(log)
    }

    fn start(
        setup: &LogSetup,
        mut files: Files,
        sequence: u64,
        start: Lsn,
        previous_chain: u32,
    ) -> Result<Self> {
        assert!(setup.file_bytes_min >= 2 * HEADER_BYTES as u64, "a file has room for more than its header");
        let Identity { uuid, incarnation } = setup.identity;
        let (version, closed, stream) = lock_of_file(&setup.keys)?;
        let header =
            FileHeader { version, database: uuid, incarnation, sequence, start, previous_chain, closed };
        let sizes = setup.sizes(start);
        let file = files.start(&Opening { header, bytes: sizes.bytes(), is_ready: false })?;
        let writer = Writer { file, path: path_of(sequence), start };
        let tail =
            Tail::new(header, header.chain(), stream, Arc::clone(&setup.keys), sizes, setup.buffer_bytes);
        Ok(Self::assemble(setup, files, writer, tail))
    }

    fn assemble(setup: &LogSetup, files: Files, writer: Writer, tail: Tail) -> Self {
        let end = tail.end().0;
        Self {
            durable: Arc::clone(&setup.durable),
            clock: Arc::clone(&setup.clock),
            bytes_max: setup.bytes_max,
            buffer_bytes: setup.buffer_bytes,
            tail: Mutex::new(tail),
            writer: Mutex::new(writer),
            files: Mutex::new(files),
            group: Group::new(Lsn(end)),
            recycling: Mutex::new(()),
            recycled: Condvar::new(),
            reserve_is_ready: AtomicBool::new(false),
            looked_at_ns: AtomicU64::new(0),
            end: AtomicU64::new(end),
            written_end: AtomicU64::new(end),
            oldest_needed: AtomicU64::new(end),
            counters: Counters::default(),
        }
    }

    /// Appends a frame and returns its range; a commit waits for the end of the range. Kinds are
    /// from 1 to 254. A body has at most [`BODY_BYTES_MAX`] bytes. Blocks only to write a full
    /// buffer. A failed write is fatal.
    pub fn append(&self, kind: u8, body: &[u8]) -> Result<Range<Lsn>> {
        assert!(kind != 0 && kind != KIND_SYNC_MARK, "a kind of frame that callers may write");
        if body.len() > BODY_BYTES_MAX {
            let (actual, limit) = (body.len() as u64, BODY_BYTES_MAX as u64);
            return Err(Error::Limit { what: "bytes of a log record", actual, limit });
        }
        self.health().check()?;
        let mut tail = self.tail.lock();
        while tail.is_full_for(body.len()) {
            drop(tail);
            let (file, _, _) = self.write_out()?;
            file.start_writeback(0, self.bytes_max);
            tail = self.tail.lock();
        }
        let range = tail
            .push(kind, body)
            .map_err(|error| self.health().stop(format!("a new log file cannot be started: {error}")))?;
        self.publish_end(&tail);
        // The tail has taken the ready file, so the next operation must make another file ready.
        if sound!(!tail.has_ready(), "log: count a file as ready that is taken") {
            self.reserve_is_ready.store(false, Ordering::Release);
        }
        Ok(range)
    }

    /// Writes everything that is buffered. Returns the current file and the position up to which
    /// everything is written. Any failure stops the engine, because the frames are no longer in the
    /// buffer.
    pub(super) fn write_out(&self) -> Result<(Arc<dyn File>, String, Lsn)> {
        let mut writer = self.writer.lock();
        self.health().check()?;
        let (pieces, end) = {
            let mut tail = self.tail.lock();
            if tail.has_content() {
                tail.mark(self.durable_end());
                self.publish_end(&tail);
            }
            tail.take()
        };
        let mut written = self.written_end();
        for piece in pieces {
            assert_eq!(piece.start, written, "L1: frames are written without gaps");
            written.0 += piece.bytes.len() as u64;
            self.write_piece(&mut writer, &piece)
                .map_err(|error| self.health().stop(format!("the log cannot be written: {error}")))?;
            self.tail.lock().give_back(piece.bytes);
        }
        self.written_end.fetch_max(end.0, Ordering::AcqRel);
        Ok((Arc::clone(&writer.file), writer.path.clone(), end))
    }

    fn write_piece(&self, writer: &mut Writer, piece: &Piece) -> Result<()> {
        if let Some(opening) = &piece.opens {
            // L3: the new file proves that the old one is complete.
            if sound!(true, "log: start a file before the old one is synced") {
                self.sync_file(&*writer.file, &writer.path)?;
            }
            let file = self.files.lock().start(opening)?;
            let header = opening.header;
            self.group.note_durable(header.start);
            *writer = Writer { file, path: path_of(header.sequence), start: header.start };
        }
        if piece.bytes.is_empty() {
            return Ok(());
        }
        let offset = HEADER_BYTES as u64 + (piece.start.0 - writer.start.0);
        self.counters.writes.fetch_add(1, Ordering::Relaxed);
        writer.file.write_at(offset, &piece.bytes).map_err(|e| Error::io("write", &writer.path, e))
    }

    pub(super) fn sync_file(&self, file: &dyn File, path: &str) -> Result<()> {
        let sync_times = &self.counters.sync_times;
        let _sync = self.health().stalls().begin_operation(Reason::Disk, sync_times, &*self.clock);
        self.durable.log_barrier(file, path)
    }

    /// Appends a mark if everything is durable and no mark says so yet. Returns whether it appended
    /// one.
    pub(super) fn mark_idle(&self) -> bool {
        let mut tail = self.tail.lock();
        let durable = self.durable_end();
        let wanted = tail.wants_mark(durable);
        if wanted {
            tail.mark(durable);
            self.publish_end(&tail);
        }
        wanted
    }

    pub(super) fn health(&self) -> &Health {
        self.durable.health()
    }

    /// The end of the log.
    pub fn end(&self) -> Lsn {
        Lsn(self.end.load(Ordering::Acquire))
    }

    /// Must be called after each append, while the lock of the tail is held.
    fn publish_end(&self, tail: &Tail) {
        self.end.store(tail.end().0, Ordering::Release);
    }

    /// Everything before this position is durable.
    pub fn durable_end(&self) -> Lsn {
        self.group.durable_end()
    }

    pub(super) fn written_end(&self) -> Lsn {
        Lsn(self.written_end.load(Ordering::Acquire))
    }

    pub(super) fn oldest_needed(&self) -> Lsn {
        Lsn(self.oldest_needed.load(Ordering::Acquire))
    }

    pub(super) fn note_oldest_needed(&self, lsn: Lsn) {
        self.oldest_needed.store(lsn.0, Ordering::Release);
    }

    /// The maximum memory of the buffers.
    pub fn buffer_bytes_max(&self) -> usize {
        BUFFERS_COUNT * (self.buffer_bytes + BUFFER_MARGIN_BYTES)
    }

    /// Counters and state.
    pub fn status(&self) -> LogStatus {
        let (files_count, reserve_count) = self.files.lock().counts();
        LogStatus {
            end: self.end(),
            durable_end: self.durable_end(),
            oldest_needed: self.oldest_needed(),
            frames_count: self.tail.lock().pushed_count(),
            writes_count: self.counters.writes.load(Ordering::Relaxed),
            syncs_count: self.counters.syncs.load(Ordering::Relaxed),
            files_count,
            reserve_count,
        }
    }

    /// The time that commits and prepares waited for the log. In mode 0 they do not wait.
    pub fn commit_waits(&self) -> LatencyCounts {
        self.counters.commit_waits.counts()
    }

    /// The time that syncs took, including those of full files.
    pub fn sync_times(&self) -> LatencyCounts {
        self.counters.sync_times.counts()
    }
}

/// Rewrites the first `bytes` of a file unchanged, and syncs them (L5). A crash meanwhile does no
/// harm: every sector has the same content before and after.
fn rewrite(durable: &Durable, path: &str, bytes: u64) -> Result<()> {
    let file = durable.disk().open(path).map_err(|e| Error::io("open", path, e))?;
    let mut buffer = vec![0; bytes.min(REWRITE_BYTES) as usize];
    let mut offset = 0;
    while offset < bytes {
        let count = (bytes - offset).min(REWRITE_BYTES) as usize;
        file.read_at(offset, &mut buffer[..count]).map_err(|e| Error::io("read", path, e))?;
        file.write_at(offset, &buffer[..count]).map_err(|e| Error::io("write", path, e))?;
        offset += count as u64;
    }
    durable.log_barrier(&*file, path)
}

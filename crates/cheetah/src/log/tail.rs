//! The end of the log in memory: frames that were appended but not yet written to files.
//!
//! The tail decides where files end, without I/O: the first frame of a file continues the chain of
//! the file's header, so the header must be known when the frame is encoded.

use super::file_sizes::FileSizes;
use crate::base::{sound, Lsn, Result};
use crate::format::encryption::KeyStream;
use crate::format::log_frame::{
    put_closed_frame, put_frame, FileHeader, Salt, SyncMark, FRAME_HEADER_BYTES, HEADER_BYTES,
    KIND_SYNC_MARK, MARK_BYTES, PLAIN_VERSION, VERSION,
};
use crate::keys::Keys;
use std::ops::Range;
use std::sync::Arc;

/// One buffer is filled while the other is written.
pub(super) const BUFFERS_COUNT: usize = 2;
/// Extra space in each buffer for a sync mark after the last frame.
pub(super) const BUFFER_MARGIN_BYTES: usize = 1 << 10;

/// Returns the version of a file that is started now, and its encryption.
pub(super) fn lock_of_file(keys: &Keys) -> Result<(u32, Option<Salt>, Option<KeyStream>)> {
    let Some(key) = keys.of_log() else { return Ok((PLAIN_VERSION, None, None)) };
    let bytes = if sound!(true, "encryption: one key for all log files") { keys.nonce()? } else { [0; 16] };
    let salt = Salt { key: key.name(), bytes };
    Ok((VERSION, Some(salt), Some(key.log_stream(&bytes))))
}

/// A new file for the next frames.
#[derive(Clone, Copy)]
pub(super) struct Opening {
    pub(super) header: FileHeader,
    /// Its length, including the header.
    pub(super) bytes: u64,
    /// Whether it is the first of the ready files.
    pub(super) is_ready: bool,
}

/// Consecutive frames in one file.
pub(super) struct Piece {
    /// The file that must be started first.
    pub(super) opens: Option<Opening>,
    /// Position of the first frame.
    pub(super) start: Lsn,
    pub(super) bytes: Vec<u8>,
}

pub(super) struct Tail {
    pieces: Vec<Piece>,
    /// Empty buffers, each of `buffer_bytes`.
    spare: Vec<Vec<u8>>,
    buffer_bytes: usize,
    buffered_bytes: usize,
    /// Header of the file that the last piece goes to.
    header: FileHeader,
    /// The key stream that encrypts its frames.
    stream: Option<KeyStream>,
    keys: Arc<Keys>,
    file_bytes: u64,
    room: u64,
    sizes: FileSizes,
    /// The length of the ready file that is started next.
    ready_bytes: Option<u64>,
    /// The number of ready files that were taken.
    taken_count: u64,
    /// Frames that callers have appended.
    pushed_count: u64,
    end: Lsn,
    chain: u32,
    /// End of the last frame that is not a mark.
    content_end: Lsn,
    /// The highest position that a mark says was durable.
    marked: Lsn,
}

impl Tail {
    /// Creates the tail for a file that was just started and has only its header. The length of the
    /// file is that of `sizes`, and each buffer has `buffer_bytes` bytes. `stream` is the key
    /// stream of the file.
    pub(super) fn new(
        header: FileHeader,
        chain: u32,
        stream: Option<KeyStream>,
        keys: Arc<Keys>,
        sizes: FileSizes,
        buffer_bytes: usize,
    ) -> Self {
        let file_bytes = sizes.bytes();
        let buffer = || Vec::with_capacity(buffer_bytes + BUFFER_MARGIN_BYTES);
        Self {
            pieces: Vec::new(),
            spare: std::iter::repeat_with(buffer).take(BUFFERS_COUNT).collect(),
            buffer_bytes,
            buffered_bytes: 0,
            header,
            stream,
            keys,
            file_bytes,
            room: file_bytes - HEADER_BYTES as u64,
            sizes,
            ready_bytes: None,
            taken_count: 0,
            pushed_count: 0,
            end: header.start,
            chain,
            content_end: header.start,
            marked: header.start,
        }
    }

    pub(super) fn end(&self) -> Lsn {
        self.end
    }

    /// Returns whether the buffered frames must be written before a frame of `body_bytes` is
    /// appended. A frame longer than a buffer is appended to an empty buffer.
    pub(super) fn is_full_for(&self, body_bytes: usize) -> bool {
        self.has_content() && self.buffered_bytes + FRAME_HEADER_BYTES + body_bytes > self.buffer_bytes
    }

    /// Appends a frame. Fails if there are no random bytes for a new file.
    pub(super) fn push(&mut self, kind: u8, body: &[u8]) -> Result<Range<Lsn>> {
        let frame_bytes = FRAME_HEADER_BYTES + body.len();
        if frame_bytes as u64 > self.room {
            self.sizes.note_full(self.header.start);
            self.start_file(frame_bytes as u64)?;
        }
        self.pushed_count += 1;
        Ok(self.append(kind, body))
    }

    /// Appends a frame that fits in the file.
    fn append(&mut self, kind: u8, body: &[u8]) -> Range<Lsn> {
        let frame_bytes = FRAME_HEADER_BYTES + body.len();
        let (start, chain) = (self.end, self.chain);
        let offset = HEADER_BYTES as u64 + (start.0 - self.header.start.0);
        let stream = self.stream.take();
        let piece = self.piece();
        self.chain = match &stream {
            Some(stream) => put_closed_frame(&mut piece.bytes, chain, kind, body, stream, offset),
            None => put_frame(&mut piece.bytes, chain, kind, body),
        };
        self.stream = stream;
        self.buffered_bytes += frame_bytes;
        self.room -= frame_bytes as u64;
        self.end = Lsn(start.0 + frame_bytes as u64);
        if kind != KIND_SYNC_MARK {
            self.content_end = self.end;
        }
        start..self.end
    }

    fn piece(&mut self) -> &mut Piece {
        if self.pieces.is_empty() {
            self.push_piece(None);
        }
        let last = self.pieces.len() - 1;
        &mut self.pieces[last]
    }

    fn push_piece(&mut self, opens: Option<Opening>) {
        let bytes = self.spare.pop().unwrap_or_default();
        self.pieces.push(Piece { opens, start: self.end, bytes });
    }

    pub(super) fn wanted_bytes(&self) -> u64 {
        self.sizes.bytes()
    }

    pub(super) fn least_bytes(&self) -> u64 {
        self.sizes.least_bytes()
    }

    /// Returns whether the current file is longer than `bytes`.
    pub(super) fn is_longer_than(&self, bytes: u64) -> bool {
        self.file_bytes > bytes
    }

    /// Checks how much was logged since the last check. Returns whether the current or the ready
    /// file is longer than files should be now.
    pub(super) fn look(&mut self) -> bool {
        self.sizes.look(self.end);
        let wanted = self.sizes.bytes();
        self.is_longer_than(wanted) || self.ready_bytes.is_some_and(|ready| ready > wanted)
    }

    pub(super) fn pushed_count(&self) -> u64 {
        self.pushed_count
    }

    pub(super) fn taken_count(&self) -> u64 {
        self.taken_count
    }

    pub(super) fn has_ready(&self) -> bool {
        self.ready_bytes.is_some()
    }

    /// Notes that a file of this length is ready to be used next.
    pub(super) fn set_ready(&mut self, bytes: u64) {
        let times = if sound!(true, "log: take a ready file for longer than it is") { 1 } else { 2 };
        self.ready_bytes = Some(times * bytes);
    }

    /// Continues in a new file with space for a frame of `frame_bytes`. Takes the ready file if it
    /// is long enough. Fails if there are no random bytes.
    pub(super) fn start_file(&mut self, frame_bytes: u64) -> Result<()> {
        let (version, closed, stream) = lock_of_file(&self.keys)?;
        self.header = FileHeader {
            version,
            sequence: self.header.sequence + 1,
            start: self.end,
            previous_chain: self.chain,
            closed,
            ..self.header
        };
        self.stream = stream;
        let least = HEADER_BYTES as u64 + frame_bytes;
        let ready = self.ready_bytes.take_if(|bytes| *bytes >= least);
        self.taken_count += u64::from(ready.is_some());
        let bytes = ready.unwrap_or(self.sizes.bytes().max(least));
        self.file_bytes = bytes;
        self.chain = self.header.chain();
        self.room = bytes - HEADER_BYTES as u64;
        let header = self.header;
        self.push_piece(Some(Opening { header, bytes, is_ready: ready.is_some() }));
        Ok(())
    }

    /// Returns whether the encryption of the current file is out of date.
    pub(super) fn is_closed_otherwise(&self) -> bool {
        self.keys.of_log().map(|key| key.name()) != self.header.closed.map(|salt| salt.key)
    }

    /// Adds a sync mark if no mark or file header proves yet that the log is durable up to
    /// `durable`.
    pub(super) fn mark(&mut self, durable: Lsn) {
        // The header of a file proves that everything before it is durable.
        let proven = self.marked.max(self.header.start);
        if durable > proven && self.room >= MARK_BYTES as u64 {
            let mark = SyncMark { position: self.end, durable, file_chain: self.header.chain() };
            self.append(KIND_SYNC_MARK, &mark.encode());
            self.marked = durable;
        }
    }

    /// Returns whether all frames other than marks are durable and no mark or header proves it.
    pub(super) fn wants_mark(&self, durable: Lsn) -> bool {
        self.content_end > self.marked.max(self.header.start) && durable >= self.content_end
    }

    pub(super) fn has_content(&self) -> bool {
        self.buffered_bytes > 0
    }

    pub(super) fn take(&mut self) -> (Vec<Piece>, Lsn) {
        self.buffered_bytes = 0;
        (std::mem::take(&mut self.pieces), self.end)
    }

    /// Takes a buffer for reuse. A buffer that grew for a long frame is shrunk first. A buffer that
    /// is too small, from a short piece at the end of a file, is not kept.
    pub(super) fn give_back(&mut self, mut buffer: Vec<u8>) {
        let size = self.buffer_bytes + BUFFER_MARGIN_BYTES;
        if buffer.capacity() < size || self.spare.len() >= BUFFERS_COUNT {
            return;
        }
        buffer.clear();
        buffer.shrink_to(size);
        self.spare.push(buffer);
    }
}

//! The end of the log in memory: frames that are appended but not yet written to files.
//!
//! Where files end is decided here, without I/O: the first frame of a file goes on from the chain
//! of its header, so the header must be known when the frame is sealed.

use crate::base::Lsn;
use crate::format::log_frame::{
    put_frame, FileHeader, SyncMark, FRAME_HEADER_BYTES, HEADER_BYTES, KIND_SYNC_MARK, MARK_BYTES, VERSION,
};
use std::ops::Range;

/// One buffer is filled while the other is written.
pub(super) const BUFFERS_COUNT: usize = 2;
/// Room for the header of the last frame of a full buffer, and for a mark behind it.
pub(super) const BUFFER_MARGIN_BYTES: usize = 1 << 10;

/// Frames that stand together in one file.
pub(super) struct Piece {
    /// The file that must be started first, and the bytes it must have room for.
    pub(super) opens: Option<(FileHeader, u64)>,
    /// Position of the first frame.
    pub(super) start: Lsn,
    /// The frames.
    pub(super) bytes: Vec<u8>,
}

/// See the module head.
pub(super) struct Tail {
    pieces: Vec<Piece>,
    /// Buffers that wait to be filled, each of `buffer_bytes`.
    spare: Vec<Vec<u8>>,
    buffer_bytes: usize,
    buffered_bytes: usize,
    /// Header of the file that the last piece goes to.
    header: FileHeader,
    file_bytes: u64,
    room: u64,
    end: Lsn,
    chain: u32,
    /// End of the last frame that is not a mark.
    content_end: Lsn,
    /// The highest position that a mark says was durable.
    marked: Lsn,
}

impl Tail {
    /// The tail behind the header of a file that has just been started, with buffers for so many
    /// bytes each.
    pub(super) fn new(header: FileHeader, file_bytes: u64, buffer_bytes: usize) -> Self {
        let buffer = || Vec::with_capacity(buffer_bytes + BUFFER_MARGIN_BYTES);
        Self {
            pieces: Vec::new(),
            spare: std::iter::repeat_with(buffer).take(BUFFERS_COUNT).collect(),
            buffer_bytes,
            buffered_bytes: 0,
            header,
            file_bytes,
            room: file_bytes - HEADER_BYTES as u64,
            end: header.start,
            chain: header.chain(),
            content_end: header.start,
            marked: header.start,
        }
    }

    /// The tail at a position inside a file: only for the planted bug that goes on there.
    #[cfg(feature = "planted-bugs")]
    pub(super) fn resume(
        header: FileHeader,
        file_bytes: u64,
        buffer_bytes: usize,
        end: Lsn,
        chain: u32,
    ) -> Self {
        let new = Self::new(header, file_bytes, buffer_bytes);
        Self {
            room: new.room.saturating_sub(end.0 - header.start.0),
            end,
            chain,
            content_end: end,
            marked: end,
            ..new
        }
    }

    /// The end of the log.
    pub(super) fn end(&self) -> Lsn {
        self.end
    }

    /// Whether what is buffered must be written before a frame of `body_bytes` comes. A longer one
    /// than a buffer comes alone.
    pub(super) fn is_full_for(&self, body_bytes: usize) -> bool {
        self.has_content() && self.buffered_bytes + FRAME_HEADER_BYTES + body_bytes > self.buffer_bytes
    }

    /// Appends a frame.
    pub(super) fn push(&mut self, kind: u8, body: &[u8]) -> Range<Lsn> {
        let frame_bytes = FRAME_HEADER_BYTES + body.len();
        if frame_bytes as u64 > self.room {
            self.start_file(frame_bytes as u64);
        }
        let start = self.end;
        let chain = self.chain;
        let piece = self.piece();
        self.chain = put_frame(&mut piece.bytes, chain, kind, body);
        self.buffered_bytes += frame_bytes;
        self.room -= frame_bytes as u64;
        self.end = Lsn(start.0 + frame_bytes as u64);
        if kind != KIND_SYNC_MARK {
            self.content_end = self.end;
        }
        start..self.end
    }

    /// The piece that frames go to.
    fn piece(&mut self) -> &mut Piece {
        if self.pieces.is_empty() {
            self.push_piece(None);
        }
        let last = self.pieces.len() - 1;
        &mut self.pieces[last]
    }

    fn push_piece(&mut self, opens: Option<(FileHeader, u64)>) {
        let bytes = self.spare.pop().unwrap_or_default();
        self.pieces.push(Piece { opens, start: self.end, bytes });
    }

    /// Goes on in a new file with room for a frame of this length.
    fn start_file(&mut self, frame_bytes: u64) {
        self.header = FileHeader {
            version: VERSION,
            sequence: self.header.sequence + 1,
            start: self.end,
            previous_chain: self.chain,
            ..self.header
        };
        let bytes = self.file_bytes.max(HEADER_BYTES as u64 + frame_bytes);
        self.chain = self.header.chain();
        self.room = bytes - HEADER_BYTES as u64;
        let header = self.header;
        self.push_piece(Some((header, bytes)));
    }

    /// Adds a sync mark if the log is durable up to a position that nothing after it proves yet.
    pub(super) fn mark(&mut self, durable: Lsn) {
        // The header of a file proves all before it.
        let proven = self.marked.max(self.header.start);
        if durable > proven && self.room >= MARK_BYTES as u64 {
            let mark = SyncMark { position: self.end, durable, file_chain: self.header.chain() };
            self.push(KIND_SYNC_MARK, &mark.encode());
            self.marked = durable;
        }
    }

    /// Whether frames other than marks are durable and no mark says so.
    pub(super) fn wants_mark(&self, durable: Lsn) -> bool {
        self.content_end > self.marked.max(self.header.start) && durable >= self.content_end
    }

    /// Whether frames other than marks are buffered.
    pub(super) fn has_content(&self) -> bool {
        self.buffered_bytes > 0
    }

    /// Hands out what is buffered.
    pub(super) fn take(&mut self) -> (Vec<Piece>, Lsn) {
        self.buffered_bytes = 0;
        (std::mem::take(&mut self.pieces), self.end)
    }

    /// Takes back a buffer. One that grew for a long frame, or was needed for a short piece at the
    /// end of a file, is not kept.
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

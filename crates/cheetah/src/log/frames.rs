//! Reading the frames of one log file from its start, through a buffer.

use super::files::path_of;
use crate::base::{sound, Error, Lsn, Result};
use crate::format::encryption::KeyStream;
use crate::format::log_frame::{
    is_closed, FileHeader, FrameHead, SyncMark, FRAME_HEADER_BYTES, HEADER_BYTES, MARK_BYTES,
};
use crate::keys::Keys;
use cheetah_io::File;
use std::sync::Arc;

/// The number of bytes per read. A longer frame is read with a single read.
const READ_BYTES: usize = 256 << 10;

/// A frame of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame<'a> {
    /// The position at which the frame starts.
    pub start: Lsn,
    /// The position at which the next frame starts.
    pub end: Lsn,
    /// The kind that the writer passed to `append`.
    pub kind: u8,
    /// The body that the writer passed to `append`.
    pub body: &'a [u8],
}

/// Reads the frames of a file in order, as long as the chain is valid.
pub(super) struct FrameReader {
    file: Arc<dyn File>,
    pub(super) header: FileHeader,
    path: String,
    file_len: u64,
    buffer: Vec<u8>,
    buffer_at: u64,
    /// The key stream that decrypts the bodies.
    stream: Option<KeyStream>,
    opened: Vec<u8>,
    pub(super) end: Lsn,
    pub(super) chain: u32,
}

impl FrameReader {
    /// Fails with `Key` if the key of the file is missing.
    pub(super) fn new(file: Arc<dyn File>, header: FileHeader, keys: &Keys) -> Result<Self> {
        let path = path_of(header.sequence);
        let file_len = file.len().map_err(|e| Error::io("read", &path, e))?;
        let (end, chain) = (header.start, header.chain());
        let stream = match header.closed {
            Some(salt) => Some(keys.find(&salt.key)?.log_stream(&salt.bytes)),
            None => None,
        };
        let (buffer, opened, buffer_at) = (Vec::new(), Vec::new(), 0);
        Ok(Self { file, header, path, file_len, buffer, buffer_at, stream, opened, end, chain })
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Offset in the file of the end of the valid frames so far.
    pub(super) fn offset(&self) -> u64 {
        HEADER_BYTES as u64 + (self.end.0 - self.header.start.0)
    }

    /// Returns the next frame, or `None` if the chain ends here.
    pub(super) fn next(&mut self) -> Result<Option<Frame<'_>>> {
        let offset = self.offset();
        let Some(head) = self.bytes(offset, FRAME_HEADER_BYTES)?.and_then(|bytes| bytes.first_chunk()) else {
            return Ok(None);
        };
        let Some(head) = FrameHead::parse(head) else { return Ok(None) };
        let (chain, start) = (self.chain, self.end);
        let Some(body) = self.bytes(offset + FRAME_HEADER_BYTES as u64, head.body_bytes)? else {
            return Ok(None);
        };
        let verified = head.verify(chain, body);
        let verified = match sound!(true, "log: ignore the chain") {
            true => verified,
            false => verified.or(Some(chain)),
        };
        let Some(chain) = verified else { return Ok(None) };
        let end = Lsn(start.0 + (FRAME_HEADER_BYTES + head.body_bytes) as u64);
        (self.chain, self.end) = (chain, end);
        let body_at = offset + FRAME_HEADER_BYTES as u64;
        if self.stream.is_none() || !is_closed(head.kind) {
            let body = self.bytes(body_at, head.body_bytes)?.unwrap_or_default();
            return Ok(Some(Frame { start, end, kind: head.kind, body }));
        }
        let mut opened = std::mem::take(&mut self.opened);
        opened.clear();
        opened.extend_from_slice(self.bytes(body_at, head.body_bytes)?.unwrap_or_default());
        if let Some(stream) = &self.stream {
            stream.apply(body_at, &mut opened);
        }
        self.opened = opened;
        Ok(Some(Frame { start, end, kind: head.kind, body: &self.opened }))
    }

    /// Returns `len` bytes of the file at `offset`, or `None` if the file ends before that.
    fn bytes(&mut self, offset: u64, len: usize) -> Result<Option<&[u8]>> {
        let available = self.file_len.saturating_sub(offset);
        if (len as u64) > available {
            return Ok(None);
        }
        let buffered = self.buffer_at..self.buffer_at + self.buffer.len() as u64;
        if !(buffered.contains(&offset) && offset + len as u64 <= buffered.end) {
            let wanted = (READ_BYTES.max(len) as u64).min(available) as usize;
            self.buffer.resize(wanted, 0);
            self.buffer_at = offset;
            self.file.read_at(offset, &mut self.buffer).map_err(|e| Error::io("read", &self.path, e))?;
        }
        let from = (offset - self.buffer_at) as usize;
        Ok(self.buffer.get(from..from + len))
    }

    /// Returns the highest position that a sync mark after the end of the chain proves durable, if
    /// that position is after the end of the chain.
    pub(super) fn proof_of_damage(&mut self) -> Result<Option<Lsn>> {
        let file_chain = self.header.chain();
        let (start, header_bytes, end) = (self.header.start.0, HEADER_BYTES as u64, self.end);
        let mut offset = self.offset();
        let mut proven = None;
        while offset < self.file_len {
            let count = (self.file_len - offset).min(READ_BYTES as u64);
            let at = Lsn(start + offset - header_bytes);
            let bytes = self.bytes(offset, count as usize)?.unwrap_or_default();
            // Most of these bytes are preallocated and were never written.
            if bytes.iter().any(|byte| *byte != 0) {
                proven = proven.max(SyncMark::search(bytes, at, file_chain));
            }
            // The parts overlap, so that a mark across a boundary is found.
            offset += count.saturating_sub(MARK_BYTES as u64).max(1);
            if count < READ_BYTES as u64 {
                break;
            }
        }
        Ok(proven.filter(|durable| *durable > end))
    }
}

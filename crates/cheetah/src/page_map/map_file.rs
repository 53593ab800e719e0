//! Reads and writes the blocks of a map file and of its copy.

use crate::base::{sound, Epoch, Error, Health, PageId, Result};
use crate::durable::Durable;
use crate::format::control::{ControlBlock, MapPart};
use crate::format::map_block::{
    encode_entries, put_chunk, Begin, Change, ChunkHeader, ChunkKind, End, FileHeader, FileKind,
    CHUNK_ENTRIES_MAX, CHUNK_HEADER_BYTES, FILE_HEADER_BYTES,
};
use crate::format::Defect;
use cheetah_io::File;
use std::sync::Arc;
use std::{io, iter};

/// The number of bytes collected before a write, and of bytes per read.
const WINDOW_BYTES: usize = 256 << 10;
/// The place that reports of damage name.
pub(super) const PLACE: &str = "page map";
const ADVICE: &str = "restore a backup";
const STATE_CHUNK_BYTES: usize = 64 << 10;

pub(super) fn path(number: u64, kind: FileKind) -> String {
    match kind {
        FileKind::Base => format!("map-{number}.base"),
        FileKind::Log => format!("map-{number}.log"),
    }
}

pub(super) fn copy_path(path: &str) -> String {
    format!("{path}.copy")
}

/// A file of the map that a control block names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedFile {
    /// Its ID.
    pub number: u64,
    /// Its path.
    pub path: String,
    /// Path of its copy.
    pub copy: String,
    /// The end of the named part.
    pub bytes: u64,
    /// Whether no more blocks will be appended to it.
    pub is_final: bool,
}

/// The files of the map that `control` names.
pub fn named_files(control: &ControlBlock) -> Vec<NamedFile> {
    let named = |part: &MapPart, kind| NamedFile {
        number: part.file,
        path: path(part.file, kind),
        copy: copy_path(&path(part.file, kind)),
        bytes: part.end,
        is_final: kind == FileKind::Base,
    };
    let base = control.base.iter().map(|part| named(part, FileKind::Base));
    base.chain(control.logs.iter().map(|part| named(part, FileKind::Log))).collect()
}

/// Returns the ID in the name of a map file or of a copy, or `None` for other names.
pub(super) fn parse_name(name: &str) -> Option<u64> {
    let rest = name.strip_prefix("map-")?;
    let rest = rest.strip_suffix(".copy").unwrap_or(rest);
    let digits = rest.strip_suffix(".base").or_else(|| rest.strip_suffix(".log"))?;
    digits.parse().ok()
}

/// A map file that is being written, and its copy (P6).
pub(super) struct MapFile {
    pub(super) number: u64,
    pair: Vec<OneFile>,
}

/// A map file or its copy; both have the same bytes.
struct OneFile {
    path: String,
    file: Arc<dyn File>,
}

impl MapFile {
    /// Creates a file and its copy with a header, which are not durable yet. Also returns the
    /// checksum that the first chunk continues.
    pub(super) fn create(durable: &Durable, header: &FileHeader) -> Result<(Self, u32)> {
        let path = path(header.number, header.kind);
        let mut file = Self { number: header.number, pair: Vec::new() };
        let copy = sound!(true, "map: write one file").then(|| copy_path(&path));
        let created = iter::once(path).chain(copy).try_for_each(|path| {
            let created = durable.disk().create(&path).map_err(|e| Error::io("create", &path, e))?;
            file.pair.push(OneFile { path, file: created });
            Ok(())
        });
        match created.and_then(|()| file.write_at(0, &header.encode())) {
            Ok(()) => Ok((file, header.crc())),
            Err(error) => {
                file.remove(durable);
                Err(error)
            }
        }
    }

    /// Makes the written bytes durable, but not the names of the files.
    pub(super) fn sync(&self, durable: &Durable) -> Result<()> {
        let count = if sound!(true, "map: sync one file") { self.pair.len() } else { 1 };
        self.pair.iter().take(count).try_for_each(|one| durable.map_barrier(&*one.file, &one.path))
    }

    /// Frees the space after `end`. This only saves space, so errors are ignored.
    pub(super) fn trim(&self, end: u64) {
        for one in &self.pair {
            let _ = one.file.set_len(end);
        }
    }

    /// Removes a file that CONTROL does not name. If this fails, the next startup removes it.
    pub(super) fn remove(&self, durable: &Durable) {
        for one in &self.pair {
            let _ = durable.disk().unlink(&one.path);
        }
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.pair.iter().try_for_each(|one| {
            one.file.write_at(offset, bytes).map_err(|e| Error::io("write", &one.path, e))
        })
    }
}

impl OneFile {
    /// Opens a file. Returns `None` if it does not exist.
    fn open(durable: &Durable, path: String) -> Result<Option<Self>> {
        match durable.disk().open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("open", path, error)),
            Ok(file) => Ok(Some(Self { path, file })),
        }
    }

    /// Checks the header. Fails with `Corruption` if it is not the header of the file that CONTROL
    /// names.
    fn check_header(&self, named: &Named<'_>) -> Result<()> {
        let mut bytes = [0; FILE_HEADER_BYTES];
        self.read_at(0, &mut bytes)?;
        let header = FileHeader::decode(&bytes).map_err(|defect| defect.in_place(&self.path))?;
        let Named { part, kind, uuid } = *named;
        if (header.kind, header.number, &header.uuid) != (kind, part.file, uuid) {
            return Err(Error::corrupt(&self.path, "belongs to another database or another place"));
        }
        if part.start == FILE_HEADER_BYTES as u64 && part.start_crc != header.crc() {
            return Err(Error::corrupt(&self.path, "CONTROL names another incarnation of this file"));
        }
        Ok(())
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.file.read_at(offset, bytes).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => {
                Error::corrupt(&self.path, "the file ends before the position that CONTROL names")
            }
            _ => Error::io("read", &self.path, e),
        })
    }
}

/// A part of the map that CONTROL names.
#[derive(Clone, Copy)]
struct Named<'a> {
    part: &'a MapPart,
    kind: FileKind,
    uuid: &'a [u8; 16],
}

/// Writes one block, piece by piece.
pub(super) struct BlockWriter<'a> {
    file: &'a MapFile,
    /// The position to which `pending` is written.
    at: u64,
    pending: Vec<u8>,
    crc: u32,
    epoch: Epoch,
    entries_count: u64,
    state_bytes: u64,
    content: Vec<u8>,
}

impl<'a> BlockWriter<'a> {
    /// Starts a block at position `at`. The checksum of its first chunk continues `crc`.
    pub(super) fn begin(file: &'a MapFile, at: u64, crc: u32, begin: &Begin) -> Self {
        let mut pending = Vec::new();
        let crc = put_chunk(&mut pending, ChunkKind::Begin, 0, &begin.encode(), crc);
        let epoch = begin.epoch;
        Self { file, at, pending, crc, epoch, entries_count: 0, state_bytes: 0, content: Vec::new() }
    }

    /// Adds entries. Pages must ascend within a call and from call to call. Many entries per call
    /// compress better.
    pub(super) fn entries(&mut self, entries: &[Change]) -> Result<()> {
        for entries in entries.chunks(CHUNK_ENTRIES_MAX) {
            self.content.clear();
            encode_entries(entries, &mut self.content);
            let (kind, count) = (ChunkKind::Entries, entries.len());
            self.crc = put_chunk(&mut self.pending, kind, count, &self.content, self.crc);
            self.entries_count += count as u64;
            self.write_out(WINDOW_BYTES)?;
        }
        Ok(())
    }

    /// Adds bytes of the state. Must be called after all entries were added.
    pub(super) fn state(&mut self, state: &[u8]) -> Result<()> {
        for part in state.chunks(STATE_CHUNK_BYTES) {
            self.crc = put_chunk(&mut self.pending, ChunkKind::State, 0, part, self.crc);
            self.state_bytes += part.len() as u64;
            self.write_out(WINDOW_BYTES)?;
        }
        Ok(())
    }

    /// Ends the block. Returns the position after it, and the checksum of its last chunk.
    pub(super) fn finish(mut self) -> Result<(u64, u32)> {
        let end = End { epoch: self.epoch, entries_count: self.entries_count, state_bytes: self.state_bytes };
        self.crc = put_chunk(&mut self.pending, ChunkKind::End, 0, &end.encode(), self.crc);
        self.write_out(0)?;
        Ok((self.at, self.crc))
    }

    fn write_out(&mut self, threshold: usize) -> Result<()> {
        if self.pending.len() > threshold {
            self.file.write_at(self.at, &self.pending)?;
            self.at += self.pending.len() as u64;
            self.pending.clear();
        }
        Ok(())
    }
}

/// The next item of a reader.
pub(super) enum Item<'a> {
    /// A block starts.
    Begin(Epoch),
    /// Entries of the block, pages ascending.
    Entries(&'a [Change]),
    /// More bytes of the block's state.
    State(&'a [u8]),
    /// The block ended and was complete.
    End,
}

/// Reads the blocks of one part of the map, and checks every byte of the part. If one of the two
/// files is damaged, notes a background error and reads the other file (P6).
pub(super) struct PartReader {
    health: Arc<Health>,
    /// One of the files, or both.
    pair: Vec<OneFile>,
    /// The index of the file that is being read.
    read: usize,
    is_damaged: bool,
    part: MapPart,
    at: u64,
    crc: u32,
    window: Vec<u8>,
    window_start: u64,
    content: Vec<u8>,
    entries: Vec<Change>,
    block: Option<Block>,
}

struct Block {
    epoch: Epoch,
    entries_count: u64,
    state_bytes: u64,
    last_page: PageId,
}

impl PartReader {
    /// Opens the files of a part. Fails with `Corruption` if neither exists, and with `Unsupported`
    /// if a newer version wrote one of them.
    pub(super) fn open(durable: &Durable, part: &MapPart, kind: FileKind, uuid: &[u8; 16]) -> Result<Self> {
        let (path, named) = (path(part.file, kind), Named { part, kind, uuid });
        let missing = || Error::corrupt(&path, "CONTROL names this file, but it is missing");
        let (mut pair, mut damage) = (Vec::new(), Vec::new());
        for (one, is_needed) in [(path.clone(), true), (copy_path(&path), false)] {
            match OneFile::open(durable, one) {
                Ok(Some(one)) => {
                    match one.check_header(&named) {
                        // The chunks of this file may be intact. They are checked without the
                        // header.
                        Err(error) if error.is_of_unreadable_bytes() => damage.push(error),
                        checked => checked?,
                    }
                    pair.push(one);
                }
                Ok(None) if is_needed => damage.push(missing()),
                Ok(None) => {}
                Err(error) => damage.push(error),
            }
        }
        if pair.is_empty() {
            return Err(damage.pop().unwrap_or_else(missing).with_words(ADVICE));
        }
        let mut reader = Self {
            health: Arc::clone(durable.health()),
            pair,
            read: 0,
            is_damaged: false,
            part: *part,
            at: part.start,
            crc: part.start_crc,
            window: Vec::new(),
            window_start: 0,
            content: Vec::new(),
            entries: Vec::new(),
            block: None,
        };
        damage.into_iter().for_each(|error| reader.note(error));
        Ok(reader)
    }

    fn note(&mut self, damage: Error) {
        self.is_damaged = true;
        let error = damage.with_words("the other file of the two is read instead");
        self.health.background_errors().note(PLACE, &error);
    }

    pub(super) fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// Returns whether there is only one file.
    pub(super) fn is_without_copy(&self) -> bool {
        self.pair.len() == 1
    }

    /// Compares the two files. The part must have been read to its end. A difference is damage to
    /// the copy.
    pub(super) fn compare_files(&mut self) {
        if !sound!(!self.is_damaged, "map: do not compare") {
            return;
        }
        if let Err(damage) = self.compare() {
            self.note(damage);
        }
    }

    fn compare(&mut self) -> Result<()> {
        let [file, copy] = self.pair.as_slice() else { return Ok(()) };
        let mut bytes = Vec::new();
        let mut at = self.part.start;
        while at < self.part.end {
            let length = (WINDOW_BYTES as u64).min(self.part.end - at) as usize;
            self.window.resize(length, 0);
            bytes.resize(length, 0);
            file.read_at(at, &mut self.window)?;
            copy.read_at(at, &mut bytes)?;
            if bytes != self.window {
                return Err(Error::corrupt(&copy.path, format!("differs from the file near byte {at}")));
            }
            at += length as u64;
        }
        Ok(())
    }

    /// Returns the next item, or `None` at the end of the part. Fails with `Corruption` if any byte
    /// is not as it was written in both files.
    pub(super) fn next(&mut self) -> Result<Option<Item<'_>>> {
        let at_end = self.at >= self.part.end;
        if sound!(at_end, "map: apply an orphan block") {
            self.check_end().map_err(|defect| self.corrupt(&defect))?;
            return Ok(None);
        }
        let header = match self.read_chunk() {
            Err(_) if at_end => return Ok(None),
            read => read?,
        };
        self.take_chunk(&header).map_err(|defect| self.corrupt(&defect))?;
        Ok(Some(match header.kind {
            ChunkKind::Begin => Item::Begin(self.block.as_ref().map_or(Epoch(0), |block| block.epoch)),
            ChunkKind::Entries => Item::Entries(&self.entries),
            ChunkKind::State => Item::State(&self.content),
            ChunkKind::End => Item::End,
        }))
    }

    fn check_end(&self) -> std::result::Result<(), Defect> {
        if self.block.is_some() || self.at != self.part.end || self.crc != self.part.end_crc {
            return Err(Defect::new("the map does not end as CONTROL says"));
        }
        Ok(())
    }

    /// Reads and checks the chunk at `at`, and stores its content in `content`.
    fn read_chunk(&mut self) -> Result<ChunkHeader> {
        let error = match self.read_chunk_here() {
            Err(error) if error.is_of_unreadable_bytes() => error,
            read => return read,
        };
        for _ in 1..self.pair.len() {
            self.read = (self.read + 1) % self.pair.len();
            self.window.clear();
            if let Ok(header) = self.read_chunk_here() {
                self.note(error);
                return Ok(header);
            }
        }
        Err(error.with_words(ADVICE))
    }

    fn read_chunk_here(&mut self) -> Result<ChunkHeader> {
        let head = self.bytes(CHUNK_HEADER_BYTES)?;
        let head = head.first_chunk().ok_or(Defect::new("ends early"));
        let header = head.and_then(ChunkHeader::decode).map_err(|defect| self.defective(&defect))?;
        let length = CHUNK_HEADER_BYTES + header.stored_bytes();
        self.bytes(length)?;
        let from = (self.at - self.window_start) as usize;
        let opened = header.open(&self.window[from..from + length], self.crc, &mut self.content);
        opened.map_err(|defect| self.defective(&defect))?;
        self.at += length as u64;
        self.crc = header.crc;
        Ok(header)
    }

    fn bytes(&mut self, count: usize) -> Result<&[u8]> {
        let window_end = self.window_start + self.window.len() as u64;
        if self.at < self.window_start || self.at + count as u64 > window_end {
            let limit = self.part.end.max(self.at + count as u64) - self.at;
            self.window.resize((WINDOW_BYTES as u64).min(limit).max(count as u64) as usize, 0);
            self.window_start = self.at;
            self.pair[self.read].read_at(self.at, &mut self.window)?;
        }
        let from = (self.at - self.window_start) as usize;
        Ok(&self.window[from..from + count])
    }

    /// Checks the order of chunks and the totals of a block.
    fn take_chunk(&mut self, header: &ChunkHeader) -> std::result::Result<(), Defect> {
        match (header.kind, self.block.as_mut()) {
            (ChunkKind::Begin, None) => {
                let epoch = Begin::decode(&self.content)?.epoch;
                let last_page = PageId::NONE;
                self.block = Some(Block { epoch, entries_count: 0, state_bytes: 0, last_page });
            }
            (ChunkKind::Entries, Some(block)) if block.state_bytes == 0 => {
                header.entries(&self.content, &mut self.entries)?;
                let (Some(first), Some(last)) = (self.entries.first(), self.entries.last()) else {
                    return Err(Defect::new("a chunk without entries"));
                };
                if first.0 <= block.last_page {
                    return Err(Defect::new("pages of a block do not ascend"));
                }
                block.last_page = last.0;
                block.entries_count += self.entries.len() as u64;
            }
            (ChunkKind::State, Some(block)) => block.state_bytes += self.content.len() as u64,
            (ChunkKind::End, Some(block)) => {
                let end = End::decode(&self.content)?;
                if (end.epoch, end.entries_count, end.state_bytes)
                    != (block.epoch, block.entries_count, block.state_bytes)
                {
                    return Err(Defect::new("a block is not complete"));
                }
                self.block = None;
            }
            _ => return Err(Defect::new("chunks are out of order")),
        }
        Ok(())
    }

    fn corrupt(&self, defect: &Defect) -> Error {
        self.defective(defect).with_words(ADVICE)
    }

    fn defective(&self, defect: &Defect) -> Error {
        Error::corrupt(&self.pair[self.read].path, format!("{defect}, near byte {}", self.at))
    }
}

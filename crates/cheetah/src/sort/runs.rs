//! Sorted runs in files. A run consists of compressed blocks of records, each with a checksum.
//!
//! ```text
//! block:   0 4 bytes of the records  4 4 bytes stored  8 4 crc32c of the stored bytes
//!          12 8 number of the block  20 . stored
//! stored:  the records, compressed with lz4, or as they are if lz4 does not
//!          shorten them; encrypted in an encrypted database
//! record:  varint bytes of the key, varint bytes of the value, key, value
//! ```
//!
//! Invariants
//!   R1  A file is unlinked directly after its creation, so it disappears when it is closed. If a
//!       crash undoes the unlinking, the next startup removes the file.
//!   R2  No file is synced, because only the process that wrote it uses its content.
//!   R3  In an encrypted database each file is encrypted with its own random key, which exists only
//!       in memory. The nonce of a block is its number. A number is never used twice, not even
//!       after a failed write (durability::E3).

use crate::base::{opaque, sound, Error, Result};
use crate::durable::Durable;
use crate::format::encryption::{KeyStream, NONCE_BYTES};
use crate::format::varint;
use crate::keys::Keys;
use cheetah_io::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use zeroize::Zeroizing;

const DIRECTORY: &str = "tmp";
/// Bytes of a block before the stored bytes.
const HEAD_BYTES: usize = 20;
const NUMBER_AT: usize = 12;
/// The name for the files in errors, because they have no paths.
const PLACE: &str = "a file of sorted runs";

/// A function that fails if the given number of bytes may not be written.
type Space = Box<dyn Fn(usize) -> Result<()> + Send + Sync>;

/// Creates files for runs.
pub struct TempFiles {
    durable: Arc<Durable>,
    keys: Arc<Keys>,
    space: Space,
    next: AtomicU64,
}

opaque!(TempFiles);

impl TempFiles {
    /// Removes files that are left over from an earlier process. `space` is called with the number
    /// of bytes before each write. If it fails, they are not written.
    pub fn open(
        durable: Arc<Durable>,
        keys: Arc<Keys>,
        space: impl Fn(usize) -> Result<()> + Send + Sync + 'static,
    ) -> Result<Arc<Self>> {
        let names = match durable.disk().list(DIRECTORY) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            listed => listed.map_err(|error| Error::io("list", DIRECTORY, error))?,
        };
        for name in names {
            let path = format!("{DIRECTORY}/{name}");
            durable.disk().unlink(&path).map_err(|error| Error::io("unlink", path.as_str(), error))?;
        }
        Ok(Arc::new(Self { durable, keys, space: Box::new(space), next: AtomicU64::new(1) }))
    }

    /// Creates a file without a name (R1).
    fn create(&self) -> Result<Arc<dyn File>> {
        let disk = self.durable.disk();
        disk.create_dir(DIRECTORY).map_err(|error| Error::io("create", DIRECTORY, error))?;
        let path = format!("{DIRECTORY}/{}.run", self.next.fetch_add(1, Relaxed));
        let file = disk.create(&path).map_err(|error| Error::io("create", path.as_str(), error))?;
        disk.unlink(&path).map_err(|error| Error::io("unlink", path.as_str(), error))?;
        Ok(file)
    }

    /// Creates the key stream that encrypts a new file.
    fn stream(&self) -> Result<Option<Arc<KeyStream>>> {
        if self.keys.system().is_none() {
            return Ok(None);
        }
        let mut key = Zeroizing::new([0; 32]);
        for half in key.chunks_exact_mut(NONCE_BYTES) {
            half.copy_from_slice(&self.keys.nonce()?);
        }
        Ok(Some(Arc::new(KeyStream::new(&key))))
    }
}

/// A run, which keeps its file open.
pub(super) struct Run {
    file: Arc<dyn File>,
    stream: Option<Arc<KeyStream>>,
    bytes: Range<u64>,
}

opaque!(Run);

impl Run {
    pub(super) fn reader(&self) -> RunReader {
        RunReader::new(Arc::clone(&self.file), self.stream.clone(), self.bytes.clone())
    }
}

/// A file to which runs are written, one after another.
pub(super) struct RunFile {
    files: Arc<TempFiles>,
    file: Arc<dyn File>,
    start: u64,
    end: u64,
    stream: Option<Arc<KeyStream>>,
    pub(super) next_block: u64,
    block_bytes: usize,
    block: Vec<u8>,
    packed: Vec<u8>,
}

opaque!(RunFile);

impl RunFile {
    pub(super) fn create(files: &Arc<TempFiles>, block_bytes: usize) -> Result<Self> {
        let (file, stream) = (files.create()?, files.stream()?);
        let (files, block, packed) = (Arc::clone(files), Vec::new(), Vec::new());
        Ok(Self { files, file, start: 0, end: 0, stream, next_block: 0, block_bytes, block, packed })
    }

    /// Returns whether another run may be written to the file. If there is a key now, no run may be
    /// added to an unencrypted file (durability::E3).
    pub(super) fn may_go_on(&self) -> bool {
        let is_left = self.is_plain() && self.files.keys.system().is_some();
        !sound!(is_left, "encryption: go on with a plain file of runs")
    }

    pub(super) fn is_plain(&self) -> bool {
        self.stream.is_none()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.end
    }

    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        varint::put(&mut self.block, key.len() as u64);
        varint::put(&mut self.block, value.len() as u64);
        self.block.extend_from_slice(key);
        self.block.extend_from_slice(value);
        if self.block.len() >= self.block_bytes {
            self.write_block()?;
        }
        Ok(())
    }

    pub(super) fn end_run(&mut self) -> Result<Run> {
        if !self.block.is_empty() {
            self.write_block()?;
        }
        let bytes = std::mem::replace(&mut self.start, self.end)..self.end;
        Ok(Run { file: Arc::clone(&self.file), stream: self.stream.clone(), bytes })
    }

    fn write_block(&mut self) -> Result<()> {
        let most = lz4_flex::block::get_maximum_output_size(self.block.len());
        self.packed.resize(HEAD_BYTES + most, 0);
        let (head, body) = self.packed.split_at_mut(HEAD_BYTES);
        let packed = lz4_flex::block::compress_into(&self.block, body).unwrap_or(self.block.len());
        let stored = packed.min(self.block.len());
        if stored == self.block.len() {
            body.get_mut(..stored).expect("the buffer has space for more").copy_from_slice(&self.block);
        }
        let (number, body) = (self.next_block, body.get_mut(..stored).unwrap_or_default());
        if sound!(true, "encryption: keep the number of a block that failed") {
            self.next_block += 1;
        }
        if let Some(stream) = &self.stream {
            stream.apply_block(number, body);
        }
        let crc = crc32c::crc32c(body);
        let words = [self.block.len() as u32, stored as u32, crc];
        head.chunks_exact_mut(4).zip(words).for_each(|(at, word)| at.copy_from_slice(&word.to_le_bytes()));
        head.iter_mut().skip(NUMBER_AT).zip(number.to_le_bytes()).for_each(|(at, byte)| *at = byte);
        let bytes = self.packed.get(..HEAD_BYTES + stored).unwrap_or_default();
        (self.files.space)(bytes.len())?;
        self.file.write_at(self.end, bytes).map_err(|error| Error::io("write", PLACE, error))?;
        self.end += bytes.len() as u64;
        self.next_block = number + 1;
        self.block.clear();
        Ok(())
    }
}

pub(super) struct RunReader {
    file: Arc<dyn File>,
    stream: Option<Arc<KeyStream>>,
    left: Range<u64>,
    block: Vec<u8>,
    packed: Vec<u8>,
    next: usize,
    key: Range<usize>,
    value: Range<usize>,
}

impl RunReader {
    fn new(file: Arc<dyn File>, stream: Option<Arc<KeyStream>>, left: Range<u64>) -> Self {
        Self { file, stream, left, block: Vec::new(), packed: Vec::new(), next: 0, key: 0..0, value: 0..0 }
    }

    pub(super) fn key(&self) -> &[u8] {
        self.block.get(self.key.clone()).unwrap_or_default()
    }

    pub(super) fn value(&self) -> &[u8] {
        self.block.get(self.value.clone()).unwrap_or_default()
    }

    /// Moves to the next record. Returns `false` at the end.
    pub(super) fn advance(&mut self) -> Result<bool> {
        if self.next == self.block.len() {
            if self.left.is_empty() {
                return Ok(false);
            }
            self.read_block()?;
        }
        let mut length = || {
            let (value, used) = varint::get(self.block.get(self.next..)?)?;
            self.next += used;
            usize::try_from(value).ok()
        };
        let lengths = length()
            .zip(length())
            .filter(|(key, value)| self.block.len() - self.next >= key.saturating_add(*value));
        let Some((key, value)) = lengths else { return Err(damaged("a record exceeds its block")) };
        self.key = self.next..self.next + key;
        self.value = self.key.end..self.key.end + value;
        self.next = self.value.end;
        Ok(true)
    }

    fn read_block(&mut self) -> Result<()> {
        let mut head = [0u8; HEAD_BYTES];
        self.read(&mut head)?;
        let word = |no: usize| {
            let mut bytes = [0u8; 4];
            bytes.iter_mut().zip(head.iter().skip(4 * no)).for_each(|(to, from)| *to = *from);
            u32::from_le_bytes(bytes)
        };
        let (raw, stored, crc) = (word(0) as usize, word(1) as usize, word(2));
        if stored > raw || stored as u64 > self.left.end - self.left.start {
            return Err(damaged("a block is longer than its run"));
        }
        let mut packed = std::mem::take(&mut self.packed);
        packed.resize(stored, 0);
        self.read(&mut packed)?;
        if crc32c::crc32c(&packed) != crc {
            return Err(damaged("the checksum of a block is wrong"));
        }
        if let Some(stream) = &self.stream {
            let number = head.last_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            stream.apply_block(number, &mut packed);
        }
        self.block.resize(raw, 0);
        if stored == raw {
            self.block.copy_from_slice(&packed);
        } else if lz4_flex::block::decompress_into(&packed, &mut self.block).ok() != Some(raw) {
            return Err(damaged("a block cannot be decompressed"));
        }
        self.packed = packed;
        self.next = 0;
        Ok(())
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.file.read_at(self.left.start, bytes).map_err(|error| Error::io("read", PLACE, error))?;
        self.left.start += bytes.len() as u64;
        Ok(())
    }
}

fn damaged(detail: &str) -> Error {
    Error::corrupt(PLACE, detail)
}

//! Dictionaries: content that the pages of a tree are like, put in front of each of them when it is
//! compressed.
//!
//! A dictionary is made of pieces of pages, as they are. One that Zstandard has trained gains 1 to
//! 3 % more, for 100 ms (docs/developers/decisions/0030-dictionaries.md).
//!
//! Invariants
//!   I1  An image names its dictionary by page and checksum of the content. Beside other content
//!       Zstandard may well give other bytes of the right length, so this alone keeps a mistake
//!       from being taken for data.
//!   I2  To read takes a [`Dictionary`], which is quickly made and small; to write takes a
//!       [`Primer`], which is neither.

use super::compression::{Codec, Compression};
use crate::base::{Error, PageId, Result};
use crate::format::page::PageKind;
use zstd::zstd_safe::{CDict, DDict};

/// Bytes in which an image names its dictionary.
pub(super) const NAME_BYTES: usize = 9;
/// Bytes of the pieces of which a dictionary is made.
const PIECE_BYTES: usize = 1 << 10;
/// The level where the table asks for no higher one: level 1 looks into a dictionary too seldom to
/// gain from it.
const LEVEL_MIN: i32 = 3;
/// How a trained dictionary begins, with tables that Zstandard would read. Ours never do.
const TRAINED_MAGIC: [u8; 4] = [0x37, 0xa4, 0x30, 0xec];

/// The dictionary named in an image (I1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DictionaryName {
    /// The page that it is in.
    pub page: PageId,
    /// CRC-32C of its content.
    pub crc: u32,
}

impl DictionaryName {
    fn of(page: PageId, content: &[u8]) -> Result<Self> {
        if content.starts_with(&TRAINED_MAGIC) {
            return Err(Error::corrupt(
                format!("dictionary {page}"),
                "its content is not that of a dictionary",
            ));
        }
        Ok(Self { page, crc: crc32c::crc32c(content) })
    }
}

/// A dictionary to decompress with: some 90 KiB.
pub struct Dictionary {
    name: DictionaryName,
    decompressor: DDict<'static>,
}

impl Dictionary {
    /// The dictionary of that content, in that page. `Corruption` for content that none has,
    /// `Limit` when there is no memory.
    pub fn new(page: PageId, content: &[u8]) -> Result<Self> {
        let name = DictionaryName::of(page, content)?;
        let decompressor = DDict::try_create(content).ok_or_else(no_memory)?;
        Ok(Self { name, decompressor })
    }

    /// How images name it.
    pub fn name(&self) -> DictionaryName {
        self.name
    }

    /// The memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        self.decompressor.sizeof()
    }

    pub(super) fn decompressor(&self) -> &DDict<'static> {
        &self.decompressor
    }
}

/// A dictionary to compress with: some hundreds of KiB, more for higher levels.
pub struct Primer {
    name: DictionaryName,
    compression: Compression,
    compressor: CDict<'static>,
}

impl Primer {
    /// As [`Dictionary::new`], for what is compressed like this.
    pub fn new(page: PageId, content: &[u8], compression: Compression) -> Result<Self> {
        let name = DictionaryName::of(page, content)?;
        let level = if compression.level < 0 { compression.level } else { compression.level.max(LEVEL_MIN) };
        let compressor = CDict::try_create(content, level).ok_or_else(no_memory)?;
        Ok(Self { name, compression, compressor })
    }

    /// How images name the dictionary.
    pub fn name(&self) -> DictionaryName {
        self.name
    }

    /// The compression that it was made for.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// The same dictionary in another page.
    pub fn in_page(self, page: PageId) -> Self {
        Self { name: DictionaryName { page, ..self.name }, ..self }
    }

    /// The memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        self.compressor.sizeof()
    }

    /// Whether one is of any use for what is compressed like this.
    pub fn suits(compression: Compression) -> bool {
        compression.codec == Codec::Zstd
    }

    /// Whether one is of any use for pages of this kind: most trees have many of them, and they are
    /// alike.
    pub fn serves(kind: PageKind) -> bool {
        matches!(kind, PageKind::Leaf | PageKind::Blob)
    }

    pub(super) fn compressor(&self) -> &CDict<'static> {
        &self.compressor
    }
}

fn no_memory() -> Error {
    Error::Limit { what: "memory for a dictionary", actual: 0, limit: 0 }
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dictionary({:?}, {} bytes of memory)", self.name, self.memory_bytes())
    }
}

impl std::fmt::Debug for Primer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Primer({:?}, {} bytes of memory)", self.name, self.memory_bytes())
    }
}

/// Content for a dictionary of at most `bytes_max` bytes: pieces from all over `contents`, which
/// are contents of pages before compression.
pub fn dictionary_of(contents: &[&[u8]], bytes_max: usize) -> Vec<u8> {
    let pieces: Vec<&[u8]> = contents.iter().flat_map(|content| content.chunks(PIECE_BYTES)).collect();
    let all_bytes: usize = contents.iter().map(|content| content.len()).sum();
    let mut chosen = Vec::with_capacity(bytes_max);
    // Pieces at equal distances all over the bytes, as many as there is room for.
    let (mut seen, mut taken) = (0u64, 0u64);
    for piece in pieces {
        let wanted = (seen + piece.len() as u64) * bytes_max as u64;
        seen += piece.len() as u64;
        let is_like_trained = chosen.is_empty() && piece.starts_with(&TRAINED_MAGIC);
        if wanted >= taken * all_bytes as u64 && chosen.len() + piece.len() <= bytes_max && !is_like_trained {
            chosen.extend_from_slice(piece);
            taken += piece.len() as u64;
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;

    #[test]
    fn nothing_is_taken_for_a_trained_dictionary() {
        let trained = [&TRAINED_MAGIC[..], &[7; 2000]].concat();
        let refused = Dictionary::new(PageId(1), &trained).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Corruption);
        assert!(Primer::new(PageId(1), &trained, Compression::default()).is_err());
        // Content that begins like one does not become one.
        let content = dictionary_of(&[&trained, &[8; 3000]], 2048);
        assert!(!content.is_empty() && !content.starts_with(&TRAINED_MAGIC));
        Dictionary::new(PageId(1), &content).unwrap();
    }
}

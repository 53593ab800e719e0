//! Dictionaries. A dictionary is content similar to the pages of a tree. The compressor treats it
//! as if it preceded each page.
//!
//! A dictionary is made of unchanged pieces of pages. A dictionary trained by Zstandard would gain
//! 1 to 3 % more, for 100 ms (docs/developers/decisions/0030-dictionaries.md).
//!
//! Invariants
//!   I1  An image names its dictionary by page and checksum of the content. With a wrong dictionary
//!       Zstandard may return wrong bytes of the right length; only this check prevents it.
//!   I2  Reading needs a [`Dictionary`], which is small and quick to create. Writing needs a
//!       [`Primer`], which is large and slow to create.

use super::compression::{Codec, Compression};
use crate::base::{opaque, Error, PageId, Result};
use crate::format::page::PageKind;
use zstd::zstd_safe::{CDict, DDict};

pub(super) const NAME_BYTES: usize = 9;
/// The length of the pieces that a dictionary consists of.
const PIECE_BYTES: usize = 1 << 10;
/// The minimum level with a dictionary, except for negative levels. Level 1 searches a dictionary
/// too seldom to benefit from it.
const LEVEL_MIN: i32 = 3;
/// The first bytes of a trained dictionary, from which Zstandard would read tables. Our
/// dictionaries never begin with these bytes.
const TRAINED_MAGIC: [u8; 4] = [0x37, 0xa4, 0x30, 0xec];

/// The dictionary named in an image (I1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DictionaryName {
    /// The page that holds it.
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

/// A dictionary for decompression. It takes about 90 KiB.
pub struct Dictionary {
    name: DictionaryName,
    decompressor: DDict<'static>,
}

impl Dictionary {
    /// Creates the dictionary with this content, stored in page `page`. Fails with `Corruption` if
    /// no dictionary can have this content, and with `Limit` if there is no memory.
    pub fn new(page: PageId, content: &[u8]) -> Result<Self> {
        let name = DictionaryName::of(page, content)?;
        let decompressor = DDict::try_create(content).ok_or_else(no_memory)?;
        Ok(Self { name, decompressor })
    }

    /// Its name in images.
    pub fn name(&self) -> DictionaryName {
        self.name
    }

    /// The memory that it uses.
    pub fn memory_bytes(&self) -> usize {
        self.decompressor.sizeof()
    }

    pub(super) fn decompressor(&self) -> &DDict<'static> {
        &self.decompressor
    }
}

/// A dictionary for compression. It takes a few hundred KiB, and more for higher levels.
pub struct Primer {
    name: DictionaryName,
    compression: Compression,
    compressor: CDict<'static>,
}

impl Primer {
    /// Like [`Dictionary::new`], for writing with this compression.
    pub fn new(page: PageId, content: &[u8], compression: Compression) -> Result<Self> {
        let name = DictionaryName::of(page, content)?;
        let level = if compression.level < 0 { compression.level } else { compression.level.max(LEVEL_MIN) };
        let compressor = CDict::try_create(content, level).ok_or_else(no_memory)?;
        Ok(Self { name, compression, compressor })
    }

    /// The name of the dictionary in images.
    pub fn name(&self) -> DictionaryName {
        self.name
    }

    /// The compression that it was made for.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Returns the same dictionary, stored in another page.
    pub fn in_page(self, page: PageId) -> Self {
        Self { name: DictionaryName { page, ..self.name }, ..self }
    }

    /// The memory that it uses.
    pub fn memory_bytes(&self) -> usize {
        self.compressor.sizeof()
    }

    /// Returns whether dictionaries are used with this compression.
    pub fn suits(compression: Compression) -> bool {
        compression.codec == Codec::Zstd
    }

    /// Returns whether dictionaries are used for pages of this kind: kinds of which most trees have
    /// many similar pages.
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

opaque!(Dictionary);

opaque!(Primer);

/// Returns the content for a dictionary of at most `bytes_max` bytes. It consists of pieces from
/// all parts of `contents`, which are contents of pages before compression.
pub fn dictionary_of(contents: &[&[u8]], bytes_max: usize) -> Vec<u8> {
    let pieces: Vec<&[u8]> = contents.iter().flat_map(|content| content.chunks(PIECE_BYTES)).collect();
    let all_bytes: usize = contents.iter().map(|content| content.len()).sum();
    let mut chosen = Vec::with_capacity(bytes_max);
    // Take as many pieces as fit, at equal distances.
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
        // Content that begins like a trained dictionary does not become a dictionary.
        let content = dictionary_of(&[&trained, &[8; 3000]], 2048);
        assert!(!content.is_empty() && !content.starts_with(&TRAINED_MAGIC));
        Dictionary::new(PageId(1), &content).unwrap();
    }
}

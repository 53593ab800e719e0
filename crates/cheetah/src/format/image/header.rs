//! The header of an image, and the sealing of an image: its address and checksum are written once
//! it has a location.
//!
//! | offset | size | field                                                                    |
//! |--------|------|--------------------------------------------------------------------------|
//! | 0      | 4    | "IMG1"                                                                   |
//! | 4      | 4    | length of the image, a multiple of 64                                    |
//! | 8      | 8    | page                                                                     |
//! | 16     | 8    | own address ([`Location::address`](crate::format::Location::address))    |
//! | 24     | 1    | format version: 1; 2 for a dictionary and for codec 3; 3 if the image is |
//! |        |      | encrypted                                                                |
//! | 25     | 1    | page kind                                                                |
//! | 26     | 1    | codec: 0 none, 1 LZ4 block, 2 Zstandard frame, 3 the same with a         |
//! |        |      | dictionary                                                               |
//! | 27     | 1    | page size as a power of two: 9 to 16                                     |
//! | 28     | 4    | CRC-32C of the image, with these four bytes taken as zero                |
//! | 32     | 8    | epoch it was written for                                                 |
//! | 40     | 4    | tree                                                                     |
//! | 44     | 3    | length of the content before compression                                 |
//! | 47     | 1    | number of zero bytes at the end                                          |
//! | 48     | 5    | with codec 3: page of the dictionary                                     |
//! | -      | 32   | version 3: head of the encrypted block ([`BoxHead`]), which              |
//! |        |      | ends with the content                                                    |
//! | -      | 4    | with codec 3: CRC-32C of the dictionary's content                        |
//! | -      | -    | content, compressed; zeros                                               |
//!
//! Invariants
//!   I1  An image contains its page number and its own address, so a lost or misdirected write is
//!       detected.
//!   I2  The checksum covers every byte.
//!   I3  An image is written in the oldest version that can express it, so that older engines can
//!       read it. The image of a dictionary is compressed without a dictionary.
//!   I4  The checksum covers the encrypted bytes, so moving or checking an image needs no key
//!       (durability::E8).

use super::compression::Codec;
use super::dictionary::{DictionaryName, NAME_BYTES};
use crate::base::{Epoch, PageId, TreeId};
use crate::format::bytes::{ensure, u40_bytes, Defect, Reader};
use crate::format::encryption::{BoxHead, Key, BOX_HEAD_BYTES};
use crate::format::page::{PageKind, PAGE_BYTES_MAX, PAGE_BYTES_MIN};

/// Bytes of the header.
pub const HEADER_BYTES: usize = 48;
/// The newest image format that this engine reads.
pub const FORMAT_VERSION: u8 = 3;
/// The newest version without encryption.
const PLAIN_VERSION: u8 = 2;
/// The version without encryption and dictionaries.
const OLD_VERSION: u8 = 1;
/// The codec's code on disk for content that is compressed with a dictionary.
const CODEC_WITH_DICTIONARY: u8 = 3;

const MAGIC: [u8; 4] = *b"IMG1";
const ADDRESS: std::ops::Range<usize> = 16..24;
const AT_VERSION: usize = 24;
const CRC: std::ops::Range<usize> = 28..32;

/// The header of an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImageHeader {
    /// The page.
    pub pid: PageId,
    /// The tree that owns it.
    pub tree: TreeId,
    /// The epoch it was written for.
    pub epoch: Epoch,
    /// The kind of the page.
    pub kind: PageKind,
    /// Size of the page in memory.
    pub page_bytes: usize,
    /// How its content is compressed.
    pub codec: Codec,
    /// Length of the content before compression.
    pub raw_bytes: usize,
    /// Length of the content as stored.
    pub payload_bytes: usize,
    /// The dictionary that is needed to decompress it.
    pub dictionary: Option<DictionaryName>,
    /// The head of the encrypted block, if the image is encrypted. If it is, only the page of
    /// `dictionary` is valid, because its checksum is encrypted.
    pub closed: Option<BoxHead>,
}

/// The length of the page number of a dictionary.
const PAGE_BYTES: usize = 5;
/// Bytes of the checksum of a dictionary.
const CRC_BYTES: usize = NAME_BYTES - PAGE_BYTES;

impl ImageHeader {
    /// Writes the header at the start of `image`, which is otherwise complete. The image is not
    /// sealed yet.
    pub(super) fn write(&self, image: &mut [u8]) {
        let padding = image.len() - self.payload_at() - self.payload_bytes;
        image[..4].copy_from_slice(&MAGIC);
        let length = image.len() as u32;
        image[4..8].copy_from_slice(&length.to_le_bytes());
        image[8..16].copy_from_slice(&self.pid.0.to_le_bytes());
        image[ADDRESS].fill(0);
        let size = self.page_bytes.trailing_zeros() as u8;
        let bytes = [self.version(), self.kind.code(), self.codec_code(), size];
        image[AT_VERSION..AT_VERSION + 4].copy_from_slice(&bytes);
        image[CRC].fill(0);
        image[32..40].copy_from_slice(&self.epoch.0.to_le_bytes());
        image[40..44].copy_from_slice(&self.tree.0.to_le_bytes());
        image[44..47].copy_from_slice(&(self.raw_bytes as u32).to_le_bytes()[..3]);
        image[47] = padding as u8;
        if let Some(dictionary) = self.dictionary {
            image[HEADER_BYTES..HEADER_BYTES + PAGE_BYTES].copy_from_slice(&u40_bytes(dictionary.page.0));
            let at = self.payload_at();
            image[at - CRC_BYTES..at].copy_from_slice(&dictionary.crc.to_le_bytes());
        }
        if let Some(head) = &self.closed {
            let at = self.closed_at();
            image[at - BOX_HEAD_BYTES..at].copy_from_slice(&head.bytes());
        }
    }

    /// Encrypts the content of an image, whose header has been written, with the key that the
    /// header names.
    pub(super) fn close(&self, image: &mut [u8], key: &Key) {
        if let Some(head) = &self.closed {
            key.apply(&head.nonce, &mut image[self.closed_at()..self.payload_at() + self.payload_bytes]);
        }
    }

    /// Replaces `opened` with the decrypted content of an image. Returns the name of its
    /// dictionary.
    pub(super) fn open(
        &self,
        image: &[u8],
        key: Option<&Key>,
        opened: &mut Vec<u8>,
    ) -> Result<Option<DictionaryName>, Defect> {
        let head = self.closed.ok_or(Defect::new("not an encrypted image"))?;
        let key = key.filter(|key| key.name() == head.key).ok_or(Defect::new("not the key of the image"))?;
        let content = image.get(self.closed_at()..self.payload_at() + self.payload_bytes);
        opened.clear();
        opened.extend_from_slice(content.unwrap_or_default());
        key.apply(&head.nonce, opened);
        let Some(name) = self.dictionary else { return Ok(None) };
        let crc = Reader::new(opened).u32()?;
        opened.drain(..CRC_BYTES);
        Ok(Some(DictionaryName { crc, ..name }))
    }

    /// The oldest version that can express the header (I3).
    fn version(&self) -> u8 {
        match self.dictionary.is_some() || self.kind == PageKind::Dictionary {
            _ if self.closed.is_some() => FORMAT_VERSION,
            true => PLAIN_VERSION,
            false => OLD_VERSION,
        }
    }

    fn codec_code(&self) -> u8 {
        if self.dictionary.is_some() {
            CODEC_WITH_DICTIONARY
        } else {
            self.codec.code()
        }
    }

    pub(super) fn payload_at(&self) -> usize {
        let box_bytes = if self.closed.is_some() { BOX_HEAD_BYTES } else { 0 };
        HEADER_BYTES + box_bytes + if self.dictionary.is_some() { NAME_BYTES } else { 0 }
    }

    /// The position at which encryption begins.
    fn closed_at(&self) -> usize {
        self.payload_at() - if self.dictionary.is_some() { CRC_BYTES } else { 0 }
    }

    /// Reads the header of a complete image. Checks each field, but neither address nor checksum.
    pub fn read(image: &[u8]) -> Result<Self, Defect> {
        let mut reader = Reader::new(image);
        ensure(reader.array()? == MAGIC, "not the start of an image")?;
        ensure(reader.u32()? as usize == image.len(), "image length is wrong")?;
        ensure(image.len() % super::ALIGN_BYTES == 0, "image length is not a multiple of 64")?;
        let pid = PageId(reader.u64()?);
        ensure(pid != PageId::NONE && pid <= PageId::MAX, "impossible page number")?;
        reader.take(8)?;
        let version = reader.u8()?;
        ensure((OLD_VERSION..=FORMAT_VERSION).contains(&version), "unknown image format")?;
        let kind = PageKind::from_code(reader.u8()?).ok_or(Defect::new("unknown page kind"))?;
        let codec_code = reader.u8()?;
        let has_dictionary = codec_code == CODEC_WITH_DICTIONARY;
        let codec = if has_dictionary { Some(Codec::Zstd) } else { Codec::from_code(codec_code) };
        let codec = codec.ok_or(Defect::new("unknown codec"))?;
        let page_bytes = 1usize.checked_shl(reader.u8()?.into()).unwrap_or(0);
        let size_known = (PAGE_BYTES_MIN..=PAGE_BYTES_MAX).contains(&page_bytes);
        ensure(size_known, "impossible page size")?;
        reader.take(4)?;
        let epoch = Epoch(reader.u64()?);
        let tree = TreeId(reader.u32()?);
        let [a, b, c, padding] = reader.array()?;
        let raw_bytes = u32::from_le_bytes([a, b, c, 0]) as usize;
        ensure(raw_bytes <= super::max_raw_bytes(page_bytes), "content longer than its page allows")?;
        let page = if has_dictionary { Some(PageId(reader.u40()?)) } else { None };
        let closed = if version == FORMAT_VERSION { Some(BoxHead::decode(&mut reader)?) } else { None };
        let dictionary = match page {
            Some(page) => Some(DictionaryName { page, crc: reader.u32()? }),
            None => None,
        };
        let is_possible = dictionary.is_none_or(|name| name.page != PageId::NONE && name.page != pid);
        ensure(is_possible, "impossible page of a dictionary")?;
        let payload_bytes = reader.rest().len().checked_sub(padding.into());
        let payload_bytes = payload_bytes.ok_or(Defect::new("more padding than image"))?;
        ensure(payload_bytes <= raw_bytes, "compressed content longer than plain")?;
        let header =
            Self { pid, tree, epoch, kind, page_bytes, codec, raw_bytes, payload_bytes, dictionary, closed };
        ensure(header.version() <= version, "a field that its image format version does not have")?;
        ensure(kind != PageKind::Dictionary || dictionary.is_none(), "a dictionary that needs a dictionary")?;
        Ok(header)
    }

    /// The stored content of `image`, whose header this is.
    pub(super) fn payload<'a>(&self, image: &'a [u8]) -> &'a [u8] {
        let at = self.payload_at();
        image.get(at..at + self.payload_bytes).unwrap_or_default()
    }
}

/// The version that the header claims, if these bytes are the start of an image of any version.
pub(super) fn claimed_version(image: &[u8]) -> Option<u8> {
    image.starts_with(&MAGIC).then(|| image.get(AT_VERSION).copied()).flatten()
}

/// Writes the image's address and checksum into it, and returns the checksum. Also used to write
/// the new address of a copied image.
///
/// # Panics
/// If `image` is shorter than a header.
pub fn seal(image: &mut [u8], address: u64) -> u32 {
    image[ADDRESS].copy_from_slice(&address.to_le_bytes());
    let crc = checksum(image);
    image[CRC].copy_from_slice(&crc.to_le_bytes());
    crc
}

/// Returns the length, page and checksum in the header of a possible image. Used to search for
/// images in a file. Checks only the magic; see [`is_intact`].
pub fn glance(start: &[u8]) -> Option<(usize, PageId, u32)> {
    let mut reader = Reader::new(start);
    let is_image = reader.array().ok()? == MAGIC;
    let length = reader.u32().ok()? as usize;
    let pid = PageId(reader.u64().ok()?);
    reader.take(CRC.start - ADDRESS.start).ok()?;
    let crc = reader.u32().ok()?;
    is_image.then_some((length, pid, crc))
}

/// Returns whether `image` is intact and was sealed with this address and checksum.
pub fn is_intact(image: &[u8], address: u64, crc: u32) -> bool {
    image.len() >= HEADER_BYTES
        && image[ADDRESS] == address.to_le_bytes()
        && image[CRC] == crc.to_le_bytes()
        && checksum(image) == crc
}

fn checksum(image: &[u8]) -> u32 {
    let crc = crc32c::crc32c_append(crc32c::crc32c(&image[..CRC.start]), &[0; 4]);
    crc32c::crc32c_append(crc, &image[CRC.end..])
}

//! The frame of an image: enough to seal it with its own address and to find it again in a segment.
//!
//! ```text
//! offset size
//!      0    4  "IMG1"
//!      4    4  length of the image
//!      8    8  page
//!     16    8  address (see `Location::address`)
//!     24    4  zero
//!     28    4  CRC-32C of the image, these four bytes taken as zero
//! ```

use crate::base::PageId;

const CRC: std::ops::Range<usize> = 28..32;

/// Writes the image's address and checksum into it; returns the checksum.
pub(super) fn seal(image: &mut [u8], address: u64) -> u32 {
    image[16..24].copy_from_slice(&address.to_le_bytes());
    let crc = checksum(image);
    image[CRC].copy_from_slice(&crc.to_le_bytes());
    crc
}

/// Whether this is, whole and unchanged, the image that was sealed with this address and checksum.
pub(super) fn is_intact(image: &[u8], address: u64, crc: u32) -> bool {
    image.len() >= CRC.end
        && image[16..24] == address.to_le_bytes()
        && image[CRC] == crc.to_le_bytes()
        && checksum(image) == crc
}

fn checksum(image: &[u8]) -> u32 {
    let crc = crc32c::crc32c_append(crc32c::crc32c(&image[..CRC.start]), &[0; 4]);
    crc32c::crc32c_append(crc, &image[CRC.end..])
}

/// What the first bytes of an image say: length, page and checksum. `None` if they are not the start of an image.
pub(super) fn inspect(start: &[u8]) -> Option<(u32, PageId, u32)> {
    let header: &[u8; 32] = start.first_chunk()?;
    let u32_at = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let page = u64::from(u32_at(8)) | u64::from(u32_at(12)) << 32;
    (&header[..4] == b"IMG1").then(|| (u32_at(4), PageId(page), u32_at(28)))
}

//! Between the bytes of a frame and its image on disk.
//!
//! ```text
//! offset size
//!      0   32  see `segment::sealing`: length, page, address, checksum
//!     32    4  bytes of the page
//!     36    -  the page without the zeros at its end
//! ```

use super::PageClass;
use crate::base::{Error, PageId, Result};
use crate::format::location::ALIGN_BYTES;
use crate::format::Reader;

const HEADER_BYTES: usize = 36;

/// Encodes a page into an empty `image`.
pub(super) fn encode(page: &[u8], pid: PageId, image: &mut Vec<u8>) {
    let used = page.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let image_bytes = (HEADER_BYTES + used).next_multiple_of(ALIGN_BYTES as usize);
    image.extend_from_slice(b"IMG1");
    image.extend_from_slice(&(image_bytes as u32).to_le_bytes());
    image.extend_from_slice(&pid.0.to_le_bytes());
    image.extend_from_slice(&[0; 16]);
    image.extend_from_slice(&(page.len() as u32).to_le_bytes());
    image.extend_from_slice(&page[..used]);
    image.resize(image_bytes, 0);
}

/// The class of the page in an image, once it is known to be that of `pid`.
pub(super) fn inspect(image: &[u8], pid: PageId, page_bytes: u32) -> Result<PageClass> {
    let mut reader = Reader::new(image);
    let defect = |defect: crate::format::Defect| defect.in_place("image");
    reader.take(8).map_err(defect)?;
    let found = PageId(reader.u64().map_err(defect)?);
    if found != pid {
        return Err(Error::corrupt("image", format!("it is of page {found}")));
    }
    reader.take(16).map_err(defect)?;
    let bytes = reader.u32().map_err(defect)? as usize;
    PageClass::of(bytes, page_bytes)
        .ok_or_else(|| Error::corrupt("image", format!("a page of {bytes} bytes")))
}

/// Decodes an image that [`inspect`] has accepted.
pub(super) fn decode(image: &[u8], page: &mut [u8]) -> Result<()> {
    let content = image.get(HEADER_BYTES..).unwrap_or_default();
    let used = content.len().min(page.len());
    if content[used..].iter().any(|byte| *byte != 0) {
        return Err(Error::corrupt("image", "it is longer than its page"));
    }
    page[..used].copy_from_slice(&content[..used]);
    page[used..].fill(0);
    Ok(())
}

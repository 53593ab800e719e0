//! The image of a page on disk: the content of the page, regrouped by column, compressed and
//! sealed.
//!
//! [`Workspace::encode`] never fails. [`Workspace::decode`] accepts any bytes, and returns an error
//! or a page that passes verification.

mod columns;
mod compression;
mod decode;
mod dictionary;
mod encode;
mod find;
mod header;
mod rebuild;
mod reclose;
#[cfg(test)]
mod tests;
mod transpose;
mod tree_content;
mod workspace;

pub use compression::{Codec, Compression};
pub use decode::{check, Means};
pub use dictionary::{dictionary_of, Dictionary, DictionaryName, Primer};
pub use encode::Encoding;
pub use find::LeafImage;
pub use header::{glance, is_intact, seal, ImageHeader, FORMAT_VERSION, HEADER_BYTES};
pub use reclose::reclose;
pub use workspace::Workspace;

use super::encryption::BOX_HEAD_BYTES;
use super::row::RowFormatVersion;

/// The length of an image is a multiple of this number of bytes.
pub const ALIGN_BYTES: usize = 64;

/// Returns the maximum length of the image of a page of `page_bytes`.
pub const fn max_image_bytes(page_bytes: usize) -> usize {
    (HEADER_BYTES + BOX_HEAD_BYTES + max_raw_bytes(page_bytes)).next_multiple_of(ALIGN_BYTES)
}

/// Returns the maximum length of an image's content before compression. Records, fences and header
/// fields take less than in the page, where a record also has a slot. A row-format version takes at
/// most an eighth of the page; a longer one is not stored.
const fn max_raw_bytes(page_bytes: usize) -> usize {
    page_bytes + page_bytes / 8
}

/// Returns the encoded row-format version, if it is short enough to be stored in an image.
fn usable_format(row_format: &RowFormatVersion, page_bytes: usize) -> Option<Vec<u8>> {
    let mut encoded = Vec::new();
    row_format.encode(&mut encoded);
    (!row_format.is_opaque() && encoded.len() <= page_bytes / 8).then_some(encoded)
}

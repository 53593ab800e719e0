//! The image of a page on disk: its content regrouped by column, compressed, sealed.
//!
//! [`Workspace::encode`] never fails. [`Workspace::decode`] accepts any bytes and returns a page
//! that passes verification, or an error.

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

/// The length of an image is a multiple of this.
pub const ALIGN_BYTES: usize = 64;

/// The largest image of a page of `page_bytes`.
pub const fn max_image_bytes(page_bytes: usize) -> usize {
    (HEADER_BYTES + BOX_HEAD_BYTES + max_raw_bytes(page_bytes)).next_multiple_of(ALIGN_BYTES)
}

/// The longest content of an image before compression. A record takes less than in its page, where
/// it also has a slot; so do fences and header fields. A row-format version longer than an eighth
/// of the page is left out.
const fn max_raw_bytes(page_bytes: usize) -> usize {
    page_bytes + page_bytes / 8
}

/// The encoded row-format version, if it is short enough to be stored in an image.
fn usable_format(row_format: &RowFormatVersion, page_bytes: usize) -> Option<Vec<u8>> {
    let mut encoded = Vec::new();
    row_format.encode(&mut encoded);
    (!row_format.is_opaque() && encoded.len() <= page_bytes / 8).then_some(encoded)
}

//! From the bytes of a page to its image. Never fails.

use super::compression::{compress, Compression};
use super::header::{ImageHeader, HEADER_BYTES};
use super::workspace::Workspace;
use super::{max_raw_bytes, transpose, usable_shape, ALIGN_BYTES};
use crate::base::{Generation, PageId, TxnId};
use crate::format::page::PageView;
use crate::format::row::RowShape;

/// How to encode a page.
#[derive(Clone, Copy, Debug)]
pub struct Encoding<'a> {
    /// The columns of the rows in its leaf; rows that are different are stored all the same.
    pub shape: &'a RowShape,
    /// How to compress it.
    pub compression: Compression,
    /// Records of transactions below this lose their version: everybody sees them.
    pub freeze_below: TxnId,
}

impl Workspace {
    /// Replaces `image` by the image of `page`, at most [`super::max_image_bytes`] long. It is not sealed yet
    /// ([`super::seal`]).
    pub fn encode(
        &mut self,
        page: &[u8],
        pid: PageId,
        generation: Generation,
        how: &Encoding<'_>,
        image: &mut Vec<u8>,
    ) {
        let Self { raw, contexts } = self;
        raw.clear();
        let view = PageView::new(page);
        if view.kind().is_tree() {
            let shape = if view.is_leaf() { usable_shape(how.shape, page.len()) } else { None };
            let shape = shape.as_deref().map(|encoded| (how.shape, encoded));
            transpose::tree_page(view, shape, how.freeze_below, raw);
        } else {
            transpose::content_page(view, raw);
        }
        debug_assert!(raw.len() <= max_raw_bytes(page.len()));
        image.clear();
        image.resize(HEADER_BYTES, 0);
        let codec = compress(contexts, raw, how.compression, image);
        let header = ImageHeader {
            pid,
            tree: view.tree(),
            generation,
            kind: view.kind(),
            page_bytes: page.len(),
            codec,
            raw_bytes: raw.len(),
            payload_bytes: image.len() - HEADER_BYTES,
        };
        image.resize(image.len().next_multiple_of(ALIGN_BYTES), 0);
        header.write(image);
    }
}

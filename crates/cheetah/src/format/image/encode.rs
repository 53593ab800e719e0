//! Encodes the bytes of a page as its image. Never fails.

use super::compression::{compress, Codec, Compression};
use super::dictionary::{Primer, NAME_BYTES};
use super::header::{ImageHeader, HEADER_BYTES};
use super::workspace::Workspace;
use super::{max_raw_bytes, transpose, usable_format, ALIGN_BYTES};
use crate::base::{Epoch, PageId, TxnId};
use crate::format::encryption::{BoxHead, Key, BOX_HEAD_BYTES, NONCE_BYTES};
use crate::format::page::PageView;
use crate::format::row::RowFormatVersion;

/// How to encode a page.
#[derive(Clone, Copy, Debug)]
pub struct Encoding<'a> {
    /// The format of the rows in its leaf. Rows of another format are stored too, but not by
    /// column.
    pub row_format: &'a RowFormatVersion,
    /// How to compress it.
    pub compression: Compression,
    /// Records of transactions below this ID lose their version, because they are visible to all
    /// snapshots.
    pub freeze_below: TxnId,
    /// The dictionary for its leaves and large values, if they are compressed by Zstandard.
    pub dictionary: Option<&'a Primer>,
    /// The key that encrypts it, with a nonce that is used only for this image.
    pub lock: Option<(&'a Key, [u8; NONCE_BYTES])>,
}

impl Workspace {
    /// Replaces `image` with the image of `page`, which is at most [`super::max_image_bytes`] long.
    /// The image is not sealed yet ([`super::seal`]).
    pub fn encode(
        &mut self,
        page: &[u8],
        pid: PageId,
        epoch: Epoch,
        how: &Encoding<'_>,
        image: &mut Vec<u8>,
    ) {
        self.regroup(page, how.row_format, how.freeze_below);
        let Self { raw, contexts, .. } = self;
        let view = PageView::new(page);
        let dictionary = how.dictionary.filter(|_| Primer::serves(view.kind()));
        image.clear();
        image.resize(HEADER_BYTES + dictionary.map_or(0, |_| NAME_BYTES), 0);
        let mut payload_at = image.len();
        let codec = compress(contexts, raw, how.compression, dictionary, image);
        let dictionary = dictionary.filter(|_| codec == Codec::Zstd);
        if dictionary.is_none() && payload_at > HEADER_BYTES {
            image.drain(HEADER_BYTES..payload_at);
            payload_at = HEADER_BYTES;
        }
        let header = ImageHeader {
            pid,
            tree: view.tree(),
            epoch,
            kind: view.kind(),
            page_bytes: page.len(),
            codec,
            raw_bytes: raw.len(),
            payload_bytes: image.len() - payload_at,
            dictionary: dictionary.map(Primer::name),
            closed: how.lock.map(|(key, nonce)| BoxHead { key: key.name(), nonce }),
        };
        if how.lock.is_some() {
            image.splice(payload_at..payload_at, [0; BOX_HEAD_BYTES]);
        }
        image.resize(image.len().next_multiple_of(ALIGN_BYTES), 0);
        header.write(image);
        if let Some((key, _)) = how.lock {
            header.close(image, key);
        }
    }

    /// Returns the content of a page before compression, as produced by [`encode`](Self::encode).
    pub fn content(&mut self, page: &[u8], row_format: &RowFormatVersion, freeze_below: TxnId) -> &[u8] {
        self.regroup(page, row_format, freeze_below);
        &self.raw
    }

    /// Returns the length of an image with this content.
    pub fn image_bytes(
        &mut self,
        content: &[u8],
        compression: Compression,
        dictionary: Option<&Primer>,
    ) -> usize {
        let mut payload = Vec::new();
        let codec = compress(&mut self.contexts, content, compression, dictionary, &mut payload);
        let name_bytes = if codec == Codec::Zstd && dictionary.is_some() { NAME_BYTES } else { 0 };
        (HEADER_BYTES + name_bytes + payload.len()).next_multiple_of(ALIGN_BYTES)
    }

    fn regroup(&mut self, page: &[u8], row_format: &RowFormatVersion, freeze_below: TxnId) {
        let raw = &mut self.raw;
        raw.clear();
        let view = PageView::new(page);
        if view.kind().is_tree() {
            let encoded = if view.is_leaf() { usable_format(row_format, page.len()) } else { None };
            let row_format = encoded.as_deref().map(|encoded| (row_format, encoded));
            transpose::tree_page(view, row_format, freeze_below, raw);
        } else {
            transpose::content_page(view, raw);
        }
        debug_assert!(raw.len() <= max_raw_bytes(page.len()));
    }
}

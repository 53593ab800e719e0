//! Pages of plain content, which hold parts of large values, parts of the undo log, or
//! dictionaries.

use super::layout::*;
use super::write::{NoRoom, PageMut};
use crate::base::{PageId, TreeId};

/// Bytes of content that a page of `page_bytes` holds.
pub const fn content_capacity(page_bytes: usize) -> usize {
    page_bytes - HEADER_BYTES
}

/// Makes `bytes` an empty page of content. `next` is the page with the content that follows.
/// `position` is the position of this page's first byte in the value or the undo log.
pub fn build_content(
    bytes: &mut [u8],
    kind: PageKind,
    tree: TreeId,
    next: PageId,
    position: u64,
) -> PageMut<'_> {
    assert!(!kind.is_tree() && bytes.len() <= PAGE_BYTES_MAX, "content pages have at most 64 KiB");
    init_header(bytes, kind, 0, tree, next.0);
    put_u64(bytes, AT_CONTENT_POSITION, position);
    PageMut::new(bytes)
}

impl PageMut<'_> {
    /// Appends `piece` to the content of a blob or undo page.
    pub fn append_content(&mut self, piece: &[u8]) -> Result<(), NoRoom> {
        let length = self.view().content().len();
        let end = length + piece.len();
        if end > content_capacity(self.view().bytes().len()) {
            return Err(NoRoom);
        }
        let bytes = self.bytes_mut();
        bytes[HEADER_BYTES + length..HEADER_BYTES + end].copy_from_slice(piece);
        put_u32(bytes, AT_CONTENT_LEN, end as u32);
        Ok(())
    }

    /// Truncates the content of a blob or undo page to its first `length` bytes.
    pub fn truncate_content(&mut self, length: usize) {
        let length = length.min(self.view().content().len());
        put_u32(self.bytes_mut(), AT_CONTENT_LEN, length as u32);
    }
}

//! Merges two neighbouring pages into one.

use super::layout::*;
use super::view::PageView;
use super::write::{build_page, NoRoom};

/// Returns the bytes, including the header, that a page with the records of `left` and of `right`,
/// its right neighbour, would use.
pub fn merged_bytes(left: PageView<'_>, right: PageView<'_>) -> usize {
    let prefix_len = right.high().map_or(0, |high| common_prefix(left.low(), high));
    let fences = left.low().len() + right.high().map_or(0, <[u8]>::len);
    let records =
        |page: PageView<'_>| (0..page.count()).map(|i| moved_bytes(page, i, prefix_len)).sum::<usize>();
    HEADER_BYTES + fences + records(left) + records(right)
}

/// Bytes of cell `i` in a page that omits the first `prefix_len` bytes of its keys.
fn moved_bytes(page: PageView<'_>, i: usize, prefix_len: usize) -> usize {
    let key_len = page.prefix_len() + page.suffix(i).len();
    cell_bytes(key_len - prefix_len, &page.record(i))
}

/// Builds one page in `target` from `left` and `right`, its right neighbour.
pub fn merge_into(left: PageView<'_>, right: PageView<'_>, target: &mut [u8]) -> Result<(), NoRoom> {
    let are_neighbours = left.high() == Some(right.low()) && left.level() == right.level();
    debug_assert!(are_neighbours, "I1: pages that are merged share a fence, and their level");
    if merged_bytes(left, right) > target.len() {
        return Err(NoRoom);
    }
    let (kind, level, tree) = (left.kind(), left.level(), left.tree());
    let mut page = build_page(target, kind, level, tree, left.low(), right.high(), right.right());
    page.copy_range(left, 0..left.count())?;
    page.copy_range(right, 0..right.count())
}

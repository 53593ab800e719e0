//! The page in memory: tree pages with slots, fences and prefix truncation, and pages of plain
//! content.

mod assemble;
mod buffered;
mod content;
mod layout;
mod merge;
mod split;
#[cfg(test)]
mod tests;
mod verify;
mod view;
mod write;

pub(in crate::format) use assemble::Outline;
pub use buffered::{apply_buffered, buffered_keys, encode_buffered, find_buffered, Applied, BufferedChange};
pub use content::{build_content, content_capacity};
pub(in crate::format) use layout::common_prefix;
pub use layout::{
    cell_bytes, compare_keys, is_built, max_cell_bytes, max_key_bytes, max_payload_bytes, PageBuf, PageKind,
    RecordCopy, RecordFlags, RecordRef, RecordVersion, HEADER_BYTES, PAGE_BYTES_MAX, PAGE_BYTES_MIN,
    SLOT_BYTES, TREE_PAGE_BYTES_MAX, VERSION_BYTES,
};
pub use merge::{merge_into, merged_bytes};
pub use split::{plan_split, separator_between, split_into, Pending, Side, SplitPlan};
pub use view::PageView;
pub use write::{build_page, NoRoom, PageMut};

//! Filters of keys, which show that a leaf without a frame lacks a key.
//!
//! An insert must know that its key does not exist. With keys in random order, such as random
//! GUIDs, it would read an image for each row. A Bloom filter of the keys in an image replaces the
//! read, and the row becomes a pending change of its leaf (decision
//! [42](../../../../docs/developers/decisions/0042-filters-of-keys.md)). Filters are kept in memory
//! only, and made from leaves that a thread has just read, in trees with many unsuccessful lookups.
//!
//! Invariants
//!   Q1  A filter belongs to one image and contains all its keys, including keys of delete-marked
//!       records. It is checked only while this image is the newest, the page has no frame, and the
//!       caller holds the latch of the parent that names the leaf (like B2).
//!   Q2  A filter does not contain the keys of pending changes. Pending changes are checked
//!       separately: for a part of a key under the same lock of the page's entry, and for a whole
//!       key with the ticket (B18).
//!   Q3  A filter contains whole keys, or keys without the row's key, and is only checked for the
//!       same part of a key.
//! Locks     After the lock of the page's entry: one mutex for each shard. Only the memory of cells
//!           is accessed under it.

mod asking;
mod filtered_trees;
mod key_filters;
mod making;

pub use asking::Known;
pub(super) use filtered_trees::FilteredTrees;
pub(super) use key_filters::KeyFilters;

/// The part of the keys that the filters of a tree contain.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum KeyPart {
    /// The whole key.
    #[default]
    Whole,
    /// The part before the row's key: in a unique index each key ends with the key of the row. The
    /// payload begins with the length of the row's key, as a variable-length integer.
    BeforeRowKey,
}

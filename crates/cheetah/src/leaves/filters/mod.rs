//! Filters of keys: they say that a leaf which is not in memory lacks a key.
//!
//! An insert must know that its key is not there. Keys in no order, as random GUIDs have, would
//! read an image for each row. A Bloom filter of the keys in an image answers instead, and the row
//! waits for its leaf (decision
//! [42](../../../../docs/developers/decisions/0042-filters-of-keys.md)). Filters live in memory
//! only. They are made of a leaf that somebody has at hand, in trees where keys were looked for in
//! vain.
//!
//! Invariants
//!   Q1  A filter is of one image, and has all its keys, delete-marked ones too. It is asked while
//!       that is the newest image, there is no frame, and the caller has the latch of the parent
//!       that names the leaf (as B2).
//!   Q2  It knows nothing of what waits for the leaf. That is asked beside it: for a part of a key
//!       under the same lock of the page's entry, for a whole key with the ticket (B18).
//!   Q3  It is of whole keys, or of keys without the row's, and asked for the same.
//! Locks     after the lock of the page's entry: one mutex for each shard, with nothing under it
//!           but the memory of cells.

mod asking;
mod filtered_trees;
mod key_filters;
mod making;

pub use asking::Known;
pub(super) use filtered_trees::FilteredTrees;
pub(super) use key_filters::KeyFilters;

/// Which part of its keys a tree is filtered by.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum KeyPart {
    /// All of it.
    #[default]
    Whole,
    /// In a unique index each key ends with the key of the row: this is the part before it. The
    /// payload begins with the length of the row's key, as a variable-length integer.
    BeforeRowKey,
}

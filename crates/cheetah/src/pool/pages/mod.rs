//! The pages that the layers above use: pinned, read and changed through guards, allocated, freed.
//! Invariants F1 to F4 are at the head of `frames`.

mod allocate;
mod drop_tree;
mod page_guard;

pub use page_guard::{PageRef, ReadGuard, WriteGuard};

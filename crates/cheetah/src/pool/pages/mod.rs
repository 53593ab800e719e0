//! Pages as the layers above have them: pinned, read and changed through guards, allocated, freed.
//! Invariants: F1 to F4 at the head of `frames`.

mod allocate;
mod drop_tree;
mod page_guard;

pub use page_guard::{PageRef, ReadGuard, WriteGuard};

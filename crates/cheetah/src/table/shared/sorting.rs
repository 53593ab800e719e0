//! The sorters of loads and builds of indexes.

use crate::sort::{Share, SortMemory, Sorter, TempFiles};
use std::sync::Arc;

/// Memory, and files for what it does not hold.
pub(crate) struct Sorting {
    memory: Arc<SortMemory>,
    temp_files: Arc<TempFiles>,
}

impl Sorting {
    pub(crate) fn new(memory: Arc<SortMemory>, temp_files: Arc<TempFiles>) -> Self {
        Self { memory, temp_files }
    }

    /// The memory for sorting.
    pub(crate) fn memory(&self) -> &Arc<SortMemory> {
        &self.memory
    }

    /// A sorter within that share of the memory.
    pub(crate) fn sorter(&self, share: Share) -> Sorter {
        Sorter::new(&self.temp_files, share)
    }
}

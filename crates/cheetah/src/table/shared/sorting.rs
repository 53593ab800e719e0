//! The sorters of bulk loads and index builds.

use crate::sort::{Share, SortMemory, Sorter, TempFiles};
use std::sync::Arc;

/// The memory for sorting, and temporary files for runs that do not fit.
pub(crate) struct Sorting {
    memory: Arc<SortMemory>,
    temp_files: Arc<TempFiles>,
}

impl Sorting {
    pub(crate) fn new(memory: Arc<SortMemory>, temp_files: Arc<TempFiles>) -> Self {
        Self { memory, temp_files }
    }

    pub(crate) fn memory(&self) -> &Arc<SortMemory> {
        &self.memory
    }

    pub(crate) fn sorter(&self, share: Share) -> Sorter {
        Sorter::new(&self.temp_files, share)
    }
}

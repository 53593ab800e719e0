//! The buffers and pins of one transaction's row operations.

use super::change::{Change, Paths};
use super::stored_row::Value;
use crate::base::PageId;
use crate::format::log_record::LargeSource;
use crate::format::row::LOCATOR_BYTES;
use crate::format::undo_record::UndoBlob;

/// Once the buffers have grown, only unique keys allocate memory per row.
#[derive(Default, Debug)]
pub(crate) struct Writer {
    pub(crate) paths: Paths,
    pub(crate) change: Change,
    pub(crate) buffers: Buffers,
    pub(crate) unclaimed: Unclaimed,
    pub(in crate::table) values: Vec<Value>,
    pub(in crate::table) old_values: Vec<Value>,
    pub(in crate::table) large: Vec<LargeSource>,
    /// Locators of the values that a commit frees.
    pub(in crate::table) freed: Vec<u8>,
    /// The row with the same unique key that the transaction waited for last and has locked.
    pub(in crate::table) duplicate: Option<Vec<u8>>,
}

impl Writer {
    /// Unpins everything at the end of a statement.
    pub(crate) fn release(&mut self) {
        self.paths.release();
    }
}

/// Values written for the next row operation.
#[derive(Default, Debug)]
pub(crate) struct Unclaimed {
    pub(super) pages: Vec<PageId>,
    /// Locators of finished values, in order.
    pub(crate) finished: Vec<[u8; LOCATOR_BYTES]>,
}

impl Unclaimed {
    /// Removes all unclaimed values: a row operation claimed them, or they were rolled back.
    pub(crate) fn clear(&mut self) {
        self.pages.clear();
        self.finished.clear();
    }

    /// Adds the pages and the locator of a step's undo record; for recovery, oldest first.
    pub(crate) fn restore(&mut self, blob: &UndoBlob<'_>) {
        self.pages.extend_from_slice(&blob.pages);
        if let Ok(locator) = blob.locator.try_into() {
            self.finished.push(locator);
            self.pages.clear();
        }
    }
}

/// Reused buffers for undo and log records.
#[derive(Default, Debug)]
pub(crate) struct Buffers {
    pub(crate) undo: Vec<u8>,
    pub(crate) log: Vec<u8>,
}

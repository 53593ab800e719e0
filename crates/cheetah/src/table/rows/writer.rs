//! The buffers and pins of one transaction's row operations. [`super::operation`] uses them.

use super::change::{Change, Paths};
use super::stored_row::Value;
use crate::base::PageId;
use crate::format::log_record::LargeSource;
use crate::format::row::LOCATOR_BYTES;
use crate::format::undo_record::UndoBlob;

/// The buffers and pins of one transaction's row operations. Once they have grown, only unique keys
/// allocate per row.
#[derive(Default, Debug)]
pub(crate) struct Writer {
    pub(crate) paths: Paths,
    pub(crate) change: Change,
    pub(crate) buffers: Buffers,
    pub(crate) unclaimed: Unclaimed,
    pub(in crate::table) values: Vec<Value>,
    pub(in crate::table) old_values: Vec<Value>,
    pub(in crate::table) large: Vec<LargeSource>,
    /// Locators of the values that die when the transaction commits.
    pub(in crate::table) freed: Vec<u8>,
    /// The row with the same unique key that was waited for last, and is locked since then.
    pub(in crate::table) duplicate: Option<Vec<u8>>,
}

impl Writer {
    /// Unpins everything; to be called when a statement ends.
    pub(crate) fn release(&mut self) {
        self.paths.release();
    }
}

/// The large values that a transaction has written for its next row operation.
#[derive(Default, Debug)]
pub(crate) struct Unclaimed {
    /// Pages of the value being written.
    pub(super) pages: Vec<PageId>,
    /// Locators of finished values, in order.
    pub(crate) finished: Vec<[u8; LOCATOR_BYTES]>,
}

impl Unclaimed {
    /// Nothing is left unclaimed: a row operation took everything, or it was all rolled back.
    pub(crate) fn clear(&mut self) {
        self.pages.clear();
        self.finished.clear();
    }

    /// Adds what an undo record of a step says; for recovery, oldest first.
    pub(crate) fn restore(&mut self, blob: &UndoBlob<'_>) {
        self.pages.extend_from_slice(&blob.pages);
        if let Ok(locator) = blob.locator.try_into() {
            self.finished.push(locator);
            self.pages.clear();
        }
    }
}

/// Record buffers, reused.
#[derive(Default, Debug)]
pub(crate) struct Buffers {
    pub(crate) undo: Vec<u8>,
    pub(crate) log: Vec<u8>,
}

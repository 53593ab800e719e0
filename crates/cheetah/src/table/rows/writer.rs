//! The buffers and pins of one transaction's row operations. What is done with them says [`super::operation`].

use super::change::{Change, Paths};
use super::large::{Buffers, Unclaimed};
use super::stored_row::Value;
use crate::format::log_record::LargeSource;

/// The buffers and pins of one transaction's row operations. Once they have grown, only unique keys allocate per row.
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

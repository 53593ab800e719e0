//! How a read takes locks, after the table itself is locked if needed.

use crate::table::Table;
use crate::txn::{LockMode, ReadView};
use std::sync::Arc;

/// How to read, and the table to read if it is not the requested one.
pub(in crate::db) type HowToRead = (Reading, Option<Arc<Table>>);

pub(in crate::db) enum Reading {
    /// Without locks, the rows that the view sees.
    View(Arc<ReadView>),
    /// The newest rows, without row locks: the table is locked.
    Newest,
    /// The newest rows, each of them locked.
    Rows(LockMode),
}

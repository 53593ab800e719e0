//! How a read goes about locks, once what it needs besides the rows is locked.

use crate::table::Table;
use crate::txn::{LockMode, ReadView};
use std::sync::Arc;

/// How to read, and the table to read if that is not the one that was asked for.
pub(in crate::db) type HowToRead = (Reading, Option<Arc<Table>>);

/// How a read goes about locks.
pub(in crate::db) enum Reading {
    /// Without locks: it reads the rows that the view sees.
    View(Arc<ReadView>),
    /// The table is locked: the newest rows.
    Newest,
    /// It locks the rows.
    Rows(LockMode),
}

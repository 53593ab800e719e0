//! How a transaction reads: the changes of others that it may see, and those that it keeps them
//! from making.

/// The commits of others that a transaction may see while it is open.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Isolation {
    /// Each statement sees what was committed when it began.
    ReadCommitted,
    /// All statements see what was committed when the first of them read.
    #[default]
    RepeatableRead,
    /// As if transactions ran one after the other: rows that have been read stay as they are until
    /// the end.
    Serializable,
}

/// The way of a locking cursor with a row that somebody else has locked.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum OnLocked {
    /// Waits for it.
    #[default]
    Wait,
    /// Passes it, as SKIP LOCKED does.
    Skip,
    /// Stops at it as it was committed last, without its lock ("semi-consistent read"), where
    /// ranges are not locked and the row is met on a scan forward of the clustered index:
    /// [`Cursor::is_unlocked`](crate::db::Cursor::is_unlocked). Waits for it elsewhere, and where
    /// the search is for just this key.
    Look,
}

/// How a row or an index is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Read {
    /// As the transaction's isolation level says.
    Consistent,
    /// The newest committed rows, which others may read but not change until the transaction ends.
    Shared,
    /// The newest committed rows, to be changed: others neither change them nor lock them until the
    /// transaction ends.
    Exclusive,
}

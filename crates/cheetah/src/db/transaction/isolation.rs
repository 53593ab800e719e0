//! How a transaction reads: which changes of other transactions it may see, and which changes it
//! prevents.

/// Which commits of other transactions a transaction may see while it is open.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Isolation {
    /// Each statement sees the transactions committed before the statement began.
    ReadCommitted,
    /// All statements see what was committed before the transaction's first read. The default.
    #[default]
    RepeatableRead,
    /// Transactions run as though one after the other: rows that were read cannot change until the
    /// transaction ends.
    Serializable,
}

/// How a locking cursor treats a row that another transaction has locked.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum OnLocked {
    /// Waits for the lock.
    #[default]
    Wait,
    /// Skips the row, like SKIP LOCKED.
    Skip,
    /// Stops at the row's last committed version without locking it ("semi-consistent read"), if
    /// ranges are not locked and a forward scan of the clustered index reaches the row:
    /// [`Cursor::is_unlocked`](crate::db::Cursor::is_unlocked). Otherwise, and in a search for just
    /// this key, waits for the lock.
    Look,
}

/// How a row or an index is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Read {
    /// As the transaction's isolation level requires.
    Consistent,
    /// The newest committed rows, which other transactions may read but not change until this one
    /// ends.
    Shared,
    /// The newest committed rows, to be changed: other transactions neither change nor lock them
    /// until this one ends.
    Exclusive,
}

//! Errors of the engine. A message says what is wrong, where, and what to do. The message of a
//! conflict only says what is wrong, because the caller knows the row and retries.
//!
//! Callers use [`Error::kind`] to decide whether to retry, to change the request, to provide a
//! missing resource, to restore a table, or to open the database again.

use super::TxnId;
use std::io;

/// Result with the engine's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// The remedy for an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Another transaction conflicts or conflicted. The same request may succeed later. After
    /// `Deadlock`, `RecordChanged`, `TableChanged` and `RolledBack` it needs a new transaction.
    Retry,
    /// The request is impossible and has changed nothing. The caller must change it.
    Caller,
    /// Disk space, memory for locks, or an encryption key is missing. The same request succeeds
    /// once the resource is available.
    Resource,
    /// The operating system refused an operation on a file. The engine continues.
    Io,
    /// Bytes on disk are damaged. A request that needs these bytes fails; others succeed. A startup
    /// that needs them quarantines the table.
    Corruption,
    /// The engine has stopped. Every call fails until the database is opened again.
    Stopped,
}

/// The reason why a constraint forbids a change of a definition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ConstraintProblem {
    /// The constraint is impossible: columns, indexes or the parent do not match or do not exist.
    CannotAdd,
    /// Another constraint of the database has the same name.
    NameIsTaken,
    /// The table is the parent of other tables.
    IsReferenced,
    /// An index would be dropped that another constraint needs.
    IndexIsNeeded,
}

/// The reason why a full-text query is rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SearchProblem {
    /// Its syntax is wrong.
    Syntax,
    /// Its parentheses are nested too deeply.
    TooDeep,
    /// A phrase in it has too many words.
    TooManyWordsInPhrase,
    /// It needs more memory than allowed.
    TooMuchMemory,
}

/// An error of the engine.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The unique key already exists.
    #[error("duplicate key in index {index_no}")]
    DuplicateKey {
        /// The position of the index in its table. Zero is the clustered index.
        index_no: usize,
        /// Clustered key of the row that holds the key.
        existing: Vec<u8>,
    },
    /// A table with this name already exists.
    #[error("table '{0}' exists already")]
    TableExists(String),
    /// There is no table with this name.
    #[error("table '{0}' does not exist in the engine")]
    NoSuchTable(String),
    /// The row does not exist, or no longer exists.
    #[error("row not found")]
    RowNotFound,
    /// The transaction waited longer than the lock wait timeout.
    #[error("lock wait timeout exceeded")]
    LockTimeout,
    /// Waiting would close a cycle of waiting transactions.
    #[error("deadlock found")]
    Deadlock,
    /// The row was changed after the transaction's snapshot was taken.
    #[error("the row has changed since this transaction's snapshot was taken")]
    RecordChanged,
    /// The table was emptied or rebuilt after the transaction's snapshot was taken.
    #[error("table '{0}' has been emptied or rebuilt since this transaction's snapshot was taken; start a new transaction")]
    TableChanged(String),
    /// Another transaction holds a lock, and the caller does not wait.
    #[error("locked by another transaction")]
    Locked,
    /// The caller requested an interruption.
    #[error("interrupted")]
    Interrupted,
    /// The locks of all transactions fill the memory for locks.
    #[error("the locks of all transactions fill their memory; commit earlier, or lock fewer rows at once")]
    LockTableFull,
    /// There is no prepared transaction with this name.
    #[error("no prepared transaction is called {0}")]
    UnknownXid(String),
    /// A foreign key forbids a change of a definition.
    #[error("{detail}")]
    Constraint {
        /// The kind of problem.
        problem: ConstraintProblem,
        /// The details. For `IndexIsNeeded`, the name of the index.
        detail: String,
    },
    /// A full-text query is rejected.
    #[error("{detail}")]
    Search {
        /// The reason.
        problem: SearchProblem,
        /// The details. For `Syntax`, in InnoDB's words.
        detail: String,
    },
    /// A bound was exceeded: key or row size, number of indexes, memory.
    #[error("{what}: {actual} exceeds the limit of {limit}")]
    Limit {
        /// The limited quantity, with its unit.
        what: &'static str,
        /// The requested value.
        actual: u64,
        /// The largest allowed value.
        limit: u64,
    },
    /// A setting has a value with which the engine cannot work.
    #[error("{name} is {value}: it must be {range}")]
    Setting {
        /// The name of the setting: the server's variable without `cheetah_`, if there is one.
        name: &'static str,
        /// The requested value.
        value: u64,
        /// The allowed values.
        range: String,
    },
    /// A key of the server's key service is missing, or differs from the key that was used.
    #[error("encryption key {id}{}: {detail}", of_version(*version))]
    Key {
        /// The ID of the key.
        id: u32,
        /// The version, or 0 for the newest version.
        version: u32,
        /// The problem, the use of the key, and the remedy.
        detail: String,
    },
    /// The entries of a row do not match the indexes of its table.
    #[error(
        "the entries for a row of table '{0}' do not match its secondary indexes: pass one entry for \
         each of them, in their order (an update with the same key: the same indexes before and after)"
    )]
    Entries(String),
    /// The disk does not have enough space for the change.
    #[error("disk full: {0}; free space or enlarge the file system, then try again")]
    DiskFull(String),
    /// A file has a format that this version does not support.
    #[error("{place}: {detail}")]
    Unsupported {
        /// File and position.
        place: String,
        /// The problem and the remedy.
        detail: String,
    },
    /// Bytes on disk differ from what was written.
    #[error("corruption in {place}: {detail}")]
    Corruption {
        /// File, segment or page.
        place: String,
        /// The expected and the actual state.
        detail: String,
    },
    /// The operating system refused a read, an open, or another operation.
    #[error("{op} of {path} failed: {source}")]
    Io {
        /// The operation.
        op: &'static str,
        /// The file.
        path: String,
        /// The reason given.
        source: io::Error,
    },
    /// A rollback met an error. Rows that are not rolled back yet stay locked until the engine has
    /// rolled them back.
    #[error(
        "the rollback of transaction {txn} has met an error: {reason}; the rows that it has not rolled back yet stay \
         locked while the engine keeps trying; if the cause persists, restart the server, or drop or truncate the table"
    )]
    RollbackUnfinished {
        /// The transaction.
        txn: TxnId,
        /// The error.
        reason: String,
    },
    /// A commit failed, and the transaction was rolled back instead.
    #[error("the transaction was not committed but rolled back: {0}")]
    RolledBack(String),
    /// The engine has stopped, for this reason.
    #[error("the Cheetah engine has stopped: {0}; restart to recover")]
    Fatal(String),
}

fn of_version(version: u32) -> String {
    match version {
        0 => String::new(),
        version => format!(" version {version}"),
    }
}

/// ENOMEM, ENFILE and EMFILE of Linux, which do not mean that the file is unreadable.
const SHORTAGES: [i32; 3] = [12, 23, 24];

impl Error {
    /// The remedy for the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::LockTimeout
            | Error::Deadlock
            | Error::RecordChanged
            | Error::TableChanged(_)
            | Error::Locked
            | Error::RollbackUnfinished { .. }
            | Error::RolledBack(_) => ErrorKind::Retry,
            Error::DuplicateKey { .. }
            | Error::TableExists(_)
            | Error::NoSuchTable(_)
            | Error::RowNotFound
            | Error::Interrupted
            | Error::UnknownXid(_)
            | Error::Constraint { .. }
            | Error::Search { .. }
            | Error::Limit { .. }
            | Error::Entries(_)
            | Error::Setting { .. }
            | Error::Unsupported { .. } => ErrorKind::Caller,
            Error::LockTableFull | Error::Key { .. } | Error::DiskFull(_) => ErrorKind::Resource,
            Error::Io { .. } => ErrorKind::Io,
            Error::Corruption { .. } => ErrorKind::Corruption,
            Error::Fatal(_) => ErrorKind::Stopped,
        }
    }

    /// Returns whether the error means that written bytes cannot be read, because they are damaged
    /// or the disk cannot read them. In this case another copy of the bytes may be intact.
    pub fn is_of_unreadable_bytes(&self) -> bool {
        match self {
            Error::Corruption { .. } => true,
            Error::Io { op, source, .. } => {
                let is_short = source.raw_os_error().is_some_and(|code| SHORTAGES.contains(&code));
                matches!(*op, "read" | "open" | "length") && !is_short
            }
            _ => false,
        }
    }

    /// Adds words to the message of a corruption error.
    pub fn with_words(self, words: &str) -> Self {
        match self {
            Error::Corruption { place, detail } => Error::corrupt(place, format!("{detail}; {words}")),
            other => other,
        }
    }

    /// Converts an error to a corruption error of `place`.
    pub fn as_damage_of(&self, place: &str) -> Self {
        match self {
            Error::Corruption { place, detail } => Error::corrupt(place, detail),
            other => Error::corrupt(place, other.to_string()),
        }
    }

    /// Wraps an I/O error with the operation. "No space" becomes [`Error::DiskFull`].
    pub fn io(op: &'static str, path: impl Into<String>, source: io::Error) -> Self {
        let path = path.into();
        if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            return Error::DiskFull(format!("{op} of {path}"));
        }
        Error::Io { op, path, source }
    }

    /// Creates the error for intact bytes of a layout that this version does not support. `what`
    /// names the layout and its version.
    pub fn newer(place: impl Into<String>, what: impl std::fmt::Display) -> Self {
        let detail = format!(
            "written by a newer version of Cheetah ({what}); open it with that version or a later one"
        );
        Error::Unsupported { place: place.into(), detail }
    }

    /// Creates a corruption error.
    pub fn corrupt(place: impl Into<String>, detail: impl Into<String>) -> Self {
        Error::Corruption { place: place.into(), detail: detail.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::{Error, ErrorKind};
    use std::io;

    #[test]
    fn the_kind_says_whether_the_same_request_may_succeed() {
        let is_of = |kind, errors: Vec<Error>| {
            errors.iter().for_each(|error| assert_eq!(error.kind(), kind, "{error}"));
        };
        is_of(ErrorKind::Retry, vec![Error::Deadlock, Error::LockTimeout, Error::Locked]);
        is_of(
            ErrorKind::Caller,
            vec![Error::NoSuchTable("t".into()), Error::RowNotFound, Error::Interrupted],
        );
        is_of(ErrorKind::Resource, vec![Error::LockTableFull, Error::DiskFull("0 bytes".into())]);
        is_of(ErrorKind::Io, vec![Error::io("read", "file", io::Error::from_raw_os_error(5))]);
        is_of(ErrorKind::Resource, vec![Error::io("write", "file", io::ErrorKind::StorageFull.into())]);
        is_of(ErrorKind::Stopped, vec![Error::Fatal("a sync failed".into())]);
    }

    #[test]
    fn only_what_the_disk_says_of_a_file_makes_its_bytes_unreadable() {
        let says =
            |op, code| Error::io(op, "file", io::Error::from_raw_os_error(code)).is_of_unreadable_bytes();
        let (eio, emfile, enomem) = (5, 24, 12);
        assert!(says("read", eio) && says("open", eio) && says("length", eio));
        assert!(!says("open", emfile) && !says("read", enomem) && !says("write", eio));
        assert!(Error::corrupt("page 1", "its checksum").is_of_unreadable_bytes());
        assert!(!Error::DiskFull("full".into()).is_of_unreadable_bytes());
    }
}

//! The enums of the ABI. Their values are passed as integers, because the caller may pass any
//! number.

use cheetah::server::{ConstraintProblem, SearchProblem};
use cheetah::{Error, Read, Result};

/// The result of a call.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// The call succeeded.
    Ok = 0,
    /// There is no further entry.
    End = 1,
    /// A unique key already exists.
    DuplicateKey = 2,
    /// A table with this name already exists.
    TableExists = 3,
    /// There is no such table.
    NoSuchTable = 4,
    /// There is no such row.
    RowNotFound = 5,
    /// A lock wait timed out.
    LockTimeout = 6,
    /// The transaction is the victim of a deadlock.
    Deadlock = 7,
    /// The caller requested to stop.
    Interrupted = 8,
    /// A limit was exceeded.
    Limit = 9,
    /// No space is left on the disk.
    DiskFull = 10,
    /// The data has the format of another version.
    Unsupported = 11,
    /// Data is damaged.
    Corruption = 12,
    /// The operating system reported an I/O error.
    Io = 13,
    /// The engine has stopped.
    Fatal = 14,
    /// The engine panicked because of a defect.
    Panic = 15,
    /// A commit was refused and rolled back, or a rollback continues in the background.
    Rollback = 16,
    /// The row has changed since the transaction's snapshot.
    RecordChanged = 17,
    /// The memory limit for locks is reached.
    LockTableFull = 18,
    /// Another transaction holds a lock, and the caller did not want to wait.
    Locked = 19,
    /// The table was truncated or rebuilt since the transaction's snapshot.
    TableChanged = 20,
    /// No prepared transaction has this name.
    UnknownXid = 21,
    /// A foreign key constraint is not possible.
    CannotAddConstraint = 22,
    /// Another constraint has the same name.
    ConstraintExists = 23,
    /// Other tables refer to the table.
    IsReferenced = 24,
    /// A constraint needs the index that the message names.
    IndexIsNeeded = 25,
    /// A full-text query has a syntax error.
    SearchSyntax = 26,
    /// A phrase in a full-text query has too many words.
    SearchPhrase = 27,
    /// A full-text query needs too much memory, or is nested too deeply.
    SearchMemory = 28,
    /// A key of the server's key service is missing, or is the wrong key.
    Key = 29,
}

impl Code {
    /// Returns the code of an error.
    pub fn of(error: &Error) -> Self {
        match error {
            Error::DuplicateKey { .. } => Code::DuplicateKey,
            Error::TableExists(_) => Code::TableExists,
            Error::NoSuchTable(_) => Code::NoSuchTable,
            Error::RowNotFound => Code::RowNotFound,
            Error::LockTimeout => Code::LockTimeout,
            Error::Deadlock => Code::Deadlock,
            Error::Interrupted => Code::Interrupted,
            Error::UnknownXid(_) => Code::UnknownXid,
            Error::Limit { .. } | Error::Setting { .. } => Code::Limit,
            Error::Key { .. } => Code::Key,
            Error::DiskFull(_) => Code::DiskFull,
            Error::Unsupported { .. } => Code::Unsupported,
            Error::Corruption { .. } => Code::Corruption,
            Error::Io { .. } => Code::Io,
            Error::Fatal(_) => Code::Fatal,
            Error::RollbackUnfinished { .. } | Error::RolledBack(_) => Code::Rollback,
            Error::RecordChanged => Code::RecordChanged,
            Error::LockTableFull => Code::LockTableFull,
            Error::Locked => Code::Locked,
            Error::TableChanged(_) => Code::TableChanged,
            Error::Constraint { problem, .. } => match problem {
                ConstraintProblem::CannotAdd => Code::CannotAddConstraint,
                ConstraintProblem::NameIsTaken => Code::ConstraintExists,
                ConstraintProblem::IsReferenced => Code::IsReferenced,
                ConstraintProblem::IndexIsNeeded => Code::IndexIsNeeded,
                _ => Code::Unsupported,
            },
            Error::Search { problem, .. } => match problem {
                SearchProblem::Syntax => Code::SearchSyntax,
                SearchProblem::TooManyWordsInPhrase => Code::SearchPhrase,
                SearchProblem::TooDeep | SearchProblem::TooMuchMemory => Code::SearchMemory,
                _ => Code::Unsupported,
            },
            _ => Code::Unsupported,
        }
    }
}

impl From<()> for Code {
    fn from((): ()) -> Self {
        Code::Ok
    }
}

/// Returns the value for a number from the caller. `codes` lists the valid numbers.
pub(crate) fn meaning_in<T: Copy>(what: &'static str, number: u8, codes: &[(u8, T)]) -> Result<T> {
    let found = codes.iter().find(|(code, _)| *code == number);
    let limit = codes.iter().map(|(code, _)| u64::from(*code)).max().unwrap_or_default();
    found.map(|(_, value)| *value).ok_or(Error::Limit { what, actual: number.into(), limit })
}

/// Like [`meaning_in`], for an enum of the ABI whose variants have the same names as the engine's.
macro_rules! meaning {
    ($what:literal, $number:expr, $code:ident => $value:ident { $($variant:ident),+ }) => {
        meaning_in($what, $number, &[$(($code::$variant as u8, $value::$variant)),+])
    };
}

/// Returns the number of an engine's value: the opposite of [`meaning!`].
macro_rules! number {
    ($given:expr, $value:ident => $code:ident { $($variant:ident),+ }) => {
        match $given {
            $($value::$variant => $code::$variant as u8),+
        }
    };
}

pub(crate) use {meaning, number};

/// The codec of a table's pages.
#[repr(C)]
pub enum CheetahCompression {
    /// Pages are stored uncompressed.
    None = 0,
    /// LZ4.
    Lz4 = 1,
    /// Zstandard, at a level.
    Zstd = 2,
}

/// The value of the option ENCRYPTED.
#[repr(C)]
pub enum CheetahEncrypted {
    /// The option is missing or DEFAULT: the server's variable decides.
    Default = 0,
    /// YES.
    Yes = 1,
    /// NO.
    No = 2,
}

/// The value of the option ROW_FORMAT. The numbers are the server's.
#[repr(C)]
pub enum CheetahRowFormat {
    /// The option is missing or DEFAULT.
    Default = 0,
    /// FIXED.
    Fixed = 1,
    /// DYNAMIC.
    Dynamic = 2,
    /// COMPRESSED.
    Compressed = 3,
    /// REDUNDANT.
    Redundant = 4,
    /// COMPACT.
    Compact = 5,
    /// PAGE.
    Page = 6,
}

/// Where a seek places a cursor, for a prefix p of stored keys.
#[repr(C)]
pub enum CheetahSeek {
    /// The first entry >= p.
    AtLeast = 0,
    /// The first entry > p that does not start with p.
    After = 1,
    /// The last entry that starts with p or is < p.
    AtMost = 2,
    /// The last entry < p.
    Before = 3,
    /// The first entry.
    First = 4,
    /// The last entry.
    Last = 5,
}

/// The end that a locking cursor does not pass. Ends with their own key only limit forward moves.
#[repr(C)]
pub enum CheetahEnd {
    /// There is no end.
    None = 0,
    /// After the entries that start with the sought key.
    Prefix = 1,
    /// Before the end's key.
    Below = 2,
    /// After the entries that start with the end's key.
    UpTo = 3,
    /// Like `Prefix`, for a complete key of the clustered index.
    Row = 4,
}

/// The isolation level of a transaction.
#[repr(C)]
pub enum CheetahIsolation {
    /// Each statement has its own snapshot.
    ReadCommitted = 0,
    /// The transaction has one snapshot.
    RepeatableRead = 1,
    /// Transactions have the same effect as if they ran one after another.
    Serializable = 2,
}

/// How a row or an index is read.
#[repr(C)]
pub enum CheetahRead {
    /// As the isolation level requires.
    Consistent = 0,
    /// The latest committed rows, with shared locks.
    Shared = 1,
    /// The latest committed rows, with exclusive locks.
    Exclusive = 2,
}

/// How a locking cursor treats a row that another transaction has locked.
#[repr(C)]
pub enum CheetahOnLocked {
    /// It waits.
    Wait = 0,
    /// It skips the row: SKIP LOCKED.
    Skip = 1,
    /// It reads the last committed version of the row: semi-consistent reads, under READ COMMITTED.
    Look = 2,
}

/// The action of a constraint on child rows.
#[repr(C)]
pub enum CheetahForeignKeyAction {
    /// RESTRICT: the change of the parent is refused.
    Restrict = 0,
    /// NO ACTION: the same as RESTRICT.
    NoAction = 1,
    /// CASCADE: child rows are deleted or changed, too.
    Cascade = 2,
    /// SET NULL: the columns of child rows become NULL.
    SetNull = 3,
}

/// The role of a table in a constraint.
#[repr(C)]
pub enum CheetahRole {
    /// Its rows refer to rows of the parent.
    Child = 0,
    /// Rows of the child refer to its rows.
    Parent = 1,
}

/// The children that prevent a table from being dropped.
#[repr(C)]
pub enum CheetahReferenced {
    /// None: constraints stay, without a parent, until a table with this name is created.
    Ignored = 0,
    /// Children in any database.
    Refused = 1,
    /// Children in other databases: children in the same database are dropped with the table.
    RefusedElsewhere = 2,
}

/// The reason why a thread waits, or its long operation.
#[repr(C)]
pub enum CheetahStage {
    /// It waits for a row lock.
    RowLock = 0,
    /// It waits for a table lock.
    TableLock = 1,
    /// It waits for space in the log.
    LogSpace = 2,
    /// It waits for memory of the buffer pool.
    Memory = 3,
    /// It rolls back.
    RollingBack = 4,
}

/// Whether statistics of a table are collected automatically. The numbers are the server's.
#[repr(C)]
pub enum CheetahRecalc {
    /// The setting of the database decides.
    AsDatabase = 0,
    /// Statistics are collected automatically.
    On = 1,
    /// Statistics are not collected automatically.
    Off = 2,
}

/// How a full-text index treats a word.
#[repr(C)]
pub enum CheetahWordKind {
    /// The index contains the word.
    Indexed = 0,
    /// Omitted as a stop word.
    Stop = 1,
    /// Omitted as too short.
    TooShort = 2,
    /// Omitted as too long.
    TooLong = 3,
}

/// How the text of a full-text search is interpreted.
#[repr(C)]
pub enum CheetahSearchMode {
    /// As words.
    NaturalLanguage = 0,
    /// As words with operators.
    Boolean = 1,
    /// As words, to which the words of the best rows are added.
    QueryExpansion = 2,
}

pub(crate) fn read_of(read: u8) -> Result<Read> {
    meaning!("code of a read mode", read, CheetahRead => Read { Consistent, Shared, Exclusive })
}

#[cfg(test)]
mod tests {
    use super::read_of;

    #[test]
    fn unknown_codes_of_a_read_mode_are_refused() {
        assert!((0..=2).all(|read| read_of(read).is_ok()));
        assert!(read_of(3).is_err());
    }
}

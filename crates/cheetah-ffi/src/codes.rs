//! The numbers that stand for choices across the ABI. They cross as integers, for the caller may
//! pass any.

use cheetah::server::{ConstraintProblem, SearchProblem};
use cheetah::{Error, Read, Result};

/// What a call came to.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// It succeeded.
    Ok = 0,
    /// There is no (further) entry.
    End = 1,
    /// A unique key exists already.
    DuplicateKey = 2,
    /// A table of that name exists already.
    TableExists = 3,
    /// There is no such table.
    NoSuchTable = 4,
    /// There is no such row.
    RowNotFound = 5,
    /// A lock was not to be had in time.
    LockTimeout = 6,
    /// Waiting would have been for ever.
    Deadlock = 7,
    /// The caller asked to stop.
    Interrupted = 8,
    /// A bound was exceeded.
    Limit = 9,
    /// No space.
    DiskFull = 10,
    /// A format of another version.
    Unsupported = 11,
    /// Damaged bytes.
    Corruption = 12,
    /// The operating system refused.
    Io = 13,
    /// The engine has stopped.
    Fatal = 14,
    /// A defect of the engine: it panicked.
    Panic = 15,
    /// A commit was refused and rolled back, or a rollback goes on in the background.
    Rollback = 16,
    /// The row has changed since the transaction's snapshot.
    RecordChanged = 17,
    /// Locks take all the memory they may.
    LockTableFull = 18,
    /// Somebody else holds a lock, and the caller does not wait.
    Locked = 19,
    /// The table has been emptied or rebuilt since the transaction's snapshot.
    TableChanged = 20,
    /// No prepared transaction of that name waits.
    UnknownXid = 21,
    /// A constraint between tables cannot be.
    CannotAddConstraint = 22,
    /// Its name is another one's.
    ConstraintExists = 23,
    /// The table is the parent of others.
    IsReferenced = 24,
    /// The index that the message names serves a constraint.
    IndexIsNeeded = 25,
    /// A full-text query cannot be understood.
    SearchSyntax = 26,
    /// A phrase of a full-text query has too many words.
    SearchPhrase = 27,
    /// A full-text query takes too much memory, or is nested too deeply.
    SearchMemory = 28,
    /// A key of the server's key service is missing, or is another one.
    Key = 29,
}

impl Code {
    /// The code of an error.
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

/// The value among `codes` that a number from the caller stands for.
pub(crate) fn meaning<T: Copy>(what: &'static str, number: u8, codes: &[(u8, T)]) -> Result<T> {
    let found = codes.iter().find(|(code, _)| *code == number);
    let limit = codes.iter().map(|(code, _)| u64::from(*code)).max().unwrap_or_default();
    found.map(|(_, value)| *value).ok_or(Error::Limit { what, actual: number.into(), limit })
}

/// The codec of a table's pages.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheetahCompression {
    /// Pages are stored as they are.
    None = 0,
    /// LZ4.
    Lz4 = 1,
    /// Zstandard, at a level.
    Zstd = 2,
}

/// The word behind ENCRYPTED.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheetahEncrypted {
    /// There is none: the server's variable decides.
    Default = 0,
    /// YES.
    Yes = 1,
    /// NO.
    No = 2,
}

/// The word behind ROW_FORMAT; the numbers are the server's.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheetahRowFormat {
    /// There is none, or DEFAULT.
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

/// Where a seek puts a cursor, for a prefix p of stored keys.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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

/// Where a cursor that locks goes no further. Those with a key of their own: forward only.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheetahEnd {
    /// There is no end.
    None = 0,
    /// With the keys that begin with the one that is sought.
    Prefix = 1,
    /// Before the key.
    Below = 2,
    /// With the keys that begin with the key.
    UpTo = 3,
    /// As `Prefix`, for a whole key of the clustered index.
    Row = 4,
}

/// The isolation level of a transaction.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheetahIsolation {
    /// Each statement has a snapshot.
    ReadCommitted = 0,
    /// The transaction has one.
    RepeatableRead = 1,
    /// As if transactions ran one after the other.
    Serializable = 2,
}

/// How a row or an index is read.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheetahRead {
    /// As the isolation level says.
    Consistent = 0,
    /// The newest committed rows, locked against changes.
    Shared = 1,
    /// The newest committed rows, locked to be changed.
    Exclusive = 2,
}

/// What a cursor that locks does with a row that another transaction has locked.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheetahOnLocked {
    /// It waits.
    Wait = 0,
    /// It passes over it: SKIP LOCKED.
    Skip = 1,
    /// It stops at the row as it was committed last: semi-consistent reads, under READ COMMITTED.
    Look = 2,
}

/// What becomes of child rows.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheetahForeignKeyAction {
    /// RESTRICT: the change of the parent is refused.
    Restrict = 0,
    /// NO ACTION: the same.
    NoAction = 1,
    /// CASCADE: they change, too.
    Cascade = 2,
    /// SET NULL: their columns become NULL.
    SetNull = 3,
}

/// What a table is to a constraint.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheetahRole {
    /// Its rows refer to others.
    Child = 0,
    /// Its rows are referred to.
    Parent = 1,
}

/// Which children keep a table from being dropped.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheetahReferenced {
    /// None: constraints wait for a table of that name.
    Ignored = 0,
    /// Children in whatever database.
    Refused = 1,
    /// Children in other databases: those of its own go with it.
    RefusedElsewhere = 2,
}

/// Why a thread is held up, or what it does that takes long.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheetahStage {
    /// It waits for the lock of a row.
    RowLock = 0,
    /// It waits for the lock of a table.
    TableLock = 1,
    /// It waits for space in the log.
    LogSpace = 2,
    /// It waits for memory of the buffer pool.
    Memory = 3,
    /// It rolls back.
    RollingBack = 4,
}

/// Whether statistics of a table are taken by themselves; the numbers are the server's.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheetahRecalc {
    /// As the database says.
    AsDatabase = 0,
    /// They are.
    On = 1,
    /// They are not.
    Off = 2,
}

/// What a full-text index does with a word.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheetahWordKind {
    /// It has it.
    Indexed = 0,
    /// It leaves it out: a stop word.
    Stop = 1,
    /// It leaves it out: too short.
    TooShort = 2,
    /// It leaves it out: too long.
    TooLong = 3,
}

/// How the text of a full-text search is read.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheetahSearchMode {
    /// As words.
    NaturalLanguage = 0,
    /// As words with operators.
    Boolean = 1,
    /// As words, to which those of the best rows are added.
    QueryExpansion = 2,
}

/// The read mode of a `CheetahRead`.
pub(crate) fn read_of(read: u8) -> Result<Read> {
    let codes = [
        (CheetahRead::Consistent as u8, Read::Consistent),
        (CheetahRead::Shared as u8, Read::Shared),
        (CheetahRead::Exclusive as u8, Read::Exclusive),
    ];
    meaning("code of a read mode", read, &codes)
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

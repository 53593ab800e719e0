//! The operations and the observations of clients, in the form that tests/isolation/history.py
//! reads.

use std::fmt;

/// The result of a read for one key.
#[derive(Clone, Debug)]
pub(crate) enum Seen {
    /// A list.
    List(Vec<u64>),
    /// The length of a list.
    Length(usize),
    /// A register's value; `None` if there is no row.
    Value(Option<u64>),
}

impl Seen {
    fn is_nothing(&self) -> bool {
        match self {
            Seen::List(values) => values.is_empty(),
            Seen::Length(length) => *length == 0,
            Seen::Value(value) => value.is_none(),
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Seen::List(values) => write!(f, "{values:?}"),
            Seen::Length(length) => write!(f, "{length}"),
            Seen::Value(value) => write!(f, "{}", OrNull(*value)),
        }
    }
}

struct OrNull(Option<u64>);

impl fmt::Display for OrNull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(value) => write!(f, "{value}"),
            None => write!(f, "null"),
        }
    }
}

/// The kind of a statement.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// A read, with its result for each key. `by_index`: the read used a secondary index. `words`:
    /// the read used a full-text search for these values of these keys. An empty list means a
    /// search for a word that all rows have.
    Read { locks: bool, by_index: bool, seen: Vec<(u64, Seen)>, words: Option<Vec<(u64, u64)>> },
    /// A value appended to a list, or written to a register; `None` if the row was deleted.
    Write { key: u64, value: Option<u64> },
    /// The snapshot was taken.
    Snapshot,
}

/// A statement with its result.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) what: What,
    /// The times of the statement's start and end.
    pub(crate) during: (u64, u64),
    /// The number of statements in the transaction when the rollback to a savepoint undid this
    /// statement. 0 if no rollback undid it.
    pub(crate) undone: usize,
}

impl Op {
    pub(crate) fn new(what: What, during: (u64, u64)) -> Self {
        Self { what, during, undone: 0 }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sent, answered) = self.during;
        match &self.what {
            What::Read { locks, by_index, seen, words } => {
                let kind = if *locks { "locking" } else { "read" };
                write!(f, "[\"{kind}\",{sent},{answered},[")?;
                write_all(f, seen.iter().map(|(key, seen)| format!("[{key},{seen}]")))?;
                let lengths = seen.iter().any(|(_, seen)| matches!(seen, Seen::Length(_)));
                // A scan skips a deleted entry without a lookup of the row, so the time of the
                // delete is unknown.
                let covered = *by_index && seen.iter().any(|(_, seen)| seen.is_nothing());
                write!(f, "],null,null,{},{lengths},{covered}", self.undone)?;
                match words {
                    None => write!(f, "]"),
                    Some(words) => {
                        write!(f, ",[")?;
                        write_all(f, words.iter().map(|(key, value)| format!("[{key},{value}]")))?;
                        write!(f, "]]")
                    }
                }
            }
            What::Write { key, value } => {
                let value = OrNull(*value);
                write!(f, "[\"write\",{sent},{answered},null,{key},{value},{},false,false]", self.undone)
            }
            What::Snapshot => write!(f, "[\"snapshot\",{sent},{answered},null,null,null,0,false,false]"),
        }
    }
}

/// A transaction.
#[derive(Clone, Debug)]
pub(crate) struct Txn {
    pub(crate) client: usize,
    pub(crate) level: &'static str,
    pub(crate) is_committed: bool,
    /// The times of the start and the end of the commit or rollback.
    pub(crate) end: (u64, u64),
    pub(crate) ops: Vec<Op>,
}

/// All transactions, the state at the end, and the errors that need no checker.
#[derive(Debug)]
pub(crate) struct History {
    pub(crate) is_list: bool,
    pub(crate) has_snapshot_isolation: bool,
    pub(crate) txns: Vec<Txn>,
    pub(crate) last: Vec<(u64, Seen)>,
    /// The number of times the planted bug was reached.
    pub(crate) reached_count: u64,
    pub(crate) failure: Option<String>,
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let model = if self.is_list { "list" } else { "register" };
        write!(f, "{{\"model\":\"{model}\",\"engine\":\"the library\",\"dirty_reads\":false,")?;
        write!(
            f,
            "\"snapshot_isolation\":{},\"reached\":{},",
            self.has_snapshot_isolation, self.reached_count
        )?;
        write!(f, "\"failure\":{:?},\"final\":[", self.failure.as_deref().unwrap_or_default())?;
        write_all(f, self.last.iter().map(|(key, seen)| format!("[{key},{seen}]")))?;
        write!(f, "],\"txns\":[")?;
        write_all(
            f,
            self.txns.iter().enumerate().map(|(number, txn)| {
                let status = if txn.is_committed { "committed" } else { "aborted" };
                let ops = txn.ops.iter().map(Op::to_string).collect::<Vec<_>>().join(",");
                let (sent, answered) = txn.end;
                format!(
                    "[{number},{},\"{}\",\"{status}\",[{sent},{answered}],false,[{ops}]]",
                    txn.client, txn.level
                )
            }),
        )?;
        write!(f, "]}}")
    }
}

fn write_all(f: &mut fmt::Formatter<'_>, parts: impl Iterator<Item = String>) -> fmt::Result {
    for (at, part) in parts.enumerate() {
        write!(f, "{}{part}", if at == 0 { "" } else { "," })?;
    }
    Ok(())
}

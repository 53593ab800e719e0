//! Records of the redo log, as bytes: a row operation, the end of a transaction, or a change of a
//! table.
//!
//! Invariants
//!   I1  A record is logical: it names tables and keys, never pages. Redo decides where the bytes
//!       are stored (C3, C4).
//!   I2  Secondary keys are logged as the caller encoded them (H1), so redo never computes a key.
//!   I3  For every record that pushes onto a transaction's undo chain ([`LogRecord::Row`] and
//!       `Blob`) there is at most one [`LogRecord::Undo`], with the number of the undo record (C5).
//! Layout    docs/developers/format.md, "Log records".

use super::bytes::{put_prefixed, Defect, Reader};
use super::record_fields::{count, number_u32, put_xid, text, xid};
use super::varint;
use crate::base::{Result, TableId, TxnId, Xid};

/// The place where redo finds a large value of a logged row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LargeSource {
    /// The same column of the row before this operation.
    Kept,
    /// The next of the transaction's finished [`LogRecord::Blob`] values.
    Written,
}

/// The operation on a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowOp {
    /// The row is new.
    Insert,
    /// The row changes, and perhaps its key.
    Update,
    /// The row is deleted.
    Delete,
}

/// One entry of a secondary index that a row operation touches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoggedEntry<'a> {
    /// The number of the index in its table.
    pub index: u32,
    /// Key of the removed entry, without the clustered key. Empty in an insert.
    pub old_key: &'a [u8],
    /// Key of the added entry, without the clustered key. Empty in a delete.
    pub new_key: &'a [u8],
    /// The caller's payload of the added entry.
    pub payload: &'a [u8],
}

/// A row operation as logged, without its secondary entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoggedRow<'a> {
    /// The table.
    pub table: TableId,
    /// The clustered key before the operation. Empty in an insert.
    pub old_key: &'a [u8],
    /// The clustered key after the operation. Empty in a delete. Also empty in a log record if it
    /// equals `old_key`.
    pub new_key: &'a [u8],
    /// The stored row after the operation, with references to large values. Empty in a delete.
    pub row: &'a [u8],
    /// The next auto-increment value of the table, or 0 if this operation did not change it.
    pub auto_increment: u64,
}

/// A record of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LogRecord<'a> {
    /// A row operation.
    Row {
        /// The transaction.
        txn: TxnId,
        /// The operation on the row.
        op: RowOp,
        /// The row.
        row: LoggedRow<'a>,
        /// The sources of the row's large values, in the order of their columns.
        large: Vec<LargeSource>,
        /// The secondary entries.
        entries: Vec<LoggedEntry<'a>>,
    },
    /// A piece of a large value that a later row operation of the transaction will refer to.
    Blob {
        /// The transaction.
        txn: TxnId,
        /// The table whose row will hold the value.
        table: TableId,
        /// Length of the whole value in bytes.
        total_bytes: u64,
        /// The position of the piece in the value. A piece at 0 starts a new value.
        offset: u64,
        /// The piece.
        bytes: &'a [u8],
    },
    /// The transaction's undo record with this number was rolled back.
    Undo(TxnId, u64),
    /// The transaction is prepared under this XID. `None` means that it is no longer prepared and
    /// will be rolled back.
    Prepare(TxnId, Option<Xid>),
    /// The transaction is committed. The number is its position in the order of commits.
    Commit(TxnId, u64),
    /// The transaction is rolled back completely.
    Abort(TxnId),
    /// A table was created. The bytes are its catalog row.
    CreateTable(&'a [u8]),
    /// A table was dropped.
    DropTable(TableId),
    /// A table was renamed, and no constraint changed.
    RenameTable(TableId, &'a str),
    /// A table was renamed, and constraints of tables changed because of it. The list has each
    /// changed table with its new catalog row, the renamed table first.
    RenameWithConstraints(Vec<(TableId, &'a [u8])>),
    /// A table was replaced by an empty one. The bytes are the new catalog row.
    TruncateTable(TableId, &'a [u8]),
    /// The definitions of these tables were changed atomically. The list has each table with its
    /// new catalog row.
    AlterTables(Vec<(TableId, &'a [u8])>),
    /// The next auto-increment value of a table was set.
    AutoIncrement(TableId, u64),
}

/// The first fields of a record that pushes onto a transaction's undo chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Front<'a> {
    /// The transaction.
    pub txn: TxnId,
    /// The table.
    pub table: TableId,
    /// The clustered keys that a row operation changes: the key of the row, and the new key if an
    /// update changes it.
    pub keys: [Option<&'a [u8]>; 2],
}

impl<'a> Front<'a> {
    /// Reads the first fields of a record of this kind. Returns `None` if the record pushes nothing
    /// onto an undo chain. Works on any bytes. The bytes after the first fields are not read.
    pub fn decode(kind: u8, body: &'a [u8]) -> Result<Option<Self>> {
        Self::read(kind, &mut Reader::new(body)).map_err(|defect| defect.in_place("log record"))
    }

    fn read(kind: u8, fields: &mut Reader<'a>) -> Parsed<Option<Self>> {
        if !LogRecord::is_operation(kind) {
            return Ok(None);
        }
        let (txn, table) = (txn_id(fields)?, table_id(fields)?);
        let mut keys = [None; 2];
        if kind != BLOB {
            keys[0] = Some(fields.prefixed(usize::MAX)?);
        }
        if kind == UPDATE {
            keys[1] = Some(fields.prefixed(usize::MAX)?).filter(|key| !key.is_empty());
        }
        Ok(Some(Self { txn, table, keys }))
    }
}

type Parsed<T> = std::result::Result<T, Defect>;

const INSERT: u8 = 1;
const UPDATE: u8 = 2;
const DELETE: u8 = 3;
const BLOB: u8 = 4;
const UNDO: u8 = 5;
const COMMIT: u8 = 6;
const ABORT: u8 = 7;
const CREATE_TABLE: u8 = 8;
const DROP_TABLE: u8 = 9;
const RENAME_TABLE: u8 = 10;
const TRUNCATE_TABLE: u8 = 11;
const AUTO_INCREMENT: u8 = 12;
/// The kind of [`LogRecord::Prepare`].
pub const KIND_PREPARE: u8 = PREPARE;
const PREPARE: u8 = 13;
const ALTER_TABLES: u8 = 14;
const RENAME_WITH_CONSTRAINTS: u8 = 15;

impl LogRecord<'_> {
    /// Appends the record's kind, which is the kind of its frame, and its body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            LogRecord::Row { txn, op, row, large, entries } => {
                encode_row(out, *op, *txn, row, large, entries.iter().copied());
            }
            LogRecord::Blob { txn, table, total_bytes, offset, bytes } => {
                put_head(out, BLOB, &[txn.0, table.0.into(), *total_bytes, *offset]);
                put_prefixed(out, bytes);
            }
            LogRecord::Undo(txn, undo_no) => put_head(out, UNDO, &[txn.0, *undo_no]),
            LogRecord::Prepare(txn, xid) => {
                put_head(out, PREPARE, &[txn.0]);
                put_xid(out, xid.as_ref());
            }
            LogRecord::Commit(txn, commit_no) => put_head(out, COMMIT, &[txn.0, *commit_no]),
            LogRecord::Abort(txn) => put_head(out, ABORT, &[txn.0]),
            LogRecord::CreateTable(def) => {
                put_head(out, CREATE_TABLE, &[]);
                put_prefixed(out, def);
            }
            LogRecord::DropTable(table) => put_head(out, DROP_TABLE, &[table.0.into()]),
            LogRecord::RenameTable(table, name) => {
                put_head(out, RENAME_TABLE, &[table.0.into()]);
                put_prefixed(out, name.as_bytes());
            }
            LogRecord::TruncateTable(table, def) => {
                put_head(out, TRUNCATE_TABLE, &[table.0.into()]);
                put_prefixed(out, def);
            }
            LogRecord::AlterTables(altered) => put_definitions(out, ALTER_TABLES, altered),
            LogRecord::RenameWithConstraints(changed) => {
                put_definitions(out, RENAME_WITH_CONSTRAINTS, changed)
            }
            LogRecord::AutoIncrement(table, next) => put_head(out, AUTO_INCREMENT, &[table.0.into(), *next]),
        }
    }
}

impl<'a> LogRecord<'a> {
    /// Returns whether records of this kind push onto a transaction's undo chain. [`Front`] reads
    /// their table and keys.
    pub fn is_operation(kind: u8) -> bool {
        matches!(kind, INSERT | UPDATE | DELETE | BLOB)
    }

    /// Reads a record of this kind. Works on any bytes.
    pub fn decode(kind: u8, body: &'a [u8]) -> Result<Self> {
        Self::read(kind, &mut Reader::new(body)).map_err(|defect| defect.in_place("log record"))
    }

    fn read(kind: u8, fields: &mut Reader<'a>) -> Parsed<Self> {
        let record = match kind {
            INSERT => decode_row(fields, RowOp::Insert)?,
            UPDATE => decode_row(fields, RowOp::Update)?,
            DELETE => decode_row(fields, RowOp::Delete)?,
            BLOB => LogRecord::Blob {
                txn: txn_id(fields)?,
                table: table_id(fields)?,
                total_bytes: fields.varint()?,
                offset: fields.varint()?,
                bytes: fields.prefixed(usize::MAX)?,
            },
            UNDO => LogRecord::Undo(txn_id(fields)?, fields.varint()?),
            PREPARE => LogRecord::Prepare(txn_id(fields)?, xid(fields)?),
            COMMIT => LogRecord::Commit(txn_id(fields)?, fields.varint()?),
            ABORT => LogRecord::Abort(txn_id(fields)?),
            CREATE_TABLE => LogRecord::CreateTable(fields.prefixed(usize::MAX)?),
            DROP_TABLE => LogRecord::DropTable(table_id(fields)?),
            RENAME_TABLE => LogRecord::RenameTable(table_id(fields)?, text(fields)?),
            TRUNCATE_TABLE => LogRecord::TruncateTable(table_id(fields)?, fields.prefixed(usize::MAX)?),
            ALTER_TABLES => LogRecord::AlterTables(definitions(fields)?),
            RENAME_WITH_CONSTRAINTS => LogRecord::RenameWithConstraints(definitions(fields)?),
            AUTO_INCREMENT => LogRecord::AutoIncrement(table_id(fields)?, fields.varint()?),
            kind => return Err(Defect::at("unknown kind", kind.into())),
        };
        fields.finish()?;
        Ok(record)
    }
}

fn txn_id(fields: &mut Reader<'_>) -> Parsed<TxnId> {
    Ok(TxnId(fields.varint()?))
}

fn table_id(fields: &mut Reader<'_>) -> Parsed<TableId> {
    Ok(TableId(number_u32(fields)?))
}

fn put_head(out: &mut Vec<u8>, kind: u8, numbers: &[u64]) {
    out.push(kind);
    for &number in numbers {
        varint::put(out, number);
    }
}

fn put_definitions(out: &mut Vec<u8>, kind: u8, changed: &[(TableId, &[u8])]) {
    put_head(out, kind, &[changed.len() as u64]);
    for (table, def) in changed {
        varint::put(out, table.0.into());
        put_prefixed(out, def);
    }
}

fn definitions<'a>(fields: &mut Reader<'a>) -> Parsed<Vec<(TableId, &'a [u8])>> {
    (0..count(fields)?).map(|_| Ok((table_id(fields)?, fields.prefixed(usize::MAX)?))).collect()
}

/// Appends the bytes of a [`LogRecord::Row`] from its parts.
pub fn encode_row<'e>(
    out: &mut Vec<u8>,
    op: RowOp,
    txn: TxnId,
    row: &LoggedRow<'_>,
    large: &[LargeSource],
    entries: impl ExactSizeIterator<Item = LoggedEntry<'e>>,
) {
    let kind = match op {
        RowOp::Insert => INSERT,
        RowOp::Update => UPDATE,
        RowOp::Delete => DELETE,
    };
    put_head(out, kind, &[txn.0, row.table.0.into()]);
    if op != RowOp::Insert {
        put_prefixed(out, row.old_key);
    }
    if op != RowOp::Delete {
        put_prefixed(out, row.new_key);
        put_prefixed(out, row.row);
        varint::put(out, row.auto_increment);
        varint::put(out, large.len() as u64);
        out.extend(large.iter().map(|source| u8::from(*source == LargeSource::Written)));
    }
    varint::put(out, entries.len() as u64);
    for entry in entries {
        varint::put(out, entry.index.into());
        if op != RowOp::Insert {
            put_prefixed(out, entry.old_key);
        }
        if op != RowOp::Delete {
            put_prefixed(out, entry.new_key);
            put_prefixed(out, entry.payload);
        }
    }
}

fn decode_row<'a>(fields: &mut Reader<'a>, op: RowOp) -> Parsed<LogRecord<'a>> {
    let txn = txn_id(fields)?;
    let mut row = LoggedRow { table: table_id(fields)?, ..LoggedRow::default() };
    let (mut large, mut entries) = (Vec::new(), Vec::new());
    if op != RowOp::Insert {
        row.old_key = fields.prefixed(usize::MAX)?;
    }
    if op != RowOp::Delete {
        row.new_key = fields.prefixed(usize::MAX)?;
        row.row = fields.prefixed(usize::MAX)?;
        row.auto_increment = fields.varint()?;
        let source = |&byte: &u8| if byte == 0 { LargeSource::Kept } else { LargeSource::Written };
        large.extend(fields.prefixed(usize::MAX)?.iter().map(source));
    }
    for _ in 0..count(fields)? {
        entries.push(decode_entry(fields, op)?);
    }
    Ok(LogRecord::Row { txn, op, row, large, entries })
}

fn decode_entry<'a>(fields: &mut Reader<'a>, op: RowOp) -> Parsed<LoggedEntry<'a>> {
    let mut entry = LoggedEntry { index: number_u32(fields)?, ..LoggedEntry::default() };
    if op != RowOp::Insert {
        entry.old_key = fields.prefixed(usize::MAX)?;
    }
    if op != RowOp::Delete {
        entry.new_key = fields.prefixed(usize::MAX)?;
        entry.payload = fields.prefixed(usize::MAX)?;
    }
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<LogRecord<'static>> {
        let (txn, table) = (TxnId(77), TableId(3));
        let insert =
            LoggedRow { table, new_key: b"key", row: b"row", auto_increment: 9, ..LoggedRow::default() };
        let coming = LoggedEntry { index: 1, new_key: b"s", payload: b"p", old_key: b"" };
        let going = LoggedEntry { index: 2, old_key: b"t", ..LoggedEntry::default() };
        let changing = LoggedEntry { index: 2, new_key: b"s", payload: b"", old_key: b"t" };
        vec![
            LogRecord::Row {
                txn,
                op: RowOp::Insert,
                row: insert,
                large: vec![LargeSource::Written, LargeSource::Kept],
                entries: vec![coming],
            },
            LogRecord::Row {
                txn,
                op: RowOp::Update,
                row: LoggedRow { old_key: b"old", ..insert },
                large: vec![],
                entries: vec![changing],
            },
            LogRecord::Row {
                txn,
                op: RowOp::Delete,
                row: LoggedRow { table, old_key: b"old", ..LoggedRow::default() },
                large: vec![],
                entries: vec![going],
            },
            LogRecord::Blob { txn, table, total_bytes: 1 << 33, offset: 5, bytes: b"piece" },
            LogRecord::Undo(txn, 4),
            LogRecord::Prepare(txn, Xid::new(1 << 40, &[1; 64], &[2; 64])),
            LogRecord::Prepare(txn, Xid::new(0, b"g", b"")),
            LogRecord::Prepare(txn, None),
            LogRecord::Commit(txn, 1 << 40),
            LogRecord::Abort(txn),
            LogRecord::CreateTable(b"def"),
            LogRecord::DropTable(table),
            LogRecord::RenameTable(table, "db/t"),
            LogRecord::TruncateTable(table, b"def"),
            LogRecord::AlterTables(vec![(table, b"def"), (TableId(9), b"")]),
            LogRecord::AutoIncrement(table, u64::MAX),
        ]
    }

    #[test]
    fn every_record_reads_back() {
        for record in samples() {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            assert_eq!(LogRecord::decode(bytes[0], &bytes[1..]).unwrap(), record);
        }
    }

    #[test]
    fn cut_and_altered_records_never_panic() {
        for record in samples() {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            for len in 1..bytes.len() {
                assert!(LogRecord::decode(bytes[0], &bytes[1..len]).is_err(), "{record:?} cut to {len}");
            }
            for at in 0..bytes.len() {
                for flip in [1, 0x80, 0xff] {
                    let mut other = bytes.clone();
                    other[at] ^= flip;
                    let _ = LogRecord::decode(other[0], &other[1..]);
                    let _ = Front::decode(other[0], &other[1..]);
                }
            }
        }
    }

    #[test]
    fn the_front_tells_what_pushes_an_undo_record_and_which_keys_it_touches() {
        let fronts = samples().into_iter().map(|record| {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            let front = Front::decode(bytes[0], &bytes[1..]).unwrap();
            front.map(|front| {
                assert_eq!((front.txn, front.table), (TxnId(77), TableId(3)));
                front.keys.map(|key| key.map(<[u8]>::to_vec))
            })
        });
        let key = |key: &[u8]| Some(key.to_vec());
        let pushing = [[key(b"key"), None], [key(b"old"), key(b"key")], [key(b"old"), None], [None, None]];
        assert_eq!(fronts.collect::<Vec<_>>(), [&pushing.map(Some)[..], &[const { None }; 12]].concat());
    }

    #[test]
    fn h1_row_records_carry_the_secondary_keys() {
        let record = &samples()[1];
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        let LogRecord::Row { entries, .. } = LogRecord::decode(bytes[0], &bytes[1..]).unwrap() else {
            panic!("an update")
        };
        assert_eq!((entries[0].old_key, entries[0].new_key), (&b"t"[..], &b"s"[..]));
    }
}

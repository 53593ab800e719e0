//! Records of the undo log, as bytes. A record says how to roll back one step of a transaction and
//! which version older snapshots see, or that a transaction ended.
//!
//! Invariants
//!   I1  A record contains its transaction and its number. A reader that follows a pointer checks
//!       both (C6).
//!   I2  A row record has the exact previous content, including versions, of every record that the
//!       operation changed in the trees, so rolling back restores exactly this content. Its
//!       secondary keys are encoded by the caller (H1).
//!   I3  `freed` lists the large values to free after the transaction commits; the pages of a blob
//!       record are freed when it rolls back. No large value is in both sets (H6).
//!   I4  A finish record is not part of a chain: its number and its previous record are 0, and no
//!       record points to it.
//! Layout, little-endian: length u32 of the record, transaction u64, number u64, previous record of
//! the transaction u64 (0 = none), then the body; docs/developers/format.md, "Undo log".

use super::bytes::{ensure, put_prefixed, Defect, Reader};
use super::log_record::RowOp;
use super::record_fields::{count, number_u32};
use super::varint;
use crate::base::{Error, PageId, Result, TableId, TxnId, UndoPtr};

/// Bytes of the fixed head.
pub const HEAD_BYTES: usize = 28;

/// The maximum length of a finish record: head, kind, outcome and four numbers.
pub const FINISH_BYTES_MAX: usize = HEAD_BYTES + 2 + 4 * varint::MAX_BYTES;

/// The fixed head of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UndoHead {
    /// Length of the whole record in bytes.
    pub len: u32,
    /// The transaction.
    pub txn: TxnId,
    /// The number of the record in its transaction, counted from 1, or 0 in a finish record.
    pub undo_no: u64,
    /// The transaction's previous record.
    pub prev: UndoPtr,
}

/// The content of a record in a tree before an operation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Before<'a> {
    /// The transaction that wrote the content, and the undo record of the previous version. `None`
    /// if the content was visible to all snapshots.
    pub version: Option<(TxnId, UndoPtr)>,
    /// The stored payload.
    pub payload: &'a [u8],
}

/// The change of one secondary entry by a row operation. Keys are encoded by the caller and do not
/// include the clustered key.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct UndoEntry<'a> {
    /// Number of the index in its table.
    pub index: u32,
    /// The key before the operation. Empty for an insert.
    pub old_key: &'a [u8],
    /// The key after the operation. Empty for a delete.
    pub new_key: &'a [u8],
    /// The live entry that was at `old_key`. Empty for an insert.
    pub old: Before<'a>,
    /// The delete-marked entry that was at `new_key`, if `new_key` differs from `old_key`.
    pub marked: Option<Before<'a>>,
}

/// A row operation to roll back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UndoRow<'a> {
    /// The operation of the transaction.
    pub op: RowOp,
    /// The table.
    pub table: TableId,
    /// The clustered key before the operation. Empty for an insert.
    pub old_key: &'a [u8],
    /// The clustered key after the operation. Empty for a delete, and if it equals `old_key`.
    pub new_key: &'a [u8],
    /// The live row that was at `old_key`. Empty for an insert.
    pub old: Before<'a>,
    /// The delete-marked row that was at the new key. Only inserts and updates that change the key
    /// have it.
    pub marked: Option<Before<'a>>,
    /// Concatenated locators of the large values to free after commit.
    pub freed: &'a [u8],
    /// Secondary entries.
    pub entries: Vec<UndoEntry<'a>>,
}

/// Pages of a large value that one step wrote.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UndoBlob<'a> {
    /// The table whose row will refer to the value.
    pub table: TableId,
    /// Length of the whole value in bytes.
    pub total_bytes: u64,
    /// The number of bytes of the value that were written by the end of this step.
    pub end: u64,
    /// The locator of the value once the value is complete. Empty before that.
    pub locator: &'a [u8],
    /// Pages with bytes of the value that this step wrote.
    pub pages: Vec<PageId>,
    /// Index pages of the value that this step wrote.
    pub index_pages: Vec<PageId>,
}

/// The end of a transaction that had undo records. The finish records in the order of stamps are
/// the history list.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct UndoFinish {
    /// Its position in the order in which transactions ended, whether committed or rolled back.
    pub stamp: u64,
    /// Whether it committed. If not, all its records were rolled back.
    pub committed: bool,
    /// Its newest record, or 0 if the transaction was rolled back or left nothing to purge.
    pub head: UndoPtr,
    /// The oldest record that it appended.
    pub first: UndoPtr,
    /// Number of the record at `head`; 0 if there is none.
    pub undo_no: u64,
}

/// The body of a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UndoBody<'a> {
    /// A row operation.
    Row(UndoRow<'a>),
    /// Part of a large value.
    Blob(UndoBlob<'a>),
    /// The end of a transaction.
    Finish(UndoFinish),
}

impl UndoBody<'_> {
    /// Returns the table that the record belongs to, or `None` for a finish record.
    pub fn table(&self) -> Option<TableId> {
        match self {
            UndoBody::Row(row) => Some(row.table),
            UndoBody::Blob(blob) => Some(blob.table),
            UndoBody::Finish(_) => None,
        }
    }
}

type Parsed<T> = std::result::Result<T, Defect>;

const INSERT: u8 = 1;
const UPDATE: u8 = 2;
const DELETE: u8 = 3;
const BLOB: u8 = 4;
const FINISH: u8 = 5;

/// Transaction IDs and undo pointers have 48 bits in a page.
const IN_PAGE_MAX: u64 = (1 << 48) - 1;

/// Clears `out` and starts a record in it. The caller must then append the body and call
/// [`finish`].
pub fn start(out: &mut Vec<u8>, txn: TxnId, undo_no: u64, prev: UndoPtr) {
    out.clear();
    out.extend_from_slice(&[0; 4]);
    for number in [txn.0, undo_no, prev.0] {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

/// Writes the length of a record into its head.
pub fn finish(out: &mut [u8]) {
    let len = (out.len() as u32).to_le_bytes();
    if let Some(head) = out.first_chunk_mut::<4>() {
        *head = len;
    }
}

/// Reads the fixed head.
pub fn decode_head(bytes: &[u8; HEAD_BYTES]) -> Result<UndoHead> {
    let number = |at: usize| {
        let eight = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>());
        eight.map_or(0, |eight| u64::from_le_bytes(*eight))
    };
    let [a, b, c, d, ..] = *bytes;
    let head = UndoHead {
        len: u32::from_le_bytes([a, b, c, d]),
        txn: TxnId(number(4)),
        undo_no: number(12),
        prev: UndoPtr(number(20)),
    };
    if (head.len as usize) < HEAD_BYTES + 1 {
        return Err(Error::corrupt("undo record", format!("length {} is too short", head.len)));
    }
    Ok(head)
}

/// The parts of a row record that are written before its entries.
#[derive(Clone, Copy, Debug)]
pub struct RowParts<'a> {
    /// The operation of the transaction.
    pub op: RowOp,
    /// The table.
    pub table: TableId,
    /// See [`UndoRow::old_key`].
    pub old_key: &'a [u8],
    /// See [`UndoRow::new_key`].
    pub new_key: &'a [u8],
    /// See [`UndoRow::old`].
    pub old: Before<'a>,
    /// See [`UndoRow::marked`].
    pub marked: Option<Before<'a>>,
    /// See [`UndoRow::freed`].
    pub freed: &'a [u8],
}

/// Appends the body of a row record.
pub fn put_row<'e>(
    out: &mut Vec<u8>,
    parts: &RowParts<'_>,
    entries: impl ExactSizeIterator<Item = UndoEntry<'e>>,
) {
    out.push(match parts.op {
        RowOp::Insert => INSERT,
        RowOp::Update => UPDATE,
        RowOp::Delete => DELETE,
    });
    varint::put(out, parts.table.0.into());
    put_place(out, [parts.old_key, parts.new_key], parts.old, parts.marked);
    put_prefixed(out, parts.freed);
    varint::put(out, entries.len() as u64);
    for entry in entries {
        varint::put(out, entry.index.into());
        put_place(out, [entry.old_key, entry.new_key], entry.old, entry.marked);
    }
}

/// Appends the old and new key, the old content, and the marked content.
fn put_place(out: &mut Vec<u8>, keys: [&[u8]; 2], old: Before<'_>, marked: Option<Before<'_>>) {
    keys.into_iter().for_each(|key| put_prefixed(out, key));
    put_before(out, 0, old);
    match marked {
        None => varint::put(out, 0),
        Some(marked) => put_before(out, 1, marked),
    }
}

/// Appends a number, then the version if there is one, and the payload. The number is twice the
/// length of the payload, plus 1 if there is a version, plus `shift`. A `shift` of 1 makes 0
/// available for "no content".
fn put_before(out: &mut Vec<u8>, shift: u64, before: Before<'_>) {
    let versioned = u64::from(before.version.is_some());
    varint::put(out, shift + 2 * before.payload.len() as u64 + versioned);
    if let Some((txn, undo)) = before.version {
        varint::put(out, txn.0);
        varint::put(out, undo.0);
    }
    out.extend_from_slice(before.payload);
}

/// Appends a body.
pub fn put_body(out: &mut Vec<u8>, body: &UndoBody<'_>) {
    match body {
        UndoBody::Blob(blob) => put_blob(out, blob),
        UndoBody::Finish(end) => put_finish(out, end),
        UndoBody::Row(row) => {
            let &UndoRow { op, table, old_key, new_key, old, marked, freed, ref entries } = row;
            let parts = RowParts { op, table, old_key, new_key, old, marked, freed };
            put_row(out, &parts, entries.iter().copied());
        }
    }
}

/// Appends the body of a blob record.
pub fn put_blob(out: &mut Vec<u8>, blob: &UndoBlob<'_>) {
    out.push(BLOB);
    for number in [blob.table.0.into(), blob.total_bytes, blob.end] {
        varint::put(out, number);
    }
    put_prefixed(out, blob.locator);
    for pages in [&blob.pages, &blob.index_pages] {
        varint::put(out, pages.len() as u64);
        for page in pages {
            varint::put(out, page.0);
        }
    }
}

/// Appends the body of a finish record.
pub fn put_finish(out: &mut Vec<u8>, end: &UndoFinish) {
    out.push(FINISH);
    varint::put(out, end.stamp);
    out.push(end.committed.into());
    for number in [end.head.0, end.first.0, end.undo_no] {
        varint::put(out, number);
    }
}

/// Reads the body, which follows the head. Works on any bytes.
pub fn decode_body(bytes: &[u8]) -> Result<UndoBody<'_>> {
    read_body(&mut Reader::new(bytes)).map_err(|defect| defect.in_place("undo record"))
}

fn read_body<'a>(fields: &mut Reader<'a>) -> Parsed<UndoBody<'a>> {
    let body = match fields.u8()? {
        INSERT => UndoBody::Row(decode_row(fields, RowOp::Insert)?),
        UPDATE => UndoBody::Row(decode_row(fields, RowOp::Update)?),
        DELETE => UndoBody::Row(decode_row(fields, RowOp::Delete)?),
        BLOB => UndoBody::Blob(UndoBlob {
            table: TableId(number_u32(fields)?),
            total_bytes: fields.varint()?,
            end: fields.varint()?,
            locator: fields.prefixed(usize::MAX)?,
            pages: decode_pages(fields)?,
            index_pages: decode_pages(fields)?,
        }),
        FINISH => UndoBody::Finish(decode_finish(fields)?),
        kind => return Err(Defect::at("unknown kind", kind.into())),
    };
    fields.finish()?;
    Ok(body)
}

fn decode_row<'a>(fields: &mut Reader<'a>, op: RowOp) -> Parsed<UndoRow<'a>> {
    let table = TableId(number_u32(fields)?);
    let ChangedRecord { old_key, new_key, old, marked } = decode_changed(fields)?;
    let freed = fields.prefixed(usize::MAX)?;
    let mut row = UndoRow { op, table, old_key, new_key, old, marked, freed, entries: Vec::new() };
    for _ in 0..count(fields)? {
        let index = number_u32(fields)?;
        let ChangedRecord { old_key, new_key, old, marked } = decode_changed(fields)?;
        row.entries.push(UndoEntry { index, old_key, new_key, old, marked });
    }
    Ok(row)
}

struct ChangedRecord<'a> {
    old_key: &'a [u8],
    new_key: &'a [u8],
    old: Before<'a>,
    marked: Option<Before<'a>>,
}

fn decode_changed<'a>(fields: &mut Reader<'a>) -> Parsed<ChangedRecord<'a>> {
    let (old_key, new_key) = (fields.prefixed(usize::MAX)?, fields.prefixed(usize::MAX)?);
    let old = fields.varint()?;
    let old = decode_before(fields, old)?;
    let marked = match fields.varint()? {
        0 => None,
        shifted => Some(decode_before(fields, shifted - 1)?),
    };
    Ok(ChangedRecord { old_key, new_key, old, marked })
}

/// Reads the bytes that follow the number that [`put_before`] appends first. `number` is that
/// number without the shift.
fn decode_before<'a>(fields: &mut Reader<'a>, number: u64) -> Parsed<Before<'a>> {
    let version = match number % 2 {
        0 => None,
        _ => Some((TxnId(number_in_page(fields)?), UndoPtr(number_in_page(fields)?))),
    };
    let length = usize::try_from(number / 2).map_err(|_| Defect::new("length beyond its limit"))?;
    Ok(Before { version, payload: fields.take(length)? })
}

fn number_in_page(fields: &mut Reader<'_>) -> Parsed<u64> {
    let number = fields.varint()?;
    ensure(number <= IN_PAGE_MAX, "number beyond 48 bits")?;
    Ok(number)
}

fn decode_finish(fields: &mut Reader<'_>) -> Parsed<UndoFinish> {
    let stamp = fields.varint()?;
    let committed = fields.u8()?;
    ensure(committed <= 1, "neither committed nor rolled back")?;
    Ok(UndoFinish {
        stamp,
        committed: committed == 1,
        head: UndoPtr(fields.varint()?),
        first: UndoPtr(fields.varint()?),
        undo_no: fields.varint()?,
    })
}

fn decode_pages(fields: &mut Reader<'_>) -> Parsed<Vec<PageId>> {
    (0..count(fields)?).map(|_| Ok(PageId(fields.varint()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION: Option<(TxnId, UndoPtr)> = Some((TxnId(IN_PAGE_MAX), UndoPtr(1)));

    /// A record with and without versions and marked places.
    fn row() -> UndoRow<'static> {
        let old = Before { version: VERSION, payload: b"row" };
        let marked = Some(Before { version: None, payload: b"" });
        let entry = UndoEntry { index: 3, old_key: b"a", new_key: b"b", old, marked };
        let fresh = UndoEntry { index: 4, new_key: b"c", ..UndoEntry::default() };
        let revived = UndoEntry { marked: Some(Before { version: VERSION, payload: b"dead" }), ..fresh };
        UndoRow {
            op: RowOp::Update,
            table: TableId(2),
            old_key: b"old",
            new_key: b"new",
            old,
            marked,
            freed: b"locator",
            entries: vec![entry, fresh, revived],
        }
    }

    fn row_record() -> Vec<u8> {
        let mut out = Vec::new();
        start(&mut out, TxnId(5), 9, UndoPtr(1234));
        put_body(&mut out, &UndoBody::Row(row()));
        finish(&mut out);
        out
    }

    #[test]
    fn a_row_record_reads_back_with_everything_that_was_there_before() {
        let bytes = row_record();
        let head = decode_head(bytes.first_chunk().unwrap()).unwrap();
        let expected = UndoHead { len: bytes.len() as u32, txn: TxnId(5), undo_no: 9, prev: UndoPtr(1234) };
        assert_eq!(head, expected);
        assert_eq!(decode_body(&bytes[HEAD_BYTES..]).unwrap(), UndoBody::Row(row()));
    }

    #[test]
    fn nothing_before_takes_a_byte_each_for_what_was_live_and_what_was_marked() {
        let parts = |old| RowParts {
            op: RowOp::Insert,
            table: TableId(2),
            old_key: b"",
            new_key: b"new",
            old,
            marked: None,
            freed: b"",
        };
        let mut out = Vec::new();
        put_row(&mut out, &parts(Before::default()), [].into_iter());
        assert_eq!(out, b"\x01\x02\0\x03new\0\0\0\0");
    }

    #[test]
    fn a_finish_record_reads_back() {
        for committed in [true, false] {
            let end =
                UndoFinish { stamp: 1 << 50, committed, head: UndoPtr(7), first: UndoPtr(6), undo_no: 2 };
            let mut out = Vec::new();
            put_finish(&mut out, &end);
            assert_eq!(decode_body(&out).unwrap(), UndoBody::Finish(end));
            assert_eq!(decode_body(&out).unwrap().table(), None);
        }
    }

    #[test]
    fn versions_that_fit_no_page_are_refused() {
        let mut out = Vec::new();
        let entry = UndoEntry {
            old: Before { version: Some((TxnId(IN_PAGE_MAX + 1), UndoPtr(1))), payload: b"" },
            ..UndoEntry::default()
        };
        put_body(&mut out, &UndoBody::Row(UndoRow { entries: vec![entry], ..row() }));
        assert!(decode_body(&out).is_err());
    }

    #[test]
    fn a_blob_record_reads_back() {
        let blob = UndoBlob {
            table: TableId(4),
            total_bytes: 1 << 32,
            end: 77,
            locator: b"locator",
            pages: vec![PageId(1), PageId(1 << 39)],
            index_pages: vec![PageId(3)],
        };
        let mut out = Vec::new();
        put_blob(&mut out, &blob);
        assert_eq!(decode_body(&out).unwrap(), UndoBody::Blob(blob));
    }

    #[test]
    fn cut_and_altered_records_never_panic() {
        let bytes = row_record();
        for len in HEAD_BYTES..bytes.len() {
            assert!(decode_body(&bytes[HEAD_BYTES..len]).is_err());
        }
        for at in HEAD_BYTES..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 0xff;
            let _ = decode_body(&other[HEAD_BYTES..]);
        }
    }
}

//! Records of the undo log, as bytes: how to take one step of a transaction back.
//!
//! Invariants
//!   I1  A record names its transaction and number; whoever follows a pointer checks both (C6).
//!   I2  Taking a row record back is itself a row operation: old and new change places. Its secondary keys are
//!       the caller's (H1).
//!   I3  `freed` lists the large values that die when the transaction commits; the pages of a blob record die
//!       when it rolls back. No large value is on both sides (H6).
//! Layout, little-endian: length u32 of the whole record, transaction u64, number u64, previous record of the
//! transaction u64 (0 = none), then the body; docs/format.md, "Undo log".

use super::bytes::{put_prefixed, Defect, Reader};
use super::log_record::{LoggedEntry, RowOp};
use super::record_fields::{count, number_u32};
use super::varint;
use crate::base::{Error, PageId, Result, TableId, TxnId, UndoPtr};

/// Bytes of the fixed head.
pub const HEAD_BYTES: usize = 28;

/// The fixed head of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UndoHead {
    /// Length of the whole record in bytes.
    pub len: u32,
    /// The transaction.
    pub txn: TxnId,
    /// Number of the record in its transaction, from 1.
    pub undo_no: u64,
    /// The transaction's record before this one.
    pub prev: UndoPtr,
}

/// A row operation to take back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UndoRow<'a> {
    /// What the transaction did.
    pub op: RowOp,
    /// The table.
    pub table: TableId,
    /// Clustered key before; empty for an insert.
    pub old_key: &'a [u8],
    /// Clustered key after; empty for a delete, and when equal to `old_key`.
    pub new_key: &'a [u8],
    /// The stored row before; empty for an insert.
    pub old_row: &'a [u8],
    /// Locators, one behind the other, of the large values that die at commit.
    pub freed: &'a [u8],
    /// Secondary entries; the payload is the one before.
    pub entries: Vec<LoggedEntry<'a>>,
}

/// Pages of a large value that were written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UndoBlob<'a> {
    /// The table whose row will refer to the value.
    pub table: TableId,
    /// Length of the whole value in bytes.
    pub total_bytes: u64,
    /// Bytes of the value that are in pages after this record.
    pub end: u64,
    /// Locator of the value, once complete; empty before.
    pub locator: &'a [u8],
    /// Pages with the value's bytes that this step wrote.
    pub pages: Vec<PageId>,
    /// Pages with page numbers that this step wrote.
    pub index_pages: Vec<PageId>,
}

/// The body of a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UndoBody<'a> {
    /// A row operation.
    Row(UndoRow<'a>),
    /// Part of a large value.
    Blob(UndoBlob<'a>),
}

impl UndoBody<'_> {
    /// The table that it is about.
    pub fn table(&self) -> TableId {
        match self {
            UndoBody::Row(row) => row.table,
            UndoBody::Blob(blob) => blob.table,
        }
    }
}

type Parsed<T> = std::result::Result<T, Defect>;

const INSERT: u8 = 1;
const UPDATE: u8 = 2;
const DELETE: u8 = 3;
const BLOB: u8 = 4;

/// Starts a record in `out`, which is cleared; [`finish`] completes it once the body is appended.
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
    /// What the transaction does.
    pub op: RowOp,
    /// The table.
    pub table: TableId,
    /// See [`UndoRow::old_key`].
    pub old_key: &'a [u8],
    /// See [`UndoRow::new_key`].
    pub new_key: &'a [u8],
    /// See [`UndoRow::old_row`].
    pub old_row: &'a [u8],
    /// See [`UndoRow::freed`].
    pub freed: &'a [u8],
}

/// Appends the body of a row record.
pub fn put_row<'e>(
    out: &mut Vec<u8>,
    parts: &RowParts<'_>,
    entries: impl ExactSizeIterator<Item = LoggedEntry<'e>>,
) {
    out.push(match parts.op {
        RowOp::Insert => INSERT,
        RowOp::Update => UPDATE,
        RowOp::Delete => DELETE,
    });
    varint::put(out, parts.table.0.into());
    for bytes in [parts.old_key, parts.new_key, parts.old_row, parts.freed] {
        put_prefixed(out, bytes);
    }
    varint::put(out, entries.len() as u64);
    for entry in entries {
        varint::put(out, entry.index_no as u64);
        for bytes in [entry.old_key, entry.new_key, entry.payload] {
            put_prefixed(out, bytes);
        }
    }
}

/// Appends a body.
pub fn put_body(out: &mut Vec<u8>, body: &UndoBody<'_>) {
    match body {
        UndoBody::Blob(blob) => put_blob(out, blob),
        UndoBody::Row(row) => {
            let &UndoRow { op, table, old_key, new_key, old_row, freed, ref entries } = row;
            let parts = RowParts { op, table, old_key, new_key, old_row, freed };
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

/// Reads the body behind the head; total on any bytes.
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
        kind => return Err(Defect::at("unknown kind", kind.into())),
    };
    fields.finish()?;
    Ok(body)
}

fn decode_row<'a>(fields: &mut Reader<'a>, op: RowOp) -> Parsed<UndoRow<'a>> {
    let mut row = UndoRow {
        op,
        table: TableId(number_u32(fields)?),
        old_key: fields.prefixed(usize::MAX)?,
        new_key: fields.prefixed(usize::MAX)?,
        old_row: fields.prefixed(usize::MAX)?,
        freed: fields.prefixed(usize::MAX)?,
        entries: Vec::new(),
    };
    for _ in 0..count(fields)? {
        row.entries.push(LoggedEntry {
            index_no: number_u32(fields)? as usize,
            old_key: fields.prefixed(usize::MAX)?,
            new_key: fields.prefixed(usize::MAX)?,
            payload: fields.prefixed(usize::MAX)?,
        });
    }
    Ok(row)
}

fn decode_pages(fields: &mut Reader<'_>) -> Parsed<Vec<PageId>> {
    (0..count(fields)?).map(|_| Ok(PageId(fields.varint()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row_record() -> Vec<u8> {
        let mut out = Vec::new();
        start(&mut out, TxnId(5), 9, UndoPtr(1234));
        let parts = RowParts {
            op: RowOp::Update,
            table: TableId(2),
            old_key: b"old",
            new_key: b"new",
            old_row: b"row",
            freed: b"",
        };
        let entry = LoggedEntry { index_no: 3, old_key: b"a", new_key: b"b", payload: b"p" };
        put_row(&mut out, &parts, [entry].into_iter());
        finish(&mut out);
        out
    }

    #[test]
    fn a_row_record_reads_back() {
        let bytes = row_record();
        let head = decode_head(bytes.first_chunk().unwrap()).unwrap();
        let expected = UndoHead { len: bytes.len() as u32, txn: TxnId(5), undo_no: 9, prev: UndoPtr(1234) };
        assert_eq!(head, expected);
        let UndoBody::Row(row) = decode_body(&bytes[HEAD_BYTES..]).unwrap() else { panic!("a row") };
        assert_eq!(
            (row.op, row.old_key, row.new_key, row.old_row),
            (RowOp::Update, &b"old"[..], &b"new"[..], &b"row"[..])
        );
        assert_eq!(row.entries[0].payload, b"p");
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

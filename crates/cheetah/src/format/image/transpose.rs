//! The content of an image before compression: a page regrouped by column.
//! docs/developers/format.md has the layout.

use super::columns::{best_delta_width, number, put_planes, DELTA_MAX, KEY_PLANES_MAX, PLANES_MAX};
use crate::base::{TxnId, UndoPtr};
use crate::format::bytes::{put_prefixed, u48_bytes, Reader};
use crate::format::page::{PageView, RecordRef};
use crate::format::row::{RowFormatVersion, RowView, VarValues};
use crate::format::varint;

pub(super) const FLAG_DEAD: u8 = 1;
pub(super) const FLAG_HAS_HIGH: u8 = 2;

/// The forms in which keys are stored.
pub(super) const KEYS_VARYING: u8 = 0;
pub(super) const KEYS_TOGETHER: u8 = 1;
pub(super) const KEYS_PLANES: u8 = 2;
/// The forms in which payloads are stored.
pub(super) const PAYLOADS_VARYING: u8 = 0;
pub(super) const PAYLOADS_TOGETHER: u8 = 1;
pub(super) const PAYLOADS_PLANES: u8 = 2;
pub(super) const PAYLOADS_ROWS: u8 = 3;

pub(super) fn content_page(page: PageView<'_>, out: &mut Vec<u8>) {
    out.push(if page.is_dead() { FLAG_DEAD } else { 0 });
    varint::put(out, page.right().0);
    varint::put(out, page.content_position());
    out.extend_from_slice(page.content());
}

/// Appends the content of a leaf or inner page. `row_format` is passed with its encoding.
pub(super) fn tree_page(
    page: PageView<'_>,
    row_format: Option<(&RowFormatVersion, &[u8])>,
    freeze_below: TxnId,
    out: &mut Vec<u8>,
) {
    let high = page.high();
    let dead = if page.is_dead() { FLAG_DEAD } else { 0 };
    out.push(page.level());
    out.push(dead | if high.is_some() { FLAG_HAS_HIGH } else { 0 });
    varint::put(out, page.right().0);
    varint::put(out, page.count() as u64);
    put_prefixed(out, page.low());
    if let Some(high) = high {
        put_prefixed(out, high);
    }
    let (keys, records): (Vec<_>, Vec<_>) = (0..page.count()).map(|i| page.entry(i)).unzip();
    put_keys(&keys, out);
    put_flags(&records, out);
    put_versions(&records, freeze_below, out);
    let rows =
        row_format.and_then(|(row_format, encoded)| Some((Rows::parse(row_format, &records)?, encoded)));
    match rows {
        Some((rows, encoded)) => rows.put(encoded, out),
        None => put_opaque(&records, out),
    }
}

fn put_keys(keys: &[&[u8]], out: &mut Vec<u8>) {
    let Some(width) = common_width(keys.iter().map(|key| key.len())) else {
        out.push(KEYS_VARYING);
        keys.iter().for_each(|key| varint::put(out, key.len() as u64));
        keys.iter().for_each(|key| out.extend_from_slice(key));
        return;
    };
    let planes = width <= KEY_PLANES_MAX;
    out.push(if planes { KEYS_PLANES } else { KEYS_TOGETHER });
    varint::put(out, width as u64);
    if !planes {
        keys.iter().for_each(|key| out.extend_from_slice(key));
        return;
    }
    let delta_width = best_delta_width(keys, width);
    debug_assert!(delta_width <= DELTA_MAX);
    out.push(delta_width as u8);
    if delta_width > 0 {
        put_deltas(keys, delta_width, out);
    }
    put_planes(out, width - delta_width, keys.iter().map(|key| &key[delta_width..]));
}

/// Reads the first `width` bytes of each key as a number, and appends the differences between
/// consecutive numbers as byte planes. The first difference is from zero.
fn put_deltas(keys: &[&[u8]], width: usize, out: &mut Vec<u8>) {
    let mut previous = 0;
    let difference = |key: &&[u8]| {
        let value = number(key, width);
        value.wrapping_sub(std::mem::replace(&mut previous, value)).to_be_bytes()
    };
    let differences: Vec<[u8; 8]> = keys.iter().map(difference).collect();
    put_planes(out, width, differences.iter().map(|bytes| &bytes[8 - width..]));
}

fn put_flags(records: &[RecordRef<'_>], out: &mut Vec<u8>) {
    let any = records.iter().any(|record| record.flags.bits() != 0);
    out.push(any.into());
    if any {
        out.extend(records.iter().map(|record| record.flags.bits()));
    }
}

/// Appends the versions that a snapshot may still need: their number, the gaps between their
/// records, and the versions as planes.
fn put_versions(records: &[RecordRef<'_>], freeze_below: TxnId, out: &mut Vec<u8>) {
    let young = |record: &RecordRef<'_>| record.version.filter(|(txn, _)| *txn >= freeze_below);
    let young: Vec<_> =
        records.iter().enumerate().filter_map(|(i, record)| Some((i, young(record)?))).collect();
    varint::put(out, young.len() as u64);
    let mut next = 0;
    for &(i, _) in &young {
        varint::put(out, (i - next) as u64);
        next = i + 1;
    }
    let versions: Vec<[u8; 12]> = young.iter().map(|&(_, version)| version_bytes(version)).collect();
    put_planes(out, 12, versions.iter().map(<[u8; 12]>::as_slice));
}

fn version_bytes((txn, undo): (TxnId, UndoPtr)) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..6].copy_from_slice(&u48_bytes(txn.0));
    bytes[6..].copy_from_slice(&u48_bytes(undo.0));
    bytes
}

fn put_opaque(records: &[RecordRef<'_>], out: &mut Vec<u8>) {
    let payloads = records.iter().map(|record| record.payload);
    match common_width(payloads.clone().map(<[u8]>::len)) {
        Some(width) if width <= PLANES_MAX => {
            out.push(PAYLOADS_PLANES);
            varint::put(out, width as u64);
            put_planes(out, width, payloads);
        }
        Some(width) => {
            out.push(PAYLOADS_TOGETHER);
            varint::put(out, width as u64);
            payloads.for_each(|payload| out.extend_from_slice(payload));
        }
        None => {
            out.push(PAYLOADS_VARYING);
            payloads.clone().for_each(|payload| varint::put(out, payload.len() as u64));
            payloads.for_each(|payload| out.extend_from_slice(payload));
        }
    }
}

/// Returns the common value of `lengths`, or 0 if there are none, or `None` if they differ.
fn common_width(mut lengths: impl Iterator<Item = usize>) -> Option<usize> {
    let first = lengths.next().unwrap_or(0);
    lengths.all(|length| length == first).then_some(first)
}

/// Payloads that are all rows of one row-format version.
struct Rows<'a> {
    row_format: &'a RowFormatVersion,
    rows: Vec<RowView<'a>>,
}

impl<'a> Rows<'a> {
    /// Returns `None` if a payload is not a row of this row-format version.
    fn parse(row_format: &'a RowFormatVersion, records: &[RecordRef<'a>]) -> Option<Self> {
        let rows = records.iter().map(|record| RowView::parse(row_format, record.payload));
        Some(Self { row_format, rows: rows.collect::<Result<_, _>>().ok()? })
    }

    fn put(&self, encoded_format: &[u8], out: &mut Vec<u8>) {
        out.push(PAYLOADS_ROWS);
        out.extend_from_slice(encoded_format);
        put_planes(out, self.row_format.null_bytes.into(), self.rows.iter().map(RowView::nulls));
        let mut at = 0;
        for &width in &self.row_format.fixed {
            self.put_fixed(at, width.into(), out);
            at += usize::from(width);
        }
        self.put_lengths(out);
        self.put_values(out);
    }

    fn put_fixed(&self, at: usize, width: usize, out: &mut Vec<u8>) {
        let values = self.rows.iter().map(|row| &row.fixed()[at..at + width]);
        if width <= PLANES_MAX {
            put_planes(out, width, values);
        } else {
            values.for_each(|value| out.extend_from_slice(value));
        }
    }

    fn put_lengths(&self, out: &mut Vec<u8>) {
        let mut lengths: Vec<Reader<'_>> = self.rows.iter().map(|row| Reader::new(row.lengths())).collect();
        for _ in 0..self.row_format.var_count {
            for length in &mut lengths {
                varint::put(out, length.varint().expect("the row has been parsed"));
            }
        }
    }

    fn put_values(&self, out: &mut Vec<u8>) {
        let mut values: Vec<VarValues<'_>> = self.rows.iter().map(RowView::values).collect();
        for _ in 0..self.row_format.var_count {
            for value in values.iter_mut().filter_map(Iterator::next) {
                out.extend_from_slice(value.bytes);
            }
        }
    }
}

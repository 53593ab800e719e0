//! Moving large values out of a row, so that the row fits a leaf.
//!
//! Invariants
//!   I1  The choice of the values to move out depends only on the row and the limit: redo moves out
//!       the same ones.
//!   I2  The largest values are moved first, and no more than needed: short values next to each
//!       other compress best in the leaf.

use crate::base::{Error, Result};
use crate::format::bytes::{Defect, Reader};
use crate::format::row::{RowFormatVersion, LOCATOR_BYTES};
use crate::format::varint;
use std::ops::Range;

/// A value of variable length in a stored row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Value {
    pub(crate) at: Range<usize>,
    pub(crate) external: bool,
    pub(crate) moves: bool,
}

impl Value {
    fn stored_len(&self) -> usize {
        let len = if self.moves { LOCATOR_BYTES } else { self.at.len() };
        len + varint::len(length_word(len, self.external || self.moves))
    }
}

fn length_word(len: usize, external: bool) -> u64 {
    (len as u64) << 1 | u64::from(external)
}

/// In the order of their columns.
pub(crate) fn find_values(row_format: &RowFormatVersion, row: &[u8], values: &mut Vec<Value>) -> Result<()> {
    values.clear();
    if row_format.is_opaque() {
        return Ok(());
    }
    parse(row_format, row, values).map_err(|defect| defect.in_place("stored row"))
}

fn parse(
    row_format: &RowFormatVersion,
    row: &[u8],
    values: &mut Vec<Value>,
) -> std::result::Result<(), Defect> {
    let mut reader = Reader::new(row);
    reader.take(head_bytes(row_format, row))?;
    for column in 0..row_format.var_count {
        let word = reader.varint()?;
        let len = usize::try_from(word >> 1).map_err(|_| Defect::new("value length"))?;
        if word & 1 != 0 && len != LOCATOR_BYTES {
            return Err(Defect::at("external value without a locator", column.into()));
        }
        values.push(Value { at: 0..len, external: word & 1 != 0, moves: false });
    }
    let mut at = row.len() - reader.rest().len();
    for value in values {
        let len = value.at.len();
        reader.take(len)?;
        value.at = at..at + len;
        at += len;
    }
    reader.finish()
}

/// The bytes before the lengths of the values; the whole row if its version is not known.
fn head_bytes(row_format: &RowFormatVersion, row: &[u8]) -> usize {
    if row_format.is_opaque() {
        row.len()
    } else {
        usize::from(row_format.null_bytes) + row_format.fixed_bytes()
    }
}

pub(crate) fn choose_moves(
    row_format: &RowFormatVersion,
    row: &[u8],
    values: &mut [Value],
    limit: usize,
) -> Result<()> {
    let mut bytes = head_bytes(row_format, row) + values.iter().map(Value::stored_len).sum::<usize>();
    while bytes > limit {
        let candidates = values.iter_mut().filter(|value| !value.external && !value.moves);
        let largest = candidates.max_by_key(|value| value.at.len());
        let Some(value) = largest.filter(|value| value.at.len() > LOCATOR_BYTES) else {
            let what = "row length without its large values (bytes)";
            return Err(Error::Limit { what, actual: bytes as u64, limit: limit as u64 });
        };
        bytes -= value.stored_len();
        value.moves = true;
        bytes += value.stored_len();
    }
    Ok(())
}

/// Appends to `out` the row with other values: `locator(i, value)` gives the locator of value `i`
/// if the value is external or becomes so.
pub(crate) fn rebuild<'a>(
    row_format: &RowFormatVersion,
    row: &[u8],
    values: &[Value],
    out: &mut Vec<u8>,
    mut locator: impl FnMut(usize, &Value) -> Result<&'a [u8]>,
) -> Result<()> {
    out.extend_from_slice(row.get(..head_bytes(row_format, row)).unwrap_or_default());
    for value in values {
        let len = if value.moves { LOCATOR_BYTES } else { value.at.len() };
        varint::put(out, length_word(len, value.external || value.moves));
    }
    for (index, value) in values.iter().enumerate() {
        if value.external || value.moves {
            out.extend_from_slice(locator(index, value)?);
        } else {
            out.extend_from_slice(row.get(value.at.clone()).unwrap_or_default());
        }
    }
    Ok(())
}

/// `fetch(locator, out)` appends a value.
pub(crate) fn inline_row(
    row_format: &RowFormatVersion,
    row: &[u8],
    values: &[Value],
    out: &mut Vec<u8>,
    mut fetch: impl FnMut(&[u8], &mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    let mut bytes = Vec::new();
    let mut lengths = Vec::with_capacity(values.len());
    for value in values {
        let before = bytes.len();
        let stored = row.get(value.at.clone()).unwrap_or_default();
        if value.external {
            fetch(stored, &mut bytes)?;
        } else {
            bytes.extend_from_slice(stored);
        }
        lengths.push(bytes.len() - before);
    }
    out.extend_from_slice(row.get(..head_bytes(row_format, row)).unwrap_or_default());
    lengths.into_iter().for_each(|len| varint::put(out, length_word(len, false)));
    out.extend_from_slice(&bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row_format() -> RowFormatVersion {
        RowFormatVersion { null_bytes: 1, fixed: vec![4], var_count: 3 }
    }

    fn row(lengths: [usize; 3]) -> Vec<u8> {
        let mut row = vec![0, 1, 2, 3, 4];
        lengths.iter().for_each(|&len| varint::put(&mut row, length_word(len, false)));
        lengths.iter().enumerate().for_each(|(i, &len)| row.extend(vec![b'a' + i as u8; len]));
        row
    }

    fn moved(lengths: [usize; 3], limit: usize) -> Result<Vec<bool>> {
        let mut values = Vec::new();
        find_values(&row_format(), &row(lengths), &mut values)?;
        choose_moves(&row_format(), &row(lengths), &mut values, limit)?;
        Ok(values.iter().map(|value| value.moves).collect())
    }

    #[test]
    fn the_largest_values_move_and_no_more_than_needed() {
        assert_eq!(moved([30, 500, 200], 1000).unwrap(), [false, false, false]);
        assert_eq!(moved([30, 500, 200], 300).unwrap(), [false, true, false]);
        assert_eq!(moved([30, 500, 200], 90).unwrap(), [false, true, true]);
        assert!(moved([30, 500, 200], 60).is_err());
    }

    #[test]
    fn a_rebuilt_row_has_locators_in_place_of_its_large_values() {
        let row = row([30, 500, 200]);
        let mut values = Vec::new();
        find_values(&row_format(), &row, &mut values).unwrap();
        choose_moves(&row_format(), &row, &mut values, 300).unwrap();
        let mut out = Vec::new();
        let locator = [7u8; LOCATOR_BYTES];
        rebuild(&row_format(), &row, &values, &mut out, |_, _| Ok(&locator)).unwrap();
        find_values(&row_format(), &out, &mut values).unwrap();
        assert_eq!(values.iter().map(|value| value.external).collect::<Vec<_>>(), [false, true, false]);
        assert_eq!(out[values[1].at.clone()], locator);
        assert_eq!(out[values[2].at.clone()], [b'c'; 200]);
    }

    #[test]
    fn a_cut_row_is_refused() {
        let row = row([3, 5, 2]);
        for len in 0..row.len() {
            assert!(find_values(&row_format(), &row[..len], &mut Vec::new()).is_err());
        }
    }
}

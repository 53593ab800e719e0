//! The stored row: `[null bitmap][fixed columns][V lengths][V values]`, and the description of its
//! columns.
//!
//! A length is a varint of `bytes << 1 | external`. In place of an external value the row has a
//! [`Locator`], which names the value's root page. The engine knows only the positions of columns,
//! not their types or names. This is enough for compression by column and for large values.
//!
//! Invariants
//!   I1  A row is parsed to its last byte; no byte is left over.
//!   I2  An external value is stored as a locator of [`LOCATOR_BYTES`] bytes.

use super::bytes::{ensure, u40_bytes, Defect, Reader};
use super::varint;
use crate::base::PageId;

/// Bytes of an encoded [`Locator`].
pub const LOCATOR_BYTES: usize = 20;
/// The maximum number of fixed columns, and of variable columns, of a row-format version. MariaDB
/// allows 4096 columns in total.
pub const COLUMNS_MAX: usize = 4096;
/// The maximum length of a row's null bitmap and fixed columns together.
pub const FIXED_BYTES_MAX: usize = 65535;
/// The maximum length of a value, which is the limit of MariaDB's LONGBLOB.
pub const VALUE_BYTES_MAX: usize = u32::MAX as usize;

/// The positions of the columns of a stored row.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct RowFormatVersion {
    /// Bytes of the null bitmap.
    pub null_bytes: u16,
    /// Bytes of each fixed column.
    pub fixed: Vec<u16>,
    /// Number of variable columns.
    pub var_count: u16,
}

impl RowFormatVersion {
    /// Creates a format without known columns, as used for secondary entries.
    pub fn opaque() -> Self {
        Self::default()
    }

    /// Returns whether the columns are unknown. If so, any bytes are a row.
    pub fn is_opaque(&self) -> bool {
        self.null_bytes == 0 && self.fixed.is_empty() && self.var_count == 0
    }

    /// Bytes of all fixed columns.
    pub fn fixed_bytes(&self) -> usize {
        self.fixed.iter().map(|&width| usize::from(width)).sum()
    }

    /// Appends the row-format version: `[null bytes][fixed columns][width ...][variable columns]`,
    /// all varints.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::put(out, self.null_bytes.into());
        varint::put(out, self.fixed.len() as u64);
        for &width in &self.fixed {
            varint::put(out, width.into());
        }
        varint::put(out, self.var_count.into());
    }

    /// Reads what [`Self::encode`] wrote. Fails if the row-format version exceeds the limits of
    /// this module.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Defect> {
        let null_bytes = reader.length(FIXED_BYTES_MAX)? as u16;
        let count = reader.length(COLUMNS_MAX)?;
        let mut total = usize::from(null_bytes);
        let mut fixed = Vec::with_capacity(count);
        for _ in 0..count {
            let width = reader.length(FIXED_BYTES_MAX)?;
            total += width;
            fixed.push(width as u16);
        }
        ensure(total <= FIXED_BYTES_MAX, "row-format version with too many fixed bytes")?;
        let var_count = reader.length(COLUMNS_MAX)? as u16;
        Ok(Self { null_bytes, fixed, var_count })
    }
}

/// The location of an external value, which is stored in blob pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Locator {
    /// Length of the value.
    pub value_bytes: u64,
    /// The root of the value: its only page, or the top index page, through which the other pages
    /// are found.
    pub first_page: PageId,
}

impl Locator {
    /// `[value length u64][root page u40][zero, 7 bytes]`.
    pub fn encode(&self) -> [u8; LOCATOR_BYTES] {
        let mut bytes = [0; LOCATOR_BYTES];
        bytes[..8].copy_from_slice(&self.value_bytes.to_le_bytes());
        bytes[8..13].copy_from_slice(&u40_bytes(self.first_page.0));
        bytes
    }

    /// Reads what [`Self::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self, Defect> {
        let mut reader = Reader::new(bytes);
        let locator = Self { value_bytes: reader.u64()?, first_page: PageId(reader.u40()?) };
        ensure(locator.first_page != PageId::NONE, "locator without a page")?;
        ensure(reader.array::<7>()? == [0; 7], "locator with unknown fields")?;
        reader.finish()?;
        Ok(locator)
    }
}

/// A variable value of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VarValue<'a> {
    /// The value, or its locator.
    pub bytes: &'a [u8],
    /// Whether it is a locator.
    pub external: bool,
}

impl<'a> VarValue<'a> {
    /// A value in the row itself.
    pub fn inline(bytes: &'a [u8]) -> Self {
        Self { bytes, external: false }
    }

    /// A value outside the row.
    pub fn external(locator: &'a [u8; LOCATOR_BYTES]) -> Self {
        Self { bytes: locator, external: true }
    }
}

/// A row that was checked.
#[derive(Clone, Copy, Debug)]
pub struct RowView<'a> {
    nulls: &'a [u8],
    fixed: &'a [u8],
    lengths: &'a [u8],
    values: &'a [u8],
}

impl<'a> RowView<'a> {
    /// Checks `row` against `row_format`. If `row_format` is opaque, any bytes are a row without
    /// columns.
    pub fn parse(row_format: &RowFormatVersion, row: &'a [u8]) -> Result<Self, Defect> {
        let mut reader = Reader::new(row);
        if row_format.is_opaque() {
            return Ok(Self { nulls: &[], fixed: &[], lengths: &[], values: &[] });
        }
        let nulls = reader.take(row_format.null_bytes.into())?;
        let fixed = reader.take(row_format.fixed_bytes())?;
        let from_lengths = reader.rest();
        let mut total = 0;
        for i in 0..usize::from(row_format.var_count) {
            let (bytes, external) = split_length(reader.varint()?);
            if bytes > VALUE_BYTES_MAX as u64 || (external && bytes != LOCATOR_BYTES as u64) {
                return Err(Defect::at("impossible length of a value", i));
            }
            total += bytes as usize;
        }
        let lengths = &from_lengths[..from_lengths.len() - reader.rest().len()];
        let values = reader.take(total)?;
        reader.finish()?;
        Ok(Self { nulls, fixed, lengths, values })
    }

    /// The null bitmap.
    pub fn nulls(&self) -> &'a [u8] {
        self.nulls
    }

    /// The fixed columns, in order and without gaps.
    pub fn fixed(&self) -> &'a [u8] {
        self.fixed
    }

    /// The encoded lengths of the variable columns.
    pub fn lengths(&self) -> &'a [u8] {
        self.lengths
    }

    /// The bytes of the variable columns, in order and without gaps.
    pub fn value_bytes(&self) -> &'a [u8] {
        self.values
    }

    /// The variable columns in order.
    pub fn values(&self) -> VarValues<'a> {
        VarValues { lengths: Reader::new(self.lengths), values: self.values }
    }

    /// Returns the column number and the locator of each external value, or an `Err` for a
    /// malformed locator.
    pub fn externals(&self) -> impl Iterator<Item = Result<(usize, Locator), Defect>> + 'a {
        let external = self.values().enumerate().filter(|(_, value)| value.external);
        external.map(|(i, value)| Ok((i, Locator::decode(value.bytes)?)))
    }

    /// Returns whether any value is external.
    pub fn has_externals(&self) -> bool {
        self.values().any(|value| value.external)
    }

    /// Appends the row to `out` with replaced variable values: `replace(i, old)` returns the new
    /// value, or `None` to keep the old one. Used to move values out of the row and back into it.
    pub fn rewrite<'b>(
        &self,
        out: &mut Vec<u8>,
        mut replace: impl FnMut(usize, VarValue<'a>) -> Option<VarValue<'b>>,
    ) where
        'a: 'b,
    {
        out.extend_from_slice(self.nulls);
        out.extend_from_slice(self.fixed);
        let mut chosen: Vec<VarValue<'b>> = Vec::new();
        for (i, old) in self.values().enumerate() {
            let value = replace(i, old).unwrap_or(old);
            debug_assert!(
                !value.external || value.bytes.len() == LOCATOR_BYTES,
                "I2: an external value is a locator"
            );
            varint::put(out, join_length(value));
            chosen.push(value);
        }
        chosen.iter().for_each(|value| out.extend_from_slice(value.bytes));
    }
}

/// Iterates over the variable columns of a row.
#[derive(Clone, Copy, Debug)]
pub struct VarValues<'a> {
    lengths: Reader<'a>,
    values: &'a [u8],
}

impl<'a> Iterator for VarValues<'a> {
    type Item = VarValue<'a>;

    #[inline]
    fn next(&mut self) -> Option<VarValue<'a>> {
        let (length, external) = split_length(self.lengths.varint().ok()?);
        let (bytes, rest) = self.values.split_at_checked(length as usize)?;
        self.values = rest;
        Some(VarValue { bytes, external })
    }
}

/// Returns the length of the value, and whether it is external.
#[inline]
pub(super) fn split_length(encoded: u64) -> (u64, bool) {
    (encoded >> 1, encoded & 1 != 0)
}

#[inline]
pub(super) fn join_length(value: VarValue<'_>) -> u64 {
    (value.bytes.len() as u64) << 1 | u64::from(value.external)
}

/// Appends a row with these parts. `fixed` holds all fixed columns.
pub fn build_row(nulls: &[u8], fixed: &[u8], values: &[VarValue<'_>], out: &mut Vec<u8>) {
    out.extend_from_slice(nulls);
    out.extend_from_slice(fixed);
    values.iter().for_each(|value| varint::put(out, join_length(*value)));
    values.iter().for_each(|value| out.extend_from_slice(value.bytes));
}

#[cfg(test)]
mod tests {
    use super::*;
    use cheetah_io::rng::Rng;

    fn row_format() -> RowFormatVersion {
        RowFormatVersion { null_bytes: 2, fixed: vec![4, 8, 1], var_count: 3 }
    }

    fn row(values: &[VarValue<'_>]) -> Vec<u8> {
        let mut row = Vec::new();
        build_row(&[1, 2], &[7; 13], values, &mut row);
        row
    }

    #[test]
    fn a_row_gives_back_its_parts() {
        let locator = Locator { value_bytes: 1 << 33, first_page: PageId::MAX };
        let encoded = locator.encode();
        let long = [5; 300];
        let values = [VarValue::inline(&long), VarValue::external(&encoded), VarValue::inline(b"")];
        let row = row(&values);
        let view = RowView::parse(&row_format(), &row).unwrap();
        assert_eq!((view.nulls(), view.fixed()), (&[1, 2][..], &[7; 13][..]));
        assert_eq!(view.values().collect::<Vec<_>>(), values);
        assert_eq!(view.externals().collect::<Vec<_>>(), [Ok((1, locator))]);
        assert!(view.has_externals());
    }

    #[test]
    fn values_move_out_of_the_row_and_back() {
        let long = [5; 3000];
        let inside = row(&[VarValue::inline(b"a"), VarValue::inline(&long), VarValue::inline(b"c")]);
        let locator = Locator { value_bytes: 3000, first_page: PageId(9) }.encode();
        let (mut outside, mut back) = (Vec::new(), Vec::new());
        let view = RowView::parse(&row_format(), &inside).unwrap();
        view.rewrite(&mut outside, |i, _| (i == 1).then(|| VarValue::external(&locator)));
        assert_eq!(outside.len(), inside.len() - 3000 + LOCATOR_BYTES - 1);
        let view = RowView::parse(&row_format(), &outside).unwrap();
        view.rewrite(&mut back, |_, old| old.external.then(|| VarValue::inline(&long)));
        assert_eq!(back, inside);
    }

    #[test]
    fn rows_that_do_not_suit_the_format_are_refused() {
        let good = row(&[VarValue::inline(b"abc"); 3]);
        assert!(RowView::parse(&row_format(), &good).is_ok());
        for end in 0..good.len() {
            assert!(RowView::parse(&row_format(), &good[..end]).is_err());
        }
        assert!(RowView::parse(&row_format(), &[&good[..], b"x"].concat()).is_err());
        let mut external = good.clone();
        external[15] |= 1;
        assert!(RowView::parse(&row_format(), &external).is_err());
        assert!(RowView::parse(&RowFormatVersion::opaque(), &good).is_ok());
        assert!(RowView::parse(&RowFormatVersion::opaque(), &[]).is_ok());
    }

    #[test]
    fn formats_round_trip_and_huge_ones_are_refused() {
        for row_format in [row_format(), RowFormatVersion::opaque()] {
            let mut bytes = Vec::new();
            row_format.encode(&mut bytes);
            assert_eq!(RowFormatVersion::decode(&mut Reader::new(&bytes)), Ok(row_format));
        }
        let mut bytes = Vec::new();
        RowFormatVersion { null_bytes: 2, fixed: vec![65535], var_count: 0 }.encode(&mut bytes);
        assert!(RowFormatVersion::decode(&mut Reader::new(&bytes)).is_err());
    }

    #[test]
    fn any_bytes_are_a_row_or_a_defect() {
        let mut rng = Rng::new(1);
        for _ in 0..20_000 {
            let length = rng.below(60) as usize;
            let mut row = rng.bytes(length);
            if rng.chance(0.5) {
                row.iter_mut().skip(15).take(3).for_each(|byte| *byte &= 0x1e);
            }
            if let Ok(view) = RowView::parse(&row_format(), &row) {
                let mut copy = Vec::new();
                view.rewrite(&mut copy, |_, _| None);
                assert_eq!(copy, row);
                assert!(view.externals().count() <= 3);
            }
            let _ = RowFormatVersion::decode(&mut Reader::new(&row));
        }
    }
}

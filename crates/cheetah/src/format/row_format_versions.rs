//! The row-format versions of a table: rows stay as they were written when columns are added or
//! dropped, and are converted to the newest row-format version when they are read.
//!
//! A row of the first row-format version is stored without a mark. A row of a later version is
//! stored after one byte with the number of its version. If the result can also be parsed as a row
//! of the first version, a zero is appended. So rows written before the first change need no mark:
//! they are recognised because they parse as rows of the first version. One zero is always enough:
//! a row is parsed to its last byte, so bytes that parse as a row no longer do with a zero
//! appended.
//!
//! Invariants
//!   S1  A stored row either is a row of the first row-format version, or begins with the number of
//!       another version, but never both.
//!   S2  The number of a row-format version and its definition do not change as long as the table
//!       has that version.
//!   S3  No column of an older row-format version becomes two columns of the newest one, so no
//!       large value gets two owners. The values of new columns in older rows are never external.
//!   S4  No row-format version is opaque.

use super::bytes::{ensure, put_prefixed, Defect, Reader};
use super::row::{join_length, RowFormatVersion, RowView, VarValue, VarValues, COLUMNS_MAX, FIXED_BYTES_MAX};
use super::varint;
use std::ops::Range;

type Parsed<T> = Result<T, Defect>;

/// The maximum number of row-format versions of a table, including the newest. A version's number
/// has to fit in a byte.
pub const FORMAT_VERSIONS_MAX: usize = 64;

/// The maximum number of bytes that a stored row of a later row-format version has in addition to
/// the row itself.
pub const FORMAT_MARK_BYTES: usize = 2;

/// The zero appended to a stored row that could also be parsed as a row of the first version.
const PAD: u8 = 0;

/// Adjacent bits of a null bitmap, and their new position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BitRun {
    /// The first bit; bit 0 is the lowest one of the first byte.
    pub from: u32,
    /// The new position of the first bit.
    pub to: u32,
    /// The number of bits.
    pub count: u32,
}

/// Converts rows of one row-format version to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FormatChange {
    /// The bits of the null bitmap that are copied.
    pub bits: Vec<BitRun>,
    /// For each fixed column of the target version, the source column, or `None` if the column is
    /// new.
    pub fixed: Vec<Option<u16>>,
    /// For each variable column of the target version, the source column, or `None` if the column
    /// is new.
    pub vars: Vec<Option<u16>>,
    /// A row of the target version without external values, from which new columns get their
    /// values.
    pub defaults: Vec<u8>,
}

/// A row-format version that rows of a table may have in addition to the newest one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OlderFormatVersion {
    /// The row-format version.
    pub row_format: RowFormatVersion,
    /// Converts its rows to the newest row-format version.
    pub change: FormatChange,
}

impl FormatChange {
    /// Checks that this converts rows of row-format version `from` to row-format version `to` (S3).
    pub fn check(&self, from: &RowFormatVersion, to: &RowFormatVersion) -> Parsed<()> {
        ensure(!from.is_opaque() && !to.is_opaque(), "opaque row-format version among several")?;
        let suits = self.fixed.len() == to.fixed.len() && self.vars.len() == usize::from(to.var_count);
        ensure(suits, "change of another row-format version")?;
        for (width, was) in to.fixed.iter().zip(&self.fixed) {
            let Some(was) = was else { continue };
            ensure(from.fixed.get(usize::from(*was)) == Some(width), "fixed column that gets another width")?;
        }
        ensure(
            self.vars.iter().flatten().all(|was| *was < from.var_count),
            "variable column that does not exist",
        )?;
        ensure(are_distinct(&self.fixed) && are_distinct(&self.vars), "column that is kept twice")?;
        let fits = |at: u32, count: u32, bytes: u16| u64::from(at) + u64::from(count) <= 8 * u64::from(bytes);
        let run_fits = |run: &BitRun| {
            fits(run.from, run.count, from.null_bytes) && fits(run.to, run.count, to.null_bytes)
        };
        ensure(self.bits.iter().all(run_fits), "bits outside of the null bitmap")?;
        let mut runs: Vec<&BitRun> = self.bits.iter().collect();
        runs.sort_unstable_by_key(|run| run.to);
        let ends_before = |(run, next): (&&BitRun, &&BitRun)| run.to + run.count <= next.to;
        ensure(runs.iter().zip(runs.iter().skip(1)).all(ends_before), "bits that are moved to one place")?;
        ensure(!RowView::parse(to, &self.defaults)?.has_externals(), "default value out of line")
    }

    /// Returns the same change with as few runs of bits as possible.
    pub fn joined(self) -> Self {
        Self { bits: join(self.bits), ..self }
    }

    /// Converts `row` from row-format version `from` to `to` and appends it to `out`. The change
    /// must be between these versions.
    pub fn apply(
        &self,
        from: &RowFormatVersion,
        to: &RowFormatVersion,
        row: &[u8],
        out: &mut Vec<u8>,
    ) -> Parsed<()> {
        self.apply_to(from, to, &RowView::parse(from, row)?, out)
    }

    /// Like [`apply`](Self::apply), for a row that was checked.
    pub fn apply_to(
        &self,
        from: &RowFormatVersion,
        to: &RowFormatVersion,
        old: &RowView<'_>,
        out: &mut Vec<u8>,
    ) -> Parsed<()> {
        let start = out.len();
        let null_bytes = usize::from(to.null_bytes);
        let (nulls, defaults) = self.defaults.split_at_checked(null_bytes).unwrap_or_default();
        out.extend_from_slice(nulls);
        let nulls = out.get_mut(start..).unwrap_or_default();
        self.bits.iter().for_each(|run| copy_bits(old.nulls(), nulls, run));
        self.put_fixed((from, old.fixed()), (to, defaults), out);
        ensure(
            out.len() - start == null_bytes + to.fixed_bytes()
                && self.vars.len() == usize::from(to.var_count),
            "change of another row-format version",
        )?;
        if self.vars.len() == usize::from(from.var_count) && are_in_place(&self.vars) {
            out.extend_from_slice(old.lengths());
            out.extend_from_slice(old.value_bytes());
            return Ok(());
        }
        let new = RowView::parse(to, &self.defaults)?;
        self.each_value(old, &new, |value| varint::put(out, join_length(value)))?;
        self.each_value(old, &new, |value| out.extend_from_slice(value.bytes))
    }

    /// Appends the fixed columns; columns that are adjacent in both rows are copied together.
    fn put_fixed(
        &self,
        (from, old): (&RowFormatVersion, &[u8]),
        (to, defaults): (&RowFormatVersion, &[u8]),
        out: &mut Vec<u8>,
    ) {
        let (mut old_places, mut new_places) = (Places::of(&from.fixed), Places::of(&to.fixed));
        let mut rest = &self.fixed[..];
        while let Some(first) = rest.first() {
            let no = self.fixed.len() - rest.len();
            let goes_on = |(at, was): &(usize, &Option<u16>)| match (first, was) {
                (Some(first), Some(was)) => usize::from(*was) == usize::from(*first) + at,
                (first, was) => first.is_none() && was.is_none(),
            };
            let count = rest.iter().enumerate().take_while(goes_on).count();
            let columns = match first {
                Some(first) => old.get(old_places.find(usize::from(*first), count)),
                None => defaults.get(new_places.find(no, count)),
            };
            out.extend_from_slice(columns.unwrap_or_default());
            rest = rest.get(count..).unwrap_or_default();
        }
    }

    /// Calls `each` with the variable values of the row that `old` becomes, in order.
    fn each_value<'r>(
        &self,
        old: &RowView<'r>,
        new: &RowView<'r>,
        mut each: impl FnMut(VarValue<'r>),
    ) -> Parsed<()> {
        let (mut old, mut new) = (Values::of(old), Values::of(new));
        for (no, was) in self.vars.iter().enumerate() {
            let kept = was.and_then(|was| old.find(usize::from(was)));
            let value = kept.or_else(|| new.find(no));
            each(value.ok_or(Defect::new("change of another row-format version"))?);
        }
        Ok(())
    }

    /// Combines this change, which results in version `between`, with `next`, which converts
    /// `between` to `to`.
    pub fn then(&self, next: &Self, between: &RowFormatVersion, to: &RowFormatVersion) -> Parsed<Self> {
        let through = |was: &[Option<u16>], next: &[Option<u16>]| {
            let of = |no: &Option<u16>| no.and_then(|no| was.get(usize::from(no)).copied().flatten());
            next.iter().map(of).collect::<Vec<_>>()
        };
        let mut defaults = Vec::new();
        next.apply(between, to, &self.defaults, &mut defaults)?;
        Ok(Self {
            bits: bits_through(&self.bits, &next.bits),
            fixed: through(&self.fixed, &next.fixed),
            vars: through(&self.vars, &next.vars),
            defaults,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        varint::put(out, self.bits.len() as u64);
        for run in &self.bits {
            [run.from, run.to, run.count].into_iter().for_each(|number| varint::put(out, number.into()));
        }
        for columns in [&self.fixed, &self.vars] {
            varint::put(out, columns.len() as u64);
            columns.iter().for_each(|was| varint::put(out, was.map_or(0, |was| u64::from(was) + 1)));
        }
        put_prefixed(out, &self.defaults);
    }

    fn decode(reader: &mut Reader<'_>) -> Parsed<Self> {
        let mut bits = Vec::new();
        for _ in 0..reader.length(8 * FIXED_BYTES_MAX)? {
            let mut number = || Ok(reader.length(8 * FIXED_BYTES_MAX)? as u32);
            bits.push(BitRun { from: number()?, to: number()?, count: number()? });
        }
        let (fixed, vars) = (decode_columns(reader)?, decode_columns(reader)?);
        Ok(Self { bits, fixed, vars, defaults: reader.prefixed(usize::MAX)?.to_vec() })
    }
}

impl OlderFormatVersion {
    /// Appends `[row_format][number of runs][from, to, count ..][fixed columns][column + 1, or 0
    /// ..][variable columns][column + 1, or 0 ..]`, all varints, and the length of the defaults and
    /// the defaults.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.row_format.encode(out);
        self.change.encode(out);
    }

    /// Reads what [`Self::encode`] wrote. `newest` is the row-format version that the rows are
    /// converted to.
    pub fn decode(reader: &mut Reader<'_>, newest: &RowFormatVersion) -> Parsed<Self> {
        let older =
            Self { row_format: RowFormatVersion::decode(reader)?, change: FormatChange::decode(reader)? };
        older.change.check(&older.row_format, newest)?;
        Ok(older)
    }
}

/// Returns the row-format version of a stored row (its position in `older`, or `None` for the
/// newest one), and the position of the row in the stored bytes.
pub fn format_of(
    older: &[OlderFormatVersion],
    newest: &RowFormatVersion,
    stored: &[u8],
) -> Parsed<(Option<usize>, Range<usize>)> {
    match older.first() {
        None => Ok((None, 0..stored.len())),
        Some(first) => format_among(older, first, newest, stored).map(|(known, at, _)| (known, at)),
    }
}

/// Converts a stored row to the newest row-format version. Returns the row's position in the stored
/// bytes, or `None` if it is of an older version and was appended to `out`.
pub fn put_in_newest(
    older: &[OlderFormatVersion],
    newest: &RowFormatVersion,
    stored: &[u8],
    out: &mut Vec<u8>,
) -> Parsed<Option<Range<usize>>> {
    let Some(first) = older.first() else { return Ok(Some(0..stored.len())) };
    let (known, at, row) = format_among(older, first, newest, stored)?;
    match known.and_then(|known| older.get(known)) {
        None => Ok(Some(at)),
        Some(older) => older.change.apply_to(&older.row_format, newest, &row, out).map(|()| None),
    }
}

/// Like [`format_of`], for a table with at least two row-format versions. Also returns the row.
fn format_among<'r>(
    older: &[OlderFormatVersion],
    first: &OlderFormatVersion,
    newest: &RowFormatVersion,
    stored: &'r [u8],
) -> Parsed<(Option<usize>, Range<usize>, RowView<'r>)> {
    if let Ok(row) = RowView::parse(&first.row_format, stored) {
        return Ok((Some(0), 0..stored.len(), row));
    }
    let (&number, row) = stored.split_first().ok_or(Defect::new("row without a row-format version"))?;
    let number = usize::from(number);
    let row_format = match older.get(number) {
        Some(older) if number > 0 => &older.row_format,
        None if number == older.len() => newest,
        _ => return Err(Defect::at("row of an unknown row-format version", number)),
    };
    let known = (number < older.len()).then_some(number);
    let defect = match RowView::parse(row_format, row) {
        Ok(row) => return Ok((known, 1..stored.len(), row)),
        Err(defect) => defect,
    };
    // The zero was appended only if the bytes before it parse as a row of the first row-format
    // version.
    let unpadded =
        stored.strip_suffix(&[PAD]).filter(|stored| RowView::parse(&first.row_format, stored).is_ok());
    let row = unpadded.and_then(|stored| stored.get(1..)).ok_or(defect)?;
    RowView::parse(row_format, row).map(|row| (known, 1..stored.len() - 1, row))
}

/// Appends a row of the newest row-format version in its stored form. `f` appends the row itself.
/// Returns the row's position in the appended bytes (S1).
pub fn put_marked<E>(
    older: &[OlderFormatVersion],
    out: &mut Vec<u8>,
    f: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<Range<usize>, E> {
    let start = out.len();
    let Some(first) = older.first() else {
        f(out)?;
        return Ok(0..out.len() - start);
    };
    out.push(older.len() as u8);
    f(out)?;
    let end = out.len() - start;
    if out.get(start..).is_some_and(|stored| RowView::parse(&first.row_format, stored).is_ok()) {
        out.push(PAD);
    }
    Ok(1..end)
}

/// Returns the row format of newly stored rows, including the version's number before the row. Used
/// for compression by column.
pub fn marked_format(older: &[OlderFormatVersion], newest: &RowFormatVersion) -> RowFormatVersion {
    let mark = u16::from(!older.is_empty());
    RowFormatVersion { null_bytes: newest.null_bytes.saturating_add(mark), ..newest.clone() }
}

fn decode_columns(reader: &mut Reader<'_>) -> Parsed<Vec<Option<u16>>> {
    let count = reader.length(COLUMNS_MAX)?;
    (0..count).map(|_| Ok(reader.length(COLUMNS_MAX)?.checked_sub(1).map(|no| no as u16))).collect()
}

fn are_distinct(columns: &[Option<u16>]) -> bool {
    let mut kept: Vec<u16> = columns.iter().copied().flatten().collect();
    let count = kept.len();
    kept.sort_unstable();
    kept.dedup();
    kept.len() == count
}

/// Finds the positions of fixed columns. Most requests are in order, so each search continues from
/// the previous column.
struct Places<'w> {
    widths: &'w [u16],
    no: usize,
    at: usize,
}

impl<'w> Places<'w> {
    fn of(widths: &'w [u16]) -> Self {
        Self { widths, no: 0, at: 0 }
    }

    /// The position of `count` columns starting with `no`.
    fn find(&mut self, no: usize, count: usize) -> Range<usize> {
        if no < self.no {
            (self.no, self.at) = (0, 0);
        }
        let bytes = |widths: Option<&[u16]>| {
            widths.unwrap_or_default().iter().map(|&width| usize::from(width)).sum::<usize>()
        };
        self.at += bytes(self.widths.get(self.no..no));
        self.no = no;
        self.at..self.at + bytes(self.widths.get(no..no + count))
    }
}

/// Finds the variable values of a row, as [`Places`] finds fixed columns.
struct Values<'r> {
    all: VarValues<'r>,
    rest: VarValues<'r>,
    no: usize,
}

impl<'r> Values<'r> {
    fn of(row: &RowView<'r>) -> Self {
        Self { all: row.values(), rest: row.values(), no: 0 }
    }

    fn find(&mut self, no: usize) -> Option<VarValue<'r>> {
        if no < self.no {
            (self.rest, self.no) = (self.all, 0);
        }
        let passed = no - self.no;
        self.no = no + 1;
        self.rest.nth(passed)
    }
}

/// Returns whether each column keeps its position.
fn are_in_place(columns: &[Option<u16>]) -> bool {
    columns.iter().enumerate().all(|(no, was)| was.is_some_and(|was| usize::from(was) == no))
}

/// Copies the bits of a run, byte by byte if their position does not change.
fn copy_bits(from: &[u8], to: &mut [u8], run: &BitRun) {
    if run.from != run.to {
        return (0..run.count).for_each(|no| copy_bit(from, run.from + no, to, run.to + no));
    }
    let (start, end) = (run.from as usize, (run.from + run.count) as usize);
    for (at, (from, to)) in from.iter().zip(to).enumerate().take(end.div_ceil(8)).skip(start / 8) {
        let below = |bit: usize| ((1u16 << bit.saturating_sub(8 * at).min(8)) - 1) as u8;
        let mask = below(end) & !below(start);
        *to = *to & !mask | from & mask;
    }
}

fn copy_bit(from: &[u8], at: u32, to: &mut [u8], place: u32) {
    let is_set = from.get(at as usize / 8).is_some_and(|byte| byte >> (at % 8) & 1 != 0);
    if let Some(byte) = to.get_mut(place as usize / 8) {
        *byte = *byte & !(1 << (place % 8)) | u8::from(is_set) << (place % 8);
    }
}

/// Returns the runs of bits that result from `first` and then `next`. Bits that `first` added are
/// in the defaults.
fn bits_through(first: &[BitRun], next: &[BitRun]) -> Vec<BitRun> {
    let mut runs: Vec<BitRun> = Vec::new();
    for (a, b) in next.iter().flat_map(|b| first.iter().map(move |a| (a, b))) {
        let start = a.to.max(b.from);
        let end = a.to.saturating_add(a.count).min(b.from.saturating_add(b.count));
        if start < end {
            runs.push(BitRun {
                from: a.from + (start - a.to),
                to: b.to + (start - b.from),
                count: end - start,
            });
        }
    }
    join(runs)
}

/// Sorts the runs by target position, and joins runs that are adjacent in both bitmaps.
fn join(mut bits: Vec<BitRun>) -> Vec<BitRun> {
    bits.sort_unstable_by_key(|run| run.to);
    bits.dedup_by(|next, run| {
        let goes_on = (run.from + run.count, run.to + run.count) == (next.from, next.to);
        run.count += if goes_on { next.count } else { 0 };
        goes_on
    });
    bits
}

#[cfg(test)]
mod tests {
    use super::super::row::build_row;
    use super::*;
    use cheetah_io::rng::Rng;

    /// A row format from its null bytes, the widths of its fixed columns, and its number of
    /// variable columns.
    fn row_format(null_bytes: u16, fixed: &[u16], var_count: u16) -> RowFormatVersion {
        RowFormatVersion { null_bytes, fixed: fixed.to_vec(), var_count }
    }

    fn random_row(row_format: &RowFormatVersion, rng: &mut Rng) -> Vec<u8> {
        let nulls = rng.bytes(row_format.null_bytes.into());
        let fixed = rng.bytes(row_format.fixed_bytes());
        let values: Vec<Vec<u8>> = (0..row_format.var_count)
            .map(|_| {
                let length = rng.below(5) as usize;
                rng.bytes(length)
            })
            .collect();
        let values: Vec<_> = values.iter().map(|value| VarValue::inline(value)).collect();
        let mut row = Vec::new();
        build_row(&nulls, &fixed, &values, &mut row);
        row
    }

    fn random_format(rng: &mut Rng) -> RowFormatVersion {
        let count = rng.below(3) as usize;
        let fixed: Vec<u16> = (0..count).map(|_| 1 + rng.below(2) as u16).collect();
        row_format(1 + rng.below(2) as u16, &fixed, rng.below(3) as u16)
    }

    /// A random change that keeps columns where possible.
    fn random_change(from: &RowFormatVersion, to: &RowFormatVersion, rng: &mut Rng) -> FormatChange {
        let mut left: Vec<u16> = (0..from.fixed.len() as u16).collect();
        let mut fixed = Vec::new();
        for width in &to.fixed {
            let at = left.iter().position(|&no| from.fixed[usize::from(no)] == *width);
            fixed.push(at.filter(|_| rng.chance(0.7)).map(|at| left.remove(at)));
        }
        let vars =
            (0..to.var_count).map(|no| (no < from.var_count && rng.chance(0.7)).then_some(no)).collect();
        let (chosen, place) = (rng.below(256), rng.below(8) as u32);
        let run = |to: u32| BitRun { from: (place + 3 * to) % 8, to, count: 1 };
        let bits = (0..8).filter(|to| chosen >> to & 1 == 1).map(run).collect();
        let change = FormatChange { bits, fixed, vars, defaults: random_row(to, rng) };
        change.check(from, to).unwrap();
        change
    }

    fn applied(change: &FormatChange, from: &RowFormatVersion, to: &RowFormatVersion, row: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        change.apply(from, to, row, &mut out).unwrap();
        assert!(RowView::parse(to, &out).is_ok());
        out
    }

    #[test]
    fn bits_are_copied_byte_by_byte_as_one_by_one() {
        let (from, to) = ([0b1011_0110, 0b0101_1001, 0b1110_0011], [0b0110_1100, 0b1001_0111, 0]);
        for start in 0..24 {
            for count in 1..=24 - start {
                let run = BitRun { from: start, to: start, count };
                let (mut at_once, mut one_by_one) = (to, to);
                copy_bits(&from, &mut at_once, &run);
                (start..start + count).for_each(|at| copy_bit(&from, at, &mut one_by_one, at));
                assert_eq!(at_once, one_by_one, "{run:?}");
            }
        }
    }

    #[test]
    fn columns_go_where_they_belong_and_new_ones_have_their_defaults() {
        let (from, to) = (row_format(1, &[2, 4], 2), row_format(2, &[4, 1, 2], 2));
        let mut row = Vec::new();
        build_row(&[0b101], b"aabbbb", &[VarValue::inline(b"one"), VarValue::inline(b"two")], &mut row);
        let mut defaults = Vec::new();
        build_row(
            &[0b1000, 0x80],
            b"____D__",
            &[VarValue::inline(b"new"), VarValue::inline(b"")],
            &mut defaults,
        );
        let change = FormatChange {
            bits: vec![BitRun { from: 1, to: 7, count: 2 }],
            fixed: vec![Some(1), None, Some(0)],
            vars: vec![None, Some(1)],
            defaults,
        };
        change.check(&from, &to).unwrap();
        let mut expected = Vec::new();
        // Bit 1 of the old row is 0 and becomes bit 7. Bit 2 is 1 and becomes bit 8.
        build_row(
            &[0b1000, 0x81],
            b"bbbbDaa",
            &[VarValue::inline(b"new"), VarValue::inline(b"two")],
            &mut expected,
        );
        assert_eq!(applied(&change, &from, &to, &row), expected);
    }

    #[test]
    fn external_values_go_along() {
        let (from, to) = (row_format(1, &[], 2), row_format(1, &[], 1));
        let locator =
            super::super::row::Locator { value_bytes: 9, first_page: crate::base::PageId(3) }.encode();
        let (mut row, mut defaults, mut expected) = (Vec::new(), Vec::new(), Vec::new());
        build_row(&[1], b"", &[VarValue::inline(b"goes"), VarValue::external(&locator)], &mut row);
        build_row(&[0], b"", &[VarValue::inline(b"")], &mut defaults);
        build_row(&[0], b"", &[VarValue::external(&locator)], &mut expected);
        let change = FormatChange { bits: vec![], fixed: vec![], vars: vec![Some(1)], defaults };
        assert_eq!(applied(&change, &from, &to, &row), expected);
    }

    #[test]
    fn two_changes_in_one_do_what_they_do_one_after_the_other() {
        let mut rng = Rng::new(7);
        for _ in 0..3000 {
            let (a, b, c) = (random_format(&mut rng), random_format(&mut rng), random_format(&mut rng));
            let (first, next) = (random_change(&a, &b, &mut rng), random_change(&b, &c, &mut rng));
            let both = first.then(&next, &b, &c).unwrap();
            both.check(&a, &c).unwrap();
            let row = random_row(&a, &mut rng);
            let one = applied(&first, &a, &b, &row);
            assert_eq!(applied(&both, &a, &c, &row), applied(&next, &b, &c, &one));
        }
    }

    #[test]
    fn bits_that_go_on_are_one_run() {
        let run = |from, to, count| BitRun { from, to, count };
        let one_by_one =
            [run(4, 9, 1), run(3, 8, 1), run(0, 0, 1), run(1, 1, 1), run(2, 3, 1), run(5, 10, 2)];
        let joined = [run(0, 0, 2), run(2, 3, 1), run(3, 8, 4)];
        assert_eq!(join(one_by_one.to_vec()), joined);
        assert_eq!(join(Vec::new()), []);
        let mut rng = Rng::new(5);
        for _ in 0..2000 {
            let (from, to) = (random_format(&mut rng), random_format(&mut rng));
            let change = random_change(&from, &to, &mut rng);
            let joined = change.clone().joined();
            joined.check(&from, &to).unwrap();
            let row = random_row(&from, &mut rng);
            assert_eq!(applied(&joined, &from, &to, &row), applied(&change, &from, &to, &row));
        }
    }

    /// S1, for row-format versions so small that rows of one are often rows of another.
    #[test]
    fn every_row_is_known_by_its_bytes() {
        let mut rng = Rng::new(3);
        let mut padded = 0;
        for _ in 0..20_000 {
            let row_formats: Vec<RowFormatVersion> =
                (0..1 + rng.below(4)).map(|_| random_format(&mut rng)).collect();
            let newest = random_format(&mut rng);
            let older: Vec<OlderFormatVersion> = row_formats
                .iter()
                .map(|row_format| OlderFormatVersion {
                    row_format: row_format.clone(),
                    change: random_change(row_format, &newest, &mut rng),
                })
                .collect();
            let first = random_row(&row_formats[0], &mut rng);
            assert_eq!(format_of(&older, &newest, &first), Ok((Some(0), 0..first.len())));
            for number in 1..=older.len() {
                let row_format = row_formats.get(number).unwrap_or(&newest);
                let row = random_row(row_format, &mut rng);
                let mut stored = Vec::new();
                let put = |out: &mut Vec<u8>| {
                    out.extend_from_slice(&row);
                    Ok::<(), Defect>(())
                };
                let at = put_marked(&older[..number], &mut stored, put).unwrap();
                assert_eq!(stored[at.clone()], row);
                assert!(stored.len() <= row.len() + FORMAT_MARK_BYTES);
                padded += usize::from(stored.len() == row.len() + FORMAT_MARK_BYTES);
                let known = (number < older.len()).then_some(number);
                assert_eq!(format_of(&older, &newest, &stored), Ok((known, at)));
                stored.push(PAD);
                let is_first = RowView::parse(&row_formats[0], &stored).is_ok();
                assert_eq!(format_of(&older, &newest, &stored).is_ok(), is_first, "a zero without a reason");
            }
        }
        assert!(padded > 100, "{padded}");
    }

    #[test]
    fn without_older_formats_rows_are_stored_as_they_are() {
        let newest = row_format(1, &[2], 1);
        let mut stored = Vec::new();
        put_marked(&[], &mut stored, |out| {
            out.extend_from_slice(b"row");
            Ok::<(), Defect>(())
        })
        .unwrap();
        assert_eq!(stored, b"row");
        assert_eq!(format_of(&[], &newest, b"row"), Ok((None, 0..3)));
        assert_eq!(marked_format(&[], &newest), newest);
    }

    #[test]
    fn changes_that_do_not_suit_are_refused() {
        let (from, to) = (row_format(1, &[2, 2, 4], 2), row_format(1, &[2, 2], 2));
        let mut defaults = Vec::new();
        build_row(&[0], &[0; 4], &[VarValue::inline(b""); 2], &mut defaults);
        let good =
            FormatChange { bits: vec![], fixed: vec![Some(1), None], vars: vec![Some(0), Some(1)], defaults };
        assert_eq!(good.check(&from, &to), Ok(()));
        let refused = |change: fn(&mut FormatChange)| {
            let mut other = good.clone();
            change(&mut other);
            assert!(other.check(&from, &to).is_err());
        };
        refused(|change| change.fixed[0] = Some(2));
        refused(|change| change.fixed[0] = Some(3));
        refused(|change| change.fixed[1] = Some(1));
        refused(|change| change.vars[0] = Some(2));
        refused(|change| change.vars[0] = Some(1));
        refused(|change| change.bits.push(BitRun { from: 1, to: 7, count: 2 }));
        refused(|change| {
            change.bits.extend([BitRun { from: 1, to: 2, count: 2 }, BitRun { from: 4, to: 3, count: 1 }])
        });
        refused(|change| change.fixed.truncate(1));
        refused(|change| change.vars.truncate(1));
        refused(|change| change.defaults.truncate(1));
        assert!(good.check(&RowFormatVersion::opaque(), &to).is_err());
    }

    #[test]
    fn any_bytes_are_an_older_format_or_a_defect() {
        let mut rng = Rng::new(11);
        for _ in 0..5000 {
            let (from, to) = (random_format(&mut rng), random_format(&mut rng));
            let older = OlderFormatVersion { change: random_change(&from, &to, &mut rng), row_format: from };
            let mut bytes = Vec::new();
            older.encode(&mut bytes);
            assert_eq!(OlderFormatVersion::decode(&mut Reader::new(&bytes), &to), Ok(older));
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << rng.below(8);
            if let Ok(other) = OlderFormatVersion::decode(&mut Reader::new(&bytes), &to) {
                let row = random_row(&other.row_format, &mut rng);
                applied(&other.change, &other.row_format, &to, &row);
                let length = rng.below(12) as usize;
                let _ = format_of(&[other], &to, &rng.bytes(length));
            }
        }
    }
}

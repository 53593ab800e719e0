//! The way back: from the content of an image to a page. Total on any bytes; the caller verifies
//! the page.
//!
//! First all columns are located in the content and the length of each record becomes known; then
//! the records are laid out, the first one highest, as if inserted in order; then each column is
//! spread over the records.

use super::columns::{scatter_planes, DELTA_MAX, KEY_PLANES_MAX, PLANES_MAX};
use super::transpose::*;
use crate::base::{PageId, TreeId};
use crate::format::bytes::{ensure, Defect, Reader};
use crate::format::page::{
    build_content, build_page, Outline, PageKind, RecordFlags, HEADER_BYTES, PAGE_BYTES_MAX, SLOT_BYTES,
    VERSION_BYTES,
};
use crate::format::row::{split_length, RowFormatVersion, LOCATOR_BYTES};
use crate::format::varint;

type Parsed<T> = Result<T, Defect>;

/// Builds a blob or undo page from its content.
pub(super) fn content_page(raw: &[u8], kind: PageKind, tree: TreeId, page: &mut [u8]) -> Parsed<()> {
    let mut reader = Reader::new(raw);
    let flags = reader.u8()?;
    ensure(flags & !FLAG_DEAD == 0, "unknown page flags")?;
    let (next, position) = (PageId(reader.varint()?), reader.varint()?);
    let mut target = build_content(page, kind, tree, next, position);
    let appended = target.append_content(reader.rest());
    appended.map_err(|_| Defect::new("content longer than its page"))?;
    if flags & FLAG_DEAD != 0 {
        target.set_dead();
    }
    Ok(())
}

/// Builds a leaf or inner page from its content.
pub(super) fn tree_page(raw: &[u8], kind: PageKind, tree: TreeId, page: &mut [u8]) -> Parsed<()> {
    let mut reader = Reader::new(raw);
    let (level, flags) = (reader.u8()?, reader.u8()?);
    ensure(flags & !(FLAG_DEAD | FLAG_HAS_HIGH) == 0, "unknown page flags")?;
    let right = PageId(reader.varint()?);
    let count = reader.length(page.len() / SLOT_BYTES)?;
    let low = reader.prefixed(page.len())?;
    let high = if flags & FLAG_HAS_HIGH != 0 { Some(reader.prefixed(page.len())?) } else { None };
    let fences_fit = low.len() + high.map_or(0, <[u8]>::len) <= page.len() - HEADER_BYTES;
    ensure(fences_fit, "fences longer than their page")?;
    ensure(high.is_none_or(|high| low < high), "low fence not below the high one")?;

    let keys = Keys::parse(&mut reader, count)?;
    let flag_bytes = parse_flags(&mut reader, count)?;
    let versions = Versions::parse(&mut reader, count)?;
    let payloads = Payloads::parse(&mut reader, count)?;
    reader.finish()?;
    let mut outlines = Vec::with_capacity(count);
    for i in 0..count {
        outlines.push(Outline {
            flags: flags_of(flag_bytes, i)?,
            versioned: false,
            suffix_bytes: keys.length(i),
            payload_bytes: payloads.length(i),
        });
    }
    versions.rows.iter().for_each(|&i| outlines[i].versioned = true);

    let mut target = build_page(page, kind, level, tree, low, high, right);
    if flags & FLAG_DEAD != 0 {
        target.set_dead();
    }
    let places = target.lay_out(&outlines).map_err(|_| Defect::new("records longer than their page"))?;
    let bytes = target.bytes_mut();
    keys.spread(&places.suffixes, bytes);
    scatter_planes(versions.planes, VERSION_BYTES, &places.versions, 0, bytes);
    payloads.spread(&places.payloads, bytes);
    target.set_heads(&outlines, &places);
    Ok(())
}

/// One byte each, or none when all are ordinary.
fn parse_flags<'a>(reader: &mut Reader<'a>, count: usize) -> Parsed<&'a [u8]> {
    match reader.u8()? {
        0 => Ok(&[]),
        1 => reader.take(count),
        _ => Err(Defect::new("unknown form of record flags")),
    }
}

fn flags_of(bytes: &[u8], i: usize) -> Parsed<RecordFlags> {
    let bits = bytes.get(i).copied().unwrap_or(0);
    RecordFlags::from_bits(bits).ok_or(Defect::at("unknown flags of record", i))
}

/// `count` lengths, and their sum.
fn parse_lengths(reader: &mut Reader<'_>, count: usize) -> Parsed<(Vec<u32>, usize)> {
    let mut lengths = Vec::with_capacity(count);
    let mut total = 0;
    for _ in 0..count {
        let length = reader.length(PAGE_BYTES_MAX)?;
        total += length;
        lengths.push(length as u32);
    }
    Ok((lengths, total))
}

/// The records that have a version, ascending, and the planes of those.
struct Versions<'a> {
    rows: Vec<usize>,
    planes: &'a [u8],
}

impl<'a> Versions<'a> {
    fn parse(reader: &mut Reader<'a>, count: usize) -> Parsed<Self> {
        let versions = reader.length(count)?;
        let mut rows = Vec::with_capacity(versions);
        let mut next = 0;
        for _ in 0..versions {
            let row = next + reader.length(count)?;
            ensure(row < count, "version of a record that is not there")?;
            rows.push(row);
            next = row + 1;
        }
        Ok(Self { rows, planes: reader.take(versions * VERSION_BYTES)? })
    }
}

/// Where the suffixes are in the content.
enum Keys<'a> {
    Varying { lengths: Vec<u32>, bytes: &'a [u8] },
    Together { width: usize, bytes: &'a [u8] },
    Planes { width: usize, delta_width: usize, deltas: &'a [u8], planes: &'a [u8] },
}

impl<'a> Keys<'a> {
    fn parse(reader: &mut Reader<'a>, count: usize) -> Parsed<Self> {
        let mode = reader.u8()?;
        if mode == KEYS_VARYING {
            let (lengths, total) = parse_lengths(reader, count)?;
            return Ok(Keys::Varying { lengths, bytes: reader.take(total)? });
        }
        let width = reader.length(PAGE_BYTES_MAX)?;
        if mode == KEYS_TOGETHER {
            return Ok(Keys::Together { width, bytes: reader.take(width * count)? });
        }
        ensure(mode == KEYS_PLANES && width <= KEY_PLANES_MAX, "unknown form of keys")?;
        let delta_width = usize::from(reader.u8()?);
        ensure(delta_width <= width.min(DELTA_MAX), "impossible width of differences")?;
        let deltas = reader.take(delta_width * count)?;
        let planes = reader.take((width - delta_width) * count)?;
        Ok(Keys::Planes { width, delta_width, deltas, planes })
    }

    fn length(&self, i: usize) -> usize {
        match self {
            Keys::Varying { lengths, .. } => lengths.get(i).map_or(0, |&length| length as usize),
            Keys::Together { width, .. } | Keys::Planes { width, .. } => *width,
        }
    }

    fn spread(&self, starts: &[u32], page: &mut [u8]) {
        match self {
            Keys::Varying { lengths, bytes } => spread_varying(bytes, lengths, starts, page),
            Keys::Together { width, bytes } => spread_together(bytes, *width, starts, 0, page),
            Keys::Planes { width, delta_width, deltas, planes } => {
                spread_deltas(deltas, *delta_width, starts, page);
                scatter_planes(planes, width - delta_width, starts, *delta_width, page);
            }
        }
    }
}

/// Where the payloads are in the content.
enum Payloads<'a> {
    Varying { lengths: Vec<u32>, bytes: &'a [u8] },
    Together { width: usize, bytes: &'a [u8] },
    Planes { width: usize, planes: &'a [u8] },
    Rows(Rows<'a>),
}

impl<'a> Payloads<'a> {
    fn parse(reader: &mut Reader<'a>, count: usize) -> Parsed<Self> {
        match reader.u8()? {
            PAYLOADS_VARYING => {
                let (lengths, total) = parse_lengths(reader, count)?;
                Ok(Payloads::Varying { lengths, bytes: reader.take(total)? })
            }
            PAYLOADS_TOGETHER => {
                let width = reader.length(PAGE_BYTES_MAX)?;
                Ok(Payloads::Together { width, bytes: reader.take(width * count)? })
            }
            PAYLOADS_PLANES => {
                let width = reader.length(PLANES_MAX)?;
                Ok(Payloads::Planes { width, planes: reader.take(width * count)? })
            }
            PAYLOADS_ROWS => Ok(Payloads::Rows(Rows::parse(reader, count)?)),
            _ => Err(Defect::new("unknown form of payloads")),
        }
    }

    fn length(&self, i: usize) -> usize {
        match self {
            Payloads::Varying { lengths, .. } => lengths.get(i).map_or(0, |&length| length as usize),
            Payloads::Together { width, .. } | Payloads::Planes { width, .. } => *width,
            Payloads::Rows(rows) => rows.lengths.get(i).copied().unwrap_or(0),
        }
    }

    fn spread(&self, starts: &[u32], page: &mut [u8]) {
        match self {
            Payloads::Varying { lengths, bytes } => spread_varying(bytes, lengths, starts, page),
            Payloads::Together { width, bytes } => spread_together(bytes, *width, starts, 0, page),
            Payloads::Planes { width, planes } => scatter_planes(planes, *width, starts, 0, page),
            Payloads::Rows(rows) => rows.spread(starts, page),
        }
    }
}

/// Rows of one row-format version, column by column.
struct Rows<'a> {
    row_format: RowFormatVersion,
    nulls: &'a [u8],
    fixed: &'a [u8],
    /// Encoded lengths of all values, column by column.
    value_lengths: Vec<u32>,
    values: &'a [u8],
    /// Bytes of each row.
    lengths: Vec<usize>,
}

impl<'a> Rows<'a> {
    fn parse(reader: &mut Reader<'a>, count: usize) -> Parsed<Self> {
        let row_format = RowFormatVersion::decode(reader)?;
        let nulls = reader.take(usize::from(row_format.null_bytes) * count)?;
        let fixed = reader.take(row_format.fixed_bytes() * count)?;
        let values_count = count * usize::from(row_format.var_count);
        ensure(values_count <= reader.rest().len(), "fewer lengths than values")?;
        let mut value_lengths = Vec::with_capacity(values_count);
        let mut lengths = vec![usize::from(row_format.null_bytes) + row_format.fixed_bytes(); count];
        let mut total = 0;
        for _ in 0..row_format.var_count {
            for length in &mut lengths {
                let encoded = reader.length(2 * PAGE_BYTES_MAX)? as u64;
                let (bytes, external) = split_length(encoded);
                let plausible = !external || bytes == LOCATOR_BYTES as u64;
                ensure(plausible, "locator of the wrong length")?;
                *length += varint::len(encoded) + bytes as usize;
                total += bytes as usize;
                value_lengths.push(encoded as u32);
            }
        }
        Ok(Self { row_format, nulls, fixed, value_lengths, values: reader.take(total)?, lengths })
    }

    fn spread(&self, starts: &[u32], page: &mut [u8]) {
        let nulls_width = usize::from(self.row_format.null_bytes);
        scatter_planes(self.nulls, nulls_width, starts, 0, page);
        let mut rest = self.fixed;
        let mut at = nulls_width;
        for &width in &self.row_format.fixed {
            let width = usize::from(width);
            let (column, after) = rest.split_at(width * starts.len());
            if width <= PLANES_MAX {
                scatter_planes(column, width, starts, at, page);
            } else {
                spread_together(column, width, starts, at, page);
            }
            rest = after;
            at += width;
        }
        self.spread_values(starts, at, page);
    }

    fn spread_values(&self, starts: &[u32], at: usize, page: &mut [u8]) {
        if starts.is_empty() {
            return;
        }
        let mut ends: Vec<usize> = starts.iter().map(|&start| start as usize + at).collect();
        for column in self.value_lengths.chunks_exact(starts.len()) {
            for (end, &encoded) in ends.iter_mut().zip(column) {
                *end += varint::write(&mut page[*end..], encoded.into());
            }
        }
        let mut rest = self.values;
        for column in self.value_lengths.chunks_exact(starts.len()) {
            for (end, &encoded) in ends.iter_mut().zip(column) {
                let (value, after) = rest.split_at(encoded as usize >> 1);
                page[*end..*end + value.len()].copy_from_slice(value);
                *end += value.len();
                rest = after;
            }
        }
    }
}

/// Copies pieces of `bytes`, one after the other, to `starts`.
fn spread_varying(bytes: &[u8], lengths: &[u32], starts: &[u32], page: &mut [u8]) {
    let mut rest = bytes;
    for (&length, &start) in lengths.iter().zip(starts) {
        let (piece, after) = rest.split_at(length as usize);
        page[start as usize..start as usize + piece.len()].copy_from_slice(piece);
        rest = after;
    }
}

/// Copies pieces of `width` bytes, one after the other, to `starts` + `add`.
fn spread_together(bytes: &[u8], width: usize, starts: &[u32], add: usize, page: &mut [u8]) {
    for (piece, &start) in bytes.chunks_exact(width.max(1)).zip(starts) {
        let at = start as usize + add;
        page[at..at + width].copy_from_slice(piece);
    }
}

/// Sums up differences, which are in byte planes, to big-endian numbers of `width` bytes, at most
/// 8.
fn spread_deltas(planes: &[u8], width: usize, starts: &[u32], page: &mut [u8]) {
    match width {
        1 => spread_deltas_of::<1>(planes, starts, page),
        2 => spread_deltas_of::<2>(planes, starts, page),
        3 => spread_deltas_of::<3>(planes, starts, page),
        4 => spread_deltas_of::<4>(planes, starts, page),
        5 => spread_deltas_of::<5>(planes, starts, page),
        6 => spread_deltas_of::<6>(planes, starts, page),
        7 => spread_deltas_of::<7>(planes, starts, page),
        8 => spread_deltas_of::<8>(planes, starts, page),
        _ => {}
    }
}

fn spread_deltas_of<const W: usize>(planes: &[u8], starts: &[u32], page: &mut [u8]) {
    let count = starts.len();
    let planes: [&[u8]; W] = std::array::from_fn(|b| &planes[b * count..(b + 1) * count]);
    let mut sum = 0u64;
    for (i, &start) in starts.iter().enumerate() {
        let difference = planes.iter().fold(0, |value, plane| value << 8 | u64::from(plane[i]));
        sum = sum.wrapping_add(difference);
        let at = start as usize;
        page[at..at + W].copy_from_slice(&sum.to_be_bytes()[8 - W..]);
    }
}

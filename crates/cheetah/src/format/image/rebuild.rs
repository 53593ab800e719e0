//! Rebuilds a page from the content of an image. Works on any bytes. The caller verifies the page.
//!
//! First all columns are located in the content ([`TreeContent`]), which gives the length of each
//! record. Then each record gets its space in the page: the first record is at the highest
//! position. Finally the bytes of each column are copied to the records.

use super::columns::{scatter_planes, PLANES_MAX};
use super::transpose::FLAG_DEAD;
use super::tree_content::{Keys, Parsed, Payloads, Rows, TreeContent};
use crate::base::{PageId, TreeId};
use crate::format::bytes::{ensure, Defect, Reader};
use crate::format::page::{build_content, build_page, Outline, PageKind, VERSION_BYTES};
use crate::format::varint;

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

pub(super) fn tree_page(raw: &[u8], kind: PageKind, tree: TreeId, page: &mut [u8]) -> Parsed<()> {
    let content = TreeContent::parse(raw, page.len())?;
    let TreeContent { level, is_dead, right, low, high, keys, versions, payloads, .. } = &content;
    let mut outlines = Vec::with_capacity(content.count);
    for i in 0..content.count {
        outlines.push(Outline {
            flags: content.flags(i)?,
            versioned: false,
            suffix_bytes: keys.length(i),
            payload_bytes: payloads.length(i),
        });
    }
    versions.rows.iter().for_each(|&i| outlines[i].versioned = true);

    let mut target = build_page(page, kind, *level, tree, low, *high, *right);
    if *is_dead {
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

impl Keys<'_> {
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

impl Payloads<'_> {
    fn spread(&self, starts: &[u32], page: &mut [u8]) {
        match self {
            Payloads::Varying { lengths, bytes } => spread_varying(bytes, lengths, starts, page),
            Payloads::Together { width, bytes } => spread_together(bytes, *width, starts, 0, page),
            Payloads::Planes { width, planes } => scatter_planes(planes, *width, starts, 0, page),
            Payloads::Rows(rows) => rows.spread(starts, page),
        }
    }
}

impl Rows<'_> {
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

/// Copies consecutive pieces of `bytes` to `starts`.
fn spread_varying(bytes: &[u8], lengths: &[u32], starts: &[u32], page: &mut [u8]) {
    let mut rest = bytes;
    for (&length, &start) in lengths.iter().zip(starts) {
        let (piece, after) = rest.split_at(length as usize);
        page[start as usize..start as usize + piece.len()].copy_from_slice(piece);
        rest = after;
    }
}

/// Copies consecutive pieces of `width` bytes to `starts` + `add`.
fn spread_together(bytes: &[u8], width: usize, starts: &[u32], add: usize, page: &mut [u8]) {
    for (piece, &start) in bytes.chunks_exact(width.max(1)).zip(starts) {
        let at = start as usize + add;
        page[at..at + width].copy_from_slice(piece);
    }
}

/// Sums up differences, which are stored as byte planes, and writes the sums to `starts` as
/// big-endian numbers of `width` bytes. `width` is at most 8.
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

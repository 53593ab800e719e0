//! Finds the position of each column in the content of an image of a leaf or inner page. Works on
//! any bytes, and copies nothing.

use super::columns::{DELTA_MAX, KEY_PLANES_MAX, PLANES_MAX};
use super::transpose::*;
use crate::base::PageId;
use crate::format::bytes::{ensure, Defect, Reader};
use crate::format::page::{RecordFlags, HEADER_BYTES, PAGE_BYTES_MAX, SLOT_BYTES, VERSION_BYTES};
use crate::format::row::{split_length, RowFormatVersion, LOCATOR_BYTES};
use crate::format::varint;

pub(super) type Parsed<T> = Result<T, Defect>;

pub(super) struct TreeContent<'a> {
    pub(super) level: u8,
    pub(super) is_dead: bool,
    pub(super) right: PageId,
    pub(super) count: usize,
    pub(super) low: &'a [u8],
    pub(super) high: Option<&'a [u8]>,
    pub(super) keys: Keys<'a>,
    flag_bytes: &'a [u8],
    pub(super) versions: Versions<'a>,
    pub(super) payloads: Payloads<'a>,
}

impl<'a> TreeContent<'a> {
    /// Finds all columns in the content of a page of `page_bytes`.
    pub(super) fn parse(raw: &'a [u8], page_bytes: usize) -> Parsed<Self> {
        let mut reader = Reader::new(raw);
        let (level, flags) = (reader.u8()?, reader.u8()?);
        ensure(flags & !(FLAG_DEAD | FLAG_HAS_HIGH) == 0, "unknown page flags")?;
        let right = PageId(reader.varint()?);
        let count = reader.length(page_bytes / SLOT_BYTES)?;
        let low = reader.prefixed(page_bytes)?;
        let high = if flags & FLAG_HAS_HIGH != 0 { Some(reader.prefixed(page_bytes)?) } else { None };
        let fences_fit = low.len() + high.map_or(0, <[u8]>::len) <= page_bytes - HEADER_BYTES;
        ensure(fences_fit, "fences longer than their page")?;
        ensure(high.is_none_or(|high| low < high), "low fence not below the high one")?;
        let keys = Keys::parse(&mut reader, count)?;
        let flag_bytes = parse_flags(&mut reader, count)?;
        let versions = Versions::parse(&mut reader, count)?;
        let payloads = Payloads::parse(&mut reader, count)?;
        reader.finish()?;
        let is_dead = flags & FLAG_DEAD != 0;
        Ok(Self { level, is_dead, right, count, low, high, keys, flag_bytes, versions, payloads })
    }

    pub(super) fn flags(&self, i: usize) -> Parsed<RecordFlags> {
        let bits = self.flag_bytes.get(i).copied().unwrap_or(0);
        RecordFlags::from_bits(bits).ok_or(Defect::at("unknown flags of record", i))
    }
}

/// Reads the flags of the records: one byte for each record, or none if no record has flags.
fn parse_flags<'a>(reader: &mut Reader<'a>, count: usize) -> Parsed<&'a [u8]> {
    match reader.u8()? {
        0 => Ok(&[]),
        1 => reader.take(count),
        _ => Err(Defect::new("unknown form of record flags")),
    }
}

/// Reads `count` lengths. Also returns their sum.
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

/// The records that have a version, in ascending order, and the byte planes of the versions.
pub(super) struct Versions<'a> {
    pub(super) rows: Vec<usize>,
    pub(super) planes: &'a [u8],
}

impl<'a> Versions<'a> {
    fn parse(reader: &mut Reader<'a>, count: usize) -> Parsed<Self> {
        let versions = reader.length(count)?;
        let mut rows = Vec::with_capacity(versions);
        let mut next = 0;
        for _ in 0..versions {
            let row = next + reader.length(count)?;
            ensure(row < count, "version of a record that does not exist")?;
            rows.push(row);
            next = row + 1;
        }
        Ok(Self { rows, planes: reader.take(versions * VERSION_BYTES)? })
    }
}

/// The positions of the suffixes in the content.
pub(super) enum Keys<'a> {
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

    pub(super) fn length(&self, i: usize) -> usize {
        match self {
            Keys::Varying { lengths, .. } => lengths.get(i).map_or(0, |&length| length as usize),
            Keys::Together { width, .. } | Keys::Planes { width, .. } => *width,
        }
    }
}

pub(super) enum Payloads<'a> {
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

    pub(super) fn length(&self, i: usize) -> usize {
        match self {
            Payloads::Varying { lengths, .. } => lengths.get(i).map_or(0, |&length| length as usize),
            Payloads::Together { width, .. } | Payloads::Planes { width, .. } => *width,
            Payloads::Rows(rows) => rows.lengths.get(i).copied().unwrap_or(0),
        }
    }
}

/// Rows of one row-format version, column by column.
pub(super) struct Rows<'a> {
    pub(super) row_format: RowFormatVersion,
    pub(super) nulls: &'a [u8],
    pub(super) fixed: &'a [u8],
    /// Encoded lengths of all values, column by column.
    pub(super) value_lengths: Vec<u32>,
    pub(super) values: &'a [u8],
    pub(super) lengths: Vec<usize>,
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
}

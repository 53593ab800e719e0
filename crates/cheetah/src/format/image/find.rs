//! Finds one record in the image of a leaf, without building the page. Works on any bytes.
//!
//! The search does not verify that keys ascend and are within the fences. The checksum of the image
//! shows that the keys are as they were encoded.

use super::decode::Means;
use super::header::ImageHeader;
use super::tree_content::{Keys, Parsed, Payloads, Rows, TreeContent};
use super::workspace::Workspace;
use crate::base::{self, TreeId, TxnId, UndoPtr};
use crate::format::bytes::{Defect, Reader};
use crate::format::page::{common_prefix, RecordCopy, VERSION_BYTES};
use crate::format::varint;
use crate::format::ImageRef;
use std::cmp::Ordering;

/// A leaf in the form in which its image stores it.
pub struct LeafImage<'a> {
    content: TreeContent<'a>,
    tree: TreeId,
    /// The length of the common prefix of the fences, which the stored keys omit.
    prefix_bytes: usize,
    /// The beginnings of the keys, if they are stored as differences.
    sums: Vec<u64>,
    /// The position of each key, if the lengths of keys vary.
    starts: Vec<u32>,
}

impl Workspace {
    /// Decompresses an image that [`check`](super::check) accepted, and runs `f` on the leaf.
    /// `header` is the header that `check` returned. Returns `None` if the image is not of a leaf.
    pub fn look_into<R>(
        &mut self,
        header: &ImageHeader,
        image: &[u8],
        expected: &ImageRef,
        means: Means<'_>,
        f: impl FnOnce(&LeafImage<'_>) -> Result<Option<R>, Defect>,
    ) -> base::Result<Option<R>> {
        let look = || {
            let raw = self.decompress(header, image, means)?;
            match LeafImage::parse(raw, header)? {
                Some(leaf) => f(&leaf),
                None => Ok(None),
            }
        };
        look().map_err(|defect| defect.in_place(expected.to_string()))
    }
}

impl<'a> LeafImage<'a> {
    fn parse(raw: &'a [u8], header: &ImageHeader) -> Parsed<Option<Self>> {
        if !header.kind.is_tree() {
            return Ok(None);
        }
        let content = TreeContent::parse(raw, header.page_bytes)?;
        if content.level > 0 {
            return Ok(None);
        }
        let prefix_bytes = content.high.map_or(0, |high| common_prefix(content.low, high));
        let (sums, starts) = (content.keys.sums(content.count), content.keys.starts());
        Ok(Some(Self { content, tree: header.tree, prefix_bytes, sums, starts }))
    }

    /// The tree that owns it.
    pub fn tree(&self) -> TreeId {
        self.tree
    }

    /// Returns whether it was merged into its neighbour.
    pub fn is_dead(&self) -> bool {
        self.content.is_dead
    }

    /// Its low fence.
    pub fn low(&self) -> &'a [u8] {
        self.content.low
    }

    /// Its high fence, or `None` for the rightmost leaf.
    pub fn high(&self) -> Option<&'a [u8]> {
        self.content.high
    }

    /// The number of records.
    pub fn count(&self) -> usize {
        self.content.count
    }

    /// Runs `f` on the key of each record.
    pub fn each_key(&self, mut f: impl FnMut(&[u8])) {
        let prefix = self.low().get(..self.prefix_bytes).unwrap_or_default();
        let mut key = Vec::new();
        for i in 0..self.content.count {
            key.clear();
            key.extend_from_slice(prefix);
            match &self.content.keys {
                Keys::Varying { lengths, bytes } => key.extend_from_slice(self.varying(i, lengths, bytes)),
                Keys::Together { width, bytes } => {
                    key.extend_from_slice(bytes.get(i * width..(i + 1) * width).unwrap_or_default());
                }
                Keys::Planes { delta_width, planes, .. } => {
                    let sum = self.sums.get(i).map_or([0; 8], |sum| sum.to_be_bytes());
                    key.extend_from_slice(sum.get(8 - delta_width..).unwrap_or_default());
                    key.extend(plane_bytes(planes, self.content.count, i));
                }
            }
            f(&key);
        }
    }

    fn varying<'b>(&self, i: usize, lengths: &[u32], bytes: &'b [u8]) -> &'b [u8] {
        let start = self.starts.get(i).map_or(0, |&start| start as usize);
        let end = start + lengths.get(i).map_or(0, |&length| length as usize);
        bytes.get(start..end).unwrap_or_default()
    }

    /// The record of `key`, if it exists.
    pub fn find(&self, key: &[u8]) -> Result<Option<RecordCopy>, Defect> {
        let Some(i) = self.search(key) else { return Ok(None) };
        let (flags, version) = (self.content.flags(i)?, self.version(i)?);
        let mut payload = Vec::with_capacity(self.content.payloads.length(i));
        self.content.payloads.gather(i, self.content.count, &mut payload)?;
        Ok(Some(RecordCopy { flags, version, payload }))
    }

    fn search(&self, key: &[u8]) -> Option<usize> {
        let suffix = key.strip_prefix(self.low().get(..self.prefix_bytes)?)?;
        let (mut from, mut to) = (0, self.content.count);
        while from < to {
            let middle = (from + to) / 2;
            match self.compare(middle, suffix) {
                Ordering::Less => from = middle + 1,
                Ordering::Greater => to = middle,
                Ordering::Equal => return Some(middle),
            }
        }
        None
    }

    /// Compares the stored key `i` with `suffix`.
    fn compare(&self, i: usize, suffix: &[u8]) -> Ordering {
        match &self.content.keys {
            Keys::Varying { lengths, bytes } => self.varying(i, lengths, bytes).cmp(suffix),
            Keys::Together { width, bytes } => {
                bytes.get(i * width..(i + 1) * width).unwrap_or_default().cmp(suffix)
            }
            Keys::Planes { delta_width, planes, .. } => {
                let sum = self.sums.get(i).map_or([0; 8], |sum| sum.to_be_bytes());
                let beginning = sum.get(8 - delta_width..).unwrap_or_default().iter();
                beginning.chain(plane_bytes(planes, self.content.count, i)).cmp(suffix)
            }
        }
    }

    fn version(&self, i: usize) -> Parsed<Option<(TxnId, UndoPtr)>> {
        let versions = &self.content.versions;
        let Ok(at) = versions.rows.binary_search(&i) else { return Ok(None) };
        let mut bytes = [0; VERSION_BYTES];
        let stored = plane_bytes(versions.planes, versions.rows.len(), at);
        bytes.iter_mut().zip(stored).for_each(|(byte, stored)| *byte = *stored);
        let mut reader = Reader::new(&bytes);
        Ok(Some((TxnId(reader.u48()?), UndoPtr(reader.u48()?))))
    }
}

fn plane_bytes(planes: &[u8], count: usize, i: usize) -> impl Iterator<Item = &u8> {
    planes.get(i..).unwrap_or_default().iter().step_by(count.max(1))
}

impl Keys<'_> {
    /// The position of each key, if their lengths vary.
    fn starts(&self) -> Vec<u32> {
        let Keys::Varying { lengths, .. } = self else { return Vec::new() };
        let mut next = 0;
        let mut start = |length: &u32| {
            next += length;
            next - length
        };
        lengths.iter().map(&mut start).collect()
    }

    /// The numbers that the `count` keys begin with, if they are stored as differences.
    fn sums(&self, count: usize) -> Vec<u64> {
        let Keys::Planes { delta_width: 1.., deltas, .. } = self else { return Vec::new() };
        let mut sum = 0u64;
        let difference =
            |i| plane_bytes(deltas, count, i).fold(0, |value, byte| value << 8 | u64::from(*byte));
        (0..count)
            .map(|i| {
                sum = sum.wrapping_add(difference(i));
                sum
            })
            .collect()
    }
}

impl Payloads<'_> {
    fn gather(&self, i: usize, count: usize, out: &mut Vec<u8>) -> Parsed<()> {
        match self {
            Payloads::Varying { lengths, bytes } => {
                let start = lengths.iter().take(i).map(|&length| length as usize).sum::<usize>();
                out.extend_from_slice(part(bytes, start, self.length(i))?);
            }
            Payloads::Together { width, bytes } => out.extend_from_slice(part(bytes, i * width, *width)?),
            Payloads::Planes { planes, .. } => out.extend(plane_bytes(planes, count, i)),
            Payloads::Rows(rows) => rows.gather(i, count, out)?,
        }
        Ok(())
    }
}

impl Rows<'_> {
    fn gather(&self, i: usize, count: usize, out: &mut Vec<u8>) -> Parsed<()> {
        out.extend(plane_bytes(self.nulls, count, i));
        let mut at = 0;
        for width in self.row_format.fixed.iter().map(|&width| usize::from(width)) {
            let column = part(self.fixed, at, width * count)?;
            if width <= super::columns::PLANES_MAX {
                out.extend(plane_bytes(column, count, i));
            } else {
                out.extend_from_slice(part(column, i * width, width)?);
            }
            at += column.len();
        }
        let columns = || self.value_lengths.chunks_exact(count.max(1));
        for column in columns() {
            varint::put(out, column.get(i).copied().unwrap_or_default().into());
        }
        let mut start = 0;
        for column in columns() {
            let (before, from) = column.split_at_checked(i).unwrap_or_default();
            let sum = |lengths: &[u32]| lengths.iter().map(|&encoded| encoded as usize >> 1).sum::<usize>();
            let begin = start + sum(before);
            out.extend_from_slice(part(self.values, begin, from.first().map_or(0, |&e| e as usize >> 1))?);
            start = begin + sum(from);
        }
        Ok(())
    }
}

fn part(bytes: &[u8], start: usize, length: usize) -> Parsed<&[u8]> {
    bytes.get(start..start + length).ok_or(Defect::new("a column shorter than its values"))
}

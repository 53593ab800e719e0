//! Filling a page with records in key order.
//!
//! Invariants
//!   I1  A page is cut between two known entries, so its upper fence, its prefix and its exact size
//!       are known before it is written.

use crate::base::TreeId;
use crate::format::page::{
    build_page, cell_bytes, separator_between, PageKind, RecordFlags, RecordRef, RecordVersion, HEADER_BYTES,
};
use crate::tree::handle::Fences;
use std::ops::Range;

/// The number of bytes up to which pages of `page_bytes` are filled in key order: 15/16 of the
/// page, as in InnoDB. The rest is for later inserts.
pub(crate) fn fill_target(page_bytes: usize) -> usize {
    page_bytes / 16 * 15
}

/// The entries of an unfinished page, or of slightly more than a page.
#[derive(Default, Debug)]
pub(crate) struct Packing {
    low: Vec<u8>,
    entries: Vec<Entry>,
    bytes: Vec<u8>,
    /// The sum of the cell sizes with complete keys.
    cells_bytes: usize,
}

#[derive(Clone, Debug)]
struct Entry {
    key: Range<usize>,
    payload: Range<usize>,
    flags: RecordFlags,
    version: RecordVersion,
}

impl Packing {
    /// Starts a page with the lower fence `low` and no entries.
    pub(crate) fn above(low: Vec<u8>) -> Self {
        Self { low, ..Self::default() }
    }

    pub(crate) fn low(&self) -> &[u8] {
        &self.low
    }

    pub(crate) fn count(&self) -> usize {
        self.entries.len()
    }

    fn key(&self, index: usize) -> &[u8] {
        &self.bytes[self.entries[index].key.clone()]
    }

    fn record(&self, index: usize) -> RecordRef<'_> {
        let entry = &self.entries[index];
        RecordRef { flags: entry.flags, version: entry.version, payload: &self.bytes[entry.payload.clone()] }
    }

    /// Adds an entry. Its key must be above all other keys.
    pub(crate) fn push(&mut self, key: &[u8], record: &RecordRef<'_>) {
        let key_at = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let payload_at = self.bytes.len();
        self.bytes.extend_from_slice(record.payload);
        self.entries.push(Entry {
            key: key_at..payload_at,
            payload: payload_at..self.bytes.len(),
            flags: record.flags,
            version: record.version,
        });
        self.cells_bytes += cell_bytes(key.len(), record);
    }

    /// The size of a page with the first `count` entries and the upper fence `high`, in bytes.
    fn page_bytes(&self, count: usize, high: Option<&[u8]>) -> usize {
        let prefix_len = high.map_or(0, |high| common_prefix_len(&self.low, high));
        let cells = if count == self.entries.len() {
            self.cells_bytes
        } else {
            (0..count).map(|index| cell_bytes(self.key(index).len(), &self.record(index))).sum()
        };
        HEADER_BYTES + self.low.len() + high.map_or(0, <[u8]>::len) + cells - count * prefix_len
    }

    /// The size in bytes of a page with all entries. The last key stands in for the upper fence,
    /// which is not known yet.
    fn expected_bytes(&self) -> usize {
        let last = self.entries.len().checked_sub(1).map(|last| self.key(last));
        self.page_bytes(self.entries.len(), last)
    }

    /// Returns whether all entries fit into the last page of a level, which has no upper fence and
    /// so no prefix.
    pub(crate) fn fits_as_last(&self, page_bytes: usize) -> bool {
        self.page_bytes(self.count(), None) <= page_bytes
    }

    pub(crate) fn overflows(&self, bytes_max: usize) -> bool {
        self.count() > 1 && self.expected_bytes() > bytes_max
    }

    /// Returns the number of entries, at least one, that fit into a page of at most `bytes_max`,
    /// and the upper fence of that page.
    pub(crate) fn cut(&self, is_leaf: bool, bytes_max: usize) -> (usize, Vec<u8>) {
        let high_of = |count: usize| match is_leaf {
            true => separator_between(self.key(count - 1), self.key(count)),
            false => self.key(count),
        };
        let fits = |count: &usize| *count == 1 || self.page_bytes(*count, Some(high_of(*count))) <= bytes_max;
        let count = (1..self.entries.len()).rev().find(fits).unwrap_or(1);
        (count, high_of(count).to_vec())
    }

    /// The entries after the first `count`, which became a page with the upper fence `low`.
    pub(crate) fn rest(&self, count: usize, low: Vec<u8>) -> Self {
        let mut rest = Self::above(low);
        for index in count..self.entries.len() {
            rest.push(self.key(index), &self.record(index));
        }
        rest
    }

    /// Writes a page with the first `count` entries to `page`. The caller ensures that they fit.
    pub(crate) fn write(&self, page: &mut [u8], tree: TreeId, level: u8, count: usize, fences: &Fences<'_>) {
        let kind = if level == 0 { PageKind::Leaf } else { PageKind::Inner };
        let mut page = build_page(page, kind, level, tree, fences.low, fences.high, fences.right);
        for index in 0..count {
            page.push(self.key(index), &self.record(index)).expect("I1: the entries were measured");
        }
    }
}

fn common_prefix_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

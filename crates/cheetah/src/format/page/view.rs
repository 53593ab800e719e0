//! Reading a page: search, keys, records.
//!
//! The bytes are trusted: [`super::PageMut`] built them, or [`PageView::verify`] accepted them. On
//! other bytes a method may panic, but does nothing worse.

use super::layout::*;
use crate::base::{PageId, TreeId, TxnId, UndoPtr};
use crate::format::varint;
use std::cmp::Ordering;

/// A page, read-only.
#[derive(Clone, Copy)]
pub struct PageView<'a> {
    pub(super) bytes: &'a [u8],
}

pub(super) struct Parts<'a> {
    pub(super) flags: u8,
    pub(super) suffix: &'a [u8],
    pub(super) version: Option<(TxnId, UndoPtr)>,
    pub(super) payload: &'a [u8],
    pub(super) bytes: usize,
}

impl<'a> PageView<'a> {
    /// Views the bytes of a frame.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The bytes of the page.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The kind of its content.
    pub fn kind(&self) -> PageKind {
        PageKind::from_code(self.bytes[AT_KIND]).expect("a page has a known kind")
    }

    /// The tree that owns it.
    pub fn tree(&self) -> TreeId {
        TreeId(u32_at(self.bytes, AT_TREE))
    }

    /// Height above the leaves.
    pub fn level(&self) -> u8 {
        self.bytes[AT_LEVEL]
    }

    /// Returns whether it is a leaf.
    pub fn is_leaf(&self) -> bool {
        self.bytes[AT_KIND] == PageKind::Leaf.code()
    }

    /// Returns whether its content was merged into another page.
    pub fn is_dead(&self) -> bool {
        self.bytes[AT_FLAGS] & FLAG_DEAD != 0
    }

    /// The right neighbour on the same level, or the next page of a value, or [`PageId::NONE`] if
    /// there is none.
    pub fn right(&self) -> PageId {
        PageId(u64_at(self.bytes, AT_RIGHT))
    }

    /// Number of records or children.
    pub fn count(&self) -> usize {
        usize::from(u16_at(self.bytes, AT_COUNT))
    }

    /// The inclusive lower bound of the keys that belong in the page. Empty if there is no bound.
    pub fn low(&self) -> &'a [u8] {
        &self.bytes[self.low_at()..]
    }

    /// The exclusive upper bound of the keys, or `None` if there is no bound.
    pub fn high(&self) -> Option<&'a [u8]> {
        let has_high = self.bytes[AT_FLAGS] & FLAG_HAS_HIGH != 0;
        has_high.then(|| &self.bytes[self.heap_end()..self.low_at()])
    }

    /// The common prefix of all keys that belong in the page.
    pub fn prefix(&self) -> &'a [u8] {
        &self.low()[..self.prefix_len()]
    }

    /// Returns whether `key` belongs in the page: low <= key < high.
    pub fn covers(&self, key: &[u8]) -> bool {
        key >= self.low() && self.high().is_none_or(|high| key < high)
    }

    /// Returns the slot of `key`, or as an error the slot at which it would be inserted.
    pub fn search(&self, key: &[u8]) -> Result<usize, usize> {
        let prefix = self.prefix();
        let Some(suffix) = key.strip_prefix(prefix) else {
            return Err(if key < prefix { 0 } else { self.count() });
        };
        let head = head_of(suffix);
        let (mut from, mut to) = (0, self.count());
        while from < to {
            let middle = (from + to) / 2;
            let middle_head = self.head(middle);
            let order = if middle_head == head {
                compare_keys(self.suffix(middle), suffix)
            } else {
                middle_head.cmp(&head)
            };
            match order {
                Ordering::Less => from = middle + 1,
                Ordering::Greater => to = middle,
                Ordering::Equal => return Ok(middle),
            }
        }
        Err(from)
    }

    /// Like [`search`](Self::search), for a key that is probably in slot `near` or the next slot.
    /// These two slots are checked first.
    pub fn search_near(&self, key: &[u8], near: usize) -> Result<usize, usize> {
        let Some(suffix) = key.strip_prefix(self.prefix()) else { return self.search(key) };
        let head = head_of(suffix);
        let is_at = |slot: &usize| self.head(*slot) == head && self.suffix(*slot) == suffix;
        match (near..self.count().min(near.saturating_add(2))).find(is_at) {
            Some(slot) => Ok(slot),
            None => self.search(key),
        }
    }

    /// The key of slot `i` without [`Self::prefix`].
    #[inline]
    pub fn suffix(&self, i: usize) -> &'a [u8] {
        let record = &self.bytes[self.record_at(i)..];
        let (length, used) = varint::get(&record[1..]).expect("I1: a record's lengths are well formed");
        &record[1 + used..1 + used + length as usize]
    }

    /// Replaces `key` with the complete key of slot `i`.
    pub fn key_into(&self, i: usize, key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(self.prefix());
        key.extend_from_slice(self.suffix(i));
    }

    /// The complete key of slot `i`.
    pub fn key(&self, i: usize) -> Vec<u8> {
        [self.prefix(), self.suffix(i)].concat()
    }

    /// The record of slot `i`.
    pub fn record(&self, i: usize) -> RecordRef<'a> {
        self.entry(i).1
    }

    /// The key of slot `i` without [`Self::prefix`], and its record.
    #[inline]
    pub fn entry(&self, i: usize) -> (&'a [u8], RecordRef<'a>) {
        let parts = self.parts(i);
        let flags = RecordFlags::from_bits(parts.flags & !RecordFlags::VERSIONED_BIT).unwrap_or_default();
        (parts.suffix, RecordRef { flags, version: parts.version, payload: parts.payload })
    }

    /// The child of slot `i` of an inner page.
    pub fn child(&self, i: usize) -> PageId {
        PageId(u40_at(self.parts(i).payload, 0))
    }

    /// Returns the slot of the child for `key`, which must belong in this inner page.
    pub fn find_child(&self, key: &[u8]) -> usize {
        match self.search(key) {
            Ok(i) => i,
            Err(i) => i.saturating_sub(1),
        }
    }

    /// Bytes in use: header, slots, live records, fences.
    pub fn used_bytes(&self) -> usize {
        self.bytes.len() - self.free_bytes()
    }

    /// Bytes available to new records, after compaction if necessary.
    pub fn free_bytes(&self) -> usize {
        self.gap_bytes() + self.garbage()
    }

    /// Returns whether a record with a new key of `key_bytes` fits.
    pub fn fits(&self, key_bytes: usize, record: &RecordRef<'_>) -> bool {
        cell_bytes(key_bytes.saturating_sub(self.prefix_len()), record) <= self.free_bytes()
    }

    /// Returns whether `record` fits in place of the record of slot `i`.
    pub fn fits_replacement(&self, i: usize, record: &RecordRef<'_>) -> bool {
        let old = self.parts(i);
        let new = record_bytes(old.suffix.len(), record.version.is_some(), record.payload.len());
        new <= old.bytes + self.free_bytes()
    }

    /// Bytes that slot `i` and its record take.
    pub fn cell_bytes(&self, i: usize) -> usize {
        SLOT_BYTES + self.parts(i).bytes
    }

    /// Content of a blob or undo page.
    pub fn content(&self) -> &'a [u8] {
        &self.bytes[HEADER_BYTES..HEADER_BYTES + u32_at(self.bytes, AT_CONTENT_LEN) as usize]
    }

    /// The position of the content of a blob or undo page in its value or in the undo log.
    pub fn content_position(&self) -> u64 {
        u64_at(self.bytes, AT_CONTENT_POSITION)
    }

    /// Returns whether the last inserts had neighbouring keys in order.
    pub fn is_in_run(&self) -> bool {
        self.insert_run().1.abs() >= RUN_MIN
    }

    /// Slot of the last insert, and the signed length of the run of neighbouring inserts that it
    /// belongs to.
    pub(super) fn insert_run(&self) -> (Option<usize>, i16) {
        let last = u16_at(self.bytes, AT_LAST_INSERT);
        ((last != NO_SLOT).then_some(usize::from(last)), u16_at(self.bytes, AT_RUN) as i16)
    }

    pub(super) fn prefix_len(&self) -> usize {
        usize::from(u16_at(self.bytes, AT_PREFIX_LEN))
    }

    pub(super) fn low_at(&self) -> usize {
        self.bytes.len() - usize::from(u16_at(self.bytes, AT_LOW_LEN))
    }

    /// End of the records, where the high fence begins.
    pub(super) fn heap_end(&self) -> usize {
        self.low_at() - usize::from(u16_at(self.bytes, AT_HIGH_LEN))
    }

    pub(super) fn heap_start(&self) -> usize {
        usize::from(u16_at(self.bytes, AT_HEAP_START))
    }

    pub(super) fn garbage(&self) -> usize {
        usize::from(u16_at(self.bytes, AT_GARBAGE))
    }

    /// Bytes between the slots and the heap.
    pub(super) fn gap_bytes(&self) -> usize {
        self.heap_start() - HEADER_BYTES - self.count() * SLOT_BYTES
    }

    #[inline]
    pub(super) fn record_at(&self, i: usize) -> usize {
        usize::from(u16_at(self.bytes, HEADER_BYTES + i * SLOT_BYTES))
    }

    #[inline]
    pub(super) fn head(&self, i: usize) -> u32 {
        u32_at(self.bytes, HEADER_BYTES + i * SLOT_BYTES + 2)
    }

    #[inline]
    pub(super) fn parts(&self, i: usize) -> Parts<'a> {
        parts_at(self.bytes, self.record_at(i)).expect("I1: records are well formed")
    }
}

#[inline]
pub(super) fn parts_at(bytes: &[u8], at: usize) -> Option<Parts<'_>> {
    let record = bytes.get(at..)?;
    let (&flags, rest) = record.split_first()?;
    let (suffix, rest) = prefixed(rest)?;
    let (version, rest) = if flags & RecordFlags::VERSIONED_BIT != 0 {
        let (version, rest) = rest.split_at_checked(VERSION_BYTES)?;
        (Some((TxnId(u48_at(version, 0)), UndoPtr(u48_at(version, 6)))), rest)
    } else {
        (None, rest)
    };
    let (payload, rest) = prefixed(rest)?;
    Some(Parts { flags, suffix, version, payload, bytes: record.len() - rest.len() })
}

#[inline]
fn prefixed(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, used) = varint::get(bytes)?;
    bytes.get(used..)?.split_at_checked(usize::try_from(length).ok()?)
}

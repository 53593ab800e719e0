//! Changing a page: insert, replace, remove, compact.
//!
//! No function here splits a page. If a record does not fit even after compaction, the result is
//! [`NoRoom`] and the page is unchanged. The caller then splits the page ([`super::plan_split`]).

use super::layout::*;
use super::view::PageView;
use crate::base::{PageId, TreeId, TxnId};
use crate::format::bytes::{u40_bytes, u48_bytes};
use crate::format::varint;

/// The record does not fit into the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRoom;

/// A page that can be changed.
pub struct PageMut<'a> {
    bytes: &'a mut [u8],
}

/// Makes `bytes` an empty tree page with these fences. An empty `low` and a `high` of `None` mean
/// no bound.
///
/// # Panics
/// If the fences do not fit in the page, or the page is larger than [`TREE_PAGE_BYTES_MAX`].
pub fn build_page<'a>(
    bytes: &'a mut [u8],
    kind: PageKind,
    level: u8,
    tree: TreeId,
    low: &[u8],
    high: Option<&[u8]>,
    right: PageId,
) -> PageMut<'a> {
    assert!(kind.is_tree() && bytes.len() <= TREE_PAGE_BYTES_MAX, "tree pages have at most 32 KiB");
    debug_assert!(high.is_none_or(|high| low < high), "I1: a low fence is below the high one");
    init_header(bytes, kind, level, tree, right.0);
    let low_at = bytes.len() - low.len();
    bytes[low_at..].copy_from_slice(low);
    let mut heap_start = low_at;
    if let Some(high) = high {
        heap_start -= high.len();
        bytes[heap_start..low_at].copy_from_slice(high);
        bytes[AT_FLAGS] |= FLAG_HAS_HIGH;
        put_u16(bytes, AT_HIGH_LEN, high.len());
        put_u16(bytes, AT_PREFIX_LEN, common_prefix(low, high));
    }
    assert!(heap_start >= HEADER_BYTES, "fences fit into their page");
    put_u16(bytes, AT_LOW_LEN, low.len());
    put_u16(bytes, AT_HEAP_START, heap_start);
    PageMut { bytes }
}

impl<'a> PageMut<'a> {
    /// Changes the bytes of a frame, which must hold a page already.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes }
    }

    /// A read-only view of the page.
    pub fn view(&self) -> PageView<'_> {
        PageView::new(self.bytes)
    }

    /// Adds a record with a new key as slot `i`, which [`PageView::search`] returned.
    pub fn insert(&mut self, i: usize, key: &[u8], record: &RecordRef<'_>) -> Result<(), NoRoom> {
        debug_assert!(self.view().covers(key), "I1: the key belongs to the page");
        let suffix = &key[self.view().prefix_len()..];
        self.insert_suffix(i, [suffix, &[]], record)?;
        self.note_insert(i);
        Ok(())
    }

    /// Adds a record after all others. `key` must be greater than all other keys.
    pub fn push(&mut self, key: &[u8], record: &RecordRef<'_>) -> Result<(), NoRoom> {
        self.insert(self.view().count(), key, record)
    }

    /// Replaces the record of slot `i`, keeping its key.
    pub fn replace(&mut self, i: usize, record: &RecordRef<'_>) -> Result<(), NoRoom> {
        let view = self.view();
        if !view.fits_replacement(i, record) {
            return Err(NoRoom);
        }
        let old = view.parts(i);
        let new_bytes = record_bytes(old.suffix.len(), record.version.is_some(), record.payload.len());
        let old_bytes = old.bytes;
        if new_bytes <= old_bytes {
            let at = view.record_at(i);
            self.rewrite_record(at, record);
            self.add_garbage(old_bytes - new_bytes);
            return Ok(());
        }
        let suffix = old.suffix.to_vec();
        if new_bytes > view.gap_bytes() {
            self.compact_without(Some(i));
        } else {
            self.add_garbage(old_bytes);
        }
        let at = self.take_heap(new_bytes);
        self.write_record(at, [&suffix, &[]], record);
        self.set_record_at(i, at);
        Ok(())
    }

    /// Removes slot `i` and its record.
    pub fn remove(&mut self, i: usize) {
        let view = self.view();
        let (count, at, bytes) = (view.count(), view.record_at(i), view.parts(i).bytes);
        if at == view.heap_start() {
            put_u16(self.bytes, AT_HEAP_START, at + bytes);
        } else {
            self.add_garbage(bytes);
        }
        let slots = HEADER_BYTES + i * SLOT_BYTES;
        self.bytes.copy_within(slots + SLOT_BYTES..HEADER_BYTES + count * SLOT_BYTES, slots);
        put_u16(self.bytes, AT_COUNT, count - 1);
        self.note_remove(i);
    }

    /// Removes the versions of transactions below `txn` from the records. Returns whether any
    /// record had such a version.
    pub fn freeze_below(&mut self, txn: TxnId) -> bool {
        let old = self.bytes.to_vec();
        let old = PageView::new(&old);
        let mut any = false;
        for i in 0..old.count() {
            let record = old.record(i);
            if record.version.is_some_and(|(by, _)| by < txn) {
                self.rewrite_record(old.record_at(i), &RecordRef { version: None, ..record });
                self.add_garbage(VERSION_BYTES);
                any = true;
            }
        }
        any
    }

    /// Adds a child to an inner page. `key` is the lower bound of the child's keys.
    pub fn insert_child(&mut self, i: usize, key: &[u8], child: PageId) -> Result<(), NoRoom> {
        self.insert(i, key, &RecordRef::frozen(&u40_bytes(child.0)))
    }

    /// Marks the page as merged into another page.
    pub fn set_dead(&mut self) {
        self.bytes[AT_FLAGS] |= FLAG_DEAD;
    }

    /// Moves all free bytes into the gap between slots and records.
    pub fn compact(&mut self) {
        self.compact_without(None);
    }

    /// Adds copies of the records in slots `range` of `source` after all others. The pages may have
    /// different prefixes. The keys must belong in this page.
    pub fn copy_range(&mut self, source: PageView<'_>, range: std::ops::Range<usize>) -> Result<(), NoRoom> {
        let ours = self.view().prefix_len();
        let theirs = source.prefix();
        let head = theirs.get(ours..).unwrap_or_default();
        let skip = ours.saturating_sub(theirs.len());
        for i in range {
            let suffix = &source.suffix(i)[skip..];
            self.insert_suffix(self.view().count(), [head, suffix], &source.record(i))?;
        }
        Ok(())
    }

    pub(in crate::format) fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes
    }

    /// Adds a record as slot `i`. Its suffix is passed in two pieces.
    pub(super) fn insert_suffix(
        &mut self,
        i: usize,
        suffix: [&[u8]; 2],
        record: &RecordRef<'_>,
    ) -> Result<(), NoRoom> {
        let bytes =
            record_bytes(suffix[0].len() + suffix[1].len(), record.version.is_some(), record.payload.len());
        let view = self.view();
        let count = view.count();
        debug_assert!(i <= count);
        if bytes + SLOT_BYTES > view.free_bytes() {
            return Err(NoRoom);
        }
        if bytes + SLOT_BYTES > view.gap_bytes() {
            self.compact();
        }
        let at = self.take_heap(bytes);
        self.write_record(at, suffix, record);
        let slots = HEADER_BYTES + i * SLOT_BYTES;
        self.bytes.copy_within(slots..HEADER_BYTES + count * SLOT_BYTES, slots + SLOT_BYTES);
        put_u16(self.bytes, AT_COUNT, count + 1);
        self.set_record_at(i, at);
        let head = head_of(self.view().suffix(i));
        put_u32(self.bytes, slots + 2, head);
        Ok(())
    }

    fn take_heap(&mut self, bytes: usize) -> usize {
        let at = self.view().heap_start() - bytes;
        put_u16(self.bytes, AT_HEAP_START, at);
        at
    }

    fn write_record(&mut self, at: usize, suffix: [&[u8]; 2], record: &RecordRef<'_>) {
        let mut out = Cursor { bytes: &mut self.bytes[at..], at: 0 };
        out.put(&[0]);
        out.varint(suffix[0].len() + suffix[1].len());
        out.put(suffix[0]);
        out.put(suffix[1]);
        self.rewrite_record(at, record);
    }

    /// Writes all parts of a record except the suffix, which was already written.
    fn rewrite_record(&mut self, at: usize, record: &RecordRef<'_>) {
        let (suffix_len, used) = varint::get(&self.bytes[at + 1..]).expect("I1: just written or verified");
        let mut out = Cursor { bytes: &mut self.bytes[at..], at: 1 + used + suffix_len as usize };
        let mut flags = record.flags.bits();
        if let Some((txn, undo)) = record.version {
            flags |= RecordFlags::VERSIONED_BIT;
            out.put(&u48_bytes(txn.0));
            out.put(&u48_bytes(undo.0));
        }
        out.varint(record.payload.len());
        out.put(record.payload);
        self.bytes[at] = flags;
    }

    fn set_record_at(&mut self, i: usize, at: usize) {
        put_u16(self.bytes, HEADER_BYTES + i * SLOT_BYTES, at);
    }

    fn add_garbage(&mut self, bytes: usize) {
        let garbage = self.view().garbage() + bytes;
        put_u16(self.bytes, AT_GARBAGE, garbage);
    }

    /// Compacts the page. Drops the record of slot `dropped`, whose slot the caller must fill.
    fn compact_without(&mut self, dropped: Option<usize>) {
        let old = self.bytes.to_vec();
        let old = PageView::new(&old);
        let mut to = old.heap_end();
        for i in (0..old.count()).filter(|&i| Some(i) != dropped) {
            let (from, bytes) = (old.record_at(i), old.parts(i).bytes);
            to -= bytes;
            self.bytes[to..to + bytes].copy_from_slice(&old.bytes()[from..from + bytes]);
            self.set_record_at(i, to);
        }
        put_u16(self.bytes, AT_HEAP_START, to);
        put_u16(self.bytes, AT_GARBAGE, 0);
    }

    fn note_insert(&mut self, i: usize) {
        let (last, run) = self.view().insert_run();
        let run = match last {
            Some(last) if i == last + 1 => run.max(0).saturating_add(1),
            Some(last) if i == last => run.min(0).saturating_sub(1),
            _ => 0,
        };
        put_u16(self.bytes, AT_LAST_INSERT, i);
        put_u16(self.bytes, AT_RUN, usize::from(run as u16));
    }

    fn note_remove(&mut self, i: usize) {
        match self.view().insert_run().0 {
            Some(last) if i < last => put_u16(self.bytes, AT_LAST_INSERT, last - 1),
            Some(last) if i == last => {
                put_u16(self.bytes, AT_LAST_INSERT, usize::from(NO_SLOT));
                put_u16(self.bytes, AT_RUN, 0);
            }
            _ => {}
        }
    }
}

struct Cursor<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Cursor<'_> {
    fn put(&mut self, piece: &[u8]) {
        self.bytes[self.at..self.at + piece.len()].copy_from_slice(piece);
        self.at += piece.len();
    }

    fn varint(&mut self, value: usize) {
        self.at += varint::write(&mut self.bytes[self.at..], value as u64);
    }
}

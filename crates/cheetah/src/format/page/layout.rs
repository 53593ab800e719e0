//! The position of each byte of a page, and the limits of keys and records.
//!
//! ```text
//! 0        64                             heap_start                                page end
//! | header | slot 0 | slot 1 | .. -> free <- | .. record | record | high fence | low fence |
//! ```
//!
//! | offset | size | header field                                                             |
//! |--------|------|--------------------------------------------------------------------------|
//! | 0      | 1    | format version, 1                                                        |
//! | 1      | 1    | kind: 1 leaf, 2 inner, 3 blob, 4 undo, 5 dictionary                      |
//! | 2      | 1    | level: 0 for a leaf                                                      |
//! | 3      | 1    | flags: 1 dead (merged away), 2 has a high fence                          |
//! | 4      | 4    | tree                                                                     |
//! | 8      | 8    | right neighbour, next page of a value; 0 none                            |
//! | 16     | 2    | slot count                                                               |
//! | 18     | 2    | heap start                                                               |
//! | 20     | 2    | garbage: bytes of the heap that no slot leads to                         |
//! | 22     | 2    | bytes of the low fence that all keys begin with and omit                 |
//! | 24     | 2    | low fence length; 0 is "from the beginning"                              |
//! | 26     | 2    | high fence length                                                        |
//! | 28     | 2    | slot of the last insert, 0xffff none: shows runs of neighbouring inserts |
//! | 30     | 2    | length of the run, signed: positive ascending, negative descending       |
//! | 32     | 4    | content length (blob, undo and dictionary pages)                         |
//! | 36     | 4    | zero                                                                     |
//! | 40     | 8    | position of the content in its value or in the undo log                  |
//! | 48     | 16   | zero                                                                     |
//!
//! Slot: `[record offset u16][head u32]`. The head is the first four bytes of the key after the
//! prefix, zero-padded, as a big-endian number. It decides most comparisons, which then need not
//! read the record. Record: `[flags u8][suffix length varint][suffix][version, 12 bytes if its flag
//! is set] [payload length varint][payload]`. The payload of an inner page's record is the number
//! of the child page, 5 bytes.
//!
//! Invariants
//!   I1  Keys ascend strictly; low fence <= key < high fence. An inner page's first key is its low
//!       fence.
//!   I2  The prefix is the longest common prefix of both fences; it is empty if there is no high
//!       fence.
//!   I3  garbage = heap bytes between heap start and fences - bytes of the records.
//!   I4  A record of at most [`max_cell_bytes`] fits after one split.

use crate::base::{opaque, TreeId, TxnId, UndoPtr};
use crate::format::bytes::{codes, from_low_bytes};
use crate::format::varint;
use cheetah_io::Block;
use std::cmp::Ordering;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 64;
/// Bytes of a slot.
pub const SLOT_BYTES: usize = 6;
/// The length of a record's version.
pub const VERSION_BYTES: usize = 12;
/// The smallest page.
pub const PAGE_BYTES_MIN: usize = 512;
/// The largest page of a tree. Offsets have 16 bits, and the end of the page must be expressible as
/// an offset.
pub const TREE_PAGE_BYTES_MAX: usize = 32 << 10;
/// The largest page of any kind.
pub const PAGE_BYTES_MAX: usize = 64 << 10;

pub(super) const FORMAT_VERSION: u8 = 1;
pub(super) const AT_VERSION: usize = 0;
pub(super) const AT_KIND: usize = 1;
pub(super) const AT_LEVEL: usize = 2;
pub(super) const AT_FLAGS: usize = 3;
pub(super) const AT_TREE: usize = 4;
pub(super) const AT_RIGHT: usize = 8;
pub(super) const AT_COUNT: usize = 16;
pub(super) const AT_HEAP_START: usize = 18;
pub(super) const AT_GARBAGE: usize = 20;
pub(super) const AT_PREFIX_LEN: usize = 22;
pub(super) const AT_LOW_LEN: usize = 24;
pub(super) const AT_HIGH_LEN: usize = 26;
pub(super) const AT_LAST_INSERT: usize = 28;
pub(super) const AT_RUN: usize = 30;
pub(super) const AT_CONTENT_LEN: usize = 32;
pub(super) const AT_CONTENT_POSITION: usize = 40;
pub(super) const FLAG_DEAD: u8 = 1;
pub(super) const FLAG_HAS_HIGH: u8 = 2;
pub(super) const NO_SLOT: u16 = u16::MAX;
/// The number of consecutive inserts at neighbouring positions that count as inserting in key
/// order.
pub(super) const RUN_MIN: i16 = 3;
pub(super) const CHILD_BYTES: usize = 5;

/// The maximum size of a cell without suffix and payload: slot, flags, two lengths of up to 3 bytes
/// each, and version.
const CELL_OVERHEAD_MAX: usize = SLOT_BYTES + 1 + 3 + VERSION_BYTES + 3;

/// The kind of a page.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PageKind {
    /// Records of a tree.
    Leaf,
    /// Separators and children of a tree.
    Inner,
    /// Part of a large value.
    Blob,
    /// Part of the undo log.
    Undo,
    /// A dictionary for the compression of other pages of its tree.
    Dictionary,
}

codes!(PageKind { Leaf = 1, Inner = 2, Blob = 3, Undo = 4, Dictionary = 5 });

impl PageKind {
    /// Returns whether pages of this kind have slots and fences.
    pub fn is_tree(self) -> bool {
        matches!(self, PageKind::Leaf | PageKind::Inner)
    }
}

/// Flags of a record. Whether it has a version is not one of them; [`RecordRef::version`] says it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RecordFlags(u8);

impl RecordFlags {
    /// An ordinary record.
    pub const NONE: RecordFlags = RecordFlags(0);
    /// A deleted record that a snapshot may still need.
    pub const DELETE_MARKED: RecordFlags = RecordFlags(1);
    pub(in crate::format) const VERSIONED_BIT: u8 = 2;

    /// The flags as a byte.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Returns the flags in this byte, or `None` if it has unknown flags.
    pub fn from_bits(bits: u8) -> Option<Self> {
        (bits & !1 == 0).then_some(Self(bits))
    }
}

/// The transaction that last wrote a record, and the undo record of the previous version. `None` if
/// no transaction needs them any more: the record is *frozen*.
pub type RecordVersion = Option<(TxnId, UndoPtr)>;

/// A record without its key, in a page or to be put into a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordRef<'a> {
    /// Its flags.
    pub flags: RecordFlags,
    /// Its version.
    pub version: RecordVersion,
    /// The stored row or the payload of a secondary entry.
    pub payload: &'a [u8],
}

impl<'a> RecordRef<'a> {
    /// Creates a record that is visible to all snapshots.
    pub fn frozen(payload: &'a [u8]) -> Self {
        Self { flags: RecordFlags::NONE, version: None, payload }
    }

    /// Returns whether the record is deleted and kept only for older snapshots.
    pub fn is_marked(&self) -> bool {
        self.flags == RecordFlags::DELETE_MARKED
    }
}

/// A record without its key, copied out of its page.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RecordCopy {
    /// See [`RecordRef::flags`].
    pub flags: RecordFlags,
    /// See [`RecordRef::version`].
    pub version: RecordVersion,
    /// See [`RecordRef::payload`].
    pub payload: Vec<u8>,
}

impl RecordCopy {
    /// Makes this a copy of `record`, reusing its memory.
    pub fn take(&mut self, record: RecordRef<'_>) {
        (self.flags, self.version) = (record.flags, record.version);
        self.payload.clear();
        self.payload.extend_from_slice(record.payload);
    }

    /// The record.
    pub fn as_ref(&self) -> RecordRef<'_> {
        RecordRef { flags: self.flags, version: self.version, payload: &self.payload }
    }
}

/// The bytes of one page.
pub struct PageBuf(Block);

impl PageBuf {
    /// A page of `bytes` zeros, on the heap.
    pub fn new(bytes: usize) -> Self {
        Self(vec![0; bytes].into_boxed_slice().into())
    }

    /// A page with these bytes, on the heap.
    pub fn from_slice(bytes: &[u8]) -> Self {
        Self(Box::<[u8]>::from(bytes).into())
    }

    /// A page in the memory of `block`.
    pub fn in_block(block: Block) -> Self {
        Self(block)
    }

    /// Changes its length to `bytes` bytes. Keeps the memory if it already has this length. The
    /// content is unspecified.
    pub fn resize(&mut self, bytes: usize) {
        if self.0.len() != bytes {
            *self = Self::new(bytes);
        }
    }
}

impl Clone for PageBuf {
    fn clone(&self) -> Self {
        Self::from_slice(self)
    }
}

impl PartialEq for PageBuf {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl Eq for PageBuf {}

impl std::ops::Deref for PageBuf {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl std::ops::DerefMut for PageBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

opaque!(PageBuf);

/// Returns the maximum length of a key in a tree with pages of this size: 7872 bytes at 32 KiB,
/// 3904 at 16 KiB, 60 at 512 B.
///
/// It is a quarter of the page, less a margin that keeps `max_payload_bytes` positive for keys of
/// this length.
pub const fn max_key_bytes(page_bytes: usize) -> usize {
    page_bytes / 4 - page_bytes / 128 - 64
}

/// Returns the maximum size of a cell ([`cell_bytes`]) in a tree whose keys have at most
/// `tree_key_bytes_max` bytes.
///
/// One split always makes enough room, for the following reason. Let U be the page without its
/// header, K the longest key, R the largest cell, and R + K <= U/2. Fences and separators are at
/// most K. The content of the page, with old record sizes, and the new record is T <= (U - low -
/// high) + R. Let the left page take records while they fit next to the fences low and sep. The
/// next record did not fit: left > U - low - sep - R. So the right page needs T - left + sep + high
/// < (U - low - high + R) - (U - low - sep - R) + sep + high = 2R + 2 sep <= 2 (R + K) <= U. A
/// split narrows the range, so prefixes only grow and records only shrink. And a single record
/// always fits: R + 2K <= U/2 + K <= U.
pub const fn max_cell_bytes(page_bytes: usize, tree_key_bytes_max: usize) -> usize {
    ((page_bytes - HEADER_BYTES) / 2).saturating_sub(tree_key_bytes_max)
}

/// Returns the maximum length of a record's payload in a tree whose keys have at most
/// `tree_key_bytes_max` bytes. A row whose stored form is longer must move values to separate
/// pages.
pub const fn max_payload_bytes(page_bytes: usize, tree_key_bytes_max: usize) -> usize {
    max_cell_bytes(page_bytes, tree_key_bytes_max).saturating_sub(CELL_OVERHEAD_MAX + tree_key_bytes_max)
}

/// Returns the bytes that a record with a key of `key_bytes` takes in a page, including its slot,
/// if no prefix is omitted.
pub fn cell_bytes(key_bytes: usize, record: &RecordRef<'_>) -> usize {
    SLOT_BYTES + record_bytes(key_bytes, record.version.is_some(), record.payload.len())
}

#[inline]
pub(in crate::format) fn record_bytes(suffix_len: usize, versioned: bool, payload_len: usize) -> usize {
    let version = if versioned { VERSION_BYTES } else { 0 };
    let lengths = varint::len(suffix_len as u64) + varint::len(payload_len as u64);
    1 + lengths + suffix_len + version + payload_len
}

/// Length of the longest common prefix.
pub(in crate::format) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// Orders keys like `Ord` for slices. Usually the first eight bytes decide, which avoids a call.
#[inline]
pub fn compare_keys(a: &[u8], b: &[u8]) -> Ordering {
    if let (Some(a), Some(b)) = (a.first_chunk::<8>(), b.first_chunk::<8>()) {
        if a != b {
            return u64::from_be_bytes(*a).cmp(&u64::from_be_bytes(*b));
        }
    }
    if let (Some(a), Some(b)) = (a.first_chunk::<4>(), b.first_chunk::<4>()) {
        if a != b {
            return u32::from_be_bytes(*a).cmp(&u32::from_be_bytes(*b));
        }
    }
    a.cmp(b)
}

/// The first four bytes of a suffix, as a number with the same order.
#[inline]
pub(super) fn head_of(suffix: &[u8]) -> u32 {
    match suffix.first_chunk::<4>() {
        Some(first) => u32::from_be_bytes(*first),
        None => {
            let mut padded = [0; 4];
            padded[..suffix.len()].copy_from_slice(suffix);
            u32::from_be_bytes(padded)
        }
    }
}

#[inline]
fn chunk_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *bytes[at..].first_chunk::<N>().expect("a page's fields are inside it")
}

#[inline]
pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(chunk_at(bytes, at))
}

#[inline]
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(chunk_at(bytes, at))
}

#[inline]
pub(super) fn u40_at(bytes: &[u8], at: usize) -> u64 {
    from_low_bytes(chunk_at::<5>(bytes, at))
}

#[inline]
pub(super) fn u48_at(bytes: &[u8], at: usize) -> u64 {
    from_low_bytes(chunk_at::<6>(bytes, at))
}

#[inline]
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(chunk_at(bytes, at))
}

#[inline]
pub(super) fn put_u16(bytes: &mut [u8], at: usize, value: usize) {
    debug_assert!(value <= usize::from(u16::MAX));
    bytes[at..at + 2].copy_from_slice(&(value as u16).to_le_bytes());
}

#[inline]
pub(super) fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

#[inline]
pub(super) fn put_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Writes the fields that pages of every kind have, and zeros to the rest of the header.
pub(super) fn init_header(bytes: &mut [u8], kind: PageKind, level: u8, tree: TreeId, right: u64) {
    bytes[..HEADER_BYTES].fill(0);
    bytes[AT_VERSION] = FORMAT_VERSION;
    bytes[AT_KIND] = kind.code();
    bytes[AT_LEVEL] = level;
    put_u32(bytes, AT_TREE, tree.0);
    put_u64(bytes, AT_RIGHT, right);
    put_u16(bytes, AT_LAST_INSERT, usize::from(NO_SLOT));
}

/// Returns whether a page was built in these bytes, which must have been zero initially.
pub fn is_built(bytes: &[u8]) -> bool {
    bytes.get(AT_VERSION) == Some(&FORMAT_VERSION)
}

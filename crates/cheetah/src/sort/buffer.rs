//! The in-memory records of a sorter.
//!
//! Invariants
//!   B1  Pieces and places are counted in the sorter's share before they are allocated.
//!   B2  A record is contiguous in one piece, key first.
//!   B3  Parts of a buffer do not share records, so each may be sorted by a different thread.

use super::memory::Share;
use crate::base::{Error, Result};
use std::ops::Range;

/// The number of key bytes, after the common prefix of all keys, that are compared without reading
/// the record.
const PREFIX_BYTES: usize = 16;
/// The number of records whose bytes are prefetched together. Prefetching helps because records are
/// used in the order of their keys, but stored in the order in which they were added.
pub(super) const FETCHED_TOGETHER: usize = 64;
/// The number of first places is the size of a piece in bytes divided by `FIRST_PLACES_PART`.
const FIRST_PLACES_PART: usize = 128;

/// The position of a record and, after sorting, a part of its key.
#[derive(Clone, Copy, Debug)]
struct Place {
    prefix: u128,
    piece: u32,
    at: u32,
    key_len: u32,
    len: u32,
}

#[derive(Debug)]
pub(super) struct Buffer {
    piece_bytes: usize,
    /// Whether its first piece is the sorter's guaranteed one (S2).
    has_certain_piece: bool,
    pieces: Vec<Vec<u8>>,
    /// The piece that is being filled. Later pieces are empty.
    filling: usize,
    places: Vec<Place>,
}

impl Buffer {
    pub(super) fn new(piece_bytes: usize) -> Self {
        Self { piece_bytes, has_certain_piece: true, pieces: Vec::new(), filling: 0, places: Vec::new() }
    }

    /// Moves half of the memory of an empty buffer to a new buffer. Returns `None` if there is too
    /// little memory.
    pub(super) fn split(&mut self) -> Option<Self> {
        debug_assert!(self.is_empty(), "only an empty buffer is split");
        if self.pieces.len() < 2 {
            return None;
        }
        let pieces = self.pieces.split_off(self.pieces.len().div_ceil(2));
        let places = self.places.capacity() / 2;
        self.places = Vec::with_capacity(places);
        let (piece_bytes, places) = (self.piece_bytes, Vec::with_capacity(places));
        Some(Self { piece_bytes, has_certain_piece: false, pieces, filling: 0, places })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Adds a record, whose key and value are passed in parts. Returns `false` if there is no space
    /// in the buffer or in the share. An empty buffer always has space.
    pub(super) fn push(&mut self, share: &mut Share, key: &[&[u8]], value: &[&[u8]]) -> bool {
        let bytes_of = |parts: &[&[u8]]| parts.iter().map(|part| part.len()).sum::<usize>();
        let (key_len, value_len) = (bytes_of(key), bytes_of(value));
        if !self.has_place(share) || !self.has_room(share, key_len + value_len) {
            return false;
        }
        let Some(piece) = self.pieces.get_mut(self.filling) else { return false };
        let at = piece.len();
        key.iter().chain(value).for_each(|part| piece.extend_from_slice(part));
        let (len, key_len) = ((key_len + value_len) as u32, key_len as u32);
        self.places.push(Place { prefix: 0, piece: self.filling as u32, at: at as u32, key_len, len });
        true
    }

    /// Makes sure that there is a place for one more record.
    fn has_place(&mut self, share: &mut Share) -> bool {
        if self.places.len() < self.places.capacity() {
            return true;
        }
        let count = (self.piece_bytes / FIRST_PLACES_PART).max(8).max(self.places.len() / 4);
        if !self.take(share, count * size_of::<Place>()) {
            return false;
        }
        self.places.reserve_exact(count);
        true
    }

    /// Makes sure that the current piece has space for `bytes` bytes.
    fn has_room(&mut self, share: &mut Share, bytes: usize) -> bool {
        let fits = |piece: &Vec<u8>| piece.capacity() - piece.len() >= bytes;
        while let Some(piece) = self.pieces.get(self.filling) {
            if fits(piece) {
                return true;
            }
            if self.filling + 1 == self.pieces.len() {
                break;
            }
            self.filling += 1;
        }
        let is_first = self.has_certain_piece && self.pieces.is_empty() && bytes <= self.piece_bytes;
        let more = bytes.max(self.piece_bytes);
        // The first piece is guaranteed to the sorter (S2).
        let is_too_large = !self.is_empty() && share.is_too_large();
        if !is_first && (is_too_large || !self.take(share, more)) {
            return false;
        }
        self.pieces.push(Vec::with_capacity(more));
        self.filling = self.pieces.len() - 1;
        true
    }

    fn take(&mut self, share: &mut Share, bytes: usize) -> bool {
        if share.take(bytes) {
            return true;
        }
        if self.is_empty() {
            share.take_in_any_case(bytes);
        }
        self.is_empty()
    }

    /// Returns the records in at most `count` parts (B3).
    pub(super) fn parts(&mut self, count: usize) -> impl Iterator<Item = Part<'_>> {
        let Self { pieces, places, .. } = self;
        let pieces = &*pieces;
        let each = places.len().div_ceil(count.max(1)).max(1);
        places.chunks_mut(each).map(move |places| Part { pieces, places })
    }

    pub(super) fn whole(&mut self) -> Part<'_> {
        Part { pieces: &self.pieces, places: &mut self.places }
    }

    /// Divides the records into at most `parts` parts, and sorts each part by key on its own
    /// thread. The threads end before this function returns. Returns the indexes of each part's
    /// records. Fails with `Io` if a thread cannot be started.
    pub(super) fn sort(&mut self, parts: usize) -> Result<Vec<Range<usize>>> {
        let common = common_bytes(&self.pieces, &self.places);
        let (mut sorted, mut count) = (Vec::new(), 0);
        std::thread::scope(|scope| {
            for mut part in self.parts(parts) {
                let start = count;
                count += part.places.len();
                sorted.push(start..count);
                if sorted.len() == parts {
                    part.sort_behind(common);
                    continue;
                }
                let thread = std::thread::Builder::new().name("cheetah-sort".into());
                let begun = thread.spawn_scoped(scope, move || part.sort_behind(common));
                begun.map_err(|error| Error::io("start", "a thread that sorts", error))?;
            }
            Ok(sorted)
        })
    }

    /// Returns whether record `one` is before record `other`, after [`sort`](Self::sort).
    pub(super) fn is_before(&self, one: usize, other: usize) -> bool {
        let (Some(one), Some(other)) = (self.places.get(one), self.places.get(other)) else { return false };
        let key = |place| key_of(&self.pieces, place);
        one.prefix < other.prefix || (one.prefix == other.prefix && key(one) < key(other))
    }

    /// Prefetches the bytes of the records from `no` on. Without this the processor would wait for
    /// each record separately.
    pub(super) fn fetch(&self, no: usize) {
        fetch(&self.pieces, &self.places, no);
    }

    /// Key and value of a record.
    pub(super) fn record(&self, no: usize) -> (&[u8], &[u8]) {
        self.places.get(no).map_or((&[], &[]), |place| record_of(&self.pieces, place))
    }

    /// Takes over the guaranteed piece if `gone`, the other buffer of the same sorter, had it.
    pub(super) fn replace(&mut self, gone: Self) {
        self.has_certain_piece |= gone.has_certain_piece;
    }

    /// The bytes of memory that the buffer has. The guaranteed piece counts even before it is
    /// allocated.
    pub(super) fn bytes(&self) -> usize {
        let certain = if self.has_certain_piece && self.pieces.is_empty() { self.piece_bytes } else { 0 };
        let places_bytes = self.places.capacity() * size_of::<Place>();
        certain + self.pieces.iter().map(Vec::capacity).sum::<usize>() + places_bytes
    }

    /// Removes all records, and keeps as much memory as the share allows.
    pub(super) fn clear(&mut self, share: &Share) {
        self.places.clear();
        let piece_bytes = self.piece_bytes;
        self.pieces.retain(|piece| piece.capacity() <= piece_bytes);
        if share.is_too_large() {
            self.pieces.truncate(1);
            self.places = Vec::new();
        }
        self.pieces.iter_mut().for_each(Vec::clear);
        self.filling = 0;
    }
}

#[derive(Debug)]
pub(super) struct Part<'b> {
    pieces: &'b [Vec<u8>],
    places: &'b mut [Place],
}

impl Part<'_> {
    pub(super) fn sort(&mut self) {
        self.sort_behind(common_bytes(self.pieces, self.places));
    }

    /// Like [`sort`](Self::sort), if all keys begin with the same `common` bytes.
    fn sort_behind(&mut self, common: usize) {
        let Self { pieces, places } = self;
        let key = |place: &Place| key_of(pieces, place).get(common..).unwrap_or_default();
        places.iter_mut().for_each(|place| place.prefix = prefix_of(key(place)));
        places.sort_unstable_by(|a, b| a.prefix.cmp(&b.prefix).then_with(|| key(a).cmp(key(b))));
    }

    /// Calls `f` with key and value of each record, in their current order.
    pub(super) fn each(&self, mut f: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        for (no, place) in self.places.iter().enumerate() {
            if no % FETCHED_TOGETHER == 0 {
                fetch(self.pieces, self.places, no);
            }
            let (key, value) = record_of(self.pieces, place);
            f(key, value)?;
        }
        Ok(())
    }
}

/// See [`Buffer::fetch`].
fn fetch(pieces: &[Vec<u8>], places: &[Place], no: usize) {
    for place in places.iter().skip(no).take(FETCHED_TOGETHER) {
        let byte = pieces.get(place.piece as usize).and_then(|piece| piece.get(place.at as usize));
        std::hint::black_box(byte.copied());
    }
}

/// Key and value of the record at a place.
fn record_of<'p>(pieces: &'p [Vec<u8>], place: &Place) -> (&'p [u8], &'p [u8]) {
    let from = place.at as usize;
    let bytes = pieces.get(place.piece as usize).and_then(|piece| piece.get(from..from + place.len as usize));
    bytes.unwrap_or_default().split_at(place.key_len as usize)
}

fn key_of<'p>(pieces: &'p [Vec<u8>], place: &Place) -> &'p [u8] {
    let from = place.at as usize;
    let key =
        pieces.get(place.piece as usize).and_then(|piece| piece.get(from..from + place.key_len as usize));
    key.unwrap_or_default()
}

fn common_bytes(pieces: &[Vec<u8>], places: &[Place]) -> usize {
    let Some((first, others)) = places.split_first() else { return 0 };
    let first = key_of(pieces, first);
    let mut common = first.len();
    for place in others {
        let same = first.iter().zip(key_of(pieces, place)).take(common).take_while(|(a, b)| a == b);
        common = same.count();
        if common == 0 {
            break;
        }
    }
    common
}

fn prefix_of(key: &[u8]) -> u128 {
    let mut prefix = [0u8; PREFIX_BYTES];
    prefix.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    u128::from_be_bytes(prefix)
}

//! The records of a sorter that are in memory.
//!
//! Invariants
//!   B1  Pieces and places are counted in the share before they are allocated.
//!   B2  A record lies in one piece as a whole, its key first.
//!   B3  Parts of a buffer have different records, so each may be sorted by a thread of its own.

use super::memory::Share;

/// Bytes of the key that are compared without looking at it: those behind what all keys have in common.
const PREFIX_BYTES: usize = 16;
/// Records whose bytes are fetched together: they come in the order of their keys, and lie in that in which they were added.
const FETCHED_TOGETHER: usize = 64;
/// Part of a piece that the places of the first records take.
const FIRST_PLACES_PART: usize = 128;

/// Where a record is, and, from the sort on, a part of its key.
#[derive(Clone, Copy, Debug)]
struct Place {
    prefix: u128,
    piece: u32,
    at: u32,
    key_len: u32,
    len: u32,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Buffer {
    share: Share,
    pieces: Vec<Vec<u8>>,
    /// The piece that is being filled; those behind it are empty.
    filling: usize,
    places: Vec<Place>,
}

impl Buffer {
    pub(super) fn new(share: Share) -> Self {
        Self { share, pieces: Vec::new(), filling: 0, places: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(super) fn count(&self) -> usize {
        self.places.len()
    }

    /// Adds a record, of which key and value come in parts. `false` when there is no room: not if the buffer is empty.
    pub(super) fn push(&mut self, key: &[&[u8]], value: &[&[u8]]) -> bool {
        let bytes_of = |parts: &[&[u8]]| parts.iter().map(|part| part.len()).sum::<usize>();
        let (key_len, value_len) = (bytes_of(key), bytes_of(value));
        if !self.has_place() || !self.has_room(key_len + value_len) {
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
    fn has_place(&mut self) -> bool {
        if self.places.len() < self.places.capacity() {
            return true;
        }
        let count = (self.share.piece_bytes() / FIRST_PLACES_PART).max(8).max(self.places.len() / 4);
        if !self.take(count * size_of::<Place>()) {
            return false;
        }
        self.places.reserve_exact(count);
        true
    }

    /// Makes sure that the piece that is being filled has room for so many bytes.
    fn has_room(&mut self, bytes: usize) -> bool {
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
        let piece_bytes = self.share.piece_bytes();
        let is_first = self.pieces.is_empty() && bytes <= piece_bytes;
        let more = bytes.max(piece_bytes);
        // The first piece is the sorter's in any case (S2).
        let is_too_large = !self.is_empty() && self.share.is_too_large();
        if !is_first && (is_too_large || !self.take(more)) {
            return false;
        }
        self.pieces.push(Vec::with_capacity(more));
        self.filling = self.pieces.len() - 1;
        true
    }

    fn take(&mut self, bytes: usize) -> bool {
        if self.share.take(bytes) {
            return true;
        }
        if self.is_empty() {
            self.share.take_in_any_case(bytes);
        }
        self.is_empty()
    }

    /// The records in so many parts (B3), or fewer.
    pub(super) fn parts(&mut self, count: usize) -> impl Iterator<Item = Part<'_>> {
        let Self { pieces, places, .. } = self;
        let pieces = &*pieces;
        let each = places.len().div_ceil(count.max(1)).max(1);
        places.chunks_mut(each).map(move |places| Part { pieces, places })
    }

    /// Puts the records in the order of their keys.
    pub(super) fn sort(&mut self) {
        self.parts(1).for_each(|mut part| part.sort());
    }

    /// See [`fetch`].
    pub(super) fn fetch(&self, no: usize) {
        fetch(&self.pieces, &self.places, no);
    }

    /// Key and value of a record.
    pub(super) fn record(&self, no: usize) -> (&[u8], &[u8]) {
        self.places.get(no).map_or((&[], &[]), |place| record_of(&self.pieces, place))
    }

    /// Bytes of memory that it has.
    pub(super) fn bytes(&self) -> usize {
        self.share.bytes()
    }

    /// Forgets all records, and keeps what memory it may.
    pub(super) fn clear(&mut self) {
        self.places.clear();
        let piece_bytes = self.share.piece_bytes();
        self.pieces.retain(|piece| piece.capacity() <= piece_bytes);
        if self.share.is_too_large() {
            self.pieces.truncate(1);
            self.places = Vec::new();
        }
        self.pieces.iter_mut().for_each(Vec::clear);
        self.filling = 0;
        let places_bytes = self.places.capacity() * size_of::<Place>();
        self.share.shrink_to(self.pieces.len().max(1) * piece_bytes + places_bytes);
    }

    /// Lets go of the memory, but not of its share.
    pub(super) fn into_share(self) -> Share {
        self.share
    }
}

/// Some of the records of a buffer.
#[derive(Debug)]
pub(super) struct Part<'b> {
    pieces: &'b [Vec<u8>],
    places: &'b mut [Place],
}

impl Part<'_> {
    /// Puts its records in the order of their keys.
    pub(super) fn sort(&mut self) {
        let Self { pieces, places } = self;
        let common = common_bytes(pieces, places);
        let key = |place: &Place| key_of(pieces, place).get(common..).unwrap_or_default();
        places.iter_mut().for_each(|place| place.prefix = prefix_of(key(place)));
        places.sort_unstable_by(|a, b| a.prefix.cmp(&b.prefix).then_with(|| key(a).cmp(key(b))));
    }

    /// Hands key and value of each record to `f`, in the order in which they are now.
    pub(super) fn each<E>(&self, mut f: impl FnMut(&[u8], &[u8]) -> Result<(), E>) -> Result<(), E> {
        for (no, place) in self.places.iter().enumerate() {
            fetch(self.pieces, self.places, no);
            let (key, value) = record_of(self.pieces, place);
            f(key, value)?;
        }
        Ok(())
    }
}

/// To be called with each number from 0 on before the record is asked for, once they are sorted: otherwise the processor would wait for
/// the bytes of each one by itself.
fn fetch(pieces: &[Vec<u8>], places: &[Place], no: usize) {
    if no % FETCHED_TOGETHER == 0 {
        for place in places.iter().skip(no).take(FETCHED_TOGETHER) {
            let byte = pieces.get(place.piece as usize).and_then(|piece| piece.get(place.at as usize));
            std::hint::black_box(byte.copied());
        }
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

/// How many bytes all keys begin with in common.
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

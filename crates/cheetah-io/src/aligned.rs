//! Buffers for I/O that start at a multiple of [`ALIGN_BYTES`]. Devices and the page cache work in
//! blocks of that size, and I/O that bypasses the page cache requires such buffers.
//!
//! Invariants
//!   A1  A buffer with a capacity of at least [`ALIGN_BYTES`] is aligned. A smaller one need not
//!       be: it is too short for aligned I/O.
//!   A2  A buffer moves only when it grows beyond its capacity, or is shrunk.

use std::ops::{Deref, DerefMut};

/// The alignment of buffers in bytes.
pub const ALIGN_BYTES: usize = 4096;

/// An aligned byte vector. Its heap allocation has extra bytes for the alignment.
#[derive(Default, Debug)]
pub struct AlignedBytes {
    /// `start` unused bytes, followed by the content.
    bytes: Vec<u8>,
    start: usize,
}

impl AlignedBytes {
    /// Creates an empty buffer with a capacity of `capacity` bytes.
    pub fn with_capacity(capacity: usize) -> Self {
        let mut bytes = Vec::<u8>::with_capacity(Self::memory_bytes(capacity));
        let address = bytes.as_ptr().addr();
        let start = if capacity < ALIGN_BYTES { 0 } else { address.next_multiple_of(ALIGN_BYTES) - address };
        bytes.resize(start, 0);
        Self { bytes, start }
    }

    /// Returns the memory of a buffer with this capacity.
    pub fn memory_bytes(capacity: usize) -> usize {
        capacity + if capacity < ALIGN_BYTES { 0 } else { ALIGN_BYTES - 1 }
    }

    /// The number of bytes that fit without moving the buffer.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity() - self.start
    }

    /// Makes it empty, and keeps its memory.
    pub fn clear(&mut self) {
        self.bytes.truncate(self.start);
    }

    /// Truncates it to `len` bytes, or appends zeros.
    pub fn resize(&mut self, len: usize) {
        self.reserve(len);
        self.bytes.resize(self.start + len, 0);
    }

    /// Adds bytes at the end.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.reserve(self.len() + bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    /// Makes the capacity at least `capacity` bytes. If the capacity grows, it at least doubles.
    pub fn reserve(&mut self, capacity: usize) {
        if capacity > self.capacity() {
            self.move_to(capacity.max(2 * self.capacity()));
        }
    }

    /// Reduces the capacity to `capacity` bytes, or to the length of the content if that is more.
    pub fn shrink_to(&mut self, capacity: usize) {
        let capacity = capacity.max(self.len());
        if Self::memory_bytes(capacity) < self.bytes.capacity() {
            self.move_to(capacity);
        }
    }

    fn move_to(&mut self, capacity: usize) {
        let mut moved = Self::with_capacity(capacity);
        moved.bytes.extend_from_slice(self);
        *self = moved;
    }
}

impl Deref for AlignedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }
}

impl DerefMut for AlignedBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.start..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn is_aligned(bytes: &AlignedBytes) -> bool {
        bytes.as_ptr().addr() % ALIGN_BYTES == 0
    }

    #[test]
    fn a_buffer_of_some_size_is_aligned_and_stays_where_it_is_while_it_has_room() {
        for capacity in [ALIGN_BYTES, ALIGN_BYTES + 1, 100_000, 1 << 20] {
            let mut bytes = AlignedBytes::with_capacity(capacity);
            let place = bytes.as_ptr();
            assert!(is_aligned(&bytes) && bytes.is_empty() && bytes.capacity() >= capacity);
            bytes.resize(capacity);
            bytes.clear();
            bytes.extend_from_slice(&vec![7; capacity]);
            assert_eq!((bytes.as_ptr(), bytes.len()), (place, capacity), "A2");
            assert!(bytes.bytes.capacity() <= AlignedBytes::memory_bytes(capacity) + 64);
        }
    }

    #[test]
    fn it_behaves_like_a_vector() {
        let mut rng = Rng::new(1);
        let (mut bytes, mut model) = (AlignedBytes::default(), Vec::<u8>::new());
        for _ in 0..5000 {
            let len = rng.below(20_000) as usize;
            match rng.below(20) {
                0 => {
                    bytes.clear();
                    model.clear();
                }
                1 => bytes.shrink_to(len),
                2..4 => {
                    bytes.resize(len);
                    model.resize(len, 0);
                }
                4 => {
                    bytes.iter_mut().for_each(|byte| *byte ^= 1);
                    model.iter_mut().for_each(|byte| *byte ^= 1);
                }
                _ => {
                    let more = rng.bytes(len / 20);
                    bytes.extend_from_slice(&more);
                    model.extend_from_slice(&more);
                }
            }
            assert!(*bytes == *model);
            assert!(bytes.capacity() < ALIGN_BYTES || is_aligned(&bytes), "A1");
        }
    }

    #[test]
    fn memory_that_is_not_needed_is_given_back() {
        let mut bytes = AlignedBytes::with_capacity(1 << 20);
        bytes.extend_from_slice(&[3; 10_000]);
        bytes.shrink_to(8 << 10);
        assert_eq!((bytes.len(), bytes[9_999]), (10_000, 3));
        assert!(bytes.capacity() < 20_000 && is_aligned(&bytes));
    }
}

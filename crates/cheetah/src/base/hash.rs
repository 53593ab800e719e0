//! The hash functions of the engine: of keys for the latches and locks that represent them, and of
//! numbers for maps.
//!
//! Both functions are fast and the same in every run, which also makes failed tests repeatable.
//! This is safe, although users choose the keys:
//!   - The keys of maps are numbers that the engine assigns, or hashes of users' keys. Equal hashes
//!     share one element, so no choice of keys makes a map slow.
//!   - Users' keys with the same hash share a lock or a latch. They wait for each other, but the
//!     result is correct. An attacker who chooses such keys slows down only transactions on the
//!     attacker's own rows.
//!   - CHECK TABLE compares sums of hashes. An attacker who chooses keys for this purpose can only
//!     hide a difference in the attacker's own rows.
//!
//! A map whose keys are users' keys or numbers from outside the engine needs the standard library's
//! hasher, which has a secret. Hashes are not written to files.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A map with more slots is shrunk when less than 1/`SHRUNK_BELOW_PART` of them is used.
const SHRUNK_ABOVE: usize = 64;
const SHRUNK_BELOW_PART: usize = 8;

/// A map whose keys are numbers that the engine assigns.
pub(crate) type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<FastHasher>>;

pub(crate) type FastSet<K> = HashSet<K, BuildHasherDefault<FastHasher>>;

/// Bytes that a map takes for its slots, used or not.
pub(crate) fn map_bytes<K, V>(map: &FastMap<K, V>) -> usize {
    // One in eight slots is never used. Each slot has a byte in addition to its element.
    map.capacity() / 7 * 8 * (size_of::<(K, V)>() + 1)
}

pub(crate) fn shrink_map<K: Eq + Hash, V>(map: &mut FastMap<K, V>) {
    if map.capacity() > SHRUNK_ABOVE && map.len() < map.capacity() / SHRUNK_BELOW_PART {
        map.shrink_to(2 * map.len());
    }
}

/// A 64-bit hash that represents a key of the tree or table with the ID `of`.
pub(crate) fn hash_key(of: u32, key: &[u8]) -> u64 {
    let mut hash = fold(0x9e37_79b9_7f4a_7c15 ^ u64::from(of), 0xd6e8_feb8_6659_fd93 ^ key.len() as u64);
    let mut chunks = key.chunks_exact(8);
    for chunk in &mut chunks {
        hash = fold(hash ^ word(chunk), 0xa076_1d64_78bd_642f);
    }
    fold(hash ^ word(chunks.remainder()), 0xe703_7ed1_a0b4_28db)
}

pub(crate) fn hash_number(number: u64) -> u64 {
    fold(0x9e37_79b9_7f4a_7c15 ^ number, 0xa076_1d64_78bd_642f)
}

/// A sum of hashes, independent of their order: lists with the same elements, each the same number
/// of times, have the same sum. Two sums of 64 bits make it very unlikely that different lists have
/// the same sum, unless an attacker chooses the elements.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct HashSum(u64, u64);

impl HashSum {
    /// Adds an element of three parts. Other divisions of the same bytes have a different hash.
    pub(crate) fn add(&mut self, parts: [&[u8]; 3]) {
        let hash = |of| {
            let parts = parts.map(|part| hash_key(of, part));
            parts.into_iter().fold(0u64, |hash, part| hash_number(hash.rotate_left(1) ^ part))
        };
        self.0 = self.0.wrapping_add(hash(1));
        self.1 = self.1.wrapping_add(hash(2));
    }
}

pub(crate) fn shards_count(wanted: usize) -> usize {
    1 << wanted.max(1).ilog2()
}

/// The shard of `hash`, from the bits that maps use least. `shards_count` must be a power of two.
pub(crate) fn shard_index(hash: u64, shards_count: usize) -> usize {
    (hash >> 40) as usize & (shards_count - 1)
}

fn word(bytes: &[u8]) -> u64 {
    match <[u8; 8]>::try_from(bytes) {
        Ok(bytes) => u64::from_le_bytes(bytes),
        Err(_) => bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// Combines both halves of the product: every bit of the input affects every bit of the result.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64 ^ (product >> 64) as u64).wrapping_add(a.rotate_left(32))
}

#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct FastHasher(u64);

impl Hasher for FastHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.write_u64(hash_key(0, bytes));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = hash_number(self.0.rotate_left(1) ^ number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(of: impl Hash) -> u64 {
        let mut hasher = FastHasher::default();
        of.hash(&mut hasher);
        hasher.finish()
    }

    /// The largest number of hashes in one of 1024 slots, with 8 for each slot on average.
    fn most(hashes: impl Iterator<Item = u64>, place: impl Fn(u64) -> u64) -> usize {
        let mut counts = vec![0; 1024];
        hashes.take(8 * 1024).for_each(|hash| counts[place(hash) as usize % 1024] += 1);
        counts.into_iter().max().unwrap_or(0)
    }

    /// A map finds slots by the lowest bits, and distinguishes elements by the highest. Shards are
    /// chosen by other bits.
    fn is_spread(hashes: impl Fn() -> Box<dyn Iterator<Item = u64>>) {
        assert!(most(hashes(), |hash| hash) < 32);
        assert!(most(hashes(), |hash| hash >> 54) < 32);
        assert!(most(hashes(), |hash| shard_index(hash, 1024) as u64) < 32);
    }

    #[test]
    fn numbers_are_spread_also_when_they_have_their_lowest_bits_in_common() {
        for step in [1, 2, 3, 64, 256, 1 << 20, 1 << 32] {
            is_spread(move || Box::new((0..).map(move |number: u64| hash(number * step))));
            is_spread(move || Box::new((0..).map(move |number: u64| hash_number(number * step))));
        }
    }

    #[test]
    fn pairs_and_keys_are_spread() {
        is_spread(|| Box::new((0..).map(|number: u64| hash(((number % 90) as u32, number / 90)))));
        is_spread(|| Box::new((0..).map(|number: u64| hash_key(7, &number.to_be_bytes()))));
        is_spread(|| Box::new((0..).map(|number: u64| hash_key(7, number.to_string().as_bytes()))));
        is_spread(|| Box::new((0..).map(|number: u32| hash_key(number, b"key"))));
    }

    #[test]
    fn keys_that_differ_in_zeros_at_the_end_have_hashes_of_their_own() {
        let keys = [&b""[..], b"\0", b"\0\0", b"\0\0\0\0\0\0\0", b"\0\0\0\0\0\0\0\0", b"\0\0\0\0\0\0\0\0\0"];
        let hashes: std::collections::BTreeSet<_> = keys.iter().map(|key| hash_key(1, key)).collect();
        assert_eq!(hashes.len(), keys.len());
    }
}

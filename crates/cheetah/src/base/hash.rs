//! The hash of the engine: of keys, for latches and locks that stand for them, and of numbers, for
//! maps.
//!
//! Both are fast and the same in every run. That is enough, although users choose the keys:
//!   - Maps have numbers for keys that the engine gives out, or hashes of users' keys. Of a hash
//!     there is one element, so no choice of keys makes a map slow.
//!   - Where a hash stands for users' keys, two keys that share it share a lock or a latch: they
//!     wait for each other, and nothing is wrong. An attacker who looks for such keys slows down
//!     the transactions on his own rows.
//!   - CHECK TABLE compares sums of hashes: an attacker who chooses keys for it can hide a
//!     difference in his own rows only.
//!   - The same in every run, so that a test that has failed can be repeated.
//!
//! A map that has keys of users themselves, or is filled with numbers that come from outside, needs
//! the standard library's hasher, which has a secret. Nothing here is written to a file.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Maps are shrunk that have more places, of which less than the part is in use.
const SHRUNK_ABOVE: usize = 64;
const SHRUNK_BELOW_PART: usize = 8;

/// A map from numbers that the engine gives out.
pub(crate) type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<FastHasher>>;

/// A set of such numbers.
pub(crate) type FastSet<K> = HashSet<K, BuildHasherDefault<FastHasher>>;

/// Bytes that a map takes: for the places that it has, in use or not.
pub(crate) fn map_bytes<K, V>(map: &FastMap<K, V>) -> usize {
    // Of eight places, one is never used; each has a byte beside its element.
    map.capacity() / 7 * 8 * (size_of::<(K, V)>() + 1)
}

/// Gives the memory of a map back that has become small.
pub(crate) fn shrink_map<K: Eq + Hash, V>(map: &mut FastMap<K, V>) {
    if map.capacity() > SHRUNK_ABOVE && map.len() < map.capacity() / SHRUNK_BELOW_PART {
        map.shrink_to(2 * map.len());
    }
}

/// A hash of 64 good bits that stands for a key of a tree or table, whose number is `of`.
pub(crate) fn hash_key(of: u32, key: &[u8]) -> u64 {
    let mut hash = fold(0x9e37_79b9_7f4a_7c15 ^ u64::from(of), 0xd6e8_feb8_6659_fd93 ^ key.len() as u64);
    let mut chunks = key.chunks_exact(8);
    for chunk in &mut chunks {
        hash = fold(hash ^ word(chunk), 0xa076_1d64_78bd_642f);
    }
    fold(hash ^ word(chunks.remainder()), 0xe703_7ed1_a0b4_28db)
}

/// A hash of 64 good bits.
pub(crate) fn hash_number(number: u64) -> u64 {
    fold(0x9e37_79b9_7f4a_7c15 ^ number, 0xa076_1d64_78bd_642f)
}

/// A sum of hashes, which does not depend on their order: two lists that have the same one have the
/// same elements, each as often. Two sums of 64 bits each, so that lists which differ hardly ever
/// have the same. No defence against elements that are chosen on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct HashSum(u64, u64);

impl HashSum {
    /// Adds an element, whose parts are told apart.
    pub(crate) fn add(&mut self, parts: [&[u8]; 3]) {
        let hash = |of| {
            let parts = parts.map(|part| hash_key(of, part));
            parts.into_iter().fold(0u64, |hash, part| hash_number(hash.rotate_left(1) ^ part))
        };
        self.0 = self.0.wrapping_add(hash(1));
        self.1 = self.1.wrapping_add(hash(2));
    }
}

/// So many shards or fewer: a power of two.
pub(crate) fn shards_count(wanted: usize) -> usize {
    1 << wanted.max(1).ilog2()
}

/// The number of the shard of `hash`, of `shards_count` (a power of two); by bits that a map uses
/// least.
pub(crate) fn shard_index(hash: u64, shards_count: usize) -> usize {
    (hash >> 40) as usize & (shards_count - 1)
}

fn word(bytes: &[u8]) -> u64 {
    match <[u8; 8]>::try_from(bytes) {
        Ok(bytes) => u64::from_le_bytes(bytes),
        Err(_) => bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// Both halves of the product, so that every bit of the input reaches every bit of the result.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64 ^ (product >> 64) as u64).wrapping_add(a.rotate_left(32))
}

/// The hasher of [`FastMap`].
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

    /// The most hashes that meet in one of 1024 places, of 8 for each place on average.
    fn most(hashes: impl Iterator<Item = u64>, place: impl Fn(u64) -> u64) -> usize {
        let mut counts = vec![0; 1024];
        hashes.take(8 * 1024).for_each(|hash| counts[place(hash) as usize % 1024] += 1);
        counts.into_iter().max().unwrap_or(0)
    }

    /// A map looks for a place by the lowest bits, and tells elements apart by the highest; shards
    /// are chosen by others.
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

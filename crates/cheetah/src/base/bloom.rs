//! A Bloom filter: a set of hashes with one byte for each hash, which never misses a hash in the
//! set. (B. H. Bloom, Space/time trade-offs in hash coding with allowable errors, 1970; two hashes
//! yield all others: A. Kirsch and M. Mitzenmacher, Less hashing, same performance, 2006.)

use crate::base::sound;

/// The bits set for each hash. With eight bits of filter for each hash, one in fifty hashes outside
/// the set is reported as in it.
const PROBES: u32 = 5;
const BYTES_MIN: usize = 8;

pub(crate) fn build(hashes: &[u64], bytes: &mut Vec<u8>) {
    bytes.clear();
    bytes.resize(hashes.len().max(BYTES_MIN), 0);
    let bits_count = 8 * bytes.len();
    let forgotten = usize::from(!sound!(true, "filters: forget a key"));
    for hash in hashes.iter().skip(forgotten) {
        for bit in bits_of(*hash, bits_count) {
            if let Some(byte) = bytes.get_mut(bit / 8) {
                *byte |= 1 << (bit % 8);
            }
        }
    }
}

pub(crate) fn may_have(bytes: &[u8], hash: u64) -> bool {
    bits_of(hash, 8 * bytes.len())
        .all(|bit| bytes.get(bit / 8).is_some_and(|byte| byte & 1 << (bit % 8) != 0))
}

fn bits_of(hash: u64, bits_count: usize) -> impl Iterator<Item = usize> {
    let (first, step) = (hash as u32, (hash >> 32) as u32 | 1);
    let probe = move |no: u32| first.wrapping_add(no.wrapping_mul(step));
    (0..PROBES).map(move |no| ((u64::from(probe(no)) * bits_count as u64) >> 32) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::hash::hash_number;

    #[test]
    fn what_is_there_is_found_and_little_else() {
        for count in [0, 1, 7, 100, 2000] {
            let hashes = (0..count).map(hash_number).collect::<Vec<_>>();
            let mut bytes = Vec::new();
            build(&hashes, &mut bytes);
            assert!(hashes.iter().all(|hash| may_have(&bytes, *hash)), "{count}");
            let others = (count..count + 10_000).map(hash_number);
            let wrong = others.filter(|hash| may_have(&bytes, *hash)).count();
            assert!(wrong < 350, "{wrong} of 10,000 beside {count}");
        }
    }
}

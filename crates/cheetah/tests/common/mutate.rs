//! Fuzzing on stable Rust: feeds deterministic mutations of valid bytes to a decoder.
//!
//! This is like libFuzzer without coverage feedback, but runs in every `cargo test`. A seed
//! identifies each mutation on which a decoder panics, overflows or does not return. Bytes with a
//! checksum need a `repair` that recomputes the checksum. Without it, the decoder refuses the
//! mutations, and the code after the checksum is not tested.

use cheetah_io::rng::Rng;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Extreme values for lengths and counts.
const EDGES: [u64; 12] =
    [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, u64::MAX];

/// Calls `decode` with `rounds` mutations of `samples`. `decode` may refuse them but must not
/// panic.
///
/// # Panics
/// Panics with the seed and the bytes in hexadecimal if `decode` panics.
pub(crate) fn survive(
    name: &str,
    samples: &[Vec<u8>],
    rounds: u64,
    repair: impl Fn(&mut Vec<u8>),
    decode: impl Fn(&[u8]),
) {
    for seed in 0..rounds {
        let mut rng = Rng::new(seed);
        let mut bytes = samples[rng.below(samples.len() as u64) as usize].clone();
        for _ in 0..=rng.below(4) {
            mutate(&mut rng, &mut bytes, samples);
        }
        if rng.chance(0.9) {
            repair(&mut bytes);
        }
        let survived = catch_unwind(AssertUnwindSafe(|| decode(&bytes)));
        assert!(survived.is_ok(), "{name} panics on the bytes of seed {seed}:\n{}", hex(&bytes));
    }
}

fn mutate(rng: &mut Rng, bytes: &mut Vec<u8>, samples: &[Vec<u8>]) {
    let at = position(rng, bytes.len());
    let magnitude = rng.below(7);
    let length = 1 + rng.below(1 << magnitude) as usize;
    let end = (at + length).min(bytes.len());
    match rng.below(9) {
        0 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
        1 if at < bytes.len() => bytes[at] = rng.next_u64() as u8,
        2 => overwrite_number(rng, bytes, at),
        3 => bytes.truncate(at),
        4 => drop(bytes.drain(at..end)),
        5 => drop(bytes.splice(at..at, rng.bytes(length))),
        6 => {
            let piece = bytes[at..end].to_vec();
            let to = position(rng, bytes.len());
            bytes.splice(to..to, piece);
        }
        7 => bytes[at..end].fill(if rng.chance(0.5) { 0 } else { 0xff }),
        _ => {
            let other = &samples[rng.below(samples.len() as u64) as usize];
            let from = at.min(other.len());
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
    }
}

/// A random position. Half of the positions are near the start, where headers are.
fn position(rng: &mut Rng, length: usize) -> usize {
    let limit = if rng.chance(0.5) { length.min(64) } else { length };
    rng.below(limit as u64 + 1) as usize
}

fn overwrite_number(rng: &mut Rng, bytes: &mut [u8], at: usize) {
    let edge = EDGES[rng.below(EDGES.len() as u64) as usize].wrapping_add(rng.below(3)).wrapping_sub(1);
    let encoded = if rng.chance(0.8) { edge.to_le_bytes() } else { edge.to_be_bytes() };
    let width = [1, 2, 4, 8][rng.below(4) as usize];
    bytes[at..].iter_mut().zip(&encoded[..width]).for_each(|(target, &byte)| *target = byte);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

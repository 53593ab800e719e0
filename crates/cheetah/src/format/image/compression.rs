//! Compressing bytes: Zstandard or LZ4.

use crate::format::bytes::{ensure, Defect};
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::CParameter;

/// Up to this level Zstandard takes the first match that it finds, whatever it costs.
const FAST_LEVEL_MAX: i32 = 1;
/// Shortest match then. Zstandard's own choice for small pages is 5: among digits five repeat by chance all the time, and
/// to name such a match takes more bits than the digits, and more time to read.
const FAST_MATCH_BYTES_MIN: u32 = 6;
/// What Zstandard takes to decompress, whatever the level was.
const DECOMPRESSOR_BYTES: usize = 96 << 10;
/// The level of a compressor that none is set for.
const UNSET: i32 = i32::MIN;

/// How bytes are compressed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Codec {
    /// Not at all.
    None,
    /// LZ4 block: fastest.
    Lz4,
    /// Zstandard: smallest.
    Zstd,
}

impl Codec {
    /// The number that stands for it on disk.
    pub fn code(self) -> u8 {
        match self {
            Codec::None => 0,
            Codec::Lz4 => 1,
            Codec::Zstd => 2,
        }
    }

    /// The codec of that number.
    pub fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Codec::None),
            1 => Some(Codec::Lz4),
            2 => Some(Codec::Zstd),
            _ => None,
        }
    }
}

/// A table's choice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Compression {
    /// The codec.
    pub codec: Codec,
    /// Zstandard's level; others ignore it.
    pub level: i32,
}

impl Default for Compression {
    /// Zstandard level 1: on content regrouped by column, others gain a tenth at most, for 7 to 70 times the time
    /// (docs/innodb.md).
    fn default() -> Self {
        Self { codec: Codec::Zstd, level: 1 }
    }
}

/// The memory of Zstandard: some 400 KiB once used, up to 2 MiB where the level is high.
#[derive(Default)]
pub(super) struct Contexts {
    /// With the level that it is set to.
    compressor: Option<(i32, Compressor<'static>)>,
    decompressor: Option<Decompressor<'static>>,
}

impl Contexts {
    /// What they take now.
    pub(super) fn memory_bytes(&mut self) -> usize {
        let compressor = self.compressor.as_mut().map_or(0, |(_, used)| used.context_mut().sizeof());
        compressor + self.decompressor.as_ref().map_or(0, |_| DECOMPRESSOR_BYTES)
    }
}

/// Appends `raw` to `out` as `wanted` if that saves at least 5 %, plainly otherwise; says which.
pub(super) fn compress(contexts: &mut Contexts, raw: &[u8], wanted: Compression, out: &mut Vec<u8>) -> Codec {
    let start = out.len();
    let allowed = raw.len() - raw.len() / 20;
    out.resize(start + allowed, 0);
    let target = &mut out[start..];
    let written = match wanted.codec {
        Codec::None => None,
        Codec::Lz4 => compress_lz4(raw, target),
        Codec::Zstd => compress_zstd(&mut contexts.compressor, raw, wanted.level, target),
    };
    if let Some(bytes) = written {
        out.truncate(start + bytes);
        return wanted.codec;
    }
    out.truncate(start);
    out.extend_from_slice(raw);
    Codec::None
}

/// Fills `raw` with what `compress` was given; `raw` has the length it had then.
pub(super) fn decompress(
    contexts: &mut Contexts,
    codec: Codec,
    payload: &[u8],
    raw: &mut [u8],
) -> Result<(), Defect> {
    let filled = match codec {
        Codec::None => {
            ensure(payload.len() == raw.len(), "plain content of the wrong length")?;
            raw.copy_from_slice(payload);
            Some(raw.len())
        }
        Codec::Lz4 => lz4_flex::block::decompress_into(payload, raw).ok(),
        Codec::Zstd => decompress_zstd(&mut contexts.decompressor, payload, raw),
    };
    ensure(filled == Some(raw.len()), "content does not decompress")
}

/// LZ4 wants room for its worst case, so it gets a buffer of its own.
fn compress_lz4(raw: &[u8], target: &mut [u8]) -> Option<usize> {
    let compressed = lz4_flex::block::compress(raw);
    target.get_mut(..compressed.len())?.copy_from_slice(&compressed);
    Some(compressed.len())
}

fn compress_zstd(
    kept: &mut Option<(i32, Compressor<'static>)>,
    raw: &[u8],
    level: i32,
    target: &mut [u8],
) -> Option<usize> {
    let (known, compressor) = kept.get_or_insert_with(|| (UNSET, Compressor::default()));
    if *known != level {
        *known = UNSET;
        set_level(compressor, level)?;
        *known = level;
    }
    compressor.compress_to_buffer(raw, target).ok()
}

/// Not [`Compressor::set_compression_level`]: that fails after content that did not fit its target.
fn set_level(compressor: &mut Compressor<'static>, level: i32) -> Option<()> {
    compressor.set_parameter(CParameter::CompressionLevel(level)).ok()?;
    // 0 is the level's own choice.
    let shortest = if level <= FAST_LEVEL_MAX { FAST_MATCH_BYTES_MIN } else { 0 };
    compressor.set_parameter(CParameter::MinMatch(shortest)).ok()
}

fn decompress_zstd(
    kept: &mut Option<Decompressor<'static>>,
    payload: &[u8],
    raw: &mut [u8],
) -> Option<usize> {
    if kept.is_none() {
        *kept = Decompressor::new().ok();
    }
    kept.as_mut()?.decompress_to_buffer(payload, raw).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables of different levels share a compressor; what did not fit before it is set must not matter.
    #[test]
    fn a_level_gives_the_same_whatever_was_compressed_before() {
        let text: Vec<u8> =
            (0..3000u32).flat_map(|i| format!("{} {}; ", i * i % 977, i % 31).into_bytes()).collect();
        let mut noise = vec![0; 4000];
        cheetah_io::rng::Rng::new(1).fill(&mut noise);
        let mut shared = Contexts::default();
        for level in [1, 19, 1, 9, -5, 3, 19] {
            let wanted = Compression { codec: Codec::Zstd, level };
            let (mut ours, mut alone) = (Vec::new(), Vec::new());
            assert_eq!(compress(&mut shared, &text, wanted, &mut ours), Codec::Zstd);
            assert_eq!(compress(&mut Contexts::default(), &text, wanted, &mut alone), Codec::Zstd);
            assert_eq!(ours, alone, "level {level}");
            assert_eq!(compress(&mut shared, &noise, wanted, &mut Vec::new()), Codec::None);
        }
        assert!(shared.memory_bytes() > 100_000);
    }

    #[test]
    fn every_codec_gives_back_what_it_was_given() {
        let text = b"the same again and ".repeat(50);
        let mut contexts = Contexts::default();
        let mut noise = vec![0; 4000];
        cheetah_io::rng::Rng::new(1).fill(&mut noise);
        for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
            for level in [1, 19, -5] {
                for (raw, compressible) in [(&text[..], true), (&noise[..], false), (&[], false)] {
                    let mut out = b"before".to_vec();
                    let used = compress(&mut contexts, raw, Compression { codec, level }, &mut out);
                    assert_eq!(used == Codec::None, !compressible || codec == Codec::None);
                    let mut back = vec![0; raw.len()];
                    assert_eq!(decompress(&mut contexts, used, &out[6..], &mut back), Ok(()));
                    assert_eq!(back, raw);
                    assert!(decompress(&mut contexts, used, &out[6..], &mut vec![0; raw.len() + 1]).is_err());
                }
            }
        }
    }
}

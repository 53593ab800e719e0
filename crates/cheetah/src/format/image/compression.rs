//! Compressing bytes: Zstandard or LZ4.

use super::dictionary::{Dictionary, Primer};
use crate::format::bytes::{codes, ensure, Defect};
use crate::format::contexts;
use zstd::bulk::Compressor;
use zstd::zstd_safe::{CParameter, DCtx};

/// Up to this level Zstandard uses the first match that it finds, even if the match is poor.
const FAST_LEVEL_MAX: i32 = 1;
/// The minimum length of a match at levels up to `FAST_LEVEL_MAX`. Zstandard's default for small
/// pages is 5. But in text made of digits, five digits often repeat by chance, and encoding this
/// match takes more bits than the digits themselves, and more time to decode.
const FAST_MATCH_BYTES_MIN: u32 = 6;
/// From this level on, content is also compressed at `FAST_LEVEL_MAX`, and the smaller result is
/// used. This adds a quarter of the time at level 6, and a twelfth at level 12 (decision 30).
/// Otherwise a high level could result in larger images of digits than level 1, because its short
/// matches cost more than they save.
const DENSE_LEVEL_MIN: i32 = 6;
/// The maximum length of content for which Zstandard uses a dictionary's tables in place at the
/// fast levels. At other levels the maximum is larger.
const ATTACHED_BYTES_MAX: usize = 8 << 10;
/// The memory that Zstandard needs to decompress, at any level.
const DECOMPRESSOR_BYTES: usize = 96 << 10;
/// The level of a compressor whose level is not set yet.
const UNSET: i32 = i32::MIN;

/// How bytes are compressed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Codec {
    /// No compression.
    None,
    /// LZ4 block: fastest.
    Lz4,
    /// Zstandard: smallest.
    Zstd,
}

codes!(Codec { None = 0, Lz4 = 1, Zstd = 2 });

/// The compression setting of a table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Compression {
    /// The codec.
    pub codec: Codec,
    /// Zstandard's level; other codecs ignore it.
    pub level: i32,
}

impl Default for Compression {
    /// The default is Zstandard level 1. On content regrouped by column, other levels save at most
    /// a tenth, for 7 to 70 times the time (docs/users/innodb.md).
    fn default() -> Self {
        Self { codec: Codec::Zstd, level: 1 }
    }
}

/// The contexts of Zstandard. They take about 400 KiB once used, up to 2 MiB if the level is high,
/// and half a megabyte more once dictionaries were used. They are reused (see the module
/// `contexts`).
///
/// For longer contents Zstandard copies a dictionary's tables, which takes several times the
/// memory. Zstandard frees that memory after compressing a hundred contents that need less, and if
/// one compressor were used for all contents, this would fragment the allocator's memory with holes
/// of half a megabyte. So a thread that compresses long contents has a second compressor.
#[derive(Default)]
pub(super) struct Contexts {
    compressor: Option<(i32, Compressor<'static>)>,
    /// The compressor for long contents with a dictionary.
    copying_compressor: Option<Compressor<'static>>,
    decompressor: Option<DCtx<'static>>,
}

impl Drop for Contexts {
    fn drop(&mut self) {
        let compressor = self.compressor.take().map(|(_, used)| used);
        compressor.into_iter().chain(self.copying_compressor.take()).for_each(contexts::give_compressor);
        self.decompressor.take().into_iter().for_each(contexts::give_decompressor);
    }
}

impl Contexts {
    pub(super) fn memory_bytes(&mut self) -> usize {
        let alone = self.compressor.as_mut().map(|(_, used)| used);
        let compressors = alone.into_iter().chain(&mut self.copying_compressor);
        compressors.map(|used| used.context_mut().sizeof()).sum::<usize>()
            + self.decompressor.as_ref().map_or(0, |_| DECOMPRESSOR_BYTES)
    }
}

/// Appends `raw` to `out`. Compresses it as `wanted` if that saves at least 5 %. Returns the codec
/// used. A dictionary is used only with Zstandard.
pub(super) fn compress(
    contexts: &mut Contexts,
    raw: &[u8],
    wanted: Compression,
    dictionary: Option<&Primer>,
    out: &mut Vec<u8>,
) -> Codec {
    let start = out.len();
    let allowed = raw.len() - raw.len() / 20;
    out.resize(start + allowed, 0);
    let target = &mut out[start..];
    let written = match (wanted.codec, dictionary) {
        (Codec::None, _) => None,
        (Codec::Lz4, _) => compress_lz4(raw, target),
        (Codec::Zstd, None) if wanted.level >= DENSE_LEVEL_MIN => {
            compress_smallest(&mut contexts.compressor, raw, wanted.level, target)
        }
        (Codec::Zstd, None) => compress_zstd(&mut contexts.compressor, raw, wanted.level, target),
        (Codec::Zstd, Some(dictionary)) => compress_beside(contexts, raw, dictionary, target),
    };
    if let Some(bytes) = written {
        out.truncate(start + bytes);
        return wanted.codec;
    }
    out.truncate(start);
    out.extend_from_slice(raw);
    Codec::None
}

/// Fills `raw` with the bytes that were passed to `compress`, with the same dictionary. `raw` must
/// have their length.
pub(super) fn decompress(
    contexts: &mut Contexts,
    codec: Codec,
    dictionary: Option<&Dictionary>,
    payload: &[u8],
    raw: &mut [u8],
) -> Result<(), Defect> {
    let filled = match (codec, dictionary) {
        (Codec::None, _) => {
            ensure(payload.len() == raw.len(), "plain content of the wrong length")?;
            raw.copy_from_slice(payload);
            Some(raw.len())
        }
        (Codec::Lz4, _) => lz4_flex::block::decompress_into(payload, raw).ok(),
        (Codec::Zstd, dictionary) => decompress_zstd(&mut contexts.decompressor, payload, dictionary, raw),
    };
    ensure(filled == Some(raw.len()), "content does not decompress")
}

/// LZ4 needs a target of its worst-case size, so it compresses into a separate buffer.
fn compress_lz4(raw: &[u8], target: &mut [u8]) -> Option<usize> {
    let compressed = lz4_flex::block::compress(raw);
    target.get_mut(..compressed.len())?.copy_from_slice(&compressed);
    Some(compressed.len())
}

/// Like [`compress_zstd`], at `level` or at `FAST_LEVEL_MAX`, whichever result is smaller.
fn compress_smallest(
    kept: &mut Option<(i32, Compressor<'static>)>,
    raw: &[u8],
    level: i32,
    target: &mut [u8],
) -> Option<usize> {
    let dense = compress_zstd(kept, raw, level, target);
    let mut fast = vec![0; dense.map_or(target.len(), |bytes| bytes.saturating_sub(1))];
    let Some(bytes) = compress_zstd(kept, raw, FAST_LEVEL_MAX, &mut fast) else { return dense };
    target.get_mut(..bytes)?.copy_from_slice(fast.get(..bytes)?);
    Some(bytes)
}

fn compress_zstd(
    kept: &mut Option<(i32, Compressor<'static>)>,
    raw: &[u8],
    level: i32,
    target: &mut [u8],
) -> Option<usize> {
    let (known, compressor) = kept.get_or_insert_with(|| (UNSET, contexts::take_compressor()));
    if *known != level {
        *known = UNSET;
        set_level(compressor, level)?;
        *known = level;
    }
    compressor.compress_to_buffer(raw, target).ok()
}

/// Compresses with the level of the dictionary.
fn compress_beside(
    contexts: &mut Contexts,
    raw: &[u8],
    dictionary: &Primer,
    target: &mut [u8],
) -> Option<usize> {
    let compressor = if raw.len() > ATTACHED_BYTES_MAX {
        contexts.copying_compressor.get_or_insert_with(contexts::take_compressor)
    } else {
        &mut contexts.compressor.get_or_insert_with(|| (UNSET, contexts::take_compressor())).1
    };
    compressor.context_mut().compress_using_cdict(target, raw, dictionary.compressor()).ok()
}

/// Used instead of [`Compressor::set_compression_level`], which fails after content that did not
/// fit its target.
fn set_level(compressor: &mut Compressor<'static>, level: i32) -> Option<()> {
    compressor.set_parameter(CParameter::CompressionLevel(level)).ok()?;
    // Zero selects the default of the level.
    let shortest = if level <= FAST_LEVEL_MAX { FAST_MATCH_BYTES_MIN } else { 0 };
    compressor.set_parameter(CParameter::MinMatch(shortest)).ok()
}

fn decompress_zstd(
    kept: &mut Option<DCtx<'static>>,
    payload: &[u8],
    dictionary: Option<&Dictionary>,
    raw: &mut [u8],
) -> Option<usize> {
    if kept.is_none() {
        *kept = contexts::take_decompressor();
    }
    let context = kept.as_mut()?;
    match dictionary {
        None => context.decompress(raw, payload).ok(),
        Some(beside) => context.decompress_using_ddict(raw, payload, beside.decompressor()).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::PageId;

    /// Levels share a compressor. Earlier contents, even incompressible ones, must not matter.
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
            assert_eq!(compress(&mut shared, &text, wanted, None, &mut ours), Codec::Zstd);
            assert_eq!(compress(&mut Contexts::default(), &text, wanted, None, &mut alone), Codec::Zstd);
            assert_eq!(ours, alone, "level {level}");
            assert_eq!(compress(&mut shared, &noise, wanted, None, &mut Vec::new()), Codec::None);
        }
        assert!(shared.memory_bytes() > 100_000);
    }

    /// With any content, a denser level is never larger.
    #[test]
    fn dense_levels_are_never_larger_than_the_fast_one() {
        let mut rng = cheetah_io::rng::Rng::new(5);
        let digits: Vec<u8> = (0..16_000).map(|_| b'0' + rng.below(10) as u8).collect();
        let numbers: Vec<u8> = (0..4000u32).flat_map(|i| format!("text {i}").into_bytes()).collect();
        let mut contexts = Contexts::default();
        for raw in [&digits, &numbers] {
            let sizes = [1, 6, 12, 15, 19].map(|level| {
                let mut out = Vec::new();
                let codec =
                    compress(&mut contexts, raw, Compression { codec: Codec::Zstd, level }, None, &mut out);
                let mut back = vec![0; raw.len()];
                assert_eq!(decompress(&mut contexts, codec, None, &out, &mut back), Ok(()));
                assert_eq!(&back, raw);
                out.len()
            });
            assert!(sizes.iter().all(|size| *size <= sizes[0]), "{sizes:?}");
        }
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
                    let used = compress(&mut contexts, raw, Compression { codec, level }, None, &mut out);
                    assert_eq!(used == Codec::None, !compressible || codec == Codec::None);
                    let mut back = vec![0; raw.len()];
                    assert_eq!(decompress(&mut contexts, used, None, &out[6..], &mut back), Ok(()));
                    assert_eq!(back, raw);
                    assert!(decompress(&mut contexts, used, None, &out[6..], &mut vec![0; raw.len() + 1])
                        .is_err());
                }
            }
        }
    }

    /// Zstandard would free the memory that a dictionary needs, and allocate it again.
    #[test]
    fn short_content_leaves_the_memory_for_long_content_alone() {
        let words = |from: u32| -> Vec<u8> {
            (from..from + 4000)
                .flat_map(|i| format!("{} {}, ", i * 7919 % 631, i % 13).into_bytes())
                .collect()
        };
        let wanted = Compression::default();
        let primer = Primer::new(PageId(7), &words(0), wanted).unwrap();
        let mut contexts = Contexts::default();
        let (small, large) = (&words(1)[..2000], words(2));
        let mut once = |raw: &[u8], primer| {
            assert_eq!(compress(&mut contexts, raw, wanted, primer, &mut Vec::new()), Codec::Zstd);
            contexts.memory_bytes()
        };
        (0..300).for_each(|_| _ = once(small, None));
        let taken = once(&large, Some(&primer)).max(once(small, Some(&primer)));
        assert!((0..300).all(|_| once(small, None) == taken));
        assert!((0..300).all(|_| once(small, Some(&primer)) == taken));
    }

    /// Content similar to a dictionary is smaller with it, and can be decompressed only with the
    /// same dictionary.
    #[test]
    fn a_dictionary_gives_back_what_was_compressed_beside_it() {
        let words = |from: u32| -> Vec<u8> {
            (from..from + 400).flat_map(|i| format!("{}-{} ", i * 7919 % 631, i % 13).into_bytes()).collect()
        };
        let mut contexts = Contexts::default();
        let text = words(1);
        for level in [-5, 1, 12] {
            let wanted = Compression { codec: Codec::Zstd, level };
            let primer = Primer::new(PageId(7), &words(0), wanted).unwrap();
            let made = Dictionary::new(PageId(7), &words(0)).unwrap();
            let other = Dictionary::new(PageId(7), &words(300)).unwrap();
            assert!(made.name() == primer.name() && made.name() != other.name());
            let (mut plain, mut out) = (Vec::new(), Vec::new());
            compress(&mut contexts, &text, wanted, None, &mut plain);
            assert_eq!(compress(&mut contexts, &text, wanted, Some(&primer), &mut out), Codec::Zstd);
            assert!(out.len() * 2 < plain.len(), "{} of {}", out.len(), plain.len());
            let mut back = vec![0; text.len()];
            let mut read = |dictionary| {
                let read = decompress(&mut contexts, Codec::Zstd, dictionary, &out, &mut back);
                read.is_ok() && back == text
            };
            assert!(read(Some(&made)));
            assert!(!read(Some(&other)) && !read(None));
            assert!(made.memory_bytes() > 1000 && primer.memory_bytes() > 1000);
            // Without a dictionary the result is the same as before.
            let mut again = Vec::new();
            compress(&mut contexts, &text, wanted, None, &mut again);
            assert_eq!(again, plain);
        }
    }
}

//! The table options that choose the format of images: ROW_FORMAT, KEY_BLOCK_SIZE, PAGE_COMPRESSED,
//! COMPRESSION.
//!
//! Images have no fixed size, so an option that sets a size requests how small images should be. A
//! denser format is a higher level of Zstandard: it costs processor time when a page is written,
//! and none when it is read. docs/users/innodb.md lists the levels and their costs.
//!
//! Invariants
//!   I1  The codec and the level are each chosen by the first of these options that is set:
//!       - codec: COMPRESSION; Zstandard, if another option requests a density; the session's
//!         default.
//!       - level: COMPRESSION_LEVEL; PAGE_COMPRESSION_LEVEL; KEY_BLOCK_SIZE;
//!         ROW_FORMAT=COMPRESSED, which counts as KEY_BLOCK_SIZE=8; the smallest KEY_BLOCK_SIZE of
//!         an index; the session's default.
//!   I2  The table's own options take precedence over those of its indexes: the server leaves a
//!       table's former size at its indexes, and ALTER TABLE could not undo it otherwise.
//!   I3  A table option without effect causes a warning. An index size without effect may not,
//!       because index sizes return with every ALTER TABLE (I2). No option that InnoDB accepts is
//!       refused.

use crate::format::image::{Codec, Compression};

/// Levels of Zstandard by KEY_BLOCK_SIZE (KiB), largest first; 0 is the codec's default. Levels
/// between the default and 12 are not used, because they make images of digits larger
/// (`benches/densities.rs`).
const DENSITIES: [(u64, i32); 5] = [(16, 0), (8, 0), (4, 12), (2, 15), (1, 19)];
/// The size that ROW_FORMAT=COMPRESSED implies, as in InnoDB.
const COMPRESSED_SIZE: u64 = 8;
/// Levels of Zstandard by PAGE_COMPRESSION_LEVEL, from 1 on; 6 is InnoDB's default.
const PAGE_LEVELS: [i32; 9] = [0, 0, 0, 0, 0, 0, 12, 15, 19];

/// The value of ROW_FORMAT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowFormat {
    /// None, or DEFAULT.
    Default,
    /// FIXED.
    Fixed,
    /// DYNAMIC.
    Dynamic,
    /// COMPRESSED.
    Compressed,
    /// REDUNDANT.
    Redundant,
    /// COMPACT.
    Compact,
    /// PAGE.
    Page,
}

impl RowFormat {
    /// The format that InnoDB shows for a table with this value and this KEY_BLOCK_SIZE.
    pub fn shown(self, key_block_size: u64) -> Self {
        match self {
            RowFormat::Default if density(key_block_size).is_some() => RowFormat::Compressed,
            RowFormat::Default | RowFormat::Fixed | RowFormat::Page => RowFormat::Dynamic,
            word => word,
        }
    }
}

/// The options of a definition; 0 means that the option is not set.
#[derive(Clone, Copy, Debug)]
pub struct FormatWords<'a> {
    /// ROW_FORMAT.
    pub row_format: RowFormat,
    /// KEY_BLOCK_SIZE of the table, in KiB.
    pub key_block_size: u64,
    /// The KEY_BLOCK_SIZE of each index; 0 if it has the table's.
    pub index_key_block_sizes: &'a [u32],
    /// PAGE_COMPRESSED.
    pub page_compressed: bool,
    /// PAGE_COMPRESSION_LEVEL.
    pub page_compression_level: u32,
    /// COMPRESSION.
    pub compression: Option<Codec>,
    /// COMPRESSION_LEVEL.
    pub compression_level: u32,
    /// The session's default, for what the table does not set.
    pub default: Compression,
}

/// The format that follows from the options.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableFormat {
    /// How images are compressed; level 0 is the codec's default.
    pub compression: Compression,
    /// Warnings about the options, for the user.
    pub warnings: Vec<String>,
    /// Whether the options are refused: in strict mode only.
    pub refused: bool,
}

impl FormatWords<'_> {
    /// Chooses codec and level. `strict`: invalid options are refused, not just ignored.
    pub fn choose(&self, strict: bool) -> TableFormat {
        let mut warnings = self.impossible(strict);
        let refused = strict && !warnings.is_empty();
        warnings.extend(self.ineffective());
        let codec = self.codec();
        let level = if codec == Codec::Zstd { self.level() } else { 0 };
        TableFormat { compression: Compression { codec, level }, warnings, refused }
    }

    fn codec(&self) -> Codec {
        let asks_for_density = self.page_compressed || self.density().is_some();
        self.compression.unwrap_or(if asks_for_density { Codec::Zstd } else { self.default.codec })
    }

    fn level(&self) -> i32 {
        self.levels().into_iter().find_map(|(_, level)| level).unwrap_or(self.default.level)
    }

    /// The options that may set the level, in order of precedence.
    fn levels(&self) -> [(&'static str, Option<i32>); 3] {
        let own = i32::try_from(self.compression_level).ok().filter(|&level| level != 0);
        let (density_word, density) = self.density().unzip();
        [
            ("COMPRESSION_LEVEL", own),
            ("PAGE_COMPRESSION_LEVEL", self.page_level()),
            (density_word.unwrap_or_default(), density),
        ]
    }

    fn page_level(&self) -> Option<i32> {
        let place = (self.page_compression_level as usize).checked_sub(1)?;
        PAGE_LEVELS.get(place).copied().filter(|_| self.page_compressed)
    }

    /// The level that sizes request, and the option that requests it.
    fn density(&self) -> Option<(&'static str, i32)> {
        let of_indexes = || {
            let sizes = self.index_key_block_sizes.iter().map(|&size| u64::from(size));
            let smallest = sizes.filter(|&size| density(size).is_some()).min()?;
            density(smallest).filter(|_| self.row_format == RowFormat::Default)
        };
        let of_table = density(self.key_block_size).map(|level| ("KEY_BLOCK_SIZE", level));
        let compressed = self.row_format == RowFormat::Compressed;
        of_table
            .or_else(|| density(COMPRESSED_SIZE).filter(|_| compressed).map(|level| ("ROW_FORMAT", level)))
            .or_else(|| of_indexes().map(|level| ("KEY_BLOCK_SIZE", level)))
    }

    /// Warnings about invalid options, in InnoDB's words.
    fn impossible(&self, strict: bool) -> Vec<String> {
        let mut warnings = Vec::new();
        let size = self.key_block_size;
        if size != 0 && density(size).is_none() {
            warnings.push(match strict {
                true => {
                    format!("CHEETAH: invalid KEY_BLOCK_SIZE = {size}. Valid values are [1, 2, 4, 8, 16]")
                }
                false => format!("CHEETAH: ignoring KEY_BLOCK_SIZE={size}."),
            });
        }
        if matches!(self.row_format, RowFormat::Fixed | RowFormat::Page) {
            warnings.push(match strict {
                true => "CHEETAH: invalid ROW_FORMAT specifier.".into(),
                false => "CHEETAH: assuming ROW_FORMAT=DYNAMIC.".into(),
            });
        }
        warnings
    }

    fn ineffective(&self) -> Vec<String> {
        let ignored = |word: &str, reason: &str| format!("CHEETAH ignores the option {word}: {reason}");
        let outweighed = |word: &str, by: &str| match word {
            "COMPRESSION_LEVEL" => ignored(word, "only zstd has levels"),
            _ => ignored(word, &format!("{by} outweighs it")),
        };
        let mut warnings = Vec::new();
        let mut told = self.levels().into_iter().filter_map(|(word, level)| level.map(|_| word));
        let codec = self.codec();
        let first = if codec == Codec::Zstd { told.next().unwrap_or_default() } else { "COMPRESSION" };
        warnings.extend(told.map(|word| outweighed(word, first)));
        if codec == Codec::None && self.page_compressed {
            warnings.push(outweighed("PAGE_COMPRESSED", first));
        }
        if self.page_compression_level != 0 && !self.page_compressed {
            warnings.push(ignored("PAGE_COMPRESSION_LEVEL", "PAGE_COMPRESSED is not set"));
        }
        warnings
    }
}

/// Every format that a table can have, the least dense first, with its KEY_BLOCK_SIZE.
pub(in crate::table) fn offered() -> impl Iterator<Item = (Option<u64>, Compression)> {
    let plain = [Codec::None, Codec::Lz4].map(|codec| (None, Compression { codec, level: 0 }));
    let dense = DENSITIES.iter().skip(1).map(|&(size, level)| {
        let level = if level == 0 { Compression::default().level } else { level };
        (Some(size), Compression { codec: Codec::Zstd, level })
    });
    plain.into_iter().chain(dense)
}

/// None for a size that InnoDB does not have.
fn density(key_block_size: u64) -> Option<i32> {
    DENSITIES.iter().find(|(size, _)| *size == key_block_size).map(|(_, level)| *level)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Compression = Compression { codec: Codec::Zstd, level: 0 };
    const NOTHING: FormatWords<'static> = FormatWords {
        row_format: RowFormat::Default,
        key_block_size: 0,
        index_key_block_sizes: &[],
        page_compressed: false,
        page_compression_level: 0,
        compression: None,
        compression_level: 0,
        default: FAST,
    };

    /// Options that are accepted without a warning, and the level of Zstandard that they select.
    fn check(words: FormatWords<'_>, level: i32) {
        for strict in [false, true] {
            let compression = Compression { codec: Codec::Zstd, level };
            let wanted = TableFormat { compression, warnings: Vec::new(), refused: false };
            assert_eq!(words.choose(strict), wanted, "{words:?}");
        }
    }

    /// Options that are accepted with these warnings.
    fn check_warned(words: FormatWords<'_>, codec: Codec, level: i32, warnings: &[&str]) {
        let wanted: Vec<_> = warnings.iter().map(|text| (*text).to_owned()).collect();
        let compression = Compression { codec, level };
        assert_eq!(words.choose(true), TableFormat { compression, warnings: wanted, refused: false });
    }

    #[test]
    fn row_formats_but_compressed_mean_the_default() {
        for row_format in [RowFormat::Default, RowFormat::Dynamic, RowFormat::Compact, RowFormat::Redundant] {
            check(FormatWords { row_format, ..NOTHING }, 0);
        }
        let compressed = FormatWords { row_format: RowFormat::Compressed, ..NOTHING };
        check(compressed, density(8).unwrap());
        check(FormatWords { key_block_size: 4, ..compressed }, density(4).unwrap());
        check(FormatWords { row_format: RowFormat::Dynamic, ..compressed }, 0);
    }

    #[test]
    fn smaller_blocks_and_higher_page_levels_never_ask_for_less() {
        let levels = |words: Vec<FormatWords<'_>>| -> Vec<_> {
            words.iter().map(|words| words.choose(true).compression.level).collect()
        };
        let sizes = [16, 8, 4, 2, 1].map(|key_block_size| FormatWords { key_block_size, ..NOTHING });
        let page_levels = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(|page_compression_level| FormatWords {
            page_compressed: true,
            page_compression_level,
            ..NOTHING
        });
        for levels in [levels(sizes.to_vec()), levels(page_levels.to_vec())] {
            assert!(levels.is_sorted() && levels.first() < levels.last(), "{levels:?}");
        }
        check(FormatWords { page_compressed: true, ..NOTHING }, 0);
    }

    #[test]
    fn sizes_that_innodb_does_not_have_are_refused_or_ignored() {
        for key_block_size in [3, 5, 32, 1024, u64::MAX] {
            let words = FormatWords { key_block_size, ..NOTHING };
            let strict = words.choose(true);
            assert!(strict.refused && strict.warnings[0].contains("Valid values are [1, 2, 4, 8, 16]"));
            let lax = words.choose(false);
            assert!(!lax.refused && lax.compression == FAST);
            assert_eq!(lax.warnings, [format!("CHEETAH: ignoring KEY_BLOCK_SIZE={key_block_size}.")]);
        }
        for row_format in [RowFormat::Fixed, RowFormat::Page] {
            let words = FormatWords { row_format, ..NOTHING };
            assert!(words.choose(true).refused);
            assert_eq!(words.choose(false).warnings, ["CHEETAH: assuming ROW_FORMAT=DYNAMIC."]);
        }
    }

    #[test]
    fn sizes_of_indexes_count_where_the_table_says_nothing() {
        let words = FormatWords { index_key_block_sizes: &[0, 8, 2, 4], ..NOTHING };
        check(words, density(2).unwrap());
        check(FormatWords { key_block_size: 4, ..words }, density(4).unwrap());
        check(FormatWords { row_format: RowFormat::Dynamic, ..words }, 0);
        check(FormatWords { row_format: RowFormat::Compressed, ..words }, density(8).unwrap());
        check(FormatWords { index_key_block_sizes: &[3, 4, 8192], ..NOTHING }, density(4).unwrap());
    }

    #[test]
    fn the_tables_own_words_outweigh_the_sessions() {
        let lz4 = Compression { codec: Codec::Lz4, level: 7 };
        let words = FormatWords { default: lz4, ..NOTHING };
        assert_eq!(words.choose(true).compression, Compression { codec: Codec::Lz4, level: 0 });
        check(FormatWords { key_block_size: 4, ..words }, density(4).unwrap());
        check(FormatWords { page_compressed: true, ..words }, 7);
        check(FormatWords { compression: Some(Codec::Zstd), ..words }, 7);
        check(
            FormatWords { compression: Some(Codec::Zstd), key_block_size: 4, ..words },
            density(4).unwrap(),
        );
        check(FormatWords { compression_level: 5, ..NOTHING }, 5);
    }

    #[test]
    fn what_has_no_effect_is_warned_about() {
        let both = FormatWords { key_block_size: 4, compression_level: 5, ..NOTHING };
        let warning = "CHEETAH ignores the option KEY_BLOCK_SIZE: COMPRESSION_LEVEL outweighs it";
        check_warned(both, Codec::Zstd, 5, &[warning]);
        let none = FormatWords {
            compression: Some(Codec::None),
            row_format: RowFormat::Compressed,
            page_compressed: true,
            ..NOTHING
        };
        let ignored = |word: &str| format!("CHEETAH ignores the option {word}: COMPRESSION outweighs it");
        check_warned(none, Codec::None, 0, &[&ignored("ROW_FORMAT"), &ignored("PAGE_COMPRESSED")]);
        let lz4 = FormatWords {
            compression: Some(Codec::Lz4),
            compression_level: 9,
            page_compressed: true,
            ..NOTHING
        };
        let warning = "CHEETAH ignores the option COMPRESSION_LEVEL: only zstd has levels";
        check_warned(lz4, Codec::Lz4, 0, &[warning]);
        let level = FormatWords { page_compression_level: 9, ..NOTHING };
        let warning = "CHEETAH ignores the option PAGE_COMPRESSION_LEVEL: PAGE_COMPRESSED is not set";
        check_warned(level, Codec::Zstd, 0, &[warning]);
    }

    #[test]
    fn formats_are_shown_as_innodb_shows_them() {
        use RowFormat::{Compact, Compressed, Default, Dynamic, Fixed, Page, Redundant};
        let shown = |word: RowFormat, size| word.shown(size);
        let defaults = [0, 8, 3].map(|size| shown(Default, size));
        assert_eq!(defaults, [Dynamic, Compressed, Dynamic]);
        let kept = [Dynamic, Compressed, Redundant, Compact];
        assert_eq!(kept.map(|word| shown(word, 8)), kept);
        assert_eq!([Fixed, Page].map(|word| shown(word, 0)), [Dynamic, Dynamic]);
    }
}

//! Chooses the format of a table from the options in its definition.

use crate::barrier::{answer, value};
use crate::callbacks::Callback;
use crate::codes::*;
use crate::tables::codec_of;
use crate::types::*;
use cheetah::server::{FormatWords, RowFormat};
use cheetah::{Compression, Result};

/// Chooses the codec of a table and its level. Passes the faults of the options to the sink as
/// readable messages. `strict`: invalid options are refused instead of ignored.
#[no_mangle]
pub unsafe extern "C" fn cheetah_choose_format(
    words: &CheetahFormatWords,
    strict: u8,
    sink: CheetahTextSink,
    context: *mut c_void,
    format: &mut CheetahFormat,
) -> i32 {
    answer(format, || {
        // SAFETY: by the contract of the crate the argument is initialised.
        let chosen = unsafe { format_words(words) }?.choose(strict != 0);
        let listener = Callback(sink, context);
        chosen.warnings.iter().for_each(|warning| listener.tell(warning));
        let Compression { codec, level } = chosen.compression;
        let refused = u8::from(chosen.refused);
        Ok(CheetahFormat { compression_level: level, compression: codec.code(), refused })
    })
}

/// Returns the `CheetahRowFormat` to show for a table with this ROW_FORMAT and KEY_BLOCK_SIZE.
#[no_mangle]
pub extern "C" fn cheetah_shown_row_format(row_format: u8, key_block_size: u64) -> u8 {
    value(CheetahRowFormat::Dynamic as u8, || {
        let word = row_format_of(row_format).unwrap_or(RowFormat::Default);
        row_format_code(word.shown(key_block_size))
    })
}

fn row_format_of(code: u8) -> Result<RowFormat> {
    meaning!("code of a row format", code, CheetahRowFormat => RowFormat {
        Default, Fixed, Dynamic, Compressed, Redundant, Compact, Page
    })
}

fn row_format_code(row_format: RowFormat) -> u8 {
    number!(row_format, RowFormat => CheetahRowFormat {
        Default, Fixed, Dynamic, Compressed, Redundant, Compact, Page
    })
}

unsafe fn format_words(words: &CheetahFormatWords) -> Result<FormatWords<'_>> {
    let named = (words.names_compression != 0).then_some(words.compression);
    Ok(FormatWords {
        row_format: row_format_of(words.row_format)?,
        key_block_size: words.key_block_size,
        // SAFETY: passed on.
        index_key_block_sizes: unsafe { slice(words.index_key_block_sizes, words.index_count) },
        page_compressed: words.page_compressed != 0,
        page_compression_level: words.page_compression_level,
        compression: named.map(codec_of).transpose()?,
        compression_level: words.compression_level,
        default: Compression { codec: codec_of(words.default_compression)?, level: words.default_level },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: CheetahFormatWords = CheetahFormatWords {
        key_block_size: 0,
        index_key_block_sizes: std::ptr::null(),
        index_count: 0,
        compression_level: 0,
        page_compression_level: 0,
        default_level: 0,
        default_compression: 2,
        compression: 0,
        names_compression: 0,
        page_compressed: 0,
        row_format: 0,
    };

    unsafe extern "C" fn keep(context: *mut c_void, text: CheetahBytes) {
        // SAFETY: the test passes its own list, and the bytes are readable.
        let (to, text) = unsafe { (&mut *context.cast::<Vec<String>>(), text.text()) };
        to.push(text);
    }

    fn choose(words: &CheetahFormatWords) -> (i32, CheetahFormat, Vec<String>) {
        let mut told = Vec::<String>::new();
        let mut format = CheetahFormat { compression_level: -1, compression: 9, refused: 9 };
        // SAFETY: all live on the stack.
        let code = unsafe { cheetah_choose_format(words, 1, keep, (&raw mut told).cast(), &mut format) };
        (code, format, told)
    }

    #[test]
    fn words_are_passed_on_and_warnings_told() {
        let (code, format, told) = choose(&CheetahFormatWords { key_block_size: 3, row_format: 3, ..WORDS });
        assert_eq!((code, format.refused, told.len()), (Code::Ok as i32, 1, 1));
        let named = CheetahFormatWords { compression: 1, names_compression: 1, ..WORDS };
        assert_eq!(choose(&named).1.compression, 1);
        let sizes = [8, 4];
        let words =
            CheetahFormatWords { index_key_block_sizes: sizes.as_ptr(), index_count: sizes.len(), ..WORDS };
        assert!(choose(&words).1.compression_level > 0);
    }

    #[test]
    fn unknown_codes_are_refused() {
        for words in [
            CheetahFormatWords { row_format: 7, ..WORDS },
            CheetahFormatWords { default_compression: 3, ..WORDS },
            CheetahFormatWords { compression: 3, names_compression: 1, ..WORDS },
        ] {
            assert_eq!(choose(&words).0, Code::Limit as i32);
        }
        assert_eq!(cheetah_shown_row_format(200, 0), CheetahRowFormat::Dynamic as u8);
    }
}

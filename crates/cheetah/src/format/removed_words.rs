//! Rows of the table of removed words, as bytes. Each row belongs to a deleted row of a table with
//! a full-text index, and lists the words whose postings are still to be deleted.
//!
//! Invariants
//!   I1  Words are in ascending order without duplicates, and each omits all bytes that it shares
//!       with the previous one. So equal lists have equal bytes, and a reader needs memory for only
//!       one word.
//!
//! Layout    docs/developers/format.md, "Removed words".

use super::bytes::{check_version, ensure, Defect, Reader};
use super::row::{build_row, RowFormatVersion, VarValue};
use super::varint;
use crate::base::{Error, Result, TableId};

/// Name of the table; no database of the server can have this name.
pub const REMOVED_WORDS: &str = "#removed_words";

const VERSION: u8 = 1;
/// Bytes of the table ID at the beginning of a key.
const TABLE_BYTES: usize = 4;

type Parsed<T> = std::result::Result<T, Defect>;

/// The format of its rows: the version of the layout, and the words.
pub fn row_format() -> RowFormatVersion {
    RowFormatVersion { null_bytes: 0, fixed: vec![1], var_count: 1 }
}

/// The prefix of the keys of all rows whose words are in the posting table `postings`.
pub fn key_prefix(postings: TableId) -> [u8; TABLE_BYTES] {
    postings.0.to_be_bytes()
}

/// Appends the key for the row whose clustered key is `row_key`.
pub fn put_key(postings: TableId, row_key: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&key_prefix(postings));
    out.extend_from_slice(row_key);
}

/// Returns the posting table and the clustered key that a key consists of.
pub fn parse_key(key: &[u8]) -> Result<(TableId, &[u8])> {
    match key.split_first_chunk() {
        Some((table, row_key)) => Ok((TableId(u32::from_be_bytes(*table)), row_key)),
        None => Err(damaged(Defect::new("a key without the ID of a table"))),
    }
}

/// Appends the stored row with `words`, the bytes of [`put_word`].
pub fn put_row(words: &[u8], out: &mut Vec<u8>) {
    build_row(&[], &[VERSION], &[VarValue::inline(words)], out);
}

/// Fails if the row is of another layout version. `fixed` holds the fixed columns of the row.
pub fn check_fixed(fixed: &[u8]) -> Result<()> {
    let version = fixed.first().copied().unwrap_or(0);
    check_version("row format of removed words", version.into(), VERSION.into()).map_err(damaged)
}

/// Appends a word, which must be greater than the previous word `last` (I1). `last` is empty for
/// the first word.
pub fn put_word(last: &[u8], word: &[u8], out: &mut Vec<u8>) {
    debug_assert!(last < word, "I1: words ascend");
    let shared = last.iter().zip(word).take_while(|(a, b)| a == b).count();
    let rest = word.get(shared..).unwrap_or_default();
    varint::put(out, shared as u64);
    varint::put(out, rest.len() as u64);
    out.extend_from_slice(rest);
}

/// Calls `each` for every word, in order, until it returns an error. Works on any bytes: `each` is
/// called for the words before a damaged one.
pub fn each_word(bytes: &[u8], mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let (mut fields, mut word) = (Reader::new(bytes), Vec::new());
    while !fields.is_empty() {
        read_word(&mut fields, &mut word).map_err(damaged)?;
        each(&word)?;
    }
    Ok(())
}

/// Replaces `word` with the next word (I1).
fn read_word(fields: &mut Reader<'_>, word: &mut Vec<u8>) -> Parsed<()> {
    let shared = fields.length(word.len())?;
    let rest = fields.prefixed(usize::MAX)?;
    // The first byte that differs must be larger.
    let grows = match (word.get(shared), rest.first()) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(before), Some(now)) => before < now,
    };
    ensure(grows, "words that are not in order")?;
    word.truncate(shared);
    word.extend_from_slice(rest);
    Ok(())
}

fn damaged(defect: Defect) -> Error {
    defect.in_place(format!("table '{REMOVED_WORDS}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(words: &[&[u8]]) -> Vec<u8> {
        let (mut bytes, mut last) = (Vec::new(), &b""[..]);
        for word in words {
            put_word(last, word, &mut bytes);
            last = word;
        }
        bytes
    }

    fn decoded(bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut words = Vec::new();
        each_word(bytes, |word| {
            words.push(word.to_vec());
            Ok(())
        })?;
        Ok(words)
    }

    #[test]
    fn words_read_back_and_share_their_beginnings() {
        let words: [&[u8]; 5] = [b"a", b"anchor", b"ancient", b"b", b"bb\0"];
        let bytes = encoded(&words);
        assert_eq!(decoded(&bytes).unwrap(), words);
        assert_eq!(bytes.len(), 2 * words.len() + 1 + 5 + 4 + 1 + 2);
        assert_eq!(decoded(&[]).unwrap(), [b""; 0]);
    }

    #[test]
    fn keys_read_back() {
        let mut key = Vec::new();
        put_key(TableId(7), b"row", &mut key);
        assert_eq!(parse_key(&key).unwrap(), (TableId(7), &b"row"[..]));
        assert!(parse_key(b"abc").is_err());
    }

    #[test]
    fn what_is_out_of_order_or_cut_is_refused() {
        assert!(decoded(&[0, 1, b'b', 0, 1, b'a']).is_err());
        assert!(decoded(&[0, 1, b'b', 1, 0]).is_err());
        assert!(decoded(&[0, 0]).is_err());
        assert!(decoded(&[1, 1, b'a']).is_err());
        let bytes = encoded(&[b"ancient", b"city"]);
        assert!(decoded(&bytes[..bytes.len() - 1]).is_err());
    }
}

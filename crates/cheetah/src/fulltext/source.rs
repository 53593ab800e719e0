//! What a query needs from an index and its rows.

use super::positions::{Position, Positions};
use crate::base::Result;

/// How an index treats a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WordKind {
    /// The word is in the index.
    Indexed,
    /// The word is left out: a stop word of permitted length.
    StopWord,
    /// The word is left out: it has too few characters for the index.
    TooShort,
    /// The word is left out: it has too many characters, or weights of too many bytes, for the
    /// index.
    TooLong,
}

/// A word of a text, as the caller's tokenizer found it.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a> {
    /// The word's weights in the collation: equal words have equal bytes, and they sort in the
    /// order of words. The weights of a prefix are a prefix of the word's weights.
    pub weights: &'a [u8],
    /// How the index treats the word.
    pub kind: WordKind,
}

/// An index and its rows, in the snapshot of the caller. All methods may do I/O, and return the
/// errors of `each`. Their own errors end the query; that is how a query is interrupted.
pub trait Source {
    /// Calls `each` for every word of a query's term or phrase, in order.
    fn split(&mut self, text: &[u8], each: &mut dyn FnMut(Word<'_>) -> Result<()>) -> Result<()>;

    /// Calls `each(key, positions)` for every row that has the word, in ascending order of keys.
    fn postings(
        &mut self,
        weights: &[u8],
        each: &mut dyn FnMut(&[u8], Positions<'_>) -> Result<()>,
    ) -> Result<()>;

    /// Calls `each(key, positions)` for every row of every word whose weights begin with `weights`,
    /// in ascending order of words, and of keys for each word.
    fn postings_of_prefix(
        &mut self,
        weights: &[u8],
        each: &mut dyn FnMut(&[u8], Positions<'_>) -> Result<()>,
    ) -> Result<()>;

    /// Calls `each` for every word of a row's text, in order, including words that the index leaves
    /// out. The positions are those of the postings.
    fn words_of(&mut self, key: &[u8], each: &mut dyn FnMut(Word<'_>, Position) -> Result<()>) -> Result<()>;

    /// Returns the number of rows in the table.
    fn row_count(&mut self) -> Result<u64>;
}

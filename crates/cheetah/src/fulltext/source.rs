//! The needs of a query from an index and the rows.

use super::positions::{Position, Positions};
use crate::base::Result;

/// The treatment of a word by an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WordKind {
    /// It has the word.
    Indexed,
    /// It leaves the word out: a stop word of a right length.
    StopWord,
    /// It leaves the word out, which has fewer characters than the index was created for.
    TooShort,
    /// It leaves the word out, which has more characters, or weights of more bytes, than the index
    /// was created for.
    TooLong,
}

/// A word of a text, as the caller's tokenizer found it.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a> {
    /// Weights of the collation: equal bytes are equal words, and they sort as words do. Those of a
    /// prefix of a word begin those of the word.
    pub weights: &'a [u8],
    /// The treatment of the word by the index.
    pub kind: WordKind,
}

/// An index and its rows, at the snapshot of the caller. All methods may do I/O, and pass on the
/// errors of `each`. Their own end the query; that is how it is interrupted.
pub trait Source {
    /// Calls `each` for every word of a query's term or phrase, in order.
    fn split(&mut self, text: &[u8], each: &mut dyn FnMut(Word<'_>) -> Result<()>) -> Result<()>;

    /// Calls `each(key, positions)` for every row that has the word, in ascending order of keys.
    fn postings(
        &mut self,
        weights: &[u8],
        each: &mut dyn FnMut(&[u8], Positions<'_>) -> Result<()>,
    ) -> Result<()>;

    /// Calls `each(key, positions)` for every row of every word whose weights begin so: in
    /// ascending order of words, and for each word of keys.
    fn postings_of_prefix(
        &mut self,
        weights: &[u8],
        each: &mut dyn FnMut(&[u8], Positions<'_>) -> Result<()>,
    ) -> Result<()>;

    /// Calls `each` for every word of a row's text, in order: those that the index leaves out too.
    /// Positions are those of the postings.
    fn words_of(&mut self, key: &[u8], each: &mut dyn FnMut(Word<'_>, Position) -> Result<()>) -> Result<()>;

    /// Rows of the table.
    fn row_count(&mut self) -> Result<u64>;
}

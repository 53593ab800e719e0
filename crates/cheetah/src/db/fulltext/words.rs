//! The words of a row, before they become postings.

use crate::fulltext::Position;

/// The memory in bytes that a list of words keeps for the next row.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// The words of a row. Reuses its memory for the next row, unless it is large.
#[derive(Default, Debug)]
pub struct WordList {
    bytes: Vec<u8>,
    /// Once sorted: in the order of words, and of positions within a word.
    words: Vec<WordPlace>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WordPlace {
    start: usize,
    len: usize,
    pub(super) position: Position,
}

impl WordList {
    /// Removes all words.
    pub fn clear(&mut self) {
        if self.bytes.capacity() + self.words.capacity() * size_of::<WordPlace>() > KEPT_BYTES_MAX {
            *self = Self::default();
        }
        self.bytes.clear();
        self.words.clear();
    }

    /// Adds a word and its position, in the order of the text. Equal words must have equal bytes,
    /// and no word's bytes may be a prefix of another's.
    pub fn add(&mut self, word: &[u8], position: Position) {
        self.words.push(WordPlace { start: self.bytes.len(), len: word.len(), position });
        self.bytes.extend_from_slice(word);
    }

    fn word(&self, place: WordPlace) -> &[u8] {
        self.bytes.get(place.start..place.start + place.len).unwrap_or_default()
    }

    pub(super) fn word_of(&self, places: &[WordPlace]) -> &[u8] {
        places.first().map_or(&[], |place| self.word(*place))
    }

    pub(super) fn sort(&mut self) {
        let mut words = std::mem::take(&mut self.words);
        words.sort_unstable_by(|a, b| self.word(*a).cmp(self.word(*b)).then(a.position.cmp(&b.position)));
        self.words = words;
    }

    /// The list is sorted.
    pub(super) fn groups(&self) -> impl Iterator<Item = &[WordPlace]> {
        self.words.chunk_by(|a, b| self.word(*a) == self.word(*b))
    }
}

/// The words of a row, with the row's clustered key.
#[derive(Debug)]
pub struct RowWords<'a> {
    /// The clustered key of the row.
    pub key: &'a [u8],
    /// The row's words. The list is empty after the call.
    pub words: &'a mut WordList,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_long_row_leave_no_memory_behind() {
        let mut list = WordList::default();
        for (count, is_kept) in [(100, true), (100_000, false)] {
            (0..count).for_each(|ordinal| list.add(b"word", Position { ordinal, column: 0 }));
            list.clear();
            assert_eq!(list.words.capacity() > 0, is_kept);
        }
    }
}

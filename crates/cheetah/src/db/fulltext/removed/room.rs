//! Building removals.

use crate::db::fulltext::RowWords;
use crate::format::removed_words::{put_key, put_row, put_word};
use crate::table::Table;

#[derive(Default, Debug)]
pub(in crate::db) struct RemovalRoom {
    pub(super) key: Vec<u8>,
    words: Vec<u8>,
    pub(super) row: Vec<u8>,
}

impl RemovalRoom {
    /// Builds the removal of a row. Returns false if the row cannot have one.
    pub(super) fn build(&mut self, postings: &Table, row: &RowWords<'_>, removed: &Table) -> bool {
        self.key.clear();
        put_key(postings.id(), row.key, &mut self.key);
        self.words.clear();
        let mut last = &b""[..];
        for places in row.words.groups() {
            let word = row.words.word_of(places);
            if word.is_empty() {
                return false;
            }
            put_word(last, word, &mut self.words);
            last = word;
        }
        self.row.clear();
        put_row(&self.words, &mut self.row);
        self.key.len() <= removed.clustered_def().max_key_bytes as usize
    }
}

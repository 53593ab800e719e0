//! Rows with words. Spaces separate the words of a text.

use super::{delete, insert, spec, update, Row};
use cheetah::testing::base::Result;
use cheetah::testing::db::{
    Db, Mode, Position, Read, RowWords, Search, Texts, Transaction, Word, WordKind, WordList,
};
use cheetah::testing::table::{FulltextSpec, Table, TableSpec};
use cheetah_io::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The end of each word.
pub const END: &[u8] = &[0];
pub const WORDS: [&str; 8] = ["ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen"];

pub fn with_words(name: &str, indexes: &[&str]) -> TableSpec {
    let index =
        |name: &&str| FulltextSpec { name: (*name).into(), max_word_bytes: 12, extra: b"rules".to_vec() };
    TableSpec { fulltext: indexes.iter().map(index).collect(), ..spec(name) }
}

/// Returns the words of a text. Spaces separate the words.
pub fn list_of(text: &[u8]) -> WordList {
    let mut list = WordList::default();
    for (ordinal, word) in text.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).enumerate() {
        list.add(&[word, END].concat(), Position { ordinal: ordinal as u32, column: 0 });
    }
    list
}

/// Splits the texts of searches at spaces.
pub struct Spaces;

impl Texts for Spaces {
    fn split(&mut self, text: &[u8], each: &mut dyn FnMut(Word<'_>) -> Result<()>) -> Result<()> {
        let mut words = text.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        words.try_for_each(|weights| each(Word { weights, kind: WordKind::Indexed }))
    }

    fn words_of(
        &mut self,
        _: &[u8],
        row: &[u8],
        each: &mut dyn FnMut(Word<'_>, Position) -> Result<()>,
    ) -> Result<()> {
        let mut ordinal = 0;
        self.split(&Row::parse(row).0.text, &mut |word| {
            ordinal += 1;
            each(word, Position { ordinal: ordinal - 1, column: 0 })
        })
    }
}

/// The keys of the rows that have one of the words of `text`, in ascending order.
pub fn found(txn: &mut Transaction, table: &Arc<Table>, index_no: usize, text: &str) -> Result<Vec<u64>> {
    found_as(txn, table, (index_no, Read::Consistent), text)
}

pub fn search_for(text: &str, index_no: usize, read: Read) -> Search<'_> {
    let mode = Mode::NaturalLanguage;
    Search { index_no, text: text.as_bytes(), mode, end: END, limit_bytes: 1 << 20, read }
}

/// Like `found`, for rows that will be read in the given way.
pub fn found_as(
    txn: &mut Transaction,
    table: &Arc<Table>,
    (index_no, read): (usize, Read),
    text: &str,
) -> Result<Vec<u64>> {
    let search = search_for(text, index_no, read);
    let mut matches = txn.search(table, &search, &mut Spaces)?.matches;
    let mut keys = Vec::new();
    while let Some((key, _)) = matches.get(keys.len()) {
        keys.push(u64::from_be_bytes(key.try_into().unwrap()));
    }
    keys.sort_unstable();
    Ok(keys)
}

pub fn postings(db: &Db, table: &Table) -> Vec<Arc<Table>> {
    (0..table.fulltext().len()).map(|no| db.postings(table, no).unwrap()).collect()
}

pub fn row_of(number: u64, text: &str) -> Row {
    Row { number, name: format!("name{}", number % 7).into_bytes(), text: text.as_bytes().to_vec() }
}

pub fn put(db: &Db, txn: &mut Transaction, table: &Arc<Table>, key: u64, text: &str) {
    insert(txn, table, key, &row_of(key, text)).unwrap();
    for index in postings(db, table) {
        let row = RowWords { key: &key.to_be_bytes(), words: &mut list_of(text.as_bytes()) };
        txn.insert_words(&index, row).unwrap();
    }
}

pub fn take(db: &Db, txn: &mut Transaction, table: &Arc<Table>, key: u64, text: &str) {
    delete(txn, table, key, &row_of(key, text)).unwrap();
    for index in postings(db, table) {
        let row = RowWords { key: &key.to_be_bytes(), words: &mut list_of(text.as_bytes()) };
        txn.delete_words(&index, row).unwrap();
    }
}

pub fn change(db: &Db, txn: &mut Transaction, table: &Arc<Table>, key: u64, (old, new): (&str, &str)) {
    update(txn, table, key, &row_of(key, old), key, &row_of(key, new)).unwrap();
    for index in postings(db, table) {
        let before = RowWords { key: &key.to_be_bytes(), words: &mut list_of(old.as_bytes()) };
        let after = RowWords { key: &key.to_be_bytes(), words: &mut list_of(new.as_bytes()) };
        txn.change_words(&index, before, after).unwrap();
    }
}

pub fn some_text(rng: &mut Rng) -> String {
    let words = (0..rng.below(9)).map(|_| WORDS[rng.below(8) as usize]);
    words.collect::<Vec<_>>().join(" ")
}

pub fn keys_with(rows: &BTreeMap<u64, String>, words: &str) -> Vec<u64> {
    let has =
        |text: &str| text.split(' ').any(|word| !word.is_empty() && words.split(' ').any(|it| it == word));
    rows.iter().filter(|(_, text)| has(text)).map(|(key, _)| *key).collect()
}

//! The words of rows in a full-text index: one word for the group, and one for each value.

use crate::client::{number, values_of};
use crate::plan::GROUP_KEYS;
use crate::Run;
use cheetah::testing::base::Result;
use cheetah::testing::db::{Mode, Position, Read, Search, Texts, Transaction, Word, WordKind, WordList};

/// The end of each word in the index.
const END: &[u8] = &[0];
const MEMORY_BYTES_MAX: u64 = 1 << 20;

/// The words of a row.
pub(crate) fn list_of(key: u64, values: &[u64]) -> WordList {
    let mut list = WordList::default();
    for (ordinal, word) in (0..).zip(words_of(key, values)) {
        list.add(&[word.as_bytes(), END].concat(), Position { ordinal, column: 0 });
    }
    list
}

fn words_of(key: u64, values: &[u64]) -> Vec<String> {
    let values = values.iter().map(|value| format!("v{value}"));
    std::iter::once(format!("g{}", key / GROUP_KEYS)).chain(values).collect()
}

/// Returns the keys of the rows that have one of these words, for a consistent read.
pub(crate) fn find(txn: &mut Transaction, run: &Run, text: &str) -> Result<Vec<u64>> {
    let (text, read) = (text.as_bytes(), Read::Consistent);
    let (index_no, mode) = (0, Mode::NaturalLanguage);
    let search = Search { index_no, text, mode, end: END, limit_bytes: MEMORY_BYTES_MAX, read };
    let mut matches = txn.search(&run.table, &search, &mut Spaces)?.matches;
    let found = (0..).map_while(|at| matches.get(at).map(|(key, _)| number(key)));
    Ok(found.collect())
}

/// Splits words at spaces.
struct Spaces;

impl Texts for Spaces {
    fn split(&mut self, text: &[u8], each: &mut dyn FnMut(Word<'_>) -> Result<()>) -> Result<()> {
        let mut words = text.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        words.try_for_each(|weights| each(Word { weights, kind: WordKind::Indexed }))
    }

    fn words_of(
        &mut self,
        key: &[u8],
        row: &[u8],
        each: &mut dyn FnMut(Word<'_>, Position) -> Result<()>,
    ) -> Result<()> {
        (0..).zip(words_of(number(key), &values_of(row))).try_for_each(|(ordinal, word)| {
            let weights = word.as_bytes();
            each(Word { weights, kind: WordKind::Indexed }, Position { ordinal, column: 0 })
        })
    }
}

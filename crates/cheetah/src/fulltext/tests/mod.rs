//! Queries over an index in memory. They are compared with examples from InnoDB and with a model,
//! and tested with damage and excessive queries.

mod innodb;
mod limits;
mod model;

use super::{search, Matches, Mode, Position, PositionList, Positions, Source, Word, WordKind};
use crate::base::{Error, Result, SearchProblem};
use std::collections::BTreeMap;

/// Enough memory for every query here.
const LIMIT_BYTES: u64 = 1 << 30;

/// InnoDB's default stop words.
const STOP_WORDS: &str =
    "a about an are as at be by com de en for from how i in is it la of on or that the this to \
                          was what when where who will with und www";

/// A word of a row: its weights, how the index treats it, and its position.
type RowWord = (Vec<u8>, WordKind, Position);

/// A table with one full-text index of ASCII words, case-insensitive, with InnoDB's stop words.
#[derive(Default)]
struct Table {
    /// The words of each row, by key.
    rows: BTreeMap<Vec<u8>, Vec<RowWord>>,
    /// The values of postings, by word and key.
    postings: BTreeMap<(Vec<u8>, Vec<u8>), Vec<u8>>,
    /// The number of calls allowed before the query is interrupted.
    calls_left: Option<u64>,
}

impl Table {
    /// Creates a table of rows with these columns. Their keys are 1, 2, .. in two bytes.
    fn new(rows: &[&[&str]]) -> Self {
        let mut table = Self::default();
        rows.iter().enumerate().for_each(|(index, columns)| table.insert(index as u16 + 1, columns));
        table
    }

    fn insert(&mut self, id: u16, columns: &[&str]) {
        let key = id.to_be_bytes().to_vec();
        let (mut words, mut positions) = (Vec::new(), BTreeMap::<Vec<u8>, Vec<Position>>::new());
        for (column, text) in columns.iter().enumerate() {
            for (weights, kind) in words_in(text.as_bytes()) {
                let position = Position { ordinal: words.len() as u32, column: column as u8 };
                if kind == WordKind::Indexed {
                    positions.entry(weights.clone()).or_default().push(position);
                }
                words.push((weights, kind, position));
            }
        }
        for (weights, positions) in positions {
            let mut list = PositionList::default();
            positions.into_iter().for_each(|position| list.push(position));
            self.postings.insert((weights, key.clone()), list.bytes().to_vec());
        }
        self.rows.insert(key, words);
    }

    fn call(&mut self) -> Result<()> {
        match &mut self.calls_left {
            Some(0) => Err(Error::Interrupted),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Returns the matching rows in order, with their ranks.
    fn search(&mut self, text: &str, mode: Mode) -> Result<Vec<(u16, f32)>> {
        search(text.as_bytes(), mode, self, LIMIT_BYTES).map(|mut matches| all(&mut matches))
    }
}

/// Returns all rows of a result, after checking that lookups by key give the same ranks.
fn all(matches: &mut Matches) -> Vec<(u16, f32)> {
    let (mut rows, mut place) = (Vec::new(), 0);
    while let Some((key, rank)) = matches.get(place) {
        rows.push((u16::from_be_bytes(key.try_into().expect("keys have two bytes")), rank));
        place += 1;
    }
    assert_eq!((matches.len(), matches.is_empty()), (rows.len(), rows.is_empty()));
    for (id, rank) in &rows {
        assert_eq!(matches.rank(&id.to_be_bytes()), Some(*rank));
    }
    rows
}

/// Returns the words of a text in lower case.
fn words_in(text: &[u8]) -> Vec<(Vec<u8>, WordKind)> {
    let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let words = text.split(|byte| !is_of_word(byte)).filter(|word| !word.is_empty());
    let word = |word: &[u8]| {
        let weights = word.to_ascii_lowercase();
        let is_stop_word = STOP_WORDS.split(' ').any(|stop_word| stop_word.as_bytes() == weights);
        let kind = match weights.len() {
            0..3 => WordKind::TooShort,
            85.. => WordKind::TooLong,
            _ if is_stop_word => WordKind::StopWord,
            _ => WordKind::Indexed,
        };
        (weights, kind)
    };
    words.map(word).collect()
}

impl Source for Table {
    fn split(&mut self, text: &[u8], each: &mut dyn FnMut(Word<'_>) -> Result<()>) -> Result<()> {
        for (weights, kind) in words_in(text) {
            each(Word { weights: &weights, kind })?;
        }
        Ok(())
    }

    fn postings(
        &mut self,
        weights: &[u8],
        each: &mut dyn FnMut(&[u8], Positions<'_>) -> Result<()>,
    ) -> Result<()> {
        self.call()?;
        let first = (weights.to_vec(), Vec::new());
        let rows = self.postings.range(first..).take_while(|((word, _), _)| word == weights);
        for ((_, key), value) in rows {
            each(key, Positions::new(value))?;
        }
        Ok(())
    }

    fn postings_of_prefix(
        &mut self,
        weights: &[u8],
        each: &mut dyn FnMut(&[u8], Positions<'_>) -> Result<()>,
    ) -> Result<()> {
        self.call()?;
        let first = (weights.to_vec(), Vec::new());
        let rows = self.postings.range(first..).take_while(|((word, _), _)| word.starts_with(weights));
        for ((_, key), value) in rows {
            each(key, Positions::new(value))?;
        }
        Ok(())
    }

    fn words_of(&mut self, key: &[u8], each: &mut dyn FnMut(Word<'_>, Position) -> Result<()>) -> Result<()> {
        self.call()?;
        for (weights, kind, position) in self.rows.get(key).into_iter().flatten() {
            each(Word { weights, kind: *kind }, *position)?;
        }
        Ok(())
    }

    fn row_count(&mut self) -> Result<u64> {
        Ok(self.rows.len() as u64)
    }
}

/// Returns the reason why a query was refused.
fn problem(result: Result<Vec<(u16, f32)>>) -> (SearchProblem, String) {
    match result {
        Err(Error::Search { problem, detail }) => (problem, detail),
        other => panic!("a refusal was expected: {other:?}"),
    }
}

//! The words that a query looks for, with what ranks need of them.

use super::budget::Budget;
use crate::base::Result;
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes of a word beside its weights: its place here and in the map.
const WORD_BYTES: usize = 2 * size_of::<(Arc<[u8]>, u32)>() + size_of::<Asked>() + 16;

/// A word that is in every row counts as if the table were this much larger: its rarity is not 0,
/// so that a match has a rank.
const EVERY_ROW: f64 = 1.0001;

/// A word, or the beginning of words, that a query asks for.
#[derive(Debug)]
struct Asked {
    weights: Arc<[u8]>,
    /// Postings that were read for it. Words that are asked for twice count twice, and of a prefix
    /// each word counts.
    postings: u64,
    /// How often it was searched for.
    searches: u32,
    /// Which matched word it is, in the order in which they first matched.
    order: Option<u32>,
    /// Whether it was asked for with a `*`.
    is_prefix: bool,
}

/// All words of a query. A word and the same with a `*` are one here.
#[derive(Default, Debug)]
pub(super) struct Words {
    numbers: HashMap<Arc<[u8]>, u32>,
    asked: Vec<Asked>,
    matched: Vec<u32>,
}

impl Words {
    /// The number of a word, a new one if it was not asked for yet.
    ///
    /// # Errors
    /// That of the budget.
    pub(super) fn add(&mut self, weights: &[u8], budget: &mut Budget) -> Result<u32> {
        if let Some(number) = self.numbers.get(weights) {
            return Ok(*number);
        }
        budget.take(weights.len() + WORD_BYTES)?;
        let number = u32::try_from(self.asked.len()).unwrap_or(u32::MAX);
        let weights = Arc::<[u8]>::from(weights);
        self.numbers.insert(Arc::clone(&weights), number);
        self.asked.push(Asked { weights, postings: 0, searches: 0, order: None, is_prefix: false });
        Ok(number)
    }

    pub(super) fn weights(&self, word: u32) -> &Arc<[u8]> {
        &self.asked[word as usize].weights
    }

    /// A search for the word begins.
    pub(super) fn start_search(&mut self, word: u32, is_prefix: bool) {
        let asked = &mut self.asked[word as usize];
        asked.searches = asked.searches.saturating_add(1);
        asked.is_prefix |= is_prefix;
    }

    /// Whether nobody has searched for it before the search that goes on.
    pub(super) fn is_first_search(&self, word: u32) -> bool {
        self.asked[word as usize].searches <= 1
    }

    pub(super) fn count_posting(&mut self, word: u32) {
        self.asked[word as usize].postings += 1;
    }

    /// The word has matched a row.
    pub(super) fn note_match(&mut self, word: u32) {
        let asked = &mut self.asked[word as usize];
        if asked.order.is_none() {
            asked.order = u32::try_from(self.matched.len()).ok();
            self.matched.push(word);
        }
    }

    /// The words that have matched rows, in the order in which they first did: weights, and whether
    /// it was asked for with a `*`.
    pub(super) fn matched(&self) -> impl Iterator<Item = (&[u8], bool)> {
        let asked = self.matched.iter().map(|word| &self.asked[*word as usize]);
        asked.map(|asked| (&*asked.weights, asked.is_prefix))
    }

    /// In which place of [`Words::matched`] a word stands.
    pub(super) fn order(&self, word: u32) -> u32 {
        self.asked[word as usize].order.unwrap_or(u32::MAX)
    }

    /// How rare each word is, by number, in a table of `row_count` rows: its inverse document
    /// frequency.
    pub(super) fn rarities(&self, row_count: u64) -> Vec<f64> {
        let rarity = |asked: &Asked| match asked.postings {
            0 => 0.0,
            postings if postings == row_count => EVERY_ROW.log10(),
            postings => (row_count as f64 / postings as f64).log10(),
        };
        self.asked.iter().map(rarity).collect()
    }
}

//! The words that a query searches for, with the data that ranks need.

use super::budget::Budget;
use crate::base::Result;
use std::collections::HashMap;
use std::sync::Arc;

/// The bytes of a word in addition to its weights: its entries here and in the map.
const WORD_BYTES: usize = 2 * size_of::<(Arc<[u8]>, u32)>() + size_of::<Asked>() + 16;

/// The row count is multiplied by this factor for a word that is in every row, so that the rarity
/// of the word is not 0 and a match has a rank.
const EVERY_ROW: f64 = 1.0001;

#[derive(Debug)]
struct Asked {
    weights: Arc<[u8]>,
    /// The postings read for it. Repeated searches count again, and a prefix counts those of every
    /// word.
    postings: u64,
    searches: u32,
    order: Option<u32>,
    /// Whether it was searched for as a prefix, with a `*`.
    is_prefix: bool,
}

/// All words of a query. A word with and without a `*` is the same word here.
#[derive(Default, Debug)]
pub(super) struct Words {
    numbers: HashMap<Arc<[u8]>, u32>,
    asked: Vec<Asked>,
    matched: Vec<u32>,
}

impl Words {
    /// Returns the ID of a word; assigns a new one if the word is new.
    ///
    /// # Errors
    /// Those of the budget.
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

    pub(super) fn start_search(&mut self, word: u32, is_prefix: bool) {
        let asked = &mut self.asked[word as usize];
        asked.searches = asked.searches.saturating_add(1);
        asked.is_prefix |= is_prefix;
    }

    pub(super) fn is_first_search(&self, word: u32) -> bool {
        self.asked[word as usize].searches <= 1
    }

    pub(super) fn count_posting(&mut self, word: u32) {
        self.asked[word as usize].postings += 1;
    }

    pub(super) fn note_match(&mut self, word: u32) {
        let asked = &mut self.asked[word as usize];
        if asked.order.is_none() {
            asked.order = u32::try_from(self.matched.len()).ok();
            self.matched.push(word);
        }
    }

    /// Returns the words that have matched rows, in the order in which they first did: their
    /// weights, and whether they were prefixes.
    pub(super) fn matched(&self) -> impl Iterator<Item = (&[u8], bool)> {
        let asked = self.matched.iter().map(|word| &self.asked[*word as usize]);
        asked.map(|asked| (&*asked.weights, asked.is_prefix))
    }

    /// Returns the index of a word in [`Words::matched`].
    pub(super) fn order(&self, word: u32) -> u32 {
        self.asked[word as usize].order.unwrap_or(u32::MAX)
    }

    /// The rarity of each word, by ID: its inverse document frequency in a table of `row_count`
    /// rows.
    pub(super) fn rarities(&self, row_count: u64) -> Vec<f64> {
        let rarity = |asked: &Asked| match asked.postings {
            0 => 0.0,
            postings if postings == row_count => EVERY_ROW.log10(),
            postings => (row_count as f64 / postings as f64).log10(),
        };
        self.asked.iter().map(rarity).collect()
    }
}

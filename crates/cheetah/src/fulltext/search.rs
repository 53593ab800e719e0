//! Runs a query, from its text to ranked rows.

use super::evaluation::{evaluate, search_word, State};
use super::expression::Operator;
use super::matches::Matches;
use super::parser::parse;
use super::results::Entry;
use super::source::{Source, WordKind};
use crate::base::Result;
use std::collections::BTreeSet;
use std::ops::Bound;

/// How a query is interpreted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Words and phrases, of which any may match.
    NaturalLanguage,
    /// With operators.
    Boolean,
    /// Like natural language, followed by a second search with all words of the rows found.
    QueryExpansion,
}

const EXPANSION_BYTES: usize = 2 * size_of::<Vec<u8>>();

/// Finds and ranks the rows that match a query. `text` is in the character set of the index's
/// columns. `limit_bytes`: the memory that the query may take.
///
/// # Errors
/// [`Error::Search`](crate::base::Error::Search) if the query has a syntax error, is nested too
/// deeply, has a phrase of too many words, or takes too much memory; the errors of the source.
pub fn search(text: &[u8], mode: Mode, source: &mut impl Source, limit_bytes: u64) -> Result<Matches> {
    let mut state = State::new(limit_bytes);
    if let Some(expression) = parse(text, mode == Mode::Boolean, source, &mut state.budget)? {
        evaluate(&expression, &mut state, source)?;
    }
    if mode == Mode::QueryExpansion && !state.results.is_empty() {
        expand(&mut state, source)?;
    }
    rank(state, source)
}

/// Adds the rows that match any further word of the rows found.
fn expand(state: &mut State, source: &mut impl Source) -> Result<()> {
    let mut words = BTreeSet::<Vec<u8>>::new();
    let State { results, documents, budget, .. } = state;
    for (document, _) in results.iter() {
        source.words_of(documents.key(document), &mut |word, _| {
            if word.kind == WordKind::Indexed && !words.contains(word.weights) {
                budget.take(word.weights.len() + EXPANSION_BYTES)?;
                words.insert(word.weights.to_vec());
            }
            Ok(())
        })?;
    }
    for (weights, is_prefix) in state.words.matched() {
        words.remove(weights);
        let first = |words: &BTreeSet<Vec<u8>>| {
            let mut after = words.range::<[u8], _>((Bound::Included(weights), Bound::Unbounded));
            after.next().filter(|word| is_prefix && word.starts_with(weights)).cloned()
        };
        while let Some(word) = first(&words) {
            words.remove(&word);
        }
    }
    for weights in words {
        let word = state.words.add(&weights, &mut state.budget)?;
        search_word(word, false, Operator::Any, state, source)?;
    }
    Ok(())
}

fn rank(mut state: State, source: &mut impl Source) -> Result<Matches> {
    if state.results.is_empty() {
        return Ok(Matches::none());
    }
    let rarities = state.words.rarities(source.row_count()?);
    state.budget.take(state.documents.len() * size_of::<f32>() + state.results.len() * size_of::<u32>())?;
    let mut ranks = vec![f32::NAN; state.documents.len()];
    let mut rows = Vec::with_capacity(state.results.len());
    let mut hits = Vec::new();
    for (document, entry) in state.results.iter() {
        rows.push(document);
        if let Some(rank) = ranks.get_mut(document as usize) {
            *rank = rank_of(entry, &state, &rarities, &mut hits);
        }
    }
    Ok(Matches::new(state.documents, ranks, rows))
}

/// The rank: the sum of the operators' changes, plus, for each word, its frequency in the row times
/// the square of its rarity. Words are added in the order in which they first matched, and rounded
/// at the same points, like in InnoDB.
fn rank_of(entry: Entry, state: &State, rarities: &[f64], scratch: &mut Vec<(u32, u32, u32)>) -> f32 {
    scratch.clear();
    let mut at = entry.hits;
    while let Some(hit) = state.hits.get(at as usize) {
        scratch.push((state.words.order(hit.word), hit.word, hit.frequency));
        at = hit.next;
    }
    scratch.sort_unstable();
    scratch.dedup_by_key(|hit| hit.0);
    let mut rank = entry.rank;
    for (_, word, frequency) in scratch.iter() {
        let rarity = rarities.get(*word as usize).copied().unwrap_or_default();
        rank += (f64::from(*frequency) * rarity * rarity) as f32;
    }
    rank
}

//! Evaluates an expression: determines which rows match it, with which hits.
//!
//! Invariants
//! - Groups are evaluated one after the other. Within a group, required and excluded parts are
//!   evaluated after all others, the required ones first.
//! - A list of hits never changes, except that it grows at its front, so lists may share their
//!   ends.
//! - While a required part is evaluated, the matching rows are collected in a set of their own,
//!   which then replaces the previous set.

use super::budget::Budget;
use super::documents::Documents;
use super::expression::{Expression, Item, Operand, Operator, Term};
use super::positions::Positions;
use super::results::{Entry, Results, NO_HITS};
use super::source::Source;
use super::words::Words;
use crate::base::Result;

/// A word that matched a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit {
    /// The ID of the word.
    pub(super) word: u32,
    pub(super) frequency: u32,
    /// The next hit of the row.
    pub(super) next: u32,
}

/// How far a list of hits is searched for a word before the word is added again. Ranks count a word
/// once anyway; this keeps the list short if a query repeats a word a thousand times.
const LOOK_BACK: usize = 64;

#[derive(Debug)]
pub(super) struct State {
    pub(super) budget: Budget,
    pub(super) documents: Documents,
    pub(super) words: Words,
    /// All hits of all rows, as lists.
    pub(super) hits: Vec<Hit>,
    /// The matches of the evaluated part of the innermost expression.
    pub(super) results: Results,
    /// The matches of the required part that is being evaluated.
    required: Option<Results>,
    has_required: bool,
    /// Empty sets for reuse.
    spare: Vec<Results>,
}

impl State {
    pub(super) fn new(limit_bytes: u64) -> Self {
        Self {
            budget: Budget::new(limit_bytes),
            documents: Documents::new(),
            words: Words::default(),
            hits: Vec::new(),
            results: Results::default(),
            required: None,
            has_required: false,
            spare: Vec::new(),
        }
    }

    /// Returns the ID of a matching row, or `None` if the row cannot affect the result.
    pub(super) fn document(&mut self, key: &[u8], operator: Operator) -> Result<Option<u32>> {
        let may_add = match operator {
            Operator::Any | Operator::Lower | Operator::Higher => true,
            Operator::Required => !self.has_required,
            Operator::Excluded | Operator::Negated => false,
        };
        if may_add {
            return self.documents.add(key, &mut self.budget).map(Some);
        }
        Ok(self.documents.find(key).filter(|document| self.results.contains(*document)))
    }

    /// Applies the operator to a matching row. `rank` is that of a sub-expression.
    pub(super) fn apply(&mut self, document: u32, rank: f32, operator: Operator) -> Result<()> {
        match operator {
            Operator::Any => self.add(document, rank)?,
            Operator::Required => self.require(document, rank)?,
            Operator::Excluded => self.results.remove(document),
            Operator::Negated => self.change_rank(document, -1.0),
            Operator::Lower => {
                self.add(document, rank)?;
                self.change_rank(document, -1.0);
            }
            Operator::Higher => {
                self.add(document, rank)?;
                self.change_rank(document, 1.0);
            }
        }
        Ok(())
    }

    fn add(&mut self, document: u32, rank: f32) -> Result<()> {
        if self.results.contains(document) {
            return Ok(());
        }
        self.results.insert(document, Entry { rank, hits: NO_HITS }, &mut self.budget)
    }

    fn require(&mut self, document: u32, rank: f32) -> Result<()> {
        let Some(required) = &mut self.required else { return Ok(()) };
        if required.contains(document) {
            return Ok(());
        }
        let entry = match self.results.get(document) {
            Some(before) => Entry { rank: (rank + before.rank).clamp(-1.0, 1.0), hits: before.hits },
            None if self.has_required => return Ok(()),
            None => Entry { rank, hits: NO_HITS },
        };
        required.insert(document, entry, &mut self.budget)
    }

    fn change_rank(&mut self, document: u32, change: f32) {
        if let Some(entry) = self.results.get_mut(document) {
            entry.rank = (entry.rank + change).clamp(-1.0, 1.0);
        }
    }

    pub(super) fn add_hit(&mut self, document: u32, word: u32, frequency: u32) -> Result<()> {
        let required = self.required.as_mut().and_then(|set| set.get_mut(document));
        let Some(entry) = required.or_else(|| self.results.get_mut(document)) else { return Ok(()) };
        self.words.note_match(word);
        let is_known = |hit: Option<&Hit>| hit.is_some_and(|hit| hit.word == word);
        if is_known(self.hits.get(entry.hits as usize)) {
            return Ok(());
        }
        if !self.words.is_first_search(word) {
            let mut at = entry.hits;
            for _ in 0..LOOK_BACK {
                let Some(hit) = self.hits.get(at as usize) else { break };
                if hit.word == word {
                    return Ok(());
                }
                at = hit.next;
            }
        }
        self.budget.take(size_of::<Hit>())?;
        let number = hit_number(self.hits.len());
        self.hits.push(Hit { word, frequency, next: entry.hits });
        entry.hits = number;
        Ok(())
    }

    /// Records that these words match a row, in this order, if the row is in the set.
    pub(super) fn note_matches(&mut self, document: u32, words: &[u32]) {
        let is_required = self.required.as_ref().is_some_and(|set| set.contains(document));
        if is_required || self.results.contains(document) {
            words.iter().for_each(|word| self.words.note_match(*word));
        }
    }

    /// Adds a list of hits, whose words were recorded, to a row, if the row is in the set.
    pub(super) fn add_hits(&mut self, document: u32, mut hits: u32) -> Result<()> {
        let required = self.required.as_mut().and_then(|set| set.get_mut(document));
        let Some(entry) = required.or_else(|| self.results.get_mut(document)) else { return Ok(()) };
        if entry.hits == NO_HITS {
            entry.hits = hits;
            return Ok(());
        }
        while let Some(hit) = self.hits.get(hits as usize).copied() {
            self.add_hit(document, hit.word, hit.frequency)?;
            hits = hit.next;
        }
        Ok(())
    }

    fn take_set(&mut self) -> Results {
        self.spare.pop().unwrap_or_default()
    }

    fn put_back(&mut self, mut set: Results) {
        set.clear(&mut self.budget);
        self.spare.push(set);
    }

    fn start_required(&mut self) {
        self.required = Some(self.take_set());
    }

    fn end_required(&mut self) {
        if let Some(required) = self.required.take() {
            let before = std::mem::replace(&mut self.results, required);
            self.put_back(before);
        }
    }

    /// Returns whether a search for a word cannot change the result: then it is skipped, and the
    /// word does not count.
    fn is_ignored(&self, operator: Operator) -> bool {
        match operator {
            Operator::Required => self.has_required && self.results.is_empty(),
            Operator::Excluded => self.results.is_empty(),
            _ => false,
        }
    }

    pub(super) fn posting(
        &mut self,
        key: &[u8],
        positions: Positions<'_>,
        word: u32,
        operator: Operator,
    ) -> Result<()> {
        self.words.count_posting(word);
        let Some(document) = self.document(key, operator)? else { return Ok(()) };
        self.apply(document, 0.0, operator)?;
        if operator == Operator::Excluded {
            return Ok(());
        }
        self.add_hit(document, word, positions.count()?)
    }
}

pub(super) fn hit_number(len: usize) -> u32 {
    let number = u32::try_from(len).unwrap_or(NO_HITS);
    assert!(number < NO_HITS, "a query has fewer hits: its memory ends first");
    number
}

/// Evaluates an expression into `state.results`.
///
/// # Errors
/// [`Error::Search`](crate::base::Error::Search) if a phrase has too many words, or if the memory
/// limit is exceeded; the errors of the source.
pub(super) fn evaluate(expression: &Expression, state: &mut State, source: &mut impl Source) -> Result<()> {
    for group in &expression.groups {
        for item in group {
            evaluate_now(item, state, source)?;
        }
        for operator in [Operator::Required, Operator::Excluded] {
            for item in group.iter().filter(|item| item.operator == operator) {
                evaluate_operand(item, state, source)?;
            }
        }
    }
    Ok(())
}

/// Evaluates an item that need not wait for the rest of its group: everything except a single
/// required or excluded part. Several words in one piece do not wait, either.
fn evaluate_now(item: &Item, state: &mut State, source: &mut impl Source) -> Result<()> {
    if let Operand::Terms(terms) = &item.operand {
        return terms.iter().try_for_each(|term| evaluate_term(term, item.operator, state, source));
    }
    if item.operator.waits() {
        return Ok(());
    }
    evaluate_operand(item, state, source)
}

fn evaluate_operand(item: &Item, state: &mut State, source: &mut impl Source) -> Result<()> {
    match &item.operand {
        Operand::Term(term) => evaluate_term(term, item.operator, state, source),
        Operand::Terms(_) => Ok(()), // `evaluate_now` has already evaluated them
        Operand::Phrase(text, distance) => {
            if item.operator == Operator::Required {
                state.start_required();
            }
            super::phrases::evaluate_phrase(text, *distance, item.operator, state, source)?;
            after(item.operator, state);
            Ok(())
        }
        Operand::Expression(inner) => evaluate_inner(inner, item.operator, state, source),
    }
}

fn after(operator: Operator, state: &mut State) {
    if operator == Operator::Required {
        state.end_required();
        state.has_required = true;
    }
}

fn evaluate_term(term: &Term, operator: Operator, state: &mut State, source: &mut impl Source) -> Result<()> {
    let word = state.words.add(&term.weights, &mut state.budget)?;
    if !state.is_ignored(operator) {
        if operator == Operator::Required {
            state.start_required();
        }
        search_word(word, term.is_prefix, operator, state, source)?;
    }
    after(operator, state);
    Ok(())
}

/// Searches for a word, or for all words that begin with it. A word that the index leaves out may
/// equal an indexed one, because the collation does not apply to stop words.
pub(super) fn search_word(
    word: u32,
    is_prefix: bool,
    operator: Operator,
    state: &mut State,
    source: &mut impl Source,
) -> Result<()> {
    state.words.start_search(word, is_prefix);
    let weights = state.words.weights(word).clone();
    let mut each = |key: &[u8], positions: Positions<'_>| state.posting(key, positions, word, operator);
    match is_prefix {
        true => source.postings_of_prefix(&weights, &mut each),
        false => source.postings(&weights, &mut each),
    }
}

/// Evaluates a sub-expression on its own, and then applies the operator to each of its rows.
fn evaluate_inner(
    inner: &Expression,
    operator: Operator,
    state: &mut State,
    source: &mut impl Source,
) -> Result<()> {
    let set = state.take_set();
    let outer = std::mem::replace(&mut state.results, set);
    let has_required = std::mem::take(&mut state.has_required);
    evaluate(inner, state, source)?;
    let inner = std::mem::replace(&mut state.results, outer);
    state.has_required = has_required;
    if operator == Operator::Required {
        state.start_required();
    }
    for (document, entry) in inner.iter() {
        state.apply(document, entry.rank, operator)?;
        state.add_hits(document, entry.hits)?;
    }
    state.put_back(inner);
    after(operator, state);
    Ok(())
}

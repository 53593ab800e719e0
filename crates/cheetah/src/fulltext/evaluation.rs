//! Evaluates an expression: which rows it matches, with which hits.
//!
//! Invariants
//!   - Groups are evaluated one after the other. In a group, required and excluded parts wait until
//!     all others are through; required ones come first.
//!   - A list of hits never changes. It gets longer at its front, so lists may share their ends.
//!   - While something required is looked for, the rows that match go into a set of their own,
//!     which then takes the place of the other.

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
    /// The number of the word.
    pub(super) word: u32,
    /// How often it stands in the row.
    pub(super) frequency: u32,
    /// The next hit of the row.
    pub(super) next: u32,
}

/// How far a list of hits is searched for a word before the word is added once more. Ranks count
/// each word once all the same; this keeps short what a query says a thousand times.
const LOOK_BACK: usize = 64;

/// The finds of a query so far.
#[derive(Debug)]
pub(super) struct State {
    pub(super) budget: Budget,
    pub(super) documents: Documents,
    pub(super) words: Words,
    /// All hits of all rows, as lists.
    pub(super) hits: Vec<Hit>,
    /// The rows that match what was evaluated of the innermost expression.
    pub(super) results: Results,
    /// Those that match what is required at the moment.
    required: Option<Results>,
    /// Whether something was required in the innermost expression.
    has_required: bool,
    /// Empty sets, to be used again.
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

    /// The number of a row that matches, or `None` if that cannot make a difference.
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

    /// A row matches: applies the operator to it. `rank` is that of a sub-expression.
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

    /// A word matches a row, which may be in the set.
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

    /// Words match a row, which may be in the set, in this order.
    pub(super) fn note_matches(&mut self, document: u32, words: &[u32]) {
        let is_required = self.required.as_ref().is_some_and(|set| set.contains(document));
        if is_required || self.results.contains(document) {
            words.iter().for_each(|word| self.words.note_match(*word));
        }
    }

    /// Adds a list of hits to a row, which may be in the set. Their words were noted.
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

    /// Something required is looked for.
    fn start_required(&mut self) {
        self.required = Some(self.take_set());
    }

    /// Only what is required stays.
    fn end_required(&mut self) {
        if let Some(required) = self.required.take() {
            let before = std::mem::replace(&mut self.results, required);
            self.put_back(before);
        }
    }

    /// Whether nothing can come of looking for a word: it is not looked for, and does not count.
    fn is_ignored(&self, operator: Operator) -> bool {
        match operator {
            Operator::Required => self.has_required && self.results.is_empty(),
            Operator::Excluded => self.results.is_empty(),
            _ => false,
        }
    }

    /// A posting of a word that is looked for.
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

/// The number of a new hit.
pub(super) fn hit_number(len: usize) -> u32 {
    let number = u32::try_from(len).unwrap_or(NO_HITS);
    assert!(number < NO_HITS, "a query has fewer hits: its memory ends first");
    number
}

/// Evaluates an expression into `state.results`.
///
/// # Errors
/// [`Error::Search`](crate::base::Error::Search) when a phrase has too many words, and when the
/// memory does not suffice; those of the source.
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

/// Evaluates an item that does not wait: everything but a single required or excluded part. Several
/// words in one piece do not wait either.
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
        Operand::Terms(_) => Ok(()), // they do not wait: `evaluate_now` has evaluated them
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

/// After the required part, whose rows are in its set.
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

/// Looks for a word, or for all that begin so. A word that the index leaves out may equal one that
/// it has: the words left out do not go by the collation.
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

/// Evaluates a sub-expression on its own, and then applies the operator to each row of it.
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

//! Phrases, and proximity searches.
//!
//! A phrase is evaluated word by word: after each word, only the rows and positions at which all
//! words so far match remain. Words that the index leaves out are compared with the text of the
//! rows that remain at the end. Such words at the beginning of a phrase do not count.

use super::evaluation::{hit_number, search_word, Hit, State};
use super::expression::Operator;
use super::positions::{Position, Positions, PositionsIter};
use super::results::NO_HITS;
use super::source::{Source, Word, WordKind};

use crate::base::{Error, Result, SearchProblem};

/// The maximum number of indexed words in a phrase.
pub const PHRASE_WORDS_MAX: usize = 128;

#[derive(Debug)]
struct Part {
    /// Its ID, if it is in the index.
    word: Option<u32>,
    /// Its weights, if the index leaves it out.
    weights: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    document: u32,
    hits: u32,
    from: usize,
    to: usize,
}

/// Rows, with the positions where the phrase may begin.
#[derive(Default, Debug)]
struct Candidates {
    rows: Vec<Candidate>,
    starts: Vec<Position>,
}

impl Candidates {
    /// Adds a row with the start positions from index `from` on, if there are any.
    fn add(&mut self, document: u32, hits: u32, from: usize, state: &mut State) -> Result<()> {
        if self.starts.len() > from {
            state.budget.take(self.bytes_from(from))?;
            self.rows.push(Candidate { document, hits, from, to: self.starts.len() });
        }
        Ok(())
    }

    fn bytes_from(&self, from: usize) -> usize {
        size_of::<Candidate>() + (self.starts.len() - from) * size_of::<Position>()
    }

    fn bytes(&self) -> usize {
        self.rows.len() * size_of::<Candidate>() + self.starts.len() * size_of::<Position>()
    }

    fn starts_of(&self, row: Candidate) -> &[Position] {
        self.starts.get(row.from..row.to).unwrap_or_default()
    }
}

/// Applies the operator to the rows that contain a phrase, or its words within a distance.
///
/// # Errors
/// [`Error::Search`] if it has too many words; the error of the budget; the errors of the source.
pub(super) fn evaluate_phrase(
    text: &[u8],
    distance: Option<u64>,
    operator: Operator,
    state: &mut State,
    source: &mut impl Source,
) -> Result<()> {
    let parts = split(text, state, source)?;
    let words = parts.iter().filter_map(|part| part.word).collect::<Vec<_>>();
    if words.len() > PHRASE_WORDS_MAX {
        return Err(Error::Search {
            problem: SearchProblem::TooManyWordsInPhrase,
            detail: format!(
                "a phrase of a full-text query has {} words; {PHRASE_WORDS_MAX} are allowed",
                words.len()
            ),
        });
    }
    match (parts.as_slice(), distance) {
        ([], _) => Ok(()),
        ([Part { word: Some(word), .. }], _) => search_word(*word, false, operator, state, source),
        (_, Some(distance)) => search_close(&words, distance, operator, state, source),
        (parts, None) => search_phrase(parts, &words, operator, state, source),
    }
}

/// Returns the words of a phrase, from the first indexed word on.
fn split(text: &[u8], state: &mut State, source: &mut impl Source) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    source.split(text, &mut |word: Word<'_>| {
        let part = if word.kind == WordKind::Indexed {
            Part { word: Some(state.words.add(word.weights, &mut state.budget)?), weights: Vec::new() }
        } else if parts.is_empty() {
            return Ok(());
        } else {
            Part { word: None, weights: word.weights.to_vec() }
        };
        state.budget.take(2 * size_of::<Part>() + part.weights.len())?;
        parts.push(part);
        Ok(())
    })?;
    Ok(parts)
}

fn search_phrase(
    parts: &[Part],
    words: &[u32],
    operator: Operator,
    state: &mut State,
    source: &mut impl Source,
) -> Result<()> {
    let mut candidates = Candidates::default();
    for (offset, part) in parts.iter().enumerate() {
        let Some(word) = part.word else { continue };
        let (before, is_first) = (std::mem::take(&mut candidates), offset == 0);
        let mut is_found = false;
        let mut rows = before.rows.iter().copied().peekable();
        let weights = search_of(word, state);
        source.postings(&weights, &mut |key, positions| {
            is_found = true;
            state.words.count_posting(word);
            let from = candidates.starts.len();
            let (document, hits) = if is_first {
                let Some(document) = state.document(key, operator)? else { return Ok(()) };
                for position in positions.iter() {
                    candidates.starts.push(position?);
                }
                (document, NO_HITS)
            } else {
                while rows.next_if(|row| state.documents.key(row.document) < key).is_some() {}
                let Some(row) = rows.next_if(|row| state.documents.key(row.document) == key) else {
                    return Ok(());
                };
                keep_starts(before.starts_of(row), positions, offset, &mut candidates.starts)?;
                (row.document, row.hits)
            };
            if candidates.starts.len() > from {
                let hits = put_hit(word, positions, hits, state)?;
                candidates.add(document, hits, from, state)?;
            }
            Ok(())
        })?;
        state.budget.give_back(before.bytes());
        if !is_found {
            return Ok(());
        }
    }
    let is_complete = parts.iter().all(|part| part.word.is_some());
    for row in &candidates.rows {
        if is_complete || matches_text(parts, candidates.starts_of(*row), row.document, state, source)? {
            state.apply(row.document, 0.0, operator)?;
            state.note_matches(row.document, words);
            state.add_hits(row.document, row.hits)?;
        }
    }
    state.budget.give_back(candidates.bytes());
    Ok(())
}

fn search_of(word: u32, state: &mut State) -> std::sync::Arc<[u8]> {
    state.words.start_search(word, false);
    state.words.weights(word).clone()
}

fn put_hit(word: u32, positions: Positions<'_>, next: u32, state: &mut State) -> Result<u32> {
    state.budget.take(size_of::<Hit>())?;
    let number = hit_number(state.hits.len());
    state.hits.push(Hit { word, frequency: positions.count()?, next });
    Ok(number)
}

/// Keeps the start positions at which a word occurs `offset` words later in the same column.
fn keep_starts(
    starts: &[Position],
    positions: Positions<'_>,
    offset: usize,
    kept: &mut Vec<Position>,
) -> Result<()> {
    let mut starts = starts.iter().peekable();
    for position in positions.iter() {
        let position = position?;
        let Some(ordinal) = (position.ordinal as usize).checked_sub(offset) else { continue };
        while starts.next_if(|start| (start.ordinal as usize) < ordinal).is_some() {}
        let wanted = |start: &&Position| start.ordinal as usize == ordinal && start.column == position.column;
        kept.extend(starts.next_if(wanted));
    }
    Ok(())
}

/// Returns whether, for at least one of the start positions, the text of the row contains, at the
/// right places, the words that the index leaves out.
fn matches_text(
    parts: &[Part],
    starts: &[Position],
    document: u32,
    state: &State,
    source: &mut impl Source,
) -> Result<bool> {
    // Start positions whose phrase the text has reached. They overlap only if the phrase repeats
    // one of its indexed words, so there are few.
    let mut open = Vec::<Position>::new();
    let mut coming = starts.iter().copied().peekable();
    let mut is_found = false;
    source.words_of(state.documents.key(document), &mut |word, position| {
        if is_found {
            return Ok(());
        }
        while let Some(start) = coming.next_if(|start| start.ordinal <= position.ordinal) {
            open.push(start);
        }
        open.retain(|start| {
            let Some(part) = parts.get((position.ordinal - start.ordinal) as usize) else { return false };
            let is_right = part.word.is_some() || part.weights == word.weights;
            let is_at_end = (position.ordinal - start.ordinal) as usize + 1 == parts.len();
            let is_here = is_right && position.column == start.column;
            is_found |= is_here && is_at_end;
            is_here && !is_at_end
        });
        Ok(())
    })?;
    Ok(is_found)
}

#[derive(Clone, Copy, Debug)]
struct Place {
    document: u32,
    from: usize,
    to: usize,
}

/// Searches for rows with all words within `distance` words, in any order and across columns.
fn search_close(
    words: &[u32],
    distance: u64,
    operator: Operator,
    state: &mut State,
    source: &mut impl Source,
) -> Result<()> {
    let (mut bytes, mut taken_bytes) = (Vec::new(), 0);
    // For each word, the rows that contain it and all previous words.
    let mut places = Vec::<Vec<Place>>::new();
    for word in words.iter().copied() {
        let (mut found, mut is_found) = (Vec::new(), false);
        let mut rows = places.last().map(|rows| rows.iter().copied().peekable());
        let weights = search_of(word, state);
        source.postings(&weights, &mut |key, positions| {
            is_found = true;
            state.words.count_posting(word);
            let document = match &mut rows {
                None => state.document(key, operator)?,
                Some(rows) => {
                    while rows.next_if(|row| state.documents.key(row.document) < key).is_some() {}
                    rows.next_if(|row| state.documents.key(row.document) == key).map(|row| row.document)
                }
            };
            let Some(document) = document else { return Ok(()) };
            let place_bytes = size_of::<Place>() + positions.bytes().len();
            state.budget.take(place_bytes)?;
            taken_bytes += place_bytes;
            let from = bytes.len();
            bytes.extend_from_slice(positions.bytes());
            found.push(Place { document, from, to: bytes.len() });
            Ok(())
        })?;
        places.push(found);
        if !is_found {
            break; // no row contains all words: the last list is empty
        }
    }
    let mut rows = places.iter().map(|rows| rows.iter().copied().peekable()).collect::<Vec<_>>();
    for last in places.last().into_iter().flatten() {
        // Every list contains the row, in the same order: each is a subset of the previous one.
        let values = rows.iter_mut().map(|rows| rows.find(|row| row.document == last.document));
        let values = values.flatten().map(|row| bytes.get(row.from..row.to).unwrap_or_default());
        let values = values.map(Positions::new).collect::<Vec<_>>();
        if !are_close(&values, distance)? {
            continue;
        }
        state.apply(last.document, 0.0, operator)?;
        for (word, positions) in words.iter().zip(values) {
            state.add_hit(last.document, *word, positions.count()?)?;
        }
    }
    state.budget.give_back(taken_bytes);
    Ok(())
}

/// Returns whether one position of each word can be chosen so that the span from the first to the
/// last, both included, has at most `distance` words.
fn are_close(values: &[Positions<'_>], distance: u64) -> Result<bool> {
    let mut iters = values.iter().map(|positions| positions.iter()).collect::<Vec<_>>();
    let mut heads = Vec::new();
    for iter in &mut iters {
        let Some(head) = next(iter)? else { return Ok(false) };
        heads.push(head);
    }
    loop {
        let first =
            heads.iter().enumerate().min_by_key(|(_, head)| **head).map(|(index, head)| (index, *head));
        let (Some((index, first)), Some(last)) = (first, heads.iter().max()) else { return Ok(false) };
        if u64::from(last - first) < distance {
            return Ok(true);
        }
        let (Some(iter), Some(head)) = (iters.get_mut(index), heads.get_mut(index)) else { return Ok(false) };
        match next(iter)? {
            Some(ordinal) => *head = ordinal,
            None => return Ok(false),
        }
    }
}

fn next(iter: &mut PositionsIter<'_>) -> Result<Option<u32>> {
    Ok(iter.next().transpose()?.map(|position| position.ordinal))
}

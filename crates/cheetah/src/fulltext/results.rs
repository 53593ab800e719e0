//! A set of rows with what a query has found about each row.

use super::budget::Budget;
use crate::base::Result;

/// Row IDs are below this number.
pub(super) const DOCUMENTS_MAX: u32 = u32::MAX - 2;

/// The end of a list of hits.
pub(super) const NO_HITS: u32 = u32::MAX - 2;
/// Instead of a list: the row was removed from the set.
const REMOVED: u32 = u32::MAX - 1;
/// Instead of a list: the row was never in the set.
const ABSENT: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The sum of the operators' changes to its rank, from -1 to 1.
    pub(super) rank: f32,
    /// The first of its hits, or one of the three markers.
    pub(super) hits: u32,
}

/// Access takes constant time; clearing takes time proportional to the number of rows in the set.
#[derive(Default, Debug)]
pub(super) struct Results {
    /// By row ID; may be shorter than the number of rows.
    entries: Vec<Entry>,
    /// The rows in the set, and the removed ones.
    members: Vec<u32>,
    len: usize,
}

impl Results {
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn contains(&self, document: u32) -> bool {
        self.get(document).is_some()
    }

    pub(super) fn get(&self, document: u32) -> Option<Entry> {
        self.entries.get(document as usize).copied().filter(|entry| entry.hits <= NO_HITS)
    }

    pub(super) fn get_mut(&mut self, document: u32) -> Option<&mut Entry> {
        self.entries.get_mut(document as usize).filter(|entry| entry.hits <= NO_HITS)
    }

    /// Adds a row that is not in the set.
    ///
    /// # Errors
    /// Those of the budget.
    pub(super) fn insert(&mut self, document: u32, entry: Entry, budget: &mut Budget) -> Result<()> {
        let place = document as usize;
        if place >= self.entries.len() {
            budget.take((place + 1 - self.entries.len()) * size_of::<Entry>())?;
            self.entries.resize(place + 1, Entry { rank: 0.0, hits: ABSENT });
        }
        if self.entries[place].hits == ABSENT {
            budget.take(size_of::<u32>())?;
            self.members.push(document);
        }
        self.entries[place] = entry;
        self.len += 1;
        Ok(())
    }

    /// Removes a row that may be in the set.
    pub(super) fn remove(&mut self, document: u32) {
        if let Some(entry) = self.get_mut(document) {
            entry.hits = REMOVED;
            self.len -= 1;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, Entry)> + '_ {
        self.members.iter().filter_map(|document| self.get(*document).map(|entry| (*document, entry)))
    }

    /// Empties the set; keeps the memory of `entries`.
    pub(super) fn clear(&mut self, budget: &mut Budget) {
        for document in &self.members {
            self.entries[*document as usize].hits = ABSENT;
        }
        budget.give_back(self.members.len() * size_of::<u32>());
        self.members.clear();
        self.len = 0;
    }
}

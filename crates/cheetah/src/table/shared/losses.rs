//! The losses of a damaged database that is opened only to be copied (`salvage`): changes that redo
//! could not make. In such a database no table is quarantined: a change that meets damage is
//! skipped and reported.

use crate::base::{Error, TableId};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashSet};

/// Maximum number of left-out row keys per table. When it is reached, all rows are left out.
const DOUBTFUL_MAX: usize = 1 << 20;

#[derive(Default, Debug)]
pub(crate) struct Losses(Mutex<Inner>);

#[derive(Default, Debug)]
struct Inner {
    /// Losses of the database as a whole.
    notes: Vec<String>,
    changes: BTreeMap<TableId, LostChanges>,
    /// Rows that a rollback should have changed: their current versions were never committed.
    doubtful: BTreeMap<TableId, HashSet<Vec<u8>>>,
}

/// Changes of a table that could not be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LostChanges {
    pub(crate) count: u64,
    /// The error of the first of these changes.
    pub(crate) why: String,
}

impl Losses {
    /// Notes a loss of the database as a whole.
    pub(crate) fn note(&self, what: String) {
        self.0.lock().notes.push(what);
    }

    /// Notes that a change of a table could not be made.
    pub(crate) fn note_change(&self, table: TableId, error: &Error) {
        let mut inner = self.0.lock();
        let lost = inner.changes.entry(table);
        lost.or_insert_with(|| LostChanges { count: 0, why: error.to_string() }).count += 1;
    }

    /// Notes that the row with this key may never have been committed.
    pub(crate) fn doubt(&self, table: TableId, key: &[u8]) {
        if key.is_empty() {
            return;
        }
        let mut inner = self.0.lock();
        let keys = inner.doubtful.entry(table).or_default();
        if keys.len() < DOUBTFUL_MAX {
            keys.insert(key.to_vec());
        }
    }

    /// Returns whether the row with this key is to be left out.
    pub(crate) fn is_doubtful(&self, table: TableId, key: &[u8]) -> bool {
        let inner = self.0.lock();
        let keys = inner.doubtful.get(&table);
        keys.is_some_and(|keys| keys.len() >= DOUBTFUL_MAX || keys.contains(key))
    }

    pub(crate) fn of_table(&self, table: TableId) -> Option<LostChanges> {
        self.0.lock().changes.get(&table).cloned()
    }

    /// Returns the notes about the database as a whole.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.0.lock().notes.clone()
    }
}

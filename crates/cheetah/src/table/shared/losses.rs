//! The losses of a damaged database that is opened only to be copied (`salvage`): changes that redo
//! could not make. There tables are not quarantined: a change that meets damage is left out, and
//! told of.

use crate::base::{Error, TableId};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashSet};

/// Keys of rows of a table that are left out; with `DOUBTFUL_MAX` of them, all of its rows are.
const DOUBTFUL_MAX: usize = 1 << 20;

/// See the module.
#[derive(Default, Debug)]
pub(crate) struct Losses(Mutex<Inner>);

#[derive(Default, Debug)]
struct Inner {
    /// Of the database as a whole.
    notes: Vec<String>,
    changes: BTreeMap<TableId, LostChanges>,
    /// Rows that a rollback should have changed: their present versions were never committed.
    doubtful: BTreeMap<TableId, HashSet<Vec<u8>>>,
}

/// Changes of a table that have not been made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LostChanges {
    pub(crate) count: u64,
    /// Why the first one has not.
    pub(crate) why: String,
}

impl Losses {
    /// Notes what the database as a whole lacks, in words.
    pub(crate) fn note(&self, what: String) {
        self.0.lock().notes.push(what);
    }

    /// Notes that a change of a table cannot be made.
    pub(crate) fn note_change(&self, table: TableId, error: &Error) {
        let mut inner = self.0.lock();
        let lost = inner.changes.entry(table);
        lost.or_insert_with(|| LostChanges { count: 0, why: error.to_string() }).count += 1;
    }

    /// Notes that the row of that key may never have been committed.
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

    /// Whether the row of that key is to be left out.
    pub(crate) fn is_doubtful(&self, table: TableId, key: &[u8]) -> bool {
        let inner = self.0.lock();
        let keys = inner.doubtful.get(&table);
        keys.is_some_and(|keys| keys.len() >= DOUBTFUL_MAX || keys.contains(key))
    }

    /// The changes that a table lacks.
    pub(crate) fn of_table(&self, table: TableId) -> Option<LostChanges> {
        self.0.lock().changes.get(&table).cloned()
    }

    /// The notes about the database as a whole.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.0.lock().notes.clone()
    }
}

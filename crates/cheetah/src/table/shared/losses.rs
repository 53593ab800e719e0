//! The losses of a damaged database that is opened only to be copied (`salvage`): changes that redo
//! could not make. In such a database no table is quarantined: a change that meets damage is
//! skipped and reported.

use crate::base::{Error, TableId};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashSet};

/// Left-out row keys per table, beyond which all rows are left out.
const DOUBTFUL_MAX: usize = 1 << 20;

#[derive(Default, Debug)]
pub(crate) struct Losses(Mutex<Inner>);

#[derive(Default, Debug)]
struct Inner {
    notes: Vec<String>,
    changes: BTreeMap<TableId, LostChanges>,
    /// Rows that a rollback should have changed: their current versions were never committed.
    doubtful: BTreeMap<TableId, HashSet<Vec<u8>>>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LostChanges {
    pub(crate) count: u64,
    pub(crate) why: String,
}

impl Losses {
    pub(crate) fn note(&self, what: String) {
        self.0.lock().notes.push(what);
    }

    pub(crate) fn note_change(&self, table: TableId, error: &Error) {
        let mut inner = self.0.lock();
        let lost = inner.changes.entry(table);
        lost.or_insert_with(|| LostChanges { count: 0, why: error.to_string() }).count += 1;
    }

    /// The row may never have been committed.
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

    pub(crate) fn is_doubtful(&self, table: TableId, key: &[u8]) -> bool {
        let inner = self.0.lock();
        let keys = inner.doubtful.get(&table);
        keys.is_some_and(|keys| keys.len() >= DOUBTFUL_MAX || keys.contains(key))
    }

    pub(crate) fn of_table(&self, table: TableId) -> Option<LostChanges> {
        self.0.lock().changes.get(&table).cloned()
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        self.0.lock().notes.clone()
    }
}

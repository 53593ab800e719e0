//! Finding the rows that match, and reading them.

use super::Texts;
use crate::base::{sound, Result};
use crate::db::{Isolation, OnLocked, Read, Transaction};
use crate::fulltext::{self, Matches, Mode};
use crate::table::Table;
use crate::txn::ReadView;
use std::sync::Arc;

/// A full-text search.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// The position of the index in its table, from 0.
    pub index_no: usize,
    /// In the character set of the index.
    pub text: &'a [u8],
    /// How to interpret the text.
    pub mode: Mode,
    /// Follows the weights of each word in the index.
    pub end: &'a [u8],
    /// The memory limit of the search, in bytes.
    pub limit_bytes: u64,
    /// How the rows will be read.
    pub read: Read,
}

/// The rows that a full-text search found.
#[derive(Debug)]
pub struct Found {
    /// With their ranks.
    pub matches: Matches,
    /// Set if the transaction's view was not the one searched.
    view: Option<Arc<ReadView>>,
    /// A later search, for rows that changed after the first one.
    newer: Option<Box<Found>>,
    /// Rows that were read or skipped.
    read_count: usize,
    last_key: Vec<u8>,
}

impl Found {
    /// Restarts with the best row.
    pub fn rewind(&mut self) {
        self.read_count = 0;
    }

    fn latest(&self) -> &Found {
        self.newer.as_deref().unwrap_or(self)
    }
}

impl Transaction {
    /// Finds and ranks the matching rows of `table`: those that a consistent read sees, or, for
    /// rows that will be read with locks, those committed now and the transaction's own. May do
    /// I/O, and wait for a lock: errors are those of [`cursor`](Self::cursor), and
    /// [`Error::Search`](crate::base::Error::Search) for a syntax error or too costly a query.
    pub fn search(
        &mut self,
        table: &Arc<Table>,
        search: &Search<'_>,
        texts: &mut dyn Texts,
    ) -> Result<Found> {
        self.core.health.check()?;
        // Under SERIALIZABLE, the search locks what it reads.
        let of_snapshot = sound!(
            search.read == Read::Consistent || self.isolation == Isolation::Serializable,
            "full text: look for rows of a snapshot among the newest"
        );
        let is_newest = sound!(!of_snapshot, "full text: look for rows to lock in the snapshot");
        let view = is_newest.then(|| self.new_view());
        let mut reader = self.reader(table, search.index_no, (search.end, view.clone()), texts)?;
        let matches = fulltext::search(search.text, search.mode, &mut reader, search.limit_bytes)?;
        Ok(Found { matches, view, newer: None, read_count: 0, last_key: Vec::new() })
    }

    /// Reads the next row of a search, the best first, into `row`, and locks it if the search
    /// requires locks. Returns its key and rank, or `None` after the last row. Skips rows that were
    /// deleted after the search, or no longer match. May do I/O, and wait for a lock; errors are
    /// those of [`get`](Self::get) and [`search`](Self::search).
    pub fn next_match<'f>(
        &mut self,
        table: &Arc<Table>,
        search: &Search<'_>,
        texts: &mut dyn Texts,
        found: &'f mut Found,
        (on_locked, row): (OnLocked, &mut Vec<u8>),
    ) -> Result<Option<(&'f [u8], f32)>> {
        loop {
            let Some((key, _)) = found.matches.get(found.read_count) else { return Ok(None) };
            found.read_count += 1;
            let mut last_key = std::mem::take(&mut found.last_key);
            last_key.clear();
            last_key.extend_from_slice(key);
            let how = self.lock_to_read(table, search.read)?;
            let rank = match self.get_as(table, &last_key, how, on_locked, row)? {
                true => self.rank_now(table, search, texts, found, &last_key)?,
                false => None,
            };
            found.last_key = last_key;
            if let Some(rank) = rank {
                return Ok(Some((&found.last_key, rank)));
            }
        }
    }

    /// Returns the rank that a search found for the row with the key `key`, or `None` if the row
    /// does not match. If other transactions changed the row after the search, and this one has
    /// then locked it, its newest state is ranked: a second search ranks the row and all later
    /// rows. May do I/O; errors are those of [`search`](Self::search).
    pub fn rank_now(
        &mut self,
        table: &Arc<Table>,
        search: &Search<'_>,
        texts: &mut dyn Texts,
        found: &mut Found,
        key: &[u8],
    ) -> Result<Option<f32>> {
        if search.read != Read::Consistent && self.may_match_otherwise(table, key, found.latest())? {
            found.newer = Some(Box::new(self.search(table, search, texts)?));
        }
        Ok(found.latest().matches.rank(key))
    }

    fn may_match_otherwise(&self, table: &Arc<Table>, key: &[u8], found: &Found) -> Result<bool> {
        let view = found.view.as_ref().filter(|_| sound!(true, "full text: lock what has changed"));
        view.map_or(Ok(false), |view| self.has_changed_since(table, key, view))
    }
}

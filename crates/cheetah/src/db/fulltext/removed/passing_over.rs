//! Skipping the postings of deleted rows during a search.

use super::table::{existing, existing_or_new};
use crate::base::hash::HashSum;
use crate::base::{sound, Result, TableId};
use crate::db::reading::{HowToRead, Reading};
use crate::db::{Cursor, OnLocked, SeekMode, Transaction};
use crate::format::removed_words::{each_word, key_prefix, parse_key};
use crate::table::Table;
use crate::txn::{LockMode, ReadView, TableMode};
use std::sync::Arc;

/// Removals that the cursor steps over, at most, before it seeks.
const STEPS_MAX: usize = 8;

/// A posting table's removals, read in step with a walk through its postings.
pub(in crate::db::fulltext) struct Removals {
    /// A removal's key: the posting table's ID and the key of the row to look up.
    key: Vec<u8>,
    prefix_bytes: usize,
    source: Source,
}

/// Where removals are looked up.
enum Source {
    /// No removals exist.
    Nowhere,
    /// In a view, or in the newest state of a table that is locked as a whole.
    Seen(Box<Seen>),
    /// With a lock on each removal, or on the gap where it would be (W5).
    Locked(Arc<Table>, LockMode),
}

/// A cursor over removals. There is no removal from `from` up to the cursor's position.
struct Seen {
    cursor: Cursor,
    found: bool,
    from: Vec<u8>,
}

impl Removals {
    /// Opens the removals of the posting table with the ID `postings`.
    pub(in crate::db::fulltext) fn begin(
        txn: &mut Transaction,
        postings: TableId,
        reading: &Reading,
    ) -> Result<Self> {
        let key = key_prefix(postings).to_vec();
        let source = match reading {
            _ if !sound!(true, "full text: find the words of removed rows") => Source::Nowhere,
            Reading::View(view) => match seen_by(txn, view) {
                Some(table) => Source::Seen(Seen::begin(txn, &table, Reading::View(Arc::clone(view)), &key)?),
                None => Source::Nowhere,
            },
            // Not even the background writes removals of words of this table (W4).
            Reading::Newest => match existing(&txn.core) {
                Some(table) => Source::Seen(Seen::begin(txn, &table, Reading::Newest, &key)?),
                None => Source::Nowhere,
            },
            Reading::Rows(_) if !sound!(true, "full text: lock postings without their removals") => {
                Source::Nowhere
            }
            Reading::Rows(mode) => {
                let table = existing_or_new(&txn.core)?;
                let intention = match mode {
                    LockMode::Shared => TableMode::IntentShared,
                    LockMode::Exclusive => TableMode::IntentExclusive,
                };
                txn.lock_table_as(&table, intention)?;
                Source::Locked(table, *mode)
            }
        };
        Ok(Self { prefix_bytes: key.len(), key, source })
    }

    pub(in crate::db::fulltext) fn are_none(&self) -> bool {
        matches!(self.source, Source::Nowhere)
    }

    /// Returns whether the row was deleted. Cheap if keys are passed in ascending order. May do
    /// I/O, and wait for a lock; errors are those of [`Transaction::get`].
    pub(in crate::db::fulltext) fn have(&mut self, txn: &mut Transaction, row_key: &[u8]) -> Result<bool> {
        self.key.truncate(self.prefix_bytes);
        self.key.extend_from_slice(row_key);
        match &mut self.source {
            Source::Nowhere => Ok(false),
            Source::Seen(seen) => seen.have(&self.key),
            Source::Locked(table, mode) => {
                let how: HowToRead = (Reading::Rows(*mode), None);
                txn.get_as(table, &self.key, how, OnLocked::Wait, &mut Vec::new())
            }
        }
    }
}

impl Seen {
    fn begin(
        txn: &mut Transaction,
        table: &Arc<Table>,
        reading: Reading,
        prefix: &[u8],
    ) -> Result<Box<Self>> {
        let cursor = txn.cursor_as(table, 0, (reading, None), OnLocked::Wait)?;
        let mut seen = Self { cursor, found: false, from: Vec::new() };
        seen.seek(prefix)?;
        Ok(Box::new(seen))
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.found = self.cursor.seek(SeekMode::AtLeast, key)?;
        self.note_from(key);
        Ok(())
    }

    fn note_from(&mut self, key: &[u8]) {
        self.from.clear();
        self.from.extend_from_slice(key);
    }

    fn next_key(&self) -> Option<&[u8]> {
        self.found.then(|| self.cursor.key())
    }

    fn have(&mut self, key: &[u8]) -> Result<bool> {
        if key < self.from.as_slice() {
            self.seek(key)?;
        }
        let is_behind = |seen: &Self| seen.next_key().is_some_and(|next| next < key);
        if is_behind(self) {
            for _ in 0..STEPS_MAX {
                self.found = self.cursor.next()?;
                if !is_behind(self) {
                    break;
                }
            }
            match is_behind(self) {
                true => self.seek(key)?,
                false => self.note_from(key),
            }
        }
        Ok(self.next_key() == Some(key))
    }
}

/// `None` if `view` sees no removals, as a view older than the table of removals (W8).
fn seen_by(txn: &Transaction, view: &ReadView) -> Option<Arc<Table>> {
    let table = existing(&txn.core)?;
    let own = txn.slot.as_ref().and_then(|slot| slot.rows_of(table.id()));
    let counted = view.stamp().and_then(|stamp| table.counts().count(stamp, own));
    (counted != Some(0)).then_some(table)
}

/// The count and hash sum of postings that were skipped, or that removals name.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(in crate::db::fulltext) struct Passed {
    pub(in crate::db::fulltext) count: u64,
    sum: HashSum,
}

impl Passed {
    pub(in crate::db::fulltext) fn add(&mut self, posting: &[u8]) {
        self.count += 1;
        self.sum.add([posting, &[], &[]]);
    }

    /// Sums up the postings named by the removals of a posting table that `view` sees. May do I/O.
    pub(in crate::db::fulltext) fn named(
        txn: &mut Transaction,
        postings: TableId,
        view: &Arc<ReadView>,
    ) -> Result<Self> {
        let mut named = Self::default();
        let Some(table) = existing(&txn.core) else { return Ok(named) };
        let how = (Reading::View(Arc::clone(view)), None);
        let mut cursor = txn.cursor_as(&table, 0, how, OnLocked::Wait)?;
        let prefix = key_prefix(postings);
        let mut found = cursor.seek(SeekMode::AtLeast, &prefix)?;
        while found && cursor.key().starts_with(&prefix) {
            txn.locker.check_interrupted()?;
            let (_, row_key) = parse_key(cursor.key())?;
            each_word(&txn.words_of_removal(&table, cursor.row())?, |word| {
                named.add(&[word, row_key].concat());
                Ok(())
            })?;
            found = cursor.next()?;
        }
        Ok(named)
    }
}

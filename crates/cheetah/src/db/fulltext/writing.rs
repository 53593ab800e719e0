//! Writing the words of rows.

use super::postings::POSTINGS_PER_QUESTION;
use super::words::WordPlace;
use super::RowWords;
use crate::base::{sound, Result};
use crate::db::{Load, Transaction};
use crate::table::Table;
use std::cmp::Ordering;
use std::sync::Arc;

/// The change of a posting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Write {
    Insert,
    Update,
    Delete,
}

impl Transaction {
    /// Writes the words of a new row, which this transaction has written. Must be called even if
    /// the row has no words. `postings`: see [`Db::postings`](crate::db::Db::postings). Waits and
    /// fails like [`insert`](Self::insert), and may fail with `Interrupted` even if it does not
    /// wait. Fails with `Limit` for a word longer than the index was created for. After an error,
    /// some words may remain written until a rollback to a savepoint.
    pub fn insert_words(&mut self, postings: &Arc<Table>, row: RowWords<'_>) -> Result<()> {
        row.words.sort();
        let done = self.write_words(|txn| txn.insert_new(postings, &row));
        row.words.clear();
        done
    }

    /// Removes the words of a row that this transaction deleted. Postings of a row with several
    /// words remain for a while, but no search finds them. Otherwise like
    /// [`insert_words`](Self::insert_words).
    pub fn delete_words(&mut self, postings: &Arc<Table>, row: RowWords<'_>) -> Result<()> {
        if !sound!(true, "full text: keep the words of a row that goes") {
            return Ok(());
        }
        row.words.sort();
        let done = self.write_words(|txn| txn.delete_old(postings, &row));
        row.words.clear();
        done
    }

    /// Writes the differences between the old and the new words of a changed row. Otherwise like
    /// [`insert_words`](Self::insert_words).
    pub fn change_words(
        &mut self,
        postings: &Arc<Table>,
        old: RowWords<'_>,
        new: RowWords<'_>,
    ) -> Result<()> {
        old.words.sort();
        new.words.sort();
        let done = self.write_words(|txn| match old.key == new.key {
            true => txn.write_changes(postings, &old, &new),
            false => txn.delete_old(postings, &old).and_then(|()| txn.insert_new(postings, &new)),
        });
        old.words.clear();
        new.words.clear();
        done
    }

    /// The transaction has locked the rows of the postings. Under snapshot isolation, a row that
    /// changed after the snapshot has already been refused. The background may have deleted its
    /// postings after the snapshot, which is no reason to refuse it.
    fn write_words(&mut self, write: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let locker = Arc::clone(&self.locker);
        let refuses = locker.suspend_refusals();
        let done = write(self);
        locker.resume_refusals(refuses);
        done
    }

    fn insert_new(&mut self, postings: &Arc<Table>, row: &RowWords<'_>) -> Result<()> {
        self.take_removal_back(postings, row.key)?;
        self.write_all(postings, row, Write::Insert)
    }

    fn delete_old(&mut self, postings: &Arc<Table>, row: &RowWords<'_>) -> Result<()> {
        match self.record_removal(postings, row)? {
            true => Ok(()),
            false => self.write_all(postings, row, Write::Delete),
        }
    }

    /// The row keeps its key.
    fn write_changes(&mut self, postings: &Arc<Table>, old: &RowWords<'_>, new: &RowWords<'_>) -> Result<()> {
        let (mut old_groups, mut new_groups) = (old.words.groups().peekable(), new.words.groups().peekable());
        loop {
            let order = match (old_groups.peek(), new_groups.peek()) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(gone), Some(come)) => compare(old, gone, new, come),
            };
            let gone = if order.is_le() { old_groups.next() } else { None };
            let come = if order.is_ge() { new_groups.next() } else { None };
            match (gone, come) {
                (Some(gone), None) => self.write_posting(postings, old, gone, Write::Delete)?,
                (None, Some(come)) => self.write_posting(postings, new, come, Write::Insert)?,
                (Some(gone), Some(come)) if !same_places(gone, come) => {
                    self.write_posting(postings, new, come, Write::Update)?;
                }
                _ => {}
            }
        }
    }

    /// Loads the words of a row, like [`load`](Self::load), into a load of the posting table.
    pub fn load_words(&mut self, load: &mut Load, row: RowWords<'_>) -> Result<()> {
        row.words.sort();
        let mut room = std::mem::take(&mut self.posting_room);
        let done = row.words.groups().try_for_each(|places| {
            room.build(row.key, row.words, places);
            self.load(load, &room.posting())
        });
        self.posting_room = room;
        row.words.clear();
        done
    }

    fn write_all(&mut self, postings: &Arc<Table>, row: &RowWords<'_>, what: Write) -> Result<()> {
        row.words.groups().try_for_each(|places| self.write_posting(postings, row, places, what))
    }

    fn write_posting(
        &mut self,
        postings: &Arc<Table>,
        row: &RowWords<'_>,
        places: &[WordPlace],
        what: Write,
    ) -> Result<()> {
        self.count_posting_written()?;
        let mut room = std::mem::take(&mut self.posting_room);
        room.build(row.key, row.words, places);
        let done = match what {
            Write::Insert => self.insert(postings, &room.posting()),
            Write::Update => self.update(postings, &room.key, &room.posting(), &[]),
            Write::Delete => self.delete(postings, &room.key, &[]),
        };
        self.posting_room = room;
        done
    }

    /// Fails with `Interrupted` when the statement must end.
    pub(super) fn count_posting_written(&mut self) -> Result<()> {
        self.postings_written = self.postings_written.wrapping_add(1);
        match self.postings_written % POSTINGS_PER_QUESTION {
            0 => self.locker.check_interrupted(),
            _ => Ok(()),
        }
    }
}

fn compare(old: &RowWords<'_>, gone: &[WordPlace], new: &RowWords<'_>, come: &[WordPlace]) -> Ordering {
    old.words.word_of(gone).cmp(new.words.word_of(come))
}

fn same_places(one: &[WordPlace], other: &[WordPlace]) -> bool {
    one.iter().map(|place| place.position).eq(other.iter().map(|place| place.position))
}

//! Writing removals, and deleting them when their rows are inserted again.

use super::table::{existing, existing_or_new};
use crate::base::{reach, sound, Error, Result};
use crate::db::fulltext::RowWords;
use crate::db::Transaction;
use crate::format::catalog::{Encryption, TableEncryption};
use crate::format::page::RecordRef;
use crate::format::removed_words::{check_fixed, each_word, put_key};
use crate::format::row::RowView;
use crate::table::rows::locker::{Locked, Patience};
use crate::table::{NewRow, Table};
use crate::txn::{LockMode, TableMode};
use std::sync::Arc;

/// Rows with more words get a removal; deleting one posting is as fast as writing a removal.
const WORDS_DELETED_AT_ONCE_MAX: usize = 1;

impl Transaction {
    /// Writes a removal of a row with these sorted words, if its postings are to be deleted later;
    /// returns whether it did. The row, or its table, is locked (W2).
    pub(in crate::db::fulltext) fn record_removal(
        &mut self,
        postings: &Arc<Table>,
        row: &RowWords<'_>,
    ) -> Result<bool> {
        let few = row.words.groups().nth(WORDS_DELETED_AT_ONCE_MAX).is_none();
        let is_temporary = postings.newest().id().is_temporary();
        if few || is_temporary || !may_leave(postings.newest().def().encryption) {
            return Ok(false);
        }
        let removed = existing_or_new(&self.core)?;
        // The words must not change while another transaction locks the whole posting table.
        self.lock_table_as(postings, TableMode::IntentExclusive)?;
        let mut room = std::mem::take(&mut self.removal_room);
        let fits = room.build(postings.newest(), row, &removed);
        let done = match fits {
            true => self.insert(&removed, &NewRow { key: &room.key, row: &room.row, secondary: &[] }),
            false => Ok(()),
        };
        self.removal_room = room;
        done.map(|()| fits)
    }

    /// Deletes the removal, if any, and the postings of a deleted row that is inserted again (W3).
    /// The row, or its table, is locked.
    pub(in crate::db::fulltext) fn take_removal_back(
        &mut self,
        postings: &Arc<Table>,
        row_key: &[u8],
    ) -> Result<()> {
        let Some(removed) = existing(&self.core) else { return Ok(()) };
        self.catch_up()?;
        if !sound!(true, "full text: bring a row back without looking for its removal") {
            return Ok(());
        }
        let mut key = Vec::new();
        put_key(postings.newest().id(), row_key, &mut key);
        let is_recorded = {
            let _usage = removed.use_it()?;
            removed.clustered().get(&key, |_| ())?.is_some()
        };
        match is_recorded {
            true => self.take_recorded_back(postings, (&removed, &key), row_key),
            false => Ok(()),
        }
    }

    fn take_recorded_back(
        &mut self,
        postings: &Arc<Table>,
        (removed, key): (&Arc<Table>, &[u8]),
        row_key: &[u8],
    ) -> Result<()> {
        self.lock_table_as(removed, TableMode::IntentExclusive)?;
        let mut row = Vec::new();
        let see = |record: RecordRef<'_>| {
            row.clear();
            row.extend_from_slice(record.payload);
            Ok(())
        };
        let locked =
            self.locker.lock_row(removed, key, None, Patience::Waits, |_| LockMode::Exclusive, see)?;
        match locked {
            Locked::Live(_) => {
                reach::mark("removal taken back");
                self.delete_removed_words(postings, (removed, &row), row_key)?;
                match sound!(true, "full text: keep the removal of a row that comes again") {
                    true => self.delete(removed, key, &[]),
                    false => Ok(()),
                }
            }
            Locked::Gone(Some(mode)) => {
                self.locker.unlock_row(removed, key, mode);
                Ok(())
            }
            Locked::Gone(None) | Locked::Refused => Ok(()),
        }
    }

    /// Deletes the postings named by a removal of the row. The caller has locked the removal, and
    /// deletes it in the same transaction (W1).
    pub(super) fn delete_removed_words(
        &mut self,
        postings: &Arc<Table>,
        (removed, row): (&Arc<Table>, &[u8]),
        row_key: &[u8],
    ) -> Result<()> {
        let words = self.words_of_removal(removed, row)?;
        let mut posting = Vec::new();
        each_word(&words, |word| {
            self.count_posting_written()?;
            posting.clear();
            posting.extend_from_slice(word);
            posting.extend_from_slice(row_key);
            match self.delete(postings, &posting, &[]) {
                // The posting was lost to damage, which CHECK TABLE reports.
                Err(Error::RowNotFound) => Ok(()),
                done => done,
            }
        })
    }

    pub(in crate::db::fulltext) fn words_of_removal(
        &self,
        removed: &Arc<Table>,
        row: &[u8],
    ) -> Result<Vec<u8>> {
        let damaged = |detail: &str| Error::corrupt(format!("table '{}'", removed.name()), detail);
        let view = RowView::parse(removed.row_format(), row)
            .map_err(|defect| damaged(&format!("one of its rows: {defect}")))?;
        check_fixed(view.fixed())?;
        let words = view.values().next().ok_or_else(|| damaged("one of its rows has no words"))?;
        if !words.external {
            return Ok(words.bytes.to_vec());
        }
        let mut whole = Vec::new();
        self.fetch_large(removed, words.bytes, &mut whole)?;
        Ok(whole)
    }
}

/// Whether words of a table with this encryption may be in the table of removals, which has the
/// default encryption (W6).
fn may_leave(encryption: TableEncryption) -> bool {
    encryption == TableEncryption::default() || encryption.wish == Encryption::No
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w6_words_get_into_no_table_that_is_encrypted_otherwise() {
        let check =
            |wish, key_id, expected| assert_eq!(may_leave(TableEncryption { wish, key_id }), expected);
        check(Encryption::Default, 1, true);
        check(Encryption::No, 5, true);
        check(Encryption::Yes, 1, false);
        check(Encryption::Default, 5, false);
    }
}

//! Checks that a full-text index has exactly the words of its rows.

use super::postings::{put_whole_row, PostingRoom};
use super::removed::Passed;
use super::{Texts, WordList};
use crate::base::hash::HashSum;
use crate::base::Result;
use crate::db::{OnLocked, Transaction};
use crate::fulltext::WordKind;
use crate::table::Table;
use crate::tree::SeekMode;
use std::sync::Arc;

/// The count and hash sum of postings, in any order.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Tally {
    count: u64,
    sum: HashSum,
}

impl Tally {
    fn add(&mut self, key: &[u8], positions: &[u8]) {
        self.count += 1;
        self.sum.add([key, positions, &[]]);
    }
}

impl Transaction {
    /// Compares the postings of a full-text index with the words of the rows, and the postings of
    /// deleted rows with the words in their removals. Returns a description of the difference, or
    /// `None`. Reads the newest state, including this transaction's own changes, and takes no
    /// locks. `end`: see [`Search`](super::Search). Reads the whole index and table; errors are
    /// those of [`cursor`](Self::cursor) without locks.
    pub fn check_words(
        &mut self,
        table: &Arc<Table>,
        index_no: usize,
        end: &[u8],
        texts: &mut dyn Texts,
    ) -> Result<Option<String>> {
        let (mut list, mut expected, mut room) =
            (WordList::default(), Tally::default(), PostingRoom::default());
        self.catch_up()?;
        let (view, table) = (self.new_view(), table.newest());
        let how = self.see(table, &view)?;
        let (mut rows, mut row) = (self.cursor_as(table, 0, how, OnLocked::Wait)?, Vec::new());
        let mut found = rows.seek(SeekMode::First, b"")?;
        while found {
            self.locker.check_interrupted()?;
            list.clear();
            row.clear();
            put_whole_row(self, table, rows.row(), &mut row)?;
            texts.words_of(rows.key(), &row, &mut |word, position| {
                if word.kind == WordKind::Indexed {
                    list.add(&[word.weights, end].concat(), position);
                }
                Ok(())
            })?;
            list.sort();
            for places in list.groups() {
                room.build(rows.key(), &list, places);
                expected.add(&room.key, room.positions.bytes());
            }
            found = rows.next()?;
        }
        let (mut tally, name) = (Tally::default(), table.fulltext_index(index_no)?.name.clone());
        let mut reader = self.reader(table, index_no, (end, Some(Arc::clone(&view))), texts)?;
        reader.read_all(&mut |key, positions| {
            tally.add(key, positions.bytes());
            Ok(())
        })?;
        let (passed, postings) = (reader.passed, reader.number_seen(&view));
        let text = format!(
            "full-text index '{name}' has {} words of rows, {} are expected{}; drop it and add it again",
            tally.count,
            expected.count,
            if tally.count == expected.count { ", but different ones" } else { "" }
        );
        if tally != expected {
            return Ok(Some(text));
        }
        let named = Passed::named(self, postings, &view)?;
        let text = format!(
            "full-text index '{name}' has {} words of deleted rows, {} are expected{}; drop it and add it again",
            passed.count,
            named.count,
            if passed.count == named.count { ", but different ones" } else { "" }
        );
        Ok((passed != named).then_some(text))
    }
}

//! Full-text indexes through a transaction: the words of its rows become postings, which it writes
//! as it writes the rows, and reads as it reads them.
//!
//! A posting is a row of the index's own table ([`crate::table::definitions::fulltext`]). Its key
//! is a word and the clustered key of a row; it holds where the word stands in the row. So a
//! transaction finds its own words at once, others find them with its commit, and a rollback, a
//! crash, purge and snapshots treat them as all rows.

use super::reading::HowToRead;
use super::{Cursor, Isolation, Load, OnLocked, Read, SeekEnd, Transaction};
use crate::base::hash::HashSum;
use crate::base::{planted, Error, Result};
use crate::format::row::{build_row, RowView, VarValue};
use crate::fulltext::{self, Matches, Mode, Position, PositionList, Positions, Source, Word, WordKind};
use crate::table::definitions::fulltext as definitions;
use crate::table::rows::stored_row::{find_values, inline_row};
use crate::table::shared::parts::Core;
use crate::table::{NewRow, Table};
use crate::tree::SeekMode;
use crate::txn::ReadView;
use std::cmp::Ordering;
use std::sync::Arc;

/// Postings between two questions whether the statement is to end.
const POSTINGS_PER_QUESTION: usize = 512;

/// Bytes that the list of a row's words keeps for the next row.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// The words of a row. Keeps its memory from row to row, unless that is much.
#[derive(Default, Debug)]
pub struct WordList {
    bytes: Vec<u8>,
    /// In the order of words, and of places in one, once they are sorted.
    words: Vec<WordPlace>,
}

/// A word at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct WordPlace {
    /// Where its bytes begin in the list.
    start: usize,
    len: usize,
    position: Position,
}

impl WordList {
    /// Forgets all words.
    pub fn clear(&mut self) {
        if self.bytes.capacity() + self.words.capacity() * size_of::<WordPlace>() > KEPT_BYTES_MAX {
            *self = Self::default();
        }
        self.bytes.clear();
        self.words.clear();
    }

    /// Adds a word: bytes that are equal for equal words, and of which none is the beginning of
    /// another's; and where it stands. Words come in the order of the text.
    pub fn add(&mut self, word: &[u8], position: Position) {
        self.words.push(WordPlace { start: self.bytes.len(), len: word.len(), position });
        self.bytes.extend_from_slice(word);
    }

    fn word(&self, place: WordPlace) -> &[u8] {
        self.bytes.get(place.start..place.start + place.len).unwrap_or_default()
    }

    /// The word of a group.
    fn word_of(&self, places: &[WordPlace]) -> &[u8] {
        places.first().map_or(&[], |place| self.word(*place))
    }

    fn sort(&mut self) {
        let mut words = std::mem::take(&mut self.words);
        words.sort_unstable_by(|a, b| self.word(*a).cmp(self.word(*b)).then(a.position.cmp(&b.position)));
        self.words = words;
    }

    /// The places of each word, of a sorted list.
    fn groups(&self) -> impl Iterator<Item = &[WordPlace]> {
        self.words.chunk_by(|a, b| self.word(*a) == self.word(*b))
    }
}

/// The words of a row with that clustered key.
#[derive(Debug)]
pub struct RowWords<'a> {
    /// The clustered key of the row.
    pub key: &'a [u8],
    /// Its words; the list is empty afterwards.
    pub words: &'a mut WordList,
}

/// The texts that a search speaks of, as their caller sees them.
pub trait Texts {
    /// Calls `each` for every word of a query's text, in order.
    fn split(&mut self, text: &[u8], each: &mut dyn FnMut(Word<'_>) -> Result<()>) -> Result<()>;
    /// Calls `each` for every word of a row, in order: those that the index leaves out too. `row`
    /// is the stored row with its large values in it. The transaction must not be used meanwhile.
    fn words_of(
        &mut self,
        key: &[u8],
        row: &[u8],
        each: &mut dyn FnMut(Word<'_>, Position) -> Result<()>,
    ) -> Result<()>;
}

/// A full-text search.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// In the character set of the index.
    pub text: &'a [u8],
    /// How it is to be read.
    pub mode: Mode,
    /// Stands behind the weights of each word in the index.
    pub end: &'a [u8],
    /// Bytes of memory that it may take.
    pub limit_bytes: u64,
    /// How the rows found will be read.
    pub read: Read,
}

/// What a full-text search has found.
#[derive(Debug)]
pub struct Found {
    /// The rows that match, with their ranks.
    pub matches: Matches,
    /// What was searched, if that is not what the transaction sees.
    view: Option<Arc<ReadView>>,
    /// What a later search has found, for rows that have changed since.
    newer: Option<Box<Found>>,
}

/// Postings of an index that a change of the definition is to bring. Dropping it before that has
/// taken them leaves nothing behind.
#[derive(Debug)]
pub struct NewPostings {
    core: Arc<Core>,
    table: Arc<Table>,
}

impl NewPostings {
    pub(in crate::db) fn new(core: &Arc<Core>, of: &Table, max_word_bytes: u32) -> Result<Self> {
        let table = definitions::create_unnamed(core, of, max_word_bytes)?;
        Ok(Self { core: Arc::clone(core), table })
    }

    /// The table to be filled, and to be named in the change.
    pub fn table(&self) -> Arc<Table> {
        Arc::clone(self.table.newest())
    }
}

impl Drop for NewPostings {
    fn drop(&mut self) {
        definitions::drop_unnamed(&self.core, &self.table);
    }
}

/// Room for one posting.
#[derive(Default, Debug)]
pub(in crate::db) struct PostingRoom {
    key: Vec<u8>,
    positions: PositionList,
    row: Vec<u8>,
}

impl PostingRoom {
    fn build(&mut self, row_key: &[u8], words: &WordList, places: &[WordPlace]) {
        let word = words.word_of(places);
        self.key.clear();
        self.key.extend_from_slice(word);
        self.key.extend_from_slice(row_key);
        self.positions.clear();
        places.iter().for_each(|place| self.positions.push(place.position));
        self.row.clear();
        let length = (word.len() as u16).to_be_bytes();
        build_row(&[], &length, &[VarValue::inline(self.positions.bytes())], &mut self.row);
    }

    fn posting(&self) -> NewRow<'_> {
        NewRow { key: &self.key, row: &self.row, secondary: &[] }
    }
}

/// What becomes of a posting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Write {
    Insert,
    Update,
    Delete,
}

impl Transaction {
    /// Writes the words of a new row. `postings`: see [`Db::postings`](crate::db::Db::postings).
    /// Waits, and errors, as of [`insert`](Self::insert); also `Interrupted` without a wait. After
    /// an error some words may be written: a savepoint takes them back. `Limit` for a word that is
    /// longer than the index was created for.
    pub fn insert_words(&mut self, postings: &Arc<Table>, row: RowWords<'_>) -> Result<()> {
        row.words.sort();
        let done = self.write_all(postings, &row, Write::Insert);
        row.words.clear();
        done
    }

    /// Takes back the words of a row that goes. Otherwise as [`insert_words`](Self::insert_words).
    pub fn delete_words(&mut self, postings: &Arc<Table>, row: RowWords<'_>) -> Result<()> {
        if planted::is_on("full text: keep the words of a row that goes") {
            return Ok(());
        }
        row.words.sort();
        let done = self.write_all(postings, &row, Write::Delete);
        row.words.clear();
        done
    }

    /// Writes what a changed row has other than before. Otherwise as
    /// [`insert_words`](Self::insert_words).
    pub fn change_words(
        &mut self,
        postings: &Arc<Table>,
        old: RowWords<'_>,
        new: RowWords<'_>,
    ) -> Result<()> {
        old.words.sort();
        new.words.sort();
        let done = match old.key == new.key {
            true => self.write_changes(postings, &old, &new),
            false => self
                .write_all(postings, &old, Write::Delete)
                .and_then(|()| self.write_all(postings, &new, Write::Insert)),
        };
        old.words.clear();
        new.words.clear();
        done
    }

    /// Of a row that keeps its key.
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

    /// Loads the words of a row, as [`load`](Self::load) does rows: into a load of `postings`.
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
        self.postings_written = self.postings_written.wrapping_add(1);
        if self.postings_written % POSTINGS_PER_QUESTION == 0 {
            self.locker.check_interrupted()?;
        }
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
}

fn compare(old: &RowWords<'_>, gone: &[WordPlace], new: &RowWords<'_>, come: &[WordPlace]) -> Ordering {
    old.words.word_of(gone).cmp(new.words.word_of(come))
}

fn same_places(one: &[WordPlace], other: &[WordPlace]) -> bool {
    one.iter().map(|place| place.position).eq(other.iter().map(|place| place.position))
}

impl Transaction {
    /// Finds and ranks the rows of `table` that match a full-text search of its index at that
    /// position, from 0: what a consistent read sees, or, for rows that will be read with locks,
    /// what is committed now and the transaction's own. May do I/O, and wait for a lock: errors as
    /// of [`cursor`](Self::cursor) and [`fulltext::search`].
    pub fn search(
        &mut self,
        table: &Arc<Table>,
        index_no: usize,
        search: &Search<'_>,
        texts: &mut dyn Texts,
    ) -> Result<Found> {
        self.core.health.check()?;
        // Under SERIALIZABLE the search locks what it reads.
        let is_newest = search.read != Read::Consistent && self.isolation != Isolation::Serializable;
        let is_stale = planted::is_on("full text: look for rows to lock in the snapshot");
        let view = (is_newest && !is_stale).then(|| self.new_view());
        let mut reader = self.reader(table, index_no, (search.end, view.clone()), texts)?;
        let matches = fulltext::search(search.text, search.mode, &mut reader, search.limit_bytes)?;
        Ok(Found { matches, view, newer: None })
    }

    /// The rank of the row of `key` by what a search has found; `None` if it does not match. A row
    /// that the transaction has locked, and that others have changed since, is judged as it is now:
    /// by a second search, which serves for all rows after it. May do I/O; errors as of
    /// [`search`](Self::search).
    pub fn rank_now(
        &mut self,
        table: &Arc<Table>,
        index_no: usize,
        search: &Search<'_>,
        texts: &mut dyn Texts,
        (found, key): (&mut Found, &[u8]),
    ) -> Result<Option<f32>> {
        let latest = found.newer.as_deref().unwrap_or(found);
        if search.read != Read::Consistent && self.may_match_otherwise(table, key, latest)? {
            found.newer = Some(Box::new(self.search(table, index_no, search, texts)?));
        }
        let latest = found.newer.as_deref().unwrap_or(found);
        Ok(latest.matches.rank(key))
    }

    fn may_match_otherwise(&self, table: &Arc<Table>, key: &[u8], found: &Found) -> Result<bool> {
        let view = found.view.as_ref().filter(|_| !planted::is_on("full text: lock what has changed"));
        view.map_or(Ok(false), |view| self.has_changed_since(table, key, view))
    }
}

/// Postings by their number and sum, in whatever order they come.
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
    /// Compares the postings of a full-text index with the words of the rows: what is wrong, or
    /// `None`. The transaction should have the table locked. `end`: as of [`Search`]. Reads all of
    /// both; errors as of [`cursor`](Self::cursor).
    pub fn check_words(
        &mut self,
        table: &Arc<Table>,
        index_no: usize,
        end: &[u8],
        texts: &mut dyn Texts,
    ) -> Result<Option<String>> {
        let (mut list, mut expected, mut room) =
            (WordList::default(), Tally::default(), PostingRoom::default());
        let (mut rows, mut row) = (self.cursor(table, 0, Read::Consistent)?, Vec::new());
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
        let mut reader = self.reader(table, index_no, (end, None), texts)?;
        reader.read_all(&mut |key, positions| {
            tally.add(key, positions.bytes());
            Ok(())
        })?;
        let text = format!(
            "full-text index '{name}' has {} words of rows, {} are expected{}; drop it and add it again",
            tally.count,
            expected.count,
            if tally.count == expected.count { ", and others" } else { "" }
        );
        Ok((tally != expected).then_some(text))
    }

    fn reader<'r>(
        &'r mut self,
        table: &'r Arc<Table>,
        index_no: usize,
        (end, view): (&'r [u8], Option<Arc<ReadView>>),
        texts: &'r mut dyn Texts,
    ) -> Result<PostingReader<'r>> {
        let postings = self.core.catalog.by_name(&table.fulltext_index(index_no)?.postings)?;
        let mut reader =
            PostingReader { txn: self, table, postings, end, view, texts, whole_row: Vec::new() };
        // Postings of an emptied table are not there any more, whatever the snapshot.
        reader.how_to_read(table)?;
        Ok(reader)
    }
}

/// Takes the key of a posting, the bytes of its word, and its positions.
type EachPosting<'e> = dyn FnMut(&[u8], usize, Positions<'_>) -> Result<()> + 'e;

/// Reads an index and its table for a search.
struct PostingReader<'r> {
    txn: &'r mut Transaction,
    table: &'r Arc<Table>,
    postings: Arc<Table>,
    /// Of each word in the index.
    end: &'r [u8],
    /// What is read, if it is not what the transaction sees.
    view: Option<Arc<ReadView>>,
    texts: &'r mut dyn Texts,
    /// The row whose words were asked for last.
    whole_row: Vec<u8>,
}

impl PostingReader<'_> {
    fn how_to_read(&mut self, table: &Arc<Table>) -> Result<HowToRead> {
        match &self.view {
            Some(view) => self.txn.see(table, view),
            None => self.txn.lock_to_read(table, Read::Consistent),
        }
    }

    fn cursor(&mut self) -> Result<Cursor> {
        let postings = Arc::clone(&self.postings);
        let how = self.how_to_read(&postings)?;
        self.txn.cursor_as(&postings, 0, how, OnLocked::Wait)
    }

    /// Calls `each(row's key, positions)` for all postings whose keys begin so.
    fn read(
        &mut self,
        beginning: &[u8],
        each: &mut dyn FnMut(&[u8], Positions<'_>) -> Result<()>,
    ) -> Result<()> {
        self.read_whole(beginning, &mut |key, word_bytes, positions| {
            each(key.get(word_bytes..).unwrap_or_default(), positions)
        })
    }

    /// Calls `each(posting's key, positions)` for all postings.
    fn read_all(&mut self, each: &mut dyn FnMut(&[u8], Positions<'_>) -> Result<()>) -> Result<()> {
        self.read_whole(&[], &mut |key, _, positions| each(key, positions))
    }

    /// Calls `each` for all whose keys begin so.
    fn read_whole(&mut self, beginning: &[u8], each: &mut EachPosting<'_>) -> Result<()> {
        let mut cursor = self.cursor()?;
        let mut found = cursor.seek_to(SeekMode::AtLeast, beginning, SeekEnd::Prefix)?;
        let (mut count, mut value) = (0, Vec::new());
        while found && cursor.key().starts_with(beginning) {
            count += 1;
            if count % POSTINGS_PER_QUESTION == 0 {
                self.txn.locker.check_interrupted()?;
            }
            let (word_bytes, positions) = parse(&self.postings, cursor.row())?;
            let key = cursor.key();
            if word_bytes > key.len() {
                return Err(damaged(&self.postings));
            }
            let positions = match positions.external {
                false => positions.bytes,
                true => {
                    self.txn.fetch_large(&self.postings, positions.bytes, &mut value)?;
                    &value
                }
            };
            each(key, word_bytes, Positions::new(positions))?;
            found = cursor.next()?;
        }
        Ok(())
    }
}

impl Source for PostingReader<'_> {
    fn split(&mut self, text: &[u8], each: &mut dyn FnMut(Word<'_>) -> Result<()>) -> Result<()> {
        self.texts.split(text, each)
    }

    fn postings(
        &mut self,
        weights: &[u8],
        each: &mut dyn FnMut(&[u8], Positions<'_>) -> Result<()>,
    ) -> Result<()> {
        self.read(&[weights, self.end].concat(), each)
    }

    fn postings_of_prefix(
        &mut self,
        weights: &[u8],
        each: &mut dyn FnMut(&[u8], Positions<'_>) -> Result<()>,
    ) -> Result<()> {
        self.read(weights, each)
    }

    fn words_of(&mut self, key: &[u8], each: &mut dyn FnMut(Word<'_>, Position) -> Result<()>) -> Result<()> {
        let (how, mut row) = (self.how_to_read(self.table)?, Vec::new());
        if !self.txn.get_as(self.table, key, how, OnLocked::Wait, &mut row)? {
            return Err(damaged(&self.postings));
        }
        self.whole_row.clear();
        put_whole_row(self.txn, self.table, &row, &mut self.whole_row)?;
        self.texts.words_of(key, &self.whole_row, each)
    }

    fn row_count(&mut self) -> Result<u64> {
        let how = self.how_to_read(self.table)?;
        let known = self.txn.count_as(self.table, how)?;
        Ok(known.unwrap_or_else(|| self.table.row_count()))
    }
}

/// Appends a row to `out` with its large values in it.
fn put_whole_row(txn: &Transaction, table: &Arc<Table>, stored: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let (mut values, mut bytes) = (Vec::new(), Vec::new());
    find_values(table.row_format(), stored, &mut values)?;
    inline_row(table.row_format(), stored, &values, out, |locator, value| {
        txn.fetch_large(table, locator, &mut bytes)?;
        value.extend_from_slice(&bytes);
        Ok(())
    })
}

/// The length of the word in a posting's key, and the value with its positions.
fn parse<'p>(postings: &Table, row: &'p [u8]) -> Result<(usize, VarValue<'p>)> {
    let view = RowView::parse(postings.row_format(), row).map_err(|_| damaged(postings))?;
    let word_bytes = view.fixed().try_into().map(u16::from_be_bytes).map_err(|_| damaged(postings))?;
    let positions = view.values().next().ok_or_else(|| damaged(postings))?;
    Ok((word_bytes.into(), positions))
}

fn damaged(postings: &Table) -> Error {
    let detail = "a posting does not fit its word or a row; drop the full-text index and add it again";
    Error::corrupt(format!("table '{}'", postings.name()), detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_long_row_leave_no_memory_behind() {
        let mut list = WordList::default();
        for (count, is_kept) in [(100, true), (100_000, false)] {
            (0..count).for_each(|ordinal| list.add(b"word", Position { ordinal, column: 0 }));
            list.clear();
            assert_eq!(list.words.capacity() > 0, is_kept);
        }
    }
}

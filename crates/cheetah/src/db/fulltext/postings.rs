//! Postings as rows of the index's own table: how they are built and read.

use super::removed::{Passed, Removals};
use super::words::WordPlace;
use super::WordList;
use crate::base::{sound, Error, Result, TableId};
use crate::db::reading::HowToRead;
use crate::db::{Cursor, Isolation, OnLocked, Read, SeekEnd, Transaction};
use crate::format::row::{build_row, RowView, VarValue};
use crate::fulltext::{Position, PositionList, Positions, Source, Word};
use crate::table::definitions::fulltext as definitions;
use crate::table::rows::stored_row::{find_values, inline_row};
use crate::table::shared::parts::Core;
use crate::table::{NewRow, Table};
use crate::tree::SeekMode;
use crate::txn::ReadView;
use std::cmp::Ordering;
use std::sync::Arc;

/// Postings between two checks for an interrupt.
pub(super) const POSTINGS_PER_QUESTION: usize = 512;

/// The postings of an index that a change of the definition will add. The posting table is removed
/// when this is dropped, unless the change has taken it over.
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

    /// The table to fill, and to name in the change of the definition.
    pub fn table(&self) -> Arc<Table> {
        Arc::clone(self.table.newest())
    }
}

impl Drop for NewPostings {
    fn drop(&mut self) {
        definitions::drop_unnamed(&self.core, &self.table);
    }
}

#[derive(Default, Debug)]
pub(in crate::db) struct PostingRoom {
    pub(super) key: Vec<u8>,
    pub(super) positions: PositionList,
    row: Vec<u8>,
}

impl PostingRoom {
    pub(super) fn build(&mut self, row_key: &[u8], words: &WordList, places: &[WordPlace]) {
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

    pub(super) fn posting(&self) -> NewRow<'_> {
        NewRow { key: &self.key, row: &self.row, secondary: &[] }
    }
}

/// Splits texts into words for a search; implemented by the caller.
pub trait Texts {
    /// Calls `each` for every word of a query's text, in order.
    fn split(&mut self, text: &[u8], each: &mut dyn FnMut(Word<'_>) -> Result<()>) -> Result<()>;
    /// Calls `each` for every word of a row in order, including words that the index leaves out.
    /// `row` is the stored row with its large values inlined. The transaction must not be used
    /// during the call.
    fn words_of(
        &mut self,
        key: &[u8],
        row: &[u8],
        each: &mut dyn FnMut(Word<'_>, Position) -> Result<()>,
    ) -> Result<()>;
}

impl Transaction {
    /// Reads the postings that `view` sees, or, without a view, those that the transaction sees.
    pub(super) fn reader<'r>(
        &'r mut self,
        table: &'r Arc<Table>,
        index_no: usize,
        (end, view): (&'r [u8], Option<Arc<ReadView>>),
        texts: &'r mut dyn Texts,
    ) -> Result<PostingReader<'r>> {
        let postings = self.core.catalog.by_name(&table.fulltext_index(index_no)?.postings)?;
        let of_snapshot = view.is_none() && self.isolation == Isolation::RepeatableRead;
        let (value, whole_row) = (Vec::new(), Vec::new());
        let mut reader = PostingReader {
            txn: self,
            table,
            postings,
            end,
            view,
            newest: None,
            texts,
            looked_at: 0,
            passed: Passed::default(),
            value,
            whole_row,
        };
        // No snapshot sees postings of an emptied table.
        reader.how_to_read(table)?;
        let may_differ = of_snapshot && reader.txn.may_have_changed(table);
        if sound!(may_differ, "full text: look for its own rows in the snapshot") {
            reader.newest = Some(reader.txn.new_view());
        }
        Ok(reader)
    }
}

/// Takes the key of a posting, the length of its word in bytes, and its positions.
type EachPosting<'e> = dyn FnMut(&[u8], usize, Positions<'_>) -> Result<()> + 'e;

pub(super) struct PostingReader<'r> {
    txn: &'r mut Transaction,
    table: &'r Arc<Table>,
    postings: Arc<Table>,
    /// The bytes that follow the weights of each word in the index.
    end: &'r [u8],
    /// The view to read with, if it is not the transaction's.
    view: Option<Arc<ReadView>>,
    /// A view of the newest state, if the transaction may have changed rows that other transactions
    /// changed after its snapshot: it sees those rows' words, too.
    newest: Option<Arc<ReadView>>,
    texts: &'r mut dyn Texts,
    looked_at: usize,
    /// Skipped postings of deleted rows.
    pub(super) passed: Passed,
    /// Buffer for positions that are stored as a large value.
    value: Vec<u8>,
    /// The row whose words were last requested.
    whole_row: Vec<u8>,
}

impl PostingReader<'_> {
    fn how_to_read(&mut self, table: &Arc<Table>) -> Result<HowToRead> {
        match &self.view {
            Some(view) => self.txn.see(table, view),
            None => self.txn.lock_to_read(table, Read::Consistent),
        }
    }

    pub(super) fn number_seen(&self, view: &ReadView) -> TableId {
        self.postings.seen_at(view.stamp()).unwrap_or_else(|| Arc::clone(&self.postings)).id()
    }

    /// Returns the postings whose keys begin with `beginning`, as the search sees them.
    fn seen<'w>(&mut self, beginning: &'w [u8]) -> Result<Walk<'w>> {
        let postings = Arc::clone(&self.postings);
        let how = self.how_to_read(&postings)?;
        self.walk(how, beginning)
    }

    fn walk<'w>(&mut self, how: HowToRead, beginning: &'w [u8]) -> Result<Walk<'w>> {
        let postings = how.1.as_ref().unwrap_or(&self.postings).id();
        let removals = Removals::begin(self.txn, postings, &how.0)?;
        let cursor = self.txn.cursor_as(&self.postings, 0, how, OnLocked::Wait)?;
        let mut walk = Walk { cursor, beginning, removals, found: false };
        walk.found = walk.cursor.seek_to(SeekMode::AtLeast, beginning, SeekEnd::Prefix)?;
        self.pass_over(&mut walk)?;
        Ok(walk)
    }

    /// Calls `each(row's key, positions)`.
    fn read(
        &mut self,
        beginning: &[u8],
        each: &mut dyn FnMut(&[u8], Positions<'_>) -> Result<()>,
    ) -> Result<()> {
        self.read_whole(beginning, &mut |key, word_bytes, positions| {
            each(key.get(word_bytes..).unwrap_or_default(), positions)
        })
    }

    /// Calls `each(posting's key, positions)`.
    pub(super) fn read_all(
        &mut self,
        each: &mut dyn FnMut(&[u8], Positions<'_>) -> Result<()>,
    ) -> Result<()> {
        self.read_whole(&[], &mut |key, _, positions| each(key, positions))
    }

    fn read_whole(&mut self, beginning: &[u8], each: &mut EachPosting<'_>) -> Result<()> {
        let mut seen = self.seen(beginning)?;
        let Some(newest) = self.newest.clone() else {
            while seen.key().is_some() {
                self.look()?;
                self.hand_out(&seen.cursor, each)?;
                self.next(&mut seen)?;
            }
            return Ok(());
        };
        let how = self.txn.see(&self.postings, &newest)?;
        let mut current = self.walk(how, beginning)?;
        while let Some((order, first)) = first_of(&seen, &current) {
            self.look()?;
            let is_same = order == Ordering::Equal && seen.cursor.row() == current.cursor.row();
            let is_now = is_same || self.sees_newest(first)?;
            match is_now {
                true if order != Ordering::Less => self.hand_out(&current.cursor, each)?,
                false if order != Ordering::Greater => self.hand_out(&seen.cursor, each)?,
                _ => {}
            }
            if order != Ordering::Greater {
                self.next(&mut seen)?;
            }
            if order != Ordering::Less {
                self.next(&mut current)?;
            }
        }
        Ok(())
    }

    fn next(&mut self, walk: &mut Walk<'_>) -> Result<()> {
        walk.found = walk.cursor.next()?;
        self.pass_over(walk)
    }

    fn pass_over(&mut self, walk: &mut Walk<'_>) -> Result<()> {
        if walk.removals.are_none() {
            return Ok(());
        }
        while walk.key().is_some() {
            let (word_bytes, _) = parse(&self.postings, &walk.cursor)?;
            let key = walk.cursor.key();
            if !walk.removals.have(self.txn, key.get(word_bytes..).unwrap_or_default())? {
                return Ok(());
            }
            self.look()?;
            self.passed.add(key);
            walk.found = walk.cursor.next()?;
        }
        Ok(())
    }

    /// Fails with `Interrupted` when the statement must end.
    fn look(&mut self) -> Result<()> {
        self.looked_at += 1;
        match self.looked_at % POSTINGS_PER_QUESTION {
            0 => self.txn.locker.check_interrupted(),
            _ => Ok(()),
        }
    }

    fn hand_out(&mut self, cursor: &Cursor, each: &mut EachPosting<'_>) -> Result<()> {
        let (word_bytes, positions) = parse(&self.postings, cursor)?;
        let positions = match positions.external {
            false => positions.bytes,
            true => {
                self.txn.fetch_large(&self.postings, positions.bytes, &mut self.value)?;
                &self.value
            }
        };
        each(cursor.key(), word_bytes, Positions::new(positions))
    }

    /// Whether the transaction sees the newest version of a posting's row.
    fn sees_newest(&self, cursor: &Cursor) -> Result<bool> {
        let (word_bytes, _) = parse(&self.postings, cursor)?;
        let row_key = cursor.key().get(word_bytes..).unwrap_or_default();
        Ok(!self.txn.has_changed_since(self.table, row_key, &self.txn.view)?)
    }
}

/// The postings whose keys begin with `beginning`, in key order, without those of deleted rows.
struct Walk<'w> {
    cursor: Cursor,
    beginning: &'w [u8],
    removals: Removals,
    found: bool,
}

impl Walk<'_> {
    fn key(&self) -> Option<&[u8]> {
        (self.found && self.cursor.key().starts_with(self.beginning)).then(|| self.cursor.key())
    }
}

/// Compares the next postings of two walks; returns the cursor of the lower one.
fn first_of<'c>(one: &'c Walk<'_>, other: &'c Walk<'_>) -> Option<(Ordering, &'c Cursor)> {
    match (one.key(), other.key()) {
        (None, None) => None,
        (Some(_), None) => Some((Ordering::Less, &one.cursor)),
        (None, Some(_)) => Some((Ordering::Greater, &other.cursor)),
        (Some(key), Some(than)) if key > than => Some((Ordering::Greater, &other.cursor)),
        (Some(key), Some(than)) => Some((key.cmp(than), &one.cursor)),
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

/// Appends a row with its large values inlined.
pub(super) fn put_whole_row(
    txn: &Transaction,
    table: &Arc<Table>,
    stored: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let (mut values, mut bytes) = (Vec::new(), Vec::new());
    find_values(table.row_format(), stored, &mut values)?;
    inline_row(table.row_format(), stored, &values, out, |locator, value| {
        txn.fetch_large(table, locator, &mut bytes)?;
        value.extend_from_slice(&bytes);
        Ok(())
    })
}

/// The length of the word in the posting's key, and the value with its positions.
fn parse<'p>(postings: &Table, cursor: &'p Cursor) -> Result<(usize, VarValue<'p>)> {
    let damaged = || damaged(postings);
    let view = RowView::parse(postings.row_format(), cursor.row()).map_err(|_| damaged())?;
    let word_bytes: usize = view.fixed().try_into().map(u16::from_be_bytes).map_err(|_| damaged())?.into();
    if word_bytes > cursor.key().len() {
        return Err(damaged());
    }
    Ok((word_bytes, view.values().next().ok_or_else(damaged)?))
}

fn damaged(postings: &Table) -> Error {
    let detail = "a posting does not fit its word or a row; drop the full-text index and add it again";
    Error::corrupt(format!("table '{}'", postings.name()), detail)
}

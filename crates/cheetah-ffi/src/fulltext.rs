//! Full-text indexes: words of rows.

use crate::barrier::{entry, value};
use crate::codes::*;
use crate::loads::CheetahLoad;
use crate::types::*;
use crate::{CheetahBuffer, CheetahDb, CheetahTable, CheetahTxn};
use cheetah::server::{
    Found, Mode, NewPostings, Position, RowWords, Search, SearchProblem, Texts, Word, WordKind, WordList,
};
use cheetah::{Error, FulltextSpec, OnLocked, Result, Table};
use std::ffi::c_void;
use std::sync::Arc;

/// A full-text index to create.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahFulltextSpec {
    /// Its name.
    pub name: CheetahBytes,
    /// The caller's own bytes: how texts become words.
    pub extra: CheetahBytes,
}

impl CheetahFulltextSpec {
    /// SAFETY: as for [`CheetahBytes::get`].
    pub(crate) unsafe fn get(&self) -> FulltextSpec {
        // SAFETY: passed on.
        let (name, extra) = unsafe { (self.name.text(), self.extra.get().to_vec()) };
        FulltextSpec { name, max_word_bytes: WORD_BYTES_MAX, extra }
    }
}

/// The words of a row.
#[derive(Default, Debug)]
pub struct CheetahWords(WordList);

/// Postings of an index that is being built.
#[derive(Debug)]
pub struct CheetahPostings(pub(crate) NewPostings);

/// Longest word in bytes: 84 characters, the most that a word may have, of six bytes.
const WORD_BYTES_MAX: u32 = 512;

/// Longest word in bytes.
#[no_mangle]
pub extern "C" fn cheetah_word_bytes_max() -> u32 {
    WORD_BYTES_MAX
}

/// How many full-text indexes a table has.
#[no_mangle]
pub unsafe extern "C" fn cheetah_fulltext_count(table: *const CheetahTable) -> usize {
    // SAFETY: by the contract of the crate the handle is open.
    let table = unsafe { &*table };
    value(0, || table.table.fulltext().len())
}

/// Name and the caller's bytes of the index at that position, from 0; they are the table's.
#[no_mangle]
pub unsafe extern "C" fn cheetah_fulltext_index(
    table: *const CheetahTable,
    no: usize,
    index: *mut CheetahFulltextSpec,
) -> i32 {
    // SAFETY: by the contract of the crate the handle is open and the place is the caller's.
    let (table, place) = unsafe { (&*table, &mut *index) };
    entry(|| {
        let index = table.table.fulltext_index(no)?;
        let name = CheetahBytes::of(index.name.as_bytes());
        *place = CheetahFulltextSpec { name, extra: CheetahBytes::of(&index.extra) };
        Ok(Code::Ok)
    })
}

/// An empty list of words.
#[no_mangle]
pub extern "C" fn cheetah_new_words() -> *mut CheetahWords {
    value(std::ptr::null_mut(), || Box::into_raw(Box::default()))
}

/// Frees a list of words.
#[no_mangle]
pub unsafe extern "C" fn cheetah_free_words(words: *mut CheetahWords) {
    // SAFETY: by the contract of the crate the handle is ours and not used again.
    value((), || drop(unsafe { Box::from_raw(words) }));
}

/// Forgets all words; the memory is kept.
#[no_mangle]
pub unsafe extern "C" fn cheetah_clear_words(words: *mut CheetahWords) {
    // SAFETY: by the contract of the crate the handle is open.
    let words = unsafe { &mut *words };
    value((), || words.0.clear());
}

/// Adds a word of a row with its ordinal and its column. A word is its weights and the index's end;
/// no word may be the beginning of another one, or longer than `cheetah_word_bytes_max`. Its
/// ordinal is that among all words of the row, and `column` that of the index.
#[no_mangle]
pub unsafe extern "C" fn cheetah_add_word(
    words: *mut CheetahWords,
    word: CheetahBytes,
    ordinal: u32,
    column: u8,
) {
    // SAFETY: by the contract of the crate the handle is open and the word is readable.
    let (words, word) = unsafe { (&mut *words, word.get()) };
    value((), || words.0.add(word, Position { ordinal, column }));
}

fn postings(table: &CheetahTable, no: usize) -> Result<&Arc<Table>> {
    let unknown = || Error::corrupt(table.table.name(), "a full-text index has no postings");
    table.table.fulltext_index(no)?;
    table.postings.get(no).ok_or_else(unknown)
}

/// Writes the words of a new row into the index at that position. Called behind the row, by the
/// same transaction, even if the row has no words: its lock keeps others out.
#[no_mangle]
pub unsafe extern "C" fn cheetah_insert_words(
    txn: *mut CheetahTxn,
    table: *const CheetahTable,
    no: usize,
    key: CheetahBytes,
    words: *mut CheetahWords,
) -> i32 {
    // SAFETY: by the contract of the crate the handles are open and the key is readable.
    let (txn, table, key, words) = unsafe { (&mut *txn, &*table, key.get(), &mut *words) };
    entry(|| {
        let row = RowWords { key, words: &mut words.0 };
        txn.0.insert_words(postings(table, no)?, row).map(|()| Code::Ok)
    })
}

/// Takes the words of a row back that goes.
#[no_mangle]
pub unsafe extern "C" fn cheetah_delete_words(
    txn: *mut CheetahTxn,
    table: *const CheetahTable,
    no: usize,
    key: CheetahBytes,
    words: *mut CheetahWords,
) -> i32 {
    // SAFETY: by the contract of the crate the handles are open and the key is readable.
    let (txn, table, key, words) = unsafe { (&mut *txn, &*table, key.get(), &mut *words) };
    entry(|| {
        let row = RowWords { key, words: &mut words.0 };
        txn.0.delete_words(postings(table, no)?, row).map(|()| Code::Ok)
    })
}

/// Writes what a changed row has other than before.
#[no_mangle]
pub unsafe extern "C" fn cheetah_change_words(
    txn: *mut CheetahTxn,
    table: *const CheetahTable,
    no: usize,
    old_key: CheetahBytes,
    old_words: *mut CheetahWords,
    key: CheetahBytes,
    words: *mut CheetahWords,
) -> i32 {
    // SAFETY: by the contract of the crate the handles are open and the keys are readable.
    let (txn, table, old_key, key) = unsafe { (&mut *txn, &*table, old_key.get(), key.get()) };
    // SAFETY: as above; the two lists are not the same.
    let (old_words, words) = unsafe { (&mut *old_words, &mut *words) };
    entry(|| {
        let old = RowWords { key: old_key, words: &mut old_words.0 };
        let new = RowWords { key, words: &mut words.0 };
        txn.0.change_words(postings(table, no)?, old, new).map(|()| Code::Ok)
    })
}

/// Begins to load the words of rows that are loaded; see `cheetah_begin_load`.
#[no_mangle]
pub unsafe extern "C" fn cheetah_begin_load_of_words(
    txn: *mut CheetahTxn,
    table: *const CheetahTable,
    no: usize,
    to_commit: u8,
    load: *mut *mut CheetahLoad,
) -> i32 {
    // SAFETY: by the contract of the crate the handles are open.
    let (txn, table, place) = unsafe { (&mut *txn, &*table, &mut *load) };
    *place = std::ptr::null_mut();
    entry(|| {
        *place = CheetahLoad::begin(&mut txn.0, postings(table, no)?, to_commit)?;
        Ok(Code::Ok)
    })
}

/// Loads the words of a row.
#[no_mangle]
pub unsafe extern "C" fn cheetah_load_words(
    txn: *mut CheetahTxn,
    load: *mut CheetahLoad,
    key: CheetahBytes,
    words: *mut CheetahWords,
) -> i32 {
    // SAFETY: by the contract of the crate the handles are open and the key is readable.
    let (txn, load, key, words) = unsafe { (&mut *txn, &mut *load, key.get(), &mut *words) };
    entry(|| {
        let row = RowWords { key, words: &mut words.0 };
        txn.0.load_words(&mut load.0, row).map(|()| Code::Ok)
    })
}

/// Room for the postings of an index that a change of the definition is to bring; postings that it
/// does not take are dropped with the handle.
#[no_mangle]
pub unsafe extern "C" fn cheetah_new_postings(
    db: *mut CheetahDb,
    table: *const CheetahTable,
    made: *mut *mut CheetahPostings,
) -> i32 {
    // SAFETY: by the contract of the crate the handles are open.
    let (db, table, place) = unsafe { (&*db, &*table, &mut *made) };
    entry(|| {
        *place = Box::into_raw(Box::new(CheetahPostings(db.0.new_postings(&table.table, WORD_BYTES_MAX)?)));
        Ok(Code::Ok)
    })
}

/// Begins to load them, for a caller who has the only handle.
#[no_mangle]
pub unsafe extern "C" fn cheetah_begin_load_of_postings(
    txn: *mut CheetahTxn,
    made: *const CheetahPostings,
    load: *mut *mut CheetahLoad,
) -> i32 {
    // SAFETY: by the contract of the crate the handles are open.
    let (txn, made, place) = unsafe { (&mut *txn, &*made, &mut *load) };
    *place = std::ptr::null_mut();
    entry(|| {
        *place = CheetahLoad::begin(&mut txn.0, &made.0.table(), 0)?;
        Ok(Code::Ok)
    })
}

/// Frees the handle.
#[no_mangle]
pub unsafe extern "C" fn cheetah_free_postings(made: *mut CheetahPostings) {
    // SAFETY: by the contract of the crate the handle is ours and not used again.
    value((), || drop(unsafe { Box::from_raw(made) }));
}

/// Takes the words of a text during a search.
pub struct CheetahWordSink<'s> {
    each: &'s mut dyn FnMut(Word<'_>, Position) -> Result<()>,
    error: Option<Error>,
}

/// Tells the sink each word of a query's text; returns `Ok`, or what the sink has answered.
pub type CheetahSplitText =
    unsafe extern "C" fn(context: *mut c_void, text: CheetahBytes, sink: *mut CheetahWordSink<'_>) -> i32;
/// Tells the sink each word of a row; returns `Ok`, or what the sink has answered.
pub type CheetahWordsOfRow = unsafe extern "C" fn(
    context: *mut c_void,
    key: CheetahBytes,
    row: CheetahBytes,
    sink: *mut CheetahWordSink<'_>,
) -> i32;

/// A full-text search.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahSearch {
    /// In the character set of the index.
    pub text: CheetahBytes,
    /// Stands behind the weights of each word of the index.
    pub end: CheetahBytes,
    /// Bytes of memory that it may take.
    pub limit_bytes: u64,
    /// Finds the words of texts of the query.
    pub split: CheetahSplitText,
    /// Finds those of rows.
    pub words_of_row: CheetahWordsOfRow,
    /// Handed to both.
    pub context: *mut c_void,
    /// A `CheetahSearchMode`.
    pub mode: u8,
    /// A `CheetahRead`: how the rows found will be read.
    pub read: u8,
}

impl CheetahSearch {
    /// SAFETY: as for [`CheetahBytes::get`].
    unsafe fn get(&self, index_no: usize) -> Result<Search<'_>> {
        // SAFETY: passed on.
        let (text, end) = unsafe { (self.text.get(), self.end.get()) };
        let (mode, read) = (mode_of(self.mode)?, read_of(self.read)?);
        Ok(Search { index_no, text, mode, end, limit_bytes: self.limit_bytes, read })
    }
}

/// The finds of a search.
#[derive(Debug)]
pub struct CheetahMatches(Found);

/// The caller's functions, as the engine asks them.
struct Callbacks<'c>(&'c CheetahSearch);

/// Has the caller tell `each` words; returns the error, of the engine or of the caller.
fn tell(
    each: &mut dyn FnMut(Word<'_>, Position) -> Result<()>,
    ask: impl FnOnce(*mut CheetahWordSink<'_>) -> i32,
) -> Result<()> {
    let mut sink = CheetahWordSink { each, error: None };
    let code = ask(&mut sink);
    match (sink.error, code) {
        (Some(error), _) => Err(error),
        (None, code) if code == Code::Ok as i32 => Ok(()),
        (None, code) if code == Code::Interrupted as i32 => Err(Error::Interrupted),
        (None, code) if code == Code::Corruption as i32 => {
            Err(Error::corrupt("full-text search", "a row does not fit the definition"))
        }
        (None, code) if code == Code::Panic as i32 => {
            Err(Error::Fatal("the caller of a full-text search panicked".into()))
        }
        (None, _) => Err(Error::Search {
            problem: SearchProblem::TooMuchMemory,
            detail: "there is no memory for the text of a full-text query".into(),
        }),
    }
}

impl Texts for Callbacks<'_> {
    fn split(&mut self, text: &[u8], each: &mut dyn FnMut(Word<'_>) -> Result<()>) -> Result<()> {
        let mut each_word = |word: Word<'_>, _| each(word);
        // SAFETY: the caller's function gets the caller's context.
        tell(&mut each_word, |sink| unsafe { (self.0.split)(self.0.context, CheetahBytes::of(text), sink) })
    }

    fn words_of(
        &mut self,
        key: &[u8],
        row: &[u8],
        each: &mut dyn FnMut(Word<'_>, Position) -> Result<()>,
    ) -> Result<()> {
        let (key, row) = (CheetahBytes::of(key), CheetahBytes::of(row));
        // SAFETY: the caller's function gets the caller's context.
        tell(each, |sink| unsafe { (self.0.words_of_row)(self.0.context, key, row, sink) })
    }
}

fn mode_of(mode: u8) -> Result<Mode> {
    let codes = [
        (CheetahSearchMode::NaturalLanguage as u8, Mode::NaturalLanguage),
        (CheetahSearchMode::Boolean as u8, Mode::Boolean),
        (CheetahSearchMode::QueryExpansion as u8, Mode::QueryExpansion),
    ];
    meaning("code of a search", mode, &codes)
}

fn kind_of(kind: u8) -> Result<WordKind> {
    let codes = [
        (CheetahWordKind::Indexed as u8, WordKind::Indexed),
        (CheetahWordKind::Stop as u8, WordKind::StopWord),
        (CheetahWordKind::TooShort as u8, WordKind::TooShort),
        (CheetahWordKind::TooLong as u8, WordKind::TooLong),
    ];
    meaning("code of a word", kind, &codes)
}

/// Finds and ranks the rows that match; see `Transaction::search`.
#[no_mangle]
pub unsafe extern "C" fn cheetah_search(
    txn: *mut CheetahTxn,
    table: *const CheetahTable,
    no: usize,
    search: *const CheetahSearch,
    matches: *mut *mut CheetahMatches,
) -> i32 {
    // SAFETY: by the contract of the crate the handles are open and the search is initialised.
    let (txn, table, search, place) = unsafe { (&mut *txn, &*table, &*search, &mut *matches) };
    entry(|| {
        // SAFETY: as above.
        let asked = unsafe { search.get(no)? };
        let found = txn.0.search(&table.table, &asked, &mut Callbacks(search))?;
        *place = Box::into_raw(Box::new(CheetahMatches(found)));
        Ok(Code::Ok)
    })
}

/// Tells a word. The answer is to be passed on if it is not `Ok`.
#[no_mangle]
pub unsafe extern "C" fn cheetah_tell_word(
    sink: *mut CheetahWordSink<'_>,
    weights: CheetahBytes,
    kind: u8,
    ordinal: u32,
    column: u8,
) -> i32 {
    // SAFETY: by the contract of the crate the sink is the one just given, and the word is
    // readable.
    let (sink, weights) = unsafe { (&mut *sink, weights.get()) };
    value(Code::Panic as i32, || {
        let told =
            kind_of(kind).and_then(|kind| (sink.each)(Word { weights, kind }, Position { ordinal, column }));
        match told {
            Ok(()) => Code::Ok as i32,
            Err(error) => {
                let code = Code::of(&error);
                sink.error = Some(error);
                code as i32
            }
        }
    })
}

/// How many rows match.
#[no_mangle]
pub unsafe extern "C" fn cheetah_match_count(matches: *const CheetahMatches) -> u64 {
    // SAFETY: by the contract of the crate the handle is open.
    let matches = unsafe { &*matches };
    value(0, || matches.0.matches.len() as u64)
}

/// Reads the next row that was found, the best first, and locks it if the search says so; key and
/// rank. `End` behind the last one. `skips_locked`: rows that have to be waited for are passed
/// over. The key is readable until the next call. See `Transaction::next_match`. Rows that have
/// gone, or match no more, are passed over.
#[no_mangle]
pub unsafe extern "C" fn cheetah_next_match(
    txn: *mut CheetahTxn,
    table: *const CheetahTable,
    no: usize,
    search: *const CheetahSearch,
    matches: *mut CheetahMatches,
    skips_locked: u8,
    row: *mut CheetahBuffer,
    key: *mut CheetahBytes,
    rank: *mut f32,
) -> i32 {
    // SAFETY: by the contract of the crate the handles are open, the search is initialised and the
    // places are the caller's.
    let (txn, table, search, matches) = unsafe { (&mut *txn, &*table, &*search, &mut *matches) };
    // SAFETY: as above.
    let (row, key_place, rank_place) = unsafe { (&mut *row, &mut *key, &mut *rank) };
    let on_locked = if skips_locked != 0 { OnLocked::Skip } else { OnLocked::Wait };
    entry(|| {
        // SAFETY: as above.
        let asked = unsafe { search.get(no)? };
        let into = (on_locked, &mut row.0);
        let mut texts = Callbacks(search);
        let next = txn.0.next_match(&table.table, &asked, &mut texts, &mut matches.0, into)?;
        let Some((key, rank)) = next else { return Ok(Code::End) };
        (*key_place, *rank_place) = (CheetahBytes::of(key), rank);
        Ok(Code::Ok)
    })
}

/// The best row is read next again.
#[no_mangle]
pub unsafe extern "C" fn cheetah_rewind_matches(matches: *mut CheetahMatches) {
    // SAFETY: by the contract of the crate the handle is open.
    let matches = unsafe { &mut *matches };
    value((), || matches.0.rewind());
}

/// The rank of a row, which is judged as it is now if it is locked; `RowNotFound`, and 0, if it
/// does not match. See `Transaction::rank_now`.
#[no_mangle]
pub unsafe extern "C" fn cheetah_rank_now(
    txn: *mut CheetahTxn,
    table: *const CheetahTable,
    no: usize,
    search: *const CheetahSearch,
    matches: *mut CheetahMatches,
    key: CheetahBytes,
    rank: *mut f32,
) -> i32 {
    // SAFETY: by the contract of the crate the handles are open, the search is initialised, the key
    // is readable and the place is the caller's.
    let (txn, table, search, matches) = unsafe { (&mut *txn, &*table, &*search, &mut *matches) };
    // SAFETY: as above.
    let (key, place) = unsafe { (key.get(), &mut *rank) };
    *place = 0.0;
    entry(|| {
        // SAFETY: as above.
        let asked = unsafe { search.get(no)? };
        let mut texts = Callbacks(search);
        let rank = txn.0.rank_now(&table.table, &asked, &mut texts, &mut matches.0, key)?;
        let Some(rank) = rank else { return Ok(Code::RowNotFound) };
        *place = rank;
        Ok(Code::Ok)
    })
}

/// Frees what a search has found.
#[no_mangle]
pub unsafe extern "C" fn cheetah_free_matches(matches: *mut CheetahMatches) {
    // SAFETY: by the contract of the crate the handle is ours and not used again.
    value((), || drop(unsafe { Box::from_raw(matches) }));
}

/// Tells what is wrong with the postings of a full-text index: of the search only `end` and the
/// function for rows count.
#[no_mangle]
pub unsafe extern "C" fn cheetah_check_words(
    txn: *mut CheetahTxn,
    table: *const CheetahTable,
    no: usize,
    search: *const CheetahSearch,
    sink: CheetahTextSink,
    sink_context: *mut c_void,
) -> i32 {
    // SAFETY: by the contract of the crate the handles are open and the search is initialised.
    let (txn, table, search) = unsafe { (&mut *txn, &*table, &*search) };
    // SAFETY: as above.
    let end = unsafe { search.end.get() };
    entry(|| {
        let finding = txn.0.check_words(&table.table, no, end, &mut Callbacks(search))?;
        // SAFETY: the caller's function gets the caller's context.
        finding.iter().for_each(|text| unsafe { sink(sink_context, CheetahBytes::of(text.as_bytes())) });
        Ok(Code::Ok)
    })
}

/// Bytes of the postings of all full-text indexes on disk; in memory while nothing is there.
#[no_mangle]
pub unsafe extern "C" fn cheetah_fulltext_bytes(table: *const CheetahTable, bytes: *mut u64) -> i32 {
    // SAFETY: by the contract of the crate the handle is open and the place is the caller's.
    let (table, place) = unsafe { (&*table, &mut *bytes) };
    entry(|| {
        *place = 0;
        for postings in &table.postings {
            for index in postings.stats()? {
                *place += if index.stored_bytes != 0 { index.stored_bytes } else { index.logical_bytes };
            }
        }
        Ok(Code::Ok)
    })
}

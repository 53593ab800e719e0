//! Full-text indexes: the words of rows, and searches.

use crate::barrier::{answer, entry, handle, value};
use crate::callbacks::Callback;
use crate::codes::*;
use crate::loads::CheetahLoad;
use crate::types::*;
use crate::{CheetahBuffer, CheetahDb, CheetahTable, CheetahTxn};
use cheetah::server::{
    Found, Mode, NewPostings, Position, RowWords, Search, SearchProblem, Texts, Word, WordKind, WordList,
};
use cheetah::{Error, FulltextSpec, OnLocked, Result, Table};
use std::sync::Arc;

/// A full-text index to create.
#[repr(C)]
pub struct CheetahFulltextSpec {
    /// Its name.
    pub name: CheetahBytes,
    /// The caller's own bytes: the rules that split texts into words.
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

impl CheetahWords {
    fn of<'w>(&'w mut self, key: &'w [u8]) -> RowWords<'w> {
        RowWords { key, words: &mut self.0 }
    }
}

/// Postings of an index that is being built.
#[derive(Debug)]
pub struct CheetahPostings(pub(crate) NewPostings);

/// The maximum size of a word in bytes: 84 characters, the longest word, of six bytes each.
const WORD_BYTES_MAX: u32 = 512;

/// Returns the maximum size of a word in bytes.
#[no_mangle]
pub extern "C" fn cheetah_word_bytes_max() -> u32 {
    WORD_BYTES_MAX
}

/// Returns the number of full-text indexes of a table.
#[no_mangle]
pub extern "C" fn cheetah_fulltext_count(table: &CheetahTable) -> usize {
    value(0, || table.table.fulltext().len())
}

/// Gets the name and the caller's bytes of the index at position `no`, from 0. They stay valid
/// until the table is closed.
#[no_mangle]
pub extern "C" fn cheetah_fulltext_index(
    table: &CheetahTable,
    no: usize,
    index: &mut CheetahFulltextSpec,
) -> i32 {
    answer(index, || {
        let index = table.table.fulltext_index(no)?;
        let name = CheetahBytes::of(&index.name);
        Ok(CheetahFulltextSpec { name, extra: CheetahBytes::of(&index.extra) })
    })
}

/// Returns an empty list of words.
#[no_mangle]
pub extern "C" fn cheetah_new_words() -> *mut CheetahWords {
    value(std::ptr::null_mut(), || Box::into_raw(Box::default()))
}

/// Frees a list of words.
#[no_mangle]
pub extern "C" fn cheetah_free_words(words: Box<CheetahWords>) {
    value((), || drop(words));
}

/// Removes all words from the list, but keeps its memory.
#[no_mangle]
pub extern "C" fn cheetah_clear_words(words: &mut CheetahWords) {
    value((), || words.0.clear());
}

/// Adds a word of a row. `word`: its weights, followed by the ending that all words of the index
/// share. No word may be a prefix of another word, or longer than `cheetah_word_bytes_max`.
/// `ordinal`: the word's number among all words of the row. `column`: the number of its column in
/// the index.
#[no_mangle]
pub unsafe extern "C" fn cheetah_add_word(
    words: &mut CheetahWords,
    word: CheetahBytes,
    ordinal: u32,
    column: u8,
) {
    // SAFETY: by the contract of the crate the word is readable.
    let word = unsafe { word.get() };
    value((), || words.0.add(word, Position { ordinal, column }));
}

fn postings(table: &CheetahTable, no: usize) -> Result<&Arc<Table>> {
    let unknown = || Error::corrupt(table.table.name(), "a full-text index has no postings");
    table.table.fulltext_index(no)?;
    table.postings.get(no).ok_or_else(unknown)
}

/// Writes the words of a new row into the index at position `no`. Must be called after the insert
/// of the row, by the same transaction, even if the row has no words: the row's lock keeps other
/// transactions out.
#[no_mangle]
pub unsafe extern "C" fn cheetah_insert_words(
    txn: &mut CheetahTxn,
    table: &CheetahTable,
    no: usize,
    key: CheetahBytes,
    words: &mut CheetahWords,
) -> i32 {
    // SAFETY: by the contract of the crate the key is readable.
    let key = unsafe { key.get() };
    entry(|| txn.0.insert_words(postings(table, no)?, words.of(key)))
}

/// Removes the words of a deleted row.
#[no_mangle]
pub unsafe extern "C" fn cheetah_delete_words(
    txn: &mut CheetahTxn,
    table: &CheetahTable,
    no: usize,
    key: CheetahBytes,
    words: &mut CheetahWords,
) -> i32 {
    // SAFETY: by the contract of the crate the key is readable.
    let key = unsafe { key.get() };
    entry(|| txn.0.delete_words(postings(table, no)?, words.of(key)))
}

/// Writes the differences between the words of a row before and after a change.
#[no_mangle]
pub unsafe extern "C" fn cheetah_change_words(
    txn: &mut CheetahTxn,
    table: &CheetahTable,
    no: usize,
    old_key: CheetahBytes,
    old_words: &mut CheetahWords,
    key: CheetahBytes,
    words: &mut CheetahWords,
) -> i32 {
    // SAFETY: by the contract of the crate the keys are readable.
    let (old_key, key) = unsafe { (old_key.get(), key.get()) };
    entry(|| txn.0.change_words(postings(table, no)?, old_words.of(old_key), words.of(key)))
}

/// Begins a load of the words of loaded rows; see `cheetah_begin_load`.
#[no_mangle]
pub extern "C" fn cheetah_begin_load_of_words(
    txn: &mut CheetahTxn,
    table: &CheetahTable,
    no: usize,
    to_commit: u8,
    load: &mut *mut CheetahLoad,
) -> i32 {
    *load = std::ptr::null_mut();
    answer(load, || CheetahLoad::begin(&mut txn.0, postings(table, no)?, to_commit))
}

/// Loads the words of a row.
#[no_mangle]
pub unsafe extern "C" fn cheetah_load_words(
    txn: &mut CheetahTxn,
    load: &mut CheetahLoad,
    key: CheetahBytes,
    words: &mut CheetahWords,
) -> i32 {
    // SAFETY: by the contract of the crate the key is readable.
    let key = unsafe { key.get() };
    entry(|| txn.0.load_words(&mut load.0, words.of(key)))
}

/// Creates postings for an index that a change of the definition will add. If the change does not
/// take them over, they are dropped when the handle is freed.
#[no_mangle]
pub unsafe extern "C" fn cheetah_new_postings(
    db: &CheetahDb,
    table: &CheetahTable,
    made: &mut *mut CheetahPostings,
) -> i32 {
    handle(made, || Ok(CheetahPostings(db.0.new_postings(&table.table, WORD_BYTES_MAX)?)))
}

/// Begins a load of new postings. The caller must hold the only handle to them.
#[no_mangle]
pub extern "C" fn cheetah_begin_load_of_postings(
    txn: &mut CheetahTxn,
    made: &CheetahPostings,
    load: &mut *mut CheetahLoad,
) -> i32 {
    *load = std::ptr::null_mut();
    answer(load, || CheetahLoad::begin(&mut txn.0, &made.0.table(), 0))
}

/// Frees a handle of postings.
#[no_mangle]
pub extern "C" fn cheetah_free_postings(made: Box<CheetahPostings>) {
    value((), || drop(made));
}

/// Receives the words of a text during a search.
pub struct CheetahWordSink<'s> {
    each: &'s mut dyn FnMut(Word<'_>, Position) -> Result<()>,
    error: Option<Error>,
}

/// Passes each word of a query's text to the sink. Returns `Ok`, or the first other code that the
/// sink returned.
pub type CheetahSplitText =
    unsafe extern "C" fn(context: *mut c_void, text: CheetahBytes, sink: *mut CheetahWordSink<'_>) -> i32;
/// Passes each word of a row to the sink. Returns `Ok`, or the first other code that the sink
/// returned.
pub type CheetahWordsOfRow = unsafe extern "C" fn(
    context: *mut c_void,
    key: CheetahBytes,
    row: CheetahBytes,
    sink: *mut CheetahWordSink<'_>,
) -> i32;

/// A full-text search.
#[repr(C)]
pub struct CheetahSearch {
    /// The query, in a character set that contains ASCII as single bytes.
    pub text: CheetahBytes,
    /// The bytes that follow the weights of each word in the index.
    pub end: CheetahBytes,
    /// The maximum memory of the search in bytes.
    pub limit_bytes: u64,
    /// Finds the words of texts in the query.
    pub split: CheetahSplitText,
    /// Finds the words of rows.
    pub words_of_row: CheetahWordsOfRow,
    /// The argument of both functions.
    pub context: *mut c_void,
    /// A `CheetahSearchMode`.
    pub mode: u8,
    /// A `CheetahRead`: how the statement will read the rows that are found.
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

/// The rows that a search found.
#[derive(Debug)]
pub struct CheetahMatches(Found);

struct Callbacks<'c>(&'c CheetahSearch);

/// Calls `ask` with a sink that passes words to `each`. Returns the error of either.
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
    meaning!("code of a search", mode, CheetahSearchMode => Mode {
        NaturalLanguage, Boolean, QueryExpansion
    })
}

fn kind_of(kind: u8) -> Result<WordKind> {
    let codes = [
        (CheetahWordKind::Indexed as u8, WordKind::Indexed),
        (CheetahWordKind::Stop as u8, WordKind::StopWord),
        (CheetahWordKind::TooShort as u8, WordKind::TooShort),
        (CheetahWordKind::TooLong as u8, WordKind::TooLong),
    ];
    meaning_in("code of a word", kind, &codes)
}

/// Finds and ranks the matching rows; see `Transaction::search`.
#[no_mangle]
pub unsafe extern "C" fn cheetah_search(
    txn: &mut CheetahTxn,
    table: &CheetahTable,
    no: usize,
    search: &CheetahSearch,
    matches: &mut *mut CheetahMatches,
) -> i32 {
    handle(matches, || {
        // SAFETY: by the contract of the crate the argument is initialised.
        let asked = unsafe { search.get(no)? };
        let found = txn.0.search(&table.table, &asked, &mut Callbacks(search))?;
        Ok(CheetahMatches(found))
    })
}

/// Passes a word to the sink. If the result is not `Ok`, the caller must stop and return it.
#[no_mangle]
pub unsafe extern "C" fn cheetah_tell_word(
    sink: &mut CheetahWordSink<'_>,
    weights: CheetahBytes,
    kind: u8,
    ordinal: u32,
    column: u8,
) -> i32 {
    // SAFETY: by the contract of the crate the sink is the one just given, and the word is
    // readable.
    let weights = unsafe { weights.get() };
    value(Code::Panic as i32, || {
        let told =
            kind_of(kind).and_then(|kind| (sink.each)(Word { weights, kind }, Position { ordinal, column }));
        sink.error = told.err();
        sink.error.as_ref().map_or(Code::Ok, Code::of) as i32
    })
}

/// Returns the number of matching rows.
#[no_mangle]
pub extern "C" fn cheetah_match_count(matches: &CheetahMatches) -> u64 {
    value(0, || matches.0.matches.len() as u64)
}

/// Reads the next row that was found, with its key and rank, the best row first. Locks the row if
/// the search is for a locking read. Skips rows that were deleted or no longer match, and with
/// `skips_locked` also rows that other transactions have locked. Returns `End` after the last row.
/// The key is valid until the next call. See `Transaction::next_match`.
#[no_mangle]
pub unsafe extern "C" fn cheetah_next_match(
    txn: &mut CheetahTxn,
    table: &CheetahTable,
    no: usize,
    search: &CheetahSearch,
    matches: &mut CheetahMatches,
    skips_locked: u8,
    row: &mut CheetahBuffer,
    key: &mut CheetahBytes,
    rank: &mut f32,
) -> i32 {
    let on_locked = if skips_locked != 0 { OnLocked::Skip } else { OnLocked::Wait };
    entry(|| {
        // SAFETY: by the contract of the crate the argument is initialised.
        let asked = unsafe { search.get(no)? };
        let (mut texts, into) = (Callbacks(search), (on_locked, &mut row.0));
        let next = txn.0.next_match(&table.table, &asked, &mut texts, &mut matches.0, into)?;
        let Some((found_key, found_rank)) = next else { return Ok(Code::End) };
        (*key, *rank) = (CheetahBytes::of(found_key), found_rank);
        Ok(Code::Ok)
    })
}

/// Makes the next read return the best row again.
#[no_mangle]
pub extern "C" fn cheetah_rewind_matches(matches: &mut CheetahMatches) {
    value((), || matches.0.rewind());
}

/// Gets the rank of a row. In a locking read, its latest version is ranked. Returns `RowNotFound`,
/// and rank 0, if the row does not match. See `Transaction::rank_now`.
#[no_mangle]
pub unsafe extern "C" fn cheetah_rank_now(
    txn: &mut CheetahTxn,
    table: &CheetahTable,
    no: usize,
    search: &CheetahSearch,
    matches: &mut CheetahMatches,
    key: CheetahBytes,
    rank: &mut f32,
) -> i32 {
    // SAFETY: by the contract of the crate the key is readable.
    let key = unsafe { key.get() };
    *rank = 0.0;
    entry(|| {
        // SAFETY: by the contract of the crate the search is initialised.
        let asked = unsafe { search.get(no)? };
        let found = txn.0.rank_now(&table.table, &asked, &mut Callbacks(search), &mut matches.0, key)?;
        *rank = found.unwrap_or(0.0);
        Ok(if found.is_some() { Code::Ok } else { Code::RowNotFound })
    })
}

/// Frees the result of a search.
#[no_mangle]
pub extern "C" fn cheetah_free_matches(matches: Box<CheetahMatches>) {
    value((), || drop(matches));
}

/// Compares the postings of a full-text index with the words of the rows. Passes a description of
/// the difference to the sink, if there is one. Uses only `end`, `words_of_row` and `context` of
/// `search`.
#[no_mangle]
pub unsafe extern "C" fn cheetah_check_words(
    txn: &mut CheetahTxn,
    table: &CheetahTable,
    no: usize,
    search: &CheetahSearch,
    sink: CheetahTextSink,
    sink_context: *mut c_void,
) -> i32 {
    // SAFETY: by the contract of the crate the argument is initialised.
    let end = unsafe { search.end.get() };
    entry(|| {
        let finding = txn.0.check_words(&table.table, no, end, &mut Callbacks(search))?;
        finding.iter().for_each(|text| Callback(sink, sink_context).tell(text));
        Ok(())
    })
}

/// Gets the bytes on disk of the postings of all full-text indexes. An index that is not on disk
/// yet counts with its bytes in memory.
#[no_mangle]
pub extern "C" fn cheetah_fulltext_bytes(table: &CheetahTable, bytes: &mut u64) -> i32 {
    entry(|| {
        *bytes = 0;
        for postings in &table.postings {
            for index in postings.stats()? {
                *bytes += if index.stored_bytes != 0 { index.stored_bytes } else { index.logical_bytes };
            }
        }
        Ok(())
    })
}

//! The undo log: one stream of bytes in pool pages, appended at its end, freed at its oldest end.
//! It is also the history list: a transaction appends a finish record at its end, and purge follows
//! the finish records.
//!
//! Invariants
//!   I1  Append-only: written bytes are never overwritten, not even after a rollback of their
//!       records (durability::C6). A rollback moves its transaction's head back and leaves the
//!       bytes.
//!   I2  A pointer is the offset of a byte since the creation of the database, so pointers are
//!       never reused.
//!   I3  A page counts its *live* transactions: those whose oldest record begins in it and whose
//!       finish record purge has not passed. Pages are freed only from the front, if they count no
//!       live transaction and are completely before purge's position. So a record remains until
//!       purge has passed its transaction, whether or not it was rolled back: a reader may still
//!       follow a pointer to it.
//!   I4  The directory, the counts and purge's position are part of the epoch state. They change
//!       only inside mini-transactions, so the epoch switch sees them and the pages at one moment.
//!   I5  Every read checks the transaction, and the record's ordinal if it is known. No thread
//!       reads beyond the end that it has seen under the mutex, so no thread sees a partial record.
//!   I6  Purge passes the last record of a transaction and its finish record in one
//!       mini-transaction. Otherwise a purge with nothing left to do would look like one that has
//!       not started. Records are contiguous in the stream and may cross page borders. Page i of
//!       the stream holds the offsets from i * C, where C is the capacity of a page.
//! Locks     one mutex over the directory and the positions, taken inside mini-transactions or for
//!           a lookup; page latches are taken after it.

use crate::base::{reach, sound, Error, PageId, Result, TreeId, TxnId, UndoPtr};
use crate::format::page::{build_content, content_capacity, PageKind, PageMut, PageView};
use crate::format::state::{PurgeState, TxnState, UndoPage};
use crate::format::undo_record::{
    self, decode_body, decode_head, UndoBody, UndoFinish, UndoHead, HEAD_BYTES,
};
use crate::pool::{MiniTransaction, PageClass, PageRef, Pool};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// The bytes before the first record: offset 0 means "none", so no record may start there.
const FIRST_BYTES: [u8; 8] = *b"CHEETAHU";

/// The pages freed in one mini-transaction. This limits how long an epoch switch waits.
const FREED_PER_STEP: usize = 32;

/// The records that one search for a finish record skips. This limits the time of a commit that
/// purges a little.
const RECORDS_PER_SEARCH: usize = 2048;

/// The maximum length of a record when reading: a longer record is damaged.
const RECORD_BYTES_MAX: u32 = 1 << 26;

/// The state of the log at an epoch switch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UndoStart {
    /// The ordinal of the first page in the stream.
    pub first_page: u64,
    /// The offset after the last record.
    pub end: UndoPtr,
    /// The pages, oldest first.
    pub pages: Vec<UndoPage>,
    /// Purge's position.
    pub purge: PurgeState,
}

#[derive(Debug)]
struct Stream {
    first_page: u64,
    end: UndoPtr,
    pages: VecDeque<UndoPage>,
    /// The last page, pinned, so that an append never reads from disk.
    last: Option<PageRef>,
    purge: PurgeState,
    /// There is no finish record between purge's position and this position.
    searched_to: UndoPtr,
    /// The sum of the counts of all pages (I3).
    live: u64,
}

/// A pinned page with its ordinal in the stream, for readers of many consecutive records.
type AtHand = Option<(u64, PageRef)>;

/// The undo log.
#[derive(Debug)]
pub struct UndoLog {
    pool: Arc<Pool>,
    page_capacity: u64,
    stream: Mutex<Stream>,
}

impl UndoLog {
    /// Opens the log where an epoch left it; reads its last page.
    pub fn open(pool: Arc<Pool>, start: UndoStart) -> Result<Self> {
        let page_capacity = content_capacity(PageClass::Base.bytes(pool.page_bytes())) as u64;
        let UndoStart { first_page, end, pages, purge } = start;
        if purge.at > end {
            return Err(Error::corrupt(
                "undo log",
                format!("purge is at {}, after the end at {end}", purge.at),
            ));
        }
        let last = match pages.last() {
            Some(last) => Some(fetch(&pool, last.page)?),
            None => None,
        };
        let live = pages.iter().map(|page| page.live).sum();
        let searched_to = purge.at.max(UndoPtr(FIRST_BYTES.len() as u64));
        let stream = Stream { first_page, end, pages: pages.into(), last, purge, searched_to, live };
        Ok(Self { pool, page_capacity, stream: Mutex::new(stream) })
    }

    /// Returns the directory and the positions, for the epoch switch.
    pub fn snapshot(&self) -> UndoStart {
        let stream = self.stream.lock();
        let pages = stream.pages.iter().copied().collect();
        UndoStart { first_page: stream.first_page, end: stream.end, pages, purge: stream.purge }
    }

    /// Returns the offset after the last record.
    pub fn end(&self) -> UndoPtr {
        self.stream.lock().end
    }

    /// Returns the number of pages that the log occupies.
    pub fn pages_count(&self) -> usize {
        self.stream.lock().pages.len()
    }

    /// Returns the number of pages that appending `bytes` more bytes may allocate.
    pub fn pages_needed(&self, bytes: usize) -> usize {
        bytes / self.page_capacity as usize + 2
    }

    /// Returns the number of transactions with records that purge has not passed, ended or not
    /// (I3).
    pub fn live_count(&self) -> u64 {
        self.stream.lock().live
    }

    /// Returns whether purge has passed all records.
    pub fn is_purged(&self) -> bool {
        let stream = self.stream.lock();
        stream.purge.at == stream.end
    }

    /// Appends the record in `record` as the newest of the transaction, and updates the
    /// transaction's state. Returns the record's position.
    pub fn append(&self, mtr: &MiniTransaction<'_>, state: &mut TxnState, record: &[u8]) -> UndoPtr {
        debug_assert!(is_next(record, state), "C6: a record names its transaction, number and predecessor");
        let mut stream = self.stream.lock();
        let at = self.append_record(mtr, &mut stream, record);
        state.head = at;
        state.undo_no += 1;
        let is_again =
            state.undo_no == 1 && !sound!(true, "undo: count a transaction that starts over again");
        if state.first == UndoPtr(0) || is_again {
            state.first = at;
            stream.live += 1;
            if let Some(page) = stream.page_mut(at, self.page_capacity) {
                page.live += 1;
            }
        }
        at
    }

    /// Appends the finish record of a transaction that has appended records. No record of the
    /// transaction may follow.
    pub fn append_finish(&self, mtr: &MiniTransaction<'_>, txn: TxnId, end: &UndoFinish) {
        let mut record = Vec::with_capacity(undo_record::FINISH_BYTES_MAX);
        undo_record::start(&mut record, txn, 0, UndoPtr(0));
        undo_record::put_finish(&mut record, end);
        undo_record::finish(&mut record);
        self.append_record(mtr, &mut self.stream.lock(), &record);
    }

    fn append_record(&self, mtr: &MiniTransaction<'_>, stream: &mut Stream, record: &[u8]) -> UndoPtr {
        if stream.end == UndoPtr(0) {
            self.append_bytes(mtr, stream, &FIRST_BYTES);
        }
        let at = stream.end;
        self.append_bytes(mtr, stream, record);
        at
    }

    fn append_bytes(&self, mtr: &MiniTransaction<'_>, stream: &mut Stream, mut rest: &[u8]) {
        while !rest.is_empty() {
            let position = (stream.end.0 % self.page_capacity) as usize;
            let taken = rest.len().min(self.page_capacity as usize - position);
            let (now, later) = rest.split_at(taken);
            let page = self.page_for_append(mtr, stream);
            let appended = PageMut::new(&mut page.write(mtr)).append_content(now);
            assert!(appended.is_ok(), "I1: the last undo page ends where the log ends");
            rest = later;
            stream.end.0 += taken as u64;
        }
    }

    fn page_for_append<'s>(&self, mtr: &MiniTransaction<'_>, stream: &'s mut Stream) -> &'s PageRef {
        let page_no = stream.end.0 / self.page_capacity;
        if page_no >= stream.first_page + stream.pages.len() as u64 {
            stream.last = None;
        }
        let Stream { first_page, pages, last, .. } = stream;
        last.get_or_insert_with(|| {
            if pages.is_empty() {
                *first_page = page_no;
            }
            let page = self.pool.allocate(mtr, TreeId::UNDO, PageClass::Base);
            let position = page_no * self.page_capacity;
            build_content(&mut page.write(mtr), PageKind::Undo, TreeId::UNDO, PageId::NONE, position);
            pages.push_back(UndoPage { page: page.pid(), live: 0 });
            page
        })
    }

    /// Reads record `undo_no` of a transaction at `at` into `record`, including the head, and
    /// checks that it is this transaction's. May do I/O.
    pub fn read(&self, at: UndoPtr, txn: TxnId, undo_no: u64, record: &mut Vec<u8>) -> Result<UndoHead> {
        let head = self.read_version(at, txn, record)?;
        if head.undo_no != undo_no {
            return Err(damaged(at));
        }
        Ok(head)
    }

    /// Like [`read`](Self::read), for a pointer from a version, where the ordinal is unknown.
    pub fn read_version(&self, at: UndoPtr, txn: TxnId, record: &mut Vec<u8>) -> Result<UndoHead> {
        let mut at_hand = None;
        let head = self.read_head(at, record, &mut at_hand)?;
        if head.txn != txn || head.undo_no == 0 {
            return Err(damaged(at));
        }
        self.read_rest(at, &head, record, &mut at_hand)?;
        Ok(head)
    }

    fn read_head(&self, at: UndoPtr, record: &mut Vec<u8>, at_hand: &mut AtHand) -> Result<UndoHead> {
        record.clear();
        self.read_bytes(at, HEAD_BYTES, record, at_hand)?;
        let head = decode_head(record.first_chunk().ok_or_else(|| damaged(at))?)?;
        if head.len > RECORD_BYTES_MAX || head.prev >= at {
            return Err(damaged(at));
        }
        Ok(head)
    }

    fn read_rest(
        &self,
        at: UndoPtr,
        head: &UndoHead,
        record: &mut Vec<u8>,
        at_hand: &mut AtHand,
    ) -> Result<()> {
        let rest = head.len as usize - HEAD_BYTES;
        self.read_bytes(UndoPtr(at.0 + HEAD_BYTES as u64), rest, record, at_hand)
    }

    fn read_bytes(&self, mut at: UndoPtr, len: usize, out: &mut Vec<u8>, at_hand: &mut AtHand) -> Result<()> {
        let end = out.len() + len;
        while out.len() < end {
            let page = self.page_of(at, at_hand)?;
            let position = (at.0 % self.page_capacity) as usize;
            let taken = (end - out.len()).min(self.page_capacity as usize - position);
            let guard = page.read();
            let bytes = PageView::new(&guard).content().get(position..position + taken);
            out.extend_from_slice(
                bytes.ok_or_else(|| {
                    Error::corrupt(format!("undo record at {at}"), "its page ends before it")
                })?,
            );
            drop(guard);
            at.0 += taken as u64;
        }
        Ok(())
    }

    fn page_of(&self, at: UndoPtr, at_hand: &mut AtHand) -> Result<PageRef> {
        let page_no = at.0 / self.page_capacity;
        if let Some((_, page)) = at_hand.as_ref().filter(|(number, _)| *number == page_no) {
            return Ok(page.clone());
        }
        let mut stream = self.stream.lock();
        let is_inside = at < stream.end;
        let found = stream.page_mut(at, self.page_capacity).filter(|_| is_inside).map(|page| page.page);
        drop(stream);
        let outside = || Error::corrupt(format!("undo record at {at}"), "outside the undo log");
        let page = fetch(&self.pool, found.ok_or_else(outside)?)?;
        *at_hand = Some((page_no, page.clone()));
        Ok(page)
    }

    /// Calls `f` with the bodies of the records of all transactions from `at`, where a record
    /// begins, to `end`. The caller must ensure that none of them is freed. Must be called outside
    /// mini-transactions; does I/O.
    pub fn each_record(
        &self,
        at: UndoPtr,
        end: UndoPtr,
        mut f: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut at = at.max(UndoPtr(FIRST_BYTES.len() as u64));
        let (mut record, mut at_hand) = (Vec::new(), None);
        while at < end {
            let head = self.read_head(at, &mut record, &mut at_hand)?;
            self.read_rest(at, &head, &mut record, &mut at_hand)?;
            f(record.get(HEAD_BYTES..).unwrap_or_default())?;
            at.0 += u64::from(head.len);
        }
        Ok(())
    }

    /// Returns purge's position.
    pub fn purge_state(&self) -> PurgeState {
        self.stream.lock().purge
    }

    /// Finds the next finish record that purge has not passed, and reads it into `record`. Returns
    /// the position after it, its head and its body. Returns `None` at the end of the log, or if
    /// the search must be [continued](Self::has_more_to_search) after many other records. Must be
    /// called outside mini-transactions; may do I/O.
    pub fn next_finish(&self, record: &mut Vec<u8>) -> Result<Option<(UndoPtr, UndoHead, UndoFinish)>> {
        let mut at = self.searched_to();
        let found = self.search(&mut at, record);
        self.note_searched(at);
        found
    }

    /// Like [`next_finish`](Self::next_finish), for a reader ahead of purge: searches from `at`,
    /// but not before purge's position. Moves `at` to the finish record, or to where the search
    /// must be continued; compare `at` with [`end`](Self::end) to detect the end of the log. No
    /// record from `at` on is freed before purge has passed it.
    pub fn finish_from(
        &self,
        at: &mut UndoPtr,
        record: &mut Vec<u8>,
    ) -> Result<Option<(UndoPtr, UndoHead, UndoFinish)>> {
        *at = self.searched_to().max(*at);
        self.search(at, record)
    }

    /// Skips other records from `at` on, up to a finish record.
    fn search(
        &self,
        at: &mut UndoPtr,
        record: &mut Vec<u8>,
    ) -> Result<Option<(UndoPtr, UndoHead, UndoFinish)>> {
        let end = self.end();
        let mut at_hand = None;
        for _ in 0..RECORDS_PER_SEARCH {
            if *at >= end {
                break;
            }
            let head = self.read_head(*at, record, &mut at_hand)?;
            let next = UndoPtr(at.0 + u64::from(head.len));
            if next > end {
                return Err(damaged(*at));
            }
            if head.undo_no == 0 {
                self.read_rest(*at, &head, record, &mut at_hand)?;
                return match decode_body(record.get(HEAD_BYTES..).unwrap_or_default())? {
                    UndoBody::Finish(finish) => Ok(Some((next, head, finish))),
                    _ => Err(damaged(*at)),
                };
            }
            *at = next;
        }
        Ok(None)
    }

    /// Returns whether there are records that no search for a finish record has reached.
    pub fn has_more_to_search(&self) -> bool {
        let (at, end) = self.to_search();
        at < end
    }

    /// Returns a position such that there is no finish record between purge's position and it.
    pub fn searched_to(&self) -> UndoPtr {
        self.stream.lock().searched_to
    }

    fn to_search(&self) -> (UndoPtr, UndoPtr) {
        let stream = self.stream.lock();
        (stream.searched_to, stream.end)
    }

    fn note_searched(&self, to: UndoPtr) {
        let mut stream = self.stream.lock();
        stream.searched_to = stream.searched_to.max(to);
    }

    /// Records the progress of purge in the transaction of the next finish record.
    pub fn note_purge(&self, _mtr: &MiniTransaction<'_>, purge: PurgeState) {
        let mut stream = self.stream.lock();
        let is_begun = purge.at == stream.purge.at && purge.head != UndoPtr(0);
        assert!(is_begun, "I6: with its last record a transaction is passed");
        stream.purge = purge;
    }

    /// Moves purge's position past a finish record: purge has finished its transaction. Fails with
    /// `Corruption` if the transaction is not live.
    pub fn pass(&self, _mtr: &MiniTransaction<'_>, next: UndoPtr, end: &UndoFinish) -> Result<()> {
        let mut stream = self.stream.lock();
        let is_ahead = stream.purge.at < next && next <= stream.end;
        match stream.page_mut(end.first, self.page_capacity) {
            Some(page) if page.live > 0 && is_ahead => page.live -= 1,
            _ => {
                return Err(Error::corrupt(
                    format!("undo record before {next}"),
                    "its transaction is not live",
                ))
            }
        }
        stream.live -= 1;
        stream.purge = PurgeState { at: next, ..PurgeState::default() };
        stream.searched_to = stream.searched_to.max(next);
        Ok(())
    }

    /// Frees pages that are no longer needed, up to a limit. Returns whether there are more. Must
    /// not be called inside a mini-transaction.
    pub fn free_oldest_pages(&self) -> bool {
        if !self.stream.lock().has_free_page(self.page_capacity) {
            return false;
        }
        let mtr = self.pool.enter();
        let mut stream = self.stream.lock();
        for _ in 0..FREED_PER_STEP {
            if !stream.has_free_page(self.page_capacity) {
                return false;
            }
            let Some(page) = stream.pages.pop_front() else { return false };
            stream.first_page += 1;
            if stream.pages.is_empty() {
                stream.last = None;
            }
            reach::mark("undo page freed");
            self.pool.free(&mtr, page.page);
        }
        true
    }
}

impl Stream {
    fn page_mut(&mut self, at: UndoPtr, page_capacity: u64) -> Option<&mut UndoPage> {
        let index = (at.0 / page_capacity).checked_sub(self.first_page)?;
        self.pages.get_mut(usize::try_from(index).ok()?)
    }

    /// Returns whether the first page may be freed (I3).
    fn has_free_page(&self, page_capacity: u64) -> bool {
        let ends_at = (self.first_page + 1) * page_capacity;
        let is_needed = |page: &UndoPage| sound!(page.live > 0, "undo: free pages that transactions need");
        ends_at <= self.purge.at.0 && self.pages.front().is_some_and(|page| !is_needed(page))
    }
}

fn is_next(record: &[u8], state: &TxnState) -> bool {
    let head = record.first_chunk().and_then(|head| decode_head(head).ok());
    head.is_some_and(|head| (head.txn, head.undo_no, head.prev) == (state.txn, state.undo_no + 1, state.head))
}

fn damaged(at: UndoPtr) -> Error {
    Error::corrupt(format!("undo record at {at}"), "not the expected record")
}

/// Starts a record of `state`'s transaction in `record`.
pub fn start_record(state: &TxnState, record: &mut Vec<u8>) {
    undo_record::start(record, state.txn, state.undo_no + 1, state.head);
}

fn fetch(pool: &Pool, pid: PageId) -> Result<PageRef> {
    let gone = || Error::corrupt(format!("undo page {pid}"), "the page does not exist");
    pool.fetch(pid)?.ok_or_else(gone)
}

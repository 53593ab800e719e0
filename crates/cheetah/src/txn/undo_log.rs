//! The undo log: one stream of bytes in pool pages, appended at its end, cut off at its tail.
//!
//! Invariants
//!   I1  Append-only: bytes once written are never overwritten, also not when a rollback has taken their records
//!       back (C6). A rollback moves its transaction's head back and leaves the bytes.
//!   I2  A pointer is the offset of a byte since the creation of the database, so pointers are never reused.
//!   I3  The record that a listed transaction needs lies at or behind the tail; every read checks the
//!       transaction and the number it expects.
//!   I4  The directory of pages is part of the generation state: the flip sees pages and directory of one moment.
//! Records are contiguous in the stream and may cross page borders. Page number i of the stream holds the offsets
//! from i * C, where C is what a page holds.
//! Locks     one mutex over directory and end, taken inside actions or for a lookup; page latches come after.

use crate::base::{reach, Error, PageId, Result, TreeId, TxnId, UndoPtr};
use crate::format::page::{build_content, content_capacity, PageKind, PageMut, PageView};
use crate::format::state::TxnState;
use crate::format::undo_record::{self, decode_head, UndoHead, HEAD_BYTES};
use crate::pool::{Action, PageClass, PageRef, Pool};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// What stands before the first record: offset 0 means "none", so no record may start there.
const FIRST_BYTES: [u8; 8] = *b"CHEETAHU";

/// Pages freed in one action when the tail moves: bounds how long a flip waits.
const FREED_PER_ACTION: usize = 32;

/// Longest record accepted when reading: beyond it the length is damaged.
const RECORD_BYTES_MAX: u32 = 1 << 26;

/// Where the log was at a flip.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UndoStart {
    /// Number of the first page in the stream.
    pub first_page: u64,
    /// Offset behind the last record.
    pub end: UndoPtr,
    /// The pages, oldest first.
    pub pages: Vec<PageId>,
}

#[derive(Debug)]
struct Stream {
    first_page: u64,
    end: UndoPtr,
    pages: VecDeque<PageId>,
    /// The last page, pinned: an append never reads from disk.
    last: Option<PageRef>,
}

/// The undo log.
#[derive(Debug)]
pub struct UndoLog {
    pool: Arc<Pool>,
    page_capacity: u64,
    stream: Mutex<Stream>,
}

impl UndoLog {
    /// Opens the log where a generation left it; reads its last page.
    pub fn open(pool: Arc<Pool>, start: UndoStart) -> Result<Self> {
        let page_capacity = content_capacity(PageClass::Base.bytes(pool.page_bytes())) as u64;
        let last = match start.pages.last() {
            Some(&pid) => Some(fetch(&pool, pid)?),
            None => None,
        };
        let stream = Stream { first_page: start.first_page, end: start.end, pages: start.pages.into(), last };
        Ok(Self { pool, page_capacity, stream: Mutex::new(stream) })
    }

    /// Directory and end, for the flip.
    pub fn snapshot(&self) -> UndoStart {
        let stream = self.stream.lock();
        let pages = stream.pages.iter().copied().collect();
        UndoStart { first_page: stream.first_page, end: stream.end, pages }
    }

    /// Offset behind the last record.
    pub fn end(&self) -> UndoPtr {
        self.stream.lock().end
    }

    /// Pages that the log occupies.
    pub fn pages_count(&self) -> usize {
        self.stream.lock().pages.len()
    }

    /// Pages that appending `bytes` more may allocate.
    pub fn pages_needed(&self, bytes: usize) -> usize {
        bytes / self.page_capacity as usize + 2
    }

    /// Appends a record built in `record` as the newest of the transaction, whose state moves on to it.
    pub fn append(&self, action: &Action<'_>, state: &mut TxnState, record: &[u8]) {
        let mut stream = self.stream.lock();
        if stream.end == UndoPtr(0) {
            self.append_bytes(action, &mut stream, &FIRST_BYTES);
        }
        let at = stream.end;
        self.append_bytes(action, &mut stream, record);
        state.head = at;
        state.undo_no += 1;
        if state.first == UndoPtr(0) {
            state.first = at;
        }
    }

    fn append_bytes(&self, action: &Action<'_>, stream: &mut Stream, mut rest: &[u8]) {
        while !rest.is_empty() {
            let position = (stream.end.0 % self.page_capacity) as usize;
            let page = self.page_for_append(action, stream);
            let taken = rest.len().min(self.page_capacity as usize - position);
            let (now, later) = rest.split_at(taken);
            let appended = PageMut::new(&mut page.write(action)).append_content(now);
            assert!(appended.is_ok(), "I1: the last undo page ends where the log ends");
            rest = later;
            stream.end.0 += taken as u64;
        }
    }

    fn page_for_append(&self, action: &Action<'_>, stream: &mut Stream) -> PageRef {
        let page_no = stream.end.0 / self.page_capacity;
        if page_no < stream.first_page + stream.pages.len() as u64 {
            if let Some(last) = &stream.last {
                return last.clone();
            }
        }
        if stream.pages.is_empty() {
            stream.first_page = page_no;
        }
        let page = self.pool.allocate(action, TreeId::UNDO, PageClass::Base);
        let position = page_no * self.page_capacity;
        build_content(&mut page.write(action), PageKind::Undo, TreeId::UNDO, PageId::NONE, position);
        stream.pages.push_back(page.pid());
        stream.last = Some(page.clone());
        page
    }

    /// Reads the record at `at` into `record`, head included, and checks whose it is. May do I/O.
    pub fn read(&self, at: UndoPtr, txn: TxnId, undo_no: u64, record: &mut Vec<u8>) -> Result<UndoHead> {
        record.clear();
        self.read_bytes(at, HEAD_BYTES, record)?;
        let damaged = || Error::corrupt(format!("undo record at {at}"), "not the expected record");
        let head = decode_head(record.first_chunk().ok_or_else(damaged)?)?;
        if head.txn != txn || head.undo_no != undo_no || head.len > RECORD_BYTES_MAX || head.prev >= at {
            return Err(damaged());
        }
        self.read_bytes(UndoPtr(at.0 + HEAD_BYTES as u64), head.len as usize - HEAD_BYTES, record)?;
        Ok(head)
    }

    fn read_bytes(&self, mut at: UndoPtr, len: usize, out: &mut Vec<u8>) -> Result<()> {
        let end = out.len() + len;
        while out.len() < end {
            let page = fetch(&self.pool, self.page_of(at)?)?;
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

    fn page_of(&self, at: UndoPtr) -> Result<PageId> {
        let stream = self.stream.lock();
        let index = (at.0 / self.page_capacity).checked_sub(stream.first_page);
        let page = index.and_then(|index| stream.pages.get(index as usize));
        match page {
            Some(&page) if at < stream.end => Ok(page),
            _ => Err(Error::corrupt(format!("undo record at {at}"), "outside the undo log")),
        }
    }

    /// Frees the pages before `oldest`, a bounded number of them; whether there are more. Never inside an action.
    pub fn advance_tail(&self, oldest: UndoPtr) -> bool {
        let keep_from = oldest.0 / self.page_capacity;
        if self.stream.lock().first_page >= keep_from {
            return false;
        }
        let action = self.pool.enter();
        let mut stream = self.stream.lock();
        for _ in 0..FREED_PER_ACTION {
            if stream.first_page >= keep_from {
                return false;
            }
            let Some(page) = stream.pages.pop_front() else { return false };
            stream.first_page += 1;
            if stream.pages.is_empty() {
                stream.last = None;
            }
            reach::mark("undo page freed");
            self.pool.free(&action, page);
        }
        true
    }
}

/// Starts a record of `state`'s transaction in `record`.
pub fn start_record(state: &TxnState, record: &mut Vec<u8>) {
    undo_record::start(record, state.txn, state.undo_no + 1, state.head);
}

fn fetch(pool: &Pool, pid: PageId) -> Result<PageRef> {
    let gone = || Error::corrupt(format!("undo page {pid}"), "the page is gone");
    pool.fetch(pid)?.ok_or_else(gone)
}

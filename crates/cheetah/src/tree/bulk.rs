//! Building a tree from records that come in key order.
//!
//! Each level collects entries until they fill 15/16 of a page, cuts off a page's worth, writes it in a short action
//! and hands its lower fence to the level above. The root is written last: until then the tree is empty for
//! everybody else.
//!
//! Invariants
//!   I1  A page is written once, with its final fences; its right neighbour is allocated in the same action.
//!   I2  A page is cut between entries that are both known, so its upper fence and with it the prefix and its
//!       exact size are known before it is written.
//! Errors    After an error, or when dropped unfinished, the pages written so far belong to the tree but are not
//!           part of it: the caller frees the tree as a whole.

use super::handle::Fences;
use super::modify::Changed;
use super::Tree;
use crate::base::{PageId, Result, TxnId, UndoPtr};
use crate::format::page::{
    cell_bytes, separator_between, PageMut, PageView, RecordFlags, RecordRef, HEADER_BYTES,
};
use crate::pool::PageRef;
use std::ops::Range;
use std::sync::Arc;

/// Pages that one step may allocate: the page itself and its right neighbour, on two levels.
const PAGES_PER_STEP: usize = 4;

/// Fills an empty tree; nobody else may write to it.
#[derive(Debug)]
pub struct Builder {
    tree: Arc<Tree>,
    levels: Vec<Level>,
    last_key: Vec<u8>,
    records: u64,
}

/// The unfinished rightmost page of a level.
#[derive(Default, Debug)]
struct Level {
    low: Vec<u8>,
    entries: Vec<Entry>,
    bytes: Vec<u8>,
    /// Sum of the cells with whole keys.
    cells_bytes: usize,
    /// The page that its left neighbour names already; `None` on the first page of the level.
    page: Option<PageRef>,
}

#[derive(Clone, Debug)]
struct Entry {
    key: Range<usize>,
    payload: Range<usize>,
    flags: RecordFlags,
    version: Option<(TxnId, UndoPtr)>,
}

impl Level {
    fn key(&self, index: usize) -> &[u8] {
        &self.bytes[self.entries[index].key.clone()]
    }

    fn record(&self, index: usize) -> RecordRef<'_> {
        let entry = &self.entries[index];
        RecordRef { flags: entry.flags, version: entry.version, payload: &self.bytes[entry.payload.clone()] }
    }

    fn push(&mut self, key: &[u8], record: &RecordRef<'_>) {
        let key_at = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let payload_at = self.bytes.len();
        self.bytes.extend_from_slice(record.payload);
        self.entries.push(Entry {
            key: key_at..payload_at,
            payload: payload_at..self.bytes.len(),
            flags: record.flags,
            version: record.version,
        });
        self.cells_bytes += cell_bytes(key.len(), record);
    }

    /// Bytes of a page with the first `count` entries and that upper fence.
    fn page_bytes(&self, count: usize, high: Option<&[u8]>) -> usize {
        let prefix_len = high.map_or(0, |high| common_prefix_len(&self.low, high));
        let cells = if count == self.entries.len() {
            self.cells_bytes
        } else {
            (0..count).map(|index| cell_bytes(self.key(index).len(), &self.record(index))).sum()
        };
        HEADER_BYTES + self.low.len() + high.map_or(0, <[u8]>::len) + cells - count * prefix_len
    }

    /// Bytes of a page with all entries, going by the last key for the upper fence that is not known yet.
    fn expected_bytes(&self) -> usize {
        let last = self.entries.len().checked_sub(1).map(|last| self.key(last));
        self.page_bytes(self.entries.len(), last)
    }

    /// The entries that make a page of at most `bytes_max`, as many as possible, with their upper fence.
    fn cut(&self, is_leaf: bool, bytes_max: usize) -> (usize, Vec<u8>) {
        let high_of = |count: usize| match is_leaf {
            true => separator_between(self.key(count - 1), self.key(count)),
            false => self.key(count),
        };
        let fits = |count: &usize| *count == 1 || self.page_bytes(*count, Some(high_of(*count))) <= bytes_max;
        let count = (1..self.entries.len()).rev().find(fits).unwrap_or(1);
        (count, high_of(count).to_vec())
    }

    /// What remains when the first `count` entries have become a page.
    fn rest(&self, count: usize, low: Vec<u8>, page: PageRef) -> Level {
        let mut rest = Level { low, page: Some(page), ..Level::default() };
        for index in count..self.entries.len() {
            rest.push(self.key(index), &self.record(index));
        }
        rest
    }
}

fn common_prefix_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

impl Tree {
    /// A builder for this tree, which must be empty.
    pub fn builder(self: &Arc<Self>) -> Builder {
        Builder { tree: Arc::clone(self), levels: vec![Level::default()], last_key: Vec::new(), records: 0 }
    }
}

impl Builder {
    /// Adds a record; its key must be above the last one. `Exists` if it is the same, and nothing is added. May do
    /// I/O and opens actions: call it outside of any.
    pub fn push(&mut self, key: &[u8], record: RecordRef<'_>) -> Result<Changed> {
        self.tree.check_limits(key, &record)?;
        if self.records > 0 && key <= self.last_key.as_slice() {
            if key == self.last_key {
                return Ok(Changed::Exists);
            }
            return Err(self.tree.corrupt(self.tree.def.root, "a rebuild got keys that do not ascend"));
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.records += 1;
        self.add(0, key, &record)?;
        Ok(Changed::Done)
    }

    /// The last key that was added; empty before the first.
    pub fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Writes what is left and the root; returns the number of records.
    pub fn finish(mut self) -> Result<u64> {
        let page_bytes = self.tree.page_bytes();
        let mut level = 0;
        loop {
            while self.levels[level].page_bytes(self.levels[level].entries.len(), None) > page_bytes {
                self.cut_page(level)?;
            }
            if self.levels[level].page.is_none() {
                break;
            }
            self.write_last(level)?;
            level += 1;
        }
        let root = self.tree.root_page()?;
        let action = self.tree.pool.enter();
        debug_assert_eq!(PageView::new(&root.read()).count(), 0, "only an empty tree is built");
        let all = &self.levels[level];
        self.tree.write_entries(&mut root.write(&action), level, all, all.entries.len(), &Fences::ALL);
        Ok(self.records)
    }

    fn add(&mut self, level: usize, key: &[u8], record: &RecordRef<'_>) -> Result<()> {
        if self.levels.len() <= level {
            self.levels.push(Level::default());
        }
        self.levels[level].push(key, record);
        while self.levels[level].expected_bytes() > self.target_bytes()
            && self.levels[level].entries.len() > 1
        {
            self.cut_page(level)?;
        }
        Ok(())
    }

    fn target_bytes(&self) -> usize {
        self.tree.page_bytes() / 16 * 15
    }

    /// Writes the first page's worth of the entries of `level`.
    fn cut_page(&mut self, level: usize) -> Result<()> {
        let tree = Arc::clone(&self.tree);
        tree.pool.make_room(PAGES_PER_STEP)?;
        let mut full = std::mem::take(&mut self.levels[level]);
        let (count, high) = full.cut(level == 0, self.target_bytes());
        let page = {
            let action = tree.pool.enter();
            let page =
                full.page.take().unwrap_or_else(|| tree.pool.allocate(&action, tree.def.id, tree.def.class));
            let next = tree.pool.allocate(&action, tree.def.id, tree.def.class);
            let rest = Fences { low: &high, high: None, right: PageId::NONE };
            tree.write_entries(&mut next.write(&action), level, &full, 0, &rest);
            let fences = Fences { low: &full.low, high: Some(&high), right: next.pid() };
            tree.write_entries(&mut page.write(&action), level, &full, count, &fences);
            self.levels[level] = full.rest(count, high, next);
            page.pid()
        };
        self.post(level, &full.low, page)
    }

    /// Writes the rightmost page of `level`.
    fn write_last(&mut self, level: usize) -> Result<()> {
        let mut last = std::mem::take(&mut self.levels[level]);
        let Some(page) = last.page.take() else { return Ok(()) };
        {
            let action = self.tree.pool.enter();
            let fences = Fences { low: &last.low, high: None, right: PageId::NONE };
            let count = last.entries.len();
            self.tree.write_entries(&mut page.write(&action), level, &last, count, &fences);
        }
        self.post(level, &last.low, page.pid())
    }

    fn post(&mut self, level: usize, low: &[u8], page: PageId) -> Result<()> {
        self.tree.pool.note_built(page);
        let child = page.0.to_le_bytes();
        let low = low.to_vec();
        self.add(level + 1, &low, &RecordRef::frozen(&child[..5]))
    }
}

impl Tree {
    fn write_entries(&self, page: &mut [u8], level: usize, from: &Level, count: usize, fences: &Fences<'_>) {
        self.init(page, level as u8, fences);
        let mut page = PageMut::new(page);
        for index in 0..count {
            page.push(from.key(index), &from.record(index)).expect("I2: the entries were measured");
        }
    }
}

//! Building a tree from records in key order.
//!
//! Each level collects entries until they fill a page (`packing.rs`). It writes the page in a short
//! mini-transaction, passes its lower fence to the level above, and keeps the remaining entries.
//! The root is written last: until then other threads see an empty tree.
//!
//! Invariants
//!   I1  The entries of a page are written once, with its final fences. Its right neighbour is
//!       allocated, as an empty page, in the same mini-transaction.
//! Errors    After an error, or if the builder is dropped unfinished, the tree owns the pages
//!           written so far, but its root does not lead to them: the caller frees the whole tree.

use super::packing::{fill_target, Packing};
use crate::base::{PageId, Result};
use crate::format::page::{PageView, RecordRef};
use crate::pool::PageRef;
use crate::tree::handle::Fences;
use crate::tree::modify::Changed;
use crate::tree::Tree;
use std::sync::Arc;

/// The pages for which a step makes room; it allocates at most a page and its right neighbour.
const PAGES_PER_STEP: usize = 4;

/// Fills an empty tree. The caller must ensure that no other thread writes records to it.
#[derive(Debug)]
pub struct Builder {
    tree: Arc<Tree>,
    levels: Vec<Level>,
    last_key: Vec<u8>,
    records: u64,
    /// Complete pages that the pool may not write while the tree is too small for a dictionary.
    early: Vec<PageId>,
}

/// The unfinished rightmost page of a level.
#[derive(Default, Debug)]
struct Level {
    packing: Packing,
    /// The page, which its left neighbour already names; `None` for the first page of the level.
    page: Option<PageRef>,
}

impl Tree {
    /// Creates a builder for this tree, which must be empty.
    pub fn builder(self: &Arc<Self>) -> Builder {
        Builder {
            tree: Arc::clone(self),
            levels: vec![Level::default()],
            last_key: Vec::new(),
            records: 0,
            early: Vec::new(),
        }
    }
}

impl Builder {
    /// Adds a record, whose key must not be below the last key. If the keys are equal, adds nothing
    /// and returns `Exists`. May do I/O. Opens mini-transactions: call it outside of any.
    pub fn push(&mut self, key: &[u8], record: RecordRef<'_>) -> Result<Changed> {
        self.tree.check_limits(key, &record)?;
        if self.records > 0 && key <= self.last_key.as_slice() {
            if key == self.last_key {
                return Ok(Changed::Exists);
            }
            return Err(self.tree.corrupt(self.tree.def.root, "a bulk build got keys that do not ascend"));
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.records += 1;
        self.add(0, key, &record)?;
        Ok(Changed::Done)
    }

    /// The last added key; empty before the first record.
    pub fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Writes the remaining pages and the root. Returns the number of records.
    pub fn finish(mut self) -> Result<u64> {
        let page_bytes = self.tree.page_bytes();
        let mut level = 0;
        loop {
            while !self.levels[level].packing.fits_as_last(page_bytes) {
                self.cut_page(level)?;
            }
            if self.levels[level].page.is_none() {
                break;
            }
            self.write_last(level)?;
            level += 1;
        }
        // The pool will soon write the remaining pages, with the dictionary.
        self.tree.pool.trial(self.tree.def.id).finish_first()?;
        let root = self.tree.root_page()?;
        {
            let mtr = self.tree.pool.enter();
            debug_assert_eq!(PageView::new(&root.read()).count(), 0, "only an empty tree is built");
            let all = &self.levels[level].packing;
            all.write(&mut root.write(&mtr), self.tree.def.id, level as u8, all.count(), &Fences::ALL);
        }
        self.let_write();
        Ok(self.records)
    }

    fn add(&mut self, level: usize, key: &[u8], record: &RecordRef<'_>) -> Result<()> {
        if self.levels.len() <= level {
            self.levels.push(Level::default());
        }
        self.levels[level].packing.push(key, record);
        while self.levels[level].packing.overflows(self.target_bytes()) {
            self.cut_page(level)?;
        }
        Ok(())
    }

    fn target_bytes(&self) -> usize {
        fill_target(self.tree.page_bytes())
    }

    /// Fills and writes one page with the first entries of `level`.
    fn cut_page(&mut self, level: usize) -> Result<()> {
        let tree = Arc::clone(&self.tree);
        tree.pool.make_room(PAGES_PER_STEP)?;
        let Level { packing: full, page } = std::mem::take(&mut self.levels[level]);
        let (count, high) = full.cut(level == 0, self.target_bytes());
        let (id, height) = (tree.def.id, level as u8);
        let page = {
            let mtr = tree.pool.enter();
            let page = page.unwrap_or_else(|| tree.pool.allocate(&mtr, id, tree.def.class));
            let next = tree.pool.allocate(&mtr, id, tree.def.class);
            let rest = Fences { low: &high, high: None, right: PageId::NONE };
            full.write(&mut next.write(&mtr), id, height, 0, &rest);
            let fences = Fences { low: full.low(), high: Some(&high), right: next.pid() };
            full.write(&mut page.write(&mtr), id, height, count, &fences);
            self.levels[level] = Level { packing: full.rest(count, high), page: Some(next) };
            page.pid()
        };
        self.post(level, full.low(), page)
    }

    fn write_last(&mut self, level: usize) -> Result<()> {
        let Level { packing: last, page } = std::mem::take(&mut self.levels[level]);
        let Some(page) = page else { return Ok(()) };
        {
            let mtr = self.tree.pool.enter();
            let fences = Fences { low: last.low(), high: None, right: PageId::NONE };
            last.write(&mut page.write(&mtr), self.tree.def.id, level as u8, last.count(), &fences);
        }
        self.post(level, last.low(), page.pid())
    }

    fn post(&mut self, level: usize, low: &[u8], page: PageId) -> Result<()> {
        self.early.push(page);
        self.tree.pool.trial(self.tree.def.id).finish_late()?;
        if self.tree.pool.trial(self.tree.def.id).may_write_early() {
            self.let_write();
        }
        let child = page.0.to_le_bytes();
        let low = low.to_vec();
        self.add(level + 1, &low, &RecordRef::frozen(&child[..5]))
    }

    fn let_write(&mut self) {
        self.tree.pool.note_finished(self.early.drain(..));
    }
}

//! One B-link tree: its identity and its limits.

use super::stats::{TreeCounts, TreeStats};
use crate::base::{Error, PageId, Result, TreeId};
use crate::format::page::{build_page, max_cell_bytes, max_key_bytes, PageKind, RecordRef};
use crate::leaves::Leaves;
use crate::pool::{MiniTransaction, PageClass, PageRef, Pool};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

/// The identity of a tree, which never changes, and the bounds of its keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TreeDef {
    /// The owner of all pages of the tree.
    pub id: TreeId,
    /// The root page, which never changes.
    pub root: PageId,
    /// The class of all pages of the tree, never `Large`.
    pub class: PageClass,
    /// The longest allowed key, in bytes. A shorter limit allows longer records.
    pub key_bytes_max: usize,
}

/// An open tree, shared by all threads.
#[derive(Debug)]
pub struct Tree {
    pub(super) leaves: Leaves,
    pub(super) pool: Arc<Pool>,
    pub(super) def: TreeDef,
    /// Held while pages are split or merged. Locked inside mini-transactions only.
    pub(super) structure: Mutex<()>,
    pub(super) stats: TreeStats,
    cell_bytes_max: usize,
    /// See [`write_full_leaves_early`](Self::write_full_leaves_early).
    full_leaves_early: AtomicBool,
}

/// Fences and right neighbour of a page to be built.
pub(crate) struct Fences<'a> {
    pub(crate) low: &'a [u8],
    pub(crate) high: Option<&'a [u8]>,
    pub(crate) right: PageId,
}

impl Fences<'_> {
    pub(super) const ALL: Fences<'static> = Fences { low: b"", high: None, right: PageId::NONE };
}

impl Tree {
    /// Creates an empty tree whose keys have at most `key_bytes_max` bytes. Its [`def`](Self::def)
    /// names the new root. Returns `Limit` if pages of that class cannot hold such keys.
    pub fn create(
        leaves: &Leaves,
        mtr: &MiniTransaction<'_>,
        id: TreeId,
        class: PageClass,
        key_bytes_max: usize,
    ) -> Result<Self> {
        let pool = leaves.pool();
        check_key_limit(pool, class, key_bytes_max)?;
        let root = pool.allocate(mtr, id, class);
        let tree = Self::open(leaves, TreeDef { id, root: root.pid(), class, key_bytes_max })?;
        tree.init(&mut root.write(mtr), 0, &Fences::ALL);
        Ok(tree)
    }

    /// Opens an existing tree. Does no I/O.
    pub fn open(leaves: &Leaves, def: TreeDef) -> Result<Self> {
        let pool = leaves.pool();
        check_key_limit(pool, def.class, def.key_bytes_max)?;
        let page_bytes = def.class.bytes(pool.page_bytes());
        Ok(Self {
            leaves: leaves.clone(),
            pool: pool.clone(),
            def,
            structure: Mutex::new(()),
            stats: TreeStats::default(),
            cell_bytes_max: max_cell_bytes(page_bytes, def.key_bytes_max),
            full_leaves_early: AtomicBool::new(false),
        })
    }

    /// Sets whether the cleaner writes leaves that ascending keys have filled, because a checkpoint
    /// is due soon.
    pub(crate) fn write_full_leaves_early(&self, early: bool) {
        self.full_leaves_early.store(early, Relaxed);
    }

    /// Notes that a leaf is full and that the next records go to leaves after it.
    pub(super) fn note_full_leaf(&self, page: PageId) {
        if self.full_leaves_early.load(Relaxed) && self.pool.trial(self.def.id).may_write_early() {
            self.pool.note_finished([page].into_iter());
        }
    }

    /// The smallest class for keys of `key_bytes_max` bytes; `None` if no class can hold them.
    pub fn class_for(page_bytes: u32, key_bytes_max: usize) -> Option<PageClass> {
        if key_bytes_max <= PageClass::Base.bytes(page_bytes) / 8 {
            return Some(PageClass::Base);
        }
        (key_bytes_max <= max_key_bytes(PageClass::Wide.bytes(page_bytes))).then_some(PageClass::Wide)
    }

    /// The identity of the tree.
    pub fn def(&self) -> &TreeDef {
        &self.def
    }

    /// The pool that has the pages of the tree.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The state of leaves without a frame.
    pub fn leaves(&self) -> &Leaves {
        &self.leaves
    }

    /// Counters since the tree was opened.
    pub fn counts(&self) -> TreeCounts {
        self.stats.counts()
    }

    #[cfg(test)]
    pub(crate) fn descents(&self) -> u64 {
        self.stats.descents.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// The size of each page in memory, in bytes.
    pub fn page_bytes(&self) -> usize {
        self.def.class.bytes(self.pool.page_bytes())
    }

    pub(super) fn root_page(&self) -> Result<PageRef> {
        self.pool.fetch(self.def.root)?.ok_or_else(|| self.corrupt(self.def.root, "the root page is missing"))
    }

    pub(super) fn check_limits(&self, key: &[u8], record: &RecordRef<'_>) -> Result<()> {
        if key.len() > self.def.key_bytes_max {
            return limit("key length (bytes)", key.len(), self.def.key_bytes_max);
        }
        let bytes = crate::format::page::cell_bytes(key.len(), record);
        if bytes > self.cell_bytes_max {
            return limit("record length (bytes)", bytes, self.cell_bytes_max);
        }
        Ok(())
    }

    pub(super) fn init(&self, page: &mut [u8], level: u8, fences: &Fences<'_>) {
        let kind = if level == 0 { PageKind::Leaf } else { PageKind::Inner };
        build_page(page, kind, level, self.def.id, fences.low, fences.high, fences.right);
    }
}

fn check_key_limit(pool: &Pool, class: PageClass, key_bytes_max: usize) -> Result<()> {
    let most = match class {
        PageClass::Large => 0,
        class => max_key_bytes(class.bytes(pool.page_bytes())),
    };
    if key_bytes_max > most {
        return limit("key length (bytes)", key_bytes_max, most);
    }
    Ok(())
}

fn limit<T>(what: &'static str, actual: usize, limit: usize) -> Result<T> {
    Err(Error::Limit { what, actual: actual as u64, limit: limit as u64 })
}

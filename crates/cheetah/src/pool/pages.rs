//! The pool itself: fetching, allocating and freeing pages.

use super::frame::{Frame, PageRef};
use super::gate::{Action, Gate};
use super::page_table::{PageTable, Residence};
use super::pids::FreePids;
use super::trees::{TreeBytes, TreeDef, Trees};
use super::PageClass;
use crate::base::{Config, Error, Generation, PageId, Result, TreeId};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// See the module [`pool`](super).
#[derive(Debug)]
pub struct Pool {
    page_bytes: u32,
    table: PageTable,
    pids: Mutex<FreePids>,
    trees: Trees,
    gate: Gate,
    load_no: AtomicU64,
}

impl Pool {
    /// A pool without a disk, for tests of the layers above.
    pub fn in_memory(config: &Config) -> Arc<Self> {
        Arc::new(Self {
            page_bytes: config.page_bytes,
            table: PageTable::new(),
            pids: Mutex::new(FreePids::new(&[])),
            trees: Trees::default(),
            gate: Gate::new(Generation(1)),
            load_no: AtomicU64::new(1),
        })
    }

    /// Bytes of the smallest pages.
    pub fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    /// Tells how pages of a tree are encoded. Needed before its pages can be written compactly.
    pub fn register_tree(&self, def: TreeDef) {
        self.trees.register(def);
    }

    /// Forgets a tree whose pages have all been freed.
    pub fn forget_tree(&self, tree: TreeId) {
        self.trees.forget(tree);
    }

    /// What a tree occupies now.
    pub fn tree_bytes(&self, tree: TreeId) -> TreeBytes {
        self.trees.get(tree).bytes()
    }

    /// Opens an action; waits while a flip drains. The thread must hold no page latch and no other action.
    pub fn enter(&self) -> Action<'_> {
        self.gate.enter(self)
    }

    /// The generation of the actions that are open now.
    pub fn generation(&self) -> Generation {
        self.gate.generation()
    }

    /// Pins a page, reading it when it is not in memory (blocks for that). `None` when the page has been freed:
    /// what named it was outdated, start again from the root.
    pub fn fetch(&self, pid: PageId) -> Result<Option<PageRef>> {
        let Some(entry) = self.table.existing(pid) else {
            return Err(Error::corrupt(format!("reference to page {pid}"), "no such page was ever written"));
        };
        match &entry.residence {
            Residence::Frame(frame) => Ok(Some(PageRef(frame.clone()))),
            Residence::Free => Ok(None),
        }
    }

    /// Pins a page if it is in memory already; never does I/O.
    pub fn fetch_resident(&self, pid: PageId) -> Option<PageRef> {
        match &self.table.existing(pid)?.residence {
            Residence::Frame(frame) => Some(PageRef(frame.clone())),
            Residence::Free => None,
        }
    }

    /// As [`fetch`](Self::fetch), for pages that are not expected to be wanted again soon: a scan must not push
    /// out what others use.
    pub fn fetch_for_scan(&self, pid: PageId) -> Result<Option<PageRef>> {
        self.fetch(pid)
    }

    /// A new, zeroed, pinned page of `tree`. Never waits and does no I/O: it may exceed the memory budget by a few
    /// pages, which [`make_room`](Self::make_room) pays back.
    pub fn allocate(&self, _action: &Action<'_>, tree: TreeId, class: PageClass) -> PageRef {
        let pid = self.pids.lock().take();
        let bytes = vec![0; class.bytes(self.page_bytes)].into_boxed_slice();
        let load_no = self.load_no.fetch_add(1, Ordering::Relaxed);
        let frame = Arc::new(Frame::new(pid, tree, class, bytes, load_no));
        let mut entry = self.table.entry(pid);
        assert!(matches!(entry.residence, Residence::Free), "a page number is given out once");
        entry.residence = Residence::Frame(frame.clone());
        entry.tree = tree;
        self.trees.get(tree).pages.fetch_add(1, Ordering::Relaxed);
        PageRef(frame)
    }

    /// Frees a page. Nobody must hold its latch; references to it stay valid for reading. The number is not used
    /// again before the action's generation has committed.
    ///
    /// # Panics
    /// When the page is not allocated.
    pub fn free(&self, action: &Action<'_>, pid: PageId) {
        let mut entry = self.table.entry(pid);
        let residence = std::mem::take(&mut entry.residence);
        let Residence::Frame(frame) = residence else { panic!("page {pid} is freed twice") };
        frame.detached.store(true, Ordering::Release);
        self.trees.get(frame.tree).pages.fetch_sub(1, Ordering::Relaxed);
        self.pids.lock().put(pid, action.generation());
    }

    /// Evicts and cleans pages until about `pages` more base pages fit into memory. Call outside the gate and
    /// without latches; blocks for I/O. `Err(DiskFull)` when the disk could not hold the changed pages.
    pub fn make_room(&self, _pages: usize) -> Result<()> {
        Ok(())
    }

    /// Runs under the exclusive latch of `frame`, before its bytes change for the first time in an action.
    pub(super) fn before_change(&self, frame: &Frame, _before: &[u8], _generation: Generation) {
        assert!(
            !frame.detached.load(Ordering::Acquire),
            "F4: page {} is changed after it was freed",
            frame.pid
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_keeps_what_was_written_and_its_version_moves() {
        let pool = Pool::in_memory(&Config::tiny());
        let action = pool.enter();
        let page = pool.allocate(&action, TreeId(16), PageClass::Wide);
        let before = page.version();
        page.write(&action)[7] = 42;
        drop(action);
        assert_ne!(page.version(), before);
        let again = pool.fetch(page.pid()).unwrap().unwrap();
        assert_eq!(again.read()[7], 42);
        assert_eq!(again.read().len(), 1024);
        assert_eq!(pool.tree_bytes(TreeId(16)).pages, 1);
    }

    #[test]
    fn looking_through_a_write_guard_is_no_change() {
        let pool = Pool::in_memory(&Config::tiny());
        let action = pool.enter();
        let page = pool.allocate(&action, TreeId(16), PageClass::Base);
        let before = page.version();
        assert_eq!(page.write(&action)[0], 0);
        assert_eq!(page.version(), before);
    }

    #[test]
    fn a_freed_page_is_gone_but_old_references_still_read_it() {
        let pool = Pool::in_memory(&Config::tiny());
        let action = pool.enter();
        let page = pool.allocate(&action, TreeId(16), PageClass::Base);
        page.write(&action)[0] = 1;
        pool.free(&action, page.pid());
        assert!(pool.fetch(page.pid()).unwrap().is_none());
        assert_eq!(page.read()[0], 1);
        let other = pool.allocate(&action, TreeId(16), PageClass::Base);
        assert_ne!(other.pid(), page.pid());
    }
}

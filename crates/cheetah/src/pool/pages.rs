//! The pool itself: fetching, allocating and freeing pages.

use super::ahead::Ahead;
use super::buffers::Buffers;
use super::changes::Changes;
use super::cleaner::{Schedule, SettledPages};
use super::collect::Collection;
use super::counters::Counters;
use super::cut::Cut;
use super::dictionaries::Dictionaries;
use super::frame::{Frame, PageRef};
use super::gate::{Gate, MiniTransaction};
use super::hand_over::HandOver;
use super::image_work::{ImageCounters, ImageWork, IMAGE_BYTES_CLASSES};
use super::load::Reuse;
use super::loads::Loads;
use super::page_table::{PageTable, Residence};
use super::pids::FreePids;
use super::queues::{EvictionTime, Queues};
use super::scratch::Scratch;
use super::trees::{TreeBytes, TreeDef, Trees};
use super::PageClass;
use crate::base::{planted, Config, Epoch, Health, PageId, Result, TreeId, TxnId};
use crate::format::page::PageBuf;
use crate::format::MapEntry;
use crate::memory::{MemoryBudget, MemoryUse};
use crate::segment::Segments;
use cheetah_io::Clock;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// See the module [`pool`](super).
#[derive(Debug)]
pub struct Pool {
    pub(super) page_bytes: u32,
    pub(super) health: Arc<Health>,
    pub(super) segments: Arc<Segments>,
    pub(super) memory: Arc<MemoryBudget>,
    pub(super) buffers: Arc<Buffers>,
    pub(super) table: PageTable,
    pub(super) pids: Mutex<FreePids>,
    pub(super) trees: Trees,
    pub(super) dictionaries: Dictionaries,
    pub(super) gate: Gate,
    pub(super) cut: Cut,
    /// Of the current epoch and of the one before, by the lowest bit.
    changes: [Changes; 2],
    pub(super) queues: Queues,
    pub(super) loads: Loads,
    pub(super) ahead: Ahead,
    pub(super) scratch: Scratch,
    pub(super) counters: Counters,
    pub(super) images: ImageCounters,
    pub(super) cleaning: Mutex<Schedule>,
    pub(super) settled: Mutex<SettledPages>,
    pub(super) collection: Mutex<Collection>,
    load_no: AtomicU64,
    /// Of the current epoch and of the one before, by the lowest bit.
    freeze_below: [AtomicU64; 2],
}

impl Pool {
    /// A pool over the pages of the committed epoch, which `entries` lists, each once, in any order. The first
    /// mini-transactions belong to epoch `first`. `clock` measures how long images take, `memory` counts what the pool uses.
    pub fn open(
        config: &Config,
        health: Arc<Health>,
        clock: Arc<dyn Clock>,
        memory: Arc<MemoryBudget>,
        segments: Arc<Segments>,
        first: Epoch,
        entries: impl IntoIterator<Item = (PageId, MapEntry)>,
    ) -> Arc<Self> {
        let (table, trees) = (PageTable::new(), Trees::default());
        let mut used = Vec::new();
        for (pid, entry) in entries {
            let guess = PageClass::guess(entry.location.stored_bytes, config.page_bytes);
            table.entry(pid).open(entry, guess);
            let tree = trees.get(entry.tree);
            tree.add_page(guess);
            tree.add_image(guess, entry.location.stored_bytes);
            used.push(pid);
        }
        used.sort_unstable();
        memory.set(MemoryUse::PageTable, table.bytes());
        memory.set(MemoryUse::WriteBuffers, segments.buffer_bytes_max());
        memory.set(MemoryUse::Rest, memory.shares().rest_bytes());
        Arc::new(Self {
            page_bytes: config.page_bytes,
            health,
            segments,
            buffers: Arc::new(Buffers::new(config.page_bytes, memory.clone())),
            scratch: Scratch::new(&memory, config.page_bytes),
            dictionaries: Dictionaries::new(&memory),
            memory,
            table,
            pids: Mutex::new(FreePids::new(&used)),
            trees,
            gate: Gate::new(first),
            cut: Cut::default(),
            changes: Default::default(),
            queues: Queues::default(),
            loads: Loads::default(),
            ahead: Ahead::default(),
            counters: Counters::default(),
            images: ImageCounters::new(clock),
            cleaning: Mutex::default(),
            settled: Mutex::default(),
            collection: Mutex::default(),
            load_no: AtomicU64::new(1),
            freeze_below: Default::default(),
        })
    }

    /// Bytes of the smallest pages.
    pub fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    /// Tells how pages of a tree are encoded. Pages of unknown trees are stored as they are.
    pub fn register_tree(&self, def: TreeDef) {
        self.trees.register(def);
    }

    /// Forgets a tree whose pages have all been freed.
    pub fn forget_tree(&self, tree: TreeId) {
        self.trees.forget(tree);
        self.forget_dictionaries(tree);
    }

    /// What a tree occupies now.
    pub fn tree_bytes(&self, tree: TreeId) -> TreeBytes {
        self.trees.get(tree).bytes()
    }

    /// Images made and read back, for each of [`IMAGE_BYTES_CLASSES`]; the counters start at zero again if `restart`.
    pub fn image_work(&self, restart: bool) -> [ImageWork; IMAGE_BYTES_CLASSES.len()] {
        self.images.read(restart)
    }

    /// As [`image_work`](Self::image_work), of all images of a tree; counted by itself.
    pub fn tree_image_work(&self, tree: TreeId, restart: bool) -> ImageWork {
        self.trees.get(tree).work.read(restart)
    }

    /// Pages of trees that are not `known`.
    pub fn pages_of_others(&self, known: &dyn Fn(TreeId) -> bool) -> u64 {
        self.trees.pages_of_others(known)
    }

    /// The tree that owns a page; `None` when the page is free. No I/O.
    pub fn owner(&self, pid: PageId) -> Option<TreeId> {
        let entry = self.table.existing(pid)?;
        entry.is_used().then(|| entry.tree())
    }

    /// Of `stored_bytes` bytes in images, the share of those bytes in files that are in no page's newest image: garbage
    /// collection will give them back, but for headers and gaps.
    pub fn free_share(&self, stored_bytes: u64) -> u64 {
        let totals = self.segments.totals();
        let free_bytes = totals.file_bytes.saturating_sub(totals.live_bytes);
        let share = u128::from(stored_bytes) * u128::from(free_bytes);
        share.checked_div(totals.live_bytes.into()).unwrap_or_default() as u64
    }

    /// Bytes in the files of images, and bytes of the newest images of all pages, those in write buffers included.
    pub fn file_and_live_bytes(&self) -> (u64, u64) {
        (self.segments.written_bytes(), self.segments.totals().live_bytes)
    }

    /// The memory budget of the engine.
    pub fn memory(&self) -> &Arc<MemoryBudget> {
        &self.memory
    }

    /// Opens a mini-transaction; waits while an epoch switch drains. The thread must hold no page latch and no other mini-transaction.
    pub fn enter(&self) -> MiniTransaction<'_> {
        self.gate.enter(self)
    }

    /// The epoch of the mini-transactions that are open now.
    pub fn epoch(&self) -> Epoch {
        self.gate.epoch()
    }

    /// Pins a page, reading it when it is not in memory (blocks for that). `None` when the page has been freed:
    /// what named it was outdated, start again from the root. `Err(Corruption)` when it cannot be trusted.
    pub fn fetch(&self, pid: PageId) -> Result<Option<PageRef>> {
        self.fetch_for(pid, Reuse::Likely)
    }

    /// Pins a page if it is in memory already; never does I/O.
    pub fn fetch_resident(&self, pid: PageId) -> Option<PageRef> {
        self.table.existing(pid)?.frame().cloned().map(PageRef)
    }

    /// As [`fetch`](Self::fetch), for pages that are not expected to be wanted again soon: a scan must not push
    /// out what others use.
    pub fn fetch_for_scan(&self, pid: PageId) -> Result<Option<PageRef>> {
        self.fetch_for(pid, Reuse::Unlikely)
    }

    /// A new, zeroed, pinned page of `tree`. Never waits and does no I/O: it may exceed the memory budget by a few
    /// pages, which [`make_room`](Self::make_room) pays back.
    pub fn allocate(&self, mtr: &MiniTransaction<'_>, tree: TreeId, class: PageClass) -> PageRef {
        let pid = self.pids.lock().take();
        let mut bytes = self.buffers.take(class);
        bytes.fill(0);
        let frame = self.new_frame(pid, tree, class, bytes);
        let mut entry = self.table.entry(pid);
        assert_eq!(entry.residence(), Residence::Free, "a page number is given out once");
        self.set_dirty(&entry, &frame, Some(mtr.epoch()));
        entry.start(frame.clone());
        self.queues.add(&frame, EvictionTime::default());
        let state = self.trees.get(tree);
        state.add_page(class);
        self.note_growth(tree, &state);
        self.counters.creates.one();
        PageRef(frame)
    }

    pub(super) fn new_frame(
        &self,
        pid: PageId,
        tree: TreeId,
        class: PageClass,
        bytes: PageBuf,
    ) -> Arc<Frame> {
        let load_no = self.load_no.fetch_add(1, Ordering::Relaxed);
        Arc::new(Frame::new(pid, tree, class, bytes, load_no, self.buffers.clone()))
    }

    /// Frees a page. This thread must not hold its latch; references to it stay valid for reading. The number is
    /// not used again before the mini-transaction's epoch has committed.
    ///
    /// # Panics
    /// When the page is not allocated.
    pub fn free(&self, mtr: &MiniTransaction<'_>, pid: PageId) {
        while !self.try_free(mtr.epoch(), pid) {}
    }

    /// `false` when the page was loaded or evicted between the looks at it.
    fn try_free(&self, epoch: Epoch, pid: PageId) -> bool {
        let frame = self.table.entry(pid).frame().cloned();
        let latch = frame.as_ref().map(|frame| frame.latch_to_write_out());
        if let (Some(frame), Some(bytes)) = (&frame, &latch) {
            if !planted::is_on("pool: skip the capture of a freed page") {
                self.capture(frame, bytes, epoch);
            }
        }
        let mut entry = self.table.entry(pid);
        if entry.frame().map(Arc::as_ptr) != frame.as_ref().map(Arc::as_ptr) {
            return false;
        }
        assert_ne!(entry.residence(), Residence::Free, "page {pid} is freed twice");
        if let Some(frame) = &frame {
            self.set_dirty(&entry, frame, None);
            frame.detach();
            if frame.take_ahead() {
                self.ahead.wasted();
            }
        }
        let tree = self.trees.get(entry.tree());
        let class = entry.class();
        tree.remove_page(class);
        if let Some(location) = entry.clear().location() {
            tree.remove_image(class, location.stored_bytes);
            self.segments.release(&location, epoch);
        }
        self.changes_of(epoch).set_moved(pid, None);
        drop(entry);
        drop(latch);
        self.pids.lock().put(pid, epoch);
        if frame.is_some() {
            self.queues.note_freed();
        }
        true
    }

    /// From now on, images of the mini-transaction's epoch and later ones need no versions of transactions below `txn`:
    /// they have committed, and everybody sees them. An image of an older epoch must keep them, because its log
    /// may end before their commit (C2).
    pub fn set_freeze_below(&self, mtr: &MiniTransaction<'_>, txn: TxnId) {
        self.freeze_below[mtr.epoch().0 as usize % 2].store(txn.0, Ordering::Release);
    }

    /// Versions of smaller transactions may go from pages that the mini-transaction changes.
    pub fn frozen_below(&self, mtr: &MiniTransaction<'_>) -> TxnId {
        self.freeze_below(mtr.epoch())
    }

    pub(super) fn freeze_below(&self, epoch: Epoch) -> TxnId {
        TxnId(self.freeze_below[epoch.0 as usize % 2].load(Ordering::Acquire))
    }

    /// At an epoch switch: the next epoch starts with what the ended one knew.
    pub(super) fn carry_freeze_below(&self, ended: Epoch) {
        let next = &self.freeze_below[(ended.0 + 1) as usize % 2];
        next.store(self.freeze_below(ended).0, Ordering::Release);
    }

    pub(super) fn changes_of(&self, epoch: Epoch) -> &Changes {
        &self.changes[epoch.0 as usize % 2]
    }

    /// Pages that are dirty in any epoch.
    pub(super) fn dirty_count(&self) -> usize {
        self.changes.iter().map(Changes::dirty_count).sum()
    }

    /// Bytes in memory of the pages that are dirty in any epoch; their images on disk take no more, but for a header.
    pub(super) fn dirty_bytes(&self) -> usize {
        self.changes.iter().map(Changes::dirty_bytes).sum()
    }

    /// Names and values of counters and gauges, for status.
    pub fn status(&self) -> Vec<(&'static str, u64)> {
        let mut all = self.counters.all();
        all.extend(self.ahead.counts());
        all.push(("pool_frames", self.queues.frames_count() as u64));
        all.push(("pool_frame_bytes", self.buffers.in_use() as u64));
        all.push(("pool_frame_allocations", self.buffers.allocations() as u64));
        all.push(("pool_frame_bytes_limit", self.memory.frames_limit() as u64));
        all.push(("pool_dirty_pages", self.dirty_count() as u64));
        all.push(("pool_dictionaries", self.trees.dictionaries().len() as u64));
        let files = self.segments.totals();
        all.push(("segments", files.segments_count));
        all.push(("segment_bytes", files.file_bytes));
        all.push(("segment_live_bytes", files.live_bytes));
        all.push(("memory_bytes_limit", self.memory.limit() as u64));
        all.push(("memory_bytes", self.memory.total() as u64));
        all.extend(MemoryUse::ALL.iter().map(|(of, name)| (*name, self.memory.used(*of) as u64)));
        all
    }

    /// Whether what the current epoch has to remember takes so much memory that a checkpoint should end it.
    pub fn remembers_too_much(&self) -> bool {
        self.changes_of(self.epoch()).moved_bytes() > self.memory.shares().moves_bytes_max()
    }

    /// Counts the memory of the page table and of the changes.
    pub(super) fn count_memory(&self) {
        self.memory.set(MemoryUse::PageTable, self.table.bytes());
        self.memory.set(MemoryUse::Changes, self.changes.iter().map(Changes::bytes).sum());
    }
}

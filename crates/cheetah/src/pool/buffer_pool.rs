//! The pool itself, which holds the parts of all modules. Most modules add methods to it.

use super::beside::BesideFrames;
use super::counters::Counters;
use super::dictionaries::Dictionaries;
use super::eviction::Queues;
use super::frames::{Buffers, FreePageNumbers, PageClass, PageTable};
use super::images::{ImageCache, ImageCounters, ImageWork, Scratch, IMAGE_BYTES_CLASSES};
use super::mtr::Epochs;
use super::reading::{ReadAhead, ReadsInProgress};
use super::statistics::CacheCurve;
use super::trees::{TreeBytes, TreeDef, Trees};
use super::writing::{Cleaner, EpochInWriting};
use crate::base::latency::{Latency, LatencyCounts};
use crate::base::{sound, Config, Epoch, Health, PageId, TreeId};
use crate::format::MapEntry;
use crate::keys::Keys;
use crate::memory::{MemoryBudget, MemoryUse};
use crate::segment::Segments;
use cheetah_io::Clock;
use parking_lot::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::Arc;

/// See the module [`pool`](super).
pub struct Pool {
    pub(super) page_bytes: u32,
    pub(super) health: Arc<Health>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) keys: Arc<Keys>,
    pub(super) segments: Arc<Segments>,
    pub(super) memory: Arc<MemoryBudget>,
    pub(super) buffers: Arc<Buffers>,
    pub(super) table: PageTable,
    pub(super) numbers: Mutex<FreePageNumbers>,
    /// The number of the next frame.
    pub(super) frame_no: AtomicU64,
    pub(super) trees: Trees,
    pub(super) dictionaries: Dictionaries,
    pub(super) epochs: Epochs,
    pub(super) in_writing: EpochInWriting,
    pub(super) queues: Queues,
    pub(super) reads: ReadsInProgress,
    pub(super) read_ahead: ReadAhead,
    pub(super) scratch: Scratch,
    pub(super) counters: Counters,
    /// Latencies of reads of single images.
    pub(super) page_reads: Latency,
    pub(super) cache_curve: CacheCurve,
    pub(super) images: ImageCounters,
    pub(super) image_cache: ImageCache,
    pub(super) beside: Arc<dyn BesideFrames>,
    pub(super) cleaner: Cleaner,
}

/// The parts that a pool shares with other components.
pub struct PoolParts {
    /// Whether the engine runs or has stopped.
    pub health: Arc<Health>,
    /// Measures latencies.
    pub clock: Arc<dyn Clock>,
    /// The keys that encrypt images.
    pub keys: Arc<Keys>,
    /// Counts the memory that the pool uses.
    pub memory: Arc<MemoryBudget>,
    /// The files of images.
    pub segments: Arc<Segments>,
    /// The state of the layer above for pages without a frame.
    pub beside: Arc<dyn BesideFrames>,
}

impl std::fmt::Debug for PoolParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PoolParts")
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

impl Pool {
    /// Opens a pool over the pages of the committed epoch. `entries` lists each page once, in any
    /// order. The first mini-transactions belong to epoch `first`.
    pub fn open(
        config: &Config,
        parts: PoolParts,
        first: Epoch,
        entries: impl IntoIterator<Item = (PageId, MapEntry)>,
    ) -> Arc<Self> {
        let PoolParts { health, clock, keys, memory, segments, beside } = parts;
        let (table, trees) = (PageTable::new(), Trees::default());
        let mut used = Vec::new();
        for (pid, entry) in entries {
            let guess = PageClass::guess(entry.location.stored_bytes, config.page_bytes);
            table.entry(pid).open(entry, guess);
            let tree = trees.get(entry.tree);
            tree.add_page(pid, guess);
            tree.add_image(guess, entry.location.stored_bytes);
            used.push(pid);
        }
        used.sort_unstable();
        memory.set(MemoryUse::PageTable, table.bytes());
        memory.set(MemoryUse::Tails, segments.tail_bytes_max());
        memory.set(MemoryUse::Rest, memory.shares().rest_bytes());
        let cache_curve = CacheCurve::new(memory.total());
        Arc::new(Self {
            page_bytes: config.page_bytes,
            health,
            keys,
            segments,
            buffers: Arc::new(Buffers::new(config.page_bytes, memory.clone())),
            scratch: Scratch::new(&memory, config.page_bytes),
            image_cache: ImageCache::new(&memory, config.page_bytes),
            beside,
            dictionaries: Dictionaries::new(&memory),
            memory,
            table,
            frame_no: AtomicU64::new(1),
            numbers: Mutex::new(FreePageNumbers::new(&used)),
            trees,
            epochs: Epochs::new(first),
            in_writing: EpochInWriting::default(),
            queues: Queues::default(),
            reads: ReadsInProgress::default(),
            read_ahead: ReadAhead::default(),
            counters: Counters::default(),
            page_reads: Latency::default(),
            cache_curve,
            images: ImageCounters::new(Arc::clone(&clock)),
            clock,
            cleaner: Cleaner::default(),
        })
    }

    /// The segments with the pool's images.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// The keys that encrypt the pool's images.
    pub fn keys(&self) -> &Arc<Keys> {
        &self.keys
    }

    /// Bytes of a page of the smallest class.
    pub fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    /// Registers how pages of a tree are encoded. Pages of unregistered trees are compressed as
    /// opaque bytes.
    pub fn register_tree(&self, def: TreeDef) {
        self.trees.register(def);
    }

    /// Forgets a tree whose pages have all been freed.
    pub fn forget_tree(&self, tree: TreeId) {
        self.trees.forget(tree);
        self.forget_dictionaries(tree);
    }

    /// The bytes that a tree occupies.
    pub fn tree_bytes(&self, tree: TreeId) -> TreeBytes {
        self.trees.get(tree).bytes()
    }

    /// Images encoded and decoded, for each of [`IMAGE_BYTES_CLASSES`]. `restart` resets the
    /// counters.
    pub fn image_work(&self, restart: bool) -> [ImageWork; IMAGE_BYTES_CLASSES.len()] {
        self.images.read(restart)
    }

    /// Like [`image_work`](Self::image_work), for all images of one tree, which has separate
    /// counters.
    pub fn tree_image_work(&self, tree: TreeId, restart: bool) -> ImageWork {
        self.trees.get(tree).work.read(restart)
    }

    /// The number of pages of trees that are not `known`.
    pub fn pages_of_others(&self, known: &dyn Fn(TreeId) -> bool) -> u64 {
        self.trees.pages_of_others(known)
    }

    /// Returns the tree that owns a page, or `None` if the page is free. Does no I/O.
    pub fn owner(&self, pid: PageId) -> Option<TreeId> {
        let entry = self.table.existing(pid)?;
        entry.is_used().then(|| entry.tree())
    }

    /// The end of the page numbers: all are below this one.
    pub fn page_numbers_end(&self) -> PageId {
        self.numbers.lock().end()
    }

    /// The latencies of reads of single images from disk.
    pub fn page_reads(&self) -> LatencyCounts {
        self.page_reads.counts()
    }

    /// The memory budget of the engine.
    pub fn memory(&self) -> &Arc<MemoryBudget> {
        &self.memory
    }

    /// Sets the memory of the engine to `total_bytes`, or to the minimum if that is larger, and
    /// returns the new size. The cleaner evicts the excess in its next steps (M3).
    pub fn set_memory_bytes(&self, total_bytes: u64) -> u64 {
        let total_bytes = total_bytes.max(Config::buffer_pool_bytes_min(self.page_bytes));
        self.buffers.reserve_addresses(total_bytes as usize);
        self.memory.set_limit(total_bytes);
        self.memory.set(MemoryUse::Rest, self.memory.shares().rest_bytes());
        self.cleaner.call();
        total_bytes
    }

    /// Names and values of counters and gauges, for status.
    pub fn status(&self) -> Vec<(&'static str, u64)> {
        let mut all = self.counters.all();
        all.extend(self.read_ahead.counts());
        all.extend(self.image_cache.counts());
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

    /// Returns whether the list of pages moved in the current epoch takes so much memory that a
    /// checkpoint should end the epoch.
    pub fn remembers_too_much(&self) -> bool {
        sound!(
            self.changes_of(self.epoch()).moved_bytes() > self.memory.shares().moves_bytes_max(),
            "pool: remember moves without end"
        )
    }

    /// Updates the memory counts of the page table and of the epochs' changes.
    pub(super) fn count_memory(&self) {
        self.memory.set(MemoryUse::PageTable, self.table.bytes());
        self.memory.set(MemoryUse::Changes, self.epochs.changes_bytes());
    }
}

//! A database of pages on a simulated disk, with page map, checkpoints and power cuts: for the
//! tests of the pool and of the layers above.

use crate::base::{Config, Epoch, Health, PageId, Result, TreeId};
use crate::durable::Durable;
use crate::format::page::{build_content, content_capacity, PageKind, PageView};
use crate::keys::Keys;
use crate::memory::MemoryBudget;
use crate::page_map::{MapEntry, MapStore};
use crate::pool::{BesideFrames, NothingBeside, PoolParts};
use crate::pool::{EndedEpoch, EpochState, MiniTransaction, PageClass, PageRef, Pool, Upkeep};
use crate::segment::Segments;
use cheetah_io::sim::{SimClock, SimDisk};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The tree that tests use.
pub(crate) const TREE: TreeId = TreeId(16);

/// A pool with all layers below it.
pub(crate) struct Database {
    pub(crate) disk: SimDisk,
    pub(crate) pool: Arc<Pool>,
    pub(crate) upkeep: Upkeep,
    pub(crate) map: MapStore,
    /// The state stored by the last checkpoint.
    pub(crate) state: Vec<u8>,
    pub(crate) config: Config,
}

impl Database {
    pub(crate) fn new(config: &Config) -> Self {
        Self::open(config, SimDisk::new())
    }

    pub(crate) fn open(config: &Config, disk: SimDisk) -> Self {
        Self::open_with(config, disk, |_| Arc::new(NothingBeside))
    }

    /// Opens the database of a disk. `beside` makes the state that the pool uses for pages without
    /// a frame.
    pub(crate) fn open_with(
        config: &Config,
        disk: SimDisk,
        beside: impl FnOnce(&Arc<MemoryBudget>) -> Arc<dyn BesideFrames>,
    ) -> Self {
        let health = Arc::new(Health::default());
        let durable = Arc::new(Durable::new(Arc::new(disk.clone()), health.clone()));
        let opened = MapStore::open(durable.clone(), config, [1; 16]).unwrap();
        let segments = Segments::open(durable, config, opened.identity, opened.next_segment).unwrap();
        let mut entries = BTreeMap::new();
        let visit = &mut |pid, entry: Option<MapEntry>| {
            match entry {
                Some(entry) => entries.insert(pid, entry),
                None => entries.remove(&pid),
            };
        };
        let state = opened.store.load(visit).unwrap();
        entries.values().for_each(|entry| segments.retain(&entry.location));
        segments.end_startup(opened.epoch).unwrap();
        let clock = Arc::new(SimClock::default());
        let memory = Arc::new(MemoryBudget::new(config.buffer_pool_bytes));
        let uuid = opened.identity.uuid;
        let keys = Keys::none(clock.clone(), uuid);
        let (beside, segments) = (beside(&memory), Arc::new(segments));
        let parts = PoolParts { health, clock, keys, memory, segments, beside };
        let pool = Pool::open(config, parts, opened.first_epoch, entries);
        let upkeep = Upkeep::new(Arc::clone(&pool));
        Self { disk, pool, upkeep, map: opened.store, state, config: config.clone() }
    }

    /// The database after a power cut.
    pub(crate) fn crash(self, disk: SimDisk) -> Self {
        Self::open(&self.config, disk)
    }

    /// Runs a complete checkpoint.
    pub(crate) fn checkpoint(&self) -> Result<Epoch> {
        self.checkpoint_of(EpochState::default)
    }

    /// Runs a complete checkpoint that stores the state of the epoch switch.
    pub(crate) fn checkpoint_of(&self, state: impl FnOnce() -> EpochState) -> Result<Epoch> {
        let (ended, state) = self.pool.end_epoch(|_| state());
        ended.commit(&self.map, &state)
    }

    /// Runs a complete checkpoint whose pages are written by `threads` threads.
    pub(crate) fn checkpoint_with(&self, threads: usize) -> Result<Epoch> {
        let (mut checkpoint, state) = self.pool.end_epoch(|_| EpochState::default());
        checkpoint.write_all(threads)?;
        checkpoint.commit(&self.map, &state)
    }

    /// Adds a page with some content.
    pub(crate) fn add(&self, class: PageClass, value: u64) -> PageId {
        let mtr = self.pool.enter();
        let page = self.pool.allocate(&mtr, TREE, class);
        put(&page, &mtr, value);
        page.pid()
    }

    /// Changes a page in a separate mini-transaction.
    pub(crate) fn change(&self, pid: PageId, value: u64) {
        let page = self.pool.fetch(pid).unwrap().unwrap();
        put(&page, &self.pool.enter(), value);
    }

    /// Frees a page in a separate mini-transaction.
    pub(crate) fn free(&self, pid: PageId) {
        self.pool.free(&self.pool.enter(), pid);
    }

    /// The content of a page; `None` if it is freed.
    pub(crate) fn value(&self, pid: PageId) -> Option<u64> {
        self.pool.fetch(pid).unwrap().map(|page| get(&page))
    }
}

impl EndedEpoch<'_> {
    /// Runs the rest of a checkpoint, without a log.
    pub(crate) fn commit(self, map: &MapStore, state: &EpochState) -> Result<Epoch> {
        self.finish()?.commit(map, state)
    }
}

/// Writes a value into a page.
pub(crate) fn put(page: &PageRef, mtr: &MiniTransaction<'_>, value: u64) {
    fill(&mut page.write(mtr), value);
}

/// The value of a page.
pub(crate) fn get(page: &PageRef) -> u64 {
    value_in(&page.read())
}

/// Fills a page with a value and with numbers derived from the value, so that a test can check
/// every byte.
pub(crate) fn fill(bytes: &mut [u8], value: u64) {
    let kind = if value % 3 == 0 { PageKind::Blob } else { PageKind::Undo };
    let content = value_content(value, content_capacity(bytes.len()));
    build_content(bytes, kind, TREE, PageId::NONE, value).append_content(&content).unwrap();
}

/// The content of a page of a value, with room for `capacity` bytes.
pub(crate) fn value_content(value: u64, capacity: usize) -> Vec<u8> {
    (0..capacity as u64 / 8).flat_map(|i| mixed(value, i).to_le_bytes()).collect()
}

/// The value that [`fill`] wrote.
///
/// # Panics
/// If any byte differs from the bytes that `fill` writes for the value.
pub(crate) fn value_in(bytes: &[u8]) -> u64 {
    let page = PageView::new(bytes);
    let words = page.content().chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
    let words: Vec<u64> = words.collect();
    assert_eq!(words.len(), content_capacity(bytes.len()) / 8);
    for (i, word) in words.iter().enumerate() {
        assert_eq!(*word, mixed(words[0], i as u64), "word {i}");
    }
    assert_eq!(page.content_position(), words[0]);
    words[0]
}

/// Word `i` of a page of `value`. Every second word is small, so that pages compress.
fn mixed(value: u64, i: u64) -> u64 {
    match i {
        0 => value,
        _ if i % 2 == 0 => i,
        _ => (value + i).wrapping_mul(0x9e37_79b9_7f4a_7c15),
    }
}

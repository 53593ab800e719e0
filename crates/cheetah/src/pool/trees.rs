//! The trees as the pool knows them: how the pages of each are encoded, and how many bytes it
//! occupies.

use crate::base::hash::FastMap;
use crate::base::{Epoch, PageId, TreeId};
use crate::format::image::Compression;
use crate::format::row::RowFormatVersion;
use crate::keys::Closing;
use crate::pool::images::WorkCounters;
use crate::pool::PageClass;
use parking_lot::RwLock;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// A tree gets its first dictionary when it has this many pages: fewer save less than the
/// dictionary takes.
pub(crate) const PAGES_MIN: u64 = 64;

/// A tree as the pool sees it.
#[derive(Clone, Debug)]
pub struct TreeDef {
    /// Owner of the pages.
    pub id: TreeId,
    /// The columns of the rows in its leaves.
    pub row_format: RowFormatVersion,
    /// How its images are compressed.
    pub compression: Compression,
    /// How they are closed.
    pub closing: Closing,
}

/// Numbers of pages by their class. That of a page that was not in memory since the pool was opened
/// is a guess.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PageCounts([u64; PageClass::ALL.len()]);

impl PageCounts {
    /// All pages.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Pages of a class, and smaller ones.
    pub fn up_to(&self, class: PageClass) -> u64 {
        self.0.iter().take(class as usize + 1).sum()
    }

    /// Bytes of all pages in memory. Those that seem smaller than `smallest` have been guessed
    /// wrong: they count as that.
    pub fn bytes(&self, page_bytes: u32, smallest: PageClass) -> u64 {
        let bytes = |(class, count): (PageClass, u64)| count * class.max(smallest).bytes(page_bytes) as u64;
        PageClass::ALL.into_iter().zip(self.0).map(bytes).sum()
    }
}

/// The bytes that a tree occupies.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TreeBytes {
    /// Pages, in memory or on disk.
    pub pages: u64,
    /// The same by class.
    pub by_class: PageCounts,
    /// Those that have an image on disk, by class.
    pub stored_by_class: PageCounts,
    /// Bytes of their newest images on disk.
    pub stored_bytes: u64,
}

/// A [`PageCounts`] that threads share.
#[derive(Default, Debug)]
struct SharedCounts([AtomicU64; PageClass::ALL.len()]);

impl SharedCounts {
    fn add(&self, class: PageClass) {
        self.0[class as usize].fetch_add(1, Relaxed);
    }

    fn subtract(&self, class: PageClass) {
        self.0[class as usize].fetch_sub(1, Relaxed);
    }

    fn get(&self) -> PageCounts {
        PageCounts(std::array::from_fn(|class| self.0[class].load(Relaxed)))
    }
}

/// One of a tree's dictionaries.
#[derive(Clone, Copy, Debug)]
pub(in crate::pool) struct Version {
    pub(in crate::pool) page: PageId,
    /// The epoch that it was made in, or an older one than any that is being written.
    pub(in crate::pool) made_in: Epoch,
    /// It could not be read: nothing more is written with it.
    pub(in crate::pool) is_given_up: bool,
}

/// A tree's definition, when registered, and its counters. Those of a page change under the lock of
/// its entry.
#[derive(Debug)]
pub(super) struct TreeState {
    def: RwLock<Option<Arc<TreeDef>>>,
    /// Oldest first.
    dictionaries: RwLock<Vec<Version>>,
    /// The number of pages at which a dictionary is tried, once.
    trial_at: AtomicU64,
    /// The number of pages at which the background is told, and again when they have doubled.
    noted_at: AtomicU64,
    has_tried: AtomicBool,
    /// Between these lie the numbers of all pages that it has had since the pool was opened.
    first_number: AtomicU64,
    last_number: AtomicU64,
    /// All pages: exact at any time, as the sum of those by class is not while one is corrected.
    pages_count: AtomicU64,
    pages: SharedCounts,
    stored: SharedCounts,
    stored_bytes: AtomicU64,
    pub(super) work: WorkCounters,
}

impl Default for TreeState {
    fn default() -> Self {
        Self {
            def: RwLock::default(),
            dictionaries: RwLock::default(),
            trial_at: AtomicU64::new(PAGES_MIN),
            noted_at: AtomicU64::new(PAGES_MIN),
            has_tried: AtomicBool::new(false),
            first_number: AtomicU64::new(u64::MAX),
            last_number: AtomicU64::new(0),
            pages_count: AtomicU64::new(0),
            pages: SharedCounts::default(),
            stored: SharedCounts::default(),
            stored_bytes: AtomicU64::new(0),
            work: WorkCounters::default(),
        }
    }
}

impl TreeState {
    pub(super) fn def(&self) -> Option<Arc<TreeDef>> {
        self.def.read().clone()
    }

    /// How its pages are closed (E7).
    pub(super) fn closing(&self) -> Closing {
        self.def.read().as_ref().map_or(Closing::AsSystem, |def| def.closing)
    }

    pub(super) fn bytes(&self) -> TreeBytes {
        TreeBytes {
            pages: self.pages_count(),
            by_class: self.pages.get(),
            stored_by_class: self.stored.get(),
            stored_bytes: self.stored_bytes.load(Relaxed),
        }
    }

    /// The newest dictionary that was made in this epoch or before.
    pub(super) fn dictionary_in(&self, epoch: Epoch) -> Option<PageId> {
        let versions = self.dictionaries.read();
        let serves = |version: &&Version| version.made_in <= epoch && !version.is_given_up;
        versions.iter().rev().find(serves).map(|version| version.page)
    }

    /// Nothing more is written with that one.
    pub(super) fn give_up_dictionary(&self, page: PageId) {
        let mut versions = self.dictionaries.write();
        versions
            .iter_mut()
            .filter(|version| version.page == page)
            .for_each(|version| version.is_given_up = true);
    }

    pub(super) fn dictionary_pages(&self) -> Vec<PageId> {
        self.dictionaries.read().iter().map(|version| version.page).collect()
    }

    pub(super) fn add_dictionary(&self, version: Version) {
        self.dictionaries.write().push(version);
    }

    pub(super) fn is_trial_due(&self) -> bool {
        self.pages_count() >= self.trial_at.load(Relaxed)
    }

    pub(super) fn has_tried(&self) -> bool {
        self.has_tried.load(Relaxed)
    }

    /// Whether the first trial is due, or being made.
    pub(super) fn awaits_first_trial(&self) -> bool {
        !self.has_tried() && self.pages_count() >= PAGES_MIN
    }

    /// A trial has ended, with any outcome; the next one is due at `pages` pages.
    pub(super) fn next_trial_at(&self, pages: u64) {
        self.has_tried.store(true, Relaxed);
        self.put_trial_off(pages);
    }

    pub(super) fn put_trial_off(&self, pages: u64) {
        self.trial_at.store(pages.max(PAGES_MIN), Relaxed);
        self.noted_at.store(pages.max(PAGES_MIN), Relaxed);
    }

    /// Whether the background is to be told now that a trial is due.
    pub(super) fn note_growth(&self) -> bool {
        let pages = self.pages_count();
        let at = self.noted_at.load(Relaxed);
        pages >= at && self.noted_at.compare_exchange(at, 2 * pages, Relaxed, Relaxed).is_ok()
    }

    pub(super) fn add_page(&self, pid: PageId, class: PageClass) {
        self.first_number.fetch_min(pid.0, Relaxed);
        self.last_number.fetch_max(pid.0, Relaxed);
        self.pages_count.fetch_add(1, Relaxed);
        self.pages.add(class);
    }

    /// All pages.
    pub(super) fn pages_count(&self) -> u64 {
        self.pages_count.load(Relaxed)
    }

    /// The numbers of its pages lie between these two; the range is empty if it has had none.
    pub(super) fn numbers(&self) -> RangeInclusive<PageId> {
        PageId(self.first_number.load(Relaxed))..=PageId(self.last_number.load(Relaxed))
    }

    pub(super) fn remove_page(&self, class: PageClass) {
        self.pages_count.fetch_sub(1, Relaxed);
        self.pages.subtract(class);
    }

    /// A page has its first image.
    pub(super) fn add_image(&self, class: PageClass, bytes: u32) {
        self.stored.add(class);
        self.stored_bytes.fetch_add(bytes.into(), Relaxed);
    }

    /// A page has another image.
    pub(super) fn replace_image(&self, before_bytes: u32, bytes: u32) {
        self.stored_bytes.fetch_add(bytes.into(), Relaxed);
        self.stored_bytes.fetch_sub(before_bytes.into(), Relaxed);
    }

    /// A page that has an image is gone.
    pub(super) fn remove_image(&self, class: PageClass, bytes: u32) {
        self.stored.subtract(class);
        self.stored_bytes.fetch_sub(bytes.into(), Relaxed);
    }

    /// The class of a page that has an image was guessed, and is known now.
    pub(super) fn correct_class(&self, guess: PageClass, class: PageClass) {
        for counts in [&self.pages, &self.stored] {
            counts.add(class);
            counts.subtract(guess);
        }
    }
}

/// All trees that own pages or are registered.
#[derive(Default, Debug)]
pub(super) struct Trees(RwLock<FastMap<TreeId, Arc<TreeState>>>);

impl Trees {
    /// The state of a tree, created when it is new.
    pub(super) fn get(&self, tree: TreeId) -> Arc<TreeState> {
        if let Some(state) = self.0.read().get(&tree) {
            return state.clone();
        }
        self.0.write().entry(tree).or_default().clone()
    }

    /// The state of a tree that has not been forgotten.
    pub(super) fn known(&self, tree: TreeId) -> Option<Arc<TreeState>> {
        self.0.read().get(&tree).cloned()
    }

    pub(super) fn register(&self, def: TreeDef) {
        let state = self.get(def.id);
        *state.def.write() = Some(Arc::new(def));
    }

    /// Pages of trees that are not among `known`.
    pub(super) fn pages_of_others(&self, known: &dyn Fn(TreeId) -> bool) -> u64 {
        let trees = self.0.read();
        trees.iter().filter(|(tree, _)| !known(**tree)).map(|(_, state)| state.bytes().pages).sum()
    }

    /// The trees with their dictionaries, each one's from the oldest to the newest.
    pub(super) fn dictionaries(&self) -> Vec<(TreeId, PageId)> {
        let trees = self.0.read();
        let mut all = Vec::new();
        for (tree, state) in trees.iter() {
            all.extend(state.dictionaries.read().iter().map(|version| (*tree, version.page)));
        }
        all.sort_by_key(|(tree, _)| *tree);
        all
    }

    pub(super) fn forget(&self, tree: TreeId) {
        self.0.write().remove(&tree);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Config;
    use crate::pool::testing::{Database, TREE};

    #[test]
    fn pages_count_with_their_sizes_and_those_on_disk_too() {
        let db = Database::new(&Config::tiny());
        let sizes = |db: &Database| {
            let bytes = db.pool.tree_bytes(TREE);
            let of = |counts: PageCounts| counts.bytes(512, PageClass::Base);
            (bytes.pages, of(bytes.by_class), of(bytes.stored_by_class))
        };
        let pids = PageClass::ALL.map(|class| db.add(class, 3));
        assert_eq!(sizes(&db), (3, 512 + 1024 + 2048, 0));
        db.checkpoint().unwrap();
        assert_eq!(sizes(&db), (3, 3584, 3584));
        db.change(pids[2], 4);
        db.checkpoint().unwrap();
        assert_eq!(sizes(&db), (3, 3584, 3584));
        db.free(pids[1]);
        assert_eq!(sizes(&db), (2, 2560, 2560));
        db.checkpoint().unwrap();
        let disk = db.disk.clone();
        let db = db.crash(disk);
        pids.iter().for_each(|pid| assert_eq!(db.value(*pid).is_some(), *pid != pids[1]));
        assert_eq!(sizes(&db), (2, 2560, 2560), "once they have been read");
    }

    #[test]
    fn pages_that_seem_too_small_for_their_tree_are_not() {
        let counts = PageCounts([3, 2, 1]);
        assert_eq!((counts.total(), counts.up_to(PageClass::Wide)), (6, 5));
        assert_eq!(counts.bytes(512, PageClass::Base), 3 * 512 + 2 * 1024 + 2048);
        assert_eq!(counts.bytes(512, PageClass::Wide), 5 * 1024 + 2048);
    }
}

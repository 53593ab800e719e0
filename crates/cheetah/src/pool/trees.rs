//! The pool's state of each tree: how its pages are encoded, and how many bytes it occupies.

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

/// The minimum number of pages of a tree with a dictionary. With fewer pages a dictionary would
/// take more space than it saves.
pub(crate) const PAGES_MIN: u64 = 64;

/// The pool's definition of a tree.
#[derive(Clone, Debug)]
pub struct TreeDef {
    /// ID of the tree that owns the pages.
    pub id: TreeId,
    /// The columns of the rows in the tree's leaves.
    pub row_format: RowFormatVersion,
    /// How the tree's images are compressed.
    pub compression: Compression,
    /// How the tree's images are encrypted.
    pub closing: Closing,
}

/// The number of pages in each class. The class of a page is a guess until the page is read for the
/// first time after startup.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PageCounts([u64; PageClass::ALL.len()]);

impl PageCounts {
    /// All pages.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The number of pages of this class and of smaller classes.
    pub fn up_to(&self, class: PageClass) -> u64 {
        self.0.iter().take(class as usize + 1).sum()
    }

    /// Bytes of all pages in memory. A page with a guessed class below `smallest` counts as
    /// `smallest`.
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
    /// The number of pages in each class.
    pub by_class: PageCounts,
    /// The number of pages in each class that have an image on disk.
    pub stored_by_class: PageCounts,
    /// Bytes of the newest images on disk.
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
    /// The epoch in which it was made, or 0 if it was made before startup.
    pub(in crate::pool) made_in: Epoch,
    /// Whether it could not be read, so that no more images are written with it.
    pub(in crate::pool) is_given_up: bool,
}

/// A tree's definition, if registered, and its counters. The counters of a page change under the
/// lock of the page's entry.
#[derive(Debug)]
pub(super) struct TreeState {
    def: RwLock<Option<Arc<TreeDef>>>,
    /// Oldest first.
    dictionaries: RwLock<Vec<Version>>,
    /// The number of pages at which the next dictionary trial is due.
    trial_at: AtomicU64,
    /// The number of pages at which the background threads are next notified. The number doubles
    /// with each notification.
    noted_at: AtomicU64,
    has_tried: AtomicBool,
    /// The lowest and highest number of the pages that the tree has had since startup.
    first_number: AtomicU64,
    last_number: AtomicU64,
    /// The exact number of pages. The sum over the classes is briefly wrong while the class of a
    /// page is corrected.
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

    /// How the tree's pages are encrypted (E7).
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

    /// The newest dictionary that was made in `epoch` or earlier and can be read.
    pub(super) fn dictionary_in(&self, epoch: Epoch) -> Option<PageId> {
        let versions = self.dictionaries.read();
        let serves = |version: &&Version| version.made_in <= epoch && !version.is_given_up;
        versions.iter().rev().find(serves).map(|version| version.page)
    }

    /// Notes that no more images may be written with this dictionary.
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

    /// Returns whether the first trial is due or running.
    pub(super) fn awaits_first_trial(&self) -> bool {
        !self.has_tried() && self.pages_count() >= PAGES_MIN
    }

    /// Notes that a trial has ended, with any outcome. The next trial is due at `pages` pages.
    pub(super) fn next_trial_at(&self, pages: u64) {
        self.has_tried.store(true, Relaxed);
        self.put_trial_off(pages);
    }

    pub(super) fn put_trial_off(&self, pages: u64) {
        self.trial_at.store(pages.max(PAGES_MIN), Relaxed);
        self.noted_at.store(pages.max(PAGES_MIN), Relaxed);
    }

    /// Returns whether a trial is due and a background thread should be notified of it now.
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

    /// The number of pages.
    pub(super) fn pages_count(&self) -> u64 {
        self.pages_count.load(Relaxed)
    }

    /// The range of page numbers that the tree has had. Empty if it has had no page.
    pub(super) fn numbers(&self) -> RangeInclusive<PageId> {
        PageId(self.first_number.load(Relaxed))..=PageId(self.last_number.load(Relaxed))
    }

    pub(super) fn remove_page(&self, class: PageClass) {
        self.pages_count.fetch_sub(1, Relaxed);
        self.pages.subtract(class);
    }

    /// Counts the first image of a page.
    pub(super) fn add_image(&self, class: PageClass, bytes: u32) {
        self.stored.add(class);
        self.stored_bytes.fetch_add(bytes.into(), Relaxed);
    }

    /// Counts a new image of a page that already had one.
    pub(super) fn replace_image(&self, before_bytes: u32, bytes: u32) {
        self.stored_bytes.fetch_add(bytes.into(), Relaxed);
        self.stored_bytes.fetch_sub(before_bytes.into(), Relaxed);
    }

    /// Removes a page that has an image from the counts.
    pub(super) fn remove_image(&self, class: PageClass, bytes: u32) {
        self.stored.subtract(class);
        self.stored_bytes.fetch_sub(bytes.into(), Relaxed);
    }

    /// Corrects the class of a page that has an image: `class` instead of `guess`.
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
    /// Returns the state of a tree, and creates it if necessary.
    pub(super) fn get(&self, tree: TreeId) -> Arc<TreeState> {
        if let Some(state) = self.0.read().get(&tree) {
            return state.clone();
        }
        self.0.write().entry(tree).or_default().clone()
    }

    /// Returns the state of a tree, if it has one.
    pub(super) fn known(&self, tree: TreeId) -> Option<Arc<TreeState>> {
        self.0.read().get(&tree).cloned()
    }

    pub(super) fn register(&self, def: TreeDef) {
        let state = self.get(def.id);
        *state.def.write() = Some(Arc::new(def));
    }

    /// The number of pages of trees that are not `known`.
    pub(super) fn pages_of_others(&self, known: &dyn Fn(TreeId) -> bool) -> u64 {
        let trees = self.0.read();
        trees.iter().filter(|(tree, _)| !known(**tree)).map(|(_, state)| state.bytes().pages).sum()
    }

    /// Returns all dictionaries, sorted by tree. The dictionaries of a tree are in order from the
    /// oldest to the newest.
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
        assert_eq!(sizes(&db), (2, 2560, 2560), "after the pages were read");
    }

    #[test]
    fn pages_that_seem_too_small_for_their_tree_are_not() {
        let counts = PageCounts([3, 2, 1]);
        assert_eq!((counts.total(), counts.up_to(PageClass::Wide)), (6, 5));
        assert_eq!(counts.bytes(512, PageClass::Base), 3 * 512 + 2 * 1024 + 2048);
        assert_eq!(counts.bytes(512, PageClass::Wide), 5 * 1024 + 2048);
    }
}

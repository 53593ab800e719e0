//! Checks a whole tree and reports its faults, while other threads change it.
//!
//! Invariants
//!   I1  A page is compared with its description in a copy of its parent. Splits and merges change
//!       both pages under the same latches (I1 of `split.rs` and of `merge.rs`), so a difference
//!       that a split or merge caused is gone when both pages are copied again. A difference that
//!       is found in `LOOKS_MAX` comparisons of one step is damage.
//!   I2  After each leaf the walk continues at the upper fence that the parent gives this leaf, in
//!       the page that now covers this key. In a sound tree the fences partition all keys: no
//!       record is visited twice, and no record that exists during the whole walk is missed.
//! Locks     One page latch at a time, while the page is copied.

use super::Tree;
use crate::base::{reach, sound, ErrorKind, PageId, Result};
use crate::format::page::{compare_keys, PageView, RecordRef};

/// Further problems are only counted.
const PROBLEMS_LISTED_MAX: usize = 100;
/// The number of failed comparisons in one step of the walk after which a difference is damage. In
/// an undamaged tree, each failed comparison needs another split or merge at the wrong moment.
const LOOKS_MAX: usize = 100;

/// The findings of a walk over a tree.
#[derive(Clone, Default, Debug)]
pub struct TreeReport {
    /// Pages visited.
    pub pages: u64,
    /// Leaves among them.
    pub leaf_pages: u64,
    /// Records in the leaves.
    pub records: u64,
    /// Bytes of all pages.
    pub page_bytes: u64,
    /// Bytes in use in all pages.
    pub used_bytes: u64,
    /// The number of levels.
    pub depth: usize,
    /// The first hundred problems, one sentence each.
    pub problems: Vec<String>,
    /// The number of all problems.
    pub problems_count: u64,
}

struct PageCopy {
    page: PageId,
    bytes: Vec<u8>,
}

/// The properties of a page that its parent predicts.
struct Expected {
    page: PageId,
    level: Option<u8>,
    low: Vec<u8>,
    high: Option<Vec<u8>>,
}

/// The last visited page of a level.
struct Left {
    page: PageId,
    low: Vec<u8>,
    high: Option<Vec<u8>>,
    right: PageId,
}

struct Look {
    page: PageId,
    problems: Vec<String>,
    /// The copy of the page, if it is usable.
    bytes: Option<Vec<u8>>,
    /// Set if the page cannot be read or is invalid: another try would hardly help.
    is_unreadable: bool,
}

struct Walk<'a> {
    tree: &'a Tree,
    report: TreeReport,
    /// The pages from the root down to the parent of the next page.
    above: Vec<PageCopy>,
    /// The last visited page of each level, leaves first.
    left: Vec<Option<Left>>,
    on_record: &'a mut dyn FnMut(&[u8], RecordRef<'_>) -> Result<()>,
}

impl Tree {
    /// Visits every page and calls `on_record` with every record in key order. Blocks for I/O. The
    /// report lists damaged pages as problems. The walk ends with an error only if `on_record`
    /// returns it or the engine has stopped.
    pub(crate) fn check_with(
        &self,
        on_record: &mut dyn FnMut(&[u8], RecordRef<'_>) -> Result<()>,
    ) -> Result<TreeReport> {
        self.walk_down_to(0, on_record)
    }

    /// Like [`check_with`](Self::check_with), but visits only the pages above the leaves, a few in
    /// a thousand, or the root if it is a leaf. Calls `go_on` at the start and for each entry of
    /// the lowest pages visited. An error of `go_on` ends the walk.
    pub(crate) fn check_inner_pages(&self, go_on: &mut dyn FnMut() -> Result<()>) -> Result<TreeReport> {
        go_on()?;
        self.walk_down_to(1, &mut |_, _| go_on())
    }

    #[cfg(test)]
    pub(crate) fn check(&self, on_record: &mut dyn FnMut(&[u8], RecordRef<'_>)) -> Result<TreeReport> {
        self.check_with(&mut |key, record| {
            on_record(key, record);
            Ok(())
        })
    }

    fn walk_down_to(
        &self,
        lowest: u8,
        on_record: &mut dyn FnMut(&[u8], RecordRef<'_>) -> Result<()>,
    ) -> Result<TreeReport> {
        let (report, above, left) = Default::default();
        let mut walk = Walk { tree: self, report, above, left, on_record };
        let mut at = Vec::new();
        while let Some(next) = walk.step(&at, lowest)? {
            if compare_keys(&next, &at).is_le() {
                walk.problem(self.def.root, "the fences of its pages do not ascend");
                break;
            }
            at = next;
        }
        Ok(walk.report)
    }
}

impl Walk<'_> {
    fn problem(&mut self, page: PageId, what: &str) {
        self.report.problems_count += 1;
        if self.report.problems.len() < PROBLEMS_LISTED_MAX {
            self.report.problems.push(format!("tree {} page {page}: {what}", self.tree.def.id));
        }
    }

    /// Visits the page of level `lowest` that covers `at`, and the pages above it that are not in
    /// `above`. Returns the key at which the walk continues. A correct page above does not reset
    /// the count of comparisons, since each retry visits it again.
    fn step(&mut self, at: &[u8], lowest: u8) -> Result<Option<Vec<u8>>> {
        let covers = |copy: &PageCopy| {
            PageView::new(&copy.bytes).high().is_none_or(|high| compare_keys(at, high).is_lt())
        };
        self.above.truncate(self.above.iter().take_while(|copy| covers(copy)).count());
        let mut looks = 0;
        loop {
            let expected = self.expected(at);
            let look = self.look_at(&expected)?;
            if !look.problems.is_empty() {
                looks += 1;
                let looks_max = if look.is_unreadable { 2 } else { LOOKS_MAX };
                if sound!(looks < looks_max, "tree: take what a split moves for damage") {
                    reach::mark("check looks again");
                    self.above.clear();
                    continue;
                }
                look.problems.iter().for_each(|what| self.problem(look.page, what));
            }
            let Some(bytes) = look.bytes else { return Ok(expected.high) };
            let copy = PageCopy { page: look.page, bytes };
            self.note(&copy);
            if PageView::new(&copy.bytes).level() <= lowest {
                self.visit_records(&PageView::new(&copy.bytes), at)?;
                return Ok(expected.high);
            }
            self.above.push(copy);
        }
    }

    /// Returns the properties that the last page of `above` gives for its child that covers `at`.
    /// If `above` is empty, returns the known properties of the root.
    fn expected(&self, at: &[u8]) -> Expected {
        let Some(parent) = self.above.last() else {
            return Expected { page: self.tree.def.root, level: None, low: Vec::new(), high: None };
        };
        let view = PageView::new(&parent.bytes);
        let slot = view.find_child(at);
        let high =
            if slot + 1 < view.count() { Some(view.key(slot + 1)) } else { view.high().map(<[u8]>::to_vec) };
        let level = Some(view.level().saturating_sub(1));
        Expected { page: view.child(slot), level, low: view.key(slot), high }
    }

    fn look_at(&self, expected: &Expected) -> Result<Look> {
        let page = expected.page;
        let unusable =
            |what: String, is_unreadable| Ok(Look { page, problems: vec![what], bytes: None, is_unreadable });
        let bytes = match self.copy_of(page) {
            Err(error) if error.kind() == ErrorKind::Stopped => return Err(error),
            Err(error) => return unusable(error.to_string(), true),
            Ok(None) => return unusable("it is free, but its parent names it".into(), false),
            Ok(Some(bytes)) => bytes,
        };
        let view = PageView::new(&bytes);
        if let Err(defect) = view.verify() {
            return unusable(format!("{defect:?}"), true);
        }
        if let Some(what) = self.not_of_the_tree(expected, &view) {
            return unusable(what.into(), false);
        }
        let mut problems = compare(expected, &view);
        problems.extend(self.compare_with_left(page, &view)?);
        Ok(Look { page, problems, bytes: Some(bytes), is_unreadable: false })
    }

    fn copy_of(&self, page: PageId) -> Result<Option<Vec<u8>>> {
        Ok(self.tree.pool.fetch_to_check(page)?.map(|page| page.read().to_vec()))
    }

    fn not_of_the_tree(&self, expected: &Expected, view: &PageView<'_>) -> Option<&'static str> {
        let level = expected.level;
        let comparisons = [
            (!view.is_dead(), "it is dead, but its parent names it"),
            (view.tree() == self.tree.def.id, "it belongs to another tree"),
            (level.is_none_or(|level| level == view.level()), "its level is not one below its parent's"),
            (view.bytes().len() == self.tree.page_bytes(), "its size is not that of the tree's pages"),
            (view.is_leaf() || view.count() > 0, "an inner page without children"),
        ];
        comparisons.into_iter().find(|(right, _)| !right).map(|(_, what)| what)
    }

    /// Returns a problem if the left neighbour has another page as its right neighbour, although it
    /// still ends where this page begins.
    fn compare_with_left(&self, page: PageId, view: &PageView<'_>) -> Result<Option<String>> {
        let low = Some(view.low());
        let Some(Some(left)) = self.left.get(usize::from(view.level())) else { return Ok(None) };
        if left.high.as_deref() != low || left.right == page {
            return Ok(None);
        }
        let Ok(Some(bytes)) = self.copy_of(left.page) else { return Ok(None) };
        let now = PageView::new(&bytes);
        let is_left = !now.is_dead() && now.tree() == self.tree.def.id && now.level() == view.level();
        let contradicts = is_left && now.high() == low && now.right() != page;
        Ok(contradicts.then(|| "its left neighbour names another page as right neighbour".into()))
    }

    /// Counts a page, unless it was counted before the walk restarted at the root.
    fn note(&mut self, copy: &PageCopy) {
        let view = PageView::new(&copy.bytes);
        let level = usize::from(view.level());
        if self.left.len() <= level {
            self.left.resize_with(level + 1, || None);
        }
        let Some(left) = self.left.get_mut(level) else { return };
        let is_new = left.as_ref().is_none_or(|left| compare_keys(&left.low, view.low()).is_lt());
        let (low, high) = (view.low().to_vec(), view.high().map(<[u8]>::to_vec));
        *left = Some(Left { page: copy.page, low, high, right: view.right() });
        if is_new {
            self.report.pages += 1;
            self.report.leaf_pages += u64::from(view.is_leaf());
            self.report.page_bytes += view.bytes().len() as u64;
            self.report.used_bytes += view.used_bytes() as u64;
            self.report.depth = self.report.depth.max(level + 1);
        }
    }

    fn visit_records(&mut self, view: &PageView<'_>, at: &[u8]) -> Result<()> {
        let (Ok(first) | Err(first)) = view.search(at);
        let mut key = Vec::new();
        for slot in first..view.count() {
            view.key_into(slot, &mut key);
            (self.on_record)(&key, view.record(slot))?;
        }
        self.report.records += (view.count() - first.min(view.count())) as u64;
        Ok(())
    }
}

fn compare(expected: &Expected, view: &PageView<'_>) -> Vec<String> {
    let comparisons = [
        (view.low() == expected.low, "its low fence is not its parent's separator"),
        (view.high() == expected.high.as_deref(), "its high fence is not its parent's next separator"),
        (
            view.high().is_some() || view.right() == PageId::NONE,
            "the last page of its level has a right neighbour",
        ),
    ];
    comparisons.into_iter().filter(|(right, _)| !right).map(|(_, what)| what.to_string()).collect()
}

//! Walking a whole tree and reporting everything that is not as it must be.
//!
//! For tests and for CHECK TABLE. Nobody may change the tree meanwhile: each page is looked at
//! once, and what a split moves in between would be reported.

use super::Tree;
use crate::base::{ErrorKind, PageId, Result};
use crate::format::page::{PageView, RecordRef};
use std::collections::HashSet;

/// Problems that a report lists; more are only counted.
const PROBLEMS_LISTED_MAX: usize = 100;

/// What a walk over a tree found.
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
    /// Bytes in use in them.
    pub used_bytes: u64,
    /// Levels.
    pub depth: usize,
    /// What is wrong, one sentence each; the first hundred.
    pub problems: Vec<String>,
    /// How many problems there are.
    pub problems_count: u64,
}

/// What a page must be, going by the page that named it.
struct Expected<'a> {
    page: PageId,
    level: Option<u8>,
    low: &'a [u8],
    high: Option<&'a [u8]>,
}

struct Walk<'a> {
    tree: &'a Tree,
    report: TreeReport,
    seen: HashSet<PageId>,
    /// By level: the right neighbour that the page visited last names.
    right: Vec<Option<PageId>>,
    on_record: &'a mut dyn FnMut(&[u8], RecordRef<'_>),
}

impl Tree {
    /// Visits every page and calls `on_record` with every record in key order. Blocks for I/O.
    /// Damaged pages are problems of the report; only errors of the whole engine are errors.
    pub fn check(&self, on_record: &mut dyn FnMut(&[u8], RecordRef<'_>)) -> Result<TreeReport> {
        let mut walk = Walk {
            tree: self,
            report: TreeReport::default(),
            seen: HashSet::new(),
            right: Vec::new(),
            on_record,
        };
        walk.visit(&Expected { page: self.def.root, level: None, low: b"", high: None })?;
        for (level, right) in std::mem::take(&mut walk.right).into_iter().enumerate() {
            if right != Some(PageId::NONE) {
                walk.problem(self.def.root, format!("the last page of level {level} has a right neighbour"));
            }
        }
        Ok(walk.report)
    }
}

impl Walk<'_> {
    fn problem(&mut self, page: PageId, what: String) {
        self.report.problems_count += 1;
        if self.report.problems.len() < PROBLEMS_LISTED_MAX {
            self.report.problems.push(format!("tree {} page {page}: {what}", self.tree.def.id));
        }
    }

    fn visit(&mut self, expected: &Expected<'_>) -> Result<()> {
        if !self.seen.insert(expected.page) {
            self.problem(expected.page, "two pages name it".into());
            return Ok(());
        }
        let Some(bytes) = self.copy_of(expected.page)? else { return Ok(()) };
        let view = PageView::new(&bytes);
        if let Err(defect) = view.verify() {
            self.problem(expected.page, format!("{defect:?}"));
            return Ok(());
        }
        self.compare(expected, &view);
        self.count(&view);
        self.follow_right(expected.page, &view);
        if view.is_leaf() {
            self.visit_records(&view);
            Ok(())
        } else {
            self.visit_children(expected.page, &view)
        }
    }

    fn copy_of(&mut self, page: PageId) -> Result<Option<Vec<u8>>> {
        let loaded = match self.tree.pool.fetch_to_check(page) {
            Err(error) if error.kind() == ErrorKind::Fatal => return Err(error),
            Err(error) => {
                self.problem(page, error.to_string());
                return Ok(None);
            }
            Ok(loaded) => loaded,
        };
        if loaded.is_none() {
            self.problem(page, "named by a page of the tree, but free".into());
        }
        Ok(loaded.map(|page| page.read().to_vec()))
    }

    fn compare(&mut self, expected: &Expected<'_>, view: &PageView<'_>) {
        let wrong = [
            (!view.is_dead(), "it is dead, but its parent names it"),
            (view.tree() == self.tree.def.id, "it belongs to another tree"),
            (
                expected.level.is_none_or(|level| level == view.level()),
                "its level is not one below its parent's",
            ),
            (view.low() == expected.low, "its low fence is not its parent's separator"),
            (view.high() == expected.high, "its high fence is not its parent's next separator"),
            (view.bytes().len() == self.tree.page_bytes(), "its size is not that of the tree's pages"),
        ];
        for (_, what) in wrong.into_iter().filter(|(right, _)| !right) {
            self.problem(expected.page, what.into());
        }
    }

    fn count(&mut self, view: &PageView<'_>) {
        self.report.pages += 1;
        self.report.page_bytes += view.bytes().len() as u64;
        self.report.used_bytes += view.used_bytes() as u64;
        self.report.depth = self.report.depth.max(usize::from(view.level()) + 1);
    }

    fn follow_right(&mut self, page: PageId, view: &PageView<'_>) {
        let level = usize::from(view.level());
        if self.right.len() <= level {
            self.right.resize(level + 1, None);
        }
        let named = self.right[level].replace(view.right());
        if named.is_some_and(|named| named != page) {
            self.problem(page, "its left neighbour names another page as right neighbour".into());
        }
    }

    fn visit_records(&mut self, view: &PageView<'_>) {
        self.report.leaf_pages += 1;
        self.report.records += view.count() as u64;
        let mut key = Vec::new();
        for slot in 0..view.count() {
            view.key_into(slot, &mut key);
            (self.on_record)(&key, view.record(slot));
        }
    }

    fn visit_children(&mut self, page: PageId, view: &PageView<'_>) -> Result<()> {
        if view.count() == 0 {
            self.problem(page, "an inner page without children".into());
        }
        let separators: Vec<Vec<u8>> = (0..view.count()).map(|slot| view.key(slot)).collect();
        for (slot, low) in separators.iter().enumerate() {
            let high = separators.get(slot + 1).map(Vec::as_slice).or(view.high());
            let level = Some(view.level().saturating_sub(1));
            self.visit(&Expected { page: view.child(slot), level, low, high })?;
        }
        Ok(())
    }
}

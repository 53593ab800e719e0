//! Searching: from the root to the leaf that a target belongs to, one latch at a time.
//!
//! Invariants
//!   I1  A search holds at most one latch, and no latch while it loads a page.
//!   I2  The separators of an inner page may be outdated once its latch is released. The child
//!       itself decides. A target above the child's fences is to the right: the child was split. On
//!       any other mismatch (dead page, reused page, target below the fences) the search restarts
//!       at the root.
//! Source    Lehman and Yao 1981. They do not merge pages; here a merged page is marked dead and
//!           does not point to its neighbour.

use super::stats::add;
use super::{Path, Tree};
use crate::base::{reach, Error, PageId, Result};
use crate::format::page::{compare_keys, PageView};
use crate::pool::PageRef;
use std::cmp::Ordering;

/// The number of restarts after which the pages count as contradictory: each restart needs another
/// split or merge at the wrong moment.
const RESTARTS_MAX: usize = 10_000;
/// The number of moves to the right on one level after which the chain counts as a cycle.
const MOVES_MAX: usize = 100_000;

#[derive(Clone, Copy, Debug)]
pub(super) enum Target<'k> {
    /// The leaf whose fences enclose the key.
    Key(&'k [u8]),
    /// The leaf that holds the largest possible key below this one, which is not empty.
    Below(&'k [u8]),
    /// The rightmost leaf.
    Last,
}

#[derive(PartialEq, Eq, Debug)]
pub(super) enum Landing {
    /// The target is in this page, or below it.
    Here,
    /// The target is to the right of this page.
    Right,
    /// The position is unknown: the page is not the expected one.
    Lost,
}

/// The end of a search one level above the leaves.
pub(super) enum Above<'a> {
    /// The parent of the leaf, and the slot that names the leaf.
    Parent(&'a PageView<'a>, usize),
    /// The root is the leaf.
    Leaf(&'a PageRef, &'a PageView<'a>),
}

impl Target<'_> {
    /// The position of the target relative to a page of this tree with these fences.
    pub(super) fn seen_from(&self, low: &[u8], high: Option<&[u8]>) -> Landing {
        let is_rightmost = high.is_none();
        let low = |key| compare_keys(low, key);
        let high = |key| high.map_or(Ordering::Less, |high| compare_keys(key, high));
        let (above_low, below_high) = match self {
            Target::Key(key) => (low(key).is_le(), high(key).is_lt()),
            Target::Below(key) => (low(key).is_lt(), high(key).is_le()),
            Target::Last => (true, is_rightmost),
        };
        match (above_low, below_high) {
            (false, _) => Landing::Lost,
            (true, false) => Landing::Right,
            (true, true) => Landing::Here,
        }
    }

    /// The slot of the target in a page where it is `Here`: of the child to visit next, or in a
    /// leaf the number of records before the target.
    pub(super) fn slot_in(&self, page: &PageView<'_>) -> usize {
        match (page.is_leaf(), self) {
            (false, _) => self.child_of(page),
            (true, Target::Last) => page.count(),
            (true, Target::Key(key) | Target::Below(key)) => match page.search(key) {
                Ok(slot) | Err(slot) => slot,
            },
        }
    }

    /// The slot of the child to visit next from an inner page where the target is `Here`.
    fn child_of(&self, page: &PageView<'_>) -> usize {
        match self {
            Target::Key(key) => page.find_child(key),
            Target::Below(key) => match page.search(key) {
                Ok(index) | Err(index) => index.saturating_sub(1),
            },
            Target::Last => page.count().saturating_sub(1),
        }
    }
}

impl Above<'_> {
    /// The leaf that the parent names; `None` if the root is the leaf.
    pub(super) fn child(&self) -> Option<PageId> {
        match self {
            Above::Parent(page, slot) => Some(page.child(*slot)),
            Above::Leaf(..) => None,
        }
    }
}

/// Receives the pages on the way of a search, from the root to its end.
pub(super) trait Trail {
    /// Forgets all pages. Returns the first of them, the root.
    fn restart(&mut self) -> Option<PageRef>;
    fn push(&mut self, page: PageRef);
}

/// A search with this trail unpins the pages that it leaves.
impl Trail for () {
    fn restart(&mut self) -> Option<PageRef> {
        None
    }
    fn push(&mut self, _: PageRef) {}
}

/// A search with this trail keeps the pages pinned, root first.
impl Trail for Vec<PageRef> {
    fn restart(&mut self) -> Option<PageRef> {
        self.drain(..).next()
    }
    fn push(&mut self, page: PageRef) {
        Vec::push(self, page);
    }
}

impl Tree {
    /// Runs `f` under the latch of the page of `target` that is `height` levels above the leaves.
    /// If the tree is lower, the page is the root. Loads pages: may do I/O.
    pub(super) fn with_page<R>(
        &self,
        target: Target<'_>,
        height: u8,
        trail: &mut impl Trail,
        f: impl FnOnce(&PageRef, &PageView<'_>) -> R,
    ) -> Result<R> {
        #[cfg(test)]
        add(&self.stats.descents);
        let mut root = trail.restart();
        'restart: for _ in 0..RESTARTS_MAX {
            let mut page = match root.take() {
                Some(pinned) => pinned,
                None => self.root_page()?,
            };
            let mut level = None;
            let mut moves = 0;
            loop {
                let guard = page.read();
                let view = PageView::new(&guard);
                let next = match self.landing(&view, level, target) {
                    Landing::Here if view.level() <= height => {
                        let result = f(&page, &view);
                        drop(guard);
                        trail.push(page);
                        return Ok(result);
                    }
                    Landing::Here => {
                        level = Some(view.level() - 1);
                        let child = view.child(target.child_of(&view));
                        drop(guard);
                        trail.push(page);
                        child
                    }
                    Landing::Right => {
                        moves += 1;
                        let right = self.right_of(&view, moves)?;
                        drop(guard);
                        right
                    }
                    Landing::Lost => {
                        root = self.restart(trail);
                        continue 'restart;
                    }
                };
                page = match self.pool.fetch(next)? {
                    Some(page) => page,
                    None => {
                        root = self.restart(trail);
                        continue 'restart;
                    }
                };
            }
        }
        Err(self.corrupt(self.def.root, "no search reaches a leaf: inner pages and fences disagree"))
    }

    /// Runs `f` under the latch of the page one level above the leaf of `target`, or of the root if
    /// it is the leaf. Loads pages: may do I/O.
    pub(super) fn above_leaf<R>(
        &self,
        target: Target<'_>,
        trail: &mut impl Trail,
        f: impl FnOnce(Above<'_>) -> R,
    ) -> Result<R> {
        self.with_page(target, 1, trail, |page, view| match view.is_leaf() {
            true => f(Above::Leaf(page, view)),
            false => f(Above::Parent(view, target.slot_in(view))),
        })
    }

    /// Runs `f` on `page` under its latch if it is the leaf of `target`.
    pub(super) fn on_leaf<R>(
        &self,
        page: &PageRef,
        target: Target<'_>,
        f: impl FnOnce(&PageRef, &PageView<'_>) -> R,
    ) -> Option<R> {
        let guard = page.read();
        let view = PageView::new(&guard);
        (self.landing(&view, Some(0), target) == Landing::Here).then(|| f(page, &view))
    }

    pub(super) fn landing(&self, page: &PageView<'_>, level: Option<u8>, target: Target<'_>) -> Landing {
        if page.is_dead() || page.tree() != self.def.id || level.is_some_and(|level| level != page.level()) {
            return Landing::Lost;
        }
        target.seen_from(page.low(), page.high())
    }

    pub(super) fn right_of(&self, page: &PageView<'_>, moves: usize) -> Result<PageId> {
        reach::mark("moved_right");
        add(&self.stats.moves_right);
        if moves > MOVES_MAX || page.right() == PageId::NONE {
            return Err(self.corrupt(page.right(), "the chain of right neighbours does not reach the key"));
        }
        Ok(page.right())
    }

    fn restart(&self, trail: &mut impl Trail) -> Option<PageRef> {
        reach::mark("restart");
        add(&self.stats.restarts);
        trail.restart()
    }

    pub(super) fn corrupt(&self, page: PageId, detail: &str) -> Error {
        Error::corrupt(format!("tree {} page {page}", self.def.id), detail)
    }

    /// Pins the pages from the root to the leaf that covers `key`; takes one latch if `path`
    /// already does. This loads pages, so call it before the mini-transaction. Inside one, a change
    /// calls it only if its path has no leaf or the wrong leaf.
    pub fn prepare(&self, key: &[u8], path: &mut Path) -> Result<()> {
        self.with_prepared(key, path, |_| ())
    }

    /// Copies `near` to `path` if `near` leads to the leaf that covers `key`, and `path` does not.
    /// No I/O.
    pub fn go_near(&self, key: &[u8], path: &mut Path, near: &Path) {
        if !self.covers(path, key) && self.covers(near, key) {
            path.belong_to(self.def.id);
            path.ticket.ticket = None;
            path.pages.clone_from(&near.pages);
        }
    }

    pub(super) fn covers(&self, path: &Path, key: &[u8]) -> bool {
        path.tree == self.def.id
            && path.leaf().is_some_and(|leaf| self.is_leaf_of(&PageView::new(&leaf.read()), key))
    }

    pub(super) fn with_prepared<R>(
        &self,
        key: &[u8],
        path: &mut Path,
        f: impl FnOnce(&PageView<'_>) -> R,
    ) -> Result<R> {
        let mut f = Some(f);
        let mut run = |leaf: &PageView<'_>| f.take().map(|f| f(leaf)).expect("f runs once");
        if let Some(result) = self.with_pinned(key, path, &mut run) {
            return Ok(result);
        }
        path.belong_to(self.def.id);
        path.ticket.ticket = None;
        let found = self.with_page(Target::Key(key), 0, &mut path.pages, |_, leaf| run(leaf));
        if found.is_err() {
            path.release();
        }
        found
    }

    /// Runs `f` under the latch of the leaf that `path` pins, if it is the leaf of `key`.
    pub(super) fn with_pinned<R>(
        &self,
        key: &[u8],
        path: &Path,
        f: impl FnOnce(&PageView<'_>) -> R,
    ) -> Option<R> {
        let leaf = path.leaf().filter(|_| path.tree == self.def.id)?;
        self.on_leaf(leaf, Target::Key(key), |_, view| f(view))
    }
}

//! Walking record by record under the latch of the leaf: for readers that lock what they see.
//!
//! Invariants
//!   I1  The answer of a step is true while the latch is held: between where the step began and
//!       what it found there is no record but those that the reader has passed.
//!   I2  A step looks into one leaf only. If it finds no record there, it tells the fence from
//!       which the next step goes on.

use super::ahead::{Ahead, Direction};
use super::descend::{Landing, Target};
use super::Tree;
use crate::base::Result;
use crate::format::page::{PageView, RecordRef};
use crate::pool::PageRef;
use std::sync::Arc;

/// The find of a step.
#[derive(Clone, Copy, Debug)]
pub enum Sight<'a> {
    /// A record, with its key.
    Record(&'a [u8], RecordRef<'a>),
    /// No record up to this key, which belongs to what lies above it: the fence of the leaf.
    Fence(&'a [u8]),
    /// No record up to the end of the tree.
    End,
}

/// Steps over the records of a tree; holds nothing between them but a pin of the leaf.
#[derive(Debug)]
pub struct Walk {
    tree: Arc<Tree>,
    page: Option<PageRef>,
    /// Version of the page when the last step looked at it.
    version: u64,
    key: Vec<u8>,
    /// The key of the last record that a step has passed.
    passed: Vec<u8>,
    /// Where in the leaf the last step forward has found its record: the next one looks there
    /// first for the key that it goes on from.
    near: usize,
    /// Whether the last step ended at a fence: the next one crosses to another leaf.
    crosses: bool,
    /// The far fence of a leaf that was crossed to.
    fence: Vec<u8>,
    ahead: Ahead,
}

impl Walk {
    /// A walk that is nowhere yet.
    pub fn new(tree: &Arc<Tree>) -> Self {
        Self {
            tree: Arc::clone(tree),
            page: None,
            version: 0,
            key: Vec::new(),
            passed: Vec::new(),
            near: 0,
            crosses: false,
            fence: Vec::new(),
            ahead: Ahead::default(),
        }
    }

    /// The tree.
    pub fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    /// Whether the leaf has stayed as it was when the last step looked at it.
    pub fn is_current(&self) -> bool {
        self.page.as_ref().is_some_and(|page| page.version() == self.version)
    }

    /// Lets `f` see, under the latch, the first record from `key` on, or behind it if `after`, that
    /// is not passed. `passes` says of each record before it in the same leaf whether it is. `f`
    /// also gets the key of the last one that was passed. Both must be short and use no tree. Loads
    /// pages: may do I/O.
    pub fn forward<R>(
        &mut self,
        key: &[u8],
        after: bool,
        mut passes: impl FnMut(&[u8], &RecordRef<'_>) -> bool,
        f: impl FnOnce(Option<&[u8]>, Sight<'_>) -> R,
    ) -> Result<R> {
        let mut near = self.near;
        let result = self.visit(Target::Key(key), Direction::Forward, |view, buffer, passed| {
            let first = match view.search_near(key, near) {
                Ok(slot) if after => slot + 1,
                Ok(slot) | Err(slot) => slot,
            };
            near = first;
            for slot in first..view.count() {
                view.key_into(slot, buffer);
                let record = view.record(slot);
                if !passes(buffer, &record) {
                    near = slot;
                    return f((slot > first).then_some(passed), Sight::Record(buffer, record));
                }
                std::mem::swap(buffer, passed);
            }
            let passed = (first < view.count()).then_some(&passed[..]);
            f(passed, view.high().map_or(Sight::End, Sight::Fence))
        });
        self.near = near;
        result
    }

    /// Tells that the next step goes on from the fence that the last one has met: pages behind it
    /// may be read ahead.
    pub fn cross(&mut self) {
        self.crosses = true;
    }

    /// Lets `f` see, under the latch, the last record below `key`, or last of all without one.
    /// Otherwise as [`forward`](Self::forward).
    pub fn backward<R>(
        &mut self,
        key: Option<&[u8]>,
        mut passes: impl FnMut(&[u8], &RecordRef<'_>) -> bool,
        f: impl FnOnce(Option<&[u8]>, Sight<'_>) -> R,
    ) -> Result<R> {
        let target = match key {
            Some([]) => return Ok(f(None, Sight::End)),
            Some(key) => Target::Below(key),
            None => Target::Last,
        };
        self.visit(target, Direction::Backward, |view, buffer, passed| {
            let end = target.slot_in(view);
            for slot in (0..end).rev() {
                view.key_into(slot, buffer);
                let record = view.record(slot);
                if !passes(buffer, &record) {
                    return f((slot + 1 < end).then_some(passed), Sight::Record(buffer, record));
                }
                std::mem::swap(buffer, passed);
            }
            let passed = (end > 0).then_some(&passed[..]);
            f(passed, if view.low().is_empty() { Sight::End } else { Sight::Fence(view.low()) })
        })
    }

    fn visit<R>(
        &mut self,
        target: Target<'_>,
        direction: Direction,
        f: impl FnOnce(&PageView<'_>, &mut Vec<u8>, &mut Vec<u8>) -> R,
    ) -> Result<R> {
        let Self { tree, page: pinned, version, key, passed, crosses, fence, ahead, .. } = self;
        if let Some(page) = pinned {
            let guard = page.read();
            let view = PageView::new(&guard);
            if tree.landing(&view, Some(0), target) == Landing::Here {
                (*version, *crosses) = (page.version(), false);
                return Ok(f(&view, key, passed));
            }
        }
        let (result, pid) = tree.with_page(target, 0, &mut (), |page, view| {
            (*version, *pinned) = (page.version(), Some(page.clone()));
            fence.clear();
            fence.extend_from_slice(match direction {
                Direction::Forward => view.high().unwrap_or_default(),
                Direction::Backward => view.low(),
            });
            (f(view, key, passed), page.pid())
        })?;
        match std::mem::take(crosses) {
            true => ahead.reached(tree, direction, pid, fence),
            false => ahead.stop(),
        }
        Ok(result)
    }
}

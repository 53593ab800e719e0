//! A walk from record to record under the latch of the leaf, for readers that lock the records they
//! read.
//!
//! Invariants
//!   I1  The result of a step is true while the latch is held: from the start of the step to the
//!       record or fence that it found, the leaf has only records that the reader passed.
//!   I2  A step searches one leaf only. If it finds no record there, it returns the fence at which
//!       the next step continues.

use super::ahead::{Ahead, Direction};
use super::descend::{Landing, Target};
use super::Tree;
use crate::base::Result;
use crate::format::page::{PageView, RecordRef};
use crate::pool::PageRef;
use std::sync::Arc;

/// The result of a step.
#[derive(Clone, Copy, Debug)]
pub enum Sight<'a> {
    /// A record, with its key.
    Record(&'a [u8], RecordRef<'a>),
    /// The leaf has no further record and ends at this fence. A record with the fence as its key
    /// belongs to the leaf above the fence.
    Fence(&'a [u8]),
    /// The tree has no further record.
    End,
}

/// Steps from record to record. Between steps it only pins the leaf.
#[derive(Debug)]
pub struct Walk {
    tree: Arc<Tree>,
    page: Option<PageRef>,
    /// The version of the page at the last step.
    version: u64,
    key: Vec<u8>,
    /// The key of the last record that a step passed.
    passed: Vec<u8>,
    /// The slot in which the last step forward found its record: the next search begins there.
    near: usize,
    /// Whether the next step continues at the fence that the last step found.
    crosses: bool,
    /// The far fence of the last leaf that a search found.
    fence: Vec<u8>,
    ahead: Ahead,
}

impl Walk {
    /// Creates a walk without a position.
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

    /// Returns whether the leaf is unchanged since the last step.
    pub fn is_current(&self) -> bool {
        self.page.as_ref().is_some_and(|page| page.version() == self.version)
    }

    /// Runs `f`, under the latch of the leaf, on the first record at or above `key` (only above it
    /// if `after`) for which `passes` returns `false`, or else on the leaf's fence or the end. `f`
    /// also gets the key of the last record passed in this step, if any. Both closures must be
    /// short and must not use a tree. Loads pages: may do I/O.
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

    /// Announces that the next step continues at the fence that the last step found: the pool may
    /// read ahead the pages after it.
    pub fn cross(&mut self) {
        self.crosses = true;
    }

    /// Like [`forward`](Self::forward), but goes backward from the last record below `key`, or from
    /// the last record of the tree without `key`.
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

//! How many records lie between two keys, without reading from disk.
//!
//! Both bounds are followed down as far as pages are in memory. Where the ways part, the children in between
//! count as much as an average child; in the leaves, if they are reached, the records are counted exactly. Only
//! the first estimate of a tree that has been opened reads, one way down, to see what a leaf and an inner page
//! hold.

use super::descend::{Landing, Target};
use super::{Path, Tree};
use crate::base::{PageId, Result};
use crate::format::page::PageView;

/// Records of a leaf or children of an inner page, as long as none has been seen.
const COUNT_GUESS: u64 = 64;

/// One page on the way to a bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Step {
    page: PageId,
    level: u8,
    slot: u64,
    count: u64,
}

impl Tree {
    /// About how many records have a key with `low <= key < high`; `high` `None` means up to the end. May do I/O
    /// the first time, and later for the root only.
    pub fn count_between(&self, low: &[u8], high: Option<&[u8]>) -> Result<u64> {
        if high.is_some_and(|high| high <= low) {
            return Ok(0);
        }
        if !self.stats.leaf_records.is_known() {
            self.prepare(low, &mut Path::default())?;
        }
        let from = self.trace(Target::Key(low))?;
        let to = self.trace(high.map_or(Target::Last, Target::Key))?;
        let parted = from.iter().zip(&to).position(|(a, b)| a != b);
        let Some(parted) = parted else {
            // The same way to the end: an empty range of a leaf, or a part of a page that is not in memory.
            let below = from.last().map_or(0, |step| step.level);
            return Ok(if below == 0 { 0 } else { self.records_under(below - 1) / 3 });
        };
        let (a, b) = (from[parted], to[parted]);
        let after = self.records_after(&from[parted + 1..], a.level);
        let before = self.records_before(&to[parted + 1..], b.level);
        if a.page != b.page {
            return Ok(after + before);
        }
        let apart = b.slot.saturating_sub(a.slot);
        if a.level == 0 {
            return Ok(apart);
        }
        Ok(apart.saturating_sub(1) * self.records_under(a.level - 1) + after + before)
    }

    /// Levels of the tree; 1 when the root is a leaf.
    pub fn depth(&self) -> Result<usize> {
        Ok(usize::from(PageView::new(&self.root_page()?.read()).level()) + 1)
    }

    /// About how many leaves the tree has. Small pages of large values count along.
    pub fn leaf_pages_estimate(&self) -> Result<u64> {
        let pages = self.pages();
        Ok(match self.depth()? {
            1 => 1,
            2 => pages.saturating_sub(1),
            _ => pages.saturating_sub(1 + pages / self.stats.inner_children.or(COUNT_GUESS)),
        })
    }

    /// Its pages, with those of large values that are no larger than its own: all that the pool can tell.
    fn pages(&self) -> u64 {
        self.pool.tree_bytes(self.def.id).by_class.up_to(self.def.class)
    }

    /// Starts the average of children, where no inner page below the root has been seen, from the number of pages.
    fn expect_children(&self, root: &PageView<'_>) {
        if root.level() < 2 || self.stats.inner_children.is_known() {
            return;
        }
        let pages = self.pages() as f64;
        let children = (pages / root.count().max(1) as f64).powf(1.0 / f64::from(root.level() - 1));
        self.stats.inner_children.add(children as u64);
    }

    /// The pages on the way to `target`, root first, as far as they are in memory.
    fn trace(&self, target: Target<'_>) -> Result<Vec<Step>> {
        let mut steps = Vec::new();
        let mut page = self.root_page()?;
        self.expect_children(&PageView::new(&page.read()));
        loop {
            let guard = page.read();
            let view = PageView::new(&guard);
            let level = steps.last().map(|step: &Step| step.level - 1);
            let next = match self.landing(&view, level, target) {
                Landing::Lost => return Ok(steps),
                Landing::Right => view.right(),
                Landing::Here => {
                    let slot = target.slot_in(&view);
                    let step = Step {
                        page: page.pid(),
                        level: view.level(),
                        slot: slot as u64,
                        count: view.count() as u64,
                    };
                    self.remember(&step, steps.is_empty());
                    steps.push(step);
                    if view.level() == 0 {
                        return Ok(steps);
                    }
                    view.child(slot)
                }
            };
            drop(guard);
            match self.pool.fetch_resident(next) {
                Some(resident) => page = resident,
                None => return Ok(steps),
            }
        }
    }

    fn remember(&self, step: &Step, is_root: bool) {
        if step.level == 0 {
            self.stats.leaf_records.add(step.count);
        } else if !is_root {
            self.stats.inner_children.add(step.count);
        }
    }

    /// Records under an average page of `level`.
    fn records_under(&self, level: u8) -> u64 {
        let children = self.stats.inner_children.or(COUNT_GUESS).max(2);
        self.stats.leaf_records.or(COUNT_GUESS).saturating_mul(children.saturating_pow(level.into()))
    }

    /// Records at or after the end of `way`, below the page of `level` that it starts from.
    fn records_after(&self, way: &[Step], level: u8) -> u64 {
        self.records_beside(way, level, |step| {
            if step.level == 0 {
                step.count.saturating_sub(step.slot)
            } else {
                (step.count.saturating_sub(step.slot + 1)).saturating_mul(self.records_under(step.level - 1))
            }
        })
    }

    /// Records before the end of `way`.
    fn records_before(&self, way: &[Step], level: u8) -> u64 {
        self.records_beside(way, level, |step| {
            let each = if step.level == 0 { 1 } else { self.records_under(step.level - 1) };
            step.slot.saturating_mul(each)
        })
    }

    fn records_beside(&self, way: &[Step], level: u8, beside: impl Fn(&Step) -> u64) -> u64 {
        let seen: u64 = way.iter().map(beside).fold(0, u64::saturating_add);
        let lowest = way.last().map_or(level, |step| step.level);
        let unseen = if lowest == 0 { 0 } else { self.records_under(lowest - 1) / 2 };
        seen.saturating_add(unseen)
    }
}

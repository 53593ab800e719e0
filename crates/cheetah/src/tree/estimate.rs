//! Estimates the number of records between two keys. The root is the only page that it reads from
//! disk.
//!
//! A search descends toward each bound until it meets a page that is not in memory. In a leaf it
//! counts the records exactly. In a page that is not in memory, the position of the bound is
//! interpolated between the keys at the ends of the page. Below the page where the two searches
//! part, the children between the bounds are counted, or an evenly spread sample of many children.
//! Children that are not in memory count as the mean of the children in memory. If no child is in
//! memory, each counts as an average page.
//!
//! Locks     One latch at a time. Children are read after their parent's latch is released. A page
//!           that has become another page meanwhile counts as not in memory.

use super::descend::{Landing, Target};
use super::Tree;
use crate::base::{PageId, Result};
use crate::format::page::PageView;
use std::ops::Range;

/// The assumed number of children of an inner page, until an inner page of the tree was seen.
const COUNT_GUESS: u64 = 64;
/// The maximum number of leaves sampled in each part of a range. If the counts of leaves deviate by
/// half from their mean, a sample of this size is uncertain by 3 %.
const LOOKS_MAX: usize = 256;

#[derive(Clone, Copy, Debug)]
struct Step {
    page: PageId,
    level: u8,
    slot: usize,
    count: usize,
    /// If the child of `slot` is not in memory: the estimated position of the bound in the child,
    /// from 0 to 1.
    within: f64,
}

impl Step {
    fn is_at(&self, other: &Step) -> bool {
        (self.page, self.slot) == (other.page, other.slot)
    }
}

impl Tree {
    /// Estimates the number of records with `low <= key < high`, or with `low <= key` without
    /// `high`. `records` is roughly the number in the tree. Reads no page from disk except the
    /// root.
    pub fn count_between(&self, low: &[u8], high: Option<&[u8]>, records: u64) -> Result<u64> {
        if high.is_some_and(|high| high <= low) {
            return Ok(0);
        }
        let estimate = self.estimate(records)?;
        let from = self.trace(Target::Key(low))?;
        let to = self.trace(high.map_or(Target::Last, Target::Key))?;
        Ok(estimate.between(&from, &to).round() as u64)
    }

    /// The number of levels of the tree; 1 if the root is a leaf.
    pub fn depth(&self) -> Result<usize> {
        Ok(usize::from(PageView::new(&self.root_page()?.read()).level()) + 1)
    }

    /// Estimates the number of leaves. Some pages of large values are counted too.
    pub fn leaf_pages_estimate(&self) -> Result<u64> {
        let pages = self.pages();
        Ok(match self.depth()? {
            1 => 1,
            2 => pages.saturating_sub(1),
            _ => pages.saturating_sub(1 + pages / self.stats.inner_children.or(COUNT_GUESS)),
        })
    }

    /// The number of pages of the tree. The pool counts pages by class, so pages of large values
    /// are included if their class is not larger than the tree's.
    fn pages(&self) -> u64 {
        self.pool.tree_bytes(self.def.id).by_class.up_to(self.def.class)
    }

    /// The assumptions about pages that are not in memory, if the `records` records of the tree are
    /// spread evenly over the children of the root.
    fn estimate(&self, records: u64) -> Result<Estimate<'_>> {
        let leaves = self.leaf_pages_estimate()?.max(1);
        let root = self.root_page()?;
        let guard = root.read();
        let view = PageView::new(&guard);
        // Pages of large values count as leaves and lower this mean. The mean of the leaves that
        // were seen is more accurate then.
        let mean = records as f64 / leaves as f64;
        let seen = self.stats.leaf_records.or(0) as f64;
        let leaf_records = if seen > 2.0 * mean { seen } else { mean.max(1.0) };
        let leaves_of_child = records as f64 / leaf_records / view.count().max(1) as f64;
        let children = leaves_of_child.max(1.0).powf(1.0 / f64::from(view.level().max(2) - 1));
        Ok(Estimate { tree: self, leaf_records, children })
    }

    /// Initializes the average number of children from the number of pages, if no inner page below
    /// the root was seen yet.
    fn expect_children(&self, root: &PageView<'_>) {
        if root.level() < 2 || self.stats.inner_children.is_known() {
            return;
        }
        let pages = self.pages() as f64;
        let children = (pages / root.count().max(1) as f64).powf(1.0 / f64::from(root.level() - 1));
        self.stats.inner_children.add(children as u64);
    }

    /// Follows the pages in memory on the way to `target`, root first.
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
                    let (page, level, count) = (page.pid(), view.level(), view.count());
                    self.remember(level, count, steps.is_empty());
                    steps.push(Step { page, level, slot, count, within: 0.0 });
                    if level == 0 {
                        return Ok(steps);
                    }
                    view.child(slot)
                }
            };
            drop(guard);
            match self.pool.fetch_resident(next) {
                Some(resident) => page = resident,
                None => {
                    if let Some(last) = steps.last_mut() {
                        last.within = within_child(&PageView::new(&page.read()), last, target);
                    }
                    return Ok(steps);
                }
            }
        }
    }

    fn remember(&self, level: u8, count: usize, is_root: bool) {
        if level == 0 {
            self.stats.leaf_records.add(count as u64);
        } else if !is_root {
            self.stats.inner_children.add(count as u64);
        }
    }

    /// Returns the number of entries that the page has in `slots`, and up to `most` of the children
    /// there, evenly spread (no children for a leaf). Returns `None` if the page is not in memory,
    /// or no longer of that level.
    fn resident_children(
        &self,
        pid: PageId,
        level: u8,
        slots: Option<Range<usize>>,
        most: usize,
    ) -> Option<(usize, Vec<PageId>)> {
        let page = self.pool.fetch_resident(pid)?;
        let guard = page.read();
        let view = PageView::new(&guard);
        if view.is_dead() || view.tree() != self.def.id || view.level() != level {
            return None;
        }
        let slots = slots.unwrap_or(0..view.count());
        let slots = slots.start.min(view.count())..slots.end.min(view.count());
        let looks = if level == 0 { 0 } else { slots.len().min(most) };
        let chosen = (0..looks).map(|n| view.child(slots.start + (2 * n + 1) * slots.len() / (2 * looks)));
        Some((slots.len(), chosen.collect()))
    }
}

struct Estimate<'t> {
    tree: &'t Tree,
    /// The number of records in a leaf that is not in memory.
    leaf_records: f64,
    /// The number of children of an inner page that is not in memory.
    children: f64,
}

impl Estimate<'_> {
    /// Estimates the number of records between the ends of two paths from the root.
    fn between(&self, from: &[Step], to: &[Step]) -> f64 {
        let Some(parted) = from.iter().zip(to).position(|(a, b)| !a.is_at(b)) else {
            // Both paths are the same: an empty range of a leaf, or a part of a page that is not in
            // memory.
            return match (from.last(), to.last()) {
                (Some(a), Some(b)) if a.level > 0 && b.level > 0 => {
                    (b.within - a.within).max(0.0) * self.records_under(a.level - 1)
                }
                _ => 0.0,
            };
        };
        let (a, b) = (from[parted], to[parted]);
        let (after, before) = (self.after(&from[parted..]), self.before(&to[parted..]));
        if a.page != b.page {
            // The two pages are neighbours: a page was split between the two searches.
            return after + before + if a.level == 0 { (a.count - a.slot + b.slot) as f64 } else { 0.0 };
        }
        let apart = b.slot.saturating_sub(a.slot);
        if a.level == 0 {
            return apart as f64;
        }
        after + before + self.children(&a, a.slot + 1..b.slot)
    }

    /// Estimates the number of records from the end of the path `way` to the end of the child that
    /// its first page leads to.
    fn after(&self, way: &[Step]) -> f64 {
        let below = way.iter().skip(1).map(|step| match step.level {
            0 => step.count.saturating_sub(step.slot) as f64,
            _ => self.children(step, step.slot + 1..step.count),
        });
        below.sum::<f64>() + self.unseen(way, |step| 1.0 - step.within)
    }

    /// Estimates the number of records from the start of the child that the first page of the path
    /// `way` leads to, up to the end of the path.
    fn before(&self, way: &[Step]) -> f64 {
        let below = way.iter().skip(1).map(|step| match step.level {
            0 => step.slot as f64,
            _ => self.children(step, 0..step.slot),
        });
        below.sum::<f64>() + self.unseen(way, |step| step.within)
    }

    /// Estimates the number of records in a part of the page below the path `way`, which is not in
    /// memory. Returns 0 if the path ends in a leaf.
    fn unseen(&self, way: &[Step], part: impl Fn(&Step) -> f64) -> f64 {
        way.last()
            .filter(|step| step.level > 0)
            .map_or(0.0, |step| part(step) * self.records_under(step.level - 1))
    }

    fn children(&self, step: &Step, slots: Range<usize>) -> f64 {
        let wanted = slots.len();
        if wanted == 0 {
            return 0.0;
        }
        let found = self.under(step.page, step.level, Some(slots), LOOKS_MAX);
        found.unwrap_or_else(|| wanted as f64 * self.records_under(step.level - 1))
    }

    /// Estimates the number of records under the children in `slots` of a page, or under all its
    /// children without `slots`, from up to about `looks` leaves below it. Returns `None` if the
    /// page is not in memory.
    fn under(&self, pid: PageId, level: u8, slots: Option<Range<usize>>, looks: usize) -> Option<f64> {
        let (count, children) = self.tree.resident_children(pid, level, slots, looks)?;
        if level == 0 {
            return Some(count as f64);
        }
        let share = (looks / children.len().max(1)).max(1);
        let seen: Vec<f64> =
            children.iter().filter_map(|child| self.under(*child, level - 1, None, share)).collect();
        let each = match seen.len() {
            0 => self.records_under(level - 1),
            looked => seen.iter().sum::<f64>() / looked as f64,
        };
        Some(each * count as f64)
    }

    /// Estimates the number of records under a page of `level` that is not in memory.
    fn records_under(&self, level: u8) -> f64 {
        self.leaf_records * self.children.powi(level.into())
    }
}

/// The estimated position of `target` in the child that `step` on this page leads to: 0 at its
/// start, 1 at its end.
fn within_child(page: &PageView<'_>, step: &Step, target: Target<'_>) -> f64 {
    let slot = step.slot;
    if page.is_dead() || page.level() != step.level || slot >= page.count() {
        return 0.5;
    }
    let key = match target {
        Target::Key(key) | Target::Below(key) => key,
        Target::Last => return 1.0,
    };
    // The first child of a page begins at the lower fence of the page.
    let low = if slot == 0 { page.low().to_vec() } else { page.key(slot) };
    let high =
        if slot + 1 < page.count() { Some(page.key(slot + 1)) } else { page.high().map(<[u8]>::to_vec) };
    match high {
        Some(high) => position(&low, key, &high),
        // The last child of the tree has no upper fence.
        None if key <= low.as_slice() => 0.0,
        None => 0.5,
    }
}

/// The position of `key` between two keys, from 0 to 1. It treats the eight bytes after their
/// common prefix as a number.
fn position(low: &[u8], key: &[u8], high: &[u8]) -> f64 {
    let common = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    let number = |bytes: &[u8]| {
        let tail = (0..8).map(|i| bytes.get(common + i).copied().unwrap_or_default());
        tail.fold(0.0, |sum, byte| sum * 256.0 + f64::from(byte))
    };
    let (from, to) = (number(low), number(high));
    if key <= low {
        0.0
    } else if key >= high {
        1.0
    } else if to > from {
        ((number(key) - from) / (to - from)).clamp(0.0, 1.0)
    } else {
        0.5
    }
}

#[cfg(test)]
mod tests {
    use super::position;

    #[test]
    fn a_key_lies_between_two_others_where_its_number_does() {
        let check = |low: &[u8], key: &[u8], high: &[u8], expect: f64| {
            let found = position(low, key, high);
            assert!((found - expect).abs() < 0.01, "{low:?} {key:?} {high:?}: {found}");
        };
        check(b"", b"\x80", b"\xff\xff", 0.5);
        check(b"\x01\x00\x00\x10", b"\x01\x00\x00\x20", b"\x01\x00\x00\x50", 0.25);
        check(b"aaaa", b"aaab", b"aaae", 0.25);
        check(b"aaaa", b"aaaa", b"aaae", 0.0);
        check(b"aaaa", b"b", b"aaae", 1.0);
        check(b"a", b"a\x00\x00\x00\x00\x00\x00\x00\x00\x01", b"a\x00\x00\x00\x00\x00\x00\x00\x00\x02", 0.5);
    }
}

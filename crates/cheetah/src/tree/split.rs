//! Splitting a page that has no room, one page at a time.
//!
//! Invariants
//!   I1  One step splits one page whose parent has room for the separator, or the root. It inserts
//!       the separator in the parent under the same latches. So each page has a separator in its
//!       parent except while these latches are held, an epoch holds complete steps only, and a
//!       search moves right only if it overtook a split.
//!   I2  A step loads all pages before its first change; the rest of the step cannot fail.
//!   I3  The root's page ID never changes: its content moves to two new pages below it
//!       (durability::H9).
//! Locks     The structure mutex is locked inside the mini-transaction and never held while its
//!           thread enters one. While the mutex is held, page latches are taken upwards, child
//!           before parent. No other thread holds one latch and waits for another.
//! Source    Graefe, "Modern B-tree techniques" 2011. A step does not split several levels: a
//!           parent without room is first split in a separate step.

use super::descend::{Landing, Target};
use super::handle::Fences;
use super::modify::{Changed, Write};
use super::stats::add;
use super::{Path, Tree};
use crate::base::{reach, sound, Result};
use crate::format::page::{
    plan_split, split_into, PageMut, PageView, RecordRef, Side, SplitPlan, HEADER_BYTES,
};
use crate::pool::{MiniTransaction, PageRef, WriteGuard};

/// The maximum number of steps for one write. Each level may need one step, and other writers may
/// fill a new page first.
const STEPS_MAX: usize = 1000;

/// A placeholder for a child's page ID. Only its size matters.
const ANY_CHILD: [u8; 5] = [0; 5];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Split {
    /// The record does not fit.
    ForRoom,
    /// The record does not fit, or the leaf is crowded.
    Early,
}

impl Tree {
    /// Splits pages until there is no reason to split the leaf, and does the write.
    pub(super) fn split_and_write(
        &self,
        mtr: &MiniTransaction<'_>,
        path: &mut Path,
        key: &[u8],
        write: Write<'_>,
        split: Split,
    ) -> Result<Changed> {
        let _structure = self.structure.lock();
        for _ in 0..STEPS_MAX {
            self.make_exact(path, key)?;
            if let Some(changed) = self.split_step(mtr, path, key, write, split)? {
                return Ok(changed);
            }
        }
        Err(self.corrupt(self.def.root, "splitting makes no room for the record"))
    }

    /// Makes `path` exact: each page is the child that its parent names. The path stays exact while
    /// the structure mutex is held.
    pub(super) fn make_exact(&self, path: &mut Path, key: &[u8]) -> Result<()> {
        if path.tree == self.def.id && self.is_exact(&path.pages, key) {
            return Ok(());
        }
        path.belong_to(self.def.id);
        self.with_page(Target::Key(key), 0, &mut path.pages, |_, _| ())
    }

    fn is_exact(&self, pages: &[PageRef], key: &[u8]) -> bool {
        let mut expected = self.def.root;
        let mut level = None;
        for (depth, page) in pages.iter().enumerate() {
            let guard = page.read();
            let view = PageView::new(&guard);
            if page.pid() != expected || self.landing(&view, level, Target::Key(key)) != Landing::Here {
                return false;
            }
            if view.level() == 0 {
                return depth + 1 == pages.len();
            }
            level = Some(view.level() - 1);
            expected = view.child(view.find_child(key));
        }
        false
    }

    /// Does the write if the leaf has room now and need not be split. Otherwise splits one page of
    /// the exact `path`, and does the write if that page was the leaf. Returns `None` if another
    /// step is needed.
    fn split_step(
        &self,
        mtr: &MiniTransaction<'_>,
        path: &mut Path,
        key: &[u8],
        write: Write<'_>,
        split: Split,
    ) -> Result<Option<Changed>> {
        let Some((leaf, parents)) = path.pages.split_last() else { return Ok(None) };
        let mut guard = leaf.write(mtr);
        // Others may have emptied or split the leaf since it was found to be crowded.
        let is_crowded = |leaf| write.splits_early(&PageView::new(leaf), key, 0);
        if split == Split::ForRoom || sound!(!is_crowded(&guard), "tree: split what others have emptied") {
            if let Ok(changed) = write.attempt(&mut guard, key, 0) {
                return Ok(Some(changed));
            }
        }
        let view = PageView::new(&guard);
        let Some(plan) = plan_split(view, &write.pending(&view, key)) else {
            return Err(
                self.corrupt(leaf.pid(), "no split of the leaf makes room for a record within the limits")
            );
        };
        let records_count = view.count();
        let (left, right) = match parents.last() {
            None => self.split_root(mtr, &mut guard, &plan),
            Some(parent) => {
                let mut parent = parent.write(mtr);
                if !has_room_for_child(&PageView::new(&parent), &plan.separator) {
                    drop((guard, parent));
                    self.split_inner(mtr, &path.pages, key);
                    return Ok(None);
                }
                reach::mark("split_leaf");
                // All records stay in the left page: the keys ascend.
                if plan.left_count == records_count {
                    self.note_full_leaf(leaf.pid());
                }
                (leaf.clone(), self.split_page(mtr, &mut guard, &mut parent, &plan))
            }
        };
        drop(guard);
        let half = if plan.pending_side == Side::Left { left } else { right };
        // Another writer may fill this half before it is latched again. Then another step is
        // needed.
        let changed = write.attempt(&mut half.write(mtr), key, 0).ok();
        if !parents.is_empty() {
            path.pages.pop();
        }
        path.pages.push(half);
        Ok(changed)
    }

    /// Splits the lowest inner page of the exact path whose parent has room for its separator, or
    /// the root.
    fn split_inner(&self, mtr: &MiniTransaction<'_>, pages: &[PageRef], key: &[u8]) {
        for depth in (0..pages.len() - 1).rev() {
            let mut guard = pages[depth].write(mtr);
            let plan = plan_inner_split(&PageView::new(&guard), key);
            if depth == 0 {
                self.split_root(mtr, &mut guard, &plan);
                return;
            }
            let mut parent = pages[depth - 1].write(mtr);
            if has_room_for_child(&PageView::new(&parent), &plan.separator) {
                self.split_page(mtr, &mut guard, &mut parent, &plan);
                reach::mark("split_inner");
                return;
            }
        }
    }

    /// Moves the right part of `page` to a new right neighbour and inserts its separator in
    /// `parent`. Returns the neighbour.
    fn split_page(
        &self,
        mtr: &MiniTransaction<'_>,
        page: &mut WriteGuard<'_>,
        parent: &mut WriteGuard<'_>,
        plan: &SplitPlan,
    ) -> PageRef {
        add(&self.stats.splits);
        let right = self.pool.allocate(mtr, self.def.id, self.def.class);
        let old = page.to_vec();
        split_into(PageView::new(&old), plan, right.pid(), page, &mut right.write(mtr));
        let (Ok(slot) | Err(slot)) = PageView::new(parent).search(&plan.separator);
        PageMut::new(parent)
            .insert_child(slot, &plan.separator, right.pid())
            .expect("I1: the parent has room for the separator");
        right
    }

    /// Moves the content of the root to two new pages below it, and returns them.
    fn split_root(
        &self,
        mtr: &MiniTransaction<'_>,
        root: &mut WriteGuard<'_>,
        plan: &SplitPlan,
    ) -> (PageRef, PageRef) {
        add(&self.stats.splits);
        reach::mark("split_root");
        let left = self.pool.allocate(mtr, self.def.id, self.def.class);
        let right = self.pool.allocate(mtr, self.def.id, self.def.class);
        let old = PageView::new(root);
        let level = old.level();
        split_into(old, plan, right.pid(), &mut left.write(mtr), &mut right.write(mtr));
        if sound!(true, "tree: let the root move") {
            self.fill_root(root, level + 1, [&left, &right], &plan.separator);
        } else {
            let moved = self.pool.allocate(mtr, self.def.id, self.def.class);
            self.fill_root(&mut moved.write(mtr), level + 1, [&left, &right], &plan.separator);
        }
        (left, right)
    }

    fn fill_root(&self, root: &mut WriteGuard<'_>, level: u8, children: [&PageRef; 2], separator: &[u8]) {
        self.init(root, level, &Fences::ALL);
        let mut root = PageMut::new(root);
        for (slot, (low, child)) in [b"", separator].into_iter().zip(children).enumerate() {
            root.insert_child(slot, low, child.pid()).expect("an empty page has room for two children");
        }
    }
}

fn has_room_for_child(parent: &PageView<'_>, separator: &[u8]) -> bool {
    parent.fits(separator.len(), &RecordRef::frozen(&ANY_CHILD))
}

/// Plans to halve an inner page by bytes, at the nearest slot at which both sides fit. At the ends
/// of the tree, where keys probably arrive in order, one side stays full. The separator also counts
/// as a fence of each half.
fn plan_inner_split(page: &PageView<'_>, key: &[u8]) -> SplitPlan {
    let count = page.count();
    let child = page.find_child(key);
    let wished = if child + 1 == count && page.high().is_none() {
        count - 1
    } else if child == 0 && page.low().is_empty() {
        1
    } else {
        inner_middle(page)
    };
    let nearest_first =
        (0..count).flat_map(|distance| [wished.checked_sub(distance), Some(wished + distance)]);
    let left_count = nearest_first
        .flatten()
        .filter(|left_count| (1..count).contains(left_count))
        .find(|&left_count| halves_fit(page, left_count))
        .expect("format::page: the limits of keys leave a place to split");
    SplitPlan { left_count, separator: page.key(left_count), pending_side: Side::Left, pending_index: 0 }
}

fn halves_fit(page: &PageView<'_>, left_count: usize) -> bool {
    let cells = |slots: std::ops::Range<usize>| slots.map(|slot| page.cell_bytes(slot)).sum::<usize>();
    let separator = page.prefix().len() + page.suffix(left_count).len();
    let left = page.low().len() + separator + cells(0..left_count);
    let right = separator + page.high().map_or(0, <[u8]>::len) + cells(left_count..page.count());
    left.max(right) + HEADER_BYTES <= page.bytes().len()
}

fn inner_middle(page: &PageView<'_>) -> usize {
    let all: usize = (0..page.count()).map(|slot| page.cell_bytes(slot)).sum();
    let mut sum = 0;
    let middle = (0..page.count()).position(|slot| {
        sum += page.cell_bytes(slot);
        2 * sum >= all
    });
    middle.unwrap_or(0)
}

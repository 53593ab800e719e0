//! Splits a full page in two. The plan includes the record that did not fit.
//!
//! A page is split in the middle by bytes, except for inserts in key order. If the new key follows
//! the previous insert of a run (or is beyond the last key of the rightmost page), the left page
//! keeps everything before it and stays full. For descending runs, the right page stays full. If
//! the preferred split point would leave one side too full, the nearest possible split point is
//! used. One exists if no record is larger than [`super::max_cell_bytes`].

use super::layout::*;
use super::view::PageView;
use super::write::build_page;
use crate::base::PageId;

/// The record that does not fit.
#[derive(Clone, Copy, Debug)]
pub struct Pending<'a> {
    /// Its slot, as [`PageView::search`] returned it.
    pub index: usize,
    /// Its complete key.
    pub key: &'a [u8],
    /// The record.
    pub record: RecordRef<'a>,
    /// Whether it replaces the record of that slot, instead of being added there.
    pub replaces: bool,
}

/// One of the two pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The page with the smaller keys.
    Left,
    /// The page with the larger keys.
    Right,
}

/// The result of planning a split.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SplitPlan {
    /// The number of the page's records that stay in the left page.
    pub left_count: usize,
    /// The left page's high fence, which is also the right page's low fence.
    pub separator: Vec<u8>,
    /// The side to which the pending record belongs.
    pub pending_side: Side,
    /// Its slot on that side.
    pub pending_index: usize,
}

/// Returns where to split `page` so that `pending` fits afterwards. Returns `None` if that is
/// impossible, which means that a record is larger than [`super::max_cell_bytes`].
pub fn plan_split(page: PageView<'_>, pending: &Pending<'_>) -> Option<SplitPlan> {
    let sequence = Sequence::new(page, pending);
    let count = sequence.count();
    if count < 2 {
        return None;
    }
    let wished = sequence.wished_place();
    let farthest = wished.max(count - wished);
    let places = (0..farthest).flat_map(|distance| [wished.checked_sub(distance), Some(wished + distance)]);
    let mut places = places.flatten().filter(|&place| place > 0 && place < count);
    places.find_map(|place| {
        let separator = sequence.separator(place);
        sequence.both_fit(place, separator.len()).then(|| sequence.plan(place, separator))
    })
}

/// Splits `page` into two pages according to `plan`. `right_page` is the number of the right page.
/// The caller then inserts the pending record, which fits where the plan says.
pub fn split_into(
    page: PageView<'_>,
    plan: &SplitPlan,
    right_page: PageId,
    left: &mut [u8],
    right: &mut [u8],
) {
    let separator = plan.separator.as_slice();
    let (kind, level, tree, cut) = (page.kind(), page.level(), page.tree(), plan.left_count);
    let mut left = build_page(left, kind, level, tree, page.low(), Some(separator), right_page);
    let mut right = build_page(right, kind, level, tree, separator, page.high(), page.right());
    let fits = "a plan leaves room in both pages";
    left.copy_range(page, 0..cut).expect(fits);
    right.copy_range(page, cut..page.count()).expect(fits);
}

/// The shortest key that is greater than `left` and not greater than `right`.
///
/// `left` must be less than `right`.
pub fn separator_between<'a>(left: &[u8], right: &'a [u8]) -> &'a [u8] {
    debug_assert!(left < right, "I1: keys ascend");
    &right[..(common_prefix(left, right) + 1).min(right.len())]
}

/// The records of a page and the pending one, in order.
struct Sequence<'a> {
    page: PageView<'a>,
    pending: &'a Pending<'a>,
    /// `ends[i]` is the total size of the cells 0 to `i`.
    ends: Vec<usize>,
}

impl<'a> Sequence<'a> {
    fn new(page: PageView<'a>, pending: &'a Pending<'a>) -> Self {
        let mut sequence = Self { page, pending, ends: Vec::new() };
        let mut total = 0;
        for i in 0..sequence.count() {
            total += sequence.bytes_of(i);
            sequence.ends.push(total);
        }
        sequence
    }

    fn count(&self) -> usize {
        self.page.count() + usize::from(!self.pending.replaces)
    }

    /// The slot of record `i` in the page, or `None` for the pending record.
    fn slot(&self, i: usize) -> Option<usize> {
        let new = !self.pending.replaces;
        (i != self.pending.index).then(|| i - usize::from(new && i > self.pending.index))
    }

    /// The bytes that record `i` needs on its side. A record that the pending record will replace
    /// needs its own bytes until it is replaced.
    fn bytes_of(&self, i: usize) -> usize {
        if let Some(slot) = self.slot(i) {
            return self.page.cell_bytes(slot);
        }
        let new = cell_bytes(self.pending.key.len() - self.page.prefix_len(), &self.pending.record);
        let old = if self.pending.replaces { self.page.cell_bytes(i) } else { 0 };
        new.max(old)
    }

    fn key_into(&self, i: usize, key: &mut Vec<u8>) {
        match self.slot(i) {
            Some(slot) => self.page.key_into(slot, key),
            None => key.extend_from_slice(self.pending.key),
        }
    }

    /// The preferred number of records in the left page.
    fn wished_place(&self) -> usize {
        let (at, last_place) = (self.pending.index, self.count() - 1);
        if self.pending.replaces {
            return self.middle();
        }
        let (last, run) = self.page.insert_run();
        let ascends = run >= RUN_MIN && last.is_some_and(|last| at == last + 1);
        if ascends || (at == self.page.count() && self.page.high().is_none()) {
            // An inner page with a single child would be valid, but would only add a level.
            let kept = if self.page.is_leaf() { at } else { at.saturating_sub(1) };
            return kept.clamp(1, last_place);
        }
        let descends = run <= -RUN_MIN && last == Some(at);
        if self.page.is_leaf() && (descends || (at == 0 && self.page.low().is_empty())) {
            return (at + 1).min(last_place);
        }
        self.middle()
    }

    fn middle(&self) -> usize {
        let total = self.ends.last().copied().unwrap_or(0);
        let below = self.ends.partition_point(|&end| 2 * end <= total);
        // `below` records take at most half of the bytes, and one more record makes it more than
        // half.
        let left = |count: usize| count.checked_sub(1).map_or(0, |i| self.ends[i]);
        let nearer_above = 2 * left(below) + self.ends.get(below).map_or(0, |end| end - left(below)) < total;
        (below + usize::from(nearer_above)).clamp(1, self.count() - 1)
    }

    /// The key between records `place - 1` and `place`. Separators between inner pages are the low
    /// fences of children, so they are not shortened.
    fn separator(&self, place: usize) -> Vec<u8> {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        self.key_into(place, &mut right);
        if self.page.is_leaf() {
            self.key_into(place - 1, &mut left);
            let length = separator_between(&left, &right).len();
            right.truncate(length);
        }
        right
    }

    /// Returns whether both sides fit. Records count with their size under the old prefix.
    fn both_fit(&self, place: usize, separator_len: usize) -> bool {
        let capacity = self.page.bytes().len() - HEADER_BYTES;
        let (left, total) = (self.ends[place - 1], self.ends[self.ends.len() - 1]);
        let high_len = self.page.high().map_or(0, <[u8]>::len);
        left + self.page.low().len() + separator_len <= capacity
            && total - left + separator_len + high_len <= capacity
    }

    fn plan(&self, place: usize, separator: Vec<u8>) -> SplitPlan {
        let pending_left = self.pending.index < place;
        let left_count = place - usize::from(pending_left && !self.pending.replaces);
        let (pending_side, skipped) = if pending_left { (Side::Left, 0) } else { (Side::Right, place) };
        SplitPlan { left_count, separator, pending_side, pending_index: self.pending.index - skipped }
    }
}

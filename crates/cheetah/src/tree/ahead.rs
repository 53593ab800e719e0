//! Predicts the leaves that a cursor will visit, so that the pool reads them ahead.
//!
//! A cursor that has crossed a few leaves in one direction will probably cross more; the inner
//! pages above the leaves name them. The first request is for a few leaves. Later requests are for
//! more, up to the pool's window.
//!
//! Invariants
//!   I1  The prediction is only a hint. Leaves may be split or merged meanwhile: the cursor
//!       searches for its next leaf itself. Errors are ignored here: the thread that needs the page
//!       meets the error again.
//!   I2  While the pool reads nothing ahead, no page is touched.

use super::descend::Target;
use super::Tree;
use crate::base::{reach, sound, PageId, Result};
use crate::pool::REQUEST_PAGES_MAX;
use std::collections::VecDeque;

/// The minimum number of leaves crossed in a row for a cursor to count as a scan.
const CROSSED_MIN: usize = 2;
/// The number of leaves in the first request.
const WINDOW_MIN: usize = 4;
/// The maximum number of leaves in a row that a cursor may reach without having requested them.
/// After one more leaf the cursor discards its lists, because the tree has changed.
const STRANGERS_MAX: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    Forward,
    Backward,
}

#[derive(Default, Debug)]
pub(super) struct Ahead {
    direction: Option<Direction>,
    /// The number of leaves crossed in `direction` so far.
    crossed: usize,
    /// Requested leaves not yet reached, the next one first.
    asked: VecDeque<PageId>,
    /// Leaves after `asked` whose page IDs are known.
    known: VecDeque<PageId>,
    /// The fence after `known`; empty at the end of the tree.
    fence: Vec<u8>,
    /// The number of leaves reached in a row that were not in `asked`.
    strangers: usize,
    window: usize,
    /// The cursor needs no keys from here on; applies only while the cursor moves forward.
    limit: Option<Vec<u8>>,
}

impl Ahead {
    /// Ends the scan: the cursor moves to another place.
    pub(super) fn stop(&mut self) {
        (self.direction, self.limit) = (None, None);
    }

    pub(super) fn is_scan(&self) -> bool {
        sound!(
            self.direction.is_some() && self.crossed >= CROSSED_MIN,
            "cursor: copy leaves however far it goes"
        )
    }

    /// Limits read-ahead to keys below `limit`, until the next [`stop`](Self::stop).
    pub(super) fn set_limit(&mut self, limit: Option<Vec<u8>>) {
        self.limit = limit;
    }

    /// Notes that the cursor has crossed to the leaf `pid`. `fence` divides it from the next leaf;
    /// it is empty at the end of the tree.
    pub(super) fn reached(&mut self, tree: &Tree, direction: Direction, pid: PageId, fence: &[u8]) {
        if self.direction != Some(direction) {
            (self.direction, self.crossed) = (Some(direction), 0);
        }
        self.crossed += 1;
        let window_max = tree.pool.read_ahead_window();
        if self.crossed < CROSSED_MIN || window_max == 0 {
            return;
        }
        if self.crossed == CROSSED_MIN || self.has_lost_its_way(pid) {
            self.begin(fence);
        }
        if 2 * self.asked.len() <= self.window {
            self.window = (2 * self.window).max(WINDOW_MIN).min(window_max);
            self.ask(tree, direction);
        }
    }

    fn begin(&mut self, fence: &[u8]) {
        self.asked.clear();
        self.known.clear();
        self.fence.clear();
        self.fence.extend_from_slice(fence);
        (self.strangers, self.window) = (0, 0);
    }

    /// Removes `pid` and the leaves before it from `asked`. Returns whether too many leaves in a
    /// row were not requested.
    fn has_lost_its_way(&mut self, pid: PageId) -> bool {
        match self.asked.iter().position(|&asked| asked == pid) {
            Some(at) => {
                self.asked.drain(..=at);
                self.strangers = 0;
            }
            None => self.strangers += 1,
        }
        self.strangers > STRANGERS_MAX
    }

    fn ask(&mut self, tree: &Tree, direction: Direction) {
        while self.asked.len() < self.window {
            if self.known.is_empty() && !self.learn(tree, direction) {
                return;
            }
            let room = self.window - self.asked.len();
            let count = room.min(self.known.len()).min(REQUEST_PAGES_MAX);
            let request: Vec<PageId> = self.known.drain(..count).collect();
            tree.pool.read_ahead(&request);
            self.asked.extend(request);
        }
    }

    /// Adds to `known` the next leaves after the fence that are under one inner page. Returns
    /// `false` if none was added.
    fn learn(&mut self, tree: &Tree, direction: Direction) -> bool {
        if self.fence.is_empty() {
            return false;
        }
        let fence = std::mem::take(&mut self.fence);
        let limit = self.limit.as_deref().filter(|_| direction == Direction::Forward);
        if limit.is_some_and(|limit| *fence >= *limit) {
            return false;
        }
        let learnt = tree.leaves_behind(&fence, direction, limit, &mut self.known);
        self.fence = learnt.unwrap_or_default();
        !self.known.is_empty()
    }
}

impl Tree {
    /// Adds to `leaves` the leaf that follows `fence` in `direction`, and the leaves after it under
    /// the same inner page, in the order of the scan, except those that begin at or above `limit`.
    /// Returns the fence after them, empty at the end of the tree or if `limit` ended the list.
    fn leaves_behind(
        &self,
        fence: &[u8],
        direction: Direction,
        limit: Option<&[u8]>,
        leaves: &mut VecDeque<PageId>,
    ) -> Result<Vec<u8>> {
        let target = match direction {
            Direction::Forward => Target::Key(fence),
            Direction::Backward => Target::Below(fence),
        };
        self.with_page(target, 1, &mut (), |_, page| {
            if page.is_leaf() {
                return Vec::new();
            }
            let slot = target.slot_in(page);
            let next = match direction {
                Direction::Forward => {
                    let mut key = Vec::new();
                    let mut is_wanted = |other: usize| {
                        let Some(limit) = limit.filter(|_| other > slot) else { return true };
                        key.clear();
                        page.key_into(other, &mut key);
                        *key < *limit
                    };
                    let end = (slot..page.count()).find(|&slot| !is_wanted(slot));
                    let wanted = slot..end.unwrap_or(page.count());
                    leaves.extend(wanted.map(|slot| page.child(slot)));
                    if end.is_some() {
                        reach::mark("read-ahead ends with the range");
                        return Vec::new();
                    }
                    page.high().unwrap_or_default()
                }
                Direction::Backward => {
                    leaves.extend((0..=slot).rev().map(|slot| page.child(slot)));
                    page.low()
                }
            };
            next.to_vec()
        })
    }
}

//! Which leaves a cursor is about to visit, for the pool to read ahead.
//!
//! A cursor that has crossed a few leaves in one direction will cross more. Their numbers stand in
//! the inner pages above the leaves. They are asked for some at a time, more each time, up to the
//! pool's window.
//!
//! Invariants
//!   I1  All of this is a hint. Leaves may be split or merged in between: the cursor finds its way
//!       by itself, and an error met here is met again by whoever needs the page.
//!   I2  While the pool reads nothing ahead, no page is touched.

use super::descend::Target;
use super::Tree;
use crate::base::{reach, sound, PageId, Result};
use crate::pool::REQUEST_PAGES_MAX;
use std::collections::VecDeque;

/// Leaves crossed in a row that look like a scan.
const CROSSED_MIN: usize = 2;
/// Leaves asked for first.
const WINDOW_MIN: usize = 4;
/// Leaves reached in a row that had not been asked for, before the list is given up: the tree is
/// not what it was.
const STRANGERS_MAX: usize = 8;

/// Where a cursor goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    Forward,
    Backward,
}

/// The leaves that are known, and those that were asked for, ahead of one cursor.
#[derive(Default, Debug)]
pub(super) struct Ahead {
    direction: Option<Direction>,
    /// Leaves crossed in that direction since it began.
    crossed: usize,
    /// Leaves asked for that the cursor has not reached, the next one first.
    asked: VecDeque<PageId>,
    /// Leaves behind those, as far as their numbers are known.
    known: VecDeque<PageId>,
    /// Where the leaves behind those begin; empty at the end of the tree.
    fence: Vec<u8>,
    /// Leaves reached in a row that were not in `asked`.
    strangers: usize,
    window: usize,
    /// Nothing from this key on is wanted; only for a cursor that goes forward.
    limit: Option<Vec<u8>>,
}

impl Ahead {
    /// The cursor goes elsewhere.
    pub(super) fn stop(&mut self) {
        (self.direction, self.limit) = (None, None);
    }

    /// Whether the cursor has crossed a few leaves in a row.
    pub(super) fn is_scan(&self) -> bool {
        sound!(
            self.direction.is_some() && self.crossed >= CROSSED_MIN,
            "cursor: copy leaves however far it goes"
        )
    }

    /// The cursor wants nothing from `limit` on, until it goes elsewhere.
    pub(super) fn set_limit(&mut self, limit: Option<Vec<u8>>) {
        self.limit = limit;
    }

    /// The cursor has crossed to leaf `pid`, behind whose `fence` the next leaf is, unless that is
    /// empty.
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

    /// Strikes `pid`, and the leaves that should have come before it, off the list.
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

    /// Asks for what the window has room for.
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

    /// Learns the numbers of the leaves behind the fence that are under one inner page; `false` if
    /// it has no such leaves.
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
    /// Adds to `leaves` those under one inner page that lie behind `fence`, in the order in which a
    /// cursor comes to them, as far as they begin before `limit`; returns the fence behind them,
    /// empty at the end of the tree.
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

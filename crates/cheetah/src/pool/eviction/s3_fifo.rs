//! The order in which frames are evicted: the shape of S3-FIFO, so that pages seen once leave
//! before pages seen again, and a scan passes through a tenth of the pool.
//!
//! A page enters the small queue; when it was used again before its turn it moves on to the main
//! queue, where each further use buys another round. A page read again soon after it left the small
//! queue enters the main queue directly; when it left is noted in its page table entry, not here. A
//! page whose image was looked into counts as one that has come and left at that moment.
//!
//! Source    Yang et al. 2023, "FIFO queues are all you need for cache eviction". We differ: the
//!           ghost queue is a coarse time stamp per page.

use super::fifo_lists::FifoLists;
use crate::base::PageId;
use crate::pool::frames::{EvictionTime, Frame};
use parking_lot::Mutex;
use std::sync::Arc;

/// A page read again within this number of eighths of a turnover of the pool is "soon".
const SOON_EIGHTHS: u16 = 8;
/// Frames looked at before a search for a victim gives up.
const LOOKS_MAX: usize = 64;

/// The clock of evictions.
#[derive(Default, Debug)]
struct Turnover {
    time: EvictionTime,
    /// Since `time` began.
    evictions: usize,
}

/// See the module.
#[derive(Default, Debug)]
pub(in crate::pool) struct Queues {
    lists: Mutex<FifoLists>,
    clock: Mutex<Turnover>,
}

/// A frame taken out of the queues to be evicted, or put back.
#[derive(Debug)]
pub(in crate::pool) struct Candidate {
    pub(in crate::pool) frame: Arc<Frame>,
    from_small: bool,
}

impl Queues {
    /// Adds a frame that has just come to life.
    pub(in crate::pool) fn add(&self, frame: &Arc<Frame>, evicted: EvictionTime) {
        let soon = self.is_soon(evicted);
        let mut lists = self.lists.lock();
        if soon {
            lists.push_main(frame);
        } else {
            lists.push_small(frame);
        }
    }

    /// The next frame to evict, by the rule above; `None` when nothing deserved it within a bounded
    /// search.
    pub(in crate::pool) fn candidate(&self) -> Option<Candidate> {
        let mut lists = self.lists.lock();
        for _ in 0..LOOKS_MAX {
            let (frame, from_small) = lists.pop()?;
            let Some(frame) = frame else { continue };
            match (from_small, frame.uses()) {
                (_, 0) => return Some(Candidate { frame, from_small }),
                (true, _) => frame.forget_uses(),
                (false, _) => frame.forget_one_use(),
            }
            lists.push_main(&frame);
        }
        None
    }

    /// Notes that a page has been freed whose frame is in the queues.
    pub(in crate::pool) fn note_freed(&self) {
        self.lists.lock().note_freed();
    }

    /// Puts back a candidate that cannot be evicted now.
    pub(in crate::pool) fn put_back(&self, candidate: Candidate) {
        self.lists.lock().push_main(&candidate.frame);
    }

    /// Notes an eviction; the result is kept in the page's entry.
    pub(in crate::pool) fn evicted(&self, candidate: &Candidate) -> EvictionTime {
        let time = self.passed();
        if candidate.from_small {
            time
        } else {
            EvictionTime::default()
        }
    }

    /// Counts a page that is read without a frame as if it had had one for an instant; the result
    /// is kept in the page's entry.
    pub(in crate::pool) fn passed(&self) -> EvictionTime {
        let eighth = (self.frames_count() / 8).max(1);
        let mut clock = self.clock.lock();
        clock.evictions += 1;
        if clock.time.0 == 0 || clock.evictions >= eighth {
            *clock = Turnover { time: EvictionTime(clock.time.0.wrapping_add(1).max(1)), evictions: 0 };
        }
        clock.time
    }

    /// Whether a page that left at `evicted` did so less than a turnover ago.
    pub(in crate::pool) fn is_soon(&self, evicted: EvictionTime) -> bool {
        evicted.0 != 0 && self.now().0.wrapping_sub(evicted.0) < SOON_EIGHTHS
    }

    /// Pages among the next `looks` of each list that will be evicted when their turn comes, and
    /// must be written before: changed ones that nobody has used since they were looked at last.
    /// The first to leave come first.
    pub(in crate::pool) fn leaving_dirty(&self, looks: usize) -> Vec<PageId> {
        let lists = self.lists.lock();
        let next = lists.next(looks);
        next.filter(|frame| frame.uses() == 0 && frame.dirty().is_some()).map(|frame| frame.pid).collect()
    }

    /// Places in the small queue, and in both, those of pages that were freed not long ago
    /// included.
    pub(in crate::pool) fn counts(&self) -> (usize, usize) {
        let lists = self.lists.lock();
        (lists.small_count(), lists.count())
    }

    /// As the second of [`counts`](Self::counts).
    pub(in crate::pool) fn frames_count(&self) -> usize {
        self.lists.lock().count()
    }

    fn now(&self) -> EvictionTime {
        self.clock.lock().time
    }
}

//! The eviction order, based on S3-FIFO. Pages used once are evicted before pages used repeatedly,
//! and a scan uses only a tenth of the pool.
//!
//! A page enters the small queue. If it is used again before it reaches the front, it moves to the
//! main queue, where each further use adds another round. The page table entry notes when a page
//! left the small queue: if it is read again soon after, it enters the main queue directly. A leaf
//! that is read without a frame (a peek or a copy) counts as evicted from the small queue at that
//! moment. A leaf that is peeked at to be changed counts only when the change becomes pending.
//!
//! Source    Yang et al. 2023, "FIFO queues are all you need for cache eviction". We differ: the
//!           ghost queue is a coarse time stamp per page.

use super::fifo_lists::FifoLists;
use crate::base::PageId;
use crate::pool::frames::{EvictionTime, Frame};
use parking_lot::Mutex;
use std::sync::Arc;

/// The time within which a page must be read again to count as read soon, in eighths of a turnover
/// of the pool.
const SOON_EIGHTHS: u16 = 8;
/// The maximum number of frames checked in a search for a candidate.
const LOOKS_MAX: usize = 64;

/// The clock of evictions.
#[derive(Default, Debug)]
struct Turnover {
    time: EvictionTime,
    /// Number of evictions since `time` began.
    evictions: usize,
}

/// See the module.
#[derive(Default, Debug)]
pub(in crate::pool) struct Queues {
    lists: Mutex<FifoLists>,
    clock: Mutex<Turnover>,
}

/// A frame that was taken out of the queues, to be evicted or put back.
#[derive(Debug)]
pub(in crate::pool) struct Candidate {
    pub(in crate::pool) frame: Arc<Frame>,
    from_small: bool,
}

impl Queues {
    /// Adds a new frame.
    pub(in crate::pool) fn add(&self, frame: &Arc<Frame>, evicted: EvictionTime) {
        let soon = self.is_soon(evicted);
        let mut lists = self.lists.lock();
        if soon {
            lists.push_main(frame);
        } else {
            lists.push_small(frame);
        }
    }

    /// Returns the next frame to evict according to the rules above, or `None` if a bounded search
    /// finds none.
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

    /// Notes that a page with a frame in the queues was freed.
    pub(in crate::pool) fn note_freed(&self) {
        self.lists.lock().note_freed();
    }

    /// Puts back a candidate that cannot be evicted now.
    pub(in crate::pool) fn put_back(&self, candidate: Candidate) {
        self.lists.lock().push_main(&candidate.frame);
    }

    /// Notes an eviction. The caller stores the result in the page's entry.
    pub(in crate::pool) fn evicted(&self, candidate: &Candidate) -> EvictionTime {
        let time = self.passed();
        if candidate.from_small {
            time
        } else {
            EvictionTime::default()
        }
    }

    /// Counts a page that is read without a frame as evicted now. The caller stores the result in
    /// the page's entry.
    pub(in crate::pool) fn passed(&self) -> EvictionTime {
        let eighth = (self.frames_count() / 8).max(1);
        let mut clock = self.clock.lock();
        clock.evictions += 1;
        if clock.time.0 == 0 || clock.evictions >= eighth {
            *clock = Turnover { time: EvictionTime(clock.time.0.wrapping_add(1).max(1)), evictions: 0 };
        }
        clock.time
    }

    /// Returns whether a page that was evicted at `evicted` was evicted less than a turnover ago.
    pub(in crate::pool) fn is_soon(&self, evicted: EvictionTime) -> bool {
        evicted.0 != 0 && self.now().0.wrapping_sub(evicted.0) < SOON_EIGHTHS
    }

    /// Returns the dirty pages among the next `looks` entries of each list that will be evicted
    /// soon, because they were not used since they were last checked. The pages are in the order of
    /// eviction.
    pub(in crate::pool) fn leaving_dirty(&self, looks: usize) -> Vec<PageId> {
        let lists = self.lists.lock();
        let next = lists.next(looks);
        next.filter(|frame| frame.uses() == 0 && frame.dirty().is_some()).map(|frame| frame.pid).collect()
    }

    /// Number of entries in the small queue, and in both queues. The numbers include pages that
    /// were freed recently.
    pub(in crate::pool) fn counts(&self) -> (usize, usize) {
        let lists = self.lists.lock();
        (lists.small_count(), lists.count())
    }

    /// The number of entries in both queues.
    pub(in crate::pool) fn frames_count(&self) -> usize {
        self.lists.lock().count()
    }

    fn now(&self) -> EvictionTime {
        self.clock.lock().time
    }
}

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
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// The time within which a page must be read again to count as read soon, in eighths of a turnover
/// of the pool.
const SOON_EIGHTHS: u16 = 8;
/// The maximum number of frames checked in a search for a candidate.
const LOOKS_MAX: usize = 64;

/// The clock of evictions: the time in the upper 16 bits, and below it the evictions that are left
/// until the time advances.
#[derive(Default, Debug)]
struct Turnover(AtomicU64);

const TIME_SHIFT: u32 = 48;

impl Turnover {
    fn now(&self) -> EvictionTime {
        time_of(self.0.load(Ordering::Relaxed))
    }

    /// Counts an eviction, and returns the time. `eighth` computes the number of evictions after
    /// which the time advances again.
    fn tick(&self, eighth: impl Fn() -> usize) -> EvictionTime {
        let next = |state: u64| match state << (u64::BITS - TIME_SHIFT) {
            0 => {
                let time = time_of(state).0.wrapping_add(1).max(1);
                u64::from(time) << TIME_SHIFT | (eighth().max(1) - 1) as u64
            }
            _ => state - 1,
        };
        let mut state = self.0.load(Ordering::Relaxed);
        loop {
            let after = next(state);
            let exchanged = self.0.compare_exchange_weak(state, after, Ordering::Relaxed, Ordering::Relaxed);
            match exchanged {
                Ok(_) => return time_of(after),
                Err(other) => state = other,
            }
        }
    }
}

fn time_of(state: u64) -> EvictionTime {
    EvictionTime((state >> TIME_SHIFT) as u16)
}

/// See the module.
#[derive(Default, Debug)]
pub(in crate::pool) struct Queues {
    lists: Mutex<FifoLists>,
    clock: Turnover,
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
        self.clock.tick(|| self.frames_count() / 8)
    }

    /// Returns whether a page that was evicted at `evicted` was evicted less than a turnover ago.
    pub(in crate::pool) fn is_soon(&self, evicted: EvictionTime) -> bool {
        evicted.0 != 0 && self.clock.now().0.wrapping_sub(evicted.0) < SOON_EIGHTHS
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_advances_with_each_eighth_of_the_frames_and_is_never_zero() {
        let clock = Turnover::default();
        let times: Vec<u16> = (0..9).map(|_| clock.tick(|| 4).0).collect();
        assert_eq!(times, [1, 1, 1, 1, 2, 2, 2, 2, 3]);
        assert_eq!(clock.now(), EvictionTime(3));
        let last = Turnover(AtomicU64::new(u64::from(u16::MAX) << TIME_SHIFT));
        assert_eq!((last.tick(|| 0), last.tick(|| 0)), (EvictionTime(1), EvictionTime(2)));
    }

    #[test]
    fn threads_lose_no_eviction() {
        let clock = Turnover::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        clock.tick(|| 8);
                    }
                });
            }
        });
        assert_eq!(clock.now(), EvictionTime(500));
    }
}

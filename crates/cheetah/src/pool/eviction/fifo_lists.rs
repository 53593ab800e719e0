//! The two eviction lists, each in the order in which frames were queued.
//!
//! Frames of all sizes are in the same order, and the oldest frame is evicted next. Repeated use,
//! not size, decides which frames stay. A frame that makes room for a frame of another size returns
//! its memory to the system, which takes some microseconds and leaves no holes (`buffers`).
//!
//! The lists do not keep frames alive: the memory of a freed page is released with the last
//! reference to its frame. Its list entry is dropped when the entry reaches the front of the list.
//! If nothing is evicted, entries of freed pages are dropped once they are half of all entries.
//! Each push then takes some entries from the front of both lists and queues the entries in use
//! again, until all entries were checked.

use crate::pool::frames::Frame;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// The small list's share of the bytes in both lists is 1/`SMALL_SHARE`.
const SMALL_SHARE: usize = 10;

/// The minimum number of entries of freed pages for which a search for them starts.
const FREED_MIN: usize = 1024;

/// The number of entries checked in each push while entries of freed pages are dropped.
const LOOKS_PER_PUSH: usize = 8;

/// The list entry of a frame. If the page was freed, the reference is dead.
#[derive(Debug)]
struct Queued {
    frame: Weak<Frame>,
    bytes: usize,
}

/// Frames in the order in which they were queued.
#[derive(Default, Debug)]
struct List {
    frames: VecDeque<Queued>,
    bytes: usize,
}

/// See the module.
#[derive(Default, Debug)]
pub(in crate::pool) struct FifoLists {
    small: List,
    main: List,
    /// The approximate number of entries of freed pages. The number is too large if a page was
    /// freed while its entry was out of the list for eviction.
    freed: usize,
    /// The number of remaining checks until every entry was checked.
    to_look: usize,
}

impl FifoLists {
    /// Takes the next entry. Returns its frame, unless the page was freed, and whether it was in
    /// the small list. Returns `None` if both lists are empty.
    pub(in crate::pool) fn pop(&mut self) -> Option<(Option<Arc<Frame>>, bool)> {
        let bytes = self.small.bytes + self.main.bytes;
        let small = self.small.bytes * SMALL_SHARE > bytes || self.main.frames.is_empty();
        let list = if small { &mut self.small } else { &mut self.main };
        Some((list.pop(&mut self.freed)?, small))
    }

    pub(in crate::pool) fn push_small(&mut self, frame: &Arc<Frame>) {
        self.small.push(frame);
        self.drop_freed();
    }

    pub(in crate::pool) fn push_main(&mut self, frame: &Arc<Frame>) {
        self.main.push(frame);
        self.drop_freed();
    }

    /// Notes that a page with an entry was freed.
    pub(in crate::pool) fn note_freed(&mut self) {
        self.freed += 1;
    }

    fn drop_freed(&mut self) {
        if self.freed > FREED_MIN.max(self.count() / 2) {
            // Checks alternate between the lists, and one list may have all entries: so up to two
            // checks per entry are needed.
            (self.freed, self.to_look) = (0, 2 * self.count());
        }
        for _ in 0..LOOKS_PER_PUSH.min(self.to_look) {
            self.to_look -= 1;
            let list = if self.to_look % 2 == 0 { &mut self.small } else { &mut self.main };
            if let Some(Some(frame)) = list.pop(&mut self.freed) {
                list.push(&frame);
            }
        }
    }

    /// Iterates over the frames of pages that were not freed among the next `count` entries of each
    /// list, the next entry first.
    pub(in crate::pool) fn next(&self, count: usize) -> impl Iterator<Item = Arc<Frame>> + '_ {
        let both = self.small.frames.iter().take(count).chain(self.main.frames.iter().take(count));
        both.filter_map(|queued| queued.frame.upgrade())
    }

    /// Number of entries in the small list.
    pub(in crate::pool) fn small_count(&self) -> usize {
        self.small.frames.len()
    }

    /// Number of entries in both lists.
    pub(in crate::pool) fn count(&self) -> usize {
        self.small.frames.len() + self.main.frames.len()
    }
}

impl List {
    /// Takes the first entry. Returns its frame. For a freed page, returns `Some(None)` and
    /// decrements `freed`.
    fn pop(&mut self, freed: &mut usize) -> Option<Option<Arc<Frame>>> {
        let queued = self.frames.pop_front()?;
        self.bytes -= queued.bytes;
        let frame = queued.frame.upgrade().filter(|frame| !frame.is_detached());
        *freed = freed.saturating_sub(usize::from(frame.is_none()));
        Some(frame)
    }

    fn push(&mut self, frame: &Arc<Frame>) {
        self.bytes += frame.bytes_count;
        self.frames.push_back(Queued { frame: Arc::downgrade(frame), bytes: frame.bytes_count });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{PageId, TreeId};
    use crate::memory::MemoryBudget;
    use crate::pool::frames::Buffers;
    use crate::pool::PageClass;
    use std::collections::BTreeSet;

    fn frame(buffers: &Arc<Buffers>, pid: u64, class: PageClass) -> Arc<Frame> {
        let bytes = buffers.take(class);
        Arc::new(Frame::new(PageId(pid), TreeId(16), class, bytes, pid, buffers.clone()))
    }

    #[test]
    fn the_oldest_frame_is_next_whatever_its_size() {
        let buffers = Arc::new(Buffers::new(512, Arc::new(MemoryBudget::new(1 << 20))));
        let mut lists = FifoLists::default();
        let classes = [PageClass::Large, PageClass::Base, PageClass::Wide, PageClass::Base];
        let frames = (1..).zip(classes).map(|(pid, class)| frame(&buffers, pid, class)).collect::<Vec<_>>();
        frames.iter().for_each(|frame| lists.push_main(frame));
        let mut pop = || lists.pop().map(|(frame, from_small)| (frame.unwrap().pid, from_small));
        let due = |pid| Some((PageId(pid), false));
        assert_eq!([pop(), pop(), pop(), pop(), pop()], [due(1), due(2), due(3), due(4), None]);
    }

    #[test]
    fn the_small_list_is_due_when_it_holds_more_than_a_tenth_of_the_bytes() {
        let buffers = Arc::new(Buffers::new(512, Arc::new(MemoryBudget::new(1 << 20))));
        let mut lists = FifoLists::default();
        let frames = (0..40).map(|pid| frame(&buffers, pid, PageClass::Base)).collect::<Vec<_>>();
        frames.iter().for_each(|frame| lists.push_main(frame));
        let (base, large) = (frame(&buffers, 100, PageClass::Base), frame(&buffers, 101, PageClass::Large));
        lists.push_small(&base);
        assert!(!lists.pop().unwrap().1, "512 bytes of 21,000");
        lists.push_small(&large);
        let (first, from_small) = lists.pop().unwrap();
        assert_eq!((first.unwrap().pid, from_small), (PageId(100), true), "2,560 bytes of 22,500");
    }

    #[test]
    fn frames_that_have_gone_give_their_memory_back_and_leave_a_place_without_one() {
        let buffers = Arc::new(Buffers::new(512, Arc::new(MemoryBudget::new(1 << 20))));
        let mut lists = FifoLists::default();
        let frames = [1, 2].map(|pid| frame(&buffers, pid, PageClass::Base));
        frames.iter().for_each(|frame| lists.push_main(frame));
        let [first, second] = frames;
        drop(first);
        assert_eq!(buffers.in_use(), 512);
        assert_eq!(lists.next(2).map(|frame| frame.pid).collect::<Vec<_>>(), [PageId(2)]);
        let mut pop = || lists.pop().map(|(frame, _)| frame.map(|frame| frame.pid));
        assert_eq!([pop(), pop(), pop()], [Some(None), Some(Some(second.pid)), None]);
        assert_eq!((lists.main.bytes, lists.count()), (0, 0));
    }

    #[test]
    fn places_of_freed_pages_do_not_pile_up_though_nothing_is_evicted() {
        let buffers = Arc::new(Buffers::new(512, Arc::new(MemoryBudget::new(1 << 20))));
        let mut lists = FifoLists::default();
        let used = (0..100).map(|pid| frame(&buffers, pid, PageClass::Base)).collect::<Vec<_>>();
        used.iter().for_each(|frame| lists.push_main(frame));
        for pid in 100..100_000 {
            let short_lived = frame(&buffers, pid, PageClass::Base);
            lists.push_small(&short_lived);
            short_lived.detach();
            lists.note_freed();
        }
        assert!(lists.count() < 8 * FREED_MIN, "{}", lists.count());
        let mut left = BTreeSet::new();
        while let Some((place, _)) = lists.pop() {
            left.extend(place.map(|frame| frame.pid));
        }
        assert_eq!(left, used.iter().map(|frame| frame.pid).collect(), "frames in use keep their entries");
        assert_eq!((lists.small.bytes, lists.main.bytes), (0, 0));
    }
}

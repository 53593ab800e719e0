//! The two lists of the evictor, each in the order in which frames were queued.
//!
//! Frames of all sizes stand in one order, the oldest is due: repeated use decides which stay, not
//! their size. A frame of one size that makes room for another gives its memory back to the system,
//! which takes some microseconds and leaves no holes (`buffers`).
//!
//! The lists keep no frame alive: a freed page's memory goes back when the last reference to it
//! goes. Its place here goes when its turn comes, or, where nothing is evicted, when half of the
//! places are of freed pages: then each frame that is queued has some places at the front of both
//! lists looked at, and those in use there queued again, once round.

use crate::pool::frames::Frame;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// The small list's share of the bytes in both lists: one in ten.
const SMALL_SHARE: usize = 10;

/// Places of freed pages that are kept, whatever the number of the others.
const FREED_MIN: usize = 1024;

/// Places looked at for each frame that is queued, while those of freed pages are dropped.
const LOOKS_PER_PUSH: usize = 8;

/// The place of a frame; of a freed page it leads nowhere.
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
    /// About how many places are of freed pages; too many when one was freed while the evictor had
    /// taken it out.
    freed: usize,
    /// How often to look until every place has been looked at.
    to_look: usize,
}

impl FifoLists {
    /// Takes the place to look at next, with its frame unless the page has been freed, and whether
    /// it comes from the small list. `None` when both are empty.
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

    /// Notes that a page has been freed which has a place here.
    pub(in crate::pool) fn note_freed(&mut self) {
        self.freed += 1;
    }

    fn drop_freed(&mut self) {
        if self.freed > FREED_MIN.max(self.count() / 2) {
            // All in each list: they are looked at in turn.
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

    /// Those of the next `count` of both lists that have not gone, the next one first.
    pub(in crate::pool) fn next(&self, count: usize) -> impl Iterator<Item = Arc<Frame>> + '_ {
        let both = self.small.frames.iter().take(count).chain(self.main.frames.iter().take(count));
        both.filter_map(|queued| queued.frame.upgrade())
    }

    /// Places in the small list.
    pub(in crate::pool) fn small_count(&self) -> usize {
        self.small.frames.len()
    }

    /// Places in both lists.
    pub(in crate::pool) fn count(&self) -> usize {
        self.small.frames.len() + self.main.frames.len()
    }
}

impl List {
    /// Takes the first place, with its frame; one of a freed page is one less of `freed`.
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
        assert_eq!(left, used.iter().map(|frame| frame.pid).collect(), "what is in use has kept a place");
        assert_eq!((lists.small.bytes, lists.main.bytes), (0, 0));
    }
}

//! The two lists of the evictor, each in the order in which frames were queued.
//!
//! Frames of all sizes stand in one order, the oldest is due: what is needed again decides who stays, not its size. A frame
//! of one size that makes room for another gives its memory back to the system, which takes some microseconds and leaves
//! no holes (`buffers`).

use super::frame::Frame;
use std::collections::VecDeque;
use std::sync::Arc;

/// The small list's share of the bytes in both lists: one in ten.
const SMALL_SHARE: usize = 10;

/// Frames in the order in which they were queued.
#[derive(Default, Debug)]
struct List {
    frames: VecDeque<Arc<Frame>>,
    bytes: usize,
}

/// See the module.
#[derive(Default, Debug)]
pub(super) struct Lists {
    small: List,
    main: List,
}

impl Lists {
    /// Takes the frame to look at next, and whether it comes from the small list.
    pub(super) fn pop(&mut self) -> Option<(Arc<Frame>, bool)> {
        let bytes = self.small.bytes + self.main.bytes;
        let small = self.small.bytes * SMALL_SHARE > bytes || self.main.frames.is_empty();
        let list = if small { &mut self.small } else { &mut self.main };
        Some((list.pop()?, small))
    }

    pub(super) fn push_small(&mut self, frame: Arc<Frame>) {
        self.small.push(frame);
    }

    pub(super) fn push_main(&mut self, frame: Arc<Frame>) {
        self.main.push(frame);
    }

    /// The next `count` frames of both lists, the next one first.
    pub(super) fn next(&self, count: usize) -> impl Iterator<Item = &Arc<Frame>> {
        self.small.frames.iter().take(count).chain(self.main.frames.iter().take(count))
    }

    /// Frames in the small list.
    pub(super) fn small_count(&self) -> usize {
        self.small.frames.len()
    }

    /// Frames in both lists.
    pub(super) fn count(&self) -> usize {
        self.small.frames.len() + self.main.frames.len()
    }
}

impl List {
    fn pop(&mut self) -> Option<Arc<Frame>> {
        let frame = self.frames.pop_front()?;
        self.bytes -= frame.bytes_count;
        Some(frame)
    }

    fn push(&mut self, frame: Arc<Frame>) {
        self.bytes += frame.bytes_count;
        self.frames.push_back(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{PageId, TreeId};
    use crate::pool::buffers::Buffers;
    use crate::pool::memory::Memory;
    use crate::pool::PageClass;

    fn frame(buffers: &Arc<Buffers>, pid: u64, class: PageClass) -> Arc<Frame> {
        let bytes = buffers.take(class);
        Arc::new(Frame::new(PageId(pid), TreeId(16), class, bytes, pid, buffers.clone()))
    }

    #[test]
    fn the_oldest_frame_is_next_whatever_its_size() {
        let buffers = Arc::new(Buffers::new(512, Arc::new(Memory::new(1 << 20))));
        let mut lists = Lists::default();
        let classes = [PageClass::Large, PageClass::Base, PageClass::Wide, PageClass::Base];
        for (pid, class) in (1..).zip(classes) {
            lists.push_main(frame(&buffers, pid, class));
        }
        let mut pop = || lists.pop().map(|(frame, from_small)| (frame.pid, from_small));
        let due = |pid| Some((PageId(pid), false));
        assert_eq!([pop(), pop(), pop(), pop(), pop()], [due(1), due(2), due(3), due(4), None]);
    }

    #[test]
    fn the_small_list_is_due_when_it_holds_more_than_a_tenth_of_the_bytes() {
        let buffers = Arc::new(Buffers::new(512, Arc::new(Memory::new(1 << 20))));
        let mut lists = Lists::default();
        (0..40).for_each(|pid| lists.push_main(frame(&buffers, pid, PageClass::Base)));
        lists.push_small(frame(&buffers, 100, PageClass::Base));
        assert!(!lists.pop().unwrap().1, "512 bytes of 21,000");
        lists.push_small(frame(&buffers, 101, PageClass::Large));
        let (first, from_small) = lists.pop().unwrap();
        assert_eq!((first.pid, from_small), (PageId(100), true), "2,560 bytes of 22,500");
    }
}

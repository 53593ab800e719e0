//! The two lists of the evictor, by size class, and the choice of the class to evict from.
//!
//! Over all classes together the oldest frame is due. But giving a frame of one size for one of another takes the
//! allocator of the process, and memory that is given back in one size and wanted in another all the time ends up as
//! holes. So a page that is wanted takes the place of one of its own class, and what the classes owe each other by age
//! is noted. When that is a good part of all frames, some of it is paid, at most once in a turnover of all frames.

use super::frame::Frame;
use super::PageClass;
use std::collections::VecDeque;
use std::sync::Arc;

const CLASSES: usize = PageClass::ALL.len();
/// The small list's share of the bytes in both lists: one in ten.
const SMALL_SHARE: usize = 10;
/// Part of all bytes that one class may owe another before it pays.
const DEBT_PART: usize = 32;
/// How much older a class's next frame must be than another's to owe it a place.
const AGE_RATIO: u64 = 2;
/// Part of the smaller of two classes that is paid at once: more would turn the debt around.
const STEP_PART: usize = 8;

/// Frames of one class, each with the time at which it was queued.
type Queue = VecDeque<(u64, Arc<Frame>)>;

/// Frames of all classes in the order in which they were queued.
#[derive(Default, Debug)]
struct List {
    queues: [Queue; CLASSES],
    class_bytes: [usize; CLASSES],
    bytes: usize,
}

/// See the module.
#[derive(Default, Debug)]
pub(super) struct Lists {
    small: List,
    main: List,
    clock: u64,
    /// Bytes that class `i` should have got from class `j`, and has not. The opposite entry is the negative.
    owed: [[isize; CLASSES]; CLASSES],
    paying: Option<Payment>,
    /// Bytes taken since the last payment began.
    taken_bytes: usize,
}

/// A class gives frames to another until the debt is paid.
#[derive(Clone, Copy, Debug)]
struct Payment {
    to: PageClass,
    from: PageClass,
    bytes: usize,
}

impl Lists {
    /// Takes the frame to look at next, of class `wanted` when there is one and it is not its turn to pay; and whether
    /// it comes from the small list.
    pub(super) fn pop(&mut self, wanted: PageClass) -> Option<(Arc<Frame>, bool)> {
        let due_small = self.small.bytes * SMALL_SHARE > self.bytes() || self.main.bytes == 0;
        let class = self.class_to_take(due_small, wanted)?;
        let small = if self.list(due_small).has(class) { due_small } else { !due_small };
        let list = if small { &mut self.small } else { &mut self.main };
        let frame = list.pop(class)?;
        self.taken_bytes += frame.bytes_count;
        self.paid(wanted, class, frame.bytes_count);
        Some((frame, small))
    }

    /// The class whose frame a page of class `wanted` takes, and what that says about debts.
    fn class_to_take(&mut self, small: bool, wanted: PageClass) -> Option<PageClass> {
        let paying = self.paying.filter(|payment| payment.to == wanted && self.class_bytes(payment.from) > 0);
        if let Some(payment) = paying {
            return Some(payment.from);
        }
        let list = self.list(small);
        let oldest = list.oldest_class()?;
        if self.class_bytes(wanted) == 0 {
            return Some(oldest);
        }
        if list.age(oldest, self.clock) > list.age(wanted, self.clock) * AGE_RATIO {
            self.owe(wanted, oldest);
        }
        Some(wanted)
    }

    fn list(&self, small: bool) -> &List {
        if small {
            &self.small
        } else {
            &self.main
        }
    }

    pub(super) fn push_small(&mut self, frame: Arc<Frame>) {
        self.clock += 1;
        self.small.push(self.clock, frame);
    }

    pub(super) fn push_main(&mut self, frame: Arc<Frame>) {
        self.clock += 1;
        self.main.push(self.clock, frame);
    }

    /// The next `count` frames of each class in both lists, the next one first.
    pub(super) fn next(&self, count: usize) -> impl Iterator<Item = &Arc<Frame>> {
        let queues = self.small.queues.iter().chain(&self.main.queues);
        queues.flat_map(move |queue| queue.iter().take(count)).map(|(_, frame)| frame)
    }

    /// Frames in both lists.
    pub(super) fn count(&self) -> usize {
        let queues = self.small.queues.iter().chain(&self.main.queues);
        queues.map(Queue::len).sum()
    }

    /// Bytes of a page of a class that has some.
    fn page_bytes(&self, class: PageClass) -> usize {
        let count = self.small.queues[class as usize].len() + self.main.queues[class as usize].len();
        self.class_bytes(class) / count.max(1)
    }

    fn class_bytes(&self, class: PageClass) -> usize {
        self.small.class_bytes[class as usize] + self.main.class_bytes[class as usize]
    }

    fn bytes(&self) -> usize {
        self.small.bytes + self.main.bytes
    }

    fn owe(&mut self, to: PageClass, from: PageClass) {
        let limit = self.bytes() / DEBT_PART;
        let bytes = self.page_bytes(to);
        self.add_debt(to, from, bytes as isize);
        let owed = self.owed[to as usize][from as usize];
        let is_time = self.paying.is_none() && self.taken_bytes >= self.bytes();
        if is_time && owed > limit as isize {
            self.taken_bytes = 0;
            let step = self.class_bytes(to).min(self.class_bytes(from)) / STEP_PART;
            self.paying = Some(Payment { to, from, bytes: step.max(bytes).min(owed as usize) });
        }
    }

    fn paid(&mut self, to: PageClass, from: PageClass, bytes: usize) {
        let Some(payment) = self.paying.filter(|payment| (payment.to, payment.from) == (to, from)) else {
            return;
        };
        self.add_debt(to, from, -(bytes as isize));
        let bytes = payment.bytes.saturating_sub(bytes);
        self.paying = (bytes > 0).then_some(Payment { bytes, ..payment });
    }

    fn add_debt(&mut self, to: PageClass, from: PageClass, bytes: isize) {
        self.owed[to as usize][from as usize] += bytes;
        self.owed[from as usize][to as usize] -= bytes;
    }
}

impl List {
    fn oldest_class(&self) -> Option<PageClass> {
        let front = |class: &PageClass| self.queues[*class as usize].front().map(|(time, _)| *time);
        PageClass::ALL.into_iter().filter(|class| front(class).is_some()).min_by_key(front)
    }

    fn has(&self, class: PageClass) -> bool {
        !self.queues[class as usize].is_empty()
    }

    /// How long ago the frame in front was queued; 0 when there is none.
    fn age(&self, class: PageClass, now: u64) -> u64 {
        self.queues[class as usize].front().map_or(0, |(time, _)| now - time)
    }

    fn pop(&mut self, class: PageClass) -> Option<Arc<Frame>> {
        let (_, frame) = self.queues[class as usize].pop_front()?;
        self.bytes -= frame.bytes_count;
        self.class_bytes[class as usize] -= frame.bytes_count;
        Some(frame)
    }

    fn push(&mut self, time: u64, frame: Arc<Frame>) {
        self.bytes += frame.bytes_count;
        self.class_bytes[frame.class as usize] += frame.bytes_count;
        self.queues[frame.class as usize].push_back((time, frame));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{PageId, TreeId};
    use crate::pool::buffers::Buffers;
    use crate::pool::memory::Memory;

    fn frame(buffers: &Arc<Buffers>, pid: u64, class: PageClass) -> Arc<Frame> {
        let bytes = buffers.take(class);
        Arc::new(Frame::new(PageId(pid), TreeId(16), class, bytes, pid, buffers.clone()))
    }

    #[test]
    fn a_page_takes_the_place_of_its_own_class_until_much_is_owed() {
        let buffers = Arc::new(Buffers::new(512, Arc::new(Memory::new(1 << 20))));
        let mut lists = Lists::default();
        for pid in 0..200 {
            let class = if pid < 100 { PageClass::Base } else { PageClass::Large };
            lists.push_main(frame(&buffers, pid, class));
        }
        let mut classes = Vec::new();
        for pid in 200..2000 {
            let (popped, _) = lists.pop(PageClass::Large).unwrap();
            classes.push(popped.class);
            lists.push_main(frame(&buffers, pid, popped.class));
        }
        assert!(classes[..120].iter().all(|class| *class == PageClass::Large), "less than a turnover");
        assert!(classes.contains(&PageClass::Base), "the debt is never paid");
        let switches = classes.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(switches < 40, "{switches} switches");
    }

    #[test]
    fn a_class_without_frames_takes_the_oldest_of_the_others() {
        let buffers = Arc::new(Buffers::new(512, Arc::new(Memory::new(1 << 20))));
        let mut lists = Lists::default();
        lists.push_main(frame(&buffers, 1, PageClass::Large));
        lists.push_main(frame(&buffers, 2, PageClass::Base));
        let mut pop = || lists.pop(PageClass::Wide).map(|(frame, _)| frame.pid);
        assert_eq!([pop(), pop(), pop()], [Some(PageId(1)), Some(PageId(2)), None]);
    }

    #[test]
    fn a_class_takes_its_own_frames_from_either_list() {
        let buffers = Arc::new(Buffers::new(512, Arc::new(Memory::new(1 << 20))));
        let mut lists = Lists::default();
        lists.push_small(frame(&buffers, 1, PageClass::Base));
        lists.push_main(frame(&buffers, 2, PageClass::Large));
        let (popped, small) = lists.pop(PageClass::Large).unwrap();
        assert_eq!((popped.pid, small), (PageId(2), false));
    }
}

//! Memory blocks of one size, whose memory returns to the operating system when they are dropped.
//!
//! A general allocator keeps freed memory for later. When buffers of several sizes replace one
//! another, holes remain between the buffers in use, and the holes count as memory of the process.
//! Here each size has its own address range, which is reserved when its first block is taken. A
//! dropped block keeps only its addresses.
//!
//! Invariants
//!   B1  A block number below `usable` belongs to exactly one [`Block`], is in `free`, or is at
//!       least `fresh`.
//!   B2  The range stays mapped as long as any of its blocks exists: each holds a reference to it.
//! Errors    None. If a range cannot be reserved or is used up, the result is `None`, and the
//!           caller allocates a block on the heap.

use parking_lot::Mutex;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

/// Addresses are made usable in steps of this size, the usual size of a huge page, and the range
/// starts at a multiple of it. Systems that do not overcommit memory, or that lock all mapped
/// memory, count only usable memory.
const STEP_BYTES: usize = 2 << 20;
/// A range of at least this size gets the memory of a step at once, as a huge page if possible: a
/// step is then less than 1 % of it.
const FILL_BYTES_MIN: usize = 256 << 20;

/// A range of addresses for blocks of one size.
#[derive(Debug)]
pub struct Blocks {
    block_bytes: usize,
    count: usize,
    /// Whether making blocks usable also allocates their memory.
    fills_steps: bool,
    numbers: Mutex<Numbers>,
}

#[derive(Default, Debug)]
struct Numbers {
    /// The start of the range, once it is reserved.
    start: Option<NonNull<u8>>,
    free: Vec<u32>,
    /// Blocks from this number on were never taken.
    fresh: usize,
    /// Blocks from this number on are not usable yet.
    usable: usize,
}

#[expect(unsafe_code, reason = "the range holds a pointer")]
// SAFETY: the pointer is an address that is never read or written through `Blocks`; numbers change
// under a lock.
unsafe impl Send for Blocks {}
#[expect(unsafe_code, reason = "the range holds a pointer")]
// SAFETY: as above.
unsafe impl Sync for Blocks {}

impl Blocks {
    /// Creates a range for `count` blocks, without memory; `None` if this size cannot have one.
    pub fn reserve(block_bytes: usize, count: usize) -> Option<Arc<Self>> {
        let bytes = block_bytes.checked_mul(count).filter(|bytes| *bytes > 0)?;
        if block_bytes % system::page_bytes()? != 0 || count > u32::MAX as usize {
            return None;
        }
        let fills_steps = bytes >= FILL_BYTES_MIN;
        Some(Arc::new(Self { block_bytes, count, fills_steps, numbers: Mutex::default() }))
    }

    /// Returns a block with arbitrary content; `None` if all are in use or the system has no
    /// addresses.
    pub fn take(self: &Arc<Self>) -> Option<Block> {
        let (range, number, is_filled) = self.take_number()?;
        #[expect(unsafe_code, reason = "from a number to its address")]
        // SAFETY: `number < count`, so the address lies inside the range.
        let start = unsafe { range.add(number * self.block_bytes) };
        if !is_filled {
            system::populate(start, self.block_bytes);
        }
        let bytes = NonNull::slice_from_raw_parts(start, self.block_bytes);
        Some(Block { bytes, home: Some(Arc::clone(self)) })
    }

    /// Returns the start of the range, the number of a block, and whether the block already has its
    /// memory.
    fn take_number(&self) -> Option<(NonNull<u8>, usize, bool)> {
        let mut numbers = self.numbers.lock();
        if numbers.start.is_none() {
            numbers.start = system::reserve(self.block_bytes * self.count);
        }
        let start = numbers.start?;
        if let Some(number) = numbers.free.pop() {
            return Some((start, number as usize, false));
        }
        if numbers.fresh == numbers.usable {
            numbers.usable = self.make_usable(start, numbers.usable)?;
        }
        numbers.fresh += 1;
        Some((start, numbers.fresh - 1, self.fills_steps))
    }

    /// Makes blocks from number `first` on usable. Returns the number after the last usable block.
    fn make_usable(&self, start: NonNull<u8>, first: usize) -> Option<usize> {
        let step = (STEP_BYTES / self.block_bytes).max(1);
        let end = (first + step).min(self.count);
        let (offset, bytes) = (first * self.block_bytes, (end - first) * self.block_bytes);
        if bytes == 0 || !system::make_usable(start, offset, bytes) {
            return None;
        }
        if self.fills_steps {
            system::fill(start, offset, bytes);
        }
        Some(end)
    }

    fn roll_back(&self, bytes: NonNull<[u8]>) {
        let first = bytes.cast::<u8>();
        system::give_back(first, self.block_bytes);
        let mut numbers = self.numbers.lock();
        if let Some(start) = numbers.start {
            let offset = first.addr().get() - start.addr().get();
            numbers.free.push((offset / self.block_bytes) as u32);
        }
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        if let Some(start) = self.numbers.get_mut().start {
            system::unmap(start, self.block_bytes * self.count);
        }
    }
}

/// Bytes with a single owner: a block of [`Blocks`], or memory on the heap.
pub struct Block {
    bytes: NonNull<[u8]>,
    home: Option<Arc<Blocks>>,
}

#[expect(unsafe_code, reason = "a block holds a pointer")]
// SAFETY: a block is the only owner of its bytes, like a `Box<[u8]>` (B1).
unsafe impl Send for Block {}
#[expect(unsafe_code, reason = "a block holds a pointer")]
// SAFETY: as above; shared references only read.
unsafe impl Sync for Block {}

impl From<Box<[u8]>> for Block {
    fn from(bytes: Box<[u8]>) -> Self {
        Self { bytes: NonNull::from(Box::leak(bytes)), home: None }
    }
}

impl Deref for Block {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        #[expect(unsafe_code, reason = "the bytes of the block")]
        // SAFETY: only this block refers to the bytes (B1); they are mapped (B2) or allocated until
        // it is dropped, and initialised, because the system provides zeros.
        unsafe {
            self.bytes.as_ref()
        }
    }
}

impl DerefMut for Block {
    fn deref_mut(&mut self) -> &mut [u8] {
        #[expect(unsafe_code, reason = "the bytes of the block")]
        // SAFETY: as for `deref`; `self` is borrowed exclusively.
        unsafe {
            self.bytes.as_mut()
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        match &self.home {
            Some(home) => home.roll_back(self.bytes),
            #[expect(unsafe_code, reason = "back from a pointer to the box that it was")]
            // SAFETY: a block without a home was made from such a box, and nothing else has freed
            // it.
            None => drop(unsafe { Box::from_raw(self.bytes.as_ptr()) }),
        }
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block({} bytes)", self.len())
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
#[expect(unsafe_code, reason = "mapping memory has no safe wrapper")]
mod system {
    use super::STEP_BYTES;
    use rustix::mm::{madvise, mmap_anonymous, mprotect, munmap, Advice, MapFlags, MprotectFlags, ProtFlags};
    use std::ptr::{null_mut, NonNull};

    pub(super) fn page_bytes() -> Option<usize> {
        Some(rustix::param::page_size())
    }

    /// Reserves new addresses that cannot be used yet, starting at a multiple of [`STEP_BYTES`].
    pub(super) fn reserve(bytes: usize) -> Option<NonNull<u8>> {
        let more = bytes.checked_add(STEP_BYTES)?;
        // SAFETY: the system chooses addresses that nothing uses.
        let mapped = unsafe {
            mmap_anonymous(null_mut(), more, ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE)
        };
        let mapped = NonNull::new(mapped.ok()?.cast::<u8>())?;
        let before = mapped.as_ptr().align_offset(STEP_BYTES);
        // SAFETY: `before < STEP_BYTES`, so the start, and the end `bytes` after it, are inside the
        // mapping.
        let (start, end) = unsafe { (mapped.add(before), mapped.add(before + bytes)) };
        unmap(mapped, before);
        unmap(end, STEP_BYTES - before);
        // The memory is allocated and freed in blocks, which are smaller than huge pages. A system
        // without huge pages refuses the advice, which does no harm. SAFETY: the advice changes no
        // content and affects only the new mapping.
        let _ = unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxNoHugepage) };
        Some(start)
    }

    pub(super) fn make_usable(start: NonNull<u8>, offset: usize, bytes: usize) -> bool {
        // SAFETY: the part is inside the range, and nothing uses it yet.
        let part = unsafe { start.add(offset) };
        // SAFETY: as above.
        unsafe { mprotect(part.as_ptr().cast(), bytes, MprotectFlags::READ | MprotectFlags::WRITE) }.is_ok()
    }

    /// Allocates the memory of a block at once, because a thread that takes a block writes all of
    /// it, and would otherwise cause a page fault for each system page. If the system does not
    /// support this, page faults allocate the memory.
    pub(super) fn populate(start: NonNull<u8>, bytes: usize) {
        // SAFETY: the block is inside the range, is usable, and has just been taken; it may have
        // any content.
        let _ = unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxPopulateWrite) };
    }

    /// Allocates the memory of a step, as a huge page if the system has one: zeroing it takes a
    /// fraction of the time. Then disables huge pages, so that the system does not allocate
    /// returned memory again.
    pub(super) fn fill(start: NonNull<u8>, offset: usize, bytes: usize) {
        // SAFETY: the step is inside the range, is usable, and nothing uses it yet; the advice
        // changes no content.
        let part = unsafe { start.add(offset) };
        let advise = |advice| {
            // SAFETY: as above.
            let _ = unsafe { madvise(part.as_ptr().cast(), bytes, advice) };
        };
        advise(Advice::LinuxHugepage);
        advise(Advice::LinuxPopulateWrite);
        advise(Advice::LinuxNoHugepage);
    }

    /// Returns the memory of a block, and its content, to the system. Locked memory is not
    /// returned, and is reused with the block.
    pub(super) fn give_back(start: NonNull<u8>, bytes: usize) {
        // SAFETY: the block is inside the range, and its owner has just released it: nothing reads
        // or writes it.
        let _ = unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxDontNeed) };
    }

    pub(super) fn unmap(start: NonNull<u8>, bytes: usize) {
        if bytes == 0 {
            return;
        }
        // SAFETY: these addresses were mapped by `reserve`, and no block in them exists (B2).
        let _ = unsafe { munmap(start.as_ptr().cast(), bytes) };
    }
}

/// On other systems blocks come from the heap.
#[cfg(not(all(target_os = "linux", not(miri))))]
mod system {
    use std::ptr::NonNull;

    pub(super) fn page_bytes() -> Option<usize> {
        None
    }

    pub(super) fn reserve(_bytes: usize) -> Option<NonNull<u8>> {
        None
    }

    pub(super) fn make_usable(_start: NonNull<u8>, _offset: usize, _bytes: usize) -> bool {
        false
    }

    pub(super) fn populate(_start: NonNull<u8>, _bytes: usize) {}

    pub(super) fn fill(_start: NonNull<u8>, _offset: usize, _bytes: usize) {}

    pub(super) fn give_back(_start: NonNull<u8>, _bytes: usize) {}

    pub(super) fn unmap(_start: NonNull<u8>, _bytes: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_the_heap_is_like_any_other() {
        let mut block = Block::from(vec![1, 2, 3].into_boxed_slice());
        block[1] = 7;
        assert_eq!((&*block, Block::from(Box::default()).len()), (&[1, 7, 3][..], 0));
    }

    #[test]
    fn blocks_smaller_than_a_page_of_the_system_are_not_to_be_had() {
        assert!(Blocks::reserve(512, 100).is_none());
        assert!(Blocks::reserve(1 << 16, 0).is_none());
        assert!(Blocks::reserve(1 << 16, usize::MAX).is_none());
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn each_block_has_bytes_of_its_own_and_all_can_be_taken_again() {
        let blocks = Blocks::reserve(1 << 16, 40).unwrap();
        for round in 1..4 {
            let mut taken: Vec<_> = std::iter::from_fn(|| blocks.take()).collect();
            assert_eq!(taken.len(), 40);
            for (number, block) in taken.iter_mut().enumerate() {
                block.fill(number as u8 * round);
            }
            let kept =
                |(number, block): (usize, &Block)| block.iter().all(|byte| *byte == number as u8 * round);
            assert!(taken.iter().enumerate().all(kept));
        }
        let last = blocks.take();
        drop(blocks);
        assert_eq!(last.map(|block| block.len()), Some(1 << 16), "B2");
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn memory_of_a_dropped_block_is_given_back_and_that_of_its_neighbours_is_not() {
        let blocks = Blocks::reserve(1 << 16, 100).unwrap();
        let mut taken: Vec<_> = (0..3).filter_map(|_| blocks.take()).collect();
        taken.iter_mut().for_each(|block| block.fill(1));
        let dropped = taken.remove(1);
        let address = dropped.bytes.addr();
        drop(dropped);
        let again = blocks.take().unwrap();
        assert_eq!(again.bytes.addr(), address);
        assert!(again.iter().all(|byte| *byte == 0), "memory that the system has taken comes back as zeros");
        assert!(taken.iter().all(|block| block.iter().all(|byte| *byte == 1)));
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn blocks_of_a_large_range_are_zeros_and_come_back_as_zeros() {
        let blocks = Blocks::reserve(1 << 16, FILL_BYTES_MIN >> 16).unwrap();
        let mut taken: Vec<_> = (0..2 * (STEP_BYTES >> 16) + 1).filter_map(|_| blocks.take()).collect();
        assert!(blocks.fills_steps && taken[0].as_ptr().addr() % STEP_BYTES == 0);
        for block in &mut taken {
            assert!(block.iter().all(|byte| *byte == 0));
            block.fill(7);
        }
        drop(taken.remove(3));
        assert!(taken.iter().all(|block| block.iter().all(|byte| *byte == 7)), "neighbours keep theirs");
        assert!(blocks.take().unwrap().iter().all(|byte| *byte == 0));
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn threads_never_share_a_block() {
        let blocks = Blocks::reserve(1 << 16, 16).unwrap();
        std::thread::scope(|scope| {
            for thread in 1..5u8 {
                let blocks = &blocks;
                scope.spawn(move || {
                    for _ in 0..200 {
                        let mut block = blocks.take().unwrap();
                        block.fill(thread);
                        std::thread::yield_now();
                        assert!(block.iter().all(|byte| *byte == thread));
                    }
                });
            }
        });
    }
}

//! The memory of frames: buffers of three sizes, allocated lazily, reused, and really given back when another size
//! needs the room.

use super::memory::{Account, Memory};
use super::PageClass;
use crate::format::page::PageBuf;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub(super) struct Buffers {
    page_bytes: u32,
    memory: Arc<Memory>,
    /// Bytes of buffers that belong to frames.
    in_use: AtomicUsize,
    free: [Mutex<Vec<PageBuf>>; PageClass::ALL.len()],
}

impl Buffers {
    pub(super) fn new(page_bytes: u32, memory: Arc<Memory>) -> Self {
        Self { page_bytes, memory, in_use: AtomicUsize::new(0), free: Default::default() }
    }

    /// Bytes by which frames would exceed their limit if `extra` more were taken.
    pub(super) fn excess(&self, extra: usize) -> usize {
        (self.in_use() + extra).saturating_sub(self.memory.frames_limit())
    }

    /// Bytes of buffers that belong to frames.
    pub(super) fn in_use(&self) -> usize {
        self.in_use.load(Relaxed)
    }

    /// A buffer with arbitrary contents. Never waits; whether the limit allows it is the caller's business.
    pub(super) fn take(&self, class: PageClass) -> PageBuf {
        let bytes = class.bytes(self.page_bytes);
        self.in_use.fetch_add(bytes, Relaxed);
        if let Some(buffer) = self.free[class as usize].lock().pop() {
            return buffer;
        }
        self.drop_free_of_others(class, bytes);
        self.memory.add(Account::Frames, bytes);
        PageBuf::new(bytes)
    }

    /// Takes a buffer back.
    pub(super) fn give(&self, class: PageClass, buffer: PageBuf) {
        self.in_use.fetch_sub(buffer.len(), Relaxed);
        if self.memory.used(Account::Frames) > self.memory.frames_limit() {
            self.memory.subtract(Account::Frames, buffer.len());
        } else {
            self.free[class as usize].lock().push(buffer);
        }
    }

    fn drop_free_of_others(&self, class: PageClass, needed: usize) {
        for other in PageClass::ALL.into_iter().filter(|other| *other != class) {
            let mut free = self.free[other as usize].lock();
            while self.memory.used(Account::Frames) + needed > self.memory.frames_limit() {
                let Some(buffer) = free.pop() else { break };
                self.memory.subtract(Account::Frames, buffer.len());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_buffers_of_one_class_make_room_for_another() {
        let memory = Arc::new(Memory::new(4096 + 65));
        let buffers = Buffers::new(512, memory.clone());
        let taken: Vec<_> = (0..8).map(|_| buffers.take(PageClass::Base)).collect();
        assert_eq!(buffers.excess(512), 512);
        taken.into_iter().for_each(|buffer| buffers.give(PageClass::Base, buffer));
        assert_eq!((memory.used(Account::Frames), buffers.in_use()), (4096, 0));
        let large = buffers.take(PageClass::Large);
        assert_eq!((memory.used(Account::Frames), buffers.in_use()), (4096, 2048));
        buffers.give(PageClass::Large, large);
    }

    #[test]
    fn what_exceeds_the_limit_is_not_kept() {
        let memory = Arc::new(Memory::new(1024 + 16));
        let buffers = Buffers::new(512, memory.clone());
        let taken: Vec<_> = (0..3).map(|_| buffers.take(PageClass::Base)).collect();
        assert_eq!(memory.used(Account::Frames), 1536);
        taken.into_iter().for_each(|buffer| buffers.give(PageClass::Base, buffer));
        assert_eq!(memory.used(Account::Frames), 1024);
    }
}

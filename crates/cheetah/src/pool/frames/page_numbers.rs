//! The free page numbers.
//!
//! Invariant
//!   P1  A number freed in epoch n is used again only after n has committed (C4). So the changes of
//!       one epoch never contain two pages with the same number. A number in a committed map
//!       belongs to the same tree in the map and in the log written after the map. A reader with an
//!       outdated number finds a freed page.

use crate::base::{sound, Epoch, PageId};

/// Free page numbers. The free list is derived from the map at open and never stored.
#[derive(Debug)]
pub(in crate::pool) struct FreePageNumbers {
    /// All numbers used so far are smaller.
    next: u64,
    /// Numbers that are also free in the last committed epoch. The last number in the list is used
    /// first.
    free: Vec<PageId>,
    /// Numbers that were freed after the last committed epoch, with the epoch that freed them, in
    /// ascending order of epochs.
    waiting: Vec<(Epoch, Vec<PageId>)>,
}

impl FreePageNumbers {
    /// Derives the free numbers from the used ones. `used` must be sorted.
    pub(in crate::pool) fn new(used: &[PageId]) -> Self {
        let mut free = Vec::new();
        let mut next = 1;
        for pid in used {
            free.extend((next..pid.0).map(PageId));
            next = pid.0 + 1;
        }
        free.reverse();
        Self { next, free, waiting: Vec::new() }
    }

    pub(in crate::pool) fn take(&mut self) -> PageId {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            PageId(self.next - 1)
        })
    }

    pub(in crate::pool) fn put(&mut self, pid: PageId, epoch: Epoch) {
        if !sound!(true, "pool: reuse a page number at once") {
            return self.free.push(pid);
        }
        let is_latest = self.waiting.last().is_none_or(|(last, _)| *last <= epoch);
        debug_assert!(is_latest, "P1: numbers wait in the order of the epochs that freed them");
        match self.waiting.last_mut() {
            Some((last, pids)) if *last == epoch => pids.push(pid),
            _ => self.waiting.push((epoch, vec![pid])),
        }
    }

    /// Makes numbers freed in epochs up to `committed` available.
    pub(in crate::pool) fn release(&mut self, committed: Epoch) {
        let free = &mut self.free;
        self.waiting.retain_mut(|(epoch, pids)| {
            let waits = *epoch > committed;
            if !waits {
                free.append(pids);
            }
            waits
        });
    }

    /// The number of pages in use.
    pub(in crate::pool) fn used_count(&self) -> u64 {
        let waiting = self.waiting.iter().map(|(_, pids)| pids.len()).sum::<usize>();
        self.next - 1 - (self.free.len() + waiting) as u64
    }

    /// All page numbers used so far are below this number.
    pub(in crate::pool) fn end(&self) -> PageId {
        PageId(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_of_the_map_are_used_before_new_numbers() {
        let mut pids = FreePageNumbers::new(&[PageId(2), PageId(5)]);
        let taken: Vec<u64> = (0..5).map(|_| pids.take().0).collect();
        assert_eq!(taken, [1, 3, 4, 6, 7]);
        pids.put(PageId(3), Epoch(1));
        assert_eq!(pids.used_count(), 6);
    }

    #[test]
    fn a_freed_number_waits_for_its_epoch_to_commit() {
        let mut pids = FreePageNumbers::new(&[PageId(1), PageId(2)]);
        pids.put(PageId(1), Epoch(7));
        pids.put(PageId(2), Epoch(8));
        assert_eq!(pids.take(), PageId(3));
        pids.release(Epoch(7));
        assert_eq!(pids.take(), PageId(1));
        assert_eq!(pids.take(), PageId(4));
        pids.release(Epoch(8));
        assert_eq!(pids.take(), PageId(2));
    }
}

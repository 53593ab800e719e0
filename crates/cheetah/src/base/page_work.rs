//! Counts the current thread's work on pages, for a statement whose user requests it.
//!
//! Invariants
//!   I1  Counters are thread-local. If they are not requested, the only cost is a check of a
//!       thread-local flag for each page. The flag is stored with the thread's number, which the
//!       counter of all fetches needs anyway.
//!   I2  Counts may be nested. Work that an inner count includes is not part of the outer count.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Work of one thread during some time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PageWork {
    /// Pages requested, in memory or not. A page that is requested twice counts twice.
    pub pages_accessed: u64,
    /// Pages changed, once for each exclusive latch.
    pub pages_updated: u64,
    /// Images that this thread read from disk.
    pub pages_read: u64,
    /// The time of these reads, in nanoseconds.
    pub read_ns: u64,
    /// Pages that this thread requested other threads to read ahead.
    pub pages_prefetched: u64,
    /// Older versions of rows that were read from the undo log.
    pub versions_read: u64,
}

impl PageWork {
    const NONE: PageWork = PageWork {
        pages_accessed: 0,
        pages_updated: 0,
        pages_read: 0,
        read_ns: 0,
        pages_prefetched: 0,
        versions_read: 0,
    };

    /// Returns the work since `since`, an earlier value of the same thread.
    pub fn after(self, since: PageWork) -> PageWork {
        PageWork {
            pages_accessed: self.pages_accessed.wrapping_sub(since.pages_accessed),
            pages_updated: self.pages_updated.wrapping_sub(since.pages_updated),
            pages_read: self.pages_read.wrapping_sub(since.pages_read),
            read_ns: self.read_ns.wrapping_sub(since.read_ns),
            pages_prefetched: self.pages_prefetched.wrapping_sub(since.pages_prefetched),
            versions_read: self.versions_read.wrapping_sub(since.versions_read),
        }
    }
}

struct Own {
    wanted: Cell<u32>,
    /// The number of the thread, from 1, or 0 before it is assigned.
    number: Cell<usize>,
    done: Cell<PageWork>,
}

thread_local! {
    static OWN: Own =
        const { Own { wanted: Cell::new(0), number: Cell::new(0), done: Cell::new(PageWork::NONE) } };
}

static NEXT_NUMBER: AtomicUsize = AtomicUsize::new(1);

impl Own {
    #[inline]
    fn number(&self) -> usize {
        if self.number.get() == 0 {
            self.number.set(NEXT_NUMBER.fetch_add(1, Relaxed));
        }
        self.number.get()
    }

    #[inline]
    fn count(&self, add: impl FnOnce(&mut PageWork)) {
        if self.wanted.get() > 0 {
            let mut done = self.done.get();
            add(&mut done);
            self.done.set(done);
        }
    }
}

/// Runs `add` on the counters, if this thread counts.
#[inline]
pub fn count(add: impl FnOnce(&mut PageWork)) {
    OWN.with(|own| own.count(add));
}

/// Counts a request for a page. Returns the unique number of this thread.
#[inline]
pub fn count_access() -> usize {
    OWN.with(|own| {
        own.count(|work| work.pages_accessed += 1);
        own.number()
    })
}

/// Begins a count of this thread. [`end`] must be called with the returned value.
pub fn begin() -> PageWork {
    OWN.with(|own| {
        own.wanted.set(own.wanted.get() + 1);
        own.done.get()
    })
}

/// Ends a count, whose [`begin`] returned `since`. Returns the work of this thread since then.
pub fn end(since: PageWork) -> PageWork {
    OWN.with(|own| {
        own.wanted.set(own.wanted.get().saturating_sub(1));
        own.done.replace(since).after(since)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_counted_unless_it_is_wanted_and_counts_may_be_nested() {
        let access = || {
            count_access();
        };
        access();
        let outer = begin();
        access();
        let inner = begin();
        access();
        count(|work| work.versions_read += 2);
        assert_eq!(end(inner), PageWork { pages_accessed: 1, versions_read: 2, ..PageWork::NONE });
        access();
        assert_eq!(end(outer), PageWork { pages_accessed: 2, ..PageWork::NONE });
        access();
        assert_eq!(OWN.with(|own| own.wanted.get()), 0);
        let after = begin();
        assert_eq!(end(after), PageWork::NONE);
    }

    #[test]
    fn threads_count_for_themselves() {
        let since = begin();
        let other = std::thread::scope(|scope| {
            let other = || {
                count(|work| work.pages_read += 1);
                count_access()
            };
            scope.spawn(other).join().unwrap()
        });
        assert_eq!(end(since), PageWork::NONE);
        let own = count_access();
        assert!(own != other && own == count_access(), "a number is one thread's");
    }
}

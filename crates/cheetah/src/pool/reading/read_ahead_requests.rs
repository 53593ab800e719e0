//! The queue of read-ahead requests, its threads, and its counters. Invariants A1 to A4 are in
//! [`super::read_ahead`].

use crate::base::PageId;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Maximum number of waiting requests. A further request replaces the oldest.
const REQUESTS_MAX: usize = 16;

/// The waiting requests, the threads that serve them, and the counts of the outcomes.
#[derive(Default, Debug)]
pub(in crate::pool) struct ReadAhead {
    queue: Mutex<Queue>,
    wanted: Condvar,
    /// Number of threads that serve requests.
    readers: AtomicUsize,
    read: AtomicU64,
    used: AtomicU64,
    wasted: AtomicU64,
    spans: AtomicU64,
}

#[derive(Default, Debug)]
struct Queue {
    requests: VecDeque<Vec<PageId>>,
    has_ended: bool,
}

impl ReadAhead {
    /// Counts a page that was read ahead and is now fetched.
    pub(in crate::pool) fn used(&self) {
        self.used.fetch_add(1, Relaxed);
    }

    /// Counts a page that was read ahead and is evicted or freed before any fetch.
    pub(in crate::pool) fn wasted(&self) {
        self.wasted.fetch_add(1, Relaxed);
    }

    /// Number of pages read ahead that wait in memory to be fetched.
    pub(super) fn waiting(&self) -> u64 {
        self.read.load(Relaxed).saturating_sub(self.used.load(Relaxed) + self.wasted.load(Relaxed))
    }

    /// The number of pages read ahead so far, and the number of them that left memory without being
    /// fetched.
    pub(in crate::pool) fn read_and_wasted(&self) -> (u64, u64) {
        (self.read.load(Relaxed), self.wasted.load(Relaxed))
    }

    /// Names and values, for status.
    pub(in crate::pool) fn counts(&self) -> [(&'static str, u64); 4] {
        [
            ("pool_read_ahead", self.read.load(Relaxed)),
            ("pool_read_ahead_used", self.used.load(Relaxed)),
            ("pool_read_ahead_wasted", self.wasted.load(Relaxed)),
            ("pool_read_ahead_spans", self.spans.load(Relaxed)),
        ]
    }

    /// Waits for a request and returns it. Returns `None` after the end.
    fn next(&self) -> Option<Vec<PageId>> {
        let mut queue = self.queue.lock();
        while !queue.has_ended {
            if let Some(request) = queue.requests.pop_front() {
                return Some(request);
            }
            self.wanted.wait(&mut queue);
        }
        None
    }

    /// Adds a request, and drops the oldest one if there are too many (A3).
    pub(super) fn ask(&self, wanted: Vec<PageId>) {
        let mut queue = self.queue.lock();
        if queue.has_ended {
            return;
        }
        if queue.requests.len() == REQUESTS_MAX {
            // The scan that made the oldest request has most likely passed its pages.
            queue.requests.pop_front();
        }
        queue.requests.push_back(wanted);
        drop(queue);
        self.wanted.notify_one();
    }

    /// Returns whether any thread serves requests.
    pub(super) fn is_served(&self) -> bool {
        self.readers.load(Relaxed) > 0
    }

    /// Passes each request to `read` until [`end`](Self::end) is called.
    pub(super) fn serve(&self, mut read: impl FnMut(Vec<PageId>)) {
        self.readers.fetch_add(1, Relaxed);
        while let Some(request) = self.next() {
            read(request);
        }
        self.readers.fetch_sub(1, Relaxed);
    }

    /// Allows threads to serve again, after [`end`](Self::end).
    pub(super) fn begin(&self) {
        self.queue.lock().has_ended = false;
    }

    /// Stops the threads that serve, and drops waiting requests.
    pub(super) fn end(&self) {
        let mut queue = self.queue.lock();
        queue.has_ended = true;
        queue.requests.clear();
        self.wanted.notify_all();
    }

    /// Counts a span of a file that was read.
    pub(super) fn read_span(&self) {
        self.spans.fetch_add(1, Relaxed);
    }

    /// Counts a page that was read ahead.
    pub(super) fn read_page(&self) {
        self.read.fetch_add(1, Relaxed);
    }
}

//! A limit on the number of segment files that are open in the operating system.
//!
//! Invariants
//!   I1  A file that is appended to, or not synced yet, keeps its handle: if the kernel met an
//!       error while writing it back, closing the handle could lose the error.
//!   I2  Other files are opened when they are read, and a limited number of them stays open.
//!       Recently read files stay open longer (second chance).
//!   I3  A file that was sealed and synced is closed, and reopened for reads that bypass the page
//!       cache, unless data files are to be buffered there.

use super::segment_file::SegmentFile;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// Most open files that are not appended to. The number is enough for the hot set of most databases
/// (16 GiB), and leaves the server enough of the usual limit of 1024 per process.
pub(super) const HANDLES_MAX: usize = 256;

/// See the module.
pub(super) struct Handles {
    max: usize,
    queue: Mutex<VecDeque<Arc<SegmentFile>>>,
}

impl Handles {
    pub(super) fn new(max: usize) -> Self {
        Self { max, queue: Mutex::default() }
    }

    /// Adds a file that was just opened or may now be closed; closes other files if there are too
    /// many.
    pub(super) fn add(&self, file: Arc<SegmentFile>) {
        self.queue.lock().push_back(file);
        while let Some(file) = self.take_one_too_many() {
            file.close();
        }
    }

    /// The file to close next, if too many are open.
    fn take_one_too_many(&self) -> Option<Arc<SegmentFile>> {
        let mut queue = self.queue.lock();
        // Each pass over the queue clears second chances, so this ends.
        while queue.len() > self.max {
            let oldest = queue.pop_front()?;
            if !oldest.take_used() {
                return Some(oldest);
            }
            queue.push_back(oldest);
        }
        None
    }

    /// Forgets a removed file.
    pub(super) fn remove(&self, file: &SegmentFile) {
        self.queue.lock().retain(|other| other.id != file.id);
    }
}

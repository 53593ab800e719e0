//! A limit on the number of segment files that are open in the operating system.
//!
//! Invariants
//!   I1  A file that is being appended to or is not synced yet stays open: if the kernel met an
//!       error while writing the file back, closing it could lose the error.
//!   I2  Other files are opened when they are read, and a limited number of them stays open.
//!       Recently read files stay open longer (second chance).
//!   I3  A file that was sealed and synced is closed. It is reopened for reads that bypass the page
//!       cache, unless the configuration says that data files use the page cache.

use super::segment_file::SegmentFile;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// The maximum number of open files that are not being appended to. It is enough for the hot set of
/// most databases (16 GiB), and leaves the server enough of the usual limit of 1024 open files per
/// process.
pub(super) const HANDLES_MAX: usize = 256;

pub(super) struct Handles {
    max: usize,
    queue: Mutex<VecDeque<Arc<SegmentFile>>>,
}

impl Handles {
    pub(super) fn new(max: usize) -> Self {
        Self { max, queue: Mutex::default() }
    }

    /// Adds a file that was just opened or may now be closed. Closes other files if too many are
    /// open.
    pub(super) fn add(&self, file: Arc<SegmentFile>) {
        self.queue.lock().push_back(file);
        while let Some(file) = self.take_one_too_many() {
            file.close();
        }
    }

    /// The file to close next, if too many are open.
    fn take_one_too_many(&self) -> Option<Arc<SegmentFile>> {
        let mut queue = self.queue.lock();
        // The loop ends, because each pass over the queue clears second chances.
        while queue.len() > self.max {
            let oldest = queue.pop_front()?;
            if !oldest.take_used() {
                return Some(oldest);
            }
            queue.push_back(oldest);
        }
        None
    }

    pub(super) fn remove(&self, file: &SegmentFile) {
        self.queue.lock().retain(|other| other.id != file.id);
    }
}

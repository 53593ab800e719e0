//! A bound on the number of segment files that are open in the operating system.
//!
//! Invariants
//!   I1  A file that is appended to, or not synced yet, keeps its handle: an error that the kernel
//!       met while storing it must not get lost with the handle.
//!   I2  Other files are opened when they are read, and a limited number of them stays open. Those
//!       read again lately stay longer (second chance).
//!   I3  A file that has become sealed and synced is closed, and opened again to be read past the
//!       page cache, unless data files are to be buffered there.

use super::segment_file::SegmentFile;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// Open files that are not appended to: fits the usual limit of 1024 for a process beside what a
/// server has open, and the hot set of most databases (16 GiB).
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

    /// Notes a file that has just been opened, or has just become free to be closed; closes others
    /// that are too many.
    pub(super) fn add(&self, file: Arc<SegmentFile>) {
        self.queue.lock().push_back(file);
        while let Some(file) = self.take_one_too_many() {
            file.close();
        }
    }

    /// The file to be closed next, if too many are open.
    fn take_one_too_many(&self) -> Option<Arc<SegmentFile>> {
        let mut queue = self.queue.lock();
        // Each pass over the queue takes a second chance away, so this ends.
        while queue.len() > self.max {
            let oldest = queue.pop_front()?;
            if !oldest.take_used() {
                return Some(oldest);
            }
            queue.push_back(oldest);
        }
        None
    }

    /// Forgets a file that is gone.
    pub(super) fn remove(&self, file: &SegmentFile) {
        self.queue.lock().retain(|other| other.id != file.id);
    }
}

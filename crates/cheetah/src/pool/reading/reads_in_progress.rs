//! Lets threads wait for a page that another thread is reading or has reserved.
//! `reservation_model_tests.rs` compiles this file again with loom.

use super::sync::{Condvar, Mutex};
use crate::base::PageId;

const SHARDS_COUNT: usize = 16;

/// See the module.
#[derive(Default, Debug)]
pub(in crate::pool) struct ReadsInProgress([(Mutex<()>, Condvar); SHARDS_COUNT]);

impl ReadsInProgress {
    /// Waits while `is_being_read` returns true. Before it calls [`finished`](Self::finished), a
    /// caller must make `is_being_read` return false. It must hold no lock that `is_being_read`
    /// takes.
    pub(in crate::pool) fn wait_while(&self, pid: PageId, is_being_read: impl Fn() -> bool) {
        let (mutex, changed) = &self.0[pid.0 as usize % SHARDS_COUNT];
        let mut guard = mutex.lock();
        while is_being_read() {
            changed.wait(&mut guard);
        }
    }

    pub(in crate::pool) fn finished(&self, pid: PageId) {
        let (mutex, changed) = &self.0[pid.0 as usize % SHARDS_COUNT];
        let _guard = mutex.lock();
        changed.notify_all();
    }
}

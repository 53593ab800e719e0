//! Where threads wait for a page that another thread is reading.

use crate::base::PageId;
use parking_lot::{Condvar, Mutex};

const SHARDS_COUNT: usize = 16;

/// See the module.
#[derive(Default, Debug)]
pub(super) struct Loads([(Mutex<()>, Condvar); SHARDS_COUNT]);

impl Loads {
    /// Waits while `is_loading`, which must become false before [`finished`](Self::finished) is called.
    pub(super) fn wait_while(&self, pid: PageId, is_loading: impl Fn() -> bool) {
        let (mutex, changed) = &self.0[pid.0 as usize % SHARDS_COUNT];
        let mut guard = mutex.lock();
        while is_loading() {
            changed.wait(&mut guard);
        }
    }

    pub(super) fn finished(&self, pid: PageId) {
        let (mutex, changed) = &self.0[pid.0 as usize % SHARDS_COUNT];
        let _guard = mutex.lock();
        changed.notify_all();
    }
}

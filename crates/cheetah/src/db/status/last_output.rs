//! The time of the last status output, from which the next output computes its rates.

use crate::pool::PoolFlow;
use parking_lot::Mutex;

/// With the pool's counters at that time.
#[derive(Debug)]
pub(in crate::db) struct LastOutput(Mutex<(u64, PoolFlow)>);

impl LastOutput {
    /// Without a previous output, rates count from `now_ns`.
    pub(in crate::db) fn new(now_ns: u64) -> Self {
        Self(Mutex::new((now_ns, PoolFlow::default())))
    }

    pub(super) fn get(&self) -> (u64, PoolFlow) {
        *self.0.lock()
    }

    /// Replaces the time and the counters by those from `output`. Concurrent callers wait.
    pub(super) fn replace<T>(&self, output: impl FnOnce(u64, &PoolFlow) -> (u64, PoolFlow, T)) -> T {
        let mut last = self.0.lock();
        let (at_ns, flow, told) = output(last.0, &last.1);
        *last = (at_ns, flow);
        told
    }
}

//! The time of the last output of the status, from which the rates of the next output count.

use crate::pool::PoolFlow;
use parking_lot::Mutex;

/// The time of that output, and the counters of the pool then.
#[derive(Debug)]
pub(in crate::db) struct LastOutput(Mutex<(u64, PoolFlow)>);

impl LastOutput {
    /// There has been none: rates count from now on.
    pub(in crate::db) fn new(now_ns: u64) -> Self {
        Self(Mutex::new((now_ns, PoolFlow::default())))
    }

    pub(super) fn get(&self) -> (u64, PoolFlow) {
        *self.0.lock()
    }

    /// Puts what `output` says of the time and the flow in their place, while others wait.
    pub(super) fn replace<T>(&self, output: impl FnOnce(u64, &PoolFlow) -> (u64, PoolFlow, T)) -> T {
        let mut last = self.0.lock();
        let (at_ns, flow, told) = output(last.0, &last.1);
        *last = (at_ns, flow);
        told
    }
}

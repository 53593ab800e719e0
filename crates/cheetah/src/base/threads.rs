//! The number of threads that one statement may use.

#[cfg(test)]
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;

/// More threads would only wait for the disk and for other statements.
const STATEMENT_THREADS_MAX: usize = 4;

/// The number of threads that a step of one statement may use, including its own: the number of
/// processors, at most four. The threads end before the step ends.
pub fn statement_threads() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    let count = || std::thread::available_parallelism().map_or(1, usize::from);
    (*PROCESSORS.get_or_init(count)).min(STATEMENT_THREADS_MAX)
}

/// Tells the other threads of a test to end, even after a panic: their scope waits for them.
#[cfg(test)]
pub(crate) struct RaisedAtEnd<'a>(pub(crate) &'a AtomicBool);

#[cfg(test)]
impl Drop for RaisedAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

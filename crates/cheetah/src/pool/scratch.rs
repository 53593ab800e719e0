//! Buffers for images being encoded, decoded or moved: kept, so that this allocates nothing, and shared, so that many
//! threads do not each keep one.

use parking_lot::Mutex;

/// Buffers kept at most; more threads than this rarely read or write at the same moment.
const KEPT_MAX: usize = 8;

/// See the module.
#[derive(Default, Debug)]
pub(super) struct Scratch(Mutex<Vec<Vec<u8>>>);

impl Scratch {
    /// Runs `f` with an empty buffer.
    pub(super) fn with<T>(&self, f: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let mut buffer = self.0.lock().pop().unwrap_or_default();
        buffer.clear();
        let result = f(&mut buffer);
        let mut kept = self.0.lock();
        if kept.len() < KEPT_MAX {
            kept.push(buffer);
        }
        result
    }
}

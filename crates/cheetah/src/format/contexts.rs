//! A pool of idle Zstandard contexts, shared by the whole process.
//!
//! Creating a context queries the processor's features. In a virtual machine this takes ten
//! microseconds, which is longer than reading a small page. So contexts are kept here after use.

use parking_lot::Mutex;
use zstd::bulk::Compressor;
use zstd::zstd_safe::DCtx;

/// The maximum number of idle contexts of each kind, and the maximum memory of an idle compressor.
/// Idle contexts do not count in any memory budget.
const IDLE_MAX: usize = 4;
const IDLE_BYTES_MAX: usize = 512 << 10;

static COMPRESSORS: Idle<Compressor<'static>> = Idle(Mutex::new(Vec::new()));
static DECOMPRESSORS: Idle<DCtx<'static>> = Idle(Mutex::new(Vec::new()));

struct Idle<T>(Mutex<Vec<T>>);

impl<T> Idle<T> {
    fn take(&self) -> Option<T> {
        self.0.lock().pop()
    }

    /// Keeps `context`, unless there are already `IDLE_MAX` idle contexts.
    fn put(&self, context: T) {
        let mut idle = self.0.lock();
        if idle.len() < IDLE_MAX {
            idle.push(context);
        }
    }
}

/// Takes an idle compressor, or creates one. Its level and other parameters are unspecified.
pub(super) fn take_compressor() -> Compressor<'static> {
    COMPRESSORS.take().unwrap_or_default()
}

/// Returns a compressor to the pool, unless its level made it large.
pub(super) fn give_compressor(mut compressor: Compressor<'static>) {
    if compressor.context_mut().sizeof() <= IDLE_BYTES_MAX {
        COMPRESSORS.put(compressor);
    }
}

/// Takes an idle decompressor, or creates one. Returns `None` if there is no memory for one.
pub(super) fn take_decompressor() -> Option<DCtx<'static>> {
    DECOMPRESSORS.take().or_else(DCtx::try_create)
}

pub(super) fn give_decompressor(decompressor: DCtx<'static>) {
    DECOMPRESSORS.put(decompressor);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_a_few_wait() {
        let idle = Idle(Mutex::new(Vec::new()));
        assert_eq!(idle.take(), None);
        (0..10).for_each(|no| idle.put(no));
        let taken = std::iter::from_fn(|| idle.take()).collect::<Vec<_>>();
        assert_eq!(taken, [3, 2, 1, 0]);
    }
}

//! Contexts of Zstandard that wait for whoever needs one next, in the whole process.
//!
//! A new context asks the processor what it can do, which takes ten microseconds in a virtual
//! machine: more than to read a small page. So what is done with one leaves it here.

use parking_lot::Mutex;
use zstd::bulk::Compressor;
use zstd::zstd_safe::DCtx;

/// Contexts of each kind that wait at most, and the memory of a waiting compressor: nobody's memory
/// limit counts them.
const IDLE_MAX: usize = 4;
const IDLE_BYTES_MAX: usize = 512 << 10;

static COMPRESSORS: Idle<Compressor<'static>> = Idle(Mutex::new(Vec::new()));
static DECOMPRESSORS: Idle<DCtx<'static>> = Idle(Mutex::new(Vec::new()));

struct Idle<T>(Mutex<Vec<T>>);

impl<T> Idle<T> {
    fn take(&self) -> Option<T> {
        self.0.lock().pop()
    }

    /// Keeps `context`, unless enough of them wait.
    fn put(&self, context: T) {
        let mut idle = self.0.lock();
        if idle.len() < IDLE_MAX {
            idle.push(context);
        }
    }
}

/// A compressor whose level and other parameters may be anything.
pub(super) fn take_compressor() -> Compressor<'static> {
    COMPRESSORS.take().unwrap_or_default()
}

/// Leaves a compressor for others, unless its level has made it large.
pub(super) fn give_compressor(mut compressor: Compressor<'static>) {
    if compressor.context_mut().sizeof() <= IDLE_BYTES_MAX {
        COMPRESSORS.put(compressor);
    }
}

/// A decompressor, if there is memory for one.
pub(super) fn take_decompressor() -> Option<DCtx<'static>> {
    DECOMPRESSORS.take().or_else(DCtx::try_create)
}

/// Leaves a decompressor for others.
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

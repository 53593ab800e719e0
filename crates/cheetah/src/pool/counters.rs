//! Counters for status.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A count that only grows, unless it is [taken](Counter::take).
#[derive(Default, Debug)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Relaxed);
    }

    pub(crate) fn one(&self) {
        self.add(1);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Returns the count and resets it to zero.
    pub(crate) fn take(&self) -> u64 {
        self.0.swap(0, Relaxed)
    }
}

/// A counter that many threads increment often. It is striped over several cache lines, because a
/// single cache line would become a bottleneck.
#[derive(Default, Debug)]
pub(in crate::pool) struct StripedCounter([Stripe; STRIPES_COUNT]);

const STRIPES_COUNT: usize = 16;

#[derive(Default, Debug)]
#[repr(align(128))]
struct Stripe(Counter);

impl StripedCounter {
    /// Adds one. `thread` is the number of the calling thread.
    pub(in crate::pool) fn one_by(&self, thread: usize) {
        self.0[thread % STRIPES_COUNT].0.one();
    }

    pub(in crate::pool) fn get(&self) -> u64 {
        self.0.iter().map(|stripe| stripe.0.get()).sum()
    }
}

/// The name of a counter in status: its own name, or an older name that users know.
macro_rules! status_name {
    ($name:ident) => {
        concat!("pool_", stringify!($name))
    };
    ($name:ident $status:literal) => {
        $status
    };
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident $(as $status:literal)?: $kind:ty),* $(,)?) => {
        /// The work of the pool since it was opened.
        #[derive(Default, Debug)]
        pub(in crate::pool) struct Counters { $($(#[$doc])* pub(in crate::pool) $name: $kind),* }

        impl Counters {
            /// Names and values.
            pub(in crate::pool) fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$((status_name!($name $($status)?), self.$name.get())),*]
            }
        }
    };
}

counters! {
    /// Dictionaries loaded for reading or for writing.
    dictionary_loads: Counter,
    /// Images written without the dictionary of their tree, because it was not in memory.
    dictionary_misses: Counter,
    /// Fetches of pages.
    requests: StripedCounter,
    /// Images read from disk.
    reads: Counter,
    /// Bytes of the images read from disk.
    read_bytes: Counter,
    /// Fetches that took one record from an image without making a frame.
    looks: Counter,
    /// New pages.
    creates: Counter,
    /// Images of tree pages written.
    writes: Counter,
    /// Bytes of these images.
    written_bytes: Counter,
    /// Images of large values written.
    blob_writes: Counter,
    /// Bytes of these images.
    blob_written_bytes: Counter,
    /// Images moved by garbage collection.
    moves: Counter,
    /// Bytes of these images.
    moved_bytes: Counter,
    /// Bytes of pages before they were encoded.
    encoded_page_bytes: Counter,
    /// Pages written because a mini-transaction was about to change them during a checkpoint.
    flushes_before_modify as "pool_captures": Counter,
    /// Frames evicted.
    evictions: Counter,
    /// Dirty pages written by a thread that needed their memory.
    foreground_writes: Counter,
    /// Frames allocated beyond the limit.
    overshoots: Counter,
    /// Epochs committed.
    checkpoints: Counter,
    /// Checkpoints abandoned. Their changes moved to the next checkpoint.
    checkpoints_abandoned: Counter,
}

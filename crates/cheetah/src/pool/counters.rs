//! Counters for status.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number that only grows, unless it is [taken](Counter::take).
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

    /// As [`get`](Self::get); it starts at zero again.
    pub(crate) fn take(&self) -> u64 {
        self.0.swap(0, Relaxed)
    }
}

/// A number that many threads raise so often that one cache line for all of them would slow them
/// down.
#[derive(Default, Debug)]
pub(in crate::pool) struct StripedCounter([Stripe; STRIPES_COUNT]);

const STRIPES_COUNT: usize = 16;

#[derive(Default, Debug)]
#[repr(align(128))]
struct Stripe(Counter);

impl StripedCounter {
    /// Adds one; `thread` is the number of the calling one.
    pub(in crate::pool) fn one_by(&self, thread: usize) {
        self.0[thread % STRIPES_COUNT].0.one();
    }

    pub(in crate::pool) fn get(&self) -> u64 {
        self.0.iter().map(|stripe| stripe.0.get()).sum()
    }
}

/// The name that status shows of a counter: its own, or one that users have known for longer.
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
    /// Dictionaries prepared to be read with or written with.
    dictionary_loads: Counter,
    /// Images written without the dictionary of their tree, as it was not in memory.
    dictionary_misses: Counter,
    /// Fetches.
    requests: StripedCounter,
    /// Images read from disk.
    reads: Counter,
    /// Bytes of them.
    read_bytes: Counter,
    /// Fetches that took one record out of an image, and made no frame.
    looks: Counter,
    /// New pages.
    creates: Counter,
    /// Images written of pages of trees.
    writes: Counter,
    /// Bytes of them.
    written_bytes: Counter,
    /// Images written of large values.
    blob_writes: Counter,
    /// Bytes of them.
    blob_written_bytes: Counter,
    /// Images moved by the garbage collection.
    moves: Counter,
    /// Bytes of them.
    moved_bytes: Counter,
    /// Bytes of pages before they were encoded.
    encoded_page_bytes: Counter,
    /// Pages written because a mini-transaction wanted to change them during a checkpoint.
    flushes_before_modify as "pool_captures": Counter,
    /// Frames given up for others.
    evictions: Counter,
    /// Pages that the thread which needed room had to write itself.
    foreground_writes: Counter,
    /// Frames allocated beyond the limit.
    overshoots: Counter,
    /// Epochs committed.
    checkpoints: Counter,
    /// Checkpoints given up; their changes went into the next one.
    checkpoints_abandoned: Counter,
}

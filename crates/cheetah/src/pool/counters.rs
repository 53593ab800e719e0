//! Counters for status.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number that only grows.
#[derive(Default, Debug)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, count: u64) {
        self.0.fetch_add(count, Relaxed);
    }

    pub(super) fn one(&self) {
        self.add(1);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// What the pool has done since it was opened.
        #[derive(Default, Debug)]
        pub(super) struct Counters { $($(#[$doc])* pub(super) $name: Counter),* }

        impl Counters {
            /// Names and values.
            pub(super) fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$((concat!("pool_", stringify!($name)), self.$name.get())),*]
            }
        }
    };
}

counters! {
    /// Fetches.
    requests,
    /// Fetches that read an image.
    reads,
    /// Bytes of images read by fetches.
    read_bytes,
    /// Images written of pages of trees.
    writes,
    /// Bytes of them.
    written_bytes,
    /// Images written of large values.
    blob_writes,
    /// Bytes of them.
    blob_written_bytes,
    /// Images moved by the garbage collection.
    moves,
    /// Bytes of them.
    moved_bytes,
    /// Bytes of pages before they were encoded.
    encoded_page_bytes,
    /// Pages written because an action wanted to change them during a checkpoint.
    captures,
    /// Frames given up for others.
    evictions,
    /// Pages that the thread which needed room had to write itself.
    foreground_writes,
    /// Frames allocated beyond the limit.
    overshoots,
    /// Generations committed.
    checkpoints,
    /// Checkpoints given up; their changes went into the next one.
    checkpoints_abandoned,
}

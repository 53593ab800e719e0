//! The share of each use in the budget. Frames and images get the remainder.

/// 1/`DESCRIPTORS_PART` of the memory for frames is set aside for their descriptors and the
/// allocator.
const DESCRIPTORS_PART: usize = 64;
/// The percentage of the memory of frames and images that images may take.
const IMAGES_PERCENT: usize = 80;
/// The percentage of the memory of pages that pending changes may take.
const BUFFERED_PERCENT: usize = 75;
/// The percentage of the memory of pages that images and pending changes leave to frames.
const FRAMES_PERCENT: usize = 15;
/// Filters of keys may take 1/`FILTERS_PART` of the budget. All parts below are also divisors of
/// the budget.
const FILTERS_PART: usize = 16;
/// The part for memory that is not counted individually, and its maximum.
const REST_PART: usize = 16;
const REST_BYTES_MAX: usize = 64 << 20;
/// The limit for holes that threads leave in the allocator's memory. It is twice the size that was
/// measured with a dozen threads (`tests/server/test_pool_memory.py`).
const HOLES_BYTES: usize = 16 << 20;
/// The part for locks, and its minimum, which is enough for several thousand locks.
const LOCKS_PART: usize = 4;
const LOCKS_BYTES_MIN: usize = 1 << 20;
/// The part for the rows that loads sort.
const SORT_PART: usize = 8;
/// The part for each of the two log buffers. Its minimum is `LOG_BUFFER_BYTES_MIN`, but at most
/// 1/`LOG_BUFFER_PART_MAX` of the budget. Larger writes than the maximum would not be faster.
const LOG_BUFFER_PART: usize = 256;
const LOG_BUFFER_BYTES_MIN: usize = 128 << 10;
const LOG_BUFFER_PART_MAX: usize = 64;
const LOG_BUFFER_BYTES_MAX: usize = 8 << 20;
/// The part for the tails of all streams. Its minimum is `TAILS_BYTES_MIN`, but at most
/// 1/`TAILS_PART_MAX` of the budget.
const TAILS_PART: usize = 64;
const TAILS_BYTES_MIN: usize = 512 << 10;
const TAILS_PART_MAX: usize = 16;
/// The part for the changes that a merge of the page map holds.
const MAP_MERGE_PART: usize = 64;
/// The part for the workspaces that encode images. Those that decode, and idle image buffers, may
/// each take the same amount.
const SCRATCH_PART: usize = 64;
/// The part that each read-ahead thread reads at once.
const READ_AHEAD_PART: usize = 128;
/// The part for new locations of pages that no checkpoint has committed yet, and its minimum.
const MOVES_PART: usize = 32;
const MOVES_BYTES_MIN: usize = 1 << 20;
/// The part for the dictionaries for reading. Dictionaries for writing may take the same amount.
const DICTIONARIES_PART: usize = 64;
/// The minimum for dictionaries is `DICTIONARIES_BYTES_MIN`, but at most 1/`DICTIONARIES_PART_MAX`
/// of the budget. It is this large because a server alternates between more than four tables.
const DICTIONARIES_BYTES_MIN: usize = 8 << 20;
const DICTIONARIES_PART_MAX: usize = 16;

/// The shares of a budget, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shares {
    total_bytes: usize,
}

impl Shares {
    /// Creates the shares of a budget of `total_bytes` bytes.
    pub fn of(total_bytes: u64) -> Self {
        Self { total_bytes: total_bytes as usize }
    }

    /// The whole budget.
    pub fn total_bytes(self) -> usize {
        self.total_bytes
    }

    /// The maximum bytes for frames, images and pending changes if all other uses take
    /// `others_bytes` (M2). A small part is set aside for descriptors.
    pub fn pages_bytes_max(self, others_bytes: usize) -> usize {
        let available = self.total_bytes.saturating_sub(others_bytes).max(self.total_bytes / 2);
        available - available / DESCRIPTORS_PART
    }

    /// The bytes that images and pending changes leave to frames if all three together may take
    /// `pages_bytes`.
    pub fn frames_bytes_min(self, pages_bytes: usize) -> usize {
        pages_bytes * FRAMES_PERCENT / 100
    }

    /// The maximum bytes for images if frames, images and pending changes together may take
    /// `pages_bytes`, of which pending changes take `buffered_bytes`.
    pub fn images_bytes_max(self, pages_bytes: usize, buffered_bytes: usize) -> usize {
        let left = pages_bytes.saturating_sub(buffered_bytes);
        (left * IMAGES_PERCENT / 100).min(left.saturating_sub(self.frames_bytes_min(pages_bytes)))
    }

    /// The maximum bytes for pending changes if frames, images and pending changes together may
    /// take `pages_bytes`.
    pub fn buffered_bytes_max(self, pages_bytes: usize) -> usize {
        pages_bytes * BUFFERED_PERCENT / 100
    }

    /// The maximum bytes for filters of keys.
    pub fn filters_bytes_max(self) -> usize {
        self.total_bytes / FILTERS_PART
    }

    /// The bytes for memory that is not counted individually.
    pub fn rest_bytes(self) -> usize {
        (self.total_bytes / REST_PART).min(REST_BYTES_MAX)
    }

    /// Returns whether the holes that threads leave in the allocator's memory may exceed the memory
    /// set aside for them. The holes take several MiB regardless of the size of the budget.
    pub fn holes_matter(self) -> bool {
        self.rest_bytes() < HOLES_BYTES
    }

    /// The maximum bytes for locks.
    pub fn locks_bytes_max(self) -> usize {
        (self.total_bytes / LOCKS_PART).max(LOCKS_BYTES_MIN)
    }

    /// The maximum bytes for all sorts.
    pub fn sort_bytes_max(self) -> usize {
        self.total_bytes / SORT_PART
    }

    /// The bytes of each of the two log buffers.
    pub fn log_buffer_bytes(self) -> usize {
        let least = LOG_BUFFER_BYTES_MIN.min(self.total_bytes / LOG_BUFFER_PART_MAX);
        (self.total_bytes / LOG_BUFFER_PART).clamp(least, LOG_BUFFER_BYTES_MAX)
    }

    /// The maximum bytes for the tails of all streams.
    pub fn tails_bytes_max(self) -> usize {
        let least = TAILS_BYTES_MIN.min(self.total_bytes / TAILS_PART_MAX);
        (self.total_bytes / TAILS_PART).max(least)
    }

    /// The maximum bytes for a merge of the page map.
    pub fn map_merge_bytes_max(self) -> usize {
        self.total_bytes / MAP_MERGE_PART
    }

    /// The maximum bytes for the workspaces that encode images, for those that decode, and for idle
    /// image buffers, each.
    pub fn scratch_bytes_max(self) -> usize {
        self.total_bytes / SCRATCH_PART
    }

    /// The maximum bytes that a read-ahead thread reads at once.
    pub fn read_ahead_bytes_max(self) -> usize {
        self.total_bytes / READ_AHEAD_PART
    }

    /// The bytes for the moved pages of an epoch at which a checkpoint should end the epoch.
    pub fn moves_bytes_max(self) -> usize {
        (self.total_bytes / MOVES_PART).max(MOVES_BYTES_MIN)
    }

    /// The maximum bytes for the dictionaries for reading, and also for the dictionaries for
    /// writing.
    pub fn dictionaries_bytes_max(self) -> usize {
        let least = DICTIONARIES_BYTES_MIN.min(self.total_bytes / DICTIONARIES_PART_MAX);
        (self.total_bytes / DICTIONARIES_PART).max(least)
    }
}

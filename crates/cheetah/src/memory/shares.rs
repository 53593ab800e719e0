//! Which part of the budget each use gets. Frames and images get the remainder.

/// Part of the memory of frames that their descriptors and the allocator take.
const DESCRIPTORS_PART: usize = 64;
/// Of the memory of frames and images, the part that images may take.
const IMAGES_PERCENT: usize = 80;
/// Of the memory of frames and images, the part that entries may take which wait for their leaf.
const BUFFERED_PART: usize = 2;
/// For filters of keys.
const FILTERS_PART: usize = 16;
/// For what is not counted one by one, and its most.
const REST_PART: usize = 16;
const REST_BYTES_MAX: usize = 64 << 20;
/// The limit for the holes that threads leave in the allocator: twice what was measured with a
/// dozen threads (`tests/server/test_pool_memory.py`).
const HOLES_BYTES: usize = 16 << 20;
/// For locks. In any case they may take the second amount, which is enough for some thousands.
const LOCKS_PART: usize = 4;
const LOCKS_BYTES_MIN: usize = 1 << 20;
/// For the rows that loads sort.
const SORT_PART: usize = 8;
/// For each of the two buffers of the log; in small memory the smaller amount, but no larger a
/// part. Longer writes than the last amount gain nothing.
const LOG_BUFFER_PART: usize = 256;
const LOG_BUFFER_BYTES_MIN: usize = 128 << 10;
const LOG_BUFFER_PART_MAX: usize = 64;
const LOG_BUFFER_BYTES_MAX: usize = 8 << 20;
/// For the tails of all streams; in small memory the smaller amount, but no larger a part.
const TAILS_PART: usize = 64;
const TAILS_BYTES_MIN: usize = 512 << 10;
const TAILS_PART_MAX: usize = 16;
/// For the changes that a merge of the page map holds.
const MAP_MERGE_PART: usize = 64;
/// For the workspaces of the image codec, and as much for the buffers of images that nobody uses.
const SCRATCH_PART: usize = 64;
/// The part that each read-ahead thread reads from a file at once.
const READ_AHEAD_PART: usize = 128;
/// For new locations of pages that no checkpoint has committed yet; in any case the second amount.
const MOVES_PART: usize = 32;
const MOVES_BYTES_MIN: usize = 1 << 20;
/// For the dictionaries that images are read with, and as much for those they are written with.
const DICTIONARIES_PART: usize = 64;
/// At least this amount, but no larger a part: a server writes to more than four tables in turn.
const DICTIONARIES_BYTES_MIN: usize = 8 << 20;
const DICTIONARIES_PART_MAX: usize = 16;

/// The shares of a budget. All are numbers of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shares {
    total_bytes: usize,
}

impl Shares {
    /// Of a budget of `total_bytes` bytes.
    pub fn of(total_bytes: u64) -> Self {
        Self { total_bytes: total_bytes as usize }
    }

    /// The whole budget.
    pub fn total_bytes(self) -> usize {
        self.total_bytes
    }

    /// Most that the bytes of frames and images may take when all other uses take `others_bytes`
    /// (M2). A small part is left for their descriptors.
    pub fn pages_bytes_max(self, others_bytes: usize) -> usize {
        let available = self.total_bytes.saturating_sub(others_bytes).max(self.total_bytes / 2);
        available - available / DESCRIPTORS_PART
    }

    /// Most that images may take of `pages_bytes` for frames and images.
    pub fn images_bytes_max(self, pages_bytes: usize) -> usize {
        pages_bytes * IMAGES_PERCENT / 100
    }

    /// Most that entries which wait for their leaf may take of `pages_bytes`.
    pub fn buffered_bytes_max(self, pages_bytes: usize) -> usize {
        pages_bytes / BUFFERED_PART
    }

    /// Most that filters of keys may take.
    pub fn filters_bytes_max(self) -> usize {
        self.total_bytes / FILTERS_PART
    }

    /// The memory set aside for all that is not counted one by one.
    pub fn rest_bytes(self) -> usize {
        (self.total_bytes / REST_PART).min(REST_BYTES_MAX)
    }

    /// Whether the holes that threads leave in the allocator may be more than what is set aside
    /// for them. They take some MiB, however large the budget is.
    pub fn holes_matter(self) -> bool {
        self.rest_bytes() < HOLES_BYTES
    }

    /// Most that locks may take.
    pub fn locks_bytes_max(self) -> usize {
        (self.total_bytes / LOCKS_PART).max(LOCKS_BYTES_MIN)
    }

    /// Most that all sorters may take.
    pub fn sort_bytes_max(self) -> usize {
        self.total_bytes / SORT_PART
    }

    /// Each of the two buffers of the log.
    pub fn log_buffer_bytes(self) -> usize {
        let least = LOG_BUFFER_BYTES_MIN.min(self.total_bytes / LOG_BUFFER_PART_MAX);
        (self.total_bytes / LOG_BUFFER_PART).clamp(least, LOG_BUFFER_BYTES_MAX)
    }

    /// Most that the tails of all streams may take.
    pub fn tails_bytes_max(self) -> usize {
        let least = TAILS_BYTES_MIN.min(self.total_bytes / TAILS_PART_MAX);
        (self.total_bytes / TAILS_PART).max(least)
    }

    /// Most that a merge of the page map may hold.
    pub fn map_merge_bytes_max(self) -> usize {
        self.total_bytes / MAP_MERGE_PART
    }

    /// Most that the workspaces of the image codec may take; the same again for idle image buffers.
    pub fn scratch_bytes_max(self) -> usize {
        self.total_bytes / SCRATCH_PART
    }

    /// Most that a read-ahead thread reads at once.
    pub fn read_ahead_bytes_max(self) -> usize {
        self.total_bytes / READ_AHEAD_PART
    }

    /// The limit for the moved pages that an epoch remembers before a checkpoint should end it.
    pub fn moves_bytes_max(self) -> usize {
        (self.total_bytes / MOVES_PART).max(MOVES_BYTES_MIN)
    }

    /// Most that the dictionaries to read with may take; the same again for those to write with.
    pub fn dictionaries_bytes_max(self) -> usize {
        let least = DICTIONARIES_BYTES_MIN.min(self.total_bytes / DICTIONARIES_PART_MAX);
        (self.total_bytes / DICTIONARIES_PART).max(least)
    }
}

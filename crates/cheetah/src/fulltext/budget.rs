//! The memory that a query may take.

use crate::base::{Error, Result, SearchProblem};

/// Rows and hits have IDs of four bytes, and each takes more than eight bytes.
const LIMIT_BYTES_MAX: u64 = 32 << 30;

/// Counts what a query has stored, and refuses more than the limit. Growing vectors may have
/// allocated up to twice as much.
#[derive(Debug)]
pub(super) struct Budget {
    used_bytes: u64,
    limit_bytes: u64,
}

impl Budget {
    pub(super) fn new(limit_bytes: u64) -> Self {
        Self { used_bytes: 0, limit_bytes: limit_bytes.min(LIMIT_BYTES_MAX) }
    }

    /// Counts bytes before they are stored.
    ///
    /// # Errors
    /// Fails with [`Error::Search`] if the limit is exceeded.
    pub(super) fn take(&mut self, bytes: usize) -> Result<()> {
        self.used_bytes += bytes as u64;
        if self.used_bytes <= self.limit_bytes {
            return Ok(());
        }
        Err(Error::Search {
            problem: SearchProblem::TooMuchMemory,
            detail: format!(
                "a full-text query needs more than its limit of {} bytes; search for rarer words, or raise \
                 cheetah_ft_result_cache_limit",
                self.limit_bytes
            ),
        })
    }

    pub(super) fn give_back(&mut self, bytes: usize) {
        self.used_bytes = self.used_bytes.saturating_sub(bytes as u64);
    }
}

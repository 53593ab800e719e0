//! A walk over the page table, page by page, in bounded steps.

use crate::base::PageId;
use crate::format::ImageRef;
use crate::pool::Pool;

/// See the module.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Walk {
    /// The page to look at next.
    next: u64,
    /// The pages of the walk have smaller numbers: behind them it goes on at the first.
    end: u64,
    /// Page numbers that have not been looked at.
    left: u64,
}

impl Walk {
    /// Over all pages that `pool` has now, from the first one.
    pub(super) fn new(pool: &Pool) -> Self {
        Self::from(pool, PageId(0))
    }

    /// Over all pages that `pool` has now, from `first` on, and then those before it.
    pub(super) fn from(pool: &Pool, first: PageId) -> Self {
        let end = pool.page_numbers_end().0.max(1);
        Self { next: first.0 % end, end, left: end }
    }

    /// Whether all pages have been looked at.
    pub(super) fn is_done(&self) -> bool {
        self.left == 0
    }

    /// The page to look at next, and the first one behind the walk.
    pub(super) fn place(&self) -> (u64, u64) {
        (self.next, self.end)
    }

    /// The newest images of the next pages, of `looks_max` pages at most. No I/O.
    pub(super) fn images<'w>(
        &'w mut self,
        pool: &'w Pool,
        looks_max: u64,
    ) -> impl Iterator<Item = ImageRef> + 'w {
        let pids = std::iter::from_fn(move || {
            self.left = self.left.checked_sub(1)?;
            let pid = PageId(self.next);
            self.next = (self.next + 1) % self.end;
            Some(pid)
        });
        let looks_max = usize::try_from(looks_max).unwrap_or(usize::MAX);
        pids.take(looks_max).filter_map(|pid| pool.newest_image(pid))
    }
}

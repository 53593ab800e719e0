//! A walk over the page table, page by page, in bounded steps.

use crate::base::PageId;
use crate::format::ImageRef;
use crate::pool::Pool;

/// See the module.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Walk {
    /// The page to check next.
    next: u64,
    /// The end of the walk's page numbers. After the last page below it the walk continues at
    /// page 0.
    end: u64,
    /// The number of pages not checked yet.
    left: u64,
}

impl Walk {
    /// A walk over all pages that `pool` has now, from the first page.
    pub(super) fn new(pool: &Pool) -> Self {
        Self::from(pool, PageId(0))
    }

    /// A walk over all pages that `pool` has now: from `first` to the last page, then from page 0
    /// to `first`.
    pub(super) fn from(pool: &Pool, first: PageId) -> Self {
        let end = pool.page_numbers_end().0.max(1);
        Self { next: first.0 % end, end, left: end }
    }

    /// Returns whether all pages were checked.
    pub(super) fn is_done(&self) -> bool {
        self.left == 0
    }

    /// The page to check next, and the end of the page numbers.
    pub(super) fn place(&self) -> (u64, u64) {
        (self.next, self.end)
    }

    /// Checks the next pages, at most `looks_max`, and returns their newest images. Does no I/O.
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

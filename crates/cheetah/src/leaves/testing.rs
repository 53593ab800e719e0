//! A database of pages like [`pool::testing`](crate::pool::testing), whose leaves may have pending
//! changes, for the tests of the layers above.

use super::{ColdLeaves, Leaves};
use crate::base::{Config, PageId};
use crate::pool::testing::Database as Pages;
use crate::pool::EpochState;
use cheetah_io::sim::SimDisk;
use std::sync::Arc;

/// See the module. Only checkpoints of [`Self::save_and_commit`] save pending changes; other
/// checkpoints write them.
pub(crate) struct Database {
    pub(crate) pages: Pages,
    pub(crate) leaves: Leaves,
}

impl Database {
    pub(crate) fn new(config: &Config) -> Self {
        Self::open(config, SimDisk::new())
    }

    pub(crate) fn open(config: &Config, disk: SimDisk) -> Self {
        let mut leaves = None;
        let pages = Pages::open_with(config, disk, |memory| {
            let cold = ColdLeaves::new(memory, config);
            leaves = Some(Arc::clone(&cold));
            cold
        });
        let leaves = Leaves::new(Arc::clone(&pages.pool), leaves.expect("they are beside the pool"));
        Self { pages, leaves }
    }

    pub(crate) fn fold(&self, pid: PageId) -> bool {
        let pool = &*self.pages.pool;
        self.leaves.cold.fold(pool, pid, pool.epoch()).unwrap()
    }

    /// Runs a complete checkpoint that saves pending changes. `before_commit` runs before the
    /// change file is complete.
    pub(crate) fn save_and_commit(&self, before_commit: impl FnOnce()) {
        let (mut ended, ()) = self.pages.pool.end_epoch(|_| ());
        let mut saving = self.leaves.begin_saving(ended.epoch());
        saving.save_pending(usize::MAX, &mut || ended.check()).unwrap();
        ended.leave_out_saved().unwrap();
        before_commit();
        let written = ended.finish().unwrap();
        saving.finish().unwrap();
        written.commit(&self.pages.map, &EpochState::default()).unwrap();
        saving.committed();
    }

    pub(crate) fn crash(self, disk: SimDisk) -> Self {
        Self::open(&self.pages.config, disk)
    }
}

impl std::ops::Deref for Database {
    type Target = Pages;
    fn deref(&self) -> &Pages {
        &self.pages
    }
}

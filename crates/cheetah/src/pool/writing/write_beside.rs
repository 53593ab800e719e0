//! Writing the changed pages of a tree beside other work on it, so that little is left to the
//! checkpoint that follows.

use crate::base::{statement_threads, Result, TreeId};
use crate::pool::Pool;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

impl Pool {
    /// Does `work`, and writes meanwhile, on another thread if a statement may have one, changed
    /// pages of a tree, so that little of it is left to a checkpoint afterwards. In any case it
    /// finishes the trial of the dictionary that they are written with, see
    /// [`finish_trial`](Self::finish_trial). The caller keeps the tree from being dropped and
    /// others from changing it: those pages would be written again. Errors are those of `work`: a
    /// thread that needs the pages on disk meets the others again.
    pub fn write_beside<T>(&self, tree: TreeId, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let helper = (statement_threads() > 1).then(|| {
                let thread = thread::Builder::new().name("cheetah-write".into());
                // Without it the checkpoint has more to do.
                thread.spawn_scoped(scope, || self.write_tree(tree, &is_over)).ok()
            });
            let done = work();
            is_over.store(true, Relaxed);
            match helper.flatten().map(thread::ScopedJoinHandle::join) {
                Some(Err(panic)) => std::panic::resume_unwind(panic),
                Some(Ok(_)) => done,
                None => done.and_then(|done| self.trial(tree).finish().map(|()| done)),
            }
        })
    }

    /// Writes the pages of a tree that are dirty now, in their order, until `is_over`.
    fn write_tree(&self, tree: TreeId, is_over: &AtomicBool) -> Result<()> {
        self.trial(tree).finish()?;
        let mut pages = self.changes_of(self.epoch()).dirty_pids();
        pages.retain(|pid| self.table.entry(*pid).tree() == tree);
        pages.sort_unstable();
        for pid in pages.into_iter().take_while(|_| !is_over.load(Relaxed)) {
            let frame = self.table.entry(pid).frame().cloned();
            if let Some(frame) = frame.filter(|frame| frame.dirty().is_some()) {
                self.try_write_out(&frame)?;
            }
        }
        Ok(())
    }
}

//! Writing the dirty pages of a tree concurrently with other work, so that little is left to the
//! next checkpoint.

use crate::base::{statement_threads, Result, TreeId};
use crate::pool::Pool;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

impl Pool {
    /// Runs `work`. If the statement may use another thread, that thread meanwhile makes the due
    /// trial of the tree's dictionary (see [`Trial::finish`](crate::pool::Trial::finish)). It also
    /// writes dirty pages of `tree`, so that little is left to the next checkpoint. Its errors are
    /// ignored, because a thread that needs the pages on disk meets the errors again. Without
    /// another thread, the trial is made after `work`, and its error is returned. The caller must
    /// ensure that the tree is not dropped and not changed meanwhile: changed pages would be
    /// written again.
    pub fn write_beside<T>(&self, tree: TreeId, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let helper = (statement_threads() > 1).then(|| {
                let thread = thread::Builder::new().name("cheetah-write".into());
                // If the thread cannot start, the checkpoint has more to do.
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

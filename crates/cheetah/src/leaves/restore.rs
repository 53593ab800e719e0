//! Startup restores the saved changes ([`super::save`]). If they exceed the memory limit, it makes
//! several passes, each of which restores and applies the changes of a part of the pages.

use super::{change_file, ColdLeaves, Leaves};
use crate::base::hash::hash_number;
use crate::base::{reach, sound, Error, ErrorKind, PageId, Result, TreeId};
use crate::format::change_file::SavedChanges;
use crate::format::page::buffered_keys;
use crate::format::state::ListedFile;
use crate::memory::MemoryUse;
use crate::pool::Pool;
use std::sync::atomic::Ordering::Relaxed;

impl Leaves {
    /// Restores the changes in the listed files, except those of `dropped` trees, and removes all
    /// other files. Called by startup, after the trees are registered and before any other change.
    /// Returns the trees that have lost changes, with the damage. Blocks for I/O.
    pub fn restore_changes(
        &self,
        listed: &[ListedFile],
        dropped: &[TreeId],
    ) -> Result<Vec<(Vec<TreeId>, Error)>> {
        change_file::prepare(self.pool.segments().durable(), listed)?;
        let mut restoring = Restoring {
            pool: &self.pool,
            cold: &self.cold,
            skipped: dropped.to_vec(),
            first: 0,
            last: u64::MAX,
        };
        let mut damaged = Vec::new();
        while !restoring.restore(listed, &mut damaged)? {}
        let given_up = self.cold.pending.take_given_up();
        if !given_up.is_empty() {
            let detail = "the page that they change does not exist; they are lost";
            damaged.push((given_up, Error::corrupt("saved changes", detail)));
        }
        let mut files = self.cold.files.lock();
        if sound!(true, "saving: begin a list anew after a startup") {
            files.listed = listed.to_vec();
        }
        files.next_has_all = !damaged.is_empty();
        Ok(damaged)
    }

    /// From now on, treats a leaf or a change file that the disk cannot read as damaged, and drops
    /// its pending or saved changes: for a copy of a damaged database, whose disk stays unreadable.
    pub fn take_unread_for_damaged(&self) {
        self.cold.takes_unread_for_damaged.store(true, Relaxed);
    }
}

impl ColdLeaves {
    /// Returns whether an error means that a leaf or a change file is, or counts as, damaged.
    pub(super) fn is_damage(&self, error: &Error) -> bool {
        match self.takes_unread_for_damaged.load(Relaxed) {
            true => error.is_of_unreadable_bytes(),
            false => error.kind() == ErrorKind::Corruption,
        }
    }

    /// Folds all pending changes. No other thread may use the database.
    fn fold_all(&self, pool: &Pool) -> Result<()> {
        for pid in pool.changes_of(pool.epoch()).pending_pids() {
            self.fold_or_merge(pool, pid, pool.epoch())?;
            if pool.page_entry(pid).has_pending() {
                let detail = "its pending changes cannot be applied";
                return Err(Error::corrupt(format!("page {pid}"), detail));
            }
        }
        Ok(())
    }
}

struct Restoring<'p> {
    pool: &'p Pool,
    cold: &'p ColdLeaves,
    skipped: Vec<TreeId>,
    /// The range of the hashes of the page numbers of this pass.
    first: u64,
    last: u64,
}

impl Restoring<'_> {
    /// Runs one pass. Returns whether it was the last pass.
    fn restore(&mut self, listed: &[ListedFile], damaged: &mut Vec<(Vec<TreeId>, Error)>) -> Result<bool> {
        for file in listed {
            let read = change_file::read(self.pool.segments().durable(), self.pool.keys(), file, |saved| {
                self.restore_page(saved)
            });
            match read {
                Err(error) if self.cold.is_damage(&error) => {
                    reach::mark("damaged change file");
                    self.skipped.extend(&file.trees);
                    self.forget(|_, tree| file.trees.contains(&tree));
                    if !damaged.iter().any(|(trees, _)| *trees == file.trees) {
                        damaged.push((file.trees.clone(), error));
                    }
                }
                read => {
                    if let Some(damage) = read? {
                        self.cold.note_damaged_file(self.pool, file, damage);
                    }
                }
            }
        }
        let is_last = self.last == u64::MAX;
        if !is_last || self.first > 0 || !self.cold.pending.is_on() {
            self.cold.fold_all(self.pool)?;
        }
        (self.first, self.last) = (self.last.saturating_add(1), u64::MAX);
        Ok(is_last)
    }

    fn restore_page(&mut self, saved: &SavedChanges<'_>) -> Result<()> {
        let (pool, cold, pid) = (self.pool, self.cold, saved.image.pid);
        let hash = hash_number(pid.0);
        if !(self.first..=self.last).contains(&hash) || self.skipped.contains(&saved.image.tree) {
            return Ok(());
        }
        let Some(mut entry) = pool.known_entry(pid) else { return Ok(()) };
        let is_named = entry.image(pid) == Some(saved.image);
        if sound!(!is_named, "saving: restore what the map does not name") {
            return Ok(());
        }
        let damaged = |detail| Error::corrupt(format!("saved changes of page {pid}"), detail);
        for key in buffered_keys(saved.changes) {
            key.map_err(|defect| damaged(defect.to_string()))?;
        }
        if saved.begins {
            cold.forget_pending(pool, pid);
        } else if !entry.has_pending() {
            return Err(damaged("their beginning is missing".to_owned()));
        }
        let epoch = pool.epoch();
        if cold.pending.restore(pid, epoch, saved.changes, saved.growth_bytes) {
            pool.changes_of(epoch).mark_pending(pid);
        }
        entry.set_pending(true);
        entry.set_room(Some(saved.room).filter(|bytes| *bytes > 0));
        drop(entry);
        reach::mark("saved changes restored");
        self.keep_within_memory();
        Ok(())
    }

    /// While memory is full, leaves half of the pages of this pass to the next pass.
    fn keep_within_memory(&mut self) {
        let limit = self.pool.memory().buffered_limit();
        while self.pool.memory().used(MemoryUse::Buffered) > limit && self.last > self.first {
            reach::mark("saved changes restored in several passes");
            self.last = self.first + (self.last - self.first) / 2;
            let last = self.last;
            if self.forget(|pid, _| hash_number(pid.0) > last) == 0 {
                break;
            }
        }
    }

    fn forget(&self, is_such: impl Fn(PageId, TreeId) -> bool) -> usize {
        let mut forgotten = 0;
        for pid in self.pool.changes_of(self.pool.epoch()).pending_pids() {
            let mut entry = self.pool.page_entry(pid);
            if is_such(pid, entry.tree()) {
                self.cold.forget_pending(self.pool, pid);
                entry.set_pending(false);
                forgotten += 1;
            }
        }
        forgotten
    }
}

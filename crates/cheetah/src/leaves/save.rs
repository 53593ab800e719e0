//! Changes that wait for leaves are *saved* in a change file when a checkpoint needs them, and go
//! on waiting ([decision 44](../../../../../docs/developers/decisions/0044-changes-are-saved.md)).
//!
//! Invariants
//!   V1  The changes saved of a page for an epoch are those that waited for it at the epoch switch,
//!       with the image that the page map has in that epoch. Both are looked at under the lock of
//!       the page's entry, while the oldest changes are of that epoch: until then its image cannot
//!       change but with them (B6, C1).
//!   V2  Under the same lock the changes become those of the next epoch, as if its checkpoint had
//!       been given up. So each checkpoint saves, or writes, all that waits.
//!   V3  A file has what no listed file has yet, or all of a page, from the beginning. It is listed
//!       with the ones before, unless it has all of every page. After a checkpoint that was given
//!       up the next one saves all: its own file counts for nothing.
//!   V4  A startup takes a record for what waits if the page map names its image: locations are
//!       never given out twice, so of a page that was written since then it does not. It takes
//!       records in the order of the files; of a tree of which some are damaged, none.
//!   V5  When an image moves under its changes, no file counts for them any more.
//!   V6  Saving may use the reserve of the disk: no statement may make changes that need more than
//!       a page for each leaf (B12). A file takes less, but for the parity of few leaves.
//!   V7  A file is unlinked once an epoch is committed that does not list it, and at a startup. One
//!       of a checkpoint that was given up goes at once, unless its commit may be durable.
//!   V8  After damage of a listed file, mended or not, the next one has all.
//! Locks     `saved_files` for a moment, under no other one, and nothing under it.

use super::change_file::{self, Reading, Writer};
use super::pending::Unsaved;
use super::{ColdLeaves, Leaves};
use crate::base::{reach, sound, Epoch, Error, PageId, Result, TreeId};
use crate::format::change_file::SavedChanges;
use crate::format::encryption::KeyName;
use crate::format::state::ListedFile;
use crate::memory::MemoryUse;
use crate::pool::{Pool, Residence};

/// Files that are listed at most before one has all.
const LISTED_MAX: usize = 32;

/// The change files of the last committed epoch.
#[derive(Default, Debug)]
pub(super) struct SavedFiles {
    pub(super) listed: Vec<ListedFile>,
    /// The last checkpoint was given up.
    pub(super) next_has_all: bool,
    /// Files that are damaged on the disk: their changes are known, and written anew.
    pub(super) damaged: Vec<Epoch>,
    /// Files of checkpoints that were given up, and whose commit may be durable (V7).
    orphans: Vec<Epoch>,
    /// The epoch whose checkpoint may be writing its file.
    in_writing: Option<Epoch>,
    /// The last checkpoint met a full disk: the next one saves nothing.
    is_disk_full: bool,
}

/// How much of what is pending a change file has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Extent {
    /// Nothing: leaves are written instead.
    Nothing,
    /// The entries that no listed file has yet.
    New,
    /// All of every page.
    All,
}

/// The change file of a checkpoint. Dropping it gives the file up.
#[derive(Debug)]
pub(crate) struct Saving<'l> {
    leaves: &'l Leaves,
    epoch: Epoch,
    extent: Extent,
    /// Begun with the first record.
    writer: Option<Writer>,
    changes: Vec<u8>,
    listed: Vec<ListedFile>,
    is_open: bool,
    /// The commit of the epoch has failed, and may be durable all the same (V7).
    may_be_durable: bool,
}

impl Leaves {
    /// A checkpoint has met an error.
    pub fn note_failed_checkpoint(&self, error: &Error) {
        if matches!(error, Error::DiskFull(_)) {
            self.cold.files.lock().is_disk_full = true;
        }
    }

    /// The change file of an epoch that has ended. Nothing is in it yet.
    pub(crate) fn begin_saving(&self, epoch: Epoch) -> Saving<'_> {
        Saving {
            leaves: self,
            epoch,
            extent: Extent::Nothing,
            writer: None,
            changes: Vec::new(),
            listed: Vec::new(),
            is_open: true,
            may_be_durable: false,
        }
    }

    /// How much a checkpoint may save. Nothing where changes may not be pending; and nothing after
    /// one that met a full disk, once: nothing may be left that only folding gives back.
    fn extent_of_saving(&self, epoch: Epoch) -> Extent {
        let pending = &self.cold.pending;
        let mut files = self.cold.files.lock();
        let was_full = std::mem::take(&mut files.is_disk_full);
        if was_full || !sound!(pending.is_on(), "checkpoint: read the leaves that something waits for") {
            return Extent::Nothing;
        }
        files.in_writing = Some(epoch);
        let listed_bytes = files.listed.iter().map(|file| file.bytes).sum::<u64>();
        let pending_bytes = self.pool.memory().used(MemoryUse::Buffered) as u64;
        let is_damaged = sound!(!files.damaged.is_empty(), "saving: go on from what is damaged");
        let has_all = files.next_has_all
            || is_damaged
            || files.listed.len() >= LISTED_MAX
            || listed_bytes > pending_bytes
            || pending.pages_count() == 0;
        if has_all {
            Extent::All
        } else {
            Extent::New
        }
    }

    /// The keys of all change files that there may be, that of a checkpoint under way too: it will
    /// be listed (E14).
    pub fn keys_of_change_files(&self) -> Vec<KeyName> {
        let files = self.cold.files.lock();
        let in_writing = files
            .in_writing
            .filter(|_| sound!(true, "encryption: forget the key of a change file that is being written"));
        let listed = files.listed.iter().map(|file| file.epoch);
        let all: Vec<_> = listed.chain(files.orphans.iter().copied()).chain(in_writing).collect();
        self.pool.keys().of_change_files(&all)
    }

    /// Reads the listed files that have changes of any of `trees`, as far as they are still listed
    /// then: returns the faults that cannot be mended. Blocks for I/O.
    pub fn check_change_files(&self, trees: &[TreeId]) -> Vec<Error> {
        let listed = self.cold.listed_files();
        let of_trees = listed.iter().filter(|file| file.trees.iter().any(|tree| trees.contains(tree)));
        let read = of_trees.filter_map(|file| {
            let read = Reading::open(self.pool.segments().durable(), file).and_then(|mut reading| {
                while reading.check_next(self.pool.keys().database())? {}
                Ok(reading.end())
            });
            self.cold.note_read_file(&self.pool, file, read)
        });
        read.collect()
    }

    /// Bytes of the change files.
    pub fn change_file_bytes(&self) -> u64 {
        self.cold.files.lock().listed.iter().map(change_file::bytes_on_disk).sum()
    }
}

impl Saving<'_> {
    /// Saves what is pending for leaves, instead of having these written. `pause` is called between
    /// steps of `step_pages` leaves; its error ends the saving. To be called before a page of the
    /// epoch is written. After an error, drop it and the epoch. Does I/O.
    pub(crate) fn save_pending(
        &mut self,
        step_pages: usize,
        pause: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        self.extent = self.leaves.extent_of_saving(self.epoch);
        if self.extent == Extent::Nothing {
            return Ok(());
        }
        let mut pages = self.leaves.pool.changes_of(self.epoch).pending_pids();
        // In the order of their numbers: it compresses better.
        pages.sort_unstable();
        for (number, step) in pages.chunks(step_pages).enumerate() {
            if number > 0 {
                pause()?;
            }
            step.iter().try_for_each(|pid| self.save_page(*pid))?;
        }
        Ok(())
    }

    /// Saves what is pending for a page since the epoch or before, if it has no frame.
    fn save_page(&mut self, pid: PageId) -> Result<()> {
        let (pool, cold) = (&*self.leaves.pool, &*self.leaves.cold);
        let entry = pool.page_entry(pid);
        if !entry.has_pending() || entry.residence() != Residence::Stored {
            return Ok(());
        }
        let Some(image) = entry.image(pid) else { return Ok(()) };
        self.changes.clear();
        let unsaved = cold.pending.save(pid, self.epoch, self.extent == Extent::All, &mut self.changes);
        let Some(Unsaved { begins, growth_bytes }) = unsaved else { return Ok(()) };
        cold.carry_over_pending(pool, pid, self.epoch);
        // Room that is not known is written as none; so little room is not known after a startup.
        let room = entry.room().unwrap_or(0);
        drop(entry);
        if !sound!(!self.changes.is_empty(), "saving: forget what waits") {
            return Ok(());
        }
        reach::mark("changes saved");
        let changes = std::mem::take(&mut self.changes);
        let record = SavedChanges { image, begins, room, growth_bytes, changes: &changes };
        let before = self.writer.as_ref().map_or(0, Writer::bytes);
        let writer = self.writer()?;
        writer.push(&record)?;
        pool.note_space_taken((writer.bytes() - before) as usize);
        self.changes = changes;
        Ok(())
    }

    fn writer(&mut self) -> Result<&mut Writer> {
        let pool = &*self.leaves.pool;
        Ok(match self.writer.take() {
            Some(writer) => self.writer.insert(writer),
            None => self.writer.insert(Writer::create(pool.segments().durable(), pool.keys(), self.epoch)?),
        })
    }

    /// Makes what was saved durable: the files that the epoch lists. Blocks for I/O.
    pub(crate) fn finish(&mut self) -> Result<&[ListedFile]> {
        let (pool, cold) = (&*self.leaves.pool, &*self.leaves.cold);
        if self.extent == Extent::New {
            self.listed = cold.files.lock().listed.clone();
        }
        if let Some(writer) = self.writer.take() {
            let before = writer.bytes();
            let file = writer.finish()?;
            pool.note_space_taken((change_file::bytes_on_disk(&file) - before) as usize);
            self.listed.push(file);
        }
        if !sound!(true, "saving: unlink before the commit") {
            let files = cold.files.lock();
            let gone = files.listed.iter().filter(|file| !self.listed.contains(file));
            gone.for_each(|file| drop(change_file::remove(pool.segments().durable(), file.epoch)));
        }
        Ok(&self.listed)
    }

    /// The commit of the epoch that lists the files has failed, and may be durable all the same.
    pub(crate) fn note_may_be_durable(&mut self) {
        self.may_be_durable = true;
    }

    /// The epoch that lists the files is committed.
    pub(crate) fn committed(mut self) {
        self.is_open = false;
        self.leaves.cold.note_listed(&self.leaves.pool, std::mem::take(&mut self.listed));
    }
}

impl Drop for Saving<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.leaves.cold.give_up_saving(&self.leaves.pool, self.epoch, self.may_be_durable);
        }
    }
}

impl ColdLeaves {
    /// An epoch is committed that lists these files.
    fn note_listed(&self, pool: &Pool, listed: Vec<ListedFile>) {
        let mut files = self.files.lock();
        let before = std::mem::replace(&mut files.listed, listed);
        files.next_has_all = false;
        files.in_writing = None;
        let mut gone: Vec<_> = before.iter().map(|file| file.epoch).collect();
        gone.append(&mut files.orphans);
        gone.retain(|epoch| files.listed.iter().all(|file| file.epoch != *epoch));
        // One that was let go of just before it was noted is not listed either.
        let SavedFiles { listed, damaged, .. } = &mut *files;
        damaged.retain(|epoch| listed.iter().any(|file| file.epoch == *epoch));
        let is_intact = damaged.is_empty();
        drop(files);
        if is_intact {
            pool.health().background_errors().clear(change_file::PLACE);
        }
        for epoch in gone {
            // A file that is left goes at the next startup.
            let _ = change_file::remove(pool.segments().durable(), epoch);
        }
    }

    /// The checkpoint of an epoch is given up; `may_be_durable` if CONTROL may name it (V7).
    fn give_up_saving(&self, pool: &Pool, epoch: Epoch, may_be_durable: bool) {
        let mut files = self.files.lock();
        files.next_has_all = sound!(true, "saving: count what was given up as saved");
        files.in_writing = None;
        if sound!(may_be_durable, "saving: unlink what may be durable") {
            files.orphans.push(epoch);
            return;
        }
        drop(files);
        // A file that is left goes at the next startup.
        let _ = change_file::remove(pool.segments().durable(), epoch);
    }

    /// The files that the last committed epoch lists.
    pub(super) fn listed_files(&self) -> Vec<ListedFile> {
        self.files.lock().listed.clone()
    }

    /// A file has been read to its end, or to an error: its damage is noted, unless a checkpoint
    /// has let go of the file meanwhile. The error, if it was not.
    pub(super) fn note_read_file(
        &self,
        pool: &Pool,
        file: &ListedFile,
        read: Result<Option<Error>>,
    ) -> Option<Error> {
        let is_listed = self.files.lock().listed.contains(file);
        if matches!(read, Ok(None)) || sound!(!is_listed, "saving: tell of a file that has gone") {
            return None;
        }
        match read {
            Ok(damage) => {
                self.note_damaged_file(pool, file, damage?);
                None
            }
            Err(error) => {
                self.note_damaged_file(pool, file, error.as_damage_of(&change_file::path_of(file.epoch)));
                Some(error)
            }
        }
    }

    /// A file is damaged. Its changes are known: they are in memory, or will be. That is a
    /// background error until a checkpoint has written all anew.
    pub(super) fn note_damaged_file(&self, pool: &Pool, file: &ListedFile, damage: Error) {
        let mut files = self.files.lock();
        if !files.damaged.contains(&file.epoch) {
            files.damaged.push(file.epoch);
        }
        drop(files);
        let errors = pool.health().background_errors();
        errors.note(change_file::PLACE, &damage.with_words("the next checkpoint writes anew what it has"));
        // A checkpoint may have done so since then.
        if self.files.lock().damaged.is_empty() {
            errors.clear(change_file::PLACE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Config;
    use crate::leaves::testing::Database;

    /// A checkpoint may let go of a change file between the look whether it is listed and the note
    /// that it is damaged: the note goes with the next one.
    #[test]
    fn damage_of_a_change_file_that_has_gone_is_forgotten() {
        let db = Database::new(&Config::tiny());
        let file = ListedFile { epoch: Epoch(1 << 40), bytes: 100, chain: 1, trees: Vec::new() };
        db.leaves.cold.note_damaged_file(&db.pool, &file, Error::corrupt("a file", "damaged"));
        let errors = db.pool.health().background_errors();
        assert_eq!(errors.list().len(), 1);
        db.save_and_commit(|| ());
        assert!(errors.list().is_empty(), "{errors:?}");
    }
}

//! When a checkpoint needs pending changes to be durable, it *saves* them in a change file, and
//! they stay pending
//! ([decision 44](../../../../../docs/developers/decisions/0044-changes-are-saved.md)).
//!
//! Invariants
//!   V1  For a page and an epoch, the changes that were pending at the epoch switch are saved. They
//!       are saved with the page's image in the page map of that epoch. Changes and image are read
//!       under the lock of the page's entry while the oldest changes belong to that epoch. As long
//!       as this is so, the image can only change together with the changes (B6, C1).
//!   V2  Under the same lock the saved changes become changes of the next epoch, as after an
//!       abandoned checkpoint. So each checkpoint saves or writes all pending changes.
//!   V3  A file contains all changes of every page, or only the changes that no listed file has
//!       yet. In the latter case it also contains all changes of each page whose image moved (V5).
//!       The file is listed in addition to the previous files, unless it contains all changes of
//!       every page. The checkpoint after an abandoned checkpoint saves all changes, because the
//!       file of the abandoned checkpoint is not valid.
//!   V4  Startup restores a record if the page map names its image. Locations are never reused, so
//!       startup skips the records of a page that was written after the record. Startup restores
//!       records in the order of the files. If a file is damaged, it restores no records of the
//!       trees in that file.
//!   V5  When an image with pending changes moves, the files are no longer valid for these changes.
//!   V6  Saving may use the reserve of the disk. For each leaf with pending changes the space of a
//!       page is promised (B12). A file needs less space than that; only its parity can exceed the
//!       promise, if there are few leaves.
//!   V7  A file is unlinked once an epoch that does not list it is committed, and at startup. The
//!       file of an abandoned checkpoint is unlinked at once, unless its commit may be durable.
//!   V8  After damage of a listed file, repaired or not, the next file contains all changes.
//! Locks     `files`, held briefly. It may be locked while the lock of scrubbed files is held.
//!           While `files` is held, only the keys' list of change files is locked.

use super::change_file::{self, Reading, Writer};
use super::pending::Unsaved;
use super::{ColdLeaves, Leaves};
use crate::base::{reach, sound, Epoch, Error, PageId, Result, TreeId};
use crate::format::change_file::SavedChanges;
use crate::format::encryption::KeyName;
use crate::format::state::ListedFile;
use crate::memory::MemoryUse;
use crate::pool::{Pool, Residence};

/// When this number of files is listed, the next file contains all changes.
const LISTED_MAX: usize = 32;

#[derive(Default, Debug)]
pub(super) struct SavedFiles {
    pub(super) listed: Vec<ListedFile>,
    /// Set if the last checkpoint was abandoned or startup found damage.
    pub(super) next_has_all: bool,
    /// Files damaged on disk. Their changes are in memory, and the next checkpoint rewrites them.
    pub(super) damaged: Vec<Epoch>,
    /// Files of abandoned checkpoints whose commit may be durable (V7).
    orphans: Vec<Epoch>,
    /// The epoch whose checkpoint may be writing its file.
    in_writing: Option<Epoch>,
    /// The last checkpoint met a full disk, so the next one saves nothing.
    is_disk_full: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Extent {
    /// No changes. Leaves are written instead.
    Nothing,
    /// The changes that no listed file has yet.
    New,
    /// All changes of every page.
    All,
}

/// The change file of a checkpoint. Dropping it abandons the file.
#[derive(Debug)]
pub(crate) struct Saving<'l> {
    leaves: &'l Leaves,
    epoch: Epoch,
    extent: Extent,
    /// Created when the first record is pushed.
    writer: Option<Writer>,
    changes: Vec<u8>,
    listed: Vec<ListedFile>,
    is_open: bool,
    /// Whether the commit of the epoch has failed, but may be durable (V7).
    may_be_durable: bool,
}

impl Leaves {
    /// Notes that a checkpoint has failed with `error`.
    pub fn note_failed_checkpoint(&self, error: &Error) {
        if matches!(error, Error::DiskFull(_)) {
            self.cold.files.lock().is_disk_full = true;
        }
    }

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

    /// Returns the part of the pending changes that a checkpoint saves: `Nothing` if changes may
    /// not be pending, or after a checkpoint that met a full disk, because saving frees no space
    /// and folding may.
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

    /// The keys of all change files that may exist, also that of a checkpoint in progress (E14).
    pub fn keys_of_change_files(&self) -> Vec<KeyName> {
        let files = self.cold.files.lock();
        let in_writing = files
            .in_writing
            .filter(|_| sound!(true, "encryption: forget the key of a change file that is being written"));
        let listed = files.listed.iter().map(|file| file.epoch);
        let all: Vec<_> = listed.chain(files.orphans.iter().copied()).chain(in_writing).collect();
        self.pool.keys().of_change_files(&all)
    }

    /// Reads the listed files that have changes of any of `trees`. Returns the damage that cannot
    /// be repaired, except that of files no longer listed after the read. Blocks for I/O.
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

    /// Bytes of the change files on disk.
    pub fn change_file_bytes(&self) -> u64 {
        self.cold.files.lock().listed.iter().map(change_file::bytes_on_disk).sum()
    }
}

impl Saving<'_> {
    /// Saves pending changes, so that their leaves need not be written. Calls `pause` between steps
    /// of `step_pages` leaves; an error of `pause` ends the saving. Must be called before any page
    /// of the epoch is written. After an error, drop this and the epoch. Does I/O.
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
        // The order of page numbers compresses better.
        pages.sort_unstable();
        for (number, step) in pages.chunks(step_pages).enumerate() {
            if number > 0 {
                pause()?;
            }
            step.iter().try_for_each(|pid| self.save_page(*pid))?;
        }
        Ok(())
    }

    /// Saves the pending changes of a page if it has no frame and they belong to the epoch.
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
        // An unknown number is written as 0: after a startup, the number of a full leaf is unknown.
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

    /// Makes the saved changes durable. Returns the files that the epoch lists. Blocks for I/O.
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

    /// Notes that the commit of the epoch that lists the files has failed, but may be durable.
    pub(crate) fn note_may_be_durable(&mut self) {
        self.may_be_durable = true;
    }

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
    /// Notes that an epoch that lists these files is committed.
    fn note_listed(&self, pool: &Pool, listed: Vec<ListedFile>) {
        let mut files = self.files.lock();
        let before = std::mem::replace(&mut files.listed, listed);
        files.next_has_all = false;
        files.in_writing = None;
        let mut gone: Vec<_> = before.iter().map(|file| file.epoch).collect();
        gone.append(&mut files.orphans);
        gone.retain(|epoch| files.listed.iter().all(|file| file.epoch != *epoch));
        // A damaged file is no longer listed if it was removed just before its damage was noted.
        let SavedFiles { listed, damaged, .. } = &mut *files;
        damaged.retain(|epoch| listed.iter().any(|file| file.epoch == *epoch));
        let is_intact = damaged.is_empty();
        drop(files);
        if is_intact {
            pool.health().background_errors().clear(change_file::PLACE);
        }
        for epoch in gone {
            // The next startup removes a remaining file.
            let _ = change_file::remove(pool.segments().durable(), epoch);
        }
    }

    /// Abandons the change file of an epoch, which CONTROL may name if `may_be_durable` (V7).
    fn give_up_saving(&self, pool: &Pool, epoch: Epoch, may_be_durable: bool) {
        let mut files = self.files.lock();
        files.next_has_all = sound!(true, "saving: count what was given up as saved");
        files.in_writing = None;
        if sound!(may_be_durable, "saving: unlink what may be durable") {
            files.orphans.push(epoch);
            return;
        }
        drop(files);
        // The next startup removes a remaining file.
        let _ = change_file::remove(pool.segments().durable(), epoch);
    }

    pub(super) fn listed_files(&self) -> Vec<ListedFile> {
        self.files.lock().listed.clone()
    }

    /// Notes the damage of a file that was read to its end or to an error, unless a checkpoint has
    /// removed the file. Returns the damage if it cannot be repaired.
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

    /// Notes the damage of a file. Its changes are already in memory, or startup is restoring them.
    /// The damage is a background error until a checkpoint has rewritten all changes.
    pub(super) fn note_damaged_file(&self, pool: &Pool, file: &ListedFile, damage: Error) {
        let mut files = self.files.lock();
        if !files.damaged.contains(&file.epoch) {
            files.damaged.push(file.epoch);
        }
        drop(files);
        let errors = pool.health().background_errors();
        errors.note(change_file::PLACE, &damage.with_words("the next checkpoint rewrites its changes"));
        // A checkpoint may have rewritten the changes concurrently.
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

    /// A checkpoint may remove a change file after the check that the file is listed and before its
    /// damage is noted. The next checkpoint removes this note.
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

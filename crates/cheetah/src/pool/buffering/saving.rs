//! What waits for leaves is *saved* in a change file when a checkpoint needs it, and goes on
//! waiting ([decision 44](../../../../../docs/decisions/0044-changes-are-saved.md)).
//!
//! Invariants
//!   V1  What is saved of a page for an epoch is what waited for it at the epoch switch, with the
//!       image that the page map has in that epoch. Both are looked at under the lock of the page's
//!       entry, while the oldest changes are of that epoch: until then its image cannot change but
//!       with them (B6, C1).
//!   V2  Under the same lock the changes become those of the next epoch, as if its checkpoint had
//!       been given up. So each checkpoint saves, or writes, all that waits.
//!   V3  A file has what no listed file has yet, or all of a page, from the beginning. It is listed
//!       with the ones before, unless it has all of every page. After a checkpoint that was given
//!       up the next one saves all: its own file counts for nothing.
//!   V4  A startup takes a record for what waits if the page map names its image: locations are
//!       never given out twice, so of a page that was written since then it does not. It takes
//!       records in the order of the files; of a tree of which some are damaged, none.
//!   V5  When an image moves under its changes, no file counts for them any more.
//!   V6  What is saved may use the reserve of the disk: nobody may change what needs more than a
//!       page for each leaf (B12). A file takes less, but for the parity of few leaves.
//!   V7  A file is unlinked once an epoch is committed that does not list it, and at a startup. One
//!       of a checkpoint that was given up goes at once, unless its commit may be durable.
//!   V8  After damage of a listed file, mended or not, the next one has all.
//! Locks     `saved_files` for a moment, under no other one, and nothing under it.

use super::entries::Unsaved;
use crate::base::{planted, reach, Epoch, Error, PageId, Result, TreeId};
use crate::change_files::{self, Reading, Writer};
use crate::format::change_file::SavedChanges;
use crate::format::encryption::KeyName;
use crate::format::state::ListedFile;
use crate::memory::MemoryUse;
use crate::pool::frames::Residence;
use crate::pool::Pool;

/// Files that are listed at most before one has all.
const LISTED_MAX: usize = 32;

/// The change files of the last committed epoch.
#[derive(Default, Debug)]
pub(in crate::pool) struct SavedFiles {
    pub(super) listed: Vec<ListedFile>,
    /// The last checkpoint was given up.
    pub(super) next_has_all: bool,
    /// Files that are damaged on the disk: what they have is known, and written anew.
    pub(super) damaged: Vec<Epoch>,
    /// Files of checkpoints that were given up, and whose commit may be durable (V7).
    orphans: Vec<Epoch>,
    /// The epoch whose checkpoint may be writing its file.
    in_writing: Option<Epoch>,
    /// The last checkpoint met a full disk: the next one saves nothing.
    is_disk_full: bool,
}

/// The change file of a checkpoint.
#[derive(Debug)]
pub(in crate::pool) struct Saving {
    epoch: Epoch,
    has_all: bool,
    /// Begun with the first record.
    writer: Option<Writer>,
    changes: Vec<u8>,
}

impl Pool {
    /// Whether a checkpoint may save what waits. After one that met a full disk it may not, once:
    /// nothing may be left that only folding gives back.
    pub(in crate::pool) fn take_may_save(&self) -> bool {
        !std::mem::take(&mut self.saved_files.lock().is_disk_full) && self.buffering_is_on()
    }

    /// A checkpoint has met an error.
    pub fn note_failed_checkpoint(&self, error: &Error) {
        if matches!(error, Error::DiskFull(_)) {
            self.saved_files.lock().is_disk_full = true;
        }
    }

    /// Begins to save for an epoch that has ended.
    pub(in crate::pool) fn begin_saving(&self, epoch: Epoch) -> Saving {
        let mut files = self.saved_files.lock();
        files.in_writing = Some(epoch);
        let listed_bytes = files.listed.iter().map(|file| file.bytes).sum::<u64>();
        let waiting_bytes = self.memory.used(MemoryUse::Buffered) as u64;
        let is_damaged = !files.damaged.is_empty() && !planted::is_on("saving: go on from what is damaged");
        let has_all = files.next_has_all
            || is_damaged
            || files.listed.len() >= LISTED_MAX
            || listed_bytes > waiting_bytes
            || self.buffering.pages_count() == 0;
        Saving { epoch, has_all, writer: None, changes: Vec::new() }
    }

    /// Saves what waits for a page since the epoch of `saving` or before, if it has no frame.
    pub(in crate::pool) fn save_page(&self, saving: &mut Saving, pid: PageId) -> Result<()> {
        let entry = self.table.entry(pid);
        if !entry.is_buffered() || entry.residence() != Residence::Stored {
            return Ok(());
        }
        let Some(image) = entry.image(pid) else { return Ok(()) };
        saving.changes.clear();
        let unsaved = self.buffering.save(pid, saving.epoch, saving.has_all, &mut saving.changes);
        let Some(Unsaved { begins, growth_bytes }) = unsaved else { return Ok(()) };
        self.carry_over_buffered(pid, saving.epoch);
        // What is not known is written as none; so little room is not known after a startup.
        let room = entry.room().unwrap_or(0);
        drop(entry);
        if saving.changes.is_empty() || planted::is_on("saving: forget what waits") {
            return Ok(());
        }
        reach::mark("changes saved");
        let changes = std::mem::take(&mut saving.changes);
        let record = SavedChanges { image, begins, room, growth_bytes, changes: &changes };
        let before = saving.writer.as_ref().map_or(0, Writer::bytes);
        let writer = saving.writer(self)?;
        writer.push(&record)?;
        self.note_space_taken((writer.bytes() - before) as usize);
        saving.changes = changes;
        Ok(())
    }

    /// Makes what was saved durable, and says which files the epoch lists.
    pub(in crate::pool) fn end_saving(&self, saving: Saving) -> Result<Vec<ListedFile>> {
        let mut listed = match saving.has_all {
            true => Vec::new(),
            false => self.saved_files.lock().listed.clone(),
        };
        if let Some(writer) = saving.writer {
            let before = writer.bytes();
            let file = writer.finish()?;
            self.note_space_taken((change_files::bytes_on_disk(&file) - before) as usize);
            listed.push(file);
        }
        if planted::is_on("saving: unlink before the commit") {
            let files = self.saved_files.lock();
            let gone = files.listed.iter().filter(|file| !listed.contains(file));
            gone.for_each(|file| drop(change_files::remove(self.segments.durable(), file.epoch)));
        }
        Ok(listed)
    }

    /// An epoch is committed that lists these files.
    pub(in crate::pool) fn note_listed(&self, listed: Vec<ListedFile>) {
        let mut files = self.saved_files.lock();
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
            self.health.background_errors().clear(change_files::PLACE);
        }
        for epoch in gone {
            // What is left goes at the next startup.
            let _ = change_files::remove(self.segments.durable(), epoch);
        }
    }

    /// The checkpoint of an epoch is given up; `may_be_durable` if CONTROL may name it (V7).
    pub(in crate::pool) fn give_up_saving(&self, epoch: Epoch, may_be_durable: bool) {
        let mut files = self.saved_files.lock();
        files.next_has_all = !planted::is_on("saving: count what was given up as saved");
        files.in_writing = None;
        if may_be_durable && !planted::is_on("saving: unlink what may be durable") {
            files.orphans.push(epoch);
            return;
        }
        drop(files);
        // What is left goes at the next startup.
        let _ = change_files::remove(self.segments.durable(), epoch);
    }

    /// The keys of all change files that there may be, that of a checkpoint under way too: it will
    /// be listed (E14).
    pub fn keys_of_change_files(&self) -> Vec<KeyName> {
        let files = self.saved_files.lock();
        let in_writing = files
            .in_writing
            .filter(|_| !planted::is_on("encryption: forget the key of a change file that is being written"));
        let listed = files.listed.iter().map(|file| file.epoch);
        let all: Vec<_> = listed.chain(files.orphans.iter().copied()).chain(in_writing).collect();
        self.keys.of_change_files(&all)
    }

    /// Reads the listed files that have changes of any of `trees`, as far as they are still listed
    /// then: what is wrong with them and cannot be mended. Blocks for I/O.
    pub fn check_change_files(&self, trees: &[TreeId]) -> Vec<Error> {
        let listed = self.listed_files();
        let of_trees = listed.iter().filter(|file| file.trees.iter().any(|tree| trees.contains(tree)));
        let read = of_trees.filter_map(|file| {
            let read = Reading::open(self.segments.durable(), file).and_then(|mut reading| {
                while reading.check_next(self.keys.database())? {}
                Ok(reading.end())
            });
            self.note_read_file(file, read)
        });
        read.collect()
    }

    /// The files that the last committed epoch lists.
    pub(in crate::pool) fn listed_files(&self) -> Vec<ListedFile> {
        self.saved_files.lock().listed.clone()
    }

    /// A file has been read to its end, or to an error: what was damaged is noted, unless a
    /// checkpoint has let go of the file meanwhile. The error, if it was not.
    pub(in crate::pool) fn note_read_file(
        &self,
        file: &ListedFile,
        read: Result<Option<Error>>,
    ) -> Option<Error> {
        let is_listed = self.saved_files.lock().listed.contains(file)
            || planted::is_on("saving: tell of a file that has gone");
        if matches!(read, Ok(None)) || !is_listed {
            return None;
        }
        match read {
            Ok(damage) => {
                self.note_damaged_file(file, damage?);
                None
            }
            Err(error) => {
                self.note_damaged_file(file, error.as_damage_of(&change_files::path_of(file.epoch)));
                Some(error)
            }
        }
    }

    /// A file is damaged. What it has is known: it is in memory, or will be. That is a background
    /// error until a checkpoint has written all anew.
    pub(in crate::pool) fn note_damaged_file(&self, file: &ListedFile, damage: Error) {
        let mut files = self.saved_files.lock();
        if !files.damaged.contains(&file.epoch) {
            files.damaged.push(file.epoch);
        }
        drop(files);
        let errors = self.health.background_errors();
        errors.note(change_files::PLACE, &damage.with_words("the next checkpoint writes anew what it has"));
        // A checkpoint may have done so since then.
        if self.saved_files.lock().damaged.is_empty() {
            errors.clear(change_files::PLACE);
        }
    }

    /// Bytes of the change files.
    pub fn change_file_bytes(&self) -> u64 {
        self.saved_files.lock().listed.iter().map(change_files::bytes_on_disk).sum()
    }
}

impl Saving {
    fn writer(&mut self, pool: &Pool) -> Result<&mut Writer> {
        let durable = pool.segments.durable();
        Ok(match self.writer.take() {
            Some(writer) => self.writer.insert(writer),
            None => self.writer.insert(Writer::create(durable, &pool.keys, self.epoch)?),
        })
    }
}

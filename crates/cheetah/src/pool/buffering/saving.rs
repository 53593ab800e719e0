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
//!       page for each leaf (B12), and a file takes less.
//!   V7  A file is unlinked once an epoch is committed that does not list it, and at a startup. One
//!       of a checkpoint that was given up stays until then: it may be that its commit is durable.

use super::entries::Unsaved;
use crate::base::hash::hash_number;
use crate::base::{planted, reach, Epoch, Error, ErrorKind, PageId, Result, TreeId};
use crate::change_files::{self, Writer};
use crate::format::change_file::SavedChanges;
use crate::format::page::buffered_keys;
use crate::format::state::ListedFile;
use crate::memory::MemoryUse;
use crate::pool::frames::Residence;
use crate::pool::Pool;

/// Files that are listed at most before one has all.
const LISTED_MAX: usize = 32;
/// One has all, too, when the listed ones are so many times as long as what waits.
const LISTED_TIMES: u64 = 1;
/// What has waited for so many epochs is not saved once more, but written: until then nobody has
/// read the leaf, and it may be damaged (B9).
const EPOCHS_MAX: u64 = 32;

/// The change files of the last committed epoch.
#[derive(Default, Debug)]
pub(in crate::pool) struct SavedFiles {
    listed: Vec<ListedFile>,
    /// The last checkpoint was given up.
    next_has_all: bool,
    /// Files of checkpoints that were given up.
    orphans: Vec<Epoch>,
    /// The disk was full when something was saved: the next checkpoint saves nothing.
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
    /// Whether a checkpoint may save what waits.
    pub(in crate::pool) fn may_save(&self) -> bool {
        self.buffering_is_on() && !std::mem::take(&mut self.saved_files.lock().is_disk_full)
    }

    /// Begins to save for an epoch that has ended.
    pub(in crate::pool) fn begin_saving(&self, epoch: Epoch) -> Saving {
        let files = self.saved_files.lock();
        let listed_bytes = files.listed.iter().map(|file| file.bytes).sum::<u64>();
        let waiting_bytes = self.memory.used(MemoryUse::Buffered) as u64;
        let has_all = files.next_has_all
            || files.listed.len() >= LISTED_MAX
            || listed_bytes > LISTED_TIMES * waiting_bytes
            || self.buffering.pages_count() == 0;
        Saving { epoch, has_all, writer: None, changes: Vec::new() }
    }

    /// Saves what waits for a page since the epoch of `saving` or before, if it has no frame.
    pub(in crate::pool) fn save_page(&self, saving: &mut Saving, pid: PageId) -> Result<()> {
        let entry = self.table.entry(pid);
        if !entry.is_buffered() || entry.residence() != Residence::Stored {
            return Ok(());
        }
        saving.changes.clear();
        let is_old = |since: Epoch| since.0 + EPOCHS_MAX < saving.epoch.0;
        let unsaved = self.buffering.save(pid, saving.epoch, saving.has_all, is_old, &mut saving.changes);
        let Some((unsaved, image)) = unsaved.zip(entry.image(pid)) else { return Ok(()) };
        self.carry_over_buffered(pid, saving.epoch);
        let room = entry.room();
        drop(entry);
        if saving.changes.is_empty() || planted::is_on("saving: forget what waits") {
            return Ok(());
        }
        let Unsaved { begins, growth_bytes } = unsaved;
        reach::mark("changes saved");
        let pushed =
            saving.push(self, &|changes| SavedChanges { image, begins, room, growth_bytes, changes });
        pushed.inspect_err(|error| self.note_full(error))
    }

    fn note_full(&self, error: &Error) {
        if matches!(error, Error::DiskFull(_)) {
            self.saved_files.lock().is_disk_full = true;
        }
    }

    /// Makes what was saved durable, and says which files the epoch lists.
    pub(in crate::pool) fn end_saving(&self, saving: Saving) -> Result<Vec<ListedFile>> {
        let mut listed = match saving.has_all {
            true => Vec::new(),
            false => self.saved_files.lock().listed.clone(),
        };
        if let Some(writer) = saving.writer {
            let file = writer.finish().inspect_err(|error| self.note_full(error))?;
            self.note_space_taken(file.bytes as usize);
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
        let mut gone: Vec<_> = before.iter().map(|file| file.epoch).collect();
        gone.append(&mut files.orphans);
        gone.retain(|epoch| files.listed.iter().all(|file| file.epoch != *epoch));
        drop(files);
        for epoch in gone {
            // What is left goes at the next startup.
            let _ = change_files::remove(self.segments.durable(), epoch);
        }
    }

    /// The checkpoint of an epoch is given up.
    pub(in crate::pool) fn give_up_saving(&self, epoch: Epoch) {
        let mut files = self.saved_files.lock();
        files.next_has_all = !planted::is_on("saving: count what was given up as saved");
        files.orphans.push(epoch);
    }

    /// Bytes of the change files.
    pub fn change_file_bytes(&self) -> u64 {
        self.saved_files.lock().listed.iter().map(|file| file.bytes).sum()
    }

    /// For a startup, once the trees are known, before anything else changes: takes what the listed
    /// files have, but of `dropped` trees, and removes all other files. The trees come back of
    /// which something is lost, with the damage. Blocks for I/O.
    pub fn restore_changes(
        &self,
        listed: &[ListedFile],
        dropped: &[TreeId],
    ) -> Result<Vec<(Vec<TreeId>, Error)>> {
        change_files::prepare(self.segments.durable(), listed)?;
        let mut restoring = Restoring { pool: self, skipped: dropped.to_vec(), from: 0, to: u64::MAX };
        let mut damaged = Vec::new();
        while !restoring.restore(listed, &mut damaged)? {}
        let given_up = self.buffering.take_given_up();
        if !given_up.is_empty() {
            let detail = "a page that changes waited for; they are lost";
            damaged.push((given_up, Error::corrupt("saved changes", detail)));
        }
        let mut files = self.saved_files.lock();
        if !planted::is_on("saving: begin a list anew after a startup") {
            files.listed = listed.to_vec();
        }
        files.next_has_all = !damaged.is_empty();
        Ok(damaged)
    }

    /// Brings what waits into its leaves and writes these, as long as `goes_on` says so. Blocks for
    /// I/O.
    pub fn fold_waiting(&self, goes_on: &dyn Fn() -> bool) -> Result<()> {
        let epoch = self.epoch();
        let waiting = self.changes_of(epoch).buffered_pids();
        waiting.into_iter().take_while(|_| goes_on()).try_for_each(|pid| self.fold_or_merge(pid, epoch))
    }

    /// Folds all that waits, when nobody else is there.
    fn fold_all(&self) -> Result<()> {
        for pid in self.changes_of(self.epoch()).buffered_pids() {
            self.fold_or_merge(pid, self.epoch())?;
            if self.table.entry(pid).is_buffered() {
                let detail = "changes that waited for it cannot be brought into it";
                return Err(Error::corrupt(format!("page {pid}"), detail));
            }
        }
        Ok(())
    }
}

impl Saving {
    /// Adds the record that `of` makes of the changes.
    fn push<'s>(&'s mut self, pool: &Pool, of: &dyn Fn(&'s [u8]) -> SavedChanges<'s>) -> Result<()> {
        let Self { epoch, writer, changes, .. } = self;
        if writer.is_none() {
            *writer = Some(Writer::create(pool.segments.durable(), pool.segments.database(), *epoch)?);
        }
        writer.as_mut().map_or(Ok(()), |writer| writer.push(&of(changes)))
    }
}

/// Takes what waits from change files, in several passes if it is more than memory may hold.
struct Restoring<'p> {
    pool: &'p Pool,
    /// Trees whose records are not taken.
    skipped: Vec<TreeId>,
    /// The pages of this pass, by the hash of their numbers; the last ones belong to each pass that
    /// reaches so far.
    from: u64,
    to: u64,
}

impl Restoring<'_> {
    /// One pass; whether it was the last.
    fn restore(&mut self, listed: &[ListedFile], damaged: &mut Vec<(Vec<TreeId>, Error)>) -> Result<bool> {
        for file in listed {
            let read = change_files::read(
                self.pool.segments.durable(),
                self.pool.segments.database(),
                file,
                |saved| self.restore_page(saved),
            );
            match read {
                Err(error) if error.kind() == ErrorKind::Corruption => {
                    reach::mark("damaged change file");
                    self.skipped.extend(&file.trees);
                    self.forget(|_, tree| file.trees.contains(&tree));
                    if !damaged.iter().any(|(trees, _)| *trees == file.trees) {
                        damaged.push((file.trees.clone(), error));
                    }
                }
                read => read?,
            }
        }
        let is_last = self.to == u64::MAX;
        if !is_last || self.from > 0 || !self.pool.buffering_is_on() {
            self.pool.fold_all()?;
        }
        (self.from, self.to) = (self.to, u64::MAX);
        Ok(is_last)
    }

    fn restore_page(&mut self, saved: &SavedChanges<'_>) -> Result<()> {
        let (pool, pid) = (self.pool, saved.image.pid);
        let hash = hash_number(pid.0);
        if hash < self.from || hash >= self.to || self.skipped.contains(&saved.image.tree) {
            return Ok(());
        }
        let Some(mut entry) = pool.table.existing(pid) else { return Ok(()) };
        let is_named = entry.image(pid) == Some(saved.image);
        if !is_named && !planted::is_on("saving: restore what the map does not name") {
            return Ok(());
        }
        let damaged = |detail| Error::corrupt(format!("saved changes of page {pid}"), detail);
        for key in buffered_keys(saved.changes) {
            key.map_err(|defect| damaged(defect.to_string()))?;
        }
        if saved.begins {
            pool.forget_buffered(pid);
        } else if !entry.is_buffered() {
            return Err(damaged("their beginning is missing".to_owned()));
        }
        let epoch = pool.epoch();
        if pool.buffering.restore(pid, epoch, saved.changes, saved.growth_bytes) {
            pool.changes_of(epoch).mark_buffered(pid);
        }
        entry.set_buffered(true);
        entry.set_room(saved.room);
        drop(entry);
        reach::mark("saved changes restored");
        self.keep_within_memory();
        Ok(())
    }

    /// Leaves half of the pages to the next pass when memory is full.
    fn keep_within_memory(&mut self) {
        let limit = self.pool.memory.buffered_limit();
        while self.pool.memory.used(MemoryUse::Buffered) > limit && self.to - self.from > 1 {
            reach::mark("saved changes restored in several passes");
            self.to = self.from + (self.to - self.from) / 2;
            let to = self.to;
            self.forget(|pid, _| hash_number(pid.0) >= to);
        }
    }

    /// Forgets what was taken of such pages.
    fn forget(&self, is_such: impl Fn(PageId, TreeId) -> bool) {
        for pid in self.pool.changes_of(self.pool.epoch()).buffered_pids() {
            let mut entry = self.pool.table.entry(pid);
            if is_such(pid, entry.tree()) {
                self.pool.forget_buffered(pid);
                entry.set_buffered(false);
            }
        }
    }
}

//! A step of the garbage collection, and what it moves. Invariants: C1, I2 and I3 at the head of
//! the room.

use super::collection::{Collection, Listing};
use crate::base::{planted, Epoch, ErrorKind, PageId, Result};
use crate::durable::space::Reserve;
use crate::format::{ImageRef, Location};
use crate::pool::frames::PageEntry;
use crate::pool::Pool;
use crate::segment::{fill_target, Stream};

/// Entries of the page table looked at in one step, so that one step is short; moving holds the
/// lock for longer.
const LOOKS_MAX: u64 = 100_000;
impl Pool {
    /// One step of the garbage collection: moves what is due since the last step, if the files are
    /// emptier than they should be under the present load. Returns whether it did anything and
    /// should be called again soon. Space is given back by later checkpoints.
    pub fn gc_step(&self, now_ns: u64, io_capacity: u32) -> Result<bool> {
        self.health.check()?;
        let mut collection = self.collection.lock();
        let written = self.counters.written_bytes.get() + self.counters.blob_written_bytes.get();
        let since = collection.since(now_ns, written);
        let device = u64::from(io_capacity) * u64::from(self.page_bytes);
        let totals = self.segments.totals();
        let user = since.per_second(since.written_bytes);
        let target = fill_target(user, device, totals.live_bytes, self.segments.free_bytes()?);
        collection.waits_for_commit = false;
        if totals.collectable_fill() >= target {
            return Ok(false);
        }
        if !self.list_images(&mut collection, LOOKS_MAX) {
            return Ok(true);
        }
        let budget = since.budget(device, self.space().is_short());
        let moved = self.move_images(&mut collection, budget)?;
        if moved == 0 && since.written_bytes == 0 {
            self.segments.seal_sparse()?;
            collection.waits_for_commit = self.segments.waits_for_commit();
        }
        Ok(moved > 0)
    }

    /// Whether a checkpoint would make something durable that is not, or give space back, or let
    /// the collection go on. When not, an idle database needs none.
    pub fn gains_by_checkpoint(&self) -> bool {
        self.changes_of(self.epoch()).is_some() || self.collection.lock().waits_for_commit
    }

    /// Bytes of images written since the startup, less those that are needed. It grows by what is
    /// rewritten, moved or freed: by how much since a checkpoint is what the next one lets go.
    pub fn outdated_bytes(&self) -> i64 {
        let counters = &self.counters;
        let written =
            counters.written_bytes.get() + counters.blob_written_bytes.get() + counters.moved_bytes.get();
        written as i64 - self.segments.totals().live_bytes as i64
    }

    /// Bytes of images that are needed.
    pub fn live_bytes(&self) -> u64 {
        self.segments.totals().live_bytes
    }

    /// Moves images until `budget` bytes are moved, or none of the victim are left: for those who
    /// need space now, and for tests. Returns the bytes moved.
    pub fn collect(&self, budget: u64) -> Result<u64> {
        let mut collection = self.collection.lock();
        self.list_images(&mut collection, u64::MAX);
        self.move_images(&mut collection, budget)
    }

    fn move_images(&self, collection: &mut Collection, budget: u64) -> Result<u64> {
        let mut moved = 0;
        while moved < budget {
            let Some(image) = collection.images.pop() else { break };
            match self.move_image(&image) {
                Ok(bytes) => moved += bytes,
                Err(error) => {
                    if error.kind() == ErrorKind::Corruption {
                        collection.images.clear();
                        self.segments.quarantine(image.location.segment);
                    }
                    return Err(error);
                }
            }
        }
        Ok(moved)
    }

    /// When nothing is left to be moved: chooses a victim and lists its needed images, with up to
    /// `looks_max` looks at the page table, in the order in which they lie in the file. Returns
    /// whether the list is complete.
    fn list_images(&self, collection: &mut Collection, looks_max: u64) -> bool {
        if collection.listing.is_none() && collection.images.is_empty() {
            let victim = self.segments.victim();
            collection.listing = victim.map(|victim| Listing { victim, next: PageId(1) });
        }
        let Some(Listing { victim, next }) = collection.listing else { return true };
        let end = self.numbers.lock().end().0;
        let stop = next.0.saturating_add(looks_max).min(end);
        for pid in (next.0..stop).map(PageId) {
            let image = self.table.existing(pid).and_then(|entry| entry.image(pid));
            collection.images.extend(image.filter(|image| image.location.segment == victim));
        }
        if stop < end {
            collection.listing = Some(Listing { victim, next: PageId(stop) });
            return false;
        }
        collection.listing = None;
        collection.images.sort_unstable_by_key(|image| std::cmp::Reverse(image.location.offset));
        true
    }

    /// Copies one image; returns its bytes, or 0 when it is not needed any more.
    fn move_image(&self, image: &ImageRef) -> Result<u64> {
        if !self.is_movable(&self.table.entry(image.pid), image, self.epoch()) {
            return Ok(0);
        }
        let copy_bytes = u64::from(image.location.stored_bytes);
        self.segments.check_space(self.promised_bytes(), copy_bytes, Reserve::Last)?;
        let copied = self.scratch.with_buffer(|bytes| {
            self.segments.read(image, bytes)?;
            self.segments.append(Stream::Cold, bytes)
        });
        let (bytes, _) = self.put_in_place_of(image, copied)?;
        if bytes > 0 {
            self.counters.moves.one();
            self.counters.moved_bytes.add(bytes);
        }
        Ok(bytes)
    }

    /// Makes a copy of an image, which has been appended there, the image of its page, if it still
    /// may be: the bytes of the copy, and whether it is. Nothing is appended when the image had
    /// gone.
    pub(in crate::pool) fn put_in_place_of(
        &self,
        image: &ImageRef,
        copied: Result<Location>,
    ) -> Result<(u64, bool)> {
        let to = match copied {
            // Replaced meanwhile: its segment may be gone.
            Err(_) if self.table.entry(image.pid).location() != Some(image.location) => {
                return Ok((0, false))
            }
            copied => copied?,
        };
        let mtr = self.enter();
        let mut entry = self.table.entry(image.pid);
        let may_move = self.is_movable(&entry, image, mtr.epoch());
        if may_move {
            self.install(&mut entry, image.pid, to, mtr.epoch());
            self.filters.moved(image.pid, &image.location, to);
        } else {
            self.segments.release(&to, mtr.epoch());
        }
        Ok((u64::from(to.stored_bytes), may_move))
    }

    /// Whether an image may move in `epoch`: see C1 of the module.
    pub(in crate::pool) fn is_movable(&self, entry: &PageEntry, image: &ImageRef, epoch: Epoch) -> bool {
        let unchanged = entry.frame().is_none_or(|frame| frame.dirty().is_none());
        let passes_by = planted::is_on("pool: pass by what something waits for");
        entry.location() == Some(image.location)
            && (unchanged || planted::is_on("pool: move a page with unwritten changes"))
            && (!entry.is_buffered() || !passes_by && self.may_move_under_buffered(image.pid, epoch))
    }
}

#[cfg(test)]
mod tests {
    use crate::base::Config;
    use crate::pool::testing::Database;
    use crate::pool::PageClass;

    #[test]
    fn a_victim_listed_in_small_steps_has_the_same_images() {
        let db = Database::new(&Config::tiny());
        let pids: Vec<_> = (0..2000).map(|value| db.add(PageClass::Base, value)).collect();
        db.checkpoint().unwrap();
        db.checkpoint().unwrap();
        pids.iter().filter(|pid| pid.0 % 8 != 0).for_each(|pid| db.free(*pid));
        for _ in 0..3 {
            db.checkpoint().unwrap();
        }
        let listed = |looks_max| {
            let mut collection = super::Collection::default();
            let mut steps = 1;
            while !db.pool.list_images(&mut collection, looks_max) {
                steps += 1;
            }
            (steps, collection.images)
        };
        let (steps, images) = listed(u64::MAX);
        assert!(steps == 1 && images.len() > 1, "{images:?}");
        assert!(images.windows(2).all(|pair| pair[0].location.offset > pair[1].location.offset));
        assert!(images.iter().all(|image| image.pid.0 % 8 == 0));
        let (steps, again) = listed(100);
        assert!(steps > 10, "{steps}");
        assert_eq!(again, images);
    }
}

//! A step of garbage collection. Invariants C1, I2 and I3 are at the head of `upkeep`.

use super::collection::{Collection, Listing};
use super::walk::Walk;
use super::Upkeep;
use crate::base::{ErrorKind, Result};
use crate::durable::space::Reserve;
use crate::format::ImageRef;
use crate::segment::{fill_target, Stream};

/// The maximum number of page table entries checked in one step, so that this part of the step is
/// short. Moving images takes longer.
const LOOKS_MAX: u64 = 100_000;

impl Upkeep {
    /// Does one step of garbage collection. If the files have less live data than they should under
    /// the present load, moves the images that are due since the last step. Returns whether it
    /// moved images and should be called again soon. Later checkpoints free the space.
    pub fn gc_step(&self, now_ns: u64, io_capacity: u32) -> Result<bool> {
        let pool = &*self.pool;
        pool.health.check()?;
        let mut collection = self.collection.lock();
        let written = pool.counters.written_bytes.get() + pool.counters.blob_written_bytes.get();
        let since = collection.since(now_ns, written);
        let device = u64::from(io_capacity) * u64::from(pool.page_bytes);
        let totals = pool.segments.totals();
        let user = since.per_second(since.written_bytes);
        let target = fill_target(user, device, totals.live_bytes, pool.segments.free_bytes()?);
        collection.waits_for_commit = false;
        if totals.collectable_fill() >= target {
            return Ok(false);
        }
        if !self.list_images(&mut collection, LOOKS_MAX) {
            return Ok(true);
        }
        let budget = since.budget(device, pool.space().is_short());
        let moved = self.move_images(&mut collection, budget)?;
        if moved == 0 && since.written_bytes == 0 {
            pool.segments.seal_sparse()?;
            collection.waits_for_commit = pool.segments.waits_for_commit();
        }
        Ok(moved > 0)
    }

    /// Returns whether a checkpoint would make a change durable, free space, or let the collection
    /// continue. If not, an idle database needs no checkpoint.
    pub fn gains_by_checkpoint(&self) -> bool {
        self.pool.changes_of(self.pool.epoch()).is_some() || self.collection.lock().waits_for_commit
    }

    /// Moves images until `budget` bytes are moved or no image of the victim remains. For callers
    /// that need space now, and for tests. Returns the bytes moved.
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
                        self.pool.segments.quarantine(image.location.segment);
                    }
                    return Err(error);
                }
            }
        }
        Ok(moved)
    }

    /// If no image is left to move, chooses a victim and lists its live images in the order of the
    /// file, with up to `looks_max` checks of the page table. Returns whether the list is complete.
    fn list_images(&self, collection: &mut Collection, looks_max: u64) -> bool {
        let pool = &*self.pool;
        if collection.listing.is_none() && collection.images.is_empty() {
            let victim = pool.segments.victim();
            collection.listing = victim.map(|victim| Listing { victim, walk: Walk::new(pool) });
        }
        let Some(Listing { victim, walk }) = &mut collection.listing else { return true };
        let images = walk.images(pool, looks_max);
        collection.images.extend(images.filter(|image| image.location.segment == *victim));
        if !walk.is_done() {
            return false;
        }
        collection.listing = None;
        collection.images.sort_unstable_by_key(|image| std::cmp::Reverse(image.location.offset));
        true
    }

    /// Moves one image. Returns the bytes of its copy, or 0 if nothing was copied because the image
    /// may not be moved now.
    fn move_image(&self, image: &ImageRef) -> Result<u64> {
        let pool = &*self.pool;
        if !pool.is_movable(&pool.table.entry(image.pid), image, pool.epoch()) {
            return Ok(0);
        }
        let copy_bytes = u64::from(image.location.stored_bytes);
        pool.segments.check_space(pool.promised_bytes(), copy_bytes, Reserve::Last)?;
        let copied = pool.scratch.with_image(|bytes| {
            pool.segments.read(image, bytes)?;
            pool.segments.append(Stream::Cold, bytes)
        });
        let (bytes, _) = pool.put_in_place_of(image, copied)?;
        if bytes > 0 {
            pool.counters.moves.one();
            pool.counters.moved_bytes.add(bytes);
        }
        Ok(bytes)
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
            while !db.upkeep.list_images(&mut collection, looks_max) {
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

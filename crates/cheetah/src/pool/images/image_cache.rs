//! The image cache: images of leaves that were looked into, as they are on disk. Only `look` puts
//! them in; a read that makes a frame finds them here too, and leaves them.
//!
//! An image takes a third or less of its page, so the same memory holds several times as many
//! pages. It has been verified on its way in, and is decompressed each time it is used.
//!
//! The memory is a ring of chunks for each shard: images are appended, and the oldest chunk makes
//! room as a whole. What was used in it since is appended once more, up to a part of a chunk. So
//! there is no list to keep in order, and no hole between images.
//!
//! Invariants
//!   I1  An image is found by its page and its location alone. Locations are never given out twice,
//!       so what is found for the newest location of a page is its newest image.
//!   I2  Images are put here only where frames are nearly full (`Buffers::is_nearly_full`), and
//!       chunks are taken up to a share of the memory of frames and images
//!       ([`MemoryBudget::images_limit`]).
//! Locks     one mutex for each shard; nothing is taken under it but the memory budget.

use crate::base::hash::{hash_number, shard_index, FastMap};
use crate::base::PageId;
use crate::format::image::max_image_bytes;
use crate::format::{ImageRef, Location};
use crate::memory::{MemoryBudget, MemoryUse};
use crate::pool::statistics::Counter;
use crate::pool::PageClass;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

const SHARDS: usize = 8;
/// Chunks that each shard has at most when its share is used up, if they can be as large as that.
const CHUNKS_OF_SHARD: usize = 16;
const CHUNK_BYTES_MAX: usize = 1 << 20;
/// Of a chunk that goes, the part that may be kept.
const KEPT_PART: usize = 3;
/// What the map takes for each image, about.
const PLACE_BYTES: usize = 48;

/// See the module.
#[derive(Debug)]
pub(in crate::pool) struct ImageCache {
    shards: Vec<Mutex<Shard>>,
    chunk_bytes: usize,
    memory: Arc<MemoryBudget>,
    hits: Counter,
    misses: Counter,
}

/// Chunks, oldest first, and where the images in them are.
#[derive(Default, Debug)]
struct Shard {
    chunks: VecDeque<Chunk>,
    /// Number of the oldest chunk.
    first: u64,
    places: FastMap<u64, Place>,
}

/// A piece of memory that images are appended to.
#[derive(Debug)]
struct Chunk {
    bytes: Vec<u8>,
    pages: Vec<PageId>,
}

/// Where an image is.
#[derive(Clone, Copy, Debug)]
struct Place {
    location: Location,
    chunk: u64,
    start: usize,
    is_used: bool,
}

impl ImageCache {
    /// An empty cache.
    pub(in crate::pool) fn new(memory: &Arc<MemoryBudget>, page_bytes: u32) -> Self {
        let image_bytes_max = max_image_bytes(PageClass::Wide.bytes(page_bytes));
        let share = memory.shares().total_bytes() / SHARDS / CHUNKS_OF_SHARD / 2;
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            chunk_bytes: share.clamp(image_bytes_max, CHUNK_BYTES_MAX.max(image_bytes_max)),
            memory: Arc::clone(memory),
            hits: Counter::default(),
            misses: Counter::default(),
        }
    }

    /// Copies an image to the end of `bytes`, if it is here.
    pub(in crate::pool) fn get(&self, image: &ImageRef, bytes: &mut Vec<u8>) -> bool {
        let found = self.shard(image.pid).lock().get(image, bytes);
        if found { &self.hits } else { &self.misses }.one();
        found
    }

    /// Keeps a verified image. What is oldest goes for it.
    pub(in crate::pool) fn put(&self, image: &ImageRef, bytes: &[u8]) {
        let limit = self.memory.images_limit() / SHARDS;
        let mut shard = self.shard(image.pid).lock();
        let before = shard.memory_bytes(self.chunk_bytes);
        if shard.make_room(bytes.len(), self.chunk_bytes, limit) {
            shard.append(image.pid, image.location, bytes);
        }
        self.count(before, shard.memory_bytes(self.chunk_bytes));
    }

    /// Forgets the image of a page, which has another now. That of a page that was freed stays
    /// until its chunk goes: nobody asks for it again (I1).
    pub(in crate::pool) fn forget(&self, pid: PageId) {
        let mut shard = self.shard(pid).lock();
        let before = shard.memory_bytes(self.chunk_bytes);
        if shard.places.remove(&pid.0).is_some() {
            self.count(before, shard.memory_bytes(self.chunk_bytes));
        }
    }

    /// Images that were found, and looked for in vain.
    pub(in crate::pool) fn counts(&self) -> [(&'static str, u64); 2] {
        [("pool_image_hits", self.hits.get()), ("pool_image_misses", self.misses.get())]
    }

    fn shard(&self, pid: PageId) -> &Mutex<Shard> {
        let shard = self.shards.get(shard_index(hash_number(pid.0), SHARDS));
        shard.expect("the index is a remainder by their number")
    }

    fn count(&self, before: usize, after: usize) {
        self.memory.add(MemoryUse::Images, after.saturating_sub(before));
        self.memory.subtract(MemoryUse::Images, before.saturating_sub(after));
    }
}

impl Shard {
    fn get(&mut self, image: &ImageRef, bytes: &mut Vec<u8>) -> bool {
        let Some(place) = self.places.get_mut(&image.pid.0) else { return false };
        if place.location != image.location {
            return false;
        }
        place.is_used = true;
        let place = *place;
        let stored = self.bytes_of(&place).expect("a place is in a chunk that is here");
        bytes.extend_from_slice(stored);
        true
    }

    fn bytes_of(&self, place: &Place) -> Option<&[u8]> {
        let chunk = self.chunks.get(place.chunk.checked_sub(self.first)? as usize)?;
        chunk.bytes.get(place.start..place.start + place.location.stored_bytes as usize)
    }

    /// Whether `bytes` more fit: into the newest chunk, a new one, or one that was the oldest.
    fn make_room(&mut self, bytes: usize, chunk_bytes: usize, limit: usize) -> bool {
        if limit < chunk_bytes {
            while self.drop_oldest().is_some() {}
        }
        if bytes > chunk_bytes || limit < chunk_bytes {
            return false;
        }
        if self.fits(bytes) {
            return true;
        }
        let mut dropped = None;
        while self.memory_bytes(chunk_bytes) + chunk_bytes > limit {
            let Some(oldest) = self.drop_oldest() else { break };
            dropped = Some(oldest);
        }
        self.chunks.push_back(Chunk { bytes: Vec::with_capacity(chunk_bytes), pages: Vec::new() });
        let Some((old, used)) = dropped else { return true };
        let mut left = chunk_bytes / KEPT_PART;
        for (pid, place) in used {
            let length = place.location.stored_bytes as usize;
            let Some(less) = left.checked_sub(length) else { break };
            left = less;
            let stored = old.bytes.get(place.start..place.start + length);
            self.append(pid, place.location, stored.expect("a place is in its chunk"));
        }
        self.fits(bytes)
    }

    /// Takes the oldest chunk out, with the images in it that were used.
    fn drop_oldest(&mut self) -> Option<(Chunk, Vec<(PageId, Place)>)> {
        let chunk = self.chunks.pop_front()?;
        let mut used = Vec::new();
        for pid in &chunk.pages {
            let is_here = |place: &&Place| place.chunk == self.first;
            let Some(place) = self.places.get(&pid.0).filter(is_here).copied() else { continue };
            self.places.remove(&pid.0);
            if place.is_used {
                used.push((*pid, place));
            }
        }
        self.first += 1;
        Some((chunk, used))
    }

    fn fits(&self, bytes: usize) -> bool {
        self.chunks.back().is_some_and(|chunk| chunk.bytes.len() + bytes <= chunk.bytes.capacity())
    }

    /// Appends to the newest chunk, where it fits.
    fn append(&mut self, pid: PageId, location: Location, bytes: &[u8]) {
        let next = self.first + self.chunks.len() as u64;
        let Some(newest) = self.chunks.back_mut() else { return };
        let place = Place { location, chunk: next - 1, start: newest.bytes.len(), is_used: false };
        newest.bytes.extend_from_slice(bytes);
        newest.pages.push(pid);
        self.places.insert(pid.0, place);
    }

    fn memory_bytes(&self, chunk_bytes: usize) -> usize {
        self.chunks.len() * chunk_bytes + self.places.len() * PLACE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{SegmentId, TreeId};
    use cheetah_io::Rng;

    const MEMORY_BYTES: u64 = 4 << 20;

    fn cache(memory_bytes: u64) -> ImageCache {
        ImageCache::new(&Arc::new(MemoryBudget::new(memory_bytes)), 4096)
    }

    fn image(pid: u64, offset: u32, stored_bytes: usize) -> ImageRef {
        let location = Location { segment: SegmentId(1), offset, stored_bytes: stored_bytes as u32, crc: 0 };
        ImageRef { pid: PageId(pid), tree: TreeId(16), location }
    }

    fn found(cache: &ImageCache, image: &ImageRef) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        cache.get(image, &mut bytes).then_some(bytes)
    }

    /// What is found is what was put for that location, and memory stays within the limit.
    #[test]
    fn images_that_come_go_and_are_replaced_are_never_mixed_up() {
        let cache = cache(MEMORY_BYTES);
        let mut rng = Rng::new(3);
        let mut newest = FastMap::default();
        let (mut hits, mut stale) = (0, 0);
        for step in 1..40_000u32 {
            let pid = rng.below(3000);
            match rng.below(10) {
                0 => {
                    newest.remove(&pid);
                    cache.forget(PageId(pid));
                }
                1..4 => {
                    let length = 64 * (1 + rng.below(60) as usize);
                    let bytes = rng.bytes(length);
                    let image = image(pid, step, bytes.len());
                    cache.put(&image, &bytes);
                    if let Some((before, _)) = newest.insert(pid, (image, bytes)) {
                        stale += u64::from(found(&cache, &before).is_some());
                    }
                }
                _ => {
                    let Some((image, bytes)) = newest.get(&pid) else { continue };
                    let found = found(&cache, image);
                    assert!(found.as_ref().is_none_or(|found| found == bytes), "step {step}");
                    hits += u64::from(found.is_some());
                }
            }
            assert!(cache.memory.used(MemoryUse::Images) <= cache.memory.images_limit());
        }
        assert!(hits > 1000, "{hits}");
        assert_eq!(stale, 0, "a page has one image");
    }

    #[test]
    fn what_is_used_stays_while_what_is_not_goes() {
        let cache = cache(MEMORY_BYTES);
        let bytes = vec![7; 2048];
        let used = (0..100).map(|pid| image(pid, 1, bytes.len())).collect::<Vec<_>>();
        for pid in 1000..20_000u64 {
            cache.put(&image(pid, 1, bytes.len()), &bytes);
            if let Some(image) = used.get((pid as usize - 1000) / 20).filter(|_| pid % 20 == 0) {
                cache.put(image, &bytes);
            }
            if pid % 10 == 0 {
                used.iter().for_each(|image| drop(found(&cache, image)));
            }
        }
        let left = used.iter().filter(|image| found(&cache, image).is_some()).count();
        assert!(left > 90, "{left} of 100");
        assert_eq!(found(&cache, &image(1000, 1, bytes.len())), None);
    }

    #[test]
    fn an_image_that_is_longer_than_a_chunk_is_not_kept() {
        let cache = cache(MEMORY_BYTES);
        let bytes = vec![7; cache.chunk_bytes + 64];
        let long = image(1, 1, bytes.len());
        cache.put(&long, &bytes);
        assert_eq!((found(&cache, &long), cache.memory.used(MemoryUse::Images)), (None, 0));
    }
}

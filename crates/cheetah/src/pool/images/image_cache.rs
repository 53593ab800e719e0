//! The cache of images that were read for peeks: a second cache level below the frames.
//!
//! An image takes at most a third of its page, so the same memory holds several times the number of
//! pages. Images are verified before they are cached, and decompressed each time they are used. The
//! image of a page that later receives a frame may stay in the cache.
//!
//! Each shard's memory is a ring of chunks. Images are appended, and the oldest chunk is emptied as
//! a whole. Its images that were used since they were added move to its beginning, up to a part of
//! the chunk. So there is no list to keep in order, and no hole between images.
//!
//! Invariants
//!   I1  An image is identified by its page and its location. Locations are never reused, so an
//!       image at the newest location of a page is the page's newest image.
//!   I2  Chunks are added only while frames are nearly full, and take at most a share of the memory
//!       of frames ([`MemoryBudget::images_limit`]). When the limit falls, the cleaner's next step
//!       drops chunks.
//!   I3  Images that are not used while frames are evicted are dropped in favor of frames.
//! Locks     One mutex for each shard. Only the memory budget and the memory of chunks are accessed
//!           under it.

use crate::base::hash::{map_bytes, shards_count, shrink_map, FastMap};
use crate::base::PageId;
use crate::format::image::max_image_bytes;
use crate::format::page::PageBuf;
use crate::format::{ImageRef, Location};
use crate::memory::{MemoryBudget, MemoryUse};
use crate::pool::counters::Counter;
use crate::pool::shards::{Shards, TakesMemory};
use crate::pool::PageClass;
use crate::segment::ImageBuffer;
use cheetah_io::Blocks;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// The maximum number of shards. There are fewer if memory is so small that a chunk could not hold
/// an image.
const SHARDS_MAX: usize = 8;
/// The approximate number of chunks of each shard if images used all memory.
const CHUNKS_OF_SHARD: usize = 32;
const CHUNK_BYTES_MAX: usize = 1 << 20;
/// The step of the sizes of larger chunks. Such a chunk consists of whole pages of the operating
/// system, so its memory can be returned.
const CHUNK_STEP: usize = 4096;
/// At most 1/`KEPT_PART` of an emptied chunk is kept.
const KEPT_PART: usize = 3;
/// The approximate bytes that the chunk's list takes for each image.
const LISTED_BYTES: usize = 2 * size_of::<PageId>();
/// Images count as used if one is found for each `EVICTIONS_PER_HIT` evicted frames.
const EVICTIONS_PER_HIT: u64 = 16;
/// While images are unused, chunks are dropped each time 1/`TURNOVER_PARTS` of the frames was
/// evicted.
const TURNOVER_PARTS: u64 = 8;

/// See the module.
#[derive(Debug)]
pub(in crate::pool) struct ImageCache {
    shards: Shards<Shard>,
    source: ChunkSource,
    memory: Arc<MemoryBudget>,
    hits: Counter,
    misses: Counter,
    seen: Mutex<Seen>,
}

/// The counts at the last check of the cache's use.
#[derive(Default, Debug)]
struct Seen {
    hits: u64,
    evictions: u64,
}

/// Allocates chunks.
#[derive(Debug)]
struct ChunkSource {
    chunk_bytes: usize,
    blocks: Option<Arc<Blocks>>,
}

/// Chunks, oldest first, and the positions of the images in them.
#[derive(Debug)]
struct Shard {
    chunk_bytes: usize,
    chunks: VecDeque<Chunk>,
    /// The number of the oldest chunk.
    first: u64,
    places: FastMap<u64, Place>,
}

/// A piece of memory to which images are appended.
#[derive(Debug)]
struct Chunk {
    memory: PageBuf,
    used_bytes: usize,
    /// The pages whose images were appended. Some of the images were replaced later.
    pages: Vec<PageId>,
}

/// The position of an image.
#[derive(Clone, Copy, Debug)]
struct Place {
    location: Location,
    chunk: u64,
    start: usize,
    is_used: bool,
}

impl ImageCache {
    /// Creates an empty cache.
    pub(in crate::pool) fn new(memory: &Arc<MemoryBudget>, page_bytes: u32) -> Self {
        let image_bytes_max = max_image_bytes(PageClass::Base.bytes(page_bytes));
        let total_bytes = memory.shares().total_bytes();
        let shards = shards_count((total_bytes / CHUNKS_OF_SHARD / image_bytes_max).min(SHARDS_MAX));
        let share = total_bytes / CHUNKS_OF_SHARD / shards;
        let mut chunk_bytes = share.clamp(image_bytes_max, CHUNK_BYTES_MAX);
        if chunk_bytes > CHUNK_STEP {
            chunk_bytes = chunk_bytes.next_multiple_of(CHUNK_STEP);
        }
        let blocks = Blocks::reserve(chunk_bytes, total_bytes / chunk_bytes + shards);
        Self {
            shards: Shards::new(memory, MemoryUse::Images, shards, || Shard::new(chunk_bytes)),
            source: ChunkSource { chunk_bytes, blocks },
            memory: Arc::clone(memory),
            hits: Counter::default(),
            misses: Counter::default(),
            seen: Mutex::default(),
        }
    }

    /// If an image is cached, copies it to `bytes` and returns true. `for_look` says that the
    /// image is used without a frame, so that it should stay in the cache.
    pub(in crate::pool) fn get(&self, image: &ImageRef, for_look: bool, bytes: &mut ImageBuffer) -> bool {
        let found = self.shards.lock(image.pid).get(image, for_look, bytes);
        if found { &self.hits } else { &self.misses }.one();
        found
    }

    /// Adds a verified image. If there is no space, drops the oldest images.
    pub(in crate::pool) fn put(&self, image: &ImageRef, bytes: &[u8]) {
        let limit = self.memory.images_limit() / self.shards.count();
        self.shards.change(image.pid, |shard| {
            if shard.make_room(bytes.len(), &self.source, limit) {
                shard.append(image.pid, image.location, bytes);
            }
        });
    }

    /// Removes the image of a page that has a newer image now.
    pub(in crate::pool) fn forget(&self, pid: PageId) {
        self.shards.change(pid, |shard| {
            shard.places.remove(&pid.0);
            if shard.places.is_empty() {
                shard.clear();
            }
        });
    }

    /// Frees memory that images may no longer use (I2), or that frames need more urgently (I3).
    /// `evictions` is the number of frames evicted so far, and `frames` is the number of frames in
    /// memory.
    pub(in crate::pool) fn give_way(&self, evictions: u64, frames: usize) {
        let limit = self.memory.images_limit() / self.shards.count();
        let are_unused = self.are_unused(evictions, frames as u64);
        self.shards.change_each(|shard| {
            if are_unused {
                shard.drop_oldest();
            }
            shard.drop_beyond(limit);
        });
    }

    /// The approximate number of cached images.
    pub(in crate::pool) fn count(&self) -> usize {
        let mut count = 0;
        self.shards.each(|shard| count += shard.places.len());
        count
    }

    /// Names and values of the hits and misses.
    pub(in crate::pool) fn counts(&self) -> [(&'static str, u64); 2] {
        [("pool_image_hits", self.hits.get()), ("pool_image_misses", self.misses.get())]
    }

    /// Returns whether 1/`TURNOVER_PARTS` of the frames was evicted since the last check, while
    /// hardly any image was found in the cache.
    fn are_unused(&self, evictions: u64, frames: u64) -> bool {
        let mut seen = self.seen.lock();
        let evicted = evictions - seen.evictions;
        if evicted < (frames / TURNOVER_PARTS).max(1) {
            return false;
        }
        let now = Seen { hits: self.hits.get(), evictions };
        let found = now.hits - std::mem::replace(&mut *seen, now).hits;
        found < evicted.div_ceil(EVICTIONS_PER_HIT)
    }
}

impl ChunkSource {
    fn chunk(&self) -> Chunk {
        let block = self.blocks.as_ref().and_then(Blocks::take);
        let memory = block.map_or_else(|| PageBuf::new(self.chunk_bytes), PageBuf::in_block);
        Chunk { memory, used_bytes: 0, pages: Vec::new() }
    }
}

impl TakesMemory for Shard {
    fn memory_bytes(&self) -> usize {
        let places_bytes = self.places.len() * LISTED_BYTES + map_bytes(&self.places);
        self.chunks.len() * self.chunk_bytes + places_bytes
    }
}

impl Shard {
    fn new(chunk_bytes: usize) -> Self {
        Self { chunk_bytes, chunks: VecDeque::new(), first: 0, places: FastMap::default() }
    }

    fn get(&mut self, image: &ImageRef, for_look: bool, bytes: &mut ImageBuffer) -> bool {
        let Some(place) = self.places.get_mut(&image.pid.0) else { return false };
        if place.location != image.location {
            return false;
        }
        place.is_used |= for_look;
        let place = *place;
        let stored = self.bytes_of(&place).expect("a place is in a chunk that is here");
        bytes.set(stored);
        true
    }

    fn bytes_of(&self, place: &Place) -> Option<&[u8]> {
        let chunk = self.chunks.get(place.chunk.checked_sub(self.first)? as usize)?;
        chunk.memory.get(place.start..place.start + place.location.stored_bytes as usize)
    }

    /// Makes space for `bytes` bytes, in the newest chunk, in a new chunk, or by emptying the
    /// oldest chunk. Returns whether they fit.
    fn make_room(&mut self, bytes: usize, source: &ChunkSource, limit: usize) -> bool {
        if bytes > self.chunk_bytes || limit < self.chunk_bytes {
            return false;
        }
        if self.fits(bytes) {
            return true;
        }
        self.drop_beyond(limit);
        if self.memory_bytes() + self.chunk_bytes <= limit {
            self.chunks.push_back(source.chunk());
        } else if !self.renew_oldest(self.chunk_bytes / KEPT_PART) {
            return false;
        }
        self.fits(bytes)
    }

    /// Makes the oldest chunk the newest. The chunk keeps up to `kept_bytes` bytes of images that
    /// were used. Returns `false` if there is no chunk.
    fn renew_oldest(&mut self, kept_bytes: usize) -> bool {
        let Some((mut chunk, used)) = self.take_oldest() else { return false };
        chunk.used_bytes = 0;
        chunk.pages.clear();
        let number = self.first + self.chunks.len() as u64;
        for (pid, place) in used {
            let (start, length) = (chunk.used_bytes, place.location.stored_bytes as usize);
            if start + length > kept_bytes {
                break;
            }
            chunk.memory.copy_within(place.start..place.start + length, start);
            chunk.used_bytes += length;
            chunk.pages.push(pid);
            self.places.insert(pid.0, Place { chunk: number, start, is_used: false, ..place });
        }
        self.chunks.push_back(chunk);
        true
    }

    fn drop_beyond(&mut self, limit: usize) {
        while !self.chunks.is_empty() && self.memory_bytes() > limit {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        drop(self.take_oldest());
        if self.places.is_empty() {
            self.clear();
        }
    }

    /// Removes the oldest chunk. Returns the chunk and its images that were used, in order.
    fn take_oldest(&mut self) -> Option<(Chunk, Vec<(PageId, Place)>)> {
        let chunk = self.chunks.pop_front()?;
        let number = self.first;
        self.first += 1;
        let places = &mut self.places;
        let mut take = |pid: &PageId| {
            let place = *places.get(&pid.0).filter(|place| place.chunk == number)?;
            places.remove(&pid.0);
            place.is_used.then_some((*pid, place))
        };
        let mut used = chunk.pages.iter().filter_map(&mut take).collect::<Vec<_>>();
        shrink_map(&mut self.places);
        // An image of the same page may be listed twice.
        used.sort_unstable_by_key(|(_, place)| place.start);
        Some((chunk, used))
    }

    /// Drops all chunks.
    fn clear(&mut self) {
        self.first += self.chunks.len() as u64;
        self.chunks.clear();
        self.places = FastMap::default();
    }

    fn fits(&self, bytes: usize) -> bool {
        self.chunks.back().is_some_and(|chunk| chunk.used_bytes + bytes <= chunk.memory.len())
    }

    /// Appends an image to the newest chunk, which must have space.
    fn append(&mut self, pid: PageId, location: Location, bytes: &[u8]) {
        let next = self.first + self.chunks.len() as u64;
        let Some(newest) = self.chunks.back_mut() else { return };
        let place = Place { location, chunk: next - 1, start: newest.used_bytes, is_used: false };
        let target = newest.memory.get_mut(place.start..place.start + bytes.len());
        target.expect("the caller has made room").copy_from_slice(bytes);
        newest.used_bytes += bytes.len();
        newest.pages.push(pid);
        self.places.insert(pid.0, place);
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
        let mut bytes = ImageBuffer::default();
        cache.get(image, true, &mut bytes).then(|| bytes.to_vec())
    }

    /// A hit returns the bytes that were added for that location, and memory stays within the
    /// limit.
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
        let bytes = vec![7; cache.source.chunk_bytes + 64];
        let long = image(1, 1, bytes.len());
        cache.put(&long, &bytes);
        assert_eq!((found(&cache, &long), cache.memory.used(MemoryUse::Images)), (None, 0));
    }

    #[test]
    fn images_give_way_when_others_need_the_memory() {
        let cache = cache(MEMORY_BYTES);
        let bytes = vec![7; 2048];
        (0..3000).for_each(|pid| cache.put(&image(pid, 1, bytes.len()), &bytes));
        let used = cache.memory.used(MemoryUse::Images);
        assert!(used > cache.memory.images_limit() * 3 / 4, "{used}");
        let frames_limit = cache.memory.frames_limit();
        cache.memory.set(MemoryUse::Locks, MEMORY_BYTES as usize);
        assert!(cache.memory.frames_limit() > 0 && cache.memory.frames_limit() < frames_limit);
        cache.give_way(0, 100);
        assert!(cache.memory.used(MemoryUse::Images) <= cache.memory.images_limit());
    }

    #[test]
    fn images_give_way_to_frames_when_nobody_uses_them() {
        let cache = cache(MEMORY_BYTES);
        let bytes = vec![7; 2048];
        (0..3000).for_each(|pid| cache.put(&image(pid, 1, bytes.len()), &bytes));
        let kept = image(2999, 1, bytes.len());
        let mut evictions = 0;
        for _ in 0..100 {
            evictions += 16;
            assert!(found(&cache, &kept).is_some());
            cache.give_way(evictions, 100);
        }
        let used = cache.memory.used(MemoryUse::Images);
        cache.give_way(evictions, 100);
        assert_eq!(cache.memory.used(MemoryUse::Images), used, "nothing was evicted");
        (0..100).for_each(|step| cache.give_way(evictions + 16 * step, 100));
        assert_eq!(cache.memory.used(MemoryUse::Images), 0);
    }

    #[test]
    fn memory_of_images_that_were_replaced_comes_back() {
        let cache = cache(MEMORY_BYTES);
        let bytes = vec![7; 2048];
        (0..3000).for_each(|pid| cache.put(&image(pid, 1, bytes.len()), &bytes));
        (0..3000).for_each(|pid| cache.forget(PageId(pid)));
        assert_eq!(cache.memory.used(MemoryUse::Images), 0);
    }
}

//! Predicts the misses of the cache with more or less memory from a sample of the requested pages.
//!
//! The *reuse distance* of a page that is requested again is the number of other pages requested
//! since its last request. A cache that holds more pages than the reuse distance still has the
//! page. Distances are measured for pages whose hash is below a threshold, which represent all
//! pages (Waldspurger et al., SHARDS, FAST 2015). The threshold falls so that the sample keeps its
//! size.
//!
//! The real cache is not an LRU list, because it has frames and images. So the model computes, for
//! the pages of the sample, the length of an LRU list with the same number of misses as the cache.
//! It assumes that this length grows in proportion to the memory.
//!
//! Invariants
//!   U1  Only requests for pages that are expected to be used again count. Scans do not count.
//!   U2  No thread waits for the sample: if its lock is taken, the request is not counted.
//!   U3  Old counts lose weight: all counts are halved after an average of `ROUNDS` requests for
//!       each page of the sample.

use crate::base::hash::{hash_number, FastMap};
use crate::base::PageId;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The sample has one page for each `MEMORY_PER_PAGE` bytes of memory, within these bounds.
const MEMORY_PER_PAGE: usize = 16 << 10;
const PAGES_MIN: usize = 512;
const PAGES_MAX: usize = 4096;
/// At most one page in `SAMPLED_PART_MAX` is in the sample. A fetch of any other page costs only a
/// comparison.
const SAMPLED_PART_MAX: u64 = 8;
/// The average number of requests for each page of the sample after which counts are halved.
const ROUNDS: u64 = 64;
/// Numbers of misses count as equal if they differ by less than this fraction of all requests.
const NEAR: f64 = 0.01;
/// Number of distance classes for each doubling.
const CLASSES_PER_OCTAVE: usize = 8;
const CLASSES: usize = 40 * CLASSES_PER_OCTAVE;

/// The curve has points at these sizes of memory, in percent of the current size.
const PERCENTS: [u64; 9] = [25, 50, 75, 90, 100, 125, 150, 200, 400];

/// The reads with one size of memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CurvePoint {
    /// The memory in percent of the current size.
    pub percent: u64,
    /// The memory in bytes.
    pub memory_bytes: u64,
    /// The number of reads per million requests.
    pub misses_per_million: u64,
    /// The number of pages read in a thousand seconds.
    pub reads_per_1000_s: u64,
}

/// The current state of the cache.
#[derive(Clone, Copy, Debug)]
pub(in crate::pool) struct CacheNow {
    /// All memory.
    pub(in crate::pool) memory_bytes: u64,
    /// Bytes used for purposes other than pages, independent of the size of memory.
    pub(in crate::pool) fixed_bytes: u64,
    /// Bytes used for purposes other than pages, in proportion to the memory.
    pub(in crate::pool) shared_bytes: u64,
    /// Number of pages in memory, as frames or as images.
    pub(in crate::pool) pages: u64,
}

impl CacheNow {
    /// The bytes that remain for pages with `percent` of the current memory. Other purposes take at
    /// most half of the memory.
    fn pages_bytes(&self, percent: u64) -> f64 {
        let times = percent as f64 / 100.0;
        let memory = self.memory_bytes as f64 * times;
        (memory - self.fixed_bytes as f64 - self.shared_bytes as f64 * times).max(memory / 2.0)
    }
}

/// See the module.
#[derive(Debug)]
pub(in crate::pool) struct CacheCurve {
    /// Pages with a smaller hash are in the sample.
    threshold: AtomicU64,
    sample: Mutex<Sample>,
}

impl CacheCurve {
    /// An empty curve for `memory_bytes` of memory.
    pub(in crate::pool) fn new(memory_bytes: usize) -> Self {
        let pages = (memory_bytes / MEMORY_PER_PAGE).clamp(PAGES_MIN, PAGES_MAX);
        let threshold = AtomicU64::new(u64::MAX / SAMPLED_PART_MAX);
        Self { threshold, sample: Mutex::new(Sample::new(pages)) }
    }

    /// Counts a request for a page.
    #[inline]
    pub(in crate::pool) fn note(&self, pid: PageId) {
        let hash = hash_number(pid.0);
        if hash >= self.threshold.load(Relaxed) {
            return;
        }
        let Some(mut sample) = self.sample.try_lock() else { return };
        let threshold = self.threshold.load(Relaxed);
        if let Some(lower) = sample.note(pid, hash, threshold) {
            self.threshold.store(lower, Relaxed);
        }
    }

    /// Counts a read of a page from disk.
    pub(in crate::pool) fn note_read(&self, pid: PageId) {
        if hash_number(pid.0) < self.threshold.load(Relaxed) {
            if let Some(mut sample) = self.sample.try_lock() {
                sample.note_read(pid, self.threshold.load(Relaxed));
            }
        }
    }

    /// Returns the points of the curve, or no points if no page of the sample was requested.
    pub(in crate::pool) fn points(&self, now_ns: u64, cache: CacheNow) -> Vec<CurvePoint> {
        let mut sample = self.sample.lock();
        sample.pass_time(now_ns);
        if sample.counts.total == 0.0 {
            return Vec::new();
        }
        let length = sample.length(cache.pages as f64);
        let seconds = (sample.counts.elapsed_ns / 1e9).max(1e-9);
        let point = |percent: u64| {
            let part = cache.pages_bytes(percent) / cache.pages_bytes(100).max(1.0);
            let misses = sample.counts.misses(length * part);
            CurvePoint {
                percent,
                memory_bytes: cache.memory_bytes * percent / 100,
                misses_per_million: (misses / sample.counts.total * 1e6) as u64,
                reads_per_1000_s: (misses / seconds * 1e3) as u64,
            }
        };
        PERCENTS.into_iter().map(point).collect()
    }
}

/// The counts, scaled from the sample to all pages.
#[derive(Debug)]
struct Counts {
    /// Number of requests by class of distance.
    distances: Vec<f64>,
    /// Number of requests for pages seen for the first time.
    first: f64,
    /// Number of pages read.
    reads: f64,
    /// Number of requests.
    total: f64,
    elapsed_ns: f64,
}

impl Counts {
    /// The number of misses of an LRU list of `length` pages.
    fn misses(&self, length: f64) -> f64 {
        let beyond = |(class, count): (usize, &f64)| {
            let (from, to) = (start_of(class), start_of(class + 1));
            count * ((to - length) / (to - from)).clamp(0.0, 1.0)
        };
        self.first + self.distances.iter().enumerate().map(beyond).sum::<f64>()
    }

    /// The length of an LRU list with `misses` misses.
    fn length_with(&self, misses: f64) -> f64 {
        let (mut low, mut high) = (0.0, start_of(CLASSES));
        for _ in 0..64 {
            let middle = (low + high) / 2.0;
            match self.misses(middle) > misses {
                true => low = middle,
                false => high = middle,
            }
        }
        high
    }

    fn halve(&mut self) {
        let all = [&mut self.first, &mut self.reads, &mut self.total, &mut self.elapsed_ns];
        all.into_iter().chain(&mut self.distances).for_each(|count| *count /= 2.0);
    }
}

/// The smallest distance of a class.
fn start_of(class: usize) -> f64 {
    (class as f64 / CLASSES_PER_OCTAVE as f64).exp2() - 1.0
}

fn class_of(distance: f64) -> usize {
    (((distance + 1.0).log2() * CLASSES_PER_OCTAVE as f64) as usize).min(CLASSES - 1)
}

/// A page of the sample.
#[derive(Debug)]
struct Seen {
    /// The slot of the last request.
    slot: usize,
    /// Whether the page has not been read from disk since that request.
    is_unread: bool,
}

#[derive(Debug)]
struct Sample {
    pages_max: usize,
    pages: FastMap<PageId, Seen>,
    by_hash: BTreeSet<(u64, PageId)>,
    slots: Slots,
    counts: Counts,
    samples: u64,
    last_ns: u64,
}

impl Sample {
    fn new(pages_max: usize) -> Self {
        let distances = vec![0.0; CLASSES];
        Self {
            pages_max,
            pages: FastMap::default(),
            by_hash: BTreeSet::new(),
            slots: Slots::new(2 * pages_max + 2),
            counts: Counts { distances, first: 0.0, reads: 0.0, total: 0.0, elapsed_ns: 0.0 },
            samples: 0,
            last_ns: 0,
        }
    }

    /// Counts a request for a page. Returns a lower threshold if the sample has become too large.
    fn note(&mut self, pid: PageId, hash: u64, threshold: u64) -> Option<u64> {
        let weight = weight_of(threshold);
        if self.slots.are_full() {
            self.renumber();
        }
        let slot = self.slots.take();
        self.counts.total += weight;
        let now = Seen { slot, is_unread: true };
        match self.pages.insert(pid, now) {
            Some(before) => {
                self.slots.clear(before.slot);
                let between = self.slots.count_after(before.slot).saturating_sub(1);
                let class = class_of(between as f64 * weight);
                self.counts.distances.get_mut(class).into_iter().for_each(|count| *count += weight);
            }
            None => {
                self.counts.first += weight;
                self.by_hash.insert((hash, pid));
            }
        }
        self.samples += 1;
        if self.samples >= ROUNDS * self.pages_max as u64 {
            self.samples = 0;
            self.counts.halve();
        }
        (self.pages.len() > self.pages_max).then(|| self.shrink()).flatten()
    }

    /// Removes the page with the largest hash. Pages with this hash or a larger one are not sampled
    /// again.
    fn shrink(&mut self) -> Option<u64> {
        let (hash, pid) = self.by_hash.pop_last()?;
        if let Some(gone) = self.pages.remove(&pid) {
            self.slots.clear(gone.slot);
        }
        Some(hash)
    }

    fn note_read(&mut self, pid: PageId, threshold: u64) {
        if let Some(seen) = self.pages.get_mut(&pid).filter(|seen| seen.is_unread) {
            seen.is_unread = false;
            self.counts.reads += weight_of(threshold);
        }
    }

    /// Renumbers the slots of the pages, in the same order.
    fn renumber(&mut self) {
        let mut order: Vec<_> = self.pages.values_mut().collect();
        order.sort_unstable_by_key(|seen| seen.slot);
        self.slots.reset();
        order.into_iter().for_each(|seen| seen.slot = self.slots.take());
    }

    fn pass_time(&mut self, now_ns: u64) {
        let before = std::mem::replace(&mut self.last_ns, now_ns);
        self.counts.elapsed_ns += now_ns.saturating_sub(before) as f64;
    }

    /// Returns the length of an LRU list with about the number of misses of the cache. If several
    /// lengths have that number, returns the length closest to `pages`, the number of pages in the
    /// cache.
    fn length(&self, pages: f64) -> f64 {
        let counts = &self.counts;
        let most = counts.reads + NEAR * counts.total;
        let least = counts.reads - NEAR * counts.total;
        match counts.misses(pages) {
            misses if misses > most => counts.length_with(most),
            misses if misses < least => counts.length_with(least),
            _ => pages,
        }
    }
}

/// The number of pages that each page of the sample represents.
fn weight_of(threshold: u64) -> f64 {
    u64::MAX as f64 / threshold.max(1) as f64
}

/// The times of requests, in order. A slot is in use if it is the time of the last request for a
/// page. Implemented as a Fenwick tree.
#[derive(Debug)]
struct Slots {
    /// Element `i` (from 1 on) is the number of slots in use among the last `i & -i` slots up to
    /// `i`.
    sums: Vec<u32>,
    next: usize,
    used: usize,
}

impl Slots {
    fn new(count: usize) -> Self {
        Self { sums: vec![0; count + 1], next: 0, used: 0 }
    }

    fn reset(&mut self) {
        self.sums.fill(0);
        (self.next, self.used) = (0, 0);
    }

    fn are_full(&self) -> bool {
        self.next + 1 >= self.sums.len()
    }

    /// Takes the next slot into use.
    fn take(&mut self) -> usize {
        let slot = self.next;
        self.next += 1;
        self.used += 1;
        self.add(slot, 1);
        slot
    }

    fn clear(&mut self, slot: usize) {
        self.used -= 1;
        self.add(slot, u32::MAX);
    }

    /// The number of later slots in use.
    fn count_after(&self, slot: usize) -> usize {
        let (mut at, mut up_to) = (slot + 1, 0);
        while at > 0 {
            up_to += self.sums.get(at).copied().unwrap_or_default() as usize;
            at &= at - 1;
        }
        self.used - up_to
    }

    fn add(&mut self, slot: usize, more: u32) {
        let mut at = slot + 1;
        while let Some(sum) = self.sums.get_mut(at) {
            *sum = sum.wrapping_add(more);
            at += at & at.wrapping_neg();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cheetah_io::Rng;
    use std::collections::VecDeque;

    /// An LRU list, which reads the pages it does not have.
    struct Lru {
        length: usize,
        pages: VecDeque<PageId>,
        misses: u64,
    }

    impl Lru {
        fn new(length: usize) -> Self {
            Self { length, pages: VecDeque::new(), misses: 0 }
        }

        fn ask(&mut self, pid: PageId) -> bool {
            let found = self.pages.iter().position(|other| *other == pid);
            self.misses += u64::from(found.is_none());
            found.map(|at| self.pages.remove(at));
            self.pages.push_front(pid);
            self.pages.truncate(self.length);
            found.is_some()
        }
    }

    /// Draws a page number; small numbers are much more likely.
    fn skewed(rng: &mut Rng, pages: u64) -> PageId {
        let below = 1 + rng.below(pages);
        PageId(1 + rng.below(below))
    }

    /// For each other length, the misses that a cache of `length` pages predicts, and the misses of
    /// an LRU list of that other length.
    fn foretold(length: usize, next: impl Fn(&mut Rng) -> PageId) -> Vec<(f64, f64)> {
        let (mut rng, curve) = (Rng::new(3), CacheCurve::new(64 << 20));
        let percents = PERCENTS.map(|percent| length * percent as usize / 100);
        let mut lists = percents.map(Lru::new);
        let mut cache = Lru::new(length);
        for warm in [true, false] {
            lists.iter_mut().for_each(|list| list.misses = 0);
            if !warm {
                let mut sample = curve.sample.lock();
                let Counts { distances, first, reads, total, .. } = &mut sample.counts;
                distances.fill(0.0);
                (*first, *reads, *total) = (0.0, 0.0, 0.0);
            }
            for _ in 0..40_000 {
                let pid = next(&mut rng);
                curve.note(pid);
                if !cache.ask(pid) {
                    curve.note_read(pid);
                }
                lists.iter_mut().for_each(|list| _ = list.ask(pid));
            }
        }
        let cache = CacheNow { memory_bytes: 1 << 20, fixed_bytes: 0, shared_bytes: 0, pages: length as u64 };
        let points = curve.points(1_000_000_000, cache);
        let per_million = |list: &Lru| list.misses as f64 * 1e6 / 40_000.0;
        points
            .iter()
            .zip(&lists)
            .map(|(point, list)| (point.misses_per_million as f64, per_million(list)))
            .collect()
    }

    #[test]
    fn misses_of_other_lengths_are_foretold() {
        for (no, (foretold, counted)) in foretold(600, |rng| skewed(rng, 3000)).into_iter().enumerate() {
            let most = (0.1 * counted).max(20_000.0);
            assert!((foretold - counted).abs() < most, "{} %: {foretold}, {counted}", PERCENTS[no]);
        }
    }

    #[test]
    fn a_loop_that_does_not_fit_misses_all_until_it_fits() {
        let next = std::cell::Cell::new(0);
        let pages = foretold(600, |_| {
            next.set((next.get() + 1) % 1000);
            PageId(1 + next.get())
        });
        // A cache of up to 600 pages misses every page, and a cache of 1200 pages or more misses no
        // page. Near 1000 the sample is imprecise.
        for (no, (foretold, counted)) in pages.into_iter().enumerate().filter(|(no, _)| *no < 5 || *no > 6) {
            assert!((foretold - counted).abs() < 100_000.0, "{} %: {foretold}, {counted}", PERCENTS[no]);
        }
    }

    #[test]
    fn the_sample_keeps_its_size() {
        let curve = CacheCurve::new(0);
        (1..200_000).for_each(|pid| curve.note(PageId(pid)));
        let sample = curve.sample.lock();
        assert_eq!((sample.pages.len(), sample.by_hash.len()), (PAGES_MIN, PAGES_MIN));
        assert_eq!(sample.slots.used, PAGES_MIN);
        let total = sample.counts.total;
        assert!((150_000.0..250_000.0).contains(&total), "{total}");
    }
}

//! Latencies of operations of one kind: a histogram, their sum, and the maximum.
//!
//! Only operations that wait or do I/O are recorded: they take at least microseconds.
//!
//! Invariants
//!   I1  No thread waits, because the counters are relaxed atomics. They are read one by one, so an
//!       operation recorded concurrently may be counted in some of them and not yet in others.

use cheetah_io::Clock;
use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The first bucket counts operations shorter than a microsecond; the upper bound of each further
/// bucket is twice that of the previous one. The last bucket counts all operations of about 18
/// minutes or more.
pub const BUCKETS_COUNT: usize = 32;

const NS_PER_US: u64 = 1_000;

/// Records latencies of operations.
#[derive(Default, Debug)]
pub struct Latency {
    buckets: [AtomicU64; BUCKETS_COUNT],
    sum_ns: AtomicU64,
    max_ns: AtomicU64,
}

impl Latency {
    /// Records an operation that took `ns` nanoseconds.
    pub fn record(&self, ns: u64) {
        if let Some(bucket) = self.buckets.get(bucket_of(ns)) {
            bucket.fetch_add(1, Relaxed);
        }
        self.sum_ns.fetch_add(ns, Relaxed);
        if self.max_ns.load(Relaxed) < ns {
            self.max_ns.fetch_max(ns, Relaxed);
        }
    }

    /// Runs an operation and records it, even if it fails or panics.
    pub fn time<R>(&self, clock: &dyn Clock, operation: impl FnOnce() -> R) -> R {
        let _timing = Timing { latency: self, clock, since_ns: clock.now_ns() };
        operation()
    }

    /// The operations recorded so far.
    pub fn counts(&self) -> LatencyCounts {
        LatencyCounts {
            buckets: std::array::from_fn(|at| self.buckets.get(at).map_or(0, |bucket| bucket.load(Relaxed))),
            sum_ns: self.sum_ns.load(Relaxed),
            max_ns: self.max_ns.load(Relaxed),
        }
    }
}

struct Timing<'l> {
    latency: &'l Latency,
    clock: &'l dyn Clock,
    since_ns: u64,
}

impl Drop for Timing<'_> {
    fn drop(&mut self) {
        self.latency.record(self.clock.now_ns().saturating_sub(self.since_ns));
    }
}

/// The operations that a [`Latency`] has recorded.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LatencyCounts {
    buckets: [u64; BUCKETS_COUNT],
    /// Sum of the latencies.
    pub sum_ns: u64,
    /// The maximum latency.
    pub max_ns: u64,
}

/// The number of operations within a range of latencies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bucket {
    /// The minimum latency, in microseconds.
    pub from_us: u64,
    /// The latency is less than this number of microseconds; `None` for the last, unbounded bucket.
    pub below_us: Option<u64>,
    /// Number of operations.
    pub count: u64,
}

impl LatencyCounts {
    /// Number of operations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The buckets with operations, the shortest latencies first.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        let buckets = self.buckets.iter().enumerate().map(|(at, &count)| Bucket {
            from_us: if at == 0 { 0 } else { 1 << (at - 1) },
            below_us: (at + 1 < BUCKETS_COUNT).then_some(1 << at),
            count,
        });
        buckets.filter(|bucket| bucket.count > 0)
    }
}

impl AddAssign for LatencyCounts {
    fn add_assign(&mut self, other: Self) {
        self.buckets.iter_mut().zip(other.buckets).for_each(|(count, more)| *count += more);
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

fn bucket_of(ns: u64) -> usize {
    let bits = u64::BITS - (ns / NS_PER_US).leading_zeros();
    (bits as usize).min(BUCKETS_COUNT - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cheetah_io::sim::SimClock;

    fn recorded(all_ns: &[u64]) -> LatencyCounts {
        let latency = Latency::default();
        all_ns.iter().for_each(|ns| latency.record(*ns));
        latency.counts()
    }

    fn bounds(counts: &LatencyCounts) -> Vec<(u64, Option<u64>, u64)> {
        counts.buckets().map(|bucket| (bucket.from_us, bucket.below_us, bucket.count)).collect()
    }

    #[test]
    fn each_bucket_has_what_takes_up_to_twice_as_long_as_the_one_before() {
        let counts = recorded(&[0, 999, 1_000, 1_999, 2_000, 3_999_999, 4_000_000, 5_000_000_000]);
        let expected = [
            (0, Some(1), 2),
            (1, Some(2), 2),
            (2, Some(4), 1),
            (2_048, Some(4_096), 2),
            (4_194_304, Some(8_388_608), 1),
        ];
        assert_eq!(bounds(&counts), expected);
        let sum_ns = 999 + 1_000 + 1_999 + 2_000 + 3_999_999 + 4_000_000 + 5_000_000_000;
        assert_eq!((counts.count(), counts.sum_ns, counts.max_ns), (8, sum_ns, 5_000_000_000));
    }

    #[test]
    fn every_duration_is_within_the_bounds_of_its_bucket() {
        for shift in 0..64 {
            for ns in [1_u64 << shift, (1 << shift) - 1, u64::MAX >> (63 - shift)] {
                let counts = recorded(&[ns]);
                let [(from_us, below_us, 1)] = bounds(&counts)[..] else { panic!("{ns}: {counts:?}") };
                assert!(from_us <= ns / 1_000, "{ns}");
                assert!(below_us.is_none_or(|below_us| ns / 1_000 < below_us), "{ns}");
            }
        }
        assert_eq!(bounds(&recorded(&[u64::MAX])), [(1 << 30, None, 1)]);
    }

    #[test]
    fn what_fails_or_panics_is_recorded() {
        let (latency, clock) = (Latency::default(), SimClock::default());
        let failing = || {
            clock.sleep_ns(5_000);
            Err::<(), ()>(())
        };
        assert!(latency.time(&clock, failing).is_err());
        let operation = || -> () {
            clock.sleep_ns(7_000);
            panic!("within an operation");
        };
        let panicking = std::panic::AssertUnwindSafe(|| latency.time(&clock, operation));
        assert!(std::panic::catch_unwind(panicking).is_err());
        let counts = latency.counts();
        assert_eq!((counts.count(), counts.sum_ns, counts.max_ns), (2, 12_000, 7_000));
    }

    #[test]
    fn counts_of_several_kinds_add_up() {
        let mut counts = recorded(&[1_000, 9_000]);
        counts += recorded(&[1_500, 2_000_000]);
        assert_eq!((counts.count(), counts.sum_ns, counts.max_ns), (4, 2_011_500, 2_000_000));
        assert_eq!(bounds(&counts)[0], (1, Some(2), 2));
    }

    #[test]
    fn threads_record_beside_each_other() {
        let latency = Latency::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1_000).for_each(|ns| latency.record(ns * 1_000)));
            }
        });
        let counts = latency.counts();
        assert_eq!((counts.count(), counts.sum_ns, counts.max_ns), (4_000, 4 * 499_500_000, 999_000));
    }
}

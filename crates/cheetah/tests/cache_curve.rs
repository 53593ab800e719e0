//! Prints the misses that the cache curve predicts for other sizes of memory, and the misses at
//! those sizes.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::Config;
use cheetah::testing::db::{CurvePoint, Db, Read};
use cheetah_io::sim::SimDisk;
use cheetah_io::Rng;
use support::*;

const ROWS: u64 = 120_000;
const GETS: u64 = 100_000;

fn open(disk: &SimDisk, buffer_pool_bytes: u64) -> Db {
    let (page_bytes, segment_bytes) = (2048, 4 << 20);
    let (log_file_bytes, log_bytes_max) = (16 << 20, 128 << 20);
    let tiny = Config::tiny();
    let config =
        Config { page_bytes, segment_bytes, buffer_pool_bytes, log_file_bytes, log_bytes_max, ..tiny };
    Db::open(env(disk), config).unwrap()
}

fn status(db: &Db, name: &str) -> u64 {
    db.status().into_iter().find(|entry| entry.0 == name).unwrap().1
}

/// Returns a random key. Some keys are much more likely than others, and likely keys are far apart.
fn skewed(rng: &mut Rng) -> u64 {
    let below = 1 + rng.below(ROWS);
    rng.below(below) * 7919 % ROWS
}

/// Returns the number of pages read for a thousand rows with `pool_bytes` of memory, and the curve.
fn read(disk: &SimDisk, pool_bytes: u64) -> (f64, Vec<CurvePoint>) {
    let db = open(disk, pool_bytes);
    let (table, mut txn, mut rng) = (db.table("t").unwrap(), db.begin(), Rng::new(5));
    let mut row = Vec::new();
    let mut get = |count| {
        for _ in 0..count {
            let key = skewed(&mut rng).to_be_bytes();
            assert!(txn.get(&table, &key, Read::Consistent, &mut row).unwrap());
            txn.commit().unwrap();
        }
    };
    get(GETS);
    let before = status(&db, "pool_reads");
    get(GETS);
    let reads = (status(&db, "pool_reads") - before) as f64 * 1000.0 / GETS as f64;
    (reads, db.cache_curve())
}

/// Returns the page reads for a thousand rows that the curve of a run predicts for `percent` of its
/// memory.
fn predicted((reads, curve): &(f64, Vec<CurvePoint>), percent: u64) -> f64 {
    let misses = |percent| {
        let point = curve.iter().find(|point| point.percent == percent).unwrap();
        point.misses_per_million as f64
    };
    reads * misses(percent) / misses(100)
}

#[test]
fn the_curve_predicts_the_reads_with_half_and_with_twice_the_memory() {
    let disk = SimDisk::new();
    {
        let db = open(&disk, 64 << 20);
        let table = db.create_table(&spec("t")).unwrap();
        let mut txn = db.begin();
        for key in 0..ROWS {
            insert(&mut txn, &table, key, &Row::new(key, 60)).unwrap();
        }
        txn.commit().unwrap();
        db.close().unwrap();
    }
    let small = 8 << 20;
    let sizes = [small / 2, small, 2 * small].map(|bytes| read(&disk, bytes));
    for (from, to, percent) in [(1, 0, 50), (0, 1, 200), (1, 2, 200)] {
        let (reads, expected) = (sizes[to].0, predicted(&sizes[from], percent));
        let is_near = (reads - expected).abs() <= expected * 0.4 || reads.max(expected) < sizes[1].0 / 10.0;
        assert!(is_near, "{reads:.0} reads with {percent} % of the memory, {expected:.0} predicted");
    }
    assert!(sizes[0].0 > 2.0 * sizes[1].0 && sizes[1].0 > 100.0, "the sizes differ enough: {sizes:?}");
}

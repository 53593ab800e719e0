//! Tests with real threads on one small pool: writers, readers, a cleaner, a collector and
//! checkpoints run concurrently.

use crate::base::{Config, PageId, RaisedAtEnd};
use crate::pool::testing::{fill, get, put, value_in, Database, TREE};
use crate::pool::PageClass;
use cheetah_io::rng::Rng;
use cheetah_io::sim::CrashPolicy;
use std::sync::atomic::{AtomicBool, Ordering};

const WRITERS: u64 = 3;
const ACTIONS: u64 = 4000;

/// Each mini-transaction moves one unit from one page to another, so the sum over all pages is
/// constant in every epoch.
fn transfer(db: &Database, pids: &[PageId], rng: &mut Rng) {
    db.pool.make_room(4).unwrap();
    let mut two = [0; 2].map(|_| rng.below(pids.len() as u64) as usize);
    two.sort_unstable();
    if two[0] == two[1] {
        return;
    }
    let [first, second] = two.map(|i| db.pool.fetch(pids[i]).unwrap().unwrap());
    let mtr = db.pool.enter();
    let (mut a, mut b) = (first.write(&mtr), second.write(&mtr));
    let (x, y) = (value_in(&a), value_in(&b));
    if x > 0 {
        fill(&mut a, x - 1);
        fill(&mut b, y + 1);
    }
}

#[test]
fn c7_every_epoch_contains_whole_mini_transactions_only() {
    whole_mini_transactions_only(&Config::tiny(), 400, 1);
}

/// All pages stay in memory, so there is enough work for each thread.
#[test]
fn c7_every_epoch_that_several_threads_write_contains_whole_mini_transactions_only() {
    whole_mini_transactions_only(&Config { buffer_pool_bytes: 4 << 20, ..Config::tiny() }, 2000, 3);
}

fn whole_mini_transactions_only(config: &Config, pages: u64, threads: usize) {
    let db = Database::new(config);
    let mut pids = Vec::new();
    for _ in 0..pages {
        db.pool.make_room(1).unwrap();
        pids.push(db.add(PageClass::Base, 100));
    }
    db.checkpoint().unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = RaisedAtEnd(&stop);
        let writer = |seed| {
            let (db, pids) = (&db, &pids);
            scope.spawn(move || {
                let mut rng = Rng::new(seed);
                (0..ACTIONS).for_each(|_| transfer(db, pids, &mut rng));
            })
        };
        let writers: Vec<_> = (0..WRITERS).map(writer).collect();
        scope.spawn(|| {
            let mut rng = Rng::new(99);
            while !stop.load(Ordering::SeqCst) {
                let pid = pids[rng.below(pages) as usize];
                get(&db.pool.fetch(pid).unwrap().unwrap());
            }
        });
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                db.pool.clean_step().unwrap();
                db.upkeep.collect(8192).unwrap();
            }
        });
        while writers.iter().any(|writer| !writer.is_finished()) {
            db.checkpoint_with(threads).unwrap();
        }
    });
    let disk = db.disk.crash(CrashPolicy::SyncedOnly, 1);
    let again = db.crash(disk);
    let sum: u64 = pids.iter().map(|pid| again.value(*pid).unwrap()).sum();
    assert_eq!(sum, pages * 100);
}

#[test]
fn pages_are_allocated_and_freed_by_many_threads() {
    let db = Database::new(&Config::tiny());
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let db = &db;
            scope.spawn(move || {
                let mut rng = Rng::new(seed);
                let mut mine = Vec::new();
                for value in 0..3000 {
                    db.pool.make_room(2).unwrap();
                    let mtr = db.pool.enter();
                    let page = db.pool.allocate(&mtr, TREE, PageClass::Base);
                    put(&page, &mtr, value);
                    mine.push((page.pid(), value));
                    if rng.chance(0.7) {
                        let nth = rng.below(mine.len() as u64) as usize;
                        db.pool.free(&mtr, mine.swap_remove(nth).0);
                    }
                    drop(mtr);
                    if value % 500 == 0 && seed == 0 {
                        db.checkpoint().unwrap();
                    }
                }
                for (pid, value) in mine {
                    assert_eq!(db.value(pid), Some(value));
                }
            });
        }
    });
}

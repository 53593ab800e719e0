//! Measures the memory of a process that works on more pages than fit: `cargo bench --bench
//! pool_memory -- POOL_MIB DATA_MIB THREADS SECONDS [MIXED]`. With MIXED 1, every 16th page is
//! large.
//!
//! The bench prints anonymous memory and the budget, and the rates of reading and writing.

use cheetah::testing::base::{Config, Health, PageId, TreeId};
use cheetah::testing::durable::Durable;
use cheetah::testing::format::page::{build_content, content_capacity, PageKind, PageMut};
use cheetah::testing::keys::Keys;
use cheetah::testing::memory::MemoryBudget;
use cheetah::testing::page_map::MapStore;
use cheetah::testing::pool::{EpochState, NothingBeside, PageClass, Pool, PoolParts, Upkeep};
use cheetah::testing::segment::Segments;
use cheetah_io::posix::PosixDisk;
use cheetah_io::rng::Rng;
use cheetah_io::time::RealClock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

mod common;

const TREE: TreeId = TreeId(16);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = common::arguments().map(|arg| arg.parse::<u64>());
    let mut next = |default| args.next().unwrap_or(Ok(default));
    let (pool_mib, data_mib, threads, seconds) = (next(128)?, next(1024)?, next(16)?, next(10)?);
    let mixed = next(0)? == 1;
    let root = std::env::temp_dir().join(format!("cheetah-pool-memory-{}", std::process::id()));
    std::fs::create_dir_all(&root)?;
    run(&root, pool_mib, data_mib, threads, seconds, mixed)?;
    std::fs::remove_dir_all(&root)?;
    Ok(())
}

fn run(
    root: &std::path::Path,
    pool_mib: u64,
    data_mib: u64,
    threads: u64,
    seconds: u64,
    mixed: bool,
) -> Result<(), Box<dyn std::error::Error>> {
    let config = Config { buffer_pool_bytes: pool_mib << 20, ..Config::default() };
    let health = Arc::new(Health::default());
    let durable = Arc::new(Durable::new(Arc::new(PosixDisk::open(root)?), health.clone()));
    let opened = MapStore::open(durable.clone(), &config, [1; 16])?;
    let segments = Arc::new(Segments::open(durable, &config, opened.identity, opened.next_segment)?);
    segments.end_startup(opened.epoch)?;
    let clock = Arc::new(RealClock::default());
    let memory = Arc::new(MemoryBudget::new(config.buffer_pool_bytes));
    let keys = Keys::none(clock.clone(), opened.identity.uuid);
    let parts = PoolParts { health, clock, keys, memory, segments, beside: Arc::new(NothingBeside) };
    let pool = Pool::open(&config, parts, opened.first_epoch, []);
    let upkeep = Upkeep::new(Arc::clone(&pool));
    let count = (data_mib << 20) / u64::from(config.page_bytes);
    let pids: Vec<PageId> = (0..count).map(|i| add(&pool, i, mixed)).collect();
    println!("filled: anonymous {} MiB of {pool_mib}", common::memory_kib("RssAnon") >> 10);
    let stop = AtomicBool::new(false);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for seed in 0..threads {
            let (pool, pids, stop) = (&pool, &pids, &stop);
            scope.spawn(move || work(pool, pids, &mut Rng::new(seed), stop));
        }
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let now_ns = started.elapsed().as_nanos() as u64;
                pool.clean_step().expect("cleaning");
                upkeep.gc_step(now_ns, config.io_capacity).expect("collecting");
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        for _ in 0..seconds {
            std::thread::sleep(Duration::from_secs(1));
            println!(
                "anonymous {} MiB, accounted {} MiB",
                common::memory_kib("RssAnon") >> 10,
                pool.memory().total() >> 20
            );
        }
        let (ended, state) = pool.end_epoch(|_| EpochState::default());
        let written = ended.finish().expect("the pages are written");
        written.commit(&opened.store, &state).expect("a checkpoint");
        println!("after a checkpoint: anonymous {} MiB", common::memory_kib("RssAnon") >> 10);
        stop.store(true, Ordering::Relaxed);
    });
    pool.status().iter().for_each(|(name, value)| println!("{name} {value}"));
    Ok(())
}

fn add(pool: &Pool, i: u64, mixed: bool) -> PageId {
    pool.make_room(1).expect("room");
    let mtr = pool.enter();
    let class = if mixed && i % 16 == 0 { PageClass::Large } else { PageClass::Base };
    let page = pool.allocate(&mtr, TREE, class);
    let mut bytes = page.write(&mtr);
    let room = content_capacity(bytes.len());
    let content: Vec<u8> =
        (0..room as u64).map(|k| if k % 4 == 0 { (i * k % 251) as u8 } else { 7 }).collect();
    let built = build_content(&mut bytes, PageKind::Blob, TREE, PageId::NONE, i).append_content(&content);
    built.expect("the content fits");
    page.pid()
}

fn work(pool: &Pool, pids: &[PageId], rng: &mut Rng, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let pid = pids[rng.below(pids.len() as u64) as usize];
        pool.make_room(1).expect("room");
        let page = pool.fetch(pid).expect("a page").expect("never freed");
        if rng.chance(0.3) {
            let mtr = pool.enter();
            let mut bytes = page.write(&mtr);
            PageMut::new(&mut bytes).truncate_content(1000 + rng.below(9000) as usize);
        }
    }
}

//! Power cuts at all moments of random workloads and of the recoveries after them, with at least
//! 20,000 crash images.
//!
//! `CHEETAH_CRASH_IMAGES` is the minimum number of images to check (default 20,000),
//! `CHEETAH_CRASH_SEED` the first seed, `CHEETAH_CRASH_SEEDS` the maximum number of seeds,
//! `CHEETAH_CRASH_THREADS` the number of threads (default 2). A failing test prints the command
//! that repeats the failure. `make crash IMAGES=n` runs this test for hours.

mod support;

use cheetah::testing::base::reach;
use cheetah_io::sim::Report;
use std::cell::Cell;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::Once;
use std::time::Instant;
use support::constraints;
use support::exploration::explore_seed;
use support::families::Generations;
use support::steps::explore_steps;

/// Rare paths that the workloads must take. Otherwise the test proves less than it seems to.
const RARE: [&str; 10] = [
    "row rolled back",
    "large value rolled back",
    "large value left behind freed",
    "undo redone",
    "loser rolled back",
    "prepared transaction found at open",
    "frees of a committed transaction finished at open",
    "unclaimed large values restored",
    "catalog change redone",
    "undo page freed",
];

/// Prints the seed when a thread panics. A panic inside a mini-transaction aborts the process
/// without any other message.
fn announce_seed_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let seed = SEED.get();
            let _ =
                writeln!(std::io::stderr(), "panic while exploring seed {seed}; {}\n{info}", replay(seed));
            before(info);
        }));
    });
}

thread_local! {
    static SEED: Cell<u64> = const { Cell::new(0) };
}

fn replay(seed: u64) -> String {
    format!(
        "repeat with: CHEETAH_CRASH_SEED={seed} CHEETAH_CRASH_IMAGES=1 cargo test -p cheetah --test crash"
    )
}

/// Explores the workload of a seed: transactions of all kinds, or sometimes definition changes and
/// loads, or parents and children of foreign keys.
fn explored(seed: u64) -> Result<Report, String> {
    match seed % 10 {
        8 => explore_steps::<constraints::Model>(seed, 16),
        9 => explore_steps::<Generations>(seed, 16),
        _ => explore_seed(seed, 40).map_err(|failure| failure.to_string()),
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().expect("a number"))
}

#[test]
fn every_power_cut_leaves_a_prefix_of_what_was_committed() {
    announce_seed_on_panic();
    let wanted = setting("CHEETAH_CRASH_IMAGES", 20_000);
    let first_seed = setting("CHEETAH_CRASH_SEED", 1);
    let seeds_max = setting("CHEETAH_CRASH_SEEDS", u64::MAX - first_seed);
    let [seeds, images, points] = [const { AtomicU64::new(0) }; 3];
    let started = Instant::now();
    let work = || {
        while images.load(SeqCst) < wanted {
            let taken = |count| (count < seeds_max).then_some(count + 1);
            let Ok(before) = seeds.fetch_update(SeqCst, SeqCst, taken) else { break };
            let seed = first_seed + before;
            SEED.set(seed);
            let report = explored(seed).unwrap_or_else(|failure| panic!("{failure}\n{}", replay(seed)));
            images.fetch_add(report.images_count as u64, SeqCst);
            points.fetch_add(report.points_count as u64, SeqCst);
        }
    };
    let threads = if wanted == 1 { 1 } else { setting("CHEETAH_CRASH_THREADS", 2) };
    std::thread::scope(|scope| {
        let handles = (0..threads).map(|_| scope.spawn(work)).collect::<Vec<_>>();
        handles.into_iter().for_each(|handle| handle.join().unwrap());
    });
    if images.load(SeqCst) >= 20_000 {
        let missed = RARE.iter().filter(|name| reach::count(name) == 0).collect::<Vec<_>>();
        assert!(missed.is_empty() || !cfg!(debug_assertions), "never reached: {missed:?}");
    }
    println!(
        "{} crash images at {} moments of {} workloads from seed {first_seed} in {:.0} s: all good",
        images.load(SeqCst),
        points.load(SeqCst),
        seeds.load(SeqCst),
        started.elapsed().as_secs_f64()
    );
}

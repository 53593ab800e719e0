//! Measures the cost of a record lock: nanoseconds for a request with its release, and bytes.
//!
//! `cargo bench --bench locks`; keys have 8 bytes. Compare processor times: other programs disturb
//! them less than clock times. The bench prints the bytes of the process and the bytes that the
//! lock table counts.

use cheetah::testing::base::{Result, TreeId};
use cheetah::testing::txn::{Lock, LockLimits, LockMode, LockTable, Owner, TableMode, Wait};
use std::ops::Bound::{Excluded, Included};
use std::sync::Arc;
use std::time::{Duration, Instant};

mod common;

const INDEX: TreeId = TreeId(16);
const QUEUE: Wait = Wait::Queue { undo_records_count: 0 };
const LOCKS: u64 = 1_000_000;

fn main() -> Result<()> {
    for (threads, of_each) in [(1, 1), (1, 10), (1, 100), (2, 1), (2, 10)] {
        time_threads(&format!("{of_each} records a transaction"), threads, move |locks, owner, n| {
            (0..of_each).try_for_each(|i| lock(locks, owner, (owner.0 << 40) + n * of_each + i))?;
            locks.release_all(owner);
            Ok(of_each)
        })?;
    }
    time_threads("a table, to write", 1, |locks, owner, _| {
        locks.request(
            owner,
            Lock::Table(cheetah::testing::base::TableId(1), TableMode::IntentExclusive),
            QUEUE,
        )?;
        locks.release_all(owner);
        Ok(1)
    })?;
    time_threads("an insert intention", 1, |locks, owner, n| {
        locks.request(owner, Lock::InsertIntention { tree: INDEX, key: &n.to_be_bytes() }, QUEUE)?;
        Ok(1)
    })?;
    time_threads("a step of a range", 1, |locks, owner, n| {
        let (from, key) = (n.to_be_bytes(), (n + 1).to_be_bytes());
        let range = (Excluded(&from[..]), Included(&key[..]));
        locks.request(
            owner,
            Lock::NextKey { tree: INDEX, range, key: &key, mode: LockMode::Shared },
            QUEUE,
        )?;
        Ok(1)
    })?;
    measure_bytes("records", usize::MAX)?;
    measure_bytes("compressed records", 10_000)
}

fn lock(locks: &LockTable, owner: Owner, n: u64) -> Result<()> {
    let lock = Lock::Record { tree: INDEX, key: &n.to_be_bytes(), mode: LockMode::Exclusive };
    locks.request(owner, lock, QUEUE).map(drop)
}

/// Prints the time of one lock when `threads` threads run `transaction`, which returns the number
/// of its locks.
fn time_threads(
    what: &str,
    threads: u64,
    transaction: impl Fn(&LockTable, Owner, u64) -> Result<u64> + Copy + Send + 'static,
) -> Result<()> {
    let locks = Arc::new(LockTable::default());
    let start = Instant::now();
    let cpu_start = cpu_time();
    let workers = (0..threads).map(|thread| {
        let locks = Arc::clone(&locks);
        std::thread::spawn(move || -> Result<()> {
            let (mut done, mut n) = (0, 0);
            while done < LOCKS {
                done += transaction(&locks, Owner(thread + 1), n)?;
                n += 1;
            }
            Ok(())
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.join().expect("the thread does not panic")?;
    }
    let per_lock = |time: Duration| time.as_nanos() as f64 / (threads * LOCKS) as f64;
    let cpu = per_lock(cpu_time().saturating_sub(cpu_start));
    let clock = per_lock(start.elapsed()) * threads as f64;
    println!("{what}, {threads} thread(s): {cpu:.0} ns of processor a lock, {clock:.0} ns by the clock");
    Ok(())
}

fn measure_bytes(what: &str, compress_at: usize) -> Result<()> {
    let locks = LockTable::new(LockLimits { bytes_max: 1 << 30, compress_at });
    let before_kib = common::memory_kib("VmRSS");
    (0..LOCKS).try_for_each(|n| lock(&locks, Owner(1), n))?;
    let resident = common::memory_kib("VmRSS").saturating_sub(before_kib) * 1024;
    let counted = locks.memory_bytes().0 as u64;
    println!("{what}: {} bytes a lock, {} counted", resident / LOCKS, counted / LOCKS);
    Ok(())
}

fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    let ticks = fields.filter_map(|field| field.parse::<u64>().ok()).sum::<u64>();
    Duration::from_millis(ticks * 10)
}

//! Times the operations of one tree whose pages are all in memory.
//!
//! `cargo bench --bench tree [-- RECORDS]`; one thread, keys of 8 bytes, payloads of 100 bytes.

use cheetah::testing::base::{Config, Result, TreeId};
use cheetah::testing::format::page::RecordRef;
use cheetah::testing::leaves::Leaves;
use cheetah::testing::pool::PageClass;
use cheetah::testing::tree::{Path, SeekMode, Tree};
use cheetah_io::rng::Rng;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

mod common;

const PAYLOAD: [u8; 100] = [b'x'; 100];

fn main() -> Result<()> {
    let records: u64 = common::arguments().next().and_then(|arg| arg.parse().ok()).unwrap_or(1_000_000);
    let leaves = Leaves::in_memory(&Config { buffer_pool_bytes: 4 << 30, ..Config::default() });
    let mut order: Vec<u64> = (0..records).collect();
    let tree = create(&leaves, 15)?;
    build(&tree, records)?;
    let tree = create(&leaves, 16)?;
    insert(&tree, "sequential insert", &order)?;
    read(&tree, records)?;
    Rng::new(1).shuffle(&mut order);
    let tree = create(&leaves, 17)?;
    insert(&tree, "random insert", &order)?;
    read(&tree, records)?;
    change(&tree, &order)
}

fn create(leaves: &Leaves, id: u32) -> Result<Arc<Tree>> {
    let mtr = leaves.pool().enter();
    Ok(Arc::new(Tree::create(leaves, &mtr, TreeId(id), PageClass::Base, 64)?))
}

/// Prints the CPU time and the wall-clock time per operation, in nanoseconds. CPU time is less
/// affected by other programs.
fn time(what: &str, count: u64, run: impl FnOnce() -> Result<()>) -> Result<()> {
    let (start, start_cpu_ns) = (Instant::now(), cpu_ns());
    run()?;
    let cpu = (cpu_ns() - start_cpu_ns) as f64 / count as f64;
    println!("{what:22} {cpu:8.0} ns cpu {:8.0} ns", start.elapsed().as_nanos() as f64 / count as f64);
    Ok(())
}

/// The CPU time of this process, which has one thread.
fn cpu_ns() -> u64 {
    common::cpu_ns().into_values().sum()
}

fn insert(tree: &Tree, what: &str, order: &[u64]) -> Result<()> {
    let mut path = Path::default();
    time(what, order.len() as u64, || {
        for number in order {
            let key = number.to_be_bytes();
            tree.prepare(&key, &mut path)?;
            let mtr = tree.pool().enter();
            let _ = tree.insert(&mtr, &mut path, &key, RecordRef::frozen(&PAYLOAD))?;
        }
        Ok(())
    })?;
    println!("{:22} {} levels, {:?}", "", tree.depth()?, tree.pool().tree_bytes(tree.def().id));
    Ok(())
}

fn build(tree: &Arc<Tree>, records: u64) -> Result<()> {
    time("sorted build", records, || {
        let mut builder = tree.builder();
        for number in 0..records {
            let _ = builder.push(&number.to_be_bytes(), RecordRef::frozen(&PAYLOAD))?;
        }
        builder.finish().map(|_| ())
    })?;
    println!("{:22} {} levels, {:?}", "", tree.depth()?, tree.pool().tree_bytes(tree.def().id));
    Ok(())
}

fn read(tree: &Arc<Tree>, records: u64) -> Result<()> {
    let mut rng = Rng::new(2);
    let draws: Vec<u64> = (0..records).map(|_| rng.below(records)).collect();
    let count = draws.len() as u64;
    time("point get", count, || {
        for number in &draws {
            black_box(tree.get(&number.to_be_bytes(), |record| record.payload.len())?);
        }
        Ok(())
    })?;
    let mut path = Path::default();
    time("point get, pinned path", count, || {
        for number in &draws {
            black_box(tree.get_prepared(&number.to_be_bytes(), &mut path, |record| record.payload.len())?);
        }
        Ok(())
    })?;
    let mut cursor = tree.cursor();
    time("seek", count, || {
        for number in &draws {
            black_box(cursor.seek(SeekMode::AtLeast, &number.to_be_bytes())?);
        }
        Ok(())
    })?;
    time("scan forward, per row", records, || {
        let mut found = cursor.seek(SeekMode::First, b"")?;
        while found {
            black_box((cursor.key(), cursor.record()));
            found = cursor.next()?;
        }
        Ok(())
    })?;
    time("scan backward, per row", records, || {
        let mut found = cursor.seek(SeekMode::Last, b"")?;
        while found {
            black_box((cursor.key(), cursor.record()));
            found = cursor.prev()?;
        }
        Ok(())
    })?;
    time("estimate of a range", count.min(100_000), || {
        for pair in draws.windows(2).take(100_000) {
            black_box(tree.count_between(&pair[0].to_be_bytes(), Some(&pair[1].to_be_bytes()), records)?);
        }
        Ok(())
    })
}

fn change(tree: &Tree, order: &[u64]) -> Result<()> {
    let mut path = Path::default();
    time("random replace", order.len() as u64, || {
        for number in order {
            let key = number.to_be_bytes();
            tree.prepare(&key, &mut path)?;
            let mtr = tree.pool().enter();
            let _ = tree.replace(&mtr, &mut path, &key, RecordRef::frozen(&PAYLOAD))?;
        }
        Ok(())
    })?;
    time("random remove", order.len() as u64, || {
        for number in order {
            let key = number.to_be_bytes();
            tree.prepare(&key, &mut path)?;
            let removed = {
                let mtr = tree.pool().enter();
                tree.remove(&mtr, &mut path, &key)?
            };
            if removed == (cheetah::testing::tree::Removed::Gone { small: true }) {
                tree.merge_if_small(&mut path, &key)?;
            }
        }
        Ok(())
    })
}

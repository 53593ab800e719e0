//! Times a startup that has to redo a long log, on a real directory.
//!
//! Run `cargo bench --bench redo -- DIR write [rows=100000] [changes=1000000] [pool_mb=2048]
//! [random=0]` first, then `cargo bench --bench redo -- DIR open [threads=0] [pool_mb=2048]` as
//! often as needed.
//!
//! Four threads, each with its own table, make the same changes as `make bench ARGS="--sets
//! recovery"`: updates of 500 neighbouring rows, which change each secondary key a little, inserts
//! of 500 rows, and deletes of 100. With `random=1`, the threads update single random rows of their
//! tables, 100 in a transaction. The process then ends as in a crash. A startup changes only what
//! the next startup redoes. `write` removes DIR/cheetah-redo first.

use cheetah::testing::base::{Config, Error, Result};
use cheetah::testing::db::{Db, Env, Transaction};
use cheetah::testing::format::row::RowFormatVersion;
use cheetah::testing::table::{NewRow, OldEntry, SecondaryEntry, Table, TableSpec};
use cheetah_io::posix::PosixDisk;
use cheetah_io::rng::Rng;
use cheetah_io::time::RealClock;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

mod common;
use common::index;

const TABLES: u64 = 4;

fn open(dir: &Path, pool_bytes: u64, redo_threads: u32) -> Result<Db> {
    let disk = PosixDisk::open(dir).map_err(|e| Error::io("open", "the directory", e))?;
    let env = Env { disk: Arc::new(disk), clock: Arc::new(RealClock::default()) };
    let config = Config {
        buffer_pool_bytes: pool_bytes,
        log_bytes_max: 8 << 30,
        checkpoint_interval_ns: u64::MAX,
        redo_threads,
        ..Config::default()
    };
    Db::open_early(env, config)
}

fn spec(name: &str) -> TableSpec {
    let row_format = RowFormatVersion { null_bytes: 0, fixed: vec![4, 4, 120, 60], var_count: 0 };
    common::table(name, row_format, vec![index("PRIMARY", true, 4), index("k", false, 4)])
}

fn stored(id: u32, k: u32, rng: &mut Rng) -> Vec<u8> {
    let mut row = [id.to_le_bytes(), k.to_le_bytes()].concat();
    let digest = format!("{:016x}{:016x}", rng.next_u64(), rng.next_u64());
    row.extend(digest.bytes().cycle().take(96).chain([b' '; 24]));
    row.extend(digest.bytes().rev().chain([b' '; 28]));
    row
}

/// Writes to one table.
struct Writer {
    table: Arc<Table>,
    txn: Transaction,
    rng: Rng,
    /// The secondary key of each row.
    keys: BTreeMap<u32, u32>,
    next: u32,
}

impl Writer {
    fn insert(&mut self, count: u32) -> Result<()> {
        for id in self.next..self.next + count {
            let k = self.rng.below(1_000_003) as u32;
            let row = stored(id, k, &mut self.rng);
            let key = k.to_be_bytes();
            let secondary = [SecondaryEntry { index_no: 1, key: &key, payload: b"", check_unique: false }];
            let new = NewRow { key: &id.to_be_bytes(), row: &row, secondary: &secondary };
            self.txn.insert(&self.table, &new)?;
            self.keys.insert(id, k);
        }
        self.next += count;
        self.txn.commit()
    }

    fn some(&mut self, count: usize) -> Vec<(u32, u32)> {
        let from = self.rng.below(self.next.into()) as u32;
        self.keys.range(from..).take(count).map(|(id, k)| (*id, *k)).collect()
    }

    fn update(&mut self, count: usize) -> Result<()> {
        for (id, k) in self.some(count) {
            let row = stored(id, k + 1, &mut self.rng);
            let (old, key) = (k.to_be_bytes(), (k + 1).to_be_bytes());
            let secondary = [SecondaryEntry { index_no: 1, key: &key, payload: b"", check_unique: false }];
            let new = NewRow { key: &id.to_be_bytes(), row: &row, secondary: &secondary };
            let old = [OldEntry { index_no: 1, key: &old, payload: b"" }];
            self.txn.update(&self.table, &id.to_be_bytes(), &new, &old)?;
            self.keys.insert(id, k + 1);
        }
        self.txn.commit()
    }

    fn update_anywhere(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            let (id, k) =
                (1 + self.rng.below(u64::from(self.next) - 1) as u32, self.rng.below(1_000_003) as u32);
            let old = self.keys.insert(id, k).unwrap_or_default().to_be_bytes();
            let (row, key) = (stored(id, k, &mut self.rng), k.to_be_bytes());
            let secondary = [SecondaryEntry { index_no: 1, key: &key, payload: b"", check_unique: false }];
            let new = NewRow { key: &id.to_be_bytes(), row: &row, secondary: &secondary };
            let old = [OldEntry { index_no: 1, key: &old, payload: b"" }];
            self.txn.update(&self.table, &id.to_be_bytes(), &new, &old)?;
        }
        self.txn.commit()
    }

    fn delete(&mut self, count: usize) -> Result<()> {
        for (id, k) in self.some(count) {
            let old = [OldEntry { index_no: 1, key: &k.to_be_bytes(), payload: b"" }];
            self.txn.delete(&self.table, &id.to_be_bytes(), &old)?;
            self.keys.remove(&id);
        }
        self.txn.commit()
    }
}

fn write(dir: &Path, pool_bytes: u64, rows: u32, changes: u64, is_random: bool) -> Result<()> {
    common::empty(dir)?;
    let db = open(dir, pool_bytes, 1)?;
    db.set_flush_log_at_commit(0);
    db.start_background_threads()?;
    let mut writers = Vec::new();
    for no in 0..TABLES {
        let table = db.create_table(&spec(&format!("t{no}")))?;
        let (txn, rng) = (db.begin(), Rng::new(no + 1));
        let mut writer = Writer { table, txn, rng, keys: BTreeMap::new(), next: 1 };
        writer.insert(rows)?;
        writers.push(writer);
    }
    db.checkpoint()?;
    let write = |mut writer: Writer| -> Result<()> {
        if is_random {
            return (0..changes / TABLES / 100).try_for_each(|_| writer.update_anywhere(100));
        }
        for _ in 0..changes / TABLES / 1100 {
            writer.update(500)?;
            writer.insert(500)?;
            writer.delete(100)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = writers.into_iter().map(|writer| scope.spawn(|| write(writer))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    db.set_flush_log_at_commit(1);
    db.create_table(&spec("last"))?;
    std::process::exit(0)
}

fn main() -> Result<()> {
    let mut args = common::arguments();
    let dir = common::directory(&mut args).join("cheetah-redo");
    let what = args.next().expect("the second argument is write or open");
    let given = common::options(args);
    let number = |name, default| common::number(&given, name, default);
    let pool_bytes = number("pool_mb", 2048) << 20;
    if what == "write" {
        let (rows, changes) = (number("rows", 100_000) as u32, number("changes", 1_000_000));
        return write(&dir, pool_bytes, rows, changes, number("random", 0) != 0);
    }
    let began = Instant::now();
    let db = open(&dir, pool_bytes, number("threads", 0) as u32)?;
    let seconds = began.elapsed().as_secs_f64();
    let status: BTreeMap<&str, u64> = db.status().into_iter().collect();
    let records = status.get("recovery_log_records").copied().unwrap_or(1);
    println!("{seconds:.2} s, {records} records, {:.2} us each", seconds * 1e6 / records as f64);
    for name in [
        "undo_pages",
        "pool_frame_bytes",
        "pool_evictions",
        "pool_reads",
        "pool_writes",
        "transactions_to_purge",
    ] {
        println!("  {name} {:?}", status.get(name));
    }
    std::process::exit(0)
}

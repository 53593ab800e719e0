//! Times a complete engine on a real directory, through its public interface.
//!
//! `cargo bench --bench engine -- DIR [rows=300000] [texts=2000] [pool_mb=512] [log_mb=1024]
//! [text_file=PATH]`
//!
//! Rows are like sysbench's: a number, a number with a secondary index, 120 and 60 characters of
//! random digits. Texts have 2 to 60 KB. They are pieces of the given file, or generated words if
//! no file is given. Compare processor times: clock times depend on the other load of the machine.
//! The bench removes DIR/cheetah-bench first.

use cheetah::testing::base::{Config, Error, Result};
use cheetah::testing::db::{Db, Env, Read, SeekMode, Transaction};
use cheetah::testing::format::row::RowFormatVersion;
use cheetah::testing::format::varint;
use cheetah::testing::table::{NewRow, SecondaryEntry, Table};
use cheetah_io::posix::PosixDisk;
use cheetah_io::rng::Rng;
use cheetah_io::time::RealClock;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

mod common;
use common::{cpu_ns, index, memory_kib, table as table_spec};

const ROWS_PER_TRANSACTION: u64 = 1000;

struct Options {
    dir: PathBuf,
    rows: u64,
    texts: u64,
    pool_bytes: u64,
    log_bytes: u64,
    text_file: Option<PathBuf>,
}

fn options() -> Options {
    let mut arguments = common::arguments();
    let dir = common::directory(&mut arguments).join("cheetah-bench");
    let given = common::options(arguments);
    let known = ["rows", "texts", "pool_mb", "log_mb", "text_file"];
    given.keys().for_each(|name| assert!(known.contains(&name.as_str()), "no option is called {name}"));
    let number = |name, default| common::number(&given, name, default);
    Options {
        dir,
        rows: number("rows", 300_000),
        texts: number("texts", 2000),
        pool_bytes: number("pool_mb", 512) << 20,
        log_bytes: number("log_mb", 1024) << 20,
        text_file: given.get("text_file").map(PathBuf::from),
    }
}

fn main() -> Result<()> {
    let options = options();
    common::empty(&options.dir)?;
    if options.rows > 0 {
        rows(&options)?;
    }
    if options.texts > 0 {
        texts(&options)?;
    }
    Ok(())
}

fn open(options: &Options) -> Result<Db> {
    let disk = PosixDisk::open(&options.dir).map_err(|e| Error::io("open", "the directory", e))?;
    let env = Env { disk: Arc::new(disk), clock: Arc::new(RealClock::default()) };
    let (buffer_pool_bytes, log_bytes_max) = (options.pool_bytes, options.log_bytes);
    let log_file_bytes = (log_bytes_max / 16).min(64 << 20);
    let config = Config { buffer_pool_bytes, log_bytes_max, log_file_bytes, ..Config::default() };
    let db = Db::open(env, config)?;
    db.start_background_threads()?;
    Ok(db)
}

/// Prints the time that `run` took for each row, by thread.
fn time<T>(what: &str, rows: u64, run: impl FnOnce() -> Result<T>) -> Result<T> {
    let (start, before) = (Instant::now(), cpu_ns());
    let result = run()?;
    let seconds = start.elapsed().as_secs_f64();
    let per_row = |ns: u64| ns as f64 / rows as f64 / 1000.0;
    let spent = cpu_ns().into_iter().map(|(name, ns)| {
        let before = before.get(&name).copied().unwrap_or(0);
        (name, ns.saturating_sub(before))
    });
    let spent: Vec<_> = spent.filter(|(_, ns)| per_row(*ns) >= 0.005).collect();
    let total = per_row(spent.iter().map(|(_, ns)| ns).sum());
    let parts: Vec<_> = spent
        .iter()
        .map(|(name, ns)| format!("{} {:.2}", name.trim_start_matches("cheetah-"), per_row(*ns)))
        .collect();
    let rate = rows as f64 / seconds;
    println!("{what:34} {total:8.2} us/row cpu {seconds:8.2} s {rate:10.0} rows/s  ({})", parts.join(", "));
    Ok(result)
}

/// Measures how evenly a workload proceeds.
struct Progress {
    start: Instant,
    last: Instant,
    longest: Duration,
    rows_by_second: Vec<u64>,
}

impl Progress {
    fn start() -> Self {
        let now = Instant::now();
        Self { start: now, last: now, longest: Duration::ZERO, rows_by_second: Vec::new() }
    }

    /// Records the end of a transaction with `rows` rows.
    fn note(&mut self, rows: u64) {
        let now = Instant::now();
        self.longest = self.longest.max(now - self.last);
        self.last = now;
        let second = (now - self.start).as_secs() as usize;
        self.rows_by_second.resize(self.rows_by_second.len().max(second + 1), 0);
        self.rows_by_second[second] += rows;
    }

    fn print(&self) {
        let whole = &self.rows_by_second[..self.rows_by_second.len().saturating_sub(1)];
        let (least, most) = (whole.iter().min().copied(), whole.iter().max().copied());
        println!(
            "    longest time without a commit {:.0} ms; rows in the slowest second {}, in the fastest {}",
            self.longest.as_secs_f64() * 1e3,
            least.unwrap_or(0),
            most.unwrap_or(0)
        );
    }
}

/// Allocated bytes of the files below a directory.
fn disk_bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let of = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => disk_bytes(&entry.path()),
        Ok(meta) => meta.blocks() * 512,
        Err(_) => 0,
    };
    entries.map(of).sum()
}

fn status(db: &Db, names: &[&str]) {
    let all = db.status();
    let shown: Vec<_> = all
        .iter()
        .filter(|(name, _)| names.contains(name))
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    println!("    {}", shown.join(", "));
}

const WRITES: [&str; 13] = [
    "log_position",
    "log_syncs",
    "log_writes",
    "pool_writes",
    "pool_written_bytes",
    "pool_blob_writes",
    "pool_blob_written_bytes",
    "pool_captures",
    "pool_foreground_writes",
    "pool_checkpoints",
    "pool_moves",
    "pool_evictions",
    "pool_reads",
];

/// A row like sysbench's, built in reused buffers.
#[derive(Default)]
struct Sysbench {
    key: [u8; 4],
    secondary: [u8; 4],
    row: Vec<u8>,
}

impl Sysbench {
    fn build(&mut self, id: u32, rows: u64, rng: &mut Rng) {
        let k = rng.below(rows) as u32;
        self.key = id.to_be_bytes();
        self.secondary = k.to_be_bytes();
        self.row.clear();
        self.row.extend_from_slice(&id.to_le_bytes());
        self.row.extend_from_slice(&k.to_le_bytes());
        varint::put(&mut self.row, 119 << 1);
        varint::put(&mut self.row, 59 << 1);
        digits(&mut self.row, 10, rng);
        digits(&mut self.row, 5, rng);
    }

    fn insert(&self, txn: &mut Transaction, table: &Arc<Table>) -> Result<()> {
        let entry = SecondaryEntry { index_no: 1, key: &self.secondary, payload: b"", check_unique: false };
        txn.insert(table, &NewRow { key: &self.key, row: &self.row, secondary: &[entry] })
    }
}

/// Groups of eleven random digits joined by dashes.
fn digits(out: &mut Vec<u8>, groups: usize, rng: &mut Rng) {
    for group in 0..groups {
        if group > 0 {
            out.push(b'-');
        }
        let mut number = rng.next_u64();
        for _ in 0..11 {
            out.push(b'0' + (number % 10) as u8);
            number /= 10;
        }
    }
}

fn rows(options: &Options) -> Result<()> {
    let rows = options.rows;
    let db = open(options)?;
    let row_format = RowFormatVersion { null_bytes: 0, fixed: vec![4, 4], var_count: 2 };
    let table = db.create_table(&table_spec(
        "sbtest",
        row_format,
        vec![index("PRIMARY", true, 4), index("k", false, 4)],
    ))?;
    let mut rng = Rng::new(1);
    let mut logical = 0;
    let mut row = Sysbench::default();
    time("build rows (not the engine)", rows, || {
        (0..rows).for_each(|id| row.build(id as u32, rows, &mut rng));
        Ok(())
    })?;
    let mut progress = Progress::start();
    time("load", rows, || {
        for first in (0..rows).step_by(ROWS_PER_TRANSACTION as usize) {
            let mut txn = db.begin();
            for id in first..(first + ROWS_PER_TRANSACTION).min(rows) {
                row.build(id as u32, rows, &mut rng);
                logical += row.row.len() + row.secondary.len() + row.key.len();
                row.insert(&mut txn, &table)?;
            }
            txn.commit()?;
            progress.note(ROWS_PER_TRANSACTION);
        }
        Ok(())
    })?;
    progress.print();
    status(&db, &WRITES);
    time("checkpoint after load", rows, || db.checkpoint())?;
    status(&db, &WRITES);
    sizes(&db, options, logical as u64);
    read(&db, &table, rows, "resident")?;
    update(&db, &table, rows, "update by key")?;
    time("checkpoint after updates", rows / 3, || db.checkpoint())?;
    status(&db, &WRITES);
    db.close()?;
    drop((table, db));
    let db = time("open", rows, || open(options))?;
    let table = db.table("sbtest")?;
    scan(&db, &table, rows, 0, "scan after startup")?;
    read(&db, &table, rows, "again")?;
    db.close()
}

fn read(db: &Db, table: &Arc<Table>, rows: u64, when: &str) -> Result<()> {
    let gets = rows.min(500_000);
    let mut rng = Rng::new(2);
    let mut bytes = Vec::new();
    time(&format!("point get, {when}"), gets, || {
        for _ in 0..gets {
            let mut txn = db.begin();
            let key = (rng.below(rows) as u32).to_be_bytes();
            let found = txn.get(table, &key, Read::Consistent, &mut bytes)?;
            assert!(found, "every row exists");
            txn.commit()?;
        }
        Ok(())
    })?;
    time(&format!("point get by cursor, {when}"), gets, || {
        for _ in 0..gets {
            let mut txn = db.begin();
            let mut cursor = txn.cursor(table, 0, Read::Consistent)?;
            assert!(
                cursor.seek(SeekMode::AtLeast, &(rng.below(rows) as u32).to_be_bytes())?,
                "every row exists"
            );
            txn.commit()?;
        }
        Ok(())
    })?;
    scan(db, table, rows, 0, &format!("scan, {when}"))?;
    scan(db, table, rows, 1, &format!("scan of index, {when}"))
}

fn scan(db: &Db, table: &Arc<Table>, rows: u64, index_no: usize, what: &str) -> Result<()> {
    time(what, rows, || {
        let mut txn = db.begin();
        let mut cursor = txn.cursor(table, index_no, Read::Consistent)?;
        let (mut count, mut bytes) = (0, 0);
        let mut found = cursor.seek(SeekMode::First, b"")?;
        while found {
            count += 1;
            bytes += cursor.key().len() + cursor.row().len();
            found = cursor.next()?;
        }
        assert_eq!(count, rows, "the scan finds every row once ({bytes} bytes)");
        Ok(())
    })
}

/// Changes a column without an index in random rows, a hundred rows per transaction.
fn update(db: &Db, table: &Arc<Table>, rows: u64, what: &str) -> Result<()> {
    let mut rng = Rng::new(3);
    let mut bytes = Vec::new();
    db.set_flush_log_at_commit(2);
    let updates = rows / 3;
    let mut progress = Progress::start();
    time(what, updates, || {
        let mut txn = db.begin();
        for number in 0..updates {
            let key = (rng.below(rows) as u32).to_be_bytes();
            txn.get(table, &key, Read::Exclusive, &mut bytes)?;
            let at = bytes.len() - 178;
            bytes.truncate(at);
            digits(&mut bytes, 10, &mut rng);
            digits(&mut bytes, 5, &mut rng);
            txn.update(table, &key, &NewRow { key: &key, row: &bytes, secondary: &[] }, &[])?;
            if number % 100 == 99 {
                txn.commit()?;
                progress.note(100);
            }
        }
        txn.commit()
    })?;
    progress.print();
    db.set_flush_log_at_commit(1);
    Ok(())
}

fn sizes(db: &Db, options: &Options, logical: u64) {
    let data = disk_bytes(&options.dir.join("seg"));
    let all = disk_bytes(&options.dir);
    let log = db.status().iter().find(|(name, _)| *name == "log_position").map_or(0, |(_, bytes)| *bytes);
    let mb = |bytes: u64| bytes as f64 / 1e6;
    println!(
        "    logical {:.1} MB, data {:.1} MB ({:.3}), directory {:.1} MB, logged {:.1} MB, anonymous {} MB",
        mb(logical),
        mb(data),
        data as f64 / logical as f64,
        mb(all),
        mb(log),
        memory_kib("RssAnon") / 1024
    );
}

fn texts(options: &Options) -> Result<()> {
    let db = open(options)?;
    let row_format = RowFormatVersion { null_bytes: 0, fixed: vec![4], var_count: 2 };
    let table = db.create_table(&table_spec("text", row_format, vec![index("PRIMARY", true, 4)]))?;
    let (mut rng, mut logical) = (Rng::new(5), 0);
    let text = match &options.text_file {
        Some(path) => std::fs::read(path).map_err(|e| Error::io("read", "the text file", e))?,
        None => words(&mut rng, 64 << 20),
    };
    let (texts, mut at, mut row) = (options.texts, 0, Vec::new());
    time("load texts", texts, || {
        for first in (0..texts).step_by(50) {
            let mut txn = db.begin();
            for id in first..(first + 50).min(texts) {
                let bytes = 2000 + ((rng.below(1 << 16) * rng.below(1 << 16)) >> 16) as usize;
                at = if at + bytes > text.len() { 0 } else { at };
                let piece = &text[at..at + bytes];
                at += bytes;
                row.clear();
                row.extend_from_slice(&(id as u32).to_le_bytes());
                varint::put(&mut row, (piece.len() as u64) << 1);
                varint::put(&mut row, 5 << 1);
                row.extend_from_slice(piece);
                row.extend_from_slice(b"utf-8");
                logical += row.len() as u64;
                txn.insert(&table, &NewRow { key: &(id as u32).to_be_bytes(), row: &row, secondary: &[] })?;
            }
            txn.commit()?;
        }
        Ok(())
    })?;
    time("checkpoint after texts", texts, || db.checkpoint())?;
    status(&db, &WRITES);
    sizes(&db, options, logical);
    read_texts(&db, &table, texts, "read texts")?;
    db.close()?;
    drop((table, db));
    let db = open(options)?;
    read_texts(&db, &db.table("text")?, texts, "read texts after startup")?;
    db.close()
}

fn read_texts(db: &Db, table: &Arc<Table>, texts: u64, what: &str) -> Result<()> {
    time(what, texts, || {
        let mut txn = db.begin();
        let mut cursor = txn.cursor(table, 0, Read::Consistent)?;
        let (mut value, mut bytes) = (Vec::new(), 0);
        let mut found = cursor.seek(SeekMode::First, b"")?;
        while found {
            let row = cursor.row();
            let (word, used) = varint::get(&row[4..]).expect("a stored row");
            let (_, more) = varint::get(&row[4 + used..]).expect("a stored row");
            let start = 4 + used + more;
            let stored = &row[start..start + (word >> 1) as usize];
            if word & 1 != 0 {
                txn.fetch_large(table, stored, &mut value)?;
                bytes += value.len();
            } else {
                bytes += stored.len();
            }
            found = cursor.next()?;
        }
        assert!(bytes > 0, "texts were read");
        Ok(())
    })
}

/// Text of invented words, some far more frequent than others, as in a natural language.
fn words(rng: &mut Rng, bytes: usize) -> Vec<u8> {
    let word = |rng: &mut Rng| -> Vec<u8> {
        (0..2 + rng.below(9))
            .map(|_| b"etaoinshrdlucmfwypvbgk"[(rng.below(22) * rng.below(22) / 22) as usize])
            .collect()
    };
    let all: Vec<Vec<u8>> = (0..40_000).map(|_| word(rng)).collect();
    let mut text = Vec::with_capacity(bytes + 16);
    while text.len() < bytes {
        let exponent = rng.below(1000) as f64 / 1000.0;
        let rank = (40_000f64.powf(exponent) - 1.0) as usize;
        text.extend_from_slice(&all[rank.min(all.len() - 1)]);
        text.push(b' ');
    }
    text
}

//! The engine without a server: a table with two indexes, a crash, a recovery, and the sizes on
//! disk.
//!
//! `cargo run --release --example embedded [directory [rows]]` loads the table in a separate
//! process, which exits in the middle of a transaction without closing anything. Then it opens the
//! database again, reads through both indexes, shows that exactly the committed rows exist, and
//! prints their size.

use cheetah::{
    build_row, Config, Database, Error, IndexSpec, Key, NewRow, Read, Result, RowFormatVersion, RowView,
    SecondaryEntry, SeekMode, TableSpec, VarValue,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Rows of a transaction.
const BATCH: u64 = 1000;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rows = arguments.get(1).and_then(|rows| rows.parse().ok()).unwrap_or(100_000);
    match arguments.first().map(String::as_str) {
        Some("--load") => load(Path::new(arguments.get(2).map_or(".", String::as_str)), rows),
        Some(directory) => demonstrate(Path::new(directory), rows),
        None => {
            let directory = std::env::temp_dir().join(format!("cheetah-embedded-{}", std::process::id()));
            let done = demonstrate(&directory, rows);
            let _ = std::fs::remove_dir_all(&directory);
            done
        }
    }
}

/// Opens the database in a directory, with 64 MiB of memory.
fn open(directory: &Path) -> Result<Database> {
    Database::open_with(directory, Config { buffer_pool_bytes: 64 << 20, ..Config::default() })
}

/// People with a number, a year of birth and a name; an index by number, and one by name.
fn people() -> TableSpec {
    let columns = RowFormatVersion { null_bytes: 0, fixed: vec![2], var_count: 1 };
    TableSpec::new("people")
        .max_key_bytes(8)
        .row_format(columns)
        .index(IndexSpec::new("name").max_key_bytes(64))
}

fn name_of(number: u64) -> String {
    let first = ["Ada", "Alan", "Barbara", "Edsger", "Grace", "John", "Margaret", "Tony"];
    let last = ["Dijkstra", "Hamilton", "Hoare", "Hopper", "Liskov", "Lovelace", "McCarthy", "Turing"];
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    format!("{} {} {}", first[mixed as usize % 8], last[mixed as usize / 8 % 8], mixed % 10_000)
}

/// Loads the table and exits in the middle of the last transaction.
fn load(directory: &Path, rows: u64) -> Result<()> {
    let db = open(directory)?;
    let table = db.create_table(&people())?;
    let started = Instant::now();
    let mut txn = db.begin();
    let mut row = Vec::new();
    for number in 0..rows + BATCH / 2 {
        let name = name_of(number);
        let born = (1900 + number % 100) as u16;
        row.clear();
        build_row(&[], &born.to_le_bytes(), &[VarValue::inline(name.as_bytes())], &mut row);
        let (key, by_name) = (Key::from(number), Key::from(&*name));
        let secondary = &[SecondaryEntry::new(1, &by_name)];
        txn.insert(&table, &NewRow { key: &key, row: &row, secondary })?;
        if (number + 1) % BATCH == 0 && number < rows {
            txn.commit()?;
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "loaded {rows} rows in {seconds:.2} s, {:.0} a second; now the process exits",
        rows as f64 / seconds
    );
    std::process::exit(0);
}

fn demonstrate(directory: &Path, rows: u64) -> Result<()> {
    let rows = rows / BATCH * BATCH;
    load_in_a_process(directory, rows)?;
    let started = Instant::now();
    let db = open(directory)?;
    println!("recovered in {:.2} s", started.elapsed().as_secs_f64());
    let table = db.table("people")?;
    println!("{} rows exist, {rows} were committed", table.row_count());
    let mut txn = db.begin();
    let mut row = Vec::new();
    if txn.get(&table, &Key::from(42_u64), Read::Consistent, &mut row)? {
        println!("number 42 is {}", describe(table.row_format(), &row));
    }
    let mut cursor = txn.cursor(&table, 1, Read::Consistent)?;
    let mut found = cursor.seek(SeekMode::AtLeast, &Key::from("Grace Hopper"))?;
    for _ in 0..3 {
        if found {
            cursor.get_row(&mut row)?;
            println!("by name from 'Grace Hopper': {}", describe(table.row_format(), &row));
            found = cursor.next()?;
        }
    }
    txn.commit()?;
    db.close()?;
    for (index, stats) in table.indexes().iter().zip(table.stats()?) {
        let (pages, logical, stored) = (stats.pages, stats.logical_bytes, stats.stored_bytes);
        let percent = 100 * stored / logical.max(1);
        println!("index '{}': {pages} pages, {logical} bytes, {stored} on disk ({percent} %)", index.name);
    }
    if table.row_count() == rows {
        Ok(())
    } else {
        Err(Error::corrupt("the example", "rows are missing"))
    }
}

/// Runs this program again to load the table.
fn load_in_a_process(directory: &Path, rows: u64) -> Result<()> {
    let failed = |e: std::io::Error| Error::io("run", "the loading process", e);
    std::fs::create_dir_all(directory).map_err(failed)?;
    let program: PathBuf = std::env::current_exe().map_err(failed)?;
    let status = Command::new(program).arg("--load").arg(rows.to_string()).arg(directory).status();
    match status.map_err(failed)?.success() {
        true => Ok(()),
        false => Err(failed(std::io::Error::other("it failed"))),
    }
}

fn describe(row_format: &RowFormatVersion, row: &[u8]) -> String {
    let Ok(view) = RowView::parse(row_format, row) else { return "damaged".into() };
    let born = view.fixed().first_chunk().map_or(0, |bytes| u16::from_le_bytes(*bytes));
    let name = view.values().next().map_or(&[][..], |value| value.bytes);
    format!("{}, born {born}", String::from_utf8_lossy(name))
}

//! Code that the tests of the engine share: an environment, tables of one row-format version, and
//! rows for them.

#![allow(clippy::unwrap_used, dead_code, unreachable_pub, reason = "each test file uses a part")]

pub mod altering;
pub mod constraints;
pub mod exploration;
pub mod families;
pub mod full_disk;
pub mod history;
pub mod steps;
pub mod words;
pub mod workload;

use cheetah::testing::base::{Config, Result};
use cheetah::testing::db::{Db, Env, ExpectedEntry, Read, SeekMode, Transaction};
use cheetah::testing::format::image::{Codec, Compression};
use cheetah::testing::format::row::RowFormatVersion;
use cheetah::testing::format::varint;
use cheetah::testing::table::{IndexSpec, NewRow, OldEntry, SecondaryEntry, Table, TableSpec};
use cheetah_io::sim::{SimClock, SimDisk};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A row of the tests: a number, a name, and a text that may be large.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    pub number: u64,
    pub name: Vec<u8>,
    pub text: Vec<u8>,
}

/// The contents of a table by key.
pub type Rows = BTreeMap<u64, Row>;

/// An environment on a simulated disk.
pub fn env(disk: &SimDisk) -> Env {
    Env { disk: Arc::new(disk.clone()), clock: Arc::new(SimClock::default()) }
}

/// Opens the database of a simulated disk with tiny limits.
pub fn open(disk: &SimDisk) -> Result<Db> {
    Db::open(env(disk), Config::tiny())
}

/// A table with a clustered index, an index by name and a unique index by number.
pub fn spec(name: &str) -> TableSpec {
    let index = |name: &str, unique, max_key_bytes| IndexSpec {
        name: name.into(),
        unique,
        max_key_bytes,
        row_format: RowFormatVersion::opaque(),
    };
    TableSpec {
        name: name.into(),
        row_format: RowFormatVersion { null_bytes: 0, fixed: vec![8], var_count: 2 },
        indexes: vec![index("PRIMARY", true, 8), index("name", false, 24), index("number", true, 8)],
        compression: Compression { codec: Codec::Zstd, level: 1 },
        hidden_key: false,
        auto_increment: 1,
        extra: b"extra".to_vec(),
        fulltext: Vec::new(),
        is_temporary: false,
        encryption: Default::default(),
    }
}

impl Row {
    /// A row whose name and number follow from `seed`, with a text of `text_bytes`.
    pub fn new(seed: u64, text_bytes: usize) -> Self {
        let name = format!("name{}", seed % 7).into_bytes();
        let text = (0..text_bytes).map(|at| (seed.wrapping_mul(31).wrapping_add(at as u64 / 3) % 251) as u8);
        Self { number: seed, name, text: text.collect() }
    }

    pub fn stored(&self) -> Vec<u8> {
        let mut row = self.number.to_le_bytes().to_vec();
        varint::put(&mut row, (self.name.len() as u64) << 1);
        varint::put(&mut row, (self.text.len() as u64) << 1);
        row.extend_from_slice(&self.name);
        row.extend_from_slice(&self.text);
        row
    }

    /// The stored row, which keeps an existing text.
    pub fn stored_keeping_text(&self, locator: &[u8]) -> Vec<u8> {
        let mut row = self.number.to_le_bytes().to_vec();
        varint::put(&mut row, (self.name.len() as u64) << 1);
        varint::put(&mut row, (locator.len() as u64) << 1 | 1);
        row.extend_from_slice(&self.name);
        row.extend_from_slice(locator);
        row
    }

    /// The text's bytes as stored, and whether they are a locator.
    pub fn parse(stored: &[u8]) -> (Row, bool) {
        let number = u64::from_le_bytes(stored[..8].try_into().unwrap());
        let (name_word, a) = varint::get(&stored[8..]).unwrap();
        let (text_word, b) = varint::get(&stored[8 + a..]).unwrap();
        let at = 8 + a + b;
        let name_end = at + (name_word >> 1) as usize;
        let row = Row { number, name: stored[at..name_end].to_vec(), text: stored[name_end..].to_vec() };
        assert_eq!(row.text.len() as u64, text_word >> 1);
        (row, text_word & 1 == 1)
    }

    /// The keys of the row's entries in the secondary indexes. The name ends with a zero byte, so
    /// that no key is a prefix of another key.
    pub fn keys(&self) -> [Vec<u8>; 2] {
        let mut name = self.name.clone();
        name.push(0);
        [name, self.number.to_be_bytes().to_vec()]
    }
}

pub fn insert(txn: &mut Transaction, table: &Arc<Table>, key: u64, row: &Row) -> Result<()> {
    let [name, number] = row.keys();
    let secondary = [
        SecondaryEntry { index_no: 1, key: &name, payload: b"p", check_unique: true },
        SecondaryEntry { index_no: 2, key: &number, payload: b"", check_unique: true },
    ];
    txn.insert(table, &NewRow { key: &key.to_be_bytes(), row: &row.stored(), secondary: &secondary })
}

pub fn delete(txn: &mut Transaction, table: &Arc<Table>, key: u64, old: &Row) -> Result<()> {
    let [name, number] = old.keys();
    let entries = [
        OldEntry { index_no: 1, key: &name, payload: b"p" },
        OldEntry { index_no: 2, key: &number, payload: b"" },
    ];
    txn.delete(table, &key.to_be_bytes(), &entries)
}

/// Changes a row and its entries: all entries if the key changes, otherwise the entries that
/// differ.
pub fn update(
    txn: &mut Transaction,
    table: &Arc<Table>,
    old_key: u64,
    old: &Row,
    key: u64,
    new: &Row,
) -> Result<()> {
    update_stored(txn, table, old_key, old, key, new, &new.stored())
}

/// Like `update`, with the stored form of the new row.
pub fn update_stored(
    txn: &mut Transaction,
    table: &Arc<Table>,
    old_key: u64,
    old: &Row,
    key: u64,
    new: &Row,
    stored: &[u8],
) -> Result<()> {
    let (old_keys, new_keys) = (old.keys(), new.keys());
    let changes = (0..2).filter(|&no| key != old_key || old_keys[no] != new_keys[no]).collect::<Vec<_>>();
    let payload = |no: usize| if no == 0 { &b"p"[..] } else { &b""[..] };
    let secondary = changes.iter().map(|&no| SecondaryEntry {
        index_no: no + 1,
        key: &new_keys[no],
        payload: payload(no),
        check_unique: true,
    });
    let secondary = secondary.collect::<Vec<_>>();
    let entries =
        changes.iter().map(|&no| OldEntry { index_no: no + 1, key: &old_keys[no], payload: payload(no) });
    let entries = entries.collect::<Vec<_>>();
    let new = NewRow { key: &key.to_be_bytes(), row: stored, secondary: &secondary };
    txn.update(table, &old_key.to_be_bytes(), &new, &entries)
}

/// Reads a row with its text by a consistent read.
pub fn read(txn: &mut Transaction, table: &Arc<Table>, key: u64) -> Result<Option<Row>> {
    read_as(txn, table, key, Read::Consistent)
}

/// Reads a row with its text.
pub fn read_as(txn: &mut Transaction, table: &Arc<Table>, key: u64, how: Read) -> Result<Option<Row>> {
    let mut stored = Vec::new();
    if !txn.get(table, &key.to_be_bytes(), how, &mut stored)? {
        return Ok(None);
    }
    complete(txn, table, &stored).map(Some)
}

/// The row from its stored form, including its text.
pub fn complete(txn: &Transaction, table: &Arc<Table>, stored: &[u8]) -> Result<Row> {
    let (mut row, external) = Row::parse(stored);
    if external {
        let locator = std::mem::take(&mut row.text);
        txn.fetch_large(table, &locator, &mut row.text)?;
    }
    Ok(row)
}

/// All rows of a table, read by the clustered index.
pub fn all_rows(txn: &mut Transaction, table: &Arc<Table>) -> Result<Rows> {
    let mut cursor = txn.cursor(table, 0, Read::Consistent)?;
    let mut rows = Rows::new();
    let mut found = cursor.seek(SeekMode::First, b"")?;
    while found {
        let key = u64::from_be_bytes(cursor.key().try_into().unwrap());
        rows.insert(key, complete(txn, table, cursor.row())?);
        found = cursor.next()?;
    }
    Ok(rows)
}

/// Runs CHECK on a table, with the expected entries of each row.
pub fn check(db: &Db, table: &Arc<Table>) -> Result<std::result::Result<u64, Vec<String>>> {
    let report = db.check_table_with(table, &mut |_, stored, entries| {
        add_entries_of(stored, entries);
        Ok(())
    })?;
    Ok(if report.is_ok() { Ok(report.rows) } else { Err(report.findings) })
}

/// Adds the entries that a stored row should have.
pub fn add_entries_of(stored: &[u8], entries: &mut Vec<ExpectedEntry>) {
    let (row, _) = Row::parse(stored);
    let [name, number] = row.keys();
    let payloads = [b"p".to_vec(), Vec::new()];
    let parts = [name, number].into_iter().zip(payloads).zip(1..);
    entries.extend(parts.map(|((key, payload), index_no)| ExpectedEntry { index_no, key, payload }));
}

/// The maximum time that a thread of a test waits for another thread.
const UNTIL_MAX: Duration = Duration::from_secs(60);

/// Waits until a condition is true. Fails after a timeout.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < UNTIL_MAX, "timeout while waiting until {what}");
        std::thread::yield_now();
    }
}

/// Tells the other threads of a test to end, even if the test fails: a scope waits for its threads.
pub struct RaisedAtEnd<'a>(pub &'a AtomicBool);

impl Drop for RaisedAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

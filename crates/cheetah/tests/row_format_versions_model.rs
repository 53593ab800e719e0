//! Columns that are added and dropped without rewriting the rows, compared with a model. The test
//! changes columns and rows, rolls back, opens snapshots, purges and crashes, while transactions
//! may stay open or prepared. Afterwards every row must have the columns of the definition. Each
//! value must be the written one, or the default with which the column was added.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod columns;
mod support;

use cheetah::testing::base::{reach, Error, Xid};
use cheetah::testing::db::{Db, Read, Transaction};
use cheetah::testing::table::Table;
use cheetah_io::rng::Rng;
use cheetah_io::sim::{CrashPolicy, SimDisk};
use columns::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use support::open;

/// A transaction that stays open or prepared while columns are added and dropped. Its rows are
/// among the last keys, which no other transaction writes meanwhile.
struct Left {
    /// `None` if the transaction is prepared and detached from its handle.
    txn: Option<Transaction>,
    is_prepared: bool,
    /// The rows at the transaction's keys if it commits.
    rows: Rows,
    changes: u32,
}

/// The number of keys.
const KEYS: u64 = 50;
/// The first of the keys that are reserved for a transaction that is left open.
const LEFT_KEYS: u64 = 35;

fn xid() -> Xid {
    Xid::new(1, b"left", b"").unwrap()
}

struct Model {
    rng: Rng,
    disk: SimDisk,
    db: Option<Db>,
    columns: Vec<Column>,
    next_no: u32,
    rows: Rows,
    /// An older transaction, and the rows that it sees.
    snapshot: Option<(Transaction, Rows)>,
    left: Option<Left>,
    changes: u32,
    /// Transactions that ended after columns had changed: the number that rolled back, and the
    /// number that committed.
    left_over_changes: [u32; 2],
    /// The number of these transactions that were prepared.
    prepared_over_changes: u32,
    /// The number of crashes with a prepared transaction that was older than a change of columns.
    prepared_over_crashes: u32,
}

impl Model {
    fn new(seed: u64) -> Self {
        let disk = SimDisk::new();
        let db = open(&disk).unwrap();
        let columns = vec![NUMBER, Column { no: 1, width: 0 }];
        db.create_table(&spec(&columns)).unwrap();
        let rng = Rng::new(seed);
        Self {
            rng,
            disk,
            db: Some(db),
            columns,
            next_no: 2,
            rows: Rows::new(),
            snapshot: None,
            left: None,
            changes: 0,
            left_over_changes: [0; 2],
            prepared_over_changes: 0,
            prepared_over_crashes: 0,
        }
    }

    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    fn random_row(&mut self) -> Row {
        let is_long = self.rng.chance(0.15);
        let Self { rng, columns, .. } = self;
        let row = columns.iter().map(|column| (column.no, random_value(rng, column, is_long)));
        row.collect()
    }

    /// Runs some row operations in one transaction, and commits it or rolls it back.
    fn write(&mut self) {
        let mut txn = self.db().begin();
        let mut rows = self.rows.clone();
        let end = if self.left.is_some() { LEFT_KEYS } else { KEYS };
        self.write_some(&mut txn, &mut rows, 0..end);
        if self.rng.chance(0.8) {
            txn.commit().unwrap();
            self.rows = rows;
        } else {
            txn.rollback().unwrap();
        }
    }

    fn write_some(&mut self, txn: &mut Transaction, rows: &mut Rows, keys: std::ops::Range<u64>) {
        let table = self.db().table("t").unwrap();
        for _ in 0..1 + self.rng.below(6) {
            let key = keys.start + self.rng.below(keys.end - keys.start);
            let savepoint = txn.savepoint();
            let before = rows.clone();
            match rows.get(&key).cloned() {
                None => {
                    let row = self.random_row();
                    let bytes = stored(&self.columns, &row, &BTreeMap::new());
                    put(txn, &table, key, None, Some((&row, bytes))).unwrap();
                    rows.insert(key, row);
                }
                Some(old) if self.rng.chance(0.3) => {
                    put(txn, &table, key, Some(&old), None).unwrap();
                    rows.remove(&key);
                }
                Some(old) => self.update(txn, &table, key, &old, rows),
            }
            if self.rng.chance(0.1) {
                txn.rollback_to(savepoint).unwrap();
                *rows = before;
            }
        }
    }

    /// Writes in the transaction that is left open, or begins such a transaction. May prepare the
    /// transaction, and may then detach it.
    fn leave_open(&mut self) {
        let (mut txn, mut rows, changes) = match self.left.take() {
            None => (self.db().begin(), self.rows.clone().split_off(&LEFT_KEYS), 0),
            Some(Left { txn: Some(txn), is_prepared: false, rows, changes }) => (txn, rows, changes),
            prepared => return self.left = prepared,
        };
        self.write_some(&mut txn, &mut rows, LEFT_KEYS..KEYS);
        if self.rng.chance(0.5) {
            txn.prepare(xid()).unwrap();
        }
        let is_prepared = txn.is_prepared();
        let txn = Some(txn).filter(|_| !is_prepared || self.rng.chance(0.5));
        self.left = Some(Left { txn, is_prepared, rows, changes });
    }

    /// Commits or rolls back the transaction that was left open.
    fn end_left(&mut self) {
        let Some(Left { txn, is_prepared, mut rows, changes }) = self.left.take() else { return };
        let commits = self.rng.chance(0.5);
        match (txn, commits) {
            (Some(mut txn), true) => txn.commit().unwrap(),
            (Some(mut txn), false) => txn.rollback().unwrap(),
            (None, true) => self.db().commit_prepared(&xid()).unwrap(),
            (None, false) => self.db().rollback_prepared(&xid()).unwrap(),
        }
        if commits {
            drop(self.rows.split_off(&LEFT_KEYS));
            self.rows.append(&mut rows);
        }
        if changes > 0 {
            self.left_over_changes[usize::from(commits)] += 1;
            self.prepared_over_changes += u32::from(is_prepared);
        }
    }

    /// Changes some columns. The large values of the other columns are kept.
    fn update(&mut self, txn: &mut Transaction, table: &Arc<Table>, key: u64, old: &Row, rows: &mut Rows) {
        let mut bytes = Vec::new();
        assert!(txn.get(table, &key.to_be_bytes(), Read::Exclusive, &mut bytes).unwrap());
        let (_, mut kept) = parse(&self.columns, &bytes);
        let mut row = old.clone();
        for (no, value) in self.random_row() {
            if self.rng.chance(0.4) {
                row.insert(no, value);
                kept.remove(&no);
            }
        }
        let bytes = stored(&self.columns, &row, &kept);
        put(txn, table, key, Some(old), Some((&row, bytes))).unwrap();
        rows.insert(key, row);
    }

    /// Adds or drops columns. Returns `false` if the table has had too many row-format versions.
    fn change_columns(&mut self) -> bool {
        let mut columns = self.columns.clone();
        let mut defaults = Row::new();
        for _ in 0..1 + self.rng.below(2) {
            if columns.len() > 1 && self.rng.chance(0.5) {
                let at = self.rng.below(columns.len() as u64) as usize;
                if columns[at] != NUMBER {
                    columns.remove(at);
                }
            } else if columns.len() < 7 {
                let width = if self.rng.chance(0.5) { 0 } else { 1 + self.rng.below(9) as u16 };
                let column = Column { no: self.next_no, width };
                self.next_no += 1;
                let (is_null, mut value) = random_value(&mut self.rng, &column, true);
                value.truncate(if self.rng.chance(0.05) { 100 } else { 12 });
                defaults.insert(column.no, (is_null, value));
                columns.insert(self.rng.below(columns.len() as u64 + 1) as usize, column);
            }
        }
        let rows = new_rows(&self.columns, &columns, &defaults);
        match alter(self.db(), rows, &self.next_no.to_le_bytes()) {
            Err(Error::Limit { .. }) => return false,
            result => result.unwrap(),
        }
        let adapt = |row: &mut Row| {
            row.retain(|no, _| columns.iter().any(|column| column.no == *no));
            for column in &columns {
                row.entry(column.no).or_insert_with(|| defaults[&column.no].clone());
            }
        };
        self.rows.values_mut().for_each(adapt);
        if let Some(left) = &mut self.left {
            left.rows.values_mut().for_each(adapt);
            left.changes += 1;
        }
        if let Some((_, rows)) = &mut self.snapshot {
            rows.values_mut().for_each(adapt);
        }
        self.columns = columns;
        self.changes += 1;
        true
    }

    fn crash(&mut self) {
        self.snapshot = None;
        let seed = self.rng.below(1 << 32);
        let disk = self.disk.crash(CrashPolicy::Random(0.5), seed);
        let left = self.left.take().filter(|left| left.is_prepared);
        self.prepared_over_crashes += u32::from(left.as_ref().is_some_and(|left| left.changes > 0));
        self.left = left.map(|left| Left { txn: None, ..left });
        self.db = None;
        self.disk = disk;
        self.db = Some(open(&self.disk).unwrap());
        assert_eq!(self.db().prepared().len(), usize::from(self.left.is_some()));
        // The background rolls back open transactions.
        while self.db().run_background().unwrap() {}
    }

    fn look_back(&mut self) {
        let table = self.db().table("t").unwrap();
        let columns = self.columns.clone();
        if let Some((txn, rows)) = &mut self.snapshot {
            assert_eq!(&read_all(txn, &table, &columns, Read::Consistent).unwrap(), rows);
        }
        if self.rng.chance(0.3) {
            self.snapshot = None;
        } else if self.snapshot.is_none() {
            let mut txn = self.db().begin();
            txn.take_snapshot().unwrap();
            self.snapshot = Some((txn, self.rows.clone()));
        }
    }

    fn verify(&mut self) {
        let table = self.db().table("t").unwrap();
        let reads = [Read::Consistent, Read::Shared];
        // A locking reader would wait for the transaction that was left open.
        for &how in reads.iter().take(if self.left.is_some() { 1 } else { 2 }) {
            let mut txn = self.db().begin();
            assert_eq!(read_all(&mut txn, &table, &self.columns, how).unwrap(), self.rows);
            assert_eq!(txn.count(&table).unwrap(), Some(self.rows.len() as u64));
        }
        check(self.db(), &table, &self.columns).unwrap();
    }

    fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            match self.rng.below(100) {
                0..=51 => self.write(),
                52..=56 => self.leave_open(),
                57..=59 => self.end_left(),
                60..=69 if !self.change_columns() => {
                    // Ends the open transaction, as a copy of the table would.
                    self.end_left();
                    self.snapshot = None;
                    self.rows.clear();
                    self.db().truncate_table("t").unwrap();
                    assert!(self.change_columns(), "an emptied table has one row-format version");
                }
                60..=69 => {}
                70..=79 => self.look_back(),
                80..=84 => self.db().checkpoint().unwrap(),
                85..=91 => while self.db().run_background().unwrap() {},
                92..=94 => self.crash(),
                _ => self.verify(),
            }
        }
        self.end_left();
        self.snapshot = None;
        self.verify();
        while self.db().run_background().unwrap() {}
        self.verify();
        self.crash();
        self.verify();
    }
}

#[test]
fn rows_have_the_columns_of_the_definition_whatever_happened() {
    let older = reach::count("row of an older row-format version");
    let (mut changes, mut left, mut prepared) = (0, [0; 2], [0; 2]);
    for seed in 0..60 {
        let mut model = Model::new(seed);
        model.run(150);
        changes += model.changes;
        left = [0, 1].map(|no| left[no] + model.left_over_changes[no]);
        prepared[0] += model.prepared_over_changes;
        prepared[1] += model.prepared_over_crashes;
    }
    assert!(changes > 400, "{changes}");
    assert!(left.iter().all(|&count| count > 20), "{left:?}");
    assert!(prepared.iter().all(|&count| count > 15), "{prepared:?}");
    assert!(reach::count("row of an older row-format version") > older + 1000);
}

//! Random transactions and snapshots on a database in one thread, and a model of the rows that each
//! transaction sees: the rows at the time of its snapshot, with its own changes.
//!
//! Each index must find every row, in both directions and by its key. The count must include every
//! row. Large values are read.

use super::*;
use cheetah::testing::base::Error;
use cheetah::testing::db::{Cursor, Isolation, Read, Savepoint};
use cheetah_io::sim::CrashPolicy;
use cheetah_io::Rng;
use std::collections::BTreeSet;

/// The tables of the database.
pub const TABLES: [&str; 2] = ["a", "b"];

/// The rows of all tables.
type Contents = [Rows; TABLES.len()];
/// The rows that a transaction has changed, with their current content.
type Changed = [BTreeMap<u64, Option<Row>>; TABLES.len()];

/// The parameters of a history.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub seed: u64,
    pub steps: u64,
    pub writers: usize,
    pub readers: usize,
    /// Clustered keys are below this number. The number is small, so that keys are reused. The
    /// numbers in rows are below twice this number, so that they collide.
    pub keys: u64,
    /// Whether the first reader stays open until the database is closed.
    pub keeps_first: bool,
}

struct Session {
    txn: Transaction,
    /// The content of the session's snapshot, once the session has one.
    snapshot: Option<Contents>,
    changed: Changed,
    savepoints: Vec<(Savepoint, Changed)>,
}

impl Session {
    fn new(db: &Db, isolation: Isolation) -> Self {
        let mut txn = db.begin();
        txn.set_isolation(isolation);
        txn.set_lock_wait(0);
        Self { txn, snapshot: None, changed: Changed::default(), savepoints: Vec::new() }
    }
}

/// A history in progress.
pub struct History {
    plan: Plan,
    disk: SimDisk,
    db: Db,
    tables: Vec<Arc<Table>>,
    rng: Rng,
    committed: Contents,
    writers: Vec<Session>,
    readers: Vec<Session>,
}

fn overlay(rows: &mut Rows, changed: &BTreeMap<u64, Option<Row>>) {
    for (key, row) in changed {
        match row {
            Some(row) => drop(rows.insert(*key, row.clone())),
            None => drop(rows.remove(key)),
        }
    }
}

impl History {
    /// A history on a new database.
    pub fn new(plan: Plan) -> Result<Self> {
        let disk = SimDisk::new();
        let db = open(&disk)?;
        let tables = TABLES.iter().map(|name| db.create_table(&spec(name))).collect::<Result<Vec<_>>>()?;
        let writers = (0..plan.writers).map(|_| Session::new(&db, Isolation::RepeatableRead)).collect();
        let (rng, readers) = (Rng::new(plan.seed), Vec::new());
        Ok(Self { plan, disk, db, tables, rng, committed: Contents::default(), writers, readers })
    }

    /// Runs the entire history, and checks the final state.
    pub fn run(mut self) -> Result<()> {
        for _ in 0..self.plan.steps {
            self.step()?;
        }
        while let Some(mut reader) = self.readers.pop() {
            self.look_at_all(&mut reader)?;
        }
        self.writers.clear();
        self.check()?;
        while self.db.run_background()? {}
        self.check()
    }

    fn check(&self) -> Result<()> {
        for (table, rows) in self.tables.iter().zip(&self.committed) {
            assert_eq!(super::check(&self.db, table)?, Ok(rows.len() as u64));
        }
        Ok(())
    }

    fn step(&mut self) -> Result<()> {
        match self.rng.below(200) {
            0 => self.reopen()?,
            1..=11 => drop(self.db.run_background()?),
            12..=13 => self.db.checkpoint()?,
            14..=19 if self.readers.len() < self.plan.readers => self.open_reader()?,
            20..=23 if self.readers.len() > usize::from(self.plan.keeps_first) => {
                let kept = u64::from(self.plan.keeps_first);
                let no = kept + self.rng.below(self.readers.len() as u64 - kept);
                let mut reader = self.readers.remove(no as usize);
                self.look_at_all(&mut reader)?;
            }
            24..=45 if !self.readers.is_empty() => {
                let no = self.rng.below(self.readers.len() as u64) as usize;
                let mut reader = self.readers.remove(no);
                let table_no = self.rng.below(TABLES.len() as u64) as usize;
                self.look(&mut reader, table_no)?;
                self.readers.insert(no, reader);
            }
            _ => self.writer_step()?,
        }
        Ok(())
    }

    /// Reopens the database after a close or a power cut. Open transactions are rolled back.
    fn reopen(&mut self) -> Result<()> {
        let sessions = self.readers.drain(..).chain(self.writers.drain(..)).collect::<Vec<_>>();
        if self.rng.chance(0.5) {
            drop(sessions);
            self.db.close()?;
            self.disk = self.disk.snapshot();
        } else {
            self.disk = self.disk.crash(CrashPolicy::Random(0.5), self.rng.next_u64());
            // These sessions belong to the other disk.
            drop(sessions);
        }
        self.db = open(&self.disk)?;
        self.tables = TABLES.iter().map(|name| self.db.table(name)).collect::<Result<Vec<_>>>()?;
        self.writers =
            (0..self.plan.writers).map(|_| Session::new(&self.db, Isolation::RepeatableRead)).collect();
        self.check()
    }

    fn open_reader(&mut self) -> Result<()> {
        let mut reader = Session::new(&self.db, Isolation::RepeatableRead);
        reader.txn.take_snapshot()?;
        reader.snapshot = Some(self.committed.clone());
        self.readers.push(reader);
        Ok(())
    }

    fn writer_step(&mut self) -> Result<()> {
        let no = self.rng.below(self.writers.len() as u64) as usize;
        let mut writer = self.writers.swap_remove(no);
        match self.rng.below(100) {
            0..=11 => {
                writer.txn.commit()?;
                for (rows, changed) in self.committed.iter_mut().zip(&writer.changed) {
                    overlay(rows, changed);
                }
                writer = self.new_writer(writer);
            }
            12..=16 => {
                writer.txn.rollback()?;
                writer = self.new_writer(writer);
            }
            17..=22 => writer.savepoints.push((writer.txn.savepoint(), writer.changed.clone())),
            23..=27 => {
                if let Some((savepoint, changed)) = writer.savepoints.pop() {
                    writer.txn.rollback_to(savepoint)?;
                    writer.changed = changed;
                }
            }
            28..=36 => {
                let table_no = self.rng.below(TABLES.len() as u64) as usize;
                self.look(&mut writer, table_no)?;
            }
            _ => self.change_row(&mut writer)?,
        }
        self.writers.push(writer);
        Ok(())
    }

    /// Starts the next transaction of a handle.
    fn new_writer(&mut self, ended: Session) -> Session {
        let mut next = Session { txn: ended.txn, ..Session::new(&self.db, Isolation::RepeatableRead) };
        let committed = self.rng.chance(0.3);
        next.txn.set_isolation(if committed { Isolation::ReadCommitted } else { Isolation::RepeatableRead });
        next
    }

    /// The newest rows of a table, for a writer that holds the locks it needs.
    fn newest(&self, writer: &Session, table_no: usize) -> Rows {
        let mut rows = self.committed[table_no].clone();
        for session in self.writers.iter().chain([writer]) {
            overlay(&mut rows, &session.changed[table_no]);
        }
        rows
    }

    fn change_row(&mut self, writer: &mut Session) -> Result<()> {
        let table_no = self.rng.below(TABLES.len() as u64) as usize;
        let rows = self.newest(writer, table_no);
        let key = self.rng.below(self.plan.keys);
        let table = Arc::clone(&self.tables[table_no]);
        let new = self.new_row();
        let Some(old) = rows.get(&key) else {
            let done = insert(&mut writer.txn, &table, key, &new);
            if self.is_done(writer, table_no, &rows, None, key, &new, done)? {
                writer.changed[table_no].insert(key, Some(new));
            }
            return Ok(());
        };
        if self.rng.chance(0.35) {
            let done = delete(&mut writer.txn, &table, key, old);
            if !self.is_refused_for_a_lock(writer, table_no, &done) {
                done?;
                writer.changed[table_no].insert(key, None);
            }
            return Ok(());
        }
        let new_key = if self.rng.chance(0.3) { self.rng.below(self.plan.keys) } else { key };
        let new = match self.rng.below(4) {
            0 => Row { text: new.text, ..old.clone() },
            1 => Row { number: old.number, ..new },
            _ => new,
        };
        let done = update(&mut writer.txn, &table, key, old, new_key, &new);
        if self.is_done(writer, table_no, &rows, Some(key), new_key, &new, done)? {
            writer.changed[table_no].insert(key, None);
            writer.changed[table_no].insert(new_key, Some(new));
        }
        Ok(())
    }

    fn new_row(&mut self) -> Row {
        let text_bytes = match self.rng.below(40) {
            0 => 5000,
            1..=3 => 1200,
            4..=12 => 150,
            _ => self.rng.below(20),
        };
        Row::new(self.rng.below(2 * self.plan.keys), text_bytes as usize)
    }

    /// Returns whether an insert or update was done. Checks the reason of a refusal.
    #[expect(clippy::too_many_arguments, reason = "all that an answer depends on")]
    fn is_done(
        &self,
        writer: &Session,
        table_no: usize,
        rows: &Rows,
        old_key: Option<u64>,
        key: u64,
        new: &Row,
        done: Result<()>,
    ) -> Result<bool> {
        if self.is_refused_for_a_lock(writer, table_no, &done) {
            return Ok(false);
        }
        let mut others = rows.iter().filter(|(other, _)| Some(**other) != old_key);
        let taken = others.any(|(other, row)| *other == key || row.number == new.number);
        match done {
            Err(Error::DuplicateKey { .. }) => {
                assert!(taken, "{key}, {new:?} was wrongly refused as a duplicate")
            }
            done => {
                done?;
                assert!(!taken, "a duplicate of {key}, {new:?} was accepted");
            }
        }
        Ok(!taken)
    }

    /// Returns whether an operation failed because of another writer's lock. Checks that such a
    /// lock exists.
    fn is_refused_for_a_lock(&self, writer: &Session, table_no: usize, done: &Result<()>) -> bool {
        let is_refused = matches!(done, Err(Error::LockTimeout | Error::Deadlock));
        let locks = |session: &Session| session.txn.id().is_some();
        assert!(
            !is_refused || self.writers.iter().any(locks),
            "no writer locks table {table_no}: {:?}",
            writer.txn
        );
        is_refused
    }

    fn look_at_all(&mut self, session: &mut Session) -> Result<()> {
        (0..TABLES.len()).try_for_each(|table_no| self.look(session, table_no))
    }

    /// Compares everything that the session can see of a table with the model.
    fn look(&mut self, session: &mut Session, table_no: usize) -> Result<()> {
        let is_fixed = session.txn.isolation() == Isolation::RepeatableRead;
        let fixed = session.snapshot.take().filter(|_| is_fixed);
        let snapshot = fixed.unwrap_or_else(|| self.committed.clone());
        let mut rows = snapshot[table_no].clone();
        overlay(&mut rows, &session.changed[table_no]);
        session.snapshot = Some(snapshot);
        let table = Arc::clone(&self.tables[table_no]);
        look_at(&mut session.txn, &table, &rows, self.plan.keys, &mut self.rng)?;
        session.txn.end_statement();
        Ok(())
    }
}

/// Compares the rows of a table that a transaction sees with `rows`. Most keys are below `keys`.
pub fn look_at(
    txn: &mut Transaction,
    table: &Arc<Table>,
    rows: &Rows,
    keys: u64,
    rng: &mut Rng,
) -> Result<()> {
    for index_no in 0..3 {
        scan(txn, table, index_no, rows, rng.chance(0.5))?;
    }
    walk(txn, table, rng.below(3) as usize, rows, keys, rng)?;
    for _ in 0..4 {
        let key = rng.below(keys);
        let mut stored = Vec::new();
        let found = txn.get(table, &key.to_be_bytes(), Read::Consistent, &mut stored)?;
        let row = if found { Some(complete(txn, table, &stored)?) } else { None };
        assert_eq!(row.as_ref(), rows.get(&key), "key {key}");
    }
    if let Some(count) = txn.count(table)? {
        assert_eq!(count, rows.len() as u64, "count");
    }
    Ok(())
}

/// The stored keys of an index, with the keys of their rows, in order.
fn entries(index_no: usize, rows: &Rows) -> Vec<(Vec<u8>, u64)> {
    let stored_key = |(key, row): (&u64, &Row)| {
        let clustered = key.to_be_bytes();
        let [name, number] = row.keys();
        let parts = [Vec::new(), name, number];
        ([&parts[index_no][..], &clustered].concat(), *key)
    };
    rows.iter().map(stored_key).collect::<BTreeSet<_>>().into_iter().collect()
}

fn assert_place(
    txn: &Transaction,
    cursor: &Cursor,
    expected: Option<&(Vec<u8>, u64)>,
    rows: &Rows,
) -> Result<()> {
    let index_no = cursor.index_no();
    let place = || format!("index {index_no}, at {:?}", cursor.key());
    assert_eq!(cursor.valid(), expected.is_some(), "{}", place());
    let Some((stored_key, key)) = expected else { return Ok(()) };
    assert_eq!(cursor.key(), stored_key, "{}", place());
    assert_eq!(cursor.clustered_key(), key.to_be_bytes(), "{}", place());
    if index_no > 0 {
        assert_eq!(cursor.payload(), if index_no == 1 { &b"p"[..] } else { b"" }, "{}", place());
    }
    let mut stored = Vec::new();
    cursor.get_row(&mut stored)?;
    assert_eq!(&complete(txn, cursor.table(), &stored)?, &rows[key], "{}", place());
    Ok(())
}

/// Reads a whole index in one direction.
fn scan(
    txn: &mut Transaction,
    table: &Arc<Table>,
    index_no: usize,
    rows: &Rows,
    forward: bool,
) -> Result<()> {
    let mut expected = entries(index_no, rows);
    if !forward {
        expected.reverse();
    }
    let mut cursor = txn.cursor(table, index_no, Read::Consistent)?;
    cursor.seek(if forward { SeekMode::First } else { SeekMode::Last }, b"")?;
    for entry in &expected {
        assert_place(txn, &cursor, Some(entry), rows)?;
        if forward {
            cursor.next()?;
        } else {
            cursor.prev()?;
        }
    }
    assert_place(txn, &cursor, None, rows)
}

/// Seeks to a random position, and moves back and forth from there.
fn walk(
    txn: &mut Transaction,
    table: &Arc<Table>,
    index_no: usize,
    rows: &Rows,
    keys: u64,
    rng: &mut Rng,
) -> Result<()> {
    let expected = entries(index_no, rows);
    let mut cursor = txn.cursor(table, index_no, Read::Consistent)?;
    let sought = match rng.below(3) {
        0 => rng.below(keys).to_be_bytes().to_vec(),
        1 => Row::new(rng.below(2 * keys), 0).keys()[0].clone(),
        _ => expected.get(rng.below(keys) as usize).map_or(Vec::new(), |entry| entry.0.clone()),
    };
    let above = expected.iter().position(|entry| entry.0 >= sought).unwrap_or(expected.len());
    let mut at = if rng.chance(0.5) {
        cursor.seek(SeekMode::AtLeast, &sought)?;
        above as i64
    } else {
        cursor.seek(SeekMode::Before, &sought)?;
        above as i64 - 1
    };
    for _ in 0..6 {
        let place = usize::try_from(at).ok().and_then(|at| expected.get(at));
        assert_place(txn, &cursor, place, rows)?;
        if index_no == 0 && rng.chance(0.3) {
            let behind = expected.get((at + 1) as usize..).unwrap_or_default();
            let count = run_on(txn, &mut cursor, behind, rows, 1 + rng.below(8) as usize)?;
            at = (at + count.max(1) as i64).min(expected.len() as i64);
        } else if rng.chance(0.5) {
            cursor.next()?;
            at = (at + 1).min(expected.len() as i64);
        } else {
            cursor.prev()?;
            at = (at - 1).max(-1);
        }
    }
    Ok(())
}

/// Advances by up to `rows_max` rows at once. These must be the first rows of `expected`. Returns
/// their number.
fn run_on(
    txn: &Transaction,
    cursor: &mut Cursor,
    expected: &[(Vec<u8>, u64)],
    rows: &Rows,
    rows_max: usize,
) -> Result<usize> {
    let mut found = Vec::new();
    let take =
        |prefix: &[u8], suffix: &[u8], row: &[u8]| found.push(([prefix, suffix].concat(), row.to_vec()));
    assert_eq!(cursor.next_rows(rows_max, take)?, !expected.is_empty());
    assert!(found.len() <= rows_max.min(expected.len()));
    for ((key, stored), (expected_key, row)) in found.iter().zip(expected) {
        assert_eq!(key, expected_key);
        assert_eq!(&complete(txn, cursor.table(), stored)?, &rows[row], "at {key:?}");
    }
    Ok(found.len())
}

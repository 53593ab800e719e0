//! Parents and children of foreign keys, with threads that insert, move and delete them, and a
//! model of rows that follow their parents.

use super::constraints::{child, create, refers};
use super::steps;
use super::*;
use cheetah::testing::base::planted::plant;
use cheetah::testing::base::Error;
use cheetah::testing::db::{Isolation, SeekEnd};
use cheetah::testing::table::KeySide;
use cheetah_io::Rng;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Mutex;

/// A parent with a child, and one row of each.
pub fn family() -> (SimDisk, Db) {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let parent = create(&db, "db/p", &[]);
    let kid = create(&db, "db/c", &[refers("c_ibfk_1", "of", ("db/p", "id"))]);
    let mut txn = db.begin();
    insert(&mut txn, &parent, 1, &child(1, 0, 0)).unwrap();
    insert(&mut txn, &kid, 1, &child(1, 1, 5)).unwrap();
    txn.commit().unwrap();
    (disk, db)
}

/// The two sides of the only constraint of `db/c`.
pub fn sides(db: &Db) -> (KeySide, KeySide) {
    let constraint = db.constraints_of_child(&db.table("db/c").unwrap()).remove(0);
    (constraint.child.unwrap(), constraint.parent.unwrap())
}

/// Children without a parent, as a transaction sees them.
fn orphans_for(txn: &mut Transaction, [parents, children]: [&Arc<Table>; 2]) -> Vec<u64> {
    let parents = all_rows(txn, parents).unwrap();
    let has_parent = |row: &Row| parents.keys().any(|key| row.name.starts_with(&key.to_be_bytes()));
    let children = all_rows(txn, children).unwrap().into_iter();
    children.filter(|(_, row)| !has_parent(row)).map(|(key, _)| key).collect()
}

/// Children without a parent.
pub fn orphans(db: &Db) -> Vec<u64> {
    let tables = ["db/p", "db/c"].map(|name| db.table(name).unwrap());
    for table in &tables {
        check(db, table).unwrap().unwrap();
    }
    orphans_for(&mut db.begin(), tables.each_ref())
}

/// Calls `each` with the key and the row of each child of a parent.
fn each_child(
    txn: &mut Transaction,
    side: &KeySide,
    of: u64,
    mut each: impl FnMut(&mut Transaction, u64, &Row) -> Result<()>,
) -> Result<()> {
    let (mut cursor, mut stored) = (txn.cursor_on_children(side)?, Vec::new());
    let mut found = cursor.seek_to(SeekMode::AtLeast, &of.to_be_bytes(), SeekEnd::Prefix)?;
    while found {
        cursor.get_row(&mut stored)?;
        let key = u64::from_be_bytes(cursor.clustered_key().try_into().unwrap());
        each(txn, key, &Row::parse(&stored).0)?;
        found = cursor.next()?;
    }
    Ok(())
}

const PARENTS: u64 = 3;
const CHILDREN: u64 = 5;
const THREADS: u64 = 4;
const TXNS: u64 = 120;

/// Work of many threads on a family.
struct Work {
    db: Db,
    level: Isolation,
    /// The two sides of the constraint.
    child: KeySide,
    parent: KeySide,
    /// Four numbers: the children that found their parent, the children that did not, the parents
    /// that were deleted, and the parents that were not.
    outcomes: [AtomicU64; 4],
    /// Rows that were orphans in a snapshot.
    orphans: Mutex<Vec<u64>>,
}

impl Work {
    /// Returns whether the row may stay. `wants` says whether a referencing or referenced row must
    /// exist.
    fn judge(&self, txn: &mut Transaction, side: &KeySide, key: u64, wants: bool) -> Result<bool> {
        std::thread::yield_now();
        let found = txn.find_reference(side, &key.to_be_bytes())?;
        self.outcomes[2 * usize::from(!wants) + usize::from(found != wants)].fetch_add(1, Relaxed);
        std::thread::yield_now();
        Ok(found == wants)
    }

    /// Runs one transaction. Returns whether it may be committed.
    fn run(&self, txn: &mut Transaction, rng: &mut Rng) -> Result<bool> {
        let tables = [&self.parent, &self.child].map(|side| side.table().unwrap());
        let [parent, kid] = &tables;
        let (key, of, place) = (1 + rng.below(CHILDREN), 1 + rng.below(PARENTS), rng.below(9));
        match rng.below(10) {
            0 | 1 => {
                insert(txn, kid, key, &child(key, of, place))?;
                self.judge(txn, &self.parent, of, true)
            }
            2 | 3 => insert(txn, parent, of, &child(of, 0, 0)).map(|()| true),
            4..=6 => {
                let Some(row) = read_as(txn, parent, of, Read::Exclusive)? else { return Ok(false) };
                match rng.below(3) {
                    0 => delete(txn, parent, of, &row)?,
                    1 => update(txn, parent, of, &row, PARENTS + key, &child(PARENTS + key, 0, 0))?,
                    _ => {
                        delete(txn, parent, of, &row)?;
                        let each = |txn: &mut Transaction, key, row: &Row| delete(txn, kid, key, row);
                        return each_child(txn, &self.child, of, each).map(|()| true);
                    }
                }
                self.judge(txn, &self.child, of, false)
            }
            other => {
                let Some(row) = read_as(txn, kid, key, Read::Exclusive)? else { return Ok(false) };
                std::thread::yield_now();
                let before = u64::from_be_bytes(row.name[..8].try_into().unwrap());
                match other {
                    7 => delete(txn, kid, key, &row).map(|()| true),
                    8 => {
                        update(txn, kid, key, &row, key, &child(key, of, place))?;
                        Ok(before == of || self.judge(txn, &self.parent, of, true)?)
                    }
                    // The child keeps its parent.
                    _ => update(txn, kid, key, &row, key, &child(key, before, place)).map(|()| true),
                }
            }
        }
    }

    /// Runs transactions. Returns the number of times the bug was reached.
    fn thread(&self, seed: u64, bug: Option<&'static str>) -> u64 {
        let planted = bug.map(plant);
        let (mut txn, mut rng) = (self.db.begin(), Rng::new(seed));
        txn.set_lock_wait(2_000_000_000);
        for _ in 0..TXNS {
            txn.set_isolation(Isolation::RepeatableRead);
            let tables = [&self.parent, &self.child].map(|side| side.table().unwrap());
            let seen = orphans_for(&mut txn, [&tables[0], &tables[1]]);
            self.orphans.lock().unwrap().extend(seen);
            txn.commit().unwrap();
            txn.set_isolation(self.level);
            match self.run(&mut txn, &mut rng) {
                Ok(true) => txn.commit().unwrap(),
                Ok(false) | Err(Error::Deadlock | Error::LockTimeout | Error::DuplicateKey { .. }) => {
                    txn.rollback().unwrap();
                }
                // A transaction that takes an old version of a row for the newest one finds
                // contradictions.
                Err(_) if bug.is_some() => txn.rollback().unwrap(),
                Err(error) => panic!("{error}"),
            }
        }
        planted.map_or(0, |bug| bug.reached_count())
    }
}

/// Lets threads work. Returns the orphans at some moment, the outcomes, and the number of times the
/// bug was reached.
pub fn work(seed: u64, level: Isolation, bug: Option<&'static str>) -> (Vec<u64>, [u64; 4], u64) {
    let db = open(&SimDisk::new()).unwrap();
    create(&db, "db/p", &[]);
    create(&db, "db/c", &[refers("c", "of", ("db/p", ["id", "number"][seed as usize % 2]))]);
    let (child, parent) = sides(&db);
    let work = Work { db, level, child, parent, outcomes: Default::default(), orphans: Mutex::default() };
    let reached = std::thread::scope(|scope| {
        let work = &work;
        let start = |no| scope.spawn(move || work.thread(THREADS * seed + no, bug));
        let threads = (0..THREADS).map(start).collect::<Vec<_>>();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let all = [orphans(&work.db), work.orphans.into_inner().unwrap()].concat();
    (all, work.outcomes.map(|count| count.into_inner()), reached)
}

const GENERATIONS: [&str; 3] = ["db/a", "db/b", "db/c"];

/// Each table's rows by key, with the key of their parent in the previous table. Rows of the second
/// table follow a change of their parent's key, and are deleted with their parent. In the third
/// table, both actions set the parent of a row to 0 (none).
#[derive(Clone, Default, Debug)]
pub struct Generations {
    tables_count: usize,
    rows: [BTreeMap<u64, u64>; 3],
}

impl Generations {
    /// Runs one statement with its actions.
    fn change(&mut self, db: &Db, txn: &mut Transaction, rng: &mut Rng) -> Result<()> {
        let tables = GENERATIONS.map(|name| db.table(name).unwrap());
        let (key, other, place) = (1 + rng.below(5), 1 + rng.below(5), rng.below(3));
        let generation = rng.below(3) as usize;
        let is_there = self.rows[generation].contains_key(&key);
        if !is_there {
            let parent = if generation == 0 { 0 } else { other };
            if parent == 0 || self.rows[generation - 1].contains_key(&parent) {
                self.rows[generation].insert(key, parent);
                insert(txn, &tables[generation], key, &child(key, parent, place))?;
            }
            return Ok(());
        }
        let row = read_as(txn, &tables[generation], key, Read::Exclusive)?.unwrap();
        if generation == 0 && rng.chance(0.4) && !self.rows[0].contains_key(&other) {
            self.rows[0].remove(&key);
            self.rows[0].insert(other, 0);
            self.rows[1].values_mut().filter(|parent| **parent == key).for_each(|parent| *parent = other);
            update(txn, &tables[0], key, &row, other, &child(other, 0, place))?;
            return each_child(txn, &side_of(db, 1), key, |txn, key, row| {
                update(txn, &tables[1], key, row, key, &child(key, other, place))
            });
        }
        self.remove(generation, key);
        delete(txn, &tables[generation], key, &row)?;
        delete_children(db, txn, &tables, generation, key)
    }

    fn remove(&mut self, generation: usize, key: u64) {
        self.rows[generation].remove(&key);
        let of_it = |(child, parent): (&u64, &u64)| (*parent == key).then_some(*child);
        match generation {
            0 => {
                let children: Vec<_> = self.rows[1].iter().filter_map(of_it).collect();
                children.into_iter().for_each(|child| self.remove(1, child));
            }
            1 => self.rows[2].values_mut().filter(|parent| **parent == key).for_each(|parent| *parent = 0),
            _ => {}
        }
    }
}

/// The child's side of the constraint of this generation.
fn side_of(db: &Db, generation: usize) -> KeySide {
    let constraints = db.constraints_of_child(&db.table(GENERATIONS[generation]).unwrap());
    constraints[0].child.clone().unwrap()
}

fn delete_children(
    db: &Db,
    txn: &mut Transaction,
    tables: &[Arc<Table>; 3],
    generation: usize,
    of: u64,
) -> Result<()> {
    match generation {
        0 => each_child(txn, &side_of(db, 1), of, |txn, key, row| {
            delete(txn, &tables[1], key, row)?;
            delete_children(db, txn, tables, 1, key)
        }),
        1 => each_child(txn, &side_of(db, 2), of, |txn, key, row| {
            update(txn, &tables[2], key, row, key, &child(key, 0, 0))
        }),
        _ => Ok(()),
    }
}

impl steps::Model for Generations {
    /// Creates a table, or runs a transaction of some statements. Some statements are refused at
    /// their end, and some transactions are rolled back.
    fn step(&mut self, db: &Db, rng: &mut Rng) {
        if let Some(name) = GENERATIONS.get(self.tables_count) {
            let parent = self.tables_count.checked_sub(1).map(|no| GENERATIONS[no]);
            let constraint = parent.map(|parent| refers(&name[3..], "of", (parent, "id")));
            create(db, name, constraint.as_slice());
            self.tables_count += 1;
            return;
        }
        let (before, mut txn) = (self.clone(), db.begin());
        for _ in 0..1 + rng.below(6) {
            let (model, savepoint) = (self.clone(), txn.savepoint());
            self.change(db, &mut txn, rng).unwrap();
            if rng.chance(0.2) {
                txn.rollback_to(savepoint).unwrap();
                *self = model;
            }
        }
        if rng.chance(0.2) {
            txn.rollback().unwrap();
            *self = before;
        } else {
            txn.commit().unwrap();
        }
    }

    fn check(&self, db: &Db) -> std::result::Result<(), String> {
        for (name, rows) in GENERATIONS.iter().zip(&self.rows).take(self.tables_count) {
            let table = db.table(name).map_err(|error| error.to_string())?;
            let found = all_rows(&mut db.begin(), &table).map_err(|error| error.to_string())?;
            let parent = |row: &Row| u64::from_be_bytes(row.name[..8].try_into().unwrap());
            let found: BTreeMap<_, _> = found.iter().map(|(key, row)| (*key, parent(row))).collect();
            if found != *rows {
                return Err(format!("{name} has {found:?} instead of {rows:?}"));
            }
            check(db, &table).unwrap().map_err(|findings| format!("{name}: {findings:?}"))?;
        }
        Ok(())
    }
}

//! Parents and children, and threads that insert, move and delete them.

use super::constraints::{child, create, refers};
use super::*;
use cheetah::base::planted::plant;
use cheetah::base::Error;
use cheetah::db::{Isolation, SeekEnd};
use cheetah::table::KeySide;
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

const PARENTS: u64 = 3;
const CHILDREN: u64 = 5;
const THREADS: u64 = 4;
const TXNS: u64 = 120;

/// Work of many threads on a family.
struct Work {
    db: Db,
    level: Isolation,
    /// Of the constraint.
    child: KeySide,
    parent: KeySide,
    /// Children that found their parent, that did not, parents that went, and that had to stay.
    outcomes: [AtomicU64; 4],
    /// Who was one for a snapshot.
    orphans: Mutex<Vec<u64>>,
}

impl Work {
    /// Whether the row may stay; `wants` to find another one, or not to.
    fn judge(&self, txn: &mut Transaction, side: &KeySide, key: u64, wants: bool) -> Result<bool> {
        std::thread::yield_now();
        let found = txn.find_reference(side, &key.to_be_bytes())?;
        self.outcomes[2 * usize::from(!wants) + usize::from(found != wants)].fetch_add(1, Relaxed);
        std::thread::yield_now();
        Ok(found == wants)
    }

    /// One transaction; whether it may be committed.
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
                        return self.cascade(txn, of).map(|()| true);
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
                    // Its parent stays the same.
                    _ => update(txn, kid, key, &row, key, &child(key, before, place)).map(|()| true),
                }
            }
        }
    }

    /// Deletes the children of a parent that goes.
    fn cascade(&self, txn: &mut Transaction, of: u64) -> Result<()> {
        let (mut cursor, mut stored) = (txn.cursor_on_children(&self.child)?, Vec::new());
        let mut found = cursor.seek_to(SeekMode::AtLeast, &of.to_be_bytes(), SeekEnd::Prefix)?;
        while found {
            cursor.get_row(&mut stored)?;
            let key = u64::from_be_bytes(cursor.clustered_key().try_into().unwrap());
            delete(txn, &self.child.table().unwrap(), key, &Row::parse(&stored).0)?;
            found = cursor.next()?;
        }
        Ok(())
    }

    /// How often the bug was reached.
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
                // Who takes a row of long ago for the newest one meets contradictions.
                Err(_) if bug.is_some() => txn.rollback().unwrap(),
                Err(error) => panic!("{error}"),
            }
        }
        planted.map_or(0, |bug| bug.reached_count())
    }
}

/// Lets threads work; who is an orphan at some moment, the outcomes, and how often the bug was
/// reached.
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

//! Tests that the listing shows every kind of lock and of transaction, with its name, its owner and
//! the transactions that wait for it.

use crate::base::{Config, Error, TreeId, Xid};
use crate::db::*;
use crate::format::image::Compression;
use crate::format::row::RowFormatVersion;
use crate::table::{IndexSpec, NewRow, Table, TableSpec};
use crate::txn::{Answer, Lock, Owner, PendingLock, TableMode, Wait};
use cheetah_io::sim::{SimClock, SimDisk};
use cheetah_io::Clock;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

struct Fixture {
    disk: SimDisk,
    clock: Arc<SimClock>,
    db: Db,
    table: Arc<Table>,
}

fn open(disk: &SimDisk) -> (Arc<SimClock>, Db) {
    let clock = Arc::new(SimClock::default());
    let env = Env { disk: Arc::new(disk.clone()), clock: Arc::<SimClock>::clone(&clock) };
    (clock, Db::open(env, Config::tiny()).unwrap())
}

impl Fixture {
    fn new() -> Self {
        let disk = SimDisk::new();
        let (clock, db) = open(&disk);
        let index = IndexSpec {
            name: "PRIMARY".into(),
            unique: true,
            max_key_bytes: 8,
            row_format: RowFormatVersion::opaque(),
        };
        let spec = TableSpec {
            name: "db/t".into(),
            row_format: RowFormatVersion { null_bytes: 0, fixed: vec![8], var_count: 0 },
            indexes: vec![index],
            compression: Compression::default(),
            hidden_key: false,
            auto_increment: 1,
            extra: Vec::new(),
            fulltext: Vec::new(),
            is_temporary: false,
            encryption: Default::default(),
        };
        let table = db.create_table(&spec).unwrap();
        Self { disk, clock, db, table }
    }

    fn tree(&self) -> TreeId {
        self.table.indexes()[0].tree
    }

    fn insert(&self, txn: &mut Transaction, key: u64) {
        let key = key.to_be_bytes();
        txn.insert(&self.table, &NewRow { key: &key, row: &key, secondary: &[] }).unwrap();
    }

    fn request(&self, owner: Owner, lock: Lock<'_>) -> Option<PendingLock> {
        match self.db.0.core.locks.request(owner, lock, Wait::Queue { undo_records_count: 0 }).unwrap() {
            Answer::Wait(pending) => Some(pending),
            Answer::Granted | Answer::AlreadyHeld => None,
            Answer::Refused => panic!("{lock:?} is refused"),
        }
    }

    fn locks(&self) -> Vec<Told> {
        let all = self.db.locks().into_iter();
        let mut list = all
            .map(|lock| {
                assert_eq!(lock.table, "db/t");
                (lock.transaction, lock.mode, lock.index, lock.data, lock.is_waiting)
            })
            .collect::<Vec<_>>();
        list.sort();
        list
    }
}

/// A lock: its transaction, mode, index and data, and whether the transaction still waits for it.
type Told = (u64, &'static str, Option<String>, Option<String>, bool);

fn text(text: &str) -> Option<String> {
    Some(text.into())
}

const READER: u64 = 1 << 48;

#[test]
fn a_transaction_is_told_from_its_first_step_to_its_end() {
    let on = Fixture::new();
    let mut txn = on.db.begin();
    txn.set_connection(42);
    assert_eq!(on.db.transactions(), []);
    txn.take_snapshot().unwrap();
    on.clock.sleep_ns(3_000_000_000);
    txn.set_tables_in_use(2);
    let reader = &on.db.transactions()[0];
    assert!(reader.id > READER && reader.connection == 42 && reader.state == TransactionState::Running);
    assert_eq!(reader.tables_in_use, 2);
    assert!((3_000_000_000..4_000_000_000).contains(&reader.age_ns), "{}", reader.age_ns);
    let mut other = on.db.begin();
    on.insert(&mut other, 1);
    other.commit().unwrap();
    on.insert(&mut txn, 2);
    on.insert(&mut txn, 3);
    let [writer] = &on.db.transactions()[..] else { panic!("one transaction is open") };
    assert_eq!(Some(writer.id), txn.id().map(|txn| txn.0));
    assert_eq!((writer.changes, writer.tables_locked, writer.kept_from_purge), (2, 1, 1));
    assert!(writer.undo_bytes > 0 && writer.isolation == Isolation::RepeatableRead);
    txn.rollback().unwrap();
    assert_eq!(on.db.transactions(), []);
}

#[test]
fn every_kind_of_lock_is_told() {
    let on = Fixture::new();
    let (mut a, mut b) = (on.db.begin(), on.db.begin());
    [&mut a, &mut b].into_iter().for_each(|txn| txn.take_snapshot().unwrap());
    let (tree, owner, other) = (on.tree(), a.locker.owner, b.locker.owner);
    on.request(owner, Lock::Table(on.table.id(), TableMode::IntentExclusive));
    on.request(owner, Lock::Record { tree, key: b"\x01", mode: LockMode::Exclusive });
    let range = (Excluded(&b"\x01"[..]), Included(&b"\x05"[..]));
    on.request(owner, Lock::NextKey { tree, range, key: b"\x05", mode: LockMode::Shared });
    let gap = (Excluded(&b"\x05"[..]), Unbounded);
    on.request(owner, Lock::Gap { tree, range: gap, mode: LockMode::Exclusive });
    let pending = on.request(other, Lock::InsertIntention { tree, key: b"\x04" }).unwrap();
    let index = text("PRIMARY");
    let (a_no, b_no) = (READER | owner.0, READER | other.0);
    let expected = [
        (a_no, "IX", None, None, false),
        (a_no, "S", index.clone(), text("(01, 05]"), false),
        (a_no, "X", index.clone(), text("01"), false),
        (a_no, "X,GAP", index.clone(), text("(05, supremum)"), false),
        (b_no, "X,GAP", index, text("insert 04"), true),
    ];
    assert_eq!(on.locks(), expected);
    let [wait] = &on.db.lock_waits()[..] else { panic!("one transaction waits") };
    assert_eq!((wait.requesting, wait.blocking), (b_no, a_no));
    let lock = |id: &str| on.db.locks().into_iter().find(|lock| lock.id == id).unwrap();
    assert_eq!(lock(&wait.requested_lock).data, text("insert 04"));
    assert_eq!(lock(&wait.blocking_lock).data, text("(01, 05]"));
    assert_eq!(on.db.transactions()[1].state, TransactionState::Waiting);
    assert_eq!(on.db.0.core.locks.cancel(&pending), None);
}

#[test]
fn whoever_waits_is_told_with_the_lock_and_with_whom_he_waits_for() {
    let on = Fixture::new();
    let (mut a, mut b, mut c) = (on.db.begin(), on.db.begin(), on.db.begin());
    [&mut a, &mut b, &mut c].into_iter().for_each(|txn| txn.take_snapshot().unwrap());
    let record = Lock::Record { tree: on.tree(), key: b"\x07", mode: LockMode::Exclusive };
    on.request(a.locker.owner, record);
    let first = on.request(b.locker.owner, record).unwrap();
    let second = on.request(c.locker.owner, record).unwrap();
    let waits = on.db.lock_waits();
    let number = |txn: &Transaction| READER | txn.locker.owner.0;
    let pairs = waits.iter().map(|wait| (wait.requesting, wait.blocking)).collect::<Vec<_>>();
    assert_eq!(pairs, [(number(&b), number(&a)), (number(&c), number(&a)), (number(&c), number(&b))]);
    let ids = on.db.locks().into_iter().map(|lock| lock.id).collect::<Vec<_>>();
    for wait in &waits {
        assert!(ids.contains(&wait.requested_lock) && ids.contains(&wait.blocking_lock), "{wait:?}");
    }
    let told = on.db.transactions();
    assert_eq!(told[1].waits_for.as_ref().map(|waits| &waits.0), Some(&waits[0].requested_lock));
    assert_eq!(on.db.status().iter().find(|entry| entry.0 == "lock_waits_current").unwrap().1, 2);
    [second, first].iter().for_each(|pending| assert_eq!(on.db.0.core.locks.cancel(pending), None));
}

#[test]
fn compressed_locks_are_one_entry_and_are_found_by_who_waits_for_them() {
    let on = Fixture::new();
    let (mut a, mut b) = (on.db.begin(), on.db.begin());
    [&mut a, &mut b].into_iter().for_each(|txn| txn.take_snapshot().unwrap());
    let tree = on.tree();
    for key in 0..12_000u32 {
        on.request(a.locker.owner, Lock::Record { tree, key: &key.to_be_bytes(), mode: LockMode::Exclusive });
    }
    let pending =
        on.request(b.locker.owner, Lock::Record { tree, key: &7u32.to_be_bytes(), mode: LockMode::Shared });
    let locks = on.db.locks();
    let compressed = locks.iter().find(|lock| lock.data.as_ref().unwrap().ends_with("records")).unwrap();
    assert_eq!(on.db.lock_waits()[0].blocking_lock, compressed.id);
    assert_eq!(on.db.transactions()[0].records_locked, 12_000);
    assert_eq!(on.db.0.core.locks.cancel(&pending.unwrap()), None);
}

#[test]
fn a_prepared_transaction_is_told_with_its_name_and_locks_after_a_restart_too() {
    let on = Fixture::new();
    let mut txn = on.db.begin();
    txn.set_connection(5);
    on.insert(&mut txn, 1);
    let (id, xid) = (txn.id().unwrap().0, Xid::new(1, b"global", b"").unwrap());
    txn.prepare(xid).unwrap();
    let told = on.db.transactions();
    assert_eq!((told[0].state, told[0].xid, told[0].connection), (TransactionState::Prepared, Some(xid), 5));
    drop(txn);
    let told = on.db.transactions();
    assert_eq!((told[0].state, told[0].id, told[0].connection), (TransactionState::Prepared, id, 0));
    drop(on.db);
    let (_, db) = open(&on.disk);
    let told = db.transactions();
    assert_eq!((told[0].state, told[0].xid, told[0].id), (TransactionState::Prepared, Some(xid), id));
    let [lock] = &db.locks()[..] else { panic!("the transaction's table is locked") };
    assert_eq!((lock.transaction, lock.table.as_str(), lock.mode), (id, "db/t", "IX"));
    db.commit_prepared(&xid).unwrap();
    assert_eq!((db.transactions().len(), db.locks().len()), (0, 0));
}

#[test]
fn the_latest_deadlock_is_told_with_all_who_were_in_it() {
    let on = Fixture::new();
    on.db.describe_connections(|connection| format!("connection {connection} runs a statement"));
    let (mut a, mut b) = (on.db.begin(), on.db.begin());
    a.set_connection(11);
    b.set_connection(12);
    a.lock_table(&on.table, LockMode::Shared).unwrap();
    b.lock_table(&on.table, LockMode::Shared).unwrap();
    let core = &on.db.0.core;
    let pending = on.request(a.locker.owner, Lock::Table(on.table.id(), TableMode::Exclusive)).unwrap();
    let refused = b.lock_table(&on.table, LockMode::Exclusive);
    assert!(matches!(refused, Err(Error::Deadlock)), "{refused:?}");
    let told = on.db.status_text();
    for part in [
        "LATEST DETECTED DEADLOCK",
        "connection 11 runs a statement",
        "connection 12 runs a statement",
        "WAITING FOR: TABLE X on table db/t",
        "WE ROLL BACK TRANSACTION (1)",
    ] {
        assert!(told.contains(part), "{part} is missing in:\n{told}");
    }
    b.rollback().unwrap();
    assert!(pending.is_granted());
    core.locks.release_all(a.locker.owner);
}

#[test]
fn views_are_read_while_transactions_come_and_go() {
    let on = Fixture::new();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let on = &on;
            scope.spawn(move || {
                for round in 0..200 {
                    let mut txn = on.db.begin();
                    txn.set_lock_wait(60_000_000_000);
                    on.insert(&mut txn, thread * 1000 + round);
                    if round % 3 == 0 {
                        txn.rollback().unwrap();
                    } else {
                        txn.commit().unwrap();
                    }
                }
            });
        }
        for _ in 0..200 {
            assert!(on.db.transactions().len() <= 4);
            on.db.locks().iter().for_each(|lock| assert_eq!(lock.table, "db/t"));
            on.db.lock_waits().iter().for_each(|wait| assert_ne!(wait.requesting, wait.blocking));
        }
    });
    assert_eq!((on.db.transactions().len(), on.db.locks().len()), (0, 0));
}

#[test]
fn locks_and_outcomes_are_in_the_account_and_locks_are_bounded() {
    let on = Fixture::new();
    let mut txn = on.db.begin();
    txn.take_snapshot().unwrap();
    let tree = on.tree();
    let used = |name: &str| on.db.status().iter().find(|entry| entry.0 == name).unwrap().1;
    let lock = |n: u64| {
        let key = n.to_be_bytes();
        let lock = Lock::Record { tree, key: &key, mode: LockMode::Exclusive };
        on.db.0.core.locks.request(txn.locker.owner, lock, Wait::Never).err()
    };
    let refused = (0..1 << 24).find_map(lock).unwrap();
    assert!(matches!(refused, Error::LockTableFull), "{refused}");
    let bound = 1 << 20;
    assert!((bound - 4096..bound + 4096).contains(&used("memory_locks_bytes")));
    txn.rollback().unwrap();
    on.db.run_background().unwrap();
    assert_eq!(used("memory_locks_bytes"), 0);
    assert!(used("memory_outcomes_bytes") > 0);
}

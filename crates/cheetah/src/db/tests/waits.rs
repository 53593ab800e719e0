//! Tests the latencies and stalls that an open database reports.

use crate::base::stages::Stage;
use crate::base::{Config, Error};
use crate::db::*;
use crate::format::image::Compression;
use crate::format::row::RowFormatVersion;
use crate::table::{IndexSpec, NewRow, TableSpec};
use cheetah_io::sim::{SimClock, SimDisk};
use cheetah_io::Clock;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

const MS_NS: u64 = 1_000_000;

fn open(disk: &SimDisk, clock: &SimClock) -> Db {
    Db::open(Env { disk: Arc::new(disk.clone()), clock: Arc::new(clock.clone()) }, Config::tiny()).unwrap()
}

fn spec() -> TableSpec {
    TableSpec {
        name: "t".into(),
        row_format: RowFormatVersion { null_bytes: 0, fixed: vec![8], var_count: 0 },
        indexes: vec![IndexSpec {
            name: "PRIMARY".into(),
            unique: true,
            max_key_bytes: 8,
            row_format: RowFormatVersion::opaque(),
        }],
        compression: Compression::default(),
        hidden_key: false,
        auto_increment: 1,
        extra: Vec::new(),
        fulltext: Vec::new(),
        is_temporary: false,
        encryption: Default::default(),
    }
}

fn status(db: &Db) -> BTreeMap<&'static str, u64> {
    db.status().into_iter().collect()
}

fn stall(db: &Db, reason: &str) -> StallStatus {
    db.stalls().into_iter().find(|stall| stall.reason == reason).unwrap()
}

#[test]
fn commits_syncs_reads_and_checkpoints_are_timed() {
    let (disk, clock) = (SimDisk::new(), SimClock::default());
    let db = open(&disk, &clock);
    let table = db.create_table(&spec()).unwrap();
    let before = status(&db);
    let mut txn = db.begin();
    for key in 0..50_u64 {
        let key = key.to_be_bytes();
        txn.insert(&table, &NewRow { key: &key, row: &key, secondary: &[] }).unwrap();
        txn.commit().unwrap();
    }
    db.checkpoint().unwrap();
    let after = status(&db);
    let more = |name: &str| after[name] - before[name];
    assert_eq!(more("latency_commit_count"), 50);
    assert!(more("latency_log_sync_count") >= more("log_syncs") && more("log_syncs") >= 50);
    assert_eq!(more("latency_checkpoint_step_count"), 3, "the switch, the writes, the end");
    drop((txn, table, db));
    let db = open(&disk, &clock);
    let table = db.table("t").unwrap();
    let mut row = Vec::new();
    assert!(db.begin().get(&table, &7_u64.to_be_bytes(), Read::Consistent, &mut row).unwrap());
    let status = status(&db);
    assert!((1..=status["pool_reads"]).contains(&status["latency_page_read_count"]));
    for (name, counts) in db.latencies() {
        let name = name.replace(' ', "_");
        let told = ["count", "us", "us_max"].map(|end| status[format!("latency_{name}_{end}").as_str()]);
        assert_eq!(told, [counts.count(), counts.sum_ns / 1_000, counts.max_ns / 1_000], "{name}");
        assert_eq!(counts.buckets().map(|bucket| bucket.count).sum::<u64>(), counts.count());
    }
}

#[test]
fn a_wait_for_a_row_is_a_stall_while_it_lasts_and_afterwards() {
    let clock = SimClock::default();
    let db = open(&SimDisk::new(), &clock);
    let table = db.create_table(&spec()).unwrap();
    let row = NewRow { key: &[7; 8], row: &[7; 8], secondary: &[] };
    let (mut first, mut second) = (db.begin(), db.begin());
    first.insert(&table, &row).unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| second.insert(&table, &row));
        while status(&db)["stall_row_lock_current"] == 0 {
            std::thread::yield_now();
        }
        assert_eq!((stall(&db, "row lock").current, stall(&db, "row lock").ended.count()), (1, 0));
        clock.sleep_ns(5 * MS_NS);
        first.commit().unwrap();
        assert!(matches!(waits.join().unwrap(), Err(Error::DuplicateKey { .. })));
    });
    clock.sleep_ns(3 * MS_NS);
    let rows = stall(&db, "row lock");
    assert_eq!((rows.current, rows.ended.count(), rows.ended.sum_ns), (0, 1, 5 * MS_NS));
    assert_eq!(rows.last, Some((3 * MS_NS, 0)));
    let told = status(&db);
    assert_eq!(["lock_waits", "lock_wait_ms", "lock_wait_ms_max"].map(|name| told[name]), [1, 5, 5]);
    assert_eq!(["stall_row_lock_us", "latency_lock_wait_us"].map(|name| told[name]), [5_000; 2]);
    second.rollback().unwrap();
    let text = db.status_text();
    assert!(text.contains("LATENCIES AND STALLS") && text.contains("stall row lock us max"), "{text}");
}

#[test]
fn long_stalls_are_announced() {
    let clock = SimClock::default();
    let db = open(&SimDisk::new(), &clock);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&heard);
    db.announce_stalls_to(move |line| sink.lock().push(line.to_owned()));
    for warning_ns in [0, 4 * MS_NS] {
        db.set_stall_warning_ns(warning_ns);
        let stall = db.0.core.begin_stall(Stage::Memory);
        clock.sleep_ns(4 * MS_NS);
        drop(stall);
        db.run_background().unwrap();
    }
    let _stall = db.0.core.begin_stall(Stage::LogSpace);
    clock.sleep_ns(5_000 * MS_NS);
    db.run_background().unwrap();
    let expected = [
        "stall: a thread of the engine waited 0.004 s for free memory",
        "stall: a thread of the engine has been waiting 5.000 s for room in the log",
    ];
    assert_eq!(*heard.lock(), expected);
    assert_eq!(stall(&db, "log space").current_ns_max, 5_000 * MS_NS);
}

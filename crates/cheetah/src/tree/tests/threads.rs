//! Tests with concurrent writers and readers. Each writer has its own keys, so that its model stays
//! correct.

use super::fixture::{assert_reached, insert, remove, Fixture};
use crate::base::{reach, Config, PageId, RaisedAtEnd};
use crate::leaves::testing::Database;
use crate::pool::Pool;
use crate::tree::{Changed, Path, SeekMode, Tree};
use cheetah_io::rng::Rng;
use cheetah_io::sim::CrashPolicy;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

const WRITERS: u32 = 4;
const READERS: u64 = 2;
const STEPS: usize = 40_000;

/// Neighbouring keys belong to different writers, so every leaf is shared by all writers.
fn key_of(writer: u32, number: u32) -> [u8; 4] {
    (number * WRITERS + writer).to_be_bytes()
}

/// Inserts and removes keys of one writer in waves, so that the tree grows and shrinks.
fn write(tree: &Tree, writer: u32) -> BTreeSet<[u8; 4]> {
    let mut rng = Rng::new(u64::from(writer));
    let mut path = Path::default();
    let mut mine = BTreeSet::new();
    for step in 0..STEPS {
        let grows = step * 6 / STEPS % 2 == 0;
        let key = key_of(writer, rng.below(3000) as u32);
        let near = *mine.range(key..).next().unwrap_or(&key);
        if rng.below(10) < if grows { 9 } else { 1 } {
            let changed = insert(tree, &mut path, &key, b"payload of a record");
            assert_eq!(changed == Changed::Done, mine.insert(key));
        } else {
            assert_eq!(remove(tree, &mut path, &near), mine.remove(&near));
        }
        let found = tree.get(&near, |_| ()).unwrap().is_some();
        assert_eq!(found, mine.contains(&near), "writer {writer} sees its own changes");
    }
    mine
}

/// Asserts that scans are ordered and never miss the `fixed` keys, which no thread removes.
fn read(tree: &Arc<Tree>, seed: u64, fixed: &[[u8; 4]], stop: &AtomicBool) {
    let mut rng = Rng::new(seed);
    let mut cursor = tree.cursor();
    while !stop.load(Ordering::Relaxed) {
        let forward = rng.below(2) == 0;
        let mode = if forward { SeekMode::First } else { SeekMode::Last };
        let mut found = cursor.seek(mode, b"").unwrap();
        let mut last: Option<Vec<u8>> = None;
        let mut fixed_seen = 0;
        while found {
            let key = cursor.key().to_vec();
            if let Some(last) = &last {
                assert!(if forward { last < &key } else { last > &key }, "{last:?} before {key:?}");
            }
            fixed_seen += usize::from(fixed.iter().any(|fixed| fixed[..] == key[..]));
            last = Some(key);
            found = if forward { cursor.next().unwrap() } else { cursor.prev().unwrap() };
        }
        assert_eq!(fixed_seen, fixed.len(), "a scan missed a record that always existed");
        for key in fixed {
            assert!(tree.get(key, |_| ()).unwrap().is_some());
        }
    }
}

/// Runs writers and readers on the tree, and `also` on this thread until all writers have finished.
fn stress(fixture: &Fixture, also: impl Fn()) {
    let tree = &fixture.tree;
    let fixed: Vec<[u8; 4]> = (0..30).map(|i| key_of(0, 4000 + i * 10)).collect();
    for key in &fixed {
        assert_eq!(insert(tree, &mut Path::default(), key, b"fixed"), Changed::Done);
    }
    let stop = AtomicBool::new(false);
    let mut all: BTreeSet<[u8; 4]> = std::thread::scope(|scope| {
        let (fixed, stop) = (&fixed, &stop);
        let _stop = RaisedAtEnd(stop);
        let readers: Vec<_> =
            (0..READERS).map(|seed| scope.spawn(move || read(tree, seed, fixed, stop))).collect();
        let writers: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(move || write(tree, writer))).collect();
        while writers.iter().any(|writer| !writer.is_finished()) {
            also();
        }
        let all = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        stop.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        all
    });
    all.extend(&fixed);
    let mut expected = all.iter();
    let report =
        tree.check(&mut |key, _| assert_eq!(Some(key), expected.next().map(|key| &key[..]))).unwrap();
    assert_eq!((report.problems, report.records), (Vec::new(), all.len() as u64));
    assert_eq!(report.pages, fixture.pool.tree_bytes(tree.def().id).pages);
    assert_reached(&["split_leaf", "merge_leaf"]);
}

/// Ends the read-ahead threads, even if this thread panics.
struct EndOnDrop<'a>(&'a Pool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end_read_ahead();
    }
}

#[test]
fn writers_and_readers_at_once_agree() {
    stress(&Fixture::tiny(), std::thread::yield_now);
}

#[test]
fn evictions_and_checkpoints_go_on_under_writers_and_readers() {
    let db = Database::new(&Config { buffer_pool_bytes: 256 << 10, ..Config::tiny() });
    let fixture = Fixture::empty(db.leaves.clone());
    std::thread::scope(|scope| {
        let pool = &db.pool;
        pool.begin_read_ahead();
        let _end = EndOnDrop(pool);
        (0..2).for_each(|_| drop(scope.spawn(|| pool.serve_read_ahead())));
        stress(&fixture, || {
            db.pool.clean_step().unwrap();
            db.upkeep.collect(8192).unwrap();
            db.checkpoint().unwrap();
        });
    });
    let read_ahead = db.pool.status().into_iter().find(|(name, _)| *name == "pool_read_ahead");
    assert!(read_ahead.is_some_and(|(_, count)| count > 0));
    db.checkpoint().unwrap();
    let records = fixture.tree.check(&mut |_, _| {}).unwrap().records;
    let (def, disk) = (*fixture.tree.def(), db.disk.crash(CrashPolicy::SyncedOnly, 1));
    drop(fixture);
    let again = db.crash(disk);
    let report = Tree::open(&again.leaves, def).unwrap().check(&mut |_, _| {}).unwrap();
    assert_eq!((report.problems, report.records), (Vec::new(), records));
}

/// The number of pages in memory after a scan of a range with read-ahead. If `says_end`, the cursor
/// knows the end of the range.
fn read_ahead_of_range(says_end: bool) -> u64 {
    let db = Database::new(&Config { buffer_pool_bytes: 1 << 20, ..Config::tiny() });
    let mut fixture = Fixture::empty(db.leaves.clone());
    (0..5000u32).for_each(|number| fixture.insert(&number.to_be_bytes(), &[7; 20]));
    db.checkpoint().unwrap();
    let (def, disk) = (*fixture.tree.def(), db.disk.snapshot());
    drop(fixture);
    let db = db.crash(disk);
    let tree = Arc::new(Tree::open(&db.leaves, def).unwrap());
    let end = 1100u32.to_be_bytes();
    std::thread::scope(|scope| {
        let pool = &db.pool;
        pool.begin_read_ahead();
        let _end = EndOnDrop(pool);
        scope.spawn(|| pool.serve_read_ahead());
        while pool.read_ahead_window() == 0 {
            std::thread::yield_now();
        }
        let mut cursor = tree.cursor();
        let mut found = cursor.seek(SeekMode::AtLeast, &1000u32.to_be_bytes()).unwrap();
        cursor.expect_end(says_end.then(|| end.to_vec()));
        let mut records = 0;
        while found && *cursor.key() < end[..] {
            records += 1;
            found = cursor.next().unwrap();
        }
        assert_eq!(records, 100);
    });
    let leaves = |pid: u64| db.pool.fetch_resident(PageId(pid)).is_some();
    (1..1000).filter(|&pid| leaves(pid)).count() as u64
}

#[test]
fn nothing_is_read_ahead_from_behind_a_range() {
    let (without, with) = (read_ahead_of_range(false), read_ahead_of_range(true));
    assert!(with < without, "{with} pages with an end, {without} without");
    assert!(reach::count("read-ahead ends with the range") > 0);
}

//! Tests of read-ahead concurrently with all other work on pages.

use crate::base::{Config, ErrorKind, PageId, RaisedAtEnd};
use crate::pool::testing::{Database, TREE};
use crate::pool::{PageClass, REQUEST_PAGES_MAX};
use cheetah_io::rng::Rng;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const FRAME_PAGES: u64 = 1024;
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A pool of `FRAME_PAGES` pages, and ten times that number of pages on disk. At first no page is
/// in memory.
fn database() -> (Database, Vec<PageId>) {
    let config =
        Config { buffer_pool_bytes: FRAME_PAGES * 512 * 2, segment_bytes: 1 << 20, ..Config::tiny() };
    let db = Database::new(&config);
    let add = |value| {
        db.pool.make_room(1).unwrap();
        db.add(PageClass::Base, value)
    };
    let pids: Vec<_> = (0..10 * FRAME_PAGES).map(add).collect();
    db.checkpoint().unwrap();
    let disk = db.disk.snapshot();
    (db.crash(disk), pids)
}

/// Ends the readers even when this thread panics.
struct EndOnDrop<'a>(&'a Database);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.pool.end_read_ahead();
    }
}

/// Runs `body` concurrently with two readers.
fn with_readers(db: &Database, body: impl FnOnce()) {
    db.pool.begin_read_ahead();
    std::thread::scope(|scope| {
        let _end = EndOnDrop(db);
        let readers = [0, 1].map(|_| scope.spawn(|| db.pool.serve_read_ahead()));
        while db.pool.read_ahead_window() == 0 {
            std::thread::yield_now();
        }
        body();
        db.pool.end_read_ahead();
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}

/// Reads all pages in order like a scan, one request ahead.
fn scan(db: &Database, pids: &[PageId]) {
    let requests: Vec<&[PageId]> = pids.chunks(REQUEST_PAGES_MAX).collect();
    for (i, request) in requests.iter().enumerate() {
        requests.get(i + 1).into_iter().for_each(|next| db.pool.read_ahead(next));
        request.iter().for_each(|pid| drop(db.pool.fetch_for_scan(*pid).unwrap()));
    }
}

fn count(db: &Database, name: &str) -> u64 {
    db.pool.status().into_iter().find(|(known, _)| *known == name).unwrap().1
}

#[test]
fn what_was_read_ahead_is_what_was_written_and_is_counted() {
    let (db, pids) = database();
    let counts = || {
        ["pool_read_ahead", "pool_read_ahead_used", "pool_read_ahead_wasted", "pool_read_ahead_spans"]
            .map(|name| count(&db, name))
    };
    with_readers(&db, || {
        let since = Instant::now();
        // A scan may end before a reader has run.
        while !matches!(counts(), [read, used, _, spans] if used > 0 && spans < read) {
            assert!(since.elapsed() < WAIT_MAX, "nothing is read ahead: {:?}", counts());
            scan(&db, &pids);
        }
        for (value, pid) in pids.iter().enumerate() {
            assert_eq!(db.value(*pid), Some(value as u64));
        }
    });
    let [read, used, wasted, _] = counts();
    assert!(read >= used + wasted, "{read} read, {used} used, {wasted} wasted");
    assert!(db.pool.buffers.excess() <= db.pool.memory().frames_limit() / 8);
}

#[test]
fn without_readers_nothing_is_read_ahead() {
    let (db, pids) = database();
    assert_eq!(db.pool.read_ahead_window(), 0);
    db.pool.read_ahead(&pids[..REQUEST_PAGES_MAX]);
    assert_eq!(count(&db, "pool_reads"), 0);
}

#[test]
fn an_error_met_ahead_is_the_error_of_whoever_needs_the_page() {
    let (db, pids) = database();
    let damaged = pids[5];
    let location = db.pool.table.entry(damaged).location().unwrap();
    let path = format!("seg/{:08}.seg", location.segment.0);
    db.disk.flip(&path, u64::from(location.offset) + 60, 3).unwrap();
    with_readers(&db, || {
        db.pool.read_ahead(&pids[..REQUEST_PAGES_MAX]);
        for (value, pid) in pids.iter().enumerate().take(REQUEST_PAGES_MAX) {
            if *pid == damaged {
                assert_eq!(db.pool.fetch(*pid).unwrap_err().kind(), ErrorKind::Corruption);
            } else {
                assert_eq!(db.value(*pid), Some(value as u64));
            }
        }
    });
}

#[test]
fn a_segment_that_cannot_be_read_fails_the_reader_and_not_the_read_ahead() {
    let (db, pids) = database();
    let location = db.pool.table.entry(pids[0]).location().unwrap();
    db.disk.remove(&format!("seg/{:08}.seg", location.segment.0)).unwrap();
    with_readers(&db, || {
        db.pool.read_ahead(&pids[..REQUEST_PAGES_MAX]);
        assert!(db.pool.fetch(pids[0]).is_err());
        assert!(db.value(*pids.last().unwrap()).is_some());
    });
}

#[test]
fn pages_are_changed_moved_and_freed_while_they_are_read_ahead() {
    let (db, pids) = database();
    let mut values: Vec<Option<u64>> = (0..pids.len() as u64).map(Some).collect();
    let stop = AtomicBool::new(false);
    with_readers(&db, || {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    scan(&db, &pids);
                }
            });
            let _stop = RaisedAtEnd(&stop);
            let mut rng = Rng::new(7);
            for step in 0..6000 {
                db.pool.make_room(2).unwrap();
                let nth = rng.below(pids.len() as u64) as usize;
                match values[nth] {
                    Some(_) if rng.chance(0.2) => {
                        db.free(pids[nth]);
                        values[nth] = None;
                    }
                    Some(value) => {
                        db.change(pids[nth], value + 1_000_000);
                        values[nth] = Some(value + 1_000_000);
                    }
                    None => assert_eq!(db.pool.owner(pids[nth]), None),
                }
                if step % 1000 == 0 {
                    db.checkpoint().unwrap();
                    db.upkeep.collect(64 << 10).unwrap();
                }
            }
        });
    });
    for (pid, value) in pids.iter().zip(values) {
        if let Some(value) = value {
            assert_eq!(db.value(*pid), Some(value));
            assert_eq!(db.pool.owner(*pid), Some(TREE));
        }
    }
}

#[test]
fn a_scan_with_read_ahead_does_not_push_out_what_is_used() {
    let (db, pids) = database();
    let hot = &pids[..db.pool.memory().frames_limit() / 512 / 2];
    with_readers(&db, || {
        for _ in 0..4 {
            hot.iter().for_each(|pid| assert!(db.value(*pid).is_some()));
        }
        scan(&db, &pids);
        let reads = count(&db, "pool_reads");
        hot.iter().for_each(|pid| assert!(db.value(*pid).is_some()));
        let missed = count(&db, "pool_reads") - reads;
        assert!(missed <= hot.len() as u64 / 4, "{missed} of {} were evicted", hot.len());
    });
}

#[test]
fn readers_end_at_once_and_leave_no_page_half_read() {
    let (db, pids) = database();
    for _ in 0..20 {
        with_readers(&db, || pids.chunks(REQUEST_PAGES_MAX).for_each(|request| db.pool.read_ahead(request)));
        assert_eq!(db.pool.read_ahead_window(), 0);
    }
    for (value, pid) in pids.iter().enumerate() {
        assert_eq!(db.value(*pid), Some(value as u64));
    }
}

//! Tests the whole module: IDs, answers, the horizon and forgetting, alone and with many threads.

use super::map::Map;
use super::number::Number;
use super::shards::CHUNK_TXNS;
use super::snapshots::{published_before_slots, register};
use super::*;
use crate::base::planted::plant;
use crate::base::{Error, TxnId};
use cheetah_io::Rng;
use parking_lot::Mutex;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use Outcome::{Aborted, Committed};

/// Creates the versions of an empty database.
fn fresh() -> Versions {
    Versions::new(TxnId(1), 1)
}

fn end(versions: &Versions, txn: TxnId, outcome: Outcome) -> u64 {
    versions.finish(txn, outcome, Ok).unwrap()
}

/// Starts and commits `count` transactions.
fn pass(versions: &Versions, count: u64) {
    for _ in 0..count {
        end(versions, versions.start(), Committed);
    }
}

#[test]
fn numbers_go_on_behind_those_that_redo_has_met() {
    let versions = Versions::new(TxnId(5), 3);
    assert_eq!((versions.published(), versions.start()), (2, TxnId(5)));
    versions.adopt(TxnId(9));
    versions.adopt(TxnId(9));
    versions.note_stamp(7);
    assert_eq!((versions.published(), versions.start()), (7, TxnId(10)));
    versions.finish_at(TxnId(9), Committed, 8);
    assert_eq!(versions.published(), 8);
    assert_eq!(end(&versions, TxnId(10), Aborted), 9);
    assert_eq!((versions.next_txn(), versions.next_stamp()), (TxnId(11), 10));
}

#[test]
fn what_is_not_adopted_counts_as_ended() {
    let far = 3 * CHUNK_TXNS + 7;
    let versions = Versions::new(TxnId(2 * CHUNK_TXNS + 5), 100);
    versions.adopt(TxnId(4));
    versions.adopt(TxnId(far));
    versions.adopt(TxnId(9 * CHUNK_TXNS));
    for txn in [4, far, 9 * CHUNK_TXNS, 9 * CHUNK_TXNS + 1] {
        assert_eq!(versions.state(TxnId(txn)), State::Active, "{txn}");
    }
    for txn in [1, 3, 5, CHUNK_TXNS + 1, 2 * CHUNK_TXNS + 5, far - 1, far + 1, 6 * CHUNK_TXNS] {
        assert_eq!(versions.state(TxnId(txn)), State::Frozen, "{txn}");
    }
    assert_eq!(versions.visible_below(), TxnId(4));
    versions.finish_at(TxnId(4), Aborted, 100);
    assert_eq!(versions.visible_below(), TxnId(far));
    versions.finish_at(TxnId(far), Committed, 101);
    assert_eq!(versions.visible_below(), TxnId(9 * CHUNK_TXNS));
    versions.finish_at(TxnId(9 * CHUNK_TXNS), Committed, 102);
    assert_eq!(versions.visible_below(), versions.next_txn());
    assert_eq!(versions.bytes(), CHUNK_TXNS as usize * 8);
}

#[test]
fn a_snapshot_sees_what_was_committed_before_it_and_its_own_transaction() {
    let versions = fresh();
    let reader = versions.reader();
    let [before, undone, after, open, own] = std::array::from_fn(|_| versions.start());
    end(&versions, before, Committed);
    end(&versions, undone, Aborted);
    assert_eq!((reader.read_stamp(), reader.open(), reader.read_stamp()), (None, 2, Some(2)));
    end(&versions, after, Committed);
    let sees = |txn| reader.sees(txn, Some(own));
    let decided = |txn| reader.is_decided(txn, Some(own));
    for _ in 0..2 {
        assert_eq!([before, undone, after, open, own].map(sees), [true, false, false, false, true]);
        assert_eq!([before, undone, after, open, own].map(decided), [true, true, false, false, true]);
    }
    assert!(!reader.sees(own, None));
    reader.open();
    assert!(sees(after) && !sees(open));
    reader.close();
    assert_eq!(reader.read_stamp(), None);
}

#[test]
fn an_outcome_that_could_not_be_published_is_none() {
    let versions = fresh();
    let txn = versions.start();
    let refused = versions.finish(txn, Committed, |_| Err::<(), _>(Error::Interrupted));
    assert!(refused.is_err());
    assert_eq!((versions.published(), versions.state(txn)), (0, State::Active));
}

/// M1: returns the stamp of a commit whose counts are not published yet, and the stamp of a
/// snapshot that is opened during the commit.
fn m1() -> (u64, u64) {
    let versions = fresh();
    let reader = versions.reader();
    let during = |stamp| Ok((stamp, reader.open()));
    versions.finish(versions.start(), Committed, during).unwrap()
}

#[test]
fn m1_a_stamp_is_published_after_its_counts() {
    assert_eq!(m1(), (1, 0));
}

#[test]
fn m1_a_stamp_published_before_its_counts_is_caught() {
    let bug = plant("versions: publish a stamp before its counts");
    let (stamp, seen) = m1();
    assert!(bug.reached_count() > 0 && seen >= stamp);
}

/// Returns the stamp of a commit, and of a snapshot that is opened after the commit has returned.
fn committed_and_seen() -> (u64, u64) {
    let versions = fresh();
    let txn = versions.start();
    assert!(!versions.has_ended(txn));
    let stamp = end(&versions, txn, Committed);
    let seen = versions.reader().open();
    assert_eq!(versions.has_ended(txn), stamp <= seen);
    (stamp, seen)
}

#[test]
fn a_commit_that_has_returned_is_published() {
    assert_eq!(committed_and_seen(), (1, 1));
}

#[test]
fn a_commit_that_is_published_with_the_next_one_is_caught() {
    let bug = plant("versions: publish a stamp with the next one");
    assert_eq!(committed_and_seen(), (1, 0));
    assert!(bug.reached_count() > 0);
}

#[test]
fn the_horizon_is_what_all_snapshots_see() {
    let versions = fresh();
    let readers = [versions.reader(), versions.reader(), versions.reader()];
    for reader in &readers {
        pass(&versions, 10);
        reader.open();
    }
    pass(&versions, 5);
    let mut live = Vec::new();
    versions.live_stamps(&mut live);
    assert_eq!((versions.horizon(), live.as_slice()), (10, &[10, 20, 30, 35][..]));
    assert_eq!(versions.visible_below(), TxnId(11));
    readers[1].close();
    assert_eq!(versions.horizon(), 10);
    readers[0].open();
    assert_eq!(versions.horizon(), 30);
    drop(readers);
    assert_eq!((versions.horizon(), versions.visible_below()), (35, TxnId(36)));
    versions.live_stamps(&mut live);
    assert_eq!(live, [35]);
}

#[test]
fn the_oldest_snapshot_that_watches_is_known() {
    let versions = fresh();
    let readers = [versions.reader(), versions.reader(), versions.reader()];
    for (reader, watches) in readers.iter().zip([false, true, true]) {
        pass(&versions, 10);
        reader.watch(watches);
        reader.open();
    }
    pass(&versions, 5);
    let mut live = Vec::new();
    assert_eq!((versions.live_and_watched(&mut live), live.as_slice()), (20, &[10, 20, 30, 35][..]));
    readers[1].close();
    assert_eq!(versions.live_and_watched(&mut live), 30);
    drop(readers);
    let again = [versions.reader(), versions.reader(), versions.reader()];
    again.iter().for_each(|reader| assert_eq!(reader.open(), 35));
    pass(&versions, 1);
    assert_eq!(versions.live_and_watched(&mut live), 36, "a reused slot no longer watches");
}

#[test]
fn slots_are_used_again() {
    let versions = fresh();
    for _ in 0..100 {
        let both = [versions.reader(), versions.reader()];
        both.iter().for_each(|reader| assert_eq!(reader.open(), 0));
    }
    assert_eq!(versions.0.snapshots.slots_count(), 2);
}

/// A shared number that can run a step just before it is first written.
struct Scripted<'a> {
    value: &'a Cell<u64>,
    before_set: RefCell<Option<Box<dyn Fn() + 'a>>>,
}

impl<'a> Scripted<'a> {
    fn of(value: &'a Cell<u64>) -> Self {
        Self { value, before_set: RefCell::default() }
    }
}

impl Number for Scripted<'_> {
    fn new(_: u64) -> Self {
        unreachable!("the test supplies the value")
    }

    fn get(&self) -> u64 {
        self.value.get()
    }

    fn set(&self, value: u64) {
        let before = self.before_set.take();
        before.iter().for_each(|before| before());
        self.value.set(value);
    }

    fn fence() {}
}

/// H7: a snapshot has read the stamp 100. Before the slot has that stamp, 200 is published, and the
/// purger finds no snapshot. Returns the snapshot's stamp and the purger's horizon.
fn h7() -> (u64, u64) {
    let (published, slot, horizon) = (Cell::new(100), Cell::new(u64::MAX), Cell::new(0));
    let purge = || {
        published.set(200);
        horizon.set(published_before_slots(&Scripted::of(&published)).min(slot.get()));
    };
    let scripted = Scripted::of(&slot);
    *scripted.before_set.borrow_mut() = Some(Box::new(purge));
    let stamp = register(&Scripted::of(&published), &scripted);
    (stamp, horizon.get())
}

#[test]
fn h7_a_snapshot_that_the_purger_has_missed_is_opened_again() {
    assert_eq!(h7(), (200, 200));
}

#[test]
fn h7_a_snapshot_that_does_not_look_again_is_caught() {
    let bug = plant("versions: open a snapshot without looking again");
    let (stamp, horizon) = h7();
    assert!(bug.reached_count() > 0 && stamp < horizon);
}

/// H8: a reader has a copy of a leaf with a version of a transaction that is rolled back later.
/// Many transactions end after the rollback. Returns the state of the rolled-back transaction, and
/// whether the reader sees this transaction or takes it for ended.
fn h8() -> (State, bool) {
    let versions = fresh();
    let reader = versions.reader();
    reader.open();
    let undone = versions.start();
    end(&versions, undone, Aborted);
    pass(&versions, 3 * CHUNK_TXNS);
    versions.visible_below();
    (versions.state(undone), reader.sees(undone, None) || reader.is_decided(undone, None))
}

#[test]
fn h8_an_abort_is_remembered_as_long_as_a_copy_may_show_it() {
    assert_eq!(h8(), (State::Aborted(1), false));
}

#[test]
fn h8_a_map_that_forgets_what_a_snapshot_may_ask_for_is_caught() {
    let bug = plant("versions: forget what a snapshot may ask for");
    assert!(h8() == (State::Frozen, true) && bug.reached_count() > 0);
}

#[test]
fn an_abort_that_all_snapshots_see_is_forgotten() {
    let versions = fresh();
    let reader = versions.reader();
    reader.open();
    let undone = versions.start();
    end(&versions, undone, Aborted);
    pass(&versions, 3 * CHUNK_TXNS);
    assert_eq!(versions.visible_below(), undone);
    reader.open();
    assert_eq!(versions.visible_below(), versions.next_txn());
    assert_eq!(versions.state(undone), State::Frozen);
    assert_eq!(versions.bytes(), CHUNK_TXNS as usize * 8);
}

#[test]
fn a_forgotten_transaction_does_not_keep_the_map() {
    let versions = fresh();
    let forgotten = versions.start();
    let late = versions.reader();
    for _ in 0..10 {
        pass(&versions, CHUNK_TXNS);
        late.open();
        assert_eq!(versions.visible_below(), forgotten);
    }
    assert_eq!(versions.bytes(), 2 * CHUNK_TXNS as usize * 8);
    assert!(late.sees(TxnId(3 * CHUNK_TXNS), None) && !late.sees(forgotten, None));
    end(&versions, forgotten, Committed);
    assert_eq!(versions.visible_below(), forgotten);
    late.close();
    assert_eq!(versions.visible_below(), versions.next_txn());
}

/// Opens snapshots while transactions end, and compares what each snapshot sees with the known
/// outcomes. Returns the bytes of the map at the end.
fn old_snapshots(readers_count: u64) -> Result<usize, String> {
    let (versions, mut rng) = (fresh(), Rng::new(readers_count));
    let (mut ends, mut readers, mut open) = (Vec::new(), Vec::new(), Vec::new());
    let every = 40 * CHUNK_TXNS / readers_count;
    for no in 0..40 * CHUNK_TXNS {
        if no % every == every / 2 {
            let reader = versions.reader();
            readers.push((reader.open(), reader));
        }
        open.push(versions.start());
        while open.len() > rng.below(4) as usize {
            let txn = open.swap_remove(rng.below(open.len() as u64) as usize);
            let outcome = if rng.below(10) == 0 { Aborted } else { Committed };
            ends.push((txn, outcome, end(&versions, txn, outcome)));
        }
        if no % 1000 == 0 {
            versions.visible_below();
        }
    }
    versions.visible_below();
    for (stamp, reader) in &readers {
        for (txn, outcome, end) in ends.iter().filter(|_| rng.below(50) == 0) {
            let decided = end <= stamp;
            // A snapshot finds no records that were rolled back before the snapshot was opened.
            let sees = decided && *outcome == Committed;
            let is_right = reader.is_decided(*txn, None) == decided
                && (reader.sees(*txn, None) == sees || decided && *outcome == Aborted);
            if !is_right {
                return Err(format!("{txn}, {outcome:?} at {end}, for a snapshot at {stamp}"));
            }
        }
    }
    Ok(versions.bytes())
}

#[test]
fn an_old_snapshot_keeps_little_of_what_has_ended_after_it() {
    let chunk_bytes = CHUNK_TXNS as usize * 8;
    for readers_count in [1, 5, 20] {
        let bytes = old_snapshots(readers_count).unwrap();
        let bound = (readers_count as usize + 3) * chunk_bytes + 40 * 1500;
        assert!(bytes < bound, "{readers_count} snapshots keep {bytes} bytes");
    }
}

#[test]
fn ends_that_are_merged_across_a_snapshot_are_caught() {
    let bug = plant("versions: merge ends across a snapshot");
    let found = old_snapshots(5);
    assert!(bug.reached_count() > 0 && found.is_err(), "{found:?}");
}

/// The horizon is in the middle of a chunk's ends. The snapshot that held the horizon there is
/// closed before the map is swept. Returns whether every snapshot sees the chunk's first
/// transaction at a horizon before its end, at that middle horizon, and at a horizon after all
/// ends. Stamps equal the IDs of their transactions.
fn seen_at_a_horizon_within_a_chunk() -> [bool; 3] {
    let map = Map::new(1);
    let (first, last) = (CHUNK_TXNS, 2 * CHUNK_TXNS - 1);
    let (middle, next) = (first + CHUNK_TXNS / 2, last + 2);
    // The very first transaction stays open.
    for txn in 1..next {
        map.extend_to(txn);
        if txn != 1 {
            map.end(TxnId(txn), if txn == middle { Aborted } else { Committed }, txn);
        }
    }
    assert_eq!(map.sweep(next, middle, || vec![next - 1]), 1);
    assert_eq!(map.state(TxnId(first)), State::Committed(last), "the ends of the chunk are merged");
    assert!(!map.is_committed_for_all(TxnId(middle), last), "the transaction was rolled back");
    [first - 1, middle, last].map(|horizon| map.is_committed_for_all(TxnId(first), horizon))
}

/// Breaks C10: a rollback must not restore a mark that purge has passed.
#[test]
fn a_horizon_that_was_told_counts_in_a_chunk_whose_ends_are_alike() {
    assert_eq!(seen_at_a_horizon_within_a_chunk(), [false, true, true]);
    let bug = plant("versions: take an alike end for the last one");
    assert_eq!(seen_at_a_horizon_within_a_chunk(), [false, false, true]);
    assert!(bug.reached_count() > 0);
}

#[test]
fn everybody_sees_what_was_committed_by_a_horizon_and_what_is_frozen() {
    let versions = fresh();
    let [done, undone, late, open] = std::array::from_fn(|_| versions.start());
    let horizon = end(&versions, done, Committed);
    end(&versions, undone, Aborted);
    end(&versions, late, Committed);
    let seen = [done, undone, late, open].map(|txn| versions.is_committed_for_all(txn, horizon));
    assert_eq!(seen, [true, false, false, false]);
    versions.visible_below();
    assert!([undone, late].iter().all(|&txn| versions.is_committed_for_all(txn, horizon)));
}

/// The results of the writing threads: the ends in the order of their stamps.
#[derive(Default)]
struct Oracle {
    ends: Mutex<Vec<(TxnId, Outcome)>>,
    stop: AtomicBool,
    checked: AtomicU64,
}

const HAMMERED_TXNS: u64 = 3 * CHUNK_TXNS;
/// The number of answers that are compared before all transactions have started.
const HAMMERED_CHECKS: u64 = 20_000;
const WAIT_MAX: Duration = Duration::from_secs(60);

impl Oracle {
    /// Makes a writing thread wait until the reading threads have made enough checks, so that both
    /// kinds of threads run at the same time.
    fn wait_for_looks(&self, next: TxnId) {
        let deadline = Instant::now() + WAIT_MAX;
        let due = next.0.min(HAMMERED_TXNS) * HAMMERED_CHECKS / HAMMERED_TXNS;
        while self.checked.load(Ordering::Relaxed) < due {
            assert!(Instant::now() < deadline, "no thread reads");
            std::thread::yield_now();
        }
    }
}

/// Starts and ends transactions in random order, with several open at a time.
fn write(versions: &Versions, oracle: &Oracle, seed: u64) {
    let mut rng = Rng::new(seed);
    let mut open = Vec::new();
    while versions.next_txn().0 < HAMMERED_TXNS {
        oracle.wait_for_looks(versions.next_txn());
        open.push(versions.start());
        if open.len() > rng.next_u64() as usize % 8 {
            let txn = open.swap_remove(rng.next_u64() as usize % open.len());
            let outcome = if rng.next_u64() % 4 == 0 { Aborted } else { Committed };
            let note = |stamp: u64| {
                let mut ends = oracle.ends.lock();
                ends.push((txn, outcome));
                assert_eq!(ends.len() as u64, stamp);
                Ok(())
            };
            versions.finish(txn, outcome, note).unwrap();
        }
    }
    oracle.wait_for_looks(versions.next_txn());
    for txn in open {
        let note = |_| {
            oracle.ends.lock().push((txn, Committed));
            Ok(())
        };
        versions.finish(txn, Committed, note).unwrap();
    }
}

/// Compares the answers of snapshots with the oracle, each answer twice.
fn look(versions: &Versions, oracle: &Oracle, seed: u64) {
    let mut rng = Rng::new(seed);
    let reader = versions.reader();
    while !oracle.stop.load(Ordering::Relaxed) {
        let next = versions.next_txn().0;
        let txns =
            (0..20).map(|_| TxnId(next.saturating_sub(1 + rng.next_u64() % 400).max(1))).collect::<Vec<_>>();
        let stamp = reader.open();
        // M1: everything that belongs to a stamp exists when the stamp is visible.
        let ended = oracle.ends.lock().iter().take(stamp as usize).copied().collect::<Vec<_>>();
        assert_eq!(ended.len() as u64, stamp, "M1");
        for txn in txns.iter().chain(&txns) {
            let end = ended.iter().rev().find(|end| end.0 == *txn).map(|end| end.1);
            // A snapshot finds no records that were rolled back before the snapshot was opened.
            if end != Some(Aborted) {
                assert_eq!(reader.sees(*txn, None), end == Some(Committed), "{txn} at {stamp}");
            }
            assert_eq!(reader.is_decided(*txn, None), end.is_some(), "{txn} at {stamp}");
            let is_frozen = *txn < versions.visible_below();
            assert!(!is_frozen || end.is_some(), "{txn} is frozen, but not for {stamp}");
            oracle.checked.fetch_add(1, Ordering::Relaxed);
        }
        reader.close();
    }
}

#[test]
fn threads_agree_on_order_and_outcomes() {
    let versions = fresh();
    let oracle = Oracle::default();
    std::thread::scope(|scope| {
        let looking = [1, 2].map(|seed| {
            scope.spawn({
                let (versions, oracle) = (&versions, &oracle);
                move || look(versions, oracle, seed)
            })
        });
        let writing = [3, 4, 5].map(|seed| {
            scope.spawn({
                let (versions, oracle) = (&versions, &oracle);
                move || write(versions, oracle, seed)
            })
        });
        let written = writing.map(|thread| thread.join().is_ok());
        oracle.stop.store(true, Ordering::Relaxed);
        assert_eq!(written, [true; 3]);
        looking.into_iter().for_each(|thread| thread.join().unwrap());
    });
    assert!(oracle.checked.load(Ordering::Relaxed) >= HAMMERED_CHECKS);
    assert_eq!(versions.visible_below(), versions.next_txn());
}

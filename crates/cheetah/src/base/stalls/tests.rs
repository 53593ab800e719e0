//! Tests stalls without a database.

use super::*;
use crate::base::stages::testing::become_connection;
use cheetah_io::sim::SimClock;
use std::sync::Arc;

const SECOND_NS: u64 = 1_000_000_000;

fn announced(warning_ns: u64) -> (Stalls, Arc<Mutex<Vec<String>>>) {
    let (stalls, heard) = (Stalls::default(), Arc::new(Mutex::new(Vec::new())));
    let sink = Arc::clone(&heard);
    stalls.announce_to(move |line| sink.lock().push(line.to_owned()));
    stalls.warn_from(warning_ns);
    (stalls, heard)
}

fn stall(stalls: &Stalls, stage: Stage, clock: &SimClock, ns: u64) {
    let _stall = stalls.begin(stage, clock);
    clock.sleep_ns(ns);
}

#[test]
fn stalls_are_counted_by_reason_when_they_end_also_by_a_panic() {
    let (stalls, clock) = (Stalls::default(), SimClock::default());
    stall(&stalls, Stage::RowLock, &clock, 3_000);
    stall(&stalls, Stage::Memory, &clock, 5_000);
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _stall = stalls.begin(Stage::RowLock, &clock);
        clock.sleep_ns(4_000);
        let lasting = stalls.counts(Reason::RowLock, clock.now_ns());
        assert_eq!((lasting.current, lasting.current_ns_max), (1, 4_000));
        panic!("within a stall");
    }));
    assert!(ended.is_err());
    let rows = stalls.counts(Reason::RowLock, clock.now_ns());
    assert_eq!((rows.current, rows.current_ns_max), (0, 0));
    assert_eq!((rows.ended.count(), rows.ended.sum_ns, rows.ended.max_ns), (2, 7_000, 4_000));
    assert_eq!(rows.last.map(|last| last.ended_ns), Some(12_000));
    assert_eq!(stalls.ended(Reason::Memory).sum_ns, 5_000);
    for reason in [Reason::TableLock, Reason::LogSpace, Reason::Rollback, Reason::Disk, Reason::Checkpoint] {
        assert_eq!(stalls.counts(reason, clock.now_ns()), StallCounts::default());
    }
}

#[test]
fn operations_are_stalls_when_they_take_long_and_what_is_done_between_is_none() {
    let (stalls, latency, clock) = (Stalls::default(), Latency::default(), SimClock::default());
    become_connection(31);
    let mut operation = stalls.begin_operation(Reason::Checkpoint, &latency, &clock);
    clock.sleep_ns(LONG_NS - 1);
    assert_eq!(stalls.counts(Reason::Checkpoint, clock.now_ns()), StallCounts::default());
    operation.between(|| clock.sleep_ns(9 * LONG_NS));
    clock.sleep_ns(LONG_NS + 5);
    let lasting = stalls.counts(Reason::Checkpoint, clock.now_ns());
    assert_eq!((lasting.current, lasting.current_ns_max), (1, LONG_NS + 5));
    assert_eq!(operation.end(), LONG_NS + 5);
    let counts = stalls.counts(Reason::Checkpoint, clock.now_ns());
    assert_eq!((counts.current, counts.ended.count(), counts.ended.sum_ns), (0, 1, LONG_NS + 5));
    assert_eq!(counts.last, Some(LastStall { ended_ns: clock.now_ns(), connection: 31 }));
    assert_eq!((latency.counts().count(), latency.counts().sum_ns), (2, 2 * LONG_NS + 4));
}

#[test]
fn a_stall_that_takes_too_long_is_told_of_while_it_lasts_and_when_it_ends() {
    let (stalls, heard) = announced(2 * SECOND_NS);
    let clock = SimClock::default();
    stall(&stalls, Stage::Memory, &clock, 2 * SECOND_NS - 1);
    let long = stalls.begin(Stage::LogSpace, &clock);
    for _ in 0..40 {
        stalls.look(clock.now_ns());
        clock.sleep_ns(SECOND_NS);
    }
    drop(long);
    stalls.look(clock.now_ns());
    let again = stalls.begin(Stage::LogSpace, &clock);
    clock.sleep_ns(3 * SECOND_NS);
    stalls.look(clock.now_ns());
    drop(again);
    let expected = [
        "stall: a thread of the engine has been waiting 2.000 s for room in the log",
        "stall: a thread of the engine has been waiting 12.000 s for room in the log",
        "stall: a thread of the engine has been waiting 32.000 s for room in the log",
        "stall: a thread of the engine waited 40.000 s for room in the log",
        "stall: a thread of the engine has been waiting 3.000 s for room in the log",
    ];
    assert_eq!(*heard.lock(), expected);
}

#[test]
fn a_stall_is_that_of_the_connection_whose_thread_it_is() {
    become_connection(12);
    let (stalls, heard) = announced(SECOND_NS);
    let (latency, clock) = (Latency::default(), SimClock::default());
    stall(&stalls, Stage::LogSpace, &clock, SECOND_NS);
    stalls.look(clock.now_ns());
    let sync = stalls.begin_operation(Reason::Disk, &latency, &clock);
    clock.sleep_ns(3 * SECOND_NS);
    stalls.look(clock.now_ns());
    clock.sleep_ns(3 * SECOND_NS);
    drop(sync);
    stalls.look(clock.now_ns());
    let expected = [
        "stall: connection 12 waited 1.000 s for room in the log",
        "stall: connection 12 has been waiting 3.000 s for the disk",
        "stall: connection 12 waited 6.000 s for the disk",
    ];
    assert_eq!(*heard.lock(), expected);
    let last = stalls.counts(Reason::LogSpace, clock.now_ns()).last;
    assert_eq!(last, Some(LastStall { ended_ns: SECOND_NS, connection: 12 }));
}

#[test]
fn locks_are_told_of_when_many_wait_and_rollbacks_never_nor_anything_when_it_is_off() {
    let (stalls, heard) = announced(SECOND_NS);
    let clock = SimClock::default();
    let begin = |stage, count| (0..count).map(|_| stalls.begin(stage, &clock)).collect::<Vec<_>>();
    for stage in [Stage::RowLock, Stage::TableLock, Stage::RollingBack] {
        let count = if stage == Stage::RollingBack {
            3 * LOCK_WAITERS_REPORTED_MIN
        } else {
            LOCK_WAITERS_REPORTED_MIN - 1
        };
        let few = begin(stage, count);
        clock.sleep_ns(9 * SECOND_NS);
        stalls.look(clock.now_ns());
        drop(few);
        stalls.look(clock.now_ns());
    }
    assert!(heard.lock().is_empty(), "{heard:?}");
    let many = begin(Stage::RowLock, LOCK_WAITERS_REPORTED_MIN);
    clock.sleep_ns(SECOND_NS);
    let later = begin(Stage::RowLock, 5);
    stalls.look(clock.now_ns());
    drop((many, later));
    let expected = "stall: 10 threads have been waiting for row locks, a thread of the engine for 1.000 s";
    assert_eq!(std::mem::take(&mut *heard.lock()), [expected]);
    clock.sleep_ns(99 * SECOND_NS);
    stalls.warn_from(0);
    let long = stalls.begin(Stage::LogSpace, &clock);
    clock.sleep_ns(9 * SECOND_NS);
    stalls.look(clock.now_ns());
    drop(long);
    stalls.look(clock.now_ns());
    assert!(heard.lock().is_empty(), "{heard:?}");
}

#[test]
fn lines_are_a_second_apart_and_those_that_last_come_first() {
    let (stalls, heard) = announced(SECOND_NS);
    let (latency, clock) = (Latency::default(), SimClock::default());
    let many = [(); 40].map(|()| stalls.begin(Stage::LogSpace, &clock));
    clock.sleep_ns(3 * SECOND_NS);
    drop(many);
    stall(&stalls, Stage::LogSpace, &clock, 2 * SECOND_NS);
    let both = (stalls.begin(Stage::Memory, &clock), stalls.begin_operation(Reason::Disk, &latency, &clock));
    clock.sleep_ns(SECOND_NS);
    for _ in 0..8 {
        stalls.look(clock.now_ns());
        clock.sleep_ns(SECOND_NS / 2);
    }
    drop(both);
    let expected = [
        "stall: a thread of the engine has been waiting 1.000 s for free memory",
        "stall: a thread of the engine has been waiting 2.000 s for the disk",
        "stall: 41 threads waited for room in the log, a thread of the engine for 3.000 s",
    ];
    assert_eq!(*heard.lock(), expected);
    assert_eq!(stalls.ended(Reason::LogSpace).count(), 41);
}

#[test]
fn no_reason_hides_another() {
    let (stalls, heard) = announced(SECOND_NS);
    let clock = SimClock::default();
    let look = |stage| {
        stall(&stalls, stage, &clock, SECOND_NS);
        stalls.look(clock.now_ns());
        heard.lock().pop().unwrap_or_default()
    };
    look(Stage::LogSpace);
    stall(&stalls, Stage::Memory, &clock, SECOND_NS);
    assert!(look(Stage::LogSpace).ends_with("waited 1.000 s for free memory"));
    assert!(look(Stage::LogSpace).starts_with("stall: 2 threads waited for room in the log"));
    let lasting = (stalls.begin(Stage::LogSpace, &clock), stalls.begin(Stage::Memory, &clock));
    for what in ["free memory", "room in the log"] {
        clock.sleep_ns(SECOND_NS);
        stalls.look(clock.now_ns());
        let line = heard.lock().pop().unwrap_or_default();
        assert!(line.contains("has been waiting") && line.ends_with(what), "{line}");
    }
    drop(lasting);
}

#[test]
fn an_operation_whose_pause_panics_is_recorded_once() {
    let (stalls, latency, clock) = (Stalls::default(), Latency::default(), SimClock::default());
    let panicking = std::panic::AssertUnwindSafe(|| {
        let mut operation = stalls.begin_operation(Reason::Disk, &latency, &clock);
        clock.sleep_ns(5_000);
        operation.between(|| -> () {
            clock.sleep_ns(9_000);
            panic!("within a pause");
        });
    });
    assert!(std::panic::catch_unwind(panicking).is_err());
    assert_eq!((latency.counts().count(), latency.counts().sum_ns), (1, 5_000));
}

#[test]
fn reasons_are_listed_in_their_order() {
    for (place, reason) in Reason::ALL.into_iter().enumerate() {
        assert_eq!(reason as usize, place);
    }
}

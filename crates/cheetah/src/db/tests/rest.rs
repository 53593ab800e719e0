//! Tests when background threads rest.

use crate::base::{planted, Lsn};
use crate::db::rest::{Rest, Signs, Turn, IDLE, TURN_NS};

const SECOND_NS: u64 = 1_000_000_000;
const TURN: Turn = Turn { no: 3, count: 10 };

fn signs(log_end: u64) -> Signs {
    Signs { log_end: Lsn(log_end), ..Signs::default() }
}

#[test]
fn resting_threads_wake_one_a_second() {
    for now_ns in [7, 4 * SECOND_NS, 12_345_678_901] {
        let next = |no| now_ns + Turn { no, count: 10 }.after(now_ns).as_nanos() as u64;
        let mut turns: Vec<u64> = (0..10).map(next).collect();
        turns.sort_unstable();
        assert!(turns[0] > now_ns);
        assert!(turns.windows(2).all(|two| two[1] - two[0] == TURN_NS), "{turns:?}");
    }
}

#[test]
fn threads_rest_when_nothing_has_happened_for_a_while() {
    let rest = Rest::default();
    rest.call(SECOND_NS);
    assert_eq!(rest.pause(2 * SECOND_NS, 0, TURN), IDLE);
    assert!(rest.pause(4 * SECOND_NS, 0, TURN) > IDLE);
    assert_eq!(rest.pause(4 * SECOND_NS, 3 * SECOND_NS, TURN), IDLE, "the thread itself has worked");
}

/// A rest ends when the log grows, or when an operation is in progress.
#[test]
fn signs_end_a_rest() {
    let rest = Rest::default();
    assert!(rest.look(10 * SECOND_NS, || signs(1)));
    assert!(!rest.look(10 * SECOND_NS + 1, || signs(2)), "the signs were read a moment ago");
    assert!(!rest.look(11 * SECOND_NS, || signs(2)), "no thread rests");
    assert_eq!(rest.pause(12 * SECOND_NS, 0, TURN), IDLE);
    assert!(!rest.look(14 * SECOND_NS, || signs(2)), "nothing has happened");
    assert!(rest.pause(14 * SECOND_NS, 0, TURN) > IDLE);
    let held_up = Signs { in_progress: 1, ..signs(2) };
    assert!(rest.look(15 * SECOND_NS, || held_up) && !rest.look(16 * SECOND_NS, || held_up));
    assert_eq!(rest.pause(17 * SECOND_NS, 0, TURN), IDLE);
}

#[test]
fn a_missed_sign_is_noticed() {
    let bug = planted::plant("background: rest whatever happens");
    let rest = Rest::default();
    assert!(!rest.look(10 * SECOND_NS, || signs(1)) && bug.reached_count() == 1);
    assert!(rest.pause(10 * SECOND_NS, 0, TURN) > IDLE);
}

/// A call wakes a thread that rests until its next turn.
#[test]
fn a_call_wakes_who_rests() {
    let rest = Rest::default();
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| rest.sleep(1_000 * SECOND_NS, 0, Turn { no: 0, count: 1_000_000 }));
        while !sleeper.is_finished() {
            rest.call(1_000 * SECOND_NS);
            std::thread::yield_now();
        }
    });
    rest.end();
    assert!(rest.ends());
    rest.sleep(1_000 * SECOND_NS, 0, Turn { no: 0, count: 1_000_000 });
}

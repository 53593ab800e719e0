//! Tests of the roster.

use super::*;
use crate::base::planted;

#[test]
fn an_entry_is_listed_from_its_first_step_until_its_end_and_gone_with_its_handle() {
    let roster = Roster::default();
    let (first, second) = (roster.enter(Owner(1), None), roster.enter(Owner(65), None));
    assert_eq!(roster.open().len(), 0);
    second.begin(|| 7);
    second.begin(|| 8);
    first.begin(|| 9);
    let open = roster.open();
    assert_eq!(open.iter().map(|entry| entry.since_ns()).collect::<Vec<_>>(), [9, 7]);
    first.set_txn(TxnId(3));
    assert_eq!((open[0].txn(), open[1].txn()), (Some(TxnId(3)), None));
    first.end();
    assert_eq!(roster.open().len(), 1);
    drop(second);
    assert_eq!((roster.open().len(), roster.get(Owner(65)).is_none()), (0, true));
    assert!(roster.get(Owner(1)).is_some());
}

#[test]
fn a_session_is_told_until_it_is_forgotten() {
    let roster = Roster::default();
    let listed = roster.enter(Owner(1), None);
    let turn = listed.turn();
    let told = || {
        let mut told = None;
        roster.with_session(Owner(1), turn, |session| told = Some(session));
        told
    };
    assert_eq!(told(), None);
    listed.set_session(SessionId(7));
    assert_eq!(told(), Some(SessionId(7)));
    listed.set_session(SessionId::NONE);
    assert_eq!(told(), None);
}

#[test]
fn i4_a_session_is_not_told_of_a_transaction_that_has_ended() {
    let roster = Roster::default();
    let listed = roster.enter(Owner(1), None);
    listed.set_session(SessionId(7));
    let is_told = |turn| {
        let mut is_told = false;
        roster.with_session(Owner(1), turn, |_| is_told = true);
        is_told
    };
    let first = listed.turn();
    assert!(is_told(first));
    listed.end();
    assert!(!is_told(first) && is_told(listed.turn()));
    let bug = planted::plant("roster: tell the session of an ended transaction");
    assert!(is_told(first) && bug.reached_count() > 0);
}

#[test]
fn two_sessions_are_told_in_the_order_in_which_they_were_asked_for() {
    let roster = Roster::default();
    let owners = [Owner(1), Owner(2), Owner(1 + SHARDS_COUNT as u64)];
    let listed = owners.map(|owner| roster.enter(owner, None));
    let told = |first, second| roster.with_two_sessions((first, second), |a, b| Some((a.0, b.0)));
    assert_eq!(told(Owner(1), Owner(2)), None);
    listed[0].set_session(SessionId(10));
    assert_eq!(told(Owner(1), Owner(2)), None);
    listed[1].set_session(SessionId(20));
    listed[2].set_session(SessionId(30));
    for (first, a) in owners.iter().zip([10, 20, 30]) {
        for (second, b) in owners.iter().zip([10, 20, 30]) {
            assert_eq!(told(*first, *second), Some((a, b)));
        }
    }
}

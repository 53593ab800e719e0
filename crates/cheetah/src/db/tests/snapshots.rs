//! Tests a waiting snapshot whose pins are abandoned because the disk is full.

use super::rollback::World;
use crate::base::planted::plant;
use crate::db::waiting_snapshot::Waiting;

/// The moment when the pins are abandoned.
#[derive(Clone, Copy)]
enum GivenUp {
    Before,
    BetweenPinAndPut,
    WhileItWaits,
    /// By another thread, while the snapshot is written; the write then fails for a different
    /// reason.
    WhileItIsWritten,
}

const LATER: [GivenUp; 3] = [GivenUp::BetweenPinAndPut, GivenUp::WhileItWaits, GivenUp::WhileItIsWritten];

/// Returns the refusal of the next request for the waiting snapshot, or `None` if the snapshot is
/// good.
fn refusal(given_up: GivenUp) -> Option<String> {
    let world = World::new();
    let (core, waiting) = (&world.db.0.core, &world.db.0.background.waiting_snapshot);
    let give_up = || {
        core.pool.segments().durable().give_up_pins();
        waiting.drop_if_given_up(core);
    };
    let _older = world.db.pin_snapshot().unwrap();
    if let GivenUp::Before = given_up {
        core.pool.segments().durable().give_up_pins();
    }
    let snapshot = world.db.pin_snapshot().unwrap();
    if let GivenUp::BetweenPinAndPut = given_up {
        give_up();
    }
    waiting.put(core, Waiting { snapshot, notes: Vec::new(), since_ns: 0 });
    match given_up {
        GivenUp::Before => waiting.drop_if_given_up(core),
        GivenUp::BetweenPinAndPut => {}
        GivenUp::WhileItWaits => give_up(),
        GivenUp::WhileItIsWritten => {
            let taken = waiting.take().unwrap().unwrap();
            give_up();
            waiting.put_back(core, taken);
        }
    }
    let told = world.db.background_errors();
    let refusal = waiting.take().err().map(|error| error.to_string());
    assert_eq!(told.first().map(|(_, what)| what), refusal.as_ref());
    refusal
}

#[test]
fn z8_what_is_pinned_after_the_pins_were_given_up_is_kept() {
    assert_eq!(refusal(GivenUp::Before), None);
    let bug = plant("backup: give up what was pinned since");
    assert!(refusal(GivenUp::Before).is_some() && bug.reached_count() > 0);
}

#[test]
fn z8_whoever_asks_for_what_was_given_up_is_told() {
    for given_up in LATER {
        assert!(refusal(given_up).unwrap().contains("the disk was full"));
    }
    let bug = plant("backup: wait with what was given up");
    assert!(LATER.into_iter().all(|given_up| refusal(given_up).is_none()));
    assert!(bug.reached_count() > 0);
}

/// After one refusal, another snapshot can be pinned.
#[test]
fn a_snapshot_that_is_told_of_once_is_not_told_of_again() {
    let world = World::new();
    let waiting = &world.db.0.background.waiting_snapshot;
    assert!(world.db.pin_waiting_snapshot(Vec::new()).unwrap());
    world.db.0.core.pool.segments().durable().give_up_pins();
    waiting.drop_if_given_up(&world.db.0.core);
    assert!(waiting.take().is_err() && waiting.take().unwrap().is_none());
    assert!(world.db.pin_waiting_snapshot(Vec::new()).unwrap());
    assert!(world.db.background_errors().is_empty() && waiting.take().unwrap().is_some());
}

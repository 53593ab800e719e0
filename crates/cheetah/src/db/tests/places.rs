//! Tests the lock of a table that a load has replaced, before the load's commit is published.

use super::rollback::World;
use crate::base::planted::plant;
use crate::table::TableSpec;
use crate::txn::TableMode;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Returns whether the lock of the table is granted before the commit is published: `[with waiting,
/// without waiting]`. The commit is published at most `wait` after the request.
fn is_given_early(wait: Duration) -> [bool; 2] {
    let world = World::new();
    let spec = TableSpec { name: "loaded".into(), ..World::spec() };
    let loaded = world.db.create_table(&spec).unwrap();
    let versions = &world.db.0.core.transactions.versions;
    let stamp = versions.published() + 1;
    world.table.give_way_to(&loaded, stamp);
    let mut other = world.db.begin();
    let at_once = other.try_lock_table(&world.table).unwrap();
    other.rollback().unwrap();
    let (given, is_given) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let _ = is_given.recv_timeout(wait);
            versions.take_stamp();
        });
        other.lock_table_as(&world.table, TableMode::Shared).unwrap();
        let is_early = versions.published() < stamp;
        let _ = given.send(());
        [is_early, at_once]
    })
}

#[test]
fn m13_a_table_that_was_loaded_is_given_away_when_its_commit_is_published() {
    assert_eq!(is_given_early(Duration::from_millis(100)), [false; 2]);
    let bug = plant("load: give the table before its commit is published");
    assert_eq!(is_given_early(Duration::from_secs(60)), [true; 2]);
    assert!(bug.reached_count() > 0);
}

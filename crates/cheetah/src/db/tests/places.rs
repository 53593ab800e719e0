//! A load that has put its table in place, and whose commit is not published yet.

use super::rollback::World;
use crate::base::planted::plant;
use crate::table::TableSpec;
use crate::txn::TableMode;
use std::time::Duration;

/// Whether somebody has a lock of the table before its commit is published, by waiting or at once.
fn is_given_early() -> [bool; 2] {
    let world = World::new();
    let spec = TableSpec { name: "loaded".into(), ..World::spec() };
    let loaded = world.db.create_table(&spec).unwrap();
    let versions = &world.db.0.core.transactions.versions;
    let stamp = versions.published() + 1;
    world.table.give_way_to(&loaded, stamp);
    let mut other = world.db.begin();
    let at_once = other.try_lock_table(&world.table).unwrap();
    other.rollback().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            versions.take_stamp();
        });
        other.lock_table_as(&world.table, TableMode::Shared).unwrap();
        [versions.published() < stamp, at_once]
    })
}

#[test]
fn m13_a_table_that_was_loaded_is_given_away_when_its_commit_is_published() {
    assert_eq!(is_given_early(), [false; 2]);
    let bug = plant("load: give the table before its commit is published");
    assert_eq!(is_given_early(), [true; 2]);
    assert!(bug.reached_count() > 0);
}

//! Counts how often row operations search the clustered tree from its root.

use super::rollback::{row_of, World};
use crate::db::*;
use crate::table::OldEntry;

/// Returns the number of searches from the root during `operation`, which is one statement.
fn searches(world: &World, operation: impl FnOnce(&mut Transaction)) -> u64 {
    let mut txn = world.db.begin();
    let before = world.table.clustered().descents();
    operation(&mut txn);
    let searches = world.table.clustered().descents() - before;
    txn.commit().unwrap();
    searches
}

const NO_ENTRIES: &[OldEntry<'static>] = &[];

#[test]
fn a_row_operation_searches_for_its_row_once() {
    let world = World::new();
    assert_eq!(searches(&world, |txn| world.insert(txn, 10_000, 1).unwrap()), 1);
    assert_eq!(searches(&world, |txn| world.update(txn, 10_000, 2).unwrap()), 1);
    let delete = |txn: &mut Transaction| {
        txn.delete(&world.table, &10_000u64.to_be_bytes(), NO_ENTRIES).unwrap();
    };
    assert_eq!(searches(&world, delete), 1);
    let refused = |txn: &mut Transaction| assert!(world.insert(txn, 7, 2).is_err());
    assert_eq!(searches(&world, refused), 1);
}

#[test]
fn rows_of_one_statement_that_share_a_leaf_share_a_search() {
    let world = World::new();
    let three = |txn: &mut Transaction| {
        (10_000..10_003).for_each(|key| world.insert(txn, key, 1).unwrap());
    };
    assert_eq!(searches(&world, three), 1);
}

#[test]
fn a_savepoint_for_each_row_costs_no_search() {
    let world = World::new();
    let rows = |txn: &mut Transaction| {
        for key in 10_000..10_100 {
            txn.savepoint();
            world.insert(txn, key, 1).unwrap();
        }
    };
    assert!(searches(&world, rows) <= 8, "one search for each leaf");
}

#[test]
fn a_row_whose_leaf_others_have_split_since_is_searched_for_again() {
    let world = World::new();
    let mut txn = world.db.begin();
    world.insert(&mut txn, 20_000, 1).unwrap();
    let mut other = world.db.begin();
    (10_000..12_000).for_each(|key| world.insert(&mut other, key, 1).unwrap());
    other.commit().unwrap();
    (10_500..10_600).for_each(|key| world.update(&mut txn, key, 2).unwrap());
    (20_001..20_100).for_each(|key| world.insert(&mut txn, key, 1).unwrap());
    txn.commit().unwrap();
    let mut row = Vec::new();
    let mut txn = world.db.begin();
    for (key, number) in [(10_500u64, 2), (10_600, 1), (20_000, 1), (20_099, 1)] {
        assert!(txn.get(&world.table, &key.to_be_bytes(), Read::Consistent, &mut row).unwrap());
        assert_eq!(row, row_of(key, number));
    }
}

//! Tests rows that conflict with an insert: the insert waits, is refused, or releases the key.

use super::*;

/// Runs `waiter` in its own thread, and calls `then` once it waits.
fn while_it_waits<T: Send>(db: &Db, waiter: impl FnOnce() -> T + Send, then: impl FnOnce()) -> T {
    std::thread::scope(|scope| {
        let waiter = scope.spawn(waiter);
        until("the waiter waits", || {
            assert!(!waiter.is_finished(), "the waiter has ended without a wait");
            somebody_waits(db)
        });
        then();
        waiter.join().unwrap()
    })
}

#[test]
fn an_insert_that_waits_for_a_range_keeps_nobody_from_its_key() {
    let (db, table, mut first, mut second) = pair(Isolation::RepeatableRead);
    assert!(scan(&mut first, &table, Read::Exclusive, (15, 15)).unwrap().is_empty());
    second.set_lock_wait(60_000_000_000);
    let inserted = while_it_waits(
        &db,
        || add(&mut second, &table, 15),
        || {
            add(&mut first, &table, 15).unwrap();
            first.commit().unwrap();
        },
    );
    assert!(matches!(inserted, Err(Error::DuplicateKey { index_no: 0, .. })), "{inserted:?}");
}

#[test]
fn a_row_that_is_refused_leaves_its_key_to_others() {
    for level in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
        let (_db, table, mut first, mut second) = pair(level);
        let refused = insert(&mut first, &table, 60, &row(NUMBERS));
        assert!(matches!(refused, Err(Error::DuplicateKey { index_no: 2, .. })), "{refused:?}");
        let moved = update(&mut first, &table, 20, &row(2 * NUMBERS), 70, &row(NUMBERS));
        assert!(matches!(moved, Err(Error::DuplicateKey { index_no: 2, .. })), "{moved:?}");
        add(&mut second, &table, 60).unwrap();
        add(&mut second, &table, 70).unwrap();
        assert!(waits(add_one(&mut second, &table, 10)), "the conflicting row is locked");
    }
}

/// An insert that is refused because of a row with one unique key has found no row by the preceding
/// keys. If ranges are locked, no other transaction may insert rows with these keys.
#[test]
fn keys_that_a_refused_row_has_not_found_stay_away_when_the_row_in_the_way_is_changed() {
    for (level, stay_away) in [(Isolation::ReadCommitted, false), (Isolation::RepeatableRead, true)] {
        let (db, _, mut first, mut second) = pair(level);
        let mut names_are_unique = spec("names");
        names_are_unique.indexes[1].unique = true;
        let table = db.create_table(&names_are_unique).unwrap();
        let named = |name: &str, number| Row { name: name.into(), ..row(number) };
        insert(&mut first, &table, 1, &named("one", 1)).unwrap();
        first.commit().unwrap();
        first.set_duplicate_lock(LockMode::Exclusive);
        let refused = insert(&mut first, &table, 2, &named("two", 1));
        assert!(matches!(refused, Err(Error::DuplicateKey { index_no: 2, .. })), "{refused:?}");
        assert_eq!(waits(insert(&mut second, &table, 2, &named("three", 3))), stay_away, "{level:?}");
        assert_eq!(waits(insert(&mut second, &table, 3, &named("two", 2))), stay_away, "{level:?}");
        insert(&mut second, &table, 4, &named("twofold", 4)).unwrap();
        if stay_away {
            insert(&mut first, &table, 2, &named("two", 2)).unwrap();
        }
    }
}

#[test]
fn a_row_that_was_in_the_way_and_has_gone_leaves_its_key_to_others() {
    let (db, table, mut first, mut second) = pair(Isolation::ReadCommitted);
    delete(&mut first, &table, 10, &row(NUMBERS)).unwrap();
    second.set_lock_wait(60_000_000_000);
    let insert_twin = || insert(&mut second, &table, 60, &row(NUMBERS));
    while_it_waits(&db, insert_twin, || first.commit().unwrap()).unwrap();
    insert(&mut first, &table, 10, &row(9 * NUMBERS)).unwrap();
}

#[test]
fn a_row_that_has_gone_is_given_back_when_the_scan_looks_at_the_next_one() {
    let (db, table, mut first, mut second) = pair(Isolation::ReadCommitted);
    let mut third = db.begin();
    third.set_isolation(Isolation::ReadCommitted);
    third.set_lock_wait(0);
    add_one(&mut third, &table, 10).unwrap();
    insert(&mut first, &table, 5, &row(77 * NUMBERS)).unwrap();
    second.set_lock_wait(60_000_000_000);
    let look = || {
        let mut cursor = second.cursor_on(&table, 0, Read::Exclusive, OnLocked::Look).unwrap();
        assert!(cursor.seek(SeekMode::AtLeast, &5u64.to_be_bytes()).unwrap());
        assert!(cursor.is_unlocked() && cursor.key() == 10u64.to_be_bytes());
        cursor.next().unwrap()
    };
    assert!(while_it_waits(&db, look, || first.rollback().unwrap()));
    insert(&mut third, &table, 5, &row(77 * NUMBERS)).unwrap();
}

#[test]
fn whoever_does_not_wait_enters_no_locks_for_the_writer() {
    let (db, table, mut first, mut second) = pair(Isolation::ReadCommitted);
    add_one(&mut first, &table, 10).unwrap();
    let id = first.id().unwrap().0;
    let locks = || db.transactions().iter().find(|txn| txn.id == id).unwrap().locks;
    assert_eq!(locks(), 1, "only the table is locked");
    for on_locked in [OnLocked::Skip, OnLocked::Look] {
        let mut cursor = second.cursor_on(&table, 0, Read::Exclusive, on_locked).unwrap();
        assert!(cursor.seek(SeekMode::First, b"").unwrap());
    }
    assert!(waits(add_one(&mut second, &table, 10)));
    assert_eq!(locks(), 1);
}

#[test]
fn a_statement_that_has_changed_many_rows_is_rolled_back_alone() {
    let (db, table, mut first, mut second) = pair(Isolation::ReadCommitted);
    let keys = 1_000..13_000;
    for key in keys.clone() {
        add(&mut first, &table, key).unwrap();
    }
    first.commit().unwrap();
    let back = first.savepoint();
    for key in keys.clone() {
        add_one(&mut first, &table, key).unwrap();
    }
    first.rollback_to(back).unwrap();
    for key in keys.step_by(1_000) {
        assert!(waits(add_one(&mut second, &table, key)), "{key}");
    }
    first.rollback().unwrap();
    add_one(&mut second, &table, 1_000).unwrap();
    assert_eq!(db.transactions().iter().map(|txn| txn.locks).sum::<u64>(), 1);
}

#[test]
fn a_statement_that_is_rolled_back_needs_no_locks_where_it_has_the_whole_table() {
    let (db, table, mut first, _second) = pair(Isolation::RepeatableRead);
    first.lock_table(&table, LockMode::Exclusive).unwrap();
    let back = first.savepoint();
    (1..=5).for_each(|key| add_one(&mut first, &table, 10 * key).unwrap());
    first.rollback_to(back).unwrap();
    assert_eq!(db.transactions().iter().map(|txn| txn.locks).sum::<u64>(), 1, "only the table is locked");
}

#[test]
fn the_large_values_of_a_row_that_is_looked_at_stay_until_the_scan_goes_on() {
    let (_db, table, mut first, mut second) = pair(Isolation::ReadCommitted);
    let large = |byte, number| Row { text: vec![byte; 50_000], ..row(number) };
    update(&mut first, &table, 10, &row(NUMBERS), 10, &large(b'o', NUMBERS)).unwrap();
    first.commit().unwrap();
    update(&mut first, &table, 10, &large(b'o', NUMBERS), 10, &large(b'n', NUMBERS)).unwrap();
    let mut cursor = second.cursor_on(&table, 0, Read::Exclusive, OnLocked::Look).unwrap();
    assert!(cursor.seek(SeekMode::First, b"").unwrap() && cursor.is_unlocked());
    first.commit().unwrap();
    for key in 60..70 {
        insert(&mut first, &table, key, &large(b'x', key * NUMBERS)).unwrap();
        first.commit().unwrap();
    }
    let seen = complete(&second, &table, cursor.row()).unwrap();
    assert!(seen == large(b'o', NUMBERS), "the value has become {:?}", seen.text.first());
    assert!(cursor.next().unwrap());
}

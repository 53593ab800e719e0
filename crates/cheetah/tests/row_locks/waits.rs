//! Tests waits for locks: deadlocks and their victims, and rows that are deleted or reinserted
//! during a wait.

use super::*;

#[test]
fn a_row_is_deleted_and_inserted_again_while_scans_wait_for_it() {
    for by_number in [false, true] {
        let (db, table, mut first, mut second) = pair(Isolation::RepeatableRead);
        delete(&mut first, &table, 20, &row(2 * NUMBERS)).unwrap();
        second.set_lock_wait(60_000_000_000);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| match by_number {
                true => find(&mut second, &table, 2, Read::Exclusive, 2).unwrap().into_iter().collect(),
                false => scan(&mut second, &table, Read::Exclusive, (15, 35)).unwrap(),
            });
            until_somebody_waits(&db);
            assert!(by_number || waits(add(&mut first, &table, 17)), "another key of the range is locked");
            insert(&mut first, &table, 20, &row(2 * NUMBERS)).unwrap();
            first.commit().unwrap();
            let expected = if by_number { vec![2 * NUMBERS] } else { vec![20, 30] };
            assert_eq!(waiter.join().unwrap(), expected, "the reinserted row is found");
        });
    }
}

#[test]
fn who_waits_is_told_the_sessions_that_it_waits_for() {
    let (db, table, mut first, mut second) = pair(Isolation::RepeatableRead);
    let xid = Xid::new(1, b"given away", b"").unwrap();
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    first.report_waits(SessionId(1), |_| panic!("this transaction does not wait"));
    second.report_waits(SessionId(2), {
        let told = Arc::clone(&told);
        move |session| told.lock().unwrap().push(session)
    });
    // The waiter calls this function after each report of the transaction that it waits for.
    let asked = Arc::new(AtomicU64::new(0));
    second.interrupt_when({
        let asked = Arc::clone(&asked);
        move || asked.fetch_add(1, Relaxed) == u64::MAX
    });
    second.set_lock_wait(60_000_000_000);
    add_one(&mut first, &table, 10).unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| add_one(&mut second, &table, 10));
        until("the waiter has reported twice", || told.lock().unwrap().len() >= 2);
        let two_occasions_pass = || {
            let before = asked.load(Relaxed);
            until("the waiter had two occasions to report", || asked.load(Relaxed) > before + 2);
        };
        first.prepare(xid).unwrap();
        drop(first);
        // The waiter may have been about to report the first transaction.
        two_occasions_pass();
        told.lock().unwrap().clear();
        two_occasions_pass();
        assert_eq!(told.lock().unwrap().len(), 0, "no session holds the lock any more");
        db.rollback_prepared(&xid).unwrap();
        waiter.join().unwrap().unwrap();
    });
}

/// The second transaction, which has locked row 20, waits for the first transaction's row 10. Then
/// the first transaction closes the cycle. Returns whether the first is the victim. The other
/// transaction receives its row. Both transactions are rolled back.
fn is_first_victim(db: &Db, table: &Arc<Table>, first: &mut Transaction, second: &mut Transaction) -> bool {
    first.set_lock_wait(60_000_000_000);
    second.set_lock_wait(60_000_000_000);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let done = add_one(second, table, 10);
            second.rollback().unwrap();
            done
        });
        until_somebody_waits(db);
        let closes = add_one(first, table, 20);
        first.rollback().unwrap();
        match (closes, waiter.join().unwrap()) {
            (Err(Error::Deadlock), Ok(_)) => true,
            (Ok(_), Err(Error::Deadlock)) => false,
            ends => panic!("one of the two is the victim: {ends:?}"),
        }
    })
}

/// The first session has fewer changes, and closes the cycle. Either reason makes it the victim.
#[test]
fn of_two_whose_order_is_known_the_later_one_is_the_victim_of_a_deadlock() {
    for order_is_known in [false, true] {
        let (db, table, mut first, mut second) = pair(Isolation::RepeatableRead);
        db.set_victim_choice(move |one, other| order_is_known.then(|| one.max(other)));
        first.report_waits(SessionId(1), |_| ());
        second.report_waits(SessionId(2), |_| ());
        (20..=40).step_by(10).for_each(|key| add_one(&mut second, &table, key).unwrap());
        add_one(&mut first, &table, 10).unwrap();
        let is_first_victim = is_first_victim(&db, &table, &mut first, &mut second);
        assert_eq!(is_first_victim, !order_is_known);
    }
}

#[test]
fn a_row_that_goes_while_it_is_waited_for_is_given_back_under_read_committed_only() {
    for (level, given_back) in [(Isolation::ReadCommitted, true), (Isolation::RepeatableRead, false)] {
        let (db, table, mut first, mut second) = pair(level);
        delete(&mut first, &table, 10, &row(NUMBERS)).unwrap();
        second.set_lock_wait(60_000_000_000);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| scan(&mut second, &table, Read::Exclusive, (10, 10)).unwrap());
            until_somebody_waits(&db);
            first.commit().unwrap();
            assert_eq!(waiter.join().unwrap(), [0u64; 0]);
        });
        assert_eq!(waits(add(&mut first, &table, 10)), !given_back, "{level:?}");
    }
}

/// Another transaction waited for an entry, so the entry's writer has an explicit lock. The lock
/// remains when the change is rolled back. Then the other transaction writes the entry. In an
/// earlier version, a scan of the first transaction spun on its own lock.
#[test]
fn a_scan_waits_for_a_row_whose_entry_is_locked_since_an_own_change_was_rolled_back() {
    let (_db, table, mut first, mut second) = pair(Isolation::RepeatableRead);
    let back = first.savepoint();
    add(&mut first, &table, 15).unwrap();
    assert!(waits(find(&mut second, &table, 15, Read::Exclusive, 2)));
    first.rollback_to(back).unwrap();
    add(&mut second, &table, 15).unwrap();
    assert!(waits(find(&mut first, &table, 15, Read::Exclusive, 2)));
    second.commit().unwrap();
    assert_eq!(find(&mut first, &table, 15, Read::Exclusive, 2).unwrap(), Some(15 * NUMBERS));
}

/// A scan that finds an entry of an open change waits for the entry's writer, but only until this
/// change is rolled back to a savepoint. Returns the row that the scan then finds, or `None` if the
/// scan continues to wait.
fn found_when_an_entry_is_rolled_back(lock_wait_ns: u64) -> Option<Option<u64>> {
    let (db, table, mut first, mut second) = pair(Isolation::RepeatableRead);
    let back = first.savepoint();
    add(&mut first, &table, 15).unwrap();
    second.set_lock_wait(lock_wait_ns);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| find(&mut second, &table, 15, Read::Exclusive, 2));
        until_somebody_waits(&db);
        first.rollback_to(back).unwrap();
        let found = waiter.join().unwrap();
        first.rollback().unwrap();
        match found {
            Err(Error::LockTimeout) => None,
            found => Some(found.unwrap()),
        }
    })
}

#[test]
fn an_entry_whose_change_is_rolled_back_alone_is_free() {
    assert_eq!(found_when_an_entry_is_rolled_back(60_000_000_000), Some(None));
    let _bug = plant("rollback: keep the locks of entries");
    assert_eq!(found_when_an_entry_is_rolled_back(300_000_000), None);
}

/// Two transactions wait for each other. The first has rolled back more changes than the second has
/// made. Returns whether the first transaction is the victim.
fn is_the_victim_who_rolled_back_much() -> bool {
    let (db, table, mut first, mut second) = pair(Isolation::RepeatableRead);
    let back = first.savepoint();
    (100..120).for_each(|key| add(&mut first, &table, key).unwrap());
    first.rollback_to(back).unwrap();
    (20..=40).step_by(10).for_each(|key| add_one(&mut second, &table, key).unwrap());
    find(&mut first, &table, 10, Read::Exclusive, 0).unwrap();
    is_first_victim(&db, &table, &mut first, &mut second)
}

#[test]
fn what_was_rolled_back_is_no_work_that_saves_from_a_deadlock() {
    assert!(is_the_victim_who_rolled_back_much());
    let _bug = plant("deadlock: count what was rolled back");
    assert!(!is_the_victim_who_rolled_back_much());
}

/// The scan never waits, so only the scan itself can notice the interrupt.
#[test]
fn a_scan_that_passes_many_deleted_rows_ends_when_it_is_interrupted() {
    let (db, table, mut first, mut second) = pair(Isolation::RepeatableRead);
    let mut before = db.begin();
    before.take_snapshot().unwrap();
    (1_000..3_000).for_each(|key| add(&mut first, &table, key).unwrap());
    (1_000..3_000).for_each(|key| delete(&mut first, &table, key, &row(key * NUMBERS)).unwrap());
    first.commit().unwrap();
    second.interrupt_when(|| true);
    for read in [Read::Consistent, Read::Shared, Read::Exclusive] {
        let found = scan(&mut second, &table, read, (1_000, u64::MAX));
        assert!(matches!(found, Err(Error::Interrupted)), "{read:?}: {found:?}");
    }
    second.interrupt_when(|| false);
    assert_eq!(scan(&mut second, &table, Read::Consistent, (1_000, u64::MAX)).unwrap(), [0u64; 0]);
    drop(before);
}

#[test]
fn a_row_that_an_earlier_statement_has_locked_is_not_given_back() {
    let (_db, table, mut first, mut second) = pair(Isolation::ReadCommitted);
    find(&mut first, &table, 10, Read::Exclusive, 0).unwrap();
    let mut cursor = first.cursor(&table, 0, Read::Exclusive).unwrap();
    assert!(cursor.seek(SeekMode::First, b"").unwrap());
    cursor.unlock_row();
    assert!(waits(add_one(&mut second, &table, 10)));
}

/// A transaction locks a row by a scan, releases the row, and then changes it. Returns whether the
/// change waits for the row's writer.
fn waits_for_a_row_that_was_given_back() -> bool {
    let (_db, table, mut first, mut second) = pair(Isolation::ReadCommitted);
    let mut cursor = first.cursor(&table, 0, Read::Exclusive).unwrap();
    assert!(cursor.seek(SeekMode::First, b"").unwrap());
    cursor.unlock_row();
    add_one(&mut second, &table, 10).unwrap();
    waits(delete(&mut first, &table, 10, &row(NUMBERS + 1)))
}

/// Breaks I4 of `table/rows/locker.rs`: a transaction must hold the lock of each row that it
/// changes.
#[test]
fn a_row_that_a_scan_has_given_back_is_locked_again_by_whoever_changes_it() {
    assert!(waits_for_a_row_that_was_given_back());
    let _bug = plant("locks: keep a scanned row that was given back");
    assert!(!waits_for_a_row_that_was_given_back());
}

/// A row that a scan has locked remains locked when a change of the row is rolled back.
#[test]
fn a_scanned_row_stays_locked_when_its_change_is_rolled_back_and_made_again() {
    for level in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
        let (_db, table, mut first, mut second) = pair(level);
        let before = first.savepoint();
        let mut cursor = first.cursor(&table, 0, Read::Exclusive).unwrap();
        assert!(cursor.seek(SeekMode::First, b"").unwrap());
        for _ in 0..2 {
            delete(&mut first, &table, 10, &row(NUMBERS)).unwrap();
            first.rollback_to(before).unwrap();
            assert!(waits(add_one(&mut second, &table, 10)), "{level:?}");
        }
        first.rollback().unwrap();
        add_one(&mut second, &table, 10).unwrap();
        assert!(waits(delete(&mut first, &table, 10, &row(NUMBERS + 1))), "{level:?}");
    }
}

//! Loads inside a transaction, alongside other statements and index builds.

use super::*;

fn load_rows(txn: &mut Transaction, table: &Arc<Table>, rows: &[(u64, Row)]) -> Result<()> {
    let mut to = txn.begin_load_to_commit(table)?.unwrap();
    rows.iter().try_for_each(|(key, row)| load(txn, &mut to, *key, row))?;
    txn.finish_load(&mut to).map(drop)
}

fn status(db: &Db, name: &str) -> u64 {
    db.status().into_iter().find(|(found, _)| *found == name).unwrap().1
}

#[test]
fn a_load_of_a_transaction_is_seen_from_its_commit_on() {
    for (count, is_built) in [(5, false), (900, true), (4000, true)] {
        for key in [ascending, mixed, late] {
            let disk = SimDisk::new();
            let db = open(&disk);
            let (mut oldest, mut old, mut txn) = (db.begin(), db.begin(), db.begin());
            oldest.take_snapshot().unwrap();
            let table = db.create_table(&spec("t")).unwrap();
            let expected = rows(count, key);
            old.take_snapshot().unwrap();
            load_rows(&mut txn, &table, &expected).unwrap();
            assert_eq!(db.begin().count(&table).unwrap(), Some(0));
            assert!(!is_built || contents(&db, &db.table("t").unwrap()).is_empty());
            txn.commit().unwrap();
            assert_eq!(status(&db, "loads"), u64::from(is_built));
            let expected: BTreeMap<_, _> = expected.iter().map(|(key, row)| (*key, row.stored())).collect();
            let newest = db.table("t").unwrap();
            assert!(contents(&db, &newest) == expected, "{count} rows");
            assert_eq!(table.has_moved(), is_built);
            // Earlier handles reach the rows. An older snapshot sees no rows through any handle.
            assert_eq!(db.begin().count(&table).unwrap(), Some(count));
            for handle in [&table, &newest] {
                assert_eq!(old.count(handle).unwrap(), Some(0));
                assert!(!old
                    .cursor(handle, 1, Read::Consistent)
                    .unwrap()
                    .seek(SeekMode::First, b"")
                    .unwrap());
                let mut row = Vec::new();
                let some_key = key(3).to_be_bytes();
                assert!(!old.get(handle, &some_key, Read::Consistent, &mut row).unwrap());
                assert!(
                    old.get(handle, &some_key, Read::Shared, &mut row).unwrap(),
                    "a locking read finds the newest rows"
                );
                // A snapshot older than the table may not use it (M2).
                assert!(matches!(oldest.count(handle), Err(Error::TableChanged(_))));
            }
            db.rename_table("t", "u").unwrap();
            assert!(matches!(old.count(&newest), Err(Error::TableChanged(_))));
            db.rename_table("u", "t").unwrap();
            assert_eq!(old.count(&newest).unwrap(), Some(0));
            oldest.commit().unwrap();
            // The older transaction inserts a row beside loaded rows that its snapshot does not
            // see. Reads of this transaction are then refused: they would mix its own row with an
            // old state.
            with_row(u64::MAX / 2, &Row::new(1 << 40, 5), |row| old.insert(&table, row)).unwrap();
            for handle in [&table, &newest] {
                let counted = old.count(handle);
                let is_refused = matches!(counted, Err(Error::TableChanged(_)));
                assert_eq!(is_refused, is_built, "{counted:?}");
            }
            old.rollback().unwrap();
            assert_eq!(old.count(&table).unwrap(), Some(count));
            drop((oldest, old, txn, table, newest));
            while db.run_background().unwrap() {}
            assert_eq!(status(&db, "dropped_trees"), 0);
            assert_eq!(db.table_names(), ["t"]);
            drop(db);
            let db = open(&disk);
            assert!(contents(&db, &db.table("t").unwrap()) == expected, "{count} rows, after a crash");
        }
    }
}

#[test]
fn a_load_of_a_transaction_is_rolled_back_with_it() {
    let disk = SimDisk::new();
    let db = open(&disk);
    let table = db.create_table(&spec("t")).unwrap();
    let mut txn = db.begin();
    load_rows(&mut txn, &table, &rows(2000, mixed)).unwrap();
    txn.rollback().unwrap();
    assert_eq!(db.table_names(), ["t"]);
    // A load that does not end, or that fails, is rolled back in the same way.
    let mut to = txn.begin_load_to_commit(&table).unwrap().unwrap();
    rows(2000, ascending).iter().for_each(|(key, row)| load(&mut txn, &mut to, *key, row).unwrap());
    assert_eq!(db.table_names().len(), 2);
    drop(to);
    txn.rollback().unwrap();
    let mut twice = rows(2000, mixed);
    twice.push((mixed(7), Row::new(5000, 3)));
    assert!(matches!(load_rows(&mut txn, &table, &twice), Err(Error::DuplicateKey { .. })));
    txn.rollback().unwrap();
    assert_eq!(db.table_names(), ["t"]);
    while db.run_background().unwrap() {}
    assert_eq!((status(&db, "dropped_trees"), db.begin().count(&table).unwrap()), (0, Some(0)));
    load_rows(&mut txn, &table, &rows(2000, mixed)).unwrap();
    txn.commit().unwrap();
    assert_eq!(contents(&db, &db.table("t").unwrap()).len(), 2000);
}

#[test]
fn others_wait_for_a_load_of_a_transaction_and_write_behind_it() {
    let db = open(&SimDisk::new());
    let table = db.create_table(&TableSpec { hidden_key: true, ..spec("t") }).unwrap();
    let (mut txn, mut other) = (db.begin(), db.begin());
    other.set_lock_wait(0);
    let mut all = rows(900, ascending);
    all.iter_mut().for_each(|row| row.0 = u64::from_be_bytes(table.next_hidden_key()));
    table.advance_auto_increment(4711);
    load_rows(&mut txn, &table, &all).unwrap();
    let insert = |txn: &mut Transaction, number| {
        let key = u64::from_be_bytes(table.next_hidden_key());
        with_row(key, &Row::new(number, 6000), |row| txn.insert(&table, row))
    };
    assert!(matches!(insert(&mut other, 5000), Err(Error::LockTimeout)));
    assert!(matches!(other.cursor(&table, 0, Read::Shared), Err(Error::LockTimeout)));
    txn.commit().unwrap();
    insert(&mut other, 5000).unwrap();
    assert!(matches!(insert(&mut other, 7), Err(Error::DuplicateKey { index_no: 2, .. })));
    let numbers = crate::table::Numbers {
        stride: crate::table::Stride { increment: 1, offset: 1 },
        largest: u64::MAX,
        count: 1,
    };
    assert_eq!(other.reserve_numbers(&table, &numbers, false).unwrap().first, 4711);
    other.commit().unwrap();
    assert_eq!(contents(&db, &db.table("t").unwrap()).len(), 901);
    let mut row = Vec::new();
    let last = (903u64).to_be_bytes();
    assert!(other.get(&table, &last, Read::Consistent, &mut row).unwrap());
}

#[test]
fn a_load_of_a_transaction_inserts_where_others_are() {
    let db = open(&SimDisk::new());
    // The other transaction reads with locks, or writes, when the load already has rows.
    for writes in [false, true] {
        let name = if writes { "w" } else { "r" };
        let table = db.create_table(&spec(name)).unwrap();
        let (mut txn, mut other) = (db.begin(), db.begin());
        let mut to = txn.begin_load_to_commit(&table).unwrap().unwrap();
        let all = rows(900, ascending);
        load(&mut txn, &mut to, all[0].0, &all[0].1).unwrap();
        if writes {
            with_row(77_777, &Row::new(77_777, 5), |row| other.insert(&table, row)).unwrap();
        } else {
            other.cursor(&table, 0, Read::Shared).unwrap();
        }
        all[1..].iter().for_each(|(key, row)| load(&mut txn, &mut to, *key, row).unwrap());
        txn.finish_load(&mut to).unwrap();
        other.commit().unwrap();
        txn.commit().unwrap();
        assert!(!table.has_moved());
        assert_eq!(contents(&db, &table).len(), 900 + usize::from(writes));
    }
    assert_eq!(status(&db, "loads"), 0);
    let table = db.table("w").unwrap();
    assert!(db.begin().begin_load_to_commit(&table).unwrap().is_none());
    // In the opposite order: the table is dropped before its load is committed.
    let table = db.truncate_table("w").unwrap();
    let mut txn = db.begin();
    load_rows(&mut txn, &table, &rows(900, ascending)).unwrap();
    db.drop_table("w").unwrap();
    txn.commit().unwrap();
    assert_eq!(db.table_names(), ["r"]);
}

#[test]
fn numbers_taken_from_a_table_that_has_moved_are_not_given_again() {
    let db = open(&SimDisk::new());
    let table = db.create_table(&TableSpec { hidden_key: true, ..spec("t") }).unwrap();
    let mut txn = db.begin();
    load_rows(&mut txn, &table, &rows(900, ascending)).unwrap();
    txn.commit().unwrap();
    // Simulates counters that the load has not carried over, although other transactions just took
    // numbers from them.
    let newest = db.table("t").unwrap();
    newest.set_auto_increment(1);
    let stale = u64::from_be_bytes(table.next_hidden_key());
    let numbers = crate::table::Numbers {
        stride: crate::table::Stride { increment: 1, offset: 1 },
        largest: u64::MAX,
        count: 5,
    };
    table.set_auto_increment(100);
    assert!(table.reserve_numbers(&numbers).first >= 100);
    assert!(newest.reserve_numbers(&numbers).first >= 110);
    assert!(u64::from_be_bytes(newest.next_hidden_key()) > stale);
    assert!(u64::from_be_bytes(table.next_hidden_key()) > stale + 1);
}

#[test]
fn trees_of_a_load_that_is_dropped_under_an_older_snapshot_are_freed() {
    for truncates in [false, true] {
        let db = open(&SimDisk::new());
        let table = db.create_table(&spec("t")).unwrap();
        let (mut old, mut txn) = (db.begin(), db.begin());
        old.take_snapshot().unwrap();
        load_rows(&mut txn, &table, &rows(900, ascending)).unwrap();
        txn.commit().unwrap();
        assert_eq!(old.count(&table).unwrap(), Some(0));
        match truncates {
            true => drop(db.truncate_table("t").unwrap()),
            false => db.drop_table("t").unwrap(),
        }
        // The rows are removed at once, because no reader can find them after the drop.
        drop((txn, table));
        while db.run_background().unwrap() {}
        assert_eq!(status(&db, "dropped_trees"), 0, "truncates: {truncates}, with the snapshot");
        old.commit().unwrap();
        drop(old);
        while db.run_background().unwrap() {}
        while db.run_background().unwrap() {}
        assert_eq!(status(&db, "dropped_trees"), 0, "truncates: {truncates}");
    }
}

#[test]
fn a_load_that_has_not_ended_well_is_not_committed() {
    let db = open(&SimDisk::new());
    let mut table = db.create_table(&spec("t")).unwrap();
    let mut txn = db.begin();
    let is_empty = |db: &Db| db.begin().count(&db.table("t").unwrap()).unwrap() == Some(0);
    for prepares in [false, true] {
        for ends in [false, true] {
            let mut to = txn.begin_load_to_commit(&table).unwrap().unwrap();
            rows(900, mixed).iter().for_each(|(key, row)| load(&mut txn, &mut to, *key, row).unwrap());
            if ends {
                txn.finish_load(&mut to).unwrap();
                // A commit would lose rows or a second load that follow the end of the load.
                with_row(1 << 50, &Row::new(1 << 50, 9), |row| txn.insert(&table, row)).unwrap();
            }
            if prepares {
                assert!(txn.prepare(crate::base::Xid::new(1, b"x", b"").unwrap()).is_err());
                txn.rollback().unwrap();
            } else {
                assert!(matches!(txn.commit(), Err(Error::RolledBack(_))));
            }
            assert!(is_empty(&db) && db.table_names() == ["t"]);
            drop(to);
            // The table is no longer untouched, so the next load needs a new table.
            table = db.truncate_table("t").unwrap();
        }
    }
}

#[test]
fn calls_with_a_handle_from_before_a_load_reach_the_table() {
    let disk = SimDisk::new();
    let db = open(&disk);
    let table = db.create_table(&spec("t")).unwrap();
    let mut txn = db.begin();
    load_rows(&mut txn, &table, &rows(900, ascending)).unwrap();
    txn.commit().unwrap();
    assert_eq!(db.check_table(&table, true).unwrap().rows, 900);
    db.set_auto_increment(&table, 9000).unwrap();
    drop((txn, table, db));
    let db = open(&disk);
    assert_eq!(db.table("t").unwrap().auto_increment(), 9000);
}

#[test]
fn the_rows_of_a_load_count_in_a_deadlock() {
    let db = open(&SimDisk::new());
    let (t, other_table) = (db.create_table(&spec("t")).unwrap(), db.create_table(&spec("o")).unwrap());
    let (mut txn, mut other) = (db.begin(), db.begin());
    with_row(1, &Row::new(1, 5), |row| other.insert(&other_table, row)).unwrap();
    load_rows(&mut txn, &t, &rows(900, ascending)).unwrap();
    let victim = std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let mut row = Vec::new();
            txn.get(&other_table, &1u64.to_be_bytes(), Read::Shared, &mut row).map(drop)
        });
        // The transaction with less work is the victim, regardless of which one waits first.
        let other_gets = with_row(5, &Row::new(5, 5), |row| other.insert(&t, row));
        if other_gets.is_err() {
            other.rollback().unwrap();
        }
        (waits.join().unwrap(), other_gets)
    });
    assert!(matches!(victim, (Ok(()), Err(Error::Deadlock))), "{victim:?}");
}

/// An alteration that only sets the table's mark.
fn marking(table: &Arc<Table>, more: &[AlteredIndex]) -> Alteration {
    let kept = table.indexes().iter().enumerate();
    let kept = kept.map(|(no, index)| AlteredIndex { name: index.name.clone(), from: IndexFrom::Kept(no) });
    Alteration {
        mark: vec![1],
        ..Alteration::of_indexes(Arc::clone(table), kept.chain(more.iter().cloned()).collect())
    }
}

/// Builds an index on the numbers, and adds the index to the table.
fn add_index(db: &Db, txn: &mut Transaction, table: &Arc<Table>, meanwhile: impl FnOnce()) -> Result<()> {
    let of_row = &mut |_: &[u8], stored: &[u8], entries: &mut BuiltEntries| {
        entries.add(1, &stored[..8], b"", true);
        Ok(())
    };
    let spec = IndexSpec {
        name: "n2".into(),
        unique: true,
        max_key_bytes: 8,
        row_format: RowFormatVersion::opaque(),
    };
    let mut build = txn.begin_build(table, &[spec], false)?;
    meanwhile();
    txn.run_build(&mut build, of_row, &|_, _| ())?;
    txn.finish_build(&mut build, of_row)?;
    let new = AlteredIndex { name: "n2".into(), from: IndexFrom::Built(1) };
    db.alter_tables(&[Alteration { built: build.indexes(), ..marking(table, &[new]) }])?;
    txn.commit()
}

#[test]
fn an_index_that_is_built_beside_a_load_has_its_rows() {
    let db = open(&SimDisk::new());
    let table = db.create_table(&spec("t")).unwrap();
    let (mut txn, mut other) = (db.begin(), db.begin());
    other.set_lock_wait(0);
    // During the build, no load begins: the rows are inserted.
    let all = rows(900, mixed);
    add_index(&db, &mut txn, &table, || {
        load_rows(&mut other, &table, &all).unwrap();
        other.commit().unwrap();
    })
    .unwrap();
    let table = db.table("t").unwrap();
    assert_eq!((status(&db, "loads"), table.indexes().len()), (0, 4));
    let (mut cursor, mut entries) = (db.begin().cursor(&table, 3, Read::Consistent).unwrap(), 0);
    let mut more = cursor.seek(SeekMode::First, b"").unwrap();
    while more {
        entries += 1;
        more = cursor.next().unwrap();
    }
    assert_eq!(entries, 900);
    // While a load is in progress, no build and no change of the definition begins. The load would
    // replace the table, and their work would be lost.
    let table = db.create_table(&spec("u")).unwrap();
    load_rows(&mut txn, &table, &all).unwrap();
    let built = add_index(&db, &mut other, &table, || ());
    assert!(matches!(built, Err(Error::LockTimeout)), "{built:?}");
    let altered = db.alter_tables(&[marking(&table, &[])]);
    assert!(matches!(altered, Err(Error::Unsupported { .. })), "{altered:?}");
    txn.commit().unwrap();
    let built = add_index(&db, &mut other, &table, || ());
    assert!(matches!(built, Err(Error::NoSuchTable(_))), "{built:?}");
    add_index(&db, &mut other, &db.table("u").unwrap(), || ()).unwrap();
    assert_eq!(db.begin().count(&db.table("u").unwrap()).unwrap(), Some(900));
}

#[test]
fn m2_an_index_that_is_younger_than_a_load_is_refused_to_snapshots_that_are_older_than_both() {
    let db = open(&SimDisk::new());
    let table = db.create_table(&spec("t")).unwrap();
    let (mut old, mut txn) = (db.begin(), db.begin());
    old.take_snapshot().unwrap();
    let table = txn.disable_indexes(&table, &[1]).unwrap();
    load_rows(&mut txn, &table, &rows(900, mixed)).unwrap();
    txn.commit().unwrap();
    let table = db.table("t").unwrap();
    assert!(table.is_disabled(1) && status(&db, "loads") == 1, "a load leaves keys disabled");
    let entries_of = &mut |_: &[u8], stored: &[u8], entries: &mut Vec<ExpectedEntry>| {
        let number = u64::from_le_bytes(stored[..8].try_into().unwrap());
        let mut key = Row::new(number, 0).name;
        key.push(0);
        entries.push(ExpectedEntry { index_no: 1, key, payload: b"p".to_vec() });
        Ok(())
    };
    txn.enable_indexes(&table, entries_of).unwrap();
    txn.commit().unwrap();
    add_index(&db, &mut txn, &db.table("t").unwrap(), || ()).unwrap();
    let table = db.table("t").unwrap();
    for index_no in [1, 3] {
        let read = old.cursor(&table, index_no, Read::Consistent);
        assert!(matches!(read, Err(Error::TableChanged(_))), "index {index_no}: {read:?}");
    }
    for index_no in [0, 2] {
        let mut cursor = old.cursor(&table, index_no, Read::Consistent).unwrap();
        assert!(!cursor.seek(SeekMode::First, b"").unwrap(), "the snapshot sees the empty table");
    }
    assert_eq!(db.check_table(&table, true).unwrap().rows, 900);
}

#[test]
fn a_load_that_is_given_up_is_not_committed_for_want_of_an_end() {
    let db = open(&SimDisk::new());
    let table = db.create_table(&spec("t")).unwrap();
    let mut txn = db.begin();
    for prepares in [false, true] {
        let mut to = txn.begin_load_to_commit(&table).unwrap().unwrap();
        rows(5, mixed).iter().for_each(|(key, row)| load(&mut txn, &mut to, *key, row).unwrap());
        drop(to);
        if prepares {
            assert!(txn.prepare(crate::base::Xid::new(1, b"x", b"").unwrap()).is_err());
            txn.rollback().unwrap();
        } else {
            assert!(matches!(txn.commit(), Err(Error::RolledBack(_))));
        }
        assert_eq!(db.begin().count(&table).unwrap(), Some(0));
    }
    load_rows(&mut txn, &table, &rows(5, mixed)).unwrap();
    txn.commit().unwrap();
    assert_eq!(db.begin().count(&table).unwrap(), Some(5));
}

#[test]
fn numbers_of_a_statement_that_has_waited_for_a_load_follow_each_other() {
    let db = open(&SimDisk::new());
    let table = db.create_table(&spec("t")).unwrap();
    let (mut txn, mut bulk, mut other) = (db.begin(), db.begin(), db.begin());
    other.set_lock_wait(0);
    let numbers = crate::table::Numbers {
        stride: crate::table::Stride { increment: 1, offset: 1 },
        largest: u64::MAX,
        count: 5,
    };
    load_rows(&mut txn, &table, &rows(900, ascending)).unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| bulk.reserve_numbers(&table, &numbers, true).map(|_| ()));
        while status(&db, "lock_waits_current") == 0 {
            std::thread::yield_now();
        }
        txn.commit().unwrap();
        waits.join().unwrap().unwrap();
    });
    // Through both handles, other transactions reach the counter that the statement has locked.
    for handle in [&table, &db.table("t").unwrap()] {
        let taken = other.reserve_numbers(handle, &numbers, false);
        assert!(matches!(taken, Err(Error::LockTimeout)), "{taken:?}");
    }
    bulk.commit().unwrap();
    other.reserve_numbers(&table, &numbers, false).unwrap();
}

#[test]
fn a_second_load_of_a_table_in_a_transaction_is_not_committed() {
    let db = open(&SimDisk::new());
    let table = db.create_table(&spec("t")).unwrap();
    let mut txn = db.begin();
    load_rows(&mut txn, &table, &rows(900, ascending)).unwrap();
    let more = rows(1800, ascending).split_off(900);
    load_rows(&mut txn, &table, &more).unwrap();
    assert!(matches!(txn.commit(), Err(Error::RolledBack(_))));
    assert_eq!((db.begin().count(&table).unwrap(), db.table_names().len()), (Some(0), 1));
    assert!(matches!(db.create_table(&spec("#load/5/7")), Err(Error::Unsupported { .. })));
}

#[test]
fn loads_that_have_only_kept_rows_leave_others_memory_to_sort() {
    let db = open(&SimDisk::new());
    let begun: Vec<_> = (0..40)
        .map(|no| {
            let table = db.create_table(&spec(&format!("t{no}"))).unwrap();
            let mut txn = db.begin();
            let mut to = txn.begin_load_to_commit(&table).unwrap().unwrap();
            let row = &rows(1, ascending)[0];
            load(&mut txn, &mut to, row.0, &row.1).unwrap();
            (txn, to, table)
        })
        .collect();
    let table = db.create_table(&spec("other")).unwrap();
    add_index(&db, &mut db.begin(), &table, || ()).unwrap();
    for (mut txn, mut to, table) in begun {
        txn.finish_load(&mut to).unwrap();
        txn.commit().unwrap();
        assert_eq!(db.begin().count(&table).unwrap(), Some(1));
    }
}

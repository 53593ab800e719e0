//! Filters of keys (decision 42), with random row keys, a unique index of random numbers, and a
//! pool that holds only a part of the pages. An existing key is always found.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::planted::plant;
use cheetah::testing::base::{reach, Config, Error};
use cheetah::testing::db::Db;
use cheetah_io::sim::SimDisk;
use cheetah_io::Rng;
use std::collections::BTreeSet;
use std::panic::catch_unwind;
use support::*;

const STEPS: u64 = 6000;
/// The number of keys. It is small, so that many keys are used repeatedly.
const KEYS: u64 = 4000;
const TRANSACTION_STEPS: u64 = 20;

/// Inserts, changes and deletes rows, and compares the table with a model. Some operations are
/// refused, and some transactions are rolled back.
fn run(seed: u64) {
    let mut rng = Rng::new(seed);
    let disk = SimDisk::new();
    let config = || Config { buffer_pool_bytes: 192 << 10, ..Config::tiny() };
    let db = Db::open(env(&disk), config()).unwrap();
    let table = db.create_table(&spec("t")).unwrap();
    let (mut rows, mut numbers, mut refused) = (Rows::new(), BTreeSet::new(), [0, 0]);
    let mut txn = db.begin();
    let mut committed = (rows.clone(), numbers.clone());
    for step in 0..STEPS {
        let (key, row) = (rng.below(KEYS), Row::new(rng.below(KEYS), rng.below(60) as usize));
        if rng.below(4) == 0 {
            let Some((&key, _)) = rows.range(key..).next() else { continue };
            let old = rows.remove(&key).unwrap();
            if rng.chance(0.5) {
                delete(&mut txn, &table, key, &old).unwrap();
                numbers.remove(&old.number);
                continue;
            }
            let result = update(&mut txn, &table, key, &old, key, &row);
            if row.number != old.number && numbers.contains(&row.number) {
                assert!(matches!(result, Err(Error::DuplicateKey { index_no: 2, .. })), "{result:?}");
                rows.insert(key, old);
            } else {
                result.unwrap();
                numbers.remove(&old.number);
                numbers.insert(row.number);
                rows.insert(key, row);
            }
        } else {
            let expected = match (rows.contains_key(&key), numbers.contains(&row.number)) {
                (true, _) => Some(0),
                (false, true) => Some(2),
                (false, false) => None,
            };
            match (insert(&mut txn, &table, key, &row), expected) {
                (Ok(()), None) => {
                    numbers.insert(row.number);
                    rows.insert(key, row);
                }
                (Err(Error::DuplicateKey { index_no, .. }), Some(expected)) if index_no == expected => {
                    refused[usize::from(index_no > 0)] += 1;
                }
                (result, expected) => panic!("step {step}, key {key}: {result:?}, not {expected:?}"),
            }
        }
        if step % TRANSACTION_STEPS == 0 {
            if rng.below(8) == 0 {
                txn.rollback().unwrap();
                (rows, numbers) = committed.clone();
            } else {
                txn.commit().unwrap();
                committed = (rows.clone(), numbers.clone());
            }
            txn = db.begin();
            if rng.below(40) == 0 {
                db.checkpoint().unwrap();
            }
        }
    }
    txn.commit().unwrap();
    assert!(refused.iter().all(|&count| count > 100), "{refused:?}");
    let all = all_rows(&mut db.begin(), &table).unwrap();
    assert_eq!(all, rows);
    assert_eq!(check(&db, &table).unwrap(), Ok(rows.len() as u64));
    db.close().unwrap();
}

fn caught(name: &'static str) {
    let bug = plant(name);
    let found = (0..60).any(|seed| catch_unwind(|| run(seed)).is_err());
    assert!(found, "'{name}' was reached {} times, but not caught", bug.reached_count());
}

#[test]
fn a_key_that_is_there_is_always_found() {
    (0..3).for_each(run);
    assert!(reach::count("key that a filter lacks") > 300, "{}", reach::count("key that a filter lacks"));
    assert!(reach::count("unique key that a filter lacks") > 50);
}

#[test]
fn q1_a_filter_without_one_of_the_keys_is_caught() {
    caught("filters: forget a key");
}

#[test]
fn q1_a_filter_of_another_image_is_caught() {
    caught("filters: take that of another image");
}

#[test]
fn q1_a_unique_key_looked_for_in_one_leaf_of_two_is_caught() {
    caught("filters: ask one leaf of two");
}

#[test]
fn q2_a_unique_key_that_waits_and_is_not_looked_for_is_caught() {
    caught("filters: look past what waits");
}

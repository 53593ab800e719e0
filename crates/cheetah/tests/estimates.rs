//! Tests that the estimated size of a table agrees with the table's size after a load.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::{Config, Error};
use cheetah::testing::db::Db;
use cheetah::testing::format::image::{Codec, Compression};
use cheetah::testing::table::{Estimate, NewRow, SecondaryEntry, TableSpec, Weight};
use cheetah_io::sim::SimDisk;
use support::*;

const ZSTD: Compression = Compression { codec: Codec::Zstd, level: 1 };

/// The shape of rows of words.
#[derive(Clone, Copy)]
struct Texts {
    bytes: usize,
    /// Whether all rows share the same words, so that a dictionary pays off. Few words repeat
    /// within a row.
    are_alike: bool,
}

const fn words(bytes: usize) -> Texts {
    Texts { bytes, are_alike: false }
}

/// A row of words. Some rows compress better than others.
fn row(no: u64, texts: Texts) -> Row {
    let mut row = Row::new(no, 0);
    let text_bytes = texts.bytes;
    let mut seed = no;
    while row.text.len() < text_bytes {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let word = match texts.are_alike {
            true => ((seed >> 33) % 2000).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            false => (seed >> 33) % (7 + no * 631 % 1000),
        };
        row.text.extend_from_slice(format!("{word:x} ").as_bytes());
    }
    row
}

fn normal() -> Config {
    Config { buffer_pool_bytes: 32 << 20, ..Config::default() }
}

/// The bytes of the images of a table after a load of these rows in this format.
fn loaded_bytes(count: u64, texts: Texts, compression: Compression) -> u64 {
    let db = Db::open(env(&SimDisk::new()), normal()).unwrap();
    let table = db.create_table(&TableSpec { compression, ..spec("t") }).unwrap();
    let mut txn = db.begin();
    let mut load = txn.begin_load(&table).unwrap().unwrap();
    for no in 0..count {
        let row = row(no, texts);
        let [name, number] = row.keys();
        let secondary = [
            SecondaryEntry { index_no: 1, key: &name, payload: b"p", check_unique: true },
            SecondaryEntry { index_no: 2, key: &number, payload: b"", check_unique: true },
        ];
        txn.load(&mut load, &NewRow { key: &no.to_be_bytes(), row: &row.stored(), secondary: &secondary })
            .unwrap();
    }
    txn.finish_load(&mut load).unwrap();
    txn.commit().unwrap();
    db.checkpoint().unwrap();
    let sizes = db.sizes().into_iter().find(|table| table.name == "t").unwrap();
    sizes.indexes.iter().map(|(_, sizes)| sizes.stats.stored_bytes).sum()
}

/// Adds runs of rows in the order of each index. The runs start at positions all over the index.
fn sample(estimate: &mut Estimate, count: u64, texts: Texts) {
    let rows: Vec<_> = (0..count).map(|no| (no, row(no, texts))).collect();
    for index_no in 0..3 {
        let mut sorted: Vec<_> = rows.iter().collect();
        if index_no > 0 {
            sorted.sort_by_key(|(no, row)| (row.keys()[index_no - 1].clone(), *no));
        }
        let runs = u64::from(estimate.runs_wanted());
        for run in 0..runs {
            // Rows repeat after 1000, but the positions must not repeat.
            let start = ((count * run / runs + run * 37 % 1000) % count) as usize;
            estimate.start_run(index_no, run == 0).unwrap();
            let mut wants_more = true;
            for (no, row) in &sorted[start..] {
                wants_more = add(estimate, index_no, *no, row);
                if !wants_more {
                    break;
                }
            }
            if wants_more {
                estimate.reach_end(index_no).unwrap();
            }
            if run == 0 && wants_more {
                break;
            }
        }
    }
}

fn add(estimate: &mut Estimate, index_no: usize, no: u64, row: &Row) -> bool {
    let key = no.to_be_bytes();
    let entry = |index: usize| row.keys()[index - 1].clone();
    match index_no {
        0 => estimate.add_row(&key, &row.stored()).unwrap(),
        1 => estimate.add_entry(1, &entry(1), &key, b"p").unwrap(),
        _ => estimate.add_entry(2, &entry(2), &key, b"").unwrap(),
    }
}

fn weigh(count: u64, texts: Texts) -> Vec<Weight> {
    let db = Db::open(env(&SimDisk::new()), normal()).unwrap();
    let mut estimate = db.estimate(&spec("t")).unwrap();
    sample(&mut estimate, count, texts);
    estimate.weigh(count).unwrap()
}

fn check(count: u64, texts: Texts, tolerance: f64) -> Weight {
    let weights = weigh(count, texts);
    for compression in [ZSTD, Compression { codec: Codec::None, level: 0 }] {
        let weight = weights.iter().find(|weight| weight.compression == compression).unwrap();
        let real = loaded_bytes(count, texts, compression) as f64;
        let wrong = (weight.bytes as f64 - real).abs() / real;
        assert!(wrong < tolerance, "{weight:?}, but the table has {real} bytes");
    }
    weights.into_iter().find(|weight| weight.compression == ZSTD).unwrap()
}

#[test]
fn a_sample_tells_what_a_large_table_weighs() {
    let weight = check(60_000, words(150), 0.05);
    assert_eq!(weight.rows, 60_000);
    assert!(weight.sampled_rows < 10_000, "{weight:?}");
    assert!(weight.error.unwrap() > 0.0 && weight.error.unwrap() < 0.2, "{weight:?}");
}

#[test]
fn large_values_are_weighed_with_their_rows() {
    check(600, words(40_000), 0.1);
}

/// Without the dictionary that a load makes, the estimates would be a third too high.
#[test]
fn a_table_whose_texts_are_alike_is_weighed_with_its_dictionary() {
    check(8_000, Texts { bytes: 600, are_alike: true }, 0.08);
    check(400, Texts { bytes: 30_000, are_alike: true }, 0.08);
}

#[test]
fn a_table_that_is_all_in_the_sample_is_weighed_without_error() {
    let weight = check(300, words(100), 0.02);
    assert_eq!((weight.rows, weight.sampled_rows, weight.error), (300, 300, Some(0.0)));
}

#[test]
fn denser_formats_come_later_and_weigh_less() {
    let weights = weigh(20_000, words(150));
    let bytes: Vec<_> = weights.iter().map(|weight| weight.bytes).collect();
    assert_eq!(weights[0].compression.codec, Codec::None);
    assert!(bytes[0] > bytes[1] && bytes[1] > bytes[2] && bytes[2] >= bytes[5], "{bytes:?}");
    let sizes: Vec<_> = weights.iter().map(|weight| weight.key_block_size).collect();
    assert_eq!(sizes, [None, None, Some(8), Some(4), Some(2), Some(1)]);
}

#[test]
fn nothing_is_guessed_of_an_empty_table() {
    let db = Db::open(env(&SimDisk::new()), normal()).unwrap();
    let mut estimate = db.estimate(&spec("t")).unwrap();
    for index_no in 0..3 {
        estimate.start_run(index_no, true).unwrap();
        estimate.reach_end(index_no).unwrap();
    }
    let weights = estimate.weigh(7).unwrap();
    assert!(weights.iter().all(|weight| weight.bytes == 0 && weight.rows == 0), "{weights:?}");
}

#[test]
fn rows_that_the_table_could_not_have_are_refused_and_keys_out_of_order_end_a_run() {
    let db = Db::open(env(&SimDisk::new()), normal()).unwrap();
    let mut estimate = db.estimate(&spec("t")).unwrap();
    estimate.start_run(0, true).unwrap();
    let stored = row(1, words(10)).stored();
    assert!(estimate.add_row(&2u64.to_be_bytes(), &stored).unwrap());
    assert!(!estimate.add_row(&1u64.to_be_bytes(), &stored).unwrap());
    assert!(matches!(estimate.add_row(&[7; 9], &stored), Err(Error::Limit { .. })));
    assert!(matches!(estimate.add_entry(1, &[7; 99], &[0; 8], b""), Err(Error::Limit { .. })));
    assert!(matches!(estimate.add_entry(3, b"", b"", b""), Err(Error::Limit { .. })));
}

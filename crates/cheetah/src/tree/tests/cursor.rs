//! Compares cursors with the model, also while their owner changes the tree.

use super::fixture::{payload, Fixture, Keys, Model};
use crate::tree::{Cursor, Offered, SeekMode};
use cheetah_io::rng::Rng;
use std::ops::Bound::{Excluded, Unbounded};

const MODES: [SeekMode; 6] =
    [SeekMode::AtLeast, SeekMode::After, SeekMode::AtMost, SeekMode::Before, SeekMode::First, SeekMode::Last];

/// The record that a seek must find.
fn expected<'m>(model: &'m Model, mode: SeekMode, p: &[u8]) -> Option<(&'m Vec<u8>, &'m Vec<u8>)> {
    match mode {
        SeekMode::First => model.iter().next(),
        SeekMode::Last => model.iter().next_back(),
        SeekMode::AtLeast => model.iter().find(|(key, _)| key.as_slice() >= p),
        SeekMode::After => model.iter().find(|(key, _)| key.as_slice() > p && !key.starts_with(p)),
        SeekMode::AtMost => model.iter().rfind(|(key, _)| key.as_slice() <= p || key.starts_with(p)),
        SeekMode::Before => model.iter().rfind(|(key, _)| key.as_slice() < p),
    }
}

fn assert_at(cursor: &Cursor, found: bool, expected: Option<(&Vec<u8>, &Vec<u8>)>) {
    assert_eq!(found, cursor.valid());
    let at = cursor.record().map(|record| (cursor.key().to_vec(), record.payload.to_vec()));
    assert_eq!(at, expected.map(|(key, payload)| (key.clone(), payload.clone())));
}

fn filled(keys: Keys, seed: u64, records: usize) -> (Fixture, Rng) {
    let mut rng = Rng::new(seed);
    let mut fixture = Fixture::tiny();
    for _ in 0..records {
        let key = keys.draw(&mut rng);
        fixture.insert(&key, &payload(&mut rng));
    }
    (fixture, rng)
}

#[test]
fn every_seek_mode_finds_what_the_model_finds() {
    for keys in Keys::ALL {
        let (mut fixture, mut rng) = filled(keys, 1, 1500);
        for key in fixture.model.keys().cloned().collect::<Vec<_>>() {
            if rng.below(3) != 0 {
                fixture.remove(&key);
            }
        }
        let mut cursor = fixture.tree.cursor();
        for _ in 0..800 {
            let mut p = fixture.some_key(keys, &mut rng);
            p.truncate(rng.below(p.len() as u64 + 2) as usize);
            for mode in MODES {
                let found = cursor.seek(mode, &p).unwrap();
                assert_at(&cursor, found, expected(&fixture.model, mode, &p));
            }
        }
    }
}

#[test]
fn walks_go_both_ways_and_turn_around_at_the_ends() {
    let (fixture, _) = filled(Keys::SharedPrefix, 2, 3000);
    let mut cursor = fixture.tree.cursor();
    assert!(!cursor.next().unwrap(), "a cursor that was never placed has no position");
    for _ in 0..2 {
        let mut found = cursor.seek(SeekMode::First, b"").unwrap();
        for entry in &fixture.model {
            assert_at(&cursor, found, Some(entry));
            found = cursor.next().unwrap();
        }
        assert!(!found && !cursor.next().unwrap());
        found = cursor.prev().unwrap();
        for entry in fixture.model.iter().rev() {
            assert_at(&cursor, found, Some(entry));
            found = cursor.prev().unwrap();
        }
        assert!(!found && !cursor.prev().unwrap());
        assert!(cursor.next().unwrap());
        assert_eq!(cursor.key(), fixture.model.keys().next().unwrap());
    }
}

#[test]
fn a_run_takes_what_it_wants_of_the_rest_of_a_leaf() {
    for keys in Keys::ALL {
        let (fixture, mut rng) = filled(keys, 4, 1500);
        let mut cursor = fixture.tree.cursor();
        cursor.run_on(|_, _, _| panic!("a cursor that was never placed has no position"));
        let mut entries = fixture.model.iter();
        let mut found = cursor.seek(SeekMode::First, b"").unwrap();
        let mut longest = 0;
        while found {
            assert_at(&cursor, true, entries.next());
            let (mut passed, mut taken) = (0, 0);
            cursor.run_on(|prefix, suffix, record| {
                let expected = entries.clone().nth(taken + passed).unwrap();
                assert_eq!(
                    ([prefix, suffix].concat().as_slice(), record.payload),
                    (&expected.0[..], &expected.1[..])
                );
                let step = [Offered::Take, Offered::Take, Offered::Take, Offered::Pass, Offered::Stop]
                    [rng.below(5) as usize];
                match step {
                    Offered::Take => (taken, passed) = (taken + passed + 1, 0),
                    Offered::Pass => passed += 1,
                    Offered::Stop => {}
                }
                step
            });
            longest = longest.max(taken);
            if taken > 0 {
                assert_at(&cursor, true, entries.nth(taken - 1));
            }
            found = cursor.next().unwrap();
        }
        assert_eq!(entries.next(), None);
        assert!(longest > 3);
    }
}

#[test]
fn a_cursor_sees_its_owners_changes_and_no_record_twice() {
    for keys in Keys::ALL {
        let (mut fixture, mut rng) = filled(keys, 3, 1200);
        let mut cursor = fixture.tree.cursor();
        for _ in 0..60 {
            let start = fixture.some_key(keys, &mut rng);
            let mut found = cursor.seek(SeekMode::AtLeast, &start).unwrap();
            for _ in 0..60 {
                if !found {
                    break;
                }
                let here = cursor.key().to_vec();
                change_nearby(&mut fixture, keys, &here, &mut rng);
                if rng.below(3) == 0 {
                    found = cursor.prev().unwrap();
                    assert_at(&cursor, found, fixture.model.range(..here).next_back());
                } else {
                    found = cursor.next().unwrap();
                    assert_at(&cursor, found, fixture.model.range((Excluded(here), Unbounded)).next());
                }
            }
        }
        fixture.check();
    }
}

/// Changes the current record, or several records, so that leaves split and merge.
fn change_nearby(fixture: &mut Fixture, keys: Keys, here: &[u8], rng: &mut Rng) {
    match rng.below(8) {
        0 => fixture.remove(here),
        1 => fixture.replace(here, &payload(rng)),
        2 => {
            let ahead: Vec<_> =
                fixture.model.range(here.to_vec()..).take(20).map(|(key, _)| key.clone()).collect();
            ahead.iter().for_each(|key| fixture.remove(key));
        }
        3 => {
            let back: Vec<_> =
                fixture.model.range(..here.to_vec()).rev().take(20).map(|(key, _)| key.clone()).collect();
            back.iter().for_each(|key| fixture.remove(key));
        }
        4 | 5 => {
            for _ in 0..15 {
                let key = keys.draw(rng);
                fixture.insert(&key, &payload(rng));
            }
        }
        6 => {
            let mut key = here.to_vec();
            key.push(rng.below(256) as u8);
            if key.len() <= super::fixture::KEY_BYTES_MAX {
                fixture.insert(&key, &payload(rng));
            }
        }
        _ => {}
    }
}

//! Compares a tree that one thread changes with the model.

use super::fixture::{assert_reached, payload, Fixture, Keys};
use crate::base::planted::plant;
use cheetah_io::rng::Rng;
use std::collections::BTreeMap;

const STEPS: usize = 12_000;

/// Makes random changes in phases that grow, shrink and finally empty the tree.
fn run(keys: Keys, seed: u64) {
    let mut rng = Rng::new(seed);
    let mut fixture = Fixture::tiny();
    for (phase, inserts_of_ten) in [9, 5, 2, 7, 1].into_iter().enumerate() {
        for _ in 0..STEPS / 5 {
            fixture.step(keys, inserts_of_ten, &mut rng);
        }
        println!("{keys:?} seed {seed} phase {phase}: {} records", fixture.model.len());
        fixture.check();
    }
    for key in fixture.model.keys().cloned().collect::<Vec<_>>() {
        fixture.remove(&key);
    }
    fixture.check();
    assert_eq!(fixture.tree.depth().unwrap(), 1, "an empty tree is one page again");
    assert_eq!(fixture.pool.tree_bytes(fixture.tree.def().id).pages, 1);
}

#[test]
fn random_changes_agree_with_the_model() {
    for keys in Keys::ALL {
        for seed in 0..3 {
            run(keys, seed);
        }
    }
    assert_reached(&[
        "split_leaf",
        "split_inner",
        "split_root",
        "merge_leaf",
        "merge_inner",
        "collapse_root",
        "record out of an image",
        "change buffered",
    ]);
}

/// Reuses one cursor in a tree that is only partly in memory.
#[test]
fn points_are_found_wherever_their_leaves_are() {
    for keys in Keys::ALL {
        let mut rng = Rng::new(7);
        let mut fixture = Fixture::tiny();
        let mut cursor = fixture.tree.cursor();
        for _ in 0..STEPS {
            fixture.insert(&keys.draw(&mut rng), &[7; 60]);
        }
        for step in 0..STEPS {
            let key = fixture.some_key(keys, &mut rng);
            match step % 3 {
                0 => fixture.insert(&keys.draw(&mut rng), b"0123456789"),
                1 => fixture.seek_point(&mut cursor, &key, rng.chance(0.5)),
                _ => fixture.get(&key),
            }
            if rng.chance(0.1) {
                cursor.release();
            }
        }
        let status: BTreeMap<_, _> = fixture.pool.status().into_iter().collect();
        assert!(status["pool_looks"] > 100, "{keys:?}: {}", status["pool_looks"]);
        assert!(status["pool_image_hits"] > 100, "{keys:?}: {}", status["pool_image_hits"]);
        let reads = status["pool_reads"] + status["pool_image_hits"];
        assert!(reads > status["pool_looks"], "a page that is read again receives a frame");
    }
}

/// Breaks I2 of `tree/look.rs`: a record of an image may be used only if the page has no frame.
#[test]
fn looking_into_images_of_pages_in_memory_is_found() {
    let _bug = plant("pool: look into the image of a page in memory");
    let mut rng = Rng::new(1);
    let mut fixture = Fixture::tiny();
    let mut is_wrong = |fixture: &mut Fixture| {
        let key = fixture.some_key(Keys::Short, &mut rng);
        fixture.replace(&key, &payload(&mut rng));
        fixture.insert(&Keys::Short.draw(&mut rng), b"0123456789");
        fixture.found(&key).as_ref() != fixture.model.get(&key)
    };
    assert!((0..STEPS).any(|_| is_wrong(&mut fixture)));
}

/// The average used share of a page. The share stays below 1: a rightmost page cannot omit a common
/// prefix, and gains room when it receives its upper fence.
fn fill(fixture: &Fixture) -> f64 {
    let report = fixture.tree.check(&mut |_, _| {}).unwrap();
    report.used_bytes as f64 / report.page_bytes as f64
}

#[test]
fn keys_in_ascending_order_leave_full_pages() {
    let mut fixture = Fixture::tiny();
    for number in 0..5000_u32 {
        fixture.insert(&number.to_be_bytes(), b"0123456789");
    }
    fixture.check();
    assert!(fill(&fixture) > 0.85, "pages are {:.2} full", fill(&fixture));
}

#[test]
fn keys_in_descending_order_leave_full_pages() {
    let mut fixture = Fixture::tiny();
    for number in (0..5000_u32).rev() {
        fixture.insert(&number.to_be_bytes(), b"0123456789");
    }
    fixture.check();
    assert!(fill(&fixture) > 0.85, "pages are {:.2} full", fill(&fixture));
}

#[test]
fn a_run_in_the_middle_of_the_tree_leaves_full_leaves() {
    let mut fixture = Fixture::tiny();
    for user in [1_u32, 9] {
        for number in 0..2000_u32 {
            fixture.insert(&[user.to_be_bytes(), number.to_be_bytes()].concat(), b"0123456789");
        }
    }
    for number in 0..4000_u32 {
        fixture.insert(&[5_u32.to_be_bytes(), number.to_be_bytes()].concat(), b"0123456789");
    }
    fixture.check();
    assert!(fill(&fixture) > 0.78, "pages are {:.2} full", fill(&fixture));
}

#[test]
fn emptying_from_either_end_collapses_the_tree() {
    for reverse in [false, true] {
        let mut fixture = Fixture::tiny();
        for number in 0..3000_u32 {
            fixture.insert(&number.to_be_bytes(), b"0123456789");
        }
        assert!(fixture.tree.depth().unwrap() >= 3);
        let mut keys: Vec<_> = fixture.model.keys().cloned().collect();
        if reverse {
            keys.reverse();
        }
        for key in keys {
            fixture.remove(&key);
        }
        fixture.check();
        assert_eq!(fixture.tree.depth().unwrap(), 1);
    }
}

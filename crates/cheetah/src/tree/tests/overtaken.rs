//! Tests of searches and prepared paths whose leaf is split or merged before they reach it.

use super::fixture::{assert_reached, enter, Fixture};
use crate::base::planted::plant;
use crate::base::Result;
use crate::format::page::RecordRef;
use crate::pool::PageRef;
use crate::tree::descend::{Target, Trail};
use crate::tree::modify::Write;
use crate::tree::split::Split;
use crate::tree::{Changed, Path};

fn key(number: u32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// A tree of two levels with the keys 0, 10, 20 ..
fn two_levels() -> Fixture {
    let mut fixture = Fixture::tiny();
    for number in 0..100 {
        fixture.insert(&key(number * 10), b"0123456789");
    }
    assert_eq!(fixture.tree.depth().unwrap(), 2);
    fixture
}

/// A trail that changes the tree after a search has read the root and before the search latches a
/// child.
struct Meddler<'a> {
    fixture: &'a mut Fixture,
    meddle: Option<fn(&mut Fixture)>,
}

impl Trail for Meddler<'_> {
    fn restart(&mut self) -> Option<PageRef> {
        None
    }
    fn push(&mut self, _: PageRef) {
        if let Some(meddle) = self.meddle.take() {
            meddle(self.fixture);
        }
    }
}

/// Asserts that a search finds `target` although `meddle` runs during the search.
fn search_through(meddle: fn(&mut Fixture), target: u32) {
    let mut fixture = two_levels();
    let tree = fixture.tree.clone();
    let mut meddler = Meddler { fixture: &mut fixture, meddle: Some(meddle) };
    let found = tree
        .with_page(Target::Key(&key(target)), 0, &mut meddler, |_, leaf| leaf.search(&key(target)).is_ok());
    assert!(found.unwrap());
    fixture.check();
}

/// Fills the leaf of key 500 with smaller keys, so that the upper part of the leaf moves to new
/// pages.
fn split(fixture: &mut Fixture) {
    for number in (401..600).filter(|number| number % 10 != 0) {
        fixture.insert(&key(number), b"0123456789");
    }
}

/// Removes all keys between 0 and 990 except 500.
fn merge(fixture: &mut Fixture) {
    for number in (1..99).filter(|number| *number != 50) {
        fixture.remove(&key(number * 10));
    }
}

#[test]
fn a_search_overtaken_by_a_split_moves_right() {
    for target in [450, 500, 550, 590] {
        search_through(split, target);
    }
    assert_reached(&["moved_right"]);
}

#[test]
fn a_search_overtaken_by_a_merge_starts_again() {
    for target in [500, 990] {
        search_through(merge, target);
    }
    assert_reached(&["restart"]);
}

#[test]
fn a_prepared_path_survives_splits_and_merges() {
    for meddle in [split, merge] {
        for target in [455, 505, 555, 595] {
            let mut fixture = two_levels();
            let mut path = Path::default();
            fixture.tree.prepare(&key(target), &mut path).unwrap();
            meddle(&mut fixture);
            fixture.remove(&key(target));
            let mtr = fixture.pool.enter();
            let record = RecordRef::frozen(b"late");
            let changed = fixture.tree.insert(&mtr, &mut path, &key(target), record).unwrap();
            assert_eq!(changed, Changed::Done);
            drop(mtr);
            fixture.model.insert(key(target), b"late".to_vec());
            fixture.check();
        }
    }
}

#[test]
fn a_path_of_another_tree_is_not_used() {
    let mut first = two_levels();
    let mut second = two_levels();
    std::mem::swap(&mut first.path, &mut second.path);
    first.path.tree = crate::base::TreeId(99);
    first.insert(&key(7), b"seven");
    first.check();
}

/// A thread finds a crowded leaf and waits for the structure mutex. Meanwhile others remove all
/// records.
fn insert_into_an_emptied_leaf() -> Result<Changed> {
    let mut fixture = Fixture::tiny();
    let (key, record) = (b"key".as_slice(), RecordRef::frozen(b"payload"));
    let Fixture { tree, path, .. } = &mut fixture;
    tree.prepare(key, path)?;
    let mtr = enter(tree, path, key, Some(record));
    tree.split_and_write(&mtr, path, key, Write::Insert(record), Split::Early)
}

#[test]
fn a_crowded_leaf_that_others_empty_is_not_split() {
    assert!(matches!(insert_into_an_emptied_leaf(), Ok(Changed::Done)));
    let _bug = plant("tree: split what others have emptied");
    assert!(insert_into_an_emptied_leaf().is_err());
}

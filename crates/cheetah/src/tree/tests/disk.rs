//! Tests a tree larger than its pool, with checkpoints between and during changes, and power cuts.

use super::fixture::{assert_reached, Fixture, Keys, Model};
use crate::base::{Config, Result};
use crate::format::page::RecordRef;
use crate::leaves::testing::Database;
use crate::pool::EpochState;
use crate::tree::{Changed, Removed};
use cheetah_io::rng::Rng;
use cheetah_io::sim::{CrashPolicy, Effect, Fault, Op};
use std::io::ErrorKind;

const ROUNDS: usize = 12;
const STEPS_PER_ROUND: u64 = 400;
const CRASHES: u64 = 4;

/// Changes the tree while a checkpoint writes its previous state. Returns the records that the
/// checkpoint must have.
fn checkpoint_under_changes(db: &Database, fixture: &mut Fixture, keys: Keys, rng: &mut Rng) -> Model {
    if rng.below(4) == 0 {
        give_up_checkpoint_under_changes(db, fixture, keys, rng);
    }
    let at_switch = fixture.model.clone();
    let (mut checkpoint, ()) = db.pool.end_epoch(|_| ());
    while checkpoint.write_some(rng.below(12) as usize).unwrap() > 0 {
        for _ in 0..rng.below(10) {
            fixture.step(keys, 6, rng);
        }
        db.upkeep.collect(4096).unwrap();
    }
    checkpoint.commit(&db.map, &EpochState::default()).unwrap();
    at_switch
}

/// Changes the tree while a checkpoint writes a part of the previous state. The checkpoint is
/// abandoned.
fn give_up_checkpoint_under_changes(db: &Database, fixture: &mut Fixture, keys: Keys, rng: &mut Rng) {
    let (mut checkpoint, ()) = db.pool.end_epoch(|_| ());
    for _ in 0..rng.below(6) {
        checkpoint.write_some(rng.below(12) as usize).unwrap();
        for _ in 0..rng.below(10) {
            fixture.step(keys, 6, rng);
        }
    }
}

pub(super) fn run(keys: Keys, seed: u64) {
    println!("{keys:?} seed {seed}");
    let mut rng = Rng::new(seed);
    let mut db = Database::new(&Config::tiny());
    let mut fixture = Fixture::empty(db.leaves.clone());
    for crash in 0..CRASHES {
        let mut committed = checkpoint_under_changes(&db, &mut fixture, keys, &mut rng);
        for round in 0..ROUNDS {
            let inserts_of_ten = [9, 8, 2][round % 3];
            for _ in 0..rng.below(STEPS_PER_ROUND) {
                fixture.step(keys, inserts_of_ten, &mut rng);
            }
            db.pool.clean_step().unwrap();
            db.upkeep.collect(8192).unwrap();
            if rng.below(2) == 0 {
                committed = checkpoint_under_changes(&db, &mut fixture, keys, &mut rng);
            }
        }
        fixture.check();
        let (def, disk) = (*fixture.tree.def(), db.disk.crash(CrashPolicy::Random(0.5), seed + crash));
        drop(fixture);
        db = db.crash(disk);
        fixture = Fixture::open(db.leaves.clone(), def, committed);
        fixture.check();
    }
}

/// Only leaves that ascending keys have filled do not change again. So only these leaves are
/// written early.
#[test]
fn leaves_that_are_left_full_are_written_early_where_a_checkpoint_is_to_come() {
    let written = |early: bool, key_of: fn(u64) -> u64| {
        let db = Database::new(&Config { buffer_pool_bytes: 8 << 20, ..Config::tiny() });
        let mut fixture = Fixture::empty(db.leaves.clone());
        fixture.tree.write_full_leaves_early(early);
        db.pool.trial(fixture.tree.def().id).finish().unwrap();
        for number in 0..1500 {
            fixture.insert(&key_of(number).to_be_bytes(), &[7; 60]);
            if number == 1000 {
                db.pool.trial(fixture.tree.def().id).finish().unwrap();
            }
        }
        db.pool.clean_step().unwrap();
        let bytes = db.pool.tree_bytes(fixture.tree.def().id);
        fixture.check();
        (bytes.stored_by_class.total() * 100).checked_div(bytes.pages).unwrap()
    };
    assert_eq!(written(false, |number| number), 0);
    assert!(written(true, |number| number) > 50);
    assert_eq!(written(true, |number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15)), 0);
}

#[test]
fn a_power_cut_brings_back_the_tree_of_the_last_checkpoint() {
    for keys in Keys::ALL {
        for seed in 0..3 {
            run(keys, seed);
        }
    }
    assert_reached(&[
        "change buffered",
        "buffered entries of two epochs",
        "record seen without its leaf",
        "record looked for among what waits",
    ]);
}

/// Makes one change, whose reads may fail. Changes the model only if the change succeeds.
fn try_step(fixture: &mut Fixture, keys: Keys, rng: &mut Rng) -> Result<()> {
    let (tree, path) = (fixture.tree.clone(), &mut fixture.path);
    let grows = rng.below(2) == 0;
    let key = keys.draw(rng);
    let next = fixture.model.range(key.clone()..).next().map(|(key, _)| key.clone());
    if let (false, Some(next)) = (grows, next) {
        tree.pool().make_room(8)?;
        tree.prepare(&next, path)?;
        let removed = tree.remove(&tree.pool().enter(), path, &next)?;
        fixture.model.remove(&next);
        if removed == (Removed::Gone { small: true }) {
            tree.merge_if_small(path, &next)?;
        }
        return Ok(());
    }
    tree.pool().make_room(8)?;
    tree.prepare(&key, path)?;
    if tree.insert(&tree.pool().enter(), path, &key, RecordRef::frozen(b"payload"))? == Changed::Done {
        fixture.model.insert(key, b"payload".to_vec());
    }
    Ok(())
}

#[test]
fn after_a_failed_read_nothing_has_changed() {
    let mut failures = 0;
    for keys in Keys::ALL {
        let mut rng = Rng::new(7);
        let db = Database::new(&Config::tiny());
        let mut fixture = Fixture::empty(db.leaves.clone());
        for _ in 0..1500 {
            fixture.step(keys, 10, &mut rng);
        }
        for step in 0..3000 {
            if rng.below(4) == 0 {
                fixture.path.release();
                let effect = [Effect::Fail(ErrorKind::Other), Effect::FlipRead(rng.below(600) as usize, 3)];
                let fault = Fault::on(Op::Read).after(rng.below(3)).effect(effect[step % 2]);
                db.disk.inject(fault);
            }
            failures += usize::from(try_step(&mut fixture, keys, &mut rng).is_err());
            db.disk.clear_faults();
        }
        fixture.check();
    }
    assert!(failures > 100, "only {failures} operations failed");
}

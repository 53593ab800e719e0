//! Tests of the rules of pending changes, including planted bugs.

use super::disk;
use super::fixture::{enter, put, Fixture, Keys, Model};
use super::unloaded::{larger_than_memory, scattered, status};
use crate::base::planted::{plant, Planted};
use crate::base::{reach, Config, ErrorKind, PageId, RaisedAtEnd};
use crate::format::page::RecordRef;
use crate::leaves::testing::Database;
use crate::leaves::Expect;
use crate::memory::MemoryUse;
use crate::pool::EpochState;
use crate::tree::Path;
use cheetah_io::rng::Rng;
use cheetah_io::sim::{CrashPolicy, Effect, Fault, Op};
use std::collections::HashSet;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

const KEYS: u64 = 3000;
const NEW_KEYS: u64 = 600;
/// The limit of rounds in which two threads must collide. Usually the first rounds suffice.
const ROUNDS_MAX: u64 = 300;
/// Roughly the number of records in a leaf.
const KEYS_APART: usize = 12;
const CHANGES_PER_CHECKPOINT: usize = 400;

/// Returns whether the bug makes a run with checkpoints and power cuts fail.
pub(super) fn is_wrong_on_disk(bug: &'static str) -> bool {
    let bug = plant(bug);
    let runs = (0..8).flat_map(|seed| Keys::ALL.map(|keys| (keys, seed)));
    let mut is_wrong = |(keys, seed)| catch_unwind(AssertUnwindSafe(|| disk::run(keys, seed))).is_err();
    let found = runs.into_iter().any(&mut is_wrong);
    assert!(bug.reached_count() > 0);
    found
}

#[test]
fn b6_an_image_that_moves_under_entries_of_an_ended_epoch_is_found() {
    assert!(is_wrong_on_disk("buffering: move an image under entries of an ended epoch"));
}

/// Breaks B14: an image of epoch g must have the changes of epoch g.
#[test]
fn b4_entries_of_an_ended_epoch_left_to_the_next_are_found() {
    assert!(is_wrong_on_disk("buffering: leave to the next epoch what waits for the ended one"));
}

/// Breaks B18: a lookup without the leaf must search the pending changes of the leaf first.
#[test]
fn a_look_past_what_waits_is_found() {
    assert!(is_wrong_on_disk("buffering: look past what waits"));
}

/// Breaks B1: a leaf that receives a frame must have all its pending changes.
#[test]
fn a_removal_that_is_forgotten_is_found() {
    assert!(is_wrong_on_disk("buffering: forget a removal"));
}

#[test]
fn b3_records_that_grow_without_room_are_found() {
    assert!(is_wrong_on_disk("buffering: count no room for a longer record"));
}

/// Takes tickets, changes the tree, and then uses the tickets.
fn use_old_tickets(seed: u64) {
    let mut rng = Rng::new(seed);
    let mut fixture = Fixture::tiny();
    for _ in 0..2000 {
        fixture.step(Keys::Short, 9, &mut rng);
    }
    for _ in 0..60 {
        let mut held = Vec::new();
        for _ in 0..10 {
            let (key, mut path) = (Keys::Short.draw(&mut rng), Path::default());
            let has = fixture
                .tree
                .leave_cold(&key, Expect::New, Some(&RecordRef::frozen(b"ticket")), &mut path)
                .unwrap();
            held.extend(has.then_some((key, path)));
        }
        for _ in 0..rng.below(300) {
            fixture.step(Keys::Short, 7, &mut rng);
        }
        for (key, mut path) in held {
            // Half of the tickets are used for another key.
            let key = if rng.chance(0.5) { key } else { Keys::Short.draw(&mut rng) };
            if fixture.model.contains_key(&key) {
                continue;
            }
            let (tree, record) = (fixture.tree.clone(), RecordRef::frozen(b"ticket"));
            let mtr = enter(&tree, &mut path, &key, Some(record));
            tree.put(&mtr, &mut path, &key, record).unwrap();
            fixture.model.insert(key, b"ticket".to_vec());
        }
        fixture.pool.make_room(8).unwrap();
    }
    fixture.check();
}

fn is_wrong_with_old_tickets(bug: &'static str) -> bool {
    let bug = plant(bug);
    let found = (0..20).any(|seed| catch_unwind(|| use_old_tickets(seed)).is_err());
    assert!(bug.reached_count() > 0);
    found
}

#[test]
fn a_ticket_ends_when_its_page_changes_or_another_key_comes() {
    (0..10).for_each(use_old_tickets);
}

#[test]
fn b2_a_ticket_used_for_another_image_is_found() {
    assert!(is_wrong_with_old_tickets("buffering: do not ask whether the image is the same"));
}

#[test]
fn b11_a_ticket_used_for_another_key_is_found() {
    assert!(is_wrong_with_old_tickets("tree: take a ticket for another key"));
}

/// A committed tree, partly in memory, with pending changes.
pub(super) fn with_waiting_entries() -> (Database, Fixture) {
    let db = Database::new(&Config::tiny());
    let mut fixture = Fixture::empty(db.leaves.clone());
    let key_of = |number: u64| (number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_be_bytes();
    for number in 0..KEYS {
        fixture.insert(&key_of(number), &[7; 20]);
    }
    db.checkpoint().unwrap();
    for number in KEYS..KEYS + NEW_KEYS {
        fixture.put(&key_of(number), &[8; 20]);
    }
    fixture.path.release();
    assert!(waiting_pages(&db) > 10, "{:?} {:?}", db.pool.status(), db.pool.memory().buffered_limit());
    (db, fixture)
}

pub(super) fn waiting_pages(db: &Database) -> u64 {
    status(db, "pool_buffered_pages")
}

pub(super) fn after_power_cut(db: Database, fixture: Fixture, model: Model) -> (Database, Fixture) {
    let (def, disk) = (*fixture.tree.def(), db.disk.crash(CrashPolicy::SyncedOnly, 1));
    drop(fixture);
    let db = db.crash(disk);
    let fixture = Fixture::open(db.leaves.clone(), def, model);
    (db, fixture)
}

#[test]
fn a_checkpoint_has_all_entries_that_wait() {
    let (db, fixture) = with_waiting_entries();
    db.checkpoint_with(2).unwrap();
    assert_eq!(waiting_pages(&db), 0);
    let model = fixture.model.clone();
    after_power_cut(db, fixture, model).1.check();
}

#[test]
fn a_device_that_does_not_read_gives_the_checkpoint_up_and_nothing_else() {
    let (db, fixture) = with_waiting_entries();
    db.disk.inject(Fault::on(Op::Read).effect(Effect::Fail(std::io::ErrorKind::Other)));
    assert!(db.checkpoint().is_err());
    db.disk.clear_faults();
    db.checkpoint().unwrap();
    let model = fixture.model.clone();
    after_power_cut(db, fixture, model).1.check();
}

/// Drops the tree while a checkpoint writes it. Returns the tree after a power cut.
fn drop_during_a_checkpoint() -> Fixture {
    let (db, fixture) = with_waiting_entries();
    let model = fixture.model.clone();
    let (checkpoint, ()) = db.pool.end_epoch(|_| ());
    let (trees, mut next) = (HashSet::from([fixture.tree.def().id]), Some(PageId(1)));
    while let Some(from) = next {
        next = db.pool.free_trees_step(&trees, from, 100).unwrap();
    }
    assert_eq!(waiting_pages(&db), 0);
    checkpoint.commit(&db.map, &EpochState::default()).unwrap();
    after_power_cut(db, fixture, model).1
}

#[test]
fn a_tree_that_is_dropped_during_a_checkpoint_is_whole_in_it() {
    drop_during_a_checkpoint().check();
}

#[test]
fn b7_a_page_freed_although_a_checkpoint_needs_its_entries_is_found() {
    let bug = plant("buffering: free a page that a checkpoint needs");
    assert!(catch_unwind(|| drop_during_a_checkpoint().check()).is_err());
    assert!(bug.reached_count() > 0);
}

#[test]
fn b9_a_damaged_leaf_holds_up_no_checkpoint_and_never_seems_whole() {
    let (db, fixture) = with_waiting_entries();
    let committed = fixture.model.clone();
    // Each read returns damaged bytes, so each page with pending changes appears damaged.
    db.disk.inject(Fault::on(Op::Read).forever().effect(Effect::FlipRead(70, 3)));
    db.checkpoint().unwrap();
    db.disk.clear_faults();
    assert!(reach::count("entries of a damaged page given up") > 0);
    assert_eq!(waiting_pages(&db), 0);
    let (_db, fixture) = after_power_cut(db, fixture, committed);
    let (mut damaged, mut right) = (0, 0);
    for (key, payload) in &fixture.model {
        match fixture.tree.get(key, |record| record.payload.to_vec()) {
            Ok(found) => {
                assert_eq!(found.as_ref(), Some(payload), "a leaf without its changes seems intact");
                right += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption);
                damaged += 1;
            }
        }
    }
    assert!(damaged > 100 && right > 100, "{damaged}, {right}");
}

/// Makes changes pending faster than the cleaner folds them. Returns the largest memory of pending
/// changes, in percent of its limit. Checks that all memory of pages stays within its share.
fn most_that_waits() -> usize {
    let limit = 2 << 20;
    // With this log size, the number of pages with pending changes is not limited.
    let config = Config { buffer_pool_bytes: limit as u64, log_bytes_max: 64 << 20, ..Config::tiny() };
    let db = Database::new(&config);
    let mut fixture = Fixture::empty(db.leaves.clone());
    // The checkpoint allocates the memory for encoding images. After that, the share of pages does
    // not shrink.
    db.checkpoint().unwrap();
    let (mut rng, mut most) = (Rng::new(3), 0);
    for step in 0..60_000u64 {
        let key = rng.next_u64().to_be_bytes();
        put(&fixture.tree, &mut fixture.path, &key, &[7; 30]);
        fixture.model.insert(key.to_vec(), vec![7; 30]);
        let memory = db.pool.memory();
        most = most.max(memory.used(MemoryUse::Buffered) * 100 / memory.buffered_limit());
        if step % 500 == 0 {
            db.pool.clean_step().unwrap();
            let status = db.pool.status();
            let of_pages = [MemoryUse::Frames, MemoryUse::Images, MemoryUse::Buffered];
            let of_pages = of_pages.map(|of| memory.used(of)).iter().sum::<usize>();
            let share = (limit + of_pages).saturating_sub(memory.total()).max(limit / 2);
            assert!(of_pages <= share + share / 8, "{of_pages} of {share}: {status:?}");
        }
    }
    assert!(reach::count("change buffered") > 1000);
    fixture.check();
    most
}

/// Pending changes have their own share of the memory of pages, and stay within it.
#[test]
fn entries_that_wait_keep_to_their_share_of_memory() {
    let most = most_that_waits();
    assert!((95..130).contains(&most), "{most} percent");
    let bug = plant("buffering: let more wait than memory may hold");
    assert!(!catch_unwind(most_that_waits).is_ok_and(|most| most < 130));
    assert!(bug.reached_count() > 0);
}

/// Removes all records without a lookup, as redo does, a few records of each leaf at a time.
/// Returns the number of pages before and after.
fn pages_when_all_has_gone() -> [u64; 2] {
    let (db, mut fixture) = larger_than_memory(scattered);
    let pages = |fixture: &Fixture| fixture.pool.tree_bytes(fixture.tree.def().id).pages;
    let (before, waited) = (pages(&fixture), status(&db, "pool_buffered_entries"));
    let keys = fixture.model.keys().cloned().collect::<Vec<_>>();
    for first in 0..KEYS_APART {
        for (number, key) in keys.iter().skip(first).step_by(KEYS_APART).enumerate() {
            fixture.take_out(key);
            if number % CHANGES_PER_CHECKPOINT == 0 {
                db.checkpoint().unwrap();
                fixture.merge_small_leaves();
            }
        }
    }
    let waited = status(&db, "pool_buffered_entries") - waited;
    assert!(waited as usize > keys.len() / 2, "{waited} of {} removals were pending", keys.len());
    fixture.path.release();
    db.checkpoint().unwrap();
    fixture.merge_small_leaves();
    let after = pages(&fixture);
    fixture.check();
    [before, after]
}

#[test]
fn leaves_that_become_empty_out_of_memory_are_merged() {
    let [before, after] = pages_when_all_has_gone();
    assert!(before > 1000 && after < 10, "{before} pages, then {after}");
    let bug = plant("buffering: forget a leaf that becomes small");
    let [before, after] = pages_when_all_has_gone();
    assert!(after > 100 && bug.reached_count() > 0, "{before} pages, then {after}");
}

/// Makes changes to a few pages until a change becomes pending while its page is folded. With a
/// bug, the changes end when the bug is reached.
fn change_what_is_folded(bug: Option<&'static str>, reached_count: &AtomicU64, seed: u64) {
    let config = Config { buffer_pool_bytes: 256 << 10, log_bytes_max: 32 << 10, ..Config::tiny() };
    let db = Database::new(&Config { log_file_bytes: 8 << 10, ..config });
    let mut fixture = Fixture::empty(db.leaves.clone());
    let mut rng = Rng::new(seed);
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (db, has_ended) = (&db, &has_ended);
        let cleaner = scope.spawn(move || {
            let bug = bug.map(plant);
            while !has_ended.load(Relaxed) {
                db.pool.clean_step().unwrap();
                reached_count.store(bug.as_ref().map_or(0, Planted::reached_count), Relaxed);
            }
        });
        let ended = RaisedAtEnd(has_ended);
        let before = reach::count("fold in vain");
        for _ in 0..ROUNDS_MAX {
            for _ in 0..1000 {
                fixture.put(&rng.below(1 << 16).to_be_bytes(), &[7; 10]);
                let key = rng.below(1 << 16).to_be_bytes();
                fixture.change(&key, None);
            }
            let is_in_vain = bug.is_none() && reach::count("fold in vain") > before;
            if is_in_vain || reached_count.load(Relaxed) > 0 {
                break;
            }
        }
        drop(ended);
        cleaner.join().unwrap();
    });
    fixture.check();
}

#[test]
fn b16_what_comes_while_a_page_is_folded_stays() {
    change_what_is_folded(None, &AtomicU64::new(0), 3);
    assert!(reach::count("page folded") > 0 && reach::count("fold in vain") > 0);
}

#[test]
fn b16_changes_that_come_meanwhile_and_are_forgotten_are_found() {
    let (bug, reached_count) = (Some("fold: forget what came meanwhile"), AtomicU64::new(0));
    // The forgotten change may be the removal of a record that does not exist. On a busy machine,
    // no change may become pending in time.
    let is_found = |seed| catch_unwind(|| change_what_is_folded(bug, &reached_count, seed)).is_err();
    assert!((0..20).any(is_found) && reached_count.into_inner() > 0);
}

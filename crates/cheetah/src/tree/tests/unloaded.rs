//! Tests work with leaves that stay out of memory, and its costs in reads, memory and disk. Planted
//! bugs must be caught.

use super::buffered::{after_power_cut, is_wrong_on_disk, waiting_pages, with_waiting_entries};
use super::fixture::{enter, Fixture};
use crate::base::planted::plant;
use crate::base::{Config, Error, Result};
use crate::format::encryption::Key;
use crate::format::page::RecordRef;
use crate::leaves::testing::Database;
use crate::leaves::Expect;
use crate::memory::MemoryUse;
use crate::tree::{Path, Removed, SeekMode};
use cheetah_io::rng::Rng;
use cheetah_io::Disk;
use std::collections::BTreeMap;
use std::sync::Arc;

const MANY_KEYS: u64 = 20_000;

pub(super) fn status(db: &Database, name: &str) -> u64 {
    let all = db.pool.status().into_iter().chain(db.leaves.status());
    all.collect::<BTreeMap<_, _>>()[name]
}

/// Breaks L4 of `pool/reading/mod.rs`: no image may be read under a latch.
#[test]
fn a_page_that_is_read_under_a_latch_is_found() {
    assert!(is_wrong_on_disk("tree: read a leaf under its parent's latch"));
}

/// Breaks F6 of `pool/frames/mod.rs`: no thread may wait for a latch under the lock of a page table
/// entry.
#[test]
fn a_latch_that_is_waited_for_under_the_lock_of_an_entry_is_found() {
    assert!(is_wrong_on_disk("pool: wait for a latch under the lock of an entry"));
}

/// Breaks E3 of `pool/mtr/mod.rs`: every byte counted as dirty must belong to a dirty page.
#[test]
fn bytes_that_stay_counted_when_their_page_is_written_are_found() {
    assert!(is_wrong_on_disk("pool: keep the bytes of a page that is written"));
}

#[test]
fn b8_the_first_of_several_changes_of_a_key_taken_for_the_last_is_found() {
    assert!(is_wrong_on_disk("buffering: find the first change of a key"));
}

/// Breaks B8: a change's own bits must not become flags of its record.
#[test]
fn bits_of_a_change_taken_for_those_of_its_record_are_found() {
    assert!(is_wrong_on_disk("buffering: take a change's own bits for the record's"));
}

/// Returns whether a cursor passes unmerged empty leaves in the middle of a tree. All keys have a
/// common prefix, like the entries of one unique key.
fn finds_what_is_behind_empty_leaves() -> bool {
    let mut fixture = Fixture::tiny();
    let key = |number: u64| [b"unique", &number.to_be_bytes()[..]].concat();
    for number in 0..400 {
        fixture.insert(&key(number), &[7; 20]);
    }
    let Fixture { pool, tree, path, .. } = &mut fixture;
    let mut emptied = 0;
    for number in 1..399 {
        pool.make_room(8).unwrap();
        tree.prepare(&key(number), path).unwrap();
        let removed = tree.remove(&pool.enter(), path, &key(number)).unwrap();
        assert_ne!(removed, Removed::Absent);
        emptied += usize::from(removed == (Removed::Gone { small: true }));
    }
    assert!(emptied > 10, "{emptied} leaves");
    let mut cursor = tree.cursor();
    let is_at = |found: bool, at: &[u8], number| found && at == key(number);
    let found = cursor.seek(SeekMode::AtLeast, b"unique").unwrap();
    let is_first = is_at(found, cursor.key(), 0);
    let found = cursor.next().unwrap();
    is_first && is_at(found, cursor.key(), 399)
}

#[test]
fn a_search_goes_on_over_any_number_of_empty_leaves() {
    assert!(finds_what_is_behind_empty_leaves());
    let bug = plant("cursor: end at an empty leaf");
    assert!(!finds_what_is_behind_empty_leaves() && bug.reached_count() > 0);
}

/// The number of leaves that a scan of a whole tree copies from their images, without a frame.
fn leaves_copied_by_a_scan() -> u64 {
    let (db, fixture) = with_waiting_entries();
    let before = status(&db, "pool_looks");
    let mut cursor = fixture.tree.cursor();
    let mut records = u64::from(cursor.seek(SeekMode::First, b"").unwrap());
    while cursor.next().unwrap() {
        records += 1;
    }
    assert_eq!(records, fixture.model.len() as u64);
    status(&db, "pool_looks") - before
}

#[test]
fn a_long_scan_has_frames_made_of_what_it_reads() {
    let copied = leaves_copied_by_a_scan();
    assert!(copied <= 3, "{copied} leaves are copied");
    let bug = plant("cursor: copy leaves however far it goes");
    let copied = leaves_copied_by_a_scan();
    assert!(copied > 50 && bug.reached_count() > 0, "{copied}");
}

/// The memory of cached images after the folds of all pending changes and before any lookup.
fn image_bytes_after_folds() -> usize {
    let (db, _fixture) = with_waiting_entries();
    db.checkpoint().unwrap();
    assert_eq!(waiting_pages(&db), 0);
    assert!(db.leaves.folds().count() > 0, "folds are measured");
    db.pool.memory().used(MemoryUse::Images)
}

#[test]
fn folds_keep_no_images() {
    assert_eq!(image_bytes_after_folds(), 0);
    let bug = plant("fold: keep the image it has written");
    assert!(image_bytes_after_folds() > 0 && bug.reached_count() > 0);
}

/// A different key for each number, scattered over the tree.
pub(super) fn scattered(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// A committed tree that is larger than its memory.
pub(super) fn larger_than_memory(key_of: impl Fn(u64) -> [u8; 8]) -> (Database, Fixture) {
    let db = Database::new(&Config { buffer_pool_bytes: 512 << 10, ..Config::tiny() });
    let mut fixture = Fixture::empty(db.leaves.clone());
    // Random bytes do not compress, so images are about as long as their pages.
    (0..MANY_KEYS).for_each(|number| fixture.insert(&key_of(number), &Rng::new(number).bytes(20)));
    fixture.path.release();
    db.checkpoint().unwrap();
    (db, fixture)
}

/// The memory for each page with pending changes, while most of these pages have only a few
/// changes.
fn bytes_of_a_waiting_page() -> usize {
    let (db, mut fixture) = larger_than_memory(scattered);
    for number in MANY_KEYS..3 * MANY_KEYS {
        fixture.put(&scattered(number), &[8; 20]);
        if db.pool.memory().used(MemoryUse::Buffered) > db.pool.memory().buffered_limit() / 2 {
            break;
        }
    }
    db.pool.memory().used(MemoryUse::Buffered) / waiting_pages(&db) as usize
}

#[test]
fn what_waits_for_a_page_takes_little_more_than_a_cell() {
    let bytes = bytes_of_a_waiting_page();
    assert!(bytes < 450, "{bytes} bytes a page");
    let bug = plant("cells: take a block for each cell");
    let bytes = bytes_of_a_waiting_page();
    assert!(bytes > 4096 && bug.reached_count() > 0, "{bytes}");
}

/// Makes 200 changes all over a tree of full leaves. Half of them keep the length of a record or
/// remove it, and the other half need space that the leaves lack. Returns, for each half, the
/// number of changes that become pending.
fn waiting_for_full_leaves() -> [u64; 2] {
    // Ascending keys leave full leaves if their common prefix is short.
    let key_of = |number: u64| (number * (u64::MAX / MANY_KEYS)).to_be_bytes();
    let (db, mut fixture) = larger_than_memory(key_of);
    let waited = |fixture: &mut Fixture, number: u64, payload: Option<&[u8]>| {
        let before = status(&db, "pool_buffered_entries");
        fixture.change(&key_of(number * 1009 % MANY_KEYS), payload);
        status(&db, "pool_buffered_entries") - before
    };
    let mut waiting = [0; 2];
    for number in (0..200).step_by(2) {
        let same = [None, Some(&[8; 20][..])][number as usize / 2 % 2];
        waiting[0] += waited(&mut fixture, number, same);
        waiting[1] += waited(&mut fixture, number + 1, Some(&[8; 90]));
    }
    fixture.check();
    waiting
}

#[test]
fn b3_what_needs_no_room_waits_for_full_leaves() {
    let [same, longer] = waiting_for_full_leaves();
    assert!(same > 50 && longer < 10, "{same}, {longer}");
    let bug = plant("buffering: take little room for room that is not known");
    let [same, _] = waiting_for_full_leaves();
    assert!(same < 10 && bug.reached_count() > 0, "{same}");
}

/// A cursor copies a leaf without a frame. Then an entry after the cursor becomes pending for this
/// leaf. Returns how often the cursor misses the entry, and the number of tries.
fn entries_that_a_cursor_misses() -> (u64, u64) {
    let (db, mut fixture) = larger_than_memory(scattered);
    let counts = || (status(&db, "pool_looks"), status(&db, "pool_buffered_entries"));
    let (mut missed, mut cases) = (0, 0);
    for number in 0..300 {
        let key = scattered(number);
        let before = counts();
        let mut cursor = fixture.tree.cursor();
        assert!(cursor.seek(SeekMode::AtLeast, &key).unwrap());
        let has_copied = counts().0 > before.0;
        let next = [&key[..], &[0]].concat();
        fixture.put(&next, &[8; 20]);
        if has_copied && counts().1 > before.1 {
            cases += 1;
            missed += u64::from(!cursor.next().unwrap() || cursor.key() != next);
        }
    }
    (missed, cases)
}

/// Breaks I1 of `tree/cursor.rs`: the copy of a leaf without a frame must be outdated when further
/// changes are pending for the leaf.
#[test]
fn a_copy_of_a_leaf_is_outdated_when_more_waits_for_it() {
    let (missed, cases) = entries_that_a_cursor_misses();
    assert!(missed == 0 && cases > 100, "{missed} of {cases}");
    let bug = plant("cursor: take a copy for current though more waits");
    let (missed, _) = entries_that_a_cursor_misses();
    assert!(missed > 100 && bug.reached_count() > 0, "{missed}");
}

/// After a restart with enough memory for all pages, searches for all keys twice. Returns the
/// number of images that each round decoded or peeked at.
fn images_used_with_memory_for_all() -> [u64; 2] {
    let db = Database::new(&Config { buffer_pool_bytes: 4 << 20, ..Config::tiny() });
    let mut fixture = Fixture::empty(db.leaves.clone());
    let keys = (0..3000).map(scattered).collect::<Vec<_>>();
    keys.iter().for_each(|key| fixture.insert(key, &[7; 20]));
    db.checkpoint().unwrap();
    let model = fixture.model.clone();
    let (db, fixture) = after_power_cut(db, fixture, model);
    let used = || {
        let decodes = db.pool.image_work(false).iter().map(|work| work.decodes).sum::<u64>();
        decodes + status(&db, "pool_looks")
    };
    [(); 2].map(|()| {
        let before = used();
        keys.iter().for_each(|key| fixture.get(key));
        used() - before
    })
}

#[test]
fn pages_that_memory_has_room_for_are_decoded_once() {
    let [first, second] = images_used_with_memory_for_all();
    assert!(first > 100 && first < 500 && second == 0, "{first}, {second}");
    let bug = plant("pool: make no frame of a leaf that is read");
    let [_, second] = images_used_with_memory_for_all();
    assert!(second >= 3000 && bug.reached_count() > 0, "{second}");
}

/// On a disk with little space, makes as many changes pending as possible, all over a tree. Returns
/// the outcome of a checkpoint that has to write these leaves, and the number of leaves.
fn checkpoint_on_a_full_disk() -> (Result<()>, u64) {
    const FREE_BYTES: u64 = 544 << 10;
    const LEFT_BYTES: u64 = 110 << 10;
    let (db, mut fixture) = larger_than_memory(scattered);
    db.disk.set_space(Some(db.disk.used_bytes() + FREE_BYTES));
    let Fixture { pool, tree, path, model, .. } = &mut fixture;
    for number in MANY_KEYS..2 * MANY_KEYS {
        let (key, payload) = (scattered(number), Rng::new(number).bytes(40));
        let record = RecordRef::frozen(&payload);
        if tree.leave_cold(&key, Expect::New, Some(&record), path).unwrap() {
            let mtr = pool.enter();
            if tree.reserve(&mtr, &key, Some(record), path) {
                tree.put(&mtr, path, &key, record).unwrap();
                model.insert(key.to_vec(), payload);
            }
        }
    }
    let waiting = waiting_pages(&db);
    // Other files take the free space, except the space promised for pending changes.
    db.disk.set_space(Some(db.disk.used_bytes() + LEFT_BYTES));
    let done = db.checkpoint().map(drop);
    if done.is_ok() {
        fixture.check();
    }
    (done, waiting)
}

#[test]
fn b12_a_checkpoint_commits_on_a_full_disk_whatever_waits() {
    let (done, waiting) = checkpoint_on_a_full_disk();
    assert!(waiting > 20, "{waiting} pages");
    done.unwrap();
    let bug = plant("buffering: count no page for what waits");
    let (done, waiting) = checkpoint_on_a_full_disk();
    assert!(matches!(done, Err(Error::DiskFull(_))) && bug.reached_count() > 0, "{waiting}: {done:?}");
}

/// A lookup of a key without a record needs no frame: the image of the leaf answers, even if the
/// removal of the record is only pending.
#[test]
fn an_image_answers_for_keys_that_do_not_exist() {
    let (db, mut fixture) = larger_than_memory(scattered);
    (0..100).for_each(|number| fixture.take_out(&scattered(number)));
    assert!(status(&db, "pool_buffered_entries") > 50, "removals are pending");
    let before = status(&db, "pool_looks");
    let removed = (0..100).map(scattered);
    for key in removed.chain((MANY_KEYS..MANY_KEYS + 300).map(scattered)) {
        assert_eq!(fixture.tree.get(&key, |_| ()).unwrap(), None);
    }
    let answered = status(&db, "pool_looks") - before;
    assert!(answered > 200, "{answered} of 400 lookups");
    fixture.check();
}

/// The number of images read while records are inserted into evicted leaves all over the tree.
fn reads_for_new_records() -> u64 {
    let (db, mut fixture) = larger_than_memory(scattered);
    let before = status(&db, "pool_reads");
    (MANY_KEYS..MANY_KEYS + 400).for_each(|number| fixture.put(&scattered(number), &[8; 20]));
    let reads = status(&db, "pool_reads") - before;
    fixture.check();
    reads
}

#[test]
fn b3_a_leaf_that_has_left_memory_is_not_read_for_each_change() {
    let reads = reads_for_new_records();
    let bug = plant("pool: forget the room of a leaf that leaves memory");
    let others = reads_for_new_records();
    assert!(bug.reached_count() > 0 && others > 300 && reads < others / 3, "{reads}, {others} reads");
}

/// Two writers receive tickets for one leaf, which has room for only one record. Returns the number
/// of changes that are refused too late: inside the mini-transaction, where the leaf must be read.
fn changes_refused_inside() -> u64 {
    const PAYLOAD: [u8; 90] = [8; 90];
    let (db, mut fixture) = larger_than_memory(scattered);
    let (tree, record) = (fixture.tree.clone(), RecordRef::frozen(&PAYLOAD));
    let before = status(&db, "pool_buffered_refused");
    let mut pairs = 0;
    for number in 0..400 {
        // Two new keys right after an existing key.
        let keys = [1, 2].map(|last| [&scattered(number)[..], &[last]].concat());
        let mut paths = [Path::default(), Path::default()];
        let mut writers = keys.iter().zip(&mut paths);
        if !writers.all(|(key, path)| tree.leave_cold(key, Expect::New, Some(&record), path).unwrap()) {
            continue;
        }
        pairs += 1;
        for (key, path) in keys.into_iter().zip(&mut paths) {
            tree.put(&enter(&tree, path, &key, Some(record)), path, &key, record).unwrap();
            fixture.model.insert(key, PAYLOAD.to_vec());
        }
    }
    assert!(pairs > 100, "{pairs} pairs");
    let refused = status(&db, "pool_buffered_refused") - before;
    fixture.check();
    refused
}

#[test]
fn b10_of_two_writers_who_see_room_for_one_the_other_finds_out_in_time() {
    assert_eq!(changes_refused_inside(), 0);
    let bug = plant("buffering: ask for room before, and not again");
    assert!(changes_refused_inside() > 20 && bug.reached_count() > 0);
}

/// Gives most leaves new images. Makes changes pending for a few other leaves, whose images are
/// spread over old segments. Returns the number of segments that remain after garbage collection.
fn segments_left_by_collection() -> usize {
    let (db, mut fixture) = larger_than_memory(scattered);
    db.disk.create_dir("chg").unwrap();
    let checkpoint = || {
        db.save_and_commit(|| ());
    };
    let keys = fixture.model.keys().cloned().collect::<Vec<_>>();
    for (number, key) in keys.iter().enumerate() {
        if (20..180).contains(&(number % 200)) && number % 4 == 0 {
            fixture.replace(key, &[9; 20]);
        }
    }
    fixture.path.release();
    // Garbage collection does not choose a segment that was sealed recently.
    (0..3).for_each(|_| checkpoint());
    keys.iter().step_by(200).for_each(|key| fixture.change(key, Some(&[8; 20])));
    fixture.path.release();
    assert!(waiting_pages(&db) > 50, "{} pages", waiting_pages(&db));
    checkpoint();
    while db.upkeep.collect(u64::MAX).unwrap() > 0 {}
    checkpoint();
    let left = db.disk.list("seg").unwrap().len();
    fixture.check();
    left
}

#[test]
fn b6_images_that_something_waits_for_are_moved_out_of_segments() {
    let segments = segments_left_by_collection();
    let bug = plant("pool: pass by what something waits for");
    let others = segments_left_by_collection();
    assert!(bug.reached_count() > 0 && others > segments + 3, "{segments}, {others} segments");
}

/// The keys of all change files are requested while a checkpoint writes a change file. Returns
/// whether the key of this file is still known when an epoch lists the file.
fn knows_the_key_of_a_change_file() -> bool {
    let (db, mut fixture) = larger_than_memory(scattered);
    db.disk.create_dir("chg").unwrap();
    let keys = db.pool.keys();
    keys.serve(Arc::new(Key::new(1, 1, vec![3; 32].into(), keys.database())));
    (MANY_KEYS..MANY_KEYS + 400).for_each(|number| fixture.put(&scattered(number), &[8; 20]));
    fixture.path.release();
    assert!(waiting_pages(&db) > 50, "{} pages", waiting_pages(&db));
    db.save_and_commit(|| drop(db.leaves.keys_of_change_files()));
    fixture.check();
    db.leaves.keys_of_change_files() == keys.serving_names()
}

#[test]
fn e14_the_key_of_a_change_file_is_known_while_a_checkpoint_writes_it() {
    assert!(knows_the_key_of_a_change_file());
    let _bug = plant("encryption: forget the key of a change file that is being written");
    assert!(!knows_the_key_of_a_change_file());
}

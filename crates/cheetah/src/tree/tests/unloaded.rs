//! Leaves that stay out of memory: what it costs to work with them, in reads, memory and disk, and
//! bugs planted against that.

use super::buffered::{is_wrong_on_disk, waiting_pages, with_waiting_entries};
use super::fixture::Fixture;
use crate::base::planted::plant;
use crate::base::Config;
use crate::memory::MemoryUse;
use crate::pool::testing::Database;
use crate::tree::{Removed, SeekMode};
use std::collections::BTreeMap;

fn status(db: &Database, name: &str) -> u64 {
    db.pool.status().into_iter().collect::<BTreeMap<_, _>>()[name]
}

#[test]
fn a_page_that_is_read_under_a_latch_is_found() {
    assert!(is_wrong_on_disk("tree: read a leaf under its parent's latch"));
}

#[test]
fn a_latch_that_is_waited_for_under_the_lock_of_an_entry_is_found() {
    assert!(is_wrong_on_disk("pool: wait for a latch under the lock of an entry"));
}

#[test]
fn bytes_that_stay_counted_when_their_page_is_written_are_found() {
    assert!(is_wrong_on_disk("pool: keep the bytes of a page that is written"));
}

#[test]
fn b8_the_first_of_several_changes_of_a_key_taken_for_the_last_is_found() {
    assert!(is_wrong_on_disk("buffering: find the first change of a key"));
}

#[test]
fn bits_of_a_change_taken_for_those_of_its_record_are_found() {
    assert!(is_wrong_on_disk("buffering: take a change's own bits for the record's"));
}

/// Leaves in the middle have lost their records, and nobody has merged them; keys before and behind
/// them begin in the same way, as those of a unique key do. Whether a search finds its way.
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

/// Looks of a scan over all leaves, none of which is in memory. Each is a leaf that the scan has
/// copied for itself.
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

/// Images in memory when all that waits has been folded, and nobody has looked for anything.
fn image_bytes_after_folds() -> usize {
    let (db, _fixture) = with_waiting_entries();
    db.checkpoint().unwrap();
    assert_eq!(waiting_pages(&db), 0);
    db.pool.memory().used(MemoryUse::Images)
}

#[test]
fn folds_keep_no_images() {
    assert_eq!(image_bytes_after_folds(), 0);
    let bug = plant("fold: keep the image it has written");
    assert!(image_bytes_after_folds() > 0 && bug.reached_count() > 0);
}

/// Memory for each page that something waits for, when little waits for most.
fn bytes_of_a_waiting_page() -> usize {
    let config = Config { buffer_pool_bytes: 512 << 10, ..Config::tiny() };
    let db = Database::new(&config);
    let mut fixture = Fixture::empty(db.pool.clone());
    let key_of = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    (0..20_000).for_each(|number| fixture.insert(&key_of(number), &[7; 20]));
    db.checkpoint().unwrap();
    for number in 20_000..60_000 {
        fixture.put(&key_of(number), &[8; 20]);
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

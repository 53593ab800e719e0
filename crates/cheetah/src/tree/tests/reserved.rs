//! Tests reservations for changes of cold leaves, concurrently with readers, folds and other
//! writers. Planted bugs must be caught.

use super::fixture::Fixture;
use super::unloaded::{larger_than_memory, scattered, status};
use crate::base::planted::plant;
use crate::base::PageId;
use crate::format::page::{cell_bytes, RecordFlags, RecordRef};
use crate::leaves::testing::Database;
use crate::leaves::Expect;
use crate::pool::MiniTransaction;
use crate::tree::Path;
use std::sync::mpsc;
use std::time::Duration;

const RECORD: RecordRef<'static> = RecordRef { version: None, flags: RecordFlags::NONE, payload: &[8; 20] };

/// A new key right after `scattered(number)`.
fn behind(number: u64, last: u8) -> Vec<u8> {
    [&scattered(number)[..], &[last]].concat()
}

/// A path with a ticket for a new record of `key`, and the leaf. `None` if there is no ticket, for
/// example because the leaf is in memory.
fn ticket(fixture: &Fixture, key: &[u8]) -> Option<(Path, PageId)> {
    let mut path = Path::default();
    let is_cold = fixture.tree.leave_cold(key, Expect::New, Some(&RECORD), &mut path).unwrap();
    is_cold.then(|| {
        let pid = path.ticket.ticket.as_ref().map(|ticket| ticket.pid()).unwrap();
        (path, pid)
    })
}

/// The first of several keys whose leaf is cold, with the key's ticket.
fn any_ticket(fixture: &Fixture) -> (Vec<u8>, Path, PageId) {
    (0..400)
        .map(|number| behind(number, 1))
        .find_map(|key| ticket(fixture, &key).map(|(path, pid)| (key, path, pid)))
        .expect("some leaf is cold")
}

fn reserve<'p>(db: &'p Database, fixture: &Fixture, key: &[u8], path: &mut Path) -> MiniTransaction<'p> {
    let mtr = db.pool.enter();
    assert!(fixture.tree.reserve(&mtr, key, Some(RECORD), path));
    mtr
}

/// Uses reservations while another thread requests the leaf. Returns the number of changes that
/// were refused inside the mini-transaction, where they had to read the leaf.
fn refused_beside_a_reader(bug: Option<&'static str>) -> u64 {
    let (db, mut fixture) = larger_than_memory(scattered);
    let before = status(&db, "pool_buffered_refused");
    for _ in 0..20 {
        let (key, mut path, pid) = any_ticket(&fixture);
        let mtr = reserve(&db, &fixture, &key, &mut path);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let bug = bug.map(plant);
                let page = db.pool.fetch(pid).unwrap();
                assert!(bug.is_none_or(|bug| bug.reached_count() > 0));
                page
            });
            while !db.pool.page_entry(pid).is_wanted() && db.pool.fetch_resident(pid).is_none() {
                std::thread::yield_now();
            }
            fixture.tree.put(&mtr, &mut path, &key, RECORD).unwrap();
            drop(mtr);
            reader.join().unwrap().expect("the page exists");
        });
        fixture.model.insert(key, RECORD.payload.to_vec());
    }
    let refused = status(&db, "pool_buffered_refused") - before;
    fixture.check();
    refused
}

#[test]
fn b20_who_wants_the_frame_of_a_reserved_leaf_waits_until_its_change_is_pending() {
    assert_eq!(refused_beside_a_reader(None), 0);
    assert!(refused_beside_a_reader(Some("leaves: give a reserved leaf a frame")) > 0);
}

/// Returns whether a thread that waits for a reserved leaf receives the leaf after the reservation
/// ends.
fn goes_on_after_a_reservation() -> bool {
    let (db, fixture) = larger_than_memory(scattered);
    let (key, mut path, pid) = any_ticket(&fixture);
    let mtr = reserve(&db, &fixture, &key, &mut path);
    std::thread::scope(|scope| {
        let (read, was_read) = mpsc::channel();
        let db = &db;
        scope.spawn(move || read.send(db.pool.fetch(pid).unwrap().is_some()));
        while !db.pool.page_entry(pid).is_wanted() {
            std::thread::yield_now();
        }
        // Give the reader time to fall asleep.
        std::thread::sleep(Duration::from_millis(50));
        fixture.tree.release_reserved(&mut path);
        drop(mtr);
        let goes_on = was_read.recv_timeout(Duration::from_secs(2)).unwrap_or(false);
        db.pool.wake_readers(pid);
        goes_on
    })
}

#[test]
fn b20_who_waits_for_a_reserved_leaf_is_woken() {
    assert!(goes_on_after_a_reservation());
    let bug = plant("leaves: wake nobody who waits for a reserved leaf");
    assert!(!goes_on_after_a_reservation() && bug.reached_count() > 0);
}

/// Returns whether a second reservation succeeds for a leaf that a reader waits for.
fn is_reserved_though_wanted() -> bool {
    let (db, fixture) = larger_than_memory(scattered);
    let (key, mut path, pid) = any_ticket(&fixture);
    let other_key = [&key[..8], &[2]].concat();
    let (mut other, other_pid) = ticket(&fixture, &other_key).expect("both keys have the same leaf");
    assert_eq!(other_pid, pid);
    let mtr = reserve(&db, &fixture, &key, &mut path);
    std::thread::scope(|scope| {
        scope.spawn(|| db.pool.fetch(pid).unwrap());
        while !db.pool.page_entry(pid).is_wanted() {
            std::thread::yield_now();
        }
        let is_reserved = fixture.tree.reserve(&mtr, &other_key, Some(RECORD), &mut other);
        fixture.tree.release_reserved(&mut other);
        fixture.tree.release_reserved(&mut path);
        drop(mtr);
        is_reserved
    })
}

#[test]
fn b20_a_leaf_that_somebody_waits_for_is_reserved_for_nobody_else() {
    assert!(!is_reserved_though_wanted());
    let bug = plant("leaves: reserve what somebody wants");
    assert!(is_reserved_though_wanted() && bug.reached_count() > 0);
}

/// Returns the number of leaves that accept two reservations, but have room for only one of the
/// records.
fn leaves_with_too_many_places() -> usize {
    const PAYLOAD: [u8; 90] = [8; 90];
    let (db, fixture) = larger_than_memory(scattered);
    let (tree, record) = (&fixture.tree, RecordRef::frozen(&PAYLOAD));
    let (mut pairs, mut too_many) = (0, 0);
    for number in 0..400 {
        let keys = [1, 2].map(|last| behind(number, last));
        let mut paths = [Path::default(), Path::default()];
        let mut writers = keys.iter().zip(&mut paths);
        if !writers.all(|(key, path)| tree.leave_cold(key, Expect::New, Some(&record), path).unwrap()) {
            continue;
        }
        pairs += 1;
        let pid = paths[0].ticket.ticket.as_ref().map(|ticket| ticket.pid()).unwrap();
        let mtr = db.pool.enter();
        let places = keys.iter().zip(&mut paths);
        let are_reserved =
            places.filter_map(|(key, path)| tree.reserve(&mtr, key, Some(record), path).then_some(()));
        let needed = are_reserved.count() * cell_bytes(9, &record);
        too_many += usize::from(needed > db.pool.page_entry(pid).room().unwrap());
        paths.iter_mut().for_each(|path| tree.release_reserved(path));
    }
    assert!(pairs > 100, "{pairs} pairs");
    too_many
}

#[test]
fn b10_places_of_one_leaf_find_room_together() {
    assert_eq!(leaves_with_too_many_places(), 0);
    let bug = plant("buffering: ask for the room of each change alone");
    assert!(leaves_with_too_many_places() > 20 && bug.reached_count() > 0);
}

/// Returns whether a fold replaces the image of a reserved leaf.
fn is_folded_while_reserved() -> bool {
    let (db, mut fixture) = larger_than_memory(scattered);
    let (key, path, pid) = any_ticket(&fixture);
    drop(path);
    fixture.put(&key, RECORD.payload);
    fixture.path.release();
    assert!(db.pool.page_entry(pid).has_pending());
    let other_key = [&key[..8], &[2]].concat();
    let (mut path, _) = ticket(&fixture, &other_key).expect("both keys have the same leaf");
    let mtr = reserve(&db, &fixture, &other_key, &mut path);
    let is_folded = db.fold(pid);
    fixture.tree.put(&mtr, &mut path, &other_key, RECORD).unwrap();
    drop(mtr);
    fixture.model.insert(other_key, RECORD.payload.to_vec());
    assert!(db.fold(pid), "the leaf is no longer reserved");
    fixture.check();
    is_folded
}

#[test]
fn b19_a_fold_does_not_take_the_place_of_a_reserved_image() {
    assert!(!is_folded_while_reserved());
    let bug = plant("fold: take the place of a reserved image");
    assert!(is_folded_while_reserved() && bug.reached_count() > 0);
}

/// A thread inside a mini-transaction does not wait. It loads the leaf and makes the change in the
/// frame.
#[test]
fn b20_inside_a_mini_transaction_nobody_waits_for_a_reserved_leaf() {
    let (db, mut fixture) = larger_than_memory(scattered);
    let (key, mut path, pid) = any_ticket(&fixture);
    let before = status(&db, "pool_buffered_refused");
    let mtr = reserve(&db, &fixture, &key, &mut path);
    let page = db.pool.fetch(pid).unwrap().expect("the page exists");
    assert!(db.pool.page_entry(pid).is_reserved());
    drop(page);
    fixture.tree.put(&mtr, &mut path, &key, RECORD).unwrap();
    drop(mtr);
    assert!(!db.pool.page_entry(pid).is_reserved());
    assert_eq!(status(&db, "pool_buffered_refused") - before, 1);
    fixture.model.insert(key, RECORD.payload.to_vec());
    fixture.path.release();
    path.release();
    fixture.check();
}

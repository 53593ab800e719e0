//! Model-checker tests of a reserved leaf: threads make changes pending for it, and other threads
//! make a frame for it, outside and inside of mini-transactions (B19, B20). The threads wait in the
//! engine's own source; the page entry here has only the relevant fields.

use crate::base::model as sync;
use crate::base::sound;
use crate::base::PageId;
use std::sync::Arc;
use sync::{check, finds, Mutex};

#[path = "reading/reads_in_progress.rs"]
#[expect(clippy::duplicate_mod, reason = "the engine's own source, over the model checker's primitives")]
mod reads_in_progress;

use reads_in_progress::ReadsInProgress;

const PAGE: PageId = PageId(1);

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Residence {
    #[default]
    Stored,
    BeingRead,
    Resident,
}

#[derive(Default, Debug)]
struct Entry {
    residence: Residence,
    reserved: u32,
    is_wanted: bool,
    pending: u32,
    /// Pending changes merged into the frame, and changes that found the leaf in memory.
    merged: u32,
    refused: u32,
}

#[derive(Default, Debug)]
struct World {
    entry: Mutex<Entry>,
    reads: ReadsInProgress,
}

impl World {
    /// Like a row operation: reserves, and makes its change pending. Returns whether the
    /// reservation succeeded.
    fn change(&self) -> bool {
        {
            let mut entry = self.entry.lock();
            if entry.residence != Residence::Stored || entry.is_wanted {
                return false;
            }
            entry.reserved += 1;
        }
        let mut entry = self.entry.lock();
        match entry.residence {
            Residence::Stored | Residence::BeingRead => entry.pending += 1,
            Residence::Resident => entry.refused += 1,
        }
        entry.reserved -= 1;
        let wakes = entry.reserved == 0 && entry.is_wanted;
        if !sound!(true, "leaves: wake nobody who waits for a reserved leaf") {
            return true;
        }
        if !sound!(true, "leaves: wake readers under the lock of the entry") {
            self.reads.finished(PAGE);
            return true;
        }
        drop(entry);
        if wakes {
            self.reads.finished(PAGE);
        }
        true
    }

    /// Makes a frame for the page.
    fn fetch(&self, is_inside: bool) {
        loop {
            let mut entry = self.entry.lock();
            match entry.residence {
                Residence::Resident => return,
                Residence::BeingRead => {
                    drop(entry);
                    self.reads.wait_while(PAGE, || self.entry.lock().residence == Residence::BeingRead);
                }
                Residence::Stored
                    if sound!(entry.reserved > 0 && !is_inside, "leaves: give a reserved leaf a frame") =>
                {
                    entry.is_wanted = true;
                    drop(entry);
                    self.reads.wait_while(PAGE, || {
                        let entry = self.entry.lock();
                        entry.residence == Residence::Stored && entry.reserved > 0
                    });
                }
                Residence::Stored => {
                    (entry.residence, entry.is_wanted) = (Residence::BeingRead, false);
                    drop(entry);
                    let mut entry = self.entry.lock();
                    entry.merged += std::mem::take(&mut entry.pending);
                    entry.residence = Residence::Resident;
                    drop(entry);
                    self.reads.finished(PAGE);
                }
            }
        }
    }
}

/// Two changes concurrently with one reader.
fn changes_beside_a_reader(is_inside: bool) {
    let world = Arc::new(World::default());
    let changes = [(); 2].map(|()| {
        let world = Arc::clone(&world);
        loom::thread::spawn(move || world.change())
    });
    world.fetch(is_inside);
    let reserved = changes.map(|change| u32::from(change.join().unwrap())).iter().sum::<u32>();
    let entry = world.entry.lock();
    assert_eq!((entry.residence, entry.reserved, entry.pending), (Residence::Resident, 0, 0));
    assert_eq!(entry.merged + entry.refused, reserved, "B19: no change is lost");
    assert!(is_inside || entry.refused == 0, "B20: no change has to read its leaf");
}

fn changes_beside_an_outer_reader() {
    changes_beside_a_reader(false);
}

#[test]
fn b20_no_order_of_steps_lets_a_change_miss_its_place_or_a_reader_wait_for_ever() {
    check(changes_beside_an_outer_reader);
}

#[test]
fn b20_a_reader_inside_a_mini_transaction_takes_no_change_away() {
    check(|| changes_beside_a_reader(true));
}

#[test]
fn b20_the_model_finds_a_frame_that_a_reserved_leaf_gets() {
    assert!(finds("leaves: give a reserved leaf a frame", changes_beside_an_outer_reader));
}

#[test]
fn b20_the_model_finds_a_reader_that_nobody_wakes() {
    assert!(finds("leaves: wake nobody who waits for a reserved leaf", changes_beside_an_outer_reader));
}

#[test]
fn b20_the_model_finds_readers_that_are_woken_under_the_lock_of_the_entry() {
    assert!(finds("leaves: wake readers under the lock of the entry", changes_beside_an_outer_reader));
}

//! Model-checker tests of the epoch switch, of a checkpoint's search for dirty pages, and of the
//! steps from a changed page to its image in the right epoch. The last test uses one page with a
//! writer, a cleaner and a checkpoint.

use crate::base::model as sync;
use crate::base::{Epoch, Error, PageId, Result};
use std::sync::Arc;
use sync::{check, fails, finds, AtomicU64, Mutex, MutexGuard, Ordering, RwLock};

#[path = "mtr/epoch_changes.rs"]
#[expect(clippy::duplicate_mod, reason = "the engine's own source, over the model checker's primitives")]
#[expect(dead_code, reason = "the models need a part of it")]
mod epoch_changes;
#[path = "writing/epoch_in_writing.rs"]
#[expect(clippy::duplicate_mod, reason = "as above")]
mod epoch_in_writing;
#[path = "mtr/epoch_switch.rs"]
#[expect(clippy::duplicate_mod, reason = "as above")]
mod epoch_switch;
#[path = "writing/hand_over.rs"]
#[expect(clippy::duplicate_mod, reason = "as above")]
mod hand_over;

use epoch_changes::EpochChanges;
use epoch_in_writing::EpochInWriting;
use epoch_switch::EpochSwitch;
use hand_over::HandOver;

/// The epoch in which the page is dirty at first.
const FIRST: Epoch = Epoch(1);
const NEXT: Epoch = Epoch(2);

/// Each of two threads makes a change, in two halves, during an epoch switch.
fn act_beside_a_switch() {
    let switch = Arc::new(EpochSwitch::<2>::new(FIRST));
    let halves = Arc::new([0, 1].map(|_| [0, 1].map(|_| AtomicU64::new(0))));
    let actors = [0, 1].map(|no| {
        let (switch, halves) = (Arc::clone(&switch), Arc::clone(&halves));
        loom::thread::spawn(move || {
            let inside = switch.enter(no);
            halves[no][0].store(1, Ordering::Relaxed);
            assert_eq!(switch.epoch(), *inside, "G1");
            halves[no][1].store(1, Ordering::Relaxed);
            *inside
        })
    });
    let (ended, at_switch) = switch.switch(|ended| {
        (ended, [0, 1].map(|no| [0, 1].map(|half| halves[no][half].load(Ordering::Relaxed))))
    });
    assert_eq!((ended, switch.epoch()), (FIRST, NEXT));
    let epochs = actors.map(|actor| actor.join().unwrap());
    assert_eq!(at_switch, epochs.map(|of_mtr| [u64::from(of_mtr == ended); 2]), "G4");
}

#[test]
fn an_epoch_switch_has_all_of_the_mini_transactions_of_its_epoch_and_nothing_of_others() {
    check(act_beside_a_switch);
}

#[test]
fn the_model_finds_mini_transactions_let_in_before_the_epoch_switch() {
    assert!(finds("pool: let mini-transactions in before the epoch switch", act_beside_a_switch));
}

/// A checkpoint collects dirty pages while two pages are written out, and no page is changed.
fn look_for_dirty_pages_while_they_are_written() {
    const PAGE_BYTES: usize = 7;
    let changes = Arc::new(EpochChanges::with_shards(1));
    let pages = [1, 2].map(PageId);
    pages.iter().for_each(|page| changes.mark_dirty(*page, PAGE_BYTES));
    let writers = pages.map(|page| {
        let changes = Arc::clone(&changes);
        loom::thread::spawn(move || changes.unmark_dirty(page, PAGE_BYTES))
    });
    for _ in 0..2 {
        let known = changes.dirty_pids().len();
        assert!(changes.dirty_count() <= known, "E3");
    }
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    assert_eq!((changes.dirty_pids().len(), changes.dirty_count(), changes.dirty_bytes()), (0, 0, 0), "E3");
}

#[test]
fn a_page_that_is_dirty_no_more_is_not_counted() {
    check(look_for_dirty_pages_while_they_are_written);
}

#[test]
fn the_model_finds_a_page_that_is_counted_when_it_is_dirty_no_more() {
    assert!(finds("pool: count a page that is dirty no more", look_for_dirty_pages_while_they_are_written));
}

/// A pool of one page, whose content is a number.
struct World {
    switch: EpochSwitch<1>,
    in_writing: EpochInWriting,
    latch: RwLock<u64>,
    dirty: AtomicU64,
    /// The images of the two epochs, by the lowest bit of the epoch. An image is represented by its
    /// content.
    moved: Mutex<[Option<u64>; 2]>,
    /// The planted bug: several threads can hold the latch at once to write the page out.
    is_written_out_as_read: bool,
}

impl HandOver for World {
    type Page = ();
    type Content = u64;
    type Entry<'a> = MutexGuard<'a, [Option<u64>; 2]>;
    type Location = u64;

    fn in_writing(&self) -> &EpochInWriting {
        &self.in_writing
    }

    fn entry(&self, _: &()) -> Self::Entry<'_> {
        self.moved.lock()
    }

    fn with_latch<R>(&self, _: &(), f: impl FnOnce(&u64) -> R) -> R {
        match self.is_written_out_as_read {
            true => f(&self.latch.read()),
            false => f(&self.latch.upgradable_read()),
        }
    }

    fn is_freed(&self, _: &()) -> bool {
        false
    }

    fn dirty(&self, _: &()) -> Option<Epoch> {
        let dirty = self.dirty.load(Ordering::Acquire);
        (dirty != 0).then_some(Epoch(dirty))
    }

    fn set_dirty(&self, _: &Self::Entry<'_>, _: &(), epoch: Option<Epoch>) {
        self.dirty.store(epoch.map_or(0, |epoch| epoch.0), Ordering::Release);
    }

    fn append(&self, _: &(), content: &u64, _: Epoch) -> Result<u64> {
        Ok(*content)
    }

    fn locate(&self, entry: &mut Self::Entry<'_>, _: &(), location: u64, epoch: Epoch) {
        let is_overtaken = entry[(epoch.0 + 1) as usize % 2].is_some();
        assert!(!is_overtaken || self.in_writing.writing() != Some(epoch), "C1");
        entry[epoch.0 as usize % 2] = Some(location);
    }

    fn count_flush_before_modify(&self) {}
}

impl World {
    /// Creates the pool. Its page has an unwritten change of the first epoch, to the number 1.
    fn new() -> Arc<Self> {
        Self::with_latch_of_readers(false)
    }

    fn with_latch_of_readers(is_written_out_as_read: bool) -> Arc<Self> {
        Arc::new(Self {
            switch: EpochSwitch::new(FIRST),
            in_writing: EpochInWriting::default(),
            latch: RwLock::new(1),
            dirty: AtomicU64::new(FIRST.0),
            moved: Mutex::default(),
            is_written_out_as_read,
        })
    }

    /// Changes the page in a mini-transaction, and returns its epoch.
    fn change(&self, value: u64) -> Epoch {
        let inside = self.switch.enter(0);
        let mut content = self.latch.write();
        self.before_change(&(), &content, *inside);
        *content = value;
        *inside
    }

    fn begin_checkpoint(&self) -> Epoch {
        self.switch.switch(|ended| {
            self.in_writing.begin(ended);
            ended
        })
    }

    /// Writes the page for an epoch, and commits it. Returns the page's image, if the epoch has
    /// one.
    fn commit(&self, epoch: Epoch) -> Option<u64> {
        self.write_for(&(), epoch).unwrap();
        assert!(self.in_writing.take_failure().is_none());
        assert_ne!(self.dirty(&()), Some(epoch), "E1");
        let image = self.entry(&())[epoch.0 as usize % 2].take();
        self.in_writing.end();
        image
    }

    /// Abandons a checkpoint: its pages belong to the next epoch.
    fn abandon(&self, epoch: Epoch) {
        self.in_writing.fail(Error::Interrupted);
        self.carry_over(&self.entry(&()), &(), epoch);
        let mut moved = self.entry(&());
        let (old, new) = (epoch.0 as usize % 2, (epoch.0 + 1) as usize % 2);
        moved[new] = moved[new].or(moved[old].take());
        drop(moved);
        self.in_writing.end();
    }
}

/// Runs `main` while the page is changed to 2 and written out. Returns the epoch of the change.
fn beside_writer_and_cleaner(world: &Arc<World>, main: impl FnOnce()) -> Epoch {
    let (writes, cleans) = (Arc::clone(world), Arc::clone(world));
    let writer = loom::thread::spawn(move || writes.change(2));
    let cleaner = loom::thread::spawn(move || cleans.write_out(&()).unwrap());
    main();
    cleaner.join().unwrap();
    writer.join().unwrap()
}

fn write_beside_a_checkpoint_of(world: Arc<World>) {
    let mut image = None;
    let changed_in = beside_writer_and_cleaner(&world, || image = world.commit(world.begin_checkpoint()));
    let is_first = changed_in == FIRST;
    assert_eq!(image, Some(if is_first { 2 } else { 1 }), "W2");
    let images = [(); 2].map(|()| world.commit(world.begin_checkpoint()));
    assert_eq!(images, [(!is_first).then_some(2), None], "W2");
}

fn write_beside_a_checkpoint() {
    write_beside_a_checkpoint_of(World::new());
}

#[test]
fn an_image_of_an_epoch_is_as_the_page_was_at_its_end() {
    check(write_beside_a_checkpoint);
}

#[test]
fn the_model_finds_a_page_that_is_changed_before_it_is_flushed() {
    assert!(finds("pool: skip flush before modify", write_beside_a_checkpoint));
}

#[test]
fn the_model_finds_a_latch_that_lets_two_write_a_page_out() {
    assert!(fails(|| write_beside_a_checkpoint_of(World::with_latch_of_readers(true))));
}

fn write_beside_an_abandoned_checkpoint() {
    let world = World::new();
    beside_writer_and_cleaner(&world, || world.abandon(world.begin_checkpoint()));
    assert_eq!(world.commit(world.begin_checkpoint()), Some(2), "nothing is lost");
}

#[test]
fn what_an_abandoned_checkpoint_has_written_and_not_written_is_in_the_next_one() {
    check(write_beside_an_abandoned_checkpoint);
}

#[test]
fn the_model_finds_an_image_in_an_epoch_that_was_given_up() {
    assert!(finds("pool: do not look again whose an image is", write_beside_an_abandoned_checkpoint));
}

//! The tail of a stream under the model checker: appends, reads and syncs while halves are written
//! to the file. `World` repeats the calls of `append.rs`, which is not run here.

use crate::base::model as sync;
use crate::base::{Error, Result};
use crate::segment::ImageBuffer;
use std::sync::Arc;
use sync::{check, finds, AtomicBool, AtomicU64, Mutex, Ordering};

#[path = "tail.rs"]
#[expect(clippy::duplicate_mod, reason = "the engine's own source, over the model checker's primitives")]
#[expect(dead_code, reason = "the models need a part of it")]
mod tail;

use tail::{End, Put, Tail, TailFile, Write};

/// Bytes of a half. The header and every image have one byte, whose value is its position.
const HALF_BYTES: usize = 2;

/// A file reduced to lengths.
#[derive(Default)]
struct State {
    /// The bytes that count as written.
    written_bytes: AtomicU64,
    /// The bytes that are in the file.
    bytes: AtomicU64,
    /// The bytes that the next sync covers.
    noted_bytes: AtomicU64,
    is_sealed: AtomicBool,
}

#[derive(Clone)]
struct File(Arc<State>);

impl TailFile for File {
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn set_written_bytes(&self, bytes: u32) {
        self.0.written_bytes.store(bytes.into(), Ordering::Release);
    }
}

/// A stream with one segment, whose header and first image fill a half.
struct World {
    tail: Tail<File>,
    file: File,
    /// The lock of appends, with the end of the segment.
    end: Mutex<u32>,
    /// Like `end`, readable without the lock.
    appended_bytes: AtomicU64,
    is_being_written: AtomicBool,
    fails_next: AtomicBool,
}

impl World {
    fn new(fails_next: bool) -> Arc<Self> {
        let (tail, file) = (Tail::new(HALF_BYTES), File(Arc::default()));
        tail.start(file.clone(), &[0], 1, &[1]);
        Arc::new(Self {
            tail,
            file,
            end: Mutex::new(2),
            appended_bytes: AtomicU64::new(2),
            is_being_written: AtomicBool::new(false),
            fails_next: AtomicBool::new(fails_next),
        })
    }

    fn write(&self, write: Write<'_, File>) -> Result<()> {
        let ended = write.run(|file, start, bytes| {
            assert!(!self.is_being_written.swap(true, Ordering::Relaxed), "T4");
            let expected: Vec<u8> = (0..bytes.len()).map(|no| no as u8 + start as u8).collect();
            assert_eq!(bytes, expected, "T2");
            assert_eq!(u64::from(start), file.0.bytes.load(Ordering::Relaxed), "T4: in order");
            let fails = self.fails_next.swap(false, Ordering::Relaxed);
            self.is_being_written.store(false, Ordering::Relaxed);
            if fails {
                return Err(Error::Interrupted);
            }
            let end = u64::from(start) + bytes.len() as u64;
            file.0.bytes.store(end, Ordering::Relaxed);
            file.0.noted_bytes.store(end, Ordering::Relaxed);
            Ok(())
        })?;
        if let Some(file) = ended {
            self.seal(&file);
        }
        Ok(())
    }

    fn seal(&self, file: &File) {
        let is_all_there = file.0.bytes.load(Ordering::Relaxed) == u64::from(*self.end.lock());
        assert!(is_all_there && !file.0.is_sealed.swap(true, Ordering::Relaxed), "T6");
    }

    fn append(&self) -> Result<()> {
        let mut end = self.end.lock();
        let write = loop {
            match self.tail.put(*end, &[*end as u8]) {
                Put::Done(write) => break write,
                Put::After(write) => self.write(write)?,
            }
        };
        *end += 1;
        self.appended_bytes.store(u64::from(*end), Ordering::Release);
        drop(end);
        let _kept = write.map(|write| self.write(write));
        Ok(())
    }

    /// Reads the image at `offset`, which was appended.
    fn read(&self, offset: u32) {
        let is_in_file = || {
            let is_written = self.file.0.written_bytes.load(Ordering::Acquire) > u64::from(offset);
            assert!(!is_written || self.file.0.bytes.load(Ordering::Relaxed) > u64::from(offset), "T3");
            is_written
        };
        let mut image = ImageBuffer::default();
        if !is_in_file() && self.tail.copy(&self.file, offset, 1, &mut image) {
            return assert_eq!(*image, [offset as u8], "T1");
        }
        assert!(is_in_file(), "T1");
    }

    fn read_newest(&self) {
        self.read(self.appended_bytes.load(Ordering::Acquire) as u32 - 1);
    }

    fn sync(&self) -> Result<()> {
        let appended_bytes = self.appended_bytes.load(Ordering::Acquire);
        let goal = self.tail.goal();
        while let Some(write) = self.tail.next_write(goal) {
            self.write(write)?;
        }
        assert!(self.file.0.noted_bytes.load(Ordering::Relaxed) >= appended_bytes, "T5");
        Ok(())
    }

    fn end_segment(&self) -> Result<()> {
        let line = self.end.lock();
        let ended = loop {
            match self.tail.end() {
                End::After(write) => self.write(write)?,
                ended => break ended,
            }
        };
        drop(line);
        match ended {
            End::Last(Some(write)) => self.write(write),
            End::Written => {
                self.seal(&self.file);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Syncs, and checks that everything is in the file and can be read.
    fn end_well(&self) {
        self.sync().unwrap();
        let end = *self.end.lock();
        assert_eq!(self.file.0.bytes.load(Ordering::Relaxed), u64::from(end));
        (1..end).for_each(|offset| self.read(offset));
    }
}

fn beside(world: &Arc<World>, act: fn(&World)) -> loom::thread::JoinHandle<()> {
    let world = Arc::clone(world);
    loom::thread::spawn(move || act(&world))
}

/// One thread appends until a half is filled for the second time, and another thread reads.
fn append_and_read() {
    let world = World::new(false);
    let reader = beside(&world, |world| {
        world.read(1);
        world.read_newest();
    });
    (0..3).for_each(|_| world.append().unwrap());
    reader.join().unwrap();
    world.end_well();
}

#[test]
fn what_was_appended_can_be_read_while_it_goes_to_the_file() {
    check(append_and_read);
}

/// Breaks T3: a half must count as written only once it is in the file and noted for the sync.
#[test]
fn the_model_finds_a_half_that_counts_as_written_too_early() {
    assert!(finds("segment: count a half as written before it is", append_and_read));
}

/// Two threads append while a third syncs.
fn append_and_sync() {
    let world = World::new(false);
    let appender = beside(&world, |world| (0..2).for_each(|_| world.append().unwrap()));
    let syncer = beside(&world, |world| world.sync().unwrap());
    world.append().unwrap();
    appender.join().unwrap();
    syncer.join().unwrap();
    world.end_well();
}

#[test]
fn a_sync_has_all_that_was_appended_before_it() {
    check(append_and_sync);
}

/// Breaks T5: a sync must wait for everything that was appended before it.
#[test]
fn the_model_finds_a_sync_that_leaves_out_what_is_being_written() {
    assert!(finds("segment: sync without the half that is being written", append_and_sync));
}

/// Two threads append more than both halves hold.
fn append_beside_each_other() {
    let world = World::new(false);
    let appender = beside(&world, |world| (0..2).for_each(|_| world.append().unwrap()));
    (0..2).for_each(|_| world.append().unwrap());
    appender.join().unwrap();
    world.end_well();
}

#[test]
fn halves_go_to_the_file_one_after_the_other() {
    check(append_beside_each_other);
}

/// Breaks T2: a full half must not change.
#[test]
fn the_model_finds_a_half_that_is_filled_while_it_is_written() {
    assert!(finds("segment: fill the half that is being written", append_beside_each_other));
}

/// The first write fails. A successful sync must have repeated it.
fn fail_once() {
    let world = World::new(true);
    let syncer = beside(&world, |world| drop(world.sync()));
    (0..3).for_each(|_| drop(world.append()));
    syncer.join().unwrap();
    world.end_well();
}

#[test]
fn a_half_whose_write_failed_is_written_again() {
    check(fail_once);
}

/// Breaks T4: a half whose write failed must stay full.
#[test]
fn the_model_finds_a_failed_write_that_is_taken_for_done() {
    assert!(finds("segment: take a failed write for done", fail_once));
}

/// The segment ends while a sync writes, and one write fails.
fn end_and_sync() {
    let world = World::new(true);
    let syncer = beside(&world, |world| drop(world.sync()));
    let appender = beside(&world, |world| drop(world.append()));
    appender.join().unwrap();
    if world.end_segment().is_err() {
        world.end_segment().unwrap();
    }
    syncer.join().unwrap();
    world.end_well();
    assert!(world.file.0.is_sealed.load(Ordering::Relaxed), "T6");
}

#[test]
fn a_segment_is_sealed_once_with_its_last_half() {
    check(end_and_sync);
}

//! The end of a stream that is not in its file yet. The tail has two halves: one is filled while
//! the other, the full half, is written.
//!
//! Invariants (T1 to T7 of docs/developers/durability.md)
//!   T1  An appended byte is in its file, in the full half, or in the half being filled. The bytes
//!       of a segment are in this order.
//!   T2  A full half does not change until it is written. Only the thread that writes it has
//!       another reference to it, and drops the reference before the half counts as written.
//!   T3  A half counts as written only once its bytes are in the file and the file is noted for the
//!       next sync. From then on readers read these bytes from the file.
//!   T4  One thread at a time writes. A half whose write failed stays full. The next thread that
//!       needs its bytes in the file repeats the write, and gets the error if it fails again.
//!   T5  A sync writes everything that was put before it, or waits until other threads have written
//!       it.
//!   T6  The thread that writes the last half of a segment learns that it has to seal the segment.
//! Locks     `halves`, taken to copy an image in or out, and never held across I/O (T7).
//! `interleaving_tests.rs` compiles this file again with loom's primitives.

use super::sync::{Condvar, Mutex};
use crate::base::{sound, Result};
use crate::segment::ImageBuffer;
use cheetah_io::AlignedBytes;
use std::sync::Arc;

/// The operations on a segment file that the tail needs.
pub(super) trait TailFile: Clone {
    /// Returns whether both are the same file.
    fn is(&self, other: &Self) -> bool;

    /// Sets the number of bytes that count as written. Readers read these bytes from the file.
    fn set_written_bytes(&self, bytes: u32);
}

pub(super) struct Tail<F> {
    half_bytes: usize,
    halves: Mutex<Halves<F>>,
    /// Notified when a write has ended, successfully or not.
    write_ended: Condvar,
}

struct Halves<F> {
    filling: Half<F>,
    /// Empty if everything before `filling` is in the file.
    full: Half<F>,
    is_being_written: bool,
    /// Whether `full` is the last half of its segment.
    is_last: bool,
    /// The number of halves that became full so far.
    full_count: u64,
    /// The number of halves that were written so far.
    written_count: u64,
}

struct Half<F> {
    file: Option<F>,
    /// Position in the file.
    start: u32,
    bytes: Arc<AlignedBytes>,
}

impl<F: TailFile> Half<F> {
    fn empty() -> Self {
        Self { file: None, start: 0, bytes: Arc::default() }
    }

    fn end(&self) -> u32 {
        self.start + self.bytes.len() as u32
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns whether the image fits. An image of any length fits into an empty half.
    fn has_room(&self, offset: u32, image: &[u8], half_bytes: usize) -> bool {
        self.is_empty() || (offset - self.start) as usize + image.len() <= half_bytes
    }

    fn bytes_mut(&mut self) -> &mut AlignedBytes {
        Arc::get_mut(&mut self.bytes).expect("T2: a half changes only while no thread writes it")
    }

    /// Adds bytes at `offset`, which must be at or after the end. Fills the gap with zeros.
    fn push(&mut self, offset: u32, bytes: &[u8]) {
        assert!(offset >= self.end(), "T1: segments are appended to");
        let gap_end = (offset - self.start) as usize;
        let half = self.bytes_mut();
        half.resize(gap_end);
        half.extend_from_slice(bytes);
    }

    fn part(&self, file: &F, offset: u32, len: usize) -> Option<&[u8]> {
        self.file.as_ref().filter(|mine| mine.is(file))?;
        let from = offset.checked_sub(self.start)? as usize;
        self.bytes.get(from..)?.get(..len)
    }
}

impl<F: TailFile> Halves<F> {
    /// Makes the half being filled the full half. The other half continues at its end.
    fn switch(&mut self, half_bytes: usize) {
        assert!(self.full.is_empty(), "T4: a half stays full until it is in its file");
        std::mem::swap(&mut self.filling, &mut self.full);
        self.filling.bytes_mut().reserve(half_bytes);
        self.filling.file = self.full.file.clone();
        self.filling.start = self.full.end();
        self.full_count += 1;
    }

    /// Makes the full half count as written. Returns whether it is the last half of its segment.
    fn finish_write(&mut self, half_bytes: usize) -> bool {
        let end = self.full.end();
        self.full.bytes_mut().clear();
        // An image may have been longer than a half.
        self.full.bytes_mut().shrink_to(half_bytes);
        self.full.file.take().expect("T1: bytes belong to a file").set_written_bytes(end);
        self.written_count += 1;
        std::mem::take(&mut self.is_last)
    }
}

/// The result of putting an image.
pub(super) enum Put<'t, F: TailFile> {
    /// The image is in the tail. If a half became full, the caller must perform its write after
    /// releasing its locks.
    Done(Option<Write<'t, F>>),
    /// The image is not in the tail, because both halves are full. The caller must repeat this
    /// failed write, and then put the image again.
    After(Write<'t, F>),
}

/// The result of ending a segment.
pub(super) enum End<'t, F: TailFile> {
    /// The complete segment is in its file.
    Written,
    /// The last half is full and not in the file yet. The thread that writes it seals the segment.
    /// This is the caller if it gets the write, and otherwise the thread that is writing the half
    /// or that repeats its write.
    Last(Option<Write<'t, F>>),
    /// The segment has not ended. The caller must first repeat this write, which failed.
    After(Write<'t, F>),
}

impl<F: TailFile> Tail<F> {
    /// Creates an empty tail with halves of `half_bytes` bytes each, aligned for I/O. They are
    /// allocated when they are first needed, and then kept.
    pub(super) fn new(half_bytes: usize) -> Self {
        let halves = Halves {
            filling: Half::empty(),
            full: Half::empty(),
            is_being_written: false,
            is_last: false,
            full_count: 0,
            written_count: 0,
        };
        Self { half_bytes, halves: Mutex::new(halves), write_ended: Condvar::default() }
    }

    /// Starts a segment with its header and its first image. The previous segment must have ended.
    /// The lock of the stream (`open`) excludes other calls of `start`, `put` and `end`.
    pub(super) fn start(&self, file: F, header: &[u8], offset: u32, image: &[u8]) {
        let mut halves = self.halves.lock();
        let filling = &mut halves.filling;
        assert!(filling.is_empty(), "T1: the segment before has ended");
        (filling.file, filling.start) = (Some(file), 0);
        filling.bytes_mut().reserve(self.half_bytes);
        filling.push(0, header);
        filling.push(offset, image);
    }

    /// Puts an image at `offset`, after everything that was put before. Waits for the current
    /// write if the half that is being written is needed.
    pub(super) fn put(&self, offset: u32, image: &[u8]) -> Put<'_, F> {
        let mut halves = self.halves.lock();
        loop {
            if halves.filling.has_room(offset, image, self.half_bytes) {
                halves.filling.push(offset, image);
                return Put::Done(None);
            }
            let is_writing = halves.is_being_written;
            if sound!(is_writing, "segment: fill the half that is being written") {
                self.write_ended.wait(&mut halves);
                continue;
            }
            if !is_writing && !halves.full.is_empty() {
                return Put::After(self.begin_write(&mut halves));
            }
            halves.switch(self.half_bytes);
            halves.filling.push(offset, image);
            return Put::Done(Some(self.begin_write(&mut halves)));
        }
    }

    /// Ends the open segment. Waits for the current write like `put`.
    pub(super) fn end(&self) -> End<'_, F> {
        let mut halves = self.halves.lock();
        loop {
            if halves.filling.is_empty() {
                halves.filling.file = None;
                if halves.full.is_empty() {
                    return End::Written;
                }
                halves.is_last = true;
                return End::Last(None);
            }
            if halves.is_being_written {
                self.write_ended.wait(&mut halves);
                continue;
            }
            if !halves.full.is_empty() {
                return End::After(self.begin_write(&mut halves));
            }
            halves.switch(self.half_bytes);
            halves.filling.file = None;
            halves.is_last = true;
            return End::Last(Some(self.begin_write(&mut halves)));
        }
    }

    /// Returns the number of halves that must have been written for everything put so far to be in
    /// the file.
    pub(super) fn goal(&self) -> u64 {
        let halves = self.halves.lock();
        halves.full_count + u64::from(!halves.filling.is_empty())
    }

    /// Returns the next write needed to reach `goal`, or `None` if everything up to `goal` is in
    /// the file. Waits for the current write (T5).
    pub(super) fn next_write(&self, goal: u64) -> Option<Write<'_, F>> {
        let mut halves = self.halves.lock();
        while halves.written_count < goal {
            if !halves.is_being_written {
                if halves.full.is_empty() {
                    halves.switch(self.half_bytes);
                }
                return Some(self.begin_write(&mut halves));
            }
            if !sound!(true, "segment: sync without the half that is being written") {
                break;
            }
            self.write_ended.wait(&mut halves);
        }
        None
    }

    /// Copies the bytes at `offset` of `file` to `image` if the tail has them. Returns whether it
    /// has them.
    pub(super) fn copy(&self, file: &F, offset: u32, len: usize, image: &mut ImageBuffer) -> bool {
        let halves = self.halves.lock();
        let filling = halves.filling.part(file, offset, len);
        let full = || match sound!(true, "segment: read past the full half") {
            true => halves.full.part(file, offset, len),
            false => None,
        };
        let found = filling.or_else(full);
        found.inspect(|bytes| image.set(bytes));
        found.is_some()
    }

    /// Memory that the halves keep.
    #[cfg(test)]
    pub(super) fn kept_bytes(&self) -> usize {
        let halves = self.halves.lock();
        halves.filling.bytes.capacity() + halves.full.bytes.capacity()
    }

    fn begin_write(&self, halves: &mut Halves<F>) -> Write<'_, F> {
        debug_assert!(!halves.is_being_written, "T4: one thread at a time writes");
        halves.is_being_written = true;
        let Half { file, start, bytes } = &halves.full;
        let file = file.clone().expect("T1: bytes belong to a file");
        Write { tail: self, file, start: *start, bytes: Some(Arc::clone(bytes)) }
    }
}

/// A write of the full half, which only the owner of this value may and must perform. Dropping the
/// value means that the write failed (T4).
#[must_use = "no other thread writes as long as this lives"]
pub(super) struct Write<'t, F: TailFile> {
    tail: &'t Tail<F>,
    file: F,
    start: u32,
    /// `None` once the write has ended.
    bytes: Option<Arc<AlignedBytes>>,
}

impl<F: TailFile> Write<'_, F> {
    /// Calls `write` with the file, the position in it and the bytes. `write` must also note the
    /// file for the next sync (T3). Returns the file if the caller must now seal its segment (T6).
    pub(super) fn run(mut self, write: impl FnOnce(&F, u32, &[u8]) -> Result<()>) -> Result<Option<F>> {
        if !sound!(true, "segment: count a half as written before it is") {
            let (bytes, is_last) = (self.bytes().to_vec(), self.finish(true));
            return write(&self.file, self.start, &bytes).map(|()| is_last.then(|| self.file.clone()));
        }
        let is_free = sound!(true, "segment: write a half under the lock of readers");
        let lock = (!is_free).then(|| self.tail.halves.lock());
        let result = write(&self.file, self.start, self.bytes());
        drop(lock);
        if sound!(true, "segment: take a failed write for done") {
            result?;
        }
        Ok(self.finish(true).then(|| self.file.clone()))
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.as_ref().expect("T2: a write has its half until it ends")
    }

    /// Ends the write. Returns whether the half counts as written and is the last of its segment.
    fn finish(&mut self, is_written: bool) -> bool {
        // The reference must be dropped before another thread fills the half again (T2).
        self.bytes = None;
        let mut halves = self.tail.halves.lock();
        halves.is_being_written = false;
        let is_last = is_written && halves.finish_write(self.tail.half_bytes);
        self.tail.write_ended.notify_all();
        is_last
    }
}

impl<F: TailFile> Drop for Write<'_, F> {
    fn drop(&mut self) {
        if self.bytes.is_some() {
            self.finish(false);
        }
    }
}

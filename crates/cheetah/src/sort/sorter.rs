//! Takes records in any order and returns them in the order of their keys.
//!
//! Invariants
//!   S3  Runs are merged with blocks that fit into the sorter's share of memory. If there are too
//!       many runs for that, they are merged in several passes.
//!   S4  The first time, a large buffer is written as several runs, each by its own thread to its
//!       own file. These threads end before the call returns. After that there are two buffers with
//!       half of the memory each: a thread writes one while the other is filled.
//! Errors    `DiskFull` and `Io` from the files. After an error the sorter can no longer be used.

use super::buffer::{Buffer, Part};
use super::memory::Share;
use super::merge::{Merge, Runs};
use super::runs::{Run, RunFile, TempFiles};
use super::writing::{write_run, Writing};
use crate::base::{reach, statement_threads, Error, Result};
use std::sync::Arc;
use std::thread::ScopedJoinHandle;

/// The size of a block is that of a piece divided by `BLOCK_PART`.
const BLOCK_PART: usize = 4;
/// The number of blocks that a run's reader keeps in memory: a compressed one and a decompressed
/// one.
const BLOCKS_PER_RUN: usize = 2;
/// The size of a batch of records, in pieces. With smaller batches, threads spend more time on
/// synchronization.
const BATCH_PIECES: usize = 2;
/// A buffer is written by one thread for each `THREAD_BYTES` bytes of it.
const THREAD_BYTES: usize = 4 << 20;

/// See the module.
#[derive(Debug)]
pub struct Sorter {
    files: Arc<TempFiles>,
    share: Share,
    buffer: Buffer,
    other: Other,
    /// The files that runs may be appended to, except the one that is being written.
    written: Vec<RunFile>,
    /// The bytes of files to which no more runs are written.
    left_bytes: u64,
    runs: Vec<Run>,
    block_bytes: usize,
    thread_bytes: usize,
}

/// The other buffer (S4).
#[derive(Debug)]
enum Other {
    None,
    Empty(Buffer),
    Full(Writing),
}

impl Sorter {
    /// Creates a sorter without records, with a share of the memory.
    pub fn new(files: &Arc<TempFiles>, share: Share) -> Self {
        let block_bytes = (share.piece_bytes() / BLOCK_PART).max(1);
        let (files, buffer) = (Arc::clone(files), Buffer::new(share.piece_bytes()));
        let (other, written, runs) = (Other::None, Vec::new(), Vec::new());
        let (left_bytes, thread_bytes) = (0, THREAD_BYTES);
        Self { files, share, buffer, other, written, left_bytes, runs, block_bytes, thread_bytes }
    }

    /// Makes the sorter start no threads.
    pub fn alone(self) -> Self {
        Self { thread_bytes: usize::MAX, ..self }
    }

    /// Adds a record, whose key and value are passed in parts. May write a run.
    pub fn push(&mut self, key: &[&[u8]], value: &[&[u8]]) -> Result<()> {
        if !self.buffer.push(&mut self.share, key, value) {
            self.spill()?;
            let taken = self.buffer.push(&mut self.share, key, value);
            assert!(taken, "an empty buffer takes a record of any length");
        }
        Ok(())
    }

    /// The bytes written to disk so far, without the run that is being written.
    pub fn spilled_bytes(&self) -> u64 {
        let before = match &self.other {
            Other::Full(writing) => writing.bytes_before(),
            Other::None | Other::Empty(_) => 0,
        };
        before + self.left_bytes + self.written.iter().map(RunFile::bytes).sum::<u64>()
    }

    /// The bytes of all records so far, on disk and in memory, including free space in memory.
    pub fn bytes(&self) -> u64 {
        self.spilled_bytes() + self.share.bytes() as u64
    }

    #[cfg(test)]
    pub(super) fn with_threads_for_each(mut self, bytes: usize) -> Self {
        self.thread_bytes = bytes;
        self
    }

    #[cfg(test)]
    pub(super) fn writes_plain_text(&self) -> bool {
        self.written.iter().any(RunFile::is_plain)
    }

    #[cfg(test)]
    pub(super) fn has_two_buffers(&self) -> bool {
        !matches!(self.other, Other::None)
    }

    /// Makes space in the buffer. On return, its records were written, or a thread is writing them.
    fn spill(&mut self) -> Result<()> {
        reach::mark("sorter spilled");
        self.take_back()?;
        self.leave_plain_files();
        match (std::mem::replace(&mut self.other, Other::None), self.share.writer()) {
            (Other::Empty(other), Some(writer)) => {
                let full = std::mem::replace(&mut self.buffer, other);
                let file = self.written.pop().map_or_else(|| self.new_file(), Ok)?;
                self.other = Other::Full(Writing::begin(full, file, writer)?);
                Ok(())
            }
            (other @ Other::Empty(_), None) => {
                self.other = other;
                self.write_now()
            }
            _ => {
                self.write_now()?;
                if self.threads() > 1 {
                    self.other = self.buffer.split().map_or(Other::None, Other::Empty);
                }
                Ok(())
            }
        }
    }

    /// Stops writing to unencrypted files if the database is encrypted now. Their runs keep these
    /// files open.
    fn leave_plain_files(&mut self) {
        let (go_on, left): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.written).into_iter().partition(RunFile::may_go_on);
        self.left_bytes += left.iter().map(RunFile::bytes).sum::<u64>();
        self.written = go_on;
    }

    /// Waits until the other buffer was written, and empties it.
    fn take_back(&mut self) -> Result<()> {
        let writing = match std::mem::replace(&mut self.other, Other::None) {
            Other::Full(writing) => writing,
            other => {
                self.other = other;
                return Ok(());
            }
        };
        let (mut buffer, file, run) = writing.end()?;
        self.written.push(file);
        self.runs.push(run);
        buffer.clear(&self.share);
        self.other = Other::Empty(buffer);
        self.give_back();
        Ok(())
    }

    /// Frees excess memory after a write, unless the other buffer is still being written.
    fn give_back(&mut self) {
        let other = match std::mem::replace(&mut self.other, Other::None) {
            Other::None => 0,
            Other::Empty(other) if self.share.is_too_large() => {
                self.buffer.replace(other);
                0
            }
            Other::Empty(other) => {
                let bytes = other.bytes();
                self.other = Other::Empty(other);
                bytes
            }
            full @ Other::Full(_) => {
                self.other = full;
                return;
            }
        };
        self.share.shrink_to(self.buffer.bytes() + other);
    }

    /// The number of threads to use for a buffer of the current size.
    fn threads(&self) -> usize {
        (self.buffer.bytes() / self.thread_bytes).clamp(1, statement_threads())
    }

    /// Writes the records in the buffer as one or several runs (S4).
    fn write_now(&mut self) -> Result<()> {
        let count = self.threads();
        while self.written.len() < count {
            let file = self.new_file()?;
            self.written.push(file);
        }
        let parts = self.buffer.parts(count).zip(&mut self.written).collect();
        self.runs.extend(write_runs(parts)?);
        self.buffer.clear(&self.share);
        self.give_back();
        Ok(())
    }

    fn new_file(&self) -> Result<RunFile> {
        RunFile::create(&self.files, self.block_bytes)
    }

    /// Like [`finish`](Self::finish), but a thread merges the next records while the caller uses
    /// the previous ones.
    pub fn finish_ahead(self) -> Result<Merge> {
        let batch_bytes = self.batch_bytes();
        self.finish()?.ahead(batch_bytes)
    }

    /// The size of a batch of records that one thread passes to another.
    pub(super) fn batch_bytes(&self) -> usize {
        self.share.piece_bytes() * BATCH_PIECES
    }

    /// Returns all records in the order of their keys. May write and read files.
    pub fn finish(mut self) -> Result<Merge> {
        if self.runs.is_empty() {
            let threads = self.threads();
            return Merge::of_memory(self.buffer, threads, self.share);
        }
        self.leave_plain_files();
        if !self.buffer.is_empty() {
            self.write_now()?;
        }
        self.take_back()?;
        let Self { files, share, buffer, other, mut runs, block_bytes, .. } = self;
        drop((buffer, other));
        let runs_max = (share.bytes() / (BLOCKS_PER_RUN * block_bytes)).max(2);
        while runs.len() > runs_max {
            reach::mark("runs merged in several passes");
            runs = merge_some(&files, &runs, runs_max, block_bytes)?;
        }
        Ok(Merge::of_runs(Runs::of(&runs, Some(share))?))
    }
}

/// Sorts each part and writes it as a run to its file. Each part except one is processed on another
/// thread. These threads end before this function returns.
fn write_runs(mut parts: Vec<(Part<'_>, &mut RunFile)>) -> Result<Vec<Run>> {
    let Some(own) = parts.pop() else { return Ok(Vec::new()) };
    std::thread::scope(|scope| {
        let begin = |(part, file)| {
            let thread = std::thread::Builder::new().name("cheetah-sort".into());
            let begun = thread.spawn_scoped(scope, move || write_run(part, file));
            begun.map_err(|error| Error::io("start", "a thread that writes sorted runs", error))
        };
        let others = parts.into_iter().map(begin).collect::<Vec<_>>();
        let own = write_run(own.0, own.1);
        let join = |other: Result<ScopedJoinHandle<'_, Result<Run>>>| {
            other?.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        // All threads must be joined, even after an error.
        let runs = others.into_iter().map(join).chain([own]).collect::<Vec<_>>();
        runs.into_iter().collect()
    })
}

fn merge_some(files: &Arc<TempFiles>, from: &[Run], runs_max: usize, block_bytes: usize) -> Result<Vec<Run>> {
    let mut file = RunFile::create(files, block_bytes)?;
    let mut merged = Vec::new();
    for some in from.chunks(runs_max) {
        let mut runs = Runs::of(some, None)?;
        while runs.advance()? {
            let (key, value) = runs.record();
            file.push(key, value)?;
        }
        merged.push(file.end_run()?);
    }
    Ok(merged)
}

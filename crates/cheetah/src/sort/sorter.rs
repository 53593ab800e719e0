//! Takes records in any order and gives them back in that of their keys.
//!
//! Invariants
//!   S3  Runs are written with what the buffer holds, and merged with blocks that fit into the same share: in several passes when
//!       there are too many runs for that.
//!   S4  A large buffer becomes several runs, each in a file of its own, written by as many threads; they end before the call does.
//! Errors    `DiskFull` and `Io` of the files; after an error the sorter is of no more use.

use super::buffer::{Buffer, Part};
use super::memory::Share;
use super::merge::{Merge, Runs};
use super::runs::{Run, RunFile, TempFiles};
use crate::base::{reach, statement_threads, Error, Result};
use std::sync::Arc;
use std::thread::ScopedJoinHandle;

/// Part of a piece that a block of a run takes.
const BLOCK_PART: usize = 4;
/// What a reader of a run takes, in blocks: one that is packed, and one that is not.
const BLOCKS_PER_RUN: usize = 2;
/// Memory of a buffer for each thread that writes it.
const THREAD_BYTES: usize = 4 << 20;

/// See the module.
#[derive(Debug)]
pub struct Sorter {
    files: Arc<TempFiles>,
    buffer: Buffer,
    /// One for each thread that has written so far.
    written: Vec<RunFile>,
    runs: Vec<Run>,
    block_bytes: usize,
    thread_bytes: usize,
}

impl Sorter {
    /// A sorter without records, with its share of memory.
    pub fn new(files: &Arc<TempFiles>, share: Share) -> Self {
        let block_bytes = (share.piece_bytes() / BLOCK_PART).max(1);
        let (files, buffer) = (Arc::clone(files), Buffer::new(share));
        Self { files, buffer, written: Vec::new(), runs: Vec::new(), block_bytes, thread_bytes: THREAD_BYTES }
    }

    /// Adds a record, of which key and value come in parts. May write a run.
    pub fn push(&mut self, key: &[&[u8]], value: &[&[u8]]) -> Result<()> {
        if !self.buffer.push(key, value) {
            self.spill()?;
            let taken = self.buffer.push(key, value);
            assert!(taken, "an empty buffer takes a record of any length");
        }
        Ok(())
    }

    /// Bytes that were written to disk so far.
    pub fn spilled_bytes(&self) -> u64 {
        self.written.iter().map(RunFile::bytes).sum()
    }

    /// Bytes of all records so far, in memory (with what is free there) and on disk.
    pub fn bytes(&self) -> u64 {
        self.spilled_bytes() + self.buffer.bytes() as u64
    }

    #[cfg(test)]
    pub(super) fn with_threads_for_each(mut self, bytes: usize) -> Self {
        self.thread_bytes = bytes;
        self
    }

    /// Writes what is in memory as a run, or as several (S4).
    fn spill(&mut self) -> Result<()> {
        reach::mark("sorter spilled");
        let count = (self.buffer.bytes() / self.thread_bytes).clamp(1, statement_threads());
        while self.written.len() < count {
            self.written.push(RunFile::create(&self.files, self.block_bytes)?);
        }
        let parts = self.buffer.parts(count).zip(&mut self.written).collect();
        self.runs.extend(write_runs(parts)?);
        self.buffer.clear();
        Ok(())
    }

    /// All records in the order of their keys. May write and read.
    pub fn finish(mut self) -> Result<Merge> {
        if self.runs.is_empty() {
            self.buffer.sort();
            return Ok(Merge::of_memory(self.buffer));
        }
        if !self.buffer.is_empty() {
            self.spill()?;
        }
        let Self { files, buffer, mut runs, block_bytes, .. } = self;
        let share = buffer.into_share();
        let runs_max = (share.bytes() / (BLOCKS_PER_RUN * block_bytes)).max(2);
        while runs.len() > runs_max {
            reach::mark("runs merged in several passes");
            runs = merge_some(&files, &runs, runs_max, block_bytes)?;
        }
        Ok(Merge::of_runs(Runs::of(&runs, Some(share))?))
    }
}

/// Sorts and writes each part as a run of the file beside it; all but one by threads that end before this does.
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
        // All are joined, whatever the first error is.
        let runs = others.into_iter().map(join).chain([own]).collect::<Vec<_>>();
        runs.into_iter().collect()
    })
}

fn write_run(mut part: Part<'_>, file: &mut RunFile) -> Result<Run> {
    part.sort();
    part.each(|key, value| file.push(key, value))?;
    file.end_run()
}

/// Merges each `runs_max` runs into one, in a new file.
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

//! Takes records in any order and gives them back in that of their keys.
//!
//! Invariants
//!   S3  Runs are written with what the buffer holds, and merged with blocks that fit into the same share: in several passes when
//!       there are too many runs for that.
//! Errors    `DiskFull` and `Io` of the files; after an error the sorter is of no more use.

use super::buffer::Buffer;
use super::memory::Share;
use super::merge::{Merge, Runs};
use super::runs::{RunFile, TempFiles};
use crate::base::{reach, Result};
use std::sync::Arc;

/// Part of a piece that a block of a run takes.
const BLOCK_PART: usize = 4;
/// What a reader of a run takes, in blocks: one that is packed, and one that is not.
const BLOCKS_PER_RUN: usize = 2;

/// See the module.
#[derive(Debug)]
pub struct Sorter {
    files: Arc<TempFiles>,
    buffer: Buffer,
    file: Option<RunFile>,
    block_bytes: usize,
    spilled_bytes: u64,
}

impl Sorter {
    /// A sorter without records, with its share of memory.
    pub fn new(files: &Arc<TempFiles>, share: Share) -> Self {
        let block_bytes = (share.piece_bytes() / BLOCK_PART).max(1);
        let (files, buffer) = (Arc::clone(files), Buffer::new(share));
        Self { files, buffer, file: None, block_bytes, spilled_bytes: 0 }
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
        self.spilled_bytes + self.file.as_ref().map_or(0, RunFile::bytes)
    }

    /// Writes what is in memory as a run.
    fn spill(&mut self) -> Result<()> {
        reach::mark("sorter spilled");
        self.buffer.sort();
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(RunFile::create(&self.files, self.block_bytes)?),
        };
        for no in 0..self.buffer.count() {
            self.buffer.fetch(no);
            let (key, value) = self.buffer.record(no);
            file.push(key, value)?;
        }
        file.end_run()?;
        self.buffer.clear();
        Ok(())
    }

    /// All records in the order of their keys. May write and read.
    pub fn finish(mut self) -> Result<Merge> {
        if self.file.is_none() {
            self.buffer.sort();
            return Ok(Merge::of_memory(self.buffer));
        }
        if !self.buffer.is_empty() {
            self.spill()?;
        }
        let Self { files, buffer, file, block_bytes, .. } = self;
        let share = buffer.into_share();
        let runs_max = (share.bytes() / (BLOCKS_PER_RUN * block_bytes)).max(2);
        let mut file = file.expect("something was spilled");
        while file.runs.len() > runs_max {
            reach::mark("runs merged in several passes");
            file = merge_some(&files, &file, runs_max, block_bytes)?;
        }
        let all = 0..file.runs.len();
        Ok(Merge::of_runs(Runs::of(&file, all, Some(share))?))
    }
}

/// Merges each `runs_max` runs into one, in a new file.
fn merge_some(
    files: &Arc<TempFiles>,
    from: &RunFile,
    runs_max: usize,
    block_bytes: usize,
) -> Result<RunFile> {
    let mut to = RunFile::create(files, block_bytes)?;
    for first in (0..from.runs.len()).step_by(runs_max) {
        let numbers = first..(first + runs_max).min(from.runs.len());
        let mut runs = Runs::of(from, numbers, None)?;
        while runs.advance()? {
            let (key, value) = runs.record();
            to.push(key, value)?;
        }
        to.end_run()?;
    }
    Ok(to)
}

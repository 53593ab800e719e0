//! Returns records in the order of their keys: from memory, from several runs, or merged by a
//! thread.

use super::ahead::Ahead;
use super::buffer::{Buffer, FETCHED_TOGETHER};
use super::memory::Share;
use super::runs::{Run, RunReader};
use crate::base::{opaque, Result};
use std::ops::Range;

/// See the module. Records with equal keys are adjacent, in any order.
pub struct Merge(Source);

enum Source {
    Memory(InMemory),
    Runs(Runs),
    Ahead(Ahead),
}

opaque!(Merge);

/// The records of a buffer whose parts are sorted, and their memory.
struct InMemory {
    buffer: Buffer,
    parts: Vec<Sorted>,
    /// The index of the part whose next record is the current record.
    current: Option<usize>,
    _share: Share,
}

/// A sorted part of the buffer. `left` are the indexes of the remaining records, in the order of
/// their keys, and `start` is the index of the part's first record.
struct Sorted {
    start: usize,
    left: Range<usize>,
}

impl InMemory {
    fn advance(&mut self) -> bool {
        match self.current {
            Some(current) => self.go_on(current),
            None => (0..self.parts.len()).for_each(|part| self.fetch(part)),
        }
        let mut least: Option<(usize, usize)> = None;
        for (no, part) in self.parts.iter().enumerate().filter(|(_, part)| !part.left.is_empty()) {
            if least.is_none_or(|(_, record)| self.buffer.is_before(part.left.start, record)) {
                least = Some((no, part.left.start));
            }
        }
        self.current = least.map(|(no, _)| no);
        least.is_some()
    }

    fn go_on(&mut self, part: usize) {
        if let Some(part) = self.parts.get_mut(part) {
            part.left.start += 1;
        }
        self.fetch(part);
    }

    fn fetch(&self, part: usize) {
        let Some(Sorted { start, left }) = self.parts.get(part) else { return };
        if (left.start - start) % FETCHED_TOGETHER == 0 && !left.is_empty() {
            self.buffer.fetch(left.start);
        }
    }

    fn record(&self) -> (&[u8], &[u8]) {
        let current = self.current.and_then(|no| self.parts.get(no));
        current.map_or((&[], &[]), |part| self.buffer.record(part.left.start))
    }
}

/// Runs that are being merged. `heap` is a binary heap of the indexes of unfinished runs, with the
/// smallest key first.
pub(super) struct Runs {
    readers: Vec<RunReader>,
    heap: Vec<usize>,
    is_on_record: bool,
    _share: Option<Share>,
}

impl Runs {
    pub(super) fn of(runs: &[Run], share: Option<Share>) -> Result<Self> {
        let mut readers: Vec<_> = runs.iter().map(Run::reader).collect();
        let mut heap = Vec::with_capacity(readers.len());
        for (no, reader) in readers.iter_mut().enumerate() {
            if reader.advance()? {
                heap.push(no);
            }
        }
        let mut runs = Self { readers, heap, is_on_record: false, _share: share };
        (0..runs.heap.len() / 2).rev().for_each(|at| runs.sink(at));
        Ok(runs)
    }

    /// Moves to the next record. Returns `false` at the end.
    pub(super) fn advance(&mut self) -> Result<bool> {
        if std::mem::replace(&mut self.is_on_record, true) {
            if let Some(reader) = self.heap.first().and_then(|&no| self.readers.get_mut(no)) {
                if !reader.advance()? {
                    self.heap.swap_remove(0);
                }
                self.sink(0);
            }
        }
        Ok(!self.heap.is_empty())
    }

    pub(super) fn record(&self) -> (&[u8], &[u8]) {
        let reader = self.heap.first().and_then(|&no| self.readers.get(no));
        reader.map_or((&[], &[]), |reader| (reader.key(), reader.value()))
    }

    fn key_at(&self, at: usize) -> Option<&[u8]> {
        self.heap.get(at).and_then(|&no| self.readers.get(no)).map(RunReader::key)
    }

    /// Sifts the run at `at` down the heap.
    fn sink(&mut self, mut at: usize) {
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if let (Some(key), Some(least_key)) = (self.key_at(child), self.key_at(least)) {
                    if key < least_key {
                        least = child;
                    }
                }
            }
            if least == at {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }
}

impl Merge {
    /// Sorts the records in memory, in at most `parts` parts, each on its own thread.
    pub(super) fn of_memory(mut buffer: Buffer, parts: usize, share: Share) -> Result<Self> {
        let sorted = |records: Range<usize>| Sorted { start: records.start, left: records };
        let parts = buffer.sort(parts)?.into_iter().map(sorted).collect();
        Ok(Self(Source::Memory(InMemory { buffer, parts, current: None, _share: share })))
    }

    pub(super) fn of_runs(runs: Runs) -> Self {
        Self(Source::Runs(runs))
    }

    /// Returns the same records, but a thread merges them.
    pub(super) fn ahead(self, batch_bytes: usize) -> Result<Self> {
        Ok(Self(Source::Ahead(Ahead::of(self, batch_bytes)?)))
    }

    /// Moves to the next record, at first to the first record. Returns `false` at the end. May do
    /// I/O.
    pub fn advance(&mut self) -> Result<bool> {
        match &mut self.0 {
            Source::Memory(memory) => Ok(memory.advance()),
            Source::Runs(runs) => runs.advance(),
            Source::Ahead(ahead) => ahead.advance(),
        }
    }

    /// Key and value of the current record.
    pub fn record(&self) -> (&[u8], &[u8]) {
        match &self.0 {
            Source::Memory(memory) => memory.record(),
            Source::Runs(runs) => runs.record(),
            Source::Ahead(ahead) => ahead.record(),
        }
    }
}

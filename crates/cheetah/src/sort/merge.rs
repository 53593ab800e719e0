//! Records in the order of their keys, from memory or from several runs.

use super::buffer::Buffer;
use super::memory::Share;
use super::runs::{Run, RunReader};
use crate::base::Result;

/// See the module. Records with equal keys come one after the other, in any order.
pub struct Merge(Source);

enum Source {
    Memory { buffer: Buffer, next: usize },
    Runs(Runs),
}

impl std::fmt::Debug for Merge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Merge")
    }
}

/// Runs that are read at once. `heap` has the numbers of those that are not at their end, the one with the smallest key first, and
/// each before those at twice its place and behind that.
pub(super) struct Runs {
    readers: Vec<RunReader>,
    heap: Vec<usize>,
    is_on_record: bool,
    _share: Option<Share>,
}

impl Runs {
    /// These runs.
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

    /// Goes to the next record; `false` at the end.
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

    /// Moves what is at this place behind those with smaller keys.
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
    pub(super) fn of_memory(buffer: Buffer) -> Self {
        Self(Source::Memory { buffer, next: 0 })
    }

    pub(super) fn of_runs(runs: Runs) -> Self {
        Self(Source::Runs(runs))
    }

    /// Goes to the next record, to the first one at first; `false` at the end. May do I/O.
    pub fn advance(&mut self) -> Result<bool> {
        match &mut self.0 {
            Source::Memory { buffer, next } => {
                buffer.fetch(*next);
                *next += 1;
                Ok(*next <= buffer.count())
            }
            Source::Runs(runs) => runs.advance(),
        }
    }

    /// Key and value of the record.
    pub fn record(&self) -> (&[u8], &[u8]) {
        match &self.0 {
            Source::Memory { buffer, next } => buffer.record(next.wrapping_sub(1)),
            Source::Runs(runs) => runs.record(),
        }
    }
}

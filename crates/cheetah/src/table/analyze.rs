//! How many different keys an index has, by samples.
//!
//! A small index is walked from end to end. In a larger one, parts with few different values are
//! counted exactly, by jumping from value to value; for the others, runs of neighbouring entries
//! are looked at in places that are spread evenly, and the share of neighbours that differ is taken
//! for the whole. The work is bounded, whatever the size.
//! Source    InnoDB samples whole leaves, 20 of an index, and takes the number of different keys in
//!           each; we differ in counting few values exactly, which samples judge badly when the
//!           values are long runs.

use crate::base::Result;
use crate::format::statistics::IndexStatistics;
use crate::format::varint;
use crate::table::Table;
use crate::tree::{Cursor, SeekMode};

/// Entries looked at in one place: about a leaf. Indexes that have no more than all places together
/// are walked.
const RUN_ENTRIES: u64 = 256;
/// Different values up to which they are counted one by one.
const JUMPS: u64 = 64;

/// Tells where the parts of a stored key end: number of the index, the caller's key, the clustered
/// key behind it, and where to put the ends, counted from the start of the caller's key.
pub type KeyEnds<'a> = dyn FnMut(usize, &[u8], &[u8], &mut Vec<usize>) + 'a;

/// Analyzes an index, looking at `places` of it. Blocks for I/O.
pub(crate) fn analyze_index(
    table: &Table,
    index_no: usize,
    places: u32,
    key_ends: &mut KeyEnds<'_>,
) -> Result<IndexStatistics> {
    let _usage = table.use_it()?;
    let rows = table.row_count();
    let mut walk = Walk { cursor: table.tree(index_no)?.cursor(), index_no, key_ends, ends: Vec::new() };
    let mut run = Run::default();
    let walked = u64::from(places) * RUN_ENTRIES;
    if rows <= walked {
        walk.run(SeekMode::First, b"", walked, &mut run)?;
        let distinct = run.changes.iter().map(|changes| changes + 1).collect();
        return Ok(IndexStatistics { rows, distinct });
    }
    for key in table.tree(index_no)?.spread_keys(places as usize)? {
        run.previous.clear();
        walk.run(SeekMode::AtLeast, &key, RUN_ENTRIES, &mut run)?;
    }
    let mut distinct = Vec::with_capacity(run.changes.len());
    let mut few = true;
    for (part, changes) in run.changes.iter().enumerate() {
        let jumps = if few { walk.count_values(part)? } else { JUMPS + 1 };
        few = jumps <= JUMPS;
        let sampled = u128::from(rows) * u128::from(*changes) / u128::from(run.pairs.max(1));
        let at_least = distinct.last().copied().unwrap_or(0).max(JUMPS);
        let value = if few { jumps } else { (sampled as u64).max(at_least).min(rows) };
        distinct.push(value);
    }
    Ok(IndexStatistics { rows, distinct })
}

/// What neighbouring entries have in common.
#[derive(Default)]
struct Run {
    previous: Vec<u8>,
    previous_ends: Vec<usize>,
    /// For each number of leading parts, how many entries differ from the one before.
    changes: Vec<u64>,
    pairs: u64,
}

impl Run {
    fn see(&mut self, key: &[u8], ends: &[usize]) {
        self.changes.resize(ends.len(), 0);
        if !self.previous.is_empty() {
            self.pairs += 1;
            let same = key.iter().zip(&self.previous).take_while(|(a, b)| a == b).count();
            for (part, end) in ends.iter().enumerate() {
                let equal = *end <= same && self.previous_ends.get(part) == Some(end);
                if let (false, Some(changes)) = (equal, self.changes.get_mut(part)) {
                    *changes += 1;
                }
            }
        }
        self.previous.clear();
        self.previous.extend_from_slice(key);
        self.previous_ends.clear();
        self.previous_ends.extend_from_slice(ends);
    }
}

struct Walk<'w, 'a> {
    cursor: Cursor,
    index_no: usize,
    key_ends: &'w mut KeyEnds<'a>,
    ends: Vec<usize>,
}

impl Walk<'_, '_> {
    /// Shows `run` up to `count` entries.
    fn run(&mut self, mode: SeekMode, key: &[u8], count: u64, run: &mut Run) -> Result<()> {
        let mut found = self.cursor.seek(mode, key)?;
        for _ in 0..count {
            if !found {
                break;
            }
            // Deleted ones wait for purge.
            if self.cursor.record().is_some_and(|record| !record.is_marked()) {
                self.find_ends();
                run.see(self.cursor.key(), &self.ends);
            }
            found = self.cursor.next()?;
        }
        Ok(())
    }

    /// Different values of the parts up to `part`, counted up to one more than [`JUMPS`].
    fn count_values(&mut self, part: usize) -> Result<u64> {
        let mut values = 0;
        let mut found = self.cursor.seek(SeekMode::First, b"")?;
        while found && values <= JUMPS {
            values += 1;
            self.find_ends();
            let end = self.ends.get(part).copied().unwrap_or_default();
            let value = self.cursor.key().get(..end).unwrap_or_default().to_vec();
            found = self.cursor.seek(SeekMode::After, &value)?;
        }
        Ok(values)
    }

    /// Finds where the parts of the current key end.
    fn find_ends(&mut self) {
        self.ends.clear();
        let key = self.cursor.key();
        let stored = self.cursor.record().map_or(&[][..], |record| record.payload);
        let clustered_bytes = match self.index_no {
            0 => 0,
            _ => varint::get(stored).map_or(0, |(len, _)| len as usize),
        };
        let (own, clustered) = key.split_at(key.len().saturating_sub(clustered_bytes));
        (self.key_ends)(self.index_no, own, clustered, &mut self.ends);
    }
}

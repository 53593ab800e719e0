//! How many different keys an index has, by samples.
//!
//! A small index is walked from end to end. In a larger one, parts with few different values are
//! counted exactly, by jumping from value to value; for the others, runs of neighbouring entries
//! are looked at in places that are spread evenly, and the share of neighbours that differ is taken
//! for the whole. The work is bounded, whatever the size.
//!
//! Invariants
//!   I1  The table is used for one run of entries, or one jump, at a time, so a drop or a change of
//!       it waits no longer than that. In between the caller says whether to go on, and may wait.
//! Source    InnoDB samples whole leaves, 20 of an index, and takes the number of different keys in
//!           each; we differ in counting few values exactly, which samples judge badly when the
//!           values are long runs.

use super::key_encoding::KeyEncoding;
use crate::base::Result;
use crate::format::statistics::IndexStatistics;
use crate::table::Table;
use crate::tree::{Cursor, SeekMode, Tree};

/// Entries looked at in one place: about a leaf. Indexes that have no more than all places together
/// are walked.
const RUN_ENTRIES: u64 = 256;
/// Bytes of keys and records after which a place is left all the same: about two leaves.
const RUN_BYTES: usize = 32 << 10;
/// Different values up to which they are counted one by one.
const JUMPS: u64 = 64;

/// Asked before each look at an index: an error ends the analysis. May wait.
pub(crate) type GoOn<'a> = dyn FnMut() -> Result<()> + 'a;

/// Analyzes an index whose keys are encoded so, looking at `places` of it. Blocks for I/O.
/// `NoSuchTable` when the table is dropped or changed meanwhile; an error of `go_on`.
pub(crate) fn analyze_index(
    table: &Table,
    index_no: usize,
    encoding: &KeyEncoding,
    places: u32,
    go_on: &mut GoOn<'_>,
) -> Result<IndexStatistics> {
    let rows = table.row_count();
    let counted = encoding.parts.iter().filter(|part| part.is_counted).count();
    if index_no == 0 && counted <= 1 {
        // Nobody has the same key.
        return Ok(IndexStatistics { rows, distinct: vec![rows; counted] });
    }
    let tree = table.tree(index_no)?;
    let mut walk = Walk { table, cursor: tree.cursor(), encoding, ends: Vec::new(), go_on };
    let mut run = Run::default();
    let walked = u64::from(places) * RUN_ENTRIES;
    if rows <= walked {
        let mut found = walk.run(SeekMode::First, b"", &mut run)?;
        while found && run.entries < walked {
            found = walk.run_on(&mut run)?;
        }
        let distinct = run.changes.iter().map(|changes| changes + 1).collect();
        return Ok(IndexStatistics { rows, distinct });
    }
    for n in 1..=places {
        run.previous.clear();
        let key = walk.spread_key(tree, n, places)?;
        walk.run(SeekMode::AtLeast, &key, &mut run)?;
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

/// The common prefix of neighbouring entries.
#[derive(Default)]
struct Run {
    previous: Vec<u8>,
    previous_ends: Vec<usize>,
    /// For each number of leading parts, how many entries differ from the one before.
    changes: Vec<u64>,
    pairs: u64,
    /// Entries that were looked at, those that wait for purge included.
    entries: u64,
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
    table: &'w Table,
    cursor: Cursor,
    encoding: &'w KeyEncoding,
    ends: Vec<usize>,
    go_on: &'w mut GoOn<'a>,
}

impl Walk<'_, '_> {
    /// Key number `n` of `count` places (I1).
    fn spread_key(&mut self, tree: &Tree, n: u32, count: u32) -> Result<Vec<u8>> {
        (self.go_on)()?;
        let _usage = self.table.use_it()?;
        tree.spread_key(n, count)
    }

    /// Shows `run` the entries of a place; whether there are more (I1).
    fn run(&mut self, mode: SeekMode, key: &[u8], run: &mut Run) -> Result<bool> {
        let _usage = self.table.use_it()?;
        match self.cursor.seek(mode, key)? {
            true => self.show(run),
            false => Ok(false),
        }
    }

    /// As [`run`](Self::run), where the cursor is.
    fn run_on(&mut self, run: &mut Run) -> Result<bool> {
        (self.go_on)()?;
        let _usage = self.table.use_it()?;
        self.show(run)
    }

    fn show(&mut self, run: &mut Run) -> Result<bool> {
        let mut bytes = 0;
        for _ in 0..RUN_ENTRIES {
            let Some(record) = self.cursor.record() else { return Ok(false) };
            let (is_marked, record_bytes) = (record.is_marked(), record.payload.len());
            bytes += self.cursor.key().len() + record_bytes;
            run.entries += 1;
            // Deleted ones wait for purge.
            if !is_marked {
                self.find_ends();
                run.see(self.cursor.key(), &self.ends);
            }
            if !self.cursor.next()? {
                return Ok(false);
            }
            if bytes >= RUN_BYTES {
                break;
            }
        }
        Ok(true)
    }

    /// Different values of the parts up to `part`, counted up to one more than [`JUMPS`] (I1).
    fn count_values(&mut self, part: usize) -> Result<u64> {
        let (mut values, mut value) = (0, Vec::new());
        while values <= JUMPS {
            (self.go_on)()?;
            let _usage = self.table.use_it()?;
            let mode = if values == 0 { SeekMode::First } else { SeekMode::After };
            if !self.cursor.seek(mode, &value)? {
                break;
            }
            values += 1;
            self.find_ends();
            let end = self.ends.get(part).copied().unwrap_or_default();
            value.clear();
            value.extend_from_slice(self.cursor.key().get(..end).unwrap_or_default());
        }
        Ok(values)
    }

    /// Finds where the parts of the current key end.
    fn find_ends(&mut self) {
        self.ends.clear();
        self.encoding.ends(self.cursor.key(), &mut self.ends);
    }
}

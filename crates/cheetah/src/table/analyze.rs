//! Estimates the number of distinct keys of an index from samples.
//!
//! A small index is scanned completely. In a larger one, leading key parts with few distinct values
//! are counted exactly, by seeking from value to value. For the other parts, runs of neighbouring
//! entries are read at evenly spread positions, and the fraction of differing neighbours is
//! extrapolated to the whole index. The work is bounded, whatever the size.
//!
//! Invariants
//!   I1  The table is used for one run of entries, or one seek, at a time, so a drop or an ALTER
//!       waits no longer than that. In between, the caller may wait, and decides whether to
//!       continue.
//! Source    InnoDB samples whole leaves, 20 per index, and takes the number of distinct keys in
//!           each. We also count few values exactly, because samples estimate these badly when the
//!           values form long runs.

use super::key_encoding::KeyEncoding;
use crate::base::Result;
use crate::format::statistics::IndexStatistics;
use crate::table::Table;
use crate::tree::{Cursor, SeekMode, Tree};

/// Entries per run: about a leaf. An index no larger than all runs is scanned completely.
const RUN_ENTRIES: u64 = 256;
/// A run also ends after this many bytes of keys and records: about two leaves.
const RUN_BYTES: usize = 32 << 10;
/// Distinct values that are counted one by one.
const JUMPS: u64 = 64;

/// Called before each use of an index: an error ends the analysis. May wait.
pub(crate) type GoOn<'a> = dyn FnMut() -> Result<()> + 'a;

/// Reads `places` runs. Blocks for I/O. Returns `NoSuchTable` if the table is dropped or altered
/// meanwhile, or the error of `go_on`.
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
        // All keys are different.
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

#[derive(Default)]
struct Run {
    previous: Vec<u8>,
    previous_ends: Vec<usize>,
    /// Entries that differ from the previous one, by number of leading parts.
    changes: Vec<u64>,
    pairs: u64,
    /// Entries read, including those that wait for purge.
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
    /// Key `n` of `count` evenly spread ones (I1).
    fn spread_key(&mut self, tree: &Tree, n: u32, count: u32) -> Result<Vec<u8>> {
        (self.go_on)()?;
        let _usage = self.table.use_it()?;
        tree.spread_key(n, count)
    }

    /// Passes the entries from `key` on to `run`; returns whether there are more (I1).
    fn run(&mut self, mode: SeekMode, key: &[u8], run: &mut Run) -> Result<bool> {
        let _usage = self.table.use_it()?;
        match self.cursor.seek(mode, key)? {
            true => self.show(run),
            false => Ok(false),
        }
    }

    /// Like [`run`](Self::run), from the cursor's position.
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
            // Delete-marked entries wait for purge.
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

    /// The number of distinct values of the parts up to `part`, but at most [`JUMPS`] + 1 (I1).
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

    fn find_ends(&mut self) {
        self.ends.clear();
        self.encoding.ends(self.cursor.key(), &mut self.ends);
    }
}

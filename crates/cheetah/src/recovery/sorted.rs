//! Redo in the order of keys, for data that exceeds memory.
//!
//! Random changes of a table larger than memory would read and write each leaf many times in the
//! order of the log. So operations are split into changes of records where possible
//! ([`rows::redo`](crate::table::rows::redo), I2). These are sorted by tree and key, and applied
//! when the log has been read: each leaf is read and written once, with the last change of each
//! record.
//!
//! Invariants
//!   I1  An operation that is applied as a whole is applied after all earlier sorted changes of its
//!       rows. One bit per hash value says whether a key may have sorted changes. If the bit is
//!       set, all sorted changes are applied first. Index entries of a row end with the row's key,
//!       so the bits cover them too.
//!   I2  The sorted changes are applied after all earlier dispatched operations, including
//!       operations on the same rows.
//!   I3  All sorted changes are applied before any change of the catalog, so tables and indexes are
//!       the same as when the operations were split.
//!   I4  All changes of one record are in one piece of work. The first change says whether the
//!       record existed before. The last change contains the final record.
//!   I5  When the disk is nearly full, nothing is sorted, because a startup must not require disk
//!       space for sorting. Runs may use the reserve, like pages during redo.

use crate::base::hash::{hash_key, shard_index};
use crate::base::{reach, sound, Result, TableId};
use crate::format::bytes::{put_prefixed, Defect, Reader};
use crate::memory::{MemoryUse, Reservation};
use crate::sort::{Merge, Sorter};
use crate::table::rows::redo::RecordChange;
use crate::table::shared::parts::Core;

/// The key bits take the memory limit divided by `KEYS_PART`, within a minimum and a maximum.
const KEYS_PART: usize = 64;
const KEYS_BYTES_MIN: usize = 1 << 10;
const KEYS_BYTES_MAX: usize = 2 << 20;
/// The minimum size of a piece of work, except for the last one.
const WORK_BYTES: usize = 16 << 10;
/// The bytes between two checks of the disk space. Sorted changes count with their size, and every
/// operation counts as `BYTES_PER_OPERATION` in addition.
const BYTES_PER_LOOK: u64 = 1 << 20;
const BYTES_PER_OPERATION: u64 = 256;
/// If fewer sorted changes than this had to be applied, the next `CHANGES_MIN` operations are not
/// sorted: unsortable operations keep changing the same rows, so sorting does not pay.
const CHANGES_MIN: u64 = 64;
/// The length of the table ID and the index number, which precede a key.
const HEAD_BYTES: usize = 6;
/// The length of the number of the change, which precedes the flags and the payload.
const NUMBER_BYTES: usize = 8;
/// The flags: the record exists before the change, and after it.
const WAS_THERE: u8 = 1;
const IS_THERE: u8 = 2;

pub(super) struct SortedChanges<'l> {
    core: &'l Core,
    /// `None` while no change is being sorted.
    begun: Option<Begun>,
    pause: u64,
    is_disk_full: bool,
    is_alone: bool,
}

struct Begun {
    sorter: Sorter,
    keys: Keys,
    /// The number of changes so far, which orders them.
    changes: u64,
    bytes_to_look: u64,
}

/// The clustered keys of the rows that an operation changes.
pub(super) type RowKeys<'a> = [Option<&'a [u8]>; 2];

struct Keys {
    bits: Vec<u64>,
    #[expect(dead_code, reason = "held, not read")]
    reserved: Reservation,
}

impl Keys {
    fn new(core: &Core) -> Self {
        let memory = core.pool.memory();
        let part = (memory.limit() / KEYS_PART).clamp(KEYS_BYTES_MIN, KEYS_BYTES_MAX);
        let words = 1usize << (part / size_of::<u64>()).ilog2();
        let reserved = memory.reserve(MemoryUse::Redo, words * size_of::<u64>());
        Self { bits: vec![0; words], reserved }
    }

    fn bit(&self, table: TableId, key: &[u8]) -> (usize, u64) {
        let bits = self.bits.len() * u64::BITS as usize;
        let bit = shard_index(hash_key(table.0, key), bits);
        (bit / u64::BITS as usize, 1 << (bit % u64::BITS as usize))
    }

    fn add(&mut self, table: TableId, key: &[u8]) {
        let (word, bit) = self.bit(table, key);
        self.bits.get_mut(word).into_iter().for_each(|word| *word |= bit);
    }

    fn may_have(&self, table: TableId, key: &[u8]) -> bool {
        let (word, bit) = self.bit(table, key);
        self.bits.get(word).is_some_and(|word| word & bit != 0)
    }
}

impl<'l> SortedChanges<'l> {
    pub(super) fn new(core: &'l Core, is_alone: bool) -> Self {
        Self { core, begun: None, pause: 0, is_disk_full: false, is_alone }
    }

    /// Sorting begins only after the pool has evicted pages.
    pub(super) fn wants_next(&mut self) -> bool {
        if self.core.losses.is_some() || self.is_disk_full || !self.core.pool.has_evicted() {
            return false;
        }
        let is_pause = self.pause > 0;
        self.pause = self.pause.saturating_sub(1);
        !is_pause
    }

    /// Returns whether one of these rows may have sorted changes (I1).
    pub(super) fn may_have(&self, table: TableId, keys: RowKeys<'_>) -> bool {
        let Some(begun) = &self.begun else { return false };
        sound!(
            keys.iter().flatten().any(|key| begun.keys.may_have(table, key)),
            "redo: apply an operation before what is sorted of its row"
        )
    }

    /// Notes that these rows have sorted changes. Returns `false` if memory is too small to sort.
    pub(super) fn begin(&mut self, table: TableId, keys: RowKeys<'_>) -> bool {
        if self.begun.is_none() {
            let share = self.core.sorting.memory().join(1).and_then(|mut shares| shares.pop());
            let Some(share) = share else { return false };
            let sorter = self.core.sorting.sorter(share);
            let sorter = if self.is_alone { sorter.alone() } else { sorter };
            self.begun = Some(Begun { sorter, keys: Keys::new(self.core), changes: 0, bytes_to_look: 0 });
        }
        if let Some(begun) = &mut self.begun {
            keys.iter().flatten().for_each(|key| begun.keys.add(table, key));
        }
        true
    }

    /// Adds a change of a record; [`begin`](Self::begin) must have been called for its row.
    pub(super) fn push(&mut self, table: TableId, record: &RecordChange<'_>) -> Result<()> {
        let Some(begun) = &mut self.begun else { return Ok(()) };
        begun.changes += 1;
        let is_there = if record.payload.is_some() { IS_THERE } else { 0 };
        let flags = if record.was_there { WAS_THERE | is_there } else { is_there };
        let payload = record.payload.unwrap_or_default();
        let index_no = (record.index_no as u16).to_be_bytes();
        let value = [&begun.changes.to_le_bytes()[..], &[flags], payload];
        begun.sorter.push(&[&table.0.to_be_bytes(), &index_no, record.key], &value)?;
        let bytes = (HEAD_BYTES + record.key.len() + NUMBER_BYTES + 1 + payload.len()) as u64;
        begun.bytes_to_look = begun.bytes_to_look.saturating_sub(bytes);
        Ok(())
    }

    /// Called before each operation. From time to time checks whether the disk is so full that the
    /// sorted changes must be applied now (I5).
    pub(super) fn must_end(&mut self) -> bool {
        let Some(begun) = &mut self.begun else { return false };
        begun.bytes_to_look = begun.bytes_to_look.saturating_sub(BYTES_PER_OPERATION);
        if begun.bytes_to_look > 0 {
            return false;
        }
        begun.bytes_to_look = BYTES_PER_LOOK;
        // Merging in several passes writes all runs once more.
        let bytes = begun.sorter.spilled_bytes() as usize + 2 * self.core.sorting.memory().limit();
        self.is_disk_full = !self.core.pool.has_space(bytes + BYTES_PER_LOOK as usize);
        if self.is_disk_full {
            reach::mark("redo sorts nothing on a full disk");
        }
        self.is_disk_full
    }

    /// Takes all sorted changes as pieces of work. The caller must ensure I2.
    pub(super) fn take(&mut self) -> Result<Option<Pieces>> {
        let Some(Begun { sorter, changes, .. }) = self.begun.take() else { return Ok(None) };
        self.pause = if changes < CHANGES_MIN { CHANGES_MIN } else { 0 };
        reach::mark("what redo has sorted is applied");
        let mut merge = sorter.finish()?;
        let is_on_record = merge.advance()?;
        Ok(Some(Pieces { merge, is_on_record, key: Vec::new(), last: Vec::new() }))
    }
}

pub(super) struct Pieces {
    merge: Merge,
    is_on_record: bool,
    /// The current record, and the value of its last change so far.
    key: Vec<u8>,
    last: Vec<u8>,
}

impl Pieces {
    /// Appends the next piece of work to `bytes`. Returns `false` if there is none.
    pub(super) fn next(&mut self, bytes: &mut Vec<u8>) -> Result<bool> {
        let from = bytes.len();
        while self.is_on_record && bytes.len() - from < WORK_BYTES {
            let (key, value) = self.merge.record();
            self.key.clear();
            self.key.extend_from_slice(key);
            self.last.clear();
            self.last.extend_from_slice(value);
            let (mut first_no, mut was_there) = (number_of(value), flags_of(value) & WAS_THERE);
            loop {
                self.is_on_record = self.merge.advance()?;
                let (key, value) = self.merge.record();
                if !self.is_on_record || key != self.key {
                    break;
                }
                let is_last = number_of(value) > number_of(&self.last);
                if is_last == sound!(true, "redo: keep the first of a record's changes") {
                    self.last.clear();
                    self.last.extend_from_slice(value);
                }
                if number_of(value) < first_no {
                    (first_no, was_there) = (number_of(value), flags_of(value) & WAS_THERE);
                }
            }
            bytes.push(was_there | flags_of(&self.last) & IS_THERE);
            put_prefixed(bytes, &self.key);
            put_prefixed(bytes, self.last.get(NUMBER_BYTES + 1..).unwrap_or_default());
        }
        Ok(bytes.len() > from)
    }
}

fn number_of(value: &[u8]) -> u64 {
    value.first_chunk().map_or(0, |number| u64::from_le_bytes(*number))
}

fn flags_of(value: &[u8]) -> u8 {
    value.get(NUMBER_BYTES).copied().unwrap_or_default()
}

pub(super) fn each_change(
    work: &[u8],
    mut f: impl FnMut(TableId, &RecordChange<'_>) -> Result<()>,
) -> Result<()> {
    let mut reader = Reader::new(work);
    while !reader.is_empty() {
        let (table, record) = decode(&mut reader).map_err(|defect| defect.in_place("sorted changes"))?;
        f(table, &record)?;
    }
    Ok(())
}

fn decode<'a>(reader: &mut Reader<'a>) -> std::result::Result<(TableId, RecordChange<'a>), Defect> {
    let flags = reader.u8()?;
    let (key, payload) = (reader.prefixed(usize::MAX)?, reader.prefixed(usize::MAX)?);
    let mut head = [0u8; HEAD_BYTES];
    let (front, key) = key.split_at_checked(HEAD_BYTES).ok_or(Defect::new("key without its index"))?;
    head.copy_from_slice(front);
    let [a, b, c, d, e, f] = head;
    let index_no = usize::from(u16::from_be_bytes([e, f]));
    let payload = (flags & IS_THERE != 0).then_some(payload);
    let record = RecordChange { index_no, key, was_there: flags & WAS_THERE != 0, payload };
    Ok((TableId(u32::from_be_bytes([a, b, c, d])), record))
}

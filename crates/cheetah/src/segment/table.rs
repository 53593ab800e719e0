//! The data of every segment: its length, its live bytes, and the epoch from which it is no longer
//! needed.
//!
//! Invariants: S1 to S4 of the module `segment`.

use super::segment_file::SegmentFile;
use super::Location;
use crate::base::{sound, Epoch, SegmentId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Segments are made shorter so that there are at least `SEGMENTS_MIN` of them for the live bytes.
/// But the length of a full segment is at least `FULL_BYTES_MIN`, unless the configured length is
/// less.
const SEGMENTS_MIN: u64 = 32;
const FULL_BYTES_MIN: u64 = 4 << 20;
/// A sealed segment is *small* if it is shorter than the minimum length of full segments divided by
/// `SMALL_PART`. If there are many small segments, they are merged.
const SMALL_PART: u64 = 4;
/// Collecting a segment is worth it only if its garbage is more than its length divided by
/// `GAIN_PART`. Gaps between images take about half of this amount.
const GAIN_PART: u64 = 16;
/// With less garbage than this, an open segment is not ended early, unless the configured segments
/// are small.
const SPARSE_BYTES_MIN: u64 = 256 << 10;
/// The number of small segments that are left unmerged: about the number that the last few startups
/// created.
const SMALL_COUNT_MAX: usize = 12;

/// The public data of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "named by their type and unit")]
pub struct SegmentStat {
    pub segment: SegmentId,
    pub file_bytes: u64,
    pub live_bytes: u64,
    pub is_open: bool,
}

/// A segment that a map may name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedSegment {
    /// The segment.
    pub segment: SegmentId,
    /// Its file.
    pub path: String,
    /// The number of bytes in the file. A committed map names no image after them.
    pub bytes: u64,
    /// Whether it is sealed, and durable to its end.
    pub is_final: bool,
}

/// Sums over all segments.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[expect(missing_docs, reason = "named by their unit")]
pub struct Totals {
    pub segments_count: u64,
    pub file_bytes: u64,
    pub live_bytes: u64,
    /// Bytes of images that no map will need; garbage collection could free them.
    pub garbage_bytes: u64,
    /// Bytes of open segments; garbage collection cannot free them.
    pub open_bytes: u64,
}

impl Totals {
    /// Live bytes per 1000 bytes of file, over all segments, or 1000 if there are none.
    pub fn fill(&self) -> u64 {
        (self.live_bytes * 1000).checked_div(self.file_bytes).unwrap_or(1000)
    }

    /// Like [`fill`](Self::fill), but gaps count as live, so that garbage collection could raise
    /// the result to 1000.
    pub fn collectable_fill(&self) -> u64 {
        let used = self.file_bytes - self.garbage_bytes;
        (used * 1000).checked_div(self.file_bytes).unwrap_or(1000)
    }
}

pub(super) struct Row {
    pub(super) file: Arc<SegmentFile>,
    pub(super) end: u64,
    pub(super) live_bytes: u64,
    /// Bytes of the header and between images, which collection does not free. Known only for
    /// segments of this startup.
    gap_bytes: u64,
    /// The newest epoch of a release (S3).
    dead_since: Epoch,
    pub(super) open: bool,
    /// Whether the file was written since the last sync.
    pub(super) unsynced: bool,
    /// Whether the name of the file is not durable yet.
    pub(super) unnamed: bool,
    /// The number of bytes appended to all segments when this one was sealed. Its age is measured
    /// from this point.
    sealed_at: u64,
    /// The number of commits after which this segment may be a victim.
    victim_from: u64,
    /// Whether garbage collection could not empty it.
    pub(super) quarantined: bool,
    /// Whether the file may be closed, because it is sealed and synced.
    closable: bool,
}

impl Row {
    fn garbage_bytes(&self) -> u64 {
        self.end.saturating_sub(self.live_bytes + self.gap_bytes)
    }

    fn is_collectable(&self) -> bool {
        !self.open && !self.quarantined && self.live_bytes > 0
    }

    fn needed_part(&self) -> f64 {
        self.live_bytes as f64 / self.end.max(1) as f64
    }

    fn is_worth_it(&self) -> bool {
        self.garbage_bytes() > self.end / GAIN_PART
    }
}

#[derive(Default)]
pub(super) struct Table {
    pub(super) rows: BTreeMap<SegmentId, Row>,
    /// The number of bytes appended so far, counted from an arbitrary start.
    appended_bytes: u64,
    committed: Epoch,
    commits_count: u64,
}

impl Table {
    pub(super) fn add_open(&mut self, file: Arc<SegmentFile>) {
        let row = Row {
            file: file.clone(),
            end: 0,
            live_bytes: 0,
            gap_bytes: 0,
            dead_since: Epoch(0),
            open: true,
            unsynced: false,
            unnamed: true,
            sealed_at: 0,
            victim_from: 0,
            quarantined: false,
            closable: false,
        };
        self.rows.insert(file.id, row);
    }

    /// Adds a segment of an earlier startup. Must be called in ascending order, so that older
    /// segments have the greater age.
    pub(super) fn add_sealed(&mut self, file: Arc<SegmentFile>, bytes: u64) {
        let id = file.id;
        self.add_open(file);
        self.appended_bytes += bytes;
        if let Some(row) = self.rows.get_mut(&id) {
            row.end = bytes;
            row.unnamed = false;
            row.open = false;
            row.closable = true;
            row.sealed_at = self.appended_bytes;
        }
    }

    /// Notes an appended image, and counts it as live.
    pub(super) fn appended(&mut self, location: &Location) {
        let row = self.rows.get_mut(&location.segment).expect("T3: a segment in use is in the table");
        debug_assert!(row.open, "F2: nothing is appended to a sealed segment");
        self.appended_bytes += location.end().saturating_sub(row.end);
        row.gap_bytes += u64::from(location.offset).saturating_sub(row.end);
        row.end = location.end();
        row.live_bytes += u64::from(location.stored_bytes);
    }

    /// Notes bytes written to a file, for the next sync.
    pub(super) fn wrote(&mut self, segment: SegmentId) {
        let row = self.rows.get_mut(&segment).expect("T3: a segment in use is in the table");
        row.unsynced = true;
    }

    /// Counts an image as live.
    pub(super) fn retain(&mut self, location: &Location) {
        if let Some(row) = self.rows.get_mut(&location.segment) {
            row.live_bytes += u64::from(location.stored_bytes);
        }
    }

    /// See `Segments::release`.
    pub(super) fn release(&mut self, location: &Location, epoch: Epoch) {
        let Some(row) = self.rows.get_mut(&location.segment) else { return };
        let left = row.live_bytes.checked_sub(u64::from(location.stored_bytes));
        // A wrong count could unlink a needed file, so the engine must not continue.
        row.live_bytes = left.expect("S1: an image is released once for each time it was retained");
        row.dead_since = row.dead_since.max(epoch);
    }

    /// Notes that the segment is sealed. The next commit may be of an epoch that has already ended.
    /// The commit after it is of an epoch that has not ended yet, because checkpoints do not
    /// overlap. So the segment may be a victim after two more commits.
    pub(super) fn seal(&mut self, segment: SegmentId) {
        let (sealed_at, victim_from) = (self.appended_bytes, self.commits_count + 2);
        let row = self.rows.get_mut(&segment).expect("T3: a segment in use is in the table");
        row.open = false;
        row.sealed_at = sealed_at;
        row.victim_from = victim_from;
    }

    /// Returns the files that became sealed and synced since the last call.
    pub(super) fn take_closable(&mut self) -> Vec<Arc<SegmentFile>> {
        let rows = self.rows.values_mut().filter(|row| !row.open && !row.unsynced && !row.closable);
        rows.map(|row| {
            row.closable = true;
            row.file.clone()
        })
        .collect()
    }

    pub(super) fn committed(&mut self, epoch: Epoch) {
        if epoch > self.committed {
            self.committed = epoch;
            self.commits_count += 1;
        }
    }

    /// Returns the segments that no map needs (S3).
    pub(super) fn dead(&self) -> Vec<Arc<SegmentFile>> {
        let early = u64::from(!sound!(true, "segment: unlink an epoch too early"));
        let committed = Epoch(self.committed.0 + early);
        let is_dead = |row: &&Row| !row.open && row.live_bytes == 0 && row.dead_since <= committed;
        self.rows.values().filter(is_dead).map(|row| row.file.clone()).collect()
    }

    /// See `Segments::named`.
    pub(super) fn named(&self, committed: Epoch, next_segment: SegmentId) -> Vec<NamedSegment> {
        let is_dead = |row: &Row| !row.open && row.live_bytes == 0 && row.dead_since <= committed;
        let rows = self.rows.range(..next_segment).filter(|(_, row)| !is_dead(row));
        let named = rows.map(|(segment, row)| NamedSegment {
            segment: *segment,
            path: row.file.path.clone(),
            bytes: row.file.written_bytes(),
            is_final: row.closable,
        });
        // No map names a segment whose file is empty.
        named.filter(|named| named.bytes > 0).collect()
    }

    /// The length of a segment that is started now. Segments of a small database are shorter, so
    /// that there are enough of them for garbage collection to find one that is mostly dead.
    pub(super) fn full_bytes(&self, segment_bytes: u64) -> u64 {
        let live_bytes = self.rows.values().map(|row| row.live_bytes).sum::<u64>();
        segment_bytes.min((live_bytes / SEGMENTS_MIN).max(FULL_BYTES_MIN))
    }

    /// Returns the segment whose collection gains the most for its cost, if any is worth it. If
    /// space is short, `room_bytes` is the number of bytes that may be copied, and only the
    /// immediate gain counts.
    pub(super) fn victim(&self, segment_bytes: u64, room_bytes: Option<u64>) -> Option<SegmentId> {
        let candidate = |row: &&Row| {
            let is_new = row.victim_from > self.commits_count;
            !sound!(is_new, "segment: collect what was sealed a moment ago")
                && row.is_collectable()
                && room_bytes.is_none_or(|room| row.live_bytes <= room)
        };
        let rows = || self.rows.values().filter(candidate);
        let small = |row: &Row| row.end < segment_bytes.min(FULL_BYTES_MIN) / SMALL_PART;
        if rows().filter(|row| small(row)).count() > SMALL_COUNT_MAX {
            return rows().filter(|row| small(row)).min_by_key(|row| row.end).map(|row| row.file.id);
        }
        let benefit = |row: &Row| match room_bytes {
            None => self.benefit(row),
            Some(_) => -row.needed_part(),
        };
        let best = rows().max_by(|a, b| benefit(a).total_cmp(&benefit(b)))?;
        best.is_worth_it().then_some(best.file.id)
    }

    /// Returns whether further commits alone would free a segment or make one a victim.
    pub(super) fn waits_for_commit(&self) -> bool {
        let dead = |row: &Row| !row.open && row.live_bytes == 0;
        let later = |row: &Row| row.is_collectable() && row.victim_from > self.commits_count;
        self.rows.values().any(|row| dead(row) || later(row) && row.is_worth_it())
    }

    /// Returns whether over a quarter of an open segment is garbage, and whether the garbage is
    /// enough to end the segment early.
    pub(super) fn is_sparse(&self, segment: SegmentId, segment_bytes: u64) -> bool {
        let Some(row) = self.rows.get(&segment) else { return false };
        let garbage = row.garbage_bytes();
        garbage > row.end / 4 && garbage >= SPARSE_BYTES_MIN.min(segment_bytes / GAIN_PART)
    }

    /// The cost-benefit formula of Rosenblum and Ousterhout (1992): the space gained, times the
    /// time that it will stay free, divided by the cost of reading and writing the live bytes.
    fn benefit(&self, row: &Row) -> f64 {
        let u = row.needed_part();
        let age = (self.appended_bytes - row.sealed_at + 1) as f64;
        (1.0 - u) / (1.0 + u) * age
    }

    /// See [`Totals`].
    pub(super) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for row in self.rows.values() {
            totals.segments_count += 1;
            totals.file_bytes += row.end;
            totals.live_bytes += row.live_bytes;
            totals.garbage_bytes += row.garbage_bytes();
            totals.open_bytes += if row.open { row.end } else { 0 };
        }
        totals
    }

    /// Returns all segments, oldest first.
    pub(super) fn stats(&self) -> Vec<SegmentStat> {
        let stat = |row: &Row| SegmentStat {
            segment: row.file.id,
            file_bytes: row.end,
            live_bytes: row.live_bytes,
            is_open: row.open,
        };
        self.rows.values().map(stat).collect()
    }
}

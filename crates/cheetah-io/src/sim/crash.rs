//! The image of a disk after a power cut.
//!
//! Invariants
//!   I1  Synced data is in every image, under any policy.
//!   I2  An image depends only on the disk, the policy and the seed.

use super::content::Content;
use super::world::{join, Change, DirState, Entries, FileState, Node, World};
use crate::rng::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A write is atomic per sector of this size, aligned in the file.
pub(super) const SECTOR_BYTES: u64 = 512;

/// The unsynced changes that survive. The changes are numbered as *units*: first every sector of
/// every unsynced write, then one length outcome for every file whose length has changed, then
/// every change of a directory entry.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum CrashPolicy {
    /// Nothing.
    SyncedOnly,
    /// All of them.
    Everything,
    /// Only this one of the written sectors. Lengths and entries are all kept or all lost, by seed.
    OneWriteAlone(usize),
    /// All units except this one.
    AllButOne(usize),
    /// Each unit with this probability.
    Random(f64),
    /// The units whose bit is set; those after the 64th are lost.
    Subset(u64),
}

struct Verdict {
    policy: CrashPolicy,
    rng: Rng,
    unit: usize,
    lengths: bool,
    entries: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Sector,
    Length,
    Entry,
}

impl Verdict {
    fn new(policy: CrashPolicy, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let (lengths, entries) = (rng.chance(0.5), rng.chance(0.7));
        Self { policy, rng, unit: 0, lengths, entries }
    }

    fn keeps(&mut self, kind: Unit) -> bool {
        let unit = self.unit;
        self.unit += 1;
        match self.policy {
            CrashPolicy::SyncedOnly => false,
            CrashPolicy::Everything => true,
            CrashPolicy::OneWriteAlone(one) => match kind {
                _ if unit == one => true,
                Unit::Sector => false,
                Unit::Length => self.lengths,
                Unit::Entry => self.entries,
            },
            CrashPolicy::AllButOne(one) => unit != one,
            CrashPolicy::Random(p) => self.rng.chance(p),
            CrashPolicy::Subset(mask) => unit < 64 && mask >> unit & 1 == 1,
        }
    }

    /// The length that remains when the newest is lost (F2).
    fn lost_length(&mut self, synced: u64, newest: u64) -> u64 {
        let (low, high) = (synced.min(newest), synced.max(newest));
        let between = low.next_multiple_of(SECTOR_BYTES);
        if matches!(self.policy, CrashPolicy::SyncedOnly) || between >= high || self.rng.chance(0.6) {
            return synced;
        }
        between + self.rng.below((high - between).div_ceil(SECTOR_BYTES)) * SECTOR_BYTES
    }
}

impl World {
    pub(super) fn unit_count(&self) -> usize {
        let sectors: usize = self.files.values().map(sector_count).sum();
        let lengths = self.files.values().filter(|f| length_changed(f)).count();
        let entries: usize = self.dirs.values().map(|dir| dir.pending.len()).sum();
        sectors + lengths + entries
    }

    pub(super) fn sector_unit_count(&self) -> usize {
        self.files.values().map(sector_count).sum()
    }

    pub(super) fn crash(&self, policy: CrashPolicy, seed: u64) -> World {
        let mut verdict = Verdict::new(policy, seed);
        let sectors: Vec<Vec<bool>> = self
            .files
            .values()
            .map(|file| (0..sector_count(file)).map(|_| verdict.keeps(Unit::Sector)).collect())
            .collect();
        let mut files = BTreeMap::new();
        for ((inode, file), kept) in self.files.iter().zip(sectors) {
            let length_kept = length_changed(file) && verdict.keeps(Unit::Length);
            let content = surviving_content(file, &kept, length_kept, &mut verdict);
            files.insert(*inode, FileState::durable(content));
        }
        let mut survived: BTreeMap<&str, Entries> = BTreeMap::new();
        for (path, dir) in &self.dirs {
            let mut entries = Arc::clone(&dir.durable);
            for change in dir.pending.iter() {
                if verdict.keeps(Unit::Entry) {
                    DirState::apply(Arc::make_mut(&mut entries), change);
                }
            }
            survived.insert(path, entries);
        }
        let mut world = World { files, next_inode: self.next_inode, ..World::new() };
        world.adopt("", &mut survived);
        world.drop_nameless();
        world
    }

    /// Takes over a directory and those below it. Removes files that no entry names (F3).
    fn adopt(&mut self, path: &str, survived: &mut BTreeMap<&str, Entries>) {
        let entries = survived.remove(path).unwrap_or_default();
        for (name, node) in entries.iter() {
            if *node == Node::Dir {
                self.adopt(&join(path, name), survived);
            }
        }
        let dir = DirState { current: Arc::clone(&entries), durable: entries, ..DirState::default() };
        self.dirs.insert(path.to_owned(), dir);
    }
}

fn sector_count(file: &FileState) -> usize {
    let count = |change: &Change| match change {
        Change::Write { offset, bytes } => sectors(*offset, bytes.len()).count(),
        Change::SetLen(_) => 0,
    };
    file.unsynced().map(count).sum()
}

fn length_changed(file: &FileState) -> bool {
    file.current.len() != file.synced.len()
        || file.pending.iter().any(|change| matches!(change, Change::SetLen(len) if *len < file.synced.len()))
}

fn surviving_content(file: &FileState, kept: &[bool], length_kept: bool, verdict: &mut Verdict) -> Content {
    let mut content = file.synced.clone();
    if file.pending.is_empty() && file.limbo.is_empty() {
        return content;
    }
    let mut kept = kept.iter();
    for change in file.unsynced() {
        match change {
            Change::Write { offset, bytes } => {
                for range in sectors(*offset, bytes.len()) {
                    if kept.next().copied().unwrap_or(false) {
                        content.write(offset + range.start as u64, &bytes[range]);
                    }
                }
            }
            Change::SetLen(len) if length_kept => content.set_len(*len),
            Change::SetLen(_) => {}
        }
    }
    let (synced, newest) = (file.synced.len(), file.current.len());
    let len = match (length_changed(file), length_kept) {
        (false, _) | (true, true) => newest,
        (true, false) => verdict.lost_length(synced, newest),
    };
    content.set_len(len);
    content
}

/// Splits a write of `len` bytes at `offset` into parts that are in one sector each.
pub(super) fn sectors(offset: u64, len: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let within = ((offset + done as u64) % SECTOR_BYTES) as usize;
        let count = (SECTOR_BYTES as usize - within).min(len - done);
        let range = done..done + count;
        done += count;
        (count > 0).then_some(range)
    })
}

//! The locks of each owner, listed so that all of them can be released in time proportional to
//! their number.

use super::point::{HOLD_BYTES, POINT_BYTES};
use super::shared::COMPRESSED_BYTES;
use crate::base::hash::{hash_number, shard_index, FastMap};
use crate::base::{TableId, TreeId};
use crate::txn::locks::key::KeySpan;
use crate::txn::locks::Owner;
use parking_lot::Mutex;

/// The number of shards, and so of transactions that take locks without contention here.
const SHARDS_COUNT: usize = 64;
/// The number of empty lists that a shard keeps for further owners, so that short transactions do
/// not allocate memory.
const SPARE_COUNT: usize = 8;
/// The maximum number of entries of a list that is kept.
const SPARE_ENTRIES: usize = 64;
/// The maximum number of lists kept for each owner.
const SPARE_TREES: usize = 4;
/// How far back in its list an unlocked record is searched for. A record further back remains
/// listed, and is skipped at the release.
const UNLOCKED_WITHIN: usize = 8;
/// Returns the memory of a range in its owner's list.
pub(crate) fn piece_bytes(piece: &KeySpan) -> usize {
    std::mem::size_of::<KeySpan>() * 3 / 2 + piece.heap_bytes()
}

/// How many locks an owner has, and how much memory they take.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LockSummary {
    /// The number of tables.
    pub tables: usize,
    /// The number of records, without those in ranges.
    pub records: usize,
    /// The number of ranges, as they were requested.
    pub ranges: usize,
    /// The approximate memory of these locks, in bytes.
    pub bytes: usize,
}

#[derive(Default, Debug)]
pub(crate) struct OnTree {
    pub(crate) tree: TreeId,
    /// Hashes of records; a record that was unlocked may still be listed.
    pub(crate) points: Vec<u64>,
    /// Together, these ranges cover all ranges of the owner.
    pub(crate) pieces: Vec<KeySpan>,
    /// The memory that was reserved for `pieces`.
    pub(crate) pieces_bytes: usize,
    pub(crate) is_compressed: bool,
    /// The number of points from which compression is worthwhile.
    compress_at: usize,
}

#[derive(Default, Debug)]
pub(crate) struct Owned {
    pub(crate) trees: Vec<OnTree>,
    pub(crate) tables: Vec<TableId>,
    pub(crate) is_queued: bool,
    compressed_count: usize,
    unused: Vec<OnTree>,
}

impl Owned {
    fn on(&mut self, tree: TreeId, compress_at: usize) -> Option<&mut OnTree> {
        let at = self.trees.iter().rposition(|on| on.tree == tree);
        let at = at.unwrap_or_else(|| {
            let mut on = self.unused.pop().unwrap_or_default();
            (on.tree, on.compress_at) = (tree, compress_at);
            self.trees.push(on);
            self.trees.len() - 1
        });
        self.trees.get_mut(at)
    }

    /// Empties it, but keeps a little memory.
    fn clear(&mut self) {
        let small = |on: &OnTree| on.points.capacity() + on.pieces.capacity() <= SPARE_ENTRIES;
        for mut on in self.trees.drain(..).filter(small) {
            on.points.clear();
            on.pieces.clear();
            on = OnTree { points: on.points, pieces: on.pieces, ..OnTree::default() };
            if self.unused.len() < SPARE_TREES {
                self.unused.push(on);
            }
        }
        self.tables.clear();
        self.is_queued = false;
        self.compressed_count = 0;
    }

    fn summary(&self) -> LockSummary {
        let points = self.trees.iter().map(|on| on.points.len()).sum::<usize>();
        let pieces_bytes = self.trees.iter().map(|on| on.pieces_bytes).sum::<usize>();
        LockSummary {
            tables: self.tables.len(),
            records: points + self.compressed_count,
            ranges: self.trees.iter().map(|on| on.pieces.len()).sum(),
            bytes: points * (POINT_BYTES + HOLD_BYTES)
                + self.compressed_count * COMPRESSED_BYTES
                + pieces_bytes,
        }
    }

    pub(crate) fn locks_count(&self) -> usize {
        let rows = self.trees.iter().map(|on| on.points.len() + on.pieces.len()).sum::<usize>();
        rows + self.tables.len() + self.compressed_count
    }
}

/// Extends the last piece by an adjacent piece; returns false if the piece is not adjacent.
fn lengthen(pieces: &mut [KeySpan], piece: &KeySpan) -> bool {
    let Some(last) = pieces.last_mut() else { return false };
    if last.high == piece.low {
        last.high = piece.high.clone();
    } else if last.low == piece.high {
        last.low = piece.low.clone();
    } else {
        return false;
    }
    true
}

#[derive(Default, Debug)]
struct Shard {
    owners: FastMap<Owner, Box<Owned>>,
    #[expect(clippy::vec_box, reason = "they move between here and the map by pointer")]
    spare: Vec<Box<Owned>>,
}

#[derive(Debug)]
pub(crate) struct Owners {
    shards: Vec<Mutex<Shard>>,
    compress_at: usize,
}

impl Owners {
    pub(crate) fn new(compress_at: usize) -> Self {
        let compress_at = compress_at.max(2);
        Self { shards: (0..SHARDS_COUNT).map(|_| Mutex::default()).collect(), compress_at }
    }

    fn with<T>(&self, owner: Owner, change: impl FnOnce(&mut Owned) -> T) -> T {
        let mut shard = self.shard(owner).lock();
        let Shard { owners, spare } = &mut *shard;
        change(owners.entry(owner).or_insert_with(|| spare.pop().unwrap_or_default()))
    }

    fn shard(&self, owner: Owner) -> &Mutex<Shard> {
        self.shards
            .get(shard_index(hash_number(owner.0), SHARDS_COUNT))
            .expect("the index is masked by their number")
    }

    /// Lists a record's lock. Returns whether the list is now [long](Self::is_long).
    pub(crate) fn add_point(&self, owner: Owner, tree: TreeId, hash: u64) -> bool {
        self.with(owner, |owned| {
            owned.on(tree, self.compress_at).is_some_and(|on| {
                on.points.push(hash);
                on.points.len() > on.compress_at
            })
        })
    }

    /// Returns whether the owner's records on a tree are worth compressing.
    pub(crate) fn is_long(&self, owner: Owner, tree: TreeId) -> bool {
        let shard = self.shard(owner).lock();
        let on = shard.owners.get(&owner).and_then(|owned| owned.trees.iter().rfind(|on| on.tree == tree));
        on.is_some_and(|on| on.points.len() > on.compress_at)
    }

    /// Removes a record that was unlocked from the list, if it is among the last ones.
    pub(crate) fn remove_point(&self, owner: Owner, tree: TreeId, hash: u64) {
        self.if_known(owner, |owned| {
            let on = owned.trees.iter_mut().rfind(|on| on.tree == tree);
            let Some(on) = on else { return };
            let from = on.points.len().saturating_sub(UNLOCKED_WITHIN);
            let recent = on.points.iter().skip(from);
            if let Some(at) = recent.clone().position(|point| *point == hash) {
                on.points.remove(from + at);
            }
        });
    }

    /// Lists a range. Returns the memory to reserve for it.
    pub(crate) fn add_piece(&self, owner: Owner, tree: TreeId, piece: &KeySpan) -> usize {
        self.with(owner, |owned| {
            let Some(on) = owned.on(tree, self.compress_at) else { return 0 };
            if lengthen(&mut on.pieces, piece) {
                return 0;
            }
            let bytes = piece_bytes(piece);
            on.pieces.push(piece.clone());
            on.pieces_bytes += bytes;
            bytes
        })
    }

    pub(crate) fn add_table(&self, owner: Owner, table: TableId) {
        self.with(owner, |owned| owned.tables.push(table));
    }

    pub(crate) fn tables(&self, owner: Owner) -> Vec<TableId> {
        let shard = self.shard(owner).lock();
        shard.owners.get(&owner).map_or_else(Vec::new, |owned| owned.tables.clone())
    }

    pub(crate) fn remove_table(&self, owner: Owner, table: TableId) {
        self.if_known(owner, |owned| owned.tables.retain(|other| *other != table));
    }

    pub(crate) fn set_queued(&self, owner: Owner, is_queued: bool) {
        match is_queued {
            true => self.with(owner, |owned| owned.is_queued = true),
            false => self.if_known(owner, |owned| owned.is_queued = false),
        }
    }

    pub(crate) fn is_queued(&self, owner: Owner) -> bool {
        self.shard(owner).lock().owners.get(&owner).is_some_and(|owned| owned.is_queued)
    }

    fn if_known(&self, owner: Owner, change: impl FnOnce(&mut Owned)) {
        if let Some(owned) = self.shard(owner).lock().owners.get_mut(&owner) {
            change(owned);
        }
    }

    /// Removes an owner that has no locks and no queued request.
    pub(crate) fn forget_if_unused(&self, owner: Owner) {
        let mut shard = self.shard(owner).lock();
        let is_unused = |owned: &Owned| owned.locks_count() == 0 && !owned.is_queued;
        if shard.owners.get(&owner).is_some_and(|owned| is_unused(owned)) {
            shard.owners.remove(&owner);
        }
    }

    pub(crate) fn locks_count(&self, owner: Owner) -> usize {
        self.shard(owner).lock().owners.get(&owner).map_or(0, |owned| owned.locks_count())
    }

    pub(crate) fn summary(&self, owner: Owner) -> LockSummary {
        self.shard(owner).lock().owners.get(&owner).map_or_else(LockSummary::default, |owned| owned.summary())
    }

    pub(crate) fn trees(&self, owner: Owner) -> Vec<TreeId> {
        let shard = self.shard(owner).lock();
        shard.owners.get(&owner).map_or_else(Vec::new, |owned| owned.trees.iter().map(|on| on.tree).collect())
    }

    /// Removes all records on a tree, except the newest one, from the list and returns them.
    pub(crate) fn take_points(&self, owner: Owner, tree: TreeId) -> Vec<u64> {
        self.with(owner, |owned| {
            let Some(on) = owned.on(tree, self.compress_at) else { return Vec::new() };
            let newest = on.points.pop();
            std::mem::replace(&mut on.points, newest.into_iter().collect())
        })
    }

    /// Removes the ranges from the list and returns them with the memory reserved for them.
    pub(crate) fn take_pieces(&self, owner: Owner) -> Vec<(TreeId, Vec<KeySpan>, usize)> {
        let mut shard = self.shard(owner).lock();
        let trees = shard.owners.get_mut(&owner).into_iter().flat_map(|owned| &mut owned.trees);
        let with_ranges = trees.filter(|on| !on.pieces.is_empty());
        let take =
            |on: &mut OnTree| (on.tree, std::mem::take(&mut on.pieces), std::mem::take(&mut on.pieces_bytes));
        with_ranges.map(take).collect()
    }

    /// Puts back the records that could not be compressed, and counts the compressed ones.
    pub(crate) fn give_back(&self, owner: Owner, tree: TreeId, kept: &[u64], compressed_count: usize) {
        self.with(owner, |owned| {
            owned.compressed_count += compressed_count;
            let compress_at = self.compress_at;
            let Some(on) = owned.on(tree, compress_at) else { return };
            on.points.splice(0..0, kept.iter().copied());
            on.is_compressed |= compressed_count > 0;
            on.compress_at = compress_at + 2 * kept.len();
        });
    }

    /// Removes an owner and returns everything that was listed for it.
    pub(crate) fn take(&self, owner: Owner) -> Option<Box<Owned>> {
        self.shard(owner).lock().owners.remove(&owner)
    }

    /// Keeps the memory of a list whose locks were released.
    pub(crate) fn recycle(&self, owner: Owner, mut owned: Box<Owned>) {
        owned.clear();
        let mut shard = self.shard(owner).lock();
        if shard.spare.len() < SPARE_COUNT {
            shard.spare.push(owned);
        }
    }
}

//! The lock table: its parts, and the code common to all kinds of requests.

use super::deadlock::victims::VictimChoice;
use super::granted::owners::{piece_bytes, Owners};
use super::granted::shared::Trees;
use super::granted::stripe::Stripes;
use super::granted::tables::Tables;
use super::key::KeySpan;
use super::memory::LockMemory;
use super::modes::Level;
use super::waits::Waits;
use super::Owner;
use crate::base::{Result, TreeId};
use crate::memory::MemoryBudget;
use parking_lot::{Mutex, RwLock};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

/// The number of shards of trees; a power of two. The indexes of a table have consecutive IDs, so
/// they are in different shards.
const TREE_SHARDS_COUNT: usize = 64;

/// The limits of a lock table.
#[derive(Clone, Copy, Debug)]
pub struct LockLimits {
    /// The maximum memory for locks.
    pub bytes_max: usize,
    /// The number of record locks of one owner on one tree beyond which they are compressed.
    pub compress_at: usize,
}

impl Default for LockLimits {
    /// Limits for an engine with little memory: 64 MiB, or about 4 million compressed locks.
    fn default() -> Self {
        Self { bytes_max: 64 << 20, compress_at: 10_000 }
    }
}

#[derive(Default, Debug)]
#[repr(align(64))]
pub(super) struct TreeShard {
    pub(super) trees: RwLock<Trees>,
    /// The number of trees with shared state. A thread that holds a stripe and reads 0 need not
    /// look at the trees. Entries that are added later either do not affect the record that the
    /// thread requests, or must wait for that stripe.
    pub(super) in_use: AtomicUsize,
    /// The number of waiters for rows of these trees. Changed under `trees`; read after locks were
    /// removed under `trees`.
    pub(super) waiters: AtomicUsize,
}

/// The locks of all tables and rows. See the module documentation.
#[derive(Debug)]
pub struct LockTable {
    pub(super) stripes: Stripes,
    pub(super) tree_shards: Vec<TreeShard>,
    pub(super) tables: Tables,
    pub(super) owners: Owners,
    pub(super) waits: Mutex<Waits>,
    pub(super) memory: LockMemory,
    pub(super) chooser: VictimChoice,
}

impl Default for LockTable {
    fn default() -> Self {
        Self::new(LockLimits::default())
    }
}

impl LockTable {
    /// Creates a lock table without locks, with a separate memory budget.
    pub fn new(limits: LockLimits) -> Self {
        Self::counted(limits, Arc::new(MemoryBudget::new(limits.bytes_max as u64)))
    }

    /// Creates a lock table without locks, whose memory counts in `budget`.
    pub fn counted(limits: LockLimits, budget: Arc<MemoryBudget>) -> Self {
        Self {
            stripes: Stripes::default(),
            tree_shards: (0..TREE_SHARDS_COUNT).map(|_| TreeShard::default()).collect(),
            tables: Tables::default(),
            owners: Owners::new(limits.compress_at),
            waits: Mutex::default(),
            memory: LockMemory::new(budget, limits.bytes_max),
            chooser: VictimChoice::default(),
        }
    }

    /// Returns the memory that locks use, and their limit, in bytes. A few KiB per processor may
    /// not be counted yet.
    pub fn memory_bytes(&self) -> (usize, usize) {
        (self.memory.used_bytes(), self.memory.limit_bytes())
    }

    pub(super) fn check_room_for_range(&self, trees: &Trees, tree: TreeId, span: &KeySpan) -> Result<()> {
        if self.memory.is_half_empty() {
            return Ok(());
        }
        let inside = trees.get(tree).map_or(0, |shared| shared.ranges.bytes_for(span));
        self.memory.check(inside + piece_bytes(span))
    }

    pub(super) fn add_range(
        &self,
        trees: &mut Trees,
        owner: Owner,
        tree: TreeId,
        level: Level,
        span: &KeySpan,
    ) {
        let listed_bytes = self.owners.add_piece(owner, tree, span);
        trees.add_range(&self.memory, tree, (owner, level), (span, listed_bytes));
        self.tree_shard(tree).in_use.store(trees.len(), Relaxed);
    }

    /// Returns whether any owner may hold a range of the tree, or wait for one. If a thread inserts
    /// a record and this call then returns false, the owner of any range that is locked later has
    /// seen that record.
    pub fn has_ranges(&self, tree: TreeId) -> bool {
        let shard = self.tree_shard(tree);
        shard.in_use.load(Relaxed) > 0 || shard.waiters.load(Relaxed) > 0
    }

    pub(super) fn tree_shard(&self, tree: TreeId) -> &TreeShard {
        let at = tree.0 as usize % TREE_SHARDS_COUNT;
        self.tree_shards.get(at).expect("the index is a remainder by their number")
    }
}

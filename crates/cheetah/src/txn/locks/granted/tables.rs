//! The table locks.

use crate::base::hash::FastMap;
use crate::base::TableId;
use crate::txn::locks::modes::TableMode;
use crate::txn::locks::Owner;
use parking_lot::{Mutex, MutexGuard};

const SHARDS_COUNT: usize = 64;
/// The number of unused tables that a shard keeps, so that locking a table allocates no memory.
const UNUSED_COUNT: usize = 16;

/// The locks of one table, and the number of waiters. The counts per mode reveal a conflict without
/// visiting every holder.
#[derive(Default, Debug)]
pub(crate) struct TableLocks {
    holders: FastMap<Owner, u8>,
    counts: [u32; TableMode::ALL.len()],
    pub(crate) waiters_count: u32,
}

fn modes(set: u8) -> impl Iterator<Item = TableMode> {
    TableMode::ALL.into_iter().filter(move |mode| set & mode.bit() != 0)
}

impl TableLocks {
    pub(crate) fn modes_of(&self, owner: Owner) -> u8 {
        self.holders.get(&owner).copied().unwrap_or(0)
    }

    pub(crate) fn has(&self, owner: Owner, mode: TableMode) -> bool {
        self.modes_of(owner) & mode.given_by() != 0
    }

    pub(crate) fn conflicts(&self, owner: Owner, mode: TableMode) -> bool {
        let own = self.modes_of(owner);
        let others = |mode: &TableMode, count: u32| count > u32::from(own & mode.bit() != 0);
        let mut all = TableMode::ALL.iter().zip(self.counts);
        all.any(|(held, count)| mode.conflicting() & held.bit() != 0 && others(held, count))
    }

    /// Grants the lock; returns true if the owner did not already hold one.
    pub(crate) fn give(&mut self, owner: Owner, mode: TableMode) -> bool {
        let set = self.holders.entry(owner).or_default();
        let is_new = *set == 0;
        if *set & mode.bit() == 0 {
            *set |= mode.bit();
            self.counts.iter_mut().skip(mode as usize).take(1).for_each(|count| *count += 1);
        }
        is_new
    }

    pub(crate) fn take(&mut self, owner: Owner, set: u8) -> bool {
        let Some(held) = self.holders.get_mut(&owner) else { return false };
        let taken = *held & set;
        *held &= !set;
        let is_last = *held == 0;
        if is_last {
            self.holders.remove(&owner);
        }
        for mode in modes(taken) {
            self.counts.iter_mut().skip(mode as usize).take(1).for_each(|count| *count -= 1);
        }
        is_last
    }

    pub(crate) fn holds(&self) -> impl Iterator<Item = (Owner, TableMode)> + '_ {
        self.holders.iter().flat_map(|(owner, set)| modes(*set).map(|mode| (*owner, mode)))
    }

    fn is_unused(&self) -> bool {
        self.holders.is_empty() && self.waiters_count == 0
    }
}

pub(crate) type TableShard = FastMap<TableId, TableLocks>;

#[derive(Debug)]
pub(crate) struct Tables(Vec<Mutex<TableShard>>);

impl Default for Tables {
    fn default() -> Self {
        Self((0..SHARDS_COUNT).map(|_| Mutex::default()).collect())
    }
}

impl Tables {
    pub(crate) fn lock(&self, table: TableId) -> MutexGuard<'_, TableShard> {
        let at = table.0 as usize % SHARDS_COUNT;
        self.0.get(at).expect("the index is a remainder by their number").lock()
    }

    pub(crate) fn shards(&self) -> impl Iterator<Item = MutexGuard<'_, TableShard>> {
        self.0.iter().map(Mutex::lock)
    }
}

/// Removes the entry of a table without holders and waiters, unless the shard has few entries.
pub(crate) fn forget_if_unused(shard: &mut TableShard, table: TableId) {
    if shard.len() > UNUSED_COUNT && shard.get(&table).is_some_and(TableLocks::is_unused) {
        shard.remove(&table);
    }
}

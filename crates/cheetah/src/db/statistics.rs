//! ANALYZE: statistics of indexes are taken, kept with the open table, and written into a table of
//! the engine's own.
//!
//! Invariants
//!   I1  A row of the statistics table belongs to an index by the number of its table and its own
//!       there, neither of which is used again: a new one has no statistics, a renamed one keeps
//!       them, and what a dropped one leaves is removed at the next startup.
//!   I2  Statistics are hints. When they cannot be read, there are none.

use super::{statistics_table, Db, Transaction};
use crate::base::Result;
use crate::table::analyze::{analyze_index, KeyEnds};
use crate::table::shared::parts::Core;
use crate::table::Table;
use std::sync::Arc;

/// How often a table is analyzed by itself at most, as by InnoDB.
const ANALYZE_EVERY_NS: u64 = 10_000_000_000;

impl Db {
    /// Takes statistics of all indexes of a table by samples from `places` of each and keeps them;
    /// durable on return. The caller's transaction should have a lock on the table. Reads about so
    /// many pages of each index, and a few dozen; then up to 96 more, to try dictionaries of what
    /// the indexes have now.
    pub fn analyze_table(&self, table: &Arc<Table>, places: u32, key_ends: &mut KeyEnds<'_>) -> Result<()> {
        let table = table.newest();
        self.analyze_in(self.begin(), table, places, key_ends)?;
        refresh_dictionaries(&self.0.core, table)
    }

    /// As [`analyze_table`](Self::analyze_table), if that has been done once, the number of rows
    /// has changed by a tenth since, and nobody has done this in the last ten seconds. Waits for no
    /// lock. Returns whether there are new statistics; errors mean that there are not (I2).
    pub fn analyze_again(&self, table: &Arc<Table>, places: u32, key_ends: &mut KeyEnds<'_>) -> Result<bool> {
        let table = table.newest();
        if !table.statistics_are_old() || !table.may_analyze(self.0.core.clock.now_ns(), ANALYZE_EVERY_NS) {
            return Ok(false);
        }
        let mut txn = self.begin();
        txn.set_lock_wait(0);
        self.analyze_in(txn, table, places, key_ends).map(|()| true)
    }

    fn analyze_in(
        &self,
        mut txn: Transaction,
        table: &Arc<Table>,
        places: u32,
        key_ends: &mut KeyEnds<'_>,
    ) -> Result<()> {
        let kept = statistics_table::table(&self.0.core)?;
        for index_no in (0..table.indexes().len()).filter(|&index_no| !table.is_disabled(index_no)) {
            let statistics = analyze_index(table, index_no, places, key_ends)?;
            // One of so many comes without statistics after the next startup.
            if let Ok(number) = u16::try_from(table.number_of(index_no)) {
                statistics_table::write(&mut txn, &kept, table.id(), number, &statistics)?;
            }
            table.set_statistics(index_no, statistics);
        }
        txn.commit()
    }
}

/// Tries whether dictionaries of what the indexes have now pay. The statistics are there whatever
/// comes of it.
fn refresh_dictionaries(core: &Core, table: &Table) -> Result<()> {
    for (_, index) in table.indexes().iter().enumerate().filter(|(no, _)| !table.is_disabled(*no)) {
        // Between two of them the table may be dropped.
        let Ok(_usage) = table.use_it() else { return Ok(()) };
        core.pool.try_dictionary_in_passing(index.tree)?;
    }
    Ok(())
}

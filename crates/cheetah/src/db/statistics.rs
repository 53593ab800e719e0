//! Statistics of indexes for callers: the preparation, and ANALYZE TABLE. The invariants are in
//! [`super::taking_statistics`].

use super::{taking_statistics, Db};
use crate::base::Result;
use crate::table::shared::parts::Core;
use crate::table::{KeyEncoding, StatisticsOptions, Table};
use std::sync::Arc;

impl Db {
    /// Sets the key encoding of each index of a table, and the statistics options of its
    /// definition. Call it when the table is opened. From then on, the background takes statistics
    /// of the table if it has none, and whenever a tenth of its rows has changed.
    pub fn describe_keys(&self, table: &Arc<Table>, keys: Vec<KeyEncoding>, options: StatisticsOptions) {
        let core = &self.0.core;
        table.describe_keys(keys, options);
        core.statistics.add(table.id());
        if table.are_statistics_due(core.clock.now_ns(), core.statistics.by_themselves()) {
            core.statistics.ask();
            self.0.background.call();
        }
    }

    /// Sets whether the background takes statistics, and the number of places sampled in each
    /// index, for tables whose definitions do not say.
    pub fn set_statistics(&self, by_themselves: bool, places: u32) {
        self.0.core.statistics.set(by_themselves, places);
        self.0.background.call();
    }

    /// Takes statistics of all indexes of a table from samples and stores them; durable on return.
    /// The caller's transaction should have a lock on the table. For each index, reads about as
    /// many pages as places to sample, and a few dozen more; then up to 96 further pages to try
    /// dictionaries for the present contents. Fails with `Unsupported` if the table's keys were not
    /// [described](Self::describe_keys).
    pub fn analyze_table(&self, table: &Arc<Table>) -> Result<()> {
        let (core, table) = (&self.0.core, table.newest());
        let found = taking_statistics::take(core, table, &mut || Ok(()))?;
        let mut txn = self.begin();
        taking_statistics::write(core, &mut txn, table, &found)?;
        txn.commit()?;
        refresh_dictionaries(core, table)
    }
}

/// Tries dictionaries for the present contents of the indexes. The statistics are already stored.
fn refresh_dictionaries(core: &Core, table: &Table) -> Result<()> {
    for (_, index) in table.indexes().iter().enumerate().filter(|(no, _)| !table.is_disabled(*no)) {
        // The table may be dropped between two trials.
        let Ok(_usage) = table.use_it() else { return Ok(()) };
        core.pool.trial(index.tree).run_in_passing()?;
    }
    Ok(())
}

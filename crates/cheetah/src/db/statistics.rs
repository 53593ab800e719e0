//! Statistics of indexes, as callers see them: the preparations, and ANALYZE TABLE. Invariants: at
//! the head of [`super::taking_statistics`].

use super::{taking_statistics, Db};
use crate::base::Result;
use crate::table::shared::parts::Core;
use crate::table::{KeyEncoding, StatisticsOptions, Table};
use std::sync::Arc;

impl Db {
    /// Tells how keys of a table are encoded, for each of its indexes, and the statistics options
    /// of its definition. To be called when somebody opens the table: from now on statistics are
    /// taken of it in the background when it has none, and when a tenth of its rows has changed.
    pub fn describe_keys(&self, table: &Arc<Table>, keys: Vec<KeyEncoding>, options: StatisticsOptions) {
        let core = &self.0.core;
        table.describe_keys(keys, options);
        core.statistics.add(table.id());
        if table.are_statistics_due(core.clock.now_ns(), core.statistics.by_themselves()) {
            core.statistics.ask();
            self.0.background.call();
        }
    }

    /// Sets whether statistics are taken by themselves, and how many places of each index are
    /// looked at, where the definition of a table does not say.
    pub fn set_statistics(&self, by_themselves: bool, places: u32) {
        self.0.core.statistics.set(by_themselves, places);
        self.0.background.call();
    }

    /// Takes statistics of all indexes of a table by samples and keeps them; durable on return. The
    /// caller's transaction should have a lock on the table. Reads about as many pages of each
    /// index as places are to be looked at, and a few dozen; then up to 96 more, to try
    /// dictionaries of what the indexes have now. `Unsupported` when nobody has
    /// [described](Self::describe_keys) its keys.
    pub fn analyze_table(&self, table: &Arc<Table>) -> Result<()> {
        let (core, table) = (&self.0.core, table.newest());
        let found = taking_statistics::take(core, table, &mut || Ok(()))?;
        let mut txn = self.begin();
        taking_statistics::write(core, &mut txn, table, &found)?;
        txn.commit()?;
        refresh_dictionaries(core, table)
    }
}

/// Tries whether dictionaries of what the indexes have now pay. The statistics are there whatever
/// comes of it.
fn refresh_dictionaries(core: &Core, table: &Table) -> Result<()> {
    for (_, index) in table.indexes().iter().enumerate().filter(|(no, _)| !table.is_disabled(*no)) {
        // Between two of them the table may be dropped.
        let Ok(_usage) = table.use_it() else { return Ok(()) };
        core.pool.trial(index.tree).run_in_passing()?;
    }
    Ok(())
}

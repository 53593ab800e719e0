//! Bulk loads: fill a table that no other transaction sees, in key order, page by page, without
//! undo and log.
//!
//! The first rows are only buffered. If no more follow, they are inserted normally, because the
//! steps below cost a few syncs. Otherwise new trees are created for the table. Rows go directly to
//! the clustered tree while their keys ascend, or to a sorter. The entries of each secondary index
//! go to a sorter of their own. At the end, the other trees are built from the sorters. Then one
//! mini-transaction assigns the trees to the table, and a checkpoint makes them durable.
//!
//! Invariants
//!   L1  New trees are on the list of dropped trees until they are assigned to the table, after
//!       their last page is written. So a load that ends in any other way leaves nothing behind
//!       (M10).
//!   L2  The table was untouched: no undo record leads into its new trees.
//!   L3  The load reports success after a checkpoint that includes it. Before that, the only
//!       operations on the table that can be logged drop, empty or rename it. If there is no such
//!       checkpoint, no other operation on the table is possible.
//!   L4  Memory for buffered rows and for sorting is counted in shares of
//!       [`SortMemory`](crate::sort::SortMemory).
//!   L5  After an error no more rows are accepted, because rows would be missing.
//! docs/developers/durability.md, "Loads", describes the steps and the state that a crash after
//! each step leaves.

mod building;
mod finishing;
mod index_trees;
mod kept;

use crate::base::{reach, sound, Error, Result};
use crate::sort::{Merge, Share};
use crate::table::definitions::ddl;
use crate::table::definitions::handle::Table;
use crate::table::definitions::spec::NewRow;
use crate::table::rows::large;
use crate::table::rows::request::check_limits;
use crate::table::rows::stored_row::{find_values, inline_row};
use crate::table::shared::counters::Counters;
use crate::table::shared::parts::Core;
use building::Building;
pub(crate) use finishing::IndexBuilds;
pub(in crate::table) use index_trees::{build_indexes, Built};
pub(crate) use kept::Kept;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

/// Records between two checks for an interrupt.
const RECORDS_PER_QUESTION: u64 = 512;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taken {
    /// The load has accepted it.
    Yes,
    /// Nothing is built: the caller inserts the buffered rows, then this row and all others.
    No,
}

/// Called with the number of finished records and their total; returns whether to stop.
pub(crate) type Watch<'w> = dyn Fn(u64, u64) -> bool + 'w;

/// Provides the table whose trees are to be built.
pub(crate) type Begin<'b> = &'b mut dyn FnMut() -> Result<Option<Arc<Table>>>;

/// Sorted records; checks regularly for an interrupt.
struct Records<'a> {
    core: &'a Core,
    merge: Merge,
    watch: &'a Watch<'a>,
    seen: u64,
}

impl<'a> Records<'a> {
    /// `watch` is called with the number of records read, and 0.
    fn new(core: &'a Core, merge: Merge, watch: &'a Watch<'a>) -> Self {
        Self { core, merge, watch, seen: 0 }
    }

    /// Returns `false` at the end, and `Interrupted` if the statement is to stop.
    fn advance(&mut self) -> Result<bool> {
        self.seen += 1;
        if self.seen % RECORDS_PER_QUESTION == 0 {
            self.core.health.check()?;
            if (self.watch)(self.seen, 0) {
                return Err(Error::Interrupted);
            }
        }
        self.merge.advance()
    }

    fn record(&self) -> (&[u8], &[u8]) {
        self.merge.record()
    }
}

fn damaged() -> Error {
    Error::corrupt("sorted entries of a load", "an entry does not belong to a row")
}

/// Refused because of its key; large values are inline.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Refused {
    pub(crate) key: Vec<u8>,
    pub(crate) row: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Load {
    table: Arc<Table>,
    /// The table itself, or a shadow table that will replace it.
    into: Arc<Table>,
    /// Whether other sorters take precedence over the load's.
    is_modest: bool,
    stage: Stage,
    refused: Option<Refused>,
}

#[derive(Debug)]
enum Stage {
    /// No rows yet.
    New,
    Keeps(Kept),
    Builds(Box<Building>),
    /// Rows are inserted normally.
    Inserts,
    Ended,
}

impl Load {
    /// `table` is untouched. A modest load leaves half of the sorters to statements that need them.
    pub(crate) fn new(table: &Arc<Table>, is_modest: bool) -> Self {
        let into = Arc::clone(table);
        Self { table: Arc::clone(table), into, is_modest, stage: Stage::New, refused: None }
    }

    fn join(core: &Core, count: usize, is_modest: bool) -> Option<Vec<Share>> {
        match is_modest {
            true => core.sorting.memory().join_leaving_half(count),
            false => core.sorting.memory().join(count),
        }
    }

    /// The table as it was before the load.
    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    pub(crate) fn refused(&self) -> Option<&Refused> {
        self.refused.as_ref()
    }

    pub(crate) fn set_refused(&mut self, row: &NewRow<'_>) {
        self.refused = Some(Refused { key: row.key.to_vec(), row: row.row.to_vec() });
    }

    /// Returns `DuplicateKey` if the row's key is already known to exist. `begin` is called once,
    /// when there are many rows, and returns an untouched, exclusively locked table whose trees are
    /// to be built, or `None` if that is not possible.
    pub(crate) fn add(&mut self, core: &Core, row: &NewRow<'_>, begin: Begin<'_>) -> Result<Taken> {
        let taken = self.try_add(core, row, begin);
        if taken.is_err() {
            self.stage = Stage::Ended;
        }
        taken
    }

    fn try_add(&mut self, core: &Core, row: &NewRow<'_>, begin: Begin<'_>) -> Result<Taken> {
        check_limits(&self.table, Some(row))?;
        if let Stage::New = self.stage {
            self.stage = match Self::join(core, 1, self.is_modest).and_then(|mut shares| shares.pop()) {
                None => Stage::Inserts,
                Some(share) => Stage::Keeps(Kept::new(core.sorting.memory().limit(), share)),
            };
        }
        if let Stage::Keeps(kept) = &mut self.stage {
            if kept.keep(row) {
                return Ok(Taken::Yes);
            }
            if !self.begin_building(core, begin)? {
                return Ok(Taken::No);
            }
        }
        match &mut self.stage {
            Stage::Builds(building) => building.add(core, row, &mut self.refused).map(|()| Taken::Yes),
            Stage::Inserts => Ok(Taken::No),
            _ => Err(self.has_ended()),
        }
    }

    /// Returns the buffered rows, which the caller inserts normally, and ends the load.
    pub(crate) fn take_kept(&mut self) -> Option<Kept> {
        match std::mem::replace(&mut self.stage, Stage::Inserts) {
            Stage::Keeps(kept) => Some(kept),
            _ => None,
        }
    }

    /// Accepts no more rows (L5).
    pub(crate) fn end(&mut self) {
        self.stage = Stage::Ended;
    }

    /// Returns `false` if there is no memory for one sorter per index, or no table to build.
    fn begin_building(&mut self, core: &Core, begin: Begin<'_>) -> Result<bool> {
        let Self { table, into, is_modest, stage, refused } = self;
        let Stage::Keeps(kept) = stage else { return Ok(false) };
        let Some(shares) = Self::join(core, table.indexes().len(), *is_modest) else { return Ok(false) };
        let Some(unwritten) = begin()? else { return Ok(false) };
        reach::mark("load begins to build");
        *into = unwritten;
        let mut building = Box::new(Building::new(core, into, shares, kept.ascends())?);
        kept.each(&mut |row| building.add(core, row, refused))?;
        *stage = Stage::Builds(building);
        Ok(true)
    }

    /// Ends the load. Returns `None` if nothing was built and the buffered rows must still be
    /// inserted; otherwise the table to use from now on, which is durable. Earlier handles are
    /// invalid. After an error the table is empty, or can only be dropped, emptied or renamed.
    /// `watch` is called regularly with the number of finished records and their total, and returns
    /// whether to stop.
    pub(crate) fn finish(&mut self, core: &Core, watch: &Watch<'_>) -> Result<Option<Arc<Table>>> {
        let building = match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::Builds(building) => *building,
            Stage::Ended => return Err(self.has_ended()),
            other => {
                self.stage = other;
                return Ok(None);
            }
        };
        let (old, new) = (Arc::clone(&self.into), building.table());
        let is_last = sound!(true, "load: show the trees before they are whole");
        if !is_last {
            ddl::install_loaded(core, &old, &new, building.rows())?;
        }
        let rows = building.finish(core, &mut self.refused, watch)?;
        if is_last {
            ddl::install_loaded(core, &old, &new, rows)?;
        }
        Counters::add(&core.counters.loads);
        core.counters.rows_inserted.fetch_add(rows, Relaxed);
        core.counters.loaded_rows.fetch_add(rows, Relaxed);
        Ok(Some(new))
    }

    fn has_ended(&self) -> Error {
        let detail = "the load into it has failed or ended and accepts no more rows";
        Error::Unsupported { place: format!("table '{}'", self.table.name()), detail: detail.into() }
    }
}

/// Refuses the row of `key`: the row of `existing` has the same unique key in index `index_no`.
/// Stores it in `refused`, with its large values inline.
pub(in crate::table) fn refuse(
    core: &Core,
    table: &Table,
    index_no: usize,
    existing: &[u8],
    (key, stored): (&[u8], &[u8]),
    refused: &mut Option<Refused>,
) -> Result<()> {
    let (mut values, mut row, mut room) = (Vec::new(), Vec::new(), Vec::new());
    let stored = table.current_row(stored, &mut room)?;
    find_values(table.row_format(), stored, &mut values)?;
    inline_row(table.row_format(), stored, &values, &mut row, |locator, value| {
        let mut bytes = Vec::new();
        large::read_value(&core.pool, table.blob_owner(), locator, &mut bytes)?;
        value.extend_from_slice(&bytes);
        Ok(())
    })?;
    *refused = Some(Refused { key: key.to_vec(), row });
    Err(Error::DuplicateKey { index_no, existing: existing.to_vec() })
}

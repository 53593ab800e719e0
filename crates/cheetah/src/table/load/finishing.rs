//! The end of a load: builds trees from the sorted rows and entries.

use super::building::{Building, Clustered};
use super::index_trees::{build_indexes, Built};
use super::{damaged, refuse, Records, Refused, Watch};
use crate::base::{reach, Error, Result};
use crate::format::page::RecordRef;
use crate::format::varint;
use crate::sort::Sorter;
use crate::table::definitions::handle::Table;
use crate::table::shared::parts::Core;
use crate::table::shared::room::Need;
use crate::tree::{Changed, Path};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

/// Pages that an insertion into a tree may allocate.
const PAGES_PER_INSERT: usize = 4;

impl Building {
    /// Returns the number of rows.
    pub(super) fn finish(self, core: &Core, refused: &mut Option<Refused>, watch: &Watch<'_>) -> Result<u64> {
        let rows = self.rows();
        self.note_spilled(core);
        let Building { table, clustered, entries, lent: _lent, .. } = self;
        let rows_to_come = match &clustered {
            Clustered::Sorted(_) => rows,
            Clustered::Ascends { late_count, .. } => *late_count,
        };
        let total = rows_to_come + rows * entries.len() as u64;
        let watch = |done, _| watch(done, total);
        let mut trees = ClusteredTree { core, table: &table, refused, watch: &watch };
        match clustered {
            Clustered::Sorted(sorter) => trees.build(sorter)?,
            Clustered::Ascends { builder, late, late_count } => {
                builder.finish()?;
                if late_count > 0 {
                    trees.insert_late(late)?;
                    core.pool.trial(table.blob_owner()).finish_first()?;
                }
            }
        }
        let sorters = entries.into_iter().enumerate().map(|(no, sorter)| (no + 1, sorter)).collect();
        let watch = |done, _| watch(rows_to_come + done, total);
        build_indexes(core, &Built { table: &table, view: None }, sorters, refused, &watch)?;
        Ok(rows)
    }
}

struct ClusteredTree<'a> {
    core: &'a Core,
    table: &'a Table,
    refused: &'a mut Option<Refused>,
    watch: &'a Watch<'a>,
}

impl ClusteredTree<'_> {
    fn build(&mut self, sorter: Sorter) -> Result<()> {
        let mut rows = Records::new(self.core, sorter.finish()?, self.watch);
        let mut builder = self.table.clustered().builder();
        while rows.advance()? {
            let (key, row) = rows.record();
            if builder.push(key, RecordRef::frozen(row))? == Changed::Exists {
                return refuse(self.core, self.table, 0, key, (key, row), self.refused);
            }
        }
        builder.finish().map(drop)
    }

    /// Inserts the rows that arrived when the tree already had higher keys.
    fn insert_late(&mut self, sorter: Sorter) -> Result<()> {
        reach::mark("rows of a load came late");
        let tree = Arc::clone(self.table.clustered());
        let mut rows = Records::new(self.core, sorter.finish()?, self.watch);
        let mut path = Path::default();
        while rows.advance()? {
            let (key, row) = rows.record();
            tree.prepare(key, &mut path)?;
            self.core.make_room(Need::New, PAGES_PER_INSERT)?;
            let changed = tree.insert(&self.core.pool.enter(), &mut path, key, RecordRef::frozen(row))?;
            if changed == Changed::Exists {
                return refuse(self.core, self.table, 0, key, (key, row), self.refused);
            }
        }
        Ok(())
    }
}

/// Builds secondary index trees from entries in any order.
pub(crate) struct IndexBuilds {
    table: Arc<Table>,
    sorters: Vec<(usize, Sorter)>,
    entries: u64,
}

impl IndexBuilds {
    /// Takes the first of `indexes`: as many as fit in memory, at least one. Their trees are empty.
    pub(crate) fn new(core: &Core, table: &Arc<Table>, indexes: &[usize]) -> Result<Self> {
        let shares = (1..=indexes.len()).rev().find_map(|count| core.sorting.memory().join(count));
        let limit = core.sorting.memory().limit() as u64;
        let no_memory = Error::Limit { what: "memory for sorting (bytes)", actual: limit, limit };
        let sorters = shares.ok_or(no_memory)?.into_iter().map(|share| core.sorting.sorter(share));
        let sorters = indexes.iter().copied().zip(sorters).collect();
        Ok(Self { table: Arc::clone(table), sorters, entries: 0 })
    }

    pub(crate) fn len(&self) -> usize {
        self.sorters.len()
    }

    pub(crate) fn add(&mut self, index_no: usize, key: &[u8], row_key: &[u8], payload: &[u8]) -> Result<()> {
        let sorter = self.sorters.iter_mut().find(|(no, _)| *no == index_no);
        let (_, sorter) = sorter.ok_or_else(damaged)?;
        let mut length = [0u8; varint::MAX_BYTES];
        let head = varint::bytes_of(row_key.len() as u64, &mut length);
        self.entries += 1;
        sorter.push(&[key, row_key], &[&[0], head, payload])
    }

    pub(crate) fn finish(self, core: &Core, watch: &Watch<'_>) -> Result<()> {
        let bytes = self.sorters.iter().map(|(_, sorter)| sorter.spilled_bytes()).sum();
        core.counters.load_spilled_bytes.fetch_add(bytes, Relaxed);
        let Self { table, sorters, entries } = self;
        let watch = |done, _| watch(done, entries);
        build_indexes(core, &Built { table: &table, view: None }, sorters, &mut None, &watch)
    }
}

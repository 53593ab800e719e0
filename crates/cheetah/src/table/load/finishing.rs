//! The end of a load: sorted rows and entries become trees.

use super::super::core::{Core, Need};
use super::super::handle::Table;
use super::super::visible::read_row;
use super::building::{Building, Clustered};
use super::{refuse, Refused, Watch};
use crate::base::{reach, Error, Result};
use crate::format::page::RecordRef;
use crate::format::varint;
use crate::sort::{Merge, Sorter};
use crate::tree::{Changed, Path};
use crate::txn::ReadView;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

/// Records between two questions whether the statement is to end.
const RECORDS_PER_QUESTION: u64 = 512;
/// Pages that an insertion into a tree may allocate.
const PAGES_PER_INSERT: usize = 4;

impl Building {
    /// Builds what is left of the trees; returns the number of rows.
    pub(super) fn finish(self, core: &Core, refused: &mut Option<Refused>, watch: &Watch<'_>) -> Result<u64> {
        let rows = self.rows();
        self.note_spilled(core);
        let Building { table, clustered, entries, .. } = self;
        let rows_to_come = match &clustered {
            Clustered::Sorted(_) => rows,
            Clustered::Ascends { late_count, .. } => *late_count,
        };
        let total = rows_to_come + rows * entries.len() as u64;
        let mut finishing = Finishing { core, table, view: None, refused, watch, seen: 0, total };
        match clustered {
            Clustered::Sorted(sorter) => finishing.build_rows(sorter)?,
            Clustered::Ascends { builder, late, late_count } => {
                builder.finish()?;
                if late_count > 0 {
                    finishing.insert_late(late)?;
                }
            }
        }
        for (no, sorter) in entries.into_iter().enumerate() {
            finishing.build_index(no + 1, sorter)?;
        }
        Ok(rows)
    }
}

/// An index to be built, of a table whose rows `view` sees, or everybody.
pub(in crate::table) struct Built<'a> {
    pub(in crate::table) table: &'a Arc<Table>,
    pub(in crate::table) index_no: usize,
    pub(in crate::table) view: Option<&'a ReadView>,
}

/// Builds the tree of an index from its sorted entries, see [`Building`]. `watch` hears how many are in their place.
pub(in crate::table) fn build_index(
    core: &Core,
    built: &Built<'_>,
    sorter: Sorter,
    refused: &mut Option<Refused>,
    watch: &Watch<'_>,
) -> Result<()> {
    let &Built { table, index_no, view } = built;
    let mut finishing = Finishing { core, table: Arc::clone(table), view, refused, watch, seen: 0, total: 0 };
    finishing.build_index(index_no, sorter)
}

/// What building needs to know.
struct Finishing<'a> {
    core: &'a Core,
    table: Arc<Table>,
    view: Option<&'a ReadView>,
    refused: &'a mut Option<Refused>,
    watch: &'a Watch<'a>,
    seen: u64,
    total: u64,
}

impl Finishing<'_> {
    /// Goes to the next record, unless the statement is to end.
    fn advance(&mut self, records: &mut Merge) -> Result<bool> {
        self.seen += 1;
        if self.seen % RECORDS_PER_QUESTION == 0 {
            self.core.health.check()?;
            if (self.watch)(self.seen, self.total) {
                return Err(Error::Interrupted);
            }
        }
        records.advance()
    }

    fn build_rows(&mut self, sorter: Sorter) -> Result<()> {
        let mut rows = sorter.finish()?;
        let mut builder = self.table.clustered().builder();
        while self.advance(&mut rows)? {
            let (key, row) = rows.record();
            if builder.push(key, RecordRef::frozen(row))? == Changed::Exists {
                return refuse(self.core, &self.table, 0, key, (key, row), self.refused);
            }
        }
        builder.finish().map(drop)
    }

    /// Inserts rows into the clustered tree that came when it had higher keys already.
    fn insert_late(&mut self, sorter: Sorter) -> Result<()> {
        reach::mark("rows of a load came late");
        let tree = Arc::clone(self.table.clustered());
        let (mut rows, mut path) = (sorter.finish()?, Path::default());
        while self.advance(&mut rows)? {
            let (key, row) = rows.record();
            tree.prepare(key, &mut path)?;
            self.core.make_room(Need::New, PAGES_PER_INSERT)?;
            let changed = tree.insert(&self.core.pool.enter(), &mut path, key, RecordRef::frozen(row))?;
            if changed == Changed::Exists {
                return refuse(self.core, &self.table, 0, key, (key, row), self.refused);
            }
        }
        Ok(())
    }

    fn build_index(&mut self, index_no: usize, sorter: Sorter) -> Result<()> {
        let mut entries = sorter.finish()?;
        let tree = Arc::clone(self.table.tree(index_no)?);
        let is_unique = self.table.indexes().get(index_no).is_some_and(|index| index.unique);
        let mut builder = tree.builder();
        // The entry before: where the caller's part of its key ends, and whether that is to be unique.
        let mut last: Option<usize> = None;
        while self.advance(&mut entries)? {
            let (key, value) = entries.record();
            let Some((&check_unique, payload)) = value.split_first() else { return Err(damaged()) };
            let clustered_len = varint::get(payload).map_or(0, |(len, _)| len as usize);
            let own_len = key.len().checked_sub(clustered_len).ok_or_else(damaged)?;
            let checked = is_unique && check_unique != 0;
            if let Some(last_len) = last.filter(|_| checked) {
                let last_key = builder.last_key();
                if last_key.get(..last_len) == key.get(..own_len) {
                    let existing = last_key.get(last_len..).unwrap_or_default().to_vec();
                    let clustered = key.get(own_len..).unwrap_or_default().to_vec();
                    return self.refuse_entry(index_no, &existing, &clustered);
                }
            }
            last = checked.then_some(own_len);
            if builder.push(key, RecordRef::frozen(payload))? == Changed::Exists {
                return Err(damaged());
            }
        }
        builder.finish().map(drop)
    }

    /// Refuses the row of `key`, which is in the clustered tree already, because the row of `existing` has the same unique key.
    fn refuse_entry(&mut self, index_no: usize, existing: &[u8], key: &[u8]) -> Result<()> {
        let mut row = Vec::new();
        if !read_row(self.core, &self.table, key, self.view, &mut row)? {
            return Err(damaged());
        }
        refuse(self.core, &self.table, index_no, existing, (key, &row), self.refused)
    }
}

/// Trees of secondary indexes that are built from entries in any order.
pub(crate) struct IndexBuilds {
    table: Arc<Table>,
    sorters: Vec<(usize, Sorter)>,
    entries: u64,
}

impl IndexBuilds {
    /// For the first of `indexes` of `table`, as many as there is memory for, at least one. Their trees are empty.
    pub(crate) fn new(core: &Core, table: &Arc<Table>, indexes: &[usize]) -> Result<Self> {
        let shares = (1..=indexes.len()).rev().find_map(|count| core.sort_memory.join(count));
        let limit = core.sort_memory.limit() as u64;
        let no_memory = Error::Limit { what: "memory for sorting (bytes)", actual: limit, limit };
        let sorters = shares.ok_or(no_memory)?.into_iter().map(|share| Sorter::new(&core.temp_files, share));
        let sorters = indexes.iter().copied().zip(sorters).collect();
        Ok(Self { table: Arc::clone(table), sorters, entries: 0 })
    }

    /// How many indexes.
    pub(crate) fn len(&self) -> usize {
        self.sorters.len()
    }

    /// Takes the entry of the row of `row_key`.
    pub(crate) fn add(&mut self, index_no: usize, key: &[u8], row_key: &[u8], payload: &[u8]) -> Result<()> {
        let sorter = self.sorters.iter_mut().find(|(no, _)| *no == index_no);
        let (_, sorter) = sorter.ok_or_else(damaged)?;
        let mut length = [0u8; varint::MAX_BYTES];
        let used = varint::write(&mut length, row_key.len() as u64);
        let head = length.get(..used).unwrap_or_default();
        self.entries += 1;
        sorter.push(&[key, row_key], &[&[0], head, payload])
    }

    /// Builds the trees.
    pub(crate) fn finish(self, core: &Core, watch: &Watch<'_>) -> Result<()> {
        let bytes = self.sorters.iter().map(|(_, sorter)| sorter.spilled_bytes()).sum();
        core.counters.load_spilled_bytes.fetch_add(bytes, Relaxed);
        let Self { table, sorters, entries } = self;
        let mut finishing =
            Finishing { core, table, view: None, refused: &mut None, watch, seen: 0, total: entries };
        sorters.into_iter().try_for_each(|(index_no, sorter)| finishing.build_index(index_no, sorter))
    }
}

fn damaged() -> Error {
    Error::corrupt("sorted entries of a load", "an entry does not belong to a row")
}

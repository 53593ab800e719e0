//! The new trees of a load, while rows are added.

use super::{refuse, Refused};
use crate::base::{Error, Result};
use crate::format::page::RecordRef;
use crate::format::row::LOCATOR_BYTES;
use crate::format::varint;
use crate::pool::LentTree;
use crate::sort::{Share, Sorter};
use crate::table::definitions::handle::Table;
use crate::table::definitions::spec::{NewRow, SecondaryEntry};
use crate::table::rows::large;
use crate::table::rows::stored_row::{choose_moves, find_values, rebuild, Value};
use crate::table::rows::values::row_bytes_max;
use crate::table::shared::parts::Core;
use crate::table::shared::room::Need;
use crate::tree::{Builder, Changed};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

/// Trees that are being built, and the sorters of their entries.
#[derive(Debug)]
pub(super) struct Building {
    /// Not in the catalog; its trees are only on the list of dropped trees.
    pub(super) table: Arc<Table>,
    pub(super) clustered: Clustered,
    /// For the secondary indexes, in order. Keys are stored keys; a value is one byte, which says
    /// whether the key must be unique, followed by the stored payload.
    pub(super) entries: Vec<Sorter>,
    /// The clustered tree; large values are written to it before their rows.
    pub(super) lent: LentTree,
    rows: u64,
    values: Vec<Value>,
    row: Vec<u8>,
}

#[derive(Debug)]
pub(super) enum Clustered {
    /// Keys have ascended so far: rows go to the tree, and out-of-order rows to a sorter.
    Ascends {
        builder: Builder,
        late: Sorter,
        late_count: u64,
    },
    Sorted(Sorter),
}

impl Building {
    /// `shares` has one share for each index.
    pub(super) fn new(core: &Core, table: &Table, mut shares: Vec<Share>, ascends: bool) -> Result<Self> {
        core.make_room(Need::New, table.indexes().len())?;
        let table = core.catalog.create_trees_for_load(&core.pool.enter(), table)?;
        let sorter = |share| core.sorting.sorter(share);
        let sorter_of_rows = sorter(shares.pop().expect("there is a share for each index"));
        let clustered = match ascends {
            true => Clustered::Ascends {
                builder: table.clustered().builder(),
                late: sorter_of_rows,
                late_count: 0,
            },
            false => Clustered::Sorted(sorter_of_rows),
        };
        let entries = shares.into_iter().map(sorter).collect();
        let lent = LentTree::lend(&core.pool, table.blob_owner(), Arc::clone(&table) as _);
        Ok(Self { table, clustered, entries, lent, rows: 0, values: Vec::new(), row: Vec::new() })
    }

    pub(super) fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table)
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn note_spilled(&self, core: &Core) {
        let (Clustered::Ascends { late: rows, .. } | Clustered::Sorted(rows)) = &self.clustered;
        let bytes: u64 = self.entries.iter().chain([rows]).map(Sorter::spilled_bytes).sum();
        core.counters.load_spilled_bytes.fetch_add(bytes, Relaxed);
    }

    pub(super) fn add(&mut self, core: &Core, new: &NewRow<'_>, refused: &mut Option<Refused>) -> Result<()> {
        self.build_row(core, new.row)?;
        let (key, row) = (new.key, self.row.as_slice());
        match &mut self.clustered {
            Clustered::Sorted(sorter) => sorter.push(&[key], &[row])?,
            Clustered::Ascends { builder, late, late_count } if key < builder.last_key() => {
                *late_count += 1;
                late.push(&[key], &[row])?;
            }
            Clustered::Ascends { builder, .. } => {
                if builder.push(key, RecordRef::frozen(row))? == Changed::Exists {
                    return refuse(core, &self.table, 0, key, (key, row), refused);
                }
            }
        }
        self.add_entries(new)?;
        self.rows += 1;
        Ok(())
    }

    fn add_entries(&mut self, new: &NewRow<'_>) -> Result<()> {
        let mut length = [0u8; varint::MAX_BYTES];
        let head = varint::bytes_of(new.key.len() as u64, &mut length);
        let is_kept = |entry: &&SecondaryEntry<'_>| !self.table.is_disabled(entry.index_no);
        for entry in new.secondary.iter().filter(is_kept) {
            let sorter = entry.index_no.checked_sub(1).and_then(|no| self.entries.get_mut(no));
            let (what, actual, limit) =
                ("index number", entry.index_no as u64, self.table.indexes().len() as u64 - 1);
            let sorter = sorter.ok_or(Error::Limit { what, actual, limit })?;
            sorter.push(&[entry.key, new.key], &[&[u8::from(entry.check_unique)], head, entry.payload])?;
        }
        Ok(())
    }

    /// The large values belong to the new clustered tree.
    fn build_row(&mut self, core: &Core, row: &[u8]) -> Result<()> {
        let Self { table, values, row: stored, .. } = self;
        let (row_format, bytes_max) = (table.row_format(), row_bytes_max(table));
        stored.clear();
        if row.len() <= bytes_max {
            stored.extend_from_slice(row);
            return Ok(());
        }
        find_values(row_format, row, values)?;
        choose_moves(row_format, row, values, bytes_max)?;
        let mut locators = Vec::with_capacity(values.len());
        for value in values.iter() {
            let bytes = row.get(value.at.clone()).unwrap_or_default();
            locators.push(match value.moves {
                true => large::write_unlogged(core, table.blob_owner(), bytes)?,
                false => [0; LOCATOR_BYTES],
            });
        }
        let missing = || Error::corrupt("large values of a row", "a value that was not written");
        rebuild(row_format, row, values, stored, |no, _| {
            locators.get(no).map(<[u8; LOCATOR_BYTES]>::as_slice).ok_or_else(missing)
        })
    }
}

//! Builds indexes while their table is in use: readers and writers continue.
//!
//! The index is first built from a snapshot of the table: its rows are read, entries are sorted for
//! each index, and trees are built page by page, as at the end of a load. Then the trees are
//! brought from that snapshot to a later one, in rounds. The part of the undo log written between
//! the two snapshots names every row that may have changed, so writers log nothing extra and
//! nothing can overflow. Where the snapshots see different versions of a row, the old entries are
//! replaced by the new ones. The last round runs while there are no writers, so the index then
//! matches the table. Finally a checkpoint makes the trees durable, and a change of the definition
//! (`alter`) assigns them to the table.
//!
//! Invariants
//!   B1  New trees are on the list of dropped trees until they are assigned to the table. So a
//!       build that ends in any other way, even by a crash, leaves nothing behind
//!       (durability::M10). No other thread reads or writes these trees.
//!   B2  At the end of each round the trees have exactly the entries of the rows that the snapshot
//!       `base` sees. The entries have no versions, so a snapshot older than the change of the
//!       definition cannot use the index.
//!   B3  `since` was read before `base` was opened, and while `pin` was open. A transaction that a
//!       later snapshot sees, but `base` does not, either has all its records after the end of the
//!       undo log in `since`, or was open then and is listed there with its first record. No undo
//!       page from that record on is freed, because transactions that have ended since `pin` was
//!       opened are not purged. Only the listed transactions that `base` does not see count: the
//!       other transactions may have ended before `pin`, and may be purged.
//!   B4  After an error the build cannot be continued.
//! Blocking  All of it reads and writes pages. Only the last round needs a lock: the caller's
//!           exclusive table lock.
//! Source    Like InnoDB's online ADD INDEX, the build ends by applying the changes made meanwhile.
//!           InnoDB writes a separate log for them, of limited size.

mod catching_up;

use crate::base::{sound, Error, Result, TxnId, UndoPtr};
use crate::format::varint;
use crate::sort::{Filling, Share, Sorter};
use crate::table::definitions::alter::BuiltIndexes;
use crate::table::definitions::handle::{class_of, Table};
use crate::table::definitions::spec::IndexSpec;
use crate::table::load::{build_indexes, Built, Refused, Watch};
use crate::table::rows::large;
use crate::table::rows::stored_row::{find_values, inline_row, Value};
use crate::table::shared::parts::Core;
use crate::table::shared::room::Need;
use crate::txn::ReadView;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

/// The entries of one row in the indexes being built.
#[derive(Default, Debug)]
pub struct BuiltEntries {
    bytes: Vec<u8>,
    entries: Vec<Place>,
}

/// An entry: the positions of its key and payload.
#[derive(Clone, Debug)]
struct Place {
    index_no: usize,
    check_unique: bool,
    key: Range<usize>,
    payload: Range<usize>,
}

/// Indexes count from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BuiltEntry<'a> {
    pub(crate) index_no: usize,
    pub(crate) check_unique: bool,
    pub(crate) key: &'a [u8],
    pub(crate) payload: &'a [u8],
}

impl BuiltEntries {
    /// Adds an entry of the new index `index_no`, from 1; otherwise like
    /// [`SecondaryEntry`](crate::table::SecondaryEntry).
    pub fn add(&mut self, index_no: usize, key: &[u8], payload: &[u8], check_unique: bool) {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(payload);
        let (key, payload) = (at..at + key.len(), at + key.len()..self.bytes.len());
        self.entries.push(Place { index_no, check_unique, key, payload });
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    fn iter(&self) -> impl Iterator<Item = BuiltEntry<'_>> {
        self.entries.iter().map(|Place { index_no, check_unique, key, payload }| BuiltEntry {
            index_no: *index_no,
            check_unique: *check_unique,
            key: self.bytes.get(key.clone()).unwrap_or_default(),
            payload: self.bytes.get(payload.clone()).unwrap_or_default(),
        })
    }
}

/// Computes the entries of a row from its clustered key and its stored row.
pub type EntriesOf<'a> = dyn FnMut(&[u8], &[u8], &mut BuiltEntries) -> Result<()> + 'a;

#[derive(Debug)]
pub(crate) struct Build {
    table: Arc<Table>,
    /// Has the clustered tree of the table, and the new trees; not in the catalog (B1).
    built: Arc<Table>,
    /// The caller gets rows with their large values inline.
    with_values: bool,
    base: Arc<ReadView>,
    pin: Arc<ReadView>,
    since: Since,
    /// `None` once the trees are built.
    sorters: Option<Filling>,
    rows: u64,
    refused: Option<Refused>,
    entries: BuiltEntries,
    values: Vec<Value>,
    key: Vec<u8>,
    row: Vec<u8>,
    /// A checkpoint has the current state of the trees.
    is_durable: bool,
    /// All rounds are done.
    is_finished: bool,
}

impl Build {
    /// Creates the trees and opens the first snapshot.
    pub(crate) fn new(
        core: &Core,
        table: &Arc<Table>,
        specs: &[IndexSpec],
        with_values: bool,
    ) -> Result<Self> {
        let clustered_bytes = table.clustered_def().max_key_bytes as usize;
        for spec in specs {
            class_of(&core.pool, spec.max_key_bytes as usize + clustered_bytes)?;
        }
        let shares = shares(core, specs.len())?;
        core.make_room(Need::New, specs.len())?;
        let built = core.catalog.create_indexes_to_build(&core.pool.enter(), table, specs)?;
        let sorter = |share| core.sorting.sorter(share);
        let pin = open_view(core);
        let since = Since::now(core);
        Ok(Self {
            table: Arc::clone(table),
            built,
            with_values,
            base: open_view(core),
            pin,
            since,
            sorters: Some(Filling::new(shares.into_iter().map(sorter).collect())),
            rows: 0,
            refused: None,
            entries: BuiltEntries::default(),
            values: Vec::new(),
            key: Vec::new(),
            row: Vec::new(),
            is_durable: false,
            is_finished: false,
        })
    }

    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The table with the new trees, from index 1 on.
    pub(crate) fn built(&self) -> &Arc<Table> {
        &self.built
    }

    /// The snapshot from which the index is built.
    pub(crate) fn base(&self) -> &Arc<ReadView> {
        &self.base
    }

    pub(crate) fn set_finished(&mut self) {
        self.is_finished = true;
    }

    /// The indexes for a change of the definition, once the build is finished.
    pub(crate) fn indexes(&self) -> Option<BuiltIndexes> {
        self.is_finished.then(|| BuiltIndexes(Arc::clone(&self.built)))
    }

    pub(crate) fn refused(&self) -> Option<&Refused> {
        self.refused.as_ref()
    }

    /// Adds a row that `base` sees.
    pub(crate) fn add(
        &mut self,
        core: &Core,
        key: [&[u8]; 2],
        row: &[u8],
        entries_of: &mut EntriesOf<'_>,
    ) -> Result<()> {
        let mut whole = std::mem::take(&mut self.key);
        whole.clear();
        key.iter().for_each(|part| whole.extend_from_slice(part));
        self.compute(core, &whole, row, entries_of)?;
        let Self { entries, sorters, built, .. } = self;
        let sorters = sorters.as_mut().expect("rows are added before the trees are built");
        for entry in entries.iter() {
            let no = entry.index_no.checked_sub(1).filter(|no| no + 1 < built.indexes().len());
            let no = no.ok_or_else(|| unknown(built, entry.index_no))?;
            push(&entry, &whole, |key, value| sorters.push(no, key, value))?;
        }
        self.key = whole;
        self.rows += 1;
        Ok(())
    }

    fn compute(
        &mut self,
        core: &Core,
        key: &[u8],
        stored: &[u8],
        entries_of: &mut EntriesOf<'_>,
    ) -> Result<()> {
        let Self { entries, values, row, table, with_values, .. } = self;
        entries.clear();
        if !*with_values {
            return entries_of(key, stored, entries);
        }
        find_values(table.row_format(), stored, values)?;
        row.clear();
        inline_row(table.row_format(), stored, values, row, |locator, value| {
            let mut bytes = Vec::new();
            large::read_value(&core.pool, table.blob_owner(), locator, &mut bytes)?;
            value.extend_from_slice(&bytes);
            Ok(())
        })?;
        entries_of(key, row, entries)
    }

    pub(crate) fn build_trees(&mut self, core: &Core, watch: &Watch<'_>) -> Result<()> {
        let sorters = self.sorters.take().expect("trees are built once").finish()?;
        let spilled: u64 = sorters.iter().map(Sorter::spilled_bytes).sum();
        core.counters.load_spilled_bytes.fetch_add(spilled, Relaxed);
        let (rows, total) = (self.rows, self.rows * (sorters.len() as u64 + 1));
        let watch = |done, _| watch(rows + done, total);
        let sorters = sorters.into_iter().enumerate().map(|(no, sorter)| (no + 1, sorter)).collect();
        let built = Built { table: &self.built, view: Some(&self.base) };
        build_indexes(core, &built, sorters, &mut self.refused, &watch)
    }

    pub(crate) fn make_durable(&mut self, core: &Core) -> Result<()> {
        if sound!(!self.is_durable, "build: return before the checkpoint") {
            core.checkpoint()?;
        }
        self.is_durable = true;
        Ok(())
    }
}

fn open_view(core: &Core) -> Arc<ReadView> {
    let view = ReadView::new(&core.transactions.versions);
    view.open();
    Arc::new(view)
}

/// Where the undo records begin of the transactions that a snapshot opened from now on does not see
/// (B3).
#[derive(Debug)]
struct Since {
    end: UndoPtr,
    /// Transactions listed as open that have records, each with its first record.
    open: Vec<(TxnId, UndoPtr)>,
}

impl Since {
    fn now(core: &Core) -> Self {
        // In this order: a transaction that has no record yet will append its records after `end`.
        let end = core.transactions.undo.end();
        let open = core.transactions.active.slots().into_iter().map(|slot| (slot.txn(), slot.state().first));
        Self { end, open: open.filter(|(_, first)| *first != UndoPtr(0)).collect() }
    }

    /// The address from which the undo log has all records of the transactions that `view` sees and
    /// `base` does not. From `open`, only transactions that have ended since then count.
    fn read_from(&self, base: &ReadView, view: &ReadView) -> UndoPtr {
        if !sound!(true, "build: forget who was open") {
            return self.end;
        }
        // A transaction that has ended stays listed briefly, and may already be purged.
        let is_seen = |txn| sound!(base.reader().is_decided(txn, None), "build: take who had ended for open");
        let ended = self.open.iter().filter(|(txn, _)| view.reader().sees(*txn, None) && !is_seen(*txn));
        ended.map(|(_, first)| *first).fold(self.end, UndoPtr::min)
    }
}

/// In the format that `build_index` expects.
fn push(
    entry: &BuiltEntry<'_>,
    clustered: &[u8],
    to: impl FnOnce(&[&[u8]], &[&[u8]]) -> Result<()>,
) -> Result<()> {
    let mut length = [0u8; varint::MAX_BYTES];
    let head = varint::bytes_of(clustered.len() as u64, &mut length);
    to(&[entry.key, clustered], &[&[u8::from(entry.check_unique)], head, entry.payload])
}

fn shares(core: &Core, count: usize) -> Result<Vec<Share>> {
    core.sorting.memory().join(count).ok_or_else(no_memory)
}

fn no_memory() -> Error {
    let detail =
        "too many sorters are in use to build an index; try again when fewer statements load or build";
    Error::Unsupported { place: "memory for sorting".into(), detail: detail.into() }
}

fn unknown(built: &Table, index_no: usize) -> Error {
    let (what, limit) = ("number of an index being built", built.indexes().len() as u64 - 1);
    Error::Limit { what, actual: index_no as u64, limit }
}

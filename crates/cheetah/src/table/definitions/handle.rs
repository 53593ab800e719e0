//! An open table: its definition, its trees, and its counters.
//!
//! Invariants
//!   I1  Counters change only inside mini-transactions, together with the rows they count, so an
//!       epoch has both or neither. Redo has no mini-transactions, and may change counters first.
//!   I2  Work on the table's pages holds `dropped` shared. A drop takes it exclusively once, and no
//!       thread uses the table afterwards. It is never waited for inside a mini-transaction
//!       (durability::C7). A change of the definition holds it exclusively until the catalog has
//!       the new handle, so that [`Catalog::using`](super::catalog::Catalog::using) finds it.
//!   I3  A quarantined table (durability::N3) lacks changes: it cannot be used, only dropped or
//!       replaced. A table is quarantined only while the database is opened, and stays so.
//!   I4  A counter for generated keys never goes back below a key that has been used.
//!   I5  The stored auto-increment counter takes precedence over that of the definition, even if it
//!       is lower: it may have been set explicitly. If it is 0, the table is new.
//!   I6  An untouched table has no rows, and no undo record names it: a load may give it other
//!       trees (`load`).
//!   I7  A replaced table ([`super::shadow`]) stays as it was, empty, for readers with older
//!       snapshots. All other users go to its successor, and so do its counters. A transaction that
//!       takes a number from the replaced table's counter checks afterwards for a successor. If
//!       there is one, it takes a number there, greater than its first one: the numbers that other
//!       transactions took here before are lower, and the successor's counter may not be advanced
//!       yet.

use super::counts::Counts;
use super::known_since::KnownSince;
use super::numbers::{Numbers, Reserved, Stride};
use super::statistics::{LastingStatistics, StatisticsOfHandle};
use crate::base::{sound, Error, Result, TableId, TreeId};
use crate::format::catalog::{FulltextDef, IndexDef, TableDef};
use crate::format::foreign_key::ForeignKeyDef;
use crate::format::row::RowFormatVersion;
use crate::format::state::TableState;
use crate::leaves::Leaves;
use crate::pool::{PageClass, Pool};
use crate::tree::{Tree, TreeDef};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::AcqRel, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};

/// An open table. Handles are shared. Handles of a dropped table, and handles opened before a
/// change of its definition, return `NoSuchTable`.
#[derive(Debug)]
pub struct Table {
    def: TableDef,
    trees: Vec<Arc<Tree>>,
    pub(super) lasting: Arc<LastingState>,
    dropped: RwLock<bool>,
    pub(super) statistics: StatisticsOfHandle,
    /// For each index added to the table: the stamp from which on snapshots can use it.
    usable_from: BTreeMap<usize, u64>,
}

/// The parts of a table that stay when its definition changes.
#[derive(Debug)]
pub(super) struct LastingState {
    name: RwLock<String>,
    /// Also changes when a parent is renamed.
    foreign_keys: RwLock<Arc<Vec<ForeignKeyDef>>>,
    /// The original, while this table is its copy and has no permanent name.
    copy_of: RwLock<String>,
    row_count: AtomicU64,
    counts: Counts,
    known: KnownSince,
    /// The stamp with which it replaced an empty table; 0 if it did not (I7).
    replaced_at: AtomicU64,
    /// The replaced empty table, while it is kept for older snapshots.
    before: RwLock<Weak<Table>>,
    successor: OnceLock<Arc<Table>>,
    auto_increment: AtomicU64,
    auto_increment_logged: AtomicU64,
    /// The number of statements that take consecutive numbers, with the counter locked. Other
    /// threads hold this lock shared to take numbers, so that no such statement begins meanwhile.
    bulk_inserts: RwLock<u32>,
    hidden_key: AtomicU64,
    /// In the caller's unit; 0 if there was no change since startup.
    changed_at: AtomicU64,
    /// Whether it was created by this process and never written.
    untouched: AtomicBool,
    quarantine: OnceLock<String>,
    pub(super) statistics: LastingStatistics,
}

/// Keeps a table from being dropped.
#[derive(Debug)]
pub(crate) struct Usage<'t>(#[expect(dead_code, reason = "held, not read")] RwLockReadGuard<'t, bool>);

/// Keeps all threads from using a table, see [`Table::hold_still`].
#[derive(Debug)]
pub(crate) struct StillTable<'t>(RwLockWriteGuard<'t, bool>);

impl StillTable<'_> {
    /// Marks the handle as invalid.
    pub(crate) fn replaced(mut self) {
        *self.0 = true;
    }
}

impl Table {
    /// Creates the handle of a table whose trees exist.
    pub(crate) fn new(def: TableDef, trees: Vec<Arc<Tree>>, counters: TableState) -> Self {
        // I5: the value in the definition is that of the creation.
        let first =
            if counters.auto_increment > 0 { counters.auto_increment } else { def.auto_increment.max(1) };
        let lasting = LastingState {
            name: RwLock::new(def.name.clone()),
            foreign_keys: RwLock::new(Arc::new(def.foreign_keys.clone())),
            copy_of: RwLock::new(def.copy_of.clone()),
            row_count: AtomicU64::new(counters.row_count),
            counts: Counts::new(counters.row_count),
            known: KnownSince::ever(&def.name),
            replaced_at: AtomicU64::new(0),
            before: RwLock::default(),
            successor: OnceLock::new(),
            auto_increment: AtomicU64::new(first),
            auto_increment_logged: AtomicU64::new(first),
            bulk_inserts: RwLock::new(0),
            hidden_key: AtomicU64::new(counters.hidden_key.max(1)),
            changed_at: AtomicU64::new(0),
            untouched: AtomicBool::new(true),
            quarantine: OnceLock::new(),
            statistics: LastingStatistics::default(),
        };
        Self::with_state(def, trees, Arc::new(lasting))
    }

    fn with_state(def: TableDef, trees: Vec<Arc<Tree>>, lasting: Arc<LastingState>) -> Self {
        // While an index is disabled, usually many rows are inserted, and ENABLE KEYS ends with a
        // checkpoint: full leaves are written early.
        if let Some(rows) = trees.first() {
            rows.write_full_leaves_early(def.indexes.iter().any(|index| index.disabled));
        }
        let (dropped, statistics) = (RwLock::new(false), StatisticsOfHandle::default());
        Self { def, trees, lasting, dropped, statistics, usable_from: BTreeMap::new() }
    }

    /// Returns the same table with another definition, whose trees must exist. The new indexes have
    /// no entries of older versions, so snapshots before `stamp` cannot use them.
    pub(crate) fn altered(&self, def: TableDef, trees: Vec<Arc<Tree>>, stamp: u64) -> Self {
        let mut altered = Self::with_state(def, trees, Arc::clone(&self.lasting));
        for (index_no, index) in altered.def.indexes.iter().enumerate() {
            let before = self.position_of(index.number);
            let usable_from = before.map_or(Some(stamp), |before| self.usable_from.get(&before).copied());
            if let Some(stamp) = usable_from {
                altered.usable_from.insert(index_no, stamp);
            }
            if let Some(before) = before {
                altered.statistics.take_over(&self.statistics, before, index_no);
            }
        }
        altered
    }

    /// Returns `TableChanged` for a snapshot older than the index.
    pub(crate) fn check_usable_since(&self, index_no: usize, stamp: Option<u64>) -> Result<()> {
        let usable_from = self.usable_from.get(&index_no).copied().unwrap_or(0);
        match stamp.filter(|_| sound!(true, "alter: show an index to older snapshots")) {
            Some(stamp) if stamp < usable_from => Err(Error::TableChanged(self.name())),
            _ => Ok(()),
        }
    }

    /// The number that log and undo records use for an index.
    pub(crate) fn number_of(&self, index_no: usize) -> u32 {
        self.def.indexes.get(index_no).map_or(0, |index| index.number)
    }

    /// The position of the index with this number; `None` if the index was dropped.
    pub(crate) fn position_of(&self, number: u32) -> Option<usize> {
        self.def.indexes.iter().position(|index| index.number == number)
    }

    /// Like [`position_of`](Self::position_of), for redo, when all indexes in log records exist.
    pub(crate) fn position_of_logged(&self, number: u32) -> Result<usize> {
        let unknown = || {
            let detail =
                format!("it names index {number} of table {}, which does not exist there", self.id());
            Error::corrupt("log", detail)
        };
        self.position_of(number).ok_or_else(unknown)
    }

    /// Its ID.
    pub fn id(&self) -> TableId {
        self.def.id
    }

    /// Its current name.
    pub fn name(&self) -> String {
        self.lasting.name.read().clone()
    }

    /// The caller's own bytes.
    pub fn extra(&self) -> &[u8] {
        &self.def.extra
    }

    /// The format of its stored rows.
    pub fn row_format(&self) -> &RowFormatVersion {
        &self.clustered_def().row_format
    }

    /// Its indexes; the first is the clustered one.
    pub fn indexes(&self) -> &[IndexDef] {
        &self.def.indexes
    }

    /// Its full-text indexes.
    pub fn fulltext(&self) -> &[FulltextDef] {
        &self.def.fulltext
    }

    /// The full-text index at this position, from 0, or `Limit` if there is none.
    pub fn fulltext_index(&self, no: usize) -> Result<&FulltextDef> {
        let limit = self.def.fulltext.len() as u64;
        let unknown = Error::Limit { what: "position of a full-text index", actual: no as u64, limit };
        self.def.fulltext.get(no).ok_or(unknown)
    }

    /// Whether an index is disabled.
    pub fn is_disabled(&self, index_no: usize) -> bool {
        self.def.indexes.get(index_no).is_some_and(|index| index.disabled)
    }

    /// Whether an index refuses a second row with the same key.
    pub(crate) fn is_unique(&self, index_no: usize) -> bool {
        self.def.indexes.get(index_no).is_none_or(|index| index.unique)
    }

    pub(crate) fn has_disabled(&self) -> bool {
        self.def.indexes.iter().any(|index| index.disabled)
    }

    /// Its definition, with the name and the foreign keys that it had when it was opened.
    pub fn def(&self) -> &TableDef {
        &self.def
    }

    pub(crate) fn definition(&self) -> TableDef {
        let foreign_keys = self.foreign_keys().as_ref().clone();
        TableDef { name: self.name(), foreign_keys, copy_of: self.copy_of(), ..self.def.clone() }
    }

    pub(crate) fn definition_with_constraints(&self, constraints: &[ForeignKeyDef]) -> TableDef {
        TableDef { foreign_keys: constraints.to_vec(), ..self.definition() }
    }

    /// The table that it is a copy of; empty if it is no copy, or has replaced the original.
    pub(crate) fn copy_of(&self) -> String {
        self.lasting.copy_of.read().clone()
    }

    pub(crate) fn has_its_place(&self) {
        self.lasting.copy_of.write().clear();
    }

    /// Its own current foreign keys.
    pub fn foreign_keys(&self) -> Arc<Vec<ForeignKeyDef>> {
        Arc::clone(&self.lasting.foreign_keys.read())
    }

    /// Whether its clustered keys come from [`next_hidden_key`](Self::next_hidden_key).
    pub fn hidden_key(&self) -> bool {
        self.def.hidden_key
    }

    /// The number of its rows, including those of open transactions.
    pub fn row_count(&self) -> u64 {
        self.lasting.row_count.load(Relaxed)
    }

    /// The row counts that snapshots see.
    pub(crate) fn counts(&self) -> &Counts {
        &self.lasting.counts
    }

    /// Sets the row count that snapshots see, at the end of startup. `open_difference`: the rows
    /// that open transactions have added, less those they deleted.
    pub(crate) fn restore_count(&self, open_difference: i64) {
        self.lasting.counts.set(self.row_count().saturating_add_signed(-open_difference));
    }

    /// The time of the last committed change, in the caller's unit; 0 if no transaction has set a
    /// time since startup. An emptied table keeps it.
    pub fn changed_at(self: &Arc<Self>) -> u64 {
        self.newest().lasting.changed_at.load(Relaxed)
    }

    pub(crate) fn set_changed_at(&self, time: u64) {
        self.lasting.changed_at.store(time, Relaxed);
    }

    pub(crate) fn is_untouched(&self) -> bool {
        self.lasting.untouched.load(Relaxed)
    }

    /// Notes that the table is, or before startup may have been, written.
    pub(crate) fn note_written(&self) {
        if self.is_untouched() {
            self.lasting.untouched.store(false, Relaxed);
        }
    }

    /// Replaces `old`, which has no rows, with `rows` rows that every snapshot sees. Inside a
    /// mini-transaction (I1).
    pub(crate) fn take_over(&self, old: &Table, rows: u64) {
        self.note_written();
        self.lasting.row_count.store(rows, Relaxed);
        self.lasting.counts.set(rows);
        self.set_auto_increment(old.auto_increment());
        self.lasting.hidden_key.store(old.lasting.hidden_key.load(Relaxed), Relaxed);
        self.describe_keys_as(old);
    }

    /// Refuses the table to snapshots before `stamp`, which would have found other rows under its
    /// name (durability::M2).
    pub(crate) fn set_known_since(&self, stamp: u64) {
        *self.lasting.before.write() = Weak::new();
        self.lasting.known.begin(stamp, &self.name());
    }

    /// Returns `TableChanged` for a snapshot at whose stamp another table, or none, had the name.
    pub(crate) fn check_known_at(self: &Arc<Self>, stamp: Option<u64>) -> Result<()> {
        let is_known = |stamp| self.newest().lasting.known.is_known_at(stamp);
        match stamp.filter(|_| sound!(true, "table: show it to older snapshots")) {
            Some(stamp) if !is_known(stamp) => Err(Error::TableChanged(self.name())),
            _ => Ok(()),
        }
    }

    /// Returns `TableChanged` for a snapshot taken before the table replaced an empty one, which
    /// that snapshot should read.
    pub(crate) fn check_not_replaced_since(&self, stamp: Option<u64>) -> Result<()> {
        match stamp {
            Some(stamp) if stamp < self.lasting.replaced_at.load(Relaxed) => {
                Err(Error::TableChanged(self.name()))
            }
            _ => Ok(()),
        }
    }

    /// Makes `loaded` replace this table for readers that see `stamp`, and carries its counters
    /// over (I7). Inside the mini-transaction that replaces the table in the catalog.
    pub(crate) fn give_way_to(self: &Arc<Self>, loaded: &Arc<Table>, stamp: u64) {
        loaded.lasting.replaced_at.store(stamp, Relaxed);
        loaded.lasting.known.take_over(&self.lasting.known);
        loaded.describe_keys_as(self);
        *loaded.lasting.before.write() = Arc::downgrade(self);
        let carry_counters = || {
            loaded.advance_auto_increment(self.lasting.auto_increment.fetch_add(0, AcqRel));
            loaded.lasting.hidden_key.fetch_max(self.lasting.hidden_key.fetch_add(0, AcqRel), AcqRel);
        };
        // Twice: `loaded` gives out numbers at once, and others were taken here in between.
        carry_counters();
        let _ = self.lasting.successor.set(Arc::clone(loaded));
        carry_counters();
    }

    /// Whether it has replaced another table at a stamp that is not published yet.
    pub(crate) fn replaces_after(&self, published: u64) -> bool {
        self.lasting.replaced_at.load(Relaxed) > published
    }

    /// The table now in its place: the one to lock and to write.
    pub(crate) fn newest(self: &Arc<Self>) -> &Arc<Self> {
        self.lasting.successor.get().map_or(self, Self::newest)
    }

    /// Whether another table has replaced it, so that a new handle is needed.
    pub fn has_moved(&self) -> bool {
        self.lasting.successor.get().is_some()
    }

    pub(crate) fn has_given_way_to(&self, table: &Table) -> bool {
        self.lasting.successor.get().is_some_and(|next| Arc::ptr_eq(&next.lasting, &table.lasting))
    }

    /// The table that a snapshot with `stamp` sees instead of this one, if any (I7).
    pub(crate) fn seen_at(&self, stamp: Option<u64>) -> Option<Arc<Table>> {
        let sees = |table: &Table| stamp.is_none_or(|stamp| stamp >= table.lasting.replaced_at.load(Relaxed));
        match self.lasting.successor.get() {
            Some(next) => sees(next).then(|| Arc::clone(next)),
            None if sees(self) => None,
            None => self.lasting.before.read().upgrade(),
        }
    }

    /// The next auto-increment value.
    pub fn auto_increment(&self) -> u64 {
        self.lasting
            .successor
            .get()
            .map_or_else(|| self.lasting.auto_increment.load(Relaxed), |next| next.auto_increment())
    }

    /// Raises the next auto-increment value to `next`, unless it is already higher. Durable with
    /// the next row operation on the table.
    pub fn advance_auto_increment(&self, next: u64) {
        self.lasting.auto_increment.fetch_max(next, AcqRel);
        if let Some(successor) = self.lasting.successor.get() {
            successor.advance_auto_increment(next);
        }
    }

    /// Raises the next auto-increment value to the first value of `stride` after `used`, unless it
    /// is already higher. If the result exceeds the column's range, all values are used up. Durable
    /// with the next row operation on the table.
    pub fn advance_auto_increment_past(&self, used: u64, stride: Stride) {
        self.advance_auto_increment(stride.next_after(used));
    }

    /// Durable with the next row operation on the table.
    pub(crate) fn reserve_numbers(&self, numbers: &Numbers) -> Reserved {
        let mut counter = self.lasting.auto_increment.load(Relaxed);
        loop {
            let reserved = numbers.reserve(counter);
            match self.lasting.auto_increment.compare_exchange_weak(counter, reserved.next, AcqRel, Relaxed) {
                Ok(_) => {
                    break self
                        .successor_behind(reserved.next)
                        .map_or(reserved, |next| next.reserve_numbers(numbers))
                }
                Err(now) => counter = now,
            }
        }
    }

    /// Returns `None` while a statement takes consecutive numbers.
    pub(crate) fn reserve_numbers_unless_bulk(&self, numbers: &Numbers) -> Option<Reserved> {
        let bulk_inserts = self.lasting.bulk_inserts.read();
        (*bulk_inserts == 0).then(|| self.reserve_numbers(numbers))
    }

    /// Its replacement, if any, with the auto-increment counter raised to at least `next` (I7).
    fn successor_behind(&self, next: u64) -> Option<&Arc<Table>> {
        self.lasting.successor.get().inspect(|successor| successor.advance_auto_increment(next))
    }

    /// Keeps statements that do not lock the counter from taking numbers until
    /// [`end_bulk_insert`](Self::end_bulk_insert).
    pub(crate) fn begin_bulk_insert(&self) {
        *self.lasting.bulk_inserts.write() += 1;
    }

    pub(crate) fn end_bulk_insert(&self) {
        *self.lasting.bulk_inserts.write() -= 1;
    }

    /// Returns a new hidden key, for a table without a clustered key of its own.
    pub fn next_hidden_key(&self) -> [u8; 8] {
        let key = self.lasting.hidden_key.fetch_add(1, AcqRel);
        match self.lasting.successor.get() {
            None => key.to_be_bytes(),
            Some(next) => {
                next.lasting.hidden_key.fetch_max(key + 1, AcqRel);
                next.next_hidden_key()
            }
        }
    }

    /// Whether the handle is invalid, because the table was dropped, emptied or altered.
    pub fn is_dropped(&self) -> bool {
        *self.dropped.read_recursive()
    }

    /// Whether the table, or the one that replaced it, was dropped.
    pub fn is_out_of_use(self: &Arc<Self>) -> bool {
        self.newest().is_dropped()
    }

    /// Keeps the table from being dropped in use. Returns `Corruption` if it is quarantined.
    pub(crate) fn use_it(&self) -> Result<Usage<'_>> {
        let dropped = self.dropped.read_recursive();
        if *dropped {
            return Err(Error::NoSuchTable(self.name()));
        }
        match self.quarantine_reason() {
            None => Ok(Usage(dropped)),
            Some(damage) => Err(self.quarantined(damage)),
        }
    }

    /// The damage because of which the table is quarantined: found when the database was opened,
    /// now or earlier, or when changes of a temporary table were rolled back. Reads and writes are
    /// refused; the table can be dropped and emptied.
    pub fn quarantine_reason(&self) -> Option<&str> {
        self.lasting.quarantine.get().map(String::as_str)
    }

    fn quarantined(&self, damage: &str) -> Error {
        if self.id().is_temporary() {
            let detail =
                format!("changes could not be rolled back, because of {damage}; drop or truncate it");
            return Error::corrupt(format!("temporary table '{}'", self.name()), detail);
        }
        let advice = "it lacks committed changes since then, so it is neither read nor written; drop or truncate it and \
                      restore it from a backup; other tables are not affected";
        let detail = format!("quarantined when the database was opened, because of {damage}; {advice}");
        Error::corrupt(format!("table '{}'", self.name()), detail)
    }

    /// The first reason is kept.
    pub(crate) fn quarantine(&self, damage: String) {
        let _ = self.lasting.quarantine.set(damage);
    }

    /// Waits until no thread uses the table, and allows no further use.
    pub(crate) fn mark_dropped(&self) {
        *self.dropped.write() = true;
    }

    /// Waits until no thread uses the table, and allows no use until the guard is dropped. Uses are
    /// brief, and a thread uses one table at a time.
    pub(crate) fn hold_still(&self) -> StillTable<'_> {
        StillTable(self.dropped.write())
    }

    pub(crate) fn set_foreign_keys(&self, constraints: Vec<ForeignKeyDef>) {
        *self.lasting.foreign_keys.write() = Arc::new(constraints);
    }

    pub(crate) fn rename(&self, name: &str) {
        name.clone_into(&mut self.lasting.name.write());
    }

    /// Like [`rename`](Self::rename) for readers that see `stamp`; others still use the old name.
    pub(crate) fn rename_at(&self, stamp: u64, name: &str) {
        if sound!(true, "rename: show the table to older snapshots") {
            self.lasting.known.rename(stamp, name);
        }
        self.rename(name);
    }

    pub(crate) fn trees(&self) -> &[Arc<Tree>] {
        &self.trees
    }

    pub(crate) fn tree(&self, index_no: usize) -> Result<&Arc<Tree>> {
        let actual = index_no as u64;
        let limit = self.trees.len().saturating_sub(1) as u64;
        self.trees.get(index_no).ok_or(Error::Limit { what: "index number", actual, limit })
    }

    pub(crate) fn clustered(&self) -> &Arc<Tree> {
        self.trees.first().expect("a table has a clustered tree")
    }

    pub(crate) fn clustered_def(&self) -> &IndexDef {
        self.def.indexes.first().expect("a table has a clustered index")
    }

    /// The owner of the pages of large values.
    pub(crate) fn blob_owner(&self) -> TreeId {
        self.clustered_def().tree
    }

    pub(crate) fn count_rows(&self, difference: i64) {
        if difference >= 0 {
            self.lasting.row_count.fetch_add(difference.unsigned_abs(), Relaxed);
        } else {
            self.lasting.row_count.fetch_sub(difference.unsigned_abs(), Relaxed);
        }
    }

    /// Returns the next auto-increment value, and counts it as logged; 0 if it already was.
    pub(crate) fn take_auto_increment_to_log(&self) -> u64 {
        let next = self.lasting.auto_increment.load(Relaxed);
        if self.lasting.auto_increment_logged.fetch_max(next, Relaxed) < next {
            next
        } else {
            0
        }
    }

    /// Sets the next auto-increment value, and counts it as logged.
    pub(crate) fn set_auto_increment(&self, next: u64) {
        self.lasting.auto_increment.store(next, Relaxed);
        self.lasting.auto_increment_logged.store(next, Relaxed);
    }

    /// Notes a clustered key found by redo, so that a hidden key is not used twice.
    pub(crate) fn note_hidden_key(&self, key: &[u8]) {
        if let (true, Ok(key)) = (self.def.hidden_key, <[u8; 8]>::try_from(key)) {
            self.lasting.hidden_key.fetch_max(u64::from_be_bytes(key).saturating_add(1), Relaxed);
        }
    }

    pub(crate) fn counters(&self) -> TableState {
        TableState {
            table: self.id(),
            row_count: self.row_count(),
            auto_increment: self.auto_increment(),
            hidden_key: self.lasting.hidden_key.load(Relaxed),
        }
    }
}

/// Maximum length of a stored key: in a secondary entry the clustered key follows its own key.
pub(crate) fn stored_key_bytes_max(def: &TableDef, index_no: usize) -> usize {
    let bytes = |no: usize| def.indexes.get(no).map_or(0, |index| index.max_key_bytes as usize);
    if index_no == 0 {
        bytes(0)
    } else {
        bytes(index_no) + bytes(0)
    }
}

pub(crate) fn open_trees(leaves: &Leaves, def: &TableDef) -> Result<Vec<Arc<Tree>>> {
    let open = |(index_no, index): (usize, &IndexDef)| {
        let key_bytes_max = stored_key_bytes_max(def, index_no);
        let class = class_of(leaves.pool(), key_bytes_max)?;
        Ok(Arc::new(Tree::open(leaves, TreeDef { id: index.tree, root: index.root, class, key_bytes_max })?))
    };
    def.indexes.iter().enumerate().map(open).collect()
}

pub(crate) fn class_of(pool: &Pool, key_bytes_max: usize) -> Result<PageClass> {
    let limit = crate::format::page::max_key_bytes(PageClass::Wide.bytes(pool.page_bytes())) as u64;
    let too_long = Error::Limit { what: "key length (bytes)", actual: key_bytes_max as u64, limit };
    Tree::class_for(pool.page_bytes(), key_bytes_max).ok_or(too_long)
}

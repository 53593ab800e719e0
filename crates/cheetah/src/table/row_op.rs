//! Insert, update and delete of a row with all its index entries, forward and at redo.
//!
//! Order: lock the rows of the old and of the new key, look (old row, old entries, uniqueness, and delete-marked records
//! where something new comes), write large values, pin every page, make room; then one action does it all: undo record, trees
//! and row count, log record. The locks keep other writers away from the row, and its standing ([`super::standing`]) purge,
//! so what was looked at still holds in the action.
//!
//! What somebody else has in the way, a row with the same unique key or a locked range, is waited for with nothing held but
//! locks, and then all begins again. Ranges are asked for before anything is changed, and once more afterwards: a scan that has
//! locked one in between has not seen what came, so that goes again; a later one sees it.
//!
//! Invariants
//!   I1  A refusal (duplicate key, limit, disk full) changes nothing: large values that were written are taken back.
//!   I2  Redo runs the same code with the values that the log carries, without uniqueness checks and locks; without undo records too,
//!       if it knows that the transaction commits.
//!   I3  Once it is done, its versions are the locks of its rows: those that were asked for are given back.
//!   I4  The undo record is appended before the trees change: whoever meets the new version finds it.

use super::change::{self, Change, EntryChange, Gone, Paths, TreePaths};
use super::core::{Core, Counters, Need};
use super::handle::Table;
use super::large::{self, Buffers, Unclaimed};
use super::locker::{Asked, Locked, Locker, Maker, Patience};
use super::rollback;
use super::spec::{NewRow, OldEntry, SecondaryEntry};
use super::standing::Standing;
use super::stored_row::{choose_moves, find_values, rebuild, Value};
use crate::base::{planted, reach, Error, Result, TreeId, TxnId};
use crate::format::log_record::{encode_row, LargeSource, LoggedEntry, LoggedRow, RowOp};
use crate::format::page::{max_payload_bytes, RecordRef};
use crate::format::row::{RowShape, LOCATOR_BYTES};
use crate::format::undo_record::{self, RowParts, UndoEntry};
use crate::format::varint;
use crate::tree::SeekMode;
use crate::txn::{start_record, Lock, LockMode, Slot};
use std::sync::Arc;

/// Bytes of an undo record beside keys and rows, for the row and for each entry.
const UNDO_BYTES_MORE: usize = 96;

/// The buffers and pins of one transaction's row operations; once they have grown, only unique keys need an allocation per row.
#[derive(Default, Debug)]
pub(crate) struct Writer {
    pub(crate) paths: Paths,
    pub(crate) change: Change,
    pub(crate) buffers: Buffers,
    pub(crate) unclaimed: Unclaimed,
    values: Vec<Value>,
    old_values: Vec<Value>,
    large: Vec<LargeSource>,
    /// Locators of the values that die when the transaction commits.
    freed: Vec<u8>,
    /// The row with the same unique key that was waited for last, and is locked since then.
    duplicate: Option<Vec<u8>>,
}

/// What an operation has to wait for before it can begin again.
#[derive(Debug)]
enum Obstacle {
    /// The row of this key has the same unique key, or had it.
    Row(Vec<u8>),
    /// Somebody has locked the range of an index in which this key lies.
    Range(TreeId, Vec<u8>),
}

/// What came of an attempt.
#[derive(Debug)]
enum Attempt {
    Done,
    /// Nothing has changed.
    Wait(Obstacle),
    /// It is done, and is to be taken back.
    TakeBack(Obstacle),
}

/// Who writes, and where.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) core: &'a Core,
    pub(crate) slot: &'a Arc<Slot>,
    pub(crate) table: &'a Table,
    /// The locks to take; none when nobody else can get at the rows.
    pub(crate) locks: Option<Locks<'a>>,
    /// Whether the statement is to end, asked while it waits and before it tries again.
    pub(crate) interrupted: &'a dyn Fn() -> bool,
}

impl Target<'_> {
    /// `Interrupted` when the statement is to end: asked before something is tried again.
    fn check_interrupted(&self) -> Result<()> {
        match (self.interrupted)() {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }
}

/// How a row operation locks.
#[derive(Clone, Copy)]
pub(crate) struct Locks<'a> {
    pub(crate) locker: &'a Locker,
    /// How the row is locked that has a unique key already: as what the caller does then needs it.
    pub(crate) duplicates: LockMode,
}

/// Where the new row's large values come from.
#[derive(Clone, Copy)]
enum RowSource<'a> {
    /// The caller's row: long values are to be written.
    Caller,
    /// A logged row: its values have been written already, or are kept.
    Log(&'a [LargeSource]),
}

impl Writer {
    /// Unpins everything; to be called when a statement ends.
    pub(crate) fn release(&mut self) {
        self.paths.release();
    }

    /// Inserts a row.
    pub(crate) fn insert(&mut self, on: Target<'_>, new: &NewRow<'_>) -> Result<()> {
        self.run(on, RowOp::Insert, b"", Some(new), &[])?;
        Counters::add(&on.core.counters.rows_inserted);
        Ok(())
    }

    /// Changes the row of `old_key`.
    pub(crate) fn update(
        &mut self,
        on: Target<'_>,
        old_key: &[u8],
        new: &NewRow<'_>,
        old_entries: &[OldEntry<'_>],
    ) -> Result<()> {
        self.run(on, RowOp::Update, old_key, Some(new), old_entries)?;
        Counters::add(&on.core.counters.rows_updated);
        Ok(())
    }

    /// Deletes the row of `key`.
    pub(crate) fn delete(&mut self, on: Target<'_>, key: &[u8], old_entries: &[OldEntry<'_>]) -> Result<()> {
        self.run(on, RowOp::Delete, key, None, old_entries)?;
        Counters::add(&on.core.counters.rows_deleted);
        Ok(())
    }

    /// Repeats a logged row operation, of a transaction that `commits` for certain or may have to be taken back.
    pub(crate) fn redo(
        &mut self,
        on: Target<'_>,
        commits: bool,
        op: RowOp,
        logged: &LoggedRow<'_>,
        large: &[LargeSource],
        entries: &[LoggedEntry<'_>],
    ) -> Result<()> {
        let table = on.table;
        let _usage = table.use_it()?;
        let new_key =
            if op == RowOp::Update && logged.new_key.is_empty() { logged.old_key } else { logged.new_key };
        self.change.start(op, logged.old_key, new_key);
        let _standing = self.standing(on);
        self.read_old_row(table)?;
        if self.look_at_new_row(table)? {
            return Err(Error::corrupt(format!("table '{}'", table.name()), "the new row is there already"));
        }
        for entry in entries {
            self.add_entry(table, entry, new_key.len())?;
        }
        if op != RowOp::Delete {
            self.build_row(on, logged.row, RowSource::Log(large))?;
            table.note_hidden_key(new_key);
            table.advance_auto_increment(logged.auto_increment);
            table.take_auto_increment_to_log();
        }
        self.collect_freed(table)?;
        if commits && self.leaves_nothing() {
            return self.execute_for_good(on);
        }
        self.execute(on)
    }

    fn run(
        &mut self,
        on: Target<'_>,
        op: RowOp,
        old_key: &[u8],
        new: Option<&NewRow<'_>>,
        old_entries: &[OldEntry<'_>],
    ) -> Result<()> {
        check_limits(on.table, new)?;
        self.duplicate = None;
        let mut places = 0;
        let done = self.run_until_done(on, op, old_key, new, old_entries, &mut places);
        match done {
            Ok(()) => forget_locks(on, op, old_key, new),
            Err(_) => give_back_place(on, new, &mut places),
        }
        done
    }

    /// `places` counts the requests for the key of a new row that is not there.
    fn run_until_done(
        &mut self,
        on: Target<'_>,
        op: RowOp,
        old_key: &[u8],
        new: Option<&NewRow<'_>>,
        old_entries: &[OldEntry<'_>],
        places: &mut u32,
    ) -> Result<()> {
        loop {
            let before = on.slot.state().undo_no;
            *places += u32::from(lock_rows(on, op, old_key, new)?);
            let obstacle = match self.attempt(on, op, old_key, new, old_entries)? {
                Attempt::Done => return Ok(()),
                Attempt::Wait(obstacle) => obstacle,
                Attempt::TakeBack(obstacle) => {
                    reach::mark("row operation taken back for a range");
                    rollback::roll_back_to(on.core, on.slot, before, &[], self)?;
                    obstacle
                }
            };
            if let Obstacle::Range(..) = obstacle {
                // Whoever has the range may put the row there himself.
                give_back_place(on, new, places);
            }
            self.wait_for(on, obstacle)?;
            on.check_interrupted()?;
        }
    }

    fn attempt(
        &mut self,
        on: Target<'_>,
        op: RowOp,
        old_key: &[u8],
        new: Option<&NewRow<'_>>,
        old_entries: &[OldEntry<'_>],
    ) -> Result<Attempt> {
        let Target { core, slot, table, .. } = on;
        let _usage = table.use_it()?;
        let _unique = on.locks.map(|_| core.unique_keys.take(unique_keys(table, new)));
        self.change.start(op, old_key, new.map_or(b"", |new| new.key));
        let _standing = self.standing(on);
        self.read_old_row(table)?;
        if let Some(new) = new {
            if let Some(obstacle) = self.check_unique(on, new)? {
                return Ok(Attempt::Wait(obstacle));
            }
        }
        self.add_entries(table, new, old_entries)?;
        if let Some(obstacle) = self.range_of_others(on)? {
            return Ok(Attempt::Wait(obstacle));
        }
        let done = self.build_and_execute(on, new);
        if done.is_err() && core.health.check().is_ok() {
            rollback::take_back_large_values(core, slot, &mut self.unclaimed, &mut self.buffers)?;
        }
        done?;
        match self.range_of_others(on)?.filter(|_| !planted::is_on("rows: do not ask for ranges again")) {
            Some(obstacle) => Ok(Attempt::TakeBack(obstacle)),
            None => Ok(Attempt::Done),
        }
    }

    fn wait_for(&mut self, on: Target<'_>, obstacle: Obstacle) -> Result<()> {
        let Some(Locks { locker, duplicates }) = on.locks else { return Ok(()) };
        match obstacle {
            Obstacle::Row(key) => {
                let locked = locker.lock_row(on.table, &key, Patience::Waits, |_| duplicates, |_| Ok(()))?;
                if let Locked::Gone(Some(mode)) = locked {
                    locker.unlock_row(on.table, &key, mode);
                }
                self.duplicate = matches!(locked, Locked::Live(_)).then_some(key);
                Ok(())
            }
            Obstacle::Range(tree, key) => locker.acquire(Lock::InsertIntention { tree, key: &key }),
        }
    }

    /// The first place where the operation puts a record into a range that somebody else has locked.
    fn range_of_others(&self, on: Target<'_>) -> Result<Option<Obstacle>> {
        let (Some(Locks { locker, .. }), change) = (on.locks, &self.change) else { return Ok(None) };
        if planted::is_on("rows: do not ask for ranges") {
            return Ok(None);
        }
        let row = (change.op != RowOp::Delete && !change.keeps_key()).then_some((0, change.new_key));
        let entries = change.entries.iter().filter(|entry| !change.entry_keeps_key(entry));
        let entries = entries.filter_map(|entry| entry.new_key.map(|(key, _)| (entry.index_no, key)));
        for (index_no, key) in row.into_iter().chain(entries) {
            let (tree, key) = (on.table.tree(index_no)?.def().id, change.get(key));
            if on.core.locks.has_ranges(tree) {
                let asked = locker.ask(Lock::InsertIntention { tree, key }, Patience::None)?;
                if let Asked::Refused = asked {
                    return Ok(Some(Obstacle::Range(tree, key.to_vec())));
                }
            }
        }
        Ok(None)
    }

    fn build_and_execute(&mut self, on: Target<'_>, new: Option<&NewRow<'_>>) -> Result<()> {
        let table = on.table;
        if let Some(new) = new {
            self.build_row(on, new.row, RowSource::Caller)?;
        }
        self.collect_freed(table)?;
        self.execute(on)
    }

    /// Keeps purge away from the rows of the change.
    fn standing<'a>(&self, on: Target<'a>) -> Standing<'a> {
        let Change { op, old_key, new_key, .. } = self.change;
        let old = (op != RowOp::Insert).then(|| self.change.get(old_key));
        let new = (op != RowOp::Delete).then(|| self.change.get(new_key));
        on.core.standings.of_rows(on.table.id(), old, new)
    }

    /// Reads the row that changes or goes.
    fn read_old_row(&mut self, table: &Table) -> Result<()> {
        self.old_values.clear();
        if self.change.op == RowOp::Insert {
            return Ok(());
        }
        let Writer { change, paths, old_values, .. } = self;
        let path = &mut paths.of(table, 0)?.old;
        match change.look(table.clustered(), change.old_key, path)? {
            Some((false, held)) => change.old = held,
            _ => return Err(Error::RowNotFound),
        }
        find_values(table.shape(), change.held(&change.old), old_values)
    }

    /// Looks at where a row comes that was not there: whether one is there.
    fn look_at_new_row(&mut self, table: &Table) -> Result<bool> {
        let Writer { change, paths, .. } = self;
        if change.op == RowOp::Delete || change.keeps_key() {
            return Ok(false);
        }
        let path = &mut paths.of(table, 0)?.new;
        match change.look(table.clustered(), change.new_key, path)? {
            None => {}
            Some((true, held)) => change.marked = Some(held),
            Some((false, _)) => return Ok(true),
        }
        Ok(false)
    }

    /// Pairs the entries that go with those that come.
    fn add_entries(&mut self, table: &Table, new: Option<&NewRow<'_>>, old: &[OldEntry<'_>]) -> Result<()> {
        let new_entries = new.map_or(&[][..], |new| new.secondary);
        let clustered_len = self.change.get(self.change.new_key).len();
        for no in 0..old.len().max(new_entries.len()) {
            let (old, new) = (old.get(no), new_entries.get(no));
            let index_no = old.map(|old| old.index_no).or(new.map(|new| new.index_no)).unwrap_or_default();
            let mismatch = new.is_some_and(|new| new.index_no != index_no)
                || (self.change.op == RowOp::Update && old.is_some() != new.is_some())
                || index_no == 0;
            if mismatch {
                let what = "index numbers of old and new entries that differ";
                return Err(Error::Limit { what, actual: index_no as u64, limit: 0 });
            }
            let entry = LoggedEntry {
                index_no,
                old_key: old.map_or(b"", |old| old.key),
                new_key: new.map_or(b"", |new| new.key),
                payload: new.map_or(b"", |new| new.payload),
            };
            self.add_entry(table, &entry, clustered_len)?;
        }
        Ok(())
    }

    /// Adds one entry, looking at what goes and making sure that what comes is not there.
    fn add_entry(&mut self, table: &Table, entry: &LoggedEntry<'_>, new_len: usize) -> Result<()> {
        let op = self.change.op;
        let old_key = (op != RowOp::Insert).then_some(entry.old_key);
        let new_key = (op != RowOp::Delete).then_some(entry.new_key);
        let mut length = [0u8; varint::MAX_BYTES];
        let used = varint::write(&mut length, new_len as u64);
        let head = length.get(..used).unwrap_or_default();
        let payload: [&[u8]; 2] = if new_key.is_some() { [head, entry.payload] } else { [b"", b""] };
        let mut added = *self.change.add_entry(entry.index_no, old_key, new_key, &payload);
        self.look_at_entry(table, &mut added)?;
        if let Some(last) = self.change.entries.last_mut() {
            *last = added;
        }
        Ok(())
    }

    fn look_at_entry(&mut self, table: &Table, entry: &mut EntryChange) -> Result<()> {
        let Writer { change, paths, .. } = self;
        let tree = table.tree(entry.index_no)?;
        let into = paths.of(table, entry.index_no)?;
        let damaged =
            |detail| Error::corrupt(format!("index {} of table '{}'", entry.index_no, table.name()), detail);
        if let Some((old, _)) = entry.old_key {
            match change.look(tree, old, &mut into.old)? {
                Some((false, held)) => entry.old = held,
                _ => return Err(damaged("the entry of the row to change is missing; run CHECK TABLE")),
            }
        }
        let Some((new, _)) = entry.new_key.filter(|_| !change.entry_keeps_key(entry)) else { return Ok(()) };
        let TreePaths { old, new: path, .. } = into;
        match change.look_near(tree, new, path, old)? {
            None => {}
            Some((true, held)) => entry.marked = Some(held),
            Some((false, _)) => {
                return Err(damaged("an entry of the new row is there already; run CHECK TABLE"))
            }
        }
        Ok(())
    }

    /// Refuses a row whose unique keys another row has; the row to wait for, where that is not decided.
    fn check_unique(&mut self, on: Target<'_>, new: &NewRow<'_>) -> Result<Option<Obstacle>> {
        if self.look_at_new_row(on.table)? {
            return Err(Error::DuplicateKey { index_no: 0, existing: new.key.to_vec() });
        }
        for entry in new.secondary.iter().filter(|entry| must_be_unique(on.table, entry)) {
            if let Some(row) = self.find_same_key(on, entry)? {
                return Ok(Some(Obstacle::Row(row)));
            }
        }
        Ok(None)
    }

    /// Looks for another row with the unique key of `entry`: `DuplicateKey`, or one that must be locked first to say.
    fn find_same_key(&mut self, on: Target<'_>, entry: &SecondaryEntry<'_>) -> Result<Option<Vec<u8>>> {
        let Writer { change, paths, duplicate, .. } = self;
        let cursor = &mut paths.of(on.table, entry.index_no)?.cursor;
        let mut found = cursor.seek(SeekMode::AtLeast, entry.key)?;
        while found && cursor.key().starts_with(entry.key) {
            let existing = cursor.key().get(entry.key.len()..).unwrap_or_default();
            let (is_live, version) =
                cursor.record().map_or((false, None), |record| (!record.is_marked(), record.version));
            let is_own_row = change.op != RowOp::Insert && existing == change.get(change.old_key);
            let maker = on.locks.map_or(Maker::Own, |locks| locks.locker.maker_of(version));
            if !cursor.is_fresh() {
                on.check_interrupted()?;
                // What was copied may have been taken back before its maker was asked for.
                found = cursor.seek(SeekMode::AtLeast, entry.key)?;
                continue;
            }
            let is_locked = maker == Maker::Own || duplicate.as_deref() == Some(existing);
            match maker {
                _ if is_own_row => {}
                Maker::Other(_) => return Ok(Some(existing.to_vec())),
                _ if !is_live => {}
                _ if is_locked => {
                    let (index_no, existing) = (entry.index_no, existing.to_vec());
                    return Err(Error::DuplicateKey { index_no, existing });
                }
                _ => return Ok(Some(existing.to_vec())),
            }
            found = cursor.next()?;
        }
        Ok(None)
    }

    /// Builds the stored row that comes, writing its large values.
    fn build_row(&mut self, on: Target<'_>, row: &[u8], source: RowSource<'_>) -> Result<()> {
        let table = on.table;
        let shape = table.shape();
        find_values(shape, row, &mut self.values)?;
        if let RowSource::Caller = source {
            choose_moves(shape, row, &mut self.values, row_bytes_max(table))?;
            for no in 0..self.values.len() {
                let Some(value) = self.values.get(no).filter(|value| value.moves) else { continue };
                let bytes = row.get(value.at.clone()).unwrap_or_default();
                large::write_value(on, &mut self.unclaimed, bytes, &mut self.buffers)?;
            }
        }
        self.large.clear();
        let external = self.values.iter().filter(|value| value.external || value.moves);
        match source {
            RowSource::Caller => self.large.extend(external.map(|value| match value.moves {
                true => LargeSource::Written,
                false => LargeSource::Kept,
            })),
            RowSource::Log(large) => self.large.extend_from_slice(large),
        }
        self.rebuild_row(shape, row)
    }

    /// Puts the row together from the caller's or logged bytes and the locators of this run.
    fn rebuild_row(&mut self, shape: &RowShape, row: &[u8]) -> Result<()> {
        let Writer { change, values, old_values, large, unclaimed, .. } = self;
        let mut sources = large.iter();
        let mut written = unclaimed.finished.iter();
        let missing = |detail| Error::corrupt("large values of a row", detail);
        let span = change.put_with_old_row(|out, old_row| {
            rebuild(shape, row, values, out, |no, _| match sources.next() {
                Some(LargeSource::Written) => {
                    let locator = written.next().ok_or_else(|| missing("a value that was not written"))?;
                    Ok(locator.as_slice())
                }
                Some(LargeSource::Kept) => {
                    let kept = old_values.get(no).filter(|value| value.external);
                    let kept = kept.and_then(|value| old_row.get(value.at.clone()));
                    kept.ok_or_else(|| missing("a value to keep that the old row does not have"))
                }
                None => Err(missing("more references than sources")),
            })
        })?;
        change.row = span;
        Ok(())
    }

    /// Lists the large values of the old row that the new one does not keep.
    fn collect_freed(&mut self, table: &Table) -> Result<()> {
        self.freed.clear();
        let Writer { change, values, old_values, large, freed, .. } = self;
        let old_row = change.held(&change.old);
        if change.op == RowOp::Delete {
            values.clear();
            large.clear();
        }
        let mut sources = large.iter();
        for (no, value) in old_values.iter().enumerate() {
            let is_large = values.get(no).is_some_and(|new| new.external || new.moves);
            let keeps = is_large && sources.next() == Some(&LargeSource::Kept);
            let keeps = keeps && !planted::is_on("rows: leave a kept large value behind");
            if value.external && !keeps {
                freed.extend_from_slice(old_row.get(value.at.clone()).unwrap_or_default());
            }
        }
        debug_assert_eq!(freed.len() % LOCATOR_BYTES, 0, "locators of table {}", table.id());
        Ok(())
    }

    /// Whether purge has nothing to do with large values once the operation is committed, and nothing else keeps them.
    fn leaves_nothing(&self) -> bool {
        self.freed.is_empty() && !self.large.contains(&LargeSource::Written)
    }

    /// The action, for a transaction that commits, when nobody reads: nothing tells what was there before.
    fn execute_for_good(&mut self, on: Target<'_>) -> Result<()> {
        let Target { core, slot, table, .. } = on;
        reach::mark("row operation redone for good");
        self.change.plan_forward(Gone::Removed);
        change::prepare(table, &self.change, &mut self.paths)?;
        core.make_room(Need::Back, 4 * (self.change.entries.len() + 1))?;
        {
            let action = core.pool.enter();
            let applied = change::apply(&action, table, &self.change, &mut self.paths, None);
            core.must("a row operation", applied)?;
            slot.count_rows(table.id(), self.change.rows());
        }
        self.unclaimed.clear();
        core.tidied(self.paths.merge_small(table, &self.change));
        Ok(())
    }

    /// The action.
    fn execute(&mut self, on: Target<'_>) -> Result<()> {
        let Target { core, slot, table, interrupted, .. } = on;
        self.change.plan_forward(Gone::Marked);
        change::prepare(table, &self.change, &mut self.paths)?;
        let undo_bytes = self.change.bytes_len() + UNDO_BYTES_MORE * (self.change.entries.len() + 1);
        let need = if self.change.op == RowOp::Delete { Need::Delete } else { Need::New };
        let pages = 4 * (self.change.entries.len() + 1) + core.undo.pages_needed(undo_bytes);
        core.make_room_unless(need, pages, interrupted)?;
        {
            let action = core.pool.enter();
            let mut state = slot.state();
            start_record(&state, &mut self.buffers.undo);
            self.encode_undo(table);
            let undo = core.undo.append(&action, &mut state, &self.buffers.undo);
            let own = Some((slot.txn(), undo));
            let applied = change::apply(&action, table, &self.change, &mut self.paths, own);
            core.must("a row operation", applied)?;
            slot.count_rows(table.id(), self.change.rows());
            let auto_increment = table.take_auto_increment_to_log();
            if core.log.get().is_some() {
                self.encode_log(slot.txn(), table, auto_increment);
                core.append(&action, &self.buffers.log)?;
            }
        }
        if self.change.leaves_garbage() || !self.freed.is_empty() {
            slot.note_garbage();
        }
        self.unclaimed.clear();
        // The row operation is done: pages that stay small are no error of it.
        core.tidied(self.paths.merge_small(table, &self.change));
        Ok(())
    }

    /// Builds the log record.
    fn encode_log(&mut self, txn: TxnId, table: &Table, auto_increment: u64) {
        let change = &self.change;
        let new_key = if change.keeps_key() { &[][..] } else { change.get(change.new_key) };
        let row = LoggedRow {
            table: table.id(),
            old_key: change.get(change.old_key),
            new_key,
            row: change.get(change.row),
            auto_increment,
        };
        let entries = change.entries.iter().map(|entry| {
            let payload = change.get(entry.payload);
            let head = varint::get(payload).map_or(0, |(_, used)| used);
            LoggedEntry {
                index_no: entry.index_no,
                old_key: change.caller_key(entry.old_key),
                new_key: change.caller_key(entry.new_key),
                payload: payload.get(head..).unwrap_or_default(),
            }
        });
        self.buffers.log.clear();
        if planted::is_on("table: log no secondary keys") {
            return encode_row(&mut self.buffers.log, change.op, txn, &row, &self.large, [].into_iter());
        }
        encode_row(&mut self.buffers.log, change.op, txn, &row, &self.large, entries);
    }

    /// Appends the body of the undo record to the head that is there.
    fn encode_undo(&mut self, table: &Table) {
        let Writer { change, buffers, freed, .. } = self;
        let new_key = if change.keeps_key() { &[][..] } else { change.get(change.new_key) };
        let parts = RowParts {
            op: change.op,
            table: table.id(),
            old_key: change.get(change.old_key),
            new_key,
            old: change.before_of(&change.old),
            marked: change.marked.as_ref().map(|held| change.before_of(held)),
            freed,
        };
        let entries = change.entries.iter().map(|entry| UndoEntry {
            index_no: entry.index_no,
            old_key: change.caller_key(entry.old_key),
            new_key: change.caller_key(entry.new_key),
            old: change.before_of(&entry.old),
            marked: entry.marked.as_ref().map(|held| change.before_of(held)),
        });
        undo_record::put_row(&mut buffers.undo, &parts, entries);
        undo_record::finish(&mut buffers.undo);
    }
}

/// Locks the rows of the old key and of the new one; whether by a request for a new key with no row. Waits, with nothing
/// else held.
fn lock_rows(on: Target<'_>, op: RowOp, old_key: &[u8], new: Option<&NewRow<'_>>) -> Result<bool> {
    let Some(Locks { locker, duplicates }) = on.locks else { return Ok(false) };
    let see = |record: RecordRef<'_>| locker.check_unchanged(record.version);
    if op != RowOp::Insert {
        locker.lock_row(on.table, old_key, Patience::Waits, |_| LockMode::Exclusive, see)?;
    }
    let Some(new) = new.filter(|new| op == RowOp::Insert || new.key != old_key) else { return Ok(false) };
    let mode = |record: Option<RecordRef<'_>>| match record {
        Some(record) if !record.is_marked() => duplicates,
        _ => LockMode::Exclusive,
    };
    let locked = locker.lock_row(on.table, new.key, Patience::Waits, mode, see)?;
    Ok(matches!(locked, Locked::Gone(Some(_))))
}

/// Gives the requests for the key of a row back that does not come, or not yet.
fn give_back_place(on: Target<'_>, new: Option<&NewRow<'_>>, places: &mut u32) {
    let requests = std::mem::take(places);
    if let (Some(Locks { locker, .. }), Some(new)) = (on.locks, new) {
        (0..requests).for_each(|_| locker.unlock_row(on.table, new.key, LockMode::Exclusive));
    }
}

/// Gives the locks of the rows back that the operation has changed (I3).
fn forget_locks(on: Target<'_>, op: RowOp, old_key: &[u8], new: Option<&NewRow<'_>>) {
    let Some(Locks { locker, .. }) = on.locks else { return };
    let tree = on.table.clustered().def().id;
    let old = (op != RowOp::Insert).then_some(old_key);
    let new = new.map(|new| new.key).filter(|&key| old != Some(key));
    for key in old.into_iter().chain(new) {
        on.core.locks.forget_changed(locker.owner, tree, key);
    }
}

fn must_be_unique(table: &Table, entry: &SecondaryEntry<'_>) -> bool {
    entry.check_unique && table.indexes().get(entry.index_no).is_some_and(|index| index.unique)
}

/// The keys that a new row adds to unique indexes.
fn unique_keys<'k>(
    table: &'k Table,
    new: Option<&'k NewRow<'k>>,
) -> impl Iterator<Item = (TreeId, &'k [u8])> + 'k {
    let entries = new.map_or(&[][..], |new| new.secondary).iter();
    let entries = entries.filter(|entry| must_be_unique(table, entry));
    entries.filter_map(|entry| table.tree(entry.index_no).ok().map(|tree| (tree.def().id, entry.key)))
}

/// Longest stored row of a table: longer ones move values out.
fn row_bytes_max(table: &Table) -> usize {
    let tree = table.clustered();
    max_payload_bytes(tree.page_bytes(), tree.def().key_bytes_max)
}

/// Refuses keys and payloads that are too long for their trees, so that nothing can be refused in the action.
fn check_limits(table: &Table, new: Option<&NewRow<'_>>) -> Result<()> {
    let Some(new) = new else { return Ok(()) };
    let key_max =
        |index_no: usize| table.indexes().get(index_no).map_or(0, |index| index.max_key_bytes as usize);
    check("clustered key length (bytes)", new.key.len(), key_max(0))?;
    for entry in new.secondary {
        let tree = table.tree(entry.index_no)?;
        check("index key length (bytes)", entry.key.len(), key_max(entry.index_no))?;
        let payload_max = max_payload_bytes(tree.page_bytes(), tree.def().key_bytes_max);
        check("index payload length (bytes)", entry.payload.len() + varint::MAX_BYTES, payload_max)?;
    }
    Ok(())
}

fn check(what: &'static str, actual: usize, limit: usize) -> Result<()> {
    if actual <= limit {
        return Ok(());
    }
    Err(Error::Limit { what, actual: actual as u64, limit: limit as u64 })
}

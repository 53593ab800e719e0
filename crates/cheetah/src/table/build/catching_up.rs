//! Brings the trees from one snapshot to a later one: applies the changes between them (B2), which
//! the undo log lists (B3).
//!
//! Blocking  Reads the undo log and rows, and writes pages. Checks regularly for an interrupt.

use super::{open_view, push, shares, unknown, Build, BuiltEntries, EntriesOf, Since};
use crate::base::{reach, sound, Error, Result};
use crate::format::log_record::RowOp;
use crate::format::page::RecordRef;
use crate::format::undo_record::{decode_body, UndoBody};
use crate::format::varint;
use crate::sort::Sorter;
use crate::table::history::visible::read_row;
use crate::table::load::{refuse, Watch};
use crate::table::shared::parts::Core;
use crate::table::shared::room::Need;
use crate::tree::{Changed, Path, Removed, SeekMode, Tree};
use crate::txn::ReadView;
use std::sync::Arc;

/// Records between two checks for an interrupt.
const RECORDS_PER_QUESTION: u64 = 256;
/// Pages that a change of a tree may allocate.
const PAGES_PER_CHANGE: usize = 4;

impl Build {
    /// The new snapshot becomes `base`. Returns the number of rows that were checked.
    pub(crate) fn catch_up(
        &mut self,
        core: &Core,
        watch: &Watch<'_>,
        entries_of: &mut EntriesOf<'_>,
    ) -> Result<u64> {
        let since = Since::now(core);
        let view = open_view(core);
        let mut questions = Questions { core, watch, count: 0 };
        let keys = self.changed_keys(core, &view, &mut questions)?;
        let count = self.take_to(core, &view, keys, &mut questions, entries_of)?;
        self.pin = std::mem::replace(&mut self.base, view);
        self.since = since;
        Ok(count)
    }

    /// The clustered keys changed by transactions that `view` sees and `base` does not, or more.
    fn changed_keys(
        &self,
        core: &Core,
        view: &ReadView,
        questions: &mut Questions<'_, '_>,
    ) -> Result<Sorter> {
        let mut keys = core.sorting.sorter(shares(core, 1)?.pop().expect("one was asked for"));
        if !sound!(true, "build: do not look at what has changed") {
            return Ok(keys);
        }
        let id = self.table.id();
        core.transactions.undo.each_record(
            self.since.read_from(&self.base, view),
            core.transactions.undo.end(),
            |body| {
                questions.next()?;
                let UndoBody::Row(row) = decode_body(body)? else { return Ok(()) };
                if row.table != id {
                    return Ok(());
                }
                if row.op != RowOp::Insert {
                    keys.push(&[row.old_key], &[])?;
                }
                match row.op == RowOp::Insert || !row.new_key.is_empty() {
                    true => keys.push(&[row.new_key], &[]),
                    false => Ok(()),
                }
            },
        )?;
        Ok(keys)
    }

    fn take_to(
        &mut self,
        core: &Core,
        view: &Arc<ReadView>,
        keys: Sorter,
        questions: &mut Questions<'_, '_>,
        entries_of: &mut EntriesOf<'_>,
    ) -> Result<u64> {
        let mut coming = Vec::new();
        for share in shares(core, self.built.indexes().len() - 1)? {
            coming.push(core.sorting.sorter(share));
        }
        let (mut keys, mut last, mut count) = (keys.finish()?, None, 0);
        let mut buffers = Buffers::default();
        while keys.advance()? {
            let (key, _) = keys.record();
            if last.as_deref() == Some(key) {
                continue;
            }
            let key = &*last.insert(key.to_vec());
            count += 1;
            questions.next()?;
            if self.differs(core, key, view, &mut buffers)? {
                reach::mark("row changed while an index was built");
                self.is_durable = false;
                self.change(core, key, &mut buffers, &mut coming, entries_of)?;
            }
        }
        for (no, sorter) in coming.into_iter().enumerate() {
            self.insert(core, no + 1, sorter, view, questions)?;
        }
        Ok(count)
    }

    /// Whether the two snapshots see different rows of `key`.
    fn differs(&self, core: &Core, key: &[u8], view: &ReadView, buffers: &mut Buffers) -> Result<bool> {
        let _usage = self.table.use_it()?;
        let Buffers { before, after, was_there, is_there, .. } = buffers;
        *was_there = read_row(core, &self.table, key, Some(&self.base), before)?;
        *is_there = read_row(core, &self.table, key, Some(view), after)?;
        if *was_there {
            self.table.make_current(before)?;
        }
        if *is_there {
            self.table.make_current(after)?;
        }
        Ok(was_there != is_there || (*is_there && before != after))
    }

    /// Removes the old row's entries, and passes the new row's to the sorters. Common ones stay.
    fn change(
        &mut self,
        core: &Core,
        key: &[u8],
        buffers: &mut Buffers,
        coming: &mut [Sorter],
        entries_of: &mut EntriesOf<'_>,
    ) -> Result<()> {
        let Buffers { before, after, was_there, is_there, old, path } = buffers;
        old.clear();
        if *was_there {
            self.compute(core, key, before, entries_of)?;
            std::mem::swap(&mut self.entries, old);
        }
        self.entries.clear();
        if *is_there {
            self.compute(core, key, after, entries_of)?;
        }
        let Self { entries, built, .. } = self;
        for entry in old.iter().filter(|entry| !entries.iter().any(|new| new == *entry)) {
            let tree = built.tree(entry.index_no)?;
            remove(core, tree, path, &[entry.key, key].concat())?;
        }
        for entry in entries.iter().filter(|entry| !old.iter().any(|old| old == *entry)) {
            let sorter = entry.index_no.checked_sub(1).and_then(|no| coming.get_mut(no));
            let sorter = sorter.ok_or_else(|| unknown(built, entry.index_no))?;
            push(&entry, key, |key, value| sorter.push(key, value))?;
        }
        Ok(())
    }

    /// All obsolete entries have been removed from the tree.
    fn insert(
        &mut self,
        core: &Core,
        index_no: usize,
        sorter: Sorter,
        view: &ReadView,
        questions: &mut Questions<'_, '_>,
    ) -> Result<()> {
        let tree = Arc::clone(self.built.tree(index_no)?);
        let is_unique = self.built.indexes().get(index_no).is_some_and(|index| index.unique);
        let (mut entries, mut path, mut cursor) = (sorter.finish()?, Path::default(), tree.cursor());
        while entries.advance()? {
            questions.next()?;
            let (key, value) = entries.record();
            let Some((&check_unique, payload)) = value.split_first() else { return Err(damaged()) };
            let clustered_len = varint::get(payload).map_or(0, |(len, _)| len as usize);
            let own_len = key.len().checked_sub(clustered_len).ok_or_else(damaged)?;
            let (own, clustered) = key.split_at(own_len);
            if is_unique && check_unique != 0 && cursor.seek(SeekMode::AtLeast, own)? {
                if let Some(existing) = cursor.key().strip_prefix(own) {
                    let (existing, clustered) = (existing.to_vec(), clustered.to_vec());
                    return self.refuse_entry(core, index_no, &existing, &clustered, view);
                }
            }
            tree.prepare(key, &mut path)?;
            core.make_room(Need::New, PAGES_PER_CHANGE)?;
            if tree.insert(&core.pool.enter(), &mut path, key, RecordRef::frozen(payload))? == Changed::Exists
            {
                return Err(damaged());
            }
        }
        Ok(())
    }

    fn refuse_entry(
        &mut self,
        core: &Core,
        index_no: usize,
        existing: &[u8],
        key: &[u8],
        view: &ReadView,
    ) -> Result<()> {
        let mut row = Vec::new();
        read_row(core, &self.table, key, Some(view), &mut row)?;
        refuse(core, &self.table, index_no, existing, (key, &row), &mut self.refused)
    }
}

struct Questions<'a, 'w> {
    core: &'a Core,
    watch: &'a Watch<'w>,
    count: u64,
}

impl Questions<'_, '_> {
    fn next(&mut self) -> Result<()> {
        self.count += 1;
        if self.count % RECORDS_PER_QUESTION == 0 {
            self.core.health.check()?;
            if (self.watch)(self.count, 0) {
                return Err(Error::Interrupted);
            }
        }
        Ok(())
    }
}

#[derive(Default)]
struct Buffers {
    before: Vec<u8>,
    after: Vec<u8>,
    was_there: bool,
    is_there: bool,
    old: BuiltEntries,
    path: Path,
}

fn remove(core: &Core, tree: &Arc<Tree>, path: &mut Path, key: &[u8]) -> Result<()> {
    tree.prepare(key, path)?;
    core.make_room(Need::New, PAGES_PER_CHANGE)?;
    let removed = tree.remove(&core.pool.enter(), path, key)?;
    match removed {
        Removed::Absent => Err(damaged()),
        Removed::Gone { small: false } => Ok(()),
        Removed::Gone { small: true } => tree.merge_if_small(path, key),
    }
}

fn damaged() -> Error {
    Error::corrupt("an index being built", "its entries do not match the snapshot it was built from")
}

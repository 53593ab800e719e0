//! A position in an index of a table, as one transaction sees it.
//!
//! Invariants
//!   I1  A consistent cursor stops at the entries that its view sees, and returns the version that
//!       the view sees. A locking cursor stops at the entries that it has locked. A cursor on a
//!       locked table stops at the newest entries. No cursor stops at a deleted entry.
//!       [`Cursor::next_rows`] reads several rows of a leaf at one moment. The rows after the first
//!       may lack the caller's own later changes, so it returns more than one row only with a
//!       snapshot.
//!   I2  The row and payload at the position are in the tree or in `older`. A row is returned in
//!       the newest row-format version: the converted row, if any, is in `current`.

use super::locking_scan::{parts, LockingScan, SeekEnd};
use super::scan_step::Locking;
use crate::base::{reach, sound, Error, Result};
use crate::format::page::RecordRef;
use crate::format::varint;
use crate::table::history::visible::{read_row, EntryFound, EntryVersion, Found, View};
use crate::table::rows::locker::Locker;
use crate::table::Table;
use crate::tree::{self, successor, Offered, SeekMode};
use crate::txn::ReadView;
use std::sync::Arc;

/// Invisible entries that a cursor skips between two checks for an interrupt.
const PASSED_PER_LOOK: usize = 256;

/// A position in an index. The cursor sees the changes of its own transaction; it skips a row that
/// is deleted while the cursor is on it.
#[derive(Debug)]
pub struct Cursor {
    locker: Arc<Locker>,
    table: Arc<Table>,
    index_no: usize,
    inner: tree::Cursor,
    /// `None` to read the newest rows.
    view: Option<Arc<ReadView>>,
    /// Replaces `inner` in a cursor that locks.
    locking: Option<Box<LockingScan>>,
    /// The version that the view sees, if the tree has another one.
    older: EntryVersion,
    is_older: bool,
    /// The row in the newest row-format version, if rows may have several versions.
    current: Vec<u8>,
    /// Like `current`, for the rows after the first; empty for a row stored in the newest version.
    converted: Vec<Vec<u8>>,
}

impl Cursor {
    pub(in crate::db) fn new(
        locker: &Arc<Locker>,
        table: &Arc<Table>,
        index_no: usize,
        view: Option<Arc<ReadView>>,
    ) -> Result<Self> {
        let _usage = table.use_it()?;
        let inner = table.tree(index_no)?.cursor();
        let (locker, table) = (Arc::clone(locker), Arc::clone(table));
        let (locking, older) = (None, EntryVersion::default());
        let (is_older, current, converted) = Default::default();
        Ok(Self { locker, table, index_no, inner, view, locking, older, is_older, current, converted })
    }

    /// Creates a cursor that locks what it reads.
    pub(in crate::db) fn locking(
        locker: &Arc<Locker>,
        table: &Arc<Table>,
        index_no: usize,
        how: Locking,
    ) -> Result<Self> {
        let mut cursor = Self::new(locker, table, index_no, None)?;
        cursor.locking = Some(Box::new(LockingScan::new(locker, table, index_no, how)?));
        Ok(cursor)
    }

    /// The table that the cursor reads.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The position of the index in its table.
    pub fn index_no(&self) -> usize {
        self.index_no
    }

    /// Moves to an entry; returns `false` if no such entry exists. `seek`, `next` and `prev` may do
    /// I/O. A locking cursor may also wait for locks, with the errors of
    /// [`lock_table`](crate::db::Transaction::lock_table). Any cursor may fail with `Interrupted`
    /// while it skips many invisible entries.
    pub fn seek(&mut self, mode: SeekMode, key: &[u8]) -> Result<bool> {
        self.seek_to(mode, key, SeekEnd::None)
    }

    /// Like [`seek`](Self::seek), for a caller that needs only the entries before `end`. A locking
    /// cursor locks and finds nothing beyond `end`, not even in later calls of `next` or `prev`,
    /// until a call has returned `false`. For a consistent read, `end` only limits the read-ahead:
    /// the cursor continues beyond `end`, so the caller compares keys.
    pub fn seek_to(&mut self, mode: SeekMode, key: &[u8], end: SeekEnd<'_>) -> Result<bool> {
        if let Some(scan) = &mut self.locking {
            let found = scan.seek(mode, key, end)?;
            return self.land(found);
        }
        let found = {
            let _usage = self.table.use_it()?;
            match (self.index_no, mode, end) {
                (0, SeekMode::AtLeast, SeekEnd::Row) => self.inner.seek_point(key)?,
                _ => self.inner.seek(mode, key)?,
            }
        };
        self.inner.expect_end(match end {
            SeekEnd::Below(end) => Some(end.to_vec()),
            SeekEnd::UpTo(end) => successor(end),
            SeekEnd::None | SeekEnd::Prefix | SeekEnd::Row => None,
        });
        self.skip_unseen(found, mode.is_forward())
    }

    /// Moves to the next entry; returns `false` at the end.
    #[expect(clippy::should_implement_trait, reason = "it fails and lends, which an iterator cannot")]
    pub fn next(&mut self) -> Result<bool> {
        if let Some(scan) = &mut self.locking {
            let found = scan.next()?;
            return self.land(found);
        }
        if let Some(view) = self.view.as_deref().filter(|_| !sound!(true, "snapshot: take one for each row"))
        {
            view.reader().open();
        }
        let found = self.inner.next()?;
        self.skip_unseen(found, true)
    }

    /// Like [`next`](Self::next), but continues to further rows of the same leaf, up to `rows_max`
    /// rows in all. `take` receives the two parts of each key, and the row; these bytes, except the
    /// first row's key, are valid until the cursor is used again. Ends before a row of which the
    /// view sees an older version. For the clustered index; returns a single row if the newest rows
    /// are read.
    pub fn next_rows(&mut self, rows_max: usize, mut take: impl FnMut(&[u8], &[u8], &[u8])) -> Result<bool> {
        if !self.next()? {
            return Ok(false);
        }
        take(&[], self.key(), self.row());
        let (Some(view), 0) = (self.view.as_deref(), self.index_no) else { return Ok(true) };
        let mut rows = 1;
        let has_formats = self.has_formats();
        let Self { inner, table, converted, .. } = self;
        let mut hand_out = |rows: &mut usize, prefix: &[u8], suffix: &[u8], stored: &[u8]| {
            let row = match has_formats {
                true => in_newest_format(table, stored, converted, *rows - 1),
                false => Some(stored),
            };
            // A damaged row is reported when the cursor stops there.
            let Some(row) = row else { return Offered::Stop };
            *rows += 1;
            take(prefix, suffix, row);
            Offered::Take
        };
        inner.run_on(|prefix, suffix, record| match sees(Some(view), 0, &record) {
            Some(true) if rows < rows_max => hand_out(&mut rows, prefix, suffix, record.payload),
            Some(false) => Offered::Pass,
            Some(true) => Offered::Stop,
            None if !record.is_marked() && !sound!(true, "cursor: do not look back within a leaf") => {
                hand_out(&mut rows, prefix, suffix, record.payload)
            }
            None => {
                reach::mark("rows of a leaf end at an older version");
                Offered::Stop
            }
        });
        if rows > 1 {
            reach::mark("several rows at once");
        }
        self.is_older &= rows == 1;
        self.keep_last(rows)?;
        Ok(true)
    }

    /// Sets `current` to the row at which [`next_rows`](Self::next_rows) stopped. Rows already
    /// handed out do not move in memory.
    fn keep_last(&mut self, rows: usize) -> Result<()> {
        let last = rows.checked_sub(2).filter(|_| self.has_formats());
        let Some(last) = last.and_then(|last| self.converted.get_mut(last)) else { return Ok(()) };
        if let Some(record) = self.inner.record().filter(|_| last.is_empty()) {
            self.table.put_current(record.payload, last)?;
        }
        std::mem::swap(&mut self.current, last);
        Ok(())
    }

    /// Moves to the previous entry; returns `false` at the start.
    pub fn prev(&mut self) -> Result<bool> {
        if let Some(scan) = &mut self.locking {
            let found = scan.prev()?;
            return self.land(found);
        }
        let found = self.inner.prev()?;
        self.skip_unseen(found, false)
    }

    /// Whether the cursor is on a row that another transaction has locked, and returns the row's
    /// last committed version ([`OnLocked::Look`](crate::db::OnLocked)).
    pub fn is_unlocked(&self) -> bool {
        self.locking.as_ref().is_some_and(|scan| scan.is_unlocked())
    }

    /// Reads the current row, which is not locked, again, and waits for its lock. Moves to the next
    /// row if it no longer exists. Otherwise like [`next`](Self::next).
    pub fn read_again(&mut self) -> Result<bool> {
        match &mut self.locking {
            Some(scan) => {
                let found = scan.read_again()?;
                self.land(found)
            }
            None => self.next(),
        }
    }

    /// Under READ COMMITTED, releases the lock on the current row, which does not match, unless
    /// something else in this transaction has locked the row.
    pub fn unlock_row(&mut self) {
        if let Some(scan) = &mut self.locking {
            scan.unlock();
        }
    }

    /// Lets `next` and `prev` continue beyond the end set by [`seek_to`](Self::seek_to).
    pub fn forget_end(&mut self) {
        if let Some(scan) = &mut self.locking {
            scan.forget_end();
        }
    }

    fn skip_unseen(&mut self, mut found: bool, forward: bool) -> Result<bool> {
        let mut passed = 0;
        while found && !self.is_seen()? {
            passed += 1;
            if passed % PASSED_PER_LOOK == 0 {
                self.locker.check_interrupted()?;
            }
            found = if forward { self.inner.next()? } else { self.inner.prev()? };
        }
        self.land(found)
    }

    /// Converts the row to the newest row-format version if it may have an older one.
    fn land(&mut self, found: bool) -> Result<bool> {
        let mut current = std::mem::take(&mut self.current);
        current.clear();
        if found && self.has_formats() {
            self.table.put_current(self.raw_row(), &mut current)?;
        }
        self.current = current;
        Ok(found)
    }

    fn has_formats(&self) -> bool {
        self.index_no == 0 && self.table.has_older_formats()
    }

    /// For the clustered index only.
    fn raw_row(&self) -> &[u8] {
        match self.is_older {
            true => &self.older.row,
            false => self.stored(),
        }
    }

    /// Whether the view sees an entry here; finds the visible version of its row.
    fn is_seen(&mut self) -> Result<bool> {
        self.is_older = false;
        let Some(record) = self.inner.record() else { return Ok(false) };
        match sees(self.view.as_deref(), self.index_no, &record) {
            Some(is_here) => Ok(is_here),
            None => self.find_older(),
        }
    }

    fn find_older(&mut self) -> Result<bool> {
        let mut older = std::mem::take(&mut self.older);
        let found = self.look_back(&mut older);
        self.older = older;
        let (is_here, is_older) = found?;
        self.is_older = is_older;
        Ok(is_here)
    }

    /// Whether the view sees an entry here, and whether the entry is in `older`.
    fn look_back(&self, older: &mut EntryVersion) -> Result<(bool, bool)> {
        let (Some(view), Some(record)) = (&self.view, self.inner.record()) else { return Ok((false, false)) };
        let _usage = self.table.use_it()?;
        let view = View {
            core: &self.locker.core,
            table: &self.table,
            reader: view.reader(),
            own: view.own_of(self.table.id()),
        };
        let key = self.inner.key();
        Ok(match self.index_no {
            0 => match view.row_version(key, record, &mut older.row)? {
                Found::AsIs => (true, false),
                Found::Older => (true, true),
                Found::Absent => (false, false),
            },
            index_no => match view.entry_version(index_no, key, self.parts().1, record, older)? {
                EntryFound::AsIs => (true, false),
                EntryFound::Visible => (true, true),
                EntryFound::Gone => (false, false),
            },
        })
    }

    /// Whether the cursor is on an entry.
    pub fn valid(&self) -> bool {
        self.locking.as_ref().map_or_else(|| self.inner.valid(), |scan| scan.valid())
    }

    /// The whole stored key; empty if the cursor is not on an entry.
    pub fn key(&self) -> &[u8] {
        self.locking.as_ref().map_or_else(|| self.inner.key(), |scan| scan.key())
    }

    /// The caller's part of the key: in a secondary index, without the clustered key.
    pub fn secondary_key(&self) -> &[u8] {
        let (secondary, _) = self.parts();
        secondary
    }

    /// The clustered key of the row.
    pub fn clustered_key(&self) -> &[u8] {
        let (_, clustered) = self.parts();
        clustered
    }

    fn parts(&self) -> (&[u8], &[u8]) {
        parts(self.index_no, self.key(), self.stored())
    }

    fn stored(&self) -> &[u8] {
        match &self.locking {
            Some(scan) => scan.stored(),
            None => self.inner.record().map_or(&[], |record| record.payload),
        }
    }

    /// The stored row, with large values as locators. For the clustered index only.
    pub fn row(&self) -> &[u8] {
        match self.index_no {
            0 if self.has_formats() => &self.current,
            0 => self.raw_row(),
            _ => &[],
        }
    }

    /// The caller's payload. For secondary indexes only.
    pub fn payload(&self) -> &[u8] {
        if self.index_no == 0 {
            return &[];
        }
        let stored = if self.is_older { &self.older.payload } else { self.stored() };
        let head = varint::get(stored).map_or(0, |(_, used)| used);
        stored.get(head..).unwrap_or_default()
    }

    /// Reads the stored row of the entry into `row`, for any index. May do I/O.
    pub fn get_row(&self, row: &mut Vec<u8>) -> Result<()> {
        row.clear();
        if self.index_no == 0 {
            row.extend_from_slice(self.row());
            return Ok(());
        }
        if let Some(scan) = &self.locking {
            return self.table.put_current(scan.row(), row);
        }
        if self.is_older {
            return self.table.put_current(&self.older.row, row);
        }
        let view = self.view.as_deref().filter(|_| sound!(true, "cursor: take the newest row of an entry"));
        if read_row(&self.locker.core, &self.table, self.clustered_key(), view, row)? {
            return self.table.make_current(row);
        }
        let place = format!("index {} of table '{}'", self.index_no, self.table.name());
        Err(Error::corrupt(place, "an entry leads to no row; run CHECK TABLE"))
    }
}

/// Returns a stored row in the newest row-format version, converted into buffer number `no` if its
/// version is older. `None` if the row is damaged.
fn in_newest_format<'r>(
    table: &Table,
    stored: &'r [u8],
    buffers: &'r mut Vec<Vec<u8>>,
    no: usize,
) -> Option<&'r [u8]> {
    if buffers.len() <= no {
        buffers.resize_with(no + 1, Vec::new);
    }
    let buffer = buffers.get_mut(no)?;
    table.current_row(stored, buffer).ok()
}

/// Whether the view sees an entry in the record; `None` if older versions must be consulted.
#[inline]
fn sees(view: Option<&ReadView>, index_no: usize, record: &RecordRef<'_>) -> Option<bool> {
    let as_it_is = match (view, record.version) {
        (None, _) | (_, None) => true,
        (Some(view), Some((txn, _))) if index_no == 0 => view.reader().sees(txn, view.own_if(txn)),
        (Some(view), Some((txn, _))) => view.reader().is_decided(txn, view.own_if(txn)),
    };
    as_it_is.then(|| !record.is_marked())
}

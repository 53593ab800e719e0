//! Finding the row that a row refers to, and the rows that refer to it (F1, F2 of
//! docs/developers/decisions/0046-foreign-keys.md).

use super::how_to_read::Reading;
use super::scan_step::Locking;
use super::{Cursor, SeekEnd};
use crate::base::{sound, Result};
use crate::db::{Isolation, OnLocked, Read, Transaction};
use crate::table::KeySide;
use crate::tree::SeekMode;

impl Transaction {
    /// Returns whether there is a row whose key in the side's index begins with `key`, which has a
    /// part for each column of the side. Reads the newest rows, even those that the snapshot does
    /// not see. Locks the row, or else its gap, shared until the end of the transaction. May do
    /// I/O, and wait: errors are those of [`lock_table`](Self::lock_table), and `NoSuchTable` if
    /// the side has to be looked up again.
    pub fn find_reference(&mut self, side: &KeySide, key: &[u8]) -> Result<bool> {
        let mut cursor = self.reference_cursor(side, Read::Shared)?;
        let end = if side.is_row_key { SeekEnd::Row } else { SeekEnd::Prefix };
        let found = cursor.seek_to(SeekMode::AtLeast, key, end)?;
        Ok(found && cursor.key().starts_with(key))
    }

    /// Returns a cursor that locks the newest rows of a side's index exclusively, to apply the
    /// parent's change to them. Errors: those of [`find_reference`](Self::find_reference).
    pub fn cursor_on_children(&mut self, side: &KeySide) -> Result<Cursor> {
        self.reference_cursor(side, Read::Exclusive)
    }

    /// Returns a cursor over a side's index that reads the transaction's snapshot. Errors: as for
    /// [`find_reference`](Self::find_reference), and `TableChanged` if it is too old for the index.
    pub fn cursor_on_parents(&mut self, side: &KeySide) -> Result<Cursor> {
        self.cursor(&side.table()?, side.index_no, Read::Consistent)
    }

    /// Locks ranges at each isolation level: otherwise the scan would miss an entry that moved to
    /// an earlier key while it waited for the row (F2).
    fn reference_cursor(&mut self, side: &KeySide, read: Read) -> Result<Cursor> {
        let read = if sound!(true, "foreign keys: look at the snapshot") { read } else { Read::Consistent };
        let table = side.table()?;
        let (reading, moved) = self.lock_to_read(&table, read)?;
        let table = moved.as_ref().unwrap_or(&table);
        let ranges =
            self.isolation != Isolation::ReadCommitted || sound!(true, "foreign keys: lock no ranges");
        match reading {
            Reading::Rows(mode) => {
                let how = Locking { mode, ranges, on_locked: OnLocked::Wait, any_version: true };
                Cursor::locking(&self.locker, table, side.index_no, how)
            }
            Reading::View(view) => Cursor::new(&self.locker, table, side.index_no, Some(view)),
            Reading::Newest => Cursor::new(&self.locker, table, side.index_no, None),
        }
    }
}

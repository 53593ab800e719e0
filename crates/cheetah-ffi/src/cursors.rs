//! Cursors over an index.

use crate::barrier::{answer, entry, value};
use crate::codes::*;
use crate::types::*;
use crate::{CheetahBuffer, CheetahTable, CheetahTxn};
use cheetah::{Cursor, OnLocked, Result, SeekEnd, SeekMode};

/// A cursor, and whether its index is the clustered index.
#[derive(Debug)]
pub struct CheetahCursor {
    cursor: Cursor,
    clustered: bool,
    /// Keys of the rows that `cheetah_next_rows` returned last.
    keys: Vec<u8>,
}

impl CheetahCursor {
    pub(crate) fn boxed(cursor: Cursor) -> *mut Self {
        let clustered = cursor.index_no() == 0;
        Box::into_raw(Box::new(Self { cursor, clustered, keys: Vec::new() }))
    }

    fn found(&self) -> CheetahFound {
        if self.clustered {
            let key = CheetahBytes::of(self.cursor.key());
            return CheetahFound { key, clustered: key, value: CheetahBytes::of(self.cursor.row()) };
        }
        CheetahFound {
            key: CheetahBytes::of(self.cursor.secondary_key()),
            clustered: CheetahBytes::of(self.cursor.clustered_key()),
            value: CheetahBytes::of(self.cursor.payload()),
        }
    }

    fn next_rows(&mut self, found: &mut [CheetahFound]) -> Result<usize> {
        let Self { cursor, keys, .. } = self;
        keys.clear();
        let mut count = 0;
        cursor.next_rows(found.len(), |prefix, suffix, row| {
            keys.extend_from_slice(prefix);
            keys.extend_from_slice(suffix);
            if let Some(place) = found.get_mut(count) {
                place.key.len = prefix.len() + suffix.len();
                place.value = CheetahBytes::of(row);
                count += 1;
            }
        })?;
        // `keys` does not grow any more, so pointers into it stay valid.
        let mut rest = keys.as_slice();
        for place in found.iter_mut().take(count) {
            let (key, behind) = rest.split_at(place.key.len);
            place.key = CheetahBytes::of(key);
            place.clustered = place.key;
            rest = behind;
        }
        Ok(count)
    }

    /// Moves the cursor, and gets its new entry. Returns `End` if there is none.
    fn step(&mut self, found: &mut CheetahFound, step: impl FnOnce(&mut Cursor) -> Result<bool>) -> i32 {
        entry(|| {
            if !step(&mut self.cursor)? {
                return Ok(Code::End);
            }
            *found = self.found();
            Ok(Code::Ok)
        })
    }
}

fn on_locked_of(code: u8) -> Result<OnLocked> {
    meaning!("code for locked rows", code, CheetahOnLocked => OnLocked { Wait, Skip, Look })
}

/// Opens a cursor over an index. It is not on an entry yet. `read`: a `CheetahRead`; `on_locked`: a
/// `CheetahOnLocked`. The cursor is valid until the end of its transaction.
#[no_mangle]
pub extern "C" fn cheetah_open_cursor(
    txn: &mut CheetahTxn,
    table: &CheetahTable,
    index_no: u32,
    read: u8,
    on_locked: u8,
    cursor: &mut *mut CheetahCursor,
) -> i32 {
    answer(cursor, || {
        let (read, on_locked) = (read_of(read)?, on_locked_of(on_locked)?);
        let cursor = txn.0.cursor_on(&table.table, index_no as usize, read, on_locked)?;
        Ok(CheetahCursor::boxed(cursor))
    })
}

/// Frees a cursor.
#[no_mangle]
pub extern "C" fn cheetah_close_cursor(cursor: Box<CheetahCursor>) {
    value((), || drop(cursor));
}

fn mode_of(mode: u8) -> Result<SeekMode> {
    meaning!("mode of a seek", mode, CheetahSeek => SeekMode {
        AtLeast, After, AtMost, Before, First, Last
    })
}

fn end_of(kind: u8, key: &[u8]) -> Result<SeekEnd<'_>> {
    let codes = [
        (CheetahEnd::None as u8, SeekEnd::None),
        (CheetahEnd::Prefix as u8, SeekEnd::Prefix),
        (CheetahEnd::Below as u8, SeekEnd::Below(key)),
        (CheetahEnd::UpTo as u8, SeekEnd::UpTo(key)),
        (CheetahEnd::Row as u8, SeekEnd::Row),
    ];
    meaning_in("kind of the end of a seek", kind, &codes)
}

/// Places the cursor. A locking cursor does not move past `end`.
#[no_mangle]
pub unsafe extern "C" fn cheetah_seek(
    cursor: &mut CheetahCursor,
    mode: u8,
    key: CheetahBytes,
    end: CheetahSeekEnd,
    found: &mut CheetahFound,
) -> i32 {
    // SAFETY: by the contract of the crate the keys are readable.
    let (key, end_key) = unsafe { (key.get(), end.key.get()) };
    cursor.step(found, |cursor| cursor.seek_to(mode_of(mode)?, key, end_of(end.kind, end_key)?))
}

/// Returns whether the current row was read without a lock, in its last committed version, because
/// another transaction has locked it.
#[no_mangle]
pub extern "C" fn cheetah_is_unlocked(cursor: &CheetahCursor) -> u8 {
    value(0, || u8::from(cursor.cursor.is_unlocked()))
}

/// Waits for the lock of the current row, which was read without a lock, and reads the row again.
/// Moves to the next row if it was deleted.
#[no_mangle]
pub extern "C" fn cheetah_read_again(cursor: &mut CheetahCursor, found: &mut CheetahFound) -> i32 {
    cursor.step(found, Cursor::read_again)
}

/// Releases the lock of the current row, which does not match the statement. Has an effect only
/// under READ COMMITTED, and only if the transaction had not locked the row before.
#[no_mangle]
pub extern "C" fn cheetah_unlock_row(cursor: &mut CheetahCursor) {
    value((), || cursor.cursor.unlock_row());
}

/// Removes the `end` that the last seek set.
#[no_mangle]
pub extern "C" fn cheetah_forget_end(cursor: &mut CheetahCursor) {
    value((), || cursor.cursor.forget_end());
}

/// Moves to the next entry.
#[no_mangle]
pub extern "C" fn cheetah_next(cursor: &mut CheetahCursor, found: &mut CheetahFound) -> i32 {
    cursor.step(found, Cursor::next)
}

/// Moves forward over at most `room` rows of the clustered index, and returns them. `room` must not
/// be 0. Returns more than one row only if the cursor reads a snapshot. The cursor is then on the
/// last of these rows.
#[no_mangle]
pub unsafe extern "C" fn cheetah_next_rows(
    cursor: &mut CheetahCursor,
    found: *mut CheetahFound,
    room: usize,
    count: &mut usize,
) -> i32 {
    // SAFETY: by the contract of the crate there are as many values as there is room for.
    let found = unsafe { std::slice::from_raw_parts_mut(found, room) };
    entry(|| {
        *count = cursor.next_rows(found)?;
        Ok(if *count > 0 { Code::Ok } else { Code::End })
    })
}

/// Moves to the previous entry.
#[no_mangle]
pub extern "C" fn cheetah_prev(cursor: &mut CheetahCursor, found: &mut CheetahFound) -> i32 {
    cursor.step(found, Cursor::prev)
}

/// Reads the stored row of the current entry.
#[no_mangle]
pub extern "C" fn cheetah_current_row(cursor: &mut CheetahCursor, row: &mut CheetahBuffer) -> i32 {
    entry(|| cursor.cursor.get_row(&mut row.0))
}

#[cfg(test)]
mod tests {
    use super::{end_of, mode_of, on_locked_of};

    #[test]
    fn unknown_codes_of_a_seek_are_refused() {
        assert!((0..=5).all(|mode| mode_of(mode).is_ok()));
        assert!(mode_of(6).is_err());
        assert!((0..=4).all(|kind| end_of(kind, b"a").is_ok()));
        assert!(end_of(5, b"a").is_err());
        assert!((0..=2).all(|code| on_locked_of(code).is_ok()));
        assert!(on_locked_of(3).is_err());
    }
}

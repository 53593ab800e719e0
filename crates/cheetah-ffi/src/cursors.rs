//! Cursors over an index.

use crate::barrier::{entry, value};
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
    /// Returns a handle for a cursor.
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

    /// Reads rows for [`cheetah_next_rows`]. Returns their number.
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

    fn report(&self, on_entry: bool, found: &mut CheetahFound) -> Code {
        if !on_entry {
            return Code::End;
        }
        *found = self.found();
        Code::Ok
    }
}

fn on_locked_of(code: u8) -> Result<OnLocked> {
    let codes = [
        (CheetahOnLocked::Wait as u8, OnLocked::Wait),
        (CheetahOnLocked::Skip as u8, OnLocked::Skip),
        (CheetahOnLocked::Look as u8, OnLocked::Look),
    ];
    meaning("code for locked rows", code, &codes)
}

/// Opens a cursor over an index. It is not on an entry yet. `read`: a `CheetahRead`; `on_locked`: a
/// `CheetahOnLocked`. The cursor is valid until the end of its transaction.
#[no_mangle]
pub unsafe extern "C" fn cheetah_open_cursor(
    txn: *mut CheetahTxn,
    table: *const CheetahTable,
    index_no: u32,
    read: u8,
    on_locked: u8,
    cursor: *mut *mut CheetahCursor,
) -> i32 {
    // SAFETY: by the contract of the crate the handles are open.
    let (txn, table, place) = unsafe { (&mut *txn, &*table, &mut *cursor) };
    entry(|| {
        let (read, on_locked) = (read_of(read)?, on_locked_of(on_locked)?);
        let cursor = txn.0.cursor_on(&table.table, index_no as usize, read, on_locked)?;
        *place = CheetahCursor::boxed(cursor);
        Ok(Code::Ok)
    })
}

/// Frees a cursor.
#[no_mangle]
pub unsafe extern "C" fn cheetah_close_cursor(cursor: *mut CheetahCursor) {
    // SAFETY: by the contract of the crate the handle is ours and not used again.
    value((), || drop(unsafe { Box::from_raw(cursor) }));
}

fn mode_of(mode: u8) -> Result<SeekMode> {
    let codes = [
        (CheetahSeek::AtLeast as u8, SeekMode::AtLeast),
        (CheetahSeek::After as u8, SeekMode::After),
        (CheetahSeek::AtMost as u8, SeekMode::AtMost),
        (CheetahSeek::Before as u8, SeekMode::Before),
        (CheetahSeek::First as u8, SeekMode::First),
        (CheetahSeek::Last as u8, SeekMode::Last),
    ];
    meaning("mode of a seek", mode, &codes)
}

fn end_of(kind: u8, key: &[u8]) -> Result<SeekEnd<'_>> {
    let codes = [
        (CheetahEnd::None as u8, SeekEnd::None),
        (CheetahEnd::Prefix as u8, SeekEnd::Prefix),
        (CheetahEnd::Below as u8, SeekEnd::Below(key)),
        (CheetahEnd::UpTo as u8, SeekEnd::UpTo(key)),
        (CheetahEnd::Row as u8, SeekEnd::Row),
    ];
    meaning("kind of the end of a seek", kind, &codes)
}

/// Places the cursor. A locking cursor does not move past `end`.
#[no_mangle]
pub unsafe extern "C" fn cheetah_seek(
    cursor: *mut CheetahCursor,
    mode: u8,
    key: CheetahBytes,
    end: CheetahSeekEnd,
    found: *mut CheetahFound,
) -> i32 {
    // SAFETY: by the contract of the crate the handle is open and the keys are readable.
    let (cursor, key, end_key, found) = unsafe { (&mut *cursor, key.get(), end.key.get(), &mut *found) };
    entry(|| {
        let on_entry = cursor.cursor.seek_to(mode_of(mode)?, key, end_of(end.kind, end_key)?)?;
        Ok(cursor.report(on_entry, found))
    })
}

/// Returns whether the current row was read without a lock, in its last committed version, because
/// another transaction has locked it.
#[no_mangle]
pub unsafe extern "C" fn cheetah_is_unlocked(cursor: *const CheetahCursor) -> u8 {
    // SAFETY: by the contract of the crate the handle is open.
    let cursor = unsafe { &*cursor };
    value(0, || u8::from(cursor.cursor.is_unlocked()))
}

/// Waits for the lock of the current row, which was read without a lock, and reads the row again.
/// Moves to the next row if it was deleted.
#[no_mangle]
pub unsafe extern "C" fn cheetah_read_again(cursor: *mut CheetahCursor, found: *mut CheetahFound) -> i32 {
    // SAFETY: by the contract of the crate the handle is open.
    let (cursor, found) = unsafe { (&mut *cursor, &mut *found) };
    entry(|| {
        let on_entry = cursor.cursor.read_again()?;
        Ok(cursor.report(on_entry, found))
    })
}

/// Releases the lock of the current row, which does not match the statement. Has an effect only
/// under READ COMMITTED, and only if the transaction had not locked the row before.
#[no_mangle]
pub unsafe extern "C" fn cheetah_unlock_row(cursor: *mut CheetahCursor) {
    // SAFETY: by the contract of the crate the handle is open.
    let cursor = unsafe { &mut *cursor };
    value((), || cursor.cursor.unlock_row());
}

/// Removes the `end` that the last seek set.
#[no_mangle]
pub unsafe extern "C" fn cheetah_forget_end(cursor: *mut CheetahCursor) {
    // SAFETY: by the contract of the crate the handle is open.
    let cursor = unsafe { &mut *cursor };
    value((), || cursor.cursor.forget_end());
}

/// Moves to the next entry.
#[no_mangle]
pub unsafe extern "C" fn cheetah_next(cursor: *mut CheetahCursor, found: *mut CheetahFound) -> i32 {
    // SAFETY: by the contract of the crate the handle is open.
    let (cursor, found) = unsafe { (&mut *cursor, &mut *found) };
    entry(|| {
        let on_entry = cursor.cursor.next()?;
        Ok(cursor.report(on_entry, found))
    })
}

/// Moves forward over at most `room` rows of the clustered index, and returns them. `room` must not
/// be 0. Returns more than one row only if the cursor reads a snapshot. The cursor is then on the
/// last of these rows.
#[no_mangle]
pub unsafe extern "C" fn cheetah_next_rows(
    cursor: *mut CheetahCursor,
    found: *mut CheetahFound,
    room: usize,
    count: *mut usize,
) -> i32 {
    // SAFETY: by the contract of the crate the handle is open, and there are as many values as
    // there is room for.
    let (cursor, found, count) =
        unsafe { (&mut *cursor, std::slice::from_raw_parts_mut(found, room), &mut *count) };
    entry(|| {
        *count = cursor.next_rows(found)?;
        Ok(if *count > 0 { Code::Ok } else { Code::End })
    })
}

/// Moves to the previous entry.
#[no_mangle]
pub unsafe extern "C" fn cheetah_prev(cursor: *mut CheetahCursor, found: *mut CheetahFound) -> i32 {
    // SAFETY: by the contract of the crate the handle is open.
    let (cursor, found) = unsafe { (&mut *cursor, &mut *found) };
    entry(|| {
        let on_entry = cursor.cursor.prev()?;
        Ok(cursor.report(on_entry, found))
    })
}

/// Reads the stored row of the current entry.
#[no_mangle]
pub unsafe extern "C" fn cheetah_current_row(cursor: *mut CheetahCursor, row: *mut CheetahBuffer) -> i32 {
    // SAFETY: by the contract of the crate the handles are open.
    let (cursor, row) = unsafe { (&mut *cursor, &mut *row) };
    entry(|| cursor.cursor.get_row(&mut row.0).map(|()| Code::Ok))
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

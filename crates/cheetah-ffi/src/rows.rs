//! Single rows: inserting, updating, deleting and reading them.

use crate::barrier::{entry, value};
use crate::codes::*;
use crate::types::*;
use crate::{CheetahTable, CheetahTxn};
use cheetah::{NewRow, OldEntry, SecondaryEntry};
use std::cell::RefCell;

/// A buffer that the engine fills and the caller reads. It keeps its memory between calls.
#[derive(Default, Debug)]
pub struct CheetahBuffer(pub(crate) Vec<u8>);

/// Lists of entries in the engine's form. Their memory is reused for the thread's next row.
#[derive(Default)]
struct Lists {
    new: Vec<SecondaryEntry<'static>>,
    old: Vec<OldEntry<'static>>,
}

thread_local! {
    static LISTS: RefCell<Lists> = RefCell::default();
}

/// Fills `list` for the duration of one call. SAFETY: as for [`CheetahBytes::get`]; the list must
/// be cleared before the entries' bytes become invalid.
unsafe fn fill_new(list: &mut Vec<SecondaryEntry<'static>>, entries: &[CheetahEntry]) {
    list.extend(entries.iter().map(|entry| {
        // SAFETY: passed on.
        let (key, payload) = unsafe { (entry.key.get(), entry.payload.get()) };
        let index_no = entry.index_no as usize;
        SecondaryEntry { index_no, key, payload, check_unique: entry.check_unique != 0 }
    }));
}

/// Like [`fill_new`], for old entries.
unsafe fn fill_old(list: &mut Vec<OldEntry<'static>>, entries: &[CheetahEntry]) {
    // SAFETY: passed on.
    let old = |entry: &CheetahEntry| OldEntry {
        index_no: entry.index_no as usize,
        key: unsafe { entry.key.get() },
        payload: unsafe { entry.payload.get() },
    };
    list.extend(entries.iter().map(old));
}

fn with_lists<T>(
    new: &[CheetahEntry],
    old: &[CheetahEntry],
    body: impl FnOnce(&[SecondaryEntry<'_>], &[OldEntry<'_>]) -> T,
) -> T {
    LISTS.with_borrow_mut(|lists| {
        lists.new.clear();
        lists.old.clear();
        // SAFETY: the bytes live while the caller's call lasts, and so does the use of the lists.
        unsafe {
            fill_new(&mut lists.new, new);
            fill_old(&mut lists.old, old);
        }
        let result = body(&lists.new, &lists.old);
        lists.new.clear();
        lists.old.clear();
        result
    })
}

/// Calls `body` with the engine's form of a new row, and of the old entries that it replaces.
pub(crate) fn with_row<T>(
    new: &CheetahRow,
    old: &[CheetahEntry],
    body: impl FnOnce(&NewRow<'_>, &[OldEntry<'_>]) -> T,
) -> T {
    // SAFETY: by the contract of the crate the row is initialised.
    let (key, row, entries) =
        unsafe { (new.key.get(), new.row.get(), slice(new.secondary, new.secondary_count)) };
    with_lists(entries, old, |secondary, old| body(&NewRow { key, row, secondary }, old))
}

/// Inserts a row with all its secondary entries.
#[no_mangle]
pub extern "C" fn cheetah_insert(txn: &mut CheetahTxn, table: &CheetahTable, row: &CheetahRow) -> i32 {
    entry(|| {
        txn.0.set_duplicate_lock(row.duplicate_lock());
        with_row(row, &[], |new, _| txn.0.insert(&table.table, new))
    })
}

/// Replaces the row at `old_key`. See `Transaction::update` for the entries to pass.
#[no_mangle]
pub unsafe extern "C" fn cheetah_update(
    txn: &mut CheetahTxn,
    table: &CheetahTable,
    old_key: CheetahBytes,
    row: &CheetahRow,
    old_secondary: *const CheetahEntry,
    old_secondary_count: usize,
) -> i32 {
    // SAFETY: by the contract of the crate the entries are initialised.
    let (old_key, old) = unsafe { (old_key.get(), slice(old_secondary, old_secondary_count)) };
    entry(|| {
        txn.0.set_duplicate_lock(row.duplicate_lock());
        with_row(row, old, |new, old| txn.0.update(&table.table, old_key, new, old))
    })
}

/// Deletes the row at `key` with all its secondary entries.
#[no_mangle]
pub unsafe extern "C" fn cheetah_delete(
    txn: &mut CheetahTxn,
    table: &CheetahTable,
    key: CheetahBytes,
    old_secondary: *const CheetahEntry,
    old_secondary_count: usize,
) -> i32 {
    // SAFETY: by the contract of the crate the entries are initialised.
    let (key, old) = unsafe { (key.get(), slice(old_secondary, old_secondary_count)) };
    entry(|| with_lists(&[], old, |_, old_secondary| txn.0.delete(&table.table, key, old_secondary)))
}

/// Reads the stored row at `key`. `read`: a `CheetahRead`.
#[no_mangle]
pub unsafe extern "C" fn cheetah_get(
    txn: &mut CheetahTxn,
    table: &CheetahTable,
    key: CheetahBytes,
    read: u8,
    row: &mut CheetahBuffer,
) -> i32 {
    // SAFETY: by the contract of the crate the key is readable.
    let key = unsafe { key.get() };
    entry(|| {
        let found = txn.0.get(&table.table, key, read_of(read)?, &mut row.0)?;
        Ok(if found { Code::Ok } else { Code::RowNotFound })
    })
}

/// Gets the number of rows that a consistent read of the table finds. Returns `End` if only a scan
/// can count them.
#[no_mangle]
pub extern "C" fn cheetah_count(txn: &mut CheetahTxn, table: &CheetahTable, count: &mut u64) -> i32 {
    entry(|| {
        let known = txn.0.count(&table.table)?;
        *count = known.unwrap_or(0);
        Ok(if known.is_some() { Code::Ok } else { Code::End })
    })
}

/// Reads the large value that a locator in a stored row refers to.
#[no_mangle]
pub unsafe extern "C" fn cheetah_fetch_large(
    txn: &mut CheetahTxn,
    table: &CheetahTable,
    locator: CheetahBytes,
    value: &mut CheetahBuffer,
) -> i32 {
    // SAFETY: by the contract of the crate the locator is readable.
    let locator = unsafe { locator.get() };
    entry(|| txn.0.fetch_large(&table.table, locator, &mut value.0))
}

/// Returns an empty buffer.
#[no_mangle]
pub extern "C" fn cheetah_new_buffer() -> *mut CheetahBuffer {
    value(std::ptr::null_mut(), || Box::into_raw(Box::default()))
}

/// Frees a buffer.
#[no_mangle]
pub extern "C" fn cheetah_free_buffer(buffer: Box<CheetahBuffer>) {
    value((), || drop(buffer));
}

/// Returns the bytes that the engine last wrote to the buffer.
#[no_mangle]
pub extern "C" fn cheetah_buffer_bytes(buffer: &CheetahBuffer) -> CheetahBytes {
    CheetahBytes::of(&buffer.0)
}

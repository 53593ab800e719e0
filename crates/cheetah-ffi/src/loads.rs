//! Loads: the rows of a new or empty table are sorted and written as full pages.

use crate::barrier::{entry, value};
use crate::codes::*;
use crate::rows::with_lists;
use crate::types::*;
use crate::{CheetahTable, CheetahTxn};
use cheetah::server::Load;
use cheetah::{NewRow, Result, Table, Transaction};
use std::ffi::c_void;
use std::sync::Arc;

/// A load of one table.
#[derive(Debug)]
pub struct CheetahLoad(pub(crate) Load);

impl CheetahLoad {
    /// Begins a load. Returns null if the table cannot be loaded.
    pub(crate) fn begin(txn: &mut Transaction, table: &Arc<Table>, to_commit: u8) -> Result<*mut Self> {
        let begun = match to_commit {
            0 => txn.begin_load(table)?,
            _ => txn.begin_load_to_commit(table)?,
        };
        Ok(begun.map_or(std::ptr::null_mut(), |load| Box::into_raw(Box::new(Self(load)))))
    }
}

/// Begins a load of a table. If `to_commit` is 0, only the caller may use the table (see
/// `Transaction::begin_load`). Otherwise the loaded rows become visible when the transaction
/// commits (see `Transaction::begin_load_to_commit`). `load` becomes null if the table cannot be
/// loaded. If a load is freed before it is finished, the table stays empty. If `cheetah_load` or
/// `cheetah_finish_load` returns `DuplicateKey`, `cheetah_refused_row` returns the duplicate row.
#[no_mangle]
pub unsafe extern "C" fn cheetah_begin_load(
    txn: *mut CheetahTxn,
    table: *const CheetahTable,
    to_commit: u8,
    load: *mut *mut CheetahLoad,
) -> i32 {
    // SAFETY: by the contract of the crate the handles are open.
    let (txn, table, place) = unsafe { (&mut *txn, &*table, &mut *load) };
    *place = std::ptr::null_mut();
    entry(|| {
        *place = CheetahLoad::begin(&mut txn.0, &table.table, to_commit)?;
        Ok(Code::Ok)
    })
}

/// Loads a row with all its secondary entries.
#[no_mangle]
pub unsafe extern "C" fn cheetah_load(
    txn: *mut CheetahTxn,
    load: *mut CheetahLoad,
    row: *const CheetahRow,
) -> i32 {
    // SAFETY: by the contract of the crate the handles are open and the row is initialised.
    let (txn, load, row) = unsafe { (&mut *txn, &mut *load, &*row) };
    // SAFETY: as above.
    let (key, bytes, entries) =
        unsafe { (row.key.get(), row.row.get(), slice(row.secondary, row.secondary_count)) };
    entry(|| {
        with_lists(entries, &[], |secondary, _| {
            txn.0.load(&mut load.0, &NewRow { key, row: bytes, secondary }).map(|()| Code::Ok)
        })
    })
}

/// Finishes a load, and calls `progress` from time to time. If the load began with `to_commit` 0,
/// the table must be opened again afterwards.
#[no_mangle]
pub unsafe extern "C" fn cheetah_finish_load(
    txn: *mut CheetahTxn,
    load: *mut CheetahLoad,
    progress: CheetahProgress,
    context: *mut c_void,
) -> i32 {
    // SAFETY: by the contract of the crate the handles are open.
    let (txn, load) = unsafe { (&mut *txn, &mut *load) };
    // SAFETY: the caller's function gets the caller's context.
    let tell = |done, total| unsafe { progress(context, done, total) };
    entry(|| txn.0.finish_load_telling(&mut load.0, &tell).map(|_| Code::Ok))
}

/// Gets the key and the bytes, including large values, of the row that was refused as a duplicate.
#[no_mangle]
pub unsafe extern "C" fn cheetah_refused_row(
    load: *const CheetahLoad,
    key: *mut CheetahBytes,
    row: *mut CheetahBytes,
) {
    // SAFETY: by the contract of the crate the handle is open and the places are the caller's.
    let (load, key, row) = unsafe { (&*load, &mut *key, &mut *row) };
    value((), || {
        let (refused_key, refused_row) = load.0.refused().unwrap_or_default();
        (*key, *row) = (CheetahBytes::of(refused_key), CheetahBytes::of(refused_row));
    });
}

/// Frees a load. If it was not finished, the table stays empty.
#[no_mangle]
pub unsafe extern "C" fn cheetah_free_load(load: *mut CheetahLoad) {
    // SAFETY: by the contract of the crate the handle is ours and not used again.
    value((), || drop(unsafe { Box::from_raw(load) }));
}

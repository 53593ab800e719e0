//! Loads: the rows of a new or empty table are sorted and written as full pages.

use crate::barrier::{answer, entry, value};
use crate::codes::*;
use crate::rows::with_row;
use crate::types::*;
use crate::{CheetahTable, CheetahTxn};
use cheetah::server::Load;
use cheetah::{Result, Table, Transaction};
use std::sync::Arc;

/// A load of one table.
#[derive(Debug)]
pub struct CheetahLoad(pub(crate) Load);

impl CheetahLoad {
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
pub extern "C" fn cheetah_begin_load(
    txn: &mut CheetahTxn,
    table: &CheetahTable,
    to_commit: u8,
    load: &mut *mut CheetahLoad,
) -> i32 {
    *load = std::ptr::null_mut();
    answer(load, || CheetahLoad::begin(&mut txn.0, &table.table, to_commit))
}

/// Loads a row with all its secondary entries.
#[no_mangle]
pub extern "C" fn cheetah_load(txn: &mut CheetahTxn, load: &mut CheetahLoad, row: &CheetahRow) -> i32 {
    entry(|| with_row(row, &[], |new, _| txn.0.load(&mut load.0, new)))
}

/// Finishes a load, and calls `progress` from time to time. If the load began with `to_commit` 0,
/// the table must be opened again afterwards.
#[no_mangle]
pub unsafe extern "C" fn cheetah_finish_load(
    txn: &mut CheetahTxn,
    load: &mut CheetahLoad,
    progress: CheetahProgress,
    context: *mut c_void,
) -> i32 {
    // SAFETY: the caller's function gets the caller's context.
    let tell = |done, total| unsafe { progress(context, done, total) };
    entry(|| txn.0.finish_load_telling(&mut load.0, &tell).map(|_| Code::Ok))
}

/// Gets the key and the bytes, including large values, of the row that was refused as a duplicate.
#[no_mangle]
pub extern "C" fn cheetah_refused_row(load: &CheetahLoad, key: &mut CheetahBytes, row: &mut CheetahBytes) {
    value((), || {
        let (refused_key, refused_row) = load.0.refused().unwrap_or_default();
        (*key, *row) = (CheetahBytes::of(refused_key), CheetahBytes::of(refused_row));
    });
}

/// Frees a load. If it was not finished, the table stays empty.
#[no_mangle]
pub extern "C" fn cheetah_free_load(load: Box<CheetahLoad>) {
    value((), || drop(load));
}

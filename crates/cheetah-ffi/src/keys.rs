//! Disabling and enabling indexes.

use crate::barrier::{entry, value};
use crate::codes::*;
use crate::tables::of_row;
use crate::types::*;
use crate::{CheetahTable, CheetahTxn};

/// Returns whether an index is disabled. A disabled index cannot be read, and rows must not have
/// entries for it.
#[no_mangle]
pub extern "C" fn cheetah_index_is_disabled(table: &CheetahTable, index_no: u32) -> u8 {
    value(0, || u8::from(table.table.is_disabled(index_no as usize)))
}

/// Disables indexes, except unique ones; see `Transaction::disable_indexes`. Afterwards the table
/// must be opened again. `only_if_empty`: if 1 and the table has rows, returns `End` and changes
/// nothing. Locks the whole table. The change is durable on return.
#[no_mangle]
pub unsafe extern "C" fn cheetah_disable_indexes(
    txn: &mut CheetahTxn,
    table: &CheetahTable,
    indexes: *const u32,
    count: usize,
    only_if_empty: u8,
) -> i32 {
    // SAFETY: by the contract of the crate `count` indexes are readable.
    let indexes = unsafe { slice(indexes, count) };
    entry(|| {
        let which = indexes.iter().map(|&index| index as usize).collect::<Vec<_>>();
        if only_if_empty == 0 {
            return txn.0.disable_indexes(&table.table, &which).map(|_| Code::Ok);
        }
        let disabled = txn.0.disable_indexes_if_empty(&table.table, &which)?;
        Ok(disabled.map_or(Code::End, |_| Code::Ok))
    })
}

/// Builds the disabled indexes and enables them, see `Transaction::enable_indexes`. `entries`
/// computes the entries of a row. `progress` is called from time to time. Afterwards the table must
/// be opened again. Locks the whole table. The change is durable on return.
#[no_mangle]
pub unsafe extern "C" fn cheetah_enable_indexes(
    txn: &mut CheetahTxn,
    table: &CheetahTable,
    entries: CheetahExpectedEntries,
    context: *mut c_void,
    progress: CheetahProgress,
    progress_context: *mut c_void,
) -> i32 {
    // SAFETY: the caller's function gets the caller's context.
    let tell = |done, total| unsafe { progress(progress_context, done, total) };
    entry(|| {
        // SAFETY: as above.
        let mut of_row = unsafe { of_row(&table.table, entries, context) };
        txn.0.enable_indexes_telling(&table.table, &mut of_row, &tell).map(|_| Code::Ok)
    })
}

//! Builds of indexes while their table is in use.

use crate::barrier::{entry, handle, value};
use crate::codes::*;
use crate::types::*;
use crate::{CheetahTable, CheetahTxn, STORED_KEY_BYTES_MAX};
use cheetah::server::{Build, BuiltEntries};
use cheetah::{Error, IndexSpec, Result, RowFormatVersion, Table};

/// Indexes that are being built for a table.
#[derive(Debug)]
pub struct CheetahBuild(pub(crate) Build);

/// Receives the entries of one row in the indexes that are being built.
#[derive(Debug)]
pub struct CheetahBuiltEntries(BuiltEntries);

/// Computes the entries of a row in the indexes that are being built. Returns `Ok`, `Interrupted`
/// if the statement must end, or `Corruption` if the row does not fit the definition.
pub type CheetahEntriesOf = unsafe extern "C" fn(
    context: *mut c_void,
    key: CheetahBytes,
    row: CheetahBytes,
    entries: *mut CheetahBuiltEntries,
) -> i32;

/// Calls the caller's function, which adds entries to our list.
fn entries_of(
    function: CheetahEntriesOf,
    context: *mut c_void,
) -> impl FnMut(&[u8], &[u8], &mut BuiltEntries) -> Result<()> {
    move |key, row, entries| {
        let mut collected = CheetahBuiltEntries(std::mem::take(entries));
        // SAFETY: the caller's function gets the caller's context.
        let code = unsafe { function(context, CheetahBytes::of(key), CheetahBytes::of(row), &mut collected) };
        *entries = collected.0;
        match code {
            0 => Ok(()),
            code if code == Code::Interrupted as i32 => Err(Error::Interrupted),
            _ => Err(Error::corrupt("a row of which an index is built", "it does not fit the definition")),
        }
    }
}

/// Returns the bytes that the clustered key leaves for the keys of secondary indexes.
fn room_for_keys(table: &Table) -> u32 {
    let clustered = table.indexes().first().map_or(0, |index| index.max_key_bytes);
    STORED_KEY_BYTES_MAX.saturating_sub(clustered)
}

/// Returns whether keys of `max_key_bytes` bytes fit into an index built for the table. If not,
/// they may still fit into an index of a copy, which divides the space between its keys again.
#[no_mangle]
pub extern "C" fn cheetah_has_room_for_keys(table: &CheetahTable, max_key_bytes: u32) -> u8 {
    value(0, || (max_key_bytes <= room_for_keys(&table.table)).into())
}

unsafe fn index_specs(table: &Table, specs: &[CheetahIndexSpec]) -> Vec<IndexSpec> {
    let room = room_for_keys(table);
    let spec = |spec: &CheetahIndexSpec| IndexSpec {
        // SAFETY: passed on.
        name: unsafe { spec.name.text() },
        unique: spec.unique != 0,
        max_key_bytes: spec.max_key_bytes.min(room),
        row_format: RowFormatVersion::opaque(),
    };
    specs.iter().map(spec).collect()
}

/// Prevents loads of a table whose definition will change, until the end of the transaction. Waits
/// for a running load, after which the table may have to be opened again.
#[no_mangle]
pub extern "C" fn cheetah_keep_loads_off(txn: &mut CheetahTxn, table: &CheetahTable) -> i32 {
    entry(|| txn.0.keep_loads_off(&table.table))
}

/// Begins a build of indexes for a table that other transactions may read and write. `with_values`:
/// entries need large values. `cheetah_run_build` builds the indexes, and `cheetah_finish_build`
/// brings them up to date. If one of them returns `DuplicateKey`, the number of the index counts
/// the new indexes from 1, and `cheetah_row_refused_by_build` returns the row.
#[no_mangle]
pub unsafe extern "C" fn cheetah_begin_build(
    txn: &mut CheetahTxn,
    table: &CheetahTable,
    specs: *const CheetahIndexSpec,
    count: usize,
    with_values: u8,
    build: &mut *mut CheetahBuild,
) -> i32 {
    // SAFETY: by the contract of the crate the specifications are initialised.
    let specs = unsafe { slice(specs, count) };
    *build = std::ptr::null_mut();
    handle(build, || {
        // SAFETY: as above.
        let specs = unsafe { index_specs(&table.table, specs) };
        let build = txn.0.begin_build(&table.table, &specs, with_values != 0)?;
        Ok(CheetahBuild(build))
    })
}

/// Builds the indexes while other transactions use the table, with calls of `progress`.
#[no_mangle]
pub unsafe extern "C" fn cheetah_run_build(
    txn: &mut CheetahTxn,
    build: &mut CheetahBuild,
    entries: CheetahEntriesOf,
    context: *mut c_void,
    progress: CheetahProgress,
    progress_context: *mut c_void,
) -> i32 {
    // SAFETY: the caller's function gets the caller's context.
    let tell = |done, total| unsafe { progress(progress_context, done, total) };
    entry(|| txn.0.run_build(&mut build.0, &mut entries_of(entries, context), &tell))
}

/// Locks the table against writers, and brings the indexes up to date. `cheetah_alter_tables` must
/// take over the indexes before the transaction ends.
#[no_mangle]
pub unsafe extern "C" fn cheetah_finish_build(
    txn: &mut CheetahTxn,
    build: &mut CheetahBuild,
    entries: CheetahEntriesOf,
    context: *mut c_void,
) -> i32 {
    entry(|| txn.0.finish_build(&mut build.0, &mut entries_of(entries, context)))
}

/// Adds an entry of the current row. `index_no` counts the indexes that are being built from 1.
#[no_mangle]
pub unsafe extern "C" fn cheetah_add_built_entry(
    entries: &mut CheetahBuiltEntries,
    index_no: u32,
    check_unique: u8,
    key: CheetahBytes,
    payload: CheetahBytes,
) {
    // SAFETY: by the contract of the crate the place is the one just given, and the bytes are
    // readable.
    let (key, payload) = unsafe { (key.get(), payload.get()) };
    value((), || entries.0.add(index_no as usize, key, payload, check_unique != 0));
}

/// Gets the key and the bytes, including large values, of the row that was refused as a duplicate.
#[no_mangle]
pub extern "C" fn cheetah_row_refused_by_build(
    build: &CheetahBuild,
    key: &mut CheetahBytes,
    row: &mut CheetahBytes,
) {
    value((), || {
        let (refused_key, refused_row) = build.0.refused().unwrap_or_default();
        (*key, *row) = (CheetahBytes::of(refused_key), CheetahBytes::of(refused_row));
    });
}

/// Frees a build. Indexes that no definition has taken over are dropped.
#[no_mangle]
pub extern "C" fn cheetah_free_build(build: Box<CheetahBuild>) {
    value((), || drop(build));
}

//! Tables: creating, dropping, opening, counting and checking them, and estimating ranges.

use crate::barrier::{answer, entry, handle, value};
use crate::callbacks::Callback;
use crate::codes::*;
use crate::transactions::CheetahTxn;
use crate::types::*;
use crate::{CheetahConstraints, CheetahDb};
use cheetah::server::{CheckReport, Expected, ExpectedEntry, Referenced};
use cheetah::{Codec, Compression, Config, Error, IndexSpec, Result, RowFormatVersion, Table, TableSpec};
use std::sync::Arc;

/// The maximum size of a stored key, in trees with the largest pages (32 KiB). The key of a
/// secondary index and the clustered key that follows it share this size.
pub(crate) const STORED_KEY_BYTES_MAX: u32 = cheetah::server::max_key_bytes(32 << 10) as u32;

/// An open table.
#[derive(Debug)]
pub struct CheetahTable {
    pub(crate) table: Arc<Table>,
    pub(crate) postings: Vec<Arc<Table>>,
}

/// Receives the entries expected for one row.
#[derive(Debug)]
pub struct CheetahEntrySink(Vec<ExpectedEntry>);

/// Creates a table.
#[no_mangle]
pub unsafe extern "C" fn cheetah_create_table(
    db: &CheetahDb,
    spec: &CheetahTableSpec,
    constraints: &CheetahConstraints,
) -> i32 {
    entry(|| {
        // SAFETY: by the contract of the crate the arguments are initialised.
        let (spec, constraints) = unsafe { (table_spec(spec)?, constraints.get()?) };
        db.0.create_table_with(&spec, &constraints).map(|_| Code::Ok)
    })
}

pub(crate) unsafe fn table_spec(spec: &CheetahTableSpec) -> Result<TableSpec> {
    // SAFETY: passed on.
    let indexes = unsafe { slice(spec.indexes, spec.index_count) };
    let longest_secondary = indexes.iter().skip(1).map(|index| index.max_key_bytes).max().unwrap_or(0);
    let clustered_max = STORED_KEY_BYTES_MAX - longest_secondary.min(STORED_KEY_BYTES_MAX / 2);
    let clustered = indexes.first().map_or(0, |index| index.max_key_bytes).min(clustered_max);
    let rest = STORED_KEY_BYTES_MAX - clustered;
    let index_spec = |(no, index): (usize, &CheetahIndexSpec)| IndexSpec {
        // SAFETY: passed on.
        name: unsafe { index.name.text() },
        unique: index.unique != 0,
        max_key_bytes: if no == 0 { clustered } else { index.max_key_bytes.min(rest) },
        row_format: RowFormatVersion::opaque(),
    };
    // SAFETY: passed on.
    let (name, row_format, extra, fulltext) = unsafe {
        let fulltext = slice(spec.fulltext, spec.fulltext_count).iter().map(|index| index.get()).collect();
        (spec.name.text(), spec.row_format.get(), spec.extra.get().to_vec(), fulltext)
    };
    Ok(TableSpec {
        name,
        row_format,
        indexes: indexes.iter().enumerate().map(index_spec).collect(),
        compression: compression(spec.compression, spec.compression_level)?,
        hidden_key: spec.hidden_key != 0,
        auto_increment: spec.auto_increment,
        extra,
        fulltext,
        is_temporary: spec.is_temporary != 0,
        encryption: spec.encryption.get()?,
    })
}

pub(crate) fn compression(codec: u8, level: i32) -> Result<Compression> {
    Ok(match codec_of(codec)? {
        Codec::Zstd if level == 0 => Compression::default(),
        Codec::Zstd => Compression { codec: Codec::Zstd, level },
        codec => Compression { codec, level: 0 },
    })
}

pub(crate) fn codec_of(code: u8) -> Result<Codec> {
    meaning!("code of a compression", code, CheetahCompression => Codec { None, Lz4, Zstd })
}

/// Returns the size up to which stored rows never have values out of line, in tables whose
/// clustered keys have at most `max_key_bytes` bytes.
#[no_mangle]
pub extern "C" fn cheetah_inline_row_bytes(max_key_bytes: u32) -> u64 {
    let key_bytes = max_key_bytes.min(STORED_KEY_BYTES_MAX) as usize;
    value(0, || cheetah::server::inline_row_bytes(Config::default().page_bytes, key_bytes) as u64)
}

/// Drops a table, unless other tables refer to it. `referenced`: a `CheetahReferenced`.
#[no_mangle]
pub unsafe extern "C" fn cheetah_drop_table(db: &CheetahDb, name: CheetahBytes, referenced: u8) -> i32 {
    // SAFETY: by the contract of the crate the name is readable.
    let name = unsafe { name.text() };
    entry(|| db.0.drop_table_unless(&name, referenced_of(referenced)?))
}

fn referenced_of(code: u8) -> Result<Referenced> {
    meaning!("code for references", code, CheetahReferenced => Referenced {
        Ignored, Refused, RefusedElsewhere
    })
}

/// Renames a table. `again`: repeats a rename that a crash interrupted and that may be done
/// already.
#[no_mangle]
pub unsafe extern "C" fn cheetah_rename_table(
    db: &CheetahDb,
    source: CheetahBytes,
    target: CheetahBytes,
    again: u8,
) -> i32 {
    // SAFETY: by the contract of the crate the names are readable.
    let (source, target) = unsafe { (source.text(), target.text()) };
    entry(|| match again {
        0 => db.0.rename_table(&source, &target),
        _ => db.0.rename_table_again(&source, &target),
    })
}

/// Records that one part of a larger table was removed. The remaining parts are the tables whose
/// names begin with `prefix`; see `Db::note_remainders`.
#[no_mangle]
pub unsafe extern "C" fn cheetah_note_remainders(db: &CheetahDb, prefix: CheetahBytes) {
    // SAFETY: by the contract of the crate the prefix is readable.
    let prefix = unsafe { prefix.text() };
    value((), || db.0.note_remainders(&prefix));
}

/// Truncates a table, unless other tables refer to it. `referenced`: a `CheetahReferenced`. Open
/// handles of the table no longer work afterwards.
#[no_mangle]
pub unsafe extern "C" fn cheetah_truncate_table(db: &CheetahDb, name: CheetahBytes, referenced: u8) -> i32 {
    // SAFETY: by the contract of the crate the name is readable.
    let name = unsafe { name.text() };
    entry(|| db.0.truncate_table_unless(&name, referenced_of(referenced)?).map(|_| Code::Ok))
}

/// Opens a table.
#[no_mangle]
pub unsafe extern "C" fn cheetah_open_table(
    db: &CheetahDb,
    name: CheetahBytes,
    table: &mut *mut CheetahTable,
) -> i32 {
    // SAFETY: by the contract of the crate the name is readable.
    let name = unsafe { name.text() };
    handle(table, || {
        let table = db.0.table(&name)?;
        let postings = (0..table.fulltext().len()).map(|no| db.0.postings(&table, no));
        let postings = postings.collect::<Result<_>>()?;
        Ok(CheetahTable { table, postings })
    })
}

/// Returns whether the table must be opened again: it was dropped, truncated, or replaced by a
/// load.
#[no_mangle]
pub extern "C" fn cheetah_is_dropped(table: &CheetahTable) -> u8 {
    value(1, || u8::from(table.table.is_dropped() || table.table.has_moved()))
}

/// Closes a table.
#[no_mangle]
pub extern "C" fn cheetah_close_table(table: Box<CheetahTable>) {
    value((), || drop(table));
}

/// Returns the caller's own bytes from the table's definition.
#[no_mangle]
pub extern "C" fn cheetah_table_extra(table: &CheetahTable) -> CheetahBytes {
    value(CheetahBytes::EMPTY, || CheetahBytes::of(table.table.extra()))
}

/// Returns the exact number of rows.
#[no_mangle]
pub extern "C" fn cheetah_row_count(table: &CheetahTable) -> u64 {
    value(0, || table.table.row_count())
}

/// Returns the time of the last committed change of the table, in the seconds of
/// `cheetah_set_time`; 0 if there was none since the database was opened.
#[no_mangle]
pub extern "C" fn cheetah_changed_at(table: &CheetahTable) -> u64 {
    value(0, || table.table.changed_at())
}

/// Returns the next auto-increment value.
#[no_mangle]
pub extern "C" fn cheetah_auto_increment(table: &CheetahTable) -> u64 {
    value(0, || table.table.auto_increment())
}

/// Sets the next auto-increment value, durably.
#[no_mangle]
pub extern "C" fn cheetah_set_auto_increment(db: &CheetahDb, table: &CheetahTable, next: u64) -> i32 {
    entry(|| db.0.set_auto_increment(&table.table, next))
}

/// Returns the key for the next row of a table with a hidden key. The key is stored big-endian.
#[no_mangle]
pub extern "C" fn cheetah_next_hidden_key(table: &CheetahTable) -> u64 {
    value(0, || u64::from_be_bytes(table.table.next_hidden_key()))
}

/// Gets the sizes of the first `count` indexes.
#[no_mangle]
pub unsafe extern "C" fn cheetah_index_stats(
    table: &CheetahTable,
    stats: *mut CheetahIndexStats,
    count: usize,
) -> i32 {
    entry(|| {
        for (no, index) in table.table.stats()?.iter().enumerate().take(count) {
            let sizes = CheetahIndexStats {
                pages: index.pages,
                leaf_pages: index.leaf_pages,
                stored_bytes: index.stored_bytes,
                logical_bytes: index.logical_bytes,
                free_bytes: index.free_bytes,
                depth: index.depth as u32,
            };
            // SAFETY: `no` is below `count`.
            unsafe { stats.add(no).write(sizes) };
        }
        Ok(())
    })
}

/// Estimates the number of entries with stored keys in `low..high`. A null pointer means no bound.
#[no_mangle]
pub unsafe extern "C" fn cheetah_records_in_range(
    table: &CheetahTable,
    index_no: u32,
    low: Option<&CheetahBytes>,
    high: Option<&CheetahBytes>,
    count: &mut u64,
) -> i32 {
    // SAFETY: by the contract of the crate the bounds are readable.
    let (low, high) = unsafe { (low.map(|low| low.get()), high.map(|high| high.get())) };
    answer(count, || table.table.records_in_range(index_no as usize, low, high))
}

/// Computes the entries of a row with the caller's function. SAFETY: the function and its context
/// must be valid as long as the result is used.
pub(crate) unsafe fn of_row<'t>(
    table: &'t Table,
    expected: CheetahExpectedEntries,
    context: *mut c_void,
) -> impl FnMut(&[u8], &[u8], &mut Vec<ExpectedEntry>) -> Result<()> + 't {
    move |key, row, entries| {
        let mut collected = CheetahEntrySink(std::mem::take(entries));
        // SAFETY: the caller's function gets the caller's context.
        let code = unsafe { expected(context, CheetahBytes::of(key), CheetahBytes::of(row), &mut collected) };
        *entries = collected.0;
        match code {
            0 => Ok(()),
            code if code == Code::Interrupted as i32 => Err(Error::Interrupted),
            _ => Err(Error::corrupt(format!("table {}", table.name()), "a row does not fit the definition")),
        }
    }
}

/// Walks the whole current table, compares every index with the entries that `expected` computes,
/// and passes a description of each fault to the sink. `repeats` returns 1 for a payload that
/// repeats what the key of its entry states: it may be missing. Takes no locks. Blocks for I/O.
#[no_mangle]
pub unsafe extern "C" fn cheetah_check_table(
    txn: &mut CheetahTxn,
    table: &CheetahTable,
    expected: CheetahExpectedEntries,
    repeats: CheetahPayloadTest,
    context: *mut c_void,
    sink: CheetahTextSink,
    sink_context: *mut c_void,
) -> i32 {
    entry(|| {
        // SAFETY: passed on.
        let entries = &mut unsafe { of_row(&table.table, expected, context) };
        let repeats = &|index_no: usize, payload: &[u8]| {
            // SAFETY: the caller's function gets the caller's context.
            unsafe { repeats(context, index_no as u32, CheetahBytes::of(payload)) != 0 }
        };
        let report = txn.0.check_table_expecting(&table.table, Expected { entries, repeats })?;
        tell_findings(&report, &Callback(sink, sink_context));
        Ok(())
    })
}

/// Like `cheetah_check_table`, but checks only the pages above the leaves.
#[no_mangle]
pub unsafe extern "C" fn cheetah_check_inner_pages(
    txn: &mut CheetahTxn,
    table: &CheetahTable,
    sink: CheetahTextSink,
    sink_context: *mut c_void,
) -> i32 {
    entry(|| {
        let report = txn.0.check_inner_pages(&table.table)?;
        tell_findings(&report, &Callback(sink, sink_context));
        Ok(())
    })
}

fn tell_findings(report: &CheckReport, listener: &Callback<CheetahTextSink>) {
    report.findings.iter().for_each(|finding| listener.tell(finding));
    let untold = report.findings_count.saturating_sub(report.findings.len() as u64);
    if untold > 0 {
        listener.tell(&format!("and {untold} more findings"));
    }
}

/// Adds an expected entry of the current row.
#[no_mangle]
pub unsafe extern "C" fn cheetah_expect_entry(
    sink: &mut CheetahEntrySink,
    index_no: u32,
    key: CheetahBytes,
    payload: CheetahBytes,
) {
    // SAFETY: by the contract of the crate the sink is the one just given, and the bytes are
    // readable.
    let (key, payload) = unsafe { (key.get(), payload.get()) };
    value((), || {
        let (index_no, key, payload) = (index_no as usize, key.to_vec(), payload.to_vec());
        sink.0.push(ExpectedEntry { index_no, key, payload });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_a_compression_come_back_and_unknown_ones_are_refused() {
        assert!((0..=2).all(|code| compression(code, 3).unwrap().codec.code() == code));
        assert!(compression(3, 0).is_err());
    }
}

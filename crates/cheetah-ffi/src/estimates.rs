//! Estimates: the size of a table in each format.

use crate::barrier::{answer, entry, handle, value};
use crate::callbacks::each;
use crate::tables::table_spec;
use crate::types::*;
use crate::CheetahDb;
use cheetah::server::{Estimate, Weight};
use cheetah::Compression;

/// An estimate for one table.
#[derive(Debug)]
pub struct CheetahEstimate(Estimate);

/// The estimated size of the table in one format.
#[repr(C)]
pub struct CheetahWeight {
    /// The KEY_BLOCK_SIZE in KiB that selects the format; 0 if none does.
    pub key_block_size: u64,
    /// The number of rows of the table.
    pub rows: u64,
    /// The number of rows in the sample.
    pub sampled_rows: u64,
    /// Estimated bytes of the table.
    pub bytes: u64,
    /// The error bound of `bytes`, in millionths of `bytes`. In 95 of 100 cases the error is
    /// smaller, if `rows` is exact.
    pub error_ppm: u64,
    /// Time to compress a page.
    pub encode_ns: u64,
    /// Time to decompress a page.
    pub decode_ns: u64,
    /// Level of the codec.
    pub compression_level: i32,
    /// The codec: 0 none, 1 lz4, 2 zstd.
    pub compression: u8,
    /// Whether `error_ppm` is valid: the sample suffices to estimate the error.
    pub has_error: u8,
}

impl From<&Weight> for CheetahWeight {
    fn from(weight: &Weight) -> Self {
        let Compression { codec, level } = weight.compression;
        Self {
            key_block_size: weight.key_block_size.unwrap_or(0),
            rows: weight.rows,
            sampled_rows: weight.sampled_rows,
            bytes: weight.bytes,
            error_ppm: weight.error.map_or(0, |error| (error * 1e6).round() as u64),
            encode_ns: weight.encode_ns,
            decode_ns: weight.decode_ns,
            compression_level: level,
            compression: codec.code(),
            has_error: weight.error.is_some().into(),
        }
    }
}

/// Receives the estimate for one format.
pub type CheetahWeightSink = unsafe extern "C" fn(context: *mut c_void, weight: *const CheetahWeight);

/// Begins an estimate of the size of a table with this specification. The caller adds runs of
/// adjacent rows or entries in key order, from places spread over each index. The first run starts
/// at the start of the index. Rows include their large values.
#[no_mangle]
pub unsafe extern "C" fn cheetah_new_estimate(
    db: &CheetahDb,
    spec: &CheetahTableSpec,
    estimate: &mut *mut CheetahEstimate,
) -> i32 {
    handle(estimate, || {
        // SAFETY: by the contract of the crate the argument is initialised.
        let spec = unsafe { table_spec(spec) }?;
        Ok(CheetahEstimate(db.0.estimate(&spec)?))
    })
}

/// Returns the number of runs to add for each index.
#[no_mangle]
pub extern "C" fn cheetah_estimate_runs(estimate: &CheetahEstimate) -> u32 {
    value(0, || estimate.0.runs_wanted())
}

/// Begins a run: the next rows or entries of the index come from a new place.
#[no_mangle]
pub extern "C" fn cheetah_estimate_run(estimate: &mut CheetahEstimate, index_no: u32, from_start: u8) -> i32 {
    entry(|| estimate.0.start_run(index_no as usize, from_start != 0))
}

/// Reports that the run has reached the end of its index.
#[no_mangle]
pub extern "C" fn cheetah_estimate_end(estimate: &mut CheetahEstimate, index_no: u32) -> i32 {
    entry(|| estimate.0.reach_end(index_no as usize))
}

/// Adds a row. `more` becomes 1 if the run needs more rows.
#[no_mangle]
pub unsafe extern "C" fn cheetah_estimate_row(
    estimate: &mut CheetahEstimate,
    key: CheetahBytes,
    row: CheetahBytes,
    more: &mut u8,
) -> i32 {
    // SAFETY: by the contract of the crate the bytes are readable.
    let (key, row) = unsafe { (key.get(), row.get()) };
    answer(more, || Ok(estimate.0.add_row(key, row)?.into()))
}

/// Adds an entry of a secondary index. `more` becomes 1 if the run needs more entries.
#[no_mangle]
pub unsafe extern "C" fn cheetah_estimate_entry(
    estimate: &mut CheetahEstimate,
    index_no: u32,
    key: CheetahBytes,
    clustered: CheetahBytes,
    payload: CheetahBytes,
    more: &mut u8,
) -> i32 {
    // SAFETY: by the contract of the crate the bytes are readable.
    let (key, clustered, payload) = unsafe { (key.get(), clustered.get(), payload.get()) };
    answer(more, || Ok(estimate.0.add_entry(index_no as usize, key, clustered, payload)?.into()))
}

/// Passes to the sink the estimated size, in each format, of a table with `rows` rows. The format
/// that compresses least comes first.
#[no_mangle]
pub unsafe extern "C" fn cheetah_weigh(
    estimate: &mut CheetahEstimate,
    rows: u64,
    sink: CheetahWeightSink,
    context: *mut c_void,
) -> i32 {
    entry(|| each(sink, context, estimate.0.weigh(rows)?, |weight| weight.into()))
}

/// Frees an estimate.
#[no_mangle]
pub extern "C" fn cheetah_free_estimate(estimate: Box<CheetahEstimate>) {
    value((), || drop(estimate));
}

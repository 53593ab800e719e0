//! Estimates: the weight of a table in each format.

use crate::barrier::{entry, value};
use crate::codes::*;
use crate::tables::table_spec;
use crate::types::*;
use crate::CheetahDb;
use cheetah::server::{Estimate, Weight};
use cheetah::Compression;
use std::ffi::c_void;

/// An estimate for one table.
#[derive(Debug)]
pub struct CheetahEstimate(Estimate);

/// The weight of the table in one format.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahWeight {
    /// KEY_BLOCK_SIZE that asks for the format, in KiB; 0: none does.
    pub key_block_size: u64,
    /// Rows of the table.
    pub rows: u64,
    /// Rows in the sample.
    pub sampled_rows: u64,
    /// Bytes of the table.
    pub bytes: u64,
    /// By how much of `bytes` they may be wrong, in millionths: in 95 of 100 cases by no more, if
    /// `rows` is right.
    pub error_ppm: u64,
    /// Time to compress a page.
    pub encode_ns: u64,
    /// Time to read it again.
    pub decode_ns: u64,
    /// Level of the codec.
    pub compression_level: i32,
    /// 0 none, 1 lz4, 2 zstd.
    pub compression: u8,
    /// Whether the sample tells the error.
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

/// Gets a weight.
pub type CheetahWeightSink = unsafe extern "C" fn(context: *mut c_void, weight: *const CheetahWeight);

/// Begins an estimate of what a table like that would weigh. The caller brings runs of neighbours
/// in key order, from places all over each index, the first from its start. Rows have their large
/// values in them.
#[no_mangle]
pub unsafe extern "C" fn cheetah_new_estimate(
    db: *const CheetahDb,
    spec: *const CheetahTableSpec,
    estimate: *mut *mut CheetahEstimate,
) -> i32 {
    // SAFETY: by the contract of the crate the handle is open and the others are the caller's.
    let (db, spec, place) = unsafe { (&*db, &*spec, &mut *estimate) };
    entry(|| {
        // SAFETY: as above.
        let spec = unsafe { table_spec(spec) }?;
        *place = Box::into_raw(Box::new(CheetahEstimate(db.0.estimate(&spec)?)));
        Ok(Code::Ok)
    })
}

/// Runs that are wanted of each index.
#[no_mangle]
pub unsafe extern "C" fn cheetah_estimate_runs(estimate: *const CheetahEstimate) -> u32 {
    // SAFETY: by the contract of the crate the handle is open.
    let estimate = unsafe { &*estimate };
    value(0, || estimate.0.runs_wanted())
}

/// Rows or entries of an index from another place follow.
#[no_mangle]
pub unsafe extern "C" fn cheetah_estimate_run(
    estimate: *mut CheetahEstimate,
    index_no: u32,
    from_start: u8,
) -> i32 {
    // SAFETY: by the contract of the crate the handle is open.
    let estimate = unsafe { &mut *estimate };
    entry(|| estimate.0.start_run(index_no as usize, from_start != 0).map(|()| Code::Ok))
}

/// The run has reached the end of its index.
#[no_mangle]
pub unsafe extern "C" fn cheetah_estimate_end(estimate: *mut CheetahEstimate, index_no: u32) -> i32 {
    // SAFETY: by the contract of the crate the handle is open.
    let estimate = unsafe { &mut *estimate };
    entry(|| estimate.0.reach_end(index_no as usize).map(|()| Code::Ok))
}

/// Takes a row; tells whether the run wants more.
#[no_mangle]
pub unsafe extern "C" fn cheetah_estimate_row(
    estimate: *mut CheetahEstimate,
    key: CheetahBytes,
    row: CheetahBytes,
    more: *mut u8,
) -> i32 {
    // SAFETY: by the contract of the crate the handle is open, the bytes are readable and the place
    // is the caller's.
    let (estimate, key, row, more) = unsafe { (&mut *estimate, key.get(), row.get(), &mut *more) };
    entry(|| {
        *more = estimate.0.add_row(key, row)?.into();
        Ok(Code::Ok)
    })
}

/// Takes an entry of a secondary index; tells whether the run wants more.
#[no_mangle]
pub unsafe extern "C" fn cheetah_estimate_entry(
    estimate: *mut CheetahEstimate,
    index_no: u32,
    key: CheetahBytes,
    clustered: CheetahBytes,
    payload: CheetahBytes,
    more: *mut u8,
) -> i32 {
    // SAFETY: by the contract of the crate the handle is open and the place is the caller's.
    let (estimate, more) = unsafe { (&mut *estimate, &mut *more) };
    // SAFETY: by the contract of the crate the bytes are readable.
    let (key, clustered, payload) = unsafe { (key.get(), clustered.get(), payload.get()) };
    entry(|| {
        *more = estimate.0.add_entry(index_no as usize, key, clustered, payload)?.into();
        Ok(Code::Ok)
    })
}

/// Tells the sink what a table of that many rows would weigh in each format, the least dense first.
#[no_mangle]
pub unsafe extern "C" fn cheetah_weigh(
    estimate: *mut CheetahEstimate,
    rows: u64,
    sink: CheetahWeightSink,
    context: *mut c_void,
) -> i32 {
    // SAFETY: by the contract of the crate the handle is open.
    let estimate = unsafe { &mut *estimate };
    entry(|| {
        for weight in &estimate.0.weigh(rows)? {
            // SAFETY: the caller's function gets the caller's context.
            unsafe { sink(context, &CheetahWeight::from(weight)) };
        }
        Ok(Code::Ok)
    })
}

/// Frees an estimate.
#[no_mangle]
pub unsafe extern "C" fn cheetah_free_estimate(estimate: *mut CheetahEstimate) {
    // SAFETY: by the contract of the crate the handle is ours and not used again.
    value((), || drop(unsafe { Box::from_raw(estimate) }));
}

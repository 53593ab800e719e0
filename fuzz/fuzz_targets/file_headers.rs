//! Fuzzes the decoders of the headers of segments, map files and log files, with correct checksums:
//! each rejects the input, or the result encodes to the same bytes.
#![no_main]
#![allow(dead_code, reason = "the checks of all decoders are in one file")]

#[path = "../../crates/cheetah/tests/common/decoded.rs"]
mod decoded;
#[path = "../../crates/cheetah/tests/common/repair.rs"]
mod repair;

use cheetah::testing::format::{log_frame, map_block};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for block_bytes in [map_block::FILE_HEADER_BYTES, log_frame::HEADER_BYTES] {
        let mut block = bytes.to_vec();
        repair::block(&mut block, block_bytes, block_bytes - 4);
        decoded::file_headers(&block);
    }
});

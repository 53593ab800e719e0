//! Fuzzes the decoder of a copy of CONTROL, also with corrected checksums: it rejects the input, or
//! the result encodes to the same bytes.
#![no_main]
#![allow(dead_code, reason = "the checks of all decoders are in one file")]

#[path = "../../crates/cheetah/tests/common/decoded.rs"]
mod decoded;
#[path = "../../crates/cheetah/tests/common/repair.rs"]
mod repair;

use cheetah::testing::format::control::COPY_BYTES;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    decoded::control(bytes);
    let mut block = bytes.to_vec();
    repair::block(&mut block, COPY_BYTES, COPY_BYTES - 4);
    decoded::control(&block);
});

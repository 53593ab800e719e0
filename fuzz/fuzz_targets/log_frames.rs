//! Fuzzes the decoder of log frames, also with corrected checksums: it rejects the input, or the
//! result encodes to the same bytes.
#![no_main]
#![allow(dead_code, reason = "the checks of all decoders are in one file")]

#[path = "../../crates/cheetah/tests/common/decoded.rs"]
mod decoded;
#[path = "../../crates/cheetah/tests/common/repair.rs"]
mod repair;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    decoded::log_frames(bytes);
    let mut block = bytes.to_vec();
    repair::frames(&mut block);
    decoded::log_frames(&block);
});

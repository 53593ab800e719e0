//! Fuzzes the decoder of a map file's chunk, also with corrected checksums: it rejects the input,
//! or the entries survive a round trip unchanged.
#![no_main]
#![allow(dead_code, reason = "the checks of all decoders are in one file")]

#[path = "../../crates/cheetah/tests/common/decoded.rs"]
mod decoded;
#[path = "../../crates/cheetah/tests/common/repair.rs"]
mod repair;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    decoded::map_chunk(bytes);
    let mut block = bytes.to_vec();
    repair::chunk(&mut block);
    decoded::map_chunk(&block);
});

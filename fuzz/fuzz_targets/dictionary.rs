//! The content of a dictionary: refused, or usable for compression.
#![no_main]
#![allow(dead_code, reason = "the checks of all decoders are in one file")]

#[path = "../../crates/cheetah/tests/common/decoded.rs"]
mod decoded;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| decoded::dictionary(bytes));

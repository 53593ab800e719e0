//! Fuzzes the check of a dictionary's content: it rejects the input, or the dictionary can be used
//! for compression.
#![no_main]
#![allow(dead_code, reason = "the checks of all decoders are in one file")]

#[path = "../../crates/cheetah/tests/common/decoded.rs"]
mod decoded;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| decoded::dictionary(bytes));

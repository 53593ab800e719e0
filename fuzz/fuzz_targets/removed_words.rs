//! Fuzzes the decoder of a removed row's words: it rejects the input, or the result encodes to the
//! same bytes.
#![no_main]
#![allow(dead_code, reason = "the checks of all decoders are in one file")]

#[path = "../../crates/cheetah/tests/common/decoded.rs"]
mod decoded;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| decoded::removed_words(bytes));

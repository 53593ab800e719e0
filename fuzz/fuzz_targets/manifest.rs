//! The manifest of a snapshot: refused, or read again as it was when it is written again.
#![no_main]
#![allow(dead_code, reason = "the checks of all decoders stand together")]

#[path = "../../crates/cheetah/tests/common/decoded.rs"]
mod decoded;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| decoded::manifest(bytes));

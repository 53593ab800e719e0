//! Fuzzes full-text queries: the search rejects the query, or returns rows in the order of their
//! ranks.
#![no_main]
#![allow(dead_code, reason = "the checks of all decoders are in one file")]

#[path = "../../crates/cheetah/tests/common/decoded.rs"]
mod decoded;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| decoded::search_query(bytes));

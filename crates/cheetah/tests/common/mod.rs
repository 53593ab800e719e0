//! Code that several integration tests share.

#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) mod decoded;
pub(crate) mod mutate;
pub(crate) mod repair;
pub(crate) mod samples;

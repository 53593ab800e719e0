//! Cheetah: a transactional, compressed B+tree storage engine.
//!
//! The layers, lowest first; a module imports only from lower ones (a test reads the `use` lines):
//! `base` < `format`, `durable` < `segment`, `page_map`, `log` < `pool` < `tree` < `txn` < `table` <
//! `recovery`, `check` < `db`. ARCHITECTURE.md walks through them.

pub mod base;
mod check;
pub mod db;
pub mod durable;
pub mod format;
pub mod log;
pub mod page_map;
pub mod pool;
mod recovery;
pub mod segment;
pub mod table;
pub mod tree;
pub mod txn;

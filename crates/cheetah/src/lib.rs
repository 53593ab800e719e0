#![doc = include_str!("../README.md")]
//!
//! # Where to begin
//!
//! [`Database::open`], [`Database::create_table`] and [`Database::begin`]. A [`Table`] has rows and
//! indexes; a [`Transaction`] changes and reads them, by a [`Cursor`] too. [`Key`] makes keys,
//! [`format::row::RowFormatVersion`] tells the places of columns. [`ErrorKind`] says what to do
//! about an [`Error`].
//!
//! [`db::Db`] is the same without threads and on any disk and clock, such as the simulated ones of
//! `cheetah_io::sim`; [`Database::db`] leads to it.
//!
//! The layers, lowest first; a module imports only from those before it here (a test reads the
//! `use` lines):
//! `base` < `memory`, `format`, `durable` < `keys` < `segment`, `page_map`, `log`, `sort` <
//! `backup`, `fulltext` < `pool` < `checkpoint` < `tree` < `txn` < `table` < `recovery`, `check` <
//! `db` < `salvage`, `embedded`.
//! ARCHITECTURE.md walks through them.

pub mod backup;
pub mod base;
mod check;
mod checkpoint;
pub mod db;
pub mod durable;
pub mod embedded;
pub mod format;
pub mod fulltext;
pub mod keys;
pub mod leaves;
pub mod log;
pub mod memory;
pub mod page_map;
pub mod pool;
mod recovery;
pub mod salvage;
pub mod segment;
pub mod sort;
pub mod table;
pub mod tree;
pub mod txn;

pub use base::{Config, Error, ErrorKind, Result};
pub use db::{Cursor, Isolation, LockMode, Read, Savepoint, SeekMode, Transaction};
pub use embedded::{Database, Key};
pub use table::{IndexSpec, NewRow, OldEntry, SecondaryEntry, Table, TableSpec};

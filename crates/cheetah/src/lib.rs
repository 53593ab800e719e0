#![doc = include_str!("../README.md")]
//!
//! # Where to begin
//!
//! [`Database::open`], [`Database::create_table`] and [`Database::begin`]. A [`Table`] has rows and
//! indexes. A [`Transaction`] changes and reads them, also through a [`Cursor`]. [`Key`] builds
//! keys. [`RowFormatVersion`] describes the columns of a row; [`build_row`] and [`RowView`] build
//! and read rows in it. [`ErrorKind`] says what to do about an [`Error`].
//!
//! [`server`] is for the plugin of the MariaDB server. It has [`server::Db`], the same database
//! without threads and on any disk and clock, such as the simulated ones in `cheetah_io::sim`.
#![cfg_attr(
    not(feature = "testing"),
    allow(
        dead_code,
        unreachable_pub,
        unused_imports,
        unfulfilled_lint_expectations,
        reason = "some parts are visible only through `testing`"
    )
)]

// The layers, lowest first; a module imports only from those before it here (a test reads the `use`
// lines):
// `base` < `memory`, `format`, `durable` < `keys` < `segment`, `page_map`, `log`, `sort` <
// `fulltext` < `pool` < `leaves` < `checkpoint`, `backup` < `tree` < `txn` < `table` < `recovery`,
// `check` < `db` < `salvage`, `embedded` < `server`, `testing`.
// ARCHITECTURE.md walks through them.
mod backup;
mod base;
mod check;
mod checkpoint;
mod db;
mod durable;
mod embedded;
mod format;
mod fulltext;
mod keys;
mod leaves;
mod log;
mod memory;
mod page_map;
mod pool;
mod recovery;
mod salvage;
mod segment;
pub mod server;
mod sort;
mod table;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;
mod tree;
mod txn;

pub use base::{Config, Error, ErrorKind, KeyService, KeySource, Result};
pub use db::{Cursor, Isolation, LockMode, OnLocked, Read, Savepoint, SeekEnd, SeekMode, Transaction};
pub use embedded::{Database, Key};
pub use format::catalog::{Encryption, TableEncryption};
pub use format::image::{Codec, Compression};
pub use format::row::{build_row, RowFormatVersion, RowView, VarValue};
pub use table::{FulltextSpec, IndexSpec, NewRow, OldEntry, SecondaryEntry, Table, TableSpec, KEY_BYTES_MAX};

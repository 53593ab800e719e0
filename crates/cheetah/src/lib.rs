#![doc = include_str!("../README.md")]
//!
//! # Where to begin
//!
//! [`Database::open`], [`Database::create_table`] and [`Database::begin`]. A [`Table`] has rows and
//! indexes; a [`Transaction`] changes and reads them, by a [`Cursor`] too. [`Key`] makes keys,
//! [`RowFormatVersion`] tells the places of columns, [`build_row`] and [`RowView`] make such rows
//! and read them. [`ErrorKind`] says what to do about an [`Error`].
//!
//! let (mut cursor, mut row) = (txn.cursor(&towns, 1, Read::Consistent)?, Vec::new());
//! assert!(cursor.seek(SeekMode::AtLeast, &name)?);
//! cursor.get_row(&mut row)?;
//! assert_eq!(row, b"Ulm, on the Danube");
//! # drop((cursor, txn));
//! # db.close()?;
//! # std::fs::remove_dir_all(&path).ok();
//! # cheetah::Result::Ok(())
//! ```
//!
//! A [`Database`] is a directory with tables. A [`Table`] has a clustered index, whose entries are
//! the rows, and secondary indexes, whose entries lead to rows. Rows are bytes; a table may tell
//! the places of their columns ([`format::row::RowFormatVersion`]), so that pages are compressed
//! column by column. Keys are bytes, too, which sort as they are: a [`Key`] encodes integers and
//! texts so. A caller that encodes keys itself sees to it that none is the beginning of another one
//! of its index. Everything happens in a [`Transaction`]; committed changes survive a crash, others
//! do not.
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

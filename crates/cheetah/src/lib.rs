//! Cheetah: a transactional, compressed B+tree storage engine.
//!
//! ```
//! # let path = std::env::temp_dir().join(format!("cheetah-hello-{}", std::process::id()));
//! use cheetah::{Database, IndexSpec, Key, NewRow, Read, SecondaryEntry, SeekMode, TableSpec};
//!
//! let db = Database::open(&path)?;
//! let towns = db.create_table(&TableSpec::new("towns").index(IndexSpec::new("name")))?;
//! let mut txn = db.begin();
//! let (key, name) = (Key::from(7_u64), Key::from("Ulm"));
//! let secondary = &[SecondaryEntry::new(1, &name)];
//! txn.insert(&towns, &NewRow { key: &key, row: b"Ulm, on the Danube", secondary })?;
//! txn.commit()?;
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
//! of its index. Everything happens in a [`Transaction`]; what is committed survives a crash, what
//! is not does not.
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

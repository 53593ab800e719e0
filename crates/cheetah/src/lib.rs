//! Cheetah: a transactional, compressed B+tree storage engine.
//!
//! A [`db::Db`] is a directory with tables. A table has a clustered index, whose entries are the
//! rows, and secondary indexes, whose entries lead to rows. Keys are bytes that sort as the caller
//! wants them to sort; the engine never computes one. Rows are bytes whose columns' places the
//! table's [`format::row::RowFormatVersion`] tells, so that pages can be stored column by column.
//! Everything happens in a [`db::Transaction`]; what is committed survives a crash, what is not
//! does not.
//!
//! ```
//! use cheetah::base::Config;
//! use cheetah::db::{Db, Env, Read, SeekMode};
//! use cheetah::format::{image::Compression, row::RowFormatVersion};
//! use cheetah::table::{IndexSpec, NewRow, SecondaryEntry, TableSpec};
//! use cheetah_io::sim::{SimClock, SimDisk};
//! use std::sync::Arc;
//!
//! # fn main() -> cheetah::base::Result<()> {
//! // A program uses cheetah_io::posix::PosixDisk and cheetah_io::time::RealClock, and
//! // start_background_threads.
//! let env = Env { disk: Arc::new(SimDisk::new()), clock: Arc::new(SimClock::default()) };
//! let db = Db::open(env, Config::default())?;
//! let index = |name: &str| IndexSpec {
//!     name: name.into(),
//!     unique: false,
//!     max_key_bytes: 32,
//!     row_format: RowFormatVersion::opaque(),
//! };
//! let table = db.create_table(&TableSpec {
//!     name: "towns".into(),
//!     row_format: RowFormatVersion::opaque(),
//!     indexes: vec![index("number"), index("name")],
//!     compression: Compression::default(),
//!     hidden_key: false,
//!     auto_increment: 1,
//!     extra: Vec::new(),
//!     fulltext: Vec::new(),
//!     is_temporary: false,
//!     encryption: Default::default(),
//! })?;
//!
//! let mut txn = db.begin();
//! let by_name =
//!     [SecondaryEntry { index_no: 1, key: b"Ulm\0", payload: b"", check_unique: false }];
//! let key = 7u32.to_be_bytes();
//! txn.insert(&table, &NewRow { key: &key, row: b"Ulm, on the Danube", secondary: &by_name })?;
//! txn.commit()?;
//!
//! let mut cursor = txn.cursor(&table, 1, Read::Consistent)?;
//! assert!(cursor.seek(SeekMode::AtLeast, b"U")?);
//! let mut row = Vec::new();
//! cursor.get_row(&mut row)?;
//! assert_eq!(row, b"Ulm, on the Danube");
//! txn.commit()?;
//! db.close()
//! # }
//! ```
//!
//! The layers, lowest first; a module imports only from those before it here (a test reads the
//! `use` lines):
//! `base` < `memory`, `format`, `durable` < `keys` < `segment`, `page_map`, `log`, `sort` <
//! `backup`, `fulltext` < `pool` < `checkpoint` < `tree` < `txn` < `table` < `recovery`, `check` <
//! `db` < `salvage`.
//! ARCHITECTURE.md walks through them.

pub mod backup;
pub mod base;
pub mod change_files;
mod check;
mod checkpoint;
pub mod db;
pub mod durable;
pub mod format;
pub mod fulltext;
pub mod keys;
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

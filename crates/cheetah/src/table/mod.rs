//! Tables: definitions, row operations over all indexes of a table, rollback, purge, bulk loads and
//! index builds.
//!
//! | folder | holds |
//! |---|---|
//! | `shared` | what all parts of an open database share: transactions, log, room, counters |
//! | `definitions` | catalog, DDL, handles, row-format versions |
//! | `rows` | row operations, their locks, stored rows and large values |
//! | `history` | rollback, prepared transactions, purge, older row versions |
//! | `load`, `build` | trees filled in key order: bulk loads, online index builds |
//! | `estimate` | estimated size of another engine's table once stored here |
//! | `analyze`, `key_encoding` | index statistics from samples; boundaries of key parts |
//! | `keys` | indexes that are temporarily not maintained |
//!
//! The modules are listed in reading order, not in order of dependency.

pub(crate) mod analyze;
pub(crate) mod build;
pub(crate) mod definitions;
mod estimate;
pub(crate) mod history;
mod key_encoding;
pub(crate) mod keys;
pub(crate) mod load;
pub(crate) mod rows;
pub(crate) mod shared;

pub use build::{BuiltEntries, EntriesOf};
pub use definitions::alter::{
    Alteration, AlteredFulltext, AlteredIndex, BuiltIndexes, FulltextFrom, IndexFrom,
};
pub use definitions::foreign_keys::{Constraints, ForeignKey, KeyColumn, KeySide, Referenced};
pub use definitions::format_words::{FormatWords, RowFormat, TableFormat};
pub use definitions::handle::Table;
pub use definitions::numbers::{Numbers, Reserved, Stride};
pub use definitions::row_format_versions::NewRows;
pub use definitions::spec::{
    ExpectedEntries, ExpectedEntry, FulltextSpec, IndexSpec, NewRow, OldEntry, SecondaryEntry, TableSpec,
    KEY_BYTES_MAX,
};
pub use definitions::statistics::StatisticsOptions;
pub use estimate::{Estimate, Weight};
pub use key_encoding::{KeyEncoding, KeyPartEncoding, TextLevel, ValueEncoding};
pub use rows::values::inline_row_bytes;

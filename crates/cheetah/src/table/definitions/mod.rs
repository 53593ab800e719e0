//! Table definitions: the catalog, handles with their counters, changes of definitions, foreign
//! keys, full-text indexes, row-format versions, row counts, statistics and auto-increment values,
//! and shadow tables, which loads fill.
//!
//! Many files: one for each part of a table, and one for each operation on its definition.
//!
//! Invariants
//!   - A definition changes in one mini-transaction with its log record, one change at a time
//!     ([`catalog`], [`ddl`]).
//!   - A thread that works on a table's pages holds its use, so a drop waits for it ([`handle`]).
//!   - A stored row identifies its own row-format version ([`row_format_versions`]).

pub(crate) mod alter;
pub(crate) mod catalog;
pub(crate) mod counts;
pub(crate) mod ddl;
mod definition_pieces;
pub(crate) mod foreign_keys;
pub(crate) mod format_words;
pub(crate) mod fulltext;
pub(crate) mod handle;
mod known_since;
pub(crate) mod numbers;
pub(crate) mod row_format_versions;
pub(crate) mod shadow;
pub(crate) mod shadow_name;
pub(crate) mod spec;
pub(crate) mod statistics;
mod tables;

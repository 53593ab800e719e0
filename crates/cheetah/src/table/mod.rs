//! Tables: the catalog, row operations over all indexes of a table, large values, counters, rollback, purge.

pub(crate) mod analyze;
pub(crate) mod catalog;
pub(crate) mod change;
pub(crate) mod core;
pub(crate) mod counts;
pub(crate) mod ddl;
pub(crate) mod deadlocks;
mod estimate;
mod format_words;
mod found;
pub(crate) mod handle;
pub(crate) mod large;
pub(crate) mod load;
pub(crate) mod locker;
mod numbers;
mod plan;
pub(crate) mod prepared;
pub(crate) mod purge;
mod purge_between;
pub(crate) mod rollback;
mod row_action;
mod row_locks;
pub(crate) mod row_op;
mod row_values;
mod spec;
pub(crate) mod standing;
pub(crate) mod stored_row;
pub(crate) mod unfinished;
pub(crate) mod unique_keys;
pub(crate) mod visible;

pub use analyze::KeyEnds;
pub use estimate::{Estimate, Weight};
pub use format_words::{FormatWords, RowFormat, TableFormat};
pub use handle::Table;
pub use numbers::{Numbers, Reserved, Stride};
pub use spec::{IndexSpec, NewRow, OldEntry, SecondaryEntry, TableSpec};

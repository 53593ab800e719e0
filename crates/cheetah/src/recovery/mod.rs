//! Startup recovery loads the last epoch, redoes the log after it, and rolls back unfinished
//! transactions.
//!
//! `open` creates a database or loads its epoch, and assembles the engine. The log is read twice.
//! The first pass collects the `outcomes` of its transactions. In the second pass `redo` applies
//! the log, either with its own `applier`, or through the `dispatcher` and the `workers`, which run
//! on the threads of a `crew`. If the data exceeds memory, many changes are `sorted` before they
//! are applied. A `damaged` database is opened only to copy its readable parts.

mod applier;
mod crew;
mod damaged;
mod dispatcher;
mod open;
mod outcomes;
mod redo;
mod sorted;
mod workers;

pub(crate) use crew::Crew;
pub(crate) use damaged::{open_damaged, Extent};
pub(crate) use open::{open, Cleanup};

//! Startup recovery: the last epoch, the log since then, and the end of transactions that have not
//! ended.
//!
//! `open` creates a database or loads its epoch, and wires the engine. The log is read
//! twice: first for the `outcomes` of its transactions. Then `redo` applies it: by an `applier` of
//! its own, or through the `dispatcher` to the `workers`, which run on the threads of a `crew`.
//! Where data are larger than memory, much of it is `sorted` first. A `damaged` database is opened
//! only to copy what is left of it.

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

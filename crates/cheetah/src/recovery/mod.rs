//! Startup recovery: the last epoch, the log since then, and what to do with transactions that have
//! not ended.
//!
//! `open` creates a database or loads its epoch, and wires the engine. `redo` reads the log,
//! looking ahead in a `window`, and applies it: by an `applier` of its own, or through the
//! `dispatcher` to the `workers`, which run on the threads of a `crew`.

mod applier;
mod crew;
mod dispatcher;
mod open;
mod redo;
mod window;
mod workers;

pub(crate) use crew::Crew;
pub(crate) use open::{open, Cleanup};

//! Changes once they are made: commit ([`end`]), rollback, purge, and the older versions that
//! readers look for.
//!
//! Invariants
//!   - One undo record is rolled back by one mini-transaction, which logs that ([`rollback`]).
//!   - Purge and interval garbage collection remove only what no snapshot sees; one thread at a
//!     time ([`purge`], [`interval_gc`]).
//!   - A transaction that nobody holds keeps its locks until it has ended ([`prepared`],
//!     [`unfinished`]).

pub(crate) mod adopt;
pub(crate) mod end;
pub(crate) mod interval_gc;
pub(crate) mod interval_state;
pub(crate) mod prepared;
pub(crate) mod prepared_list;
pub(crate) mod purge;
pub(crate) mod purge_state;
pub(crate) mod rollback;
pub(crate) mod unfinished;
pub(crate) mod unfinished_list;
pub(crate) mod visible;

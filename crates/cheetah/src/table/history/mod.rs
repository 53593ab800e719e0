//! Row changes after they are made: commit ([`end`]), rollback, purge, and the older versions that
//! readers look up.
//!
//! Invariants
//!   - Each undo record is rolled back by one mini-transaction, which logs the step ([`rollback`]).
//!   - Purge and interval garbage collection remove only records that no snapshot sees, on one
//!     thread at a time ([`purge`], [`interval_gc`]).
//!   - A transaction without a session keeps its locks until it has ended ([`prepared`],
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

//! State that all parts of an open database share.
//!
//! Many files: one for each shared part.
//!
//! Invariants
//!   - Nothing here calls code that writes, rolls back or purges rows: that code imports this
//!     folder. Only `parts` names its types, as [`parts::Core`] holds one of each.
//!   - Latches of this folder are taken before the gate is entered: unique-key latches first, then
//!     purge latches.

pub(crate) mod changed_tables;
pub(crate) mod counters;
pub(crate) mod deadlock_report;
pub(crate) mod deadlocks;
mod dropping;
pub(crate) mod for_people;
mod journal;
pub(crate) mod keys_in_use;
mod losses;
pub(crate) mod moment;
mod pace;
pub(crate) mod parts;
pub(crate) mod purge_latch;
pub(crate) mod refusals;
pub(crate) mod room;
mod sorting;
mod startup;
mod statistics_work;
mod transactions;
pub(crate) mod unique_keys;

pub(crate) use dropping::Dropping;
pub(crate) use journal::Journal;
pub(crate) use losses::Losses;
pub(crate) use pace::Pace;
pub(crate) use sorting::Sorting;
pub(crate) use startup::Startup;
pub(crate) use statistics_work::StatisticsWork;
pub(crate) use transactions::Transactions;

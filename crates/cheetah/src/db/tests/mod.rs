//! Whole databases in memory: what transactions, loads and garbage collection promise together.

mod building;
mod interval_gc;
mod keys;
mod listing;
mod load;
mod places;
mod rest;
mod rollback;
mod search;
mod snapshots;
mod version;
mod waits;

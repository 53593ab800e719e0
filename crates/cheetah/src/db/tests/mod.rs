//! Tests of complete databases in memory: guarantees of transactions, loads and garbage collection.

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

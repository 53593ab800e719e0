//! Planted bugs of the transactional part. The exploration of power cuts, or a full disk, must
//! catch each of them.

mod support;

use cheetah::testing::base::planted::plant;
use std::panic::{catch_unwind, AssertUnwindSafe};
use support::exploration::explore_seed;

/// The number of seeds after which a bug counts as not caught.
const SEEDS_MAX: u64 = 40;

/// Plants a bug and explores until a check fails.
fn caught(name: &'static str) {
    let bug = plant(name);
    let found = (1..=SEEDS_MAX).find_map(|seed| {
        let explored = catch_unwind(AssertUnwindSafe(|| explore_seed(seed, 40)));
        match explored {
            Ok(Ok(_)) => None,
            Ok(Err(failure)) => Some(format!("seed {seed}: {failure}")),
            Err(_) => Some(format!("seed {seed}: the workload met a contradiction")),
        }
    });
    assert!(bug.reached_count() > 0, "'{name}' was never reached");
    let found =
        found.unwrap_or_else(|| panic!("'{name}' was reached {} times, but not caught", bug.reached_count()));
    println!("'{name}' was caught: {found}");
}

#[test]
fn an_acknowledgement_before_the_log_is_durable_is_caught() {
    caught("txn: acknowledge before the log is durable");
}

#[test]
fn c5_a_step_rolled_back_without_being_logged_is_caught() {
    caught("txn: roll back without logging it");
}

#[test]
fn c5_an_abort_logged_before_the_steps_are_rolled_back_is_caught() {
    caught("txn: log ABORT before the UNDOs");
}

#[test]
fn c4_large_values_that_a_commit_leaves_behind_and_forgets_are_caught() {
    caught("txn: forget the large values left behind");
}

#[test]
fn c4_large_values_freed_before_it_is_noted_are_caught() {
    caught("txn: free large values before noting it");
}

#[test]
fn h1_row_records_without_secondary_keys_are_caught() {
    caught("table: log no secondary keys");
}

#[test]
fn h2_an_epoch_that_forgets_open_transactions_is_caught() {
    caught("checkpoint: forget open transactions");
}

#[test]
fn h2_an_epoch_that_forgets_the_row_counters_is_caught() {
    caught("checkpoint: forget the row counters");
}

#[test]
fn an_epoch_ahead_of_the_log_is_caught() {
    caught("checkpoint: commit ahead of the log");
}

#[test]
fn a_change_of_the_catalog_that_returns_too_early_is_caught() {
    caught("ddl: return before the log is durable");
}

#[test]
fn h3_a_rollback_that_needs_free_space_is_caught() {
    let bug = plant("txn: roll back only with space");
    let refused = support::full_disk::rollback_on_a_full_disk();
    assert!(bug.reached_count() > 0 && refused.is_err(), "{refused:?}");
}

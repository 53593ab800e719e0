//! Tests rules about row versions that break only if a checkpoint or a reader is stopped in the
//! middle (C2, C6).

use super::rollback::{env, is_as_committed, row_of, World};
use crate::base::planted::plant;
use crate::base::{Config, Result};
use crate::db::*;
use crate::format::page::RecordRef;
use crate::table::history::visible::{Found, View};
use cheetah_io::sim::CrashPolicy;

/// C2: a transaction is open at the epoch switch, and commits before its page is written. A power
/// cut follows before its COMMIT is durable. Returns whether its changes are invisible afterwards.
fn commit_between_epoch_switch_and_write() -> bool {
    let world = World::new();
    world.db.checkpoint().unwrap();
    let core = &world.db.0.core;
    let mut txn = world.db.begin();
    world.update(&mut txn, 7, 2).unwrap();
    // Sync the log here. The checkpoint makes the log durable up to the epoch switch, and then has
    // nothing to sync.
    core.journal.sync(core.journal.end()).unwrap();
    world.db.set_flush_log_at_commit(0);
    let mut txn = Some(txn);
    let mut commit = |pages_left: usize| {
        if let Some(mut txn) = txn.take() {
            assert!(pages_left > 0, "the leaf is not written yet: pages of the undo log come first");
            txn.commit().unwrap();
            core.forget_old_versions();
        }
    };
    core.checkpointer.checkpoint_in_steps(&**core, 1, &mut commit).unwrap();
    assert!(txn.is_none());
    let left = world.disk.crash(CrashPolicy::SyncedOnly, 1);
    let db = Db::open_early(env(&left), Config::tiny()).unwrap();
    is_as_committed(&db, &db.table("t").unwrap())
}

#[test]
fn c2_an_image_does_not_say_committed_of_what_its_epoch_has_as_open() {
    assert!(commit_between_epoch_switch_and_write());
    let bug = plant("pool: freeze what only the next epoch may");
    assert!(!commit_between_epoch_switch_and_write() && bug.reached_count() > 0);
}

/// C6: a reader has copied a row that a transaction changed. The transaction is rolled back and, as
/// far as possible, purged. Then the reader looks up the older version. Returns the version that
/// the reader finds.
fn look_at_a_copy_of_what_was_rolled_back() -> Result<Vec<u8>> {
    let world = World::new();
    while world.db.run_background().unwrap() {}
    let core = &world.db.0.core;
    let reader = core.transactions.versions.reader();
    reader.open();
    let mut txn = world.db.begin();
    world.update(&mut txn, 7, 2).unwrap();
    let key = 7u64.to_be_bytes();
    let copy = |record: RecordRef<'_>| (record.flags, record.version, record.payload.to_vec());
    let (flags, version, payload) = world.table.clustered().get(&key, copy).unwrap().unwrap();
    assert_eq!(payload, row_of(7, 2));
    txn.rollback().unwrap();
    // Append more undo records, so that the undo log continues in other pages.
    for number in 3..6 {
        (0..100).for_each(|key| world.update(&mut txn, key, number).unwrap());
        txn.commit().unwrap();
    }
    while world.db.run_background().unwrap() {}
    let view = View { core, table: &world.table, reader: &reader, own: None };
    let mut older = Vec::new();
    let found = view.row_version(&key, RecordRef { flags, version, payload: &payload }, &mut older)?;
    assert_eq!(found, Found::Older);
    Ok(older)
}

#[test]
fn c6_undo_records_that_a_copy_leads_to_stay_though_they_were_rolled_back() {
    assert_eq!(look_at_a_copy_of_what_was_rolled_back().unwrap(), row_of(7, 1));
    let bug = plant("purge: do not look at snapshots");
    assert!(look_at_a_copy_of_what_was_rolled_back().is_err() && bug.reached_count() > 0);
}

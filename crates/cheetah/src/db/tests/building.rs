//! Tests an index build that starts at the moment when a transaction ends.

use super::rollback::World;
use crate::base::planted::plant;
use crate::base::Result;
use crate::format::row::RowFormatVersion;
use crate::table::{BuiltEntries, IndexSpec};

/// A transaction has ended and every snapshot sees it, but for a moment it is still listed as open.
/// At that moment an index build begins. The transaction's undo records are purged, and their pages
/// freed, before the build has caught up.
fn build_beside_one_that_has_just_ended() -> Result<()> {
    let world = World::new();
    let active = &world.db.0.core.transactions.active;
    let mut txn = world.db.begin();
    world.update(&mut txn, 7, 2).unwrap();
    let slots = active.slots();
    let [slot] = slots.as_slice() else { panic!("one transaction is open: {slots:?}") };
    let first = slot.state().first;
    txn.commit().unwrap();
    // Fill more undo pages, so that purge does not stop in the transaction's page.
    for number in 3..6 {
        (0..100).for_each(|key| world.update(&mut txn, key, number).unwrap());
        txn.commit().unwrap();
    }
    active.get_or_start(slot.txn()).state().first = first;
    let spec = IndexSpec {
        name: "number".into(),
        unique: false,
        max_key_bytes: 8,
        row_format: RowFormatVersion::opaque(),
    };
    let mut ddl = world.db.begin();
    let mut build = ddl.begin_build(&world.table, &[spec], false).unwrap();
    active.finish(slot.txn());
    while world.db.run_background().unwrap() {}
    let mut entries_of = |_: &[u8], row: &[u8], entries: &mut BuiltEntries| {
        entries.add(1, row, b"", false);
        Ok(())
    };
    ddl.run_build(&mut build, &mut entries_of, &|_, _| ())?;
    ddl.finish_build(&mut build, &mut entries_of)
}

#[test]
fn an_index_asks_for_no_records_of_those_that_had_ended_when_it_began() {
    build_beside_one_that_has_just_ended().unwrap();
    let bug = plant("build: take who had ended for open");
    assert!(build_beside_one_that_has_just_ended().is_err() && bug.reached_count() > 0);
}

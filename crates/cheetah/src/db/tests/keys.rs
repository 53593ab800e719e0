//! Tests the moment when the log begins to be encrypted.

use super::rollback::World;
use crate::base::planted::plant;
use crate::base::Error;
use crate::format::encryption::Key;
use cheetah_io::sim::{Effect, Fault, Op};
use std::io::ErrorKind;
use std::sync::Arc;

/// Turns on log encryption while a reserve file that is not encrypted is ready. Then commits
/// transactions whose log frames need that file. No other block of the disk is free. Returns the
/// number of transactions that commit, and the error that stops the engine, if any.
fn commits_on_a_full_disk() -> (u64, Option<Error>) {
    let world = World::new();
    let mut txn = world.db.begin();
    let mut change = |number| {
        let changed = (0..100).try_for_each(|key| world.update(&mut txn, key, number));
        changed.and_then(|()| txn.commit())
    };
    (2..40).for_each(|number| change(number).unwrap());
    world.db.checkpoint().unwrap();
    let core = &world.db.0.core;
    let keys = core.pool.keys();
    keys.serve(Arc::new(Key::new(1, 1, vec![7; 32].into(), keys.database())));
    keys.set_closes_log(true);
    let full = Effect::Fail(ErrorKind::StorageFull);
    world.disk.inject(Fault::on(Op::Allocate).path("wal/").forever().effect(full));
    let commits = (40..60).take_while(|number| change(*number).is_ok()).count();
    (commits as u64, core.health.check().err())
}

#[test]
fn e6_a_plain_log_file_that_is_ready_is_emptied_on_a_full_disk_too() {
    let (commits, stop) = commits_on_a_full_disk();
    assert!(commits > 0 && stop.is_none(), "{commits} commits, {stop:?}");
    let _bug = plant("encryption: give up the blocks of a plain log file");
    assert!(commits_on_a_full_disk().1.is_some());
}

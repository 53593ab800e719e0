//! Tests of interleavings that were or could be wrong. Each test names the possible loss.

use crate::base::{planted, statement_threads, Config, Error, PageId, TreeId};
use crate::format::page::{build_content, PageKind};
use crate::memory::MemoryUse;
use crate::pool::testing::{get, put, value_in, Database, TREE};
use crate::pool::writing::HandOver;
use crate::pool::{EpochState, PageClass};
use cheetah_io::sim::{CrashPolicy, Fault, Op};
use std::collections::HashSet;

fn database() -> Database {
    Database::new(&Config::tiny())
}

fn after_power_cut(db: Database) -> Database {
    let disk = db.disk.crash(CrashPolicy::SyncedOnly, 1);
    db.crash(disk)
}

#[test]
fn a_page_keeps_what_was_written_and_its_version_moves() {
    let db = database();
    let mtr = db.pool.enter();
    let page = db.pool.allocate(&mtr, TREE, PageClass::Wide);
    let before = page.version();
    put(&page, &mtr, 42);
    drop(mtr);
    assert_ne!(page.version(), before);
    assert_eq!(db.value(page.pid()), Some(42));
    assert_eq!(page.read().len(), 1024);
    assert_eq!(db.pool.tree_bytes(TREE).pages, 1);
}

#[test]
fn looking_through_a_write_guard_is_no_change() {
    let db = database();
    let pid = db.add(PageClass::Base, 7);
    db.checkpoint().unwrap();
    let page = db.pool.fetch(pid).unwrap().unwrap();
    let before = page.version();
    let mtr = db.pool.enter();
    assert_eq!(value_in(&page.write(&mtr)), 7);
    assert_eq!((page.version(), db.pool.dirty_count()), (before, 0));
}

#[test]
fn a_freed_page_is_gone_but_old_references_still_read_it() {
    let db = database();
    let pid = db.add(PageClass::Base, 1);
    let page = db.pool.fetch(pid).unwrap().unwrap();
    db.free(pid);
    assert_eq!(db.value(pid), None);
    assert!(page.is_freed());
    assert_eq!(get(&page), 1);
    assert_ne!(db.add(PageClass::Base, 2), pid);
}

/// An evicting thread may drop its reference to a page after the page is marked as freed and before
/// the freeing ends.
#[test]
fn a_freed_page_that_the_evictor_has_let_go_of_is_read_by_the_last_reference_and_then_gives_its_memory_back()
{
    let db = database();
    let pid = db.add(PageClass::Base, 1);
    let page = db.pool.fetch(pid).unwrap().unwrap();
    let candidate = std::iter::repeat_with(|| db.pool.queues.candidate()).flatten().next();
    assert_eq!(candidate.map(|candidate| candidate.frame.pid), Some(pid));
    db.free(pid);
    assert_eq!(get(&page), 1);
    let before = db.pool.buffers.in_use();
    drop(page);
    assert_eq!(before - db.pool.buffers.in_use(), 512);
}

#[test]
fn a_number_that_never_was_a_page_is_corruption() {
    let db = database();
    db.add(PageClass::Base, 1);
    for number in [0, 77, 5000, 1 << 36, PageId::MAX.0, u64::MAX] {
        assert!(matches!(db.pool.fetch(PageId(number)), Err(Error::Corruption { .. })), "{number}");
    }
}

#[test]
fn many_times_more_pages_than_frames_work() {
    let db = database();
    let frames = db.pool.memory().frames_limit() / 512;
    let mut pids = Vec::new();
    for value in 0..50 * frames as u64 {
        db.pool.make_room(1).unwrap();
        pids.push(db.add(PageClass::Base, value));
    }
    for (value, pid) in pids.iter().enumerate() {
        assert_eq!(db.value(*pid), Some(value as u64));
    }
    let used = db.pool.memory().used(MemoryUse::Frames);
    assert!(used <= db.pool.memory().frames_limit() + 4096, "{used}");
}

/// C1: without this rule the moved old image of P would replace the new image in the map, and P
/// would lose its changes of g.
fn gc_between_epoch_switch_and_write() -> Result<(), String> {
    let db = database();
    let pids: Vec<_> = (0..200).map(|value| db.add(PageClass::Base, value)).collect();
    db.checkpoint().unwrap();
    pids[10..].iter().for_each(|pid| db.free(*pid));
    db.checkpoint().unwrap();
    db.checkpoint().unwrap();
    pids[..10].iter().for_each(|pid| db.change(*pid, 1000));
    let pool = db.pool.clone();
    let (checkpoint, ()) = pool.end_epoch(|_| ());
    while db.upkeep.collect(1 << 20).unwrap() > 0 {}
    let committed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        checkpoint.commit(&db.map, &EpochState::default()).unwrap();
    }));
    committed.map_err(|_| "the commit refused".to_owned())?;
    db.checkpoint().unwrap();
    let again = after_power_cut(db);
    match pids[..10].iter().find(|pid| again.value(**pid) != Some(1000)) {
        None => Ok(()),
        Some(pid) => Err(format!("page {pid} has lost its changes")),
    }
}

#[test]
fn c1_a_page_with_unwritten_changes_is_not_moved() {
    assert_eq!(gc_between_epoch_switch_and_write(), Ok(()));
    let _bug = planted::plant("pool: move a page with unwritten changes");
    assert!(gc_between_epoch_switch_and_write().is_err());
}

/// W2: P is dirty in g, and changed in g+1 before the checkpoint has written it.
fn change_between_epoch_switch_and_write() -> Option<u64> {
    let db = database();
    let pid = db.add(PageClass::Base, 1);
    db.checkpoint().unwrap();
    db.change(pid, 2);
    let pool = db.pool.clone();
    let (checkpoint, ()) = pool.end_epoch(|_| ());
    db.change(pid, 3);
    checkpoint.commit(&db.map, &EpochState::default()).unwrap();
    assert_eq!(db.value(pid), Some(3));
    after_power_cut(db).value(pid)
}

#[test]
fn a_page_is_flushed_before_it_changes_in_the_next_epoch() {
    assert_eq!(change_between_epoch_switch_and_write(), Some(2));
    let _bug = planted::plant("pool: skip flush before modify");
    assert_ne!(change_between_epoch_switch_and_write(), Some(2));
}

/// C6: a page that is dirty in g and freed in g+1 is part of g.
fn free_between_epoch_switch_and_write() -> Option<u64> {
    let db = database();
    let pid = db.add(PageClass::Base, 1);
    let pool = db.pool.clone();
    let (checkpoint, ()) = pool.end_epoch(|_| ());
    db.free(pid);
    checkpoint.commit(&db.map, &EpochState::default()).unwrap();
    assert_eq!(db.value(pid), None);
    let again = after_power_cut(db);
    again.pool.fetch(pid).ok().flatten().map(|page| get(&page))
}

#[test]
fn c6_a_page_is_flushed_before_it_is_freed_in_the_next_epoch() {
    assert_eq!(free_between_epoch_switch_and_write(), Some(1));
    let _bug = planted::plant("pool: skip flush before free");
    assert_ne!(free_between_epoch_switch_and_write(), Some(1));
}

/// C4: a number freed in g+1 while g is written must not be reused when g commits.
fn reuse_after_commit_of_the_epoch_before() -> bool {
    let db = database();
    let pid = db.add(PageClass::Base, 1);
    db.checkpoint().unwrap();
    let pool = db.pool.clone();
    let (checkpoint, ()) = pool.end_epoch(|_| ());
    db.free(pid);
    checkpoint.commit(&db.map, &EpochState::default()).unwrap();
    let reused_early = db.add(PageClass::Base, 2) == pid;
    db.checkpoint().unwrap();
    assert!(reused_early || db.add(PageClass::Base, 3) == pid, "the number is finally reused");
    reused_early
}

#[test]
fn c4_a_freed_number_waits_for_its_own_epoch() {
    assert!(!reuse_after_commit_of_the_epoch_before());
    let _bug = planted::plant("pool: reuse a page number at once");
    assert!(reuse_after_commit_of_the_epoch_before());
}

/// C3: pages are written for g, and then for g+1 before g commits. Later maps do not name their
/// images of g, but the committing map does. Returns the number of pages of g that are lost after a
/// crash that preserves the unlinks.
fn replace_images_while_they_are_committed() -> usize {
    let db = database();
    let pids: Vec<_> = (0..300).map(|_| db.add(PageClass::Base, 1)).collect();
    let pool = db.pool.clone();
    let (mut checkpoint, ()) = pool.end_epoch(|_| ());
    while checkpoint.write_some(usize::MAX).unwrap() > 0 {}
    for pid in &pids {
        db.pool.make_room(1).unwrap();
        db.change(*pid, 2);
    }
    db.pool.make_room(100).unwrap();
    checkpoint.commit(&db.map, &EpochState::default()).unwrap();
    let disk = db.disk.crash(CrashPolicy::Everything, 1);
    let again = db.crash(disk);
    let value = |pid: &PageId| again.pool.fetch(*pid).ok().flatten().map(|page| get(&page));
    pids.iter().filter(|pid| value(pid) != Some(1)).count()
}

#[test]
fn c3_images_that_only_the_committing_epoch_names_stay() {
    assert_eq!(replace_images_while_they_are_committed(), 0);
    let _bug = planted::plant("segment: unlink an epoch too early");
    assert!(replace_images_while_they_are_committed() > 0);
}

/// While g is written, a page of g is evicted, changed in g+1, and evicted again.
#[test]
fn images_of_two_epochs_of_a_page_do_not_mix() {
    let db = database();
    let pid = db.add(PageClass::Base, 1);
    let pool = db.pool.clone();
    let (checkpoint, ()) = pool.end_epoch(|_| ());
    // More pages than fit in memory: each page is evicted.
    let all = db.pool.memory().limit() / db.pool.page_bytes() as usize;
    db.pool.make_room(all).unwrap();
    db.change(pid, 2);
    db.pool.make_room(all).unwrap();
    assert!(db.pool.counters.evictions.get() >= 2, "the page was not evicted");
    assert_eq!(db.value(pid), Some(2));
    checkpoint.commit(&db.map, &EpochState::default()).unwrap();
    assert_eq!(db.value(pid), Some(2));
    assert_eq!(after_power_cut(db).value(pid), Some(1));
}

/// The cleaner checks every dirty page, even between the allocation and the building of a new page.
#[test]
fn a_page_that_is_allocated_but_not_built_yet_is_not_written() {
    let db = database();
    let mtr = db.pool.enter();
    let page = db.pool.allocate(&mtr, TREE, PageClass::Base);
    let frame = db.pool.table.entry(page.pid()).frame().cloned().unwrap();
    assert!(!db.pool.try_write_out(&frame).unwrap());
    put(&page, &mtr, 7);
    drop(mtr);
    assert!(db.pool.try_write_out(&frame).unwrap());
    db.checkpoint().unwrap();
    assert_eq!(after_power_cut(db).value(frame.pid), Some(7));
}

/// The number of pages written until a checkpoint is requested.
fn moves_until_a_checkpoint() -> Option<u64> {
    let db = database();
    let asked_after = (0..20_000).find(|count| {
        db.pool.make_room(1).unwrap();
        db.add(PageClass::Base, *count);
        db.pool.remembers_too_much()
    });
    db.checkpoint().unwrap();
    assert!(!db.pool.remembers_too_much());
    asked_after
}

#[test]
fn many_moved_pages_ask_for_a_checkpoint() {
    let count = moves_until_a_checkpoint().expect("1 MiB is not enough for so many");
    assert!(count > 5_000, "{count}");
    let _bug = planted::plant("pool: remember moves without end");
    assert_eq!(moves_until_a_checkpoint(), None);
}

fn abandoned_and_repeated() -> Vec<Option<u64>> {
    let db = database();
    let written = db.add(PageClass::Base, 1);
    let unwritten = db.add(PageClass::Base, 2);
    let changed = db.add(PageClass::Base, 3);
    let freed = db.add(PageClass::Base, 4);
    let pool = db.pool.clone();
    let (checkpoint, ()) = pool.end_epoch(|_| ());
    let frame = db.pool.table.entry(written).frame().cloned().unwrap();
    db.pool.write_out(&frame).unwrap();
    db.change(changed, 30);
    db.free(freed);
    drop(checkpoint);
    assert_eq!(db.pool.tree_bytes(TREE).pages, 3);
    db.checkpoint().unwrap();
    let again = after_power_cut(db);
    [written, unwritten, changed, freed]
        .map(|pid| again.pool.fetch(pid).ok().flatten().map(|page| get(&page)))
        .to_vec()
}

#[test]
fn an_abandoned_checkpoint_goes_into_the_next_one() {
    assert_eq!(abandoned_and_repeated(), [Some(1), Some(2), Some(30), None]);
    let _bug = planted::plant("pool: forget the moves of an abandoned checkpoint");
    assert_ne!(abandoned_and_repeated(), [Some(1), Some(2), Some(30), None]);
}

#[test]
fn a_capture_that_fails_gives_the_checkpoint_up_and_loses_nothing() {
    let db = database();
    let pids: Vec<_> = (0..20).map(|value| db.add(PageClass::Large, value)).collect();
    let pool = db.pool.clone();
    let (checkpoint, ()) = pool.end_epoch(|_| ());
    db.disk.set_space(Some(db.disk.used_bytes()));
    for (i, pid) in pids.iter().enumerate() {
        db.change(*pid, 100 + i as u64);
    }
    let error = checkpoint.commit(&db.map, &EpochState::default()).unwrap_err();
    assert!(matches!(error, Error::DiskFull(_)), "{error}");
    db.disk.set_space(None);
    db.checkpoint().unwrap();
    let again = after_power_cut(db);
    for (i, pid) in pids.iter().enumerate() {
        assert_eq!(again.value(*pid), Some(100 + i as u64));
    }
}

/// The pages of recent large values wait, so that short-lived values are never written.
#[test]
fn pages_of_large_values_are_written_unless_they_go_soon() {
    let db = Database::new(&Config { buffer_pool_bytes: 1 << 20, ..Config::tiny() });
    let written = || db.pool.counters.writes.get() + db.pool.counters.blob_writes.get();
    let add = |value| {
        let pid = db.add(PageClass::Base, value);
        db.pool.note_value([pid].into_iter());
        pid
    };
    for value in 0..1000 {
        db.free(add(value));
        db.pool.clean_step().unwrap();
    }
    assert_eq!(written(), 0);
    let pids: Vec<_> = (0..200).map(add).collect();
    db.pool.trial(TREE).finish().unwrap();
    db.pool.clean_step().unwrap();
    assert!((100..200).contains(&written()), "{} of 200", written());
    let clean = |pid: &&PageId| db.pool.table.entry(**pid).location().is_some();
    assert_eq!(pids.iter().take_while(clean).count() as u64, written(), "the oldest pages");
    db.checkpoint().unwrap();
    assert_eq!(written(), 200);
}

/// Pages of a load are not changed, and not freed one by one.
#[test]
fn pages_of_a_load_are_written_at_once() {
    let db = Database::new(&Config { buffer_pool_bytes: 1 << 20, ..Config::tiny() });
    let pids: Vec<_> = (0..300).map(|value| db.add(PageClass::Base, value)).collect();
    db.pool.trial(TREE).finish().unwrap();
    db.pool.note_finished(pids.iter().copied());
    db.pool.clean_step().unwrap();
    db.pool.clean_step().unwrap();
    assert_eq!(db.pool.counters.writes.get() + db.pool.counters.blob_writes.get(), 300);
}

/// Pages of other trees may change again, and would be written twice.
#[test]
fn pages_of_one_tree_are_written_beside_other_work() {
    let db = Database::new(&Config { buffer_pool_bytes: 4 << 20, ..Config::tiny() });
    let pids: Vec<_> = (0..200).map(|value| db.add(PageClass::Base, value)).collect();
    let other = {
        let mtr = db.pool.enter();
        let tree = TreeId(TREE.0 + 1);
        let page = db.pool.allocate(&mtr, tree, PageClass::Base);
        build_content(&mut page.write(&mtr), PageKind::Undo, tree, PageId::NONE, 0);
        page.pid()
    };
    let is_written = |pid: &PageId| db.pool.table.entry(*pid).location().is_some();
    let work = || {
        let start = std::time::Instant::now();
        while statement_threads() > 1 && !pids.iter().all(is_written) && start.elapsed().as_secs() < 60 {
            std::thread::yield_now();
        }
        assert!(statement_threads() == 1 || pids.iter().all(is_written));
        Ok(7)
    };
    assert_eq!(db.pool.write_beside(TREE, work).unwrap(), 7);
    assert!(!is_written(&other));
    let failed = db.pool.write_beside(TREE, || Err::<(), _>(Error::Interrupted));
    assert!(matches!(failed, Err(Error::Interrupted)));
    db.checkpoint().unwrap();
    let db = after_power_cut(db);
    pids.iter().zip(0..).for_each(|(pid, value)| assert_eq!(db.value(*pid), Some(value)));
}

/// Pages that were written before an error are not written again.
#[test]
fn several_threads_share_the_pages_of_a_checkpoint_and_its_errors() {
    let db = Database::new(&Config { buffer_pool_bytes: 4 << 20, ..Config::tiny() });
    let pids: Vec<_> = (0..2000).map(|value| db.add(PageClass::Base, value)).collect();
    db.disk.set_space(Some(db.disk.used_bytes() + (200 << 10)));
    let error = db.checkpoint_with(3).unwrap_err();
    assert!(matches!(error, Error::DiskFull(_)), "{error}");
    db.disk.set_space(None);
    let before = db.pool.counters.writes.get() + db.pool.counters.blob_writes.get();
    db.checkpoint_with(3).unwrap();
    let written = db.pool.counters.writes.get() + db.pool.counters.blob_writes.get() - before;
    assert!(written < 2000 && before + written <= 2003, "{before}, then {written}");
    let again = after_power_cut(db);
    pids.iter().zip(0..).for_each(|(pid, value)| assert_eq!(again.value(*pid), Some(value)));
}

#[test]
fn a_damaged_image_quarantines_its_page_and_nothing_else() {
    let db = database();
    let pids: Vec<_> = (0..4).map(|value| db.add(PageClass::Base, value)).collect();
    db.checkpoint().unwrap();
    let location = db.pool.table.entry(pids[2]).location().unwrap();
    let again = after_power_cut(db);
    again.disk.flip(&format!("seg/{:08}.seg", location.segment.0), location.offset as u64 + 50, 3).unwrap();
    let error = again.pool.fetch(pids[2]).unwrap_err().to_string();
    assert!(error.contains(&format!("page {} of tree 16 in segment", pids[2])), "{error}");
    assert!(again.pool.fetch(pids[2]).is_err(), "the second read fails, too");
    assert!(again.pool.check_image(pids[2]).is_err() && again.pool.check_image(pids[1]).is_ok());
    for i in [0, 1, 3] {
        assert_eq!(again.value(pids[i]), Some(i as u64));
    }
}

#[test]
fn a_read_that_fails_can_be_repeated() {
    let db = database();
    let pid = db.add(PageClass::Base, 5);
    db.checkpoint().unwrap();
    let again = after_power_cut(db);
    again.disk.inject(Fault::on(Op::Read));
    assert!(matches!(again.pool.fetch(pid), Err(Error::Io { .. })));
    assert_eq!(again.value(pid), Some(5));
}

#[test]
fn trees_are_freed_by_owner_in_one_walk_of_small_steps() {
    let db = database();
    let (other, kept) = (TreeId(TREE.0 + 1), TreeId(TREE.0 + 2));
    let trees = HashSet::from([TREE, other]);
    let add = |number: u64| {
        let mtr = db.pool.enter();
        let page = db.pool.allocate(&mtr, [TREE, other, kept][number as usize % 3], PageClass::Base);
        put(&page, &mtr, number);
        page.pid()
    };
    let pids: Vec<_> = (0..450).map(add).collect();
    db.checkpoint().unwrap();
    let mut from = PageId::NONE;
    let mut steps = 0;
    while let Some(next) = db.pool.free_trees_step(&trees, from, 100).unwrap() {
        (from, steps) = (next, steps + 1);
    }
    assert_eq!(steps, 2, "the third step finds the last page");
    assert_eq!((db.pool.tree_bytes(TREE), db.pool.tree_bytes(other)), Default::default());
    let left = |number: usize| (number % 3 == 2).then_some(number as u64);
    assert!(pids.iter().enumerate().all(|(number, pid)| db.value(*pid) == left(number)));
    db.checkpoint().unwrap();
    assert_eq!(db.pool.pages_of(&trees, PageId::NONE, 1), (vec![], None));
}

#[test]
fn a_small_tree_is_freed_in_one_step_however_many_pages_others_have() {
    let db = database();
    let (other, trees) = (TreeId(TREE.0 + 1), HashSet::from([TREE]));
    let add = |tree: TreeId| db.pool.allocate(&db.pool.enter(), tree, PageClass::Base).pid();
    (0..60_000).for_each(|_| {
        add(other);
    });
    let pids = [add(TREE), add(TREE)];
    (0..60_000).for_each(|_| {
        add(other);
    });
    assert_eq!(db.pool.pages_of(&trees, PageId::NONE, 10), (pids.to_vec(), None));
    let (found, next) = db.pool.pages_of(&trees, PageId::NONE, 1);
    assert_eq!((found.as_slice(), next), (&pids[..1], Some(pids[1])));
    let from = next.unwrap();
    assert_eq!(db.pool.free_trees_step(&trees, from, 10).unwrap(), None, "the last page");
    assert_eq!(db.pool.tree_bytes(TREE).pages, 1);
    assert_eq!(db.pool.free_trees_step(&trees, PageId::NONE, 10).unwrap(), None);
    assert_eq!(db.pool.tree_bytes(TREE).pages, 0);
}

#[test]
fn collection_gives_space_back_to_the_file_system() {
    let db = database();
    let pids: Vec<_> = (0..2000).map(|value| db.add(PageClass::Base, value)).collect();
    db.checkpoint().unwrap();
    let full = db.pool.segments.totals().file_bytes;
    for pid in pids.iter().filter(|pid| pid.0 % 8 != 0) {
        db.free(*pid);
    }
    for _ in 0..200 {
        db.upkeep.collect(1 << 20).unwrap();
        db.checkpoint().unwrap();
    }
    let totals = db.pool.segments.totals();
    assert!(totals.file_bytes < full / 4, "{full} bytes before, now {totals:?}");
    for (value, pid) in pids.iter().enumerate().filter(|(_, pid)| pid.0 % 8 == 0) {
        assert_eq!(db.value(*pid), Some(value as u64));
    }
}

#[test]
fn a_database_at_rest_shrinks_by_itself_and_then_stays_quiet() {
    let db = database();
    let pids: Vec<_> = (0..300).map(|value| db.add(PageClass::Base, value)).collect();
    db.checkpoint().unwrap();
    pids[..290].iter().for_each(|pid| db.free(*pid));
    db.checkpoint().unwrap();
    let mut now_ns = 0;
    let mut checkpoints = 0;
    for _ in 0..100 {
        now_ns += 1_000_000_000;
        db.upkeep.gc_step(now_ns, 2000).unwrap();
        if db.upkeep.gains_by_checkpoint() {
            db.checkpoint().unwrap();
            checkpoints += 1;
        }
    }
    let totals = db.pool.segments.totals();
    assert!(totals.collectable_fill() >= 900, "{totals:?}");
    assert!(checkpoints < 20, "{checkpoints} checkpoints");
    assert!(!db.upkeep.gains_by_checkpoint());
    pids[290..].iter().for_each(|pid| assert!(db.value(*pid).is_some()));
}

#[test]
fn a_scan_does_not_push_out_what_is_used() {
    let db = database();
    let frames = db.pool.memory().frames_limit() / 512;
    let pids: Vec<_> = (0..10 * frames as u64)
        .map(|value| {
            db.pool.make_room(1).unwrap();
            db.add(PageClass::Base, value)
        })
        .collect();
    db.checkpoint().unwrap();
    let hot = &pids[..frames / 2];
    for _ in 0..4 {
        hot.iter().for_each(|pid| assert!(db.value(*pid).is_some()));
    }
    for pid in &pids {
        db.pool.fetch_for_scan(*pid).unwrap().unwrap();
    }
    let reads = db.pool.counters.reads.get();
    hot.iter().for_each(|pid| assert!(db.value(*pid).is_some()));
    let missed = db.pool.counters.reads.get() - reads;
    assert!(missed <= hot.len() as u64 / 4, "{missed} of {} were evicted", hot.len());
}

#[test]
fn dirty_pages_count_with_their_size() {
    let db = Database::new(&Config::tiny());
    let [base, wide, large] = [PageClass::Base, PageClass::Wide, PageClass::Large];
    let pids = [base, wide, large].map(|class| db.add(class, 3));
    let bytes = |class: PageClass| class.bytes(db.pool.page_bytes);
    assert_eq!(db.pool.dirty_bytes(), bytes(base) + bytes(wide) + bytes(large));
    db.checkpoint().unwrap();
    assert_eq!(db.pool.dirty_bytes(), 0);
    db.change(pids[2], 4);
    assert_eq!(db.pool.dirty_bytes(), bytes(large));
    db.free(pids[2]);
    assert_eq!(db.pool.dirty_bytes(), 0);
}

/// The limit rises and falls, and the frames follow within some steps of the cleaner.
#[test]
fn memory_follows_a_limit_that_changes() {
    let db = Database::new(&Config { buffer_pool_bytes: 1 << 20, ..Config::tiny() });
    let pids: Vec<_> = (0..4000)
        .map(|value| {
            db.pool.make_room(1).unwrap();
            db.add(PageClass::Base, value)
        })
        .collect();
    db.checkpoint().unwrap();
    let check = || {
        for (value, pid) in pids.iter().enumerate() {
            assert_eq!(db.value(*pid), Some(value as u64));
        }
        for _ in 0..50 {
            db.pool.clean_step().unwrap();
        }
        let frames_bytes = db.pool.buffers.in_use();
        assert!(frames_bytes <= db.pool.memory.frames_limit());
        frames_bytes
    };
    let at_start = check();
    assert_eq!(db.pool.set_memory_bytes(8 << 20), 8 << 20);
    let with_more = check();
    assert!(with_more >= 4000 * 512, "{with_more}: all pages are in memory");
    assert_eq!(db.pool.set_memory_bytes(1 << 20), 1 << 20);
    assert!(check() <= at_start);
    db.pool.set_memory_bytes(4 << 20);
    check();
    pids.iter().for_each(|pid| db.free(*pid));
    db.pool.set_memory_bytes(1 << 20);
    db.pool.clean_step().unwrap();
    let idle_bytes = db.pool.memory.used(MemoryUse::Frames) - db.pool.buffers.in_use();
    assert!(idle_bytes < 1 << 20, "{idle_bytes}: unused buffers are freed at once");
    let least = Config::buffer_pool_bytes_min(512);
    assert_eq!(db.pool.set_memory_bytes(1), least, "the minimum");
}

/// Dirties all pages of a pool that is nearly full, without using any of them twice, and runs one
/// step of the cleaner. Returns the positions of the written pages in the order of eviction, and
/// the number of pages.
fn written_of_a_dirty_pool() -> (Vec<usize>, usize) {
    let db = Database::new(&Config { buffer_pool_bytes: 1 << 20, ..Config::tiny() });
    // The memory of the first checkpoint is allocated before the pool is filled.
    let mut pids: Vec<_> = (0..20).map(|value| db.add(PageClass::Base, value)).collect();
    db.pool.trial(TREE).finish().unwrap();
    db.checkpoint().unwrap();
    db.pool.count_memory();
    while db.pool.buffers.in_use() * 20 < db.pool.memory().frames_limit() * 19 {
        pids.push(db.add(PageClass::Base, pids.len() as u64));
        db.pool.count_memory();
    }
    db.pool.clean_step().unwrap();
    let is_written = |at: &usize| db.pool.table.entry(pids[*at]).location().is_some();
    ((20..pids.len()).filter(is_written).collect(), pids.len())
}

#[test]
fn the_cleaner_writes_only_pages_that_are_evicted_next() {
    let (written, count) = written_of_a_dirty_pool();
    assert!(!written.is_empty() && written.iter().all(|at| *at <= count / 8), "{written:?} of {count}");
    let _bug = planted::plant("cleaner: write any dirty page");
    let (written, count) = written_of_a_dirty_pool();
    assert!(written.iter().any(|at| *at > count / 8), "{written:?} of {count}");
}

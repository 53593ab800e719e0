//! Tests each rule of the simulated disk's fault model: F1 to F5 in the head of `sim`, and the
//! other faults.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use cheetah_io::sim::{is_power_cut, CrashPolicy, Effect, Fault, Op, SimDisk};
use cheetah_io::{Disk, File, ReadRequest};
use std::io::ErrorKind;
use std::sync::Arc;

/// A disk with a durable file `a` of 2048 bytes of `1`.
fn disk() -> (SimDisk, Arc<dyn File>) {
    let disk = SimDisk::new();
    let file = disk.create("a").unwrap();
    file.write_at(0, &[1; 2048]).unwrap();
    file.sync_data().unwrap();
    disk.sync_dir("").unwrap();
    (disk, file)
}

fn after(disk: &SimDisk, policy: CrashPolicy, seed: u64) -> Option<Vec<u8>> {
    disk.crash(policy, seed).contents("a").ok()
}

#[test]
fn synced_bytes_survive_and_unsynced_ones_may_not() {
    let (disk, file) = disk();
    file.write_at(100, b"new").unwrap();
    assert_eq!(after(&disk, CrashPolicy::SyncedOnly, 0).unwrap(), [1; 2048]);
    assert_eq!(after(&disk, CrashPolicy::Everything, 0).unwrap()[100..103], *b"new");
    file.sync_data().unwrap();
    assert_eq!(after(&disk, CrashPolicy::SyncedOnly, 0).unwrap()[100..103], *b"new");
}

#[test]
fn sectors_of_one_write_survive_independently() {
    let (disk, file) = disk();
    file.write_at(256, &[2; 1024]).unwrap();
    assert_eq!(disk.crash_units(), 3);
    let mut seen = std::collections::BTreeSet::new();
    for mask in 0..8 {
        let bytes = after(&disk, CrashPolicy::Subset(mask), 0).unwrap();
        for (sector, range) in [256..512, 512..1024, 1024..1280].into_iter().enumerate() {
            let expected = if mask >> sector & 1 == 1 { 2 } else { 1 };
            assert!(bytes[range].iter().all(|b| *b == expected));
        }
        seen.insert(bytes);
    }
    assert_eq!(seen.len(), 8);
    let alone = after(&disk, CrashPolicy::OneWriteAlone(1), 0).unwrap();
    assert_eq!((alone[300], alone[600], alone[1100]), (1, 2, 1));
    let but = after(&disk, CrashPolicy::AllButOne(1), 0).unwrap();
    assert_eq!((but[300], but[600], but[1100]), (2, 1, 2));
}

#[test]
fn the_length_is_an_outcome_of_its_own() {
    let (disk, file) = disk();
    file.write_at(2048, &[2; 2048]).unwrap();
    let lengths: std::collections::BTreeSet<usize> =
        (0..200).map(|seed| after(&disk, CrashPolicy::Random(0.5), seed).unwrap().len()).collect();
    assert!(lengths.contains(&2048) && lengths.contains(&4096) && lengths.contains(&3072), "{lengths:?}");
    // The units are four sectors and the length. Without the sectors, the length leaves zeros.
    // Without the length, the sectors leave nothing.
    assert_eq!(disk.crash_units(), 5);
    let length_alone = after(&disk, CrashPolicy::Subset(0b10000), 0).unwrap();
    assert_eq!((length_alone.len(), length_alone[3000]), (4096, 0));
    assert_eq!(after(&disk, CrashPolicy::Subset(0b01111), 0).unwrap().len(), 2048);
}

#[test]
fn a_lost_truncation_keeps_the_old_bytes() {
    let (disk, file) = disk();
    file.set_len(1000).unwrap();
    file.set_len(2048).unwrap();
    assert_eq!(after(&disk, CrashPolicy::SyncedOnly, 0).unwrap(), [1; 2048]);
    assert_eq!(after(&disk, CrashPolicy::Everything, 0).unwrap()[1000..], [0; 1048]);
}

#[test]
fn a_name_is_durable_only_after_its_directory_is_synced() {
    let disk = SimDisk::new();
    let file = disk.create("a").unwrap();
    file.write_at(0, b"x").unwrap();
    file.sync_data().unwrap();
    assert_eq!(after(&disk, CrashPolicy::SyncedOnly, 0), None);
    disk.sync_dir("").unwrap();
    assert_eq!(after(&disk, CrashPolicy::SyncedOnly, 0).unwrap(), b"x");

    disk.rename("a", "b").unwrap();
    let image = disk.crash(CrashPolicy::SyncedOnly, 0);
    assert_eq!(image.paths(), ["a"]);
    assert_eq!(disk.crash(CrashPolicy::Everything, 0).paths(), ["b"]);
    disk.sync_dir("").unwrap();
    disk.unlink("b").unwrap();
    assert_eq!(disk.crash(CrashPolicy::SyncedOnly, 0).paths(), ["b"]);
    disk.sync_dir("").unwrap();
    assert!(disk.crash(CrashPolicy::SyncedOnly, 0).paths().is_empty());
}

#[test]
fn a_directory_that_is_not_synced_takes_its_files_along() {
    let disk = SimDisk::new();
    disk.create_dir("d").unwrap();
    let file = disk.create("d/a").unwrap();
    file.sync_data().unwrap();
    disk.sync_dir("d").unwrap();
    let image = disk.crash(CrashPolicy::SyncedOnly, 0);
    assert_eq!(image.list("d").unwrap_err().kind(), ErrorKind::NotFound);
    disk.sync_dir("").unwrap();
    assert_eq!(disk.crash(CrashPolicy::SyncedOnly, 0).list("d").unwrap(), ["a"]);
}

#[test]
fn of_two_renames_any_may_be_lost_but_no_file_gets_two_names() {
    let (disk, _file) = disk();
    disk.rename("a", "b").unwrap();
    disk.rename("b", "c").unwrap();
    let names: Vec<_> =
        (0..4).map(|mask| disk.crash(CrashPolicy::Subset(mask), 0).paths().join(" ")).collect();
    assert_eq!(names, ["a", "b", "c", "c"]);
}

#[test]
fn a_replaced_file_is_the_old_or_the_new_one() {
    let (disk, _file) = disk();
    let new = disk.create("n").unwrap();
    new.write_at(0, b"new").unwrap();
    new.sync_data().unwrap();
    disk.sync_dir("").unwrap();
    disk.rename("n", "a").unwrap();
    assert_eq!(after(&disk, CrashPolicy::SyncedOnly, 0).unwrap(), [1; 2048]);
    assert_eq!(after(&disk, CrashPolicy::Everything, 0).unwrap(), b"new");
}

#[test]
fn after_a_failed_sync_only_what_is_written_again_becomes_durable() {
    let (disk, file) = disk();
    disk.inject(Fault::on(Op::SyncData));
    file.write_at(0, b"lost").unwrap();
    file.sync_data().unwrap_err();
    file.sync_data().unwrap();
    assert_eq!(after(&disk, CrashPolicy::SyncedOnly, 0).unwrap(), [1; 2048]);
    assert_eq!(after(&disk, CrashPolicy::Everything, 0).unwrap()[..4], *b"lost");
    file.write_at(4096, b"other block").unwrap();
    file.sync_data().unwrap();
    let bytes = after(&disk, CrashPolicy::SyncedOnly, 0).unwrap();
    assert_eq!((&bytes[..4], &bytes[4096..]), (&[1; 4][..], &b"other block"[..]));
    file.write_at(0, b"lost").unwrap();
    file.sync_data().unwrap();
    assert_eq!(after(&disk, CrashPolicy::SyncedOnly, 0).unwrap()[..4], *b"lost");
    assert_eq!(disk.crash_units(), 0);

    disk.inject(Fault::on(Op::SyncDir));
    disk.create("b").unwrap();
    disk.sync_dir("").unwrap_err();
    disk.sync_dir("").unwrap();
    assert_eq!(disk.crash(CrashPolicy::SyncedOnly, 0).paths(), ["a"]);
}

#[test]
fn faults_hit_the_operation_they_name() {
    let (disk, file) = disk();
    disk.inject(Fault::on(Op::Write).path("a").after(1).effect(Effect::ShortWrite(3)));
    file.write_at(0, &[5; 10]).unwrap();
    file.write_at(0, &[6; 10]).unwrap_err();
    file.write_at(4, &[7; 1]).unwrap();
    assert_eq!(disk.contents("a").unwrap()[..10], [6, 6, 6, 5, 7, 5, 5, 5, 5, 5]);
    assert_eq!(disk.faults_met(), 1);

    disk.inject(Fault::on(Op::Read).forever().effect(Effect::Fail(ErrorKind::PermissionDenied)));
    for _ in 0..3 {
        assert_eq!(file.read_at(0, &mut [0]).unwrap_err().kind(), ErrorKind::PermissionDenied);
    }
    disk.clear_faults();
    file.read_at(0, &mut [0]).unwrap();
}

#[test]
fn writes_can_be_lost_stale_or_misdirected_and_reads_flipped() {
    let (disk, file) = disk();
    disk.inject(Fault::on(Op::Write).effect(Effect::Ignore));
    file.write_at(0, &[9; 2048]).unwrap();
    assert_eq!(disk.contents("a").unwrap(), [1; 2048]);
    disk.inject(Fault::on(Op::Write).effect(Effect::StaleSector(2)));
    file.write_at(0, &[2; 2048]).unwrap();
    let bytes = disk.contents("a").unwrap();
    assert_eq!((bytes[1023], bytes[1024], bytes[1535], bytes[1536]), (2, 1, 1, 2));
    disk.inject(Fault::on(Op::Write).effect(Effect::Misdirect(512)));
    file.write_at(0, &[3; 512]).unwrap();
    let bytes = disk.contents("a").unwrap();
    assert_eq!((bytes[0], bytes[512]), (2, 3));
    disk.inject(Fault::on(Op::Read).effect(Effect::FlipRead(1, 7)));
    let mut buf = [0; 2];
    file.read_at(0, &mut buf).unwrap();
    assert_eq!(buf, [2, 0x82]);
    disk.flip("a", 0, 0).unwrap();
    assert_eq!(disk.crash(CrashPolicy::Everything, 0).contents("a").unwrap().len(), 2048);
    assert_eq!(disk.contents("a").unwrap()[0], 3);
}

#[test]
fn space_runs_out_and_comes_back() {
    let (disk, file) = disk();
    disk.set_space(Some(12_288));
    assert_eq!(disk.free_bytes().unwrap(), 8192);
    let other = disk.create("b").unwrap();
    assert_eq!(other.write_at(0, &[1; 9000]).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(other.len().unwrap(), 8192);
    file.write_at(0, &[2; 4096]).unwrap();
    assert_eq!(file.write_at(4096, &[2; 1]).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(file.allocate(4097).unwrap_err().kind(), ErrorKind::StorageFull);
    disk.unlink("b").unwrap();
    assert_eq!(disk.free_bytes().unwrap(), 0, "an open file keeps its space");
    drop(other);
    file.allocate(12_288).unwrap();
    assert_eq!((disk.free_bytes().unwrap(), file.allocated_bytes().unwrap()), (0, 12_288));
    file.set_len(1).unwrap();
    assert_eq!(disk.free_bytes().unwrap(), 8192);
}

#[test]
fn power_is_cut_before_the_named_operation_and_stays_cut() {
    let (disk, file) = disk();
    disk.set_trace(true);
    disk.power_cut_at(disk.operations() + 1);
    file.write_at(0, b"x").unwrap();
    assert!(is_power_cut(&file.sync_data().unwrap_err()));
    assert!(is_power_cut(&disk.open("a").err().unwrap()));
    assert!(is_power_cut(&file.len().unwrap_err()));
    assert_eq!(disk.take_trace(), ["4 Write a 0+1"]);
    disk.crash(CrashPolicy::SyncedOnly, 0).open("a").unwrap();
}

#[test]
fn the_lock_of_a_disk_excludes_and_ends_with_the_power() {
    let disk = SimDisk::new();
    let lock = disk.lock("LOCK").unwrap();
    assert_eq!(disk.lock("LOCK").err().unwrap().kind(), ErrorKind::WouldBlock);
    disk.crash(CrashPolicy::SyncedOnly, 0).lock("LOCK").unwrap();
    drop(lock);
    disk.lock("LOCK").unwrap();
}

#[test]
fn a_snapshot_and_its_original_go_separate_ways() {
    let (disk, file) = disk();
    file.write_at(0, b"unsynced").unwrap();
    let copy = disk.snapshot();
    file.write_at(0, b"original").unwrap();
    file.sync_data().unwrap();
    assert_eq!(copy.contents("a").unwrap()[..8], *b"unsynced");
    assert_eq!(after(&copy, CrashPolicy::SyncedOnly, 0).unwrap(), [1; 2048]);
}

#[test]
fn an_operation_is_held_before_it_takes_effect_while_others_go_on() {
    let (disk, file) = disk();
    let other = disk.create("b").unwrap();
    std::thread::scope(|scope| {
        let hold = disk.hold(Op::Write, "a");
        let held = scope.spawn(|| file.write_at(0, b"held"));
        hold.wait_until_reached();
        other.write_at(0, b"other").unwrap();
        file.write_at(10, b"second").unwrap();
        assert_eq!(disk.contents("a").unwrap()[..4], [1; 4]);
        drop(hold);
        held.join().unwrap().unwrap();
        assert_eq!(disk.contents("a").unwrap()[..4], *b"held");
    });
    drop(disk.hold(Op::Write, "a"));
    file.write_at(0, b"nobody holds this").unwrap();
}

#[test]
fn of_several_reads_each_meets_its_own_fault() {
    let (disk, file) = disk();
    file.write_at(0, b"first").unwrap();
    file.write_at(1000, b"third").unwrap();
    disk.inject(Fault::on(Op::Read).after(1));
    disk.inject(Fault::on(Op::Read).after(4).effect(Effect::FlipRead(0, 0)));
    let calls = disk.calls();
    let mut buffers = [[0; 5]; 5];
    let offsets = [0, 100, 1000, 2046, 200];
    let reads = offsets.into_iter().zip(&mut buffers);
    let mut reads: Vec<_> = reads.map(|(offset, buffer)| ReadRequest::new(offset, buffer)).collect();
    file.read_many(&mut reads);
    let results: Vec<_> = reads.iter().map(|read| read.result.as_ref().err().map(|e| e.kind())).collect();
    assert_eq!(results, [None, Some(ErrorKind::Other), None, Some(ErrorKind::UnexpectedEof), None]);
    assert_eq!((&buffers[0], &buffers[2], buffers[4]), (b"first", b"third", [0, 1, 1, 1, 1]));
    assert_eq!((disk.calls() - calls, disk.read_batches()), (5, 1));
    file.read_many(&mut []);
    assert_eq!(disk.read_batches(), 2);
}

#[test]
fn no_read_of_several_gets_bytes_once_power_is_cut() {
    let (disk, file) = disk();
    disk.power_cut_at(disk.operations());
    let mut buffers = [[0; 5]; 2];
    let mut reads: Vec<_> = buffers.iter_mut().map(|buffer| ReadRequest::new(0, buffer)).collect();
    file.read_many(&mut reads);
    assert!(reads.iter().all(|read| read.result.as_ref().is_err_and(is_power_cut)));
}

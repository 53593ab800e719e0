//! Tests which work may begin while little space is left, and the file that keeps the reserve.
//! Planted bugs must be caught.

use super::*;
use crate::base::planted::plant;
use cheetah_io::sim::{Effect, Fault, Op, SimDisk};
use std::io::ErrorKind;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// The reserve with the sizes below.
const RESERVE: u64 = 256 * KIB;
const SIZES: SpaceSizes = SpaceSizes { segment_bytes: 32 * KIB, log_file_bytes: 4 * KIB };

/// The space of a disk with `left_bytes` left.
fn space(disk: &SimDisk, left_bytes: u64) -> Space {
    let space = Space::new(Arc::new(disk.clone()));
    space.begin(SIZES).unwrap();
    space.end_startup();
    disk.set_space(Some(disk.used_bytes() + left_bytes));
    space.look(0);
    space
}

/// Writes a file. Fails if the disk is full.
fn write(disk: &SimDisk, path: &str, bytes: u64) -> io::Result<()> {
    disk.create(path)?.write_at(0, &vec![1; bytes as usize])
}

fn file_bytes(disk: &SimDisk) -> u64 {
    disk.contents(PATH).map_or(0, |file| file.len() as u64)
}

#[test]
fn the_reserve_is_a_part_of_a_small_disk_and_some_segments_of_a_large_one() {
    let check = |segment_bytes, log_file_bytes, disk, expected| {
        let sizes = SpaceSizes { segment_bytes, log_file_bytes };
        assert_eq!(sizes.reserve_bytes(disk), expected, "{segment_bytes}, {disk}");
    };
    check(64 * MIB, 2 * MIB, u64::MAX, 128 * MIB);
    check(64 * MIB, 2 * MIB, 1600 * MIB, 100 * MIB);
    check(64 * MIB, 2 * MIB, 400 * MIB, 32 * MIB);
    check(64 * MIB, 2 * MIB, 50 * MIB, 25 * MIB);
    check(4 * MIB, 2 * MIB, u64::MAX, 32 * MIB);
    check(32 * KIB, 4 * KIB, u64::MAX, RESERVE);
}

/// The smallest free space, in KiB, that admits work which must leave this part of the reserve.
fn least_left(reserve: Reserve) -> u64 {
    let may = |left: u64| space(&SimDisk::new(), left).check(0, 0, reserve).is_ok();
    let kib = (0..).find(|kib| may(kib * 4 * KIB));
    kib.unwrap_or(u64::MAX) * 4
}

#[test]
fn o1_what_gives_back_more_may_take_more_of_the_reserve() {
    let order = [
        (Reserve::Whole, 256),
        (Reserve::Half, 128),
        (Reserve::Quarter, 64),
        (Reserve::Eighth, 32),
        (Reserve::Last, 16),
        (Reserve::Nothing, 0),
    ];
    order.iter().for_each(|(reserve, kib)| assert_eq!(least_left(*reserve), *kib, "{reserve:?}"));
    let _bug = plant("space: give purge what a checkpoint needs");
    assert_eq!(least_left(Reserve::Quarter), 0);
}

#[test]
fn o1_what_is_promised_is_left_to_those_who_promised_it() {
    let disk = SimDisk::new();
    let space = space(&disk, 600 * KIB);
    space.check(300 * KIB, 40 * KIB, Reserve::Whole).unwrap();
    let error = space.check(300 * KIB, 60 * KIB, Reserve::Whole).unwrap_err();
    assert!(matches!(error, Error::DiskFull(_)), "{error}");
    assert_eq!(space.left_beside_promised(), 300 * KIB as i64);
    assert_eq!(space.room_above(Reserve::Whole), 44 * KIB);
    space.check_to_write(300 * KIB, Reserve::Whole).unwrap();
    // Taken bytes count at once, and are available again when freed.
    space.take(40 * KIB, Reserve::Whole).unwrap();
    write(&disk, "log", 40 * KIB).unwrap();
    assert!(space.take(8 * KIB, Reserve::Whole).is_err());
    disk.remove("log").unwrap();
    space.freed();
    space.take(8 * KIB, Reserve::Whole).unwrap();
}

/// Returns whether the space refuses more bytes while appended bytes are in no file yet. Queries of
/// the disk must not change the answer.
fn refuses_what_was_appended() -> bool {
    let space = space(&SimDisk::new(), 600 * KIB);
    space.appended(400 * KIB);
    space.look(0);
    let is_refused = space.check(0, 0, Reserve::Whole).is_err();
    space.landed(400 * KIB);
    space.look(0);
    is_refused && space.check(0, 0, Reserve::Whole).is_ok()
}

#[test]
fn o2_what_is_appended_counts_before_it_is_in_its_file() {
    assert!(refuses_what_was_appended());
    let _bug = plant("space: count what is appended when it is written");
    assert!(!refuses_what_was_appended());
}

/// Returns whether promised bytes can be written while the reserve is allocated.
fn takes_what_was_promised() -> bool {
    let disk = SimDisk::new();
    let space = space(&disk, 400 * KIB);
    assert_eq!(file_bytes(&disk), RESERVE);
    space.look(300 * KIB);
    write(&disk, "image", 300 * KIB).is_ok()
}

#[test]
fn o3_the_file_of_the_reserve_gives_way_to_what_is_promised() {
    assert!(takes_what_was_promised());
    let _bug = plant("space: let the file of the reserve be");
    assert!(!takes_what_was_promised());
}

#[test]
fn o3_others_cannot_take_the_reserve() {
    let disk = SimDisk::new();
    let space = space(&disk, 1000 * KIB);
    assert_eq!(file_bytes(&disk), RESERVE);
    // Another program writes until the disk is full.
    let mut others = 0;
    while write(&disk, &format!("other{others}"), 4 * KIB).is_ok() {
        others += 1;
    }
    assert_eq!(others, (1000 - 256) / 4);
    space.look(0);
    assert!(space.check(0, 0, Reserve::Half).is_ok());
    space.take(100 * KIB, Reserve::Nothing).unwrap();
    write(&disk, "log", 100 * KIB).unwrap();
    assert!(space.check(0, 0, Reserve::Whole).is_err());
}

#[test]
fn o3_a_disk_with_much_space_has_no_file_and_one_that_gets_more_none_any_more() {
    let disk = SimDisk::new();
    let space = space(&disk, 100 * MIB);
    assert!(!disk.paths().contains(&PATH.to_owned()) && !space.is_short());
    disk.set_space(Some(700 * KIB));
    space.look(0);
    assert!(file_bytes(&disk) == RESERVE && space.is_short());
    disk.set_space(Some(100 * MIB));
    space.look(0);
    assert!(!disk.paths().contains(&PATH.to_owned()) && !space.is_short());
}

/// The free bytes at a startup on a disk that other programs have filled.
fn free_at_startup() -> u64 {
    let disk = SimDisk::new();
    drop(space(&disk, 300 * KIB));
    disk.set_space(Some(disk.used_bytes()));
    Space::new(Arc::new(disk.clone())).begin(SIZES).unwrap();
    disk.free_bytes().unwrap()
}

#[test]
fn o3_a_startup_may_use_the_reserve() {
    assert_eq!(free_at_startup(), RESERVE);
    let _bug = plant("space: begin a startup behind the reserve");
    assert_eq!(free_at_startup(), 0);
}

#[test]
fn o4_a_disk_that_refuses_what_it_has_is_believed_when_the_reserve_could_be_allocated() {
    let disk = SimDisk::new();
    let space = space(&disk, 100 * MIB);
    space.check(0, 0, Reserve::Whole).unwrap();
    // The fault works like a quota.
    let full = || Effect::Fail(ErrorKind::StorageFull);
    disk.inject(Fault::on(Op::Allocate).effect(full()).after(2).forever());
    space.was_refused(64 * KIB);
    assert!(space.check(0, 0, Reserve::Whole).is_err());
    // The reserve is as large as the disk allowed.
    space.check(0, 0, Reserve::Last).unwrap();
    disk.clear_faults();
    space.check(0, 0, Reserve::Whole).unwrap();
    assert_eq!(file_bytes(&disk), RESERVE);
}

#[test]
fn o4_a_disk_that_refuses_more_than_it_has_tells_the_truth() {
    let disk = SimDisk::new();
    let space = space(&disk, 100 * MIB);
    space.was_refused(60 * MIB);
    space.check(0, 0, Reserve::Whole).unwrap();
    assert_eq!(file_bytes(&disk), 0);
}

#[test]
fn o2_what_lands_before_it_is_noted_as_appended_counts_once() {
    let space = space(&SimDisk::new(), 600 * KIB);
    for _ in 0..100 {
        space.landed(100 * KIB);
        space.appended(100 * KIB);
        space.look(0);
    }
    assert_eq!(space.left_beside_promised(), 600 * KIB as i64);
}

#[test]
fn of_several_that_take_at_once_no_more_get_it_than_fit() {
    const THREADS: u64 = 4;
    let disk = SimDisk::new();
    let space = space(&disk, 1000 * KIB);
    let take = |thread: u64| {
        let takes = |no: &u64| {
            let is_taken = space.take(4 * KIB, Reserve::Whole).is_ok();
            is_taken && write(&disk, &format!("{thread}-{no}"), 4 * KIB).is_ok()
        };
        (0..100).take_while(takes).count() as u64
    };
    let taken = std::thread::scope(|scope| {
        let threads = (0..THREADS).map(|thread| scope.spawn(move || take(thread))).collect::<Vec<_>>();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>()
    });
    let fit = (1000 * KIB - RESERVE) / (4 * KIB);
    // A query of the disk does not count bytes that are taken but not written yet.
    assert!((fit - 40..fit + THREADS).contains(&taken), "{taken} of {fit}");
}

#[test]
fn a_disk_that_cannot_allocate_is_counted_only() {
    let disk = SimDisk::new();
    disk.inject(Fault::on(Op::Allocate).effect(Effect::Ignore).forever());
    let space = space(&disk, 400 * KIB);
    space.check(0, 100 * KIB, Reserve::Whole).unwrap();
    assert!(space.check(0, 200 * KIB, Reserve::Whole).is_err());
    space.was_refused(64 * KIB);
    space.check(0, 100 * KIB, Reserve::Whole).unwrap();
}

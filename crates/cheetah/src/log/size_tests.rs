//! The length of files: it grows with the load and shrinks when little is logged, and files exist
//! before they are needed, even when the disk is full. Includes the planted bugs that must be
//! caught.

use super::crash_tests::fails;
use super::tests::{body, read, setup};
use super::*;
use crate::base::{Error, Lsn};
use crate::durable::space::Reserve;
use cheetah_io::sim::{CrashPolicy, SimDisk};
use cheetah_io::Disk;

const MINUTE_NS: u64 = 60_000_000_000;
const LEAST_BYTES: u64 = 4096;
const MOST_BYTES: u64 = 32 << 10;

/// Files from 4 to 32 KiB; the buffer can hold several short ones.
fn sizes(disk: &SimDisk) -> LogSetup {
    LogSetup {
        file_bytes_min: LEAST_BYTES,
        file_bytes: MOST_BYTES,
        bytes_max: 512 << 10,
        buffer_bytes: 16 << 10,
        ..setup(disk, 1)
    }
}

fn lengths(disk: &SimDisk, part_of_name: &str) -> Vec<u64> {
    let paths = disk.paths().into_iter().filter(|path| path.contains(part_of_name));
    paths.map(|path| disk.contents(&path).unwrap().len() as u64).collect()
}

/// Bytes of all files of the log.
fn log_bytes(disk: &SimDisk) -> u64 {
    lengths(disk, "wal/").iter().sum()
}

/// Operations that log `bytes` bytes, in frames of 400 bytes.
fn log(log: &Log, bytes: u64) {
    for _ in 0..bytes / 409 {
        log.wait_for_space(Reserve::Whole, &|| false).unwrap();
        log.append(1, &[1; 400]).unwrap();
    }
    log.sync_to(log.end()).unwrap();
}

#[test]
fn files_begin_short_and_double_with_the_load_up_to_the_longest() {
    let disk = SimDisk::new();
    let new = Log::create(&sizes(&disk)).unwrap();
    new.background_flush().unwrap();
    assert_eq!(log_bytes(&disk), 2 * LEAST_BYTES);
    log(&new, 300 << 10);
    let k = 1 << 10;
    let grown = lengths(&disk, ".log");
    assert_eq!(grown[..8], [4 * k, 4 * k, 8 * k, 16 * k, 32 * k, 32 * k, 32 * k, 32 * k]);
    assert!(grown[8..].iter().all(|bytes| *bytes == MOST_BYTES), "{grown:?}");
    assert_eq!(read(&disk, Lsn(0), new.end()).unwrap().0.len(), (300 << 10) / 409);
}

#[test]
fn files_shrink_in_steps_when_nothing_is_logged_and_their_space_goes_back() {
    let disk = SimDisk::new();
    let busy = Log::create(&sizes(&disk)).unwrap();
    log(&busy, 300 << 10);
    busy.recycle(busy.end()).unwrap();
    busy.shorten_files(MINUTE_NS).unwrap();
    let mut seen = vec![log_bytes(&disk)];
    for minute in 2..8 {
        busy.shorten_files(minute * MINUTE_NS - 1).unwrap();
        assert_eq!(seen.last(), Some(&log_bytes(&disk)), "not before the minute is over");
        busy.shorten_files(minute * MINUTE_NS).unwrap();
        seen.push(log_bytes(&disk));
    }
    assert!(seen[0] >= 4 * MOST_BYTES, "{seen:?}");
    assert_eq!(seen[1..], [32, 16, 8, 8, 8, 8].map(|kib| kib << 10));
    let operations = disk.operations();
    busy.shorten_files(9 * MINUTE_NS).unwrap();
    assert_eq!(disk.operations(), operations, "a short log comes to rest");
    let end = busy.end();
    log(&busy, 100 << 10);
    assert_eq!(read(&disk, end, busy.end()).unwrap().0.len(), (100 << 10) / 409);
}

#[test]
fn files_stay_short_while_little_is_logged_however_long() {
    let disk = SimDisk::new();
    let calm = Log::create(&sizes(&disk)).unwrap();
    for minute in 0..100 {
        log(&calm, 900);
        calm.background_flush().unwrap();
        calm.shorten_files(minute * MINUTE_NS).unwrap();
        if minute % 5 == 4 {
            calm.recycle(calm.end()).unwrap();
        }
        assert!(log_bytes(&disk) <= 5 * LEAST_BYTES, "{:?}", lengths(&disk, "wal/"));
    }
    calm.recycle(calm.end()).unwrap();
    assert!(log_bytes(&disk) <= 3 * LEAST_BYTES);
}

#[test]
fn an_even_load_takes_old_files_again() {
    let disk = SimDisk::new();
    let busy = Log::create(&sizes(&disk)).unwrap();
    for round in 0..20 {
        log(&busy, 100 << 10);
        busy.recycle(busy.end()).unwrap();
        if round == 10 {
            disk.set_trace(true);
        }
    }
    let created = disk.take_trace().into_iter().filter(|line| line.contains("Create")).count();
    assert_eq!(created, 0);
}

#[test]
fn what_is_logged_by_files_that_were_long_before_is_read_and_they_go() {
    let disk = SimDisk::new();
    let fixed = LogSetup { file_bytes_min: MOST_BYTES, ..sizes(&disk) };
    let old = Log::create(&fixed).unwrap();
    log(&old, 100 << 10);
    old.prepare_reserve().unwrap();
    let (bodies, recovered) = read(&disk, Lsn(0), old.end()).unwrap();
    assert_eq!(bodies.len(), (100 << 10) / 409);
    let new = Log::open(&LogSetup { identity: setup(&disk, 2).identity, ..sizes(&disk) }, &recovered, Lsn(0));
    let new = new.unwrap();
    new.recycle(new.end()).unwrap();
    new.prepare_reserve().unwrap();
    assert_eq!(log_bytes(&disk), 2 * LEAST_BYTES);
}

/// Several operations get space in the log, then all of them log: there is a file for their frames,
/// however much is buffered.
#[test]
fn what_is_under_way_when_the_disk_is_full_has_a_file() {
    for before in 0..60 {
        let disk = SimDisk::new();
        let log = Log::create(&sizes(&disk)).unwrap();
        for _ in 0..before {
            log.wait_for_space(Reserve::Whole, &|| false).unwrap();
            log.append(1, &[1; 300]).unwrap();
        }
        log.wait_for_space(Reserve::Whole, &|| false).unwrap();
        disk.set_space(Some(disk.used_bytes()));
        let mut count = before;
        while log.wait_for_space(Reserve::Whole, &|| false).is_ok() {
            for _ in 0..8 {
                log.append(1, &[2; 400]).unwrap();
            }
            count += 8;
        }
        assert!(matches!(log.wait_for_space(Reserve::Whole, &|| false), Err(Error::DiskFull(_))));
        log.sync_to(log.end()).unwrap();
        let image = disk.crash(CrashPolicy::SyncedOnly, 0);
        assert_eq!(read(&image, Lsn(0), log.end()).unwrap().0.len(), count);
        disk.set_space(None);
        log.wait_for_space(Reserve::Whole, &|| false).unwrap();
    }
}

#[test]
fn what_rolls_back_does_with_a_shorter_file_when_the_disk_is_full() {
    let disk = SimDisk::new();
    let busy = Log::create(&sizes(&disk)).unwrap();
    log(&busy, 100 << 10);
    let used = || busy.status().reserve_count;
    while used() > 0 {
        busy.append(1, &[1; 400]).unwrap();
        busy.sync_to(busy.end()).unwrap();
    }
    disk.set_space(Some(disk.used_bytes() + LEAST_BYTES));
    assert!(matches!(busy.wait_for_space(Reserve::Whole, &|| false), Err(Error::DiskFull(_))));
    busy.prepare_short_reserve(Reserve::Nothing).unwrap();
    for _ in 0..MOST_BYTES / 409 {
        busy.append(1, &[1; 400]).unwrap();
    }
    busy.sync_to(busy.end()).unwrap();
    assert_eq!(lengths(&disk, ".log").last(), Some(&LEAST_BYTES));
}

#[test]
fn a_full_disk_leaves_the_files_as_they_are_until_there_is_space() {
    let disk = SimDisk::new();
    let busy = Log::create(&sizes(&disk)).unwrap();
    log(&busy, 100 << 10);
    busy.background_flush().unwrap();
    disk.set_space(Some(disk.used_bytes()));
    for minute in 1..4 {
        busy.shorten_files(minute * MINUTE_NS).unwrap();
    }
    assert!(log_bytes(&disk) > 100 << 10);
    log(&busy, 4 << 10);
    disk.set_space(None);
    busy.recycle(busy.end()).unwrap();
    (4..12).for_each(|minute| busy.shorten_files(minute * MINUTE_NS).unwrap());
    assert_eq!(log_bytes(&disk), 2 * LEAST_BYTES);
}

#[test]
fn the_order_of_going_on_in_a_shorter_file_is_as_documented() {
    let disk = SimDisk::new();
    let busy = Log::create(&sizes(&disk)).unwrap();
    log(&busy, 10 << 10);
    busy.recycle(busy.end()).unwrap();
    busy.prepare_reserve().unwrap();
    // The ready file is replaced first, then the file in use.
    (1..3).for_each(|minute| busy.shorten_files(minute * MINUTE_NS).unwrap());
    disk.set_trace(true);
    busy.shorten_files(3 * MINUTE_NS).unwrap();
    let trace = disk.take_trace();
    let trace: Vec<_> = trace.iter().map(|line| line.split_once(' ').unwrap().1).collect();
    let expected = [
        "Create wal/reserve-5",
        "Allocate wal/reserve-5 4096",
        "Unlink wal/reserve-4",
        "SyncData wal/000000000003.log",
        "Open wal/reserve-5",
        "Write wal/reserve-5 0+512",
        "SyncData wal/reserve-5",
        "Rename wal/reserve-5 -> wal/000000000004.log",
        "SyncDir wal",
        "Open wal/000000000004.log",
        "Open wal/000000000003.log",
        "Unlink wal/000000000003.log",
        "Create wal/reserve-6",
        "Allocate wal/reserve-6 4096",
    ];
    assert_eq!(trace, expected);
}

#[test]
fn a_frame_longer_than_a_file_leaves_the_file_that_is_ready_for_the_next() {
    let disk = SimDisk::new();
    let log = Log::create(&sizes(&disk)).unwrap();
    log.prepare_reserve().unwrap();
    let long = vec![7; 2 * MOST_BYTES as usize];
    log.append(1, &long).unwrap();
    for number in 0..20 {
        log.append(1, &body(number)).unwrap();
    }
    log.sync_to(log.end()).unwrap();
    let (bodies, _) = read(&disk, Lsn(0), log.end()).unwrap();
    assert_eq!(bodies[0], long);
    assert_eq!(bodies[1..], (0..20).map(body).collect::<Vec<_>>());
    assert!(disk.list("wal").unwrap().iter().all(|name| name.ends_with(".log")));
}

#[test]
fn planted_counting_a_file_as_ready_that_is_taken_is_caught() {
    fails("log: count a file as ready that is taken", what_is_under_way_when_the_disk_is_full_has_a_file);
}

#[test]
fn planted_taking_a_ready_file_for_longer_than_it_is_is_caught() {
    fails("log: take a ready file for longer than it is", what_is_under_way_when_the_disk_is_full_has_a_file);
}

//! Tests the log without crashes: frames are read back, files follow each other, errors are clear.

use super::*;
use crate::base::stalls::Reason;
use crate::base::{Config, Error, ErrorKind, Health, Lsn, Result};
use crate::durable::space::Reserve;
use crate::durable::Durable;
use crate::format::control::Identity;
use crate::keys::Keys;
use cheetah_io::sim::{Fault, Op, SimClock, SimDisk};
use cheetah_io::{Clock, Rng};
use std::sync::Arc;

pub(super) const DATABASE: [u8; 16] = [5; 16];

pub(super) fn setup(disk: &SimDisk, incarnation: u64) -> LogSetup {
    let durable = Durable::new(Arc::new(disk.clone()), Arc::new(Health::default()));
    let (log_file_bytes, log_file_bytes_min, log_bytes_max) = (2048, 2048, 16 << 10);
    let config = Config { log_file_bytes, log_file_bytes_min, log_bytes_max, ..Config::tiny() };
    let (clock, identity) = (Arc::new(SimClock::default()), Identity { uuid: DATABASE, incarnation });
    let keys = Keys::none(clock.clone(), DATABASE);
    LogSetup { buffer_bytes: 700, ..LogSetup::new(&config, Arc::new(durable), clock, keys, identity) }
}

fn no_keys(database: [u8; 16]) -> Arc<Keys> {
    Keys::none(Arc::new(SimClock::default()), database)
}

/// The body of frame `number`: random bytes, mostly few, sometimes more than a log file holds.
pub(super) fn body(number: u64) -> Vec<u8> {
    let mut rng = Rng::new(number);
    let len = match rng.below(20) {
        0..10 => 3,
        10..15 => 60,
        15..18 => 300,
        18 => 900,
        _ => 2600,
    };
    [&number.to_le_bytes()[..], &rng.bytes(len)].concat()
}

/// The bodies of the frames from `from` on, and the result of the read.
pub(super) fn read(disk: &SimDisk, from: Lsn, reach: Lsn) -> Result<(Vec<Vec<u8>>, Recovered)> {
    let mut bodies = Vec::new();
    let recovered = read_from(disk, &no_keys(DATABASE), from, reach, |frame| {
        bodies.push(frame.body.to_vec());
        Ok(())
    })?;
    Ok((bodies, recovered))
}

fn append_all(log: &Log, numbers: std::ops::Range<u64>) -> Lsn {
    numbers.fold(log.end(), |_, number| log.append(1, &body(number)).unwrap().end)
}

fn log_files(disk: &SimDisk) -> Vec<String> {
    disk.paths().into_iter().filter(|path| path.ends_with(".log")).collect()
}

#[test]
fn frames_come_back_in_order_over_many_files_and_startups() {
    let disk = SimDisk::new();
    let mut log = Log::create(&setup(&disk, 1)).unwrap();
    for incarnation in 2..6 {
        let first = (incarnation - 2) * 50;
        append_all(&log, first..first + 50);
        log.sync_to(log.end()).unwrap();
        let (bodies, recovered) = read(&disk, Lsn(0), log.durable_end()).unwrap();
        assert_eq!(bodies, (0..first + 50).map(body).collect::<Vec<_>>());
        log = Log::open(&setup(&disk, incarnation), &recovered, Lsn(0)).unwrap();
        assert_eq!(log.end(), recovered.end);
    }
    assert!(log_files(&disk).len() > 10);
}

#[test]
fn reading_starts_at_any_frame_and_nowhere_else() {
    let disk = SimDisk::new();
    let log = Log::create(&setup(&disk, 1)).unwrap();
    let starts: Vec<Lsn> = (0..40).map(|n| log.append(7, &body(n)).unwrap().start).collect();
    log.sync_to(log.end()).unwrap();
    for (number, start) in starts.iter().enumerate() {
        let (bodies, _) = read(&disk, *start, *start).unwrap();
        assert_eq!(bodies, (number as u64..40).map(body).collect::<Vec<_>>());
        assert_eq!(
            read(&disk, Lsn(start.0 + 1), Lsn(0)).map(drop).unwrap_err().kind(),
            ErrorKind::Corruption
        );
    }
    assert!(read(&disk, log.end(), log.end()).unwrap().0.is_empty());
    let beyond = Lsn(log.end().0 + 1);
    assert_eq!(read(&disk, beyond, beyond).map(drop).unwrap_err().kind(), ErrorKind::Corruption);
}

#[test]
fn frames_tell_their_kind_and_position() {
    let disk = SimDisk::new();
    let log = Log::create(&setup(&disk, 1)).unwrap();
    let range = log.append(9, b"abc").unwrap();
    assert_eq!(range, Lsn(0)..Lsn(12));
    log.append(10, b"").unwrap();
    log.sync_to(log.end()).unwrap();
    let mut seen = Vec::new();
    read_from(&disk, &no_keys(DATABASE), Lsn(0), Lsn(0), |f| {
        seen.push((f.start.0, f.end.0, f.kind, f.body.to_vec()));
        Ok(())
    })
    .unwrap();
    assert_eq!(seen, [(0, 12, 9, b"abc".to_vec()), (12, 21, 10, vec![])]);
}

#[test]
fn flush_modes_do_what_they_say() {
    let disk = SimDisk::new();
    let log = Log::create(&setup(&disk, 1)).unwrap();
    let frames = |d: &SimDisk| read(d, Lsn(0), Lsn(0)).unwrap().0.len();
    let cut = |d: &SimDisk| d.crash(cheetah_io::sim::CrashPolicy::SyncedOnly, 0);
    let end = log.append(1, b"none").unwrap().end;
    log.commit(end, FlushMode::None).unwrap();
    assert_eq!((frames(&disk), frames(&cut(&disk))), (0, 0));
    let end = log.append(1, b"write").unwrap().end;
    log.commit(end, FlushMode::Write).unwrap();
    assert_eq!((frames(&disk), frames(&cut(&disk))), (2, 0));
    let end = log.append(1, b"sync").unwrap().end;
    log.commit(end, FlushMode::Sync).unwrap();
    assert_eq!((frames(&disk), frames(&cut(&disk))), (3, 3));
    log.append(1, b"none").unwrap();
    log.background_flush().unwrap();
    assert_eq!(frames(&cut(&disk)), 4);
}

#[test]
fn an_idle_log_comes_to_rest() {
    let disk = SimDisk::new();
    let log = Log::create(&setup(&disk, 1)).unwrap();
    log.append(1, b"x").unwrap();
    for _ in 0..3 {
        log.background_flush().unwrap();
    }
    let operations = disk.operations();
    log.background_flush().unwrap();
    assert_eq!(disk.operations(), operations);
}

#[test]
fn commits_of_many_threads_share_syncs_and_all_survive() {
    let disk = SimDisk::new();
    let log = Log::create(&setup(&disk, 1)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let log = &log;
            scope.spawn(move || {
                for number in 0..100u64 {
                    let end = log.append(1, &(thread * 1000 + number).to_le_bytes()).unwrap().end;
                    log.commit(end, FlushMode::Sync).unwrap();
                    assert!(log.durable_end() >= end);
                }
            });
        }
    });
    let image = disk.crash(cheetah_io::sim::CrashPolicy::SyncedOnly, 0);
    let (mut bodies, _) = read(&image, Lsn(0), log.durable_end()).unwrap();
    let of_thread = |b: &Vec<u8>| u64::from_le_bytes(b[..].try_into().unwrap()) / 1000;
    bodies.sort_by_key(of_thread);
    let expected: Vec<_> =
        (0..8).flat_map(|t| (0..100u64).map(move |n| (t * 1000 + n).to_le_bytes().to_vec())).collect();
    assert_eq!(bodies, expected, "each thread's frames keep their order");
}

#[test]
fn old_files_are_reused_and_the_log_stays_bounded() {
    let disk = SimDisk::new();
    let log = Log::create(&setup(&disk, 1)).unwrap();
    let mut from = Lsn(0);
    let mut peak = 0;
    for round in 0..40 {
        append_all(&log, round * 10..round * 10 + 10);
        log.sync_to(log.end()).unwrap();
        assert_eq!(
            read(&disk, from, log.end()).unwrap().0,
            (round * 10..round * 10 + 10).map(body).collect::<Vec<_>>()
        );
        from = log.end();
        log.recycle(from).unwrap();
        assert_eq!(log_files(&disk).len(), 1);
        peak = peak.max(disk.used_bytes());
    }
    assert!(peak < 64 << 10, "{peak}");
}

#[test]
fn a_full_log_slows_writers_then_stops_them_until_recycled() {
    let disk = SimDisk::new();
    let clock = SimClock::default();
    let log = Log::create(&LogSetup { clock: Arc::new(clock.clone()), ..setup(&disk, 1) }).unwrap();
    let mut slowed = 0;
    while log.space() != Space::Full {
        log.wait_for_space(Reserve::Whole, &|| false).unwrap();
        slowed += u64::from(log.space() != Space::Plenty);
        log.append(1, &[1; 100]).unwrap();
    }
    assert!(slowed > 10 && clock.now_ns() > 0);
    let stalls = || log.health().stalls().counts(Reason::LogSpace, clock.now_ns());
    let before = stalls().ended.count();
    assert!(matches!(log.wait_for_space(Reserve::Whole, &|| true), Err(Error::Interrupted)));
    assert_eq!(stalls().ended.count(), before + 1, "a wait that is interrupted is a stall");
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| log.wait_for_space(Reserve::Whole, &|| false));
        while stalls().current == 0 {
            std::thread::yield_now();
        }
        log.sync_to(log.end()).unwrap();
        log.recycle(log.end()).unwrap();
        waiter.join().unwrap().unwrap();
    });
    assert_eq!(log.space(), Space::Plenty);
    assert_eq!((stalls().current, stalls().ended.count()), (0, before + 2));
}

#[test]
fn waits_of_commits_and_syncs_are_timed_but_not_what_waits_for_nothing() {
    let disk = SimDisk::new();
    let log = Log::create(&setup(&disk, 1)).unwrap();
    for mode in [FlushMode::Sync, FlushMode::Write, FlushMode::None] {
        let end = log.append(1, &[7; 10]).unwrap().end;
        log.commit(end, mode).unwrap();
    }
    assert_eq!((log.commit_waits().count(), log.sync_times().count()), (2, 1));
    append_all(&log, 0..100);
    log.sync_to(log.end()).unwrap();
    let synced = log.sync_times().count();
    assert!(synced > log.status().syncs_count, "syncs of full files are timed too: {synced}");
}

#[test]
fn a_full_disk_refuses_statements_and_not_commits() {
    let disk = SimDisk::new();
    let log = Log::create(&setup(&disk, 1)).unwrap();
    log.wait_for_space(Reserve::Whole, &|| false).unwrap();
    disk.set_space(Some(disk.used_bytes()));
    let mut refused = 0;
    for number in 0..60 {
        match log.wait_for_space(Reserve::Whole, &|| false) {
            Err(Error::DiskFull(_)) => refused += 1,
            other => {
                other.unwrap();
                let end = log.append(1, &[number; 100]).unwrap().end;
                log.commit(end, FlushMode::Sync).unwrap();
            }
        }
    }
    assert!(refused > 0);
    disk.set_space(None);
    log.wait_for_space(Reserve::Whole, &|| false).unwrap();
}

#[test]
fn a_failed_write_or_sync_stops_the_log_for_good() {
    for op in [Op::Write, Op::SyncData, Op::SyncDir, Op::Rename] {
        let disk = SimDisk::new();
        let log = Log::create(&setup(&disk, 1)).unwrap();
        disk.inject(Fault::on(op));
        let error = (0..200).find_map(|n| {
            let end = log.append(1, &body(n)).map(|range| range.end);
            end.and_then(|end| log.commit(end, FlushMode::Sync)).err()
        });
        assert_eq!(error.unwrap().kind(), ErrorKind::Stopped, "{op:?}");
        let calls = disk.calls();
        assert_eq!(log.append(1, b"x").unwrap_err().kind(), ErrorKind::Stopped);
        assert_eq!(log.sync_to(log.end()).unwrap_err().kind(), ErrorKind::Stopped);
        assert_eq!(disk.calls(), calls, "nothing is tried after {op:?} failed");
    }
}

#[test]
fn a_missing_file_is_named() {
    let disk = SimDisk::new();
    let log = Log::create(&setup(&disk, 1)).unwrap();
    log.append(1, b"so that the first file is needed").unwrap();
    append_all(&log, 0..60);
    log.sync_to(log.end()).unwrap();
    let files = log_files(&disk);
    for (number, path) in files.iter().enumerate() {
        let copy = disk.snapshot();
        copy.remove(path).unwrap();
        let error = read(&copy, Lsn(0), log.durable_end()).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        // No later file names the last file, so the error names the missing position instead.
        let named = if number + 1 < files.len() { path.clone() } else { log.durable_end().to_string() };
        assert!(error.to_string().contains(&named), "{error}");
    }
    files.iter().for_each(|path| disk.remove(path).unwrap());
    assert_eq!(read(&disk, Lsn(0), Lsn(0)).map(drop).unwrap_err().kind(), ErrorKind::Corruption);
}

#[test]
fn every_flipped_bit_of_a_synced_log_is_noticed_or_harmless() {
    let disk = SimDisk::new();
    let log = Log::create(&setup(&disk, 1)).unwrap();
    let numbers = 0..14;
    for number in numbers.clone() {
        let end = log.append(1, &body(number)).unwrap().end;
        log.commit(end, FlushMode::Sync).unwrap();
    }
    log.background_flush().unwrap();
    let expected: Vec<_> = numbers.map(body).collect();
    let (mut noticed, mut harmless) = (0, 0);
    assert!(log_files(&disk).len() > 2);
    for path in log_files(&disk) {
        for offset in 0..disk.contents(&path).unwrap().len() as u64 {
            let copy = disk.snapshot();
            copy.flip(&path, offset, (offset % 8) as u8).unwrap();
            match read(&copy, Lsn(0), Lsn(0)) {
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corruption);
                    noticed += 1;
                }
                Ok((bodies, _)) => {
                    assert_eq!(bodies, expected, "{path} offset {offset}");
                    harmless += 1;
                }
            }
        }
    }
    // Harmless are flips in bytes that are not used yet, and in the last mark.
    assert!(noticed > 3000 && harmless > 100, "{noticed} {harmless}");
}

#[test]
fn a_log_of_a_newer_version_or_another_database_is_refused() {
    let disk = SimDisk::new();
    drop(Log::create(&setup(&disk, 1)).unwrap());
    let path = &log_files(&disk)[0];
    let mut header = disk.contents(path).unwrap()[..512].to_vec();
    header[8] = 9;
    let crc = crc32c::crc32c(&header[..508]).to_le_bytes();
    header[508..].copy_from_slice(&crc);
    let newer = disk.snapshot();
    newer.overwrite(path, 0, &header).unwrap();
    assert!(matches!(read(&newer, Lsn(0), Lsn(0)), Err(Error::Unsupported { .. })));
    let other = read_from(&disk, &no_keys([6; 16]), Lsn(0), Lsn(0), |_| Ok(()));
    assert_eq!(other.unwrap_err().kind(), ErrorKind::Corruption);
}

#[test]
fn the_order_of_syncs_when_a_file_is_full_is_as_documented() {
    let disk = SimDisk::new();
    let log = Log::create(&setup(&disk, 1)).unwrap();
    log.append(1, &[1; 1000]).unwrap();
    disk.set_trace(true);
    log.append(1, &[2; 1000]).unwrap();
    log.sync_to(log.end()).unwrap();
    let trace: Vec<String> =
        disk.take_trace().iter().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect();
    let expected = [
        "Write wal/000000000001.log 512+1009",
        "SyncData wal/000000000001.log",
        "Create wal/reserve-1",
        "Allocate wal/reserve-1 2048",
        "Open wal/reserve-1",
        "Write wal/reserve-1 0+512",
        "SyncData wal/reserve-1",
        "Rename wal/reserve-1 -> wal/000000000002.log",
        "SyncDir wal",
        "Open wal/000000000002.log",
        "Write wal/000000000002.log 512+1009",
        "SyncData wal/000000000002.log",
    ];
    assert_eq!(trace, expected);
}

#[test]
fn an_error_of_any_operation_is_clean_and_loses_nothing_acknowledged() {
    let base = SimDisk::new();
    drop(Log::create(&setup(&base, 1)).unwrap());
    let run = |disk: &SimDisk| -> Result<()> {
        let (_, recovered) = read(disk, Lsn(0), Lsn(0))?;
        let log = Log::open(&setup(disk, 2), &recovered, Lsn(0))?;
        for number in 0..25 {
            log.wait_for_space(Reserve::Whole, &|| false)?;
            let end = log.append(1, &body(number))?.end;
            if number % 3 == 0 {
                log.commit(end, FlushMode::Sync)?;
                disk.acknowledge(number + 1);
            }
        }
        log.background_flush()?;
        disk.acknowledge(25);
        Ok(())
    };
    let calls = {
        let disk = base.snapshot();
        run(&disk).unwrap();
        disk.calls()
    };
    let mut failed = 0;
    for call in 0..calls {
        for forever in [false, true] {
            let disk = base.snapshot();
            let fault = Fault::any().after(call);
            disk.inject(if forever { fault.forever() } else { fault });
            failed += usize::from(run(&disk).is_err());
            let acknowledged = disk.acknowledged();
            for image in [disk.snapshot(), disk.crash(cheetah_io::sim::CrashPolicy::SyncedOnly, call)] {
                let (bodies, recovered) = read(&image, Lsn(0), Lsn(0)).unwrap();
                let count = bodies.len() as u64;
                assert!(count >= acknowledged, "call {call}: {count} of {acknowledged}");
                assert_eq!(bodies, (0..count).map(body).collect::<Vec<_>>(), "call {call}");
                Log::open(&setup(&image, 3), &recovered, Lsn(0)).unwrap();
            }
        }
    }
    assert!(failed as u64 > calls, "{failed} of {calls} calls");
}

#[test]
fn any_bytes_in_a_log_file_are_an_error_or_an_end_and_no_panic() {
    let disk = SimDisk::new();
    let log = Log::create(&setup(&disk, 1)).unwrap();
    append_all(&log, 0..10);
    log.sync_to(log.end()).unwrap();
    let last = log_files(&disk).pop().unwrap();
    let good = disk.contents(&last).unwrap();
    let mut rng = Rng::new(9);
    for round in 0..2000 {
        let mut bytes = good.clone();
        let keep = if round % 4 == 0 { 0 } else { 512 };
        for _ in 0..1 + rng.below(20) {
            let at = keep + rng.below((bytes.len() - keep) as u64) as usize;
            bytes[at] = rng.next_u64() as u8;
        }
        bytes.truncate(rng.below(2 * bytes.len() as u64) as usize);
        let copy = disk.snapshot();
        copy.put(&last, &bytes).unwrap();
        if let Err(error) = read(&copy, Lsn(0), Lsn(0)) {
            assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        }
    }
}

#[test]
fn the_log_works_on_a_real_disk() {
    let root = std::env::temp_dir().join(format!("cheetah-log-{}", std::process::id()));
    let disk = cheetah_io::posix::PosixDisk::open(&root).unwrap();
    let durable = Arc::new(Durable::new(Arc::new(disk), Arc::new(Health::default())));
    let identity = Identity { uuid: DATABASE, incarnation: 1 };
    let (clock, keys) = (Arc::new(SimClock::default()), no_keys(DATABASE));
    let setup = LogSetup::new(&Config::tiny(), Arc::clone(&durable), clock, keys, identity);
    let log = Log::create(&setup).unwrap();
    append_all(&log, 0..100);
    log.background_flush().unwrap();
    let mut bodies = Vec::new();
    let recovered = read_from(durable.disk(), &no_keys(DATABASE), Lsn(0), log.durable_end(), |frame| {
        bodies.push(frame.body.to_vec());
        Ok(())
    })
    .unwrap();
    assert_eq!(bodies, (0..100).map(body).collect::<Vec<_>>());
    let log = Log::open(&setup, &recovered, Lsn(0)).unwrap();
    assert!(log.recycle(log.end()).unwrap() > 1);
    std::fs::remove_dir_all(root).unwrap();
}

//! Power cuts. After each power cut all acknowledged frames are replayed without holes, and only
//! frames that this history appended are replayed. Includes the planted bugs that must be caught.

use super::tests::{body, read};
use super::*;
use crate::base::planted::plant;
use crate::base::{ErrorKind, Lsn};
use cheetah_io::sim::{explore, CrashPolicy, Failure, Fault, Image, Op, Plan, Report, SimDisk};
use cheetah_io::{Disk, Rng};

/// Small files, whose length grows and shrinks by one or two steps.
fn setup(disk: &SimDisk, incarnation: u64) -> LogSetup {
    LogSetup { file_bytes_min: 1024, file_bytes: 4096, ..super::tests::setup(disk, incarnation) }
}

/// Appends frames `from..`, commits after some of them, and acknowledges how many are durable. The
/// clock advances now and then.
fn write(log: &Log, disk: &SimDisk, from: u64, count: u64, seed: u64) {
    let mut rng = Rng::new(seed);
    for number in from..from + count {
        let end = log.append(1, &body(number)).unwrap().end;
        if rng.chance(0.4) {
            log.commit(end, FlushMode::Sync).unwrap();
            disk.acknowledge(number + 1);
        }
        if rng.chance(0.1) {
            log.background_flush().unwrap();
            disk.acknowledge(number + 1);
        }
        if rng.chance(0.2) {
            log.shorten_files((number + 1) * 60_000_000_000).unwrap();
        }
    }
}

/// Checks that the image has frames from 0 on: at least the acknowledged ones, and at most
/// `appended`.
fn check(image: &Image, appended: u64) -> Result<Recovered, String> {
    let (bodies, recovered) = read(&image.disk, Lsn(0), Lsn(0)).map_err(|e| e.to_string())?;
    let count = bodies.len() as u64;
    if count < image.acknowledged || count > appended {
        return Err(format!(
            "{count} frames, but {} acknowledged and {appended} appended",
            image.acknowledged
        ));
    }
    match (0..count).find(|number| bodies[*number as usize] != body(*number)) {
        Some(number) => Err(format!("frame {number} is not what was appended")),
        None => Ok(recovered),
    }
}

/// Two lives: one is cut off anywhere, and the next continues from there and is cut off again. The
/// second life appends the same frames that the first may have lost, so that a stale frame that
/// reappears has the expected content.
fn two_lives(seed: u64) -> Result<Report, Failure> {
    let plan = Plan::quick(seed, 25);
    let mut second_lives = Report::default();
    let first_life = |disk: &SimDisk| {
        let (_, recovered) = read(disk, Lsn(0), Lsn(0)).unwrap();
        let log = Log::open(&setup(disk, 2), &recovered, Lsn(0)).unwrap();
        write(&log, disk, 0, 18, seed);
    };
    let mut report = explore(&plan, &created(), first_life, |image| {
        let recovered = check(image, 18)?;
        let reopened = |disk: &SimDisk| {
            disk.acknowledge(recovered.frames_count);
            let log = Log::open(&setup(disk, 3), &recovered, Lsn(0)).unwrap();
            write(&log, disk, recovered.frames_count, 2, seed + 1);
        };
        let plan = Plan::quick(image.seed, 8);
        let report = explore(&plan, &image.disk, reopened, |second| {
            let appended = recovered.frames_count + 2;
            check(second, appended).map(drop)
        })
        .map_err(|failure| format!("in the second life: {failure}"))?;
        second_lives += report;
        Ok(())
    })?;
    report += second_lives;
    Ok(report)
}

/// A disk on which the log has just been created: a database exists only from then on.
fn created() -> SimDisk {
    let disk = SimDisk::new();
    Log::create(&setup(&disk, 1)).unwrap();
    disk
}

#[test]
fn acknowledged_frames_survive_power_cuts_in_two_lives() {
    let mut report = Report::default();
    for seed in 0..6 {
        report += two_lives(seed).unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    }
    assert!(report.images_count > 5_000, "{report:?}");
}

fn catches(bug: &'static str) {
    let guard = plant(bug);
    let caught = (0..20).find_map(|seed| two_lives(seed).err());
    assert!(guard.reached_count() > 0, "{bug}: never reached");
    assert!(caught.is_some(), "{bug}: not caught");
}

#[test]
fn planted_skipping_the_sync_of_a_commit_is_caught() {
    catches("log: skip the sync of a commit");
}

#[test]
fn planted_skipping_the_directory_sync_of_a_new_file_is_caught() {
    catches("log: skip the directory sync of a new file");
}

#[test]
fn planted_ignoring_the_chain_is_caught() {
    catches("log: ignore the chain");
}

#[test]
fn planted_syncing_the_new_file_before_the_old_one_is_caught() {
    catches("log: start a file before the old one is synced");
}

#[test]
fn planted_letting_go_of_what_no_checkpoint_covers_is_caught() {
    catches("log: let go of what no checkpoint covers");
}

/// A log whose files are recycled by checkpoints; each checkpoint's position is stored in a file of
/// its own.
fn recycling(seed: u64) -> Result<Report, Failure> {
    let workload = |disk: &SimDisk| {
        let (_, recovered) = read(disk, Lsn(0), Lsn(0)).unwrap();
        let log = Log::open(&setup(disk, 2), &recovered, Lsn(0)).unwrap();
        for round in 0..12 {
            write(&log, disk, round * 5, 5, seed + round);
            log.sync_to(log.end()).unwrap();
            disk.acknowledge((round + 1) * 5);
            let control = disk.create(&format!("control-{round:03}")).unwrap();
            control
                .write_at(0, &[log.end().0.to_le_bytes(), ((round + 1) * 5).to_le_bytes()].concat())
                .unwrap();
            control.sync_data().unwrap();
            disk.sync_dir("").unwrap();
            log.recycle(log.end()).unwrap();
        }
    };
    explore(&Plan::quick(seed, 60), &created(), workload, |image| {
        let controls: Vec<_> =
            image.disk.paths().into_iter().filter(|path| path.starts_with("control")).collect();
        let last = controls.iter().rev().find_map(|path| {
            let bytes = image.disk.contents(path).ok()?;
            let word = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
            Some((Lsn(word(0)?), word(8)?)).filter(|(_, frames)| *frames > 0)
        });
        let Some((from, frames)) = last else { return Ok(()) };
        let (bodies, recovered) = read(&image.disk, from, from).map_err(|e| e.to_string())?;
        let count = bodies.len() as u64;
        if frames + count < image.acknowledged || (0..count).any(|n| bodies[n as usize] != body(frames + n)) {
            return Err(format!("{count} frames after {frames}, {} acknowledged", image.acknowledged));
        }
        let log = Log::open(&setup(&image.disk, 3), &recovered, from).map_err(|e| e.to_string())?;
        let end = log.append(1, b"next life").map_err(|e| e.to_string())?.end;
        log.sync_to(end).map_err(|e| e.to_string())?;
        read(&image.disk, from, end).map(drop).map_err(|e| e.to_string())
    })
}

#[test]
fn recycled_files_never_bring_back_old_frames() {
    for seed in 0..4 {
        recycling(seed).unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    }
}

#[test]
fn c9_frames_behind_a_torn_one_stay_dead_after_a_second_crash() {
    // A is acknowledged; of B and C only C reaches the disk. After the restart the same B is logged
    // again.
    let setup = super::tests::setup;
    let disk = SimDisk::new();
    let log = Log::create(&setup(&disk, 1)).unwrap();
    let a = log.append(1, b"A").unwrap().end;
    log.sync_to(a).unwrap();
    log.append(1, &[b'B'; 500]).unwrap();
    log.append(1, b"C").unwrap();
    log.commit(log.end(), FlushMode::Write).unwrap();
    let image = (0..)
        .map(|unit| disk.crash(CrashPolicy::AllButOne(unit), 0))
        .find(|image| read(image, Lsn(0), Lsn(0)).unwrap().0 == [b"A".to_vec()])
        .unwrap();
    let (_, recovered) = read(&image, Lsn(0), Lsn(0)).unwrap();
    let log = Log::open(&setup(&image, 2), &recovered, Lsn(0)).unwrap();
    log.append(1, &[b'B'; 500]).unwrap();
    log.sync_to(log.end()).unwrap();
    let second = image.crash(CrashPolicy::Everything, 0);
    assert_eq!(read(&second, Lsn(0), Lsn(0)).unwrap().0, [b"A".to_vec(), vec![b'B'; 500]]);
}

#[test]
fn what_was_read_from_the_cache_after_a_failed_sync_is_made_durable_before_serving() {
    let disk = SimDisk::new();
    let log = Log::create(&setup(&disk, 1)).unwrap();
    disk.inject(Fault::on(Op::SyncData));
    let end = log.append(1, b"believed").unwrap().end;
    assert_eq!(log.sync_to(end).unwrap_err().kind(), ErrorKind::Stopped);
    // The process restarts without a power cut and sees the frame in the page cache.
    let (bodies, recovered) = read(&disk, Lsn(0), Lsn(0)).unwrap();
    assert_eq!(bodies, [b"believed".to_vec()]);
    let log = Log::open(&setup(&disk, 2), &recovered, Lsn(0)).unwrap();
    assert_eq!(log.durable_end(), end);
    let image = disk.crash(CrashPolicy::SyncedOnly, 0);
    assert_eq!(read(&image, Lsn(0), end).unwrap().0, bodies);
}

/// Plants a bug that needs one particular history: the test with that history must fail.
pub(super) fn fails(bug: &'static str, test: fn()) {
    let guard = plant(bug);
    let failed = std::panic::catch_unwind(test).is_err();
    assert!(guard.reached_count() > 0 && failed, "{bug}: not caught");
}

/// Breaks C9: the torn end of one crash must not become valid in the next.
#[test]
fn planted_going_on_in_the_old_file_is_caught() {
    fails("log: go on in the old file", c9_frames_behind_a_torn_one_stay_dead_after_a_second_crash);
}

/// Breaks C9: the torn end of one crash must not become valid in the next.
#[test]
fn planted_serving_without_writing_the_tail_again_is_caught() {
    fails(
        "log: serve an unsynced tail",
        what_was_read_from_the_cache_after_a_failed_sync_is_made_durable_before_serving,
    );
}

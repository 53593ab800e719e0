//! Disks that fail: no space, I/O errors, failed syncs.

use super::run;
use super::store::{empty_history, verify, History, Store};
use cheetah::testing::base::{Error, ErrorKind, Result};
use cheetah_io::sim::{CrashPolicy, Effect, Fault, Op, SimDisk};
use cheetah_io::Rng;
use std::io;

const CHECKPOINTS: usize = 6;

/// Like `run`, but continues after a failure as the engine does: the epoch is abandoned, and its
/// changes become part of the next epoch. Returns the number of failures.
fn run_on(disk: &SimDisk, history: &mut History, seed: u64, acknowledged: &mut u64) -> Result<u64> {
    let mut rng = Rng::new(seed);
    let mut refusals = 0;
    let mut refused = |result: Result<()>| match result {
        Err(error) if matches!(error.kind(), ErrorKind::Resource | ErrorKind::Io) => {
            refusals += 1;
            Ok(())
        }
        other => other,
    };
    let mut store = Store::open(disk, history)?;
    for _ in 0..CHECKPOINTS {
        refused(store.change_some(&mut rng))?;
        store.switch_epoch(disk, &mut rng, history);
        refused(store.change_some(&mut rng))?;
        refused(store.collect_garbage(&mut rng))?;
        refused(store.commit().map(|epoch| *acknowledged = epoch))?;
        refused(store.remove_dead().map(|_| ()))?;
        refused(store.map.merge_if_due().map(|_| ()))?;
    }
    disk.clear_faults();
    disk.set_space(None);
    store.switch_epoch(disk, &mut rng, history);
    let last = store.commit()?;
    *acknowledged = last;
    assert_eq!(
        verify(&disk.snapshot(), history, last),
        Ok(last),
        "the changes of the abandoned epoch are lost"
    );
    Ok(refusals)
}

/// The number of operations of this kind in the workload.
fn count(op: Op, seed: u64) -> u64 {
    let disk = SimDisk::new();
    disk.set_trace(true);
    run_on(&disk, &mut empty_history(), seed, &mut 0).unwrap();
    let name = format!("{op:?}").to_lowercase();
    let trace = disk.take_trace();
    let count = trace.iter().filter(|line| line.to_lowercase().contains(&name)).count();
    assert!(count > 0, "no {name} in the trace: {:?}", trace.first());
    count as u64
}

/// Runs the workload with a fault, and then cuts power. Returns the number of failures.
fn survives(fault: Fault, seed: u64, image_seed: u64) -> u64 {
    let (disk, mut history, mut acknowledged) = (SimDisk::new(), empty_history(), 0);
    let what = format!("{fault:?} with seed {seed}");
    disk.inject(fault);
    // If the startup fails, no database remains to continue with. A failed sync stops the engine.
    let refusals = run_on(&disk, &mut history, seed, &mut acknowledged).unwrap_or(0);
    disk.clear_faults();
    for image in 0..4 {
        let image = disk.crash(CrashPolicy::Random(0.5), image_seed * 4 + image);
        verify(&image, &history, acknowledged).unwrap_or_else(|e| panic!("{what}: {e}"));
    }
    refusals
}

fn sweep(op: Op, effect: Effect, forever: bool) {
    let mut refusals = 0;
    for seed in 0..3 {
        for nth in 0..count(op, seed) {
            let fault = Fault::on(op).after(nth).effect(effect);
            refusals += survives(if forever { fault.forever() } else { fault }, seed, nth);
        }
    }
    assert!(refusals > 0, "no fault was met");
}

#[test]
fn any_operation_may_fail_once_or_from_then_on() {
    for seed in 0..2 {
        let disk = SimDisk::new();
        run_on(&disk, &mut empty_history(), seed, &mut 0).unwrap();
        for nth in 0..disk.calls() {
            survives(Fault::any().after(nth), seed, nth);
            survives(Fault::any().after(nth).forever(), seed, nth);
        }
    }
}

#[test]
fn a_full_disk_at_any_write_loses_nothing() {
    let full = Effect::Fail(io::ErrorKind::StorageFull);
    sweep(Op::Write, full, false);
    sweep(Op::Write, full, true);
    sweep(Op::Write, Effect::ShortWrite(100), false);
}

#[test]
fn a_file_that_cannot_be_created_or_removed_loses_nothing() {
    sweep(Op::Create, Effect::Fail(io::ErrorKind::StorageFull), false);
    sweep(Op::Create, Effect::Fail(io::ErrorKind::StorageFull), true);
    sweep(Op::Unlink, Effect::Fail(io::ErrorKind::Other), false);
}

#[test]
fn a_disk_that_fills_up_refuses_and_goes_on_when_there_is_space_again() {
    let mut refusals = 0;
    for seed in 0..3 {
        for kib in 16..64 {
            let disk = SimDisk::new();
            disk.set_space(Some(kib << 10));
            match run_on(&disk, &mut empty_history(), seed, &mut 0) {
                Ok(count) => refusals += count,
                Err(error) => assert!(matches!(error, Error::DiskFull(_)), "{kib} KiB: {error}"),
            }
        }
    }
    assert!(refusals > 50, "{refusals}");
}

#[test]
fn a_failed_sync_stops_everything_and_loses_nothing_acknowledged() {
    for op in [Op::SyncData, Op::SyncDir] {
        for nth in 0..count(op, 1) {
            let disk = SimDisk::new();
            let mut history = empty_history();
            disk.inject(Fault::on(op).after(nth));
            let Err(error) = run(&disk, &mut history, 1, CHECKPOINTS) else { continue };
            assert_eq!(error.kind(), ErrorKind::Stopped, "{op:?} {nth}: {error}");
            for seed in 0..8 {
                let image = disk.crash(CrashPolicy::Random(0.5), seed);
                verify(&image, &history, 0).unwrap_or_else(|e| panic!("{op:?} {nth}: {e}"));
            }
        }
    }
}

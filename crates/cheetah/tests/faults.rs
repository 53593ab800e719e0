//! A device that fails in the middle of random workloads. Any call may fail, once or permanently.
//! The engine returns an error and never panics. After a power cut, all acknowledged changes exist.
//!
//! `CHEETAH_FAULTS` sets the number of faults (default 600), `CHEETAH_FAULT_SEED` the first seed.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::ErrorKind;
use cheetah_io::sim::{CrashPolicy, Effect, Fault, Op};
use cheetah_io::Rng;
use std::io;
use support::exploration::start;
use support::workload::{verify, Shape, Version, Workload};

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

/// The shape of the workload of a seed.
fn shape(seed: u64) -> Shape {
    Shape { seed, steps: 80, sessions: 2, ddl: seed % 3 == 0 }
}

/// A fault at a random call. `calls` is the number of calls in the entire workload.
fn random_fault(rng: &mut Rng, calls: u64) -> Fault {
    let at = rng.below(calls);
    let fault = match rng.below(5) {
        0 => Fault::on(Op::Write).after(at / 2),
        1 => Fault::on(Op::SyncData).after(at / 8),
        2 => Fault::on(Op::Read).after(at / 2),
        _ => Fault::any().after(at),
    };
    let fault = match rng.below(4) {
        0 => fault.effect(Effect::Fail(io::ErrorKind::StorageFull)),
        1 => fault.effect(Effect::Fail(io::ErrorKind::Interrupted)),
        _ => fault,
    };
    if rng.chance(0.3) {
        fault.forever()
    } else {
        fault
    }
}

/// Runs a workload with a fault, cuts power, and checks the database. Returns whether the fault
/// occurred.
fn run_into(seed: u64, calls: u64) -> Result<bool, String> {
    let (disk, contents) = start();
    let mut rng = Rng::new(seed);
    let fault = random_fault(&mut rng, calls);
    let text = format!("{fault:?}");
    disk.inject(fault);
    let (versions, acknowledged) = match Workload::open(&disk, &shape(seed), contents.clone()) {
        Err(_) => (vec![Version::of(contents)], 0),
        Ok(mut workload) => {
            // The first error ends the workload. The error depends on the failed call.
            let _ = workload.run(&shape(seed));
            let found = (std::mem::take(&mut workload.versions), workload.acknowledged);
            std::mem::forget(workload);
            found
        }
    };
    let met = disk.faults_met() > 0;
    disk.clear_faults();
    for policy in [CrashPolicy::SyncedOnly, CrashPolicy::Random(0.5), CrashPolicy::Everything] {
        let left = disk.crash(policy, seed);
        verify(&left, &versions, acknowledged, false)
            .map_err(|what| format!("{text}, {policy:?}: {what}"))?;
    }
    Ok(met)
}

#[test]
fn a_failing_device_never_takes_what_was_acknowledged() {
    let calls = {
        let (disk, contents) = start();
        let before = disk.calls();
        let mut workload = Workload::open(&disk, &shape(1), contents).unwrap();
        workload.run(&shape(1)).unwrap();
        std::mem::forget(workload);
        disk.calls() - before
    };
    let (first, count) = (setting("CHEETAH_FAULT_SEED", 1), setting("CHEETAH_FAULTS", 600));
    let mut met = 0;
    for seed in first..first + count {
        match run_into(seed, calls) {
            Ok(true) => met += 1,
            Ok(false) => {}
            Err(what) => panic!(
                "{what}\nrepeat with: CHEETAH_FAULT_SEED={seed} CHEETAH_FAULTS=1 cargo test -p cheetah --test faults"
            ),
        }
    }
    println!("{count} workloads, {met} of them met their fault: all passed");
    assert!(count < 100 || met > count / 2, "{met} of {count}");
}

#[test]
fn a_disk_that_fills_up_at_any_moment_takes_nothing_and_lets_everything_be_rolled_back() {
    let mut filled = 0;
    for budget_kib in (0..400).step_by(2) {
        let (disk, contents) = start();
        disk.set_space(Some(disk.used_bytes() + (budget_kib << 10)));
        let shape = Shape { seed: budget_kib, steps: 200, sessions: 2, ddl: true };
        let Ok(mut workload) = Workload::open(&disk, &shape, contents.clone()) else {
            disk.set_space(None);
            verify(&disk, &[Version::of(contents)], 0, false).unwrap();
            continue;
        };
        let ended = workload.run(&shape);
        if let Err(error) = &ended {
            assert!(error.kind() == ErrorKind::Resource, "budget {budget_kib} KiB: {error}");
            filled += 1;
        }
        workload.roll_back_all().unwrap_or_else(|error| panic!("budget {budget_kib} KiB: {error}"));
        assert_eq!(workload.stopped(), None, "budget {budget_kib} KiB");
        let (versions, acknowledged) = (std::mem::take(&mut workload.versions), workload.acknowledged);
        drop(workload);
        disk.set_space(None);
        verify(&disk, &versions, acknowledged, false)
            .unwrap_or_else(|what| panic!("budget {budget_kib} KiB: {what}"));
    }
    println!("{filled} disks filled up");
    assert!(filled > 10, "{filled}");
}

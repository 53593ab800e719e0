//! Power cuts, and the planted bugs that they must reveal.

use super::run;
use super::store::{attempted, empty_history, verify, History};
use cheetah::testing::base::planted;
use cheetah_io::sim::{explore, Failure, Image, Plan, Report, SimDisk};

/// Cuts power during a workload, and again during a workload on the resulting disk, up to `depth`
/// times.
fn explore_from(
    start: &SimDisk,
    start_history: &History,
    plan: &Plan,
    checkpoints: usize,
    depth: u32,
) -> Result<Report, Failure> {
    let mut all = start_history.clone();
    let ran = {
        let disk = start.snapshot();
        run(&disk, &mut all, plan.seed, checkpoints).map_err(|e| e.to_string())
    };
    let place = format!("plan seed {}, without a power cut", plan.seed);
    ran.map_err(|message| Failure { place, message, before: Report::default() })?;
    let mut inner = Report::default();
    let mut history = start_history.clone();
    let check = |image: &Image| -> Result<(), String> {
        let past = attempted(start_history, &all, image.operation);
        verify(&image.disk.snapshot(), &past, image.acknowledged)?;
        if depth > 0 && image.seed % 8 == 0 {
            let plan = Plan::quick(image.seed, 6);
            inner += explore_from(&image.disk, &past, &plan, 3, depth - 1).map_err(|f| f.to_string())?;
        }
        Ok(())
    };
    let workload = |disk: &SimDisk| {
        run(disk, &mut history, plan.seed, checkpoints).unwrap();
    };
    let mut report = explore(plan, start, workload, check)?;
    report += inner;
    Ok(report)
}

fn explore_seed(seed: u64) -> Result<Report, Failure> {
    let plan =
        Plan { write_every: 8, single_images: 2, random_images: 3, exhaustive_units: 3, ..Plan::new(seed) };
    explore_from(&SimDisk::new(), &empty_history(), &plan, 8, 2)
}

#[test]
fn c9_every_power_cut_leaves_a_committed_epoch() {
    let mut report = Report::default();
    for seed in 0..5 {
        report += explore_seed(seed).unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    }
    println!("{report:?}");
    assert!(report.images_count > 5_000, "{report:?}");
}

fn is_caught(bug: &'static str) {
    let planted = planted::plant(bug);
    let failure = (0..40).find_map(|seed| {
        let caught = std::panic::catch_unwind(|| explore_seed(seed).map_err(|failure| failure.to_string()));
        caught.unwrap_or_else(|_| Err("panic in the workload".into())).err()
    });
    assert!(planted.reached_count() > 0, "{bug} was never reached");
    println!("{bug}: {}", failure.unwrap_or_else(|| panic!("{bug} was not caught")));
}

#[test]
fn a_map_committed_before_its_images_are_synced_is_caught() {
    is_caught("segment: skip the sync of images");
}

#[test]
fn a_new_segment_whose_name_is_not_synced_is_caught() {
    is_caught("segment: skip the directory sync of a new file");
}

#[test]
fn a_control_file_written_before_the_map_is_synced_is_caught() {
    is_caught("control: write it before the map is synced");
}

#[test]
fn copies_of_the_control_file_written_together_are_caught() {
    is_caught("control: write both copies under one barrier");
}

/// Breaks C9: a block that CONTROL does not name must not be applied.
#[test]
fn an_orphan_block_that_is_applied_is_caught() {
    is_caught("map: apply an orphan block");
}

#[test]
fn a_segment_unlinked_an_epoch_too_early_is_caught() {
    is_caught("segment: unlink an epoch too early");
}

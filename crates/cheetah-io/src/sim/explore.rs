//! Exploration of crashes: runs a workload once, cuts power at every relevant moment, and checks
//! every image.
//!
//! The moments are: before each changing operation other than a write (so at every sync boundary,
//! before and after every create, rename and unlink), before some of the writes, and at the end.
//! For each moment, images are made under all policies of [`CrashPolicy`]; the check opens the
//! image and compares it with a model, and with the promise that the workload had recorded by then
//! with [`SimDisk::acknowledge`].
//!
//! To cut power during recovery too, call [`explore`] from the check, with the image as the start
//! and the recovery as the workload.

use super::crash::CrashPolicy;
use super::disk::{CrashPoint, SimDisk};
use crate::rng::Rng;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// How much to explore.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed of all random decisions.
    pub seed: u64,
    /// Also explore the moment before every `write_every`-th write; 0 for none.
    pub write_every: u64,
    /// The maximum number of moments: the end, and a random choice of the others.
    pub points_max: usize,
    /// If a moment has at most this many unsynced units, all their subsets are tried.
    pub exhaustive_units: usize,
    /// Otherwise: the number of images with only one unit kept, and of images with only one unit
    /// lost.
    pub single_images: usize,
    /// Otherwise: the number of images with random subsets.
    pub random_images: usize,
}

impl Plan {
    /// A thorough exploration of a small workload.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            write_every: 1,
            points_max: usize::MAX,
            exhaustive_units: 4,
            single_images: 6,
            random_images: 6,
        }
    }

    /// About five images for each of at most `points_max` moments.
    pub fn quick(seed: u64, points_max: usize) -> Self {
        let new = Self::new(seed);
        Self { points_max, exhaustive_units: 1, single_images: 1, random_images: 2, ..new }
    }
}

/// The disk after a power cut.
pub struct Image {
    /// The disk; the check may write to it.
    pub disk: SimDisk,
    /// The number that the workload had acknowledged.
    pub acknowledged: u64,
    /// Number of the changing operation before which power was cut.
    pub operation: u64,
    /// How the image was made: for messages.
    pub policy: CrashPolicy,
    /// Seed of the image: for messages, and for exploring further from it.
    pub seed: u64,
}

/// The extent of an exploration.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Report {
    /// The number of moments.
    pub points_count: usize,
    /// The number of checked images.
    pub images_count: usize,
}

impl std::ops::AddAssign for Report {
    fn add_assign(&mut self, other: Self) {
        self.points_count += other.points_count;
        self.images_count += other.images_count;
    }
}

/// An image that the check refused.
#[derive(Debug)]
pub struct Failure {
    /// The moment, and how the image was made. With the seed of the plan it can be recreated.
    pub place: String,
    /// The message of the check.
    pub message: String,
    /// The extent of the exploration up to this failure.
    pub before: Report,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\n  {}\n  after {} good images", self.place, self.message, self.before.images_count)
    }
}

/// Runs `workload` on a copy of `start` and `check` on every image of a power cut during or after
/// it. Stops at the first image that `check` refuses or panics on.
///
/// The workload may fail half-way (it decides whether that is an error); its panics are passed on.
pub fn explore(
    plan: &Plan,
    start: &SimDisk,
    workload: impl FnOnce(&SimDisk),
    mut check: impl FnMut(&Image) -> Result<(), String>,
) -> Result<Report, Failure> {
    let disk = start.snapshot();
    disk.start_recording(plan.write_every);
    workload(&disk);
    let mut rng = Rng::new(plan.seed);
    let mut report = Report::default();
    for point in choose(disk.finish_recording(), plan.points_max, &mut rng) {
        report.points_count += 1;
        for policy in policies(plan, &point, &mut rng) {
            let seed = rng.next_u64();
            let image = Image {
                disk: SimDisk::of(point.world.crash(policy, seed)),
                acknowledged: point.acknowledged,
                operation: point.operation,
                policy,
                seed,
            };
            check_one(&image, &mut check).map_err(|message| Failure {
                place: format!(
                    "plan seed {}: power cut before operation {} ({}), {policy:?}, image seed {seed}, acknowledged {}",
                    plan.seed, point.operation, point.before, point.acknowledged
                ),
                message,
                before: report,
            })?;
            report.images_count += 1;
        }
    }
    Ok(report)
}

fn choose(mut points: Vec<CrashPoint>, count_max: usize, rng: &mut Rng) -> Vec<CrashPoint> {
    if points.len() > count_max.max(1) {
        let last = points.pop();
        rng.shuffle(&mut points);
        points.truncate(count_max.max(1) - 1);
        points.sort_unstable_by_key(|point| point.operation);
        points.extend(last);
    }
    points
}

fn policies(plan: &Plan, point: &CrashPoint, rng: &mut Rng) -> Vec<CrashPolicy> {
    let units = point.world.unit_count();
    let mut policies = vec![CrashPolicy::SyncedOnly];
    if units == 0 {
        return policies;
    }
    if units <= plan.exhaustive_units {
        policies.extend((1..1 << units).map(CrashPolicy::Subset));
        return policies;
    }
    policies.push(CrashPolicy::Everything);
    for _ in 0..plan.single_images.min(units) {
        policies.push(CrashPolicy::AllButOne(rng.below(units as u64) as usize));
        let alone = point.world.sector_unit_count().max(1);
        policies.push(CrashPolicy::OneWriteAlone(rng.below(alone as u64) as usize));
    }
    for number in 0..plan.random_images {
        policies.push(CrashPolicy::Random([0.5, 0.9, 0.1][number % 3]));
    }
    policies
}

fn check_one(image: &Image, check: &mut impl FnMut(&Image) -> Result<(), String>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| check(image))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("not a string");
        Err(format!("panic: {text}"))
    })
}

//! Power cuts at the moments of a random workload, and in the recoveries after them.

use super::workload::{verify, Contents, Shape, Version, Workload};
use super::{env, insert, open, spec, Row, Rows};
use cheetah::testing::base::Config;
use cheetah::testing::db::Db;
use cheetah_io::sim::SimDisk;
use cheetah_io::sim::{explore, Failure, Image, Plan, Report};
use std::cell::RefCell;

/// The maximum depth of power cuts in recoveries of recoveries.
const DEPTH_MAX: usize = 3;

/// A database with two tables, closed by a power cut that lost nothing.
pub fn start() -> (SimDisk, Contents) {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let mut contents = Contents::new();
    for name in ["a", "b"] {
        let table = db.create_table(&spec(name)).unwrap();
        let mut txn = db.begin();
        let rows =
            (0..12).map(|key| (key, Row::new(key, if key % 6 == 0 { 3000 } else { 30 }))).collect::<Rows>();
        rows.iter().for_each(|(key, row)| insert(&mut txn, &table, *key, row).unwrap());
        txn.commit().unwrap();
        contents.insert(name.into(), rows);
    }
    db.close().unwrap();
    (disk, contents)
}

/// Runs the workload of a seed once and cuts power at some of its moments. Checks every image, and
/// cuts power in some recoveries too.
pub fn explore_seed(seed: u64, points_max: usize) -> Result<Report, Failure> {
    let (disk, contents) = start();
    let sessions = 1 + seed as usize % 3;
    let shape = Shape { seed, steps: 60 + seed % 60, sessions, ddl: seed % 2 == 0 };
    let versions = RefCell::new(Vec::new());
    let run = |disk: &SimDisk| {
        let mut workload = Workload::open(disk, &shape, contents).unwrap();
        workload.run(&shape).unwrap();
        *versions.borrow_mut() = std::mem::take(&mut workload.versions);
        // The open transactions are not rolled back, because the power is cut.
        std::mem::forget(workload);
    };
    let mut deeper = Report::default();
    let mut report = explore(&Plan::quick(seed, points_max), &disk, run, |image| {
        deeper += check_image(image, &versions.borrow(), 1)?;
        Ok(())
    })?;
    report += deeper;
    Ok(report)
}

/// Checks an image. For some images, first cuts power in the recovery and checks the results.
fn check_image(image: &Image, versions: &[Version], depth: usize) -> Result<Report, String> {
    let mut deeper = Report::default();
    if depth < DEPTH_MAX && image.seed % 32 == 0 {
        let recover = |disk: &SimDisk| {
            disk.acknowledge(image.acknowledged);
            if image.seed % 64 == 0 {
                drop(open(disk));
                return;
            }
            let Ok(db) = Db::open_early(env(disk), Config::tiny()) else { return };
            while db.run_background().unwrap_or(false) {}
        };
        let plan = Plan::quick(image.seed, 4);
        let explored = explore(&plan, &image.disk, recover, |image| {
            deeper += check_image(image, versions, depth + 1)?;
            Ok(())
        });
        deeper += explored.map_err(|failure| format!("in recovery {depth}: {failure}"))?;
    }
    verify(&image.disk, versions, image.acknowledged, image.seed % 2 == 1)?;
    Ok(deeper)
}

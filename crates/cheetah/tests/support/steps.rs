//! A database and its model, which advance step by step. After a power cut, the database is in the
//! state before or after the current step.

use super::open;
use cheetah::testing::db::Db;
use cheetah_io::sim::{explore, Image, Plan, Report, SimDisk};
use cheetah_io::Rng;
use std::cell::{Cell, RefCell};

/// The expected contents of a database.
pub trait Model: Clone + Default {
    /// Changes the database and the model. The change is durable on return.
    fn step(&mut self, db: &Db, rng: &mut Rng);
    /// Compares the database with the model. The error describes a difference.
    fn check(&self, db: &Db) -> Result<(), String>;
}

/// Like [`explore_steps`], without the report.
pub fn survives<M: Model>(seed: u64, steps: u64) -> Result<(), String> {
    explore_steps::<M>(seed, steps).map(drop)
}

/// Plays the steps of a seed, with checkpoints and background work between them, and cuts power at
/// some moments. The error is the first difference.
pub fn explore_steps<M: Model>(seed: u64, steps: u64) -> Result<Report, String> {
    let models = RefCell::new(vec![M::default()]);
    let difference = Cell::new(None);
    let workload = |disk: &SimDisk| {
        let (db, mut rng) = (open(disk).unwrap(), Rng::new(seed));
        for step in 1..=steps {
            let mut model = models.borrow().last().unwrap().clone();
            model.step(&db, &mut rng);
            models.borrow_mut().push(model.clone());
            disk.acknowledge(step);
            if let Err(found) = model.check(&db) {
                difference.set(Some(format!("after step {step}: {found}")));
                return;
            }
            if rng.chance(0.2) {
                db.checkpoint().unwrap();
            }
            while rng.chance(0.3) && db.run_background().unwrap() {}
        }
    };
    let judge = |image: &Image| {
        let db = open(&image.disk).map_err(|error| error.to_string())?;
        let models = models.borrow();
        let done = image.acknowledged as usize;
        let before = models[done].check(&db);
        before.or_else(|before| match models.get(done + 1) {
            Some(model) => model.check(&db).map_err(|after| format!("{before}\nnor {after}")),
            None => Err(before),
        })
    };
    let explored = explore(&Plan::quick(seed, 30), &SimDisk::new(), workload, judge);
    match difference.take() {
        Some(difference) => Err(difference),
        None => explored.map_err(|failure| failure.to_string()),
    }
    .map_err(|difference| format!("seed {seed}: {difference}"))
}

//! Power cuts at every moment of checkpoints, collections and removals: the disk has exactly the
//! epoch that was last acknowledged, or the epoch that was being committed.

use crate::base::{Config, PageId};
use crate::pool::testing::{Database, TREE};
use crate::pool::{EpochState, PageClass};
use cheetah_io::rng::Rng;
use cheetah_io::sim::{explore, Image, Plan, SimDisk};
use std::collections::BTreeMap;

type Model = BTreeMap<PageId, u64>;

/// A workload that records the contents of each of its epochs.
struct Workload {
    rng: Rng,
    now: Model,
    /// The contents at each epoch switch. The index plus 1 is the number that is stored as the
    /// epoch's state and acknowledged after the commit.
    at_switches: Vec<Model>,
    next_value: u64,
}

impl Workload {
    fn new(seed: u64) -> Self {
        Self { rng: Rng::new(seed), now: Model::new(), at_switches: vec![Model::new()], next_value: 0 }
    }

    fn change(&mut self, db: &Database) {
        db.pool.make_room(2).unwrap();
        self.next_value += 1;
        let nth = self.rng.below(self.now.len() as u64 * 2 + 8) as usize;
        let Some(pid) = self.now.keys().nth(nth).copied() else {
            let class = PageClass::ALL[self.rng.below(12).saturating_sub(9) as usize];
            let pid = db.add(class, self.next_value);
            self.now.insert(pid, self.next_value);
            return;
        };
        if self.rng.chance(0.3) {
            db.free(pid);
            self.now.remove(&pid);
        } else {
            db.change(pid, self.next_value);
            self.now.insert(pid, self.next_value);
        }
    }

    /// A checkpoint with changes and collection between its steps.
    fn checkpoint(&mut self, db: &Database) {
        self.at_switches.push(self.now.clone());
        let number = self.at_switches.len() as u64 - 1;
        let state = EpochState { bytes: number.to_le_bytes().to_vec(), ..EpochState::default() };
        let (mut checkpoint, ()) = db.pool.end_epoch(|_| ());
        while checkpoint.write_some(8).unwrap() > 0 {
            (0..self.rng.below(6)).for_each(|_| self.change(db));
            db.upkeep.collect(2048).unwrap();
        }
        checkpoint.commit(&db.map, &state).unwrap();
        db.disk.acknowledge(number);
    }

    fn run(&mut self, disk: &SimDisk) {
        let db = Database::open(&Config::tiny(), disk.clone());
        for _ in 0..8 {
            (0..self.rng.below(80)).for_each(|_| self.change(&db));
            self.checkpoint(&db);
            db.map.merge_if_due().unwrap();
        }
    }
}

fn check(image: &Image, at_switches: &[Model]) -> Result<(), String> {
    let db = Database::open(&Config::tiny(), image.disk.snapshot());
    let state = db.state.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    if state != image.acknowledged && state != image.acknowledged + 1 {
        return Err(format!("{} was acknowledged, found {state}", image.acknowledged));
    }
    let expected = &at_switches[state as usize];
    let pages = db.pool.tree_bytes(TREE).pages;
    if pages != expected.len() as u64 {
        return Err(format!("{pages} pages instead of {}", expected.len()));
    }
    for (pid, value) in expected {
        match db.pool.fetch(*pid) {
            Ok(Some(page)) if super::testing::get(&page) == *value => {}
            other => return Err(format!("page {pid} should hold {value}: {other:?}")),
        }
    }
    Ok(())
}

#[test]
fn every_power_cut_leaves_a_whole_epoch() {
    let mut images = 0;
    for seed in 0..3 {
        let mut all = Workload::new(seed);
        all.run(&SimDisk::new());
        let plan = Plan { write_every: 6, ..Plan::quick(seed, 150) };
        let workload = |disk: &SimDisk| Workload::new(seed).run(disk);
        let report = explore(&plan, &SimDisk::new(), workload, |image| check(image, &all.at_switches));
        images += report.unwrap_or_else(|failure| panic!("seed {seed}: {failure}")).images_count;
    }
    assert!(images > 500, "{images}");
}

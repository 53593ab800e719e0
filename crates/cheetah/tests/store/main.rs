//! Segments and page map together: power cuts, damage, full disks and failed syncs, compared with a
//! model.
//!
//! The rule: after any event, a startup opens an attempted epoch, or reports an error. The epoch is
//! not older than the last acknowledged epoch. The startup finds exactly the pages and the state of
//! this epoch, and every page is readable.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod crashes;
mod damage;
mod faults;
mod order;
mod store;

use cheetah::testing::base::Result;
use cheetah_io::sim::SimDisk;
use cheetah_io::Rng;
use store::{History, Store};

/// Runs a random workload with `checkpoints` checkpoints on `disk`, and acknowledges every
/// committed epoch to the disk. Returns the number of removed segments.
fn run(disk: &SimDisk, history: &mut History, seed: u64, checkpoints: usize) -> Result<u64> {
    let mut rng = Rng::new(seed);
    let mut store = Store::open(disk, history)?;
    let mut removed = 0;
    for _ in 0..checkpoints {
        store.change_some(&mut rng)?;
        store.switch_epoch(disk, &mut rng, history);
        // The next changes belong to the next epoch, while this epoch is being written.
        store.change_some(&mut rng)?;
        removed += store.remove_dead()?;
        store.collect_garbage(&mut rng)?;
        let epoch = store.commit()?;
        disk.acknowledge(epoch);
        removed += store.remove_dead()?;
        if rng.chance(0.3) {
            store.map.merge_if_due()?;
        }
    }
    Ok(removed)
}

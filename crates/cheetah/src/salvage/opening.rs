//! Opens a damaged database as completely as possible.

use super::Disks;
use crate::base::{Config, Error, Result};
use crate::recovery::{open_damaged, Extent};
use crate::table::shared::parts::Core;
use cheetah_io::{Clock, Disk, OverlayDisk};
use std::sync::Arc;

/// The extents to try, the largest first. [`note_failures`] records what the smaller ones lack.
const EXTENTS: [Extent; 3] = [Extent::WithLog, Extent::Epoch, Extent::WithoutUndo];

/// Opens the database to the largest possible extent and records what is missing. Returns the error
/// of the last attempt, or one that would fail all attempts.
pub(super) fn open(disks: &Disks, clock: &Arc<dyn Clock>, config: &Config) -> Result<Core> {
    let mut failures: Vec<Error> = Vec::new();
    for extent in EXTENTS {
        let overlay = OverlayDisk::new(Arc::clone(&disks.damaged), Arc::clone(&disks.scratch));
        let disk: Arc<dyn Disk> = Arc::new(overlay);
        match open_damaged(disk, Arc::clone(clock), config, extent) {
            Ok(core) => {
                note_failures(&core, &failures);
                return Ok(core);
            }
            Err(
                error @ (Error::Unsupported { .. }
                | Error::DiskFull(_)
                | Error::Setting { .. }
                | Error::Key { .. }),
            ) => {
                return Err(error);
            }
            Err(error) => failures.push(error),
        }
    }
    let nothing = || Error::corrupt("the database", "no part of it can be opened");
    Err(failures.pop().unwrap_or_else(nothing))
}

fn note_failures(core: &Core, failures: &[Error]) {
    let Some(losses) = &core.losses else { return };
    let lost = ["what was committed after the last checkpoint", "rows that open transactions had changed"];
    for (lost, error) in lost.iter().zip(failures) {
        losses.note(format!("{lost}: lost, {error}"));
    }
}

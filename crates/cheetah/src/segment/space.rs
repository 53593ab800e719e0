//! The guard of free disk space: changes are refused while there is still room to write what was
//! accepted before.

use crate::base::{Error, Result};
use cheetah_io::Disk;
use parking_lot::Mutex;

/// The file system is asked again after so many bytes, or a quarter of the reserve: others write on
/// the disk too.
const REFRESH_BYTES_MAX: u64 = 4 << 20;
/// Least reserve: room for the page map, the log and CONTROL.
const RESERVE_BYTES_MIN: u64 = 1 << 20;

/// How much of the reserve must stay free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reserve {
    /// All of it.
    Whole,
    /// Half of it.
    Half,
}

/// See the module.
pub(super) struct Space {
    reserve_bytes: u64,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    free_bytes: u64,
    written_bytes: u64,
    asked: bool,
}

/// What must stay free of a disk: room for the collector to work in, two segments, but on a small
/// disk no more than a sixteenth of it.
fn reserve_bytes(segment_bytes: u64, disk_bytes: u64) -> u64 {
    let least = RESERVE_BYTES_MIN.min(2 * segment_bytes);
    (2 * segment_bytes).min((disk_bytes / 16).max(least))
}

impl Space {
    /// The guard of a disk on which the database occupies `used_bytes`.
    pub(super) fn new(disk: &dyn Disk, segment_bytes: u64, used_bytes: u64) -> Result<Self> {
        let free = disk.free_bytes().map_err(|e| Error::io("free space", "", e))?;
        let reserve_bytes = reserve_bytes(segment_bytes, free.saturating_add(used_bytes));
        Ok(Self { reserve_bytes, known: Mutex::default() })
    }

    /// Notes bytes that were written.
    pub(super) fn wrote(&self, bytes: u64) {
        self.known.lock().written_bytes += bytes;
    }

    /// `Err(DiskFull)` unless `needed_bytes` can be written and so much of the reserve stays.
    pub(super) fn check(&self, disk: &dyn Disk, needed_bytes: u64, reserve: Reserve) -> Result<()> {
        let stays_bytes = match reserve {
            Reserve::Whole => self.reserve_bytes,
            Reserve::Half => self.reserve_bytes / 2,
        };
        let needed = needed_bytes.saturating_add(stays_bytes);
        let mut known = self.known.lock();
        let enough = |known: &Known| known.free_bytes.saturating_sub(known.written_bytes) >= needed;
        if known.asked
            && known.written_bytes < REFRESH_BYTES_MAX.min(self.reserve_bytes / 4)
            && enough(&known)
        {
            return Ok(());
        }
        let free_bytes = disk.free_bytes().map_err(|e| Error::io("free space", "", e))?;
        *known = Known { free_bytes, written_bytes: 0, asked: true };
        if enough(&known) {
            return Ok(());
        }
        Err(Error::DiskFull(format!("{free_bytes} bytes free, {needed} needed")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cheetah_io::sim::SimDisk;

    #[test]
    fn the_reserve_is_two_segments_or_a_part_of_a_small_disk() {
        let mib = 1 << 20;
        let check = |disk, expect| assert_eq!(reserve_bytes(64 * mib, disk), expect);
        check(u64::MAX, 128 * mib);
        check(1600 * mib, 100 * mib);
        check(16 * mib, mib);
        assert_eq!(reserve_bytes(32 << 10, 16 * mib), 64 << 10);
    }

    #[test]
    fn a_change_is_refused_before_the_reserve_is_touched_and_accepted_when_space_returns() {
        let disk = SimDisk::new();
        let space = Space::new(&disk, 32 << 10, 0).unwrap();
        disk.set_space(Some(100_000));
        assert!(space.check(&disk, 30_000, Reserve::Whole).is_ok());
        space.wrote(10_000);
        let error = space.check(&disk, 40_000, Reserve::Whole).unwrap_err();
        assert!(matches!(error, Error::DiskFull(_)), "{error}");
        assert!(space.check(&disk, 40_000, Reserve::Half).is_ok(), "deletes may use a half");
        disk.set_space(None);
        assert!(space.check(&disk, 40_000, Reserve::Whole).is_ok());
    }
}

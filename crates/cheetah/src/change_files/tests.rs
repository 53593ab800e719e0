//! Files that are written, damaged and read.

use super::*;
use crate::base::planted::plant;
use crate::base::{Health, PageId, SegmentId};
use crate::format::{ImageRef, Location};
use cheetah_io::sim::{Effect, Fault, Op, SimClock, SimDisk};
use cheetah_io::Rng;

fn no_keys() -> Arc<Keys> {
    Keys::none(Arc::new(SimClock::default()), [5; 16])
}

fn saved(pid: u64, changes: &[u8]) -> SavedChanges<'_> {
    let location = Location { segment: SegmentId(3), offset: 640, stored_bytes: 900, crc: 77 };
    let image = ImageRef { pid: PageId(pid), tree: TreeId(20 + pid as u32 % 2), location };
    SavedChanges { image, begins: true, room: 4000, growth_bytes: 120, changes }
}

fn on(disk: &SimDisk) -> Arc<Durable> {
    let durable = Durable::new(Arc::new(disk.clone()), Arc::new(Health::default()));
    prepare(&durable, &[]).unwrap();
    Arc::new(durable)
}

fn write(durable: &Arc<Durable>, epoch: Epoch, count: u64) -> ListedFile {
    remove(durable, epoch).unwrap();
    let mut writer = Writer::create(durable, &no_keys(), epoch).unwrap();
    for pid in 0..count {
        writer.push(&saved(pid, &[pid as u8; 300])).unwrap();
    }
    writer.finish().unwrap()
}

fn pids(durable: &Durable, listed: &ListedFile) -> Result<Vec<u64>> {
    let mut pids = Vec::new();
    let is_damaged = read(durable, &no_keys(), listed, |saved| {
        assert_eq!(saved.changes, [saved.image.pid.0 as u8; 300]);
        pids.push(saved.image.pid.0);
        Ok(())
    })?;
    assert_eq!(is_damaged, !durable.health().background_errors().list().is_empty());
    Ok(pids)
}

#[test]
fn all_records_come_back_after_a_power_cut() {
    let disk = SimDisk::new();
    let listed = write(&on(&disk), Epoch(7), 1000);
    assert_eq!(listed.trees, [TreeId(20), TreeId(21)]);
    let left = disk.crash(cheetah_io::sim::CrashPolicy::SyncedOnly, 1);
    let durable = Durable::new(Arc::new(left), Arc::new(Health::default()));
    assert_eq!(pids(&durable, &listed).unwrap(), (0..1000).collect::<Vec<_>>());
}

#[test]
fn a_file_that_is_not_the_listed_one_is_refused() {
    let disk = SimDisk::new();
    let durable = on(&disk);
    let listed = write(&durable, Epoch(7), 1000);
    let longer = write(&durable, Epoch(7), 1001);
    assert!(pids(&durable, &listed).is_err());
    assert_eq!(pids(&durable, &longer).unwrap().len(), 1001);
    remove(&durable, Epoch(7)).unwrap();
    assert!(pids(&durable, &longer).unwrap_err().to_string().contains("open"));
}

/// Whether all records of a file of so many come back, after that was done to it.
fn reads_after(count: u64, damage: impl FnOnce(&SimDisk, &ListedFile)) -> bool {
    let disk = SimDisk::new();
    let durable = on(&disk);
    let listed = write(&durable, Epoch(7), count);
    damage(&disk, &listed);
    match pids(&durable, &listed) {
        Ok(found) => {
            assert_eq!(found, (0..count).collect::<Vec<_>>());
            true
        }
        Err(error) => {
            assert!(matches!(error, Error::Corruption { .. } | Error::Io { .. }), "{error}");
            false
        }
    }
}

/// How many records make a file that is longer than its parity.
const MANY: u64 = 60_000;

#[test]
fn f3_damage_within_the_reach_of_parity_is_mended() {
    let path = path_of(Epoch(7));
    for count in [1, 1000, MANY] {
        let mut rng = Rng::new(count);
        for _ in 0..12 {
            let place = |rng: &mut Rng, listed: &ListedFile| rng.below(listed.bytes);
            assert!(reads_after(count, |disk, listed| {
                disk.flip(&path, place(&mut rng, listed), 3).unwrap();
            }));
            assert!(reads_after(count, |disk, listed| {
                let at = place(&mut rng, listed);
                let length = (listed.bytes - at).min(4096) as usize;
                disk.overwrite(&path, at, &rng.bytes(length)).unwrap();
            }));
            assert!(reads_after(count, |disk, listed| {
                let at = place(&mut rng, listed) / 4096 * 4096;
                let unreadable = Effect::Unreadable(at, at + 4096);
                disk.inject(Fault::on(Op::Read).path(&path).effect(unreadable).forever());
            }));
            assert!(reads_after(count, |disk, listed| {
                // Nobody needs the parity.
                let behind = bytes_on_disk(listed) - listed.bytes;
                disk.flip(&path, listed.bytes + rng.below(behind), 5).unwrap();
            }));
        }
    }
}

#[test]
fn f3_what_parity_cannot_mend_is_corruption() {
    let path = path_of(Epoch(7));
    let both = |disk: &SimDisk, listed: &ListedFile| {
        disk.flip(&path, 70, 3).unwrap();
        disk.flip(&path, parity_at(listed.bytes) + 70, 4).unwrap();
    };
    assert!(!reads_after(1000, both));
    assert!(!reads_after(MANY, both));
    assert!(!reads_after(MANY, |disk, listed| {
        disk.flip(&path, 70, 3).unwrap();
        disk.flip(&path, listed.bytes - 1, 3).unwrap();
    }));
    assert!(!reads_after(1000, |disk, listed| {
        // A file of an older version.
        let file = disk.contents(&path).unwrap();
        disk.put(&path, &file[..listed.bytes as usize]).unwrap();
        disk.flip(&path, 70, 3).unwrap();
    }));
    let bug = plant("change files: forget parity");
    assert!(!reads_after(1000, |disk, _| disk.flip(&path, 70, 3).unwrap()));
    assert!(bug.reached_count() > 0);
}

#[test]
fn only_listed_files_stay() {
    let disk = SimDisk::new();
    let durable = on(&disk);
    let listed = [1, 2, 3].map(|epoch| write(&durable, Epoch(epoch), 5));
    prepare(&durable, &listed[1..2]).unwrap();
    assert_eq!(durable.disk().list(DIRECTORY).unwrap(), ["2.chg"]);
}

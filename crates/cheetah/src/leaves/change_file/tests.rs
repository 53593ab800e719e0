//! Tests of change files that are written, damaged and read.

use super::*;
use crate::base::planted::plant;
use crate::base::{Health, PageId, SegmentId};
use crate::format::parity::PARITY_BYTES;
use crate::format::{ImageRef, Location};
use cheetah_io::sim::{SimClock, SimDisk};
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

/// Like [`on`], with the existing files.
fn on_kept(disk: &SimDisk) -> Arc<Durable> {
    Arc::new(Durable::new(Arc::new(disk.clone()), Arc::new(Health::default())))
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
    read(durable, &no_keys(), listed, |saved| {
        assert_eq!(saved.changes, [saved.image.pid.0 as u8; 300]);
        pids.push(saved.image.pid.0);
        Ok(())
    })?;
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

/// Returns whether all `count` records of a file can be read after `damage` has changed the file.
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

/// The number of records of a file that is longer than its parity.
const MANY: u64 = 60_000;

/// A file of records that cannot be compressed. The last record of some blocks is as long as the
/// room of a page. Returns the offset and the length of the longest block.
fn of_long_blocks(disk: &SimDisk) -> (ListedFile, u64, u64) {
    let (durable, mut rng) = (on(disk), Rng::new(3));
    let mut writer = Writer::create(&durable, &no_keys(), Epoch(7)).unwrap();
    let (mut longest, mut begin, mut end) = (0, 0, writer.end);
    for pid in 0..400 {
        writer.push(&saved(pid, &rng.bytes([900, 32 << 10][pid as usize % 71 / 70]))).unwrap();
        if writer.end - end > longest {
            (longest, begin) = (writer.end - end, end);
        }
        end = writer.end;
    }
    (writer.finish().unwrap(), begin, longest)
}

#[test]
fn f3_parity_reaches_over_the_longest_block_and_a_sector() {
    let (path, disk) = (path_of(Epoch(7)), SimDisk::new());
    let (listed, begin, longest) = of_long_blocks(&disk);
    assert!(listed.bytes > PARITY_BYTES as u64 && longest > 90 << 10, "{longest} bytes");
    let last_sector = (begin + longest - 1) / 4096 * 4096;
    disk.overwrite(&path, last_sector, &Rng::new(1).bytes(4096)).unwrap();
    disk.flip(&path, begin, 1).unwrap();
    let (durable, mut count) = (on_kept(&disk), 0);
    let damage = read(&durable, &no_keys(), &listed, |_| {
        count += 1;
        Ok(())
    });
    let damage = damage.unwrap().unwrap().to_string();
    assert!(count == 400 && damage.contains("repaired from its parity"), "{count} records: {damage}");
}

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
                disk.make_unreadable(&path, at..at + 4096);
            }));
            assert!(reads_after(count, |disk, listed| {
                // The parity itself is not needed here.
                let behind = bytes_on_disk(listed) - listed.bytes;
                disk.flip(&path, listed.bytes + rng.below(behind), 5).unwrap();
            }));
        }
    }
}

/// Breaks V8: the parity of a file must follow its listed bytes.
#[test]
fn f3_what_parity_cannot_mend_is_an_error() {
    let path = path_of(Epoch(7));
    let both = |disk: &SimDisk, listed: &ListedFile| {
        disk.flip(&path, 70, 3).unwrap();
        disk.flip(&path, parity_at(listed.bytes) + 70, 4).unwrap();
    };
    assert!(!reads_after(1000, both));
    assert!(!reads_after(MANY, both));
    assert!(!reads_after(MANY, |disk, listed| {
        assert!(listed.bytes > 2 * PARITY_BYTES as u64);
        disk.flip(&path, 70, 3).unwrap();
        disk.flip(&path, listed.bytes - 1, 3).unwrap();
    }));
    assert!(!reads_after(1000, |disk, listed| {
        // The file of an older version has no parity.
        let file = disk.contents(&path).unwrap();
        disk.put(&path, &file[..listed.bytes as usize]).unwrap();
        disk.flip(&path, 70, 3).unwrap();
    }));
    assert!(!reads_after(1000, |disk, listed| {
        for at in [0, parity_at(listed.bytes)] {
            disk.make_unreadable(&path, at..at + 4096);
        }
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

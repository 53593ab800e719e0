//! Tests the segment store alone. `tests/store` tests it together with the page map.

use super::segments::Segments;
use super::{ImageBuffer, ImageRef, Location, Stream};
use crate::base::planted::plant;
use crate::base::{Config, Epoch, Error, Health, PageId, Result, SegmentId, TreeId};
use crate::durable::Durable;
use crate::format::control::Identity;
use crate::format::segment_header::{SegmentHeader, HEADER_BYTES};
use cheetah_io::sim::{Effect, Fault, Op, SimDisk};
use cheetah_io::{Disk, Rng};
use std::sync::Arc;

fn config() -> Config {
    Config { segment_bytes: 8 << 10, ..Config::tiny() }
}

fn open(disk: &SimDisk, next_segment: u32) -> Segments {
    open_with(disk, &config(), next_segment)
}

pub(super) fn open_with(disk: &SimDisk, config: &Config, next_segment: u32) -> Segments {
    let durable = Arc::new(Durable::new(Arc::new(disk.clone()), Arc::new(Health::default())));
    let identity = Identity { uuid: [7; 16], incarnation: 1 };
    Segments::open(durable, config, identity, SegmentId(next_segment)).unwrap()
}

fn open_empty(disk: &SimDisk) -> Segments {
    let segments = open(disk, 1);
    segments.end_startup(Epoch(0)).unwrap();
    segments
}

fn image(pid: u64, bytes: usize) -> Vec<u8> {
    let mut image = Rng::new(pid).bytes(bytes.max(48));
    image[..4].copy_from_slice(b"IMG1");
    image[4..8].copy_from_slice(&(bytes.max(48) as u32).to_le_bytes());
    image[8..16].copy_from_slice(&pid.to_le_bytes());
    image
}

pub(super) fn append(segments: &Segments, pid: u64, bytes: usize) -> Result<(Location, Vec<u8>)> {
    let mut image = image(pid, bytes);
    Ok((segments.append(Stream::Hot, &mut image)?, image))
}

pub(super) fn read(segments: &Segments, location: &Location) -> Result<Vec<u8>> {
    let mut image = ImageBuffer::default();
    let image_ref = ImageRef { pid: PageId(1), tree: TreeId::FIRST_USER, location: *location };
    segments.read(&image_ref, &mut image)?;
    Ok(image.to_vec())
}

#[test]
fn an_image_is_readable_from_the_buffer_from_the_file_and_after_a_startup() {
    let disk = SimDisk::new();
    let segments = open_empty(&disk);
    let images: Vec<_> = (1..60).map(|pid| append(&segments, pid, 10 * pid as usize).unwrap()).collect();
    let check = |segments: &Segments| {
        images.iter().for_each(|(location, image)| assert_eq!(&read(segments, location).unwrap(), image));
    };
    check(&segments);
    segments.sync().unwrap();
    check(&segments);
    check(&open(&disk, 1));
    assert!(segments.stats().len() > 1, "more than one file was needed");
}

#[test]
fn files_hold_no_slack() {
    let disk = SimDisk::new();
    let segments = open_empty(&disk);
    (1..60).for_each(|pid| drop(append(&segments, pid, 500).unwrap()));
    segments.sync().unwrap();
    for stat in segments.stats() {
        let path = super::segment_file::path(stat.segment);
        assert_eq!(disk.contents(&path).unwrap().len() as u64, stat.file_bytes);
    }
}

#[test]
fn a_location_that_is_not_what_was_written_is_corruption() {
    let disk = SimDisk::new();
    let segments = open_empty(&disk);
    let (first, _) = append(&segments, 1, 300).unwrap();
    let (second, _) = append(&segments, 2, 300).unwrap();
    let wrong = [
        Location { crc: first.crc ^ 1, ..first },
        Location { crc: second.crc, ..first },
        Location { offset: second.offset, ..first },
        Location { stored_bytes: 299, ..first },
        Location { stored_bytes: 0, ..first },
        Location { stored_bytes: u32::MAX, ..first },
        Location { offset: u32::MAX, ..first },
        Location { segment: SegmentId(77), ..first },
    ];
    for synced in [false, true] {
        for location in &wrong {
            let error = read(&segments, location).unwrap_err();
            assert!(matches!(error, Error::Corruption { .. }), "{synced} {location}: {error}");
        }
        segments.sync().unwrap();
    }
}

#[test]
fn a_refused_write_leaves_buffered_images_readable_and_writes_them_later() {
    let disk = SimDisk::new();
    let segments = open_empty(&disk);
    let mut kept = vec![append(&segments, 1, 600).unwrap()];
    let full = Effect::Fail(std::io::ErrorKind::StorageFull);
    disk.inject(Fault::on(Op::Write).forever().effect(full));
    let mut refused = 0;
    for pid in 2..20 {
        match append(&segments, pid, 600) {
            Ok(image) => kept.push(image),
            Err(error) => {
                assert!(matches!(error, Error::DiskFull(_)), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 10 && segments.sync().is_err());
    disk.clear_faults();
    segments.sync().unwrap();
    let again = open(&disk, 1);
    kept.iter().for_each(|(location, image)| assert_eq!(&read(&again, location).unwrap(), image));
}

#[test]
fn a_segment_goes_when_its_last_image_is_dead_in_a_committed_epoch() {
    let disk = SimDisk::new();
    let segments = open_empty(&disk);
    let images: Vec<_> = (1..14).map(|pid| append(&segments, pid, 1000).unwrap().0).collect();
    let (first, rest): (Vec<_>, Vec<_>) = images.into_iter().partition(|l| l.segment == SegmentId(1));
    assert!(!rest.is_empty());
    segments.sync().unwrap();
    let (last, others) = first.split_last().unwrap();
    others.iter().for_each(|location| segments.release(location, Epoch(9)));
    let removed = |committed| segments.remove_dead(Epoch(committed)).unwrap().files_count;
    assert_eq!(removed(9), 0, "one image is live");
    segments.release(last, Epoch(11));
    assert_eq!(removed(10), 0, "epoch 10 names the segment");
    assert_eq!(removed(11), 1);
    assert!(read(&segments, last).is_err());
    assert!(read(&segments, &rest[0]).is_ok());
}

#[test]
fn nothing_is_removed_before_the_map_is_loaded_and_then_what_it_does_not_name() {
    let disk = SimDisk::new();
    let segments = open_empty(&disk);
    let images: Vec<_> = (1..30).map(|pid| append(&segments, pid, 1000).unwrap().0).collect();
    segments.sync().unwrap();
    let again = open(&disk, 2);
    assert_eq!(again.remove_dead(Epoch(5)).unwrap().files_count, 0);
    again.retain(&images[0]);
    let files = again.stats().len() as u64;
    assert_eq!(again.end_startup(Epoch(5)).unwrap().files_count, files - 1);
    assert!(read(&again, &images[0]).is_ok());
}

/// Returns the ID of the next segment after the files of all earlier IDs were removed.
fn number_after_all_have_gone() -> u32 {
    let disk = SimDisk::new();
    let segments = open(&disk, 40);
    segments.end_startup(Epoch(0)).unwrap();
    let (location, _) = append(&segments, 1, 100).unwrap();
    segments.sync().unwrap();
    let next = segments.next_segment();
    drop(segments);
    disk.remove(&format!("seg/{:08}.seg", location.segment.0)).unwrap();
    let again = open(&disk, next.0);
    again.end_startup(Epoch(0)).unwrap();
    append(&again, 1, 100).unwrap().0.segment.0
}

#[test]
fn numbers_of_segments_are_not_reused_when_their_files_have_gone() {
    assert_eq!(number_after_all_have_gone(), 41);
    let _bug = plant("segment: give numbers out again after a startup");
    assert!(number_after_all_have_gone() <= 40);
}

/// Returns the number of syncs that appends request, on a disk that refuses each sync.
fn syncs_of_appends() -> u64 {
    let disk = SimDisk::new();
    let segments = open_empty(&disk);
    disk.inject(Fault::on(Op::SyncData).forever());
    for pid in 1..200 {
        if append(&segments, pid, 1000).is_err() {
            break;
        }
    }
    disk.faults_met()
}

/// Breaks T7: an append must not wait for a sync.
#[test]
fn an_append_waits_for_no_sync() {
    assert_eq!(syncs_of_appends(), 0);
    let _bug = plant("segment: sync what is appended");
    assert!(syncs_of_appends() > 0);
}

#[test]
fn numbers_of_segments_are_not_reused() {
    let disk = SimDisk::new();
    let segments = open(&disk, 40);
    segments.end_startup(Epoch(0)).unwrap();
    let (location, _) = append(&segments, 1, 100).unwrap();
    assert_eq!(location.segment, SegmentId(40));
    segments.sync().unwrap();
    let again = open(&disk, 7);
    again.end_startup(Epoch(0)).unwrap();
    assert_eq!(append(&again, 1, 100).unwrap().0.segment, SegmentId(41));
    assert_eq!(again.next_segment(), SegmentId(42));
}

#[test]
fn iteration_finds_every_image_and_skips_what_is_damaged() {
    let disk = SimDisk::new();
    let segments = open_empty(&disk);
    let mut expected: Vec<_> =
        (1..9).map(|pid| (PageId(pid), append(&segments, pid, 70 * pid as usize).unwrap().0)).collect();
    let found = |segments: &Segments| {
        let mut found = Vec::new();
        let mut visit = |image: super::Image<'_>| {
            found.push((image.pid, image.location));
            Ok(())
        };
        segments.iterate(SegmentId(1), &mut visit).unwrap();
        found
    };
    assert_eq!(found(&segments), expected, "with images still in the buffer");
    segments.sync().unwrap();
    let mut header = [0; HEADER_BYTES];
    disk.open("seg/00000001.seg").unwrap().read_at(0, &mut header).unwrap();
    let header = SegmentHeader::decode(&header).unwrap();
    assert_eq!((header.uuid, header.segment), ([7; 16], SegmentId(1)));
    let (_, damaged) = expected.remove(3);
    disk.flip("seg/00000001.seg", u64::from(damaged.offset) + 20, 0).unwrap();
    assert_eq!(found(&segments), expected);
}

/// Breaks S6: garbage collection must wait for two commits.
#[test]
fn the_emptiest_segment_is_collected_first_but_not_one_sealed_after_the_last_epoch_switch() {
    let disk = SimDisk::new();
    let segments = open_empty(&disk);
    let images: Vec<_> = (1..40).map(|pid| append(&segments, pid, 1000).unwrap().0).collect();
    let release = |segment: u32, count: usize| {
        let mine = images.iter().filter(|location| location.segment == SegmentId(segment)).take(count);
        mine.for_each(|location| segments.release(location, Epoch(1)));
    };
    release(2, 2);
    release(3, 6);
    assert_eq!(segments.victim(), None, "sealed since the last epoch switch");
    let bug = plant("segment: collect what was sealed a moment ago");
    assert_eq!(segments.victim(), Some(SegmentId(3)));
    drop(bug);
    segments.remove_dead(Epoch(1)).unwrap();
    assert_eq!(segments.victim(), None, "perhaps sealed between the epoch switch and the commit of epoch 1");
    segments.remove_dead(Epoch(2)).unwrap();
    assert_eq!(segments.victim(), Some(SegmentId(3)));
    segments.quarantine(SegmentId(3));
    assert_eq!(segments.victim(), Some(SegmentId(2)));
    segments.quarantine(SegmentId(2));
    assert_eq!(segments.victim(), None, "the others are full");
    assert!(segments.totals().fill() > 500);
}

#[test]
fn an_image_longer_than_a_segment_is_refused() {
    let disk = SimDisk::new();
    let segments = open_empty(&disk);
    let error = append(&segments, 1, 8 << 10).unwrap_err();
    assert!(matches!(error, Error::Limit { .. }), "{error}");
    assert!(append(&segments, 1, (8 << 10) - 64).is_ok());
}

#[test]
#[should_panic(expected = "S1")]
fn releasing_more_than_was_live_panics() {
    let segments = open_empty(&SimDisk::new());
    let (location, _) = append(&segments, 1, 100).unwrap();
    segments.release(&location, Epoch(1));
    segments.release(&location, Epoch(1));
}

#[test]
fn many_threads_append_read_and_sync() {
    let disk = SimDisk::new();
    let segments = open_empty(&disk);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let segments = &segments;
            scope.spawn(move || {
                let mut images = Vec::new();
                for number in 0..200 {
                    let pid = 1 + thread * 1000 + number;
                    images.push(append(segments, pid, 40 + number as usize * 3).unwrap());
                    if number % 50 == 49 {
                        segments.sync().unwrap();
                    }
                    let (location, image) = &images[number as usize / 2];
                    assert_eq!(&read(segments, location).unwrap(), image);
                }
            });
        }
    });
    let totals = segments.totals();
    assert!(totals.live_bytes > 200_000 && totals.live_bytes <= totals.file_bytes);
}

/// I3 of handles: only files that are no longer written are reopened for reads that bypass the page
/// cache.
#[test]
fn a_file_is_opened_again_once_it_is_sealed_and_synced() {
    let disk = SimDisk::new();
    let segments = open_empty(&disk);
    let (first, image) = append(&segments, 1, 1000).unwrap();
    let opens_of_a_read = || {
        disk.set_trace(true);
        assert_eq!(&read(&segments, &first).unwrap(), &image);
        let trace = disk.take_trace();
        trace.iter().filter(|line| line.to_lowercase().contains("open")).count()
    };
    segments.sync().unwrap();
    assert_eq!(opens_of_a_read(), 0, "the file is still written");
    (2..60).for_each(|pid| drop(append(&segments, pid, 1000).unwrap()));
    assert_eq!(opens_of_a_read(), 0, "the file is sealed and not synced");
    segments.sync().unwrap();
    assert_eq!((opens_of_a_read(), opens_of_a_read()), (1, 0));
}

#[test]
fn no_more_files_than_the_limit_stay_open() {
    use super::handles::Handles;
    use super::segment_file::SegmentFile;
    let disk = SimDisk::new();
    let segments = open_empty(&disk);
    (1..60).for_each(|pid| drop(append(&segments, pid, 1000).unwrap()));
    segments.sync().unwrap();
    let durable = Durable::new(Arc::new(disk.clone()), Arc::new(Health::default()));
    let handles = Handles::new(2);
    let files: Vec<_> = segments.stats().iter().map(|s| s.segment).collect();
    let files: Vec<_> =
        files.iter().map(|id| Arc::new(SegmentFile::existing(&durable, *id).unwrap().0)).collect();
    for file in &files {
        let (_, is_new) = file.opened(&durable, false).unwrap();
        assert!(is_new);
        handles.add(file.clone());
    }
    let open = files.iter().filter(|file| !file.opened(&durable, false).unwrap().1).count();
    assert_eq!(open, 2, "of {}", files.len());
}

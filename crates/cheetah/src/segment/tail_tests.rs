//! Tests of the tail through the store, on a disk that holds or refuses a write (T1 to T7).
//! `interleaving_tests.rs` covers all orders of the steps.

use super::segments::Segments;
use super::tests::{append, open_with, read};
use super::Location;
use crate::base::planted::plant;
use crate::base::{Config, Epoch, Result, SegmentId};
use cheetah_io::sim::{CrashPolicy, Effect, Fault, Op, SimDisk};
use cheetah_io::AlignedBytes;
use std::io::ErrorKind;
use std::sync::mpsc;
use std::time::Duration;

type Stored = (Location, Vec<u8>);

/// Segments of about two hundred images, and halves of about ten.
fn config() -> Config {
    Config { segment_bytes: 256 << 10, buffer_pool_bytes: 1 << 20, ..Config::tiny() }
}

const IMAGE_BYTES: usize = 1000;

fn open() -> (SimDisk, Segments) {
    let disk = SimDisk::new();
    let segments = open_with(&disk, &config(), 1);
    segments.end_startup(Epoch(0)).unwrap();
    (disk, segments)
}

/// Appends from page `first` on until a half was written to the file. Each image is sent to
/// `appended` at once.
fn fill_a_half(disk: &SimDisk, segments: &Segments, first: u64, appended: &mpsc::Sender<Stored>) {
    let tell = |image| drop(appended.send(image));
    tell(append(segments, first, IMAGE_BYTES).unwrap());
    let calls = disk.calls();
    for pid in first + 1..first + 1000 {
        tell(append(segments, pid, IMAGE_BYTES).unwrap());
        if disk.calls() > calls {
            return;
        }
    }
    panic!("no half was written");
}

fn all_are_readable(segments: &Segments, images: &[Stored]) -> bool {
    images.iter().all(|(location, image)| read(segments, location).is_ok_and(|read| &read == image))
}

/// Returns whether a power cut now preserves all these images.
fn all_are_durable(disk: &SimDisk, images: &[Stored]) -> bool {
    let again = open_with(&disk.crash(CrashPolicy::SyncedOnly, 1), &config(), 1);
    all_are_readable(&again, images)
}

/// The thread that has a bug.
#[derive(Clone, Copy, PartialEq)]
enum Who {
    Writer,
    Reader,
}

/// Reads and appends while the write of a half is held; returns whether all calls finished within
/// `limit` and found their images.
fn goes_on_beside_a_write(bug: Option<(Who, &'static str)>, limit: Duration) -> bool {
    let (disk, segments) = open();
    let flushed: Vec<_> = (1..6).map(|pid| append(&segments, pid, IMAGE_BYTES).unwrap()).collect();
    segments.sync().unwrap();
    let plant_for = |who| bug.filter(|bug| bug.0 == who).map(|bug| plant(bug.1));
    let (appended, in_full_half) = mpsc::channel();
    std::thread::scope(|scope| {
        let (disk, segments, flushed) = (&disk, &segments, &flushed);
        let hold = disk.hold(Op::Write, "seg/");
        scope.spawn(move || {
            let _bug = plant_for(Who::Writer);
            fill_a_half(disk, segments, 10, &appended);
        });
        hold.wait_until_reached();
        let (done, is_done) = mpsc::channel();
        scope.spawn(move || {
            let _bug = plant_for(Who::Reader);
            let in_full_half: Vec<_> = in_full_half.try_iter().collect();
            assert!(in_full_half.len() > 5);
            let beside: Vec<_> =
                (2000..2005).map(|pid| append(segments, pid, IMAGE_BYTES).unwrap()).collect();
            let (first, last) = (flushed[0].0, flushed[4].0);
            let mut buffer = AlignedBytes::default();
            let has_span = matches!(segments.read_span(&first, &last, &mut buffer), Ok(Some(_)));
            let images = [&flushed[..], &in_full_half, &beside];
            let _ = done.send(has_span && images.iter().all(|images| all_are_readable(segments, images)));
        });
        let went_on = is_done.recv_timeout(limit);
        drop(hold);
        went_on.unwrap_or(false)
    })
}

/// A limit that correct calls never reach.
const LONG: Duration = Duration::from_secs(60);
/// A limit for calls that the bug blocks until the end of the test.
const SHORT: Duration = Duration::from_millis(300);

#[test]
fn t7_reads_and_appends_go_on_while_a_half_is_written() {
    assert!(goes_on_beside_a_write(None, LONG));
}

/// Breaks T7: no I/O may run under a lock that readers take.
#[test]
fn a_write_under_the_lock_of_readers_is_caught() {
    let bug = (Who::Writer, "segment: write a half under the lock of readers");
    assert!(!goes_on_beside_a_write(Some(bug), SHORT));
}

/// Breaks T3: a half must count as written only once it is in the file and noted for the sync.
#[test]
fn a_half_that_counts_as_written_too_early_is_caught() {
    let bug = (Who::Writer, "segment: count a half as written before it is");
    assert!(!goes_on_beside_a_write(Some(bug), LONG));
}

/// Breaks T1: every appended image must be readable.
#[test]
fn a_reader_that_does_not_look_into_the_full_half_is_caught() {
    assert!(!goes_on_beside_a_write(Some((Who::Reader, "segment: read past the full half")), LONG));
}

/// Returns whether a sync that starts while a half is being written makes all of the half durable.
fn sync_beside_a_write(bug: Option<&'static str>) -> bool {
    let (disk, segments) = open();
    let (appended, images) = mpsc::channel();
    std::thread::scope(|scope| {
        let (disk, segments) = (&disk, &segments);
        let hold = disk.hold(Op::Write, "seg/");
        scope.spawn(move || fill_a_half(disk, segments, 1, &appended));
        hold.wait_until_reached();
        let images: Vec<_> = images.try_iter().collect();
        let sync = scope.spawn(move || {
            let _bug = bug.map(plant);
            segments.sync().unwrap();
            all_are_durable(disk, &images)
        });
        if bug.is_none() {
            drop(hold);
            return sync.join().unwrap();
        }
        sync.join().unwrap()
    })
}

#[test]
fn t5_a_sync_waits_for_the_half_that_is_being_written() {
    assert!(sync_beside_a_write(None));
}

/// Breaks T5: a sync must wait for everything that was appended before it.
#[test]
fn a_sync_that_does_not_wait_is_caught() {
    assert!(!sync_beside_a_write(Some("segment: sync without the half that is being written")));
}

/// Returns whether nothing is lost when the write of a half is refused, once in the append that
/// filled it, and again in a sync.
fn survive_a_failed_write() -> Result<bool> {
    let (disk, segments) = open();
    disk.inject(Fault::on(Op::Write).forever().effect(Effect::Fail(ErrorKind::StorageFull)));
    let (appended, images) = mpsc::channel();
    fill_a_half(&disk, &segments, 1, &appended);
    let images: Vec<_> = images.try_iter().collect();
    let is_told = disk.faults_met() == 1 && segments.sync().is_err() && disk.faults_met() > 1;
    let is_kept = all_are_readable(&segments, &images);
    disk.clear_faults();
    segments.sync()?;
    Ok(is_told && is_kept && all_are_readable(&segments, &images) && all_are_durable(&disk, &images))
}

#[test]
fn t4_a_half_whose_write_failed_is_kept_told_of_and_written_later() {
    assert!(survive_a_failed_write().unwrap());
}

/// Breaks T4: a half whose write failed must stay full.
#[test]
fn a_failed_write_that_is_taken_for_done_is_caught() {
    let bug = plant("segment: take a failed write for done");
    assert!(!survive_a_failed_write().unwrap_or(false));
    assert!(bug.reached_count() > 0);
}

#[test]
fn t4_an_append_that_needs_the_room_of_a_refused_half_gets_the_error_and_changes_nothing() {
    let (disk, segments) = open();
    disk.inject(Fault::on(Op::Write).forever());
    let mut images = Vec::new();
    let error = loop {
        match append(&segments, 1 + images.len() as u64, IMAGE_BYTES) {
            Ok(image) => images.push(image),
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("write"), "{error}");
    let live_bytes = segments.totals().live_bytes;
    assert!(append(&segments, 5000, IMAGE_BYTES).is_err());
    assert_eq!(segments.totals().live_bytes, live_bytes);
    assert!(all_are_readable(&segments, &images));
    disk.clear_faults();
    images.push(append(&segments, 5001, IMAGE_BYTES).unwrap());
    segments.sync().unwrap();
    assert!(all_are_durable(&disk, &images));
}

/// Returns whether a segment whose last write is refused stays until all of it is in its file.
fn stays_until_it_is_written() -> bool {
    let (disk, segments) = open();
    let (first, _) = append(&segments, 1, 60).unwrap();
    disk.inject(Fault::on(Op::Write).path("00000001"));
    let (second, _) = append(&segments, 2, (256 << 10) - 100).unwrap();
    assert_eq!((first.segment, second.segment, disk.faults_met()), (SegmentId(1), SegmentId(2), 1));
    segments.release(&first, Epoch(0));
    let is_open = || segments.stats().first().is_some_and(|stat| stat.is_open);
    let removed = || segments.remove_dead(Epoch(1)).unwrap().files_count;
    if !is_open() || removed() > 0 {
        return false;
    }
    segments.sync().unwrap();
    !is_open() && removed() == 1
}

#[test]
fn t6_a_segment_is_sealed_when_its_last_half_is_written() {
    assert!(stays_until_it_is_written());
}

/// Breaks T6: a sealed segment must be completely in its file.
#[test]
fn a_segment_that_is_sealed_too_early_is_caught() {
    let bug = plant("segment: seal before the last half is written");
    assert!(!stays_until_it_is_written());
    assert!(bug.reached_count() > 0);
}

#[test]
fn the_next_segment_has_its_first_image_while_the_last_half_of_the_one_before_is_written() {
    let (disk, segments) = open();
    let first = append(&segments, 1, 60).unwrap();
    std::thread::scope(|scope| {
        let (segments, first) = (&segments, &first);
        let hold = disk.hold(Op::Write, "00000001");
        let writer = scope.spawn(move || append(segments, 2, (256 << 10) - 100).unwrap());
        hold.wait_until_reached();
        assert!(all_are_readable(segments, std::slice::from_ref(first)));
        assert_eq!(segments.totals().segments_count, 2);
        drop(hold);
        let second = writer.join().unwrap();
        assert_eq!(second.0.segment, SegmentId(2));
        segments.sync().unwrap();
        assert!(all_are_durable(&disk, &[first.clone(), second]));
    });
}

#[test]
fn a_long_image_does_not_keep_the_memory_of_its_half() {
    let (disk, segments) = open();
    let images: Vec<_> = (1..4).map(|pid| append(&segments, pid, 60_000).unwrap()).collect();
    segments.sync().unwrap();
    assert!(all_are_durable(&disk, &images));
    let kept_bytes: usize = segments.streams.iter().map(|stream| stream.tail.kept_bytes()).sum();
    assert!(kept_bytes <= segments.tail_bytes_max() / 3, "{kept_bytes}");
}

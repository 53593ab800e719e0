//! Flipped bits, truncated and exchanged files: each is detected, or proven harmless.

use super::run;
use super::store::{empty_history, verify, History};
use cheetah_io::sim::SimDisk;

fn database() -> (SimDisk, History, u64) {
    let (disk, mut history) = (SimDisk::new(), empty_history());
    for seed in 0..3 {
        run(&disk, &mut history, seed, 6).unwrap();
    }
    let newest = verify(&disk.snapshot(), &history, 0).unwrap();
    (disk, history, newest)
}

/// Checks that the damaged disk opens with the newest epoch, or is refused with a reason. Returns
/// whether the disk was refused.
fn is_refused(disk: &SimDisk, history: &History, newest: u64, what: &str) -> bool {
    match verify(disk, history, newest) {
        Ok(_) => false,
        Err(message) => {
            assert!(message.contains("corruption in"), "{what}: {message}");
            true
        }
    }
}

#[test]
fn every_flipped_byte_of_the_control_file_is_repaired_by_the_other_copy() {
    let (disk, history, newest) = database();
    for offset in 0..2 * 4096 {
        let damaged = disk.snapshot();
        damaged.flip("CONTROL", offset, (offset % 8) as u8).unwrap();
        assert!(!is_refused(&damaged, &history, newest, &format!("byte {offset}")));
        damaged.flip("CONTROL", (offset + 4096) % 8192, 0).unwrap();
        verify(&damaged, &history, newest).expect("the startup has repaired the damaged copy");
    }
}

#[test]
fn damage_of_both_copies_of_the_control_file_is_refused() {
    let (disk, history, newest) = database();
    disk.flip("CONTROL", 100, 0).unwrap();
    disk.flip("CONTROL", 5000, 0).unwrap();
    let message = verify(&disk, &history, newest).unwrap_err();
    assert!(message.contains("both copies are damaged"), "{message}");
}

#[test]
fn a_copy_of_the_control_file_that_cannot_be_read_is_written_anew_from_the_other() {
    let (disk, history, newest) = database();
    let bytes_of = |copy: u64| copy * 4096..copy * 4096 + 4096;
    for copy in 0..2 {
        let damaged = disk.snapshot();
        damaged.make_unreadable("CONTROL", bytes_of(copy));
        assert_eq!(verify(&damaged, &history, newest), Ok(newest), "without copy {copy}");
        damaged.clear_faults();
        damaged.flip("CONTROL", bytes_of(1 - copy).start + 100, 0).unwrap();
        verify(&damaged, &history, newest).expect("the startup has rewritten the copy");
    }
}

#[test]
fn a_control_file_without_a_copy_that_can_be_read_is_refused_with_what_the_disk_says() {
    let (disk, history, newest) = database();
    for is_flipped in [false, true] {
        let damaged = disk.snapshot();
        damaged.make_unreadable("CONTROL", 4096..4097);
        match is_flipped {
            true => damaged.flip("CONTROL", 100, 0).unwrap(),
            false => damaged.make_unreadable("CONTROL", 0..1),
        }
        let message = verify(&damaged, &history, newest).unwrap_err();
        assert!(message.contains("read of CONTROL failed: "), "{message}");
    }
}

/// The files of the map, without their copies.
fn map_files(disk: &SimDisk) -> Vec<String> {
    let files: Vec<_> = disk.paths().into_iter().filter(|path| path.starts_with("map-")).collect();
    assert!(files.iter().all(|file| file.ends_with(".copy") || files.contains(&copy_of(file))), "{files:?}");
    files.into_iter().filter(|file| !file.ends_with(".copy")).collect()
}

fn copy_of(file: &str) -> String {
    format!("{file}.copy")
}

#[test]
fn p6_a_flipped_byte_of_the_map_is_read_from_the_other_file() {
    let (disk, history, newest) = database();
    for path in map_files(&disk).iter().flat_map(|file| [file.clone(), copy_of(file)]) {
        for offset in 0..disk.contents(&path).unwrap().len() as u64 {
            let damaged = disk.snapshot();
            damaged.flip(&path, offset, (offset % 8) as u8).unwrap();
            let refused = is_refused(&damaged, &history, newest, &format!("{path} byte {offset}"));
            assert!(!refused, "{path} byte {offset}");
        }
    }
}

#[test]
fn every_byte_of_the_map_that_is_flipped_in_both_files_is_detected_unless_no_map_names_it() {
    let (disk, history, newest) = database();
    let files = map_files(&disk);
    assert!(
        files.iter().any(|f| f.ends_with(".base")) && files.iter().any(|f| f.ends_with(".log")),
        "{files:?}"
    );
    let (mut refused, mut harmless) = (0, 0);
    for path in files {
        for offset in 0..disk.contents(&path).unwrap().len() as u64 {
            let damaged = disk.snapshot();
            damaged.flip(&path, offset, (offset % 8) as u8).unwrap();
            damaged.flip(&copy_of(&path), offset, (offset % 7) as u8).unwrap();
            match is_refused(&damaged, &history, newest, &format!("{path} byte {offset}")) {
                true => refused += 1,
                false => harmless += 1,
            }
        }
    }
    println!("{refused} refused, {harmless} harmless");
    assert!(refused > 1000 && harmless < refused / 2);
}

#[test]
fn every_flipped_byte_of_a_segment_is_detected_unless_nothing_live_is_there() {
    let (disk, history, newest) = database();
    let (mut refused, mut harmless) = (0, 0);
    for path in disk.paths().into_iter().filter(|path| path.starts_with("seg/")) {
        for offset in (0..disk.contents(&path).unwrap().len() as u64).step_by(7) {
            let damaged = disk.snapshot();
            damaged.flip(&path, offset, (offset % 8) as u8).unwrap();
            match is_refused(&damaged, &history, newest, &format!("{path} byte {offset}")) {
                true => refused += 1,
                false => harmless += 1,
            }
        }
    }
    println!("{refused} refused, {harmless} harmless");
    assert!(refused > 500);
}

#[test]
fn files_that_are_missing_cut_or_exchanged_are_refused() {
    let (disk, history, newest) = database();
    let mut unneeded = Vec::new();
    // The copies are removed, so all files are needed.
    map_files(&disk).iter().for_each(|file| disk.remove(&copy_of(file)).unwrap());
    for path in disk.paths() {
        let missing = disk.snapshot();
        missing.remove(&path).unwrap();
        if !is_refused(&missing, &history, newest, &format!("{path} missing")) {
            unneeded.push(path);
            continue;
        }
        let cut = disk.snapshot();
        cut.put(&path, &disk.contents(&path).unwrap()[..64]).unwrap();
        assert!(is_refused(&cut, &history, newest, &format!("{path} cut")), "{path} cut");
        for other in disk.paths().iter().filter(|other| **other != path) {
            let exchanged = disk.snapshot();
            exchanged.put(&path, &disk.contents(other).unwrap()).unwrap();
            let what = format!("{other} in place of {path}");
            assert!(is_refused(&exchanged, &history, newest, &what), "{what}");
        }
    }
    assert!(unneeded.len() <= 1, "only a segment without live images may be missing: {unneeded:?}");
    let missing = disk.snapshot();
    missing.remove("CONTROL").unwrap();
    let message = verify(&missing, &history, newest).unwrap_err();
    assert!(message.contains("CONTROL is missing"), "{message}");
}

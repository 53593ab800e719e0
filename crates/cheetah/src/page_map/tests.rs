//! Tests the page map alone. `tests/store` tests it with segments, under crashes and faults.

use super::control_file::ControlFile;
use super::map_file::PartReader;
use super::{merge, Commit, MapEntry, MapStore, Opened};
use crate::base::planted::plant;
use crate::base::{Config, Epoch, Error, Health, Lsn, PageId, RaisedAtEnd, Result, SegmentId, TreeId};
use crate::durable::Durable;
use crate::format::control::{ControlBlock, COPY_BYTES};
use crate::format::map_block::{FileKind, FILE_HEADER_BYTES};
use crate::format::Location;
use cheetah_io::sim::{CrashPolicy, Op, SimDisk};
use cheetah_io::Rng;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

type Map = BTreeMap<PageId, MapEntry>;

fn durable(disk: &SimDisk) -> Arc<Durable> {
    Arc::new(Durable::new(Arc::new(disk.clone()), Arc::new(Health::default())))
}

fn open(disk: &SimDisk) -> Result<Opened> {
    MapStore::open(durable(disk), &Config::tiny(), [9; 16])
}

fn entry(rng: &mut Rng) -> MapEntry {
    let location = Location {
        segment: SegmentId(rng.below(1000) as u32),
        offset: rng.below(1000) as u32 * 64,
        stored_bytes: rng.below(20_000) as u32,
        crc: rng.next_u64() as u32,
    };
    MapEntry { tree: TreeId(1 + rng.below(9) as u32), location }
}

/// Changes `count` random pages of `map` and commits them.
fn commit_some(store: &MapStore, map: &mut Map, rng: &mut Rng, count: usize, epoch: u64) -> Vec<u8> {
    let mut changes = BTreeMap::new();
    for _ in 0..count {
        let pid = PageId(1 + rng.below(5000));
        let change = rng.chance(0.8).then(|| entry(rng));
        match change {
            Some(entry) => map.insert(pid, entry),
            None => map.remove(&pid),
        };
        changes.insert(pid, change);
    }
    let mut changes: Vec<_> = changes.into_iter().collect();
    rng.shuffle(&mut changes);
    let len = rng.below(200_000) as usize;
    let state = rng.bytes(len);
    let commit = Commit {
        epoch: Epoch(epoch),
        changes: &mut changes,
        state: &state,
        log_start: Lsn(epoch * 10),
        next_segment: SegmentId(epoch as u32),
    };
    store.commit(commit).unwrap();
    state
}

fn load(store: &MapStore) -> Result<(Map, Vec<u8>)> {
    let mut map = Map::new();
    let state = store.load(&mut |pid, entry| {
        match entry {
            Some(entry) => map.insert(pid, entry),
            None => map.remove(&pid),
        };
    })?;
    Ok((map, state))
}

#[test]
fn the_map_comes_back_through_many_openings_commits_and_merges() {
    let disk = SimDisk::new();
    let mut rng = Rng::new(4);
    let (mut map, mut state, mut newest) = (Map::new(), Vec::new(), 0);
    for startup in 1..40 {
        let opened = open(&disk).unwrap();
        assert_eq!(opened.identity.incarnation, startup);
        assert_eq!((opened.epoch, opened.log_start), (Epoch(newest), Lsn(newest * 10)));
        assert!(opened.first_epoch > Epoch(newest));
        assert_eq!(load(&opened.store).unwrap(), (map.clone(), state.clone()));
        for _ in 0..rng.below(4) {
            newest += 1;
            let count = rng.below(600) as usize;
            state = commit_some(&opened.store, &mut map, &mut rng, count, newest);
            if rng.chance(0.4) {
                opened.store.merge_if_due().unwrap();
            }
            assert_eq!(load(&opened.store).unwrap(), (map.clone(), state.clone()));
        }
    }
}

#[test]
fn a_merge_in_many_small_ranges_gives_the_same_base() {
    let disk = SimDisk::new();
    let mut rng = Rng::new(5);
    let opened = open(&disk).unwrap();
    let (mut map, mut epoch) = (Map::new(), 0);
    for _ in 0..3 {
        while !opened.store.merge_if_due().unwrap() {
            epoch += 1;
            commit_some(&opened.store, &mut map, &mut rng, 700, epoch);
        }
        epoch += 1;
        let state = commit_some(&opened.store, &mut map, &mut rng, 700, epoch);
        let durable = durable(&disk);
        let (_, control) = ControlFile::open(&durable).unwrap().unwrap();
        for held_max in [1, 7, 100, 100_000] {
            let (file, part) = merge::write_base(&durable, &control, 1_000_000, held_max).unwrap();
            let mut reader = PartReader::open(&durable, &part, FileKind::Base, &[9; 16]).unwrap();
            assert_eq!(read_all(&mut reader), (map.clone(), state.clone()), "{held_max} changes held");
            file.remove(&durable);
        }
    }
}

fn read_all(reader: &mut PartReader) -> (Map, Vec<u8>) {
    let (mut map, mut state) = (Map::new(), Vec::new());
    while let Some(item) = reader.next().unwrap() {
        match item {
            super::map_file::Item::Entries(entries) => {
                map.extend(entries.iter().map(|(pid, entry)| (*pid, entry.expect("a base has no removals"))));
            }
            super::map_file::Item::State(bytes) => state.extend_from_slice(bytes),
            _ => {}
        }
    }
    (map, state)
}

#[test]
fn files_that_nothing_names_are_removed_and_their_numbers_not_used_again() {
    let disk = SimDisk::new();
    let opened = open(&disk).unwrap();
    commit_some(&opened.store, &mut Map::new(), &mut Rng::new(1), 5, 1);
    disk.put("map-77.log", b"whatever").unwrap();
    let again = open(&disk).unwrap();
    commit_some(&again.store, &mut Map::new(), &mut Rng::new(1), 5, 2);
    let paths = disk.paths();
    assert!(paths.contains(&"map-1.log".to_owned()) && paths.contains(&"map-78.log".to_owned()), "{paths:?}");
    assert!(!paths.contains(&"map-77.log".to_owned()));
}

#[test]
fn commits_go_on_during_a_merge() {
    let disk = SimDisk::new();
    let opened = open(&disk).unwrap();
    let store = &opened.store;
    let done = AtomicBool::new(false);
    let mut map = Map::new();
    let mut state = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                store.merge_if_due().unwrap();
            }
        });
        let _done = RaisedAtEnd(&done);
        let mut rng = Rng::new(6);
        for epoch in 1..60 {
            state = commit_some(store, &mut map, &mut rng, 50, epoch);
        }
    });
    assert_eq!(load(store).unwrap(), (map.clone(), state.clone()));
    assert_eq!(load(&open(&disk).unwrap().store).unwrap(), (map, state));
}

#[test]
fn the_sizes_of_pages_and_segments_are_those_of_the_creation() {
    let disk = SimDisk::new();
    open(&disk).unwrap();
    let other = Config { buffer_pool_bytes: 2 << 20, ..Config::default() };
    let opened = MapStore::open(durable(&disk), &other, [1; 16]).unwrap();
    assert_eq!((opened.config.page_bytes, opened.config.segment_bytes), (512, 32 << 10));
    assert_eq!(opened.config.buffer_pool_bytes, 2 << 20);
    assert_eq!(opened.identity.uuid, [9; 16]);
}

/// Edits both copies of the control block and corrects their checksums.
fn edit_control(disk: &SimDisk, edit: impl Fn(&mut [u8])) {
    let mut bytes = disk.contents("CONTROL").unwrap();
    for copy in bytes.chunks_exact_mut(COPY_BYTES) {
        let (content, crc) = copy.split_at_mut(COPY_BYTES - 4);
        edit(content);
        crc.copy_from_slice(&crc32c::crc32c(content).to_le_bytes());
    }
    disk.put("CONTROL", &bytes).unwrap();
}

#[test]
fn a_newer_format_or_unknown_features_are_refused_and_nothing_is_written() {
    for at in [8, 24, 32] {
        let disk = SimDisk::new();
        open(&disk).unwrap();
        edit_control(&disk, |block| block[at] ^= 4);
        let before = disk.operations();
        let error = open(&disk).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        assert_eq!(disk.operations(), before);
    }
    let disk = SimDisk::new();
    open(&disk).unwrap();
    edit_control(&disk, |block| block[16] ^= 4);
    assert!(open(&disk).is_ok(), "features that may be ignored are accepted");
    let bytes = disk.contents("CONTROL").unwrap();
    let copy: &[u8; COPY_BYTES] = bytes.first_chunk().unwrap();
    assert_eq!(ControlBlock::decode(copy, 0).unwrap().features.compatible, 4, "ignored features are kept");
}

#[test]
fn an_unfinished_creation_starts_anew() {
    let disk = SimDisk::new();
    disk.put("CONTROL.new", b"unfinished").unwrap();
    assert_eq!(open(&disk).unwrap().epoch, Epoch(0));
    assert!(disk.contents("CONTROL.new").is_err());
}

/// A map of a base and a log, and its contents.
fn map_of_two_files() -> (SimDisk, (Map, Vec<u8>)) {
    let disk = SimDisk::new();
    let (mut map, mut rng, mut epoch) = (Map::new(), Rng::new(7), 1);
    let opened = open(&disk).unwrap();
    load(&opened.store).unwrap();
    commit_some(&opened.store, &mut map, &mut rng, 300, epoch);
    while !opened.store.merge_if_due().unwrap() {
        epoch += 1;
        commit_some(&opened.store, &mut map, &mut rng, 300, epoch);
    }
    let state = commit_some(&opened.store, &mut map, &mut rng, 300, epoch + 1);
    (disk, (map, state))
}

fn map_files(disk: &SimDisk) -> Vec<String> {
    disk.paths().into_iter().filter(|path| path.starts_with("map-")).collect()
}

/// Damages or removes each file of the map in turn. The other file must have all of the map, and in
/// the end each file must have a copy again. `Err` describes a deviation.
fn judge_copies() -> std::result::Result<(), String> {
    let (disk, whole) = map_of_two_files();
    let open_whole = |disk: &SimDisk, what: &str| -> std::result::Result<_, String> {
        let durable = durable(disk);
        let opened = MapStore::open(Arc::clone(&durable), &Config::tiny(), [9; 16]).unwrap();
        let loaded = load(&opened.store).map_err(|error| format!("{what}: {error}"))?;
        assert!(loaded == whole, "{what}: a different map was loaded");
        Ok((opened.store, durable))
    };
    for (path, is_removed) in map_files(&disk).iter().flat_map(|path| [(path, false), (path, true)]) {
        let damaged = disk.snapshot();
        match is_removed {
            true => damaged.remove(path).unwrap(),
            false => damaged.flip(path, 90, 3).unwrap(),
        }
        let (store, durable) = open_whole(&damaged, path)?;
        let told = durable.health().background_errors().list();
        let is_told = told.iter().any(|(_, text)| text.contains(path.as_str()));
        if !(is_told || is_removed && path.ends_with(".copy")) {
            return Err(format!("{path}: the damage is not reported: {told:?}"));
        }
        if !store.merge_if_due().unwrap() {
            return Err(format!("{path}: no new base is due"));
        }
        assert!(!store.merge_if_due().unwrap(), "{path}: another base is due");
        assert!(durable.health().background_errors().list().is_empty());
        for other in map_files(&damaged) {
            let again = damaged.snapshot();
            again.remove(&other).unwrap();
            open_whole(&again, &format!("{path}, then {other}"))?;
        }
    }
    Ok(())
}

#[test]
fn p6_what_one_file_lacks_is_read_from_the_other_and_written_anew() {
    judge_copies().unwrap();
}

#[test]
fn p6_scrubbing_finds_what_is_damaged_while_the_map_is_open() {
    let (disk, _) = map_of_two_files();
    for path in map_files(&disk) {
        let damaged = disk.snapshot();
        let durable = durable(&damaged);
        let store = MapStore::open(Arc::clone(&durable), &Config::tiny(), [9; 16]).unwrap().store;
        load(&store).unwrap();
        store.scrub();
        assert!(durable.health().background_errors().list().is_empty() && !store.merge_if_due().unwrap());
        damaged.flip(&path, 90, 1).unwrap();
        store.scrub();
        let told = durable.health().background_errors().list();
        assert!(told.iter().any(|(place, text)| *place == "page map" && text.contains(&path)), "{told:?}");
        assert!(store.merge_if_due().unwrap());
        store.scrub();
        assert!(durable.health().background_errors().list().is_empty());
    }
}

/// Runs a merge during which the end of the map grows, is damaged, and is scrubbed. Returns the
/// reported errors, and whether another base is due.
fn scrubbed_during_a_merge(damage: impl Fn(&SimDisk, &str) + Sync) -> (Vec<String>, Result<bool>) {
    let (disk, _) = map_of_two_files();
    let durable = durable(&disk);
    let store = MapStore::open(Arc::clone(&durable), &Config::tiny(), [9; 16]).unwrap().store;
    let (mut map, _) = load(&store).unwrap();
    // Makes a base due.
    disk.remove(&map_files(&disk).into_iter().find(|path| path.ends_with(".copy")).unwrap()).unwrap();
    store.scrub();
    let hold = disk.hold(Op::Write, ".base");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            hold.wait_until_reached();
            commit_some(&store, &mut map, &mut Rng::new(8), 200, store.epoch().0 + 1);
            let end = map_files(&disk).into_iter().rfind(|path| path.ends_with(".log")).unwrap();
            damage(&disk, &end);
            store.scrub();
            drop(hold);
        });
        assert!(store.merge_if_due().unwrap());
    });
    let told = durable.health().background_errors().list();
    (told.into_iter().map(|(_, text)| text).collect(), store.merge_if_due())
}

#[test]
fn p6_damage_that_a_scrub_finds_behind_what_is_merged_is_not_forgotten() {
    let (told, merged) = scrubbed_during_a_merge(|disk, end| disk.flip(end, 90, 3).unwrap());
    assert!(told.len() == 1 && told[0].contains("read instead"), "{told:?}");
    assert!(merged.unwrap(), "a new base is written");
    let (told, merged) = scrubbed_during_a_merge(|disk, end| {
        [end.to_owned(), format!("{end}.copy")].iter().for_each(|path| disk.flip(path, 90, 3).unwrap());
    });
    assert!(told.len() == 1 && told[0].contains("dump its tables") && !merged.unwrap(), "{told:?}");
    let (told, merged) = scrubbed_during_a_merge(|_, _| ());
    assert!(told.is_empty() && !merged.unwrap(), "{told:?}");
    let bug = plant("map: forget what a scrub finds");
    let (told, merged) = scrubbed_during_a_merge(|disk, end| disk.flip(end, 90, 3).unwrap());
    assert!(told.is_empty() && !merged.unwrap() && bug.reached_count() > 0, "{told:?}");
}

#[test]
fn p6_no_base_is_due_of_what_cannot_be_read() {
    let (disk, _) = map_of_two_files();
    let store = MapStore::open(durable(&disk), &Config::tiny(), [9; 16]).unwrap().store;
    let (mut map, _) = load(&store).unwrap();
    let end = map_files(&disk).into_iter().rfind(|path| path.ends_with(".log")).unwrap();
    for path in [end.clone(), format!("{end}.copy")] {
        disk.flip(&path, 90, 3).unwrap();
        store.scrub();
    }
    assert!(!store.merge_if_due().unwrap(), "the damage of one file made a base due");
    commit_some(&store, &mut map, &mut Rng::new(8), 200, store.epoch().0 + 1);
}

/// Reads only the copies after a power cut. `Err` names the missing part.
fn judge_copies_after_a_power_cut() -> std::result::Result<(), String> {
    let (disk, whole) = map_of_two_files();
    let left = disk.crash(CrashPolicy::SyncedOnly, 1);
    map_files(&left)
        .iter()
        .filter(|path| !path.ends_with(".copy"))
        .for_each(|path| left.remove(path).unwrap());
    let loaded = load(&open(&left).unwrap().store).map_err(|error| error.to_string())?;
    assert!(loaded == whole);
    Ok(())
}

#[test]
fn p6_copies_are_durable() {
    judge_copies_after_a_power_cut().unwrap();
}

#[test]
fn p6_planted_bugs_are_caught() {
    for name in ["map: write one file", "map: leave a file without its copy", "map: do not compare"] {
        let bug = plant(name);
        assert!(judge_copies().is_err() && bug.reached_count() > 0, "{name}");
    }
    let bug = plant("map: sync one file");
    assert!(judge_copies_after_a_power_cut().is_err() && bug.reached_count() > 0);
}

/// The damage may be in the open log, so later commits use another file.
#[test]
fn p6_what_is_damaged_is_not_continued() {
    let (disk, _) = map_of_two_files();
    let store = open(&disk).unwrap().store;
    let (mut map, _) = load(&store).unwrap();
    let mut rng = Rng::new(8);
    let epoch = store.epoch().0;
    commit_some(&store, &mut map, &mut rng, 200, epoch + 1);
    let open_log = map_files(&disk).pop().unwrap();
    disk.flip(&open_log, 90, 0).unwrap();
    store.scrub();
    let state = commit_some(&store, &mut map, &mut rng, 200, epoch + 2);
    assert!(store.merge_if_due().unwrap() && !store.merge_if_due().unwrap());
    for path in map_files(&disk) {
        let damaged = disk.snapshot();
        damaged.remove(&path).unwrap();
        assert!(load(&open(&damaged).unwrap().store).unwrap() == (map.clone(), state.clone()), "{path}");
    }
}

#[test]
fn p6_a_newer_version_is_refused_whichever_file_it_is_in() {
    let (disk, _) = map_of_two_files();
    for path in map_files(&disk) {
        let newer = disk.snapshot();
        let mut bytes = newer.contents(&path).unwrap();
        let (header, _) = bytes.split_at_mut(FILE_HEADER_BYTES);
        let (covered, crc) = header.split_at_mut(FILE_HEADER_BYTES - 4);
        covered[8] += 1;
        crc.copy_from_slice(&crc32c::crc32c(covered).to_le_bytes());
        newer.put(&path, &bytes).unwrap();
        let error = load(&open(&newer).unwrap().store).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{path}: {error}");
    }
}

/// Different chunks may be damaged in the two files.
#[test]
fn p6_both_files_may_be_damaged_at_different_places() {
    let (disk, whole) = map_of_two_files();
    let base = map_files(&disk).into_iter().find(|path| path.ends_with(".base")).unwrap();
    let bytes = disk.contents(&base).unwrap().len() as u64;
    disk.flip(&base, 90, 0).unwrap();
    disk.flip(&format!("{base}.copy"), bytes - 30, 0).unwrap();
    assert!(load(&open(&disk).unwrap().store).unwrap() == whole);
    disk.flip(&format!("{base}.copy"), 20, 0).unwrap(); // its header
    assert!(load(&open(&disk).unwrap().store).unwrap() == whole);
    disk.flip(&base, bytes - 30, 0).unwrap();
    let error = load(&open(&disk).unwrap().store).unwrap_err().to_string();
    assert!(error.contains(&base) && error.contains("restore a backup"), "{error}");
}

//! The first opening of a snapshot: an incomplete snapshot is refused (Z10).

use super::*;

/// A snapshot in which one file was copied only in part.
fn not_whole(path: &str) -> (SimDisk, Rows) {
    let disk = SimDisk::new();
    let (db, mut rows) = large(&disk);
    change(&db, &mut rows, &mut Rng::new(5));
    write(&db.pin_snapshot().unwrap(), "snap").unwrap();
    let snap = disk.at("snap");
    let path = snap.paths().into_iter().rfind(|other| other.starts_with(path)).unwrap();
    let bytes = snap.contents(&path).unwrap();
    snap.put(&path, &bytes[..bytes.len() - 10]).unwrap();
    (disk, rows)
}

#[test]
fn z10_a_snapshot_that_is_not_whole_is_refused() {
    for path in ["wal/", "seg/", "map-", "CONTROL"] {
        let (disk, _) = not_whole(path);
        let refused = open_large(&disk.at("snap")).unwrap_err();
        assert!(refused.contains("copy it again"), "{path}: {refused}");
        assert!(disk.at("snap").paths().iter().any(|path| path == "MANIFEST"));
    }
    let (disk, rows) = not_whole("wal/");
    let bug = plant("backup: open what is not whole");
    assert!(rows_of(&disk, "snap").unwrap() != rows, "the missing bytes reveal the bug");
    assert!(bug.reached_count() > 0);
}

#[test]
fn z10_what_has_been_opened_is_no_snapshot_any_more() {
    let disk = SimDisk::new();
    let (db, rows) = large(&disk);
    write(&db.pin_snapshot().unwrap(), "snap").unwrap();
    let snap = disk.at("snap");
    drop(open_large(&snap).unwrap());
    assert!(!snap.paths().iter().any(|path| path == "MANIFEST"));
    assert_eq!(rows_of(&disk, "snap").unwrap(), rows);
}

/// A snapshot of a small table, in the folder `snap`. No startup has opened the snapshot.
fn small_snapshot() -> (SimDisk, Rows) {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let table = db.create_table(&spec("t")).unwrap();
    let rows: Rows = (0..9).map(|key| (key, Row::new(key, 40))).collect();
    let mut txn = db.begin();
    rows.iter().for_each(|(key, row)| insert(&mut txn, &table, *key, row).unwrap());
    txn.commit().unwrap();
    write(&db.pin_snapshot().unwrap(), "snap").unwrap();
    (disk, rows)
}

/// Makes the snapshot look like a snapshot of an engine with an additional feature.
fn make_newer(snap: &SimDisk) {
    let mut control = snap.contents("CONTROL").unwrap();
    for copy in control.chunks_exact_mut(COPY_BYTES) {
        let (content, crc) = copy.split_at_mut(COPY_BYTES - 4);
        content[24] ^= 4;
        crc.copy_from_slice(&crc32c::crc32c(content).to_le_bytes());
    }
    let mut manifest = Manifest::decode(&snap.contents("MANIFEST").unwrap()).unwrap();
    let named = manifest.files.iter_mut().find(|file| file.path == "CONTROL").unwrap();
    named.crc = Some(crc32c::crc32c(&control));
    snap.put("CONTROL", &control).unwrap();
    snap.put("MANIFEST", &manifest.encode()).unwrap();
}

/// Returns whether an engine that is too old leaves a snapshot unchanged.
fn is_left_by_an_older_engine() -> bool {
    let (disk, _) = small_snapshot();
    let snap = disk.at("snap");
    make_newer(&snap);
    let files = || {
        let paths = snap.paths().into_iter().filter(|path| path != "LOCK");
        paths.map(|path| (snap.contents(&path).unwrap(), path)).collect::<Vec<_>>()
    };
    let before = files();
    let refused = open(&snap).unwrap_err();
    assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
    files() == before
}

#[test]
fn z10_a_start_that_is_refused_leaves_a_snapshot_as_it_is() {
    assert!(is_left_by_an_older_engine());
    let bug = plant("backup: remove MANIFEST before it is known who may open it");
    assert!(!is_left_by_an_older_engine() && bug.reached_count() > 0);
}

/// Cuts power while a snapshot is opened. The snapshot must still open afterwards. If `is_removed`,
/// an earlier startup was killed after it had removed MANIFEST, but before the removal was durable.
fn explore_first_opening(is_removed: bool) -> Result<(), String> {
    let (disk, rows) = small_snapshot();
    if is_removed {
        disk.at("snap").unlink("MANIFEST").unwrap();
    }
    let run = |disk: &SimDisk| drop(open(&disk.at("snap")).unwrap());
    let check = |image: &Image| match rows_of(&image.disk, "snap")? == rows {
        true => Ok(()),
        false => Err("the rows differ".into()),
    };
    explore(&Plan::quick(1, usize::MAX), &disk, run, check).map(drop).map_err(|failure| failure.to_string())
}

#[test]
fn z10_a_power_cut_while_a_snapshot_is_opened_leaves_one_that_opens() {
    for is_removed in [false, true] {
        explore_first_opening(is_removed).unwrap();
        let bug = plant("backup: remove MANIFEST without a barrier");
        let failure = explore_first_opening(is_removed).unwrap_err();
        assert!(failure.contains("copy it again") && bug.reached_count() > 0, "{failure}");
    }
}

//! Snapshots that wait to be written, and pins that the background releases (Z7, Z8).

use super::*;

/// A database with a clock that the test advances.
fn with_clock(disk: &SimDisk) -> (Db, SimClock) {
    let clock = SimClock::default();
    let env = Env { disk: Arc::new(disk.clone()), clock: Arc::new(clock.clone()) };
    (Db::open(env, config()).unwrap(), clock)
}

fn create(db: &Db, path: &str) -> cheetah::testing::base::Result<Written> {
    let note = [("pinned".to_owned(), "now".to_owned())];
    db.create_snapshot(&SnapshotOrder {
        path: Path::new(path),
        outside_of: Path::new(""),
        is_own: &is_own,
        notes: &note,
        interrupted: &|| false,
    })
}

/// Like `large`, with a clock that the test advances.
fn large_with_clock(disk: &SimDisk) -> (Db, SimClock, Rows) {
    drop(large(disk));
    let (db, clock) = with_clock(disk);
    let rows = all_rows(&mut db.begin(), &db.table("t").unwrap()).unwrap();
    (db, clock, rows)
}

fn pin_waiting(db: &Db) {
    db.pin_waiting_snapshot(vec![("pinned".to_owned(), "before".to_owned())]).unwrap();
}

fn notes(disk: &SimDisk, path: &str) -> String {
    let manifest = Manifest::decode(&disk.contents(&format!("{path}/MANIFEST")).unwrap()).unwrap();
    manifest.notes[0].1.clone()
}

#[test]
fn the_snapshot_that_waits_is_written_first_and_a_failed_one_waits_on() {
    let disk = SimDisk::new();
    let (db, mut rows) = large(&disk);
    let then = rows.clone();
    pin_waiting(&db);
    change(&db, &mut rows, &mut Rng::new(1));
    disk.inject(Fault::on(Op::Write).path("one").effect(Effect::Fail(ErrorKind::StorageFull)));
    assert!(matches!(create(&db, "one"), Err(Error::DiskFull(_))));
    assert_eq!(status(&db, "backup_pins"), 1);
    create(&db, "one").unwrap();
    assert_eq!(status(&db, "backup_pins"), 0);
    create(&db, "two").unwrap();
    assert_eq!((notes(&disk, "one").as_str(), notes(&disk, "two").as_str()), ("before", "now"));
    assert_eq!((rows_of(&disk, "one").unwrap(), rows_of(&disk, "two").unwrap()), (then, rows));
    pin_waiting(&db);
    pin_waiting(&db);
    db.close().unwrap();
    assert_eq!(status(&db, "backup_pins"), 0, "a closed database has no pins");
}

/// A pin blocks commits, and the previous snapshot may hold many files. So the new pin leaves the
/// release of these files to the background.
#[test]
fn the_background_lets_go_of_what_was_pinned_before() {
    let disk = SimDisk::new();
    let (db, clock, mut rows) = large_with_clock(&disk);
    pin_waiting(&db);
    for seed in 0..20 {
        change(&db, &mut rows, &mut Rng::new(seed));
        db.checkpoint().unwrap();
    }
    let held_bytes = status(&db, "backup_held_bytes");
    assert!(held_bytes > 0);
    pin_waiting(&db);
    assert_eq!(status(&db, "backup_held_bytes"), held_bytes, "no file is unlinked meanwhile");
    clock.advance_ns(2_000_000_000);
    db.run_background().unwrap();
    assert!(status(&db, "backup_held_bytes") < held_bytes && status(&db, "backup_pins") == 1);
    create(&db, "one").unwrap();
    assert_eq!((notes(&disk, "one").as_str(), rows_of(&disk, "one").unwrap()), ("before", rows));
}

#[test]
fn a_snapshot_that_could_not_be_pinned_is_not_replaced_by_one_of_now() {
    let disk = SimDisk::new();
    let (db, _) = large(&disk);
    let pins = (0..8).map(|_| db.pin_snapshot().unwrap()).collect::<Vec<_>>();
    assert!(matches!(db.pin_waiting_snapshot(Vec::new()), Err(Error::Limit { .. })));
    drop(pins);
    let refused = create(&db, "one").unwrap_err().to_string();
    assert!(refused.contains("was abandoned"), "{refused}");
    create(&db, "one").unwrap();
    db.set_snapshot_max_age(0);
    assert!(!db.pin_waiting_snapshot(Vec::new()).unwrap());
    assert_eq!(status(&db, "backup_pins"), 0);
}

/// Returns whether a pin is released at its maximum age if no snapshot is written from it.
fn goes_when_old(disk: &SimDisk) -> bool {
    let (db, clock) = with_clock(disk);
    db.set_snapshot_max_age(10);
    pin_waiting(&db);
    clock.advance_ns(9_000_000_000);
    db.run_background().unwrap();
    assert_eq!((status(&db, "backup_pins"), status(&db, "backup_pin_seconds")), (1, 9));
    clock.advance_ns(2_000_000_000);
    db.run_background().unwrap();
    if status(&db, "backup_pins") == 1 {
        return false;
    }
    let told = db.background_errors();
    assert!(told[0].1.contains("was not written within 10 s"), "{told:?}");
    let refused = create(&db, "one").unwrap_err().to_string();
    assert!(refused.contains("was abandoned") && refused.contains("repeat the statement"), "{refused}");
    create(&db, "one").unwrap();
    assert_eq!(notes(disk, "one"), "now");
    assert!(db.background_errors().is_empty());
    true
}

#[test]
fn z8_a_snapshot_that_nobody_writes_goes_when_it_is_old() {
    assert!(goes_when_old(&SimDisk::new()));
    let _bug = plant("backup: keep a forgotten pin");
    assert!(!goes_when_old(&SimDisk::new()), "the remaining pin reveals the bug");
}

#[test]
fn z8_pins_go_when_the_disk_is_full() {
    let disk = SimDisk::new();
    let (db, clock, mut rows) = large_with_clock(&disk);
    pin_waiting(&db);
    let snapshot = db.pin_snapshot().unwrap();
    let mut rng = Rng::new(1);
    disk.set_space(Some(disk.used_bytes() + (200 << 10)));
    let (mut held_bytes, mut rounds) = (0, 0);
    while status(&db, "backup_pins") > 0 {
        held_bytes = status(&db, "backup_held_bytes");
        rounds += 1;
        assert!(rounds < 200, "the pins remain, with {held_bytes} bytes");
        let _may_be_refused = try_change(&db, &mut rows, &mut rng).and_then(|()| db.checkpoint());
        clock.advance_ns(2_000_000_000);
        db.run_background().unwrap();
    }
    assert!(held_bytes > 0 && status(&db, "backup_held_bytes") == 0);
    let refused = write(&snapshot, "snap");
    assert!(matches!(refused, Err(Error::DiskFull(_))), "{refused:?}");
    let told = db.background_errors();
    assert!(told.iter().any(|(place, what)| *place == "snapshots" && what.contains("full")), "{told:?}");
    let refused = create(&db, "one").unwrap_err().to_string();
    assert!(refused.contains("was abandoned"), "{refused}");
    disk.set_space(None);
    change(&db, &mut rows, &mut rng);
}

//! Key rotation: images move from old keys to new keys, and old keys are no longer needed.

use super::*;

/// Breaks E15: a pass during which another key became current must not remove any key.
#[test]
fn e14_a_key_that_served_during_a_pass_stays() {
    caught("encryption: forget keys that served meanwhile");
}

#[test]
fn e15_rotation_leaves_nothing_under_an_old_key() {
    let world = World::new(1);
    let model = small(&world, Encryption::Yes);
    let db = world.open().unwrap();
    [1, TABLE_KEY].iter().for_each(|id| world.service.add_version(*id));
    world.rotate(&db).unwrap();
    let named: Vec<_> = world.named().iter().map(|name| (name.id, name.version)).collect();
    assert_eq!(named, [(1, 2), (TABLE_KEY, 4)]);
    assert!(db.rotated_images() > 0);
    db.close().unwrap();
    drop(db);
    world.service.lose(1, 1);
    world.service.lose(TABLE_KEY, 3);
    model.verify(&world.open().unwrap()).unwrap();
}

#[test]
fn e15_a_key_is_named_until_a_checkpoint_names_no_image_of_it() {
    let crashed_when_forgotten = || {
        let mut world = World::new(1);
        let model = small(&world, Encryption::Yes);
        let db = world.open().unwrap();
        world.service.add_version(TABLE_KEY);
        db.rotate_keys();
        let is_named = || world.named().iter().any(|name| (name.id, name.version) == (TABLE_KEY, 3));
        for _ in 0..200_000 {
            if !is_named() {
                break;
            }
            world.work_for(&db, 1, 1_000_000)?;
        }
        assert!(!is_named());
        world.disk = world.disk.crash(CrashPolicy::SyncedOnly, 1);
        std::mem::forget(db);
        world.service.lose(TABLE_KEY, 3);
        model.verify(&world.open().map_err(|error| error.to_string())?)
    };
    crashed_when_forgotten().unwrap();
    let _bug = plant("encryption: forget keys before the checkpoint");
    assert!(crashed_when_forgotten().is_err());
}

/// During a first rotation, some images cannot be read. Returns the number of images that a second
/// rotation moves.
fn left_by_a_pass_without_reads() -> u64 {
    let world = World::new(1);
    let model = small(&world, Encryption::Default);
    let db = world.open().unwrap();
    db.checkpoint().unwrap();
    db.set_encrypt_tables(true).unwrap();
    while db.encryption()[0].rotation.is_none() {
        world.work_for(&db, 1, 1_000_000).unwrap();
    }
    world.disk.inject(Fault::on(Op::Read).path("seg/").forever());
    let failed = (0..200).filter(|_| world.work_for(&db, 1, 1_000_000).is_err()).count();
    assert!(failed > 0, "no read has failed");
    world.disk.clear_faults();
    while db.is_rotating() {
        world.work_for(&db, 1, 1_000_000_000).unwrap();
    }
    let moved = db.rotated_images();
    world.rotate(&db).unwrap();
    model.verify(&db).unwrap();
    db.rotated_images() - moved
}

#[test]
fn e15_what_a_pass_could_not_read_is_closed_anew_by_the_next() {
    assert_eq!(left_by_a_pass_without_reads(), 0);
    let _bug = plant("encryption: pass by what could not be read");
    assert!(left_by_a_pass_without_reads() > 0);
}

/// Encrypts all tables of a database on a disk with less free space than the reserve. Returns two
/// numbers: the minimum free space during rotation, relative to the reserve, and the images that
/// are rotated before the disk receives more space.
fn rotated_on_a_small_disk() -> (f64, u64) {
    let world = World::with_plain_log(1);
    let (db, model, _) = filled(&world, Encryption::Default, 300);
    world.work(&db, 100).unwrap();
    let reserve_bytes = 8 * world.config.segment_bytes;
    let used_bytes = || {
        let kept = world.disk.contents("reserve").map_or(0, |file| file.len() as u64);
        world.disk.used_bytes() - kept
    };
    let space = used_bytes() + reserve_bytes / 2;
    world.disk.set_space(Some(space));
    // The engine checks the free space only from time to time.
    world.work(&db, 100).unwrap();
    db.set_encrypt_tables(true).unwrap();
    let mut least_bytes = u64::MAX;
    let mut step = || {
        let (rotated, free_bytes) = (db.rotated_images(), space.saturating_sub(used_bytes()));
        let _may_be_full = world.work_for(&db, 1, 10_000_000);
        if db.rotated_images() > rotated {
            // Other background work runs first, and may have freed space.
            least_bytes = least_bytes.min(free_bytes.max(space.saturating_sub(used_bytes())));
        }
    };
    (0..2000).for_each(|_| step());
    let rotated_early = db.rotated_images();
    world.disk.set_space(None);
    world.rotate(&db).unwrap();
    model.verify(&db).unwrap();
    (least_bytes as f64 / reserve_bytes as f64, rotated_early)
}

/// Breaks E18: rotation must stop at the reserve of the disk.
#[test]
fn h3_rotation_leaves_the_reserve_to_others() {
    let (least, _) = rotated_on_a_small_disk();
    assert!(least > 0.9, "{least} of the reserve");
    let _bug = plant("encryption: rotate into the reserve");
    let (least, rotated) = rotated_on_a_small_disk();
    assert!(least < 0.6 && rotated > 0, "{least} of the reserve, {rotated}");
}

/// Uses more keys than CONTROL can hold with two versions each. Then gives each key a newer
/// version.
fn rotate_many_keys() -> Result<(), String> {
    let world = World::new(1);
    let db = world.open().unwrap();
    for id in 100..160 {
        world.service.newest.lock().unwrap().insert(id, 1);
        let encryption = TableEncryption { wish: Encryption::Yes, key_id: id };
        let spec = encrypted(&format!("t{id}"), Encryption::Yes);
        db.create_table(&cheetah::testing::table::TableSpec { encryption, ..spec }).unwrap();
    }
    world.rotate(&db)?;
    [1].into_iter().chain(100..160).for_each(|id| world.service.add_version(id));
    (0..4).try_for_each(|_| world.rotate(&db))?;
    let named: Vec<_> = world.named().iter().map(|name| (name.id, name.version)).collect();
    let newest = [(1, 2)].into_iter().chain((100..160).map(|id| (id, 2)));
    assert_eq!(named, newest.collect::<Vec<_>>());
    Ok(())
}

#[test]
fn e13_more_new_versions_than_control_has_room_for_serve_one_after_another() {
    rotate_many_keys().unwrap();
    let _bug = plant("encryption: name all new versions at once");
    assert!(rotate_many_keys().unwrap_err().contains("encryption keys in use"));
}

//! Keys that the key service lacks, and definition changes that wait for a key.

use super::*;

#[test]
fn a_key_that_the_service_lacks_refuses_the_table_or_the_setting() {
    let world = World::with_plain_log(1);
    let db = world.open().unwrap();
    let unknown = TableEncryption { wish: Encryption::Yes, key_id: 77 };
    let spec = cheetah::testing::table::TableSpec { encryption: unknown, ..spec("t") };
    let error = db.create_table(&spec).unwrap_err();
    assert!(matches!(error, Error::Key { id: 77, version: 0, .. }), "{error}");
    assert!(db.table("t").is_err() && world.named().is_empty());
    world.service.newest.lock().unwrap().remove(&1);
    assert!(matches!(db.set_encrypt_log(true), Err(Error::Key { id: 1, .. })));
    assert!(matches!(db.set_encrypt_tables(true), Err(Error::Key { id: 1, .. })));
}

#[test]
fn a_key_is_asked_for_once_however_many_tables_have_it() {
    let world = World::with_plain_log(1);
    let db = world.open().unwrap();
    for name in ["a", "b", "c"] {
        db.create_table(&encrypted(name, Encryption::Default)).unwrap();
    }
    db.set_encrypt_tables(true).unwrap();
    assert_eq!(*world.service.asked.lock().unwrap(), [(1, 1), (TABLE_KEY, 3)]);
    // Each key has one request for its bytes and one request for its newest version.
    assert!(db.encryption().iter().all(|table| table.key_requests == 2), "{:?}", db.encryption());
}

/// A new table requests its key, and the key service does not answer. Returns whether another table
/// can be created during the wait.
fn is_made_while_a_key_is_waited_for(wait: Duration, bug: Option<&'static str>) -> bool {
    let world = World::with_plain_log(1);
    let (db, service) = (world.open().unwrap(), &world.service);
    *service.stall.lock().unwrap() = Stall::On;
    let (made, is_made) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _bug = bug.map(plant);
            db.create_table(&encrypted("closed", Encryption::Yes)).unwrap();
        });
        let deadline = Instant::now() + Duration::from_secs(60);
        while *service.stall.lock().unwrap() != Stall::Asked && Instant::now() < deadline {
            std::thread::yield_now();
        }
        scope.spawn(|| {
            db.create_table(&encrypted("plain", Encryption::No)).unwrap();
            made.send(()).unwrap();
        });
        let is_made = is_made.recv_timeout(wait).is_ok();
        *service.stall.lock().unwrap() = Stall::Off;
        service.is_over.notify_all();
        is_made
    })
}

#[test]
fn e11_no_definition_waits_for_the_key_of_another() {
    assert!(is_made_while_a_key_is_waited_for(Duration::from_secs(60), None));
    let bug = Some("encryption: ask for a key while definitions wait");
    assert!(!is_made_while_a_key_is_waited_for(Duration::from_millis(200), bug));
}

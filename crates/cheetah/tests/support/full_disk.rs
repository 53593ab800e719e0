//! A transaction that fills the disk and is rolled back.

use super::{all_rows, check, insert, open, spec, Row, Rows};
use cheetah::testing::base::Error;
use cheetah_io::sim::SimDisk;

/// Fills the disk with one transaction until a row is refused. Rolls back, and checks that the
/// contents are as before. Then frees space and continues. The error describes a failure.
pub fn rollback_on_a_full_disk() -> Result<(), String> {
    let disk = SimDisk::new();
    let text = |error: Error| error.to_string();
    let db = open(&disk).map_err(text)?;
    let table = db.create_table(&spec("t")).map_err(text)?;
    let mut txn = db.begin();
    let before = (0..50).map(|key| (key, Row::new(key, 300))).collect::<Rows>();
    before.iter().try_for_each(|(key, row)| insert(&mut txn, &table, *key, row)).map_err(text)?;
    txn.commit().map_err(text)?;
    disk.set_space(Some(disk.used_bytes() + (600 << 10)));
    let refused = (1000..20_000).find_map(|key| insert(&mut txn, &table, key, &Row::new(key, 500)).err());
    match refused {
        Some(Error::DiskFull(_)) => {}
        other => return Err(format!("the disk should be full, but: {other:?}")),
    }
    txn.rollback().map_err(|error| format!("the rollback fails: {error}"))?;
    if let Some(reason) = db.stopped() {
        return Err(format!("the engine has stopped: {reason}"));
    }
    compare(&db, &before)?;
    disk.set_space(None);
    db.checkpoint().map_err(text)?;
    let table = db.table("t").map_err(text)?;
    insert(&mut txn, &table, 77, &Row::new(77, 5)).map_err(text)?;
    txn.rollback().map_err(text)?;
    drop((txn, table, db));
    compare(&open(&disk).map_err(text)?, &before)
}

fn compare(db: &cheetah::testing::db::Db, before: &Rows) -> Result<(), String> {
    let table = db.table("t").map_err(|error| error.to_string())?;
    let rows = all_rows(&mut db.begin(), &table).map_err(|error| error.to_string())?;
    if rows != *before {
        return Err("the rows are not as before".into());
    }
    check(db, &table)
        .map_err(|error| error.to_string())?
        .map(drop)
        .map_err(|findings| format!("{findings:?}"))
}

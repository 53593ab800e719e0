//! Rows of tables whose indexes are added and dropped. A row has entries in the indexes that the
//! table has. The name of an index identifies it.

use super::*;
use cheetah::testing::format::catalog::IndexDef;

/// Position, key and payload of a row's entries in the indexes of the table.
pub fn entries(table: &Table, row: &Row) -> Vec<(usize, Vec<u8>, Vec<u8>)> {
    let [name, number] = row.keys();
    let entry = |(index_no, index): (usize, &IndexDef)| match index.name.as_str() {
        "name" | "name2" => Some((index_no, name.clone(), b"p".to_vec())),
        "number" | "No" | "number2" => Some((index_no, number.clone(), Vec::new())),
        _ => None,
    };
    table.indexes().iter().enumerate().filter_map(entry).collect()
}

pub fn put(
    txn: &mut Transaction,
    table: &Arc<Table>,
    key: u64,
    old: Option<&Row>,
    new: Option<&Row>,
) -> Result<()> {
    let (old_entries, new_entries) = (old.map(|row| entries(table, row)), new.map(|row| entries(table, row)));
    let (old_entries, new_entries) = (old_entries.unwrap_or_default(), new_entries.unwrap_or_default());
    let changes = |no: usize| old.is_none() || new.is_none() || old_entries[no] != new_entries[no];
    let count = old_entries.len().max(new_entries.len());
    let changed = (0..count).filter(|&no| changes(no)).collect::<Vec<_>>();
    let going = |&no: &usize| {
        let (index_no, key, payload) = old_entries.get(no)?;
        Some(OldEntry { index_no: *index_no, key, payload })
    };
    let going = changed.iter().filter_map(going).collect::<Vec<_>>();
    let coming = |&no: &usize| {
        let (index_no, key, payload) = new_entries.get(no)?;
        Some(SecondaryEntry { index_no: *index_no, key, payload, check_unique: true })
    };
    let coming = changed.iter().filter_map(coming).collect::<Vec<_>>();
    let key = key.to_be_bytes();
    let stored = new.map(Row::stored).unwrap_or_default();
    let new_row = NewRow { key: &key, row: &stored, secondary: &coming };
    match (old, new) {
        (None, Some(_)) => txn.insert(table, &new_row),
        (Some(_), Some(_)) => txn.update(table, &key, &new_row, &going),
        _ => txn.delete(table, &key, &going),
    }
}

/// Checks that the rows match the indexes of the table. Returns the rows.
pub fn contents(db: &Db, table: &Arc<Table>) -> std::result::Result<Rows, String> {
    let rows = all_rows(&mut db.begin(), table).map_err(|error| error.to_string())?;
    let report = db.check_table_with(table, &mut |_, stored, expected| {
        let all = entries(table, &Row::parse(stored).0);
        expected.extend(all.into_iter().map(|(index_no, key, payload)| ExpectedEntry {
            index_no,
            key,
            payload,
        }));
        Ok(())
    });
    let report = report.map_err(|error| error.to_string())?;
    let counted = db.begin().count(table).map_err(|error| error.to_string())?;
    match (report.findings.is_empty(), counted == Some(rows.len() as u64)) {
        (true, true) => Ok(rows),
        (false, _) => Err(format!("{:?}", report.findings)),
        (true, false) => Err(format!("{} rows, counted as {counted:?}", rows.len())),
    }
}

//! Tables whose columns are added and dropped, for tests. A row is a list of values by column
//! number. The module has the rows' stored bytes, and operations on rows in a database.

#![allow(clippy::unwrap_used, dead_code, unreachable_pub, reason = "each test file uses a part")]

use crate::support;
use cheetah::testing::base::Result;
use cheetah::testing::db::{Db, ExpectedEntry, Read, SeekMode, Transaction};
use cheetah::testing::format::catalog::IndexDef;
use cheetah::testing::format::row::{build_row, RowFormatVersion, RowView, VarValue, LOCATOR_BYTES};
use cheetah::testing::format::row_format_versions::{BitRun, FormatChange};
use cheetah::testing::table::{
    Alteration, AlteredIndex, IndexFrom, IndexSpec, NewRow, NewRows, OldEntry, SecondaryEntry, Table,
    TableSpec,
};
use cheetah_io::rng::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A column: its permanent number and its width in bytes. A width of 0 means a variable width.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Column {
    pub no: u32,
    pub width: u16,
}

/// Whether the value is NULL, and the value's bytes. Tests also compare the bytes of a NULL.
pub type Value = (bool, Vec<u8>);
pub type Row = BTreeMap<u32, Value>;
pub type Rows = BTreeMap<u64, Row>;

/// The column of the secondary index. No test drops it.
pub const NUMBER: Column = Column { no: 0, width: 8 };

pub fn is_fixed(column: &&Column) -> bool {
    column.width > 0
}

pub fn is_var(column: &&Column) -> bool {
    column.width == 0
}

pub fn row_format(columns: &[Column]) -> RowFormatVersion {
    RowFormatVersion {
        null_bytes: columns.len().div_ceil(8) as u16,
        fixed: columns.iter().filter(is_fixed).map(|column| column.width).collect(),
        var_count: columns.iter().filter(is_var).count() as u16,
    }
}

/// Encodes a row. `kept` has the locators of the columns that keep their large values.
pub fn stored(columns: &[Column], row: &Row, kept: &BTreeMap<u32, [u8; LOCATOR_BYTES]>) -> Vec<u8> {
    let mut nulls = vec![0xffu8; columns.len().div_ceil(8)];
    for (bit, _) in columns.iter().enumerate().filter(|(_, column)| !row[&column.no].0) {
        nulls[bit / 8] &= !(1 << (bit % 8));
    }
    let fixed =
        columns.iter().filter(is_fixed).flat_map(|column| row[&column.no].1.clone()).collect::<Vec<_>>();
    let value = |column: &Column| match kept.get(&column.no) {
        Some(locator) => VarValue::external(locator),
        None => VarValue::inline(&row[&column.no].1),
    };
    let values = columns.iter().filter(is_var).map(value).collect::<Vec<_>>();
    let mut out = Vec::new();
    build_row(&nulls, &fixed, &values, &mut out);
    out
}

/// Decodes a stored row. Returns the row and the locators of its large values.
pub fn parse(columns: &[Column], bytes: &[u8]) -> (Row, BTreeMap<u32, [u8; LOCATOR_BYTES]>) {
    let row_format = row_format(columns);
    let view = RowView::parse(&row_format, bytes).unwrap();
    let (mut fixed, mut values) = (view.fixed(), view.values());
    let (mut row, mut external) = (Row::new(), BTreeMap::new());
    for (bit, column) in columns.iter().enumerate() {
        let is_null = view.nulls()[bit / 8] >> (bit % 8) & 1 == 1;
        let value = if is_fixed(&column) {
            let (value, rest) = fixed.split_at(column.width.into());
            fixed = rest;
            value.to_vec()
        } else {
            let value = values.next().unwrap();
            if value.external {
                external.insert(column.no, value.bytes.try_into().unwrap());
            }
            value.bytes.to_vec()
        };
        row.insert(column.no, (is_null, value));
    }
    for bit in columns.len()..view.nulls().len() * 8 {
        assert!(view.nulls()[bit / 8] >> (bit % 8) & 1 == 1, "bits after the columns are as in the defaults");
    }
    (row, external)
}

pub fn index_key(row: &Row) -> Vec<u8> {
    row[&NUMBER.no].1.clone()
}

pub fn random_value(rng: &mut Rng, column: &Column, is_long: bool) -> Value {
    let bytes = match column.width {
        0 if is_long => 300 + rng.below(900) as usize,
        0 => rng.below(12) as usize,
        width => width.into(),
    };
    (rng.chance(0.3), rng.bytes(bytes))
}

/// A change of columns, with the defaults of the added columns.
pub fn new_rows(old: &[Column], new: &[Column], defaults: &Row) -> NewRows {
    let place = |columns: &[Column], column: &Column, f: fn(&&Column) -> bool| {
        columns.iter().filter(f).position(|other| other.no == column.no).map(|at| at as u16)
    };
    let was = |f: fn(&&Column) -> bool| new.iter().filter(f).map(|column| place(old, column, f)).collect();
    let bit = |(to, column): (usize, &Column)| {
        let from = old.iter().position(|other| other.no == column.no)?;
        Some(BitRun { from: from as u32, to: to as u32, count: 1 })
    };
    let filled = new.iter().map(|column| {
        let none = || (false, vec![0x11; column.width.into()]);
        (column.no, defaults.get(&column.no).cloned().unwrap_or_else(none))
    });
    let change = FormatChange {
        bits: new.iter().enumerate().filter_map(bit).collect(),
        fixed: was(is_fixed),
        vars: was(is_var),
        defaults: stored(new, &filled.collect(), &BTreeMap::new()),
    };
    NewRows { row_format: row_format(new), change }
}

pub fn spec(columns: &[Column]) -> TableSpec {
    let index = |name: &str, unique| IndexSpec {
        name: name.into(),
        unique,
        max_key_bytes: 8,
        row_format: RowFormatVersion::opaque(),
    };
    TableSpec {
        row_format: row_format(columns),
        indexes: vec![index("PRIMARY", true), index("number", false)],
        ..support::spec("t")
    }
}

pub fn alter(db: &Db, rows: NewRows, mark: &[u8]) -> Result<()> {
    let table = db.table("t")?;
    let index = |(from, index): (usize, &IndexDef)| AlteredIndex {
        name: index.name.clone(),
        from: IndexFrom::Kept(from),
    };
    let indexes = table.indexes().iter().enumerate().map(index).collect();
    let (extra, mark) = (b"extra".to_vec(), mark.to_vec());
    let rows = Some(rows);
    db.alter_tables(&[Alteration { rows, extra, mark, ..Alteration::of_indexes(table, indexes) }])
}

/// Writes a row in place of `old`.
pub fn put(
    txn: &mut Transaction,
    table: &Arc<Table>,
    key: u64,
    old: Option<&Row>,
    new: Option<(&Row, Vec<u8>)>,
) -> Result<()> {
    let old_key = old.map(index_key);
    let new_key = new.as_ref().map(|(row, _)| index_key(row));
    let changes = old_key != new_key;
    let going = old_key.as_deref().filter(|_| changes).map(|key| OldEntry { index_no: 1, key, payload: b"" });
    let going = going.into_iter().collect::<Vec<_>>();
    let coming = new_key.as_deref().filter(|_| changes);
    let coming = coming.map(|key| SecondaryEntry { index_no: 1, key, payload: b"", check_unique: false });
    let coming = coming.into_iter().collect::<Vec<_>>();
    let key = key.to_be_bytes();
    match (old, new) {
        (None, Some((_, row))) => txn.insert(table, &NewRow { key: &key, row: &row, secondary: &coming }),
        (Some(_), Some((_, row))) => {
            txn.update(table, &key, &NewRow { key: &key, row: &row, secondary: &coming }, &going)
        }
        _ => txn.delete(table, &key, &going),
    }
}

pub fn complete(txn: &Transaction, table: &Arc<Table>, columns: &[Column], bytes: &[u8]) -> Result<Row> {
    let (mut row, external) = parse(columns, bytes);
    for (no, locator) in external {
        txn.fetch_large(table, &locator, &mut row.get_mut(&no).unwrap().1)?;
    }
    Ok(row)
}

/// Reads all rows in several ways: one by one and in groups by the clustered index, by the
/// secondary index, and by key.
pub fn read_all(txn: &mut Transaction, table: &Arc<Table>, columns: &[Column], how: Read) -> Result<Rows> {
    let mut rows = Rows::new();
    let mut cursor = txn.cursor(table, 0, how)?;
    let mut found = cursor.seek(SeekMode::First, b"")?;
    while found {
        let key = u64::from_be_bytes(cursor.key().try_into().unwrap());
        rows.insert(key, complete(txn, table, columns, cursor.row())?);
        found = cursor.next()?;
    }
    let mut backward = Rows::new();
    let mut found = cursor.seek(SeekMode::Last, b"")?;
    while found {
        let key = u64::from_be_bytes(cursor.key().try_into().unwrap());
        backward.insert(key, complete(txn, table, columns, cursor.row())?);
        found = cursor.prev()?;
    }
    assert_eq!(rows, backward);
    let (mut grouped, mut bytes) = (Rows::new(), Vec::new());
    if cursor.seek(SeekMode::First, b"")? {
        bytes.push((cursor.key().to_vec(), cursor.row().to_vec()));
        while cursor
            .next_rows(7, |prefix, suffix, row| bytes.push(([prefix, suffix].concat(), row.to_vec())))?
        {
            assert_eq!(
                bytes.last().map(|(key, row)| (&key[..], &row[..])),
                Some((cursor.key(), cursor.row()))
            );
        }
    }
    for (key, row) in &bytes {
        let key = u64::from_be_bytes(key.as_slice().try_into().unwrap());
        grouped.insert(key, complete(txn, table, columns, row)?);
    }
    assert_eq!(rows, grouped);
    let mut cursor = txn.cursor(table, 1, how)?;
    let (mut by_number, mut bytes) = (Rows::new(), Vec::new());
    let mut found = cursor.seek(SeekMode::First, b"")?;
    while found {
        cursor.get_row(&mut bytes)?;
        let row = complete(txn, table, columns, &bytes)?;
        assert_eq!(cursor.secondary_key(), index_key(&row));
        by_number.insert(u64::from_be_bytes(cursor.clustered_key().try_into().unwrap()), row);
        found = cursor.next()?;
    }
    assert_eq!(rows, by_number);
    for (key, row) in &rows {
        assert!(txn.get(table, &key.to_be_bytes(), how, &mut bytes)?);
        assert_eq!(&complete(txn, table, columns, &bytes)?, row);
    }
    Ok(rows)
}

/// Checks that the table is intact, and that every page has an owner.
pub fn check(db: &Db, table: &Arc<Table>, columns: &[Column]) -> std::result::Result<(), String> {
    let report = db.check_table_with(table, &mut |_, stored, expected| {
        let key = index_key(&parse(columns, stored).0);
        expected.push(ExpectedEntry { index_no: 1, key, payload: Vec::new() });
        Ok(())
    });
    let report = report.map_err(|error| error.to_string())?;
    match (report.findings.is_empty(), db.pages_without_owner()) {
        (true, 0) => Ok(()),
        (_, pages) => Err(format!("{:?}, {pages} pages without owner", report.findings)),
    }
}

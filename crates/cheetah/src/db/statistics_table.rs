//! The engine's own table that stores the statistics of indexes. Invariants: I1 and I2 in
//! [`super::taking_statistics`].

use super::fulltext::is_removed_words;
use super::{own_tables, Read, Transaction};
use crate::base::{Error, ErrorKind, Result, TableId};
use crate::format::catalog::parse_piece_key;
use crate::format::row::RowFormatVersion;
use crate::format::statistics::{statistics_key, IndexStatistics, KEY_BYTES};
use crate::table::shared::parts::Core;
use crate::table::{NewRow, Table};
use crate::tree::SeekMode;
use std::sync::Arc;

/// No database of the server can have such a name.
const NAME: &str = "#statistics";

/// Whether the table is one of the engine's own that are written and emptied in normal operation:
/// they get no dictionaries, because nothing could remove these again.
pub(in crate::db) fn is_internal(table: &Table) -> bool {
    table.name() == NAME || is_removed_words(table)
}

pub(super) fn existing(core: &Core) -> Option<Arc<Table>> {
    own_tables::existing(core, NAME)
}

/// Creates the table if it does not exist, which blocks for I/O.
pub(super) fn table(core: &Core) -> Result<Arc<Table>> {
    own_tables::existing_or_new(core, NAME, RowFormatVersion::opaque(), KEY_BYTES as u32)
}

/// Writes statistics of indexes, given by ID, and deletes those of other indexes of the table.
pub(super) fn replace(
    txn: &mut Transaction,
    kept: &Arc<Table>,
    table: TableId,
    found: &[(u16, &IndexStatistics)],
) -> Result<()> {
    let is_found = |key: &[u8]| found.iter().any(|(number, _)| statistics_key(table, *number) == key);
    for key in keys_of(txn, kept, table)?.iter().filter(|key| !is_found(key)) {
        // Another transaction may have deleted it.
        if txn.get(kept, key, Read::Exclusive, &mut Vec::new())? {
            txn.delete(kept, key, &[])?;
        }
    }
    for (number, statistics) in found {
        let key = statistics_key(table, *number);
        let mut row = Vec::new();
        statistics.encode(&mut row);
        let new = NewRow { key: &key, row: &row, secondary: &[] };
        if txn.get(kept, &key, Read::Exclusive, &mut Vec::new())? {
            txn.update(kept, &key, &new, &[])?;
        } else {
            txn.insert(kept, &new)?;
        }
    }
    Ok(())
}

fn keys_of(txn: &mut Transaction, kept: &Arc<Table>, table: TableId) -> Result<Vec<Vec<u8>>> {
    let mut cursor = txn.cursor(kept, 0, Read::Consistent)?;
    let mut keys = Vec::new();
    let mut found = cursor.seek(SeekMode::AtLeast, &statistics_key(table, 0))?;
    while found && parse_piece_key(cursor.key())?.0 == table {
        keys.push(cursor.key().to_vec());
        found = cursor.next()?;
    }
    Ok(keys)
}

/// At startup; also removes statistics of dropped tables.
pub(in crate::db) fn load(core: &Arc<Core>) -> Result<()> {
    let Some(kept) = existing(core) else { return Ok(()) };
    let mut txn = Transaction::new(Arc::clone(core));
    // A transaction interrupted by a crash may lock a row: a later startup removes the statistics.
    txn.set_lock_wait(0);
    match read(core, &mut txn, &kept).and_then(|()| txn.commit()) {
        Err(Error::LockTimeout) => Ok(()),
        Err(error) if error.kind() == ErrorKind::Corruption => Ok(()),
        result => result,
    }
}

fn read(core: &Core, txn: &mut Transaction, kept: &Arc<Table>) -> Result<()> {
    let mut cursor = txn.cursor(kept, 0, Read::Consistent)?;
    let mut orphans = Vec::new();
    let mut found = cursor.seek(SeekMode::First, b"")?;
    while found {
        let (id, number) = parse_piece_key(cursor.key())?;
        let index = core.catalog.by_id(id).and_then(|table| Some((table.position_of(number.into())?, table)));
        match index {
            Some((index_no, table)) => {
                table.set_statistics([(index_no, IndexStatistics::decode(cursor.row())?)]);
            }
            None => orphans.push(cursor.key().to_vec()),
        }
        found = cursor.next()?;
    }
    orphans.iter().try_for_each(|key| txn.delete(kept, key, &[]))
}

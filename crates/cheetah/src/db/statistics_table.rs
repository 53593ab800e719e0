//! The table of the engine's own that keeps the statistics of indexes.
//! Invariants: I1 and I2 at the head of [`super::taking_statistics`].

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

/// Name of the statistics table; no database of the server can be called so.
const NAME: &str = "#statistics";

/// Whether the table is one of the engine's own whose rows come and go: it gets no dictionaries, as
/// nobody could take them away again.
pub(in crate::db) fn is_internal(table: &Table) -> bool {
    table.name() == NAME || is_removed_words(table)
}

/// The table, if there is one.
pub(super) fn existing(core: &Core) -> Option<Arc<Table>> {
    own_tables::existing(core, NAME)
}

/// The table, created if it does not exist: blocks for I/O then.
pub(super) fn table(core: &Core) -> Result<Arc<Table>> {
    own_tables::existing_or_new(core, NAME, RowFormatVersion::opaque(), KEY_BYTES as u32)
}

/// Puts statistics of indexes, by their numbers, into the table; those of other indexes of the same
/// table go.
pub(super) fn replace(
    txn: &mut Transaction,
    kept: &Arc<Table>,
    table: TableId,
    found: &[(u16, &IndexStatistics)],
) -> Result<()> {
    let is_found = |key: &[u8]| found.iter().any(|(number, _)| statistics_key(table, *number) == key);
    for key in keys_of(txn, kept, table)?.iter().filter(|key| !is_found(key)) {
        // Somebody else may have done so.
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

/// The keys of what is kept of a table.
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

/// Gives the open tables their statistics, and removes those of dropped tables. For the startup of
/// a database.
pub(in crate::db) fn load(core: &Arc<Core>) -> Result<()> {
    let Some(kept) = existing(core) else { return Ok(()) };
    let mut txn = Transaction::new(Arc::clone(core));
    // A transaction that a crash has interrupted may keep a row locked: then its table's are
    // removed another time.
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

//! ANALYZE: statistics of indexes are taken, kept with the open table, and written into a table of
//! the engine's own.
//!
//! Invariants
//!   I1  A row of the statistics table belongs to an index by the number of its table and its own
//!       there, neither of which is used again: a new one has no statistics, a renamed one keeps
//!       them, and what a dropped one leaves is removed at the next startup.
//!   I2  Statistics are hints. When they cannot be read, there are none.

use super::{Db, Read, Transaction};
use crate::base::{Error, ErrorKind, Result, TableId};
use crate::format::catalog::parse_piece_key;
use crate::format::image::Compression;
use crate::format::row::RowFormatVersion;
use crate::format::statistics::{statistics_key, IndexStatistics, KEY_BYTES};
use crate::table::analyze::{analyze_index, KeyEnds};
use crate::table::shared::parts::Core;
use crate::table::{IndexSpec, NewRow, Table, TableSpec};
use crate::tree::SeekMode;
use std::sync::Arc;

/// How often a table is analyzed by itself at most, as by InnoDB.
const ANALYZE_EVERY_NS: u64 = 10_000_000_000;
/// Name of the statistics table; no database of the server can be called so.
const NAME: &str = "#statistics";

impl Db {
    /// Takes statistics of all indexes of a table by samples from `places` of each and keeps them;
    /// durable on return. The caller's transaction should have a lock on the table. Reads about so
    /// many pages of each index, and a few dozen; then up to 96 more, to try dictionaries of what
    /// the indexes have now.
    pub fn analyze_table(&self, table: &Arc<Table>, places: u32, key_ends: &mut KeyEnds<'_>) -> Result<()> {
        let table = table.newest();
        self.analyze_in(self.begin(), table, places, key_ends)?;
        refresh_dictionaries(&self.0.core, table)
    }

    /// As [`analyze_table`](Self::analyze_table), if that has been done once, the number of rows
    /// has changed by a tenth since, and nobody has done this in the last ten seconds. Waits for no
    /// lock. Returns whether there are new statistics; errors mean that there are not (I2).
    pub fn analyze_again(&self, table: &Arc<Table>, places: u32, key_ends: &mut KeyEnds<'_>) -> Result<bool> {
        let table = table.newest();
        if !table.statistics_are_old() || !table.may_analyze(self.0.core.clock.now_ns(), ANALYZE_EVERY_NS) {
            return Ok(false);
        }
        let mut txn = self.begin();
        txn.set_lock_wait(0);
        self.analyze_in(txn, table, places, key_ends).map(|()| true)
    }

    fn analyze_in(
        &self,
        mut txn: Transaction,
        table: &Arc<Table>,
        places: u32,
        key_ends: &mut KeyEnds<'_>,
    ) -> Result<()> {
        let kept = self.statistics_table()?;
        for index_no in (0..table.indexes().len()).filter(|&index_no| !table.is_disabled(index_no)) {
            let statistics = analyze_index(table, index_no, places, key_ends)?;
            // One of so many comes without statistics after the next startup.
            if let Ok(number) = u16::try_from(table.number_of(index_no)) {
                write(&mut txn, &kept, table.id(), number, &statistics)?;
            }
            table.set_statistics(index_no, statistics);
        }
        txn.commit()
    }

    fn statistics_table(&self) -> Result<Arc<Table>> {
        if let Ok(table) = self.table(NAME) {
            return Ok(table);
        }
        let clustered = IndexSpec {
            name: "PRIMARY".to_owned(),
            unique: true,
            max_key_bytes: KEY_BYTES as u32,
            row_format: RowFormatVersion::opaque(),
        };
        let spec = TableSpec {
            name: NAME.to_owned(),
            row_format: RowFormatVersion::opaque(),
            indexes: vec![clustered],
            compression: Compression::default(),
            hidden_key: false,
            auto_increment: 1,
            extra: Vec::new(),
        };
        // Another connection may have been faster.
        self.create_table(&spec).or_else(|_| self.table(NAME))
    }
}

/// Whether the table is the engine's own: it gets no dictionaries, as nobody could take them away
/// again.
pub(super) fn is_internal(table: &Table) -> bool {
    table.name() == NAME
}

/// Tries whether dictionaries of what the indexes have now pay. The statistics are there whatever
/// comes of it.
fn refresh_dictionaries(core: &Core, table: &Table) -> Result<()> {
    for (_, index) in table.indexes().iter().enumerate().filter(|(no, _)| !table.is_disabled(*no)) {
        // Between two of them the table may be dropped.
        let Ok(_usage) = table.use_it() else { return Ok(()) };
        core.pool.try_dictionary_in_passing(index.tree)?;
    }
    Ok(())
}

fn write(
    txn: &mut Transaction,
    kept: &Arc<Table>,
    table: TableId,
    number: u16,
    statistics: &IndexStatistics,
) -> Result<()> {
    let key = statistics_key(table, number);
    let mut row = Vec::new();
    statistics.encode(&mut row);
    let new = NewRow { key: &key, row: &row, secondary: &[] };
    if txn.get(kept, &key, Read::Exclusive, &mut Vec::new())? {
        txn.update(kept, &key, &new, &[])
    } else {
        txn.insert(kept, &new)
    }
}

/// Gives the open tables their statistics, and removes those of dropped tables. For the startup of
/// a database.
pub(super) fn load(core: &Arc<Core>) -> Result<()> {
    let Ok(kept) = core.catalog.by_name(NAME) else { return Ok(()) };
    let mut txn = Transaction::new(Arc::clone(core));
    // What a crash has interrupted may keep a row locked: then its table's are removed another
    // time.
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
            Some((index_no, table)) => table.set_statistics(index_no, IndexStatistics::decode(cursor.row())?),
            None => orphans.push(cursor.key().to_vec()),
        }
        found = cursor.next()?;
    }
    orphans.iter().try_for_each(|key| txn.delete(kept, key, &[]))
}

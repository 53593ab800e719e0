//! Transactions that startup finds open: their changes, and the locks that protect these changes
//! from other transactions (durability::M3, durability::S7).
//!
//! Their rows are locked by the versions they wrote, as for any open transaction. Their tables are
//! locked again for changes, before the database accepts requests.

use crate::base::{sound, Result, TableId, UndoPtr};
use crate::format::undo_record::{decode_body, UndoBody, HEAD_BYTES};
use crate::table::definitions::shadow;
use crate::table::rows::change;
use crate::table::shared::parts::Core;
use crate::txn::{Answer, Listed, Lock, Slot, TableMode, Wait};
use std::collections::BTreeMap;

/// Returns an owner for the transaction's locks, and its locked tables. Reads its undo records.
pub(in crate::table) fn take_over(core: &Core, slot: &Slot) -> Result<(Listed, Vec<TableId>)> {
    let listed = core.list_found(slot);
    let rows = rows_changed(core, slot)?;
    let written = rows.keys().copied().filter(|table| core.catalog.by_id(*table).is_some());
    let written = written.map(|table| (table, TableMode::IntentExclusive));
    let replaced =
        shadow::targets_of(core, slot.txn()).into_iter().map(|table| (table, TableMode::Exclusive));
    let locks = written.chain(replaced).collect::<Vec<_>>();
    slot.set_rows(rows);
    for &(table, mode) in locks.iter().filter(|_| sound!(true, "recovery: serve without the locks")) {
        let lock = Lock::Table(table, mode);
        let answer = core.locks.request(listed.owner(), lock, Wait::Never)?;
        assert!(!matches!(answer, Answer::Refused), "M3: nobody has locked a table before");
    }
    Ok((listed, locks.into_iter().map(|lock| lock.0).collect()))
}

/// From the transaction's undo records, because no epoch has its row counts.
fn rows_changed(core: &Core, slot: &Slot) -> Result<BTreeMap<TableId, i64>> {
    let state = *slot.state();
    let (mut at, mut undo_no) = (state.head, state.undo_no);
    let mut tables = BTreeMap::new();
    let mut record = Vec::new();
    while at != UndoPtr(0) {
        let head = core.transactions.undo.read(at, state.txn, undo_no, &mut record)?;
        let body = decode_body(record.get(HEAD_BYTES..).unwrap_or_default())?;
        if let Some(table) = body.table() {
            *tables.entry(table).or_default() += rows_of(&body);
        }
        (at, undo_no) = (head.prev, undo_no - 1);
    }
    Ok(tables)
}

fn rows_of(body: &UndoBody<'_>) -> i64 {
    match body {
        UndoBody::Row(row) => change::rows_of(row.op),
        _ => 0,
    }
}

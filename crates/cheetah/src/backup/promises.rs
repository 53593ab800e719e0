//! The prepared transactions that are rolled back in a snapshot (durability::Z6).

use crate::base::{sound, Result, TxnId, Xid};
use crate::format::log_record::LogRecord;
use crate::format::state::State;
use crate::keys::Keys;
use crate::log::PinnedLog;
use cheetah_io::Disk;
use std::collections::BTreeMap;

/// Reads a snapshot's log. Returns the checksum chain at its end, and the records, each after its
/// kind, that withdraw the promises of the transactions that `is_own` selects. Blocks for I/O.
pub(super) fn withdrawals(
    log: &PinnedLog,
    disk: &dyn Disk,
    keys: &Keys,
    state: &State,
    is_own: &dyn Fn(&Xid) -> bool,
) -> Result<(u32, Vec<Vec<u8>>)> {
    let listed = state.txns.iter().filter_map(|txn| Some((txn.txn, txn.xid?)));
    let mut prepared: BTreeMap<TxnId, Xid> = listed.collect();
    let chain = log.read(disk, keys, |frame| {
        if LogRecord::is_operation(frame.kind) {
            return Ok(());
        }
        match LogRecord::decode(frame.kind, frame.body)? {
            LogRecord::Prepare(txn, Some(xid)) => drop(prepared.insert(txn, xid)),
            LogRecord::Prepare(txn, None) | LogRecord::Commit(txn, _) | LogRecord::Abort(txn) => {
                prepared.remove(&txn);
            }
            _ => {}
        }
        Ok(())
    })?;
    let own =
        prepared.iter().filter(|(_, xid)| sound!(is_own(xid), "backup: keep the promises of the server"));
    let records = own.map(|(txn, _)| {
        let mut record = Vec::new();
        LogRecord::Prepare(*txn, None).encode(&mut record);
        record
    });
    Ok((chain, records.collect()))
}

//! The outcomes of all transactions in the log, collected before any transaction is applied.
//!
//! A transaction whose commit is in the log, and which rolled nothing back, is applied *for good*.
//! No reader exists before redo is done, so no reader needs the older versions of its rows. Its
//! operations leave no undo records, no versions and no delete marks.
//!
//! Invariants
//!   I1  All records to be applied have been noted before the first is applied.
//!   I2  A commit counts even if it was not durable before the crash, because recovery makes it
//!       durable before any session is served and before an epoch contains the result of redo.
//!   I3  Only transactions that are not applied for good are kept. Their memory is counted once all
//!       records have been noted.

use crate::base::hash::FastMap;
use crate::base::{sound, Result, TxnId};
use crate::format::log_record::{Front, LogRecord};
use crate::memory::{MemoryBudget, MemoryUse, Reservation};
use std::sync::Arc;

/// Bytes for each kept transaction, including free slots of the table.
const KEPT_BYTES: usize = 32;

#[derive(Default)]
pub(super) struct Outcomes {
    /// `true` if the transaction rolled something back, `false` if it only has no commit.
    kept: FastMap<TxnId, bool>,
    operations: usize,
    reserved: Option<Reservation>,
}

impl Outcomes {
    /// Notes the next record of the log. Fails with `Corruption` if the bytes are not a record.
    pub(super) fn note(&mut self, kind: u8, body: &[u8]) -> Result<()> {
        if let Some(front) = Front::decode(kind, body)? {
            self.kept.entry(front.txn).or_insert(false);
            self.operations += 1;
            return Ok(());
        }
        match LogRecord::decode(kind, body)? {
            LogRecord::Undo(txn, _) | LogRecord::Abort(txn) => {
                self.kept.insert(txn, true);
            }
            LogRecord::Commit(txn, _) if self.kept.get(&txn) == Some(&false) => {
                self.kept.remove(&txn);
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn count_memory(&mut self, memory: &Arc<MemoryBudget>) {
        self.kept.shrink_to_fit();
        self.reserved = Some(memory.reserve(MemoryUse::Redo, self.kept.len() * KEPT_BYTES));
    }

    pub(super) fn operations(&self) -> usize {
        self.operations
    }

    /// Returns whether a transaction commits everything that it does in the log.
    pub(super) fn commits(&self, txn: TxnId) -> bool {
        let has_rolled_back = self.kept.get(&txn);
        has_rolled_back.is_none()
            || has_rolled_back == Some(&true) && !sound!(true, "redo: apply for good what is rolled back")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::TableId;

    #[test]
    fn it_tells_who_commits_without_rolling_anything_back() {
        let mut outcomes = Outcomes::default();
        let blob = |txn| LogRecord::Blob { txn, table: TableId(1), total_bytes: 1, offset: 0, bytes: b"a" };
        let mut note = |record: &LogRecord<'_>| {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            outcomes.note(bytes[0], &bytes[1..]).unwrap();
        };
        (1..=5).for_each(|txn| note(&blob(TxnId(txn))));
        note(&LogRecord::Undo(TxnId(1), 1));
        (1..=2).for_each(|txn| note(&LogRecord::Commit(TxnId(txn), txn)));
        note(&LogRecord::Abort(TxnId(3)));
        note(&LogRecord::Prepare(TxnId(4), None));
        note(&LogRecord::Commit(TxnId(6), 3));
        let commits = [1, 2, 3, 4, 5, 6].map(|txn| outcomes.commits(TxnId(txn)));
        assert_eq!(commits, [false, true, false, false, false, true]);
        assert_eq!(outcomes.operations(), 5);
    }
}

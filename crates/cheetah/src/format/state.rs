//! The state that a generation of the page map carries: all that recovery needs beside the pages (H2).
//!
//! Invariants
//!   I1  It is taken at the flip, while no action runs: it matches the pages of its generation and the log
//!       before `lsn` exactly, and nothing behind.
//!   I2  The first byte is the version of the layout; a newer one is refused with a clear error.
//! Layout    docs/format.md, "Generation state".

use super::bytes::{check_version, put_prefixed, Defect, Reader};
use super::record_fields::{count, number_u32, text};
use super::varint;
use crate::base::{Lsn, PageId, Result, TableId, TreeId, TxnId, UndoPtr};

type Parsed<T> = std::result::Result<T, Defect>;

const VERSION: u8 = 1;

/// A transaction that had undo records at the flip.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TxnState {
    /// The transaction.
    pub txn: TxnId,
    /// Whether it is committed, and only still has to free large values.
    pub committed: bool,
    /// Its newest undo record; of a committed one, the newest whose `freed` values may still have pages.
    pub head: UndoPtr,
    /// Its oldest undo record.
    pub first: UndoPtr,
    /// Number of the record at `head`, 0 when there is none.
    pub undo_no: u64,
    /// Pages of the values freed by the record at `head` that are free already; committed ones only.
    pub freed_pages: u64,
}

/// The counters of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TableState {
    /// The table.
    pub table: TableId,
    /// Rows in its clustered tree.
    pub row_count: u64,
    /// The next auto-increment value.
    pub auto_increment: u64,
    /// The next hidden key.
    pub hidden_key: u64,
}

/// A table that met damage when the database was opened (N3).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FencedTable {
    /// The table.
    pub table: TableId,
    /// The damage, for people.
    pub reason: String,
}

/// The state of a generation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct State {
    /// Redo starts here.
    pub lsn: Lsn,
    /// The next transaction.
    pub next_txn: TxnId,
    /// The next place in the order of commits.
    pub next_commit: u64,
    /// The next table.
    pub next_table: TableId,
    /// The next tree.
    pub next_tree: TreeId,
    /// Root of the catalog tree.
    pub catalog_root: PageId,
    /// Number of undo pages before the first of `undo_pages` since the creation of the database.
    pub undo_first_page: u64,
    /// End of the undo log.
    pub undo_end: UndoPtr,
    /// The pages of the undo log, oldest first.
    pub undo_pages: Vec<PageId>,
    /// Transactions with undo records.
    pub txns: Vec<TxnState>,
    /// Counters of every table.
    pub tables: Vec<TableState>,
    /// Trees of dropped tables whose pages are still to be freed (M10).
    pub dropped_trees: Vec<TreeId>,
    /// Tables that nothing may be done to but dropping and emptying.
    pub fenced: Vec<FencedTable>,
}

impl State {
    /// The bytes of the state.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        let head = [
            self.lsn.0,
            self.next_txn.0,
            self.next_commit,
            self.next_table.0.into(),
            self.next_tree.0.into(),
            self.catalog_root.0,
            self.undo_first_page,
            self.undo_end.0,
        ];
        put_all(&mut out, head);
        varint::put(&mut out, self.undo_pages.len() as u64);
        put_all(&mut out, self.undo_pages.iter().map(|page| page.0));
        varint::put(&mut out, self.txns.len() as u64);
        for txn in &self.txns {
            let committed = u64::from(txn.committed);
            let fields = [txn.txn.0, committed, txn.head.0, txn.first.0, txn.undo_no, txn.freed_pages];
            put_all(&mut out, fields);
        }
        varint::put(&mut out, self.tables.len() as u64);
        for table in &self.tables {
            let fields = [table.table.0.into(), table.row_count, table.auto_increment, table.hidden_key];
            put_all(&mut out, fields);
        }
        varint::put(&mut out, self.dropped_trees.len() as u64);
        put_all(&mut out, self.dropped_trees.iter().map(|tree| u64::from(tree.0)));
        varint::put(&mut out, self.fenced.len() as u64);
        for fenced in &self.fenced {
            varint::put(&mut out, fenced.table.0.into());
            put_prefixed(&mut out, fenced.reason.as_bytes());
        }
        out
    }

    /// Reads a state; total on any bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        Self::read(&mut Reader::new(bytes)).map_err(|defect| defect.in_place("generation state"))
    }

    fn read(fields: &mut Reader<'_>) -> Parsed<Self> {
        check_version("generation state format", fields.u8()?.into(), VERSION.into())?;
        let mut state = State {
            lsn: Lsn(fields.varint()?),
            next_txn: TxnId(fields.varint()?),
            next_commit: fields.varint()?,
            next_table: TableId(number_u32(fields)?),
            next_tree: TreeId(number_u32(fields)?),
            catalog_root: PageId(fields.varint()?),
            undo_first_page: fields.varint()?,
            undo_end: UndoPtr(fields.varint()?),
            ..State::default()
        };
        for _ in 0..count(fields)? {
            state.undo_pages.push(PageId(fields.varint()?));
        }
        for _ in 0..count(fields)? {
            state.txns.push(decode_txn(fields)?);
        }
        for _ in 0..count(fields)? {
            state.tables.push(decode_table(fields)?);
        }
        for _ in 0..count(fields)? {
            state.dropped_trees.push(TreeId(number_u32(fields)?));
        }
        for _ in 0..count(fields)? {
            let table = TableId(number_u32(fields)?);
            state.fenced.push(FencedTable { table, reason: text(fields)?.to_owned() });
        }
        fields.finish()?;
        Ok(state)
    }
}

fn put_all(out: &mut Vec<u8>, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        varint::put(out, number);
    }
}

fn decode_txn(fields: &mut Reader<'_>) -> Parsed<TxnState> {
    Ok(TxnState {
        txn: TxnId(fields.varint()?),
        committed: fields.varint()? != 0,
        head: UndoPtr(fields.varint()?),
        first: UndoPtr(fields.varint()?),
        undo_no: fields.varint()?,
        freed_pages: fields.varint()?,
    })
}

fn decode_table(fields: &mut Reader<'_>) -> Parsed<TableState> {
    Ok(TableState {
        table: TableId(number_u32(fields)?),
        row_count: fields.varint()?,
        auto_increment: fields.varint()?,
        hidden_key: fields.varint()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> State {
        State {
            lsn: Lsn(1 << 40),
            next_txn: TxnId(12),
            next_commit: 11,
            next_table: TableId(3),
            next_tree: TreeId(20),
            catalog_root: PageId(1),
            undo_first_page: 5,
            undo_end: UndoPtr(6000),
            undo_pages: vec![PageId(9), PageId(10)],
            txns: vec![TxnState {
                txn: TxnId(7),
                committed: true,
                head: UndoPtr(1),
                first: UndoPtr(1),
                undo_no: 1,
                freed_pages: 2,
            }],
            tables: vec![TableState { table: TableId(2), row_count: 5, auto_increment: 6, hidden_key: 7 }],
            dropped_trees: vec![TreeId(17)],
            fenced: vec![FencedTable { table: TableId(2), reason: "page 7".into() }],
        }
    }

    #[test]
    fn a_state_reads_back() {
        assert_eq!(State::decode(&sample().encode()).unwrap(), sample());
    }

    #[test]
    fn cut_altered_and_newer_states_are_refused_without_panic() {
        let bytes = sample().encode();
        for len in 0..bytes.len() {
            assert!(State::decode(&bytes[..len]).is_err());
        }
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 0xff;
            let _ = State::decode(&other);
        }
        let newer = [&[VERSION + 1], &bytes[1..]].concat();
        assert!(matches!(State::decode(&newer), Err(crate::base::Error::Unsupported { .. })));
    }
}

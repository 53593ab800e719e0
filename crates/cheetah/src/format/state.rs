//! The state that is stored with an epoch of the page map. It contains everything that recovery
//! needs in addition to the pages (H2).
//!
//! Invariants
//!   I1  It is taken at the epoch switch, while no mini-transaction runs. It matches exactly the
//!       pages of its epoch and the log before `lsn`, and nothing after `lsn`.
//!   I2  The first byte is the version of the layout. Decoding fails for a newer version with an
//!       error that says so. It also fails for version 1 if the state contains transactions,
//!       because the layout of their undo records is no longer supported.
//!   I3  A state without change files is written as version 3, and a state without change files and
//!       dictionaries as version 2, so that older engines can read it.
//! Layout    docs/developers/format.md, "Epoch state".

use super::bytes::{check_version, put_prefixed, Defect, Reader};
use super::record_fields::{count, number_u32, put_xid, text, xid};
use super::varint;
use crate::base::{Epoch, Error, Lsn, PageId, Result, TableId, TreeId, TxnId, UndoPtr, Xid};

type Parsed<T> = std::result::Result<T, Defect>;

const VERSION: u8 = 4;
/// The version without change files.
const WRITTEN_OUT_VERSION: u8 = 3;
/// The version without dictionaries and change files.
const PLAIN_VERSION: u8 = 2;
/// The version without live counts and purge position. Each of its transactions is six numbers.
const OLD_VERSION: u8 = 1;

const PLACE: &str = "epoch state";

/// A transaction that had undo records and had not ended at the epoch switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TxnState {
    /// The transaction.
    pub txn: TxnId,
    /// Its newest undo record that was not rolled back, or 0 if there is none.
    pub head: UndoPtr,
    /// The oldest undo record that it appended, rolled back or not, or 0 if there is none.
    pub first: UndoPtr,
    /// The number of the record at `head`, or 0 if there is none.
    pub undo_no: u64,
    /// Its XID, if it is prepared: a coordinator decides how it ends (H2).
    pub xid: Option<Xid>,
}

/// The progress of purge.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PurgeState {
    /// All finish records before this position of the undo log were processed.
    pub at: UndoPtr,
    /// The newest unpurged undo record of the transaction whose finish record is the next after
    /// `at`, or 0 if purge has not begun with this transaction.
    pub head: UndoPtr,
    /// Number of the record at `head`.
    pub undo_no: u64,
    /// The number of pages that purge has already freed, of the large values to free according to
    /// the record at `head`.
    pub freed_pages: u64,
}

/// A page of the undo log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UndoPage {
    /// The page.
    pub page: PageId,
    /// The number of unpurged transactions whose oldest record begins in it.
    pub live: u64,
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

/// A table in which recovery found damage when the database was opened (N3).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QuarantinedTable {
    /// The table.
    pub table: TableId,
    /// A description of the damage for users.
    pub reason: String,
}

/// A change file that belongs to an epoch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListedFile {
    /// The epoch that wrote it.
    pub epoch: Epoch,
    /// Its length.
    pub bytes: u64,
    /// The checksum of its last block.
    pub chain: u32,
    /// The trees with changes in the file.
    pub trees: Vec<TreeId>,
}

/// The state of an epoch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct State {
    /// The position at which redo starts.
    pub lsn: Lsn,
    /// The ID of the next transaction.
    pub next_txn: TxnId,
    /// The next stamp in the order of commits.
    pub next_commit: u64,
    /// The ID of the next table.
    pub next_table: TableId,
    /// The ID of the next tree.
    pub next_tree: TreeId,
    /// Root of the catalog tree.
    pub catalog_root: PageId,
    /// The number of undo pages since the creation of the database that precede the first of
    /// `undo_pages`.
    pub undo_first_page: u64,
    /// End of the undo log.
    pub undo_end: UndoPtr,
    /// The pages of the undo log, oldest first.
    pub undo_pages: Vec<UndoPage>,
    /// The progress of purge.
    pub purge: PurgeState,
    /// Transactions with undo records that have not ended.
    pub txns: Vec<TxnState>,
    /// Counters of every table.
    pub tables: Vec<TableState>,
    /// Trees of dropped tables whose pages are still to be freed (M10).
    pub dropped_trees: Vec<TreeId>,
    /// Quarantined tables, which can only be dropped or truncated.
    pub quarantined: Vec<QuarantinedTable>,
    /// The dictionaries of trees. Those of one tree are in order from oldest to newest. A dropped
    /// tree may no longer have its dictionaries.
    pub dictionaries: Vec<(TreeId, PageId)>,
    /// The files with the changes pending at the epoch switch, oldest first.
    pub change_files: Vec<ListedFile>,
}

impl State {
    /// The bytes of the state.
    pub fn encode(&self) -> Vec<u8> {
        let version = match (self.change_files.is_empty(), self.dictionaries.is_empty()) {
            (false, _) => VERSION,
            (true, false) => WRITTEN_OUT_VERSION,
            (true, true) => PLAIN_VERSION,
        };
        let mut out = vec![version];
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
        put_all(&mut out, self.undo_pages.iter().flat_map(|page| [page.page.0, page.live]));
        let PurgeState { at, head, undo_no, freed_pages } = self.purge;
        put_all(&mut out, [at.0, head.0, undo_no, freed_pages]);
        varint::put(&mut out, self.txns.len() as u64);
        for txn in &self.txns {
            put_all(&mut out, [txn.txn.0, txn.head.0, txn.first.0, txn.undo_no]);
            put_xid(&mut out, txn.xid.as_ref());
        }
        varint::put(&mut out, self.tables.len() as u64);
        for table in &self.tables {
            let fields = [table.table.0.into(), table.row_count, table.auto_increment, table.hidden_key];
            put_all(&mut out, fields);
        }
        varint::put(&mut out, self.dropped_trees.len() as u64);
        put_all(&mut out, self.dropped_trees.iter().map(|tree| u64::from(tree.0)));
        varint::put(&mut out, self.quarantined.len() as u64);
        for quarantined in &self.quarantined {
            varint::put(&mut out, quarantined.table.0.into());
            put_prefixed(&mut out, quarantined.reason.as_bytes());
        }
        if version != PLAIN_VERSION {
            varint::put(&mut out, self.dictionaries.len() as u64);
            put_all(&mut out, self.dictionaries.iter().flat_map(|(tree, page)| [tree.0.into(), page.0]));
        }
        if version == VERSION {
            varint::put(&mut out, self.change_files.len() as u64);
            for file in &self.change_files {
                let numbers = [file.epoch.0, file.bytes, file.chain.into(), file.trees.len() as u64];
                put_all(&mut out, numbers);
                put_all(&mut out, file.trees.iter().map(|tree| u64::from(tree.0)));
            }
        }
        out
    }

    /// Reads a state. Works on any bytes. Fails with `Unsupported` for a newer version, and for
    /// version 1 with transactions.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let (state, left) = Self::read(&mut Reader::new(bytes)).map_err(|defect| defect.in_place(PLACE))?;
        match left {
            0 => Ok(state),
            _ => Err(unfinished_in_old(left)),
        }
    }

    /// Reads a state. Also returns the number of unfinished transactions in a state of version 1.
    fn read(fields: &mut Reader<'_>) -> Parsed<(Self, usize)> {
        let version = fields.u8()?;
        if ![OLD_VERSION, PLAIN_VERSION, WRITTEN_OUT_VERSION].contains(&version) {
            check_version("epoch state format", version.into(), VERSION.into())?;
        }
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
        let left = match version {
            OLD_VERSION => state.read_old_undo(fields)?,
            _ => state.read_undo(fields)?,
        };
        for _ in 0..count(fields)? {
            state.tables.push(decode_table(fields)?);
        }
        for _ in 0..count(fields)? {
            state.dropped_trees.push(TreeId(number_u32(fields)?));
        }
        for _ in 0..count(fields)? {
            let table = TableId(number_u32(fields)?);
            state.quarantined.push(QuarantinedTable { table, reason: text(fields)?.to_owned() });
        }
        if [WRITTEN_OUT_VERSION, VERSION].contains(&version) {
            for _ in 0..count(fields)? {
                let tree = TreeId(number_u32(fields)?);
                state.dictionaries.push((tree, PageId(fields.varint()?)));
            }
        }
        if version == VERSION {
            for _ in 0..count(fields)? {
                state.change_files.push(decode_listed(fields)?);
            }
        }
        fields.finish()?;
        Ok((state, left))
    }

    fn read_undo(&mut self, fields: &mut Reader<'_>) -> Parsed<usize> {
        for _ in 0..count(fields)? {
            self.undo_pages.push(UndoPage { page: PageId(fields.varint()?), live: fields.varint()? });
        }
        self.purge = PurgeState {
            at: UndoPtr(fields.varint()?),
            head: UndoPtr(fields.varint()?),
            undo_no: fields.varint()?,
            freed_pages: fields.varint()?,
        };
        for _ in 0..count(fields)? {
            self.txns.push(TxnState {
                txn: TxnId(fields.varint()?),
                head: UndoPtr(fields.varint()?),
                first: UndoPtr(fields.varint()?),
                undo_no: fields.varint()?,
                xid: xid(fields)?,
            });
        }
        Ok(0)
    }

    /// Reads the undo pages and transactions of version 1. If there are no transactions, nothing in
    /// the undo log is needed, so purge is at its end. Returns the number of transactions.
    fn read_old_undo(&mut self, fields: &mut Reader<'_>) -> Parsed<usize> {
        for _ in 0..count(fields)? {
            self.undo_pages.push(UndoPage { page: PageId(fields.varint()?), live: 0 });
        }
        self.purge.at = self.undo_end;
        let txns_count = count(fields)?;
        for _ in 0..6 * txns_count {
            fields.varint()?;
        }
        Ok(txns_count)
    }
}

fn unfinished_in_old(txns_count: usize) -> Error {
    let detail = format!(
        "written by an older version of Cheetah (epoch state format {OLD_VERSION}) with {txns_count} \
         transactions that have not ended; open the database with that version and close it once, then open it with this one"
    );
    Error::Unsupported { place: PLACE.into(), detail }
}

fn put_all(out: &mut Vec<u8>, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        varint::put(out, number);
    }
}

fn decode_listed(fields: &mut Reader<'_>) -> Parsed<ListedFile> {
    let (epoch, bytes, chain) = (Epoch(fields.varint()?), fields.varint()?, number_u32(fields)?);
    let mut file = ListedFile { epoch, bytes, chain, trees: Vec::new() };
    for _ in 0..count(fields)? {
        file.trees.push(TreeId(number_u32(fields)?));
    }
    Ok(file)
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
        let xid = Xid::new(1, b"global", b"branch");
        State {
            lsn: Lsn(1 << 40),
            next_txn: TxnId(12),
            next_commit: 11,
            next_table: TableId(3),
            next_tree: TreeId(20),
            catalog_root: PageId(1),
            undo_first_page: 5,
            undo_end: UndoPtr(6000),
            undo_pages: [9, 10].map(|page| UndoPage { page: PageId(page), live: page % 9 }).to_vec(),
            purge: PurgeState { at: UndoPtr(70), head: UndoPtr(60), undo_no: 4, freed_pages: 2 },
            txns: vec![TxnState {
                txn: TxnId(7),
                head: UndoPtr(5500),
                first: UndoPtr(5100),
                undo_no: 3,
                xid,
            }],
            tables: vec![TableState { table: TableId(2), row_count: 5, auto_increment: 6, hidden_key: 7 }],
            dropped_trees: vec![TreeId(17)],
            quarantined: vec![QuarantinedTable { table: TableId(2), reason: "page 7".into() }],
            dictionaries: vec![(TreeId(18), PageId(40)), (TreeId(18), PageId(90))],
            change_files: vec![ListedFile {
                epoch: Epoch(90),
                bytes: 1 << 33,
                chain: u32::MAX,
                trees: vec![TreeId(18)],
            }],
        }
    }

    #[test]
    fn a_state_reads_back() {
        assert_eq!(State::decode(&sample().encode()).unwrap(), sample());
        let folded = State { change_files: vec![], ..sample() };
        let plain = State { dictionaries: vec![], ..folded.clone() };
        let saved = State { dictionaries: vec![], ..sample() };
        for (state, version) in [(sample(), 4), (folded, 3), (plain, 2), (saved, 4)] {
            assert_eq!(State::decode(&state.encode()).unwrap(), state);
            assert_eq!(state.encode()[0], version);
        }
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
        assert!(matches!(State::decode(&newer), Err(Error::Unsupported { .. })));
    }

    /// A state in the layout of version 1, with `txns_count` transactions.
    fn old(txns_count: usize) -> Vec<u8> {
        let mut out = vec![OLD_VERSION];
        // The fields up to the end of the undo log, at 6000; two pages.
        put_all(&mut out, [1 << 40, 12, 11, 3, 20, 1, 5, 6000, 2, 9, 10]);
        varint::put(&mut out, txns_count as u64);
        (0..txns_count).for_each(|_| put_all(&mut out, [7, 1, 900, 8, 3, 2]));
        // One table, one dropped tree, nothing quarantined.
        put_all(&mut out, [1, 2, 5, 6, 7, 1, 17, 0]);
        out
    }

    #[test]
    fn a_state_of_version_1_without_transactions_is_read_with_nothing_to_purge() {
        let pages = [9, 10].map(|page| UndoPage { page: PageId(page), live: 0 }).to_vec();
        let purge = PurgeState { at: UndoPtr(6000), ..PurgeState::default() };
        let (txns, quarantined, dictionaries, change_files) = (vec![], vec![], vec![], vec![]);
        let expected =
            State { undo_pages: pages, purge, txns, quarantined, dictionaries, change_files, ..sample() };
        assert_eq!(State::decode(&old(0)).unwrap(), expected);
    }

    #[test]
    fn a_state_of_version_1_with_transactions_is_refused_with_what_to_do() {
        let error = State::decode(&old(2)).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("2 transactions") && text.contains("close it once"), "{text}");
    }
}

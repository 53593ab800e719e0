//! Finds the version of a row, and the entries of an index, that a snapshot sees. Only reads: takes
//! no lock and changes nothing.
//!
//! **Rows.** A clustered record names the operation that wrote it: a transaction, and the undo
//! record with the key's previous content. If the snapshot sees the transaction, the record is the
//! visible row, or a delete mark: the row does not exist. Otherwise the previous version is checked
//! in the same way, and so on. A key without a previous version had no record.
//!
//! **Entries.** An entry names the transaction that touched it last, but only its row's undo record
//! has its previous content. If that transaction is *decided*, that is, it is the reader's own or
//! had ended when the snapshot was opened, the snapshot sees the entry as it is: the rollback of an
//! aborted transaction restores an entry before the transaction gets its stamp. Otherwise the row
//! decides:
//!
//!   1. The clustered record is read, and its chain is followed to the version that the snapshot
//!      sees. If there is no such row, the entry is not visible.
//!   2. The oldest unseen operation that touched this index has the key and the payload of the
//!      visible row's entry: the entry is visible if it has that key. (Such an operation has an old
//!      key. Only an insert without a delete-marked record has none, and it is the oldest unseen
//!      operation only if no row is visible. Any other insert follows a delete of the row, which
//!      touches every index.)
//!   3. If no unseen operation touched this index, the entry is now as it was for the visible row:
//!      it is read again, and its delete mark decides. The same holds under a change of the
//!      reader's own transaction, which hides older changes in the row's chain and left the entry
//!      alone. If the entry has changed since it was copied, the check starts over.
//!
//! The two reads are made in this order because an operation touches the row first and then its
//! entries, and a rollback or a purge does the reverse. So an operation found in an entry before
//! the row was read is either in the row's chain, or was rolled back. A rollback removes its change
//! from the entry before the row, so the entry read afterwards does not show it. The check starts
//! over only if another transaction has made progress.
//!
//! Invariants
//!   I1  The snapshot was open before the record was copied, and stays open. So transactions that
//!       it does not see are neither purged nor forgotten (durability::H8), and their undo records
//!       exist, including those of rolled-back operations (durability::C6).
//!   I2  Pointers lead only to older records, so each walk ends. Every record must be about this
//!       transaction, table and key.
//!   I3  A row whose key changes is deleted at one key and inserted at another. Each key has its
//!       own chain, because an entry's key contains the clustered key.

use crate::base::{page_work, reach, sound, Error, Result, TxnId, UndoPtr};
use crate::format::log_record::RowOp;
use crate::format::page::{RecordCopy, RecordRef};
use crate::format::undo_record::{decode_body, Before, UndoBody, UndoRow, HEAD_BYTES};
use crate::table::definitions::handle::Table;
use crate::table::shared::parts::Core;
use crate::txn::{ReadView, Reader};

#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) core: &'a Core,
    pub(crate) table: &'a Table,
    /// Its snapshot is open (I1).
    pub(crate) reader: &'a Reader,
    /// Set if the reader has written.
    pub(crate) own: Option<TxnId>,
}

/// The version of a row that a snapshot sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// The record itself.
    AsIs,
    /// An older version, copied into the buffer.
    Older,
    /// No version.
    Absent,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EntryFound {
    /// Yes, as copied; its row has not been looked up.
    AsIs,
    /// Yes; its payload and its row were copied into the buffers.
    Visible,
    /// No.
    Gone,
}

/// An entry and its row, as a snapshot sees them.
#[derive(Default, Debug)]
pub(crate) struct EntryVersion {
    pub(crate) row: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

/// The state of an index entry, according to its row.
#[derive(Debug)]
enum Told {
    /// No row is visible.
    NoRow,
    /// No unseen transaction touched the index.
    Untouched,
    /// The key, without the clustered key, and the stored payload of the visible row's entry.
    Entry(Vec<u8>, Vec<u8>),
}

impl View<'_> {
    /// Finds the visible version; `record` is a copy of the newest. May do I/O.
    pub(crate) fn row_version(self, key: &[u8], record: RecordRef<'_>, out: &mut Vec<u8>) -> Result<Found> {
        self.walk(key, record, out, |_| ())
    }

    /// Finds out whether the entry at `key`, of which `record` is a copy, is visible. It belongs to
    /// the row of `clustered_key`. May do I/O.
    pub(crate) fn entry_version(
        self,
        index_no: usize,
        key: &[u8],
        clustered_key: &[u8],
        record: RecordRef<'_>,
        out: &mut EntryVersion,
    ) -> Result<EntryFound> {
        if !sound!(!self.is_decided(record.version), "visible: do not ask the row of an entry") {
            return Ok(if record.is_marked() { EntryFound::Gone } else { EntryFound::AsIs });
        }
        reach::mark("entry asks its row");
        let tree = self.table.tree(index_no)?;
        let mut entry = RecordCopy::default();
        entry.take(record);
        loop {
            match self.ask_row(index_no, clustered_key, &mut out.row)? {
                Told::NoRow => return Ok(EntryFound::Gone),
                Told::Untouched => {}
                Told::Entry(told, _) if key.strip_suffix(clustered_key) != Some(&told) => {
                    return Ok(EntryFound::Gone);
                }
                Told::Entry(_, payload) => {
                    out.payload = payload;
                    return Ok(EntryFound::Visible);
                }
            }
            let before = (entry.flags, entry.version);
            if tree.get(key, |record| entry.take(record))?.is_none() {
                return Ok(EntryFound::Gone);
            }
            if before == (entry.flags, entry.version) || self.is_decided(entry.version) {
                out.payload.clone_from(&entry.payload);
                return Ok(if entry.as_ref().is_marked() { EntryFound::Gone } else { EntryFound::Visible });
            }
            reach::mark("entry asks its row again");
        }
    }

    /// Copies the visible version of the row into `row`, and returns the state of its entry.
    fn ask_row(self, index_no: usize, key: &[u8], row: &mut Vec<u8>) -> Result<Told> {
        let mut newest = RecordCopy::default();
        if self.table.clustered().get(key, |record| newest.take(record))?.is_none() {
            return Ok(Told::NoRow);
        }
        let mut told = Told::Untouched;
        let number = self.table.number_of(index_no);
        let found = self.walk(key, newest.as_ref(), row, |operation| {
            let is_told = matches!(told, Told::Entry(..));
            if is_told && !sound!(true, "visible: ask the newest operation on an index") {
                return;
            }
            if let Some(entry) = operation.entries.iter().find(|entry| entry.index == number) {
                told = Told::Entry(entry.old_key.to_vec(), entry.old.payload.to_vec());
            }
        })?;
        match found {
            Found::Absent => return Ok(Told::NoRow),
            Found::AsIs => row.clone_from(&newest.payload),
            Found::Older => {}
        }
        Ok(told)
    }

    /// Follows the chain of `record`, the newest version of `key`, to the visible version. Passes
    /// the unseen operations to `unseen`, newest first.
    fn walk(
        self,
        key: &[u8],
        record: RecordRef<'_>,
        out: &mut Vec<u8>,
        mut unseen: impl FnMut(&UndoRow<'_>),
    ) -> Result<Found> {
        let Some(mut version) = self.unseen(record.version) else {
            let is_gone = sound!(record.is_marked(), "visible: do not look at delete marks");
            return Ok(if is_gone { Found::Absent } else { Found::AsIs });
        };
        let mut bytes = Vec::new();
        loop {
            let (txn, at) = version;
            if at == UndoPtr(0) {
                return Ok(Found::Absent);
            }
            reach::mark("older version looked for");
            page_work::count(|work| work.versions_read += 1);
            self.core.transactions.undo.read_version(at, txn, &mut bytes)?;
            let body = decode_body(bytes.get(HEAD_BYTES..).unwrap_or_default())?;
            let UndoBody::Row(row) = &body else { return Err(not_of(at, "it is not about a row")) };
            let (is_live, before) = match self.before(key, at, row)? {
                Some(before) => before,
                None => return Ok(Found::Absent),
            };
            unseen(row);
            let goes_on = sound!(true, "visible: go back one version only");
            match self.unseen(before.version).filter(|_| goes_on) {
                Some((_, older)) if older >= at => return Err(not_of(at, "it leads to a newer version")),
                Some(older) => version = older,
                None if !sound!(!is_live, "visible: take a deleted version for a row") => {
                    out.clear();
                    out.extend_from_slice(before.payload);
                    return Ok(Found::Older);
                }
                None => return Ok(Found::Absent),
            }
        }
    }

    /// The content of `key` before an operation, and whether it was live.
    fn before<'r>(self, key: &[u8], at: UndoPtr, row: &UndoRow<'r>) -> Result<Option<(bool, Before<'r>)>> {
        if row.table != self.table.id() {
            return Err(not_of(at, "it is about another table"));
        }
        if row.op != RowOp::Insert && row.old_key == key {
            return Ok(Some((true, row.old)));
        }
        if row.op != RowOp::Delete && row.new_key == key {
            return Ok(row.marked.map(|marked| (false, marked)));
        }
        Err(not_of(at, "it is about another row"))
    }

    /// `None` if the snapshot sees the version.
    fn unseen(self, version: Option<(TxnId, UndoPtr)>) -> Option<(TxnId, UndoPtr)> {
        version.filter(|(txn, _)| !self.reader.sees(*txn, self.own))
    }

    fn is_decided(self, version: Option<(TxnId, UndoPtr)>) -> bool {
        version.is_none_or(|(txn, _)| self.reader.is_decided(txn, self.own))
    }
}

/// Copies the row of `key` that `view` sees, or the newest one, into `row`. Returns whether there
/// is one. May do I/O.
pub(crate) fn read_row(
    core: &Core,
    table: &Table,
    key: &[u8],
    view: Option<&ReadView>,
    row: &mut Vec<u8>,
) -> Result<bool> {
    row.clear();
    let copied = |record: RecordRef<'_>| {
        row.extend_from_slice(record.payload);
        (record.flags, record.version)
    };
    let Some((flags, version)) = table.clustered().get(key, copied)? else { return Ok(false) };
    let newest = RecordRef { flags, version, payload: &[] };
    let Some(view) = view else { return Ok(!newest.is_marked()) };
    let view = View { core, table, reader: view.reader(), own: view.own_of(table.id()) };
    Ok(view.row_version(key, newest, row)? != Found::Absent)
}

fn not_of(at: UndoPtr, detail: &str) -> Error {
    Error::corrupt(format!("undo record at {at}"), format!("a version of a row leads to it, but {detail}"))
}

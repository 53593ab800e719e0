//! Definitions of tables in the catalog tree. Each is stored in pieces, because it may be longer
//! than a record. A key is the ID of the table and the number of the piece.

use crate::base::{sound, Error, Result, TableId, TreeId};
use crate::format::catalog::{parse_piece_key, piece_key, TableDef};
use crate::format::page::{max_payload_bytes, RecordRef};
use crate::format::state::State;
use crate::leaves::Leaves;
use crate::pool::{MiniTransaction, PageClass};
use crate::tree::{Changed, Path, Removed, SeekMode, Tree, TreeDef};
use std::collections::BTreeMap;
use std::sync::Arc;

const KEY_BYTES: usize = 6;

pub(super) fn create_tree(leaves: &Leaves, mtr: &MiniTransaction<'_>) -> Result<Arc<Tree>> {
    Tree::create(leaves, mtr, TreeId::CATALOG, PageClass::Base, KEY_BYTES).map(Arc::new)
}

pub(super) fn open_tree(leaves: &Leaves, state: &State) -> Result<Arc<Tree>> {
    let (id, root) = (TreeId::CATALOG, state.catalog_root);
    let def = TreeDef { id, root, class: PageClass::Base, key_bytes_max: KEY_BYTES };
    Tree::open(leaves, def).map(Arc::new)
}

/// Writes a new definition, but none of a temporary table (I7). Returns `Limit` if it is too long.
pub(super) fn put_definition(
    tree: &Tree,
    mtr: &MiniTransaction<'_>,
    path: &mut Path,
    def: &TableDef,
) -> Result<()> {
    if sound!(def.id.is_temporary(), "temporary: write their definitions") {
        return Ok(());
    }
    let mut bytes = Vec::new();
    def.encode(&mut bytes);
    let piece_bytes = max_payload_bytes(tree.page_bytes(), KEY_BYTES);
    for (piece_no, piece) in bytes.chunks(piece_bytes).enumerate() {
        let limit = (piece_bytes * (usize::from(u16::MAX) + 1)) as u64;
        let too_long = Error::Limit { what: "table definition (bytes)", actual: bytes.len() as u64, limit };
        let key = piece_key(def.id, u16::try_from(piece_no).map_err(|_| too_long)?);
        if tree.insert(mtr, path, &key, RecordRef::frozen(piece))? != Changed::Done {
            let detail = format!("piece {piece_no} of the definition of table {} already exists", def.id);
            return Err(Error::corrupt("catalog", detail));
        }
    }
    Ok(())
}

/// Does nothing if the definition does not exist.
pub(super) fn remove_definition(
    tree: &Tree,
    mtr: &MiniTransaction<'_>,
    path: &mut Path,
    table: TableId,
) -> Result<()> {
    if table.is_temporary() {
        return Ok(());
    }
    for piece_no in 0..=u16::MAX {
        if tree.remove(mtr, path, &piece_key(table, piece_no))? == Removed::Absent {
            break;
        }
    }
    Ok(())
}

/// The definitions in a damaged catalog of which all pieces can be read.
pub(super) fn readable_definitions(tree: &Arc<Tree>, note: &mut dyn FnMut(String)) -> Result<Vec<TableDef>> {
    let mut pieces: BTreeMap<TableId, BTreeMap<u16, Vec<u8>>> = BTreeMap::new();
    let gaps = tree.readable_leaves(&mut |leaf| {
        for slot in 0..leaf.count() {
            let (table, piece_no) = parse_piece_key(&leaf.key(slot))?;
            pieces.entry(table).or_default().insert(piece_no, leaf.record(slot).payload.to_vec());
        }
        Ok(())
    })?;
    for gap in gaps {
        note(format!("part of the catalog is lost, with the tables described there: {}", gap.why));
    }
    let mut definitions = Vec::new();
    for (table, pieces) in pieces {
        let follows = pieces.keys().copied().eq(0..pieces.len() as u16);
        let decoded = TableDef::decode(&pieces.into_values().collect::<Vec<_>>().concat());
        match decoded {
            Ok(def) if follows && def.id == table => definitions.push(def),
            Err(error @ Error::Unsupported { .. }) => return Err(error),
            _ => note(format!("the definition of table {table} is lost, and its rows with it")),
        }
    }
    Ok(definitions)
}

/// Returns `Corruption` if a piece is missing.
pub(super) fn read_definitions(tree: &Arc<Tree>) -> Result<Vec<TableDef>> {
    let mut definitions = Vec::new();
    let mut current: Option<(TableId, u16, Vec<u8>)> = None;
    let mut cursor = tree.cursor();
    let mut found = cursor.seek(SeekMode::First, b"")?;
    while found {
        let (table, piece_no) = parse_piece_key(cursor.key())?;
        let piece = cursor.record().map_or(&[][..], |record| record.payload);
        match &mut current {
            Some((id, last, bytes)) if *id == table && *last + 1 == piece_no => {
                *last = piece_no;
                bytes.extend_from_slice(piece);
            }
            _ if piece_no == 0 => {
                if let Some((_, _, bytes)) = current.replace((table, 0, piece.to_vec())) {
                    definitions.push(TableDef::decode(&bytes)?);
                }
            }
            _ => {
                return Err(Error::corrupt(
                    "catalog",
                    format!("the definition of table {table} lacks a piece before {piece_no}"),
                ))
            }
        }
        found = cursor.next()?;
    }
    if let Some((_, _, bytes)) = current {
        definitions.push(TableDef::decode(&bytes)?);
    }
    Ok(definitions)
}

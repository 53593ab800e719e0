//! Records that wait in memory for the page they belong to: encoded one behind the other, and put
//! into the page at once.

use super::layout::{RecordFlags, RecordRef};
use super::view::PageView;
use super::write::PageMut;
use crate::base::{TxnId, UndoPtr};
use crate::format::bytes::{ensure, put_prefixed, u48_bytes, Defect, Reader};

const HAS_VERSION: u8 = 2;
const KEY_BYTES_MAX: usize = super::PAGE_BYTES_MAX;

/// Appends a record to `bytes`, to be put after those that are there.
pub fn encode_buffered(bytes: &mut Vec<u8>, key: &[u8], record: &RecordRef<'_>) {
    put_prefixed(bytes, key);
    let version = if record.version.is_some() { HAS_VERSION } else { 0 };
    bytes.push(record.flags.bits() | version);
    if let Some((txn, undo)) = record.version {
        bytes.extend_from_slice(&u48_bytes(txn.0));
        bytes.extend_from_slice(&u48_bytes(undo.0));
    }
    put_prefixed(bytes, record.payload);
}

/// Puts all encoded records into the leaf `page`, in their order, each in place of what is there
/// under its key. Returns how many live records they have replaced. Fails when they do not fit;
/// then some are there.
pub fn put_buffered(bytes: &[u8], page: &mut [u8]) -> Result<usize, Defect> {
    let (mut reader, mut replaced) = (Reader::new(bytes), 0);
    while !reader.is_empty() {
        let key = reader.prefixed(KEY_BYTES_MAX)?;
        let bits = reader.u8()?;
        let flags = RecordFlags::from_bits(bits & !HAS_VERSION);
        let flags = flags.ok_or(Defect::new("unknown flags of a buffered record"))?;
        let version = match bits & HAS_VERSION {
            0 => None,
            _ => Some((TxnId(reader.u48()?), UndoPtr(reader.u48()?))),
        };
        let payload = reader.prefixed(KEY_BYTES_MAX)?;
        let record = RecordRef { flags, version, payload };
        ensure(PageView::new(page).covers(key), "a buffered record of another page")?;
        let found = PageView::new(page).search(key);
        let done = match found {
            Ok(slot) => {
                replaced += usize::from(!PageView::new(page).record(slot).is_marked());
                PageMut::new(page).replace(slot, &record)
            }
            Err(slot) => PageMut::new(page).insert(slot, key, &record),
        };
        done.map_err(|_| Defect::new("no room for buffered records"))?;
    }
    Ok(replaced)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{PageId, TreeId};
    use crate::format::page::{build_page, cell_bytes, PageBuf, PageKind};
    use cheetah_io::Rng;
    use std::collections::BTreeMap;

    #[test]
    fn a_page_has_what_was_put_last_under_each_key() {
        let mut rng = Rng::new(5);
        for _ in 0..200 {
            let mut page = PageBuf::new(4096);
            build_page(&mut page, PageKind::Leaf, 0, TreeId(16), b"", None, PageId::NONE);
            let (mut records, mut model, mut cells_bytes) = (Vec::new(), BTreeMap::new(), 0);
            while cells_bytes < PageView::new(&page).free_bytes() - 200 {
                let lengths = (1 + rng.below(3) as usize, rng.below(40) as usize);
                let (key, payload) = (rng.bytes(lengths.0), rng.bytes(lengths.1));
                let version = rng.chance(0.5).then(|| (TxnId(rng.below(1000)), UndoPtr(0)));
                let record = RecordRef { flags: RecordFlags::NONE, version, payload: &payload };
                encode_buffered(&mut records, &key, &record);
                cells_bytes += cell_bytes(key.len(), &record);
                model.insert(key, (version, payload.clone()));
            }
            put_buffered(&records, &mut page).unwrap();
            let view = PageView::new(&page);
            let found = (0..view.count()).map(|slot| {
                let mut key = Vec::new();
                view.key_into(slot, &mut key);
                let record = view.record(slot);
                (key, (record.version, record.payload.to_vec()))
            });
            assert_eq!(found.collect::<BTreeMap<_, _>>(), model);
        }
    }
}

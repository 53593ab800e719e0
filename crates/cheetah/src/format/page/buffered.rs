//! Pending changes of a leaf. They are encoded one after another, and applied together. Change
//! files contain the same encoding, so a new encoding needs a new version of change files.

use super::layout::{RecordFlags, RecordRef};
use super::view::PageView;
use super::write::PageMut;
use crate::base::{sound, TxnId, UndoPtr};
use crate::format::bytes::{ensure, put_prefixed, u48_bytes, Defect, Reader};

const HAS_VERSION: u8 = 2;
const IS_NEW: u8 = 4;
const IS_REMOVAL: u8 = 8;
const IS_MARK: u8 = 16;
const KEY_BYTES_MAX: usize = super::PAGE_BYTES_MAX;

/// The change of one key of a leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BufferedChange<'a> {
    /// Adds the record. The key is expected to have no live record.
    New(RecordRef<'a>),
    /// Adds the record, or replaces the record that the key has.
    Put(RecordRef<'a>),
    /// Replaces the live record with this delete-marked record, but keeps the live record's
    /// payload. If the key has no live record, adds nothing: the caller did not check.
    Mark(RecordRef<'a>),
    /// Removes the record.
    Remove,
}

impl<'a> BufferedChange<'a> {
    /// The record in the change.
    pub fn record(&self) -> Option<RecordRef<'a>> {
        match self {
            Self::New(record) | Self::Put(record) | Self::Mark(record) => Some(*record),
            Self::Remove => None,
        }
    }
}

/// The effect of changes on a leaf.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Applied {
    /// The number of live records that [`BufferedChange::New`] replaced.
    pub live_replaced: usize,
    /// The number of changes that were to mark a live record, but found none.
    pub missing: usize,
    /// The number of records that were removed.
    pub removed: usize,
}

/// Appends a change to `bytes`. It will be applied after the earlier changes.
pub fn encode_buffered(bytes: &mut Vec<u8>, key: &[u8], change: &BufferedChange<'_>) {
    put_prefixed(bytes, key);
    let Some(record) = change.record() else { return bytes.push(IS_REMOVAL) };
    let kind = match change {
        BufferedChange::New(_) => IS_NEW,
        BufferedChange::Mark(_) => IS_MARK,
        BufferedChange::Put(_) | BufferedChange::Remove => 0,
    };
    let version = if record.version.is_some() { HAS_VERSION } else { 0 };
    bytes.push(record.flags.bits() | version | kind);
    if let Some((txn, undo)) = record.version {
        bytes.extend_from_slice(&u48_bytes(txn.0));
        bytes.extend_from_slice(&u48_bytes(undo.0));
    }
    put_prefixed(bytes, record.payload);
}

fn decode_next<'a>(reader: &mut Reader<'a>) -> Result<(&'a [u8], BufferedChange<'a>), Defect> {
    let key = reader.prefixed(KEY_BYTES_MAX)?;
    let bits = reader.u8()?;
    if bits == IS_REMOVAL {
        return Ok((key, BufferedChange::Remove));
    }
    let own = match sound!(true, "buffering: take a change's own bits for the record's") {
        true => HAS_VERSION | IS_NEW | IS_MARK,
        false => HAS_VERSION,
    };
    let flags = RecordFlags::from_bits(bits & !own);
    let flags = flags.ok_or(Defect::new("unknown flags of a buffered change"))?;
    let version = match bits & HAS_VERSION {
        0 => None,
        _ => Some((TxnId(reader.u48()?), UndoPtr(reader.u48()?))),
    };
    let record = RecordRef { flags, version, payload: reader.prefixed(KEY_BYTES_MAX)? };
    let change = match bits & (IS_NEW | IS_MARK) {
        0 => BufferedChange::Put(record),
        IS_NEW => BufferedChange::New(record),
        _ => BufferedChange::Mark(record),
    };
    Ok((key, change))
}

/// Returns the last encoded change of `key`.
pub fn find_buffered<'a>(bytes: &'a [u8], key: &[u8]) -> Result<Option<BufferedChange<'a>>, Defect> {
    let (mut reader, mut found) = (Reader::new(bytes), None);
    while !reader.is_empty() {
        let (of, change) = decode_next(&mut reader)?;
        if of == key && (found.is_none() || sound!(true, "buffering: find the first change of a key")) {
            found = Some(change);
        }
    }
    Ok(found)
}

/// Iterates over the keys of the encoded changes, in order. A defect ends the iteration.
pub fn buffered_keys(bytes: &[u8]) -> impl Iterator<Item = Result<&[u8], Defect>> {
    let mut reader = Reader::new(bytes);
    std::iter::from_fn(move || {
        let next = (!reader.is_empty()).then(|| decode_next(&mut reader))?;
        if next.is_err() {
            reader = Reader::new(b"");
        }
        Some(next.map(|(key, _)| key))
    })
}

/// Applies all encoded changes to the leaf `page`, in order. If they do not all fit, it fails after
/// applying some of them.
pub fn apply_buffered(bytes: &[u8], page: &mut [u8]) -> Result<Applied, Defect> {
    let (mut reader, mut applied) = (Reader::new(bytes), Applied::default());
    while !reader.is_empty() {
        let (key, change) = decode_next(&mut reader)?;
        ensure(PageView::new(page).covers(key), "a buffered change of another page")?;
        let found = PageView::new(page).search(key);
        let is_live = found.is_ok_and(|slot| !PageView::new(page).record(slot).is_marked());
        let done = match (found, change) {
            (_, BufferedChange::Mark(_)) if !is_live => {
                applied.missing += 1;
                Ok(())
            }
            (Ok(slot), BufferedChange::Mark(record)) => {
                let payload = PageView::new(page).record(slot).payload.to_vec();
                PageMut::new(page).replace(slot, &RecordRef { payload: &payload, ..record })
            }
            (Ok(_), BufferedChange::New(_))
                if !is_live && !sound!(true, "buffering: leave a mark where an entry comes") =>
            {
                Ok(())
            }
            (Ok(slot), BufferedChange::New(record) | BufferedChange::Put(record)) => {
                let is_new = matches!(change, BufferedChange::New(_));
                applied.live_replaced += usize::from(is_live && is_new);
                PageMut::new(page).replace(slot, &record)
            }
            (Err(slot), BufferedChange::New(record) | BufferedChange::Put(record)) => {
                PageMut::new(page).insert(slot, key, &record)
            }
            (Ok(slot), BufferedChange::Remove) if sound!(true, "buffering: forget a removal") => {
                PageMut::new(page).remove(slot);
                applied.removed += 1;
                Ok(())
            }
            (Ok(_) | Err(_), _) => Ok(()),
        };
        done.map_err(|_| Defect::new("no room for buffered changes"))?;
    }
    Ok(applied)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{PageId, TreeId};
    use crate::format::page::{build_page, cell_bytes, PageBuf, PageKind};
    use cheetah_io::Rng;
    use std::collections::BTreeMap;

    type Record = (RecordFlags, Option<(TxnId, UndoPtr)>, Vec<u8>);

    fn draw(rng: &mut Rng) -> Record {
        let flags = if rng.chance(0.3) { RecordFlags::DELETE_MARKED } else { RecordFlags::NONE };
        let version = rng.chance(0.5).then(|| (TxnId(rng.below(1000)), UndoPtr(rng.below(9))));
        let length = rng.below(40) as usize;
        (flags, version, rng.bytes(length))
    }

    fn reference(record: &Record) -> RecordRef<'_> {
        RecordRef { flags: record.0, version: record.1, payload: &record.2 }
    }

    /// A page has, and a search finds, the last change of each key. Changes that were counted at
    /// their largest size fit.
    #[test]
    fn a_page_has_what_was_said_last_of_each_key() {
        let mut rng = Rng::new(5);
        let mut kinds = [0; 4];
        for _ in 0..200 {
            let mut page = PageBuf::new(4096);
            build_page(&mut page, PageKind::Leaf, 0, TreeId(16), b"", None, PageId::NONE);
            let (mut changes, mut model, mut counted) = (Vec::new(), BTreeMap::<Vec<u8>, Record>::new(), 0);
            let free_bytes = PageView::new(&page).free_bytes();
            loop {
                let length = 1 + rng.below(2) as usize;
                let key = rng.bytes(length).iter().map(|byte| byte % 16).collect::<Vec<_>>();
                let (there, mut record) = (model.get(&key), draw(&mut rng));
                let is_live = there.is_some_and(|there| there.0 == RecordFlags::NONE);
                let kind = match rng.below(4) {
                    0 => 3,
                    1 if is_live => 2,
                    _ => usize::from(is_live),
                };
                if let (2, Some(there)) = (kind, there) {
                    (record.0, record.2) = (RecordFlags::DELETE_MARKED, there.2.clone());
                }
                let before = there.map_or(0, |there| cell_bytes(key.len(), &reference(there)));
                let change = [
                    BufferedChange::New(reference(&record)),
                    BufferedChange::Put(reference(&record)),
                    BufferedChange::Mark(reference(&record)),
                    BufferedChange::Remove,
                ][kind];
                let after = change.record().map_or(0, |record| cell_bytes(key.len(), &record));
                counted += after.saturating_sub(before);
                if counted > free_bytes {
                    break;
                }
                encode_buffered(&mut changes, &key, &change);
                let found = find_buffered(&changes, &key).unwrap();
                assert_eq!(found, Some(change));
                kinds[kind] += 1;
                match kind {
                    3 => model.remove(&key),
                    _ => model.insert(key, record),
                };
            }
            let applied = apply_buffered(&changes, &mut page).unwrap();
            assert_eq!((applied.live_replaced, applied.missing), (0, 0));
            let view = PageView::new(&page);
            let found = (0..view.count()).map(|slot| {
                let mut key = Vec::new();
                view.key_into(slot, &mut key);
                let record = view.record(slot);
                (key, (record.flags, record.version, record.payload.to_vec()))
            });
            assert_eq!(found.collect::<BTreeMap<_, _>>(), model);
            assert_eq!(find_buffered(&changes, b"\xff").unwrap(), None);
        }
        assert!(kinds.iter().all(|&count| count > 500), "{kinds:?}");
    }

    /// A change's own bits never become flags of its record: each byte of flags is refused, or is
    /// written again as the same byte.
    #[test]
    fn every_byte_of_flags_is_refused_or_means_one_thing() {
        let mut known = 0;
        for bits in 0..=u8::MAX {
            let mut bytes = Vec::new();
            put_prefixed(&mut bytes, b"key");
            bytes.push(bits);
            if bits != IS_REMOVAL {
                let version_bytes = if bits & HAS_VERSION == 0 { 0 } else { 12 };
                bytes.extend_from_slice(&[0; 12][..version_bytes]);
                put_prefixed(&mut bytes, b"row");
            }
            let Ok(Some(change)) = find_buffered(&bytes, b"key") else { continue };
            let flags = change.record().map_or(RecordFlags::NONE, |record| record.flags);
            assert!([RecordFlags::NONE, RecordFlags::DELETE_MARKED].contains(&flags), "{bits}");
            let mut again = Vec::new();
            encode_buffered(&mut again, b"key", &change);
            let is_both = bits & IS_NEW != 0 && bits & IS_MARK != 0;
            assert!(again == bytes || is_both, "{bits}");
            known += 1;
        }
        assert_eq!(known, 17);
    }

    #[test]
    fn a_live_record_in_the_way_of_a_new_one_is_told() {
        let mut page = PageBuf::new(4096);
        build_page(&mut page, PageKind::Leaf, 0, TreeId(16), b"", None, PageId::NONE);
        let mut changes = Vec::new();
        let new = BufferedChange::New(RecordRef::frozen(b"row"));
        [new, new].iter().for_each(|change| encode_buffered(&mut changes, b"key", change));
        assert_eq!(apply_buffered(&changes, &mut page).unwrap().live_replaced, 1);
    }

    #[test]
    fn a_mark_keeps_what_is_there_and_makes_nothing_of_nothing() {
        let mut page = PageBuf::new(4096);
        build_page(&mut page, PageKind::Leaf, 0, TreeId(16), b"", None, PageId::NONE);
        let (row, other) = (RecordRef::frozen(b"row"), RecordRef::frozen(b"another"));
        let mark = BufferedChange::Mark(RecordRef { flags: RecordFlags::DELETE_MARKED, ..other });
        let mut changes = Vec::new();
        encode_buffered(&mut changes, b"here", &BufferedChange::New(row));
        [b"here", b"here", b"gone"].iter().for_each(|key| encode_buffered(&mut changes, *key, &mark));
        assert_eq!(apply_buffered(&changes, &mut page).unwrap().missing, 2);
        let view = PageView::new(&page);
        assert_eq!(
            (view.count(), view.record(0).payload, view.record(0).is_marked()),
            (1, &b"row"[..], true)
        );
    }
}

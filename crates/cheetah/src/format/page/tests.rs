//! Compares pages with a `BTreeMap`. Splits and merges pages with keys and records of every size up
//! to the limits.

use super::*;
use crate::base::{PageId, TreeId, TxnId, UndoPtr};
use cheetah_io::rng::Rng;
use std::collections::BTreeMap;

/// A record that owns its payload.
#[derive(Clone, PartialEq, Debug)]
struct Owned {
    flags: RecordFlags,
    version: Option<(TxnId, UndoPtr)>,
    payload: Vec<u8>,
}

impl Owned {
    fn random(rng: &mut Rng, payload_max: usize) -> Self {
        let flags = if rng.chance(0.2) { RecordFlags::DELETE_MARKED } else { RecordFlags::NONE };
        let version = rng.chance(0.3).then(|| (TxnId(rng.below(1 << 48)), UndoPtr(rng.below(1 << 48))));
        Self { flags, version, payload: bytes(rng, payload_max) }
    }

    fn as_ref(&self) -> RecordRef<'_> {
        RecordRef { flags: self.flags, version: self.version, payload: &self.payload }
    }
}

type Model = BTreeMap<Vec<u8>, Owned>;

fn bytes(rng: &mut Rng, max: usize) -> Vec<u8> {
    let length = rng.below(max as u64 + 1);
    (0..length).map(|_| rng.next_u64() as u8).collect()
}

/// Up to `max` bytes of only a few letters, so that keys share prefixes.
fn key(rng: &mut Rng, max: usize) -> Vec<u8> {
    let length = if rng.chance(0.3) { max as u64 } else { rng.below(max as u64 + 1) };
    (0..length).map(|_| b"\0ab\xff"[rng.below(4) as usize]).collect()
}

#[track_caller]
fn check(page: &[u8], model: &Model) {
    let view = PageView::new(page);
    assert_eq!(view.verify(), Ok(()));
    assert_eq!(view.count(), model.len());
    for (i, (key, record)) in model.iter().enumerate() {
        assert_eq!(&view.key(i), key);
        assert_eq!(view.record(i), record.as_ref());
        assert_eq!(view.search(key), Ok(i));
    }
}

type FullPage = (PageBuf, Model, (Vec<u8>, Owned));

/// Returns a page of `size` bytes, filled until the next random record does not fit, and this
/// record. `None` when the fences allow too few keys to fill the page.
fn full_page(rng: &mut Rng, size: usize, key_max: usize, fences: bool) -> Option<FullPage> {
    let mut page = PageBuf::new(size);
    let mut ends = [key(rng, key_max), key(rng, key_max)];
    ends.sort();
    let [low, high] = ends;
    let (low, high) = if fences && low < high { (low, Some(high)) } else { (Vec::new(), None) };
    let mut target = build_page(&mut page, PageKind::Leaf, 0, TreeId(7), &low, high.as_deref(), PageId(3));
    let mut model = Model::new();
    let max = max_payload_bytes(size, key_max);
    let max = if rng.chance(0.5) { max } else { max.min(20) };
    let (mut run, descending) = (if rng.chance(0.3) { low.clone() } else { Vec::new() }, rng.chance(0.5));
    for _ in 0..4000 {
        let mut new = key(rng, key_max);
        if !run.is_empty() || rng.chance(0.1) {
            run.resize(key_max.min(low.len() + 4), 0);
            let step = if descending { u32::MAX - model.len() as u32 } else { model.len() as u32 };
            let tail = run.len().saturating_sub(4);
            let width = run.len() - tail;
            run[tail..].copy_from_slice(&step.to_be_bytes()[4 - width..]);
            new.clone_from(&run);
        }
        // Random keys are rarely between narrow fences: extend the lower fence.
        if !target.view().covers(&new) {
            new = [&low[..], &bytes(rng, 4)].concat();
            new.truncate(key_max.max(low.len()));
        }
        let record = Owned::random(rng, max);
        if !target.view().covers(&new) {
            continue;
        }
        match target.view().search(&new) {
            Ok(i) if target.replace(i, &record.as_ref()).is_ok() => {}
            Err(i) if target.insert(i, &new, &record.as_ref()).is_ok() => {}
            _ => return Some((page, model, (new, record))),
        }
        model.insert(new, record);
    }
    None
}

#[test]
fn pages_behave_like_a_map() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let size = 512 << rng.below(7);
        let mut page = PageBuf::new(size);
        let high = rng.chance(0.5).then_some(&b"ab\xff"[..]);
        let low: &[u8] = if high.is_some() { b"ab" } else { b"" };
        build_page(&mut page, PageKind::Leaf, 0, TreeId(7), low, high, PageId::NONE);
        let mut model = Model::new();
        for _ in 0..600 {
            let mut target = PageMut::new(&mut page);
            let key = [low, &key(&mut rng, 6)].concat();
            if !target.view().covers(&key) {
                continue;
            }
            let record = Owned::random(&mut rng, size / 16);
            match target.view().search(&key) {
                Ok(i) if rng.chance(0.5) => {
                    target.remove(i);
                    model.remove(&key);
                }
                Ok(i) => {
                    let fits = target.view().fits_replacement(i, &record.as_ref());
                    assert_eq!(target.replace(i, &record.as_ref()).is_ok(), fits);
                    if fits {
                        model.insert(key, record);
                    }
                }
                Err(i) => {
                    let fits = target.view().fits(key.len(), &record.as_ref());
                    assert_eq!(target.insert(i, &key, &record.as_ref()).is_ok(), fits);
                    if fits {
                        model.insert(key, record);
                    }
                }
            }
            if rng.chance(0.05) {
                let free = target.view().free_bytes();
                target.compact();
                assert_eq!(target.view().free_bytes(), free);
            }
            check(&page, &model);
        }
    }
}

#[test]
fn a_record_within_the_limit_fits_after_one_split() {
    let mut splits = 0;
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let size = 512 << rng.below(7);
        let key_max = [8, 40, max_key_bytes(size)][rng.below(3) as usize].min(max_key_bytes(size));
        let fences = rng.chance(0.7);
        let Some((page, mut model, (key, record))) = full_page(&mut rng, size, key_max, fences) else {
            continue;
        };
        splits += 1;
        check(&page, &model);
        let view = PageView::new(&page);
        let (index, replaces) = match view.search(&key) {
            Ok(i) => (i, true),
            Err(i) => (i, false),
        };
        let pending = Pending { index, key: &key, record: record.as_ref(), replaces };
        let plan = plan_split(view, &pending).unwrap_or_else(|| panic!("seed {seed}: no split"));
        let (mut left, mut right) = (PageBuf::new(size), PageBuf::new(size));
        split_into(view, &plan, PageId(9), &mut left, &mut right);
        assert_eq!(PageView::new(&left).right(), PageId(9));
        assert_eq!(PageView::new(&right).right(), PageId(3));
        let mut target = PageMut::new(if plan.pending_side == Side::Left { &mut left } else { &mut right });
        assert_eq!(target.view().search(&key).is_ok(), replaces);
        let i = plan.pending_index;
        let done = if replaces {
            target.replace(i, &record.as_ref())
        } else {
            target.insert(i, &key, &record.as_ref())
        };
        assert_eq!(done, Ok(()), "seed {seed}");
        model.insert(key, record);
        let right_model = model.split_off(&plan.separator);
        check(&left, &model);
        check(&right, &right_model);
    }
    assert!(splits > 300, "{splits}");
}

#[test]
fn limits_leave_room_for_payload_and_wide_keys() {
    for (size, key, payload) in [(512, 60, 79), (1024, 184, 87), (16384, 3904, 327), (32768, 7872, 583)] {
        assert_eq!(max_key_bytes(size), key);
        assert_eq!(max_payload_bytes(size, key), payload);
    }
    assert_eq!(max_payload_bytes(16384, 8), 8119);
    assert_eq!(max_payload_bytes(16384, 2048), 4039);
}

#[test]
fn ascending_inserts_leave_full_pages_behind() {
    let mut page = PageBuf::new(1024);
    build_page(&mut page, PageKind::Leaf, 0, TreeId(7), b"a", Some(b"c"), PageId::NONE);
    let record = RecordRef::frozen(b"payload");
    let mut target = PageMut::new(&mut page);
    target.push(b"bz", &record).unwrap();
    for i in 0u32.. {
        let key = [b"b", &i.to_be_bytes()[..]].concat();
        let index = target.view().search(&key).unwrap_err();
        if target.insert(index, &key, &record).is_err() {
            let plan = plan_split(target.view(), &Pending { index, key: &key, record, replaces: false });
            let plan = plan.unwrap();
            assert_eq!(plan.left_count, target.view().count() - 1);
            assert_eq!((plan.pending_side, plan.pending_index), (Side::Right, 0));
            break;
        }
    }
}

#[test]
fn neighbours_merge_when_they_fit_together() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let size = 512 << rng.below(7);
        let Some(full) = full_page(&mut rng, size, max_key_bytes(size), true) else { continue };
        let (page, mut model, (key, record)) = full;
        let view = PageView::new(&page);
        let Err(index) = view.search(&key) else { continue };
        let pending = Pending { index, key: &key, record: record.as_ref(), replaces: false };
        let plan = plan_split(view, &pending).unwrap();
        let (mut left, mut right, mut merged) = (PageBuf::new(size), PageBuf::new(size), PageBuf::new(size));
        split_into(view, &plan, PageId(9), &mut left, &mut right);
        let mut target = PageMut::new(if plan.pending_side == Side::Left { &mut left } else { &mut right });
        target.insert(plan.pending_index, &key, &record.as_ref()).unwrap();
        model.insert(key, record);
        let (left, right) = (PageView::new(&left), PageView::new(&right));
        assert!(merged_bytes(left, right) > size, "the records did not fit before the split");
        assert_eq!(merge_into(left, right, &mut merged), Err(NoRoom));
        let mut larger = PageBuf::new(TREE_PAGE_BYTES_MAX);
        if merge_into(left, right, &mut larger).is_ok() {
            check(&larger, &model);
            assert_eq!(PageView::new(&larger).used_bytes(), merged_bytes(left, right));
            assert_eq!(PageView::new(&larger).right(), PageId(3));
        }
    }
}

#[test]
fn inner_pages_lead_to_the_child_of_each_key() {
    let mut page = PageBuf::new(1024);
    let mut inner = build_page(&mut page, PageKind::Inner, 2, TreeId(7), b"f", Some(b"p"), PageId(5));
    for (i, key) in [b"f".as_slice(), b"ga", b"h", b"ha", b"o"].into_iter().enumerate() {
        inner.insert_child(i, key, PageId(100 + i as u64)).unwrap();
    }
    inner.set_child(3, PageId::MAX);
    assert_eq!(inner.view().verify(), Ok(()));
    for (key, child) in [("f", 100), ("g", 100), ("ga", 101), ("gz", 101), ("h", 102), ("oo", 104)] {
        let slot = inner.view().find_child(key.as_bytes());
        assert_eq!(inner.view().child(slot), PageId(child), "{key}");
    }
    assert_eq!(inner.view().child(3), PageId::MAX);
    inner.remove(0);
    assert!(inner.view().verify().is_err(), "the first key must be the lower fence");
}

#[test]
fn separators_are_as_short_as_can_be() {
    for (left, right, separator) in
        [("abc", "abd", "abd"), ("a", "abc", "ab"), ("abc", "b", "b"), ("abc", "bcd", "b"), ("", "zz", "z")]
    {
        assert_eq!(separator_between(left.as_bytes(), right.as_bytes()), separator.as_bytes());
    }
}

#[test]
fn content_pages_hold_what_is_appended() {
    let mut page = PageBuf::new(65536);
    let mut blob = build_content(&mut page, PageKind::Blob, TreeId(7), PageId(4), 1 << 33);
    blob.append_content(b"abc").unwrap();
    blob.append_content(&vec![1; content_capacity(65536) - 3]).unwrap();
    assert_eq!(blob.append_content(b"x"), Err(NoRoom));
    assert_eq!(blob.view().verify(), Ok(()));
    assert_eq!(blob.view().content().len(), content_capacity(65536));
    blob.truncate_content(3);
    assert_eq!(blob.view().content(), b"abc");
    assert_eq!((blob.view().content_position(), blob.view().right()), (1 << 33, PageId(4)));
}

/// `verify` returns for any bytes of a page, and a page that it accepts can be read and changed
/// without a panic.
#[test]
fn pages_with_mutated_bytes_are_refused_or_usable() {
    let mut accepted = 0;
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let Some((page, ..)) = full_page(&mut rng, 512, 20, true) else { continue };
        for _ in 0..200 {
            let mut page = page.clone();
            for _ in 0..=rng.below(2) {
                let at = if rng.chance(0.7) { rng.below(100) } else { rng.below(512) } as usize;
                page[at] =
                    if rng.chance(0.5) { rng.next_u64() as u8 } else { page[at] ^ (1 << rng.below(8)) };
            }
            if PageView::new(&page).verify().is_err() || !PageView::new(&page).kind().is_tree() {
                continue;
            }
            accepted += 1;
            let mut target = PageMut::new(&mut page);
            for i in (0..target.view().count()).rev() {
                let key = target.view().key(i);
                assert_eq!(target.view().search(&key), Ok(i));
                if rng.chance(0.5) {
                    target.remove(i);
                }
            }
            target.compact();
        }
    }
    assert!(accepted > 1000, "{accepted}: some mutations must be harmless");
}

#[test]
fn freezing_takes_off_old_versions_and_makes_room() {
    let mut page = vec![0; 1024];
    let mut target = build_page(&mut page, PageKind::Leaf, 0, TreeId(7), b"", None, PageId::NONE);
    let record = |txn: u64, payload| RecordRef {
        flags: RecordFlags::DELETE_MARKED,
        version: Some((TxnId(txn), UndoPtr(9))),
        payload,
    };
    target.push(b"a", &record(4, b"first")).unwrap();
    target.push(b"b", &record(5, b"second")).unwrap();
    target.push(b"c", &RecordRef::frozen(b"third")).unwrap();
    let free = target.view().free_bytes();
    assert!(target.freeze_below(TxnId(5)));
    let view = target.view();
    assert_eq!(view.free_bytes(), free + VERSION_BYTES);
    assert_eq!(view.record(0), RecordRef { version: None, ..record(4, b"first") });
    assert_eq!((view.record(1), view.record(2)), (record(5, b"second"), RecordRef::frozen(b"third")));
    assert!(!target.freeze_below(TxnId(5)));
    target.compact();
    assert_eq!(target.view().record(0).payload, b"first");
}

//! Tests that images of random pages decode to the same pages, and that damaged images are
//! detected.

use super::*;
use crate::base::{Epoch, Error, ErrorKind, PageId, Result, TreeId, TxnId, UndoPtr};
use crate::format::page::*;
use crate::format::row::{build_row, Locator, VarValue};
use crate::format::{ImageRef, Location};
use cheetah_io::rng::Rng;

const CODECS: [Codec; 3] = [Codec::None, Codec::Lz4, Codec::Zstd];
const PID: PageId = PageId(77);
const TREE: TreeId = TreeId(9);
const ADDRESS: u64 = 5 << 32 | 4096;

fn row_format() -> RowFormatVersion {
    RowFormatVersion { null_bytes: 1, fixed: vec![1, 2, 3, 4, 8, 12], var_count: 3 }
}

fn row(rng: &mut Rng) -> Vec<u8> {
    let locator =
        Locator { value_bytes: rng.next_u64(), first_page: PageId(1 + rng.below(1 << 30)) }.encode();
    let value_max = if rng.chance(0.2) { 150 } else { 6 };
    let texts: Vec<Vec<u8>> = (0..2)
        .map(|_| {
            let length = rng.below(value_max) as usize;
            rng.bytes(length)
        })
        .collect();
    let last = if rng.chance(0.2) { VarValue::external(&locator) } else { VarValue::inline(b"") };
    let mut row = Vec::new();
    let mut fixed = [7; 30];
    rng.fill(&mut fixed[..4]);
    build_row(
        &[rng.below(8) as u8],
        &fixed,
        &[VarValue::inline(&texts[0]), last, VarValue::inline(&texts[1])],
        &mut row,
    );
    row
}

/// A payload: a row, other bytes, or bytes of a fixed width.
fn payload(rng: &mut Rng, form: u64) -> Vec<u8> {
    match form {
        0 => row(rng),
        1 => {
            let length = rng.below(20) as usize;
            rng.bytes(length)
        }
        2 => rng.bytes(8),
        3 => rng.bytes(17),
        _ if rng.chance(0.99) => row(rng),
        _ => b"no row".to_vec(),
    }
}

/// A key that follows one of several patterns, ascending in `i`.
fn key(rng: &mut Rng, form: u64, i: u32) -> Vec<u8> {
    let number = (i * 3).to_be_bytes();
    match form {
        0 => number.to_vec(),
        1 => [&number[..], &rng.bytes(4)].concat(),
        2 => {
            let length = rng.below(9) as usize;
            [&number[..], &rng.bytes(length)].concat()
        }
        3 => [&number[..], &[3; 40]].concat(),
        _ => [&u64::from(i).to_be_bytes()[..], &rng.bytes(8)].concat(),
    }
}

fn leaf(rng: &mut Rng) -> PageBuf {
    let mut bytes = PageBuf::new(512 << rng.below(7));
    let (key_form, payload_form) = (rng.below(5), rng.below(5));
    let first = rng.below(1000) as u32;
    let (low, high) = (key(rng, key_form, first), key(rng, key_form, first + 1_000_000));
    let bounded = rng.chance(0.7);
    let (low, high) = if bounded { (&low[..], Some(&high[..])) } else { (&[][..], None) };
    let right = PageId(rng.below(PageId::MAX.0 + 1));
    let mut page = build_page(&mut bytes, PageKind::Leaf, 0, TREE, low, high, right);
    let count = if rng.chance(0.1) { rng.below(3) as u32 } else { u32::MAX };
    let young = rng.chance(0.5);
    for i in 1..count {
        let flags = if young && rng.chance(0.1) { RecordFlags::DELETE_MARKED } else { RecordFlags::NONE };
        let version =
            (young && rng.chance(0.2)).then(|| (TxnId(rng.below(1000)), UndoPtr(rng.below(1 << 48))));
        let payload = payload(rng, payload_form);
        let record = RecordRef { flags, version, payload: &payload };
        if page.push(&key(rng, key_form, first + i), &record).is_err() {
            break;
        }
    }
    for _ in 0..page.view().count() / 4 {
        page.remove(rng.below(page.view().count() as u64) as usize);
    }
    if rng.chance(0.05) {
        page.set_dead();
    }
    bytes
}

fn inner(rng: &mut Rng) -> PageBuf {
    let mut bytes = PageBuf::new(512 << rng.below(7));
    let mut page = build_page(&mut bytes, PageKind::Inner, 3, TREE, b"", None, PageId::NONE);
    let form = rng.below(5);
    page.insert_child(0, b"", PageId(5)).unwrap();
    for i in 1.. {
        let child = PageId(1 + rng.below(PageId::MAX.0));
        if page.insert_child(i, &key(rng, form, i as u32), child).is_err() {
            break;
        }
    }
    bytes
}

fn content(rng: &mut Rng) -> PageBuf {
    let mut bytes = PageBuf::new(512 << rng.below(8));
    let kind = if rng.chance(0.5) { PageKind::Blob } else { PageKind::Undo };
    let capacity = content_capacity(bytes.len());
    let mut page =
        build_content(&mut bytes, kind, TREE, PageId(rng.below(PageId::MAX.0 + 1)), rng.next_u64());
    let length = if rng.chance(0.2) { capacity } else { rng.below(capacity as u64) as usize };
    page.append_content(&rng.bytes(length)).unwrap();
    bytes
}

fn any_page(rng: &mut Rng) -> PageBuf {
    match rng.below(10) {
        0 => content(rng),
        1 | 2 => inner(rng),
        _ => leaf(rng),
    }
}

/// The sealed image of `page` and its entry in the map.
fn image_of(rng: &mut Rng, page: &[u8], freeze_below: TxnId) -> (Vec<u8>, ImageRef) {
    let row_format = if rng.chance(0.8) { row_format() } else { RowFormatVersion::opaque() };
    let compression = Compression { codec: CODECS[rng.below(3) as usize], level: 1 };
    let mut image = b"left from before".to_vec();
    Workspace::default().encode(
        page,
        PID,
        Epoch(3),
        &Encoding { row_format: &row_format, compression, freeze_below, dictionary: None, lock: None },
        &mut image,
    );
    assert!(image.len() <= max_image_bytes(page.len()));
    let crc = seal(&mut image, ADDRESS);
    let location = Location::of_address(ADDRESS, image.len() as u32, crc);
    (image, ImageRef { pid: PID, tree: TREE, location })
}

#[track_caller]
fn assert_same(page: PageView<'_>, expected: PageView<'_>, freeze_below: TxnId) {
    let header = |page: PageView<'_>| (page.kind(), page.level(), page.tree(), page.right(), page.is_dead());
    assert_eq!(header(page), header(expected));
    if !page.kind().is_tree() {
        assert_eq!(page.content(), expected.content());
        assert_eq!(page.content_position(), expected.content_position());
        return;
    }
    let fences = |page: PageView<'_>| (page.low().to_vec(), page.high().map(<[u8]>::to_vec));
    assert_eq!(fences(page), fences(expected));
    assert_eq!(page.count(), expected.count());
    for i in 0..page.count() {
        assert_eq!(page.key(i), expected.key(i));
        let mut record = expected.record(i);
        record.version = record.version.filter(|(txn, _)| *txn >= freeze_below);
        assert_eq!(page.record(i), record);
    }
}

#[test]
fn a_page_comes_back_from_its_image() {
    for seed in 0..600 {
        let mut rng = Rng::new(seed);
        let page = any_page(&mut rng);
        assert_eq!(PageView::new(&page).verify(), Ok(()));
        let freeze_below = TxnId(rng.below(3) * 400);
        let (image, expected) = image_of(&mut rng, &page, freeze_below);
        let mut back = PageBuf::new(512);
        let header = Workspace::default()
            .decode(&image, &expected, &mut back)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!((header.epoch, header.page_bytes), (Epoch(3), page.len()));
        assert_same(PageView::new(&back), PageView::new(&page), freeze_below);
    }
}

/// The record of `key` in the image of a leaf.
fn found(
    workspace: &mut Workspace,
    image: &[u8],
    expected: &ImageRef,
    key: &[u8],
) -> Result<Option<RecordCopy>> {
    let header = check(image, expected)?;
    workspace.look_into(&header, image, expected, Means::default(), |leaf| leaf.find(key))
}

#[test]
fn every_record_is_found_in_the_image_of_its_leaf_and_no_other() {
    let mut workspace = Workspace::default();
    let mut looks = 0;
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let page = any_page(&mut rng);
        let page = PageView::new(&page);
        let freeze_below = TxnId(rng.below(3) * 400);
        let (image, expected) = image_of(&mut rng, page.bytes(), freeze_below);
        let mut find = |key: &[u8]| found(&mut workspace, &image, &expected, key).unwrap();
        if !page.kind().is_tree() || !page.is_leaf() {
            assert_eq!(find(b"anything"), None);
            continue;
        }
        for i in (0..page.count()).step_by(1 + rng.below(3) as usize) {
            let mut record = page.record(i);
            record.version = record.version.filter(|(txn, _)| *txn >= freeze_below);
            let key = page.key(i);
            assert_eq!(find(&key).as_ref().map(RecordCopy::as_ref), Some(record), "seed {seed}, record {i}");
            for other in [&key[..key.len() - 1], &[&key[..], b"\0"].concat()] {
                assert_eq!(find(other).is_some(), page.search(other).is_ok(), "seed {seed}, record {i}");
            }
            looks += 1;
        }
        let header = check(&image, &expected).unwrap();
        let fences = workspace.look_into(&header, &image, &expected, Means::default(), |leaf| {
            assert_eq!((leaf.low(), leaf.high()), (page.low(), page.high()));
            assert_eq!((leaf.is_dead(), leaf.tree()), (page.is_dead(), TREE));
            Ok(Some(()))
        });
        assert_eq!(fences.unwrap(), Some(()));
    }
    assert!(looks > 5000, "{looks}");
}

#[test]
fn a_full_page_of_versions_and_long_lengths_stays_within_the_image_limit() {
    let mut bytes = PageBuf::new(512);
    let mut page = build_page(&mut bytes, PageKind::Leaf, 0, TREE, b"", None, PageId::MAX);
    let version = Some((TxnId(u64::MAX >> 16), UndoPtr(u64::MAX >> 16)));
    for i in 0u8.. {
        let record =
            RecordRef { flags: RecordFlags::DELETE_MARKED, version, payload: &[i; 2][..usize::from(i % 3)] };
        if page.push(&[i], &record).is_err() {
            break;
        }
    }
    let (_, expected) = image_of(&mut Rng::new(1), &bytes, TxnId(0));
    assert_eq!(expected.pid, PID);
}

#[test]
fn every_changed_byte_of_an_image_is_noticed() {
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let page = any_page(&mut rng);
        let (image, expected) = image_of(&mut rng, &page, TxnId(0));
        let mut back = PageBuf::new(512);
        for _ in 0..100 {
            let mut damaged = image.clone();
            damaged[rng.below(image.len() as u64) as usize] ^= 1 << rng.below(8);
            let error = Workspace::default().decode(&damaged, &expected, &mut back).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption);
        }
        let shorter = &image[..rng.below(image.len() as u64) as usize];
        assert!(Workspace::default().decode(shorter, &expected, &mut back).is_err());
    }
}

#[test]
fn an_image_of_another_place_page_or_tree_is_refused() {
    let mut rng = Rng::new(1);
    let page = leaf(&mut rng);
    let (image, expected) = image_of(&mut rng, &page, TxnId(0));
    let at = expected.location;
    for wrong in [
        ImageRef { pid: PageId(78), ..expected },
        ImageRef { tree: TreeId(10), ..expected },
        ImageRef { location: Location { offset: at.offset + 64, ..at }, ..expected },
        ImageRef { location: Location { crc: !at.crc, ..at }, ..expected },
    ] {
        assert_eq!(check(&image, &wrong).unwrap_err().kind(), ErrorKind::Corruption);
    }
    assert!(check(&image, &expected).is_ok());
}

#[test]
fn an_image_of_a_newer_version_is_named_as_such() {
    let mut rng = Rng::new(1);
    let page = leaf(&mut rng);
    let (mut image, mut expected) = image_of(&mut rng, &page, TxnId(0));
    image[24] = 4;
    expected.location.crc = seal(&mut image, ADDRESS);
    let error = Workspace::default().decode(&image, &expected, &mut PageBuf::new(512)).unwrap_err();
    assert!(matches!(&error, Error::Unsupported { .. }));
    assert_eq!(
        error.to_string(),
        "page 77 of tree 9 in segment 5 at 4096: written by a newer version of Cheetah (image format 4); \
         open it with that version or a later one"
    );
}

/// Wrong bytes with the right checksum give an error, or a page that satisfies the invariants.
#[test]
fn damage_under_a_right_checksum_never_panics() {
    let mut accepted = 0;
    for seed in 0..150 {
        let mut rng = Rng::new(seed);
        let page = any_page(&mut rng);
        let (image, expected) = image_of(&mut rng, &page, TxnId(0));
        let mut back = PageBuf::new(512);
        let view = PageView::new(&page);
        let is_leaf = view.kind().is_tree() && view.is_leaf() && view.count() > 0;
        let some_key = if is_leaf { view.key(view.count() / 2) } else { Vec::new() };
        for _ in 0..100 {
            let mut damaged = image.clone();
            for _ in 0..=rng.below(3) {
                let near = if rng.chance(0.5) { 120 } else { image.len() as u64 };
                let at = rng.below(near.min(image.len() as u64)) as usize;
                damaged[at] =
                    if rng.chance(0.5) { rng.next_u64() as u8 } else { damaged[at] ^ (1 << rng.below(8)) };
            }
            let mut expected = expected;
            expected.location.crc = seal(&mut damaged, ADDRESS);
            let _ = found(&mut Workspace::default(), &damaged, &expected, &some_key);
            if Workspace::default().decode(&damaged, &expected, &mut back).is_ok() {
                assert_eq!(PageView::new(&back).verify(), Ok(()));
                accepted += 1;
            }
        }
    }
    assert!(accepted > 1000, "{accepted}: changed values are not damage to the structure");
}

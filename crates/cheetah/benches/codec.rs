//! Measures the size and speed of page images: `cargo bench --bench codec [-- LEVEL]`, with the
//! level of Zstandard.
//!
//! There are four kinds of synthetic leaves, completely filled: rows of sysbench, rows of
//! Linkbench's link table, rows of an orders table with eleven columns, and entries of a secondary
//! index. For each kind, the bench prints the ratio image / page (before padding to 64 bytes) and
//! the time to encode and to decode one page. It does so for no compression (only regrouping), LZ4
//! and Zstandard.

use cheetah::testing::base::{Epoch, PageId, TreeId, TxnId};
use cheetah::testing::format::image::{seal, Codec, Compression, Encoding, ImageHeader, Workspace};
use cheetah::testing::format::page::{build_page, PageBuf, PageKind, RecordRef};
use cheetah::testing::format::row::{build_row, RowFormatVersion, VarValue};
use cheetah::testing::format::{ImageRef, Location};
use cheetah_io::rng::Rng;
use std::hint::black_box;
use std::time::Instant;

mod common;

const PAGE_BYTES: usize = 16 << 10;
const PAGES: usize = 90;
const TREE: TreeId = TreeId(16);

struct Leaves {
    name: &'static str,
    row_format: RowFormatVersion,
    pages: Vec<PageBuf>,
}

fn digits(rng: &mut Rng, groups: usize) -> Vec<u8> {
    let group = |rng: &mut Rng| (0..11).map(|_| b'0' + rng.below(10) as u8).collect::<Vec<_>>();
    (0..groups).map(|_| group(rng)).collect::<Vec<_>>().join(&b'-')
}

/// Text of English-like syllables. Common syllables occur more often.
fn words(rng: &mut Rng, bytes: usize) -> Vec<u8> {
    const SYLLABLES: &[&str] = &[
        "the ", "of ", "an", "er", "in", "tion ", "re", "on", "at", "en", "ly ", "st", "or", "ing ", "al",
        "qu",
    ];
    let mut text = Vec::new();
    while text.len() < bytes {
        let pick = rng.below(16).min(rng.below(16)) as usize;
        text.extend_from_slice(SYLLABLES[pick].as_bytes());
    }
    text.truncate(bytes);
    text
}

fn sysbench() -> Leaves {
    let row_format = RowFormatVersion { null_bytes: 0, fixed: vec![4, 4, 120, 60], var_count: 0 };
    leaves("sysbench", row_format, |rng, i| {
        let id = 100_000 + i as u32;
        let k = (rng.below(10_000) + rng.below(90_000)) as u32;
        let mut c = digits(rng, 10);
        c.push(b' ');
        let mut pad = digits(rng, 5);
        pad.push(b' ');
        let fixed = [&id.to_le_bytes()[..], &k.to_le_bytes(), &c, &pad].concat();
        (id.to_be_bytes().to_vec(), row(&[], &fixed, &[]))
    })
}

fn link() -> Leaves {
    let row_format = RowFormatVersion { null_bytes: 0, fixed: vec![8, 8, 8, 1, 8, 4], var_count: 1 };
    let (mut id1, mut id2) = (1_000_000u64, 0u64);
    leaves("link", row_format, move |rng, _| {
        if rng.chance(0.2) {
            id1 += 1 + rng.below(4);
            id2 = 0;
        }
        id2 += 1 + rng.below(100_000_000);
        let link_type = 123_456_789u64;
        let visibility = u8::from(rng.chance(0.95));
        let time = 1_700_000_000_000 + rng.below(1 << 31);
        let version = rng.below(3) as u32;
        let numbers = [id1.to_le_bytes(), id2.to_le_bytes(), link_type.to_le_bytes()].concat();
        let fixed = [&numbers[..], &[visibility], &time.to_le_bytes(), &version.to_le_bytes()].concat();
        let key = [link_type.to_be_bytes(), id1.to_be_bytes(), id2.to_be_bytes()].concat();
        let length = rng.below(16) as usize;
        (key, row(&[], &fixed, &[&words(rng, length)]))
    })
}

fn orders() -> Leaves {
    let row_format = RowFormatVersion { null_bytes: 2, fixed: vec![8, 4, 1, 5, 5, 2, 1, 2, 4], var_count: 2 };
    leaves("orders", row_format, |rng, i| {
        let id = 5_000_000 + i as u64;
        let created = 0x99_b4_00_00_00u64 + i as u64 * 37 + rng.below(30);
        let fixed = [
            &id.to_le_bytes()[..],
            &(rng.below(200_000) as u32).to_le_bytes(),
            &[rng.below(5).min(rng.below(5)) as u8],
            &[&[0x80, 0][..], &(rng.below(50_000) as u32).to_be_bytes()[1..]].concat(),
            &created.to_be_bytes()[3..],
            &(rng.below(300) as u16).to_le_bytes(),
            &[1 + rng.below(9) as u8],
            [b"DE", b"FR", b"US", b"GB"][rng.below(4) as usize],
            &(rng.below(10_000) as u32).to_le_bytes(),
        ];
        let comment = if rng.chance(0.3) { words(rng, 40) } else { Vec::new() };
        let nulls = [u8::from(comment.is_empty()), 0];
        let reference = format!("ORD-{:08}", id * 7 % 100_000_000);
        (id.to_be_bytes().to_vec(), row(&nulls, &fixed.concat(), &[reference.as_bytes(), &comment]))
    })
}

fn secondary() -> Leaves {
    let mut k = 40_000u32;
    leaves("secondary", RowFormatVersion::opaque(), move |rng, _| {
        k += rng.below(9) as u32 + 1;
        let id = rng.below(1_000_000) as u32;
        ([k.to_be_bytes(), id.to_be_bytes()].concat(), vec![4])
    })
}

fn row(nulls: &[u8], fixed: &[u8], values: &[&[u8]]) -> Vec<u8> {
    let values: Vec<_> = values.iter().map(|value| VarValue::inline(value)).collect();
    let mut row = Vec::new();
    build_row(nulls, fixed, &values, &mut row);
    row
}

/// Fills pages with the records that `make` returns, in key order. The lower fence of a page is its
/// first key; the upper fence is the first key of the next page.
fn leaves(
    name: &'static str,
    row_format: RowFormatVersion,
    mut make: impl FnMut(&mut Rng, usize) -> (Vec<u8>, Vec<u8>),
) -> Leaves {
    let mut rng = Rng::new(1);
    let (mut pages, mut row_no) = (Vec::new(), 0);
    let mut records = Vec::new();
    while pages.len() < PAGES {
        records.push(make(&mut rng, row_no));
        row_no += 1;
        let used: usize = records.iter().map(|(key, payload)| key.len() + payload.len() + 9).sum();
        if used > PAGE_BYTES + PAGE_BYTES / 2 {
            pages.push(fill(&mut records));
        }
    }
    Leaves { name, row_format, pages }
}

fn fill(records: &mut Vec<(Vec<u8>, Vec<u8>)>) -> PageBuf {
    let mut count = records.len() - 1;
    loop {
        let mut bytes = PageBuf::new(PAGE_BYTES);
        let (low, high) = (&records[0].0, &records[count].0);
        let mut page = build_page(&mut bytes, PageKind::Leaf, 0, TREE, low, Some(high), PageId(2));
        let mut rest = records[..count].iter();
        if rest.all(|(key, payload)| page.push(key, &RecordRef::frozen(payload)).is_ok()) {
            records.drain(..count);
            return bytes;
        }
        count = page.view().count();
    }
}

fn measure(leaves: &Leaves, compression: Compression) {
    let how = Encoding {
        row_format: &leaves.row_format,
        compression,
        freeze_below: TxnId(0),
        dictionary: None,
        lock: None,
    };
    let mut images = vec![Vec::new(); leaves.pages.len()];
    let mut workspace = Workspace::default();
    let encode_us = best_us(leaves.pages.len(), |i| {
        workspace.encode(&leaves.pages[i], PageId(1), Epoch(1), &how, &mut images[i]);
    });
    let crcs: Vec<u32> = images.iter_mut().map(|image| seal(image, 64)).collect();
    let mut page = PageBuf::new(PAGE_BYTES);
    let decode_us = best_us(images.len(), |i| {
        let location = Location::of_address(64, images[i].len() as u32, crcs[i]);
        let expected = ImageRef { pid: PageId(1), tree: TREE, location };
        black_box(workspace.decode(&images[i], &expected, &mut page).expect("just encoded"));
    });
    let stored: usize =
        images.iter().map(|image| ImageHeader::read(image).map_or(0, |h| h.payload_bytes)).sum();
    let ratio = stored as f64 / (images.len() * PAGE_BYTES) as f64;
    let rows = leaves
        .pages
        .iter()
        .map(|page| cheetah::testing::format::page::PageView::new(page).count())
        .sum::<usize>();
    println!(
        "{:<10} {:>5} {:?}{} ratio {ratio:.3}  encode {encode_us:5.1} us  decode {decode_us:5.1} us",
        leaves.name,
        rows / leaves.pages.len(),
        compression.codec,
        if compression.codec == Codec::Zstd { format!("-{}", compression.level) } else { String::new() },
    );
}

/// The time of one call in microseconds, in the fastest of many rounds over all pages.
fn best_us(pages: usize, mut call: impl FnMut(usize)) -> f64 {
    let round = |call: &mut dyn FnMut(usize)| {
        let start = Instant::now();
        (0..pages).for_each(call);
        start.elapsed().as_secs_f64() * 1e6 / pages as f64
    };
    (0..40).map(|_| round(&mut call)).fold(f64::INFINITY, f64::min)
}

fn main() {
    let level = common::arguments().next().and_then(|level| level.parse().ok()).unwrap_or(1);
    for leaves in [sysbench(), link(), orders(), secondary()] {
        for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
            measure(&leaves, Compression { codec, level });
        }
    }
}

//! Every decoder of the engine survives any bytes: with an error or a sound value, never with a panic.
//!
//! A new decoder gets a test here: good samples, how to repair the checksum after a mutation, and the call.

mod common;

use cheetah::base::{Generation, Lsn, PageId, SegmentId, TreeId, TxnId, UndoPtr};
use cheetah::format::image::{self, Codec, Compression, Encoding, Expected, Workspace};
use cheetah::format::page::{
    build_content, build_page, plan_split, split_into, PageBuf, PageKind, PageMut, PageView, Pending,
    RecordFlags, RecordRef,
};
use cheetah::format::row::{build_row, Locator, RowShape, RowView, VarValue};
use cheetah::format::{control, log_frame, map_block, segment_header, Location, MapEntry, Reader};
use common::mutate::survive;

const ADDRESS: u64 = 1 << 32 | 64;
const PID: PageId = PageId(5);
const TREE: TreeId = TreeId(16);

fn shape() -> RowShape {
    RowShape { null_bytes: 1, fixed: vec![4, 10], var_count: 2 }
}

fn row(i: u32) -> Vec<u8> {
    let locator = Locator { value_bytes: 1 << 20, first_page: PageId(9) }.encode();
    let text = [b'a'; 9];
    let first =
        if i % 5 == 0 { VarValue::external(&locator) } else { VarValue::inline(&text[..i as usize % 9]) };
    let mut row = Vec::new();
    build_row(&[i as u8], &[7; 14], &[first, VarValue::inline(b"tail")], &mut row);
    row
}

/// A page of each kind, leaves with rows and without.
fn pages() -> Vec<PageBuf> {
    let mut pages = Vec::new();
    for opaque in [false, true] {
        let mut bytes = PageBuf::new(2048);
        let mut leaf = build_page(&mut bytes, PageKind::Leaf, 0, TREE, b"ab", Some(b"ax"), PageId(6));
        for i in 0..30u32 {
            let flags = if i % 7 == 0 { RecordFlags::DELETE_MARKED } else { RecordFlags::NONE };
            let version = (i % 3 == 0).then_some((TxnId(u64::from(i) + 1), UndoPtr(4000)));
            let payload = if opaque { vec![1; i as usize % 4] } else { row(i) };
            let key = [&b"ac"[..], &i.to_be_bytes()[2..], &[1; 3][..i as usize % 2]].concat();
            leaf.push(&key, &RecordRef { flags, version, payload: &payload }).expect("there is room");
        }
        leaf.remove(3);
        pages.push(bytes);
    }
    let mut bytes = PageBuf::new(512);
    let mut inner = build_page(&mut bytes, PageKind::Inner, 1, TREE, b"", None, PageId::NONE);
    for i in 0..8 {
        inner.insert_child(i, &b"abcdefgh"[..i], PageId(i as u64 + 1)).expect("there is room");
    }
    pages.push(bytes);
    let mut bytes = PageBuf::new(512);
    let mut blob = build_content(&mut bytes, PageKind::Blob, TREE, PageId(8), 448);
    blob.append_content(&b"content ".repeat(20)).expect("there is room");
    pages.push(bytes);
    pages
}

fn images() -> Vec<Vec<u8>> {
    let encode = |page: &PageBuf, codec| {
        let compression = Compression { codec, level: 1 };
        let how = Encoding { shape: &shape(), compression, freeze_below: TxnId(0) };
        let mut image = Vec::new();
        Workspace::default().encode(page, PID, Generation(3), &how, &mut image);
        image::seal(&mut image, ADDRESS);
        image
    };
    let codecs = [Codec::None, Codec::None, Codec::Lz4, Codec::Zstd];
    pages().iter().flat_map(|page| codecs.map(|codec| encode(page, codec))).collect()
}

/// Makes length and checksum right again.
fn repair_image(image: &mut Vec<u8>) {
    image.resize(image.len().max(image::HEADER_BYTES).next_multiple_of(image::ALIGN_BYTES), 0);
    let length = image.len() as u32;
    image[4..8].copy_from_slice(&length.to_le_bytes());
    image::seal(image, ADDRESS);
}

#[test]
fn decoders_survive_mutated_bytes_images() {
    survive("image::decode", &images(), 150_000, repair_image, |image| {
        let crc = image.get(28..32).and_then(|crc| crc.try_into().ok()).map_or(0, u32::from_le_bytes);
        let expected = Expected { pid: PID, tree: TREE, address: ADDRESS, crc };
        let mut page = PageBuf::new(512);
        if Workspace::default().decode(image, &expected, &mut page).is_ok() {
            assert_eq!(PageView::new(&page).verify(), Ok(()));
            use_page(&mut page);
        }
    });
}

#[test]
fn decoders_survive_mutated_bytes_pages() {
    let pages: Vec<Vec<u8>> = pages().iter().map(|page| page.to_vec()).collect();
    survive(
        "page",
        &pages,
        40_000,
        |page| page.resize(page.len().next_power_of_two(), 0),
        |page| {
            if PageView::new(page).verify().is_ok() {
                use_page(&mut PageBuf::from_slice(page));
            }
        },
    );
}

/// Reads, changes and splits a page that passed verification.
fn use_page(bytes: &mut PageBuf) {
    let mut page = PageMut::new(bytes);
    if !page.view().kind().is_tree() {
        assert!(page.view().content().len() < page.view().bytes().len());
        return;
    }
    let record = RecordRef::frozen(b"12345");
    let key = page.view().low().to_vec();
    match page.view().search(&key) {
        Ok(i) => drop(page.replace(i, &record)),
        Err(i) if page.insert(i, &key, &record).is_err() => {
            let pending = Pending { index: i, key: &key, record, replaces: false };
            if let Some(plan) = plan_split(page.view(), &pending) {
                let mut halves =
                    [PageBuf::new(page.view().bytes().len()), PageBuf::new(page.view().bytes().len())];
                let [left, right] = &mut halves;
                split_into(page.view(), &plan, PageId(1), left, right);
            }
        }
        Err(_) => {}
    }
    for i in (0..page.view().count()).rev() {
        assert_eq!(page.view().search(&page.view().key(i)), Ok(i));
        page.remove(i);
    }
}

#[test]
fn decoders_survive_mutated_bytes_rows() {
    let rows: Vec<Vec<u8>> = (0..10).map(row).collect();
    survive(
        "RowView::parse",
        &rows,
        40_000,
        |_| {},
        |row| {
            if let Ok(view) = RowView::parse(&shape(), row) {
                let mut copy = Vec::new();
                view.rewrite(&mut copy, |_, _| None);
                assert_eq!(copy, row);
                view.externals().for_each(drop);
            }
        },
    );
    let mut encoded = Vec::new();
    shape().encode(&mut encoded);
    survive(
        "RowShape::decode",
        &[encoded],
        20_000,
        |_| {},
        |bytes| {
            drop(RowShape::decode(&mut Reader::new(bytes)));
        },
    );
    let locator = Locator { value_bytes: 9, first_page: PageId(1) }.encode().to_vec();
    survive("Locator::decode", &[locator], 5_000, |_| {}, |bytes| drop(Locator::decode(bytes)));
}

/// Puts the CRC-32C of everything before it at `at` of a block of `bytes`.
fn repair_block(block: &mut Vec<u8>, bytes: usize, at: usize) {
    block.resize(bytes, 0);
    let crc = crc32c::crc32c(&block[..at]);
    block[at..at + 4].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn decoders_survive_mutated_bytes_file_headers() {
    let segment =
        segment_header::SegmentHeader { uuid: [7; 16], segment: SegmentId(3), incarnation: 2, stream: 1 };
    let repair = |block: &mut Vec<u8>| repair_block(block, segment_header::HEADER_BYTES, 60);
    survive("SegmentHeader::decode", &[segment.encode().to_vec()], 20_000, repair, |bytes| {
        let Some(block) = bytes.first_chunk() else { return };
        if let Ok(header) = segment_header::SegmentHeader::decode(block) {
            assert_eq!(header.encode(), *block);
        }
    });
    let map =
        map_block::FileHeader { kind: map_block::FileKind::Log, uuid: [7; 16], number: 4, incarnation: 2 };
    let repair = |block: &mut Vec<u8>| repair_block(block, map_block::FILE_HEADER_BYTES, 60);
    survive("map_block::FileHeader::decode", &[map.encode().to_vec()], 20_000, repair, |bytes| {
        let Some(block) = bytes.first_chunk() else { return };
        if let Ok(header) = map_block::FileHeader::decode(block) {
            assert_eq!(header.encode(), *block);
        }
    });
    let log = log_frame::FileHeader {
        database: [7; 16],
        incarnation: 2,
        sequence: 9,
        start: Lsn(4096),
        previous_chain: 5,
    };
    let repair = |block: &mut Vec<u8>| repair_block(block, log_frame::HEADER_BYTES, 508);
    survive("log_frame::FileHeader::decode", &[log.encode().to_vec()], 20_000, repair, |bytes| {
        let Some(block) = bytes.first_chunk() else { return };
        if let Ok(header) = log_frame::FileHeader::decode(block, "a file") {
            assert_eq!(header.encode(), *block);
        }
    });
}

#[test]
fn decoders_survive_mutated_bytes_control() {
    let part = control::MapPart { file: 3, start: 64, end: 900, start_crc: 1, end_crc: 2 };
    let block = control::ControlBlock {
        features: control::Features::default(),
        identity: control::Identity { uuid: [7; 16], incarnation: 2 },
        sequence: 12,
        generation: Generation(5),
        log_start: Lsn(4096),
        next_map_file: 4,
        next_segment: SegmentId(8),
        page_bytes: 16384,
        segment_bytes: 1 << 20,
        base: Some(part),
        logs: vec![part; 3],
    };
    let repair = |block: &mut Vec<u8>| repair_block(block, control::COPY_BYTES, control::COPY_BYTES - 4);
    survive("ControlBlock::decode", &[block.encode(1).to_vec()], 10_000, repair, |bytes| {
        let Some(block) = bytes.first_chunk() else { return };
        if let Ok(control) = control::ControlBlock::decode(block, 1) {
            assert_eq!(control.encode(1), *block);
        }
    });
}

/// Makes the length and the checksum of a chunk right again.
fn repair_chunk(chunk: &mut Vec<u8>) {
    chunk.resize(chunk.len().max(map_block::CHUNK_HEADER_BYTES), 0);
    let stored = chunk.len() - map_block::CHUNK_HEADER_BYTES;
    chunk[12..16].copy_from_slice(&(stored as u32).to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&[0; 4]), &chunk[..16]);
    let crc = crc32c::crc32c_append(crc, &chunk[map_block::CHUNK_HEADER_BYTES..]);
    chunk[16..20].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn decoders_survive_mutated_bytes_map_chunks() {
    let location = |i: u32| Location { segment: SegmentId(i), offset: 64 * i, stored_bytes: 640, crc: i };
    let entry = |i: u32| (i % 4 > 0).then(|| MapEntry { tree: TREE, location: location(i) });
    let entries: Vec<_> = (1..40).map(|i| (PageId(u64::from(i) * 3), entry(i))).collect();
    let mut content = Vec::new();
    map_block::encode_entries(&entries, &mut content);
    let mut chunks = Vec::new();
    for kept in [content.len(), 60, 0] {
        let mut chunk = Vec::new();
        map_block::put_chunk(&mut chunk, map_block::ChunkKind::Entries, entries.len(), &content[..kept], 0);
        chunks.push(chunk);
    }
    survive("map_block::ChunkHeader", &chunks, 20_000, repair_chunk, |bytes| {
        let Some(Ok(header)) = bytes.first_chunk().map(map_block::ChunkHeader::decode) else { return };
        let (mut content, mut entries) = (Vec::new(), Vec::new());
        if header.open(bytes, 0, &mut content).is_ok() {
            drop(header.entries(&content, &mut entries));
        }
    });
    survive(
        "map_block::Begin, End",
        &[vec![1; 16], vec![1; 24]],
        2_000,
        |_| {},
        |bytes| {
            drop((map_block::Begin::decode(bytes), map_block::End::decode(bytes)));
        },
    );
}

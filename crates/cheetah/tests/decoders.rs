//! Every decoder of the engine survives arbitrary bytes: it returns an error or a valid value, and
//! never panics.
//!
//! A new decoder needs a function in `common/decoded.rs`, a test here and a target in `fuzz/`. The
//! test has valid samples, and a function that repairs the checksum after a mutation. The target
//! calls the same function with libFuzzer's bytes.

mod common;

use cheetah::testing::base::PageId;
use cheetah::testing::format::image::{self, Codec, Means, Workspace};
use cheetah::testing::format::page::{
    plan_split, split_into, PageBuf, PageMut, PageView, Pending, RecordRef,
};
use cheetah::testing::format::row::{RowFormatVersion, RowView};
use cheetah::testing::format::{control, log_frame, map_block, segment_header, ImageRef, Location, Reader};
use common::decoded;
use common::mutate::survive;
use common::repair;
use common::samples::*;

/// Repairs the length and the checksum of an image.
fn repair_image(image: &mut Vec<u8>) {
    image.resize(image.len().max(image::HEADER_BYTES).next_multiple_of(image::ALIGN_BYTES), 0);
    let length = image.len() as u32;
    image[4..8].copy_from_slice(&length.to_le_bytes());
    image::seal(image, ADDRESS);
}

#[test]
fn decoders_survive_mutated_bytes_images() {
    let codecs = [Codec::None, Codec::None, Codec::Lz4, Codec::Zstd];
    let mut images: Vec<_> = codecs.into_iter().flat_map(images).collect();
    images.extend(images_with_dictionary());
    images.extend(closed_formats().into_iter().take(pages().len()));
    let (dictionary, key) = (dictionary(), key());
    survive("image::decode", &images, 150_000, repair_image, |image| {
        let crc = image.get(28..32).and_then(|crc| crc.try_into().ok()).map_or(0, u32::from_le_bytes);
        let location = Location::of_address(ADDRESS, image.len() as u32, crc);
        let expected = ImageRef { pid: PID, tree: TREE, location };
        let mut page = PageBuf::new(512);
        let Ok(header) = image::check(image, &expected) else { return };
        let means = Means { dictionary: header.dictionary.map(|_| &dictionary), key: Some(&key) };
        if Workspace::default().rebuild(&header, image, &expected, means, &mut page).is_ok() {
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
            if let Ok(view) = RowView::parse(&row_format(), row) {
                let mut copy = Vec::new();
                view.rewrite(&mut copy, |_, _| None);
                assert_eq!(copy, row);
                view.externals().for_each(drop);
            }
        },
    );
    survive(
        "RowFormatVersion::decode",
        &[encoded_format()],
        20_000,
        |_| {},
        |bytes| {
            drop(RowFormatVersion::decode(&mut Reader::new(bytes)));
        },
    );
    survive("Locator::decode", &[locator()], 5_000, |_| {}, decoded::locator);
}

#[test]
fn decoders_survive_mutated_bytes_file_headers() {
    let [segment, map, log] = file_headers();
    let repair = |block: &mut Vec<u8>| repair::block(block, segment_header::HEADER_BYTES, 60);
    survive("SegmentHeader", &[segment], 20_000, repair, decoded::file_headers);
    let repair = |block: &mut Vec<u8>| repair::block(block, map_block::FILE_HEADER_BYTES, 60);
    survive("map_block::FileHeader", &[map], 20_000, repair, decoded::file_headers);
    let repair = |block: &mut Vec<u8>| repair::block(block, log_frame::HEADER_BYTES, 508);
    survive("log_frame::FileHeader", &[log], 20_000, repair, decoded::file_headers);
}

#[test]
fn decoders_survive_mutated_bytes_control() {
    let repair = |block: &mut Vec<u8>| repair::block(block, control::COPY_BYTES, control::COPY_BYTES - 4);
    survive("ControlBlock", &[control_copy()], 10_000, repair, decoded::control);
}

#[test]
fn decoders_survive_mutated_bytes_map_chunks() {
    survive("map_block::ChunkHeader", &map_chunks(), 20_000, repair::chunk, decoded::map_chunk);
    let contents = [vec![1; 16], vec![1; 24]];
    survive("map_block::Begin, End", &contents, 2_000, |_| {}, decoded::map_chunk);
}

#[test]
fn decoders_survive_mutated_bytes_catalog() {
    survive("catalog row", &catalog_rows(), 40_000, |_| {}, decoded::catalog_row);
}

#[test]
fn decoders_survive_mutated_bytes_statistics() {
    survive("statistics row", &statistics_rows(), 20_000, |_| {}, decoded::statistics_row);
}

#[test]
fn decoders_survive_mutated_bytes_removed_words() {
    survive("removed words", &[removed_words()], 20_000, |_| {}, decoded::removed_words);
}

/// A state with two undo pages, no transactions, a table, and a dropped tree.
const STATE_OF_VERSION_1: [u8; 21] = [1, 10, 12, 11, 3, 20, 1, 5, 70, 2, 9, 10, 0, 1, 2, 5, 6, 7, 1, 17, 0];

/// The stored bytes of a dictionary may begin like a dictionary trained by Zstandard, which has its
/// own tables.
#[test]
fn decoders_survive_mutated_bytes_dictionary() {
    let trained = [&[0x37, 0xa4, 0x30, 0xec, 1, 0, 0, 0][..], &dictionary_content()].concat();
    survive("dictionary", &[dictionary_content(), trained], 2_000, |_| {}, decoded::dictionary);
}

#[test]
fn decoders_survive_mutated_bytes_epoch_state() {
    let mut states = epoch_states();
    states.push(state_with_dictionaries().encode());
    states.push(state_with_change_files().encode());
    states.push(STATE_OF_VERSION_1.to_vec());
    survive("epoch state", &states, 40_000, |_| {}, decoded::epoch_state);
}

#[test]
fn decoders_survive_mutated_bytes_change_file() {
    survive("change file", &[change_file(None)], 20_000, |_| {}, decoded::change_file);
    let records = change_file(None).split_off(64 + 12);
    survive("change file records", &[records], 20_000, |_| {}, decoded::change_records);
}

/// Repairs the checksum in the last line.
fn repair_manifest(bytes: &mut Vec<u8>) {
    let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n').filter(|end| *end > 12) else { return };
    bytes.truncate(end - 12);
    let crc = crc32c::crc32c(bytes);
    bytes.extend(format!("end {crc:08x}\n").bytes());
}

#[test]
fn decoders_survive_mutated_bytes_manifest() {
    let mut repaired = manifest().encode();
    repair_manifest(&mut repaired);
    assert_eq!(repaired, manifest().encode());
    survive("manifest", &[repaired], 20_000, repair_manifest, decoded::manifest);
}

#[test]
fn decoders_survive_mutated_bytes_log_records() {
    let records = [log_records(), prepare_records(), vec![rename_record()]].concat();
    survive("log record", &records, 60_000, |_| {}, decoded::log_record);
}

#[test]
fn decoders_survive_mutated_bytes_log_frames() {
    survive("log frames", &log_frames(), 20_000, repair::frames, decoded::log_frames);
}

#[test]
fn decoders_survive_mutated_bytes_undo_records() {
    survive("undo record", &undo_records(), 60_000, |_| {}, decoded::undo_record);
}

#[test]
fn decoders_survive_mutated_bytes_positions() {
    let positions = [vec![1, 1, 127], vec![0x80, 1, 0, 0, 4, 0, 1], vec![0xff, 0xff, 0xff, 0xff, 0x0f]];
    survive("positions", &positions, 20_000, |_| {}, decoded::positions);
}

#[test]
fn decoders_survive_mutated_bytes_search_query() {
    let queries = ["+one -(two ~three*) >\"four five\"@6 <seven", "one.two \"three\" * (a b (c))", "\"a b"];
    let queries = queries.map(|query| query.as_bytes().to_vec());
    survive("search query", &queries, 20_000, |_| {}, decoded::search_query);
}

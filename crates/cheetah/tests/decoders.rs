//! Every decoder of the engine survives any bytes: with an error or a sound value, never with a panic.
//!
//! A new decoder gets a function in `common/decoded.rs`, a test here (good samples, and how to repair the checksum after a
//! mutation), and a target in `fuzz/`, which calls the same function with libFuzzer's bytes.

mod common;

use cheetah::base::{Generation, Lsn, PageId, SegmentId, TableId, TreeId, TxnId, UndoPtr};
use cheetah::format::catalog::{piece_key, IndexDef, TableDef};
use cheetah::format::image::{self, Codec, Compression, Encoding, Expected, Workspace};
use cheetah::format::log_record::{LargeSource, LogRecord, LoggedEntry, LoggedRow, RowOp};
use cheetah::format::page::{
    build_content, build_page, plan_split, split_into, PageBuf, PageKind, PageMut, PageView, Pending,
    RecordFlags, RecordRef,
};
use cheetah::format::row::{build_row, Locator, RowShape, RowView, VarValue};
use cheetah::format::state::{FencedTable, State, TableState, TxnState};
use cheetah::format::undo_record::{self, RowParts, UndoBlob};
use cheetah::format::{control, log_frame, map_block, segment_header, Location, MapEntry, Reader};
use common::decoded;
use common::mutate::survive;
use common::repair;

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
    survive("Locator::decode", &[locator], 5_000, |_| {}, decoded::locator);
}

#[test]
fn decoders_survive_mutated_bytes_file_headers() {
    let segment =
        segment_header::SegmentHeader { uuid: [7; 16], segment: SegmentId(3), incarnation: 2, stream: 1 };
    let repair = |block: &mut Vec<u8>| repair::block(block, segment_header::HEADER_BYTES, 60);
    survive("SegmentHeader", &[segment.encode().to_vec()], 20_000, repair, decoded::file_headers);
    let map =
        map_block::FileHeader { kind: map_block::FileKind::Log, uuid: [7; 16], number: 4, incarnation: 2 };
    let repair = |block: &mut Vec<u8>| repair::block(block, map_block::FILE_HEADER_BYTES, 60);
    survive("map_block::FileHeader", &[map.encode().to_vec()], 20_000, repair, decoded::file_headers);
    let log = log_frame::FileHeader {
        database: [7; 16],
        incarnation: 2,
        sequence: 9,
        start: Lsn(4096),
        previous_chain: 5,
    };
    let repair = |block: &mut Vec<u8>| repair::block(block, log_frame::HEADER_BYTES, 508);
    survive("log_frame::FileHeader", &[log.encode().to_vec()], 20_000, repair, decoded::file_headers);
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
    let repair = |block: &mut Vec<u8>| repair::block(block, control::COPY_BYTES, control::COPY_BYTES - 4);
    survive("ControlBlock", &[block.encode(1).to_vec()], 10_000, repair, decoded::control);
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
    survive("map_block::ChunkHeader", &chunks, 20_000, repair::chunk, decoded::map_chunk);
    let contents = [vec![1; 16], vec![1; 24]];
    survive("map_block::Begin, End", &contents, 2_000, |_| {}, decoded::map_chunk);
}

#[test]
fn decoders_survive_mutated_bytes_catalog() {
    let index = |tree, name: &str| IndexDef {
        name: name.into(),
        unique: true,
        max_key_bytes: 300,
        shape: shape(),
        tree: TreeId(tree),
        root: PageId(u64::from(tree) << 20),
    };
    let def = TableDef {
        id: TableId(7),
        name: "a table".into(),
        compression: Compression { codec: Codec::Zstd, level: -3 },
        hidden_key: true,
        auto_increment: 1 << 40,
        extra: b"the caller's".to_vec(),
        indexes: vec![index(16, "PRIMARY"), index(17, "second")],
    };
    let mut row = Vec::new();
    def.encode(&mut row);
    let samples = [row, piece_key(TableId(7), 1).to_vec()];
    survive("catalog row", &samples, 40_000, |_| {}, decoded::catalog_row);
}

#[test]
fn decoders_survive_mutated_bytes_generation_state() {
    let txn = TxnState {
        txn: TxnId(7),
        committed: true,
        head: UndoPtr(900),
        first: UndoPtr(8),
        undo_no: 3,
        freed_pages: 2,
    };
    let state = State {
        lsn: Lsn(1 << 40),
        next_txn: TxnId(8),
        undo_end: UndoPtr(1000),
        undo_pages: (1..9).map(PageId).collect(),
        txns: vec![txn; 3],
        tables: vec![TableState { table: TableId(2), row_count: 5, auto_increment: 6, hidden_key: 7 }; 3],
        dropped_trees: vec![TreeId(17), TreeId(20)],
        fenced: vec![FencedTable { table: TableId(2), reason: "a page".into() }],
        ..State::default()
    };
    let samples = [state.encode(), State::default().encode()];
    survive("generation state", &samples, 40_000, |_| {}, decoded::generation_state);
}

fn log_records() -> Vec<Vec<u8>> {
    let row =
        LoggedRow { table: TableId(7), old_key: b"old", new_key: b"new", row: b"a row", auto_increment: 9 };
    let entry = LoggedEntry { index_no: 1, old_key: b"old entry", new_key: b"new entry", payload: b"p" };
    let large = vec![LargeSource::Kept, LargeSource::Written];
    let of_row =
        |op| LogRecord::Row { txn: TxnId(5), op, row, large: large.clone(), entries: vec![entry; 2] };
    let (txn, table) = (TxnId(5), TableId(7));
    let records = [
        of_row(RowOp::Insert),
        of_row(RowOp::Update),
        of_row(RowOp::Delete),
        LogRecord::Blob { txn, table, total_bytes: 1 << 20, offset: 4096, bytes: b"a piece" },
        LogRecord::Undo(txn, 3),
        LogRecord::Commit(txn, 4),
        LogRecord::Abort(txn),
        LogRecord::CreateTable(b"a definition"),
        LogRecord::DropTable(table),
        LogRecord::RenameTable(table, "another name"),
        LogRecord::TruncateTable(table, b"a definition"),
        LogRecord::AutoIncrement(table, 77),
    ];
    let encode = |record: &LogRecord<'_>| {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        bytes
    };
    records.iter().map(encode).collect()
}

#[test]
fn decoders_survive_mutated_bytes_log_records() {
    survive("log record", &log_records(), 60_000, |_| {}, decoded::log_record);
}

#[test]
fn decoders_survive_mutated_bytes_log_frames() {
    let mark = log_frame::SyncMark { position: Lsn(4096 + 9), durable: Lsn(4096), file_chain: 5 };
    let mut frames = Vec::new();
    let mut chain = log_frame::put_frame(&mut frames, 5, log_frame::KIND_SYNC_MARK, &mark.encode());
    for record in log_records() {
        chain = log_frame::put_frame(&mut frames, chain, record[0], &record[1..]);
    }
    let samples = [frames, mark.encode().to_vec()];
    survive("log frames", &samples, 20_000, repair::frames, decoded::log_frames);
}

#[test]
fn decoders_survive_mutated_bytes_undo_records() {
    let mut of_row = Vec::new();
    undo_record::start(&mut of_row, TxnId(5), 2, UndoPtr(8));
    let parts = RowParts {
        op: RowOp::Update,
        table: TableId(7),
        old_key: b"old",
        new_key: b"new",
        old_row: b"the row before",
        freed: &Locator { value_bytes: 9, first_page: PageId(1) }.encode(),
    };
    let entry = LoggedEntry { index_no: 2, old_key: b"a", new_key: b"b", payload: b"c" };
    undo_record::put_row(&mut of_row, &parts, [entry; 3].into_iter());
    undo_record::finish(&mut of_row);
    let mut of_value = Vec::new();
    undo_record::start(&mut of_value, TxnId(5), 1, UndoPtr(0));
    let blob = UndoBlob {
        table: TableId(7),
        total_bytes: 1 << 20,
        end: 300,
        locator: b"a locator",
        pages: (5..20).map(PageId).collect(),
        index_pages: vec![PageId(4)],
    };
    undo_record::put_blob(&mut of_value, &blob);
    undo_record::finish(&mut of_value);
    survive("undo record", &[of_row, of_value], 60_000, |_| {}, decoded::undo_record);
}

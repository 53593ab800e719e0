//! Valid bytes of every format: the tests of decoders mutate them, and the golden files store them.

use cheetah::testing::base::{Epoch, Lsn, PageId, SegmentId, TableId, TreeId, TxnId, UndoPtr, Xid};
use cheetah::testing::format::catalog::{
    piece_key, Encryption, FulltextDef, IndexDef, TableDef, TableEncryption,
};
use cheetah::testing::format::change_file::{self, SavedChanges};
use cheetah::testing::format::encryption::Key;
use cheetah::testing::format::foreign_key::{
    ColumnDef, Description, ForeignKeyAction, ForeignKeyDef, KeyPartDef,
};
use cheetah::testing::format::image::{self, Codec, Compression, Dictionary, Encoding, Primer, Workspace};
use cheetah::testing::format::log_record::{LargeSource, LogRecord, LoggedEntry, LoggedRow, RowOp};
use cheetah::testing::format::manifest::{Made, Manifest, ManifestFile};
use cheetah::testing::format::page::{
    build_content, build_page, encode_buffered, BufferedChange, PageBuf, PageKind, RecordFlags, RecordRef,
};
use cheetah::testing::format::removed_words;
use cheetah::testing::format::row::{build_row, Locator, RowFormatVersion, VarValue};
use cheetah::testing::format::row_format_versions::{BitRun, FormatChange, OlderFormatVersion};
use cheetah::testing::format::state::{
    ListedFile, PurgeState, QuarantinedTable, State, TableState, TxnState, UndoPage,
};
use cheetah::testing::format::statistics::IndexStatistics;
use cheetah::testing::format::undo_record::{
    self, Before, UndoBlob, UndoBody, UndoEntry, UndoFinish, UndoRow,
};
use cheetah::testing::format::{control, log_frame, map_block, segment_header, ImageRef, Location, MapEntry};

pub(crate) const ADDRESS: u64 = 1 << 32 | 64;
pub(crate) const PID: PageId = PageId(5);
pub(crate) const TREE: TreeId = TreeId(16);

pub(crate) fn row_format() -> RowFormatVersion {
    RowFormatVersion { null_bytes: 1, fixed: vec![4, 10], var_count: 2 }
}

pub(crate) fn row(i: u32) -> Vec<u8> {
    let locator = Locator { value_bytes: 1 << 20, first_page: PageId(9) }.encode();
    let text = [b'a'; 9];
    let first =
        if i % 5 == 0 { VarValue::external(&locator) } else { VarValue::inline(&text[..i as usize % 9]) };
    let mut row = Vec::new();
    build_row(&[i as u8], &[7; 14], &[first, VarValue::inline(b"tail")], &mut row);
    row
}

/// A page of each kind, with empty and non-empty leaves.
pub(crate) fn pages() -> Vec<PageBuf> {
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

/// The content of a dictionary. It shares strings with all pages.
pub(crate) fn dictionary_content() -> Vec<u8> {
    [&b"content ".repeat(8)[..], &[7; 40], b"abcdefgh", b"tail", &b"aaaaaaaaatail".repeat(3)].concat()
}

pub(crate) fn dictionary() -> Dictionary {
    Dictionary::new(PageId(9), &dictionary_content()).expect("any bytes are a dictionary")
}

fn primer() -> Primer {
    Primer::new(PageId(9), &dictionary_content(), Compression::default()).expect("any bytes are a dictionary")
}

/// The page of a dictionary.
pub(crate) fn dictionary_page() -> PageBuf {
    let mut bytes = PageBuf::new(512);
    let mut page = build_content(&mut bytes, PageKind::Dictionary, TREE, PageId::NONE, 0);
    page.append_content(&dictionary_content()).expect("there is room");
    bytes
}

/// Images that only version 2 has: an image of a dictionary, and images of pages compressed with
/// it.
pub(crate) fn images_with_dictionary() -> Vec<Vec<u8>> {
    let primer = primer();
    let mut images = vec![image(&dictionary_page(), Codec::None, None)];
    images.extend(pages().iter().map(|page| image(page, Codec::Zstd, Some(&primer))));
    images
}

/// The key that encrypts the samples.
pub(crate) fn key() -> Key {
    Key::new(5, 3, vec![0x5a; 32].into(), &[7; 16])
}

/// A sample of each encrypted format, with constant nonces: images, a log file's header and frames,
/// a change file, a copy of CONTROL, and a catalog row.
pub(crate) fn closed_formats() -> Vec<Vec<u8>> {
    let key = key();
    let mut all: Vec<_> = pages().iter().map(|page| closed_image(page, &key)).collect();
    let salt = log_frame::Salt { key: key.name(), bytes: [4; 16] };
    let header = log_frame::FileHeader { version: log_frame::VERSION, closed: Some(salt), ..log_header() };
    let stream = key.log_stream(&salt.bytes);
    let (mut frames, mut chain) = (Vec::new(), header.chain());
    for record in log_records().iter().chain(&prepare_records()) {
        let offset = (log_frame::HEADER_BYTES + frames.len()) as u64;
        chain = log_frame::put_closed_frame(&mut frames, chain, record[0], &record[1..], &stream, offset);
    }
    let mut row = Vec::new();
    let encryption = TableEncryption { wish: Encryption::Yes, key_id: 5 };
    TableDef { encryption, ..table_def() }.encode(&mut row);
    let control = control::ControlBlock { keys: vec![key.name()], ..control_block() };
    all.extend([header.encode().to_vec(), frames, change_file(Some(&key)), control.encode(1).to_vec(), row]);
    all
}

fn closed_image(page: &[u8], key: &Key) -> Vec<u8> {
    let (row_format, compression) = (row_format(), Compression { codec: Codec::None, level: 1 });
    let lock = Some((key, [9; 16]));
    let how =
        Encoding { row_format: &row_format, compression, freeze_below: TxnId(0), dictionary: None, lock };
    let mut image = Vec::new();
    Workspace::default().encode(page, PID, Epoch(3), &how, &mut image);
    image::seal(&mut image, ADDRESS);
    image
}

/// Images of all pages with this codec.
pub(crate) fn images(codec: Codec) -> Vec<Vec<u8>> {
    pages().iter().map(|page| image(page, codec, None)).collect()
}

fn image(page: &[u8], codec: Codec, dictionary: Option<&Primer>) -> Vec<u8> {
    let compression = Compression { codec, level: 1 };
    let how =
        Encoding { row_format: &row_format(), compression, freeze_below: TxnId(0), dictionary, lock: None };
    let mut image = Vec::new();
    Workspace::default().encode(page, PID, Epoch(3), &how, &mut image);
    image::seal(&mut image, ADDRESS);
    image
}

/// A row-format version as bytes.
pub(crate) fn encoded_format() -> Vec<u8> {
    let mut encoded = Vec::new();
    row_format().encode(&mut encoded);
    encoded
}

/// The reference to a large value.
pub(crate) fn locator() -> Vec<u8> {
    Locator { value_bytes: 9, first_page: PageId(1) }.encode().to_vec()
}

/// The header of a segment, of a map file, and of a log file.
pub(crate) fn file_headers() -> [Vec<u8>; 3] {
    let segment =
        segment_header::SegmentHeader { uuid: [7; 16], segment: SegmentId(3), incarnation: 2, stream: 1 };
    let map =
        map_block::FileHeader { kind: map_block::FileKind::Log, uuid: [7; 16], number: 4, incarnation: 2 };
    [segment.encode().to_vec(), map.encode().to_vec(), log_header().encode().to_vec()]
}

fn log_header() -> log_frame::FileHeader {
    log_frame::FileHeader {
        version: log_frame::PLAIN_VERSION,
        database: [7; 16],
        incarnation: 2,
        sequence: 9,
        start: Lsn(4096),
        previous_chain: 5,
        closed: None,
    }
}

/// Copy 1 of CONTROL.
pub(crate) fn control_copy() -> Vec<u8> {
    control_block().encode(1).to_vec()
}

fn control_block() -> control::ControlBlock {
    let part = control::MapPart { file: 3, start: 64, end: 900, start_crc: 1, end_crc: 2 };
    control::ControlBlock {
        features: control::Features::default(),
        identity: control::Identity { uuid: [7; 16], incarnation: 2 },
        sequence: 12,
        epoch: Epoch(5),
        log_start: Lsn(4096),
        next_map_file: 4,
        next_segment: SegmentId(8),
        page_bytes: 16384,
        segment_bytes: 1 << 20,
        base: Some(part),
        logs: vec![part; 3],
        keys: Vec::new(),
    }
}

/// Chunks of a map file.
pub(crate) fn map_chunks() -> Vec<Vec<u8>> {
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
    chunks
}

/// Older row-format versions of rows in the table of the samples.
pub(crate) fn older_formats() -> Vec<OlderFormatVersion> {
    let newest = row_format();
    let mut defaults = Vec::new();
    let values = vec![VarValue::inline(b"default"); newest.var_count.into()];
    build_row(&vec![0; newest.null_bytes.into()], &vec![7; newest.fixed_bytes()], &values, &mut defaults);
    let older = |fixed: Vec<u16>, var_count: u16| OlderFormatVersion {
        change: FormatChange {
            bits: vec![BitRun { from: 0, to: 1, count: 3 }],
            fixed: newest
                .fixed
                .iter()
                .map(|width| fixed.iter().position(|w| w == width).map(|at| at as u16))
                .collect(),
            vars: (0..newest.var_count).map(|no| (no < var_count).then_some(no)).collect(),
            defaults: defaults.clone(),
        },
        row_format: RowFormatVersion { null_bytes: 1, fixed, var_count },
    };
    vec![older(vec![16, newest.fixed[0]], 1), older(vec![3], 2)]
}

/// A table definition, the key of a piece of a definition, and definitions with several row-format
/// versions, with constraints, and with a full-text index.
pub(crate) fn catalog_rows() -> Vec<Vec<u8>> {
    let def = table_def();
    let (mut row, mut with_formats, mut with_constraints) = (Vec::new(), Vec::new(), Vec::new());
    def.encode(&mut row);
    TableDef { older_formats: older_formats(), ..def.clone() }.encode(&mut with_formats);
    let copy_of = "db/original".into();
    let constrained = TableDef { description: description(), foreign_keys: foreign_keys(), copy_of, ..def };
    constrained.encode(&mut with_constraints);
    let index =
        FulltextDef { name: "words".into(), postings: "#fulltext/8".into(), extra: vec![1, 3, 84, 1] };
    let mut with_fulltext = Vec::new();
    TableDef { fulltext: vec![index], ..constrained }.encode(&mut with_fulltext);
    vec![row, piece_key(TableId(7), 1).to_vec(), with_formats, with_constraints, with_fulltext]
}

/// The definition of the table of removed words.
pub(crate) fn catalog_row_of_removed_words() -> Vec<u8> {
    let mut row = Vec::new();
    TableDef { name: removed_words::REMOVED_WORDS.into(), ..table_def() }.encode(&mut row);
    row
}

/// The words of a deleted row.
pub(crate) fn removed_words() -> Vec<u8> {
    let words: [&[u8]; 4] = [b"an\0", b"ancient\0", b"and\0", b"city\0"];
    let (mut last, mut bytes) = (&b""[..], Vec::new());
    for word in words {
        removed_words::put_word(last, word, &mut bytes);
        last = word;
    }
    bytes
}

/// A row of the table of removed words, and its key.
pub(crate) fn row_of_removed_words() -> [Vec<u8>; 2] {
    let (mut key, mut row) = (Vec::new(), Vec::new());
    removed_words::put_key(TableId(7), b"row", &mut key);
    removed_words::put_row(&removed_words(), &mut row);
    [key, row]
}

/// A table with two indexes.
fn table_def() -> TableDef {
    let index = |tree, name: &str| IndexDef {
        name: name.into(),
        unique: tree == 16,
        disabled: tree == 17,
        number: tree - 16,
        max_key_bytes: 300,
        row_format: row_format(),
        tree: TreeId(tree),
        root: PageId(u64::from(tree) << 20),
    };
    TableDef {
        id: TableId(7),
        name: "a table".into(),
        compression: Compression { codec: Codec::Zstd, level: -3 },
        hidden_key: true,
        auto_increment: 1 << 40,
        extra: b"the caller's".to_vec(),
        mark: b"a mark".to_vec(),
        changes: 4,
        next_number: 9,
        indexes: vec![index(16, "PRIMARY"), index(17, "second")],
        older_formats: Vec::new(),
        description: Description::default(),
        foreign_keys: Vec::new(),
        copy_of: String::new(),
        fulltext: Vec::new(),
        encryption: Default::default(),
    }
}

/// Columns and keys of a table with two indexes.
fn description() -> Description {
    let column = |name: &str, nullable| ColumnDef { name: name.into(), kind: vec![0, 4, 1], nullable };
    let part = |column, descending, is_prefix| KeyPartDef { column, descending, is_prefix };
    Description {
        columns: vec![column("id", false), column("of", true)],
        keys: vec![vec![part(0, false, false)], vec![part(1, true, false), part(0, false, true)]],
    }
}

fn foreign_keys() -> Vec<ForeignKeyDef> {
    use ForeignKeyAction::{Cascade, NoAction, Restrict, SetNull};
    let constraint = |name: &str, on_delete, on_update| ForeignKeyDef {
        name: name.into(),
        columns: vec!["of".into(), "id".into()],
        parent: "db/parent".into(),
        parent_columns: vec!["a".into(), "b".into()],
        on_delete,
        on_update,
        inherited: on_delete == SetNull,
    };
    vec![constraint("first", Cascade, NoAction), constraint("second", SetNull, Restrict)]
}

/// Rows of the statistics table.
pub(crate) fn statistics_rows() -> Vec<Vec<u8>> {
    let of = |rows, distinct: &[u64]| {
        let mut bytes = Vec::new();
        IndexStatistics { rows, distinct: distinct.to_vec() }.encode(&mut bytes);
        bytes
    };
    vec![of(0, &[]), of(1000, &[1000]), of(1 << 40, &[3, 500, 1 << 39])]
}

pub(crate) fn epoch_states() -> Vec<Vec<u8>> {
    let xid = Xid::new(1, b"global", b"branch");
    let txn = TxnState { txn: TxnId(7), head: UndoPtr(900), first: UndoPtr(8), undo_no: 3, xid };
    let state = State {
        lsn: Lsn(1 << 40),
        next_txn: TxnId(8),
        undo_end: UndoPtr(1000),
        undo_pages: (1..9).map(|page| UndoPage { page: PageId(page), live: page % 3 }).collect(),
        purge: PurgeState { at: UndoPtr(300), head: UndoPtr(200), undo_no: 2, freed_pages: 64 },
        txns: vec![txn; 3],
        tables: vec![TableState { table: TableId(2), row_count: 5, auto_increment: 6, hidden_key: 7 }; 3],
        dropped_trees: vec![TreeId(17), TreeId(20)],
        quarantined: vec![QuarantinedTable { table: TableId(2), reason: "a page".into() }],
        ..State::default()
    };
    vec![state.encode(), State::default().encode()]
}

/// A state that only version 3 has.
pub(crate) fn state_with_dictionaries() -> State {
    let dictionaries = vec![(TREE, PageId(9)), (TREE, PageId(700)), (TreeId(300), PageId(1 << 30))];
    State { lsn: Lsn(1 << 40), next_tree: TreeId(301), dictionaries, ..State::default() }
}

/// A state that only version 4 has.
pub(crate) fn state_with_change_files() -> State {
    let trees = vec![TREE, TreeId(300)];
    let file =
        |epoch| ListedFile { epoch: Epoch(epoch), bytes: 1 << 20, chain: 0x1234_5678, trees: trees.clone() };
    State { change_files: vec![file(70), file(72)], ..state_with_dictionaries() }
}

/// A change file of two blocks, encrypted with `key` if `key` is given.
pub(crate) fn change_file(key: Option<&Key>) -> Vec<u8> {
    let header = change_file::encode_header(&[7; 16], Epoch(70), key.map(Key::name));
    let (mut bytes, mut chain) = (header.to_vec(), change_file::chain_of(&header));
    for (pid, begins) in [(5, true), (9, false)] {
        let location = Location::of_address(ADDRESS, 900, 77);
        let image = ImageRef { pid: PageId(pid), tree: TREE, location };
        let mut changes = Vec::new();
        let new = RecordRef { version: Some((TxnId(5), UndoPtr(0x1122_3344))), ..RecordRef::frozen(b"row") };
        let marked = RecordRef { flags: RecordFlags::DELETE_MARKED, ..RecordRef::frozen(b"gone") };
        let all = [
            BufferedChange::New(new),
            BufferedChange::Put(RecordRef::frozen(b"other")),
            BufferedChange::Mark(marked),
            BufferedChange::Remove,
        ];
        for (key, change) in [b"k1", b"l2", b"m3", b"n4"].into_iter().zip(all) {
            encode_buffered(&mut changes, key, &change);
        }
        let saved = SavedChanges { image, begins, room: 300, growth_bytes: 40, changes: &changes };
        let (mut records, mut block) = (Vec::new(), Vec::new());
        saved.encode(&mut records);
        let lock = key.map(|key| (key, [begins as u8; 16]));
        chain = change_file::encode_block(&records, chain, lock, &mut block);
        assert!(key.is_some() || block[..4] == block[4..8], "the block is too short to be compressed");
        bytes.extend(block);
    }
    bytes
}

/// The manifest of a snapshot.
pub(crate) fn manifest() -> Manifest {
    let file = |path: &str, crc, made| ManifestFile { path: path.into(), bytes: 1 << 33, crc, made };
    Manifest {
        database: [7; 16],
        epoch: Epoch(1 << 32),
        log_start: Lsn(1 << 40),
        log_end: Lsn((1 << 40) + 9),
        withdrawn_count: 2,
        notes: vec![("server".into(), "10.11.14-MariaDB".into()), ("binlog".into(), "b.000007 1234".into())],
        files: vec![
            file("seg/00000001.seg", None, Made::Linked),
            file("seg/00000002.seg", None, Made::Cloned),
            file("wal/000000000009.log", Some(0x0123_abcd), Made::Copied),
        ],
    }
}

/// A log record of each kind.
pub(crate) fn log_records() -> Vec<Vec<u8>> {
    let row =
        LoggedRow { table: TableId(7), old_key: b"old", new_key: b"new", row: b"a row", auto_increment: 9 };
    let entry = LoggedEntry { index: 1, old_key: b"old entry", new_key: b"new entry", payload: b"p" };
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
        LogRecord::AlterTables(vec![(table, b"a definition"), (TableId(8), b"another one")]),
    ];
    records.iter().map(encode_log_record).collect()
}

/// The log record that foreign keys added.
pub(crate) fn rename_record() -> Vec<u8> {
    let changed = vec![(TableId(7), &b"a definition"[..]), (TableId(8), b"another one")];
    encode_log_record(&LogRecord::RenameWithConstraints(changed))
}

fn encode_log_record(record: &LogRecord<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    bytes
}

/// The log records of two-phase commit, which version 1 did not have.
pub(crate) fn prepare_records() -> Vec<Vec<u8>> {
    let xids = [Xid::new(1 << 40, b"global", b"branch"), None];
    xids.map(|xid| encode_log_record(&LogRecord::Prepare(TxnId(5), xid))).to_vec()
}

/// A sync mark and the log records as frames, and the body of a mark.
pub(crate) fn log_frames() -> Vec<Vec<u8>> {
    let mark = log_frame::SyncMark { position: Lsn(4096 + 9), durable: Lsn(4096), file_chain: 5 };
    let mut frames = Vec::new();
    let mut chain = log_frame::put_frame(&mut frames, 5, log_frame::KIND_SYNC_MARK, &mark.encode());
    for record in log_records() {
        chain = log_frame::put_frame(&mut frames, chain, record[0], &record[1..]);
    }
    vec![frames, mark.encode().to_vec()]
}

/// Undo records of row operations, of a piece of a large value, and of the end of a transaction.
pub(crate) fn undo_records() -> Vec<Vec<u8>> {
    let version = Some((TxnId(4), UndoPtr(1 << 40)));
    let old = Before { version, payload: b"the row before" };
    let marked = Some(Before { version: None, payload: b"a deleted row" });
    let entry =
        UndoEntry { index: 2, old_key: b"a", new_key: b"b", old: Before { version, payload: b"c" }, marked };
    let (fresh, freed) = (UndoEntry { index: 3, new_key: b"d", ..UndoEntry::default() }, locator());
    let row = |op| {
        let (old_key, new_key, entries) = (&b"old"[..], &b"new"[..], vec![entry, fresh, entry]);
        UndoBody::Row(UndoRow {
            op,
            table: TableId(7),
            old_key,
            new_key,
            old,
            marked,
            freed: &freed,
            entries,
        })
    };
    let value = UndoBody::Blob(UndoBlob {
        table: TableId(7),
        total_bytes: 1 << 20,
        end: 300,
        locator: b"a locator",
        pages: (5..20).map(PageId).collect(),
        index_pages: vec![PageId(4)],
    });
    let (head, first) = (UndoPtr(900), UndoPtr(8));
    let finish = UndoFinish { stamp: 12, committed: true, head, first, undo_no: 3 };
    let encode = |(undo_no, body): (u64, &UndoBody<'_>)| {
        let mut bytes = Vec::new();
        undo_record::start(&mut bytes, TxnId(5), undo_no, UndoPtr(undo_no / 2 * 8));
        undo_record::put_body(&mut bytes, body);
        undo_record::finish(&mut bytes);
        bytes
    };
    let rows = [RowOp::Insert, RowOp::Update, RowOp::Delete].map(row);
    let steps =
        [&value, &rows[0], &rows[1], &rows[2]].into_iter().zip(1..).map(|(body, undo_no)| (undo_no, body));
    steps.chain([(0, &UndoBody::Finish(finish))]).map(encode).collect()
}

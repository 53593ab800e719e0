//! Rules for any bytes that a decoder accepts. The decoder tests on stable Rust and the fuzz
//! targets use them.
//!
//! Each function takes arbitrary bytes, which the decoder may refuse. An accepted value is encoded
//! and decoded again, and must not change.

use cheetah::testing::base::{Epoch, Lsn, PageId, Result, TxnId, UndoPtr};
use cheetah::testing::format::catalog::{parse_piece_key, piece_key, TableDef};
use cheetah::testing::format::change_file::{self, SavedChanges};
use cheetah::testing::format::image::{Compression, Dictionary, Primer, Workspace};
use cheetah::testing::format::log_record::LogRecord;
use cheetah::testing::format::manifest::Manifest;
use cheetah::testing::format::removed_words;
use cheetah::testing::format::row::{Locator, LOCATOR_BYTES};
use cheetah::testing::format::state::State;
use cheetah::testing::format::statistics::IndexStatistics;
use cheetah::testing::format::{control, log_frame, map_block, segment_header, undo_record, varint, Reader};
use cheetah::testing::fulltext::{search, Mode, Position, PositionList, Positions, Source, Word, WordKind};

/// A table definition, and the key of a piece of a definition.
pub(crate) fn catalog_row(bytes: &[u8]) {
    if let Ok(def) = TableDef::decode(bytes) {
        let mut again = Vec::new();
        def.encode(&mut again);
        assert_eq!(TableDef::decode(&again).ok(), Some(def));
    }
    if let Ok((table, piece_no)) = parse_piece_key(bytes) {
        assert_eq!(piece_key(table, piece_no), bytes);
    }
}

/// The content of a dictionary. Any accepted content can be used to compress and decompress.
pub(crate) fn dictionary(bytes: &[u8]) {
    for level in [-1, 1, 9] {
        let compression = Compression { level, ..Compression::default() };
        let made = (Dictionary::new(PageId(9), bytes), Primer::new(PageId(9), bytes, compression));
        let (Ok(dictionary), Ok(primer)) = made else { return };
        assert_eq!(dictionary.name(), primer.name());
        let content = b"some content that may or may not be in it".repeat(3);
        let bytes = Workspace::default().image_bytes(&content, compression, Some(&primer));
        assert!(bytes <= 48 + 9 + content.len().next_multiple_of(64));
    }
}

/// A row of the statistics table.
pub(crate) fn statistics_row(bytes: &[u8]) {
    if let Ok(statistics) = IndexStatistics::decode(bytes) {
        let mut again = Vec::new();
        statistics.encode(&mut again);
        assert_eq!(IndexStatistics::decode(&again).ok(), Some(statistics));
    }
}

/// The words of a deleted row, and their key.
pub(crate) fn removed_words(bytes: &[u8]) {
    let mut again = (Vec::new(), Vec::new());
    let read = removed_words::each_word(bytes, |word| {
        removed_words::put_word(&again.0, word, &mut again.1);
        again.0 = word.to_vec();
        Ok(())
    });
    match read {
        Ok(()) => assert_eq!(again.1, bytes),
        Err(_) => assert!(bytes.starts_with(&again.1)),
    }
    if let Ok((table, row_key)) = removed_words::parse_key(bytes) {
        let mut key = Vec::new();
        removed_words::put_key(table, row_key, &mut key);
        assert_eq!(key, bytes);
    }
}

/// The positions of a word in a full-text index.
pub(crate) fn positions(bytes: &[u8]) {
    let positions = Positions::new(bytes).iter().collect::<Result<Vec<_>>>();
    if let Ok(positions) = positions {
        let mut again = PositionList::default();
        positions.into_iter().for_each(|position| again.push(position));
        assert_eq!(again.bytes(), bytes);
    }
}

/// An index where each word is in exactly one row, and the text of the row is that word. The index
/// splits a query's words at spaces and periods.
struct OneRow;

impl Source for OneRow {
    fn split(&mut self, text: &[u8], each: &mut dyn FnMut(Word<'_>) -> Result<()>) -> Result<()> {
        for weights in text.split(|byte| b" .".contains(byte)).filter(|word| !word.is_empty()) {
            let kind = if weights.len() == 1 { WordKind::TooShort } else { WordKind::Indexed };
            each(Word { weights, kind })?;
        }
        Ok(())
    }

    fn postings(
        &mut self,
        weights: &[u8],
        each: &mut dyn FnMut(&[u8], Positions<'_>) -> Result<()>,
    ) -> Result<()> {
        each(weights, Positions::new(&[1]))
    }

    fn postings_of_prefix(
        &mut self,
        weights: &[u8],
        each: &mut dyn FnMut(&[u8], Positions<'_>) -> Result<()>,
    ) -> Result<()> {
        self.postings(weights, each)
    }

    fn words_of(&mut self, key: &[u8], each: &mut dyn FnMut(Word<'_>, Position) -> Result<()>) -> Result<()> {
        each(Word { weights: key, kind: WordKind::Indexed }, Position { ordinal: 0, column: 0 })
    }

    fn row_count(&mut self) -> Result<u64> {
        Ok(3)
    }
}

/// A full-text query in each mode. The query is refused, or returns rows in the order of their
/// ranks.
pub(crate) fn search_query(bytes: &[u8]) {
    for mode in [Mode::NaturalLanguage, Mode::Boolean, Mode::QueryExpansion] {
        let Ok(mut matches) = search(bytes, mode, &mut OneRow, 1 << 20) else { continue };
        let mut before = f32::INFINITY;
        for place in 0..matches.len() {
            let (key, rank) = matches.get(place).expect("each position has a row");
            let key = key.to_vec();
            assert!(rank <= before && matches.rank(&key) == Some(rank));
            before = rank;
        }
    }
}

/// The state of an epoch.
pub(crate) fn epoch_state(bytes: &[u8]) {
    if let Ok(state) = State::decode(bytes) {
        assert_eq!(State::decode(&state.encode()).ok(), Some(state));
    }
}

/// A change file: its header, its blocks, and their records.
pub(crate) fn change_file(bytes: &[u8]) {
    let Some((header, mut rest)) = bytes.split_first_chunk() else { return };
    let Ok((mut chain, None)) = change_file::check_header(header, &[7; 16], Epoch(70)) else { return };
    while let Some((head, behind)) = rest.split_first_chunk() {
        let Ok(stored) = change_file::stored_bytes(head, behind.len() as u64) else { return };
        let (stored, behind) = behind.split_at(stored);
        let Ok(next) = change_file::check_block(head, stored, chain) else { return };
        let mut records = Vec::new();
        if change_file::open_block(head, &mut stored.to_vec(), None, &mut records).is_err() {
            return;
        }
        change_records(&records);
        (chain, rest) = (next, behind);
    }
}

/// The manifest of a snapshot.
pub(crate) fn manifest(bytes: &[u8]) {
    if let Ok(manifest) = Manifest::decode(bytes) {
        assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest));
    }
}

/// The records of a block of a change file.
pub(crate) fn change_records(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    while let Ok(saved) = SavedChanges::decode(&mut reader) {
        let mut again = Vec::new();
        saved.encode(&mut again);
        assert_eq!(SavedChanges::decode(&mut Reader::new(&again)), Ok(saved));
    }
}

/// A log record: its kind and its body.
pub(crate) fn log_record(bytes: &[u8]) {
    let Some((&kind, body)) = bytes.split_first() else { return };
    if let Ok(record) = LogRecord::decode(kind, body) {
        let mut again = Vec::new();
        record.encode(&mut again);
        assert_eq!(LogRecord::decode(again[0], &again[1..]).ok(), Some(record));
    }
}

/// An undo record, head and body.
pub(crate) fn undo_record(bytes: &[u8]) {
    if let Some(Ok(head)) = bytes.first_chunk().map(undo_record::decode_head) {
        let mut again = Vec::new();
        undo_record::start(&mut again, head.txn, head.undo_no, head.prev);
        again[..4].copy_from_slice(&head.len.to_le_bytes());
        assert_eq!(again, bytes[..undo_record::HEAD_BYTES]);
    }
    let Some(body) = bytes.get(undo_record::HEAD_BYTES..) else { return };
    let Ok(body) = undo_record::decode_body(body) else { return };
    let mut again = Vec::new();
    undo_record::start(&mut again, TxnId(1), 1, UndoPtr(0));
    undo_record::put_body(&mut again, &body);
    assert_eq!(undo_record::decode_body(&again[undo_record::HEAD_BYTES..]).ok(), Some(body));
}

/// Consecutive frames of the log, which start with chain value 5, and the search for marks where
/// the chain breaks.
pub(crate) fn log_frames(bytes: &[u8]) {
    let (mut rest, mut chain) = (bytes, 5);
    while let Some(head) = rest.first_chunk().and_then(log_frame::FrameHead::parse) {
        let frame_bytes = log_frame::FRAME_HEADER_BYTES + head.body_bytes;
        let Some(body) = rest.get(log_frame::FRAME_HEADER_BYTES..frame_bytes) else { break };
        let Some(next) = head.verify(chain, body) else { break };
        let mut again = Vec::new();
        assert_eq!(log_frame::put_frame(&mut again, chain, head.kind, body), next);
        assert_eq!(again, rest[..frame_bytes]);
        (rest, chain) = (&rest[frame_bytes..], next);
    }
    let at = Lsn(4096);
    let found = log_frame::SyncMark::search(bytes, at, chain);
    let mark =
        log_frame::SyncMark { position: Lsn(at.0 + bytes.len() as u64), durable: Lsn(7), file_chain: chain };
    let mut marked = bytes.to_vec();
    log_frame::put_frame(&mut marked, 0, log_frame::KIND_SYNC_MARK, &mark.encode());
    assert_eq!(log_frame::SyncMark::search(&marked, at, chain), found.max(Some(Lsn(7))));
}

/// The reference to a large value in a row, and a number of variable length.
pub(crate) fn locator(bytes: &[u8]) {
    if let Ok(locator) = Locator::decode(bytes) {
        assert_eq!(locator.encode(), bytes[..LOCATOR_BYTES]);
    }
    if let Some((number, used)) = varint::get(bytes) {
        let mut again = Vec::new();
        varint::put(&mut again, number);
        assert!(again.len() <= used && varint::get(&again) == Some((number, again.len())));
    }
}

/// A copy of CONTROL.
pub(crate) fn control(bytes: &[u8]) {
    let Some(block) = bytes.first_chunk() else { return };
    if let Ok(control) = control::ControlBlock::decode(block, 1) {
        assert_eq!(control.encode(1), *block);
    }
}

/// The headers of segments, map files and log files.
pub(crate) fn file_headers(bytes: &[u8]) {
    if let Some(block) = bytes.first_chunk() {
        if let Ok(header) = segment_header::SegmentHeader::decode(block) {
            assert_eq!(header.encode(), *block);
        }
        if let Ok(header) = map_block::FileHeader::decode(block) {
            assert_eq!(header.encode(), *block);
        }
    }
    if let Some(block) = bytes.first_chunk() {
        if let Ok(header) = log_frame::FileHeader::decode(block, "a file") {
            assert_eq!(header.encode(), *block);
        }
    }
}

/// A chunk of a map file, and the contents of each kind of chunk.
pub(crate) fn map_chunk(bytes: &[u8]) {
    drop((map_block::Begin::decode(bytes), map_block::End::decode(bytes)));
    let Some(Ok(header)) = bytes.first_chunk().map(map_block::ChunkHeader::decode) else { return };
    let (mut content, mut entries) = (Vec::new(), Vec::new());
    if header.open(bytes, 0, &mut content).is_ok() && header.entries(&content, &mut entries).is_ok() {
        let (mut again, mut entries_again) = (Vec::new(), Vec::new());
        map_block::encode_entries(&entries, &mut again);
        header.entries(&again, &mut entries_again).expect("the encoded value is accepted");
        assert_eq!(entries_again, entries);
    }
}

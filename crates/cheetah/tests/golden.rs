//! The formats on disk do not change. `tests/golden/v4` has the bytes of this version. Every later
//! version reads these bytes, and writes the same bytes until a version number is raised. The files
//! of earlier versions are in `tests/golden/v1` to `v3`. Each folder has the bytes of every format
//! and a database that was not closed. `v1` also has a closed database.
//!
//! `CHEETAH_BLESS=1 cargo test -p cheetah --test golden -- --test-threads=1` rewrites the files of
//! this version. Do this only when a format receives a new version, never to make a test pass. The
//! new version needs a new folder; keep the old folder.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod common;
mod support;

use cheetah::testing::base::{Error, TreeId};
use cheetah::testing::db::Db;
use cheetah::testing::format::bytes::check_version;
use cheetah::testing::format::catalog::TableDef;
use cheetah::testing::format::image::{self, Codec, Compression};
use cheetah::testing::format::log_record::LogRecord;
use cheetah::testing::format::manifest::Manifest;
use cheetah::testing::format::page::{PageBuf, PageView};
use cheetah::testing::format::parity::{parity_at, Parity, PARITY_BYTES};
use cheetah::testing::format::removed_words;
use cheetah::testing::format::row::{build_row, RowFormatVersion, VarValue};
use cheetah::testing::format::row_format_versions::FormatChange;
use cheetah::testing::format::state::State;
use cheetah::testing::format::{control, log_frame, map_block, segment_header};
use cheetah::testing::format::{ImageRef, Location};
use cheetah::testing::table::{Alteration, AlteredIndex, IndexFrom, NewRows};
use cheetah_io::sim::{CrashPolicy, SimDisk};
use cheetah_io::Disk;
use common::{repair, samples};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use support::workload::Contents;
use support::*;

/// The current format version, which the engine writes.
const NOW: u32 = 4;

fn folder(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/v{version}"))
}

fn is_blessing() -> bool {
    std::env::var_os("CHEETAH_BLESS").is_some()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Every format with the bytes that are written for its samples. The output of compression
/// libraries is omitted: another version of a library may compress differently.
fn written() -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let pages = samples::pages().iter().map(|page| page.to_vec()).collect();
    vec![
        ("page", pages),
        ("image", samples::images(Codec::None)),
        ("row", (0..10).map(samples::row).collect()),
        ("shape", vec![samples::encoded_format()]),
        ("locator", vec![samples::locator()]),
        ("file header", samples::file_headers().to_vec()),
        ("CONTROL", vec![samples::control_copy()]),
        ("map chunk", samples::map_chunks().into_iter().filter(|chunk| chunk[3] == 0).collect()),
        ("catalog row", samples::catalog_rows()),
        ("epoch state", samples::epoch_states()),
        ("log record", samples::log_records()),
        ("prepare record", samples::prepare_records()),
        ("log frame", samples::log_frames()),
        ("undo record", samples::undo_records()),
        ("statistics row", samples::statistics_rows()),
    ]
}

fn read_written(version: u32) -> String {
    fs::read_to_string(folder(version).join("written.txt")).unwrap()
}

#[test]
fn every_format_is_written_as_by_the_version_that_introduced_it() {
    let path = folder(NOW).join("written.txt");
    let mut text = String::new();
    for (name, all) in written() {
        all.iter().for_each(|bytes| writeln!(text, "{name}: {}", hex(bytes)).unwrap());
    }
    if is_blessing() {
        fs::create_dir_all(folder(NOW)).unwrap();
        fs::write(&path, &text).unwrap();
    }
    let golden = read_written(NOW);
    for (number, (now, then)) in text.lines().zip(golden.lines()).enumerate() {
        let format = now.split(':').next().unwrap_or_default();
        assert!(
            now == then,
            "line {}: the bytes of '{format}' are not those of version {NOW} any more, which databases hold. Raise the \
             version of the format, read both, describe both in docs/developers/format.md, and add a folder for the new one.\n\
             now  {now}\nthen {then}",
            number + 1
        );
    }
    assert_eq!(
        text.lines().count(),
        golden.lines().count(),
        "formats are added and removed only with a version"
    );
}

/// Image format 2 and state format 3, which a database with dictionaries uses. For data compressed
/// with a dictionary, only decoding is fixed.
#[test]
fn images_and_states_with_dictionaries_are_read_and_written_as_when_they_came() {
    let path = folder(NOW).with_file_name("dictionaries.txt");
    let written =
        [samples::images_with_dictionary(), vec![samples::state_with_dictionaries().encode()]].concat();
    if is_blessing() {
        fs::write(&path, written.iter().map(|bytes| hex(bytes) + "\n").collect::<String>()).unwrap();
    }
    let text = fs::read_to_string(&path).unwrap();
    let golden: Vec<Vec<u8>> = text.lines().map(unhex).collect();
    assert_eq!((golden.len(), &golden[0], golden.last()), (written.len(), &written[0], written.last()));
    let pages = [vec![samples::dictionary_page()], samples::pages()].concat();
    let dictionary = samples::dictionary();
    let mut named = 0;
    for (image, page) in golden.iter().zip(pages) {
        let (pid, tree, address) = (samples::PID, samples::TREE, samples::ADDRESS);
        let crc = u32::from_le_bytes(image[28..32].try_into().unwrap());
        let location = Location::of_address(address, image.len() as u32, crc);
        let expected = ImageRef { pid, tree, location };
        let header = image::check(image, &expected).unwrap();
        named += usize::from(header.dictionary.is_some());
        let mut back = PageBuf::new(512);
        let means = image::Means { dictionary: header.dictionary.map(|_| &dictionary), key: None };
        let mut workspace = image::Workspace::default();
        workspace.rebuild(&header, image, &expected, means, &mut back).unwrap();
        let contents = |bytes: &[u8]| {
            let view = PageView::new(bytes);
            let records = (0..view.count()).map(|i| (view.key(i), view.record(i).payload.to_vec())).collect();
            if view.kind().is_tree() {
                records
            } else {
                vec![(view.content().to_vec(), Vec::new())]
            }
        };
        assert_eq!(contents(&back), contents(&page));
    }
    assert!(named >= 3, "{named}");
    let state = State::decode(golden.last().unwrap()).unwrap();
    assert_eq!(state, samples::state_with_dictionaries());
}

/// The formats that version 2 changed: the epoch state, the undo records (which only a state refers
/// to), and formats that version 1 did not write.
const CHANGED_IN_2: [&str; 3] = ["epoch state", "undo record", "prepare record"];
/// The formats that version 3 changed: catalog rows, and a log record of changed definitions. The
/// log record also changed the headers of log files.
const CHANGED_IN_3: [&str; 4] = ["catalog row", "log record", "log frame", "file header"];
/// The formats that version 4 changed: catalog rows of tables whose rows may have several
/// row-format versions.
const CHANGED_IN_4: [&str; 1] = ["catalog row"];

#[test]
fn all_other_formats_are_written_as_in_the_version_before() {
    for (version, changed) in [(2, &CHANGED_IN_2[..]), (3, &CHANGED_IN_3), (4, &CHANGED_IN_4)] {
        let others = |version| {
            let is_other = |line: &&str| !changed.iter().any(|format| line.starts_with(format));
            read_written(version).lines().filter(is_other).map(str::to_owned).collect::<Vec<_>>()
        };
        assert!(others(version).len() > 25);
        assert!(others(version - 1) == others(version), "version {version}");
    }
}

#[test]
fn catalog_rows_of_version_2_are_read() {
    let text = read_written(2);
    let row = text.lines().find_map(|line| line.strip_prefix("catalog row: ")).unwrap();
    let def = TableDef::decode(&unhex(row)).unwrap();
    let numbers = def.indexes.iter().map(|index| index.number).collect::<Vec<_>>();
    assert_eq!((numbers, def.next_number, def.changes, def.mark), (vec![0, 1], 2, 0, Vec::new()));
}

#[test]
fn catalog_rows_of_version_3_are_read_and_written() {
    let text = read_written(3);
    let row = unhex(text.lines().find_map(|line| line.strip_prefix("catalog row: ")).unwrap());
    assert_eq!(row, samples::catalog_rows()[0]);
    assert!(TableDef::decode(&row).unwrap().older_formats.is_empty());
}

/// The log record of a rename that changes constraints. Only catalog rows of version 4 have
/// constraints.
#[test]
fn a_rename_with_constraints_is_logged_as_when_it_came() {
    let path = folder(NOW).with_file_name("renames.txt");
    let written = samples::rename_record();
    if is_blessing() {
        fs::write(&path, hex(&written) + "\n").unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), hex(&written) + "\n");
    let decoded = LogRecord::decode(written[0], &written[1..]).unwrap();
    assert!(matches!(decoded, LogRecord::RenameWithConstraints(changed) if changed.len() == 2));
}

/// State format 4 and change files, which are written if changes are pending at a checkpoint. The
/// golden file has the offset, the length and the first bytes of the parity.
#[test]
fn change_files_and_the_states_that_list_them_are_written_as_when_they_came() {
    let path = folder(NOW).with_file_name("change_files.txt");
    let mut parity = Parity::default();
    parity.add(0, &samples::change_file(None));
    parity.add(PARITY_BYTES as u64 - 9, &[0x55; 20]);
    let mut summary = parity_at(4097).to_le_bytes().to_vec();
    summary.extend_from_slice(&(parity.bytes().len() as u64).to_le_bytes());
    summary.extend_from_slice(&parity.bytes()[..80]);
    let written = [samples::state_with_change_files().encode(), samples::change_file(None), summary];
    let text = written.iter().map(|bytes| hex(bytes) + "\n").collect::<String>();
    if is_blessing() {
        fs::write(&path, &text).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    assert_eq!(State::decode(&written[0]).unwrap(), samples::state_with_change_files());
}

/// The formats that are written when data is encrypted: image format 3, log format 3, change file
/// format 2, catalog row format 6, and CONTROL with names of keys.
#[test]
fn what_is_closed_is_written_as_when_it_came_and_opened() {
    let path = folder(NOW).with_file_name("encryption.txt");
    let written = samples::closed_formats();
    let text = written.iter().map(|bytes| hex(bytes) + "\n").collect::<String>();
    if is_blessing() {
        fs::write(&path, &text).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    let key = samples::key();
    for (image, page) in written.iter().zip(samples::pages()) {
        let (pid, tree, address) = (samples::PID, samples::TREE, samples::ADDRESS);
        let crc = u32::from_le_bytes(image[28..32].try_into().unwrap());
        let expected =
            ImageRef { pid, tree, location: Location::of_address(address, image.len() as u32, crc) };
        let header = image::check(image, &expected).unwrap();
        let open = |key| {
            let (mut workspace, mut back) = (image::Workspace::default(), PageBuf::new(512));
            let means = image::Means { dictionary: None, key };
            workspace.rebuild(&header, image, &expected, means, &mut back).map(|()| back)
        };
        assert_eq!(PageView::new(&open(Some(&key)).unwrap()).count(), PageView::new(&page).count());
        assert!(open(None).is_err());
    }
    let control = &written[written.len() - 2];
    let block = control::ControlBlock::decode(control[..].try_into().unwrap(), 1).unwrap();
    assert_eq!(block.keys, [key.name()]);
    assert_eq!(control[32], 1, "older versions must refuse the database");
    let row = TableDef::decode(written.last().unwrap()).unwrap();
    assert_eq!(row.encryption.key_id, 5);
}

/// Catalog row format 7, which only one table has, and version 1 of the layout of that table's
/// rows.
#[test]
fn removed_words_are_written_as_when_they_came() {
    let path = folder(NOW).with_file_name("removed_words.txt");
    let [key, row] = samples::row_of_removed_words();
    let written = [samples::catalog_row_of_removed_words(), key, row];
    let text = written.iter().map(|bytes| hex(bytes) + "\n").collect::<String>();
    if is_blessing() {
        fs::write(&path, &text).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    assert_eq!(written[0][0], 7, "older versions must refuse the definition");
    assert_eq!(TableDef::decode(&written[0]).unwrap().name, removed_words::REMOVED_WORDS);
    let mut words = Vec::new();
    let read = removed_words::each_word(&samples::removed_words(), |word| {
        words.push(word.to_vec());
        Ok(())
    });
    assert_eq!((read.is_ok(), words.len(), &words[1][..]), (true, 4, &b"ancient\0"[..]));
}

/// Manifest format 1.
#[test]
fn manifests_of_snapshots_are_written_as_when_they_came() {
    let path = folder(NOW).with_file_name("manifest.txt");
    let written = samples::manifest().encode();
    if is_blessing() {
        fs::write(&path, &written).unwrap();
    }
    let golden = fs::read(&path).unwrap();
    assert_eq!(String::from_utf8(written).unwrap(), String::from_utf8(golden.clone()).unwrap());
    assert_eq!(Manifest::decode(&golden).unwrap(), samples::manifest());
    let newer = String::from_utf8(golden).unwrap().replacen("snapshot 1", "snapshot 2", 1);
    let refused = Manifest::decode(newer.as_bytes()).map(drop).map_err(|defect| defect.in_place("MANIFEST"));
    assert_newer(refused, "MANIFEST");
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// Epoch states written by version 1: one with transactions, and one of an empty database.
fn old_states() -> Vec<Vec<u8>> {
    read_written(1).lines().filter_map(|line| line.strip_prefix("epoch state: ")).map(unhex).collect()
}

#[test]
fn a_state_of_version_1_is_read_when_no_transaction_is_left_in_it() {
    let [with_transactions, empty] = old_states().try_into().unwrap();
    assert_eq!(State::decode(&empty).unwrap(), State::default());
    assert_unfinished(State::decode(&with_transactions).map(drop), 3);
    let refused = check_version("epoch state format", 2, 1).map_err(|defect| defect.in_place("a state"));
    assert_newer(refused, "a state");
}

fn assert_unfinished(result: Result<(), Error>, transactions: usize) {
    let error = result.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Unsupported { .. }), "{text}");
    assert!(text.contains("older version") && text.contains("close it once"), "{text}");
    assert!(text.contains(&format!("{transactions} transactions")), "{text}");
}

/// The tables of the database by name, with their compression.
const TABLES: [(&str, Compression); 3] = [
    ("plain", Compression { codec: Codec::None, level: 0 }),
    ("lz4", Compression { codec: Codec::Lz4, level: 1 }),
    ("zstd", Compression { codec: Codec::Zstd, level: 3 }),
];

fn contents() -> Contents {
    let text_bytes = |key| if key % 25 == 0 { 3000 } else { 20 + key as usize % 60 };
    let rows = |first: u64| (first..first + 60).map(|key| (key, Row::new(key, text_bytes(key)))).collect();
    TABLES.iter().zip([0, 1000, 2000]).map(|((name, _), first)| ((*name).to_owned(), rows(first))).collect()
}

/// Changes the definition of a table twice: renames its indexes, and renames them back.
fn rename_indexes(db: &Db, name: &str) {
    for end in ["2", ""] {
        let table = db.table(name).unwrap();
        let index = |(from, index): (usize, &cheetah::testing::format::catalog::IndexDef)| AlteredIndex {
            name: format!("{}{end}", index.name.trim_end_matches('2')),
            from: IndexFrom::Kept(from),
        };
        let indexes = table.indexes().iter().enumerate().map(index).collect();
        let extra = table.extra().to_vec();
        db.alter_tables(&[Alteration {
            extra,
            mark: b"mark".to_vec(),
            ..Alteration::of_indexes(table, indexes)
        }])
        .unwrap();
    }
}

/// Changes the columns of a table twice: adds a first column, and drops it again.
fn change_columns(db: &Db, name: &str) {
    let now = db.table(name).unwrap().row_format().clone();
    let wider = RowFormatVersion { fixed: vec![4, 8], ..now.clone() };
    let row = |fixed: usize| {
        let mut row = Vec::new();
        build_row(&[], &vec![1; fixed], &[VarValue::inline(b""); 2], &mut row);
        row
    };
    let vars = vec![Some(0), Some(1)];
    let come =
        FormatChange { bits: vec![], fixed: vec![None, Some(0)], vars: vars.clone(), defaults: row(12) };
    let go = FormatChange { bits: vec![], fixed: vec![Some(1)], vars, defaults: row(8) };
    for (row_format, change) in [(wider, come), (now, go)] {
        let table = db.table(name).unwrap();
        let index = |(from, index): (usize, &cheetah::testing::format::catalog::IndexDef)| AlteredIndex {
            name: index.name.clone(),
            from: IndexFrom::Kept(from),
        };
        let indexes = table.indexes().iter().enumerate().map(index).collect();
        let (extra, mark) = (table.extra().to_vec(), b"mark".to_vec());
        let rows = Some(NewRows { row_format, change });
        db.alter_tables(&[Alteration { rows, extra, mark, ..Alteration::of_indexes(table, indexes) }])
            .unwrap();
    }
}

/// A database with pages of all kinds, images of all codecs, and a log to be redone with every kind
/// of record. It also has a transaction to be rolled back, and a dropped table whose pages are not
/// freed yet.
fn create() -> SimDisk {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    for (name, compression) in TABLES {
        db.create_table(&cheetah::testing::table::TableSpec { compression, ..spec(name) }).unwrap();
    }
    db.create_table(&spec("dropped")).unwrap();
    let mut txn = db.begin();
    for (round, is_last) in [(0, false), (1, true)] {
        for (name, rows) in contents() {
            let table = db.table(&name).unwrap();
            let half = rows.iter().filter(|(key, _)| *key % 2 == round);
            half.for_each(|(key, row)| insert(&mut txn, &table, *key, row).unwrap());
            let (key, row) = (5000 + round, Row::new(5000 + round, 900));
            insert(&mut txn, &table, key, &row).unwrap();
            update(&mut txn, &table, key, &row, key, &Row::new(key, 700)).unwrap();
            delete(&mut txn, &table, key, &Row::new(key, 700)).unwrap();
        }
        txn.commit().unwrap();
        if !is_last {
            db.checkpoint().unwrap();
        }
    }
    db.rename_table("plain", "renamed").unwrap();
    db.rename_table("renamed", "plain").unwrap();
    rename_indexes(&db, "lz4");
    change_columns(&db, "lz4");
    db.truncate_table("dropped").unwrap();
    db.drop_table("dropped").unwrap();
    let (mut loser, plain) = (db.begin(), db.table("plain").unwrap());
    (100..110).for_each(|key| insert(&mut loser, &plain, key, &Row::new(key, 700)).unwrap());
    let savepoint = loser.savepoint();
    insert(&mut loser, &plain, 110, &Row::new(110, 10)).unwrap();
    loser.rollback_to(savepoint).unwrap();
    db.table("lz4").unwrap().advance_auto_increment(77);
    insert(&mut txn, &db.table("lz4").unwrap(), 6000, &Row::new(6000, 5)).unwrap();
    delete(&mut txn, &db.table("lz4").unwrap(), 6000, &Row::new(6000, 5)).unwrap();
    // The commit makes the entire log durable, including the records of the loser.
    txn.commit().unwrap();
    std::mem::forget(loser);
    disk.crash(CrashPolicy::Everything, 1)
}

/// The files of a database of this version that was not closed (`database`) or was closed
/// (`closed`).
fn files(version: u32, name: &str) -> Vec<(String, PathBuf)> {
    let root = folder(version).join(name);
    let list = |folder: &str| {
        let entries = fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        let files = entries.filter(|path| path.is_file());
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        let relative = |path: PathBuf| match folder {
            "" => (name(&path), path),
            _ => (format!("{folder}/{}", name(&path)), path),
        };
        files.map(relative).collect::<Vec<_>>()
    };
    let folders = ["", "seg", "wal", "chg"].into_iter().filter(|folder| root.join(folder).is_dir());
    folders.flat_map(list).collect()
}

/// A database of this version on a simulated disk.
fn golden(version: u32, name: &str) -> SimDisk {
    let disk = SimDisk::new();
    ["seg", "wal", "chg"].into_iter().for_each(|folder| disk.create_dir(folder).unwrap());
    for (name, path) in files(version, name) {
        disk.put(&name, &fs::read(path).unwrap()).unwrap();
    }
    disk
}

fn bless_database(root: &Path, disk: &SimDisk) {
    let _ = fs::remove_dir_all(root);
    for folder in ["", "seg", "wal", "chg"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    for path in disk.paths().into_iter().filter(|path| path != "LOCK" && !path.contains("reserve")) {
        fs::write(root.join(&path), disk.contents(&path).unwrap()).unwrap();
    }
}

fn assert_contents(db: &Db) {
    assert_eq!(db.table_names(), contents().into_keys().collect::<Vec<_>>());
    for (name, rows) in contents() {
        let table = db.table(&name).unwrap();
        assert_eq!(all_rows(&mut db.begin(), &table).unwrap(), rows, "{name}");
        assert_eq!(check(db, &table).unwrap(), Ok(rows.len() as u64), "{name}");
    }
    assert_eq!(db.table("lz4").unwrap().auto_increment(), 77);
}

#[test]
fn databases_of_all_versions_open_with_exactly_their_contents() {
    if is_blessing() {
        bless_database(&folder(NOW).join("database"), &create());
    }
    for disk in [golden(NOW, "database"), golden(3, "database"), golden(2, "database"), golden(1, "closed")] {
        for _ in 0..2 {
            let db = open(&disk).unwrap();
            assert_contents(&db);
            db.close().unwrap();
        }
    }
    let of_before =
        [files(1, "database"), files(1, "closed"), files(2, "database"), files(3, "database")].concat();
    let files = [of_before, files(NOW, "database")].concat();
    let bytes: u64 = files.iter().map(|(_, path)| fs::metadata(path).unwrap().len()).sum();
    assert!(bytes < 900 << 10, "{bytes}");
}

/// A database that was not closed, with a table that has pending changes, and the table's rows.
fn create_with_waiting_changes() -> (SimDisk, Rows) {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let table = db.create_table(&spec("t")).unwrap();
    let mut rows = (0..600).map(|key| (key, Row::new(key, 40))).collect::<Rows>();
    let mut txn = db.begin();
    rows.iter().for_each(|(key, row)| insert(&mut txn, &table, *key, row).unwrap());
    txn.commit().unwrap();
    db.checkpoint().unwrap();
    for key in (0..600).step_by(11) {
        let new = Row::new(1000 + key, 41);
        update(&mut txn, &table, key, &rows[&key], key, &new).unwrap();
        rows.insert(key, new);
    }
    txn.commit().unwrap();
    db.checkpoint().unwrap();
    std::mem::forget(txn);
    let left = disk.crash(CrashPolicy::Everything, 1);
    std::mem::forget(db);
    (left, rows)
}

#[test]
fn a_database_with_changes_that_wait_opens_with_them() {
    let (created, rows) = create_with_waiting_changes();
    let root = folder(NOW).with_file_name("saved");
    if is_blessing() {
        bless_database(&root, &created);
    }
    let disk = golden(NOW, "../saved");
    assert!(disk.paths().iter().any(|path| path.starts_with("chg/")), "{:?}", disk.paths());
    for disk in [created, disk] {
        let db = open(&disk).unwrap();
        let table = db.table("t").unwrap();
        assert_eq!(all_rows(&mut db.begin(), &table).unwrap(), rows);
        assert_eq!(check(&db, &table).unwrap(), Ok(rows.len() as u64));
    }
}

#[test]
fn a_database_of_version_1_with_transactions_to_be_finished_is_refused_and_keeps_its_log() {
    let disk = golden(1, "database");
    let log = |disk: &SimDisk| {
        let paths = disk.paths().into_iter().filter(|path| path.starts_with("wal/"));
        paths.map(|path| (disk.contents(&path).unwrap(), path)).collect::<Vec<_>>()
    };
    let before = log(&disk);
    for _ in 0..2 {
        assert_unfinished(open(&disk).map(drop), 1);
        assert!(log(&disk) == before);
    }
}

#[test]
fn the_program_that_wrote_the_database_still_writes_one_like_it() {
    let disk = create();
    assert_contents(&open(&disk).unwrap());
}

/// Applies `change` to the file with this name, and opens and reads the entire database.
fn read_all(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> Result<(), Error> {
    let disk = golden(NOW, "database");
    let path = disk.paths().into_iter().rfind(|path| path.starts_with(name)).unwrap();
    let mut bytes = disk.contents(&path).unwrap();
    change(&mut bytes);
    disk.put(&path, &bytes).unwrap();
    let db = open(&disk)?;
    for name in db.table_names() {
        all_rows(&mut db.begin(), &db.table(&name)?)?;
    }
    Ok(())
}

/// Sets the version at offset `at` of the block at the start of a file, and repairs the block's
/// checksum.
fn raise(bytes: &mut [u8], at: usize, block_bytes: usize) {
    let mut block = bytes[..block_bytes].to_vec();
    block[at] = 9;
    repair::block(&mut block, block_bytes, block_bytes - 4);
    bytes[..block_bytes].copy_from_slice(&block);
}

fn assert_newer(result: Result<(), Error>, place: &str) {
    let error = result.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Unsupported { .. }), "{text}");
    assert!(text.contains(place) && text.contains("written by a newer version"), "{text}");
}

#[test]
fn files_of_a_newer_version_are_refused_by_name() {
    let control = |bytes: &mut Vec<u8>| {
        let (first, second) = bytes.split_at_mut(control::COPY_BYTES);
        raise(first, 8, control::COPY_BYTES);
        raise(second, 8, control::COPY_BYTES);
    };
    assert_newer(read_all("CONTROL", control), "CONTROL");
    assert_newer(read_all("map-", |bytes| raise(bytes, 8, map_block::FILE_HEADER_BYTES)), "map-");
    assert_newer(read_all("wal/", |bytes| raise(bytes, 8, log_frame::HEADER_BYTES)), "wal/");
    let mut header = samples::file_headers()[0].clone();
    raise(&mut header, 8, segment_header::HEADER_BYTES);
    let refused = segment_header::SegmentHeader::decode(header.first_chunk().unwrap());
    assert_newer(refused.map(drop).map_err(|defect| defect.in_place("seg/1")), "seg/1");
}

#[test]
fn images_and_records_of_a_newer_version_are_refused() {
    let mut image = samples::images(Codec::None).remove(0);
    image[24] = 9;
    let crc = image::seal(&mut image, samples::ADDRESS);
    let (pid, tree, address) = (samples::PID, samples::TREE, samples::ADDRESS);
    let location = Location::of_address(address, image.len() as u32, crc);
    let refused = image::check(&image, &ImageRef { pid, tree, location });
    assert_newer(refused.map(drop), &format!("page {pid} of tree {}", TreeId(16)));
    let mut row = samples::catalog_rows().remove(0);
    row[0] = 9;
    assert_newer(TableDef::decode(&row).map(drop), "catalog row");
    let mut statistics = samples::statistics_rows().remove(0);
    statistics[0] = 9;
    let refused = cheetah::testing::format::statistics::IndexStatistics::decode(&statistics);
    assert_newer(refused.map(drop), "statistics row");
    let mut state = samples::epoch_states().remove(0);
    state[0] = 9;
    assert_newer(State::decode(&state).map(drop), "epoch state");
}

//! Images that name a wrong page, a damaged page or no dictionary page as their dictionary.

use super::*;

/// A dictionary's page has other content than the images that name it expect. With that content,
/// zstd might decode an image to wrong bytes.
#[test]
fn another_dictionary_in_the_place_of_one_is_refused() {
    let db = database();
    let pids = add_all(&db, TREE, text);
    assert!(db.pool.trial(TREE).run().unwrap());
    pids.iter().for_each(|pid| change(&db, *pid));
    checkpoint(&db);
    let named: Vec<_> = pids.iter().filter(|pid| names_dictionary(&db, **pid)).copied().collect();
    assert!(named.len() > 100, "{}", named.len());
    let page = dictionary_pages(&db)[0];
    let db = after_power_cut(db);
    let mut content = db.pool.read_dictionary(TREE, page).unwrap().unwrap();
    content.rotate_left(7);
    let class =
        PageClass::ALL.into_iter().find(|class| content_capacity(class.bytes(512)) >= content.len()).unwrap();
    let mut bytes = PageBuf::new(class.bytes(512));
    build_content(&mut bytes, PageKind::Dictionary, TREE, PageId::NONE, 0).append_content(&content).unwrap();
    let (row_format, freeze_below, compression) =
        (RowFormatVersion::opaque(), TxnId(0), Compression::default());
    let how = Encoding { row_format: &row_format, compression, freeze_below, dictionary: None, lock: None };
    let mut image = Vec::new();
    Workspace::default().encode(&bytes, page, db.pool.epoch(), &how, &mut image);
    let location = db.pool.segments.append(Stream::Hot, &mut image).unwrap();
    let mtr = db.pool.enter();
    db.pool.install(&mut db.pool.table.entry(page), page, location, mtr.epoch());
    drop(mtr);
    for pid in named {
        let refused = content_error(&db, pid);
        assert!(refused.contains("not the dictionary"), "{refused}");
    }
}

fn content_error(db: &Database, pid: PageId) -> String {
    content(db, pid).unwrap_err().to_string()
}

/// A dictionary that cannot be read is requested once. After that, images are written with the
/// previous dictionary, or without a dictionary.
#[test]
fn nothing_more_is_written_with_a_damaged_dictionary() {
    let db = database();
    let pids = add_all(&db, TREE, text);
    assert!(db.pool.trial(TREE).run().unwrap());
    checkpoint(&db);
    let page = dictionary_pages(&db)[0];
    let db = after_power_cut(db);
    // The image names a page that is not a dictionary, which simulates damage.
    plant(&db, page, pids[0]);
    for expected in [true, false] {
        let new = add(&db, TREE, &text(5, 400));
        checkpoint(&db);
        assert!(!names_dictionary(&db, new));
        assert_eq!(db.pool.dictionary_due().is_err(), expected);
    }
    assert_eq!(db.pool.dictionaries().len(), 1, "the tree keeps the dictionary");
}

/// Writes an image of a page that names another page as its dictionary.
fn plant(db: &Database, pid: PageId, named: PageId) {
    let mut bytes = PageBuf::new(512);
    let mut page = build_content(&mut bytes, PageKind::Blob, TREE, PageId::NONE, 0);
    page.append_content(&text(3, 400)).unwrap();
    let compression = Compression { codec: Codec::Zstd, level: 1 };
    let primer = Primer::new(named, &text(3, 400), compression).unwrap();
    let (row_format, freeze_below) = (RowFormatVersion::opaque(), TxnId(0));
    let how = Encoding {
        row_format: &row_format,
        compression,
        freeze_below,
        dictionary: Some(&primer),
        lock: None,
    };
    let mut image = Vec::new();
    Workspace::default().encode(&bytes, pid, db.pool.epoch(), &how, &mut image);
    let location = db.pool.segments.append(Stream::Blob, &mut image).unwrap();
    let mtr = db.pool.enter();
    db.pool.install(&mut db.pool.table.entry(pid), pid, location, mtr.epoch());
}

/// The named page is in memory, and a thread is changing it. The thread may be the reader itself.
#[test]
fn a_reader_does_not_wait_for_the_latch_of_what_an_image_names() {
    let db = database();
    let pids: Vec<_> = (0..2).map(|number| add(&db, TREE, &text(number, 400))).collect();
    checkpoint(&db);
    let db = after_power_cut(db);
    plant(&db, pids[0], pids[1]);
    let named = db.pool.fetch(pids[1]).unwrap().unwrap();
    let mtr = db.pool.enter();
    let latched = named.write(&mtr);
    assert!(db.pool.dictionary(TREE, pids[1]).is_err());
    drop(latched);
}

/// Images name themselves, each other, and a page that is no dictionary. One thread and several
/// threads read them.
#[test]
fn whatever_an_image_names_its_reader_ends() {
    for round in 0..3 {
        let db = database();
        let pids: Vec<_> = (0..4).map(|number| add(&db, TREE, &text(number, 400))).collect();
        checkpoint(&db);
        let db = after_power_cut(db);
        let named = [pids[0], pids[2], pids[1], PageId(7_000)];
        pids.iter().zip(named).for_each(|(pid, named)| plant(&db, *pid, named));
        let read = |pid: PageId| {
            let refused = content(&db, pid);
            assert!(matches!(refused, Err(Error::Corruption { .. })), "{pid}: {refused:?}");
            assert!(db.pool.check_image(pid).is_err());
        };
        if round == 0 {
            pids.iter().for_each(|pid| read(*pid));
        } else {
            let pool = &db.pool;
            std::thread::scope(|scope| {
                for pid in pids.iter().chain(&pids) {
                    scope.spawn(move || assert!(pool.fetch(*pid).is_err()));
                }
            });
        }
    }
}

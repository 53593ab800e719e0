//! Tests dictionaries in the pool: when they are made, how they survive crashes, and reads while
//! they are not in memory.

mod named;

use crate::base::{planted, Config, Error, PageId, TreeId, TxnId};
use crate::format::image::{Codec, Compression, Encoding, ImageHeader, Primer, Workspace};
use crate::format::page::{build_content, build_page, content_capacity, PageBuf, PageKind, PageView};
use crate::format::row::RowFormatVersion;
use crate::format::state::State;
use crate::keys::Closing;
use crate::memory::MemoryUse;
use crate::pool::testing::{Database, TREE};
use crate::pool::{DictionaryDue, EpochState, LentTree, PageClass, TreeDef};
use crate::segment::{ImageBuffer, Stream};
use cheetah_io::rng::Rng;
use cheetah_io::sim::CrashPolicy;
use std::collections::HashSet;
use std::sync::Arc;

const OTHER: TreeId = TreeId(17);
const PAGES: u64 = 160;

fn register(db: &Database, codec: Codec) {
    for id in (0..4).map(|no| TreeId(TREE.0 + no)) {
        let compression = Compression { codec, level: 1 };
        db.pool.register_tree(TreeDef {
            id,
            row_format: RowFormatVersion::opaque(),
            compression,
            closing: Closing::Never,
        });
    }
}

fn database() -> Database {
    let db = Database::new(&Config::tiny());
    register(&db, Codec::Zstd);
    db
}

/// Sentences of sixty words, which are the same on all pages. One page seldom repeats a word.
fn text(number: u64, bytes: usize) -> Vec<u8> {
    let mut rng = Rng::new(number);
    let mut text = Vec::new();
    while text.len() < bytes {
        let word = rng.below(60);
        text.extend_from_slice(format!("{:x} ", word.wrapping_mul(0x9e37_79b9_7f4a_7c15)).as_bytes());
    }
    text.truncate(bytes);
    text
}

/// The same text on all pages: no further dictionary is better than the first.
fn same(_: u64, bytes: usize) -> Vec<u8> {
    text(1, bytes)
}

fn noise(number: u64, bytes: usize) -> Vec<u8> {
    Rng::new(number).bytes(bytes)
}

fn add(db: &Database, tree: TreeId, content: &[u8]) -> PageId {
    db.pool.make_room(1).unwrap();
    let mtr = db.pool.enter();
    let page = db.pool.allocate(&mtr, tree, PageClass::Base);
    let mut bytes = page.write(&mtr);
    build_content(&mut bytes, PageKind::Blob, tree, PageId::NONE, 0).append_content(content).unwrap();
    page.pid()
}

/// Adds pages to a tree. A page's content follows from its position.
fn add_all(db: &Database, tree: TreeId, content: fn(u64, usize) -> Vec<u8>) -> Vec<PageId> {
    (0..PAGES).map(|number| add(db, tree, &content(number, content_capacity(512)))).collect()
}

fn content(db: &Database, pid: PageId) -> Result<Vec<u8>, Error> {
    let page = db.pool.fetch(pid)?.unwrap();
    let bytes = page.read();
    Ok(PageView::new(&bytes).content().to_vec())
}

fn dictionary_pages(db: &Database) -> Vec<PageId> {
    db.pool.dictionaries_and_pages(TREE).0
}

fn assert_texts(db: &Database, pids: &[PageId]) {
    for (number, pid) in pids.iter().enumerate() {
        assert_eq!(content(db, *pid).unwrap(), text(number as u64, content_capacity(512)));
    }
}

fn epoch_state(db: &Database) -> EpochState {
    let state = State { dictionaries: db.pool.dictionaries(), ..State::default() };
    EpochState { bytes: state.encode(), ..EpochState::default() }
}

fn checkpoint(db: &Database) {
    db.checkpoint_of(|| epoch_state(db)).unwrap();
}

/// Opens the database after a power cut, as recovery does.
fn after_power_cut(db: Database) -> Database {
    let disk = db.disk.crash(CrashPolicy::SyncedOnly, 1);
    let db = db.crash(disk);
    register(&db, Codec::Zstd);
    db.pool.adopt_dictionaries(&State::decode(&db.state).unwrap().dictionaries);
    db
}

#[test]
fn a_tree_of_pages_that_are_alike_gets_a_dictionary_that_outlives_a_crash() {
    let stored = [false, true].map(|with| {
        let db = database();
        let pids = add_all(&db, TREE, text);
        assert_eq!(db.pool.dictionary_due().unwrap(), DictionaryDue::Trial(TREE));
        assert!(!with || db.pool.trial(TREE).run().unwrap());
        assert!(!with || !db.pool.trial(TREE).is_due());
        pids.iter().for_each(|pid| change(&db, *pid));
        checkpoint(&db);
        let db = after_power_cut(db);
        assert_texts(&db, &pids);
        let made = dictionary_pages(&db);
        assert_eq!(made.len(), usize::from(with));
        made.iter().for_each(|page| db.pool.check_dictionary(TREE, *page).unwrap());
        // The first written page requests the dictionary. Later pages use it again.
        add(&db, TREE, &text(7, content_capacity(512)));
        checkpoint(&db);
        while db.pool.dictionary_due().unwrap() != DictionaryDue::Nothing {}
        let pid = add(&db, TREE, &text(7, content_capacity(512)));
        checkpoint(&db);
        let image = db.pool.table.entry(pid).location().unwrap().stored_bytes;
        let db = after_power_cut(db);
        assert_eq!(content(&db, pid).unwrap(), text(7, content_capacity(512)));
        (db.pool.tree_bytes(TREE).stored_bytes, image)
    });
    assert!(stored[1].0 * 10 < stored[0].0 * 9 && stored[1].1 < stored[0].1, "{stored:?}");
}

/// A database of four trees with a dictionary each, just opened.
fn four_trees(config: &Config) -> (Database, Vec<(TreeId, Vec<PageId>)>) {
    let db = Database::new(config);
    let trees = (0..4).map(|no| TreeId(TREE.0 + no));
    let pids = trees.map(|tree| {
        let compression = Compression { codec: Codec::Zstd, level: 1 };
        db.pool.register_tree(TreeDef {
            id: tree,
            row_format: RowFormatVersion::opaque(),
            compression,
            closing: Closing::Never,
        });
        let pids = add_all(&db, tree, text);
        assert!(db.pool.trial(tree).run().unwrap());
        pids.iter().for_each(|pid| change(&db, *pid));
        (tree, pids)
    });
    let pids = pids.collect();
    checkpoint(&db);
    (after_power_cut(db), pids)
}

/// Marks a page as changed, so that it is written again.
fn change(db: &Database, pid: PageId) {
    db.pool.make_room(1).unwrap();
    let page = db.pool.fetch(pid).unwrap().unwrap();
    let mtr = db.pool.enter();
    page.write(&mtr).first_mut().unwrap();
}

/// Readers alternate between images of four trees. They make no state for writing.
#[test]
fn a_dictionary_is_prepared_once_for_all_who_read_with_it() {
    let (db, trees) = four_trees(&Config { buffer_pool_bytes: 128 << 20, ..Config::tiny() });
    for round in 0..3 {
        let images = trees.iter().flat_map(|(_, pids)| pids.iter().skip(round).step_by(3));
        images.for_each(|pid| db.pool.check_image(*pid).unwrap());
    }
    trees.iter().for_each(|(_, pids)| assert_texts(&db, pids));
    assert_eq!(db.pool.counters.dictionary_loads.get(), 4);
    assert_eq!(db.pool.counters.dictionary_misses.get(), 0);
}

/// Reading does not make the state for writing, which takes five times the memory.
#[test]
fn readers_make_nothing_that_only_writers_need() {
    let (db, trees) = four_trees(&Config { buffer_pool_bytes: 128 << 20, ..Config::tiny() });
    let before = db.pool.memory().used(MemoryUse::Scratch);
    trees.iter().for_each(|(_, pids)| db.pool.check_image(pids[0]).unwrap());
    let taken = db.pool.memory().used(MemoryUse::Scratch) - before;
    let loads = db.pool.counters.dictionary_loads.get() as usize;
    assert!(loads == 4 && taken < 4 * (150 << 10) + (1 << 20), "{taken}");
    db.pool.load_primers();
    let misses = db.pool.counters.dictionary_misses.get();
    trees.iter().for_each(|(_, pids)| change(&db, pids[1]));
    checkpoint(&db);
    assert_eq!(db.pool.counters.dictionary_misses.get(), misses, "a startup prepares to write");
    assert!(trees.iter().all(|(_, pids)| names_dictionary(&db, pids[1])));
}

/// Pages of four trees are written, and memory lacks room for four dictionaries. Each step of
/// background work replaces one dictionary, and reports it.
#[test]
fn dictionaries_that_push_each_other_out_do_so_one_at_a_time() {
    let (db, trees) = four_trees(&Config::tiny());
    while db.pool.dictionary_due().unwrap() != DictionaryDue::Nothing {}
    trees.iter().for_each(|(_, pids)| change(&db, pids[0]));
    checkpoint(&db);
    let due: Vec<_> = std::iter::from_fn(|| {
        Some(db.pool.dictionary_due().unwrap()).filter(|due| *due != DictionaryDue::Nothing)
    })
    .collect();
    assert!(due.len() >= 3 && due[1..].iter().all(|due| *due == DictionaryDue::Replaced), "{due:?}");
}

/// The sampled pages contain too few leaves for a dictionary.
#[test]
fn no_dictionary_is_made_of_a_few_pages() {
    let db = database();
    for number in 0..20 {
        add(&db, TREE, &text(number, 400));
    }
    for _ in 0..2 * PAGES {
        let mtr = db.pool.enter();
        let page = db.pool.allocate(&mtr, TREE, PageClass::Base);
        build_page(&mut page.write(&mtr), PageKind::Inner, 1, TREE, &[], None, PageId::NONE);
    }
    assert!(!db.pool.trial(TREE).run().unwrap());
}

#[test]
fn threads_that_miss_a_dictionary_at_once_prepare_it_once() {
    let (db, trees) = four_trees(&Config { buffer_pool_bytes: 128 << 20, ..Config::tiny() });
    let pool = &db.pool;
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let pids = &trees[thread % 2].1;
            scope.spawn(move || pids.iter().for_each(|pid| drop(pool.fetch(*pid).unwrap())));
        }
    });
    assert_eq!(pool.counters.dictionary_loads.get(), 2);
}

/// With room for only one dictionary, everything can still be read and written.
#[test]
fn more_dictionaries_than_memory_has_room_for_cost_time_and_nothing_else() {
    let (db, trees) = four_trees(&Config::tiny());
    for round in 0..4 {
        trees
            .iter()
            .for_each(|(_, pids)| assert_eq!(content(&db, pids[round]).unwrap(), text(round as u64, 448)));
    }
    assert!(db.pool.counters.dictionary_loads.get() > 4);
    trees.iter().for_each(|(_, pids)| change(&db, pids[0]));
    checkpoint(&db);
    assert!(db.pool.counters.dictionary_misses.get() >= 4);
}

/// CHECK compares the pages that it has seen with the page count of the tree. A dictionary is in
/// both or in neither.
#[test]
fn a_dictionary_is_listed_at_the_moment_at_which_its_page_counts() {
    let db = database();
    add_all(&db, TREE, text);
    let state = db.pool.trees.get(TREE);
    let pool = &db.pool;
    std::thread::scope(|scope| {
        let looks = scope.spawn(|| {
            let mut looks = 0;
            loop {
                let (listed, pages) = pool.dictionaries_and_pages(TREE);
                assert_eq!(pages, PAGES + listed.len() as u64);
                looks += 1;
                if listed.len() == 8 {
                    return looks;
                }
            }
        });
        for _ in 0..8 {
            let level = Compression { codec: Codec::Zstd, level: 1 };
            let made = Primer::new(PageId::NONE, &text(1, 900), level).unwrap();
            pool.add_dictionary(TREE, &state, &text(1, 900), made).unwrap();
        }
        assert!(looks.join().unwrap() > 0);
    });
}

#[test]
fn trials_of_a_tree_at_the_same_time_make_one_dictionary() {
    let db = database();
    add_all(&db, TREE, same);
    let pool = &db.pool;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| pool.trial(TREE).run().unwrap());
        }
    });
    assert_eq!(dictionary_pages(&db).len(), 1);
}

/// A thread that would make the trial in passing does not wait, and the trial remains due.
#[test]
fn a_trial_that_is_due_is_put_off_while_others_make_one() {
    let db = database();
    add_all(&db, TREE, text);
    assert_eq!(db.pool.dictionary_due().unwrap(), DictionaryDue::Trial(TREE));
    let others = db.pool.trial(TREE).lock().lock();
    assert!(!db.pool.trial(TREE).run_due().unwrap());
    db.pool.trial(TREE).run_in_passing().unwrap();
    drop(others);
    assert_eq!(db.pool.dictionary_due().unwrap(), DictionaryDue::Trial(TREE));
    assert!(db.pool.trial(TREE).run_due().unwrap());
    assert_eq!(dictionary_pages(&db).len(), 1);
}

/// A thread that is about to write all pages waits, and makes a trial that no thread has begun. A
/// trial counts as made only after it has ended.
#[test]
fn a_trial_is_finished_by_whoever_needs_its_outcome() {
    let db = database();
    add_all(&db, TREE, text);
    add_all(&db, OTHER, noise);
    let pool = &db.pool;
    assert!(!pool.trial(TREE).has_been_made());
    let others = pool.trial(TREE).lock().lock();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| pool.trial(TREE).finish().unwrap());
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!waits.is_finished() && !pool.trial(TREE).has_been_made());
        drop(others);
    });
    assert!(pool.trial(TREE).has_been_made());
    pool.trial(TREE).finish().unwrap();
    assert_eq!(dictionary_pages(&db).len(), 1, "the trial is not made again");
    pool.trial(OTHER).finish().unwrap();
    assert!(pool.trial(OTHER).has_been_made());
    assert_eq!(dictionary_pages(&db).len(), 1, "noise has no dictionary");
}

/// Pages of a load wait for the first trial, and are written with its dictionary.
#[test]
fn pages_of_a_load_are_written_with_the_first_dictionary() {
    let db = Database::new(&Config { buffer_pool_bytes: 16 << 20, ..Config::tiny() });
    register(&db, Codec::Zstd);
    let pids = add_all(&db, TREE, text);
    assert!(db.pool.trial(TREE).may_write_early() && !db.pool.trial(TREE).has_been_made());
    db.pool.note_finished(pids.iter().copied());
    let written = || db.pool.counters.writes.get() + db.pool.counters.blob_writes.get();
    for _ in 0..3 {
        assert_eq!(db.pool.clean_step().unwrap(), 0);
        // From the second round on, another thread seems to make the trial.
        db.pool.trees.get(TREE).put_trial_off(PAGES + 64);
    }
    assert!(db.pool.trial(TREE).run().unwrap());
    db.pool.clean_step().unwrap();
    assert_eq!(written(), PAGES);
    let named = pids.iter().filter(|pid| names_dictionary(&db, **pid)).count();
    assert!(named * 10 > pids.len() * 9, "{named} of {}", pids.len());
}

/// The background makes a trial of a tree without a table only while the builder lends the tree.
/// The builder waits for a trial in progress.
#[test]
fn a_tree_that_is_lent_gets_its_dictionary_from_others_until_it_is_rolled_back() {
    let db = database();
    add_all(&db, TREE, text);
    add_all(&db, OTHER, text);
    let pool = &db.pool;
    assert_eq!(pool.trial(TREE).try_if_lent().unwrap(), None, "the tree is not lent");
    let lent = LentTree::lend(pool, TREE, Arc::new(()));
    assert_eq!(pool.trial(TREE).try_if_lent().unwrap(), Some(true));
    assert_eq!(pool.trial(TREE).try_if_lent().unwrap(), Some(false), "no other trial is due");
    assert_eq!(dictionary_pages(&db).len(), 1);
    drop(lent);
    // The builder ends while the background is about to make a trial.
    let keeper = Arc::new(());
    let lent = LentTree::lend(pool, OTHER, keeper.clone());
    let others = pool.trial(OTHER).lock().lock();
    assert_eq!(pool.trial(OTHER).try_if_lent().unwrap(), Some(false), "others make a trial");
    let of_background = lent.lent();
    let under_way = of_background.lock();
    std::thread::scope(|scope| {
        let takes_back = scope.spawn(|| drop(lent));
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(
            !takes_back.is_finished() && Arc::strong_count(&keeper) == 2,
            "the tree was dropped during a trial"
        );
        drop(others);
        drop(under_way);
    });
    assert_eq!(Arc::strong_count(&keeper), 1);
    assert!(!try_after_building(&db), "the tree was taken back");
    let bug = planted::plant("pool: keep a tree that was taken back");
    assert!(try_after_building(&db));
    assert!(bug.reached_count() > 0);
}

/// Returns whether the background makes a due trial of a tree that is no longer built and may be
/// dropped.
fn try_after_building(db: &Database) -> bool {
    let tree = TreeId(TREE.0 + 2);
    drop(LentTree::lend(&db.pool, tree, Arc::new(())));
    add_all(db, tree, text);
    assert!(db.pool.trial(tree).is_due());
    db.pool.trial(tree).try_if_lent().unwrap() == Some(true)
}

#[test]
fn a_tree_has_eight_dictionaries_at_most() {
    let db = database();
    add_all(&db, TREE, text);
    let state = db.pool.trees.get(TREE);
    for _ in 0..8 {
        let level = Compression { codec: Codec::Zstd, level: 1 };
        let useless = noise(1, 900);
        let made = Primer::new(PageId::NONE, &useless, level).unwrap();
        db.pool.add_dictionary(TREE, &state, &useless, made).unwrap();
    }
    assert!(!db.pool.trial(TREE).run().unwrap());
    assert_eq!(dictionary_pages(&db).len(), 8);
}

#[test]
fn the_newest_pages_are_looked_for_among_so_many_numbers_only() {
    let db = database();
    let old = add_all(&db, TREE, noise);
    add_all(&db, OTHER, noise);
    assert_eq!(db.pool.newest_pages_of(TREE, 1000, 1000), old);
    assert_eq!(db.pool.newest_pages_of(TREE, 10, 1000), old[old.len() - 10..]);
    assert_eq!(db.pool.newest_pages_of(TREE, 1000, PAGES as usize), []);
    assert_eq!(db.pool.newest_pages_of(TREE, 1000, PAGES as usize + 30), old[old.len() - 30..]);
}

#[test]
fn after_a_startup_trees_without_a_dictionary_are_tried_and_others_when_they_have_grown() {
    let db = database();
    for tree in [TREE, OTHER] {
        add_all(&db, tree, text);
    }
    assert!(db.pool.trial(TREE).run().unwrap());
    checkpoint(&db);
    let db = after_power_cut(db);
    assert!(!db.pool.trial(TREE).is_due() && db.pool.trial(OTHER).is_due());
    assert_eq!(db.pool.dictionary_due().unwrap(), DictionaryDue::Nothing, "neither tree grows");
    add(&db, TREE, &text(1, 400));
    add(&db, OTHER, &text(1, 400));
    assert_eq!(db.pool.dictionary_due().unwrap(), DictionaryDue::Trial(OTHER));
    for _ in 0..20 {
        add(&db, OTHER, &text(1, 400));
    }
    assert_eq!(db.pool.dictionary_due().unwrap(), DictionaryDue::Nothing, "the trial was reported once");
}

#[test]
fn the_trees_that_a_database_has_for_itself_are_not_tried() {
    let db = database();
    (0..PAGES).for_each(|number| drop(content(&db, add(&db, TreeId::UNDO, &text(number, 400)))));
    assert_eq!(db.pool.dictionary_due().unwrap(), DictionaryDue::Nothing);
}

/// On a full disk no dictionary is made, and threads that make a trial in passing receive no error.
/// Once the disk has space, a dictionary is made.
#[test]
fn an_error_of_a_trial_is_told_and_not_passed_on() {
    let db = database();
    add_all(&db, TREE, text);
    checkpoint(&db);
    db.disk.set_space(Some(db.disk.used_bytes()));
    assert!(matches!(db.pool.trial(TREE).run(), Err(Error::DiskFull(_))));
    db.pool.trial(TREE).run_in_passing().unwrap();
    let errors = db.pool.health.background_errors().list();
    assert!(errors.iter().any(|(place, _)| *place == "making dictionaries"), "{errors:?}");
    assert!(dictionary_pages(&db).is_empty());
    db.disk.set_space(None);
    assert!(db.pool.trial(TREE).run().unwrap());
}

#[test]
fn no_dictionary_is_made_that_does_not_pay() {
    let db = database();
    add_all(&db, TREE, noise);
    for number in 0..20 {
        add(&db, OTHER, &text(number, 400));
    }
    assert!(!db.pool.trial(TREE).run().unwrap() && !db.pool.trial(OTHER).run().unwrap());
    let db = Database::new(&Config::tiny());
    register(&db, Codec::Lz4);
    add_all(&db, TREE, text);
    assert!(!db.pool.trial(TREE).run().unwrap() && !db.pool.trial(TreeId(99)).run().unwrap());
    assert_eq!((db.pool.dictionaries(), db.pool.tree_bytes(TREE).pages), (vec![], PAGES));
}

#[test]
fn the_next_dictionary_is_tried_when_the_tree_has_grown_and_must_be_better() {
    let db = database();
    add_all(&db, TREE, same);
    assert!(db.pool.trial(TREE).run().unwrap());
    assert!(!db.pool.trial(TREE).run().unwrap(), "the same pages give no better dictionary");
    for number in 0..4 * PAGES {
        let other = text(number, 400).iter().map(|byte| byte ^ 0x55).collect::<Vec<_>>();
        add(&db, TREE, &other);
    }
    assert!(db.pool.trial(TREE).is_due() && db.pool.trial(TREE).run().unwrap());
    assert_eq!(dictionary_pages(&db).len(), 2);
    checkpoint(&db);
    let db = after_power_cut(db);
    assert_eq!(dictionary_pages(&db).len(), 2);
}

/// D1: pages of epoch g are written while g+1 already has a dictionary. An image that names this
/// dictionary cannot be read after a crash to g.
fn dictionary_between_epoch_switch_and_write() -> Result<(), Error> {
    // All pages stay in memory until the checkpoint writes them.
    let db = Database::new(&Config { buffer_pool_bytes: 1 << 20, ..Config::tiny() });
    register(&db, Codec::Zstd);
    let pids = add_all(&db, TREE, text);
    let pool = db.pool.clone();
    let (checkpoint, state) = pool.end_epoch(|_| epoch_state(&db));
    assert!(db.pool.trial(TREE).run().unwrap());
    checkpoint.commit(&db.map, &state).unwrap();
    let db = after_power_cut(db);
    pids.iter().try_for_each(|pid| content(&db, *pid).map(drop))?;
    assert_texts(&db, &pids);
    Ok(())
}

#[test]
fn an_image_names_no_dictionary_of_the_next_epoch() {
    dictionary_between_epoch_switch_and_write().unwrap();
    let bug = planted::plant("pool: name a dictionary of the next epoch");
    assert!(dictionary_between_epoch_switch_and_write().is_err());
    assert!(bug.reached_count() > 0);
}

/// A checkpoint is abandoned after it has written pages with a dictionary of its epoch. The pages
/// and the dictionary then belong to the next epoch.
#[test]
fn a_dictionary_of_an_epoch_that_was_given_up_is_in_the_next() {
    let db = Database::new(&Config { buffer_pool_bytes: 1 << 20, ..Config::tiny() });
    register(&db, Codec::Zstd);
    let pids = add_all(&db, TREE, text);
    assert!(db.pool.trial(TREE).run().unwrap());
    let (mut given_up, _) = db.pool.end_epoch(|_| epoch_state(&db));
    assert!(given_up.write_some(100).unwrap() > 0);
    drop(given_up);
    let named = |db: &Database| pids.iter().filter(|pid| names_dictionary(db, **pid)).count();
    assert!(named(&db) > 20, "{}", named(&db));
    checkpoint(&db);
    let db = after_power_cut(db);
    assert_eq!((dictionary_pages(&db).len(), named(&db)), (1, pids.len()));
    assert_texts(&db, &pids);
}

/// Returns whether the image of a page names a dictionary.
fn names_dictionary(db: &Database, pid: PageId) -> bool {
    let Some(stored) = db.pool.table.entry(pid).image(pid) else { return false };
    let mut image = ImageBuffer::default();
    db.pool.segments.read_unchecked(&stored, &mut image).unwrap();
    ImageHeader::read(&image).unwrap().dictionary.is_some()
}

/// Between the epoch switch and the commit of an epoch, all pages of the tree are freed, its
/// dictionary first. The tree remains readable in this epoch until the next epoch commits.
#[test]
fn a_tree_that_goes_while_its_epoch_is_written_can_be_read_in_it() {
    let db = Database::new(&Config { buffer_pool_bytes: 1 << 20, ..Config::tiny() });
    register(&db, Codec::Zstd);
    let pids = add_all(&db, TREE, text);
    assert!(db.pool.trial(TREE).run().unwrap());
    let pool = db.pool.clone();
    let (mut checkpoint, state) = pool.end_epoch(|_| epoch_state(&db));
    checkpoint.write_some(30).unwrap();
    dictionary_pages(&db).iter().chain(&pids).for_each(|pid| db.free(*pid));
    db.pool.forget_tree(TREE);
    checkpoint.commit(&db.map, &state).unwrap();
    // Other trees reuse the page IDs, but not before the next epoch.
    add_all(&db, OTHER, text);
    let db = after_power_cut(db);
    assert_eq!(dictionary_pages(&db).len(), 1);
    assert!(pids.iter().filter(|pid| names_dictionary(&db, **pid)).count() > 100);
    assert_texts(&db, &pids);
}

/// ALTER gives the table other codecs and levels, once no compression. Old pages remain readable,
/// and new pages have the new density.
#[test]
fn a_dictionary_serves_whatever_density_its_tree_gets() {
    let db = Database::new(&Config { buffer_pool_bytes: 128 << 20, ..Config::tiny() });
    register(&db, Codec::Zstd);
    let pids = add_all(&db, TREE, text);
    assert!(db.pool.trial(TREE).run().unwrap());
    checkpoint(&db);
    let densities =
        [(Codec::Zstd, 12), (Codec::Lz4, 1), (Codec::Zstd, -3), (Codec::None, 0), (Codec::Zstd, 1)];
    for (part, (codec, level)) in densities.into_iter().enumerate() {
        let compression = Compression { codec, level };
        db.pool.register_tree(TreeDef {
            id: TREE,
            row_format: RowFormatVersion::opaque(),
            compression,
            closing: Closing::Never,
        });
        let changed: Vec<_> = pids.iter().skip(part).step_by(densities.len()).collect();
        for is_loaded in [false, true] {
            changed.iter().for_each(|pid| change(&db, **pid));
            let misses = db.pool.counters.dictionary_misses.get();
            checkpoint(&db);
            let suits = codec == Codec::Zstd;
            let named = changed.iter().all(|pid| names_dictionary(&db, **pid));
            assert_eq!(named, suits && is_loaded, "{codec:?} {level}");
            assert_eq!(db.pool.counters.dictionary_misses.get() > misses, suits && !is_loaded);
            while db.pool.dictionary_due().unwrap() != DictionaryDue::Nothing {}
        }
    }
    let db = after_power_cut(db);
    assert_texts(&db, &pids);
}

/// D4: memory has room for one dictionary, and two trees alternate.
#[test]
fn pages_are_written_without_a_dictionary_that_is_not_in_memory_until_it_is_loaded() {
    let db = database();
    for tree in [TREE, OTHER] {
        add_all(&db, tree, text);
        assert!(db.pool.trial(tree).run().unwrap());
    }
    let image_of = |tree| {
        let pid = add(&db, tree, &text(9, 400));
        checkpoint(&db);
        let bytes = db.pool.table.entry(pid).location().unwrap().stored_bytes;
        bytes
    };
    while db.pool.dictionary_due().unwrap() != DictionaryDue::Nothing {}
    let (with, without) = (image_of(OTHER), image_of(TREE));
    assert!(with < without, "{with} {without}");
    while db.pool.dictionary_due().unwrap() != DictionaryDue::Nothing {}
    assert_eq!(image_of(TREE), with, "the dictionary was requested");
}

#[test]
fn dictionaries_go_with_their_tree_and_with_nothing_else() {
    let db = database();
    let pids = add_all(&db, TREE, text);
    assert!(db.pool.trial(TREE).run().unwrap());
    checkpoint(&db);
    pids.iter().for_each(|pid| db.free(*pid));
    checkpoint(&db);
    let db = after_power_cut(db);
    assert_eq!((db.pool.tree_bytes(TREE).pages, dictionary_pages(&db).len()), (1, 1));
    let mut from = Some(PageId::NONE);
    while let Some(next) = from {
        from = db.pool.free_trees_step(&HashSet::from([TREE]), next, 1000).unwrap();
    }
    // The epoch state still lists the dictionary. Startup finds that the page was freed.
    checkpoint(&db);
    let db = after_power_cut(db);
    assert_eq!((db.pool.tree_bytes(TREE).pages, db.pool.dictionaries()), (0, vec![]));
}

#[test]
fn a_page_that_is_no_dictionary_of_the_tree_is_refused_as_one() {
    let db = database();
    let pids = add_all(&db, TREE, text);
    assert!(db.pool.trial(TREE).run().unwrap());
    let page = dictionary_pages(&db)[0];
    for (tree, page) in [(TREE, pids[0]), (OTHER, page), (TREE, PageId(5000))] {
        let refused = db.pool.dictionary(tree, page);
        assert!(matches!(refused, Err(Error::Corruption { .. })), "{refused:?}");
    }
    db.free(pids[3]);
    assert!(db.pool.dictionary(TREE, pids[3]).is_err());
}

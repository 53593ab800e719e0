//! The undo log compared with a model: random transactions append, roll back and end, purge stops
//! anywhere, and there are checkpoints and crashes. No record may be freed while its transaction is
//! needed, and no page may remain that is not needed.

use super::undo_log::{start_record, UndoLog, UndoStart};
use crate::base::{planted, Config, TableId, TreeId, TxnId, UndoPtr};
use crate::format::image::Compression;
use crate::format::page::content_capacity;
use crate::format::row::RowFormatVersion;
use crate::format::state::{PurgeState, State, TxnState};
use crate::format::undo_record::{self, decode_body, UndoBlob, UndoBody, UndoFinish, UndoHead, HEAD_BYTES};
use crate::keys::Closing;
use crate::leaves::Leaves;
use crate::pool::testing::Database;
use crate::pool::{EpochState, MiniTransaction, PageClass, Pool, TreeDef};
use cheetah_io::rng::Rng;
use cheetah_io::sim::CrashPolicy;
use std::collections::VecDeque;
use std::sync::Arc;

/// An appended record: its position, its ordinal, and its content.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Record {
    at: UndoPtr,
    undo_no: u64,
    value: u64,
    filler_bytes: usize,
}

#[derive(Clone, Default)]
struct Txn {
    state: TxnState,
    /// The records that were not rolled back.
    chain: Vec<Record>,
    /// All records.
    appended: Vec<Record>,
}

#[derive(Clone)]
struct Ended {
    txn: Txn,
    end: UndoFinish,
}

/// The expected content of the log.
#[derive(Clone, Default)]
struct Model {
    active: Vec<Txn>,
    history: VecDeque<Ended>,
    next_txn: u64,
    next_stamp: u64,
}

struct Run {
    db: Option<Database>,
    log: UndoLog,
    rng: Rng,
    now: Model,
    committed: Model,
}

fn open(db: &Database, state: &State) -> UndoLog {
    let (row_format, compression) = (RowFormatVersion::opaque(), Compression::default());
    db.pool.register_tree(TreeDef { id: TreeId::UNDO, row_format, compression, closing: Closing::AsSystem });
    let start = UndoStart {
        first_page: state.undo_first_page,
        end: state.undo_end,
        pages: state.undo_pages.clone(),
        purge: state.purge,
    };
    UndoLog::open(Arc::clone(&db.pool), start).unwrap()
}

/// Enters a mini-transaction after making room for it.
fn enter(pool: &Pool) -> MiniTransaction<'_> {
    pool.make_room(8).unwrap();
    pool.enter()
}

fn append(pool: &Pool, log: &UndoLog, txn: &mut Txn, value: u64, filler_bytes: usize) {
    let mut bytes = Vec::new();
    start_record(&txn.state, &mut bytes);
    let locator = vec![value as u8; filler_bytes];
    let (pages, index_pages) = (Vec::new(), Vec::new());
    let table = TableId(1);
    let blob = UndoBlob { table, total_bytes: value, end: 0, locator: &locator, pages, index_pages };
    undo_record::put_blob(&mut bytes, &blob);
    undo_record::finish(&mut bytes);
    let at = log.append(&enter(pool), &mut txn.state, &bytes);
    let record = Record { at, undo_no: txn.state.undo_no, value, filler_bytes };
    assert_eq!(txn.state.head, at);
    txn.chain.push(record);
    txn.appended.push(record);
}

/// Takes the newest record back, like a rollback.
fn roll_back(txn: &mut Txn) {
    txn.chain.pop();
    txn.state.head = txn.chain.last().map_or(UndoPtr(0), |record| record.at);
    txn.state.undo_no -= 1;
}

fn end(pool: &Pool, log: &UndoLog, txn: &Txn, stamp: u64, committed: bool) -> UndoFinish {
    let TxnState { txn, head, first, undo_no, .. } = txn.state;
    let end = UndoFinish { stamp, committed, head, first, undo_no };
    log.append_finish(&enter(pool), txn, &end);
    end
}

fn assert_is(bytes: &[u8], head: &UndoHead, record: &Record) {
    assert_eq!((head.len as usize, head.undo_no), (bytes.len(), record.undo_no));
    let UndoBody::Blob(blob) = decode_body(&bytes[HEAD_BYTES..]).unwrap() else { panic!("a blob record") };
    assert_eq!((blob.total_bytes, blob.locator.len()), (record.value, record.filler_bytes));
    assert!(blob.locator.iter().all(|byte| *byte == record.value as u8));
}

impl Run {
    fn new(seed: u64) -> Self {
        let db = Database::new(&Config::tiny());
        let log = open(&db, &State::default());
        let (now, committed) = (Model::default(), Model::default());
        let mut run = Self { db: Some(db), log, rng: Rng::new(seed), now, committed };
        run.checkpoint();
        run
    }

    fn db(&self) -> &Database {
        self.db.as_ref().unwrap()
    }

    fn some_active(&mut self) -> Option<usize> {
        let count = self.now.active.len();
        (count > 0).then(|| self.rng.below(count as u64) as usize)
    }

    fn begin(&mut self) {
        self.now.next_txn += 1;
        let state = TxnState { txn: TxnId(self.now.next_txn), ..TxnState::default() };
        self.now.active.push(Txn { state, ..Txn::default() });
    }

    fn append(&mut self) {
        let Some(no) = self.some_active() else { return };
        let page_bytes = content_capacity(PageClass::Base.bytes(self.db().pool.page_bytes())) as u64;
        let longest = if self.rng.chance(0.1) { 3 * page_bytes } else { 60 };
        let (value, filler_bytes) = (self.rng.below(1 << 40), self.rng.below(longest) as usize);
        let pool = Arc::clone(&self.db().pool);
        append(&pool, &self.log, &mut self.now.active[no], value, filler_bytes);
    }

    fn roll_back(&mut self) {
        let Some(no) = self.some_active() else { return };
        let count = self.rng.below(self.now.active[no].chain.len() as u64 + 1);
        (0..count).for_each(|_| roll_back(&mut self.now.active[no]));
    }

    fn end(&mut self) {
        let Some(no) = self.some_active() else { return };
        let mut txn = self.now.active.swap_remove(no);
        let committed = self.rng.chance(0.7);
        if !committed {
            (0..txn.chain.len()).for_each(|_| roll_back(&mut txn));
        }
        if txn.state.first != UndoPtr(0) {
            self.now.next_stamp += 1;
            let end = end(&self.db().pool, &self.log, &txn, self.now.next_stamp, committed);
            self.now.history.push_back(Ended { txn, end });
        }
    }

    /// Purges up to `records` records, newest first, each once, and passes finished transactions.
    fn purge(&mut self, mut records: u64) {
        let mut bytes = Vec::new();
        while records > 0 {
            let found = self.log.next_finish(&mut bytes).unwrap();
            let Some(ended) = self.now.history.front_mut() else {
                return assert_eq!(found, None);
            };
            let (next, head, end) = found.unwrap();
            assert_eq!((head.txn, end), (ended.txn.state.txn, ended.end));
            let mut at = self.log.purge_state();
            if at.head == UndoPtr(0) {
                (at.head, at.undo_no) = (end.head, end.undo_no);
            }
            while at.head != UndoPtr(0) && records > 0 {
                records -= 1;
                let head = self.log.read(at.head, head.txn, at.undo_no, &mut bytes).unwrap();
                assert_is(&bytes, &head, &ended.txn.chain.pop().unwrap());
                at = PurgeState { head: head.prev, undo_no: at.undo_no - 1, freed_pages: records, ..at };
                if at.head != UndoPtr(0) {
                    self.log.note_purge(&self.db.as_ref().unwrap().pool.enter(), at);
                }
            }
            if at.head == UndoPtr(0) {
                records = records.saturating_sub(1);
                assert_eq!(ended.txn.chain, []);
                self.log.pass(&self.db.as_ref().unwrap().pool.enter(), next, &end).unwrap();
                self.now.history.pop_front();
            }
        }
    }

    fn checkpoint(&mut self) {
        let at_switch = self.now.clone();
        let txns = at_switch.active.iter().map(|txn| txn.state).collect();
        let state = || {
            let UndoStart { first_page, end, pages, purge } = self.log.snapshot();
            let (undo_first_page, undo_end, undo_pages) = (first_page, end, pages);
            let state = State { undo_first_page, undo_end, undo_pages, purge, txns, ..State::default() };
            EpochState { bytes: state.encode(), ..EpochState::default() }
        };
        self.db().checkpoint_of(state).unwrap();
        self.committed = at_switch;
    }

    fn crash(&mut self) {
        let db = self.db.take().unwrap();
        let disk = db.disk.crash(CrashPolicy::SyncedOnly, self.rng.next_u64());
        let db = db.crash(disk);
        let state = State::decode(&db.state).unwrap();
        self.log = open(&db, &state);
        self.db = Some(db);
        self.now = self.committed.clone();
        let txns = self.now.active.iter().map(|txn| txn.state).collect::<Vec<_>>();
        assert_eq!(state.txns, txns);
    }

    fn step(&mut self) {
        match self.rng.below(20) {
            0 | 1 if self.now.active.len() < 6 => self.begin(),
            2 => self.roll_back(),
            3 | 4 => self.end(),
            5 => {
                let records = self.rng.below(40);
                self.purge(records);
            }
            6 => drop(self.log.free_oldest_pages()),
            _ => self.append(),
        }
    }

    /// Checks that a reader ahead of purge finds the finish record of each transaction that was not
    /// passed, and then the end of the log.
    fn look_ahead(&self) {
        let (mut at, mut bytes) = (UndoPtr(0), Vec::new());
        let mut ahead = self.now.history.iter();
        loop {
            match self.log.finish_from(&mut at, &mut bytes).unwrap() {
                Some((next, head, end)) => {
                    let ended = ahead.next().unwrap();
                    assert_eq!((head.txn, end), (ended.txn.state.txn, ended.end));
                    at = next;
                }
                None if at < self.log.end() => {}
                None => return assert_eq!(ahead.count(), 0),
            }
        }
    }

    /// Checks that everything that may be needed exists, and everything else was freed.
    fn compare(&self) {
        self.look_ahead();
        while self.log.free_oldest_pages() {}
        let ended = self.now.history.iter().map(|ended| &ended.txn);
        let needed = self.now.active.iter().chain(ended).filter(|txn| txn.state.first != UndoPtr(0));
        let mut bytes = Vec::new();
        let (mut live, mut oldest) = (0, self.log.purge_state().at);
        for txn in needed {
            (live, oldest) = (live + 1, oldest.min(txn.state.first));
            for record in &txn.appended {
                let head = self.log.read_version(record.at, txn.state.txn, &mut bytes).unwrap();
                assert_is(&bytes, &head, record);
            }
        }
        let there = self.log.snapshot();
        let page_bytes = content_capacity(PageClass::Base.bytes(self.db().pool.page_bytes())) as u64;
        assert_eq!(there.first_page, oldest.0 / page_bytes, "everything that can be freed is freed");
        assert_eq!(self.log.live_count(), live);
        assert_eq!(there.pages.iter().map(|page| page.live).sum::<u64>(), live);
        assert_eq!(self.db().pool.tree_bytes(TreeId::UNDO).pages, there.pages.len() as u64);
    }

    fn run(&mut self, rounds: usize) {
        for _ in 0..rounds {
            (0..self.rng.below(100)).for_each(|_| self.step());
            self.compare();
            match self.rng.below(6) {
                0 => self.crash(),
                1 | 2 => self.checkpoint(),
                _ => {}
            }
        }
        while !self.now.active.is_empty() {
            self.end();
        }
        self.purge(u64::MAX);
        self.compare();
        assert!(self.log.is_purged() && self.log.live_count() == 0);
        assert!(self.log.pages_count() <= 1, "all pages except the last one are free");
    }
}

#[test]
fn c6_the_log_keeps_what_is_needed_and_nothing_else_whatever_transactions_purge_and_crashes_do() {
    for seed in 0..12 {
        println!("seed {seed}");
        Run::new(seed).run(60);
    }
}

#[test]
fn c6_the_model_catches_planted_bugs() {
    for bug in ["undo: count a transaction that starts over again", "undo: free pages that transactions need"]
    {
        let guard = planted::plant(bug);
        let caught = (0..20).any(|seed| {
            let run = || Run::new(seed).run(40);
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err()
        });
        assert!(guard.reached_count() > 0, "{bug} was never reached");
        assert!(caught, "{bug}");
    }
}

fn in_memory() -> (Arc<Pool>, UndoLog) {
    let pool = Arc::clone(Leaves::in_memory(&Config::tiny()).pool());
    let log = UndoLog::open(Arc::clone(&pool), UndoStart::default()).unwrap();
    (pool, log)
}

fn txn(number: u64) -> Txn {
    Txn { state: TxnState { txn: TxnId(number), ..TxnState::default() }, ..Txn::default() }
}

#[test]
fn a_transaction_that_takes_all_back_and_goes_on_counts_once_from_its_first_record() {
    let (pool, log) = in_memory();
    let mut txn = txn(7);
    append(&pool, &log, &mut txn, 1, 900);
    let first = txn.state.first;
    roll_back(&mut txn);
    append(&pool, &log, &mut txn, 2, 900);
    assert_eq!((txn.state.first, txn.state.undo_no, log.live_count()), (first, 1, 1));
    end(&pool, &log, &txn, 1, true);
    let (next, _, end) = log.next_finish(&mut Vec::new()).unwrap().unwrap();
    assert_eq!(end.first, first);
    log.pass(&pool.enter(), next, &end).unwrap();
    assert!(log.is_purged() && log.live_count() == 0);
}

#[test]
fn a_search_for_the_next_end_passes_over_a_bounded_number_of_records_and_goes_on_from_there() {
    let (pool, log) = in_memory();
    let mut long = txn(1);
    (0..5000).for_each(|value| append(&pool, &log, &mut long, value, 0));
    let mut bytes = Vec::new();
    assert_eq!(log.next_finish(&mut bytes).unwrap(), None);
    assert!(log.has_more_to_search());
    let searches =
        (0..).take_while(|_| log.has_more_to_search() && log.next_finish(&mut bytes).unwrap().is_none());
    assert_eq!(searches.count(), 2);
    assert!(!log.has_more_to_search());
    end(&pool, &log, &long, 1, true);
    for _ in 0..2 {
        assert_eq!(
            log.next_finish(&mut bytes).unwrap().unwrap().2.stamp,
            1,
            "it is found until it is passed"
        );
    }
    assert_eq!(log.purge_state(), PurgeState::default());
}

#[test]
fn a_record_is_only_read_as_what_it_is() {
    let (pool, log) = in_memory();
    let (mut one, mut other) = (txn(1), txn(2));
    append(&pool, &log, &mut one, 1, 10);
    append(&pool, &log, &mut other, 2, 10);
    let finish_at = log.end();
    end(&pool, &log, &one, 1, true);
    let mut bytes = Vec::new();
    let at = one.state.head;
    log.read(at, TxnId(1), 1, &mut bytes).unwrap();
    log.read(at, TxnId(1), 2, &mut bytes).unwrap_err();
    log.read_version(at, TxnId(2), &mut bytes).unwrap_err();
    log.read_version(UndoPtr(at.0 + 1), TxnId(1), &mut bytes).unwrap_err();
    log.read_version(finish_at, TxnId(1), &mut bytes).unwrap_err();
    log.read_version(log.end(), TxnId(1), &mut bytes).unwrap_err();
}

#[test]
fn a_transaction_that_is_not_live_cannot_be_passed() {
    let (pool, log) = in_memory();
    let mut one = txn(1);
    append(&pool, &log, &mut one, 1, 10);
    let end = end(&pool, &log, &one, 1, true);
    let next = log.end();
    log.pass(&pool.enter(), UndoPtr(next.0 + 1), &end).unwrap_err();
    log.pass(&pool.enter(), next, &UndoFinish { first: UndoPtr(1 << 40), ..end }).unwrap_err();
    log.pass(&pool.enter(), next, &end).unwrap();
    log.pass(&pool.enter(), next, &end).unwrap_err();
}

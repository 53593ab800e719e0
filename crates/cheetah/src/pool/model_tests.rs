//! The pool against a model: random mini-transactions, checkpoints that are interleaved with them,
//! crashes, and a disk that fills up. Dictionaries are made, dropped from memory and loaded. After
//! a crash the database has exactly the state at the end of the last committed epoch.

use crate::base::{planted, Config, Error, PageId};
use crate::format::image::{Compression, Primer};
use crate::format::row::RowFormatVersion;
use crate::format::state::State;
use crate::keys::Closing;
use crate::pool::testing::{get, put, value_content, Database, TREE};
use crate::pool::{EpochState, PageClass, PageRef, TreeDef};
use cheetah_io::rng::Rng;
use cheetah_io::sim::CrashPolicy;
use std::collections::BTreeMap;

/// The maximum number of dictionaries made, more than a tree can have, so that some are made at bad
/// moments.
const DICTIONARIES_MAX: usize = 60;

type Model = BTreeMap<PageId, u64>;

struct Run {
    db: Option<Database>,
    rng: Rng,
    /// The database now, and at the last committed epoch switch.
    now: Model,
    committed: Model,
    /// The dictionaries of the committed epoch.
    committed_dictionaries: Vec<PageId>,
    /// The number of times that a dictionary was loaded.
    dictionary_loads: u64,
    next_value: u64,
    now_ns: u64,
}

fn register(db: &Database) {
    let compression = Compression::default();
    db.pool.register_tree(TreeDef {
        id: TREE,
        row_format: RowFormatVersion::opaque(),
        compression,
        closing: Closing::Never,
    });
}

/// The state that the only user of the pool stores with an epoch.
fn state(db: &Database) -> State {
    State { dictionaries: db.pool.dictionaries(), ..State::default() }
}

fn dictionary_pages(db: &Database) -> Vec<PageId> {
    db.pool.dictionaries_and_pages(TREE).0
}

impl Run {
    fn new(seed: u64) -> Self {
        let db = Database::new(&Config::tiny());
        register(&db);
        Self {
            db: Some(db),
            rng: Rng::new(seed),
            now: Model::new(),
            committed: Model::new(),
            committed_dictionaries: Vec::new(),
            dictionary_loads: 0,
            next_value: 1,
            now_ns: 0,
        }
    }

    fn db(&self) -> &Database {
        self.db.as_ref().unwrap()
    }

    fn some_pid(&mut self) -> Option<PageId> {
        let nth = self.rng.below(self.now.len() as u64) as usize;
        self.now.keys().nth(nth).copied()
    }

    /// A page in use. `None` if there is no room to read it.
    fn some_page(&mut self) -> Option<PageRef> {
        let pid = self.some_pid()?;
        match self.db().pool.fetch(pid) {
            Ok(page) => page,
            Err(error) => {
                assert!(matches!(error, Error::DiskFull(_)), "{error}");
                None
            }
        }
    }

    fn value(&mut self) -> u64 {
        self.next_value += 1;
        self.next_value
    }

    /// One mini-transaction of one to four changes.
    fn act(&mut self) {
        if let Err(error) = self.db().pool.make_room(4) {
            assert!(matches!(error, Error::DiskFull(_)), "{error}");
        }
        let pages: Vec<_> = (0..self.rng.below(4)).filter_map(|_| self.some_page()).collect();
        let db = self.db.take().unwrap();
        let mtr = db.pool.enter();
        for page in &pages {
            if self.rng.chance(0.2) {
                if self.now.remove(&page.pid()).is_some() {
                    db.pool.free(&mtr, page.pid());
                }
            } else if self.now.contains_key(&page.pid()) {
                let value = self.value();
                put(page, &mtr, value);
                self.now.insert(page.pid(), value);
            }
        }
        if self.rng.chance(if self.now.len() < 400 { 0.5 } else { 0.15 }) {
            let class = PageClass::ALL[self.rng.below(20).saturating_sub(17) as usize];
            let page = db.pool.allocate(&mtr, TREE, class);
            let value = self.value();
            put(&page, &mtr, value);
            let before = self.now.insert(page.pid(), value);
            assert_eq!(before, None, "a page in use was allocated again");
        }
        drop(mtr);
        self.db = Some(db);
    }

    fn background(&mut self) {
        self.now_ns += self.rng.below(50_000_000);
        let db = self.db();
        let result = match self.now_ns % 3 {
            0 => db.pool.clean_step().map(drop),
            1 => db.upkeep.gc_step(self.now_ns, 2000).map(drop),
            _ => db.upkeep.collect(4096).map(drop),
        };
        match result {
            Ok(()) | Err(Error::DiskFull(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn step(&mut self) {
        match self.rng.below(100) {
            0..10 => self.background(),
            10..20 => self.look(),
            20..24 => self.change_dictionaries(),
            _ => self.act(),
        }
    }

    /// Makes a dictionary, drops all dictionaries from memory, or loads a missing one.
    fn change_dictionaries(&mut self) {
        let what = self.rng.below(4);
        let value = self.value();
        let db = self.db();
        let result = match what {
            0 if dictionary_pages(db).len() < DICTIONARIES_MAX => {
                let content = value_content(value, 300);
                let primer = Primer::new(PageId::NONE, &content, Compression::default()).unwrap();
                db.pool.add_dictionary(TREE, &db.pool.trees.get(TREE), &content, primer)
            }
            1 => db.pool.trial(TREE).run().map(drop),
            2 => {
                db.pool.forget_dictionaries(TREE);
                Ok(())
            }
            _ => db.pool.dictionary_due().map(drop),
        };
        match result {
            Ok(()) | Err(Error::DiskFull(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// Reads a page and compares it with the model.
    fn look(&mut self) {
        let Some(pid) = self.some_pid() else { return };
        match self.db().pool.fetch_for_scan(pid) {
            Ok(page) => assert_eq!(get(&page.unwrap()), self.now[&pid], "page {pid}"),
            Err(error) => assert!(matches!(error, Error::DiskFull(_)), "{error}"),
        }
    }

    /// A checkpoint with other work between its steps. It is sometimes abandoned.
    fn checkpoint(&mut self) {
        let at_switch = self.now.clone();
        let pool = self.db().pool.clone();
        let (mut checkpoint, state) = pool.end_epoch(|_| state(self.db()));
        let dictionaries = state.dictionaries.iter().map(|(_, page)| *page).collect();
        let epoch_state = EpochState { bytes: state.encode(), ..EpochState::default() };
        loop {
            match checkpoint.write_some(self.rng.below(20) as usize) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => return assert!(matches!(error, Error::DiskFull(_)), "{error}"),
            }
            for _ in 0..self.rng.below(8) {
                self.step();
            }
            if self.rng.chance(0.01) {
                return;
            }
        }
        match checkpoint.commit(&self.db().map, &epoch_state) {
            Ok(_) => {
                self.committed = at_switch;
                self.committed_dictionaries = dictionaries;
            }
            Err(error) => assert!(matches!(error, Error::DiskFull(_)), "{error}"),
        }
    }

    fn crash(&mut self) {
        let db = self.db.take().unwrap();
        let policy = if self.rng.chance(0.5) { CrashPolicy::SyncedOnly } else { CrashPolicy::Random(0.5) };
        let disk = db.disk.crash(policy, self.rng.next_u64());
        self.dictionary_loads += db.pool.counters.dictionary_loads.get();
        let db = db.crash(disk);
        register(&db);
        if !db.state.is_empty() {
            db.pool.adopt_dictionaries(&State::decode(&db.state).unwrap().dictionaries);
        }
        assert_eq!(dictionary_pages(&db), self.committed_dictionaries);
        self.db = Some(db);
        self.now = self.committed.clone();
        self.compare();
    }

    fn compare(&self) {
        let db = self.db();
        let bytes = db.pool.tree_bytes(TREE);
        let dictionaries = dictionary_pages(db);
        assert_eq!(bytes.pages, (self.now.len() + dictionaries.len()) as u64);
        dictionaries.iter().for_each(|page| db.pool.check_dictionary(TREE, *page).unwrap());
        for (pid, value) in &self.now {
            assert_eq!(db.value(*pid), Some(*value), "page {pid}");
        }
    }

    /// Returns the number of times that dictionaries were loaded.
    fn run(&mut self, rounds: usize) -> u64 {
        for _ in 0..rounds {
            for _ in 0..self.rng.below(120) {
                self.step();
            }
            self.checkpoint();
            if self.rng.chance(0.1) {
                self.crash();
            }
            if self.rng.chance(0.1) {
                let used = self.db().disk.used_bytes();
                let more = self.rng.below(100_000);
                self.db().disk.set_space(Some(used + more));
            } else if self.rng.chance(0.3) {
                self.db().disk.set_space(None);
            }
        }
        self.db().disk.set_space(None);
        self.compare();
        self.dictionary_loads + self.db().pool.counters.dictionary_loads.get()
    }
}

#[test]
fn after_any_crash_the_database_is_the_last_committed_epoch() {
    let mut loads = 0;
    for seed in 0..8 {
        println!("seed {seed}");
        loads += Run::new(seed).run(60);
    }
    assert!(loads > 100, "{loads}");
}

/// Returns whether the model detects a planted bug with some seeds.
fn is_caught(bug: &'static str) -> bool {
    let guard = planted::plant(bug);
    let caught = (0..20).any(|seed| {
        let run = || Run::new(seed).run(40);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err()
    });
    assert!(guard.reached_count() > 0, "{bug} was never reached");
    caught
}

#[test]
fn the_model_catches_planted_bugs() {
    for bug in [
        "pool: forget the moves of an abandoned checkpoint",
        "pool: skip flush before modify",
        "pool: skip flush before free",
        "pool: name a dictionary of the next epoch",
    ] {
        assert!(is_caught(bug), "{bug}");
    }
}

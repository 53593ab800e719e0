//! The pool against a model: random actions, checkpoints that are interleaved with them, crashes, and a disk that
//! fills up. After a crash the database is exactly what it was at the cut of the last committed generation.

use super::testing::{get, put, Database, TREE};
use super::{CutState, PageClass, PageRef};
use crate::base::{planted, Config, Error, PageId};
use cheetah_io::rng::Rng;
use cheetah_io::sim::CrashPolicy;
use std::collections::BTreeMap;

type Model = BTreeMap<PageId, u64>;

struct Run {
    db: Option<Database>,
    rng: Rng,
    /// The database now, and at the last committed cut.
    now: Model,
    committed: Model,
    next_value: u64,
    now_ns: u64,
}

impl Run {
    fn new(seed: u64) -> Self {
        Self {
            db: Some(Database::new(&Config::tiny())),
            rng: Rng::new(seed),
            now: Model::new(),
            committed: Model::new(),
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

    /// A page in use; none when there is no room to read it.
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

    /// One action of one to four changes.
    fn act(&mut self) {
        if let Err(error) = self.db().pool.make_room(4) {
            assert!(matches!(error, Error::DiskFull(_)), "{error}");
        }
        let pages: Vec<_> = (0..self.rng.below(4)).filter_map(|_| self.some_page()).collect();
        let db = self.db.take().unwrap();
        let action = db.pool.enter();
        for page in &pages {
            if self.rng.chance(0.2) {
                if self.now.remove(&page.pid()).is_some() {
                    db.pool.free(&action, page.pid());
                }
            } else if self.now.contains_key(&page.pid()) {
                let value = self.value();
                put(page, &action, value);
                self.now.insert(page.pid(), value);
            }
        }
        if self.rng.chance(if self.now.len() < 400 { 0.5 } else { 0.15 }) {
            let class = PageClass::ALL[self.rng.below(20).saturating_sub(17) as usize];
            let page = db.pool.allocate(&action, TREE, class);
            let value = self.value();
            put(&page, &action, value);
            let before = self.now.insert(page.pid(), value);
            assert_eq!(before, None, "a page in use was given out again");
        }
        drop(action);
        self.db = Some(db);
    }

    fn background(&mut self) {
        self.now_ns += self.rng.below(50_000_000);
        let db = self.db();
        let result = match self.now_ns % 3 {
            0 => db.pool.clean_step(self.now_ns, 0, 2000).map(drop),
            1 => db.pool.gc_step(self.now_ns, 2000).map(drop),
            _ => db.pool.collect(4096).map(drop),
        };
        match result {
            Ok(()) | Err(Error::DiskFull(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn step(&mut self) {
        match self.rng.below(10) {
            0 => self.background(),
            1 => self.look(),
            _ => self.act(),
        }
    }

    /// Reads a page and compares.
    fn look(&mut self) {
        let Some(pid) = self.some_pid() else { return };
        match self.db().pool.fetch_for_scan(pid) {
            Ok(page) => assert_eq!(get(&page.unwrap()), self.now[&pid], "page {pid}"),
            Err(error) => assert!(matches!(error, Error::DiskFull(_)), "{error}"),
        }
    }

    /// A checkpoint with other work between its steps; sometimes given up.
    fn checkpoint(&mut self) {
        let at_cut = self.now.clone();
        let pool = self.db().pool.clone();
        let (mut checkpoint, ()) = pool.begin_checkpoint(|_| ());
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
        match checkpoint.commit(&self.db().map, &CutState::default(), || Ok(())) {
            Ok(_) => self.committed = at_cut,
            Err(error) => assert!(matches!(error, Error::DiskFull(_)), "{error}"),
        }
    }

    fn crash(&mut self) {
        let db = self.db.take().unwrap();
        let policy = if self.rng.chance(0.5) { CrashPolicy::SyncedOnly } else { CrashPolicy::Random(0.5) };
        let disk = db.disk.crash(policy, self.rng.next_u64());
        self.db = Some(db.crash(disk));
        self.now = self.committed.clone();
        self.compare();
    }

    fn compare(&self) {
        let db = self.db();
        let bytes = db.pool.tree_bytes(TREE);
        assert_eq!(bytes.pages, self.now.len() as u64);
        for (pid, value) in &self.now {
            assert_eq!(db.value(*pid), Some(*value), "page {pid}");
        }
    }

    fn run(&mut self, rounds: usize) {
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
    }
}

#[test]
fn after_any_crash_the_database_is_the_last_committed_generation() {
    for seed in 0..8 {
        println!("seed {seed}");
        Run::new(seed).run(60);
    }
}

/// Whether the model notices a planted bug within some seeds.
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
        "pool: skip the capture of a changed page",
        "pool: skip the capture of a freed page",
    ] {
        assert!(is_caught(bug), "{bug}");
    }
}

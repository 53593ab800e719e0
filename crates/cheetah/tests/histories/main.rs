//! Runs random transactions on the library, and prints the observations of each transaction: a
//! history for tests/isolation/checker.py, on one line.
//!
//! `cargo test --test histories -- --model list --levels "READ COMMITTED,SERIALIZABLE"
//! [--snapshot-isolation] [--bug NAME] [--threads] [--no-indexes] [--words] [--seed 1]
//! [--txns 300]`. With `--bug`, the engine has a planted bug; tests/isolation/test_planted.py has
//! the names. Clients take turns in one thread, in an order that the seed reproduces. With
//! `--threads`, each client has its own thread, and waits for locks. With `--no-indexes`, the table
//! has only its clustered index. `--words` adds a full-text index and searches.
//!
//! Without `--model`, as under `cargo test`, the program tests that a seed reproduces the history.

mod client;
mod history;
mod plan;
mod words;

use cheetah::testing::base::{planted, Config, Error, Result};
use cheetah::testing::db::{Db, Env, Isolation, Read, Transaction};
use cheetah::testing::format::image::Compression;
use cheetah::testing::format::row::RowFormatVersion;
use cheetah::testing::table::{FulltextSpec, IndexSpec, Table, TableSpec};
use cheetah_io::sim::{SimClock, SimDisk};
use cheetah_io::Rng;
use client::{nothing, seen_of, Client};
use history::{History, Seen, Txn};
use plan::{Plan, Planner};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const CLIENTS_COUNT: usize = 5;
/// The number of moments for which the keeper keeps a snapshot open.
const SNAPSHOT_KEPT_FOR: u64 = 150;
/// The number of turns of clients between turns of the background.
const TURNS_OF_CLIENTS: u64 = 20;

/// The options of the history.
pub(crate) struct Choice {
    is_list: bool,
    levels: Vec<Isolation>,
    has_snapshot_isolation: bool,
    bug: Option<&'static str>,
    has_threads: bool,
    /// Whether the table has secondary indexes.
    has_indexes: bool,
    /// Whether the table has a full-text index.
    has_words: bool,
    seed: u64,
    txns_count: u64,
}

/// The state that clients share.
pub(crate) struct Run {
    pub(crate) table: Arc<Table>,
    pub(crate) is_list: bool,
    pub(crate) has_indexes: bool,
    /// The posting table of the full-text index, if there is one.
    pub(crate) postings: Option<Arc<Table>>,
    now: AtomicU64,
    planner: Mutex<Planner>,
    failure: Mutex<Option<String>>,
}

impl Run {
    /// The next moment.
    pub(crate) fn clock(&self) -> u64 {
        self.now.fetch_add(1, Relaxed) + 1
    }

    /// The next transaction.
    pub(crate) fn next_plan(&self) -> Option<Plan> {
        self.planner.lock().unwrap_or_else(PoisonError::into_inner).plan()
    }

    /// Records an error that no client may receive.
    pub(crate) fn note_failure(&self, error: &Error) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert_with(|| error.to_string());
    }
}

fn main() -> std::process::ExitCode {
    let words = std::env::args().skip(1).collect::<Vec<_>>();
    if !words.iter().any(|word| word == "--model") {
        a_seed_repeats_the_history();
        return std::process::ExitCode::SUCCESS;
    }
    let Some(choice) = Choice::of(&words) else {
        eprintln!(
            "usage: --model list|register --levels NAME[,NAME ..] [--snapshot-isolation] [--bug NAME] \
             [--threads] [--no-indexes] [--words] [--seed N] [--txns N]"
        );
        return std::process::ExitCode::from(2);
    };
    match play(&choice) {
        Ok(history) => {
            println!("{history}");
            std::process::ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn a_seed_repeats_the_history() {
    for model in ["list", "register"] {
        let words = ["--model", model, "--levels", "READ COMMITTED,REPEATABLE READ,SERIALIZABLE", "--words"];
        let played = |seed: u64| {
            let choice = Choice::of(&words.map(String::from)).expect("the arguments are valid");
            play(&Choice { seed, ..choice }).expect("no bug is planted").to_string()
        };
        let history = played(1);
        assert_eq!(history, played(1), "{model}");
        assert_ne!(history, played(2), "{model}");
    }
}

impl Choice {
    fn of(words: &[String]) -> Option<Self> {
        let value = |name: &str| words.iter().position(|word| word == name).and_then(|at| words.get(at + 1));
        let number =
            |name: &str, otherwise: u64| value(name).map_or(Some(otherwise), |word| word.parse().ok());
        let levels = value("--levels")?.split(',').map(|name| match name {
            "READ COMMITTED" => Some(Isolation::ReadCommitted),
            "REPEATABLE READ" => Some(Isolation::RepeatableRead),
            "SERIALIZABLE" => Some(Isolation::Serializable),
            _ => None,
        });
        Some(Self {
            is_list: value("--model")? == "list",
            levels: levels.collect::<Option<Vec<_>>>()?,
            has_snapshot_isolation: words.iter().any(|word| word == "--snapshot-isolation"),
            bug: value("--bug").map(|name| &*name.clone().leak()),
            has_threads: words.iter().any(|word| word == "--threads"),
            has_indexes: words.iter().all(|word| word != "--no-indexes"),
            has_words: words.iter().any(|word| word == "--words"),
            seed: number("--seed", 1)?,
            txns_count: number("--txns", 300)?,
        })
    }
}

fn play(choice: &Choice) -> Result<History> {
    let env = Env { disk: Arc::new(SimDisk::new()), clock: Arc::new(SimClock::default()) };
    let db = Db::open(env, Config { buffer_pool_bytes: 1 << 20, ..Config::tiny() })?;
    let planner = Planner::new(choice);
    let keys_count = planner.keys_count();
    let table = db.create_table(&spec(choice))?;
    let run = Run {
        postings: choice.has_words.then(|| db.postings(&table, 0)).transpose()?,
        table,
        is_list: choice.is_list,
        has_indexes: choice.has_indexes,
        now: AtomicU64::new(0),
        planner: Mutex::new(planner),
        failure: Mutex::default(),
    };
    let client = |no| Client::new(no, db.begin(), choice.has_snapshot_isolation, choice.has_threads);
    let clients = (0..CLIENTS_COUNT).map(client).collect::<Vec<_>>();
    let played = match choice.has_threads {
        true => play_in_threads(&db, &run, clients, choice)?,
        false => play_in_turns(&db, &run, clients, choice)?,
    };
    let last = match played.is_whole {
        true => read_last(&db, &run, keys_count)?,
        false => Vec::new(),
    };
    Ok(History {
        is_list: choice.is_list,
        has_snapshot_isolation: choice.has_snapshot_isolation,
        txns: played.txns,
        last,
        reached_count: played.reached_count,
        failure: run.failure.into_inner().unwrap_or_else(PoisonError::into_inner),
    })
}

/// The operations of the clients.
struct Played {
    txns: Vec<Txn>,
    /// Whether all clients completed their plans.
    is_whole: bool,
    /// The number of times the planted bug was reached.
    reached_count: u64,
}

fn play_in_turns(db: &Db, run: &Run, mut clients: Vec<Client>, choice: &Choice) -> Result<Played> {
    let planted = choice.bug.map(planted::plant);
    let mut rng = Rng::new(!choice.seed);
    let mut keeper = Keeper { txn: db.begin(), until: 0 };
    let mut active = (0..clients.len()).collect::<Vec<_>>();
    let mut is_whole = true;
    for turn in 0.. {
        if !is_whole || active.is_empty() {
            break;
        }
        keeper.keep(run)?;
        let place = rng.below(active.len() as u64) as usize;
        let done = match turn % TURNS_OF_CLIENTS {
            0 => db.run_background().map(|_| true),
            _ => clients[active[place]].advance(run),
        };
        match done {
            Ok(true) => {}
            Ok(false) => {
                active.swap_remove(place);
            }
            Err(error) => {
                run.note_failure(&error);
                is_whole = false;
            }
        }
    }
    let reached_count = planted.as_ref().map_or(0, |bug| bug.reached_count());
    Ok(Played { txns: clients.into_iter().flat_map(Client::into_txns).collect(), is_whole, reached_count })
}

fn play_in_threads(db: &Db, run: &Run, clients: Vec<Client>, choice: &Choice) -> Result<Played> {
    let mut keeper = Keeper { txn: db.begin(), until: 0 };
    let play = |mut client: Client| {
        let planted = choice.bug.map(planted::plant);
        let done = loop {
            match client.advance(run) {
                Ok(true) => std::thread::yield_now(),
                done => break done,
            }
        };
        if let Err(error) = &done {
            run.note_failure(error);
        }
        let reached_count = planted.as_ref().map_or(0, |bug| bug.reached_count());
        Played { txns: client.into_txns(), is_whole: done.is_ok(), reached_count }
    };
    let mut all = Played { txns: Vec::new(), is_whole: true, reached_count: 0 };
    std::thread::scope(|scope| {
        let threads = clients.into_iter().map(|client| scope.spawn(|| play(client))).collect::<Vec<_>>();
        while !threads.iter().all(|thread| thread.is_finished()) {
            keeper.keep(run)?;
            db.run_background()?;
            std::thread::sleep(Duration::from_millis(1));
        }
        for thread in threads {
            let Ok(played) = thread.join() else { continue };
            all.txns.extend(played.txns);
            all.is_whole &= played.is_whole;
            all.reached_count += played.reached_count;
        }
        Ok(all)
    })
}

/// Keeps an unused snapshot open for a while, and then the next snapshot, so that purge removes
/// some old versions and keeps others.
struct Keeper {
    txn: Transaction,
    until: u64,
}

impl Keeper {
    fn keep(&mut self, run: &Run) -> Result<()> {
        let now = run.now.load(Relaxed);
        if now < self.until {
            return Ok(());
        }
        self.until = now + SNAPSHOT_KEPT_FOR;
        self.txn.commit()?;
        self.txn.take_snapshot()
    }
}

/// The state at the end, as a new client sees it.
fn read_last(db: &Db, run: &Run, keys_count: u64) -> Result<Vec<(u64, Seen)>> {
    let mut txn = db.begin();
    let mut last = Vec::new();
    for key in 0..keys_count {
        let mut stored = Vec::new();
        let is_there = txn.get(&run.table, &key.to_be_bytes(), Read::Consistent, &mut stored)?;
        last.push((key, if is_there { seen_of(&stored, run.is_list) } else { nothing(run.is_list, false) }));
    }
    txn.commit()?;
    Ok(last)
}

/// A table with a clustered index by key. According to `choice`, the table also has secondary
/// indexes by group and number, by last value, and by group, and a full-text index.
fn spec(choice: &Choice) -> TableSpec {
    let index = |name: &str, unique, max_key_bytes| IndexSpec {
        name: name.into(),
        unique,
        max_key_bytes,
        row_format: RowFormatVersion::opaque(),
    };
    let words = || FulltextSpec { name: "words".into(), max_word_bytes: 24, extra: Vec::new() };
    let mut indexes = vec![index("PRIMARY", true, 8)];
    if choice.has_indexes {
        indexes.extend([index("number", false, 16), index("value", true, 8), index("group", false, 8)]);
    }
    TableSpec {
        name: "t".into(),
        row_format: RowFormatVersion::opaque(),
        indexes,
        compression: Compression::default(),
        hidden_key: false,
        auto_increment: 1,
        extra: Vec::new(),
        fulltext: choice.has_words.then(words).into_iter().collect(),
        is_temporary: false,
        encryption: Default::default(),
    }
}

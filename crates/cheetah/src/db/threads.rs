//! The background threads: loops around the background steps.

use super::background::Background;
use super::rest::Turn;
use crate::base::{Error, Result};
use crate::recovery::Crew;
use std::num::NonZero;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Dropping this ends the threads and waits for them.
pub(in crate::db) struct Threads {
    background: Arc<Background>,
    handles: Vec<JoinHandle<()>>,
}

/// Threads that read ahead for scans. Two, with a scan, use as many processors as most scans can
/// keep busy.
const READERS: [&str; 2] = ["cheetah-read-1", "cheetah-read-2"];

/// Startup threads: more could not be fed by the one thread that reads the log.
const CREW_MAX: usize = 8;

/// `count` threads of a startup, or, if 0, one for each processor, up to [`CREW_MAX`].
pub(in crate::db) fn crew(count: u32) -> Crew {
    let threads = match count {
        0 => std::thread::available_parallelism().map_or(1, NonZero::get).min(CREW_MAX),
        count => count as usize,
    };
    Crew { threads, run: run_crew }
}

fn run_crew(threads: usize, serve: &(dyn Fn(usize) + Sync), main: &mut dyn FnMut(usize)) {
    std::thread::scope(|scope| {
        let start = |no: &usize| {
            let (no, thread) = (*no, std::thread::Builder::new().name(format!("cheetah-redo-{no}")));
            thread.spawn_scoped(scope, move || serve(no)).is_ok()
        };
        main((0..threads).take_while(start).count());
    });
}

type Step = fn(&Background) -> Result<bool>;

#[derive(Clone, Copy)]
struct Job {
    name: &'static str,
    step: Step,
    /// Ends its sleep early, after a step that had nothing to do.
    woken_by: WokenBy,
    /// A step that did something may have made work for other threads.
    leads_to_more: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WokenBy {
    /// Calls of the background, see [`super::rest`].
    Calls,
    /// Calls of the background, and writers that wait for room.
    CallsAndWriters,
}

impl Job {
    const fn new(name: &'static str, step: Step) -> Self {
        Self { name, step, woken_by: WokenBy::Calls, leads_to_more: true }
    }
}

const JOBS: [Job; 11] = [
    Job { woken_by: WokenBy::CallsAndWriters, ..Job::new("cheetah-clean", Background::clean_step) },
    Job::new("cheetah-undo", Background::rollback_step),
    Job::new("cheetah-purge", Background::free_step),
    Job::new("cheetah-check", Background::checkpoint_step),
    Job::new("cheetah-gc", Background::collect_step),
    Job::new("cheetah-flush", Background::flush_step),
    Job::new("cheetah-stats", Background::statistics_step),
    Job { leads_to_more: false, ..Job::new("cheetah-scrub", Background::scrub_step) },
    Job::new("cheetah-keys", Background::key_step),
    Job::new("cheetah-words", Background::words_step),
    Job::new("cheetah-watch", Background::watch_step),
];

impl Threads {
    pub(in crate::db) fn start(background: &Arc<Background>) -> Result<Self> {
        background.rest.begin();
        let mut threads = Self { background: Arc::clone(background), handles: Vec::new() };
        for (no, job) in JOBS.into_iter().enumerate() {
            let turn = Turn { no: no as u64, count: JOBS.len() as u64 };
            threads.spawn(job.name, move |background| run(background, job, turn))?;
        }
        threads.background.pool().begin_read_ahead();
        for name in READERS {
            threads.spawn(name, |background| background.pool().serve_read_ahead())?;
        }
        Ok(threads)
    }

    fn spawn(&mut self, name: &'static str, body: impl FnOnce(&Background) + Send + 'static) -> Result<()> {
        let background = Arc::clone(&self.background);
        let thread = std::thread::Builder::new().name(name.into());
        let handle = thread.spawn(move || run_or_stop(&background, name, body));
        self.handles.push(handle.map_err(|error| Error::io("start", name, error))?);
        Ok(())
    }
}

/// Stops the engine if the body of a thread panics, because a panic means a broken invariant. So no
/// thread continues with the broken state, or waits forever for the thread that ended.
fn run_or_stop(background: &Background, name: &str, body: impl FnOnce(&Background)) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(background))) {
        background.stop_after_panic(name, panic.as_ref());
    }
}

/// Loops until asked to end, or until the engine has stopped. After another error, which the step
/// has recorded, it continues, because the cause may disappear.
fn run(background: &Background, job: Job, turn: Turn) {
    let mut worked_ns = 0;
    while !background.rest.ends() {
        match (job.step)(background) {
            Ok(true) => {
                worked_ns = background.now_ns();
                if job.leads_to_more {
                    background.call();
                }
            }
            Err(Error::Fatal(_)) => return,
            Ok(false) | Err(_) => {
                background.look_for_signs();
                sleep(background, job.woken_by, worked_ns, turn);
            }
        }
    }
}

fn sleep(background: &Background, woken_by: WokenBy, worked_ns: u64, turn: Turn) {
    let (rest, now_ns) = (&background.rest, background.now_ns());
    match woken_by {
        WokenBy::Calls => rest.sleep(now_ns, worked_ns, turn),
        WokenBy::CallsAndWriters => {
            background.pool().wait_to_clean(rest.pause(now_ns, worked_ns, turn));
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.background.hurry();
        self.background.rest.end();
        self.background.pool().end_read_ahead();
        self.background.pool().call_cleaner();
        for handle in self.handles.drain(..) {
            let _ = handle.join();
        }
        self.background.end_hurry();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Config;
    use crate::db::{Db, Env};
    use crate::format::image::Compression;
    use crate::format::row::RowFormatVersion;
    use crate::table::{IndexSpec, NewRow, TableSpec};
    use cheetah_io::sim::{SimClock, SimDisk};

    #[test]
    fn a_panic_of_a_step_stops_the_engine_with_its_message() {
        let env = Env { disk: Arc::new(SimDisk::new()), clock: Arc::new(SimClock::default()) };
        let db = Db::open(env, Config::tiny()).unwrap();
        run_or_stop(&db.0.background, "cheetah-clean", |_| panic!("page 7 is gone"));
        let reason = db.stopped().unwrap();
        assert!(reason.contains("cheetah-clean") && reason.contains("page 7 is gone"), "{reason}");
    }

    /// The engine believes that it has threads, but no thread makes a checkpoint.
    #[test]
    fn a_writer_that_waits_for_room_in_the_log_can_be_interrupted() {
        let env = Env { disk: Arc::new(SimDisk::new()), clock: Arc::new(SimClock::default()) };
        let db = Db::open(env, Config::tiny()).unwrap();
        let index = IndexSpec {
            name: "PRIMARY".into(),
            unique: true,
            max_key_bytes: 8,
            row_format: RowFormatVersion::opaque(),
        };
        let spec = TableSpec {
            name: "t".into(),
            row_format: RowFormatVersion { null_bytes: 0, fixed: vec![8], var_count: 0 },
            indexes: vec![index],
            compression: Compression::default(),
            hidden_key: false,
            auto_increment: 1,
            extra: Vec::new(),
            fulltext: Vec::new(),
            is_temporary: false,
            encryption: Default::default(),
        };
        let table = db.create_table(&spec).unwrap();
        db.0.core.pace.set_has_threads(true);
        let mut txn = db.begin();
        txn.interrupt_when(|| true);
        let refused = (0..100_000u64).find_map(|key| {
            let key = key.to_be_bytes();
            txn.insert(&table, &NewRow { key: &key, row: &key, secondary: &[] }).err()
        });
        assert!(matches!(refused, Some(Error::Interrupted)), "{refused:?}");
        db.0.core.pace.set_has_threads(false);
        txn.rollback().unwrap();
    }
}

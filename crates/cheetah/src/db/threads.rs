//! The threads of the background: loops around its steps.

use super::background::Background;
use crate::base::{Error, Result};
use parking_lot::{Condvar, Mutex};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Pause after a step that had nothing to do.
const IDLE: Duration = Duration::from_millis(20);

/// Running threads; dropping ends them and waits for that.
pub(super) struct Threads {
    background: Arc<Background>,
    stop: Arc<Stop>,
    handles: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Stop {
    asked: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Sleeps for `pause` unless asked to stop; whether to go on.
    fn go_on_after(&self, pause: Duration) -> bool {
        let mut asked = self.asked.lock();
        if !*asked && !pause.is_zero() {
            self.changed.wait_for(&mut asked, pause);
        }
        !*asked
    }
}

/// Threads that read ahead what scans will want: beside a scan, two keep as many processors busy as most scans can feed.
const READERS: [&str; 2] = ["cheetah-read-1", "cheetah-read-2"];

type Step = fn(&Background) -> Result<bool>;

impl Threads {
    pub(super) fn start(background: &Arc<Background>) -> Result<Self> {
        let steps: [(&str, Step); 4] = [
            ("cheetah-clean", |b| Ok(b.clean_step()? | b.free_step()?)),
            ("cheetah-check", Background::checkpoint_step),
            ("cheetah-gc", Background::collect_step),
            ("cheetah-flush", Background::flush_step),
        ];
        let background = Arc::clone(background);
        let mut threads = Self { background, stop: Arc::default(), handles: Vec::new() };
        for (name, step) in steps {
            let stop = Arc::clone(&threads.stop);
            threads.spawn(name, move |background| run(background, &stop, step))?;
        }
        threads.background.pool().begin_read_ahead();
        for name in READERS {
            threads.spawn(name, |background| background.pool().serve_read_ahead())?;
        }
        Ok(threads)
    }

    fn spawn(&mut self, name: &str, body: impl FnOnce(&Background) + Send + 'static) -> Result<()> {
        let background = Arc::clone(&self.background);
        let thread = std::thread::Builder::new().name(name.into());
        let handle = thread.spawn(move || run_or_stop(&background, body));
        self.handles.push(handle.map_err(|error| Error::io("start", name, error))?);
        Ok(())
    }
}

/// A panic in the background is a broken invariant: nobody works on with what it leaves behind.
fn run_or_stop(background: &Background, body: impl FnOnce(&Background)) {
    if catch_unwind(AssertUnwindSafe(|| body(background))).is_err() {
        background.stop_engine("a thread of the background has panicked");
    }
}

/// Loops until asked to stop, or until the engine has stopped. Other errors concern one page or table: they are met
/// again, and reported, by the statement that needs it.
fn run(background: &Background, stop: &Stop, step: Step) {
    let mut pause = Duration::ZERO;
    while stop.go_on_after(pause) {
        pause = match step(background) {
            Ok(true) => Duration::ZERO,
            Ok(false) => IDLE,
            Err(Error::Fatal(_)) => return,
            Err(_) => IDLE,
        };
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.background.hurry();
        *self.stop.asked.lock() = true;
        self.background.pool().end_read_ahead();
        self.stop.changed.notify_all();
        for handle in self.handles.drain(..) {
            let _ = handle.join();
        }
        self.background.end_hurry();
    }
}

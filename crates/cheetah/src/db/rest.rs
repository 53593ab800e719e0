//! When the threads of the background rest.
//!
//! A thread that has nothing to do looks again after [`IDLE`]. Once nothing has happened for
//! [`LINGER_NS`], the threads rest: they take turns, one a second, so that an idle database wakes
//! one thread a second.
//!
//! Invariants
//!   I1  Every step that gives the background work changes a *sign*, or is followed by a [call
//!       Every turn looks at the signs, so rest ends within a second of it.
//!   I2  Every thread has a turn every eleven seconds, for work that only the time makes due.
//!   I3  No thread rests while another one is held up, or a rollback is left to the background.
//!   I4  A call is not lost: a thread decides to rest, and falls asleep, under the mutex under
//!       which calls are noted. The cleaner sleeps elsewhere: a call ends its next sleep, too.
//! Locks     one mutex, taken last.

use crate::base::{sound, Lsn};
use parking_lot::{Condvar, Mutex};
use std::time::Duration;

/// Pause after a step that had nothing to do.
pub(super) const IDLE: Duration = Duration::from_millis(20);
/// Threads rest when nothing has happened for this time.
const LINGER_NS: u64 = 2_000_000_000;
/// From one turn to the next.
pub(super) const TURN_NS: u64 = 1_000_000_000;
/// How often signs are looked at while threads do not rest.
const LOOK_EVERY_NS: u64 = 100_000_000;

/// See the module.
#[derive(Default, Debug)]
pub(in crate::db) struct Rest {
    state: Mutex<State>,
    called: Condvar,
}

#[derive(Default, Debug)]
struct State {
    /// The threads are to end.
    ends: bool,
    /// When something happened last.
    active_ns: u64,
    looked_ns: u64,
    seen: Signs,
}

/// Signs of work for the background (I1): there may be some when one of the first three moves, or
/// when the last one is not 0.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(in crate::db) struct Signs {
    /// Where the log ends: something has been changed.
    pub(in crate::db) log_end: Lsn,
    /// Changes of which the log does not tell: of temporary tables.
    pub(in crate::db) unlogged: u64,
    /// The horizon of snapshots: purge may go on.
    pub(in crate::db) horizon: u64,
    /// Pages that were read: some may have to leave memory.
    pub(in crate::db) reads: u64,
    /// How many threads are held up, and how many rollbacks are left (I3).
    pub(in crate::db) in_progress: u64,
}

/// A thread's place among those that take turns.
#[derive(Clone, Copy, Debug)]
pub(in crate::db) struct Turn {
    /// From 0.
    pub(in crate::db) no: u64,
    /// How many take turns.
    pub(in crate::db) count: u64,
}

impl Turn {
    /// How long it is from `now_ns` to the next turn.
    pub(super) fn after(self, now_ns: u64) -> Duration {
        let round_ns = self.count * TURN_NS;
        let into_round_ns = (now_ns + round_ns - self.no * TURN_NS) % round_ns;
        Duration::from_nanos(round_ns - into_round_ns)
    }
}

impl Rest {
    /// Notes that something has happened. Returns whether that ends a rest.
    pub(in crate::db) fn call(&self, now_ns: u64) -> bool {
        let mut state = self.state.lock();
        let rested = state.is_quiet(now_ns);
        state.active_ns = now_ns;
        if rested {
            self.called.notify_all();
        }
        rested
    }

    /// Takes [`end`](Self::end) back, before threads begin.
    pub(in crate::db) fn begin(&self) {
        self.state.lock().ends = false;
    }

    /// Asks the threads to end.
    pub(in crate::db) fn end(&self) {
        self.state.lock().ends = true;
        self.called.notify_all();
    }

    /// Whether the threads are to end.
    pub(in crate::db) fn ends(&self) -> bool {
        self.state.lock().ends
    }

    /// Looks at the signs, which `read` reads, unless that was done a moment ago. Returns whether
    /// they end a rest.
    pub(in crate::db) fn look(&self, now_ns: u64, read: impl FnOnce() -> Signs) -> bool {
        let mut state = self.state.lock();
        if now_ns.saturating_sub(state.looked_ns) < LOOK_EVERY_NS {
            return false;
        }
        state.looked_ns = now_ns;
        let (signs, rested) = (read(), state.is_quiet(now_ns));
        let is_changed = std::mem::replace(&mut state.seen, signs) != signs;
        if !sound!(is_changed || signs.in_progress > 0, "background: rest whatever happens") {
            return false;
        }
        state.active_ns = now_ns;
        if rested {
            self.called.notify_all();
        }
        rested
    }

    /// How long to sleep after a step that had nothing to do: [`IDLE`], or to the next turn.
    /// `worked_ns`: when the thread has done something last.
    pub(in crate::db) fn pause(&self, now_ns: u64, worked_ns: u64, turn: Turn) -> Duration {
        self.state.lock().pause(now_ns, worked_ns, turn)
    }

    /// Sleeps for that pause, unless somebody calls, or the threads are to end.
    pub(in crate::db) fn sleep(&self, now_ns: u64, worked_ns: u64, turn: Turn) {
        let mut state = self.state.lock();
        if !state.ends {
            let pause = state.pause(now_ns, worked_ns, turn);
            self.called.wait_for(&mut state, pause);
        }
    }
}

impl State {
    fn is_quiet(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.active_ns) >= LINGER_NS
    }

    fn pause(&self, now_ns: u64, worked_ns: u64, turn: Turn) -> Duration {
        if self.is_quiet(now_ns) && now_ns.saturating_sub(worked_ns) >= LINGER_NS {
            turn.after(now_ns)
        } else {
            IDLE
        }
    }
}

//! When the background threads rest.
//!
//! A thread that has nothing to do looks again after [`IDLE`]. Once nothing has happened for
//! [`LINGER_NS`], the threads rest: they take turns, so that an idle database wakes only one thread
//! a second.
//!
//! Invariants
//!   I1  Every step that gives the background work changes a *sign*, or is followed by a *call*.
//!       Every turn checks the signs, so a rest ends within a second of a change.
//!   I2  Every thread has a turn every eleven seconds, for work that becomes due by time alone.
//!   I3  No thread rests while another thread is held up, or a rollback is left to the background.
//!   I4  A call is not lost: a thread decides to rest, and falls asleep, under the mutex under
//!       which calls are recorded. The cleaner sleeps elsewhere: a call also ends its next sleep.
//! Locks     one mutex, taken last.

use crate::base::{sound, Lsn};
use parking_lot::{Condvar, Mutex};
use std::time::Duration;

/// Pause after a step that had nothing to do.
pub(super) const IDLE: Duration = Duration::from_millis(20);
/// Threads rest once nothing has happened for this time.
const LINGER_NS: u64 = 2_000_000_000;
pub(super) const TURN_NS: u64 = 1_000_000_000;
/// Interval of checking the signs while threads do not rest.
const LOOK_EVERY_NS: u64 = 100_000_000;

#[derive(Default, Debug)]
pub(in crate::db) struct Rest {
    state: Mutex<State>,
    called: Condvar,
}

#[derive(Default, Debug)]
struct State {
    ends: bool,
    active_ns: u64,
    looked_ns: u64,
    seen: Signs,
}

/// Signs of work for the background (I1): one of the first four changes, or the last is not 0.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(in crate::db) struct Signs {
    /// Moves with changes of data.
    pub(in crate::db) log_end: Lsn,
    /// Changes that are not logged: those of temporary tables.
    pub(in crate::db) unlogged: u64,
    /// If the horizon of snapshots moves, purge may continue.
    pub(in crate::db) horizon: u64,
    /// Page reads: after reads, some pages may have to be evicted.
    pub(in crate::db) reads: u64,
    /// Threads that are held up, plus rollbacks left to the background (I3).
    pub(in crate::db) in_progress: u64,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::db) struct Turn {
    pub(in crate::db) no: u64,
    pub(in crate::db) count: u64,
}

impl Turn {
    pub(super) fn after(self, now_ns: u64) -> Duration {
        let round_ns = self.count * TURN_NS;
        let into_round_ns = (now_ns + round_ns - self.no * TURN_NS) % round_ns;
        Duration::from_nanos(round_ns - into_round_ns)
    }
}

impl Rest {
    /// Records that something happened; returns whether that ends a rest.
    pub(in crate::db) fn call(&self, now_ns: u64) -> bool {
        let mut state = self.state.lock();
        let rested = state.is_quiet(now_ns);
        state.active_ns = now_ns;
        if rested {
            self.called.notify_all();
        }
        rested
    }

    /// Reverts [`end`](Self::end), before threads start.
    pub(in crate::db) fn begin(&self) {
        self.state.lock().ends = false;
    }

    pub(in crate::db) fn end(&self) {
        self.state.lock().ends = true;
        self.called.notify_all();
    }

    pub(in crate::db) fn ends(&self) -> bool {
        self.state.lock().ends
    }

    /// Checks the signs that `read` returns, unless just done; returns whether they end a rest.
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

    /// How long to sleep after a step without work. `worked_ns`: when the thread last had some.
    pub(in crate::db) fn pause(&self, now_ns: u64, worked_ns: u64, turn: Turn) -> Duration {
        self.state.lock().pause(now_ns, worked_ns, turn)
    }

    /// Sleeps for [`pause`](Self::pause), unless a call or the end of the threads interrupts it.
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

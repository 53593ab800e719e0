//! Messages for the error log about stalls that take too long.
//!
//! Invariants
//!   I1  Two lines are at least [`LINES_APART_NS`] apart, even if many threads stall. Stalls that
//!       end in between are part of the next line for their reason.
//!   I2  Current stalls are reported before ended ones, because a hang is the most important. Among
//!       several reasons, the one reported least recently is reported first, so that no reason
//!       hides another.
//!   I3  Only stalls that the engine is responsible for are reported: waits for space in the log,
//!       for memory, for the disk and for checkpoints. Waits for locks and rollbacks depend on the
//!       users' own transactions. Waits for locks are reported only if many threads wait.

use super::places::Lasting;
use super::{ns_between, Reason};
use crate::base::opaque;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::OnceLock;

/// The minimum time between two lines.
const LINES_APART_NS: u64 = 1_000_000_000;
/// The number of threads waiting too long for locks from which on the waits are reported.
pub const LOCK_WAITERS_REPORTED_MIN: u64 = 10;
/// The time between the first two lines about current stalls of one reason; it doubles each time.
const AGAIN_NS: u64 = 10_000_000_000;

type Listener = Box<dyn Fn(&str) + Send + Sync>;

#[derive(Default)]
pub(super) struct Lines {
    /// The minimum duration of stalls that are reported, or 0 to report none.
    warning_ns: AtomicU64,
    state: Mutex<State>,
    listener: OnceLock<Listener>,
}

#[derive(Default, Debug)]
struct State {
    last_ns: Option<u64>,
    by_reason: [OfReason; Reason::ALL.len()],
}

#[derive(Default, Debug)]
struct OfReason {
    ended: TooLong,
    /// The time of the last line, or 0 if there was none.
    reported_ns: u64,
    /// The time of the next line about current stalls, and the pause after it.
    next_ns: u64,
    pause_ns: u64,
}

/// Stalls that took too long: their number, and the longest.
#[derive(Clone, Copy, Default, Debug)]
struct TooLong {
    count: u64,
    longest_ns: u64,
    connection: u64,
}

impl TooLong {
    fn add(&mut self, connection: u64, ns: u64) {
        self.count += 1;
        if ns >= self.longest_ns {
            (self.longest_ns, self.connection) = (ns, connection);
        }
    }

    /// `one` and `many` are the verbs, in the present or the past.
    fn line(&self, reason: Reason, one: &str, many: &str) -> String {
        let Self { count, longest_ns, connection } = *self;
        let who = match connection {
            0 => "a thread of the engine".to_owned(),
            connection => format!("connection {connection}"),
        };
        let (what, seconds) = (waited_for(reason), longest_ns as f64 / 1e9);
        match count {
            1 => format!("stall: {who} {one} {seconds:.3} s for {what}"),
            _ => format!("stall: {count} threads {many} for {what}, {who} for {seconds:.3} s"),
        }
    }
}

fn waited_for(reason: Reason) -> &'static str {
    match reason {
        Reason::RowLock => "row locks",
        Reason::TableLock => "table locks",
        Reason::LogSpace => "room in the log",
        Reason::Memory => "free memory",
        Reason::Rollback => "a rollback to end",
        Reason::Disk => "the disk",
        Reason::Checkpoint => "a step of a checkpoint to end",
    }
}

/// The number of concurrent long stalls from which on a reason is reported (I3).
fn reported_from(reason: Reason) -> Option<u64> {
    match reason {
        Reason::RowLock | Reason::TableLock => Some(LOCK_WAITERS_REPORTED_MIN),
        Reason::Rollback => None,
        Reason::LogSpace | Reason::Memory | Reason::Disk | Reason::Checkpoint => Some(1),
    }
}

opaque!(Lines);

impl Lines {
    pub(super) fn warn_from(&self, warning_ns: u64) {
        self.warning_ns.store(warning_ns, Relaxed);
    }

    pub(super) fn announce_to(&self, listener: impl Fn(&str) + Send + Sync + 'static) {
        let _ = self.listener.set(Box::new(listener));
    }

    pub(super) fn note_ended(&self, stall: Lasting, ns: u64) {
        let warning_ns = self.warning_ns.load(Relaxed);
        if warning_ns > 0 && ns >= warning_ns && reported_from(stall.reason) == Some(1) {
            self.state.lock().by_reason[stall.reason as usize].ended.add(stall.connection, ns);
        }
    }

    pub(super) fn look(&self, lasting: impl Iterator<Item = Lasting>, now_ns: u64) {
        let (warning_ns, Some(listener)) = (self.warning_ns.load(Relaxed), self.listener.get()) else {
            return;
        };
        if warning_ns == 0 {
            return;
        }
        let mut too_long = [TooLong::default(); Reason::ALL.len()];
        for Lasting { reason, connection, since_ns } in lasting {
            let ns = ns_between(since_ns, now_ns);
            if ns >= warning_ns.max(reason.least_ns()) {
                too_long[reason as usize].add(connection, ns);
            }
        }
        let line = self.state.lock().next_line(&too_long, now_ns);
        if let Some(line) = line {
            listener(&line);
        }
    }
}

impl State {
    fn next_line(&mut self, lasting: &[TooLong; Reason::ALL.len()], now_ns: u64) -> Option<String> {
        let is_reported = |reason: Reason| {
            reported_from(reason).is_some_and(|least| lasting[reason as usize].count >= least)
        };
        for reason in Reason::ALL.into_iter().filter(|reason| !is_reported(*reason)) {
            let of_reason = &mut self.by_reason[reason as usize];
            (of_reason.next_ns, of_reason.pause_ns) = (0, 0);
        }
        if self.last_ns.is_some_and(|last_ns| ns_between(last_ns, now_ns) < LINES_APART_NS) {
            return None;
        }
        let that_lasts = self.next_reason(|reason, it| is_reported(reason) && now_ns >= it.next_ns);
        let reason = that_lasts.or_else(|| self.next_reason(|_, it| it.ended.count > 0))?;
        let of_reason = &mut self.by_reason[reason as usize];
        (self.last_ns, of_reason.reported_ns) = (Some(now_ns), now_ns);
        if that_lasts.is_none() {
            let ended = std::mem::take(&mut of_reason.ended);
            return Some(ended.line(reason, "waited", "waited"));
        }
        let pause_ns = of_reason.pause_ns.max(AGAIN_NS);
        (of_reason.next_ns, of_reason.pause_ns) = (now_ns + pause_ns, 2 * pause_ns);
        Some(lasting[reason as usize].line(reason, "has been waiting", "have been waiting"))
    }

    /// Returns the due reason that was reported least recently (I2).
    fn next_reason(&self, is_due: impl Fn(Reason, &OfReason) -> bool) -> Option<Reason> {
        let of_reason = |reason: Reason| &self.by_reason[reason as usize];
        let due = Reason::ALL.into_iter().filter(|reason| is_due(*reason, of_reason(*reason)));
        due.min_by_key(|reason| of_reason(*reason).reported_ns)
    }
}

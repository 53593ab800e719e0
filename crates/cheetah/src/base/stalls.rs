//! Stalls: how often and for how long threads of a database were in each of the
//! [stages](super::stages), whose the last one was, and a line for people when one takes too long.
//!
//! Invariants
//!   I1  A stall is counted when it has ended, whatever ended it. Until then it is one of the
//!       current ones.
//!   I2  Lines are at least [`LINES_APART_NS`] apart, however many threads stall. The next line
//!       says how many were left out.
//!   I3  Only what the engine owes its users is told of: waits for room in the log and in memory.
//!       Locks and rollbacks are what users do to each other.
//! Locks     one mutex, for lines only, never held while the listener runs.

use super::latency::{Latency, LatencyCounts};
use super::stages::{self, InStage, Stage};
use cheetah_io::Clock;
use parking_lot::Mutex;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::OnceLock;

/// Least time between two lines.
pub const LINES_APART_NS: u64 = 1_000_000_000;

type Listener = Box<dyn Fn(&str) + Send + Sync>;

/// See the module.
#[derive(Default)]
pub struct Stalls {
    by_stage: [Counted; Stage::ALL.len()],
    /// From here on a stall is told of; 0: none is.
    warning_ns: AtomicU64,
    lines: Mutex<Lines>,
    listener: OnceLock<Listener>,
}

#[derive(Default, Debug)]
struct Counted {
    ended: Latency,
    current: AtomicU64,
    last_ended_ns: AtomicU64,
    last_connection: AtomicU64,
}

#[derive(Default, Debug)]
struct Lines {
    last_ns: Option<u64>,
    left_out: u64,
}

/// The stalls of one stage.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StallCounts {
    /// Those that last.
    pub current: u64,
    /// Those that have ended.
    pub ended: LatencyCounts,
    /// The last one that has ended, if one has.
    pub last: Option<LastStall>,
}

/// The last stall of a stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LastStall {
    /// When it ended, by the clock of the database.
    pub ended_ns: u64,
    /// The number of the connection that stalled; 0: a thread of the engine. Of two stalls that end
    /// at the same moment it may be the other's.
    pub connection: u64,
}

impl fmt::Debug for Stalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stalls").field("by_stage", &self.by_stage).finish_non_exhaustive()
    }
}

impl Stalls {
    /// Begins a stall of the calling thread; it ends when what this returns is dropped.
    #[must_use]
    pub fn begin<'s>(&'s self, stage: Stage, clock: &'s dyn Clock) -> Stall<'s> {
        self.of_stage(stage).current.fetch_add(1, Relaxed);
        Stall { stalls: self, clock, since_ns: clock.now_ns(), is_told: false, stage: stages::begin(stage) }
    }

    /// Those of a stage.
    pub fn counts(&self, stage: Stage) -> StallCounts {
        let counted = self.of_stage(stage);
        let ended = counted.ended.counts();
        let last = LastStall {
            ended_ns: counted.last_ended_ns.load(Relaxed),
            connection: counted.last_connection.load(Relaxed),
        };
        let last = (ended.count() > 0).then_some(last);
        StallCounts { current: counted.current.load(Relaxed), ended, last }
    }

    /// From now on `listener` hears of each stall for room in the log or in memory that takes so
    /// long or longer; 0: of none.
    pub fn warn_from(&self, warning_ns: u64) {
        self.warning_ns.store(warning_ns, Relaxed);
    }

    /// From now on `listener` gets the lines, in the threads that stall. The first listener counts.
    pub fn announce_to(&self, listener: impl Fn(&str) + Send + Sync + 'static) {
        let _ = self.listener.set(Box::new(listener));
    }

    fn of_stage(&self, stage: Stage) -> &Counted {
        &self.by_stage[stage as usize]
    }

    fn is_to_tell(&self, stage: Stage, ns: u64) -> bool {
        let warning_ns = self.warning_ns.load(Relaxed);
        warning_ns > 0 && ns >= warning_ns && waited_for(stage).is_some()
    }

    /// Tells a line, unless the last one was told a moment ago.
    fn tell(&self, now_ns: u64, line: &str) {
        let Some(listener) = self.listener.get() else { return };
        let left_out = {
            let mut lines = self.lines.lock();
            if lines.last_ns.is_some_and(|last_ns| now_ns.saturating_sub(last_ns) < LINES_APART_NS) {
                lines.left_out += 1;
                return;
            }
            lines.last_ns = Some(now_ns);
            std::mem::take(&mut lines.left_out)
        };
        match left_out {
            0 => listener(line),
            _ => {
                listener(&format!("{line} ({left_out} lines of other stalls were left out before this one)"))
            }
        }
    }
}

/// What a thread in a stage waits for that the engine owes it.
fn waited_for(stage: Stage) -> Option<&'static str> {
    match stage {
        Stage::LogSpace => Some("room in the log"),
        Stage::Memory => Some("free memory"),
        Stage::RowLock | Stage::TableLock | Stage::RollingBack => None,
    }
}

/// A stall of this thread; it ends when this is dropped, which may call the listener: not under a
/// lock.
pub struct Stall<'s> {
    stalls: &'s Stalls,
    clock: &'s dyn Clock,
    since_ns: u64,
    is_told: bool,
    stage: InStage,
}

impl fmt::Debug for Stall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stall").field("stage", &self.stage).finish_non_exhaustive()
    }
}

impl Stall<'_> {
    /// When it began.
    pub fn since_ns(&self) -> u64 {
        self.since_ns
    }

    /// Tells of this stall if it has taken too long by now, once: its end tells of it again. May
    /// call the listener: not under a lock.
    pub fn look(&mut self) {
        let now_ns = self.clock.now_ns();
        if !self.is_told && self.stalls.is_to_tell(self.stage.stage(), self.ns_until(now_ns)) {
            self.is_told = true;
            self.tell("has been waiting", now_ns);
        }
    }

    fn ns_until(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.since_ns)
    }

    fn tell(&self, does: &str, now_ns: u64) {
        let Some(what) = waited_for(self.stage.stage()) else { return };
        let who = match self.stage.connection() {
            0 => "a thread of the engine".to_owned(),
            connection => format!("connection {connection}"),
        };
        let seconds = self.ns_until(now_ns) as f64 / 1e9;
        self.stalls.tell(now_ns, &format!("stall: {who} {does} {seconds:.3} s for {what}"));
    }
}

impl Drop for Stall<'_> {
    fn drop(&mut self) {
        let now_ns = self.clock.now_ns();
        let (stage, ns) = (self.stage.stage(), self.ns_until(now_ns));
        let counted = self.stalls.of_stage(stage);
        counted.ended.record(ns);
        counted.last_ended_ns.store(now_ns, Relaxed);
        counted.last_connection.store(self.stage.connection(), Relaxed);
        counted.current.fetch_sub(1, Relaxed);
        if self.stalls.is_to_tell(stage, ns) {
            self.tell("waited", now_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::stages::testing::become_connection;
    use super::*;
    use cheetah_io::sim::SimClock;
    use std::sync::Arc;

    const SECOND_NS: u64 = 1_000_000_000;

    fn announced(warning_ns: u64) -> (Stalls, Arc<Mutex<Vec<String>>>) {
        let (stalls, heard) = (Stalls::default(), Arc::new(Mutex::new(Vec::new())));
        let sink = Arc::clone(&heard);
        stalls.announce_to(move |line| sink.lock().push(line.to_owned()));
        stalls.warn_from(warning_ns);
        (stalls, heard)
    }

    fn stall(stalls: &Stalls, stage: Stage, clock: &SimClock, ns: u64) {
        let _stall = stalls.begin(stage, clock);
        clock.sleep_ns(ns);
    }

    #[test]
    fn stalls_are_counted_by_stage_when_they_end_also_by_a_panic() {
        let (stalls, clock) = (Stalls::default(), SimClock::default());
        stall(&stalls, Stage::RowLock, &clock, 3_000);
        stall(&stalls, Stage::Memory, &clock, 5_000);
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _stall = stalls.begin(Stage::RowLock, &clock);
            assert_eq!(stalls.counts(Stage::RowLock).current, 1);
            clock.sleep_ns(4_000);
            panic!("within a stall");
        }));
        assert!(ended.is_err());
        let rows = stalls.counts(Stage::RowLock);
        assert_eq!((rows.current, rows.ended.count(), rows.ended.sum_ns), (0, 2, 7_000));
        assert_eq!(rows.ended.max_ns, 4_000);
        assert_eq!(rows.last.map(|last| last.ended_ns), Some(12_000));
        assert_eq!(stalls.counts(Stage::Memory).ended.sum_ns, 5_000);
        for stage in [Stage::TableLock, Stage::LogSpace, Stage::RollingBack] {
            assert_eq!(stalls.counts(stage), StallCounts::default());
        }
    }

    #[test]
    fn a_stall_that_takes_too_long_is_told_of_while_it_lasts_and_when_it_ends() {
        let (stalls, heard) = announced(2 * SECOND_NS);
        let clock = SimClock::default();
        stall(&stalls, Stage::Memory, &clock, 2 * SECOND_NS - 1);
        let mut long = stalls.begin(Stage::LogSpace, &clock);
        for _ in 0..5 {
            long.look();
            clock.sleep_ns(SECOND_NS);
        }
        drop(long);
        let expected = [
            "stall: a thread of the engine has been waiting 2.000 s for room in the log",
            "stall: a thread of the engine waited 5.000 s for room in the log",
        ];
        assert_eq!(*heard.lock(), expected);
    }

    #[test]
    fn a_stall_is_that_of_the_connection_whose_thread_it_is() {
        become_connection(12);
        let (stalls, heard) = announced(SECOND_NS);
        let clock = SimClock::default();
        stall(&stalls, Stage::LogSpace, &clock, SECOND_NS);
        assert_eq!(*heard.lock(), ["stall: connection 12 waited 1.000 s for room in the log"]);
        let last = stalls.counts(Stage::LogSpace).last;
        assert_eq!(last, Some(LastStall { ended_ns: SECOND_NS, connection: 12 }));
    }

    #[test]
    fn locks_and_rollbacks_are_not_told_of_nor_is_anything_when_it_is_off() {
        let (stalls, heard) = announced(1);
        let clock = SimClock::default();
        for stage in [Stage::RowLock, Stage::TableLock, Stage::RollingBack] {
            stall(&stalls, stage, &clock, 9 * SECOND_NS);
        }
        stalls.warn_from(0);
        stall(&stalls, Stage::LogSpace, &clock, 9 * SECOND_NS);
        assert!(heard.lock().is_empty(), "{heard:?}");
        stalls.warn_from(9 * SECOND_NS);
        stall(&stalls, Stage::Memory, &clock, 9 * SECOND_NS);
        assert_eq!(*heard.lock(), ["stall: a thread of the engine waited 9.000 s for free memory"]);
    }

    #[test]
    fn lines_are_a_second_apart_and_say_how_many_were_left_out() {
        let (stalls, heard) = announced(SECOND_NS);
        let clock = SimClock::default();
        let many = [(); 40].map(|()| stalls.begin(Stage::LogSpace, &clock));
        clock.sleep_ns(3 * SECOND_NS);
        drop(many);
        stall(&stalls, Stage::Memory, &clock, LINES_APART_NS);
        let lines = heard.lock().clone();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].ends_with("waited 3.000 s for room in the log"), "{lines:?}");
        assert!(lines[1].ends_with("free memory (39 lines of other stalls were left out before this one)"));
        assert_eq!(stalls.counts(Stage::LogSpace).ended.count(), 40);
    }
}

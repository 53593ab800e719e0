//! Stalls: how often and for how long threads of a database did not get on, by reason, whose the
//! last one was, and a line for people when one takes too long.
//!
//! A thread that waits, or rolls back, is stalled. One that reads from the disk, or syncs, or makes
//! a step of a checkpoint, is so only when that takes [`LONG_NS`] or longer.
//!
//! Invariants
//!   I1  A stall is counted when it has ended, whatever ended it. Until then it is one of the
//!       current ones.
//!   I2  Who is stalled cannot be relied on to say so: somebody else calls [`Stalls::look`] now and
//!       then, who does no I/O and takes no locks of others.
//!   I3  Lines are at least [`LINES_APART_NS`] apart, however many threads stall. The next line
//!       says how many were left out.
//!   I4  Only what the engine owes its users is told of: waits for room in the log and in memory,
//!       for the disk and for checkpoints. Locks and rollbacks are what users do to each other;
//!       when many wait for locks, that is told of, too.
//! Locks     one mutex, for lines only, never held while the listener runs.

mod places;
#[cfg(test)]
mod tests;

use super::latency::{Latency, LatencyCounts};
use super::stages::{self, InStage, Stage};
use cheetah_io::Clock;
use parking_lot::Mutex;
use places::{Lasting, Places, Taken};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::OnceLock;

/// Least time between two lines.
pub const LINES_APART_NS: u64 = 1_000_000_000;
/// An operation that takes so long is a stall.
pub const LONG_NS: u64 = 1_000_000_000;
/// So many threads that wait for locks for too long are told of.
pub const PILE_UP: u64 = 10;
/// Time between two lines of one reason, both of stalls that last; then twice as long each time.
const AGAIN_NS: u64 = 10_000_000_000;

/// Why a thread does not get on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// [`Stage::RowLock`].
    RowLock,
    /// [`Stage::TableLock`].
    TableLock,
    /// [`Stage::LogSpace`].
    LogSpace,
    /// [`Stage::Memory`].
    Memory,
    /// [`Stage::RollingBack`].
    Rollback,
    /// A sync of the log, or a read of a page that somebody needs.
    Disk,
    /// A step of a checkpoint.
    Checkpoint,
}

impl Reason {
    /// All of them, in their order.
    pub const ALL: [Reason; 7] = [
        Reason::RowLock,
        Reason::TableLock,
        Reason::LogSpace,
        Reason::Memory,
        Reason::Rollback,
        Reason::Disk,
        Reason::Checkpoint,
    ];

    fn of(stage: Stage) -> Self {
        match stage {
            Stage::RowLock => Self::RowLock,
            Stage::TableLock => Self::TableLock,
            Stage::LogSpace => Self::LogSpace,
            Stage::Memory => Self::Memory,
            Stage::RollingBack => Self::Rollback,
        }
    }

    /// A stall that lasts shorter is none.
    fn least_ns(self) -> u64 {
        match self {
            Self::Disk | Self::Checkpoint => LONG_NS,
            _ => 0,
        }
    }

    /// What is waited for.
    fn waited_for(self) -> &'static str {
        match self {
            Self::RowLock => "row locks",
            Self::TableLock => "table locks",
            Self::LogSpace => "room in the log",
            Self::Memory => "free memory",
            Self::Rollback => "a rollback to end",
            Self::Disk => "the disk",
            Self::Checkpoint => "a step of a checkpoint to end",
        }
    }

    /// I4: so many threads that stall too long are told of while that lasts.
    fn told_from(self) -> Option<u64> {
        match self {
            Self::RowLock | Self::TableLock => Some(PILE_UP),
            Self::Rollback => None,
            Self::LogSpace | Self::Memory | Self::Disk | Self::Checkpoint => Some(1),
        }
    }
}

type Listener = Box<dyn Fn(&str) + Send + Sync>;

/// See the module.
#[derive(Default)]
pub struct Stalls {
    by_reason: [Counted; Reason::ALL.len()],
    places: Places,
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
    lasting: [Told; Reason::ALL.len()],
}

/// When stalls of a reason that last are told of next.
#[derive(Default, Debug)]
struct Told {
    next_ns: u64,
    pause_ns: u64,
}

/// The stalls of one reason.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StallCounts {
    /// Those that last.
    pub current: u64,
    /// How long the longest of these has lasted; 0: there is none.
    pub current_ns_max: u64,
    /// Those that have ended.
    pub ended: LatencyCounts,
    /// The last one that has ended, if one has.
    pub last: Option<LastStall>,
}

/// The last stall of a reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LastStall {
    /// When it ended, by the clock of the database.
    pub ended_ns: u64,
    /// The number of the connection that stalled; 0: a thread of the engine. Of two stalls that end
    /// at the same moment it may be the other's.
    pub connection: u64,
}

/// Those of a reason that have lasted too long.
#[derive(Clone, Copy, Default)]
struct TooLong {
    count: u64,
    longest: Option<Lasting>,
}

impl TooLong {
    fn add(&mut self, stall: Lasting) {
        self.count += 1;
        if self.longest.is_none_or(|longest| stall.since_ns < longest.since_ns) {
            self.longest = Some(stall);
        }
    }
}

impl fmt::Debug for Stalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stalls").field("by_reason", &self.by_reason).finish_non_exhaustive()
    }
}

impl Stalls {
    /// Begins a stall of the calling thread; it ends when what this returns is dropped.
    #[must_use]
    pub fn begin<'s>(&'s self, stage: Stage, clock: &'s dyn Clock) -> Stall<'s> {
        let (stage, since_ns) = (stages::begin(stage), clock.now_ns());
        let (reason, connection) = (Reason::of(stage.stage()), stage.connection());
        self.of_reason(reason).current.fetch_add(1, Relaxed);
        let stall = Lasting { reason, connection, since_ns };
        Stall { stalls: self, clock, stall, _place: self.places.take(stall), _stage: stage }
    }

    /// Begins an operation of the calling thread, which is a stall if it takes long. It ends, and
    /// is recorded in `latency`, when what this returns is dropped.
    #[must_use]
    pub fn begin_operation<'s>(
        &'s self,
        reason: Reason,
        latency: &'s Latency,
        clock: &'s dyn Clock,
    ) -> Operation<'s> {
        let stall = Lasting { reason, connection: stages::connection(), since_ns: clock.now_ns() };
        Operation { stalls: self, latency, clock, stall, place: self.places.take(stall), has_ended: false }
    }

    /// Those of a reason, by a clock that shows `now_ns`.
    pub fn counts(&self, reason: Reason, now_ns: u64) -> StallCounts {
        let counted = self.of_reason(reason);
        let mut lasting = TooLong::default();
        let of_reason = self.places.lasting().filter(|stall| stall.reason == reason);
        let long_enough = of_reason.filter(|stall| ns_between(stall.since_ns, now_ns) >= reason.least_ns());
        long_enough.for_each(|stall| lasting.add(stall));
        let ended = counted.ended.counts();
        let last = LastStall {
            ended_ns: counted.last_ended_ns.load(Relaxed),
            connection: counted.last_connection.load(Relaxed),
        };
        StallCounts {
            current: match reason.least_ns() {
                0 => counted.current.load(Relaxed),
                _ => lasting.count,
            },
            current_ns_max: lasting.longest.map_or(0, |stall| ns_between(stall.since_ns, now_ns)),
            ended,
            last: (ended.count() > 0).then_some(last),
        }
    }

    /// Those of a reason that have ended.
    pub fn ended(&self, reason: Reason) -> LatencyCounts {
        self.of_reason(reason).ended.counts()
    }

    /// From now on `listener` hears of each stall of I4 that takes so long or longer; 0: of none.
    pub fn warn_from(&self, warning_ns: u64) {
        self.warning_ns.store(warning_ns, Relaxed);
    }

    /// From now on `listener` gets the lines, in threads that have been stalled and in that which
    /// looks. It must not use the engine: it may be called under its locks. The first listener
    /// counts.
    pub fn announce_to(&self, listener: impl Fn(&str) + Send + Sync + 'static) {
        let _ = self.listener.set(Box::new(listener));
    }

    /// Tells of stalls that have lasted too long by now: a line for each reason, again after ten
    /// seconds, and then after twice as long each time. May call the listener.
    pub fn look(&self, now_ns: u64) {
        let warning_ns = self.warning_ns.load(Relaxed);
        if warning_ns == 0 {
            return;
        }
        let mut too_long = [TooLong::default(); Reason::ALL.len()];
        for stall in self.places.lasting() {
            let least_ns = warning_ns.max(stall.reason.least_ns());
            if ns_between(stall.since_ns, now_ns) >= least_ns {
                too_long[stall.reason as usize].add(stall);
            }
        }
        for reason in Reason::ALL {
            self.look_at(reason, too_long[reason as usize], now_ns);
        }
    }

    fn look_at(&self, reason: Reason, TooLong { count, longest }: TooLong, now_ns: u64) {
        let is_to_tell = {
            let mut lines = self.lines.lock();
            let is_free = lines.is_free_at(now_ns);
            let told = &mut lines.lasting[reason as usize];
            let is_told = reason.told_from().is_some_and(|least| count >= least);
            if !is_told {
                told.pause_ns = 0;
            }
            let is_to_tell = is_told && is_free && now_ns >= told.next_ns;
            if is_to_tell {
                let pause_ns = told.pause_ns.max(AGAIN_NS);
                *told = Told { next_ns: now_ns + pause_ns, pause_ns: 2 * pause_ns };
            }
            is_to_tell
        };
        let (true, Some(longest)) = (is_to_tell, longest) else { return };
        let seconds = ns_between(longest.since_ns, now_ns) as f64 / 1e9;
        let (who, what) = (who(longest.connection), reason.waited_for());
        self.tell(
            now_ns,
            &match count {
                1 => format!("stall: {who} has been waiting {seconds:.3} s for {what}"),
                _ => format!("stall: {count} threads have been waiting for {what}, {who} for {seconds:.3} s"),
            },
        );
    }

    fn of_reason(&self, reason: Reason) -> &Counted {
        &self.by_reason[reason as usize]
    }

    /// Counts a stall that has ended, and tells of it if it took too long.
    fn end(&self, stall: Lasting, now_ns: u64) {
        let (counted, ns) = (self.of_reason(stall.reason), ns_between(stall.since_ns, now_ns));
        counted.ended.record(ns);
        counted.last_ended_ns.store(now_ns, Relaxed);
        counted.last_connection.store(stall.connection, Relaxed);
        let warning_ns = self.warning_ns.load(Relaxed);
        if warning_ns > 0 && ns >= warning_ns && stall.reason.told_from() == Some(1) {
            let (who, seconds) = (who(stall.connection), ns as f64 / 1e9);
            let what = stall.reason.waited_for();
            self.tell(now_ns, &format!("stall: {who} waited {seconds:.3} s for {what}"));
        }
    }

    /// Tells a line, unless the last one was told a moment ago.
    fn tell(&self, now_ns: u64, line: &str) {
        let Some(listener) = self.listener.get() else { return };
        let left_out = {
            let mut lines = self.lines.lock();
            if !lines.is_free_at(now_ns) {
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

impl Lines {
    /// Whether another line may follow now (I3).
    fn is_free_at(&self, now_ns: u64) -> bool {
        self.last_ns.is_none_or(|last_ns| ns_between(last_ns, now_ns) >= LINES_APART_NS)
    }
}

fn who(connection: u64) -> String {
    match connection {
        0 => "a thread of the engine".to_owned(),
        connection => format!("connection {connection}"),
    }
}

/// Clocks of different processors may differ a little.
fn ns_between(since_ns: u64, now_ns: u64) -> u64 {
    now_ns.saturating_sub(since_ns)
}

/// A stall of this thread; it ends when this is dropped, which may call the listener.
pub struct Stall<'s> {
    stalls: &'s Stalls,
    clock: &'s dyn Clock,
    stall: Lasting,
    _place: Taken<'s>,
    _stage: InStage,
}

impl fmt::Debug for Stall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stall").field("stall", &self.stall).finish_non_exhaustive()
    }
}

impl Stall<'_> {
    /// When it began.
    pub fn since_ns(&self) -> u64 {
        self.stall.since_ns
    }
}

impl Drop for Stall<'_> {
    fn drop(&mut self) {
        self.stalls.end(self.stall, self.clock.now_ns());
        self.stalls.of_reason(self.stall.reason).current.fetch_sub(1, Relaxed);
    }
}

/// An operation of this thread; it ends when this is dropped, which may call the listener.
pub struct Operation<'s> {
    stalls: &'s Stalls,
    latency: &'s Latency,
    clock: &'s dyn Clock,
    stall: Lasting,
    place: Taken<'s>,
    has_ended: bool,
}

impl fmt::Debug for Operation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation").field("stall", &self.stall).finish_non_exhaustive()
    }
}

impl Operation<'_> {
    /// Ends it; how long it has taken.
    pub fn end(mut self) -> u64 {
        self.has_ended = true;
        self.record()
    }

    /// Ends the operation, does something that is none, and begins the next operation.
    pub fn between<R>(&mut self, other: impl FnOnce() -> R) -> R {
        self.record();
        self.place = Taken::default();
        let done = other();
        self.stall.since_ns = self.clock.now_ns();
        self.place = self.stalls.places.take(self.stall);
        done
    }

    fn record(&self) -> u64 {
        let now_ns = self.clock.now_ns();
        let ns = ns_between(self.stall.since_ns, now_ns);
        self.latency.record(ns);
        if ns >= self.stall.reason.least_ns() {
            self.stalls.end(self.stall, now_ns);
        }
        ns
    }
}

impl Drop for Operation<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.record();
        }
    }
}

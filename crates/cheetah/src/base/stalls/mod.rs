//! Stalls: the number and length of the stalls of a database's threads, by reason, and the
//! connection of the last stall.
//!
//! A thread that waits or rolls back is stalled. A thread that reads from the disk, syncs, or runs
//! a step of a checkpoint is stalled only if this takes [`LONG_NS`] or longer.
//!
//! Invariants
//!   I1  A stall is counted when it ends, even by an error or a panic. Until then it is a current
//!       stall.
//!   I2  Stalled threads do not report their stalls, because they may hang. They only note the
//!       stall, and the thread that calls [`Stalls::look`] reports it (`lines`).
//! Locks     One mutex for lines, and one for the last stall of each reason; both are taken last.

mod lines;
mod places;
#[cfg(test)]
mod tests;

use super::latency::{Latency, LatencyCounts};
use super::stages::{self, InStage, Stage};
use crate::base::opaque;
use cheetah_io::Clock;
use lines::Lines;
use parking_lot::Mutex;
use places::{Lasting, Places, Taken};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub use lines::LOCK_WAITERS_REPORTED_MIN;

/// An operation that takes at least this time counts as a stall.
pub const LONG_NS: u64 = 1_000_000_000;
/// Only the largest servers have more concurrent waits. Further waits are not visible.
const WAITS_SEEN_MAX: usize = 1024;
/// Operations have their own places, so that many waits for locks do not hide a hanging disk.
const OPERATIONS_SEEN_MAX: usize = 256;

/// The reason why a thread is stalled.
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
    /// A sync of the log, or a read of a single page.
    Disk,
    /// A step of a checkpoint.
    Checkpoint,
}

impl Reason {
    /// All reasons, in order.
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

    /// The minimum duration for which this reason counts as a stall.
    fn least_ns(self) -> u64 {
        match self {
            Self::Disk | Self::Checkpoint => LONG_NS,
            _ => 0,
        }
    }
}

/// See the module.
#[derive(Debug)]
pub struct Stalls {
    by_reason: [Counted; Reason::ALL.len()],
    waits: Places,
    operations: Places,
    lines: Lines,
}

#[derive(Default, Debug)]
struct Counted {
    ended: Latency,
    current: AtomicU64,
    last: Mutex<Option<LastStall>>,
}

/// The stalls of one reason.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StallCounts {
    /// Number of current stalls.
    pub current: u64,
    /// The duration of the longest current stall, or 0 if there is none.
    pub current_ns_max: u64,
    /// The stalls that have ended.
    pub ended: LatencyCounts,
    /// The last stall that has ended, if any.
    pub last: Option<LastStall>,
}

/// The last stall of a reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LastStall {
    /// The time of its end, by the clock of the database.
    pub ended_ns: u64,
    /// The ID of the connection that stalled, or 0 for a thread of the engine.
    pub connection: u64,
}

impl Default for Stalls {
    fn default() -> Self {
        Self {
            by_reason: Default::default(),
            waits: Places::new(WAITS_SEEN_MAX),
            operations: Places::new(OPERATIONS_SEEN_MAX),
            lines: Lines::default(),
        }
    }
}

impl Stalls {
    /// Begins a stall of the calling thread. It ends when the returned value is dropped.
    #[must_use]
    pub fn begin<'s>(&'s self, stage: Stage, clock: &'s dyn Clock) -> Stall<'s> {
        let (stage, since_ns) = (stages::begin(stage), clock.now_ns());
        let (reason, connection) = (Reason::of(stage.stage()), stage.connection());
        self.of_reason(reason).current.fetch_add(1, Relaxed);
        let stall = Lasting { reason, connection, since_ns };
        Stall { stalls: self, clock, stall, _place: self.waits.take(stall), _stage: stage }
    }

    /// Begins an operation of the calling thread, which is a stall if it takes long. It ends, and
    /// is recorded in `latency`, when the returned value is dropped.
    #[must_use]
    pub fn begin_operation<'s>(
        &'s self,
        reason: Reason,
        latency: &'s Latency,
        clock: &'s dyn Clock,
    ) -> Operation<'s> {
        let stall = Lasting { reason, connection: stages::connection(), since_ns: clock.now_ns() };
        Operation { stalls: self, latency, clock, stall, place: Some(self.operations.take(stall)) }
    }

    /// The stalls of a reason. `now_ns` is the current time.
    pub fn counts(&self, reason: Reason, now_ns: u64) -> StallCounts {
        let counted = self.of_reason(reason);
        let of_reason = self.lasting().filter(|stall| stall.reason == reason);
        let long_enough = of_reason.map(|stall| ns_between(stall.since_ns, now_ns));
        let lasting: Vec<_> = long_enough.filter(|ns| *ns >= reason.least_ns()).collect();
        StallCounts {
            current: match reason.least_ns() {
                0 => counted.current.load(Relaxed),
                _ => lasting.len() as u64,
            },
            current_ns_max: lasting.into_iter().max().unwrap_or_default(),
            ended: counted.ended.counts(),
            last: *counted.last.lock(),
        }
    }

    /// Number of threads that wait, or run an operation that may become a stall.
    pub fn lasting_count(&self) -> usize {
        self.lasting().count()
    }

    /// The stalls of a reason that have ended.
    pub fn ended(&self, reason: Reason) -> LatencyCounts {
        self.of_reason(reason).ended.counts()
    }

    /// Sets the minimum duration of stalls that are reported. Operations must also take at least
    /// [`LONG_NS`], and waits for locks are reported only if at least [`LOCK_WAITERS_REPORTED_MIN`]
    /// threads wait at once. With 0, the default, no stalls are reported.
    pub fn warn_from(&self, warning_ns: u64) {
        self.lines.warn_from(warning_ns);
    }

    /// Sets the listener for the lines. It runs in the threads that call [`look`](Self::look). Only
    /// the first listener is used.
    pub fn announce_to(&self, listener: impl Fn(&str) + Send + Sync + 'static) {
        self.lines.announce_to(listener);
    }

    /// Passes at most one line about current and ended stalls that take too long to the listener.
    pub fn look(&self, now_ns: u64) {
        self.lines.look(self.lasting(), now_ns);
    }

    fn lasting(&self) -> impl Iterator<Item = Lasting> + '_ {
        self.waits.lasting().chain(self.operations.lasting())
    }

    fn of_reason(&self, reason: Reason) -> &Counted {
        &self.by_reason[reason as usize]
    }

    fn end(&self, stall: Lasting, now_ns: u64) {
        let (counted, ns) = (self.of_reason(stall.reason), ns_between(stall.since_ns, now_ns));
        *counted.last.lock() = Some(LastStall { ended_ns: now_ns, connection: stall.connection });
        counted.ended.record(ns);
        self.lines.note_ended(stall, ns);
    }
}

/// Returns 0 if `now_ns` is less: the clocks of processors may differ slightly.
fn ns_between(since_ns: u64, now_ns: u64) -> u64 {
    now_ns.saturating_sub(since_ns)
}

/// A stall of this thread. It ends on drop.
pub struct Stall<'s> {
    stalls: &'s Stalls,
    clock: &'s dyn Clock,
    stall: Lasting,
    _place: Taken<'s>,
    _stage: InStage,
}

opaque!(Stall<'_>);

impl Stall<'_> {
    /// The time of its beginning.
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

/// An operation of this thread. It ends on drop.
pub struct Operation<'s> {
    stalls: &'s Stalls,
    latency: &'s Latency,
    clock: &'s dyn Clock,
    stall: Lasting,
    /// `None` once the operation has ended.
    place: Option<Taken<'s>>,
}

opaque!(Operation<'_>);

impl Operation<'_> {
    /// Ends the operation. Returns the time taken.
    pub fn end(mut self) -> u64 {
        self.record()
    }

    /// Ends the operation, runs `other`, which does not count, and begins the next operation.
    pub fn between<R>(&mut self, other: impl FnOnce() -> R) -> R {
        self.record();
        let done = other();
        self.stall.since_ns = self.clock.now_ns();
        self.place = Some(self.stalls.operations.take(self.stall));
        done
    }

    fn record(&mut self) -> u64 {
        let now_ns = self.clock.now_ns();
        let ns = ns_between(self.stall.since_ns, now_ns);
        self.latency.record(ns);
        if ns >= self.stall.reason.least_ns() {
            self.stalls.end(self.stall, now_ns);
        }
        self.place = None;
        ns
    }
}

impl Drop for Operation<'_> {
    fn drop(&mut self) {
        if self.place.is_some() {
            self.record();
        }
    }
}

//! The latencies of operations and the stalls of threads, for the server's views and as counters.

use crate::base::latency::LatencyCounts;
use crate::base::stalls::{Reason, StallCounts};
use crate::db::Db;

/// The stalls with one reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StallStatus {
    /// The reason: a wait, or a kind of work.
    pub reason: &'static str,
    /// The number of current stalls.
    pub current: u64,
    /// How long the longest current stall has lasted.
    pub current_ns_max: u64,
    /// Stalls that have ended.
    pub ended: LatencyCounts,
    /// How long ago the last stall ended, and its connection's ID: 0 for a thread of the engine.
    /// `None` if there was no stall.
    pub last: Option<(u64, u64)>,
}

/// The three counters of a latency.
struct CounterNames {
    count: &'static str,
    sum_us: &'static str,
    max_us: &'static str,
}

/// Makes the names from a prefix.
macro_rules! counter_names {
    ($prefix:expr) => {
        CounterNames {
            count: concat!($prefix, "_count"),
            sum_us: concat!($prefix, "_us"),
            max_us: concat!($prefix, "_us_max"),
        }
    };
}

impl CounterNames {
    fn with_values(&self, counts: &LatencyCounts) -> [(&'static str, u64); 3] {
        let us = |ns: u64| ns / 1_000;
        [(self.count, counts.count()), (self.sum_us, us(counts.sum_ns)), (self.max_us, us(counts.max_ns))]
    }
}

impl Db {
    /// The latencies of operations since the database was opened, by kind. Does not block.
    pub fn latencies(&self) -> Vec<(&'static str, LatencyCounts)> {
        self.named_latencies().into_iter().map(|(name, _, counts)| (name, counts)).collect()
    }

    /// The stalls of threads since the database was opened, by reason. Does not block.
    pub fn stalls(&self) -> Vec<StallStatus> {
        let core = &self.0.core;
        let of = |reason: Reason| {
            let now_ns = core.clock.now_ns();
            let StallCounts { current, current_ns_max, ended, last } =
                core.health.stalls().counts(reason, now_ns);
            let last = last.map(|last| (now_ns.saturating_sub(last.ended_ns), last.connection));
            StallStatus { reason: names_of(reason).name, current, current_ns_max, ended, last }
        };
        Reason::ALL.map(of).to_vec()
    }

    /// Sets the minimum length of the stalls that are reported, while they last and after they end:
    /// waits for room in the log or in memory, and waits for locks in ten threads or more. Disk
    /// operations and checkpoint steps are reported if they also take at least a second. 0, the
    /// default, reports no stalls. A thread of the engine reports them, or [`Db::run_background`].
    pub fn set_stall_warning_ns(&self, warning_ns: u64) {
        self.0.core.health.stalls().warn_from(warning_ns);
    }

    /// Sends lines about long stalls to `listener`, at most one a second, on a thread of the engine
    /// or of [`Db::run_background`]. Only the first call has an effect.
    pub fn announce_stalls_to(&self, listener: impl Fn(&str) + Send + Sync + 'static) {
        self.0.core.health.stalls().announce_to(listener);
    }

    pub(super) fn wait_counters(&self) -> Vec<(&'static str, u64)> {
        let latencies = self.named_latencies().into_iter();
        let mut all: Vec<_> = latencies.flat_map(|(_, names, counts)| names.with_values(&counts)).collect();
        for reason in Reason::ALL {
            let names = names_of(reason);
            let counts = self.0.core.health.stalls().counts(reason, self.0.core.clock.now_ns());
            all.extend(names.ended.with_values(&counts.ended));
            let current_us_max = counts.current_ns_max / 1_000;
            all.extend([(names.current, counts.current), (names.current_us_max, current_us_max)]);
        }
        all
    }

    pub(super) fn lock_wait_times(&self) -> LatencyCounts {
        let stalls = self.0.core.health.stalls();
        let mut waits = stalls.ended(Reason::RowLock);
        waits += stalls.ended(Reason::TableLock);
        waits
    }

    fn named_latencies(&self) -> [(&'static str, CounterNames, LatencyCounts); 6] {
        let core = &self.0.core;
        let log = core.journal.log();
        let commit_waits = log.map(|log| log.commit_waits()).unwrap_or_default();
        let sync_times = log.map(|log| log.sync_times()).unwrap_or_default();
        [
            ("commit", counter_names!("latency_commit"), commit_waits),
            ("log sync", counter_names!("latency_log_sync"), sync_times),
            ("page read", counter_names!("latency_page_read"), core.pool.page_reads()),
            ("lock wait", counter_names!("latency_lock_wait"), self.lock_wait_times()),
            ("checkpoint step", counter_names!("latency_checkpoint_step"), core.checkpointer.step_times()),
            ("fold", counter_names!("latency_fold"), core.leaves.folds()),
        ]
    }
}

/// The names under which users see a reason.
struct ReasonNames {
    name: &'static str,
    ended: CounterNames,
    current: &'static str,
    /// For the longest current stall.
    current_us_max: &'static str,
}

/// Makes the names from one or two words.
macro_rules! reason_names {
    ($first:literal $(, $second:literal)?) => {
        reason_names!(concat!($first $(, " ", $second)?); concat!("stall_", $first $(, "_", $second)?))
    };
    ($name:expr; $prefix:expr) => {
        ReasonNames {
            name: $name,
            ended: counter_names!($prefix),
            current: concat!($prefix, "_current"),
            current_us_max: concat!($prefix, "_current_us_max"),
        }
    };
}

fn names_of(reason: Reason) -> ReasonNames {
    match reason {
        Reason::RowLock => reason_names!("row", "lock"),
        Reason::TableLock => reason_names!("table", "lock"),
        Reason::LogSpace => reason_names!("log", "space"),
        Reason::Memory => reason_names!("memory"),
        Reason::Rollback => reason_names!("rollback"),
        Reason::Disk => reason_names!("disk"),
        Reason::Checkpoint => reason_names!("checkpoint"),
    }
}

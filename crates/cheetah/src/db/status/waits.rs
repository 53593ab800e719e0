//! How long things take, and where threads do not get on: for the views of the server, and in
//! counters.

use crate::base::latency::LatencyCounts;
use crate::base::stages::Stage;
use crate::base::stalls::StallCounts;
use crate::db::Db;

/// The stalls of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StallStatus {
    /// What is waited for, or done.
    pub reason: &'static str,
    /// Those that last.
    pub current: u64,
    /// Those that have ended.
    pub ended: LatencyCounts,
    /// How long ago the last one ended, and the number of the connection that stalled: 0 for a
    /// thread of the engine. `None` when there was none.
    pub last: Option<(u64, u64)>,
}

/// Names of the three counters of a latency.
struct CounterNames {
    count: &'static str,
    sum_us: &'static str,
    max_us: &'static str,
}

/// The names behind a prefix.
macro_rules! counter_names {
    ($prefix:literal) => {
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
    /// How long operations have taken since the database was opened, by kind. Does not block.
    pub fn latencies(&self) -> Vec<(&'static str, LatencyCounts)> {
        self.named_latencies().into_iter().map(|(name, _, counts)| (name, counts)).collect()
    }

    /// Where its threads have not got on since the database was opened. Does not block.
    pub fn stalls(&self) -> Vec<StallStatus> {
        let core = &self.0.core;
        let of = |stage: Stage| {
            let StallCounts { current, ended, last } = core.health.stalls().counts(stage);
            let now_ns = core.clock.now_ns();
            let last = last.map(|last| (now_ns.saturating_sub(last.ended_ns), last.connection));
            StallStatus { reason: reason_of(stage), current, ended, last }
        };
        Stage::ALL.map(of).to_vec()
    }

    /// From now on a wait for room in the log or in memory that takes so long or longer is told of:
    /// while it lasts, where the waiting thread can, and when it has ended. 0: none is, as at
    /// first.
    pub fn set_stall_warning_ns(&self, warning_ns: u64) {
        self.0.core.health.stalls().warn_from(warning_ns);
    }

    /// From now on `listener` gets a line for each stall that takes too long, at most about one a
    /// second; it is called by the threads that stall. The first listener counts.
    pub fn announce_stalls_to(&self, listener: impl Fn(&str) + Send + Sync + 'static) {
        self.0.core.health.stalls().announce_to(listener);
    }

    /// All of it as counters.
    pub(super) fn wait_counters(&self) -> Vec<(&'static str, u64)> {
        let latencies = self.named_latencies().into_iter();
        let mut all: Vec<_> = latencies.flat_map(|(_, names, counts)| names.with_values(&counts)).collect();
        for stage in Stage::ALL {
            let (names, current) = stall_names(stage);
            let counts = self.0.core.health.stalls().counts(stage);
            all.extend(names.with_values(&counts.ended));
            all.push((current, counts.current));
        }
        all
    }

    /// All waits for locks together.
    pub(super) fn lock_wait_times(&self) -> LatencyCounts {
        let stalls = self.0.core.health.stalls();
        let mut waits = stalls.counts(Stage::RowLock).ended;
        waits += stalls.counts(Stage::TableLock).ended;
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
            ("fold", counter_names!("latency_fold"), core.pool.folds()),
        ]
    }
}

/// What users see of a stage.
fn reason_of(stage: Stage) -> &'static str {
    match stage {
        Stage::RowLock => "row lock",
        Stage::TableLock => "table lock",
        Stage::LogSpace => "log space",
        Stage::Memory => "memory",
        Stage::RollingBack => "rollback",
    }
}

/// The counters of a stage, and that of its current stalls.
fn stall_names(stage: Stage) -> (CounterNames, &'static str) {
    match stage {
        Stage::RowLock => (counter_names!("stall_row_lock"), "stall_row_lock_current"),
        Stage::TableLock => (counter_names!("stall_table_lock"), "stall_table_lock_current"),
        Stage::LogSpace => (counter_names!("stall_log_space"), "stall_log_space_current"),
        Stage::Memory => (counter_names!("stall_memory"), "stall_memory_current"),
        Stage::RollingBack => (counter_names!("stall_rollback"), "stall_rollback_current"),
    }
}

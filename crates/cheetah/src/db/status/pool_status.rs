//! The buffer pool in InnoDB's terms, with rates since the last output of the status.
//!
//! As in InnoDB, all sessions share one "last output". A view that is read between two outputs
//! shows rates since the earlier one, and is not an output itself.

use super::NS_PER_S;
use crate::db::Db;
use crate::pool::{CurvePoint, PoolFlow, PoolStats};
use std::fmt::Write as _;

/// Shorter intervals count as this long: rates over almost no time mean nothing.
const ELAPSED_NS_MIN: u64 = 1_000_000;

/// The pool, and its recent reads and writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolStatus {
    /// The pool now.
    pub stats: PoolStats,
    /// Since the last output of the status, or the startup.
    pub recent: PoolFlow,
    /// The time since then.
    pub elapsed_ns: u64,
}

impl PoolStatus {
    /// Converts a recent count to a rate per 1000 seconds.
    pub fn per_1000_s(&self, count: u64) -> u64 {
        let elapsed_ns = u128::from(self.elapsed_ns.max(ELAPSED_NS_MIN));
        (u128::from(count) * 1000 * u128::from(NS_PER_S) / elapsed_ns) as u64
    }

    fn per_s(&self, count: u64) -> f64 {
        self.per_1000_s(count) as f64 / 1000.0
    }

    /// As InnoDB's users and their tools know it.
    fn text(&self, memory_bytes: u64) -> String {
        let (stats, flow, recent) = (&self.stats, &self.stats.flow, &self.recent);
        let dirty_percent = stats.dirty_pages as f64 * 100.0 / (stats.pages + stats.free_pages).max(1) as f64;
        let mut text = format!(
            "Total memory allocated {memory_bytes}\n\
             Buffer pool size   {}\n\
             Free buffers       {}\n\
             Database pages     {}\n\
             Old database pages {}\n\
             Modified db pages  {}\n\
             Percent of dirty pages(LRU & free pages): {dirty_percent:.3}\n",
            stats.size_pages, stats.free_pages, stats.pages, stats.leaving_pages, stats.dirty_pages,
        );
        let _ = writeln!(
            text,
            "Pages read {}, created {}, written {}\n{:.2} reads/s, {:.2} creates/s, {:.2} writes/s",
            flow.reads,
            flow.creates,
            flow.writes,
            self.per_s(recent.reads),
            self.per_s(recent.creates),
            self.per_s(recent.writes),
        );
        let _ = match recent.hits_per_1000() {
            Some(hits) => writeln!(text, "Buffer pool hit rate {hits} / 1000"),
            None => writeln!(text, "No buffer pool page gets since the last printout"),
        };
        let (ahead, wasted) = (self.per_s(recent.reads_ahead), self.per_s(recent.ahead_wasted));
        let _ = writeln!(text, "Pages read ahead {ahead:.2}/s, evicted without access {wasted:.2}/s");
        text
    }
}

impl Db {
    /// The state of the buffer pool. Does not block.
    pub fn pool_status(&self) -> PoolStatus {
        let (at_ns, before) = self.0.last_output.get();
        self.pool_status_since(at_ns, &before)
    }

    /// Estimates, from the latest requests, the reads that more or less memory would save or cost.
    /// Empty if there were too few requests. Does not block for long.
    pub fn cache_curve(&self) -> Vec<CurvePoint> {
        let core = &self.0.core;
        core.pool.cache_curve(core.clock.now_ns())
    }

    fn pool_status_since(&self, at_ns: u64, before: &PoolFlow) -> PoolStatus {
        let core = &self.0.core;
        let stats = core.pool.stats();
        let elapsed_ns = core.clock.now_ns().saturating_sub(at_ns);
        PoolStatus { stats, recent: stats.flow.since(before), elapsed_ns }
    }

    /// The seconds over which this status output averages, and its text about the pool. The next
    /// output averages from now on.
    pub(in crate::db) fn pool_output(&self) -> (u64, String) {
        let core = &self.0.core;
        let status = self.0.last_output.replace(|at_ns, before| {
            let status = self.pool_status_since(at_ns, before);
            (at_ns + status.elapsed_ns, status.stats.flow, status)
        });
        (status.elapsed_ns / NS_PER_S, status.text(core.pool.memory().total() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(elapsed_ns: u64) -> PoolStatus {
        let flow =
            PoolFlow { gets: 4000, reads: 50, creates: 7, writes: 3, reads_ahead: 30, ahead_wasted: 1 };
        let stats = PoolStats {
            size_pages: 1000,
            free_pages: 200,
            pages: 800,
            leaving_pages: 80,
            dirty_pages: 100,
            flow,
        };
        PoolStatus { stats, recent: flow, elapsed_ns }
    }

    #[test]
    fn rates_are_those_of_the_time_since_the_last_output() {
        let text = status(20 * NS_PER_S).text(123);
        for line in [
            "Total memory allocated 123",
            "Buffer pool size   1000",
            "Free buffers       200",
            "Database pages     800",
            "Old database pages 80",
            "Modified db pages  100",
            "Percent of dirty pages(LRU & free pages): 10.000",
            "Pages read 50, created 7, written 3",
            "2.50 reads/s, 0.35 creates/s, 0.15 writes/s",
            "Buffer pool hit rate 988 / 1000",
            "Pages read ahead 1.50/s, evicted without access 0.05/s",
        ] {
            assert!(text.lines().any(|known| known == line), "'{line}' is missing in:\n{text}");
        }
    }

    #[test]
    fn no_time_at_all_gives_rates_too() {
        assert_eq!(status(0).per_1000_s(1), 1_000_000);
    }
}

//! Counters, for SHOW STATUS and SHOW ENGINE STATUS.

use super::NS_PER_S;
use crate::base::{TableId, TreeId};
use crate::db::Db;
use crate::table::shared::moment::Moment;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

impl Db {
    /// The names and values of all counters and gauges.
    pub fn status(&self) -> Vec<(&'static str, u64)> {
        let mut status = self.transaction_status();
        status.extend(self.other_status());
        status
    }

    fn other_status(&self) -> Vec<(&'static str, u64)> {
        let core = &self.0.core;
        let mut status = self.snapshot_status().to_vec();
        status.extend(self.wait_counters());
        if let Some(log) = core.journal.log() {
            let log = log.status();
            status.extend([
                ("log_position", log.end.0),
                ("log_durable_position", log.durable_end.0),
                ("log_oldest_position", log.oldest_needed.0),
                ("log_records", log.frames_count),
                ("log_writes", log.writes_count),
                ("log_syncs", log.syncs_count),
            ]);
        }
        status.extend(core.pool.status());
        status.extend(core.leaves.status());
        status.extend(core.upkeep.status());
        status
    }

    fn transaction_status(&self) -> Vec<(&'static str, u64)> {
        let core = &self.0.core;
        let count = |counter: &AtomicU64| counter.load(Relaxed);
        let own = &core.counters;
        let lock_waits = self.lock_wait_times();
        let mut status = vec![
            ("rows_inserted", count(&own.rows_inserted)),
            ("rows_updated", count(&own.rows_updated)),
            ("rows_deleted", count(&own.rows_deleted)),
            ("rows_read", count(&own.rows_read)),
            ("rows_rolled_back", count(&own.rows_rolled_back)),
            ("commits", count(&own.commits)),
            ("rollbacks", count(&own.rollbacks)),
            ("prepares", count(&own.prepares)),
            ("large_values_written", count(&own.large_values_written)),
            ("loads", count(&own.loads)),
            ("loaded_rows", count(&own.loaded_rows)),
            ("load_spilled_bytes", count(&own.load_spilled_bytes)),
            ("lock_waits", lock_waits.count()),
            ("lock_waits_current", core.locks.waiters_count() as u64),
            ("lock_wait_ms", lock_waits.sum_ns / 1_000_000),
            ("lock_wait_ms_max", lock_waits.max_ns / 1_000_000),
            ("lock_timeouts", count(&own.lock_timeouts)),
            ("deadlocks", count(&own.deadlocks)),
            ("recovery_log_records", count(&own.log_records_replayed)),
            ("recovery_transactions_rolled_back", count(&own.transactions_recovered)),
            ("transactions_listed", core.transactions.active.len() as u64),
            ("transactions_to_purge", core.to_purge_count()),
            ("purged_between_snapshots", count(&own.purged_between_snapshots)),
            ("transactions_prepared", core.transactions.active.prepared_count() as u64),
            ("rollbacks_unfinished", core.unfinished.rollbacks_count() as u64),
            ("stopped", u64::from(core.health.reason().is_some())),
            ("troubles", core.health.background_errors().list().len() as u64),
            ("undo_pages", core.transactions.undo.pages_count() as u64),
            ("dropped_trees", core.catalog.dropped_trees_count() as u64),
            ("tables", core.catalog.names().len() as u64),
            ("tables_fenced", core.catalog.quarantined().len() as u64),
        ];
        status.extend(self.oldest());
        status
    }

    /// Pages that belong to no table and will not be freed: 0 unless the engine has a defect.
    pub fn pages_without_owner(&self) -> u64 {
        let core = &self.0.core;
        let trees = core.catalog.trees();
        core.pool.pages_of_others(&|tree| tree < TreeId::FIRST_USER || trees.contains(&tree))
    }

    /// The age of the oldest transaction, the open snapshots, and the stamps published after the
    /// oldest snapshot, which keeps their transactions from purge.
    fn oldest(&self) -> [(&'static str, u64); 3] {
        let core = &self.0.core;
        let open = core.transactions.roster.open();
        let since_ns = open.iter().map(|entry| entry.since_ns()).min();
        let age_ns = since_ns.map_or(0, |since_ns| core.clock.now_ns().saturating_sub(since_ns));
        let snapshots = open.iter().filter_map(|entry| entry.stamp());
        let oldest = snapshots.clone().min();
        let kept = oldest.map_or(0, |stamp| core.transactions.versions.published().saturating_sub(stamp));
        [
            ("transaction_oldest_seconds", age_ns / NS_PER_S),
            ("snapshots_open", snapshots.count() as u64),
            ("snapshot_oldest_lag", kept),
        ]
    }

    /// The counters as text with headings, for SHOW ENGINE STATUS. Rates are averages since the
    /// previous call.
    pub fn status_text(&self) -> String {
        let section = |name: &str, otherwise| match name {
            name if name.starts_with("log_") => "LOG",
            name if name.starts_with("segment") || name.starts_with("backup_") => "FILES",
            name if name.starts_with("recovery_") => "RECOVERY",
            name if name.starts_with("latency_") || name.starts_with("stall_") => WAITS_TITLE,
            _ => otherwise,
        };
        let in_section = |otherwise| move |(name, value)| (section(name, otherwise), name, value);
        let mut status: Vec<_> =
            self.transaction_status().into_iter().map(in_section("TRANSACTIONS")).collect();
        status.extend(self.other_status().into_iter().map(in_section(POOL_TITLE)));
        let (seconds, pool) = self.pool_output();
        let mut text = format!("Per second averages calculated from the last {seconds} seconds\n");
        for title in [POOL_TITLE, "FILES", "LOG", "TRANSACTIONS", WAITS_TITLE, "RECOVERY"] {
            write_heading(&mut text, title);
            text += if title == POOL_TITLE { pool.as_str() } else { "" };
            for (_, name, value) in status.iter().filter(|(section, ..)| *section == title) {
                let _ = writeln!(text, "{:<40} {value}", name.replace('_', " "));
            }
        }
        self.write_refusal(&mut text);
        self.write_deadlock(&mut text);
        self.write_transactions(&mut text);
        for (xid, tables) in self.0.core.prepared.locks() {
            let name = |id: &TableId| self.0.core.catalog.by_id(*id).map(|table| table.name());
            let names = tables.iter().filter_map(name).collect::<Vec<_>>().join(", ");
            let _ = writeln!(text, "PREPARED, WITHOUT CLIENT: XA {xid} keeps these tables locked: {names}");
        }
        for (place, error) in self.background_errors() {
            let _ = writeln!(text, "TROUBLE: {place}: {error}");
        }
        if let Some(reason) = self.stopped() {
            let _ = writeln!(text, "STOPPED: {reason}");
        }
        text
    }

    fn write_refusal(&self, text: &mut String) {
        let Some((moment, refusal)) = self.0.core.refusals.latest() else { return };
        write_heading(text, "LATEST FOREIGN KEY ERROR");
        let _ = writeln!(text, "{}\n{refusal}", self.tell_time(moment));
    }

    /// Wall-clock time, or an age if that is unknown.
    fn tell_time(&self, moment: Moment) -> String {
        if !moment.time.is_empty() {
            return moment.time;
        }
        let age_ns = self.0.core.clock.now_ns().saturating_sub(moment.at_ns);
        format!("{} s ago", age_ns / NS_PER_S)
    }

    fn write_deadlock(&self, text: &mut String) {
        let Some((moment, deadlock)) = self.0.core.deadlocks.latest() else { return };
        write_heading(text, "LATEST DETECTED DEADLOCK");
        let _ = write!(text, "{}\n{deadlock}", self.tell_time(moment));
    }

    fn write_transactions(&self, text: &mut String) {
        let mut open = self.transactions();
        open.sort_by_key(|transaction| std::cmp::Reverse(transaction.age_ns));
        write_heading(text, "LIST OF TRANSACTIONS");
        for transaction in open.iter().take(TRANSACTIONS_TOLD_MAX) {
            let _ = writeln!(text, "{}", transaction.text());
        }
        if open.len() > TRANSACTIONS_TOLD_MAX {
            let _ = writeln!(text, "and {} younger ones", open.len() - TRANSACTIONS_TOLD_MAX);
        }
    }
}

/// As InnoDB's users know it.
const POOL_TITLE: &str = "BUFFER POOL AND MEMORY";
const WAITS_TITLE: &str = "LATENCIES AND STALLS";
const TRANSACTIONS_TOLD_MAX: usize = 20;

fn write_heading(text: &mut String, title: &str) {
    let line = "-".repeat(title.len());
    let _ = writeln!(text, "{line}\n{title}\n{line}");
}

//! The background's statistics work: tables whose statistics may be due, and dropped tables whose
//! statistics must be removed.
//!
//! Locks     `turn`, during a check of all tables, which only the background makes; inside it, and
//!           elsewhere, the other locks, briefly.

use crate::base::TableId;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// Default number of sampled pages per index, like InnoDB's.
const PLACES: u32 = 20;
/// Interval between checks of all tables, unless one is requested.
const LOOK_EVERY_NS: u64 = 1_000_000_000;

#[derive(Debug)]
pub(crate) struct StatisticsWork {
    by_themselves: AtomicBool,
    places: AtomicU32,
    /// Tables whose key encodings were set since startup.
    described: Mutex<BTreeSet<TableId>>,
    gone: Mutex<Vec<TableId>>,
    is_asked: AtomicBool,
    turn: Mutex<Turn>,
}

#[derive(Default, Debug)]
struct Turn {
    last: TableId,
    looked_ns: u64,
}

impl Default for StatisticsWork {
    fn default() -> Self {
        Self {
            by_themselves: AtomicBool::new(true),
            places: AtomicU32::new(PLACES),
            described: Mutex::default(),
            gone: Mutex::default(),
            is_asked: AtomicBool::new(false),
            turn: Mutex::default(),
        }
    }
}

impl StatisticsWork {
    /// Sets the defaults for definitions without such settings.
    pub(crate) fn set(&self, by_themselves: bool, places: u32) {
        self.places.store(places.max(1), Relaxed);
        self.by_themselves.store(by_themselves, Relaxed);
        self.ask();
    }

    pub(crate) fn by_themselves(&self) -> bool {
        self.by_themselves.load(Relaxed)
    }

    /// The pages to sample for a definition that has `places`.
    pub(crate) fn places(&self, places: u32) -> u32 {
        if places > 0 {
            places
        } else {
            self.places.load(Relaxed)
        }
    }

    pub(crate) fn add(&self, table: TableId) {
        self.described.lock().insert(table);
    }

    pub(crate) fn ask(&self) {
        self.is_asked.store(true, Relaxed);
    }

    /// The dropped table may have statistics.
    pub(crate) fn forget(&self, table: TableId) {
        self.gone.lock().push(table);
    }

    pub(crate) fn next_gone(&self) -> Option<TableId> {
        self.gone.lock().pop()
    }

    /// Returns the next table, in turn, for which `is_due` returns `Some(true)`. If there is none,
    /// returns `None` until the next interval, or until a check is [requested](Self::ask). Forgets
    /// tables for which `is_due` returns `None`: they no longer exist.
    pub(crate) fn next_due(
        &self,
        now_ns: u64,
        mut is_due: impl FnMut(TableId) -> Option<bool>,
    ) -> Option<TableId> {
        let mut turn = self.turn.lock();
        let is_asked = self.is_asked.swap(false, Relaxed);
        if !is_asked && now_ns.saturating_sub(turn.looked_ns) < LOOK_EVERY_NS {
            return None;
        }
        let count = self.described.lock().len();
        for _ in 0..count {
            let table = self.after(turn.last)?;
            turn.last = table;
            match is_due(table) {
                Some(true) => {
                    self.ask();
                    return Some(table);
                }
                Some(false) => {}
                None => {
                    self.described.lock().remove(&table);
                }
            }
        }
        turn.looked_ns = now_ns;
        None
    }

    fn after(&self, last: TableId) -> Option<TableId> {
        let described = self.described.lock();
        described.range((Excluded(last), Unbounded)).next().or_else(|| described.first()).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_take_turns_and_those_that_are_gone_are_forgotten() {
        let work = StatisticsWork::default();
        for id in [1, 2, 3, 4] {
            work.add(TableId(id));
        }
        work.ask();
        let is_due = |table: TableId| if table == TableId(2) { None } else { Some(table != TableId(3)) };
        let next = |now_ns| work.next_due(now_ns, is_due).map(|table| table.0);
        assert_eq!([next(5), next(5), next(5), next(5)], [Some(1), Some(4), Some(1), Some(4)]);
        assert_eq!(work.described.lock().len(), 3);
        assert_eq!(work.next_due(5, |_| Some(false)), None);
        assert_eq!(next(5 + LOOK_EVERY_NS - 1), None, "nobody has asked");
        assert_eq!(next(5 + LOOK_EVERY_NS), Some(1));
    }

    #[test]
    fn a_definition_that_does_not_say_has_the_settings() {
        let work = StatisticsWork::default();
        assert!(work.by_themselves() && work.places(0) == PLACES && work.places(7) == 7);
        work.set(false, 0);
        assert!(!work.by_themselves() && work.places(0) == 1);
    }
}

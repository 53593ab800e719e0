//! The background's work for statistics: the tables whose statistics may be due, and those whose
//! statistics are to go.
//!
//! Locks     that of the turn, over a look at all tables, which only the background makes; inside
//!           it, and elsewhere, the others, for moments.

use crate::base::TableId;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// Places of an index that are looked at where nobody says how many, as by InnoDB.
const PLACES: u32 = 20;
/// How often all tables are looked at, when nobody asks for it.
const LOOK_EVERY_NS: u64 = 1_000_000_000;

/// The work to do, and the settings.
#[derive(Debug)]
pub(crate) struct StatisticsWork {
    by_themselves: AtomicBool,
    places: AtomicU32,
    /// Tables whose keys somebody has described since the startup.
    described: Mutex<BTreeSet<TableId>>,
    /// Tables that have gone, and may have left statistics.
    gone: Mutex<Vec<TableId>>,
    is_asked: AtomicBool,
    turn: Mutex<Turn>,
}

#[derive(Default, Debug)]
struct Turn {
    /// The table whose turn was last.
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
    /// Sets whether statistics are taken by themselves where a definition does not say, and how
    /// many places are looked at where it does not say.
    pub(crate) fn set(&self, by_themselves: bool, places: u32) {
        self.places.store(places.max(1), Relaxed);
        self.by_themselves.store(by_themselves, Relaxed);
        self.ask();
    }

    /// Whether they are taken by themselves.
    pub(crate) fn by_themselves(&self) -> bool {
        self.by_themselves.load(Relaxed)
    }

    /// The number of places to look at when a definition has `places`.
    pub(crate) fn places(&self, places: u32) -> u32 {
        if places > 0 {
            places
        } else {
            self.places.load(Relaxed)
        }
    }

    /// Notes that the keys of a table have been described.
    pub(crate) fn add(&self, table: TableId) {
        self.described.lock().insert(table);
    }

    /// Has all tables looked at now.
    pub(crate) fn ask(&self) {
        self.is_asked.store(true, Relaxed);
    }

    /// Notes that a table has gone that may have left statistics.
    pub(crate) fn forget(&self, table: TableId) {
        self.gone.lock().push(table);
    }

    /// A table that has gone, if there is one.
    pub(crate) fn next_gone(&self) -> Option<TableId> {
        self.gone.lock().pop()
    }

    /// The next table in turn of which `is_due` says so; none when none is, and then until a while
    /// after, or until somebody [asks](Self::ask). Tables that are gone, for which `is_due` returns
    /// `None`, are forgotten.
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

    /// The table that follows in the round.
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

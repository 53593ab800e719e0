//! The report of the latest deadlock, written while its transactions still existed.
//!
//! The lock table keeps only which owner waited for which. Transaction IDs, connections and
//! statements no longer exist when a user requests the report. So the victim, which is the first to
//! know, writes the report before it is rolled back: until then the other transactions still wait.
//!
//! Locks     the report, briefly; no other lock is taken while it is held.

use super::moment::Moment;
use parking_lot::Mutex;

#[derive(Default)]
pub(crate) struct Deadlocks {
    latest: Mutex<Option<Report>>,
}

#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) number: u64,
    pub(super) moment: Moment,
    pub(super) text: String,
}

impl Deadlocks {
    pub(crate) fn latest(&self) -> Option<(Moment, String)> {
        self.latest.lock().as_ref().map(|report| (report.moment.clone(), report.text.clone()))
    }

    pub(super) fn keep(&self, report: Report) {
        let mut latest = self.latest.lock();
        if latest.as_ref().is_none_or(|other| other.number < report.number) {
            *latest = Some(report);
        }
    }
}

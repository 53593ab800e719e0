//! A report of the latest deadlock, written while its transactions were still there.
//!
//! The lock table keeps who waited for whom. Their numbers, connections and statements are gone
//! when somebody asks, so the victim, which is the first to know, writes them down before it is
//! rolled back: until then the others wait on. Locks     the report, for a moment; nothing is taken
//! while it is held.

use super::moment::Moment;
use parking_lot::Mutex;

/// See the module.
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
    /// The latest one for people, and when it was.
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

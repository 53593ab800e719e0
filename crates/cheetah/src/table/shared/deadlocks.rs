//! What the latest deadlock was, told while those in it were still there.
//!
//! The lock table keeps who waited for whom. Their numbers, connections and statements are gone
//! when somebody asks, so the victim, who is the first to know, writes them down before it is
//! rolled back: until then the others wait on.
//! Locks     the report, for a moment; nothing is taken while it is held.

use parking_lot::Mutex;
use std::sync::OnceLock;

/// Tells for people what the connection of that number does.
pub(super) type Describe = Box<dyn Fn(u64) -> String + Send + Sync>;

/// See the module.
#[derive(Default)]
pub(crate) struct Deadlocks {
    latest: Mutex<Option<Report>>,
    pub(super) describe: OnceLock<Describe>,
}

#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) number: u64,
    pub(super) at_ns: u64,
    pub(super) text: String,
}

impl Deadlocks {
    /// From now on `describe` tells of connections. The first one counts.
    pub(crate) fn describe_with(&self, describe: Describe) {
        let _ = self.describe.set(describe);
    }

    /// The latest one for people, and when it was.
    pub(crate) fn latest(&self) -> Option<(u64, String)> {
        self.latest.lock().as_ref().map(|report| (report.at_ns, report.text.clone()))
    }

    pub(super) fn keep(&self, report: Report) {
        let mut latest = self.latest.lock();
        if latest.as_ref().is_none_or(|other| other.number < report.number) {
            *latest = Some(report);
        }
    }
}

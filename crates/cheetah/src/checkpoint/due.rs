//! When a checkpoint is due, and why.

use super::checkpointer::{Checkpointer, LastCheckpoint};
use crate::base::Lsn;
use std::sync::atomic::Ordering::Relaxed;

/// Percentage of its maximum size at which the log since the last checkpoint makes one due.
const LOG_PERCENT: u64 = 25;
/// A database gets a checkpoint once nothing has changed for this time: it frees space for the file
/// system, and leaves the next startup nothing to redo.
const IDLE_NS: u64 = 5_000_000_000;
/// A checkpoint is due if outdated images exceed both this and the live bytes divided by
/// `OUTDATED_PART`.
const OUTDATED_BYTES_MIN: u64 = 32 << 20;
const OUTDATED_PART: u64 = 3;
/// A checkpoint no longer pauses if outdated images exceed both this and the live bytes multiplied
/// by `HURRY_OUTDATED_TIMES`.
const HURRY_OUTDATED_BYTES_MIN: u64 = 128 << 20;
const HURRY_OUTDATED_TIMES: u64 = 2;

/// Minimum interval between two checks of the disk, and between a checkpoint and the next one for
/// space. After a failed checkpoint it is `SPACE_RETRY_NS`.
const SPACE_LOOK_NS: u64 = 250_000_000;
const SPACE_RETRY_NS: u64 = 1_000_000_000;
/// A checkpoint for space is worthwhile if it frees more than the reserve divided by `SPACE_PART`.
const SPACE_PART: u64 = 16;

/// Why a checkpoint is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    /// The log since the last checkpoint is long.
    Log,
    /// The changes of the epoch take a lot of memory.
    Memory,
    /// Only a checkpoint can free many outdated images.
    OutdatedImages,
    /// The disk has little space, and a checkpoint frees some.
    Space,
    /// Something has changed, and the last checkpoint is old.
    Age,
    /// Something has changed, but not for a while.
    Idle,
}

/// See [`Checkpointer::changes`].
pub(super) type Changes = (Lsn, u64);

/// The last seen changes, and when they were first seen.
#[derive(Default, Debug)]
pub(super) struct Quiet {
    changes: Changes,
    since_ns: u64,
    /// The `changes` at the last failed attempt to bring all pending changes into their leaves.
    pub(super) failed_at: Option<Changes>,
}

impl Checkpointer {
    /// Why the background should make a checkpoint now; `None` if it should not, or during redo.
    pub(crate) fn due(&self) -> Option<Reason> {
        let log = self.parts.log.get()?;
        let last = *self.last.lock();
        let now_ns = self.parts.clock.now_ns();
        let since_ns = now_ns.saturating_sub(last.at_ns);
        // Called by every check, to notice the last change.
        let is_quiet = self.is_quiet(now_ns);
        if self.log_percent() >= LOG_PERCENT {
            return Some(Reason::Log);
        }
        if self.parts.pool.remembers_too_much() {
            return Some(Reason::Memory);
        }
        let outdated_bytes = self.outdated_bytes();
        if self.is_space_wanted(&last, now_ns, outdated_bytes) {
            return Some(Reason::Space);
        }
        let live_bytes = self.parts.upkeep.live_bytes();
        if outdated_bytes > OUTDATED_BYTES_MIN.max(live_bytes / OUTDATED_PART) {
            return Some(Reason::OutdatedImages);
        }
        let is_old = since_ns >= self.parts.interval_ns;
        let is_idle = is_quiet && since_ns >= IDLE_NS;
        // The log contains neither moved images nor freed pages.
        let has_changed = || log.bytes_since(last.lsn) > 0 || self.parts.upkeep.gains_by_checkpoint();
        match (is_idle, is_old) {
            (true, _) if has_changed() => Some(Reason::Idle),
            (false, true) if has_changed() => Some(Reason::Age),
            _ => None,
        }
    }

    /// Whether the disk has little space and freeing old images and log by a checkpoint would help.
    /// Checks the disk at most once per `SPACE_LOOK_NS`.
    fn is_space_wanted(&self, last: &LastCheckpoint, now_ns: u64, outdated_bytes: u64) -> bool {
        let pool = &self.parts.pool;
        if now_ns.saturating_sub(self.space_looked_at_ns.load(Relaxed)) >= SPACE_LOOK_NS {
            self.space_looked_at_ns.store(now_ns, Relaxed);
            pool.space().look(pool.promised_bytes());
        }
        let rests = now_ns.saturating_sub(last.at_ns) < SPACE_LOOK_NS
            || now_ns.saturating_sub(last.failed_at_ns) < SPACE_RETRY_NS;
        if rests || !pool.space().is_short() {
            return false;
        }
        let gain_bytes = outdated_bytes.saturating_add(self.log_bytes());
        gain_bytes > pool.space().reserve_bytes() / SPACE_PART || self.parts.upkeep.gains_by_checkpoint()
    }

    /// Whether outdated data is so much that a checkpoint in progress must not pause.
    pub(super) fn is_mostly_outdated(&self) -> bool {
        let most = HURRY_OUTDATED_BYTES_MIN.max(HURRY_OUTDATED_TIMES * self.parts.upkeep.live_bytes());
        self.outdated_bytes() > most
    }

    /// Bytes of images rewritten or freed since the last checkpoint, which only the next one frees.
    fn outdated_bytes(&self) -> u64 {
        let LastCheckpoint { outdated_bytes, .. } = *self.last.lock();
        let since = self.parts.upkeep.outdated_bytes().saturating_sub(outdated_bytes);
        u64::try_from(since).unwrap_or(0)
    }

    /// Whether nothing has changed for `IDLE_NS`, and no attempt to bring all pending changes into
    /// their leaves has failed since.
    fn is_quiet(&self, now_ns: u64) -> bool {
        let changes = self.changes();
        let mut quiet = self.quiet.lock();
        if quiet.changes != changes {
            *quiet = Quiet { changes, since_ns: now_ns, failed_at: None };
        }
        now_ns.saturating_sub(quiet.since_ns) >= IDLE_NS && quiet.failed_at != Some(changes)
    }
}

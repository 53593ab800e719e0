//! Whether a checkpoint is due, and why.

use super::checkpointer::{Checkpointer, LastCheckpoint};
use crate::base::Lsn;
use std::sync::atomic::Ordering::Relaxed;

/// Log since the last checkpoint, as a part of what there may be, that starts the next one.
const LOG_PERCENT: u64 = 25;
/// A database that has changed, but not for this time, gets a checkpoint: space that is no longer
/// needed goes back to the file system, and the next startup has nothing to redo.
const IDLE_NS: u64 = 5_000_000_000;
/// Bytes of outdated images that ask for no checkpoint, whatever the size of the database; and the
/// part of what is needed from which on they do.
const OUTDATED_BYTES_MIN: u64 = 32 << 20;
const OUTDATED_PART: u64 = 3;
/// From this number of outdated bytes on, and this multiple of the needed ones, a checkpoint makes
/// no pauses any more.
const HURRY_OUTDATED_BYTES_MIN: u64 = 128 << 20;
const HURRY_OUTDATED_TIMES: u64 = 2;

/// The time between two looks at the disk, and between two checkpoints for space; and the
/// additional wait after one that has failed.
const SPACE_LOOK_NS: u64 = 250_000_000;
const SPACE_RETRY_NS: u64 = 1_000_000_000;
/// Part of the reserve that is worth a checkpoint.
const SPACE_PART: u64 = 16;

/// Why a checkpoint is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    /// The log since the last one is long.
    Log,
    /// The memory of the epoch's changes is large.
    Memory,
    /// Many images that only a checkpoint lets go are no longer needed.
    OutdatedImages,
    /// The disk has little space, and a checkpoint gives some back.
    Space,
    /// Something has changed, and the last one is old.
    Age,
    /// Something has changed, but not for a while.
    Idle,
}

/// See [`Checkpointer::changes`].
pub(super) type Changes = (Lsn, u64);

/// Since when nothing has been changed.
#[derive(Default, Debug)]
pub(super) struct Quiet {
    changes: Changes,
    since_ns: u64,
    /// After these, not all that waits could be brought into its leaves.
    pub(super) failed_at: Option<Changes>,
}

impl Checkpointer {
    /// Why the background should make a checkpoint now; `None` when it should not, nor during redo.
    pub(crate) fn due(&self) -> Option<Reason> {
        let log = self.parts.log.get()?;
        let last = *self.last.lock();
        let now_ns = self.parts.clock.now_ns();
        let since_ns = now_ns.saturating_sub(last.at_ns);
        // Asked each time, so that it knows when something was changed.
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
        // The log does not tell of images that were moved, nor of what was freed.
        let has_changed = || log.bytes_since(last.lsn) > 0 || self.parts.upkeep.gains_by_checkpoint();
        match (is_idle, is_old) {
            (true, _) if has_changed() => Some(Reason::Idle),
            (false, true) if has_changed() => Some(Reason::Age),
            _ => None,
        }
    }

    /// Whether the disk has little space, and a checkpoint would give some back: old images and old
    /// log. Looks at the disk now and then.
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

    /// Whether the outdated data is so much that a checkpoint in progress must not make pauses.
    pub(super) fn is_mostly_outdated(&self) -> bool {
        let most = HURRY_OUTDATED_BYTES_MIN.max(HURRY_OUTDATED_TIMES * self.parts.upkeep.live_bytes());
        self.outdated_bytes() > most
    }

    /// Bytes of the images rewritten or freed since the last checkpoint, which only the next one
    /// lets go.
    fn outdated_bytes(&self) -> u64 {
        let LastCheckpoint { outdated_bytes, .. } = *self.last.lock();
        let since = self.parts.upkeep.outdated_bytes().saturating_sub(outdated_bytes);
        u64::try_from(since).unwrap_or(0)
    }

    /// Whether nothing has been changed for a while, and the database has not come to rest in vain
    /// since.
    fn is_quiet(&self, now_ns: u64) -> bool {
        let changes = self.changes();
        let mut quiet = self.quiet.lock();
        if quiet.changes != changes {
            *quiet = Quiet { changes, since_ns: now_ns, failed_at: None };
        }
        now_ns.saturating_sub(quiet.since_ns) >= IDLE_NS && quiet.failed_at != Some(changes)
    }
}

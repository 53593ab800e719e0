//! Key rotation: takes newer key versions into use, and re-encrypts images, logs and change files.
//!
//! A *pass* of the pool checks every image. Before a pass, a checkpoint writes all dirty pages, so
//! that no page is later encrypted with an older key (pool/upkeep, I1). After a complete pass,
//! another checkpoint commits the images that the pass moved. Then CONTROL forgets the keys that no
//! startup would need: those used by no image, no listed change file and no log file
//! (durability::E14). A pass runs after a crash and at each startup of an encrypted database.

use crate::base::{reach, sound, Epoch, Error, Result};
use crate::format::encryption::KeyName;
use crate::pool::Rotated;
use crate::table::shared::keys_in_use::use_newest_versions;
use crate::table::shared::parts::Core;
use parking_lot::Mutex;
use std::collections::BTreeSet;

/// Interval of requests to the key service for newer versions.
const ASK_EVERY_NS: u64 = 10_000_000_000;
/// The pause before the next pass after an incomplete one; doubled with each further one, because a
/// sector that can never be read makes every pass incomplete.
const RETRY_AFTER_NS: u64 = 10_000_000_000;
const RETRY_AFTER_NS_MAX: u64 = 600_000_000_000;
/// Minimum interval between checkpoints that rotation requests on a full disk.
const GIVE_BACK_EVERY_NS: u64 = 100_000_000;

#[derive(Default)]
pub(in crate::db) struct KeyRotation {
    /// Held during a step, which may take as long as a checkpoint.
    one: Mutex<()>,
    /// Held only briefly, because views read the state, too.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    asked_at_ns: Option<u64>,
    /// After an incomplete pass.
    retry_at_ns: u64,
    /// The pause that ends at `retry_at_ns`; 0 after a complete pass.
    retry_after_ns: u64,
    /// When the next checkpoint on a full disk may be made.
    give_back_at_ns: u64,
    /// [`Keys::changes`](crate::keys::Keys::changes) when the current pass began.
    began_with: u64,
    /// The value of `began_with` for the last complete pass.
    done_with: Option<u64>,
    /// From the last complete pass, until the unneeded keys are forgotten.
    to_forget: Option<ToForget>,
}

struct ToForget {
    of_images: BTreeSet<KeyName>,
    tried_at: Epoch,
}

impl KeyRotation {
    /// Returns whether it did anything. May call the key service, and does I/O.
    pub(in crate::db) fn step(&self, core: &Core) -> Result<bool> {
        let keys = core.pool.keys();
        if keys.serving_names().is_empty() {
            return Ok(false);
        }
        let (_one, now_ns) = (self.one.lock(), core.clock.now_ns());
        if self.state.lock().is_time_to_ask(now_ns) {
            let newest = use_newest_versions(keys, core.checkpointer.map());
            note_missing_keys(core)?;
            newest?;
        }
        if let Some(log) = core.journal.log() {
            log.close_as_wanted()?;
        }
        if core.upkeep.rotation_pass().is_none() {
            let changes = keys.changes();
            if self.state.lock().done_with == Some(changes) {
                return self.forget(core);
            }
            if now_ns < self.state.lock().retry_at_ns {
                return Ok(false);
            }
            core.checkpoint()?;
            self.state.lock().began_with = changes;
            core.upkeep.begin_rotation();
            return Ok(true);
        }
        let rate = u64::from(core.pace.io_capacity()) * u64::from(core.pool.page_bytes());
        let rotated = core.upkeep.rotation_step(now_ns, rate);
        let is_full = matches!(rotated, Err(Error::DiskFull(_)));
        if is_full && core.upkeep.gains_by_checkpoint() && self.state.lock().may_give_back(now_ns) {
            // Frees the images that rotation replaced.
            core.checkpoint()?;
        }
        match rotated? {
            Rotated::Nothing => Ok(false),
            Rotated::Some => Ok(true),
            Rotated::PassEnded { left: 0, seen } => {
                if sound!(true, "encryption: forget keys before the checkpoint") {
                    core.checkpoint()?;
                }
                self.state.lock().end_pass(seen);
                self.forget(core)?;
                Ok(true)
            }
            Rotated::PassEnded { .. } => {
                self.state.lock().leave(now_ns);
                Ok(true)
            }
        }
    }

    pub(in crate::db) fn is_due(&self, core: &Core) -> bool {
        let keys = core.pool.keys();
        !keys.serving_names().is_empty() && !self.state.lock().is_done(keys.changes())
    }

    /// Makes the next step request newer versions from the key service, and starts another pass.
    pub(in crate::db) fn restart(&self) {
        *self.state.lock() = State::default();
    }

    /// Has CONTROL forget the keys that nothing needs (durability::E14), if a checkpoint was made
    /// since the last try. Returns whether any was forgotten.
    fn forget(&self, core: &Core) -> Result<bool> {
        let (keys, map) = (core.pool.keys(), core.checkpointer.map());
        let _naming = keys.naming();
        let of_log = core.journal.log().map(|log| log.keys_in_use()).unwrap_or_default();
        // A snapshot that is being written reads log files that the database has already released.
        // Checked after the log's keys were read: a snapshot that begins later reads only files
        // that are encrypted with those keys or with the current ones.
        if core.pool.segments().durable().pinned().0 > 0 {
            return Ok(false);
        }
        let Some(of_images) = self.state.lock().take_to_forget(keys.changes(), map.epoch()) else {
            return Ok(false);
        };
        let lasting: BTreeSet<_> = of_images.into_iter().chain(keys.serving_names()).collect();
        let mut needed = lasting.clone();
        needed.extend(of_log);
        needed.extend(core.leaves.keys_of_change_files());
        let (kept, gone): (Vec<_>, Vec<_>) = keys.names().into_iter().partition(|name| needed.contains(name));
        if !gone.is_empty() {
            map.name_keys(&kept)?;
            keys.retire(&gone);
            reach::mark("key forgotten");
        }
        if kept.iter().all(|name| lasting.contains(name)) {
            self.state.lock().to_forget = None;
        }
        Ok(!gone.is_empty())
    }
}

/// Makes the keys of tables encrypted by default current. Reports a missing key until it exists.
fn note_missing_keys(core: &Core) -> Result<()> {
    const PLACE: &str = "keys of encrypted tables";
    let errors = core.health.background_errors();
    match core.use_keys_by_default() {
        Ok(()) => errors.clear(PLACE),
        Err(error @ Error::Fatal(_)) => return Err(error),
        Err(error) => errors.note(PLACE, &error),
    }
    Ok(())
}

impl State {
    /// Whether to call the key service now; if so, counts the request as made.
    fn is_time_to_ask(&mut self, now_ns: u64) -> bool {
        let is_time = self.asked_at_ns.is_none_or(|asked_ns| now_ns.saturating_sub(asked_ns) >= ASK_EVERY_NS);
        if is_time {
            self.asked_at_ns = Some(now_ns);
        }
        is_time
    }

    fn leave(&mut self, now_ns: u64) {
        self.retry_after_ns = (self.retry_after_ns * 2).clamp(RETRY_AFTER_NS, RETRY_AFTER_NS_MAX);
        self.retry_at_ns = now_ns.saturating_add(self.retry_after_ns);
    }

    /// Whether to free space on a full disk now; if so, counts it as done.
    fn may_give_back(&mut self, now_ns: u64) -> bool {
        let may = now_ns >= self.give_back_at_ns;
        if may {
            self.give_back_at_ns = now_ns.saturating_add(GIVE_BACK_EVERY_NS);
        }
        may
    }

    fn end_pass(&mut self, of_images: BTreeSet<KeyName>) {
        self.retry_after_ns = 0;
        self.done_with = Some(self.began_with);
        self.to_forget = Some(ToForget { of_images, tried_at: Epoch(0) });
    }

    fn is_done(&self, changes: u64) -> bool {
        self.done_with == Some(changes) && self.to_forget.is_none()
    }

    /// Returns the keys of images once after each checkpoint, until the unneeded keys are gone.
    fn take_to_forget(&mut self, changes: u64, epoch: Epoch) -> Option<BTreeSet<KeyName>> {
        if sound!(changes != self.began_with, "encryption: forget keys that served meanwhile") {
            // The pass does not know keys added after it began; the next one will.
            self.to_forget = None;
        }
        let to_forget = self.to_forget.as_mut().filter(|to_forget| to_forget.tried_at != epoch)?;
        to_forget.tried_at = epoch;
        Some(to_forget.of_images.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_again_and_again_is_tried_less_and_less() {
        let (mut state, mut pauses) = (State::default(), Vec::new());
        for _ in 0..9 {
            state.leave(5);
            pauses.push((state.retry_at_ns - 5) / 1_000_000_000);
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 600, 600, 600]);
        state.end_pass(BTreeSet::new());
        state.leave(5);
        assert_eq!(state.retry_at_ns, 5 + RETRY_AFTER_NS);
    }
}

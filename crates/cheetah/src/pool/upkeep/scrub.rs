//! Scrubbing: reads one image after the other, and then the change files. Invariants I5 and I6 are
//! at the head of `upkeep`.

use super::pace::Pace;
use super::walk::Walk;
use super::Upkeep;
use crate::base::hash::hash_number;
use crate::base::{sound, Error, PageId, Result, TreeId};
use crate::format::ImageRef;
use crate::pool::counters::Counter;
use crate::pool::images::codec;
use parking_lot::Mutex;

/// The minimum time from the beginning of one pass to the beginning of the next.
pub(super) const PASS_EVERY_NS: u64 = 24 * 3_600_000_000_000;
/// The maximum number of page table entries checked in one step.
const LOOKS_MAX: u64 = 10_000;

/// The progress of scrubbing.
#[derive(Default, Debug)]
pub(super) struct Scrubbing {
    state: Mutex<State>,
    pub(super) images: Counter,
    pub(super) bytes: Counter,
    pub(super) damaged: Counter,
}

#[derive(Default, Debug)]
struct State {
    /// 0 while scrubbing is off.
    bytes_per_second: u64,
    pace: Pace,
    pass: Option<Pass>,
}

#[derive(Debug)]
struct Pass {
    began_ns: u64,
    walk: Walk,
    found_damage: bool,
    /// Whether the pass has reached the change files, which come after the images.
    is_beside: bool,
}

impl Scrubbing {
    /// Names and values for status.
    pub(super) fn counts(&self) -> [(&'static str, u64); 3] {
        [
            ("pool_scrubbed_images", self.images.get()),
            ("pool_scrubbed_bytes", self.bytes.get()),
            ("pool_damaged_images", self.damaged.get()),
        ]
    }
}

/// The outcome of a step of scrubbing.
#[derive(Debug)]
pub enum Scrubbed {
    /// Nothing is due.
    Nothing,
    /// A part of the pass is done, without damage.
    Intact,
    /// An image of a page of this tree cannot be read.
    Damaged(TreeId, Error),
    /// A pass has ended.
    PassEnded {
        /// Whether the pass found no damage.
        is_clean: bool,
    },
}

impl Upkeep {
    /// Sets the rate at which images are read, and starts a new pass. A rate of 0 stops scrubbing.
    /// May wait until one image is read.
    pub fn set_scrub_rate(&self, bytes_per_second: u64) {
        *self.scrubbing.state.lock() = State { bytes_per_second, ..State::default() };
    }

    /// Reads the next image, if it is due. May do I/O. Returns an error only if the engine has
    /// stopped; damage of an image is [`Scrubbed::Damaged`].
    pub fn scrub_step(&self, now_ns: u64) -> Result<Scrubbed> {
        let pool = &*self.pool;
        pool.health.check()?;
        let mut state = self.scrubbing.state.lock();
        let rate = state.bytes_per_second;
        if rate == 0 || !state.pace.is_due(now_ns) {
            return Ok(Scrubbed::Nothing);
        }
        let mut pass = state.pass.take().unwrap_or_else(|| self.new_pass(now_ns));
        let next = pass.walk.images(pool, LOOKS_MAX).next();
        let Some(image) = next else {
            let read_bytes = if pass.walk.is_done() { self.scrub_beside(&mut pass) } else { Some(0) };
            match read_bytes {
                Some(bytes) => {
                    state.pace.take(bytes, rate, now_ns);
                    state.pass = Some(pass);
                    return Ok(Scrubbed::Intact);
                }
                None => {
                    state.pace.rest_until(pass.began_ns + PASS_EVERY_NS);
                    return Ok(Scrubbed::PassEnded { is_clean: !pass.found_damage });
                }
            }
        };
        let stored_bytes = u64::from(image.location.stored_bytes);
        state.pace.take(stored_bytes, rate, now_ns);
        self.scrubbing.images.one();
        self.scrubbing.bytes.add(stored_bytes);
        let read = self.scrub(&image);
        pass.found_damage |= read.is_err();
        state.pass = Some(pass);
        match read {
            Ok(()) => Ok(Scrubbed::Intact),
            Err(fatal @ Error::Fatal(_)) => Err(fatal),
            Err(error) => {
                self.scrubbing.damaged.one();
                Ok(Scrubbed::Damaged(image.tree, error))
            }
        }
    }

    fn new_pass(&self, now_ns: u64) -> Pass {
        let walk = Walk::from(&self.pool, PageId(hash_number(now_ns)));
        Pass { began_ns: now_ns, walk, found_damage: false, is_beside: false }
    }

    /// Checks the next block of the change files. Returns the number of bytes read, or `None` after
    /// the last block.
    fn scrub_beside(&self, pass: &mut Pass) -> Option<u64> {
        if !sound!(true, "scrubbing: leave change files unread") {
            return None;
        }
        let restart = !std::mem::replace(&mut pass.is_beside, true);
        let bytes = self.pool.beside.scrub(&self.pool, restart)?;
        self.scrubbing.bytes.add(bytes);
        Some(bytes)
    }

    pub(super) fn scrub(&self, image: &ImageRef) -> Result<()> {
        let read = self.pool.scratch.with_image(|bytes| {
            self.pool.segments.read_unchecked(image, bytes)?;
            codec::check(bytes, image, self.pool.page_bytes).map(drop)
        });
        let is_replaced = self.pool.newest_image(image.pid) != Some(*image);
        match sound!(is_replaced, "scrubbing: take what was replaced for damaged") {
            true => Ok(()),
            false => read,
        }
    }
}

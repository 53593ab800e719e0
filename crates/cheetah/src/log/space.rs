//! Space in the log: writers are slowed down, then wait, before the log exceeds its limit. They
//! wait outside the gate, where they hold nothing that a checkpoint needs.

use super::writer::Log;
use crate::base::stages::Stage;
use crate::base::stalls::Stall;
use crate::base::{brake, Error, Lsn, Result};
use crate::durable::space::Reserve;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// From this fill level on writers are slowed, so that a checkpoint keeps up with them and no
/// writer has to stop.
const SLOW_PERCENT: u64 = 75;
/// From this fill level on writers wait. The rest is for writers that have passed the check
/// already.
const FULL_PERCENT: u64 = 95;
/// Delay of one operation just before the log is full.
const DELAY_NS_MAX: u64 = 1_000_000;
/// The time between a waiting writer's checks for an interruption.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// When disk space is short, a file takes this part of the space above the reserve.
const SHORT_PART: u64 = 8;

/// The action that a writer has to take before it may log something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Space {
    /// Nothing.
    Plenty,
    /// Wait for a moment.
    Slow {
        /// The duration.
        delay_ns: u64,
    },
    /// Wait for a checkpoint.
    Full,
}

impl Log {
    /// Bytes of log since `lsn`.
    pub fn bytes_since(&self, lsn: Lsn) -> u64 {
        self.end().0.saturating_sub(lsn.0)
    }

    /// How full the log is. Never blocks for I/O.
    pub fn space(&self) -> Space {
        let used = self.bytes_since(self.oldest_needed());
        let (slow, full) = (self.bytes_max / 100 * SLOW_PERCENT, self.bytes_max / 100 * FULL_PERCENT);
        if used < slow {
            return Space::Plenty;
        }
        if used >= full {
            return Space::Full;
        }
        Space::Slow { delay_ns: DELAY_NS_MAX * (used - slow) / (full - slow).max(1) }
    }

    /// Waits until there is space. Must be called before entering the gate, never inside.
    ///
    /// Returns `DiskFull` if there is no disk space for the next file, or if less of the reserve
    /// than `stays` remains while it waits, because then a checkpoint might fail. Returns
    /// `Interrupted` if `interrupted` returns true. A single-threaded caller must check
    /// [`Log::space`] first and make a checkpoint itself, because no other thread would.
    pub fn wait_for_space(&self, stays: Reserve, interrupted: &dyn Fn() -> bool) -> Result<()> {
        self.health().check()?;
        match self.space() {
            Space::Plenty => {}
            Space::Slow { delay_ns } => {
                if let Some(owed_ns) = brake::owe(delay_ns) {
                    let _stall = self.begin_stall();
                    self.clock.sleep_ns(owed_ns);
                }
            }
            Space::Full => self.wait_for_recycling(stays, interrupted)?,
        }
        self.prepare_reserve()
    }

    /// Makes sure that the next file is ready before the current one is full. Returns `DiskFull` if
    /// there is no space for it besides the reserve. Must be called outside the gate;
    /// [`wait_for_space`](Self::wait_for_space) also does this.
    pub fn prepare_reserve(&self) -> Result<()> {
        self.make_ready(Reserve::Whole)
    }

    /// Like [`prepare_reserve`](Self::prepare_reserve), but if there is no space for a file of the
    /// usual length, makes do with a shorter one and takes it from the reserve, down to `stays`.
    /// For work that must go on when the disk is full.
    pub fn prepare_short_reserve(&self, stays: Reserve) -> Result<()> {
        self.make_ready(stays)
    }

    fn make_ready(&self, stays: Reserve) -> Result<()> {
        if self.reserve_is_ready.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut files = self.files.lock();
        loop {
            let (taken_count, wanted, least) = {
                let tail = self.tail.lock();
                (tail.taken_count(), tail.wanted_bytes(), tail.least_bytes())
            };
            let wanted = self.length_for_space(wanted, least);
            let least = if stays == Reserve::Whole { wanted } else { least };
            let bytes = files.make_ready(taken_count, wanted, least, stays)?;
            let mut tail = self.tail.lock();
            // Otherwise another thread made it ready before, and it was taken meanwhile.
            if tail.taken_count() == taken_count {
                tail.set_ready(bytes);
                self.reserve_is_ready.store(true, Ordering::Release);
                return Ok(());
            }
        }
    }

    /// Length of the next file. If space is short, it is a small part of the remaining space: the
    /// least length, doubled some number of times.
    fn length_for_space(&self, wanted: u64, least: u64) -> u64 {
        let space = self.durable.space();
        match space.is_short() {
            true => {
                let most = (space.room_above(Reserve::Whole) / SHORT_PART).max(least);
                wanted.min(least << (most / least).ilog2())
            }
            false => wanted,
        }
    }

    fn wait_for_recycling(&self, stays: Reserve, interrupted: &dyn Fn() -> bool) -> Result<()> {
        let _stall = self.begin_stall();
        let mut waiting = self.recycling.lock();
        while self.space() == Space::Full {
            self.health().check()?;
            if interrupted() {
                return Err(Error::Interrupted);
            }
            // If no checkpoint can succeed, nothing would free log space.
            self.durable.space().check_beside_promised(stays)?;
            self.recycled.wait_for(&mut waiting, LOOK_EVERY);
        }
        Ok(())
    }

    fn begin_stall(&self) -> Stall<'_> {
        self.health().stalls().begin(Stage::LogSpace, &*self.clock)
    }

    /// Notes that a checkpoint has committed, so that nothing before `before` is needed any more.
    /// Files that end before it are kept for reuse or removed, and writers that wait for space
    /// continue. Returns the number of retired files.
    pub fn recycle(&self, before: Lsn) -> Result<usize> {
        self.health().check()?;
        assert!(before <= self.end(), "a checkpoint covers only what has been logged");
        let result = self.files.lock().recycle(before);
        let _waiting = self.recycling.lock();
        self.note_oldest_needed(before);
        self.recycled.notify_all();
        result
    }
}

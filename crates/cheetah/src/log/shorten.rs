//! Switches to shorter files when less is logged ([`FileSizes`](super::file_sizes::FileSizes)).

use super::writer::Log;
use crate::base::{sound, Error, Result};
use crate::durable::space::Reserve;
use std::sync::atomic::Ordering;

/// The time between two checks of how much was logged.
const LOOK_EVERY_NS: u64 = 60_000_000_000;

impl Log {
    /// Called by a background thread from time to time. Once a minute, checks how much was logged,
    /// and continues in a shorter file if little was. Files that are too long are then retired.
    /// Blocks for I/O. Does nothing on a full disk.
    pub fn shorten_files(&self, now_ns: u64) -> Result<()> {
        let looked_at_ns = self.looked_at_ns.load(Ordering::Relaxed);
        if now_ns.saturating_sub(looked_at_ns) < LOOK_EVERY_NS {
            return Ok(());
        }
        self.looked_at_ns.store(now_ns, Ordering::Relaxed);
        if !self.tail.lock().look() {
            return Ok(());
        }
        match self.go_on_in_shorter_file() {
            Err(Error::DiskFull(_)) => Ok(()),
            other => other,
        }
    }

    /// Continues in a new file if the encryption of the current file is out of date. Blocks for
    /// I/O.
    pub fn close_as_wanted(&self) -> Result<()> {
        while self.tail.lock().is_closed_otherwise() {
            // So that every taken ready file is started.
            self.write_out()?;
            self.go_on_in_shorter_file()?;
        }
        Ok(())
    }

    fn go_on_in_shorter_file(&self) -> Result<()> {
        if !self.exchange_ready_file()? {
            return Ok(());
        }
        self.write_out()?;
        // The last checkpoint could not retire the file that was just replaced.
        let needed = match sound!(true, "log: let go of what no checkpoint covers") {
            true => self.oldest_needed(),
            false => self.end(),
        };
        self.files.lock().recycle(needed)?;
        self.prepare_reserve()
    }

    /// Replaces the ready file with a shorter one, and starts it if the current file is also too
    /// long, or if the encryption of the current file is out of date. Returns false and starts no
    /// file if a taken ready file was not started yet, because there may be frames for it (I4).
    fn exchange_ready_file(&self) -> Result<bool> {
        let mut files = self.files.lock();
        let bytes = self.tail.lock().wanted_bytes();
        // An unencrypted file of the reserve must not be made ready (durability::E6).
        files.trim()?;
        let shorter = files.find(bytes, bytes, Reserve::Whole)?;
        {
            let mut tail = self.tail.lock();
            if !files.exchange_ready(tail.taken_count(), shorter, bytes) {
                return Ok(false);
            }
            tail.set_ready(bytes);
            if tail.is_longer_than(bytes) || tail.is_closed_otherwise() {
                tail.start_file(0)
                    .map_err(|error| self.health().stop(format!("no new log file: {error}")))?;
            }
            self.reserve_is_ready.store(tail.has_ready(), Ordering::Release);
        }
        files.trim()?;
        Ok(true)
    }
}

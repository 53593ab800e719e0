//! Shorter files when less is logged ([`FileSizes`](super::file_sizes::FileSizes)).

use super::writer::Log;
use crate::base::{sound, Error, Result};
use crate::durable::space::Reserve;
use std::sync::atomic::Ordering;

/// How often the log looks how much has been logged.
const LOOK_EVERY_NS: u64 = 60_000_000_000;

impl Log {
    /// Called by the background now and then: once a minute looks how much has been logged, and
    /// goes on in a shorter file when that was little. Files that are too long then are let go.
    /// Blocks for I/O. Does without on a full disk.
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

    /// Goes on in a new file if the one in use is not closed as files should be now. Blocks for
    /// I/O.
    pub fn close_as_wanted(&self) -> Result<()> {
        while self.tail.lock().is_closed_otherwise() {
            // So that no file that was ready waits to be begun.
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
        // The release of files at the last checkpoint could not let go of the one in use.
        let needed = match sound!(true, "log: let go of what no checkpoint covers") {
            true => self.oldest_needed(),
            false => self.end(),
        };
        self.files.lock().recycle(needed)?;
        self.prepare_reserve()
    }

    /// Makes a shorter file ready instead of the one that is, and begins it if the one in use is
    /// longer too, or not closed as files should be. Whether it has: not while a file that was
    /// ready waits to be begun, as frames for it may be appended already (I4).
    fn exchange_ready_file(&self) -> Result<bool> {
        let mut files = self.files.lock();
        let bytes = self.tail.lock().wanted_bytes();
        // A plain file of the reserve must not be made ready (E6).
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

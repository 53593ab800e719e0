//! Settings of an engine. A setting that exists in InnoDB has InnoDB's name.

use super::settings::LOG_FILES_MIN;
use super::{Error, KeySource, Result};

/// Settings with which a database is opened.
#[derive(Clone, Debug)]
pub struct Config {
    /// The size of the smallest pages in memory, in bytes: a power of two from 512 to 16384. Wide
    /// pages are twice as large, pages of large values up to four times. Fixed when the database is
    /// created.
    pub page_bytes: u32,
    /// Bytes of a segment file. Fixed when the database is created.
    pub segment_bytes: u64,
    /// The memory of the engine in bytes (see `memory`). `Db::set_buffer_pool_bytes` changes it.
    pub buffer_pool_bytes: u64,
    /// The length of a log file of a busy database.
    pub log_file_bytes: u64,
    /// The length of a log file at little activity, or `log_file_bytes` if that is less.
    pub log_file_bytes_min: u64,
    /// The maximum size of the log. A checkpoint starts when a quarter of it was logged since the
    /// last checkpoint; writers wait when 95 percent is in use.
    pub log_bytes_max: u64,
    /// The maximum time between checkpoints in nanoseconds, if there are any changes.
    pub checkpoint_interval_ns: u64,
    /// The number of I/O operations per second that background work may use at low pressure.
    /// `Db::set_io_capacity` changes it.
    pub io_capacity: u32,
    /// The number of threads that redo logged operations when a database is opened after a crash,
    /// besides the one that reads the log. 0: one for each processor, at most 8. 1: startup starts
    /// no thread.
    pub redo_threads: u32,
    /// Purge also removes versions between the oldest and the newest snapshot when at least this
    /// many transactions have ended since the oldest snapshot.
    pub old_snapshot_lag: u64,
    /// Whether changes of rows and index entries may be pending for a leaf that is not in memory.
    /// `Db::set_buffering` changes it.
    pub buffers_changes: bool,
    /// Whether complete segment files are read through the operating system's page cache.
    pub buffers_data_files: bool,
    /// The key service. A database that has encrypted data cannot be opened without it.
    pub keys: KeySource,
    /// Whether tables without their own setting are encrypted. `Db::set_encrypt_tables` changes it.
    pub encrypts_tables: bool,
    /// Whether the log is encrypted. `Db::set_encrypt_log` changes it.
    pub encrypts_log: bool,
    /// Whether the two settings above apply only if some data is already encrypted: for programs
    /// that inspect a database, which then need keys only for encrypted databases.
    pub stays_plain: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            page_bytes: 16 << 10,
            segment_bytes: 64 << 20,
            buffer_pool_bytes: 128 << 20,
            log_file_bytes: 64 << 20,
            log_file_bytes_min: 2 << 20,
            log_bytes_max: 1 << 30,
            checkpoint_interval_ns: 300_000_000_000,
            io_capacity: 2000,
            redo_threads: 0,
            // This is more than the lag that 512 connections with one transaction each cause.
            old_snapshot_lag: 4096,
            buffers_changes: true,
            buffers_data_files: false,
            keys: KeySource::default(),
            encrypts_tables: false,
            encrypts_log: false,
            stays_plain: false,
        }
    }
}

impl Config {
    /// Returns a configuration for tests: pages of 512 bytes, a handful of frames, and log files of
    /// a few KiB, so that a thousand operations reach every rare path.
    pub fn tiny() -> Self {
        Self {
            page_bytes: 512,
            segment_bytes: 32 << 10,
            buffer_pool_bytes: 64 << 10,
            log_file_bytes: 8 << 10,
            log_file_bytes_min: 4 << 10,
            log_bytes_max: 64 << 10,
            checkpoint_interval_ns: u64::MAX,
            redo_threads: 1,
            old_snapshot_lag: 2,
            ..Self::default()
        }
    }

    /// The minimum of `buffer_pool_bytes` with this page size.
    pub fn buffer_pool_bytes_min(page_bytes: u32) -> u64 {
        64 * u64::from(page_bytes)
    }

    /// Fails with the first setting that has an invalid value.
    pub fn validate(&self) -> Result<()> {
        let refuse = |name, value, range: String| Err(Error::Setting { name, value, range });
        let page_bytes = u64::from(self.page_bytes);
        if !self.page_bytes.is_power_of_two() || !(512..=16384).contains(&self.page_bytes) {
            return refuse("page_size", page_bytes, "a power of two from 512 to 16384".into());
        }
        if !(16 * page_bytes..=64 << 20).contains(&self.segment_bytes) {
            return refuse(
                "segment_size",
                self.segment_bytes,
                format!("from {} to 67108864", 16 * page_bytes),
            );
        }
        let least = Self::buffer_pool_bytes_min(self.page_bytes);
        if self.buffer_pool_bytes < least {
            return refuse("buffer_pool_size", self.buffer_pool_bytes, format!("at least {least}"));
        }
        if !(4096..=1 << 32).contains(&self.log_file_bytes) {
            return refuse("log_file_size", self.log_file_bytes, "from 4096 to 4294967296".into());
        }
        let least = LOG_FILES_MIN * self.log_file_bytes;
        if self.log_bytes_max < least {
            let range = format!("at least {least}, four times log_file_size");
            return refuse("log_size_max", self.log_bytes_max, range);
        }
        Ok(())
    }
}

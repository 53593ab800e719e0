//! Server variables that depend on each other. If their values are not compatible, the engine
//! adjusts them and warns, like InnoDB, because otherwise the server would run without its tables.
//! A program that opens a database itself gets an error instead ([`Config::validate`]).
//!
//! Invariants
//!   I1  Each value is in the range that the server allows, before and after the adjustment.
//!   I2  If two values are incompatible and one was not set, that one changes. A default value
//!       counts as not set. If both were set, the value that is derived from the other changes.
//!   I3  Adjusted settings are compatible: a second adjustment changes nothing.

use super::Config;
use std::fmt;

/// The server rounds `cheetah_log_file_size` to a multiple of this.
const LOG_FILE_UNIT: u64 = 1 << 20;

pub(super) const LOG_FILES_MIN: u64 = 4;

/// The variables that depend on each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServerSettings {
    /// `cheetah_log_file_size`: maximum bytes of one log file.
    pub log_file_bytes: u64,
    /// `cheetah_log_size_max`: maximum bytes of the log.
    pub log_bytes_max: u64,
    /// `cheetah_ft_min_token_size`: minimum characters of a word in full-text indexes.
    pub word_chars_min: u32,
    /// `cheetah_ft_max_token_size`: maximum characters of a word in full-text indexes.
    pub word_chars_max: u32,
}

impl Default for ServerSettings {
    fn default() -> Self {
        let Config { log_file_bytes, log_bytes_max, .. } = Config::default();
        Self { log_file_bytes, log_bytes_max, word_chars_min: 3, word_chars_max: 84 }
    }
}

/// A variable whose value differs from the requested one.
#[derive(PartialEq, Eq, Debug)]
pub struct Adjustment {
    name: &'static str,
    asked: u64,
    taken: u64,
    because: String,
}

impl fmt::Display for Adjustment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, asked, taken, because } = self;
        write!(f, "{name} is {taken}, not {asked}: {because}")
    }
}

impl ServerSettings {
    /// Adjusts incompatible values. Returns the adjustments with their reasons.
    pub fn adjust(&mut self) -> Vec<Adjustment> {
        self.adjust_log().into_iter().chain(self.adjust_words()).collect()
    }

    /// The size of the log limits the use of the disk, so the size of its files is derived from it.
    fn adjust_log(&mut self) -> Option<Adjustment> {
        let (asked_max, asked_file) = (self.log_bytes_max, self.log_file_bytes);
        let least = LOG_FILES_MIN.saturating_mul(asked_file);
        if asked_max >= least {
            return None;
        }
        if asked_max == Self::default().log_bytes_max {
            self.log_bytes_max = least;
            let because = format!("at least four times cheetah_log_file_size, which is {asked_file}");
            return Some(Adjustment {
                name: "cheetah_log_size_max",
                asked: asked_max,
                taken: least,
                because,
            });
        }
        let taken = asked_max / LOG_FILES_MIN / LOG_FILE_UNIT * LOG_FILE_UNIT;
        self.log_file_bytes = taken;
        let because = format!("at most a quarter of cheetah_log_size_max, which is {asked_max}");
        Some(Adjustment { name: "cheetah_log_file_size", asked: asked_file, taken, because })
    }

    /// With incompatible lengths no word would be indexed. Both were then set, because no allowed
    /// value of one is incompatible with the other's default.
    fn adjust_words(&mut self) -> Option<Adjustment> {
        let (asked, max) = (self.word_chars_min, self.word_chars_max);
        if asked <= max {
            return None;
        }
        self.word_chars_min = max;
        let because = format!("at most cheetah_ft_max_token_size, which is {max}");
        let (asked, taken) = (asked.into(), max.into());
        Some(Adjustment { name: "cheetah_ft_min_token_size", asked, taken, because })
    }
}

#[cfg(test)]
mod tests {
    use super::ServerSettings;
    use crate::base::Config;

    const MIB: u64 = 1 << 20;
    /// The range that the server allows for each variable.
    const FILE_RANGE: (u64, u64) = (MIB, 1024 * MIB);
    const MAX_RANGE: (u64, u64) = (8 * MIB, u64::MAX / MIB * MIB);

    fn log(file_mib: u64, max_mib: u64) -> ServerSettings {
        let (log_file_bytes, log_bytes_max) = (file_mib * MIB, max_mib * MIB);
        ServerSettings { log_file_bytes, log_bytes_max, ..ServerSettings::default() }
    }

    /// Sizes of the log in MiB: requested, adjusted, and the warning.
    fn check_log(asked: (u64, u64), taken: (u64, u64), told: &str) {
        let mut settings = log(asked.0, asked.1);
        let warnings: Vec<_> = settings.adjust().iter().map(ToString::to_string).collect();
        assert_eq!(settings, log(taken.0, taken.1), "{asked:?}");
        assert_eq!(warnings.concat(), told, "{asked:?}");
        assert!(settings.adjust().is_empty(), "{asked:?}: I3");
    }

    #[test]
    fn sizes_of_the_log_fit() {
        // Neither is set, or they are compatible.
        check_log((64, 1024), (64, 1024), "");
        check_log((64, 256), (64, 256), "");
        check_log((1, 8), (1, 8), "");
        check_log((2, 8), (2, 8), "");
        check_log((1024, 4096), (1024, 4096), "");
        // Only the size of the log is set.
        check_log(
            (64, 64),
            (16, 64),
            "cheetah_log_file_size is 16777216, not 67108864: at most a quarter of cheetah_log_size_max, \
             which is 67108864",
        );
        let file = |taken: u64, asked: u64, max: u64| {
            let (taken, asked, max) = (taken * MIB, asked * MIB, max * MIB);
            format!(
                "cheetah_log_file_size is {taken}, not {asked}: at most a quarter of \
                 cheetah_log_size_max, which is {max}"
            )
        };
        check_log((64, 255), (63, 255), &file(63, 64, 255));
        check_log((64, 8), (2, 8), &file(2, 64, 8));
        check_log((64, 11), (2, 11), &file(2, 64, 11));
        // Only the size of the files is set.
        check_log(
            (512, 1024),
            (512, 2048),
            "cheetah_log_size_max is 2147483648, not 1073741824: at least four times cheetah_log_file_size, \
             which is 536870912",
        );
        check_log((256, 1024), (256, 1024), "");
        let max = |taken: u64, file: u64| {
            let (taken, file) = (taken * MIB, file * MIB);
            format!(
                "cheetah_log_size_max is {taken}, not 1073741824: at least four times \
                 cheetah_log_file_size, which is {file}"
            )
        };
        check_log((257, 1024), (257, 1028), &max(1028, 257));
        check_log((1024, 1024), (1024, 4096), &max(4096, 1024));
        // Both are set.
        check_log((512, 512), (128, 512), &file(128, 512, 512));
        check_log((1024, 2048), (512, 2048), &file(512, 1024, 2048));
        check_log((3, 8), (2, 8), &file(2, 3, 8));
    }

    #[test]
    fn lengths_of_words_fit() {
        for (asked, taken, told) in [
            ((3, 84), (3, 84), ""),
            ((0, 10), (0, 10), ""),
            ((10, 10), (10, 10), ""),
            ((16, 84), (16, 84), ""),
            (
                (11, 10),
                (10, 10),
                "cheetah_ft_min_token_size is 10, not 11: at most cheetah_ft_max_token_size, which is 10",
            ),
            (
                (16, 15),
                (15, 15),
                "cheetah_ft_min_token_size is 15, not 16: at most cheetah_ft_max_token_size, which is 15",
            ),
        ] {
            let of = |(word_chars_min, word_chars_max)| ServerSettings {
                word_chars_min,
                word_chars_max,
                ..ServerSettings::default()
            };
            let mut settings = of(asked);
            let warnings: Vec<_> = settings.adjust().iter().map(ToString::to_string).collect();
            assert_eq!((settings, &*warnings.concat()), (of(taken), told), "{asked:?}");
            assert!(settings.adjust().is_empty(), "{asked:?}: I3");
        }
    }

    /// Every extreme combination that the server allows opens a database.
    #[test]
    fn whatever_the_server_allows_opens() {
        let files = [FILE_RANGE.0, 2 * MIB, 3 * MIB, 64 * MIB, 256 * MIB, 257 * MIB, FILE_RANGE.1];
        let sizes = [MAX_RANGE.0, 9 * MIB, 255 * MIB, 256 * MIB, 1024 * MIB, 4096 * MIB, MAX_RANGE.1];
        for (log_file_bytes, log_bytes_max) in files.into_iter().flat_map(|f| sizes.map(|s| (f, s))) {
            let mut settings = ServerSettings { log_file_bytes, log_bytes_max, ..ServerSettings::default() };
            settings.adjust();
            let ServerSettings { log_file_bytes, log_bytes_max, .. } = settings;
            assert!(log_file_bytes >= FILE_RANGE.0 && log_file_bytes <= FILE_RANGE.1, "I1");
            assert!(log_bytes_max >= MAX_RANGE.0 && log_bytes_max % MIB == 0, "I1");
            let config = Config { log_file_bytes, log_bytes_max, ..Config::default() };
            assert!(config.validate().is_ok(), "{settings:?}");
        }
    }
}

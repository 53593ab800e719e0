//! The length of log files. Files are short while little is logged, so that a small database is
//! small on disk, and long on a busy server, so that it seldom starts a new file.
//!
//! Every startup begins with the shortest length. The log is checked once a minute. If a file is
//! started and filled between two checks, the length of the next files doubles. If less than a
//! quarter of a file was logged between two checks, the length halves. Otherwise it does not
//! change, so that it does not oscillate under a steady load.
//!
//! No reader of a log relies on the length of its files.

use crate::base::Lsn;

/// If a check finds fewer bytes logged than the file length divided by `LITTLE_PART`, it halves the
/// length of the next files.
const LITTLE_PART: u64 = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FileSizes {
    least_bytes: u64,
    most_bytes: u64,
    bytes: u64,
    /// The end of the log at the last check.
    looked_at: Lsn,
}

impl FileSizes {
    /// Starts with the shortest length. Files have at least `least_bytes` and at most `most_bytes`;
    /// `end` is the end of the log.
    pub(super) fn new(least_bytes: u64, most_bytes: u64, end: Lsn) -> Self {
        Self { least_bytes, most_bytes, bytes: least_bytes, looked_at: end }
    }

    /// Length of the next files.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Length of the shortest files.
    pub(super) fn least_bytes(&self) -> u64 {
        self.least_bytes
    }

    pub(super) fn note_full(&mut self, start: Lsn) {
        if start >= self.looked_at {
            self.bytes = (2 * self.bytes).min(self.most_bytes);
        }
    }

    /// Performs the check. `end` is the end of the log.
    pub(super) fn look(&mut self, end: Lsn) {
        let logged = end.0 - self.looked_at.0;
        self.looked_at = end;
        if logged < self.bytes / LITTLE_PART {
            self.bytes = (self.bytes / 2).max(self.least_bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the file length after each minute, given the bytes logged in that minute.
    fn check(logged: &[u64], expected: &[u64]) {
        let mut sizes = FileSizes::new(2, 64, Lsn(0));
        let (mut end, mut file_start, mut file_bytes) = (0, 0, sizes.bytes());
        let after = logged.iter().map(|bytes| {
            for _ in 0..*bytes {
                if end == file_start + file_bytes {
                    sizes.note_full(Lsn(file_start));
                    (file_start, file_bytes) = (end, sizes.bytes());
                }
                end += 1;
            }
            sizes.look(Lsn(end));
            sizes.bytes()
        });
        assert_eq!(after.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn files_grow_to_the_longest_and_shrink_in_steps_to_the_shortest() {
        check(&[1000, 1000, 100, 15, 7, 0, 0, 0, 0], &[64, 64, 64, 32, 16, 8, 4, 2, 2]);
    }

    #[test]
    fn little_that_is_logged_for_long_does_not_make_files_grow() {
        check(&[1; 100], &[2; 100]);
    }

    #[test]
    fn an_even_load_comes_to_one_length() {
        for bytes in 1..200 {
            let mut sizes = FileSizes::new(2, 64, Lsn(0));
            let mut seen = Vec::new();
            let (mut end, mut file_start, mut file_bytes) = (0, 0, sizes.bytes());
            for _ in 0..200 {
                for _ in 0..bytes {
                    if end == file_start + file_bytes {
                        sizes.note_full(Lsn(file_start));
                        (file_start, file_bytes) = (end, sizes.bytes());
                    }
                    end += 1;
                }
                sizes.look(Lsn(end));
                seen.push(sizes.bytes());
            }
            assert!(seen[50..].iter().all(|length| *length == seen[50]), "{bytes}: {seen:?}");
            // A file lasts at least half a minute, or it has the maximum length.
            assert!(seen[50] == 64 || bytes <= 2 * seen[50], "{bytes}: {seen:?}");
        }
    }
}

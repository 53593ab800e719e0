//! Reads the listed change files at the rate of the pool's scrubbing, to find damage.

use super::change_file::Reading;
use super::ColdLeaves;
use crate::format::state::ListedFile;
use crate::pool::Pool;

#[derive(Default, Debug)]
pub(super) struct ScrubbedFiles {
    /// Files not read yet, in reverse order: the next file is at the end.
    files: Vec<ListedFile>,
    reading: Option<Reading>,
}

impl ColdLeaves {
    /// Checks the next block of the change files, or the first one if `restart`. Returns the number
    /// of bytes read; `None` after the last block. Damage becomes a background error. Does I/O.
    pub(super) fn scrub_next(&self, pool: &Pool, restart: bool) -> Option<u64> {
        let mut pass = self.scrubbed.lock();
        if restart {
            *pass = ScrubbedFiles { files: self.listed_files(), reading: None };
        }
        let mut reading = match pass.reading.take() {
            Some(reading) => reading,
            None => {
                let file = pass.files.pop()?;
                match Reading::open(pool.segments().durable(), &file) {
                    Ok(reading) => reading,
                    Err(error) => {
                        self.note_read_file(pool, &file, Err(error));
                        return Some(0);
                    }
                }
            }
        };
        let before = reading.at();
        match reading.check_next(pool.keys().database()) {
            Ok(true) => {
                let bytes = reading.at() - before;
                pass.reading = Some(reading);
                Some(bytes)
            }
            read => {
                let file = reading.listed().clone();
                self.note_read_file(pool, &file, read.map(|_| reading.end()));
                Some(0)
            }
        }
    }
}

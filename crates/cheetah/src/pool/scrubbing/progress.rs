//! How far scrubbing is.

use crate::base::PageId;
use crate::change_files::Reading;
use crate::format::state::ListedFile;
use crate::pool::statistics::Counter;
use parking_lot::Mutex;

/// See the module.
#[derive(Default, Debug)]
pub(in crate::pool) struct Scrubbing {
    pub(super) state: Mutex<State>,
    pub(super) images: Counter,
    pub(super) bytes: Counter,
    pub(super) damaged: Counter,
}

#[derive(Default, Debug)]
pub(super) struct State {
    /// 0: nothing is read.
    pub(super) bytes_per_second: u64,
    /// When the next image may be read, or the next pass may begin.
    pub(super) due_ns: u64,
    pub(super) pass: Option<Pass>,
}

#[derive(Debug)]
pub(super) struct Pass {
    pub(super) began_ns: u64,
    pub(super) next: PageId,
    /// The pages of the pass are below it: behind them it goes on at the first.
    pub(super) end: u64,
    /// Page numbers that have not been looked at.
    pub(super) left: u64,
    pub(super) found_damage: bool,
    /// The change files that come after the pages, the next one last; `None` before.
    pub(super) files: Option<Vec<ListedFile>>,
    /// The change file that is being read.
    pub(super) reading: Option<Reading>,
}

impl Scrubbing {
    /// Names and values for status.
    pub(in crate::pool) fn counts(&self) -> [(&'static str, u64); 3] {
        [
            ("pool_scrubbed_images", self.images.get()),
            ("pool_scrubbed_bytes", self.bytes.get()),
            ("pool_damaged_images", self.damaged.get()),
        ]
    }
}

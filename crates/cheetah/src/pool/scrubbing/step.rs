//! Reading the next image, and the next block of the change files.

use super::progress::{Pass, State};
use crate::base::hash::hash_number;
use crate::base::{planted, Error, PageId, Result, TreeId};
use crate::change_files::Reading;
use crate::format::ImageRef;
use crate::pool::images::codec;
use crate::pool::Pool;

/// From the beginning of a pass to that of the next one, at least.
pub(super) const PASS_EVERY_NS: u64 = 24 * 3_600_000_000_000;
/// Who comes late makes up for so much.
const CATCH_UP_NS: u64 = 100_000_000;
/// Entries of the page table that one step looks at.
const LOOKS_MAX: u64 = 10_000;

/// What a step of scrubbing came to.
#[derive(Debug)]
pub enum Scrubbed {
    /// Nothing is due.
    Nothing,
    /// Some was read, and there is more.
    Intact,
    /// A page of that tree cannot be read.
    Damaged(TreeId, Error),
    /// A pass has ended; whether all that it has read was intact.
    PassEnded {
        /// Nothing was damaged.
        is_clean: bool,
    },
}

impl State {
    /// So many bytes have been read.
    fn take(&mut self, bytes: u64, now_ns: u64) {
        self.due_ns = self.due_ns.max(now_ns.saturating_sub(CATCH_UP_NS))
            + bytes * 1_000_000_000 / self.bytes_per_second;
    }
}

impl Pool {
    /// Has images read at that rate from now on, from the beginning of a pass; 0: none. May wait
    /// until one image is read.
    pub fn set_scrub_rate(&self, bytes_per_second: u64) {
        *self.scrubbing.state.lock() = State { bytes_per_second, ..State::default() };
    }

    /// Reads the next image, if it is due. May do I/O. Errors are those of an engine that has
    /// stopped; what goes wrong with an image is [`Scrubbed::Damaged`].
    pub fn scrub_step(&self, now_ns: u64) -> Result<Scrubbed> {
        self.health.check()?;
        let mut state = self.scrubbing.state.lock();
        if state.bytes_per_second == 0 || now_ns < state.due_ns {
            return Ok(Scrubbed::Nothing);
        }
        let mut pass = state.pass.take().unwrap_or_else(|| self.new_pass(now_ns));
        let Some(image) = self.next_image(&mut pass) else {
            let read_bytes = if pass.left > 0 { Some(0) } else { self.scrub_files(&mut pass) };
            match read_bytes {
                Some(bytes) => {
                    state.take(bytes, now_ns);
                    state.pass = Some(pass);
                    return Ok(Scrubbed::Intact);
                }
                None => {
                    state.due_ns = pass.began_ns + PASS_EVERY_NS;
                    return Ok(Scrubbed::PassEnded { is_clean: !pass.found_damage });
                }
            }
        };
        let stored_bytes = u64::from(image.location.stored_bytes);
        state.take(stored_bytes, now_ns);
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
        let end = self.numbers.lock().end().0.max(1);
        let next = PageId(hash_number(now_ns) % end);
        Pass { began_ns: now_ns, next, end, left: end, found_damage: false, files: None, reading: None }
    }

    /// Checks the next block of the change files; bytes that were read, `None` when there is none.
    /// Damage is a background error of its own.
    fn scrub_files(&self, pass: &mut Pass) -> Option<u64> {
        let files = pass.files.get_or_insert_with(|| self.listed_files());
        if planted::is_on("scrubbing: leave change files unread") {
            return None;
        }
        let mut reading = match pass.reading.take() {
            Some(reading) => reading,
            None => {
                let file = files.pop()?;
                match Reading::open(self.segments.durable(), &file) {
                    Ok(reading) => reading,
                    Err(error) => {
                        self.note_read_file(&file, Err(error));
                        return Some(0);
                    }
                }
            }
        };
        let before = reading.at();
        match reading.check_next(self.keys.database()) {
            Ok(true) => {
                let bytes = reading.at() - before;
                self.scrubbing.bytes.add(bytes);
                pass.reading = Some(reading);
                Some(bytes)
            }
            read => {
                let file = reading.listed().clone();
                self.note_read_file(&file, read.map(|_| reading.end()));
                Some(0)
            }
        }
    }

    /// The next image of a pass, of those in a bounded number of looks.
    fn next_image(&self, pass: &mut Pass) -> Option<ImageRef> {
        for _ in 0..pass.left.min(LOOKS_MAX) {
            let pid = pass.next;
            pass.next = PageId((pid.0 + 1) % pass.end);
            pass.left -= 1;
            if let Some(image) = self.scrubbed_image(pid) {
                return Some(image);
            }
        }
        None
    }

    pub(super) fn scrubbed_image(&self, pid: PageId) -> Option<ImageRef> {
        self.table.existing(pid)?.image(pid)
    }

    pub(super) fn scrub(&self, image: &ImageRef) -> Result<()> {
        let read = self.scratch.with_buffer(|bytes| {
            self.segments.read_unchecked(image, bytes)?;
            codec::check(bytes, image, self.page_bytes).map(drop)
        });
        let is_newest = self.scrubbed_image(image.pid) == Some(*image)
            || planted::is_on("scrubbing: take what was replaced for damaged");
        match is_newest {
            true => read,
            false => Ok(()),
        }
    }
}

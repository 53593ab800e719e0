//! From image to frame: reading pages that are not in memory.
//!
//! Invariants
//!   L1  One thread at a time reads a page; the others wait for it.
//!   L2  A frame is published only if the image it came from is still the newest of its page.
//!   L3  A page that cannot be read stays unread: the error is the caller's, everything else goes on.

use super::frame::{Frame, PageRef};
use super::page_table::{PageEntry, Residence};
use super::queues::EvictionTime;
use super::{codec, PageClass, Pool};
use crate::base::{Error, PageId, Result, TreeId};
use crate::format::page::{is_built, PageBuf, PageKind, PageView};
use crate::format::Location;
use std::sync::Arc;

/// What a look at the page table says.
enum Found {
    Page(PageRef),
    Nothing,
    OthersLoad,
    Load(Source),
}

/// What a page is read from.
#[derive(Clone, Copy)]
pub(super) struct Source {
    tree: TreeId,
    pub(super) location: Location,
}

impl Source {
    pub(super) fn of(entry: &PageEntry) -> Self {
        let location = entry.location().expect("a page without a frame has an image");
        Self { tree: entry.tree(), location }
    }
}

/// Whether a fetch says something about future fetches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reuse {
    Likely,
    Unlikely,
}

/// A page that this thread reads. Whatever happens, a panic too, those who wait for it go on.
struct Loading<'p> {
    pool: &'p Pool,
    pid: PageId,
    /// The entry says what came of the reading.
    is_settled: bool,
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        if !self.is_settled {
            let mut entry = self.pool.table.entry(self.pid);
            if entry.residence() == Residence::Loading {
                entry.unload();
            }
        }
        self.pool.loads.finished(self.pid);
    }
}

impl Pool {
    pub(super) fn fetch_for(&self, pid: PageId, reuse: Reuse) -> Result<Option<PageRef>> {
        self.counters.requests.one();
        loop {
            match self.look_up(pid, reuse)? {
                Found::Page(page) => return Ok(Some(page)),
                Found::Nothing => return Ok(None),
                Found::OthersLoad => self.loads.wait_while(pid, || self.is_loading(pid)),
                Found::Load(source) => {
                    let mut loading = Loading { pool: self, pid, is_settled: false };
                    let loaded = self.load(pid, source);
                    loading.is_settled = true;
                    return loaded;
                }
            }
        }
    }

    /// Reads the newest stored image of a page and checks it, whether or not the page is in memory. `Ok` too when there
    /// is no image (yet).
    pub fn check_image(&self, pid: PageId) -> Result<()> {
        loop {
            let source = match self.table.existing(pid) {
                Some(entry) if entry.location().is_some() => Source::of(&entry),
                _ => return Ok(()),
            };
            let read = self.read_frame(pid, source);
            let moved = self.table.existing(pid).and_then(|entry| entry.location()) != Some(source.location);
            if !moved {
                return read.map(drop);
            }
        }
    }

    fn look_up(&self, pid: PageId, reuse: Reuse) -> Result<Found> {
        let Some(mut entry) = self.table.existing(pid) else { return self.unknown(pid) };
        Ok(match (entry.residence(), entry.frame()) {
            (_, Some(frame)) => {
                if reuse == Reuse::Likely {
                    frame.count_use();
                }
                if frame.take_ahead() {
                    self.ahead.used();
                }
                Found::Page(PageRef(frame.clone()))
            }
            (Residence::Stored, _) => {
                entry.start_loading();
                Found::Load(Source::of(&entry))
            }
            (Residence::Loading, _) => Found::OthersLoad,
            (Residence::Free | Residence::Resident, _) => {
                drop(entry);
                return self.unknown(pid);
            }
        })
    }

    /// A number without a page: freed by somebody, or never given out, which only a damaged reference explains.
    fn unknown(&self, pid: PageId) -> Result<Found> {
        if pid != PageId::NONE && pid < self.pids.lock().end() {
            return Ok(Found::Nothing);
        }
        Err(Error::corrupt(format!("reference to page {pid}"), "no page ever had this number"))
    }

    fn is_loading(&self, pid: PageId) -> bool {
        self.table.entry(pid).residence() == Residence::Loading
    }

    /// Reads the page; the entry says that this thread does. Starts again when the page was moved meanwhile: its
    /// old segment may be gone.
    fn load(&self, pid: PageId, mut source: Source) -> Result<Option<PageRef>> {
        loop {
            let read = self.read_frame(pid, source);
            let mut entry = self.table.entry(pid);
            if let Some(frame) = entry.frame() {
                return Ok(Some(PageRef(frame.clone())));
            }
            if entry.residence() == Residence::Free {
                return Ok(None);
            }
            if entry.location() != Some(source.location) {
                source = Source::of(&entry);
                continue;
            }
            match read {
                Ok(frame) => {
                    let evicted = entry.evicted;
                    self.publish(&mut entry, &frame, evicted);
                    return Ok(Some(PageRef(frame)));
                }
                Err(error) => {
                    entry.unload();
                    return Err(error);
                }
            }
        }
    }

    /// Puts a page that has been read where others find it.
    pub(super) fn publish(&self, entry: &mut PageEntry, frame: &Arc<Frame>, evicted: EvictionTime) {
        let guess = entry.class();
        if guess != frame.class {
            self.trees.get(frame.tree).correct_class(guess, frame.class);
        }
        entry.publish(frame.clone());
        self.queues.add(frame, evicted);
    }

    /// The content of a dictionary's page, by a door of its own (D5): nobody waits for this reader, and it waits for nobody. `None` when the
    /// page is gone.
    pub(super) fn read_dictionary(&self, tree: TreeId, pid: PageId) -> Result<Option<Vec<u8>>> {
        loop {
            let Some(entry) = self.table.existing(pid).filter(|entry| entry.is_used()) else {
                return Ok(None);
            };
            if entry.tree() != tree {
                return Err(no_dictionary(pid, tree));
            }
            if let Some(frame) = entry.frame().cloned() {
                drop(entry);
                // Nobody changes a dictionary: who has this latch has that of another page, perhaps this thread itself.
                let bytes = frame.try_read().ok_or_else(|| no_dictionary(pid, tree))?;
                return dictionary_content(&bytes, pid, tree).map(Some);
            }
            let source = Source::of(&entry);
            drop(entry);
            let read = self.read_dictionary_image(pid, source);
            let moved = self.table.existing(pid).and_then(|entry| entry.location()) != Some(source.location);
            if !moved {
                return read.map(Some);
            }
        }
    }

    fn read_dictionary_image(&self, pid: PageId, source: Source) -> Result<Vec<u8>> {
        self.scratch.with_buffer(|image| {
            let read = self.segments.read_unchecked(&source.location, image);
            read.map_err(|error| name_page(error, pid, source))?;
            let expected = codec::expected(pid, source.tree, &source.location);
            let checked = codec::check(image, &expected, self.page_bytes);
            let (header, _) = checked.map_err(name_dictionary)?;
            // Before anything that it may name is asked for.
            if header.kind != PageKind::Dictionary {
                return Err(no_dictionary(pid, source.tree));
            }
            let mut bytes = PageBuf::new(header.page_bytes);
            let rebuilt = self
                .scratch
                .with_workspace(|workspace| workspace.rebuild(&header, image, &expected, None, &mut bytes));
            rebuilt.map_err(name_dictionary)?;
            dictionary_content(&bytes, pid, source.tree)
        })
    }

    fn read_frame(&self, pid: PageId, source: Source) -> Result<Arc<Frame>> {
        self.scratch.with_buffer(|image| {
            let read = self.segments.read_unchecked(&source.location, image);
            read.map_err(|error| name_page(error, pid, source))?;
            self.decode(pid, source, image, |class| self.make_room_for_read(class))
        })
    }

    /// The frame of the page in `image`, which may be any bytes. `make_room` is asked for room for it.
    pub(super) fn decode(
        &self,
        pid: PageId,
        source: Source,
        image: &[u8],
        make_room: impl FnOnce(PageClass) -> Result<()>,
    ) -> Result<Arc<Frame>> {
        self.counters.reads.one();
        self.counters.read_bytes.add(image.len() as u64);
        let expected = codec::expected(pid, source.tree, &source.location);
        let (header, class) = codec::check(image, &expected, self.page_bytes)?;
        let dictionary = header.dictionary.map(|name| self.dictionary(source.tree, name.page)).transpose();
        let dictionary = dictionary.map_err(|error| name_page(error, pid, source))?;
        make_room(class)?;
        let mut bytes = self.buffers.take(class);
        let tree = self.trees.get(source.tree);
        let decoded = self.scratch.with_workspace(|workspace| {
            let begin_ns = self.images.begin_ns();
            let decoded = workspace.rebuild(&header, image, &expected, dictionary.as_deref(), &mut bytes);
            self.images.decoded(&tree, image.len(), begin_ns);
            decoded
        });
        let frame = self.new_frame(pid, source.tree, class, bytes);
        decoded.map(|()| frame)
    }
}

fn dictionary_content(bytes: &[u8], pid: PageId, tree: TreeId) -> Result<Vec<u8>> {
    let is_one = is_built(bytes) && PageView::new(bytes).kind() == PageKind::Dictionary;
    match is_one {
        true => Ok(PageView::new(bytes).content().to_vec()),
        false => Err(no_dictionary(pid, tree)),
    }
}

fn no_dictionary(pid: PageId, tree: TreeId) -> Error {
    Error::corrupt(format!("dictionary {pid} of tree {tree}"), "the page is none")
}

/// Adds to an error of a read that it was about a dictionary.
fn name_dictionary(error: Error) -> Error {
    match error {
        Error::Corruption { place, detail } => Error::corrupt(format!("dictionary in {place}"), detail),
        other => other,
    }
}

/// Adds to an error of a read which page it was about.
fn name_page(error: Error, pid: PageId, source: Source) -> Error {
    match error {
        Error::Corruption { place, detail } => Error::corrupt(
            format!("page {pid} of tree {}, {}: {place}", source.tree, source.location),
            detail,
        ),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Config;
    use crate::pool::testing::Database;
    use std::panic::{catch_unwind, AssertUnwindSafe};

    #[test]
    fn a_panic_of_the_thread_that_reads_a_page_leaves_the_page_to_others() {
        let db = Database::new(&Config::tiny());
        let pid = db.add(PageClass::Base, 7);
        db.checkpoint().unwrap();
        let disk = db.disk.clone();
        let db = db.crash(disk);
        let pool = &db.pool;
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            pool.table.entry(pid).start_loading();
            let _loading = Loading { pool, pid, is_settled: false };
            panic!("while the page is read");
        }));
        assert!(panicked.is_err());
        assert_eq!(db.value(pid), Some(7));
    }
}

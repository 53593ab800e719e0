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
use crate::format::ImageRef;
use std::sync::Arc;

/// What a look at the page table says.
enum Found {
    Page(PageRef),
    Nothing,
    OthersLoad,
    Load(ImageRef),
}

/// The image of a page that has no frame.
pub(super) fn stored_image(pid: PageId, entry: &PageEntry) -> ImageRef {
    entry.image(pid).expect("a page without a frame has an image")
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
                Found::Load(image) => {
                    let mut loading = Loading { pool: self, pid, is_settled: false };
                    let loaded = self.load(image);
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
            let Some(image) = self.newest_image(pid) else { return Ok(()) };
            let read = self.read_frame(&image);
            let moved = self.newest_image(pid) != Some(image);
            if !moved {
                return read.map(drop);
            }
        }
    }

    fn newest_image(&self, pid: PageId) -> Option<ImageRef> {
        self.table.existing(pid)?.image(pid)
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
                Found::Load(stored_image(pid, &entry))
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
    fn load(&self, mut image: ImageRef) -> Result<Option<PageRef>> {
        loop {
            let read = self.read_frame(&image);
            let mut entry = self.table.entry(image.pid);
            if let Some(frame) = entry.frame() {
                return Ok(Some(PageRef(frame.clone())));
            }
            if entry.residence() == Residence::Free {
                return Ok(None);
            }
            if entry.location() != Some(image.location) {
                image = stored_image(image.pid, &entry);
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
            let image = stored_image(pid, &entry);
            drop(entry);
            let read = self.read_dictionary_image(&image);
            let moved = self.newest_image(pid) != Some(image);
            if !moved {
                return read.map(Some);
            }
        }
    }

    fn read_dictionary_image(&self, image: &ImageRef) -> Result<Vec<u8>> {
        let ImageRef { pid, tree, .. } = *image;
        self.scratch.with_buffer(|bytes| {
            let read = self.segments.read_unchecked(image, bytes);
            read.map_err(|error| name_page(error, image))?;
            let checked = codec::check(bytes, image, self.page_bytes);
            let (header, _) = checked.map_err(name_dictionary)?;
            // Before anything that it may name is asked for.
            if header.kind != PageKind::Dictionary {
                return Err(no_dictionary(pid, tree));
            }
            let mut page = PageBuf::new(header.page_bytes);
            let rebuilt = self
                .scratch
                .with_workspace(|workspace| workspace.rebuild(&header, bytes, image, None, &mut page));
            rebuilt.map_err(name_dictionary)?;
            dictionary_content(&page, pid, tree)
        })
    }

    fn read_frame(&self, image: &ImageRef) -> Result<Arc<Frame>> {
        self.scratch.with_buffer(|bytes| {
            let read = self.segments.read_unchecked(image, bytes);
            read.map_err(|error| name_page(error, image))?;
            self.decode(image, bytes, |class| self.make_room_for_read(class))
        })
    }

    /// The frame of the page of `image`. Its bytes, `stored`, may be any. `make_room` is asked for room for the frame.
    pub(super) fn decode(
        &self,
        image: &ImageRef,
        stored: &[u8],
        make_room: impl FnOnce(PageClass) -> Result<()>,
    ) -> Result<Arc<Frame>> {
        self.counters.reads.one();
        self.counters.read_bytes.add(stored.len() as u64);
        let (header, class) = codec::check(stored, image, self.page_bytes)?;
        let dictionary = header.dictionary.map(|name| self.dictionary(image.tree, name.page)).transpose();
        let dictionary = dictionary.map_err(|error| name_page(error, image))?;
        make_room(class)?;
        let mut bytes = self.buffers.take(class);
        let tree = self.trees.get(image.tree);
        let decoded = self.scratch.with_workspace(|workspace| {
            let begin_ns = self.images.begin_ns();
            let decoded = workspace.rebuild(&header, stored, image, dictionary.as_deref(), &mut bytes);
            self.images.decoded(&tree, stored.len(), begin_ns);
            decoded
        });
        let frame = self.new_frame(image.pid, image.tree, class, bytes);
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
fn name_page(error: Error, image: &ImageRef) -> Error {
    match error {
        Error::Corruption { place, detail } => Error::corrupt(
            format!("page {} of tree {}, {}: {place}", image.pid, image.tree, image.location),
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

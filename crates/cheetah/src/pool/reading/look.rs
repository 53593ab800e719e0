//! Looking into the image of a leaf, without a frame for it.
//!
//! A frame is paid by the page that leaves for it, and by building and verifying the page. Who
//! wants one record of a leaf that nobody else wants takes it out of the image. Whether a leaf is
//! wanted again is judged as eviction does: one that was read not long ago gets a frame, as if it
//! had had one and lost it. While there is much room, every read makes a frame.

use super::fetch::{Lookup, Reuse};
use super::page_read::ImageRead;
use crate::base::{planted, reach, Error, ErrorKind, PageId, Result};
use crate::format::bytes::Defect;
use crate::format::image::LeafImage;
use crate::format::page::RecordCopy;
use crate::format::ImageRef;
use crate::pool::buffering::Waiting;
use crate::pool::filters::KeyPart;
use crate::pool::frames::{PageEntry, Residence};
use crate::pool::{PageRef, Pool};
use std::cell::RefCell;

/// What a thread has found last in an image, to change it. A row is looked at by the search for it,
/// by its lock, and by the operation. Images do not change, and locations are never given twice.
#[derive(Default)]
struct LastLook {
    /// The number of the pool.
    pool: u64,
    image: Option<ImageRef>,
    key: Vec<u8>,
    record: Option<RecordCopy>,
}

thread_local! {
    static LAST_LOOK: RefCell<LastLook> = RefCell::default();
}

/// What [`Pool::fetch_or_look`] came to.
#[derive(Debug)]
pub enum Fetched {
    /// The page is pinned.
    Page(PageRef),
    /// A record of the leaf.
    Looked(Stored),
    /// The page has been freed.
    Freed,
}

/// A record of a leaf without a frame: the one that waits for the leaf, or that of its image.
#[derive(Debug)]
pub struct Stored {
    /// The record.
    pub record: RecordCopy,
    place: Unloaded,
}

/// A leaf without a frame as it was at some moment: its image, and what waited for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unloaded {
    pub(super) image: ImageRef,
    pub(super) bytes_waiting: usize,
}

impl Stored {
    /// The leaf as it was then.
    pub fn place(&self) -> Unloaded {
        self.place
    }
}

/// Whether an image has a key at all; the record, if there is one.
pub type InImage = Option<Option<RecordCopy>>;

impl Pool {
    /// Has `look` look for the record of `key` in the image of page `pid`, if that is a leaf which
    /// is not in memory and need not be; the record is then that of the leaf at some moment of this
    /// call. Otherwise, or when there is no record, as [`fetch`](Self::fetch). May do I/O.
    pub fn fetch_or_look(
        &self,
        pid: PageId,
        key: &[u8],
        look: impl FnOnce(&LeafImage<'_>) -> std::result::Result<InImage, Defect>,
    ) -> Result<Fetched> {
        let image = match self.look_up(pid, Reuse::Likely)? {
            Lookup::Resident(_) if planted::is_on("pool: look into the image of a page in memory") => {
                self.newest_image(pid)
            }
            Lookup::Resident(page) => {
                self.count_access();
                return Ok(Fetched::Page(page));
            }
            Lookup::Freed => return Ok(Fetched::Freed),
            Lookup::BeingRead => None,
            Lookup::Stored(entry) => self.image_to_look_into(pid, &entry),
        };
        if let Some(image) = image {
            if let Some(Some(record)) = self.look(&image, look)? {
                let stored = Stored { record, place: Unloaded { image, bytes_waiting: 0 } };
                if let Some(stored) = self.newest_stored(stored, key)? {
                    self.count_access();
                    return Ok(Fetched::Looked(stored));
                }
            }
        }
        Ok(self.fetch(pid)?.map_or(Fetched::Freed, Fetched::Page))
    }

    /// As [`fetch_or_look`](Self::fetch_or_look), to change the record of `key` while its leaf
    /// stays out of memory: the image, and the record in it, if there is one. `None` when the leaf
    /// had better come to memory, or belongs to others. May do I/O.
    pub fn look_to_change(
        &self,
        pid: PageId,
        key: &[u8],
        look: impl FnOnce(&LeafImage<'_>) -> std::result::Result<InImage, Defect>,
    ) -> Result<Option<(ImageRef, Option<RecordCopy>)>> {
        let may_buffer = self.may_buffer_more();
        let image = match self.look_up(pid, Reuse::Likely)? {
            Lookup::Stored(entry) if may_buffer && self.may_buffer_for(&entry) => {
                self.image_to_look_into(pid, &entry)
            }
            _ => None,
        };
        let Some(image) = image else { return Ok(None) };
        LAST_LOOK.with_borrow_mut(|last| {
            if last.pool != self.number || last.image != Some(image) || last.key != key {
                last.image = None;
                let look = |leaf: &LeafImage<'_>| {
                    let found = look(leaf)?;
                    if let Some(None) = found {
                        self.note_absent(image.tree, KeyPart::Whole);
                        self.filter_image(leaf, &image);
                    }
                    Ok(found)
                };
                let Some(record) = self.look(&image, look)? else { return Ok(None) };
                self.counters.looks.one();
                last.key.clear();
                last.key.extend_from_slice(key);
                (last.pool, last.image, last.record) = (self.number, Some(image), record);
            }
            Ok(Some((image, last.record.clone())))
        })
    }

    /// Whether leaves may be looked at without a frame at all.
    pub fn looks_at_leaves(&self) -> bool {
        self.counters.evictions.get() > 0 && self.buffers.is_nearly_full()
    }

    /// Whether the leaf has been without a frame since then, or has lost it unchanged, and nothing
    /// more waits for it.
    pub fn is_unloaded(&self, leaf: &Unloaded) -> bool {
        let Some(entry) = self.table.existing(leaf.image.pid) else { return false };
        self.is_newest(&entry, &leaf.image)
            && (self.bytes_waiting(&entry, leaf.image.pid) == leaf.bytes_waiting
                || planted::is_on("cursor: take a copy for current though more waits"))
    }

    /// The record as it is now: the one that waits for the leaf, or that of the image. `None` when
    /// that is not the leaf any more, or when the record is to go.
    fn newest_stored(&self, mut stored: Stored, key: &[u8]) -> Result<Option<Stored>> {
        let Unloaded { image, bytes_waiting } = &mut stored.place;
        let mut entry = self.table.entry(image.pid);
        if !self.is_newest(&entry, image) && !planted::is_on("pool: look into the image of a page in memory")
        {
            return Ok(None);
        }
        *bytes_waiting = self.bytes_waiting(&entry, image.pid);
        if *bytes_waiting > 0 && !planted::is_on("buffering: look past what waits") {
            let waiting = self.buffering.find(image.pid, key, &mut stored.record)?;
            if waiting == Waiting::Removal {
                return Ok(None);
            }
            reach::mark("record looked for among what waits");
        }
        entry.evicted = self.queues.passed();
        self.counters.looks.one();
        Ok(Some(stored))
    }

    /// Nothing is to wait for what cannot be read.
    pub(super) fn forget_room_if_damaged(&self, image: &ImageRef, error: &Error) {
        if error.kind() != ErrorKind::Corruption {
            return;
        }
        let mut entry = self.table.entry(image.pid);
        if self.is_newest(&entry, image) {
            entry.set_room(None);
        }
    }

    pub(super) fn is_newest(&self, entry: &PageEntry, image: &ImageRef) -> bool {
        entry.residence() == Residence::Stored && entry.image(image.pid) == Some(*image)
    }

    fn bytes_waiting(&self, entry: &PageEntry, pid: PageId) -> usize {
        match entry.is_buffered() {
            true => self.buffering.bytes_waiting(pid),
            false => 0,
        }
    }

    /// The image of a page that is not in memory, unless it had better come there: while there is
    /// much room, or when it was wanted not long ago.
    pub(super) fn image_to_look_into(&self, pid: PageId, entry: &PageEntry) -> Option<ImageRef> {
        let had_better_come = (!self.buffers.is_nearly_full() || self.queues.is_soon(entry.evicted))
            && !planted::is_on("pool: make no frame of a leaf that is read");
        entry.image(pid).filter(|_| !had_better_come)
    }

    fn look(
        &self,
        image: &ImageRef,
        look: impl FnOnce(&LeafImage<'_>) -> std::result::Result<InImage, Defect>,
    ) -> Result<InImage> {
        self.scratch.with_buffer(|bytes| {
            let read = self.read_image(image, true, bytes).and_then(|read| {
                let means = self.means_for(&read.header, image)?;
                Ok((read, means))
            });
            let (ImageRead { header, is_new, .. }, means) = match read {
                // Replaced meanwhile: its segment may be gone, or its key forgotten.
                Err(_) if !self.is_newest(&self.table.entry(image.pid), image) => {
                    reach::mark("image gone before it was looked into");
                    return Ok(None);
                }
                read => read.inspect_err(|error| self.forget_room_if_damaged(image, error))?,
            };
            let found = self
                .scratch
                .with_workspace(|workspace| workspace.look_into(&header, bytes, image, means.get(), look))?;
            if is_new && found.is_some() {
                self.image_cache.put(image, bytes);
            }
            Ok(found)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::base::{reach, Config};
    use crate::pool::testing::Database;
    use crate::pool::PageClass;

    #[test]
    fn an_image_that_was_damaged_in_memory_is_read_again() {
        let db = Database::new(&Config::tiny());
        let pid = db.add(PageClass::Base, 7);
        db.checkpoint().unwrap();
        let disk = db.disk.clone();
        let db = db.crash(disk);
        let image = db.pool.newest_image(pid).unwrap();
        db.pool.image_cache.put(&image, &vec![7; image.location.stored_bytes as usize]);
        assert_eq!(db.value(pid), Some(7));
        assert!(reach::count("image damaged in memory") > 0);
    }
}

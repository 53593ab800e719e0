//! Looking into the image of a leaf, without a frame for it.
//!
//! A frame is paid by the page that leaves for it, and by building and verifying the page. Who
//! wants one record of a leaf that nobody else wants takes it out of the image. Whether a leaf is
//! wanted again is judged as eviction does: one that was read not long ago gets a frame, as if it
//! had had one and lost it. While there is much room, every read makes a frame.

use super::fetch::{Lookup, Reuse};
use crate::base::{planted, reach, PageId, Result};
use crate::format::bytes::Defect;
use crate::format::image::LeafImage;
use crate::format::page::RecordCopy;
use crate::format::ImageRef;
use crate::pool::frames::{PageEntry, Residence};
use crate::pool::images::codec;
use crate::pool::{PageRef, Pool};

/// What [`Pool::fetch_or_look`] came to.
#[derive(Debug)]
pub enum Fetched {
    /// The page is pinned.
    Page(PageRef),
    /// A record out of this image.
    Looked(RecordCopy, ImageRef),
    /// The page has been freed.
    Freed,
}

impl Pool {
    /// Has `look` look for a record in the image of page `pid`, if that is a leaf which is not in
    /// memory and need not be; it is then the page as it was at some moment of this call.
    /// Otherwise, or when `look` finds none, as [`fetch`](Self::fetch). May do I/O.
    pub fn fetch_or_look(
        &self,
        pid: PageId,
        look: impl FnOnce(&LeafImage<'_>) -> std::result::Result<Option<RecordCopy>, Defect>,
    ) -> Result<Fetched> {
        let image = match self.look_up(pid, Reuse::Likely)? {
            Lookup::Resident(_) if planted::is_on("pool: look into the image of a page in memory") => {
                self.newest_image(pid)
            }
            Lookup::Resident(page) => {
                self.counters.requests.one();
                return Ok(Fetched::Page(page));
            }
            Lookup::Freed => return Ok(Fetched::Freed),
            Lookup::BeingRead => None,
            Lookup::Stored(entry) => self.image_to_look_into(pid, &entry),
        };
        if let Some(image) = image {
            if let Some(record) = self.look(&image, look)? {
                self.counters.requests.one();
                self.counters.looks.one();
                self.table.entry(pid).evicted = self.queues.passed();
                return Ok(Fetched::Looked(record, image));
            }
        }
        Ok(self.fetch(pid)?.map_or(Fetched::Freed, Fetched::Page))
    }

    /// Whether the page of `image` has been without a frame since that was its newest image, or has
    /// lost it unchanged.
    pub fn is_unloaded(&self, image: &ImageRef) -> bool {
        let Some(entry) = self.table.existing(image.pid) else { return false };
        let is_stored = entry.residence() == Residence::Stored && !entry.is_buffered();
        is_stored && entry.image(image.pid) == Some(*image)
    }

    /// The image of a page that is not in memory, unless it had better come there: while there is
    /// much room, or when it was wanted not long ago.
    fn image_to_look_into(&self, pid: PageId, entry: &PageEntry) -> Option<ImageRef> {
        let is_soon = !self.buffers.is_nearly_full() || self.queues.is_soon(entry.evicted);
        let is_planted = planted::is_on("buffering: look into an image that entries wait for");
        let has_frame_to_come = is_soon || (entry.is_buffered() && !is_planted);
        entry.image(pid).filter(|_| !has_frame_to_come)
    }

    fn look(
        &self,
        image: &ImageRef,
        look: impl FnOnce(&LeafImage<'_>) -> std::result::Result<Option<RecordCopy>, Defect>,
    ) -> Result<Option<RecordCopy>> {
        self.scratch.with_buffer(|bytes| {
            let is_new = match self.read_image(image, true, bytes) {
                // Replaced meanwhile: its segment may be gone.
                Err(_) if !self.is_unloaded(image) => {
                    reach::mark("image gone before it was looked into");
                    return Ok(None);
                }
                read => read?,
            };
            let (header, _) = codec::check(bytes, image, self.page_bytes)?;
            let dictionary = self.dictionary_of(&header, image)?;
            let found = self.scratch.with_workspace(|workspace| {
                workspace.look_into(&header, bytes, image, dictionary.as_deref(), look)
            })?;
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

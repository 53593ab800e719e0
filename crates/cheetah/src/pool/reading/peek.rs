//! Reads records from the image of a leaf without a frame.
//!
//! A new frame evicts another page, and building and verifying the page takes time. So the layer
//! above may take a record out of the image instead. A leaf that was evicted or peeked at less than
//! a turnover ago receives a frame (see `eviction`). While many frames are free, every read makes a
//! frame.

use super::page_read::ImageRead;
use crate::base::{reach, sound, Error, ErrorKind, PageId, Result};
use crate::format::bytes::Defect;
use crate::format::image::LeafImage;
use crate::format::page::PageBuf;
use crate::format::ImageRef;
use crate::pool::frames::{PageEntry, Residence};
use crate::pool::{PageClass, Pool};

impl Pool {
    /// Returns the image from which a record may be taken without loading the page. Returns `None`
    /// if the page should be loaded, because frames are free or the page was used recently.
    pub(crate) fn image_to_peek(&self, pid: PageId, entry: &PageEntry) -> Option<ImageRef> {
        let should_load = sound!(
            !self.is_nearly_full() || self.queues.is_soon(entry.evicted),
            "pool: make no frame of a leaf that is read"
        );
        entry.image(pid).filter(|_| !should_load)
    }

    /// Returns whether nearly all frames are in use. Images are read without a frame only in this
    /// case.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.buffers.is_nearly_full()
    }

    /// Counts a use of a page without a frame as an eviction (see `Queues::passed`).
    pub(crate) fn note_passed(&self, entry: &mut PageEntry) {
        entry.evicted = self.queues.passed();
    }

    /// Counts a record or a leaf that was read without a frame.
    pub(crate) fn count_peek(&self) {
        self.counters.looks.one();
    }

    /// Returns whether the page of `image` has no frame, and `image` is still its newest image.
    pub(crate) fn is_newest(&self, entry: &PageEntry, image: &ImageRef) -> bool {
        entry.residence() == Residence::Stored && entry.image(image.pid) == Some(*image)
    }

    /// Runs `f` on the leaf in an image. Returns `None` if the image is not of a leaf, if `f`
    /// returns `None`, or if the image was replaced. May do I/O.
    pub(crate) fn with_leaf_image<T>(
        &self,
        image: &ImageRef,
        f: impl FnOnce(&LeafImage<'_>) -> std::result::Result<Option<T>, Defect>,
    ) -> Result<Option<T>> {
        self.scratch.with_image(|bytes| {
            let read = self.read_image(image, true, bytes).and_then(|read| {
                let means = self.means_for(&read.header, image)?;
                Ok((read, means))
            });
            let (ImageRead { header, is_new, .. }, means) = match read {
                // The image was replaced concurrently, so its segment may be deleted, or its key
                // forgotten.
                Err(_) if self.is_replaced(image) => {
                    reach::mark("image gone before it was looked into");
                    return Ok(None);
                }
                read => read.inspect_err(|error| self.forget_room_if_damaged(image, error))?,
            };
            let found = self
                .scratch
                .with_decoder(|workspace| workspace.look_into(&header, bytes, image, means.get(), f))?;
            if is_new && found.is_some() {
                self.image_cache.put(image, bytes);
            }
            Ok(found)
        })
    }

    /// Copies the page of an image into `bytes`. Returns `false`, with arbitrary `bytes`, if the
    /// page is not of the base class or the image was replaced. May do I/O.
    pub(crate) fn copy_image(&self, image: &ImageRef, bytes: &mut Vec<u8>) -> Result<bool> {
        match self.try_copy_image(image, bytes) {
            Err(_) if self.is_replaced(image) => Ok(false),
            copied => copied.inspect_err(|error| self.forget_room_if_damaged(image, error)),
        }
    }

    fn try_copy_image(&self, image: &ImageRef, bytes: &mut Vec<u8>) -> Result<bool> {
        self.scratch.with_image(|stored| {
            let ImageRead { header, class, is_new } = self.read_image(image, true, stored)?;
            if class != PageClass::Base {
                return Ok(false);
            }
            let means = self.means_for(&header, image)?;
            let mut page = PageBuf::new(header.page_bytes);
            let tree = self.trees.get(image.tree);
            self.scratch.with_decoder(|workspace| {
                let begin_ns = self.images.begin_ns();
                let rebuilt = workspace.rebuild(&header, stored, image, means.get(), &mut page);
                self.images.decoded(&tree.work, stored.len(), begin_ns);
                rebuilt
            })?;
            bytes.clear();
            bytes.extend_from_slice(&page);
            if is_new {
                self.image_cache.put(image, stored);
            }
            Ok(true)
        })
    }

    fn is_replaced(&self, image: &ImageRef) -> bool {
        !self.is_newest(&self.table.entry(image.pid), image)
    }

    /// No change may become pending for a leaf that cannot be read.
    fn forget_room_if_damaged(&self, image: &ImageRef, error: &Error) {
        if error.kind() != ErrorKind::Corruption {
            return;
        }
        let mut entry = self.table.entry(image.pid);
        if self.is_newest(&entry, image) {
            entry.set_room(None);
        }
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

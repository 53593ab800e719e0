//! Reads and decodes the image of a page into a frame.

use crate::base::stalls::Reason as StallReason;
use crate::base::{page_work, reach, Error, PageId, Result, TreeId};
use crate::format::encryption::Key;
use crate::format::image::{Dictionary, ImageHeader, Means};
use crate::format::page::{is_built, PageBuf, PageKind, PageView};
use crate::format::ImageRef;
use crate::pool::frames::{latches_held, Frame, PageEntry};
use crate::pool::images::codec;
use crate::pool::{PageClass, Pool};
use crate::segment::ImageBuffer;
use std::sync::Arc;

/// The properties of an image in a buffer. The image was checked to be the requested one.
pub(in crate::pool) struct ImageRead {
    pub header: ImageHeader,
    pub class: PageClass,
    /// Whether the image was read from disk, not from the cache.
    pub is_new: bool,
}

/// The dictionary and key for reading an image, kept during the read.
pub(super) struct KeptMeans {
    dictionary: Option<Arc<Dictionary>>,
    key: Option<Arc<Key>>,
}

impl KeptMeans {
    pub(super) fn get(&self) -> Means<'_> {
        Means { dictionary: self.dictionary.as_deref(), key: self.key.as_deref() }
    }
}

/// The image of a page that has no frame.
pub(in crate::pool) fn stored_image(pid: PageId, entry: &PageEntry) -> ImageRef {
    entry.image(pid).expect("a page without a frame has an image")
}

impl Pool {
    /// The location of the newest image of a page, if it has one.
    pub(crate) fn newest_image(&self, pid: PageId) -> Option<ImageRef> {
        self.table.existing(pid)?.image(pid)
    }

    /// Returns the content of a dictionary's page, or `None` if the page was freed. This read does
    /// not wait for other readers, and no reader waits for it (D5).
    pub(in crate::pool) fn read_dictionary(&self, tree: TreeId, pid: PageId) -> Result<Option<Vec<u8>>> {
        loop {
            let Some(entry) = self.table.existing(pid).filter(|entry| entry.is_used()) else {
                return Ok(None);
            };
            if entry.tree() != tree {
                return Err(no_dictionary(pid, tree));
            }
            if let Some(frame) = entry.frame().cloned() {
                drop(entry);
                // A dictionary never changes, so a page whose latch a writer holds is not a
                // dictionary. The writer may be this thread, so this thread must not wait.
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
        debug_assert_eq!(latches_held(), 0, "L4: no image is read under a latch");
        self.scratch.with_image(|bytes| {
            self.read_bytes(image, bytes)?;
            let checked = codec::check(bytes, image, self.page_bytes);
            let (header, _) = checked.map_err(name_dictionary)?;
            // The kind is checked before a dictionary or a key that the image names is loaded.
            if header.kind != PageKind::Dictionary {
                return Err(no_dictionary(pid, tree));
            }
            let mut page = PageBuf::new(header.page_bytes);
            let key = self.key_of(&header)?;
            let means = Means { dictionary: None, key: key.as_deref() };
            let rebuilt = self
                .scratch
                .with_decoder(|workspace| workspace.rebuild(&header, bytes, image, means, &mut page));
            rebuilt.map_err(name_dictionary)?;
            dictionary_content(&page, pid, tree)
        })
    }

    pub(crate) fn read_frame(&self, image: &ImageRef) -> Result<Arc<Frame>> {
        self.scratch.with_image(|bytes| {
            let read = self.read_image(image, false, bytes)?;
            self.decode(image, &read, bytes, |class| self.make_room_for_read(class))
        })
    }

    /// Like [`read_frame`](Self::read_frame), but always from disk.
    pub(super) fn read_stored_frame(&self, image: &ImageRef) -> Result<Arc<Frame>> {
        self.scratch.with_image(|bytes| {
            let read = self.read_stored_image(image, bytes)?;
            self.decode(image, &read, bytes, |class| self.make_room_for_read(class))
        })
    }

    /// Reads an image into a buffer. For `for_look`, see [`ImageCache::get`]. Fails with
    /// `Corruption` if the bytes are not the image's.
    ///
    /// [`ImageCache::get`]: crate::pool::images::ImageCache::get
    pub(super) fn read_image(
        &self,
        image: &ImageRef,
        for_look: bool,
        bytes: &mut ImageBuffer,
    ) -> Result<ImageRead> {
        debug_assert_eq!(latches_held(), 0, "L4: no image is read under a latch");
        if self.image_cache.get(image, for_look, bytes) {
            if let Ok((header, class)) = codec::check(bytes, image, self.page_bytes) {
                return Ok(ImageRead { header, class, is_new: false });
            }
            reach::mark("image damaged in memory");
            self.image_cache.forget(image.pid);
        }
        self.read_stored_image(image, bytes)
    }

    fn read_stored_image(&self, image: &ImageRef, bytes: &mut ImageBuffer) -> Result<ImageRead> {
        debug_assert_eq!(latches_held(), 0, "L4: no image is read under a latch");
        let read_ns = self.read_bytes(image, bytes)?;
        page_work::count(|work| {
            (work.pages_read, work.read_ns) = (work.pages_read + 1, work.read_ns + read_ns)
        });
        self.count_read(bytes.len());
        self.cache_curve.note_read(image.pid);
        let (header, class) = codec::check(bytes, image, self.page_bytes)?;
        Ok(ImageRead { header, class, is_new: true })
    }

    /// Reads the stored bytes of an image, unchecked, into a buffer. Returns the time taken.
    fn read_bytes(&self, image: &ImageRef, bytes: &mut ImageBuffer) -> Result<u64> {
        let operation =
            self.health.stalls().begin_operation(StallReason::Disk, &self.page_reads, &*self.clock);
        let read = self.segments.read_unchecked(image, bytes);
        let ns = operation.end();
        read.map(|()| ns).map_err(|error| name_page(error, image))
    }

    /// Counts an image that was read from disk.
    pub(super) fn count_read(&self, stored_bytes: usize) {
        self.counters.reads.one();
        self.counters.read_bytes.add(stored_bytes as u64);
    }

    /// The dictionary and key for reading an image. May do I/O.
    pub(super) fn means_for(&self, header: &ImageHeader, image: &ImageRef) -> Result<KeptMeans> {
        let key = self.key_of(header)?;
        let dictionary = header.dictionary.map(|name| self.dictionary(image.tree, name.page)).transpose();
        let dictionary = dictionary.map_err(|error| name_page(error, image))?;
        Ok(KeptMeans { dictionary, key })
    }

    /// Returns the key that encrypts an image, if it is encrypted.
    fn key_of(&self, header: &ImageHeader) -> Result<Option<Arc<Key>>> {
        header.closed.map(|head| self.keys.find(&head.key)).transpose()
    }

    /// Builds the frame for `image`, whose bytes are in `stored`. Calls `make_room` before taking
    /// memory for the frame.
    pub(in crate::pool) fn decode(
        &self,
        image: &ImageRef,
        read: &ImageRead,
        stored: &[u8],
        make_room: impl FnOnce(PageClass) -> Result<()>,
    ) -> Result<Arc<Frame>> {
        let ImageRead { header, class, .. } = read;
        let means = self.means_for(header, image)?;
        make_room(*class)?;
        let mut bytes = self.buffers.take(*class);
        let tree = self.trees.get(image.tree);
        let decoded = self.scratch.with_decoder(|workspace| {
            let begin_ns = self.images.begin_ns();
            let decoded = workspace.rebuild(header, stored, image, means.get(), &mut bytes);
            self.images.decoded(&tree.work, stored.len(), begin_ns);
            decoded
        });
        let frame = self.new_frame(image.pid, image.tree, *class, bytes);
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
    Error::corrupt(format!("page {pid} of tree {tree}"), "it does not hold a dictionary")
}

/// Adds to a read error that it concerns a dictionary.
fn name_dictionary(error: Error) -> Error {
    match error {
        Error::Corruption { place, detail } => Error::corrupt(format!("dictionary in {place}"), detail),
        other => other,
    }
}

/// Adds the page to a read error.
fn name_page(error: Error, image: &ImageRef) -> Error {
    match error {
        Error::Corruption { place, detail } => Error::corrupt(
            format!("page {} of tree {}, {}: {place}", image.pid, image.tree, image.location),
            detail,
        ),
        other => other,
    }
}

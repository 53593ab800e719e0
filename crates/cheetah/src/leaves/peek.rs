//! Peeking: one record of a leaf that has no frame, out of its image and of what is pending.

use super::{KeyPart, Leaves};
use crate::base::{reach, sound, PageId, Result};
use crate::format::bytes::Defect;
use crate::format::image::LeafImage;
use crate::format::page::RecordCopy;
use crate::format::ImageRef;
use crate::leaves::pending::Waiting;
use crate::pool::{Lookup, PageEntry, PageRef, Reuse};

/// The outcome of [`Leaves::fetch_or_peek`].
#[derive(Debug)]
pub enum Fetched {
    /// The page is pinned.
    Page(PageRef),
    /// A record of the leaf.
    Peeked(Stored),
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

/// A leaf without a frame as it was at some moment: its image, and its pending changes.
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

impl Leaves {
    /// Has `look` look for the record of `key` in the image of page `pid`, if that is a leaf which
    /// is not in memory and need not be; the record is then that of the leaf at some moment of this
    /// call. Otherwise, or when there is no record, as [`fetch`](Self::fetch). May do I/O.
    pub fn fetch_or_peek(
        &self,
        pid: PageId,
        key: &[u8],
        look: impl FnOnce(&LeafImage<'_>) -> std::result::Result<InImage, Defect>,
    ) -> Result<Fetched> {
        let image = match self.pool.look_up(pid, Reuse::Likely)? {
            Lookup::Resident(_) if !sound!(true, "pool: look into the image of a page in memory") => {
                self.pool.newest_image(pid)
            }
            Lookup::Resident(page) => {
                self.pool.count_access();
                return Ok(Fetched::Page(page));
            }
            Lookup::Freed => return Ok(Fetched::Freed),
            Lookup::BeingRead => None,
            Lookup::Stored(entry) => self.pool.image_to_peek(pid, &entry),
        };
        if let Some(image) = image {
            if let Some(Some(record)) = self.pool.with_leaf_image(&image, look)? {
                let stored = Stored { record, place: Unloaded { image, bytes_waiting: 0 } };
                if let Some(stored) = self.newest_stored(stored, key)? {
                    self.pool.count_access();
                    return Ok(Fetched::Peeked(stored));
                }
            }
        }
        Ok(self.pool.fetch(pid)?.map_or(Fetched::Freed, Fetched::Page))
    }

    /// As [`fetch_or_peek`](Self::fetch_or_peek), to change the record of `key` while its leaf
    /// stays out of memory: the image, and the record in it, if there is one. `None` when the leaf
    /// should come to memory, or belongs to others. May do I/O.
    pub fn peek_to_change(
        &self,
        pid: PageId,
        look: impl FnOnce(&LeafImage<'_>) -> std::result::Result<InImage, Defect>,
    ) -> Result<Option<(ImageRef, Option<RecordCopy>)>> {
        let may_buffer = self.may_be_pending();
        let image = match self.pool.look_up(pid, Reuse::Likely)? {
            Lookup::Stored(entry) if may_buffer && self.cold.may_be_pending_for(&entry) => {
                self.pool.image_to_peek(pid, &entry)
            }
            _ => None,
        };
        let Some(image) = image else { return Ok(None) };
        let look = |leaf: &LeafImage<'_>| {
            let found = look(leaf)?;
            if let Some(None) = found {
                self.note_absent(image.tree, KeyPart::Whole);
                self.cold.filter_image(leaf, &image);
            }
            Ok(found)
        };
        let Some(record) = self.pool.with_leaf_image(&image, look)? else { return Ok(None) };
        self.pool.count_peek();
        Ok(Some((image, record)))
    }

    /// Whether leaves may be looked at without a frame at all.
    pub fn may_peek(&self) -> bool {
        self.pool.has_evicted() && self.pool.is_nearly_full()
    }

    /// Whether the leaf has been without a frame since then, or has lost it unchanged, and nothing
    /// more waits for it.
    pub fn is_unloaded(&self, leaf: &Unloaded) -> bool {
        let Some(entry) = self.pool.known_entry(leaf.image.pid) else { return false };
        self.pool.is_newest(&entry, &leaf.image)
            && !sound!(
                self.bytes_waiting(&entry, leaf.image.pid) != leaf.bytes_waiting,
                "cursor: take a copy for current though more waits"
            )
    }

    /// The record as it is now: the one that waits for the leaf, or that of the image. `None` when
    /// that is not the leaf any more, or when the record is to go.
    fn newest_stored(&self, mut stored: Stored, key: &[u8]) -> Result<Option<Stored>> {
        let Unloaded { image, bytes_waiting } = &mut stored.place;
        let mut entry = self.pool.page_entry(image.pid);
        if sound!(!self.pool.is_newest(&entry, image), "pool: look into the image of a page in memory") {
            return Ok(None);
        }
        *bytes_waiting = self.bytes_waiting(&entry, image.pid);
        if sound!(*bytes_waiting > 0, "buffering: look past what waits") {
            let waiting = self.cold.pending.find(image.pid, key, &mut stored.record)?;
            if waiting == Waiting::Removal {
                return Ok(None);
            }
            reach::mark("record looked for among what waits");
        }
        self.pool.note_passed(&mut entry);
        self.pool.count_peek();
        Ok(Some(stored))
    }

    fn bytes_waiting(&self, entry: &PageEntry, pid: PageId) -> usize {
        match entry.has_pending() {
            true => self.cold.pending.bytes_waiting(pid),
            false => 0,
        }
    }
}

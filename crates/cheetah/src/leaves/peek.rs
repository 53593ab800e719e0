//! Peeking reads one record of a leaf without a frame, from its image and its pending changes.

use super::{KeyPart, Leaves};
use crate::base::{reach, sound, PageId, Result};
use crate::format::bytes::Defect;
use crate::format::image::LeafImage;
use crate::format::page::RecordCopy;
use crate::format::ImageRef;
use crate::leaves::pending::{Size, Waiting};
use crate::pool::{Lookup, PageEntry, PageRef, Reuse};

/// The outcome of [`Leaves::fetch_or_peek`].
#[derive(Debug)]
pub enum Fetched {
    /// The page is pinned.
    Page(PageRef),
    /// The result from the image and the pending changes.
    Peeked(Stored),
    /// The page was freed.
    Freed,
}

/// The record of a key in a leaf without a frame, from its pending changes or its image.
#[derive(Debug)]
pub struct Stored {
    /// The record, if there is one.
    pub record: Option<RecordCopy>,
    place: Unloaded,
}

/// A leaf without a frame at one point in time: its image, and the length of its pending changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unloaded {
    pub(super) image: ImageRef,
    pub(super) bytes_waiting: usize,
}

impl Stored {
    /// The state of the leaf when the record was read.
    pub fn place(&self) -> Unloaded {
        self.place
    }
}

/// `None` if the image is not of the leaf of the key. Otherwise the record, if there is one.
pub type InImage = Option<Option<RecordCopy>>;

impl Leaves {
    /// Lets `look` find the record of `key` in the image of page `pid`, if the page is a leaf that
    /// is not in memory and need not be loaded: the record at some point during this call.
    /// Otherwise, or if `look` returns `None`, pins the page like
    /// [`Pool::fetch`](crate::pool::Pool::fetch). May do I/O.
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
            if let Some(record) = self.pool.with_leaf_image(&image, look)? {
                let stored = Stored { record, place: Unloaded { image, bytes_waiting: 0 } };
                if let Some(stored) = self.newest_stored(stored, key)? {
                    self.pool.count_access();
                    return Ok(Fetched::Peeked(stored));
                }
            }
        }
        Ok(self.pool.fetch(pid)?.map_or(Fetched::Freed, Fetched::Page))
    }

    /// Like [`fetch_or_peek`](Self::fetch_or_peek), for a change while the leaf stays without a
    /// frame. Returns the image, and the record in it, if any. Returns `None` if the leaf should
    /// receive a frame, or if `look` returns `None`. May do I/O.
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

    /// Returns whether leaves may be read without a frame.
    pub fn may_peek(&self) -> bool {
        self.pool.has_evicted() && self.pool.is_nearly_full()
    }

    /// Returns whether the leaf still has the same newest image and no frame, and no further
    /// changes are pending.
    pub fn is_unloaded(&self, leaf: &Unloaded) -> bool {
        let Some(entry) = self.pool.known_entry(leaf.image.pid) else { return false };
        self.pool.is_newest(&entry, &leaf.image)
            && !sound!(
                self.bytes_waiting(&entry, leaf.image.pid) != leaf.bytes_waiting,
                "cursor: take a copy for current though more waits"
            )
    }

    /// Returns the current record, pending or from the image; `None` if the image is no longer the
    /// leaf's newest or the leaf has a frame.
    fn newest_stored(&self, mut stored: Stored, key: &[u8]) -> Result<Option<Stored>> {
        let Unloaded { image, bytes_waiting } = &mut stored.place;
        let mut entry = self.pool.page_entry(image.pid);
        if sound!(!self.pool.is_newest(&entry, image), "pool: look into the image of a page in memory") {
            return Ok(None);
        }
        *bytes_waiting = self.bytes_waiting(&entry, image.pid);
        if sound!(*bytes_waiting > 0, "buffering: look past what waits") {
            let mut pending = RecordCopy::default();
            match self.cold.pending.find(image.pid, key, &mut pending)? {
                Waiting::Nothing => {}
                // A delete mark without its record: the page itself must be read (B8).
                Waiting::Record(Size::Unknown) if stored.record.is_none() => return Ok(None),
                Waiting::Record(_) => stored.record = Some(pending),
                Waiting::Removal => stored.record = None,
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

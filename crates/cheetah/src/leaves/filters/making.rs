//! Builds the filter of a leaf that a thread has just read.

use super::KeyPart;
use crate::base::hash::hash_key;
use crate::base::{PageId, TreeId};
use crate::format::image::LeafImage;
use crate::format::page::{is_built, PageView, RecordRef};
use crate::format::varint;
use crate::format::{ImageRef, Location};
use crate::leaves::{ColdLeaves, Leaves};
use crate::pool::Frame;

impl Leaves {
    /// Counts an unsuccessful lookup of a key or a part of a key that a filter would have answered.
    pub fn note_absent(&self, tree: TreeId, part: KeyPart) {
        self.cold.filtered_trees.note_absent(tree, part);
    }
}

impl ColdLeaves {
    pub(in crate::leaves) fn filter_frame(&self, frame: &Frame, location: Location) {
        let Some(part) = self.part_to_filter(frame.tree) else { return };
        if self.filters.has(frame.pid, &location) {
            return;
        }
        let Some(bytes) = frame.try_read() else { return };
        self.filter_page(&PageView::new(&bytes), part, frame.pid, location);
    }

    /// Builds the filter of `image`, the image of `page`.
    pub(in crate::leaves) fn filter_copy(&self, page: &[u8], image: &ImageRef) {
        let Some(part) = self.part_to_filter(image.tree) else { return };
        if !self.filters.has(image.pid, &image.location) {
            self.filter_page(&PageView::new(page), part, image.pid, image.location);
        }
    }

    pub(in crate::leaves) fn filter_image(&self, leaf: &LeafImage<'_>, image: &ImageRef) {
        // For other parts the length of the row's key is needed, which is in the payload; a search
        // does not decode the payload.
        let Some(KeyPart::Whole) = self.part_to_filter(image.tree) else { return };
        if self.filters.has(image.pid, &image.location) {
            return;
        }
        let mut hashes = Vec::with_capacity(leaf.count());
        leaf.each_key(|key| hashes.push(hash_key(0, key)));
        self.filters.put(image.pid, image.location, KeyPart::Whole, &hashes);
    }

    /// Returns the part of the keys in a tree's filters, if filters pay for the tree.
    fn part_to_filter(&self, tree: TreeId) -> Option<KeyPart> {
        self.filtered_trees.part_of(tree).filter(|_| self.pending.is_on())
    }

    fn filter_page(&self, page: &PageView<'_>, part: KeyPart, pid: PageId, location: Location) {
        if !is_built(page.bytes()) || !page.is_leaf() || page.is_dead() {
            return;
        }
        let mut key = Vec::new();
        let hashes = (0..page.count()).map(|slot| {
            page.key_into(slot, &mut key);
            let bytes = match part {
                KeyPart::Whole => Some(&key[..]),
                KeyPart::BeforeRowKey => before_row_key(&key, &page.record(slot)),
            };
            bytes.map(|bytes| hash_key(0, bytes))
        });
        // A page with a record of another form has no filter.
        if let Some(hashes) = hashes.collect::<Option<Vec<_>>>() {
            self.filters.put(pid, location, part, &hashes);
        }
    }
}

fn before_row_key<'a>(key: &'a [u8], record: &RecordRef<'_>) -> Option<&'a [u8]> {
    let (row_key_bytes, _) = varint::get(record.payload)?;
    key.get(..key.len().checked_sub(usize::try_from(row_key_bytes).ok()?)?)
}

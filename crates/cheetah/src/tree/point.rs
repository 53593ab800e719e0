//! Finding one record whose leaf may not be in memory, and may stay so.
//!
//! Invariant
//!   I1  A record without its leaf is the record of its key at some moment of the search: the leaf
//!       had no frame then, so its newest image, and the changes that waited for it, were the page.
//!       The image is asked for its fences, its tree, and whether it is dead, in the same way as a
//!       page.

use super::descend::{Landing, Target};
use super::Tree;
use crate::base::{reach, PageId, Result};
use crate::format::bytes::Defect;
use crate::format::image::LeafImage;
use crate::format::page::PageView;
use crate::leaves::{Fetched, InImage, Stored};
use crate::pool::PageRef;

/// The outcome of a search for one record.
pub(super) enum Point<R> {
    /// The result of the closure for the leaf.
    Page(R),
    Stored(Stored),
}

/// The page above the leaf of a key: a page that names it, or nothing, as the root is the leaf.
enum Above<R> {
    Child(PageId),
    Leaf(R),
}

impl Tree {
    /// Looks for the record of `key`, without its leaf if that is not in memory. Runs `on_page` on
    /// the leaf under its latch instead if it is, if it should be, or if its image does not have
    /// the record. May do I/O.
    pub(super) fn point<R>(
        &self,
        key: &[u8],
        on_page: impl FnOnce(&PageRef, &PageView<'_>) -> R,
    ) -> Result<Point<R>> {
        let target = Target::Key(key);
        let mut on_page = Some(on_page);
        let mut see = |page: &PageRef, view: &PageView<'_>| {
            on_page.take().map(|on_page| on_page(page, view)).expect("one leaf is seen")
        };
        let above = self.with_page(target, 1, &mut (), |page, view| match view.is_leaf() {
            true => Above::Leaf(see(page, view)),
            false => Above::Child(view.child(target.slot_in(view))),
        })?;
        let leaf = match above {
            Above::Leaf(seen) => return Ok(Point::Page(seen)),
            Above::Child(leaf) => leaf,
        };
        match self.leaves.fetch_or_peek(leaf, key, |leaf| self.find_in_image(leaf, key))? {
            Fetched::Peeked(stored) => {
                reach::mark("record out of an image");
                return Ok(Point::Stored(stored));
            }
            Fetched::Page(page) => {
                let guard = page.read();
                let view = PageView::new(&guard);
                if self.landing(&view, Some(0), target) == Landing::Here {
                    return Ok(Point::Page(see(&page, &view)));
                }
            }
            Fetched::Freed => {}
        }
        self.with_leaf(target, &mut (), see).map(Point::Page)
    }

    /// The record of `key` in an image, if that is of its leaf.
    pub(super) fn find_in_image(
        &self,
        leaf: &LeafImage<'_>,
        key: &[u8],
    ) -> std::result::Result<InImage, Defect> {
        self.is_leaf_image_of(leaf, Target::Key(key)).then(|| leaf.find(key)).transpose()
    }

    fn is_leaf_image_of(&self, leaf: &LeafImage<'_>, target: Target<'_>) -> bool {
        let is_ours = !leaf.is_dead() && leaf.tree() == self.def.id;
        is_ours && target.seen_from(leaf.low(), leaf.high()) == Landing::Here
    }
}

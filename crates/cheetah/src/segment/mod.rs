//! Segment files: the images of pages, appended and never changed.
//!
//! Files are `seg/<number>.seg`; numbers are never reused. There are three streams, by what dies
//! together ([`Stream`]). Each stream appends to one segment. The bytes that are not in a file yet
//! are the *tail* of the stream. A segment is sealed when its last bytes are in its file (T6); one
//! of an earlier startup is sealed from the beginning. A sealed segment is never written.
//!
//! When a segment may be unlinked (rule C3 of docs/developers/durability.md)
//!   An image is needed by any of: the current map, the map of an epoch being committed, the map of
//!   the last committed epoch. (The log names no images: large values travel in it as bytes.) Every
//!   image is installed in the current map before anything else, so one count per segment is
//!   enough:
//!   S1  `append` and `retain` count an image as live; `release(location, g)` ends that, and g is
//!       the first epoch whose map does not name it: the replacement, or "the page is gone", is in
//!       the changes of g.
//!   S2  Changes of g are never older in content than those of an earlier epoch (C1; the pool's
//!       `install`).
//!   S3  From S1 and S2: no map of an epoch >= g names the image. Maps before the committed one are
//!       never read again. So a sealed segment without live images is dead once the newest g of its
//!       releases has committed, and only then is it unlinked.
//!   S4  At a startup all counts start at zero and nothing is unlinked until the whole map has been
//!       retained.
//!
//! The rules that readers, writers and a sync may rely on while the tail goes to its file: T1 to T7
//! of docs/developers/durability.md, at the head of `tail`.
//!
//! Victims of garbage collection are taken only among segments sealed before the last committed
//! epoch switch (rule S6 of docs/developers/durability.md): their images are then older than any
//! epoch in the making.

mod append;
mod fill;
mod handles;
#[cfg(test)]
mod interleaving_tests;
mod placement;
mod scan;
mod segment_file;
mod segments;
mod table;
mod tail;
#[cfg(test)]
mod tail_tests;
#[cfg(test)]
mod tests;

use crate::base::sync;

pub use crate::format::{ImageRef, Location, MapEntry};
pub use fill::fill_target;
pub use scan::Image;
pub use segments::{Segments, Unlinked};
pub use table::{NamedSegment, SegmentStat, Totals};

/// The kind of images that a segment takes. Images that die together should lie together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stream {
    /// All other images: of pages as they are written.
    Hot = 0,
    /// Images that garbage collection has moved.
    Cold = 1,
    /// Parts of large values.
    Blob = 2,
}

impl Stream {
    /// All streams.
    pub const ALL: [Stream; 3] = [Stream::Hot, Stream::Cold, Stream::Blob];
}

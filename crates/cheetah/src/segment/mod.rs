//! Segment files: the images of pages, appended and never changed.
//!
//! Files are `seg/<number>.seg`; numbers are never reused. There are three streams, each for images
//! that probably die at about the same time ([`Stream`]). Each stream appends to one segment. The
//! bytes of a stream that are not in a file yet are its *tail*. A segment is sealed once its last
//! bytes are in its file (T6). The segments of earlier startups are sealed. A sealed segment is
//! never written again.
//!
//! When a segment may be unlinked (rule C3 of docs/developers/durability.md)
//!   An image is needed by any of: the current map, the map of an epoch being committed, the map of
//!   the last committed epoch. (The log names no images: it contains the bytes of large values.)
//!   Every image is installed in the current map first, so one count per segment is enough:
//!   S1  `append` and `retain` count an image as live, and `release(location, g)` ends this. Epoch
//!       g is the first whose map does not name the image: the changes of g contain the image's
//!       replacement or the deletion of the page.
//!   S2  The content of g's changes is never older than that of an earlier epoch's changes (C1; the
//!       pool's `install`).
//!   S3  From S1 and S2: no map of an epoch >= g names the image. Maps before the committed one are
//!       never read again. So a sealed segment without live images is dead once the newest g of its
//!       releases has committed, and only then is it unlinked.
//!   S4  At a startup all counts start at zero, and no file is unlinked until all entries of the
//!       map were retained.
//!
//! T1 to T7 of docs/developers/durability.md, repeated at the top of `tail`, are the rules that
//! readers, writers and a sync rely on while the tail is written to its file.
//!
//! Garbage collection takes victims only from segments sealed before the last committed epoch
//! switch (rule S6 of docs/developers/durability.md): their images are older than any epoch not yet
//! committed.

mod append;
mod fill;
mod handles;
mod image_buffer;
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
pub use image_buffer::ImageBuffer;
pub use scan::Image;
pub use segments::{Segments, Unlinked};
pub use table::{NamedSegment, SegmentStat, Totals};

/// The kind of images in a segment. Images that probably die at about the same time should be in
/// one segment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stream {
    /// Newly written images of pages, except parts of large values.
    Hot = 0,
    /// Images that garbage collection moved.
    Cold = 1,
    /// Parts of large values.
    Blob = 2,
}

impl Stream {
    /// All streams.
    pub const ALL: [Stream; 3] = [Stream::Hot, Stream::Cold, Stream::Blob];
}

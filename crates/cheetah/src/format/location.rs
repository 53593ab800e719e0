//! The location of an image on disk, and the page map's entry for a page.

use crate::base::{PageId, SegmentId, TreeId};

/// Images start at multiples of this number of bytes.
pub const ALIGN_BYTES: u32 = 64;

/// A position in a segment file, which is written once and never reused, and the checksum of the
/// image that was written there. So a lost, stale or misdirected write is detected when the image
/// is read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Location {
    /// The file.
    pub segment: SegmentId,
    /// Byte position in the file, a multiple of [`ALIGN_BYTES`].
    pub offset: u32,
    /// Length of the image.
    pub stored_bytes: u32,
    /// CRC-32C of the image as stored.
    pub crc: u32,
}

impl Location {
    /// Returns the segment and the offset as one number, which is unique in the life of a database.
    /// The image contains it.
    pub fn address(&self) -> u64 {
        address(self.segment, self.offset)
    }

    /// Creates the location of an image at an [`address`](Self::address).
    pub fn of_address(address: u64, stored_bytes: u32, crc: u32) -> Self {
        Self { segment: SegmentId((address >> 32) as u32), offset: address as u32, stored_bytes, crc }
    }

    /// Byte position in the file after the image.
    pub fn end(&self) -> u64 {
        u64::from(self.offset) + u64::from(self.stored_bytes)
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "segment {} at {} ({} bytes)", self.segment, self.offset, self.stored_bytes)
    }
}

/// See [`Location::address`].
pub fn address(segment: SegmentId, offset: u32) -> u64 {
    u64::from(segment.0) << 32 | u64::from(offset)
}

/// An image: its location, and its identity in the page map. A reader of the image checks both.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ImageRef {
    /// The page whose content it is.
    pub pid: PageId,
    /// The tree that owns the page.
    pub tree: TreeId,
    /// Its location, length and checksum.
    pub location: Location,
}

impl std::fmt::Display for ImageRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { pid, tree, location } = self;
        write!(f, "page {pid} of tree {tree} in segment {} at {}", location.segment, location.offset)
    }
}

/// The entry of the page map for a page.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MapEntry {
    /// The owner of the page.
    pub tree: TreeId,
    /// Its newest image.
    pub location: Location,
}

impl MapEntry {
    /// Returns the newest image of page `pid`. The entry must be that of the page.
    pub fn image(&self, pid: PageId) -> ImageRef {
        ImageRef { pid, tree: self.tree, location: self.location }
    }
}

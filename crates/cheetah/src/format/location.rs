//! Where an image lies on disk, and what the page map says of a page.

use crate::base::{SegmentId, TreeId};

/// Images start at multiples of this.
pub const ALIGN_BYTES: u32 = 64;

/// A place in a segment file, written once and never reused, and the checksum of what was written there: a lost,
/// stale or misdirected write shows when it is read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Location {
    /// The file.
    pub segment: SegmentId,
    /// Byte position in the file, a multiple of [`ALIGN_BYTES`].
    pub offset: u32,
    /// Length of the image.
    pub stored_bytes: u32,
    /// CRC-32C of the image as sealed.
    pub crc: u32,
}

impl Location {
    /// The position as one number, unique in the life of a database; an image carries it.
    pub fn address(&self) -> u64 {
        address(self.segment, self.offset)
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

/// What the page map holds for a page.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MapEntry {
    /// The owner of the page.
    pub tree: TreeId,
    /// Its newest image.
    pub location: Location,
}

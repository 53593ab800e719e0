//! The position of the next image in a segment.

use crate::format::location::ALIGN_BYTES;

/// The unit in which most devices and the page cache read.
const SECTOR_BYTES: u32 = 4096;
/// The limit of the gap that is left so that a small image does not straddle two sectors.
const GAP_BYTES_MAX: u32 = 512;

/// Returns the aligned position for an image of `image_bytes` in a segment that is used up to
/// `end`. If an image that fits into one sector would straddle two, and the gap to the next sector
/// is less than [`GAP_BYTES_MAX`], the image is placed at the next sector.
pub(super) fn place(end: u32, image_bytes: u32) -> u32 {
    let aligned = end.next_multiple_of(ALIGN_BYTES);
    let room = SECTOR_BYTES - aligned % SECTOR_BYTES;
    let straddles = image_bytes <= SECTOR_BYTES && image_bytes > room;
    if straddles && room < GAP_BYTES_MAX {
        return aligned + room;
    }
    aligned
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn images_are_aligned_and_small_ones_do_not_straddle_for_a_small_gap() {
        let check =
            |end, image_bytes, expect| assert_eq!(place(end, image_bytes), expect, "{end} {image_bytes}");
        check(64, 1000, 64);
        check(65, 1000, 128);
        check(4096 - 448, 448, 4096 - 448);
        check(4096 - 448, 512, 4096);
        check(4096 - 512, 576, 4096 - 512);
        check(4096 - 448, 4096, 4096);
        check(4096 - 448, 4160, 4096 - 448);
        check(4096, 4096, 4096);
    }
}

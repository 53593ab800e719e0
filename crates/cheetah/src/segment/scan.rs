//! Finds the images of a segment without the page map, for tests.

use super::segment_file::SegmentFile;
use super::Location;
use crate::base::{PageId, Result};
use crate::format::image;
use crate::format::location::ALIGN_BYTES;
use crate::format::segment_header::HEADER_BYTES;
use cheetah_io::File;

/// An image found in a segment.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    /// The page whose content it is or was.
    pub pid: PageId,
    /// Its location.
    pub location: Location,
    /// The image itself.
    pub bytes: &'a [u8],
}

/// The number of bytes read at a time, which is more than any image has.
const WINDOW_BYTES: usize = 1 << 20;

/// Calls `visit` for every intact image in `file`, in the order of their positions, including dead
/// ones. Bytes that are not an intact image (gaps, the torn end of a file after a crash, damage)
/// are skipped.
pub(super) fn scan(
    file: &SegmentFile,
    handle: &dyn File,
    end: u64,
    visit: &mut dyn FnMut(Image<'_>) -> Result<()>,
) -> Result<()> {
    let mut window = Vec::new();
    let mut start = HEADER_BYTES as u64;
    while start < end {
        let len = (end - start).min(WINDOW_BYTES as u64) as usize;
        window.resize(len, 0);
        file.read_at(handle, start, &mut window)?;
        let used = scan_window(file, start, &window, start + len as u64 == end, visit)?;
        start += used as u64;
    }
    Ok(())
}

/// Visits the images that are completely in `window`. Returns the number of bytes that were
/// scanned.
fn scan_window(
    file: &SegmentFile,
    start: u64,
    window: &[u8],
    is_last: bool,
    visit: &mut dyn FnMut(Image<'_>) -> Result<()>,
) -> Result<usize> {
    let mut at = 0;
    while at < window.len() {
        let rest = &window[at..];
        let Some((length, pid, crc)) = image::glance(rest) else {
            at += ALIGN_BYTES as usize;
            continue;
        };
        let stored_bytes = length as u32;
        let location = Location { segment: file.id, offset: (start + at as u64) as u32, stored_bytes, crc };
        match rest.get(..length) {
            Some(bytes) if image::is_intact(bytes, location.address(), crc) => {
                visit(Image { pid, location, bytes })?;
                at += length.next_multiple_of(ALIGN_BYTES as usize);
            }
            // The image may continue in the next window, if it does not start at the beginning of
            // this one.
            None if !is_last && at > 0 && length < WINDOW_BYTES => return Ok(at),
            _ => at += ALIGN_BYTES as usize,
        }
    }
    Ok(at)
}

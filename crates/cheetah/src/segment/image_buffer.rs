//! A buffer for the stored bytes of one image.
//!
//! Reads that bypass the page cache fill whole blocks of the device. So the image lies among the
//! blocks that contain it, and is not copied out of them. The memory keeps the bytes of earlier
//! images: a read does not fill it with zeros first.

use cheetah_io::AlignedBytes;
use std::ops::{Deref, DerefMut, Range};

/// See the module.
#[derive(Default, Debug)]
pub struct ImageBuffer {
    memory: AlignedBytes,
    /// The position of the image in `memory`.
    image: Range<usize>,
}

impl ImageBuffer {
    /// Creates a buffer without an image, with memory for `bytes` bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { memory: AlignedBytes::with_capacity(bytes), image: 0..0 }
    }

    /// The memory that it keeps, in bytes.
    pub fn memory_bytes(&self) -> usize {
        AlignedBytes::memory_bytes(self.memory.capacity())
    }

    /// Removes the image, and frees memory beyond `bytes` bytes.
    pub fn reset(&mut self, bytes: usize) {
        self.image = 0..0;
        if self.memory.capacity() > bytes {
            self.memory.clear();
            self.memory.shrink_to(bytes);
        }
    }

    /// Makes `image` its image.
    pub fn set(&mut self, image: &[u8]) {
        self.receive(0, image.len(), image.len()).copy_from_slice(image);
    }

    /// Returns `blocks_bytes` bytes, aligned, to be filled by the caller. Their content is
    /// arbitrary. The image will be the `image_bytes` bytes after the first `before` bytes.
    pub(super) fn receive(&mut self, before: usize, image_bytes: usize, blocks_bytes: usize) -> &mut [u8] {
        let image = before..before + image_bytes;
        debug_assert!(image.end <= blocks_bytes, "the image is not within the blocks");
        if self.memory.len() < blocks_bytes {
            self.memory.resize(blocks_bytes);
        }
        self.image = image;
        self.memory.get_mut(..blocks_bytes).unwrap_or_default()
    }
}

/// The image.
impl Deref for ImageBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.memory.get(self.image.clone()).unwrap_or_default()
    }
}

impl DerefMut for ImageBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.memory.get_mut(self.image.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cheetah_io::aligned::ALIGN_BYTES;

    #[test]
    fn the_image_lies_among_its_blocks_and_earlier_bytes_are_never_part_of_it() {
        let mut buffer = ImageBuffer::with_capacity(3 * ALIGN_BYTES);
        buffer.set(&[7; 5000]);
        assert_eq!(*buffer, [7; 5000]);
        let blocks = buffer.receive(500, 6000, 2 * ALIGN_BYTES);
        assert_eq!((blocks.as_ptr().addr() % ALIGN_BYTES, blocks.len()), (0, 2 * ALIGN_BYTES));
        blocks.fill(8);
        assert_eq!(*buffer, [8; 6000]);
        buffer.set(b"short");
        assert_eq!(&*buffer, b"short");
        buffer.reset(3 * ALIGN_BYTES);
        assert!(buffer.is_empty());
    }

    #[test]
    fn memory_for_an_image_of_unusual_length_is_given_back() {
        let mut buffer = ImageBuffer::with_capacity(ALIGN_BYTES);
        let before = buffer.memory_bytes();
        buffer.set(&vec![1; 20 * ALIGN_BYTES]);
        assert!(buffer.memory_bytes() > 20 * ALIGN_BYTES);
        buffer.reset(ALIGN_BYTES);
        assert_eq!((buffer.memory_bytes(), buffer.len()), (before, 0));
    }
}

//! Conversion between the bytes of a frame and its image on disk: encoding, decoding, memory and
//! time counters for both, and the image cache.

pub(in crate::pool) mod codec;
mod image_cache;
mod image_work;
mod scratch;

pub(in crate::pool) use image_cache::ImageCache;
pub(in crate::pool) use image_work::{ImageCounters, WorkCounters};
pub use image_work::{ImageWork, IMAGE_BYTES_CLASSES};
pub(in crate::pool) use scratch::Scratch;

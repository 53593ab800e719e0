//! Byte formats: pages in memory, rows, page images, and the records of the other files.
//!
//! Pure functions: no I/O, no locks, no clocks. A decoder accepts any bytes and returns a value or
//! a [`Defect`]. It never panics, and never allocates memory according to a length that it has not
//! checked. The views of a page ([`page::PageView`]) are not decoders: they trust bytes that
//! [`page::PageView::verify`] accepted or that the engine built, and may panic on other bytes.
//! docs/developers/format.md has every layout, byte by byte.
//!
//! Many files: one for each byte format.

pub mod bytes;
pub mod catalog;
pub mod change_file;
mod contexts;
pub mod control;
pub mod encryption;
pub mod foreign_key;
pub mod image;
pub mod location;
pub mod log_frame;
pub mod log_record;
pub mod manifest;
pub mod map_block;
pub mod page;
pub mod parity;
mod record_fields;
pub mod removed_words;
pub mod row;
pub mod row_format_versions;
pub mod segment_header;
pub mod state;
pub mod statistics;
pub mod undo_record;
pub mod varint;

pub use bytes::{Defect, Reader};
pub use location::{ImageRef, Location, MapEntry};

//! Reads pages: from image to frame, on request or ahead of requests. Also reads single records
//! from images.
//!
//! Invariants
//!   L1  One thread at a time reads a page into its frame; other threads that want the page wait.
//!       Peeks, copies, reads of dictionaries and `check_image` read an image without marking the
//!       page, and publish no frame.
//!   L2  A frame is published only if the image it was read from is still the newest of its page.
//!   L3  If a page cannot be read, the caller receives the error, and the page stays on disk only.
//!       Other pages are not affected.
//!   L4  No image is read or decoded under a latch. Otherwise a slow device would delay all threads
//!       that wait for the latch. If one of these is a writer inside the gate, the device would
//!       delay all threads.
//!   A1 to A4  See `read_ahead`.

mod fetch;
mod page_read;
mod peek;
mod read_ahead;
mod read_ahead_requests;
#[cfg(test)]
mod read_ahead_tests;
mod reads_in_progress;

use crate::base::sync;
pub(crate) use fetch::{Lookup, Reuse};

pub use read_ahead::REQUEST_PAGES_MAX;
pub(in crate::pool) use read_ahead_requests::ReadAhead;
pub(in crate::pool) use reads_in_progress::ReadsInProgress;

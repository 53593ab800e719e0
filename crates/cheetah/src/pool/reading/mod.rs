//! Page reads: from image to frame, when somebody asks or ahead of that; and single records out of
//! images.
//!
//! Invariants
//!   L1  One thread at a time reads a page into its frame; others who want that wait for it. Looks,
//!       copies, reads of dictionaries and `check_image` read an image without claiming the page,
//!       and publish no frame.
//!   L2  A frame is published only if the image it came from is still the newest of its page.
//!   L3  A page that cannot be read stays unread: the error is the caller's, everything else goes
//!       on.
//!   L4  No image is read or decoded under a latch: a slow device would hold up whoever waits for
//!       the latch, and with a writer inside the gate everybody.
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

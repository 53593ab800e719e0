//! Background passes over all images. Garbage collection moves live images out of segments that are
//! mostly dead. Rotation re-encrypts images that are not encrypted with the current key. Scrubbing
//! reads images at a low rate, to find damage on disk while a backup still has the page. All three
//! take the images from a [`Walk`], in bounded steps.
//!
//! Invariants
//!   C1  A page is not moved if it has unwritten changes, or if its location differs from the
//!       copied one. Otherwise an old image moved in a later epoch could replace newer content of
//!       an earlier epoch. The check is repeated under the lock of the entry, inside the
//!       mini-transaction that installs the copy.
//!   I1  A pass of rotation begins after a checkpoint that began when the pass's keys were already
//!       current. So a write with an older key has installed its image before the pass begins.
//!   I2  The rate of garbage collection follows the rate of users' writes, so that collection
//!       neither falls behind nor comes in bursts. At rest it continues until the files are well
//!       filled.
//!   I3  An image that cannot be read stops the collection of its segment only.
//!   I4  A pass of rotation reports every image that it failed to re-encrypt, so that another pass
//!       re-encrypts it. Only damaged images are skipped for good.
//!   I5  Scrubbing changes nothing. Damaged data stays unchanged, and the next reader receives the
//!       error. An image that was replaced during the read does not count as damaged: its segment
//!       may be deleted.
//!   I6  A pass of scrubbing reads every image that exists during the whole pass once. It begins at
//!       a random page, so that all images are read eventually even if the database is never open
//!       for a whole pass.
//!   E15  Rotation moves images by the rules of garbage collection (C1, leaves::B6, leaves::V5),
//!       through `install`, with a new nonce each. A page with unwritten changes is left to the
//!       checkpoint after the pass. Pending changes of a leaf are applied to it first.
//! Locks     `collection`, and `state` of rotation and of scrubbing, are the outermost locks of
//!           the pool. Each has one caller at a time.

mod collect;
mod collection;
mod pace;
mod relocate;
mod rotate;
mod scrub;
#[cfg(test)]
mod tests;
mod walk;

pub use rotate::{Rotated, RotationPass};
pub use scrub::Scrubbed;

use super::Pool;
use collection::Collection;
use parking_lot::Mutex;
use rotate::Rotation;
use scrub::Scrubbing;
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub struct Upkeep {
    pool: Arc<Pool>,
    collection: Mutex<Collection>,
    rotation: Rotation,
    scrubbing: Scrubbing,
}

impl Upkeep {
    /// Creates the maintenance of the images of `pool`.
    pub fn new(pool: Arc<Pool>) -> Self {
        Self {
            pool,
            collection: Mutex::default(),
            rotation: Rotation::default(),
            scrubbing: Scrubbing::default(),
        }
    }

    /// Names and values of counters, for status.
    pub fn status(&self) -> [(&'static str, u64); 3] {
        self.scrubbing.counts()
    }

    /// Bytes in the files of images, and bytes of the newest images of all pages, including images
    /// in the tails of streams.
    pub fn file_and_live_bytes(&self) -> (u64, u64) {
        (self.pool.segments.written_bytes(), self.pool.segments.totals().live_bytes)
    }

    /// Bytes of images written since startup, less the live bytes. It grows when images are
    /// rewritten, moved or freed: the next checkpoint frees the growth since the previous one.
    pub fn outdated_bytes(&self) -> i64 {
        let counters = &self.pool.counters;
        let written =
            counters.written_bytes.get() + counters.blob_written_bytes.get() + counters.moved_bytes.get();
        written as i64 - self.pool.segments.totals().live_bytes as i64
    }

    /// Bytes of live images.
    pub fn live_bytes(&self) -> u64 {
        self.pool.segments.totals().live_bytes
    }
}

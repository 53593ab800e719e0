//! Upkeep: the background's passes over all images. Garbage collection moves the images that are
//! needed out of segments that are mostly dead. Rotation re-encrypts images whose key is not the
//! one that they should have now. Scrubbing reads images at a low rate, to find damage on disk
//! while a backup still has the page. All three take the images from a [`Walk`], in bounded steps.
//!
//! Invariants
//!   C1   A page with unwritten changes, or whose location is not the one that was copied, is not
//!        moved: its old content must never come after newer content of an older epoch. That is
//!        checked again under the lock of the entry, inside the mini-transaction that installs the
//!        copy.
//!   I1   A pass of rotation begins after a checkpoint that began when the keys served that it
//!        closes with: a write that had taken the key before has installed its image by then.
//!   I2   Garbage collection is coupled to what users write, so that it neither starves nor comes
//!        in bursts; at rest it goes on until the files are well filled.
//!   I3   An image that cannot be read stops the collection of its segment only.
//!   I4   A pass of rotation tells of every image that it should have re-encrypted and could not,
//!        so that another pass does. Only what is damaged is passed by for good.
//!   I5   Scrubbing changes nothing. Damaged data stays where it is; the next reader meets the
//!        error. An image that has been replaced meanwhile is not damaged: its segment may have
//!        gone.
//!   I6   A pass of scrubbing reads every image once that was there all the time. It begins at any
//!        page, so that a database that is never open for a whole pass is read everywhere in the
//!        end.
//!   E15  Rotation moves images by the rules of garbage collection (C1, B6, V5), through `install`,
//!        with a nonce of their own. A page with changes that are not written yet is left to the
//!        checkpoint behind the pass. Pending changes of a leaf are brought into it.
//! Locks     `collection`, and `state` of rotation and of scrubbing: the outermost of the pool. One
//!           caller of each at a time.

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
    /// Of the images of `pool`.
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

    /// Bytes in the files of images, and bytes of the newest images of all pages, those in write
    /// buffers included.
    pub fn file_and_live_bytes(&self) -> (u64, u64) {
        (self.pool.segments.written_bytes(), self.pool.segments.totals().live_bytes)
    }

    /// Bytes of images written since the startup, less those that are needed. It grows by what is
    /// rewritten, moved or freed: by how much since a checkpoint is what the next one lets go.
    pub fn outdated_bytes(&self) -> i64 {
        let counters = &self.pool.counters;
        let written =
            counters.written_bytes.get() + counters.blob_written_bytes.get() + counters.moved_bytes.get();
        written as i64 - self.pool.segments.totals().live_bytes as i64
    }

    /// Bytes of images that are needed.
    pub fn live_bytes(&self) -> u64 {
        self.pool.segments.totals().live_bytes
    }
}

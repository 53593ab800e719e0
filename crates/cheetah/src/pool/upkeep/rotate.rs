//! A step of rotation. Invariants E15, I1 and I4 are at the head of `upkeep`.

use super::pace::Pace;
use super::walk::Walk;
use super::Upkeep;
use crate::base::{reach, sound, Error, PageId, Result};
use crate::durable::space::Reserve;
use crate::format::encryption::{Key, KeyName};
use crate::format::image::{reclose, ImageHeader};
use crate::format::ImageRef;
use crate::pool::counters::Counter;
use crate::pool::images::codec;
use crate::segment::Stream;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The maximum number of page table entries checked in one step.
const LOOKS_MAX: u64 = 10_000;
/// The maximum number of attempts for a page whose image keeps moving.
const TRIES_MAX: u32 = 8;

/// The progress of rotation.
#[derive(Default, Debug)]
pub(super) struct Rotation {
    state: Mutex<State>,
    moved: Counter,
}

#[derive(Default, Debug)]
struct State {
    pass: Option<RotationPass>,
    pace: Pace,
}

/// A walk over all pages.
#[derive(Clone, Default, Debug)]
pub struct RotationPass {
    walk: Walk,
    /// The number of pages whose images should have been moved but were not.
    left: u64,
    /// Keys of images that stay.
    seen: BTreeSet<KeyName>,
}

impl RotationPass {
    /// The page to check next, and the end of the pass.
    pub fn place(&self) -> (u64, u64) {
        self.walk.place()
    }
}

/// The outcome of a step of rotation.
#[derive(Debug)]
pub enum Rotated {
    /// No pass is in progress, or nothing is due yet.
    Nothing,
    /// A part of the pass is done.
    Some,
    /// A pass has ended.
    PassEnded {
        /// The number of pages that still must be re-encrypted.
        left: u64,
        /// The keys of all other encrypted images.
        seen: BTreeSet<KeyName>,
    },
}

/// The outcome for an image.
enum Tried {
    /// The image has the right encryption, with this key if any.
    Stays(Option<KeyName>),
    Moved,
    /// The page has unwritten changes: the checkpoint after the pass writes it.
    WillBeWritten,
    Again,
}

/// The decision whether an image must be re-encrypted, with the new key if any.
enum Due {
    Not,
    With(Option<Arc<Key>>),
}

impl Upkeep {
    /// Begins a pass (I1).
    pub fn begin_rotation(&self) {
        let pass = RotationPass { walk: Walk::new(&self.pool), ..RotationPass::default() };
        self.rotation.state.lock().pass = Some(pass);
    }

    /// The pass in progress.
    pub fn rotation_pass(&self) -> Option<RotationPass> {
        self.rotation.state.lock().pass.clone()
    }

    /// Number of images that rotation has moved.
    pub fn rotated_count(&self) -> u64 {
        self.rotation.moved.get()
    }

    /// Checks the next image of the pass, if the rate allows, and re-encrypts it if necessary. May
    /// do I/O. An error that names a damaged image is returned, and the image is skipped.
    /// `DiskFull` if the write would use the reserve: the pass does not advance (durability::E18).
    pub fn rotation_step(&self, now_ns: u64, bytes_per_second: u64) -> Result<Rotated> {
        let pool = &*self.pool;
        pool.health.check()?;
        let mut state = self.rotation.state.lock();
        if !state.pace.is_due(now_ns) {
            return Ok(Rotated::Nothing);
        }
        if sound!(state.pass.is_some(), "encryption: rotate into the reserve") {
            pool.check_space(Reserve::Whole)?;
        }
        let Some(mut pass) = state.pass.take() else { return Ok(Rotated::Nothing) };
        let next = pass.walk.images(pool, LOOKS_MAX).next();
        let Some(image) = next else {
            if !pass.walk.is_done() {
                state.pass = Some(pass);
                return Ok(Rotated::Some);
            }
            return Ok(Rotated::PassEnded { left: pass.left, seen: pass.seen });
        };
        let rotated = self.rotate(image.pid, &mut pass);
        state.pace.take(image.location.stored_bytes.into(), bytes_per_second, now_ns);
        state.pass = Some(pass);
        rotated.map(|()| Rotated::Some)
    }

    /// Re-encrypts the image of a page, if necessary.
    fn rotate(&self, pid: PageId, pass: &mut RotationPass) -> Result<()> {
        for _ in 0..TRIES_MAX {
            let Some(image) = self.pool.newest_image(pid) else { return Ok(()) };
            match self.try_rotate(&image) {
                Ok(Tried::Stays(key)) => {
                    pass.seen.extend(key);
                    return Ok(());
                }
                Ok(Tried::Moved) => {
                    self.rotation.moved.one();
                    return Ok(());
                }
                Ok(Tried::WillBeWritten) => {
                    reach::mark("changed page left to the checkpoint by rotation");
                    return Ok(());
                }
                // The image was moved, or the page has changes.
                Ok(Tried::Again) => reach::mark("page tried again by rotation"),
                Err(_) if self.pool.newest_image(pid) != Some(image) => {
                    reach::mark("image gone before rotation")
                }
                Err(error) => {
                    let may_succeed_later = matches!(error, Error::Io { .. } | Error::DiskFull(_));
                    if sound!(may_succeed_later, "encryption: pass by what could not be read") {
                        pass.left += 1;
                    } else {
                        // The image stays unchanged, and may need any of the keys.
                        pass.seen.extend(self.pool.keys.names());
                    }
                    return Err(error);
                }
            }
        }
        pass.left += 1;
        Ok(())
    }

    fn try_rotate(&self, image: &ImageRef) -> Result<Tried> {
        let tried = self.pool.scratch.with_image(|bytes| {
            self.pool.segments.read_unchecked(image, bytes)?;
            let (header, _) = codec::check(bytes, image, self.pool.page_bytes)?;
            match self.due(image, &header)? {
                Due::Not => Ok(Tried::Stays(header.closed.map(|head| head.key))),
                Due::With(key) => self.close_anew(image, &header, bytes, key),
            }
        })?;
        if !matches!(tried, Tried::Again) {
            return Ok(tried);
        }
        let (is_dirty, has_pending) = {
            let entry = self.pool.table.entry(image.pid);
            (entry.frame().is_some_and(|frame| frame.dirty().is_some()), entry.has_pending())
        };
        if is_dirty {
            return Ok(Tried::WillBeWritten);
        }
        if has_pending {
            // Applies the pending changes to the page, which then has unwritten changes.
            self.pool.fetch(image.pid)?;
        }
        Ok(Tried::Again)
    }

    /// Re-encrypts an image, whose bytes are in `bytes`, with `key`. Without a key, decrypts it.
    /// Then moves the image if it may move.
    fn close_anew(
        &self,
        image: &ImageRef,
        header: &ImageHeader,
        bytes: &[u8],
        key: Option<Arc<Key>>,
    ) -> Result<Tried> {
        if !self.pool.is_movable(&self.pool.table.entry(image.pid), image, self.pool.epoch()) {
            return Ok(Tried::Again);
        }
        let before = header.closed.map(|head| self.pool.keys.find(&head.key)).transpose()?;
        let nonce = key.as_ref().map(|_| self.pool.keys.nonce()).transpose()?;
        self.pool.scratch.with_buffer(|anew| {
            reclose(header, bytes, before.as_deref(), key.as_deref().zip(nonce), anew)
                .map_err(|defect| defect.in_place(image.to_string()))?;
            let copied = self.pool.segments.append(Stream::Cold, anew);
            let (moved_bytes, is_moved) = self.pool.put_in_place_of(image, copied)?;
            self.pool.counters.moved_bytes.add(moved_bytes);
            Ok(if is_moved { Tried::Moved } else { Tried::Again })
        })
    }

    fn due(&self, image: &ImageRef, header: &ImageHeader) -> Result<Due> {
        let wanted = self.pool.keys.of(self.pool.trees.get(image.tree).closing())?;
        let is_due = match (&header.closed, &wanted) {
            (None, None) => false,
            (None, Some(_)) | (Some(_), None) => true,
            (Some(head), Some(key)) => {
                head.key.id != key.name().id || self.pool.keys.is_too_old(&head.key, &key.name())
            }
        };
        Ok(if is_due { Due::With(wanted) } else { Due::Not })
    }
}

//! A step of rotation. Invariants: E15, I1 and I4 at the head of the room.

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

/// Entries of the page table that one step looks at.
const LOOKS_MAX: u64 = 10_000;
/// How often a page is tried that moves meanwhile.
const TRIES_MAX: u32 = 8;

/// How far rotation is.
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

/// A walk through all pages.
#[derive(Clone, Default, Debug)]
pub struct RotationPass {
    walk: Walk,
    /// Pages that could not be moved.
    left: u64,
    /// Keys of images that stay.
    seen: BTreeSet<KeyName>,
}

impl RotationPass {
    /// The page to look at next, and the first one behind the pass.
    pub fn place(&self) -> (u64, u64) {
        self.walk.place()
    }
}

/// The outcome of a step of rotation.
#[derive(Debug)]
pub enum Rotated {
    /// No pass is being made, or nothing is due yet.
    Nothing,
    /// Some was looked at, and there is more.
    Some,
    /// A pass has ended.
    PassEnded {
        /// How many pages are still to be closed otherwise.
        left: u64,
        /// The keys of all other images that are closed.
        seen: BTreeSet<KeyName>,
    },
}

/// The outcome for an image.
enum Tried {
    /// It is closed as it should be.
    Stays(Option<KeyName>),
    Moved,
    /// The page has changes: the checkpoint behind the pass writes it.
    WillBeWritten,
    Again,
}

/// How an image is to be closed, if it is to be closed anew.
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

    /// The pass that is being made.
    pub fn rotation_pass(&self) -> Option<RotationPass> {
        self.rotation.state.lock().pass.clone()
    }

    /// Images that rotation has moved.
    pub fn rotated_count(&self) -> u64 {
        self.rotation.moved.get()
    }

    /// Looks at the next image of the pass, if that is due at this rate, and closes it anew if that
    /// is needed. May do I/O. A damaged image is an error that names it; it is passed by.
    /// `DiskFull` when the reserve would be touched: the pass stays where it is (E18).
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

    /// Closes the image of a page anew, if that is needed.
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
                // It moves meanwhile, or has changes.
                Ok(Tried::Again) => reach::mark("page tried again by rotation"),
                Err(_) if self.pool.newest_image(pid) != Some(image) => {
                    reach::mark("image gone before rotation")
                }
                Err(error) => {
                    let may_succeed_later = matches!(error, Error::Io { .. } | Error::DiskFull(_));
                    if sound!(may_succeed_later, "encryption: pass by what could not be read") {
                        pass.left += 1;
                    } else {
                        // It stays as it is, whatever closes it.
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
        let tried = self.pool.scratch.with_buffer(|bytes| {
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
            // Pending changes get into the page, which has unwritten changes then.
            self.pool.fetch(image.pid)?;
        }
        Ok(Tried::Again)
    }

    /// Closes an image, whose bytes these are, with `key` or not at all, and moves it if it may.
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

//! A step of rotation.

use super::progress::RotationPass;
use crate::base::{planted, reach, Error, PageId, Result};
use crate::durable::space::Reserve;
use crate::format::encryption::{Key, KeyName};
use crate::format::image::{reclose, ImageHeader};
use crate::format::ImageRef;
use crate::pool::images::codec;
use crate::pool::Pool;
use crate::segment::Stream;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Entries of the page table that one step looks at.
const LOOKS_MAX: u64 = 10_000;
/// How often a page is tried that moves meanwhile.
const TRIES_MAX: u32 = 8;
/// Who comes late makes up for so much.
const CATCH_UP_NS: u64 = 100_000_000;

/// What a step of rotation came to.
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

/// What became of an image.
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

impl Pool {
    /// Begins a pass (I1).
    pub fn begin_rotation(&self) {
        let end = self.numbers.lock().end().0;
        let mut state = self.rotation.state.lock();
        state.pass = Some(RotationPass { next: PageId(1), end, ..RotationPass::default() });
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
        self.health.check()?;
        let mut state = self.rotation.state.lock();
        if now_ns < state.due_ns {
            return Ok(Rotated::Nothing);
        }
        if state.pass.is_some() && !planted::is_on("encryption: rotate into the reserve") {
            self.check_space(Reserve::Whole)?;
        }
        let Some(mut pass) = state.pass.take() else { return Ok(Rotated::Nothing) };
        let Some(image) = self.next_of_rotation(&mut pass) else {
            if pass.next.0 < pass.end {
                state.pass = Some(pass);
                return Ok(Rotated::Some);
            }
            return Ok(Rotated::PassEnded { left: pass.left, seen: pass.seen });
        };
        let rotated = self.rotate(image.pid, &mut pass);
        state.due_ns = state.due_ns.max(now_ns.saturating_sub(CATCH_UP_NS))
            + u64::from(image.location.stored_bytes) * 1_000_000_000 / bytes_per_second.max(1);
        state.pass = Some(pass);
        rotated.map(|()| Rotated::Some)
    }

    /// The next image of a pass, of those in a bounded number of looks.
    fn next_of_rotation(&self, pass: &mut RotationPass) -> Option<ImageRef> {
        for _ in 0..LOOKS_MAX.min(pass.end.saturating_sub(pass.next.0)) {
            let pid = pass.next;
            pass.next = PageId(pid.0 + 1);
            if let Some(image) = self.image_of(pid) {
                return Some(image);
            }
        }
        None
    }

    /// Closes the image of a page anew, if that is needed.
    fn rotate(&self, pid: PageId, pass: &mut RotationPass) -> Result<()> {
        for _ in 0..TRIES_MAX {
            let Some(image) = self.image_of(pid) else { return Ok(()) };
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
                Err(_) if self.image_of(pid) != Some(image) => reach::mark("image gone before rotation"),
                Err(error) => {
                    let may_succeed_later = matches!(error, Error::Io { .. } | Error::DiskFull(_));
                    if may_succeed_later && !planted::is_on("encryption: pass by what could not be read") {
                        pass.left += 1;
                    } else {
                        // It stays as it is, whatever closes it.
                        pass.seen.extend(self.keys.names());
                    }
                    return Err(error);
                }
            }
        }
        pass.left += 1;
        Ok(())
    }

    fn image_of(&self, pid: PageId) -> Option<ImageRef> {
        self.table.existing(pid)?.image(pid)
    }

    fn try_rotate(&self, image: &ImageRef) -> Result<Tried> {
        let tried = self.scratch.with_buffer(|bytes| {
            self.segments.read_unchecked(image, bytes)?;
            let (header, _) = codec::check(bytes, image, self.page_bytes)?;
            match self.due(image, &header)? {
                Due::Not => Ok(Tried::Stays(header.closed.map(|head| head.key))),
                Due::With(key) => self.close_anew(image, &header, bytes, key),
            }
        })?;
        if !matches!(tried, Tried::Again) {
            return Ok(tried);
        }
        let (is_dirty, is_buffered) = {
            let entry = self.table.entry(image.pid);
            (entry.frame().is_some_and(|frame| frame.dirty().is_some()), entry.is_buffered())
        };
        if is_dirty {
            return Ok(Tried::WillBeWritten);
        }
        if is_buffered {
            // What waits gets into the page, which has unwritten changes then.
            self.fetch(image.pid)?;
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
        if !self.is_movable(&self.table.entry(image.pid), image, self.epoch()) {
            return Ok(Tried::Again);
        }
        let before = header.closed.map(|head| self.keys.find(&head.key)).transpose()?;
        let nonce = key.as_ref().map(|_| self.keys.nonce()).transpose()?;
        self.scratch.with_buffer(|anew| {
            reclose(header, bytes, before.as_deref(), key.as_deref().zip(nonce), anew)
                .map_err(|defect| defect.in_place(image.to_string()))?;
            let copied = self.segments.append(Stream::Cold, anew);
            let (moved_bytes, is_moved) = self.put_in_place_of(image, copied)?;
            self.counters.moved_bytes.add(moved_bytes);
            Ok(if is_moved { Tried::Moved } else { Tried::Again })
        })
    }

    fn due(&self, image: &ImageRef, header: &ImageHeader) -> Result<Due> {
        let wanted = self.keys.of(self.trees.get(image.tree).closing())?;
        let is_due = match (&header.closed, &wanted) {
            (None, None) => false,
            (None, Some(_)) | (Some(_), None) => true,
            (Some(head), Some(key)) => {
                head.key.id != key.name().id || self.keys.is_too_old(&head.key, &key.name())
            }
        };
        Ok(if is_due { Due::With(wanted) } else { Due::Not })
    }
}

//! Copies a leaf without a frame, for a reader of a few of its records.
//!
//! A frame would evict another page, and would be dirty if the leaf has pending changes.
//! `Pool::image_to_peek` (`pool/reading/peek.rs`) chooses between a copy and a frame. Cursors check
//! `Leaves::may_peek` first.

use super::{Leaves, Unloaded};
use crate::base::{reach, PageId, Result};
use crate::format::page::apply_buffered;
use crate::pool::{Lookup, PageClass, Reuse};

impl Leaves {
    /// Copies the leaf `pid` with its pending changes into `bytes`, if the leaf has no frame and
    /// needs none. The copy is the state of the leaf at some point during this call. Otherwise
    /// returns `None`, and `bytes` is arbitrary. May do I/O.
    pub fn copy_leaf(&self, pid: PageId, bytes: &mut Vec<u8>) -> Result<Option<Unloaded>> {
        let image = match self.pool.look_up(pid, Reuse::Unlikely)? {
            Lookup::Stored(entry) if entry.class() == PageClass::Base => self.pool.image_to_peek(pid, &entry),
            _ => None,
        };
        let Some(image) = image else { return Ok(None) };
        if !self.pool.copy_image(&image, bytes)? {
            return Ok(None);
        }
        self.cold.filter_copy(bytes, &image);
        let mut changes = Vec::new();
        {
            let mut entry = self.pool.page_entry(pid);
            if !self.pool.is_newest(&entry, &image) {
                return Ok(None);
            }
            if entry.has_pending() {
                self.cold.pending.copy_all(pid, &mut changes);
            }
            self.pool.note_passed(&mut entry);
        }
        let applied = apply_buffered(&changes, bytes);
        applied.map_err(|defect| defect.in_place(image.to_string()))?;
        self.pool.count_access();
        self.pool.count_peek();
        reach::mark("leaf copied without a frame");
        Ok(Some(Unloaded { image, bytes_waiting: changes.len() }))
    }
}

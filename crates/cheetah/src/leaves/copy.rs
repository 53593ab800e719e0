//! Copying a leaf that is not in memory, without a frame for it: for who reads a few of its records
//! and goes on.
//!
//! A frame would push another one out, and if changes wait for the leaf, it would be dirty and have
//! to be written. The choice between a copy and a frame is that of [`peek`](super::peek).

use super::{Leaves, Unloaded};
use crate::base::{reach, PageId, Result};
use crate::format::page::apply_buffered;
use crate::pool::{Lookup, PageClass, Reuse};

impl Leaves {
    /// Puts the leaf `pid` into `bytes`, with all that waits for it, if it is not in memory and
    /// need not be; the leaf as it was at some moment of this call. `None`, and any bytes,
    /// otherwise. May do I/O.
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

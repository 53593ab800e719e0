//! Copying a leaf that is not in memory, without a frame for it: for who reads a few of its records
//! and goes on.
//!
//! A frame would push another one out, and if changes wait for the leaf, it would be dirty and have
//! to be written. When a leaf had better be in memory is judged as for looks.

use super::fetch::{Lookup, Reuse};
use super::look::Unloaded;
use super::page_read::ImageRead;
use crate::base::{reach, PageId, Result};
use crate::format::page::{apply_buffered, PageBuf};
use crate::format::ImageRef;
use crate::pool::{PageClass, Pool};

impl Pool {
    /// Puts the leaf `pid` into `bytes`, with all that waits for it, if it is not in memory and
    /// need not be; the leaf as it was at some moment of this call. `None`, and any bytes,
    /// otherwise. May do I/O.
    pub fn copy_leaf(&self, pid: PageId, bytes: &mut Vec<u8>) -> Result<Option<Unloaded>> {
        let image = match self.look_up(pid, Reuse::Unlikely)? {
            Lookup::Stored(entry) if entry.class() == PageClass::Base => self.image_to_look_into(pid, &entry),
            _ => None,
        };
        let Some(image) = image else { return Ok(None) };
        let copied = match self.copy_image(&image, bytes) {
            Err(_) if !self.is_newest(&self.table.entry(pid), &image) => return Ok(None),
            copied => copied.inspect_err(|error| self.forget_room_if_damaged(&image, error))?,
        };
        if !copied {
            return Ok(None);
        }
        let mut changes = Vec::new();
        {
            let mut entry = self.table.entry(pid);
            if !self.is_newest(&entry, &image) {
                return Ok(None);
            }
            if entry.is_buffered() {
                self.buffering.copy_all(pid, &mut changes);
            }
            entry.evicted = self.queues.passed();
        }
        let applied = apply_buffered(&changes, bytes);
        applied.map_err(|defect| defect.in_place(image.to_string()))?;
        self.count_access();
        self.counters.looks.one();
        reach::mark("leaf copied without a frame");
        Ok(Some(Unloaded { image, bytes_waiting: changes.len() }))
    }

    /// Puts the page of an image into `bytes`; whether it has the usual size.
    fn copy_image(&self, image: &ImageRef, bytes: &mut Vec<u8>) -> Result<bool> {
        self.scratch.with_buffer(|stored| {
            let ImageRead { header, class, is_new } = self.read_image(image, true, stored)?;
            if class != PageClass::Base {
                return Ok(false);
            }
            let means = self.means_for(&header, image)?;
            let mut page = PageBuf::new(header.page_bytes);
            let tree = self.trees.get(image.tree);
            self.scratch.with_workspace(|workspace| {
                let begin_ns = self.images.begin_ns();
                let rebuilt = workspace.rebuild(&header, stored, image, means.get(), &mut page);
                self.images.decoded(&tree, stored.len(), begin_ns);
                rebuilt
            })?;
            bytes.clear();
            bytes.extend_from_slice(&page);
            self.filter_copy(bytes, image);
            if is_new {
                self.image_cache.put(image, stored);
            }
            Ok(true)
        })
    }
}

//! Asking the filter of a leaf.

use super::KeyPart;
use crate::base::hash::hash_key;
use crate::base::{reach, sound, PageId, Result};
use crate::leaves::{ColdLeaves, Leaves, Ticket};
use crate::pool::{PageEntry, Residence};

impl Leaves {
    /// Whether there are filters at all.
    pub fn has_filters(&self) -> bool {
        self.cold.filters.is_used() && self.cold.pending.is_on()
    }

    /// A ticket for the leaf `pid` if it has no frame, its image certainly lacks `key`, and changes
    /// may wait for it. The caller has the latch of the parent, which names that leaf (Q1), and
    /// asks for what waits (Q2).
    pub fn ticket_of_lacking(&self, pid: PageId, key: &[u8]) -> Option<Ticket> {
        if !self.has_filters() {
            return None;
        }
        let entry = self.pool.known_entry(pid)?;
        let location = entry.location()?;
        let lacks = self.cold.image_lacks(&entry, pid, KeyPart::Whole, key);
        drop(entry);
        (lacks && self.may_be_pending()).then(|| Ticket::new(pid, location))
    }

    /// Whether the leaf `pid` has no frame, and certainly no key that consists of `beginning` and a
    /// row's key, also among what waits for it. The caller has the latch of the parent, according
    /// to which no other leaf has such keys (Q1).
    pub fn lacks_beginning(&self, pid: PageId, beginning: &[u8]) -> Result<bool> {
        let Some(entry) = self.pool.known_entry(pid).filter(|_| self.has_filters()) else { return Ok(false) };
        Ok(self.cold.image_lacks(&entry, pid, KeyPart::BeforeRowKey, beginning)
            && (!sound!(entry.has_pending(), "filters: look past what waits")
                || !self.cold.pending.has_beginning(pid, beginning)?))
    }
}

impl ColdLeaves {
    fn image_lacks(&self, entry: &PageEntry, pid: PageId, part: KeyPart, bytes: &[u8]) -> bool {
        let is_unloaded = entry.residence() == Residence::Stored && self.may_be_pending_for(entry);
        let location = entry.location().filter(|_| is_unloaded);
        let hash = hash_key(0, bytes);
        let lacks = location.is_some_and(|location| self.filters.lacks(pid, &location, part, hash));
        if lacks {
            reach::mark("key that a filter lacks");
        }
        lacks
    }
}

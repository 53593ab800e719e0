//! Checks the filter of a leaf.

use super::KeyPart;
use crate::base::hash::hash_key;
use crate::base::{reach, sound, PageId, Result};
use crate::leaves::{ColdLeaves, Leaves, Ticket};
use crate::pool::{PageEntry, Residence};

/// The information about a leaf that is available without reading its image.
#[derive(Clone, Copy, Default, Debug)]
pub struct Known {
    /// A ticket if changes of the leaf are pending.
    pub waiting: Option<Ticket>,
    /// A ticket if the leaf has no frame, its image certainly lacks the key, and changes may be
    /// pending.
    pub lacking: Option<Ticket>,
}

impl Leaves {
    /// Returns whether filters are in use.
    pub fn has_filters(&self) -> bool {
        self.cold.filters.is_used() && self.cold.pending.is_on()
    }

    /// Returns the information about the leaf `pid`. The caller must hold the latch of the parent
    /// that names the leaf (B2, Q1), and must check the pending changes first (Q2).
    pub fn known(&self, pid: PageId, key: &[u8]) -> Known {
        let Some(entry) = self.pool.known_entry(pid) else { return Known::default() };
        let ticket = entry.location().map(|location| Ticket::new(pid, location));
        let waiting = ticket.filter(|_| entry.has_pending());
        let lacks = self.has_filters() && self.cold.image_lacks(&entry, pid, KeyPart::Whole, key);
        drop(entry);
        Known { waiting, lacking: ticket.filter(|_| lacks && self.may_be_pending()) }
    }

    /// Returns whether the leaf `pid` has no frame, and its image and pending changes certainly
    /// have no key that consists of `beginning` and a row's key. The caller must hold the latch of
    /// the parent, which shows that no other leaf can have such keys (Q1).
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

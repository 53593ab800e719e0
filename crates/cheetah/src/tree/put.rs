//! Putting an entry, or marking one, without looking what is there: into its leaf, or to what waits
//! for it.

use super::descend::Target;
use super::path::Basis;
use super::{Changed, Path, Tree};
use crate::base::Result;
use crate::format::page::{cell_bytes, RecordRef, VERSION_BYTES};
use crate::leaves::{Expect, Ticket};
use crate::pool::MiniTransaction;

impl Tree {
    /// Leaves the leaf of `key` cold for a change that takes for granted what `expect` says: the
    /// key gets `record`, or loses what it has. Makes `path` a ticket for that, if the leaf is cold
    /// and the change may be pending; whether it is one. Loads inner pages: may do I/O.
    pub fn leave_cold(
        &self,
        key: &[u8],
        expect: Expect,
        record: Option<&RecordRef<'_>>,
        path: &mut Path,
    ) -> Result<bool> {
        path.ticket.ticket = None;
        if !self.leaves.has_tickets() || self.covers(path, key) {
            return Ok(false);
        }
        let record_bytes = record.map_or(0, |record| cell_bytes(key.len(), record));
        let (found_bytes, growth_bytes) = match expect {
            // A mark finds its record, which gets a version.
            Expect::Live => (record_bytes, VERSION_BYTES),
            Expect::New | Expect::Any => (0, record_bytes),
        };
        let ticket = self.find_ticket(key, growth_bytes)?;
        if let Some(ticket) = ticket {
            path.release();
            path.tree = self.def.id;
            path.ticket.set(ticket, key, Basis::Unseen(expect));
            path.ticket.cell_bytes = found_bytes;
        }
        Ok(ticket.is_some())
    }

    /// A ticket for a change that makes the leaf of `key` grow by `bytes`, if it may wait.
    fn find_ticket(&self, key: &[u8], bytes: usize) -> Result<Option<Ticket>> {
        let target = Target::Key(key);
        self.with_page(target, 1, &mut (), |_, page| match page.is_leaf() {
            true => None,
            false => self.leaves.ticket(page.child(target.slot_in(page)), bytes),
        })
    }

    /// Puts a record under `key`, in place of what is there, if anything. `path` has a ticket, or
    /// is prepared; otherwise pages are read. Errors: those of [`insert`](Self::insert).
    pub fn put(
        &self,
        mtr: &MiniTransaction<'_>,
        path: &mut Path,
        key: &[u8],
        record: RecordRef<'_>,
    ) -> Result<()> {
        self.check_limits(key, &record)?;
        match self.insert(mtr, path, key, record)? {
            Changed::Exists => {
                if self.get_loaded(key, path, |found| !found.is_marked())? == Some(true) {
                    self.leaves.note_live_replaced(self.def.id);
                }
                match self.replace(mtr, path, key, record)? {
                    Changed::Done => Ok(()),
                    _ => Err(self.corrupt(self.def.root, "an entry that was there is gone")),
                }
            }
            _ => Ok(()),
        }
    }
}

//! Putting an entry without looking what is there: into its leaf, or to those that wait for it.

use super::descend::Target;
use super::{Changed, Path, Tree};
use crate::base::{reach, Result};
use crate::format::page::{cell_bytes, RecordRef};
use crate::pool::{MiniTransaction, Ticket};

impl Tree {
    /// Makes `path` a ticket for an entry of `key` that nobody need look for, if its leaf is not in
    /// memory and the entry may wait for it. Whether it is one. Loads inner pages: may do I/O.
    pub fn take_ticket(&self, key: &[u8], record: &RecordRef<'_>, path: &mut Path) -> Result<bool> {
        path.ticket.ticket = None;
        if !self.pool.has_tickets() || self.covers(path, key) {
            return Ok(false);
        }
        let (target, bytes) = (Target::Key(key), cell_bytes(key.len(), record));
        let ticket = self.with_page(target, 1, &mut (), |_, page| match page.is_leaf() {
            true => None,
            false => self.pool.ticket(page.child(target.slot_in(page)), bytes),
        })?;
        if ticket.is_some() {
            path.release();
            path.tree = self.def.id;
            path.ticket.ticket = ticket;
            path.ticket.key.clear();
            path.ticket.key.extend_from_slice(key);
        }
        Ok(ticket.is_some())
    }

    /// Whether the ticket of `path` for `key` is still good, or it needs none.
    pub fn has_good_ticket(&self, key: &[u8], record: &RecordRef<'_>, path: &Path) -> bool {
        let is_good = |ticket: &Ticket| self.pool.is_good(ticket, cell_bytes(key.len(), record));
        match path.tree == self.def.id && path.leaf().is_some() {
            true => true,
            false => path.ticket.for_key(key).is_some_and(is_good),
        }
    }

    /// Puts a record under `key`, in place of what is there, if anything. `path` has a ticket, or
    /// is prepared; otherwise pages are read. Errors as of [`insert`](Self::insert).
    pub fn put(
        &self,
        mtr: &MiniTransaction<'_>,
        path: &mut Path,
        key: &[u8],
        record: RecordRef<'_>,
    ) -> Result<()> {
        self.check_limits(key, &record)?;
        let is_buffered = path.tree == self.def.id
            && path.ticket.for_key(key).is_some_and(|ticket| self.pool.buffer(mtr, ticket, key, &record));
        path.ticket.ticket = None;
        if is_buffered {
            reach::mark("entry buffered");
            return Ok(());
        }
        match self.insert(mtr, path, key, record)? {
            Changed::Exists => {
                if self.get_prepared(key, path, |found| !found.is_marked())? == Some(true) {
                    self.pool.note_live_replaced(self.def.id);
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

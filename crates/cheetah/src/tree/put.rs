//! Putting an entry, or marking one, without looking what is there: into its leaf, or to what waits
//! for it.

use super::descend::Target;
use super::path::TicketKind;
use super::{Changed, Path, Tree};
use crate::base::{reach, Result};
use crate::format::page::{cell_bytes, RecordRef, VERSION_BYTES};
use crate::leaves::Ticket;
use crate::pool::MiniTransaction;

impl Tree {
    /// Makes `path` a ticket for a new entry of `key` that nobody need look for, if its leaf is not
    /// in memory and the entry may wait for it. Whether it is one. Loads inner pages: may do I/O.
    pub fn take_ticket(&self, key: &[u8], record: &RecordRef<'_>, path: &mut Path) -> Result<bool> {
        self.take_ticket_of(TicketKind::New, key, record, path)
    }

    /// As [`take_ticket`](Self::take_ticket), for marking the live entry `record` of `key` as
    /// deleted, which is there for certain, and which everybody sees.
    pub fn take_ticket_to_mark(&self, key: &[u8], record: &RecordRef<'_>, path: &mut Path) -> Result<bool> {
        self.take_ticket_of(TicketKind::Settled, key, record, path)
    }

    /// As [`take_ticket`](Self::take_ticket), for removing the record of `key`, if there is one.
    pub fn take_ticket_to_remove(&self, key: &[u8], path: &mut Path) -> Result<bool> {
        self.take_ticket_for(TicketKind::New, key, path, (0, 0))
    }

    fn take_ticket_of(
        &self,
        kind: TicketKind,
        key: &[u8],
        record: &RecordRef<'_>,
        path: &mut Path,
    ) -> Result<bool> {
        let cell_bytes = cell_bytes(key.len(), record);
        // A mark finds its record, which gets a version.
        let found_and_growth_bytes = match kind {
            TicketKind::New => (0, cell_bytes),
            _ => (cell_bytes, VERSION_BYTES),
        };
        self.take_ticket_for(kind, key, path, found_and_growth_bytes)
    }

    fn take_ticket_for(
        &self,
        kind: TicketKind,
        key: &[u8],
        path: &mut Path,
        (found_bytes, bytes): (usize, usize),
    ) -> Result<bool> {
        path.ticket.ticket = None;
        if !self.leaves.has_tickets() || self.covers(path, key) {
            return Ok(false);
        }
        let ticket = self.find_ticket(key, bytes)?;
        if let Some(ticket) = ticket {
            path.release();
            path.tree = self.def.id;
            path.ticket.set(ticket, key, kind);
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

    /// The same for a change whose ticket has just ended; none if inner pages cannot be read.
    pub(super) fn ticket_again(&self, key: &[u8], bytes: usize) -> Option<Ticket> {
        let ticket = self.find_ticket(key, bytes).ok().flatten();
        if ticket.is_some() {
            reach::mark("ticket taken again");
        }
        ticket
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
        match self.insert(mtr, path, key, record)? {
            Changed::Exists => {
                if self.get_prepared(key, path, |found| !found.is_marked())? == Some(true) {
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

//! From a key to its place in the buffer. Invariants: B2 and B3 at the head of the room.

use crate::base::{planted, PageId};
use crate::format::page::RecordRef;
use crate::format::Location;
use crate::pool::frames::{PageEntry, Residence};
use crate::pool::{MiniTransaction, PageClass, Pool, Reserve};

/// The right to have an entry wait for a leaf that is not in memory, as long as it stays so (B2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket {
    pid: PageId,
    location: Location,
}

impl Pool {
    /// Whether entries that come may wait for their leaf, instead of having it read.
    pub fn set_buffering(&self, is_on: bool) {
        self.buffering.set_on(is_on);
    }

    /// Whether there can be tickets at all: none before the first leaf has left memory.
    pub fn has_tickets(&self) -> bool {
        self.buffering.is_on() && self.counters.evictions.get() > 0
    }

    /// A ticket for a record of up to `bytes` bytes in the leaf `pid`, if that has left memory and
    /// the record may wait. The caller has the latch of the parent, which names that leaf (B2).
    pub fn ticket(&self, pid: PageId, bytes: usize) -> Option<Ticket> {
        let entry = self.table.existing(pid)?;
        let ticket = Ticket { pid, location: entry.location()? };
        let is_good = entry.residence() == Residence::Stored
            && entry.class() == PageClass::Base
            && self.buffering.fits(pid, bytes, entry.room());
        drop(entry);
        (is_good && self.may_buffer_more()).then_some(ticket)
    }

    /// Whether a ticket is still good.
    pub fn is_good(&self, ticket: &Ticket, bytes: usize) -> bool {
        let entry = self.table.entry(ticket.pid);
        is_good(&entry, ticket) && self.buffering.fits(ticket.pid, bytes, entry.room())
    }

    /// Has a record wait for its leaf, in place of what that has under `key`. `false`, and nothing
    /// has changed, when the ticket is not good any more.
    pub fn buffer(
        &self,
        mtr: &MiniTransaction<'_>,
        ticket: &Ticket,
        key: &[u8],
        record: &RecordRef<'_>,
    ) -> bool {
        let mut entry = self.table.entry(ticket.pid);
        if !is_good(&entry, ticket) {
            self.buffering.refused.one();
            return false;
        }
        let epoch = mtr.epoch();
        let room = entry.room();
        let (is_put, is_first) = self.buffering.put(ticket.pid, epoch, key, record, room);
        if !is_put {
            self.buffering.refused.one();
            return false;
        }
        if is_first {
            entry.set_buffered(true);
            self.changes_of(epoch).mark_buffered(ticket.pid);
        }
        self.buffering.puts.one();
        true
    }

    /// Whether memory and the disk have room for more: what waits is read and written as a whole
    /// page later (B12).
    fn may_buffer_more(&self) -> bool {
        let used = self.memory.used(crate::memory::MemoryUse::Buffered);
        let on_disk = 2 * (self.dirty_bytes() + self.buffered_page_bytes());
        used < self.memory.buffered_limit()
            && self.segments.check_space(on_disk as u64, Reserve::Whole).is_ok()
    }
}

fn is_good(entry: &PageEntry, ticket: &Ticket) -> bool {
    let is_same = entry.location() == Some(ticket.location);
    entry.residence() == Residence::Stored
        && (is_same || planted::is_on("buffering: do not ask whether the image is the same"))
}

//! From a key to its place in the buffer, and what waits there. Invariants: B2, B3 and B18 at the
//! head of the room.

use super::pending::{Size, Waiting};
use super::{ColdLeaves, Leaves};
use crate::base::{planted, PageId, Result};
use crate::format::page::{BufferedChange, RecordCopy, RecordRef};
use crate::format::{ImageRef, Location};
use crate::memory::MemoryUse;
use crate::pool::{MiniTransaction, PageClass, PageEntry, Pool, Reserve, Residence};

/// What a change takes for granted of a place that nobody has looked at. A change that meets
/// something else tells of damage (B8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expect {
    /// No live record is there.
    New,
    /// A live record is there that everybody sees.
    Live,
    /// Nothing: the change removes whatever is there.
    Any,
}

/// The right to have changes wait for a leaf that is not in memory, as long as it stays so (B2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket {
    pid: PageId,
    location: Location,
}

impl Ticket {
    pub(super) fn new(pid: PageId, location: Location) -> Self {
        Self { pid, location }
    }

    /// The leaf.
    pub fn pid(&self) -> PageId {
        self.pid
    }
}

impl Leaves {
    /// A ticket for the leaf of an image that was looked into.
    pub fn ticket_of(&self, image: &ImageRef) -> Ticket {
        Ticket { pid: image.pid, location: image.location }
    }

    /// Whether there can be tickets at all: none before the first leaf has left memory.
    pub fn has_tickets(&self) -> bool {
        self.cold.pending.is_on() && self.pool.has_evicted()
    }

    /// A ticket for a record of up to `bytes` bytes in the leaf `pid`, if that has left memory and
    /// the record may wait. The caller has the latch of the parent, which names that leaf (B2).
    pub fn ticket(&self, pid: PageId, bytes: usize) -> Option<Ticket> {
        let entry = self.pool.known_entry(pid)?;
        let ticket = Ticket { pid, location: entry.location()? };
        let is_good = entry.residence() == Residence::Stored
            && self.cold.may_be_pending_for(&entry)
            && entry.room().is_some_and(|room| self.cold.pending.fits(pid, bytes, room));
        drop(entry);
        (is_good && self.may_be_pending()).then_some(ticket)
    }

    /// A ticket for the leaf `pid` if something waits for it. The caller has the latch of the
    /// parent, which names that leaf (B2).
    pub fn ticket_of_waiting(&self, pid: PageId) -> Option<Ticket> {
        let entry = self.pool.known_entry(pid).filter(|entry| entry.has_pending())?;
        entry.location().map(|location| Ticket { pid, location })
    }

    /// Runs `f` on the record of `key` that waits for the leaf of the ticket, or on nothing if what
    /// waits says that there is none; nobody changes it meanwhile. `None` when nothing waits of
    /// that key, or the ticket is not good any more.
    pub fn with_waiting<R>(
        &self,
        ticket: &Ticket,
        key: &[u8],
        f: impl FnOnce(Option<RecordRef<'_>>, Size) -> R,
    ) -> Result<Option<R>> {
        let entry = self.pool.page_entry(ticket.pid);
        let is_past = planted::is_on("buffering: look past what waits");
        if !is_good(&entry, ticket) || !entry.has_pending() || is_past {
            return Ok(None);
        }
        let mut waiting = RecordCopy::default();
        Ok(match self.cold.pending.find(ticket.pid, key, &mut waiting)? {
            Waiting::Nothing => None,
            Waiting::Record(size) => Some(f(Some(waiting.as_ref()), size)),
            Waiting::Removal => Some(f(None, Size::Known)),
        })
    }

    /// Whether a ticket is still good for a change that makes the page grow by `bytes`.
    pub fn is_good(&self, ticket: &Ticket, bytes: usize) -> bool {
        let entry = self.pool.page_entry(ticket.pid);
        is_good(&entry, ticket)
            && self.cold.waiting_has_memory(&self.pool)
            && entry.room().is_some_and(|room| self.cold.pending.fits(ticket.pid, bytes, room))
    }

    /// Has a change of `key` wait for its leaf, which it makes grow by `bytes` at most. `false`,
    /// and nothing has changed, when the ticket is not good any more.
    pub fn buffer(
        &self,
        mtr: &MiniTransaction<'_>,
        ticket: &Ticket,
        key: &[u8],
        change: &BufferedChange<'_>,
        bytes: usize,
    ) -> bool {
        let mut entry = self.pool.page_entry(ticket.pid);
        let Some(room) = entry.room().filter(|_| is_good(&entry, ticket)) else {
            self.cold.pending.refused.one();
            return false;
        };
        let epoch = mtr.epoch();
        let (is_put, is_first) = self.cold.pending.put(ticket.pid, epoch, key, change, (bytes, room));
        if !is_put {
            self.cold.pending.refused.one();
            return false;
        }
        if is_first {
            entry.set_pending(true);
            self.pool.changes_of(epoch).mark_pending(ticket.pid);
        }
        // A leaf that is changed again soon had better be in memory.
        self.pool.note_passed(&mut entry);
        self.cold.pending.puts.one();
        true
    }

    /// Runs `f` on the record of `key`: on the one that waits for the leaf, or else on `stored`,
    /// that of the image that the ticket names; nobody changes it meanwhile. `None` when the ticket
    /// is not good any more.
    pub fn with_stored<R>(
        &self,
        ticket: &Ticket,
        key: &[u8],
        stored: Option<RecordRef<'_>>,
        f: impl FnOnce(Option<RecordRef<'_>>, Size) -> R,
    ) -> Result<Option<R>> {
        let entry = self.pool.page_entry(ticket.pid);
        if !is_good(&entry, ticket) {
            return Ok(None);
        }
        let mut waiting = RecordCopy::default();
        let found = match entry.has_pending() && !planted::is_on("buffering: look past what waits") {
            true => self.cold.pending.find(ticket.pid, key, &mut waiting)?,
            false => Waiting::Nothing,
        };
        Ok(Some(match found {
            Waiting::Nothing => f(stored, Size::Known),
            Waiting::Record(size) => f(Some(waiting.as_ref()), size),
            Waiting::Removal => f(None, Size::Known),
        }))
    }

    /// Whether memory and the disk have room for more: what is pending is read and written as a
    /// whole page later (B12), and a checkpoint must be able to read all such pages in time (B15).
    pub(super) fn may_be_pending(&self) -> bool {
        let cold = &self.cold;
        if cold.pending.pages_are_many() || cold.small.are_many() {
            return false;
        }
        cold.waiting_has_memory(&self.pool) && cold.waiting_has_space(&self.pool)
    }
}

impl ColdLeaves {
    /// Whether a change of the leaf whose entry this is may be pending, if any may; whether it
    /// finds room is asked later.
    pub(super) fn may_be_pending_for(&self, entry: &PageEntry) -> bool {
        entry.class() == PageClass::Base && entry.room().is_some()
    }

    /// Whether what is pending is less than it may take of memory.
    fn waiting_has_memory(&self, pool: &Pool) -> bool {
        let memory = pool.memory();
        memory.used(MemoryUse::Buffered) < memory.buffered_limit()
            || planted::is_on("buffering: let more wait than memory may hold")
    }

    /// Whether the disk has room for all pages that are changed or have pending changes (B12).
    pub(super) fn waiting_has_space(&self, pool: &Pool) -> bool {
        let promised = pool.promised_bytes();
        pool.segments().check_space(promised, promised, Reserve::Whole).is_ok()
    }
}

fn is_good(entry: &PageEntry, ticket: &Ticket) -> bool {
    let is_same = entry.location() == Some(ticket.location);
    // Without a known room nothing waits, not even a removal: the page may be damaged.
    entry.residence() == Residence::Stored
        && entry.room().is_some()
        && (is_same || planted::is_on("buffering: do not ask whether the image is the same"))
}

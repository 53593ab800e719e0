//! Tickets for cold leaves, reservations of places for changes, and reading pending records.
//! Invariants B2, B3 and B18 to B20 are at the head of `leaves` and in docs/developers/leaves.md.

use super::pending::{Size, Waiting};
use super::{ColdLeaves, Leaves};
use crate::base::{sound, PageId, Result};
use crate::format::page::{BufferedChange, RecordCopy, RecordRef};
use crate::format::{ImageRef, Location};
use crate::memory::MemoryUse;
use crate::pool::{
    EntryGuard, MiniTransaction, PageClass, PageEntry, Pool, Reserve, ReservedToken, Residence,
};

/// The assumption of a change about a record that was not read; damage is reported if it is wrong
/// (B8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expect {
    /// There is no live record.
    New,
    /// There is a live record that is visible to all snapshots.
    Live,
    /// No assumption: the change removes any record.
    Any,
}

/// The permission to make changes pending for a leaf while it has the same image and no frame (B2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket {
    pid: PageId,
    location: Location,
}

/// A place for a change of a cold leaf that is about to become pending (B19). It must be used or
/// released inside the mini-transaction in which it was made.
#[derive(Debug)]
pub struct Reservation {
    pid: PageId,
    bytes: usize,
    is_open: bool,
    _held: ReservedToken,
}

impl Reservation {
    fn end(mut self) -> (PageId, usize) {
        self.is_open = false;
        (self.pid, self.bytes)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let is_lost = self.is_open && !std::thread::panicking();
        debug_assert!(!is_lost, "B19: a reservation of page {} ends in its mini-transaction", self.pid);
    }
}

impl Ticket {
    /// Creates a ticket for the leaf of an image that a lookup searched.
    pub fn of(image: &ImageRef) -> Self {
        Self::new(image.pid, image.location)
    }

    pub(super) fn new(pid: PageId, location: Location) -> Self {
        Self { pid, location }
    }

    /// The page number of the leaf.
    pub fn pid(&self) -> PageId {
        self.pid
    }
}

impl Leaves {
    /// Returns whether changes may become pending and a page was evicted since startup.
    pub fn has_tickets(&self) -> bool {
        self.cold.pending.is_on() && self.pool.has_evicted()
    }

    /// Returns a ticket for a change that makes the leaf `pid` grow by up to `bytes` bytes, if the
    /// leaf has no frame and the change may become pending. The caller must hold the latch of the
    /// parent that names the leaf (B2).
    pub fn ticket(&self, pid: PageId, bytes: usize) -> Option<Ticket> {
        let entry = self.pool.known_entry(pid)?;
        let ticket = Ticket { pid, location: entry.location()? };
        let is_good = self.cold.fits(&entry, pid, bytes) == Some(true);
        drop(entry);
        (is_good && self.may_be_pending()).then_some(ticket)
    }

    /// Returns whether the leaf `pid` is cold and lacks room for a pending change of `bytes` bytes.
    pub fn lacks_room(&self, pid: PageId, bytes: usize) -> bool {
        let entry = self.pool.known_entry(pid);
        entry.is_some_and(|entry| self.cold.fits(&entry, pid, bytes) == Some(false))
    }

    /// Runs `f` on the pending record of `key` in the leaf of the ticket, or on `None` if its
    /// removal is pending. No thread changes the record while `f` runs. Returns `None` if no change
    /// of the key is pending, or if the ticket is no longer valid.
    pub fn with_waiting<R>(
        &self,
        ticket: &Ticket,
        key: &[u8],
        f: impl FnOnce(Option<RecordRef<'_>>, Size) -> R,
    ) -> Result<Option<R>> {
        let entry = self.pool.page_entry(ticket.pid);
        if !is_good(&entry, ticket) || !sound!(entry.has_pending(), "buffering: look past what waits") {
            return Ok(None);
        }
        let mut waiting = RecordCopy::default();
        Ok(match self.cold.pending.find(ticket.pid, key, &mut waiting)? {
            Waiting::Nothing => None,
            Waiting::Record(size) => Some(f(Some(waiting.as_ref()), size)),
            Waiting::Removal => Some(f(None, Size::Known)),
        })
    }

    /// Returns whether a ticket is still valid for a change that makes the page grow by `bytes`.
    pub fn is_good(&self, ticket: &Ticket, bytes: usize) -> bool {
        let entry = self.pool.page_entry(ticket.pid);
        is_good(&entry, ticket)
            && self.cold.waiting_has_memory(&self.pool)
            && entry.room().is_some_and(|room| self.cold.pending.fits(ticket.pid, bytes, room))
    }

    /// Reserves a place for a change that makes the leaf grow by at most `bytes`, if the ticket is
    /// still valid for it. The leaf stays cold until the place is [used](Self::buffer) or
    /// [released](Self::release), in the same mini-transaction (B19).
    pub fn reserve(
        &self,
        _inside: &MiniTransaction<'_>,
        ticket: &Ticket,
        bytes: usize,
    ) -> Option<Reservation> {
        let pid = ticket.pid;
        let mut entry = self.pool.page_entry(pid);
        let is_wanted = sound!(entry.is_wanted(), "leaves: reserve what somebody wants");
        if !is_good(&entry, ticket) || is_wanted || !self.cold.waiting_has_memory(&self.pool) {
            return None;
        }
        if !self.cold.pending.reserve(pid, bytes, entry.room()?) {
            return None;
        }
        entry.set_reserved(true);
        Some(Reservation { pid, bytes, is_open: true, _held: ReservedToken::new() })
    }

    /// Releases a place without using it.
    pub fn release(&self, reservation: Reservation) {
        let (pid, bytes) = reservation.end();
        let entry = self.pool.page_entry(pid);
        let is_last = self.cold.pending.release(pid, bytes);
        self.end_reservation(entry, pid, is_last);
    }

    /// Makes a change of `key` pending for its leaf, in its reserved place. If a thread inside a
    /// mini-transaction has made a frame for the leaf or freed the leaf, only releases the place
    /// and returns `false` (B20).
    pub fn buffer(
        &self,
        mtr: &MiniTransaction<'_>,
        reservation: Reservation,
        key: &[u8],
        change: &BufferedChange<'_>,
    ) -> bool {
        let mut entry = self.pool.page_entry(reservation.pid);
        // A reader of the page applies the pending changes to the frame before other threads see
        // it.
        if !matches!(entry.residence(), Residence::Stored | Residence::BeingRead) {
            drop(entry);
            self.release(reservation);
            self.cold.pending.refused.one();
            return false;
        }
        let (pid, bytes) = reservation.end();
        let epoch = mtr.epoch();
        let (is_first, is_last) = self.cold.pending.put(pid, epoch, key, change, bytes);
        if is_first {
            entry.set_pending(true);
            self.pool.changes_of(epoch).mark_pending(pid);
        }
        // If the leaf is changed again soon, it should receive a frame.
        self.pool.note_passed(&mut entry);
        self.end_reservation(entry, pid, is_last);
        self.cold.pending.puts.one();
        true
    }

    /// Counts a change without a place, for which the leaf itself is changed.
    pub fn note_refused(&self) {
        self.cold.pending.refused.one();
    }

    fn end_reservation(&self, mut entry: EntryGuard<'_>, pid: PageId, is_last: bool) {
        if !is_last {
            return;
        }
        entry.set_reserved(false);
        let is_wanted = entry.is_wanted();
        if is_wanted && !sound!(true, "leaves: wake readers under the lock of the entry") {
            self.pool.wake_readers(pid);
            return;
        }
        // The lock of the entry must be released first. A waiter takes the entry's lock while it
        // holds the lock that `wake_readers` takes (B20).
        drop(entry);
        if sound!(is_wanted, "leaves: wake nobody who waits for a reserved leaf") {
            self.pool.wake_readers(pid);
        }
    }

    /// Runs `f` on the pending record of `key`, or else on `stored`, its record in the image that
    /// the ticket names. No thread changes the record while `f` runs. Returns `None` if the ticket
    /// is no longer valid.
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
        let found = match sound!(entry.has_pending(), "buffering: look past what waits") {
            true => self.cold.pending.find(ticket.pid, key, &mut waiting)?,
            false => Waiting::Nothing,
        };
        Ok(Some(match found {
            Waiting::Nothing => f(stored, Size::Known),
            Waiting::Record(size) => f(Some(waiting.as_ref()), size),
            Waiting::Removal => f(None, Size::Known),
        }))
    }

    /// Returns whether memory and disk allow more pending changes: a page with pending changes is
    /// later written as a whole (B12), and a checkpoint must be able to read all such pages in time
    /// (B15).
    pub(super) fn may_be_pending(&self) -> bool {
        let cold = &self.cold;
        if cold.pending.pages_are_many() || cold.small.are_many() {
            return false;
        }
        cold.waiting_has_memory(&self.pool) && cold.waiting_has_space(&self.pool)
    }
}

impl ColdLeaves {
    /// Returns whether a change that makes the leaf `pid` grow by `bytes` bytes fits; `None` if no
    /// change of this leaf may become pending.
    fn fits(&self, entry: &PageEntry, pid: PageId, bytes: usize) -> Option<bool> {
        let may_be = entry.residence() == Residence::Stored && self.may_be_pending_for(entry);
        entry.room().filter(|_| may_be).map(|room| self.pending.fits(pid, bytes, room))
    }

    /// Returns whether changes of this leaf may become pending while
    /// [`may_be_pending`](Self::may_be_pending) is true; a later check decides whether a change
    /// fits.
    pub(super) fn may_be_pending_for(&self, entry: &PageEntry) -> bool {
        entry.class() == PageClass::Base && entry.room().is_some()
    }

    fn waiting_has_memory(&self, pool: &Pool) -> bool {
        let memory = pool.memory();
        let is_full = memory.used(MemoryUse::Buffered) >= memory.buffered_limit();
        !sound!(is_full, "buffering: let more wait than memory may hold")
    }

    /// Returns whether the disk has room for all pages that are dirty or have pending changes
    /// (B12).
    pub(super) fn waiting_has_space(&self, pool: &Pool) -> bool {
        let promised = pool.promised_bytes();
        pool.segments().check_space(promised, promised, Reserve::Whole).is_ok()
    }
}

fn is_good(entry: &PageEntry, ticket: &Ticket) -> bool {
    let is_other = entry.location() != Some(ticket.location);
    // With an unknown number of free bytes, not even a removal may become pending: the page may be
    // damaged.
    entry.residence() == Residence::Stored
        && entry.room().is_some()
        && !sound!(is_other, "buffering: do not ask whether the image is the same")
}

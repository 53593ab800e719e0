//! The page table maps page numbers to frames and locations. It grows without moving its entries.
//!
//! Entries are stored in chunks, and chunks in lists. The first list has one chunk, and each
//! further list has the number of chunks of all previous lists together. So a small database has a
//! small table, and a lookup takes three steps.

use super::frame::Frame;
use super::latch_count::EntryToken;
use crate::base::{sound, PageId, SegmentId, TreeId};
use crate::format::{ImageRef, Location, MapEntry};
use crate::pool::PageClass;
use parking_lot::{Mutex, MutexGuard};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// The number of entries in a chunk.
const CHUNK: usize = 512;
/// The number of lists of chunks.
const LISTS: usize = 28;
const _: () =
    assert!(PageId::MAX.0 as usize == (CHUNK << (LISTS - 1)) - 1, "every page number has its entry");

/// The free bytes of a leaf are stored in steps of `ROOM_STEP` bytes, and after [`ROOM_STEPS`]
/// steps in larger steps. The steps are small because adding a version to a row needs only 12
/// bytes.
const ROOM_STEP: usize = 16;
const ROOM_STEPS: usize = 128;
const LARGE_ROOM_STEP: usize = 128;

/// The time at which a page was evicted or read without a frame, in eighths of a turnover of the
/// pool (see `eviction`). The time is 0 if neither has happened.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(in crate::pool) struct EvictionTime(pub(in crate::pool) u16);

/// The state of a page number.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Residence {
    /// No page.
    #[default]
    Free,
    /// A page that is on disk only.
    Stored,
    /// A page that a thread is reading.
    BeingRead,
    /// A page with a frame.
    Resident,
}

/// The entry of one page. Entries are small, because every page of the database has one.
#[derive(Debug)]
pub struct PageEntry {
    frame: Option<Arc<Frame>>,
    location: Location,
    tree: TreeId,
    pub(in crate::pool) evicted: EvictionTime,
    state: State,
    /// The number of steps of free bytes that the leaf had when it was evicted, plus one, or 0 if
    /// unknown.
    room: u8,
}

/// Five small values in one byte.
#[derive(Clone, Copy, Default, Debug)]
struct State(u8);

impl State {
    const RESIDENCE: u8 = 0b11;
    const CLASS_AT: u32 = 2;
    const CLASS: u8 = 0b1100;
    const PENDING: u8 = 0b1_0000;
    const RESERVED: u8 = 0b10_0000;
    const WANTED: u8 = 0b100_0000;

    fn residence(self) -> Residence {
        match self.0 & Self::RESIDENCE {
            0 => Residence::Free,
            1 => Residence::Stored,
            2 => Residence::BeingRead,
            _ => Residence::Resident,
        }
    }

    fn set_residence(&mut self, residence: Residence) {
        self.0 = self.0 & !Self::RESIDENCE | residence as u8;
    }

    /// The class of the page, if it has an image. The class is a guess until the page has been in
    /// memory.
    fn image_class(self) -> Option<PageClass> {
        let number = (self.0 & Self::CLASS) >> Self::CLASS_AT;
        PageClass::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    fn set_image_class(&mut self, class: Option<PageClass>) {
        let number = class.map_or(0, |class| class as u8 + 1);
        self.0 = self.0 & !Self::CLASS | number << Self::CLASS_AT;
    }

    fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }

    fn set(&mut self, bit: u8, is_set: bool) {
        self.0 = self.0 & !bit | if is_set { bit } else { 0 };
    }
}

impl Default for PageEntry {
    fn default() -> Self {
        Self {
            frame: None,
            location: Location { segment: SegmentId(0), offset: 0, stored_bytes: 0, crc: 0 },
            tree: TreeId(0),
            evicted: EvictionTime::default(),
            state: State::default(),
            room: 0,
        }
    }
}

impl PageEntry {
    /// The state of the page number.
    pub(crate) fn residence(&self) -> Residence {
        self.state.residence()
    }

    /// Returns whether the page exists.
    pub(crate) fn is_used(&self) -> bool {
        self.residence() != Residence::Free
    }

    /// The tree that owns the page.
    pub(crate) fn tree(&self) -> TreeId {
        self.tree
    }

    /// The frame of the page, if it is in memory.
    pub(crate) fn frame(&self) -> Option<&Arc<Frame>> {
        self.frame.as_ref()
    }

    /// The location of the newest image, if there is one.
    pub(crate) fn location(&self) -> Option<Location> {
        self.state.image_class().map(|_| self.location)
    }

    /// The newest image, if there is one. `pid` is the number of this entry's page.
    pub(crate) fn image(&self, pid: PageId) -> Option<ImageRef> {
        self.location().map(|location| ImageRef { pid, tree: self.tree, location })
    }

    /// The class of the page. It is a guess until the page has been in memory.
    pub(crate) fn class(&self) -> PageClass {
        self.frame().map_or(self.state.image_class().unwrap_or_default(), |frame| frame.class)
    }

    /// Replaces the location, and returns the previous one.
    pub(in crate::pool) fn set_location(&mut self, location: Location) -> Option<Location> {
        let before = self.location();
        self.state.set_image_class(Some(self.class()));
        self.location = location;
        before
    }

    /// Turns a free entry into the entry of a page on disk, with a guessed class.
    pub(in crate::pool) fn open(&mut self, entry: MapEntry, guess: PageClass) {
        self.tree = entry.tree;
        self.location = entry.location;
        self.state.set_image_class(Some(guess));
        self.state.set_residence(Residence::Stored);
    }

    /// Turns a free entry into the entry of a page in memory.
    pub(in crate::pool) fn start(&mut self, frame: Arc<Frame>) {
        self.tree = frame.tree;
        self.publish(frame);
    }

    /// Marks the page as being read.
    pub(in crate::pool) fn start_read(&mut self) {
        self.state.set_residence(Residence::BeingRead);
        self.state.set(State::WANTED, false);
    }

    /// Sets the frame of a page that was read.
    pub(in crate::pool) fn publish(&mut self, frame: Arc<Frame>) {
        debug_assert!(!self.has_pending(), "B1: pending changes are in a frame before others see it");
        self.state.set_residence(Residence::Resident);
        self.state.set_image_class(self.state.image_class().map(|_| frame.class));
        self.frame = Some(frame);
    }

    /// A lower bound of the bytes that were free in the leaf when it was evicted, or `None` if
    /// unknown.
    pub(crate) fn room(&self) -> Option<usize> {
        let steps = usize::from(self.room).checked_sub(1)?;
        let large_steps = steps.saturating_sub(ROOM_STEPS);
        Some((steps - large_steps) * ROOM_STEP + large_steps * LARGE_ROOM_STEP)
    }

    /// Notes the free bytes of a leaf that is about to be evicted, or `None` if the number is
    /// unknown.
    pub(crate) fn set_room(&mut self, bytes: Option<usize>) {
        let is_known = |bytes: &usize| {
            *bytes >= 64 || sound!(true, "buffering: take little room for room that is not known")
        };
        let steps_of = |bytes: usize| {
            let steps = (bytes / ROOM_STEP).min(ROOM_STEPS);
            steps + (bytes - steps * ROOM_STEP) / LARGE_ROOM_STEP
        };
        let code_of = |bytes| u8::try_from(steps_of(bytes) + 1).unwrap_or(u8::MAX);
        self.room = bytes.filter(is_known).map_or(0, code_of);
    }

    /// Returns whether the page has pending changes.
    pub(crate) fn has_pending(&self) -> bool {
        self.state.has(State::PENDING)
    }

    /// Sets whether the page has pending changes.
    pub(crate) fn set_pending(&mut self, has_pending: bool) {
        debug_assert!(!has_pending || self.frame.is_none(), "B1: changes are pending only without a frame");
        self.state.set(State::PENDING, has_pending);
    }

    /// Returns whether the page is reserved for a change that is about to become pending. Only a
    /// thread inside a mini-transaction may give it a frame.
    pub(crate) fn is_reserved(&self) -> bool {
        self.state.has(State::RESERVED)
    }

    /// Sets whether the page is reserved.
    pub(crate) fn set_reserved(&mut self, is_reserved: bool) {
        self.state.set(State::RESERVED, is_reserved);
    }

    /// Returns whether a thread waits to give the page a frame. If so, no thread may reserve the
    /// page until it has a frame.
    pub(crate) fn is_wanted(&self) -> bool {
        self.state.has(State::WANTED)
    }

    /// Notes that a thread waits to give the page a frame.
    pub(in crate::pool) fn set_wanted(&mut self) {
        self.state.set(State::WANTED, true);
    }

    /// Removes the frame. The page is then on disk only.
    pub(in crate::pool) fn unload(&mut self) {
        debug_assert!(
            self.frame.as_ref().is_none_or(|frame| frame.dirty().is_none()),
            "E1: a page that is not written yet stays in memory"
        );
        self.state.set_residence(Residence::Stored);
        self.frame = None;
    }

    /// Frees the number, and returns the old entry.
    pub(in crate::pool) fn clear(&mut self) -> PageEntry {
        std::mem::take(self)
    }
}

/// A locked entry.
#[derive(Debug)]
pub struct EntryGuard<'t> {
    entry: MutexGuard<'t, PageEntry>,
    _held: EntryToken,
}

impl<'t> EntryGuard<'t> {
    fn lock(entry: &'t Mutex<PageEntry>) -> Self {
        Self { entry: entry.lock(), _held: EntryToken::new() }
    }
}

impl Deref for EntryGuard<'_> {
    type Target = PageEntry;
    fn deref(&self) -> &PageEntry {
        &self.entry
    }
}

impl DerefMut for EntryGuard<'_> {
    fn deref_mut(&mut self) -> &mut PageEntry {
        &mut self.entry
    }
}

type Chunk = Box<[Mutex<PageEntry>]>;
type List = Box<[OnceLock<Chunk>]>;

/// See the module.
#[derive(Debug)]
pub(in crate::pool) struct PageTable {
    lists: [OnceLock<List>; LISTS],
    bytes: AtomicUsize,
}

impl PageTable {
    pub(in crate::pool) fn new() -> Self {
        Self { lists: [const { OnceLock::new() }; LISTS], bytes: AtomicUsize::new(size_of::<Self>()) }
    }

    /// Locks the entry of `pid`. Creates its part of the table if necessary.
    pub(in crate::pool) fn entry(&self, pid: PageId) -> EntryGuard<'_> {
        let place = Place::of(pid);
        let list = self.lists[place.list].get_or_init(|| self.part(place.list_len()));
        let chunk = list[place.chunk].get_or_init(|| self.part(CHUNK));
        EntryGuard::lock(&chunk[place.entry])
    }

    /// Locks the entry of `pid`, if its part of the table exists.
    pub(in crate::pool) fn existing(&self, pid: PageId) -> Option<EntryGuard<'_>> {
        let place = Place::of(pid);
        let list = self.lists.get(place.list)?.get()?;
        Some(EntryGuard::lock(&list[place.chunk].get()?[place.entry]))
    }

    /// Bytes of memory that the table occupies.
    pub(in crate::pool) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    fn part<T: Default>(&self, len: usize) -> Box<[T]> {
        self.bytes.fetch_add(size_of::<T>() * len, Relaxed);
        (0..len).map(|_| T::default()).collect()
    }
}

/// The position of an entry.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Place {
    /// The index of the list. It is out of range for numbers above [`PageId::MAX`], which occur in
    /// damaged pages.
    list: usize,
    chunk: usize,
    entry: usize,
}

impl Place {
    fn of(pid: PageId) -> Self {
        let index = pid.0 as usize;
        let (number, entry) = (index / CHUNK, index % CHUNK);
        let list = (usize::BITS - number.leading_zeros()) as usize;
        Self { list, chunk: number ^ first_of(list), entry }
    }

    fn list_len(self) -> usize {
        first_of(self.list).max(1)
    }
}

/// The index of the first chunk of a list.
fn first_of(list: usize) -> usize {
    (1 << list) >> 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_takes_no_more_than_a_five_hundredth_of_its_page() {
        assert!(size_of::<Mutex<PageEntry>>() <= 40, "{}", size_of::<Mutex<PageEntry>>());
    }

    #[test]
    fn every_page_has_a_place_of_its_own() {
        let (mut list, mut chunk, mut entry) = (0, 0, 0);
        for pid in 0..70 * CHUNK as u64 {
            let place = Place::of(PageId(pid));
            assert_eq!(place, Place { list, chunk, entry }, "{pid}");
            (entry, chunk) = if entry + 1 == CHUNK { (0, chunk + 1) } else { (entry + 1, chunk) };
            if chunk == place.list_len() {
                (list, chunk) = (list + 1, 0);
            }
        }
        let last = Place::of(PageId::MAX);
        let of_last = Place { list: LISTS - 1, chunk: last.list_len() - 1, entry: CHUNK - 1 };
        assert_eq!(last, of_last);
        let table = PageTable::new();
        for (pid, no) in [0, 1, 511, 512, 1535, 1536, 1 << 20].into_iter().zip(7..) {
            table.entry(PageId(pid)).tree = TreeId(no);
        }
        for (pid, no) in [0, 1, 511, 512, 1535, 1536, 1 << 20].into_iter().zip(7..) {
            assert_eq!(table.existing(PageId(pid)).map(|entry| entry.tree), Some(TreeId(no)));
        }
        for nowhere in [1 << 21, PageId::MAX.0, PageId::MAX.0 + 1, u64::MAX] {
            assert!(table.existing(PageId(nowhere)).is_none(), "{nowhere}");
        }
    }

    #[test]
    fn little_room_is_not_room_that_is_not_known() {
        let check = |bytes, expected| {
            let mut entry = PageEntry::default();
            entry.set_room(bytes);
            assert_eq!(entry.room(), expected);
        };
        check(None, None);
        check(Some(0), Some(0));
        check(Some(15), Some(0));
        check(Some(16), Some(16));
        check(Some(2047), Some(2032));
        check(Some(2048 + 127), Some(2048));
        check(Some(2048 + 128), Some(2048 + 128));
        check(Some(16 << 10), Some(16 << 10));
        check(Some(1 << 20), Some(2048 + 126 * 128));
    }
}

//! Redo on several threads: row operations are dealt out to *lanes*, each a queue with a thread that applies them in order.
//!
//! Row operations on different clustered keys may be applied in any order: their entries in secondary indexes differ too, as
//! these end with the clustered key, and counters only add up. So only this order is kept:
//!
//! Invariants
//!   I1  Operations of one transaction are applied in the order of the log, so that its undo records get their numbers.
//!   I2  Operations on one clustered key of a table are applied in the order of the log.
//!   I3  Everything else (the end of a transaction, rolling back, changes of the catalog) is done by the thread that reads the
//!       log, in the order of the log, after what it rests on. See [`super::redo`].
//!   I4  Whoever waits for an operation waits for one that comes earlier in the log, and nothing waits in the hands of the
//!       dealer while that waits. So nobody waits in a circle.
//!   I5  After the first failure nothing more is applied, and nobody waits any more.
//!   I6  A queue has at most [`BATCHES_MAX`] batches and one more. They are in the account of memory; what else there is of a lane, a batch in
//!       the hands of the dealer, is not. A batch has [`BATCH_BYTES`] and one record at most.
//! Locks     one mutex for each queue, one for those who wait; each alone, for a moment.

use super::redo::{Hand, Txn};
use crate::base::{planted, reach, Error, Result, TableId};
use crate::format::log_record::{Front, LogRecord};
use crate::memory::{MemoryUse, Reservation};
use crate::table::shared::parts::Core;
use parking_lot::{Condvar, Mutex};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::Arc;

/// Operations that go into a queue together at most, and bytes after which no more are added to them.
const BATCH_JOBS: usize = 64;
const BATCH_BYTES: usize = 32 << 10;
/// Batches that wait in a queue at most; below so many the dealer goes on. Together that is some milliseconds of work.
const BATCHES_MAX: usize = 16;
const BATCHES_LOW: usize = 8;
/// A table's operations stay in the lane that has its pages at hand, unless another one has so much less to do.
const SLACK_JOBS: u64 = 64;
/// Hash values by which keys are told apart: equal ones only make operations wait that need not.
const KEYS: usize = 1 << 16;

/// Which operation: the lane, and how many came before it there.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Place {
    lane: usize,
    /// From 1 on; 0 is before all.
    no: u64,
}

/// An operation that waits to be applied.
struct Job {
    txn: Arc<Txn>,
    kind: u8,
    body: Range<usize>,
    /// What must have been applied before (I1, I2).
    after: [Place; 3],
}

/// Operations with the bytes of their records.
#[derive(Default)]
struct Batch {
    jobs: Vec<Job>,
    bytes: Vec<u8>,
}

impl Batch {
    fn heap_bytes(&self) -> usize {
        self.jobs.capacity() * size_of::<Job>() + self.bytes.capacity()
    }
}

#[derive(Default)]
struct Queue {
    batches: VecDeque<(Batch, Reservation)>,
    is_closed: bool,
}

#[derive(Default)]
#[repr(align(128))]
struct Lane {
    queue: Mutex<Queue>,
    /// A batch has come, or none will.
    filled: Condvar,
    /// There is room for many batches again.
    emptied: Condvar,
    /// How many operations have been applied.
    done: AtomicU64,
    /// The lowest number that somebody waits for; none: the largest number.
    wanted: AtomicU64,
}

/// See the module.
pub(super) struct Lanes<'c> {
    core: &'c Core,
    lanes: Vec<Lane>,
    /// Nothing more is applied, and nobody waits: an operation has failed, or no more come.
    is_over: AtomicBool,
    failure: Mutex<Option<Error>>,
    /// With `moved`, for those who wait for operations.
    waiting: Mutex<()>,
    moved: Condvar,
}

impl<'c> Lanes<'c> {
    /// So many lanes, with nothing to do.
    pub(super) fn new(core: &'c Core, count: usize) -> Self {
        let lane = || Lane { wanted: AtomicU64::new(u64::MAX), ..Lane::default() };
        Self {
            core,
            lanes: std::iter::repeat_with(lane).take(count).collect(),
            is_over: AtomicBool::new(false),
            failure: Mutex::default(),
            waiting: Mutex::default(),
            moved: Condvar::new(),
        }
    }

    /// Applies what comes into a lane until it is closed: the whole of a thread's work.
    pub(super) fn serve(&self, lane_no: usize) {
        let _watch = Watch(self);
        let lane = self.lane(lane_no);
        let mut hand = Hand::default();
        while let Some((batch, _reserved)) = lane.next() {
            for job in &batch.jobs {
                if let Err(error) = self.apply(lane, job, &batch.bytes, &mut hand) {
                    self.end(Some(error));
                }
            }
        }
    }

    fn apply(&self, lane: &Lane, job: &Job, bytes: &[u8], hand: &mut Hand) -> Result<()> {
        job.after.iter().for_each(|&place| self.wait_for(place));
        if self.is_over.load(SeqCst) {
            return Ok(());
        }
        let body = bytes.get(job.body.clone()).unwrap_or_default();
        hand.apply(self.core, &job.txn, &LogRecord::decode(job.kind, body)?)?;
        let done = lane.done.load(SeqCst) + 1;
        lane.done.store(done, SeqCst);
        if lane.wanted.load(SeqCst) <= done {
            let _waiting = self.waiting.lock();
            // Those who wait for more say so again.
            lane.wanted.store(u64::MAX, SeqCst);
            self.moved.notify_all();
        }
        Ok(())
    }

    fn lane(&self, no: usize) -> &Lane {
        self.lanes.get(no).expect("there is a lane of that number")
    }

    /// Whether an operation has been applied.
    fn is_done(&self, place: Place) -> bool {
        place.no == 0 || self.lane(place.lane).done.load(SeqCst) >= place.no
    }

    /// Waits until an operation has been applied, or one has failed.
    fn wait_for(&self, place: Place) {
        if self.is_done(place) {
            return;
        }
        reach::mark("redo waited for another lane");
        let mut waiting = self.waiting.lock();
        while !self.is_over.load(SeqCst) {
            // In this order: whoever applies it sees the wish, or we see that it is done.
            self.lane(place.lane).wanted.fetch_min(place.no, SeqCst);
            if self.is_done(place) {
                return;
            }
            self.moved.wait(&mut waiting);
        }
    }

    fn batches_count(&self, lane: usize) -> usize {
        self.lane(lane).queue.lock().batches.len()
    }

    /// Waits until there is room for many batches in a lane, or an operation has failed.
    fn wait_for_room(&self, lane: usize) {
        let lane = self.lane(lane);
        let mut queue = lane.queue.lock();
        while queue.batches.len() > BATCHES_LOW && !self.is_over.load(SeqCst) {
            lane.emptied.wait(&mut queue);
        }
    }

    /// Lets everybody end; the first error is kept (I5).
    fn end(&self, error: Option<Error>) {
        if let Some(error) = error {
            self.failure.lock().get_or_insert(error);
        }
        self.is_over.store(true, SeqCst);
        drop(self.waiting.lock());
        self.moved.notify_all();
        for lane in &self.lanes {
            drop(lane.queue.lock());
            lane.emptied.notify_all();
        }
    }

    /// The first failure, if there is one.
    fn check(&self) -> Result<()> {
        if !self.is_over.load(SeqCst) {
            return Ok(());
        }
        let error = self.failure.lock().take();
        Err(error.unwrap_or_else(|| self.core.health.stop("a thread that repeats the log has ended")))
    }

    /// Nothing more comes, and who still waits need not.
    fn close(&self) {
        self.end(None);
        for lane in &self.lanes {
            lane.queue.lock().is_closed = true;
            lane.filled.notify_all();
        }
    }
}

/// Lets nobody wait for a thread that has panicked.
struct Watch<'l>(&'l Lanes<'l>);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end(None);
        }
    }
}

impl Lane {
    /// The next batch; waits for it. `None` when no more will come.
    fn next(&self) -> Option<(Batch, Reservation)> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(batch) = queue.batches.pop_front() {
                if queue.batches.len() == BATCHES_LOW {
                    self.emptied.notify_one();
                }
                return Some(batch);
            }
            if queue.is_closed {
                return None;
            }
            self.filled.wait(&mut queue);
        }
    }
}

/// Deals operations out to lanes; dropping it closes them.
pub(super) struct Dealer<'l> {
    lanes: &'l Lanes<'l>,
    /// What is not in the queues yet, and how many operations have been dealt, by lane.
    piles: Vec<Pile>,
    /// The last operation on the keys of each hash value.
    keys: Vec<Place>,
    #[expect(dead_code, reason = "held, not read")]
    keys_reserved: Reservation,
    /// The lane of the last operations on a table.
    homes: HashMap<TableId, usize>,
}

#[derive(Default)]
struct Pile {
    batch: Batch,
    dealt: u64,
}

impl<'l> Dealer<'l> {
    /// Deals to the first `count` lanes, at least one, which are being served.
    pub(super) fn new(lanes: &'l Lanes<'l>, count: usize) -> Self {
        let piles = std::iter::repeat_with(Pile::default).take(count).collect();
        let keys_reserved = lanes.core.pool.memory().reserve(MemoryUse::Redo, KEYS * size_of::<Place>());
        Self { lanes, piles, keys: vec![Place::default(); KEYS], keys_reserved, homes: HashMap::new() }
    }

    /// Adds an operation of a transaction whose last one is `last`; `record` are the kind and body of its record. Waits while
    /// its lane has too much to do.
    pub(super) fn deal(
        &mut self,
        txn: &Arc<Txn>,
        last: Place,
        front: &Front<'_>,
        record: (u8, &[u8]),
    ) -> Result<Place> {
        // It may change lanes as soon as nothing of it is left in one.
        let lane = if self.lanes.is_done(last) { self.choose(front.table) } else { last.lane };
        let pile = self.piles.get_mut(lane).expect("a lane that is served");
        pile.dealt += 1;
        let place = Place { lane, no: pile.dealt };
        let mut after = [last, Place::default(), Place::default()];
        for (after, key) in after.iter_mut().skip(1).zip(front.keys.iter().flatten()) {
            let touched = self.keys.get_mut(hash(front.table, key)).expect("one for each hash value");
            *after = std::mem::replace(touched, place);
        }
        if planted::is_on("redo: forget the order of a key's changes") {
            after = [last, Place::default(), Place::default()];
        }
        // Its own lane keeps the order by itself.
        after.iter_mut().filter(|after| after.lane == lane).for_each(|after| *after = Place::default());
        let Batch { jobs, bytes } = &mut pile.batch;
        let at = bytes.len();
        bytes.extend_from_slice(record.1);
        jobs.push(Job { txn: Arc::clone(txn), kind: record.0, body: at..bytes.len(), after });
        if jobs.len() >= BATCH_JOBS || bytes.len() >= BATCH_BYTES {
            self.send(lane)?;
        }
        Ok(place)
    }

    /// The lane for a transaction that goes on with a table.
    fn choose(&mut self, table: TableId) -> usize {
        let load = |lane: usize, pile: &Pile| pile.dealt - self.lanes.lane(lane).done.load(SeqCst);
        let loads = self.piles.iter().enumerate().map(|(lane, pile)| (load(lane, pile), lane));
        let (least, idlest) = loads.min().unwrap_or_default();
        let home = self.homes.entry(table).or_insert(idlest);
        if self.piles.get(*home).is_some_and(|pile| load(*home, pile) > least + SLACK_JOBS) {
            *home = idlest;
        }
        *home
    }

    /// Puts a batch into its queue; waits, with nothing left in hand, while that is full (I4), or what it had in hand has made another
    /// one so (I6).
    fn send(&mut self, lane: usize) -> Result<()> {
        self.put(lane);
        if self.lanes.batches_count(lane) >= BATCHES_MAX {
            self.put_all();
            self.lanes.wait_for_room(lane);
            for other in 0..self.piles.len() {
                if self.lanes.batches_count(other) > BATCHES_MAX {
                    self.lanes.wait_for_room(other);
                }
            }
        }
        self.lanes.check()
    }

    fn put(&mut self, lane: usize) {
        let Some(pile) = self.piles.get_mut(lane) else { return };
        if pile.batch.jobs.is_empty() {
            return;
        }
        let batch = std::mem::take(&mut pile.batch);
        let reserved = self.lanes.core.pool.memory().reserve(MemoryUse::Redo, batch.heap_bytes());
        let lane = self.lanes.lane(lane);
        let mut queue = lane.queue.lock();
        queue.batches.push_back((batch, reserved));
        debug_assert!(queue.batches.len() <= BATCHES_MAX + 1, "I6");
        drop(queue);
        lane.filled.notify_one();
    }

    fn put_all(&mut self) {
        (0..self.piles.len()).for_each(|lane| self.put(lane));
    }

    /// Whether an operation has been applied.
    pub(super) fn is_done(&self, place: Place) -> bool {
        self.lanes.is_done(place)
    }

    /// Waits until all that has been dealt has been applied.
    pub(super) fn drain(&mut self) -> Result<()> {
        self.put_all();
        for (lane, pile) in self.piles.iter().enumerate() {
            self.lanes.wait_for(Place { lane, no: pile.dealt });
        }
        self.lanes.check()
    }
}

impl Drop for Dealer<'_> {
    fn drop(&mut self) {
        self.lanes.close();
    }
}

fn hash(table: TableId, key: &[u8]) -> usize {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    hasher.hash_one((table.0, key)) as usize % KEYS
}

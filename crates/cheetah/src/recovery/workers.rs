//! Redo on several threads: the workers, each a queue with a thread that applies its operations in
//! order.
//!
//! The [`super::dispatcher`] hands out row operations. Those on different clustered keys may be
//! applied in any order: their entries in secondary indexes differ too, as these end with the
//! clustered key, and counters only add up. So only this order is kept:
//!
//! Invariants
//!   I1  Operations of one transaction are applied in the order of the log, so that its undo
//!       records get their numbers.
//!   I2  Operations on one clustered key of a table are applied in the order of the log.
//!   I3  Everything else (the end of a transaction, rolling back, changes of the catalog) is done
//!       by the thread that reads the log, in the order of the log, after what it rests on. See
//!       [`super::redo`].
//!   I4  Waits for an operation are for one that comes earlier in the log, and the dispatcher keeps
//!       no operation back while it waits. So waits form no cycle.
//!   I5  After the first failure nothing more is applied, and nobody waits any more.
//!   I6  A queue has at most [`BATCHES_MAX`] batches and one more. They count in the memory budget;
//!       the batch that the dispatcher fills for each worker does not. A batch has at most
//!       [`BATCH_BYTES`] and one record.
//! Locks     one mutex for each queue, one for those who wait; each alone, for a moment.

use super::applier::{Applier, Txn};
use crate::base::{reach, Error, Result};
use crate::format::log_record::LogRecord;
use crate::memory::{MemoryUse, Reservation};
use crate::table::shared::parts::Core;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::Arc;

/// Bytes after which no more operations are added to a batch.
pub(super) const BATCH_BYTES: usize = 32 << 10;
/// Batches that wait in a queue at most: some milliseconds of work.
pub(super) const BATCHES_MAX: usize = 16;
/// The dispatcher, once it waits, goes on when no more than these are left.
const BATCHES_LOW: usize = 8;

/// Which operation: the worker, and its number there.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct JobId {
    pub(super) worker: usize,
    /// From 1 on; 0 is before all.
    pub(super) no: u64,
}

/// Work that waits to be done.
pub(super) struct Job {
    pub(super) task: Task,
    pub(super) body: Range<usize>,
    /// The jobs that must have been applied before (I1, I2).
    pub(super) after: [JobId; 3],
}

/// The use of the bytes of a job.
pub(super) enum Task {
    /// An operation of a transaction, with its kind of record.
    Operation(Arc<Txn>, u8),
    /// A piece of what has been sorted.
    Sorted,
}

/// Operations with the bytes of their records.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) jobs: Vec<Job>,
    pub(super) bytes: Vec<u8>,
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
struct Worker {
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
pub(super) struct Workers<'c> {
    pub(super) core: &'c Core,
    workers: Vec<Worker>,
    /// Nothing more is applied, and nobody waits: an operation has failed, or no more come.
    is_over: AtomicBool,
    failure: Mutex<Option<Error>>,
    /// With `moved`, for those who wait for operations.
    waiting: Mutex<()>,
    moved: Condvar,
}

impl<'c> Workers<'c> {
    /// `count` workers, with nothing to do.
    pub(super) fn new(core: &'c Core, count: usize) -> Self {
        let new = || Worker { wanted: AtomicU64::new(u64::MAX), ..Worker::default() };
        Self {
            core,
            workers: std::iter::repeat_with(new).take(count).collect(),
            is_over: AtomicBool::new(false),
            failure: Mutex::default(),
            waiting: Mutex::default(),
            moved: Condvar::new(),
        }
    }

    /// Applies what comes into a worker's queue until that is closed: the whole of a thread's work.
    pub(super) fn serve(&self, worker_no: usize) {
        let _guard = PanicGuard(self);
        let worker = self.worker(worker_no);
        let mut applier = Applier::default();
        while let Some((batch, _reserved)) = worker.next() {
            for job in &batch.jobs {
                if let Err(error) = self.apply(worker, job, &batch.bytes, &mut applier) {
                    self.end(Some(error));
                }
            }
        }
    }

    fn apply(&self, worker: &Worker, job: &Job, bytes: &[u8], applier: &mut Applier) -> Result<()> {
        job.after.iter().for_each(|&job| self.wait_for(job));
        if self.is_over.load(SeqCst) {
            return Ok(());
        }
        let body = bytes.get(job.body.clone()).unwrap_or_default();
        match &job.task {
            Task::Operation(txn, kind) => {
                applier.apply(self.core, txn, &LogRecord::decode(*kind, body)?)?;
            }
            Task::Sorted => applier.apply_sorted(self.core, body)?,
        }
        let done = worker.done.load(SeqCst) + 1;
        worker.done.store(done, SeqCst);
        if worker.wanted.load(SeqCst) <= done {
            let _waiting = self.waiting.lock();
            // Those who wait for more say so again.
            worker.wanted.store(u64::MAX, SeqCst);
            self.moved.notify_all();
        }
        Ok(())
    }

    fn worker(&self, no: usize) -> &Worker {
        self.workers.get(no).expect("there is a worker of that number")
    }

    /// Whether an operation has been applied.
    pub(super) fn is_done(&self, job: JobId) -> bool {
        job.no == 0 || self.worker(job.worker).done.load(SeqCst) >= job.no
    }

    /// Waits until an operation has been applied, or one has failed.
    pub(super) fn wait_for(&self, job: JobId) {
        if self.is_done(job) {
            return;
        }
        reach::mark("redo waited for another worker");
        let mut waiting = self.waiting.lock();
        while !self.is_over.load(SeqCst) {
            // In this order: the worker that applies it sees the wish, or we see that it is done.
            self.worker(job.worker).wanted.fetch_min(job.no, SeqCst);
            if self.is_done(job) {
                return;
            }
            self.moved.wait(&mut waiting);
        }
    }

    pub(super) fn batches_count(&self, worker: usize) -> usize {
        self.worker(worker).queue.lock().batches.len()
    }

    /// Waits until there is room for many batches in a worker's queue, or an operation has failed.
    pub(super) fn wait_for_room(&self, worker: usize) {
        let worker = self.worker(worker);
        let mut queue = worker.queue.lock();
        while queue.batches.len() > BATCHES_LOW && !self.is_over.load(SeqCst) {
            worker.emptied.wait(&mut queue);
        }
    }

    /// Puts a batch into a worker's queue. Does not wait.
    pub(super) fn put(&self, worker: usize, batch: Batch) {
        let memory = self.core.pool.memory().reserve(MemoryUse::Redo, batch.heap_bytes());
        let worker = self.worker(worker);
        let mut queue = worker.queue.lock();
        queue.batches.push_back((batch, memory));
        debug_assert!(queue.batches.len() <= BATCHES_MAX + 1, "I6");
        drop(queue);
        worker.filled.notify_one();
    }

    /// How many operations a worker has applied.
    pub(super) fn done_count(&self, worker: usize) -> u64 {
        self.worker(worker).done.load(SeqCst)
    }

    /// Lets everybody end; the first error is kept (I5).
    fn end(&self, error: Option<Error>) {
        if let Some(error) = error {
            self.failure.lock().get_or_insert(error);
        }
        self.is_over.store(true, SeqCst);
        drop(self.waiting.lock());
        self.moved.notify_all();
        for worker in &self.workers {
            drop(worker.queue.lock());
            worker.emptied.notify_all();
        }
    }

    /// The first failure, if there is one.
    pub(super) fn check(&self) -> Result<()> {
        if !self.is_over.load(SeqCst) {
            return Ok(());
        }
        let error = self.failure.lock().take();
        Err(error.unwrap_or_else(|| self.core.health.stop("a thread that repeats the log has ended")))
    }

    /// Nothing more comes, and threads that still wait need not.
    pub(super) fn close(&self) {
        self.end(None);
        for worker in &self.workers {
            worker.queue.lock().is_closed = true;
            worker.filled.notify_all();
        }
    }
}

/// Lets nobody wait for a thread that has panicked.
struct PanicGuard<'l>(&'l Workers<'l>);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end(None);
        }
    }
}

impl Worker {
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

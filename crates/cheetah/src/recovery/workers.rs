//! Redo on several threads. A worker is a queue and a thread that applies its operations in order.
//!
//! The [`super::dispatcher`] assigns row operations to workers. Operations on different clustered
//! keys may be applied in any order: their secondary entries differ too, because these end with the
//! clustered key, and counters may be added to in any order. So only the order in I1 to I3 is kept.
//!
//! Invariants
//!   I1  Operations of one transaction are applied in the order of the log, so that its undo
//!       records get the same numbers as in the first run.
//!   I2  Operations on one clustered key of a table are applied in the order of the log.
//!   I3  The thread that reads the log applies all other records (the end of a transaction, a
//!       rollback step, a change of the catalog) in the order of the log. It applies each record
//!       after the records that it depends on. See [`super::redo`].
//!   I4  An operation waits only for operations earlier in the log, and before the dispatcher
//!       waits, it puts all operations that it holds into their queues. So waits form no cycle.
//!   I5  After the first failure no more operations are applied, and all waits end.
//!   I6  A queue holds at most [`BATCHES_MAX`] + 1 batches, which count in the memory budget. The
//!       batch that the dispatcher is filling for each worker does not count. The records of a
//!       batch take less than [`BATCH_BYTES`] without the last one.
//! Locks     a mutex for each queue, and one for waiting threads. A thread holds at most one of
//!           them, and only briefly.

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

/// A batch with at least this number of bytes is full.
pub(super) const BATCH_BYTES: usize = 32 << 10;
/// The number of batches at which a queue is full. They are a few milliseconds of work.
pub(super) const BATCHES_MAX: usize = 16;
/// A dispatcher that waits for a full queue continues once it has at most this number of batches.
const BATCHES_LOW: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct JobId {
    pub(super) worker: usize,
    /// Numbers start at 1. Zero means no job.
    pub(super) no: u64,
}

pub(super) struct Job {
    pub(super) task: Task,
    pub(super) body: Range<usize>,
    /// The jobs that must be applied first (I1, I2).
    pub(super) after: [JobId; 3],
}

/// The kind of work, which determines how the bytes of the job are decoded.
pub(super) enum Task {
    /// A log record of a transaction, with the kind of the record.
    Operation(Arc<Txn>, u8),
    Sorted,
}

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
    /// Notified when a batch was added, and when no more batches will be added.
    filled: Condvar,
    /// Notified when the queue has only [`BATCHES_LOW`] batches left.
    emptied: Condvar,
    done: AtomicU64,
    /// The lowest job number that a thread waits for, or `u64::MAX` if no thread waits.
    wanted: AtomicU64,
}

pub(super) struct Workers<'c> {
    pub(super) core: &'c Core,
    workers: Vec<Worker>,
    /// Set once an operation has failed or all are done: no more are applied, and no thread waits.
    is_over: AtomicBool,
    failure: Mutex<Option<Error>>,
    /// Used with `moved` by threads that wait for operations.
    waiting: Mutex<()>,
    moved: Condvar,
}

impl<'c> Workers<'c> {
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

    /// The main function of a worker's thread: applies operations until the queue is closed.
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
            // Threads that wait for higher numbers store them again.
            worker.wanted.store(u64::MAX, SeqCst);
            self.moved.notify_all();
        }
        Ok(())
    }

    fn worker(&self, no: usize) -> &Worker {
        self.workers.get(no).expect("a worker with that number exists")
    }

    pub(super) fn is_done(&self, job: JobId) -> bool {
        job.no == 0 || self.worker(job.worker).done.load(SeqCst) >= job.no
    }

    /// Waits until a job was applied or any operation has failed.
    pub(super) fn wait_for(&self, job: JobId) {
        if self.is_done(job) {
            return;
        }
        reach::mark("redo waited for another worker");
        let mut waiting = self.waiting.lock();
        while !self.is_over.load(SeqCst) {
            // The order matters: either the worker sees the new `wanted`, or this thread sees the
            // operation done.
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

    /// Waits until a worker's queue has at most [`BATCHES_LOW`] batches or an operation has failed.
    pub(super) fn wait_for_room(&self, worker: usize) {
        let worker = self.worker(worker);
        let mut queue = worker.queue.lock();
        while queue.batches.len() > BATCHES_LOW && !self.is_over.load(SeqCst) {
            worker.emptied.wait(&mut queue);
        }
    }

    pub(super) fn put(&self, worker: usize, batch: Batch) {
        let memory = self.core.pool.memory().reserve(MemoryUse::Redo, batch.heap_bytes());
        let worker = self.worker(worker);
        let mut queue = worker.queue.lock();
        queue.batches.push_back((batch, memory));
        debug_assert!(queue.batches.len() <= BATCHES_MAX + 1, "I6: a queue has few batches");
        drop(queue);
        worker.filled.notify_one();
    }

    pub(super) fn done_count(&self, worker: usize) -> u64 {
        self.worker(worker).done.load(SeqCst)
    }

    /// Ends all waits, and keeps the first error (I5).
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

    pub(super) fn check(&self) -> Result<()> {
        if !self.is_over.load(SeqCst) {
            return Ok(());
        }
        let error = self.failure.lock().take();
        Err(error.unwrap_or_else(|| self.core.health.stop("a redo thread has ended")))
    }

    /// Closes the queues, to which no more batches will be added, and ends all waits.
    pub(super) fn close(&self) {
        self.end(None);
        for worker in &self.workers {
            worker.queue.lock().is_closed = true;
            worker.filled.notify_all();
        }
    }
}

/// Ends all waits if a thread panics.
struct PanicGuard<'l>(&'l Workers<'l>);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end(None);
        }
    }
}

impl Worker {
    /// Waits for the next batch; `None` if the queue is empty and closed.
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

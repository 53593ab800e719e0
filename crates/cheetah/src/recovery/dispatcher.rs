//! Assigns row operations to the workers, so that dependent operations stay in order.
//!
//! The invariants are in [`super::workers`].

use super::applier::Txn;
use super::workers::{Batch, Job, JobId, Task, Workers, BATCHES_MAX, BATCH_BYTES};
use crate::base::hash::{hash_key, shard_index, FastMap};
use crate::base::{sound, Result, TableId};
use crate::format::log_record::Front;
use crate::memory::{MemoryUse, Reservation};
use std::sync::Arc;

const BATCH_JOBS: usize = 64;
/// A table's operations stay with the worker that recently used its pages, unless it has over
/// `SLACK_JOBS` more jobs to do than another worker.
const SLACK_JOBS: u64 = 64;
/// The hash values that distinguish keys, per operation and at most: powers of two. A collision
/// only makes an operation wait unnecessarily.
const KEYS_PER_OPERATION: usize = 4;
const KEYS_MAX: usize = 1 << 16;

pub(super) struct Dispatcher<'l> {
    workers: &'l Workers<'l>,
    /// Each worker's batch that is not in its queue yet, and the number of its operations so far.
    pending: Vec<Pending>,
    /// The last operation on the keys of each hash value. The length is a power of two.
    keys: Vec<JobId>,
    #[expect(dead_code, reason = "held, not read")]
    keys_reserved: Reservation,
    /// The worker of the last operations on each table.
    homes: FastMap<TableId, usize>,
}

#[derive(Default)]
struct Pending {
    batch: Batch,
    dispatched: u64,
}

impl<'l> Dispatcher<'l> {
    /// Creates a dispatcher for about `operations` operations. It uses the first `count` workers,
    /// at least one, whose threads run.
    pub(super) fn new(workers: &'l Workers<'l>, count: usize, operations: usize) -> Self {
        let pending = std::iter::repeat_with(Pending::default).take(count).collect();
        let keys = operations.saturating_mul(KEYS_PER_OPERATION).min(KEYS_MAX).next_power_of_two();
        let keys_bytes = keys * size_of::<JobId>();
        let keys_reserved = workers.core.pool.memory().reserve(MemoryUse::Redo, keys_bytes);
        Self {
            workers,
            pending,
            keys: vec![JobId::default(); keys],
            keys_reserved,
            homes: FastMap::default(),
        }
    }

    /// Dispatches an operation of a transaction whose previous operation is `last`. `record` holds
    /// the kind and the body. Waits while the queue of the worker is full.
    pub(super) fn dispatch(
        &mut self,
        txn: &Arc<Txn>,
        last: JobId,
        front: &Front<'_>,
        record: (u8, &[u8]),
    ) -> Result<JobId> {
        // A transaction may change workers once its previous operations were applied.
        let worker = if self.workers.is_done(last) { self.choose(front.table) } else { last.worker };
        let pending = self.pending.get_mut(worker).expect("a worker that is served");
        pending.dispatched += 1;
        let job = JobId { worker, no: pending.dispatched };
        let mut after = [last, JobId::default(), JobId::default()];
        for (after, key) in after.iter_mut().skip(1).zip(front.keys.iter().flatten()) {
            let at = shard_index(hash_key(front.table.0, key), self.keys.len());
            let touched = self.keys.get_mut(at).expect("one for each hash value");
            *after = std::mem::replace(touched, job);
        }
        if !sound!(true, "redo: forget the order of a key's changes") {
            after = [last, JobId::default(), JobId::default()];
        }
        // A worker keeps the order of its own operations anyway.
        after.iter_mut().filter(|after| after.worker == worker).for_each(|after| *after = JobId::default());
        let Batch { jobs, bytes } = &mut pending.batch;
        let at = bytes.len();
        bytes.extend_from_slice(record.1);
        let task = Task::Operation(Arc::clone(txn), record.0);
        jobs.push(Job { task, body: at..bytes.len(), after });
        if jobs.len() >= BATCH_JOBS || bytes.len() >= BATCH_BYTES {
            self.send(worker)?;
        }
        Ok(job)
    }

    /// Dispatches a piece of sorted changes to the worker with the fewest jobs: no two pieces
    /// change the same record, so their order does not matter. Waits like
    /// [`dispatch`](Self::dispatch).
    pub(super) fn dispatch_sorted(&mut self, work: &[u8]) -> Result<()> {
        let (_, worker) = self.idlest();
        let pending = self.pending.get_mut(worker).expect("a worker that is served");
        pending.dispatched += 1;
        let Batch { jobs, bytes } = &mut pending.batch;
        let at = bytes.len();
        bytes.extend_from_slice(work);
        jobs.push(Job { task: Task::Sorted, body: at..bytes.len(), after: Default::default() });
        self.send(worker)
    }

    /// Returns the worker for an operation on a table, of a transaction that may change workers.
    fn choose(&mut self, table: TableId) -> usize {
        let (least, idlest) = self.idlest();
        let home = *self.homes.entry(table).or_insert(idlest);
        if self.load(home) <= least + SLACK_JOBS {
            return home;
        }
        self.homes.insert(table, idlest);
        idlest
    }

    fn idlest(&self) -> (u64, usize) {
        (0..self.pending.len()).map(|worker| (self.load(worker), worker)).min().unwrap_or_default()
    }

    fn load(&self, worker: usize) -> u64 {
        let dispatched = self.pending.get(worker).map_or(0, |pending| pending.dispatched);
        dispatched - self.workers.done_count(worker)
    }

    /// Puts a worker's batch into its queue. If that fills the queue, puts all other batches into
    /// their queues too (I4), and then waits until no queue exceeds its limit (I6).
    fn send(&mut self, worker: usize) -> Result<()> {
        self.put(worker);
        if self.workers.batches_count(worker) >= BATCHES_MAX {
            self.put_all();
            self.workers.wait_for_room(worker);
            for other in 0..self.pending.len() {
                if self.workers.batches_count(other) > BATCHES_MAX {
                    self.workers.wait_for_room(other);
                }
            }
        }
        self.workers.check()
    }

    fn put(&mut self, worker: usize) {
        let Some(pending) = self.pending.get_mut(worker) else { return };
        if pending.batch.jobs.is_empty() {
            return;
        }
        self.workers.put(worker, std::mem::take(&mut pending.batch));
    }

    fn put_all(&mut self) {
        (0..self.pending.len()).for_each(|worker| self.put(worker));
    }

    pub(super) fn is_done(&self, job: JobId) -> bool {
        self.workers.is_done(job)
    }

    pub(super) fn drain(&mut self) -> Result<()> {
        self.put_all();
        for (worker, pending) in self.pending.iter().enumerate() {
            self.workers.wait_for(JobId { worker, no: pending.dispatched });
        }
        self.workers.check()
    }
}

impl Drop for Dispatcher<'_> {
    fn drop(&mut self) {
        self.workers.close();
    }
}

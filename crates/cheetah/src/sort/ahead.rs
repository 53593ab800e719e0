//! Sorted records that a thread merges while the caller uses the previous ones.
//!
//! Invariants
//!   A1  The thread ends before the drop of this value returns, and before the end of the records
//!       or an error is returned.

use super::batch::{Batch, Position};
use super::Merge;
use crate::base::{reach, Error, Result};
use std::sync::mpsc::{channel, sync_channel, Receiver, Sender, SyncSender};
use std::thread::JoinHandle;

/// The maximum number of batches that wait for the caller.
const WAITING_MAX: usize = 2;

#[derive(Debug)]
pub(super) struct Ahead {
    batches: Option<Receiver<Batch>>,
    /// Returns used batches to the thread.
    empty: Sender<Batch>,
    thread: Option<JoinHandle<Result<()>>>,
    batch: Batch,
    /// The position of the current record, or `None` before the first record.
    position: Option<Position>,
}

impl Ahead {
    /// Starts a thread that merges all records of `merge`.
    pub(super) fn of(merge: Merge, batch_bytes: usize) -> Result<Self> {
        reach::mark("a thread merges ahead");
        let ((sender, batches), (empty, given_back)) = (sync_channel(WAITING_MAX), channel());
        let thread = std::thread::Builder::new().name("cheetah-sort".into());
        let begun = thread.spawn(move || merge_all(merge, batch_bytes, &sender, &given_back));
        let thread = begun.map_err(|error| Error::io("start", "a thread that merges", error))?;
        let (batches, thread, batch) = (Some(batches), Some(thread), Batch::default());
        Ok(Self { batches, empty, thread, batch, position: None })
    }

    /// Moves to the next record, for which it may wait. Returns `false` at the end.
    pub(super) fn advance(&mut self) -> Result<bool> {
        let position = self.position.map_or(Position::default(), |position| self.batch.behind(position));
        self.position = Some(position);
        if self.batch.record(position).is_some() {
            return Ok(true);
        }
        let next = self.batches.as_ref().and_then(|batches| batches.recv().ok());
        self.position = next.is_some().then(Position::default);
        let done = std::mem::replace(&mut self.batch, next.unwrap_or_default());
        // This fails if the thread has ended.
        let _ = self.empty.send(done);
        match self.batch.is_empty() {
            false => Ok(true),
            true => self.end().map(|()| false),
        }
    }

    /// Key and value of the current record.
    pub(super) fn record(&self) -> (&[u8], &[u8]) {
        let found = self.position.and_then(|position| self.batch.record(position));
        found.map_or((&[], &[]), |(_, key, value)| (key, value))
    }

    fn end(&mut self) -> Result<()> {
        // This makes the thread's next send fail, which ends the thread.
        self.batches = None;
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            // The result is no longer needed.
            let _ = thread.join();
        }
    }
}

/// Sends all records, until the receiver is dropped.
fn merge_all(
    mut merge: Merge,
    batch_bytes: usize,
    to: &SyncSender<Batch>,
    empty: &Receiver<Batch>,
) -> Result<()> {
    loop {
        let mut batch = empty.try_recv().unwrap_or_default();
        batch.clear();
        while batch.bytes() < batch_bytes && merge.advance()? {
            let (key, value) = merge.record();
            batch.push(0, &[key], &[value]);
        }
        if batch.is_empty() || to.send(batch).is_err() {
            return Ok(());
        }
    }
}

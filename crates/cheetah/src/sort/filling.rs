//! Sorters that a thread fills while the caller produces the next records.
//!
//! Invariants
//!   F1  Each sorter gets its records in the order in which they were pushed.
//!   F2  The thread ends before the drop of this value returns.
//!   F3  The thread starts only once there are enough records. It ends when the memory is full,
//!       because from then on sorters have their own threads that write.
//! Blocking  [`Filling::push`] waits while two batches are queued.
//! Errors    The errors of the sorters, which a later call returns. After an error no record may be
//!           pushed.

use super::batch::{Batch, Position};
use super::Sorter;
use crate::base::{reach, statement_threads, Error, Result};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{channel, sync_channel, Receiver, Sender, SyncSender};
use std::sync::Arc;
use std::thread::JoinHandle;

/// The maximum number of batches that wait for the thread.
const WAITING_MAX: usize = 2;
/// The number of bytes of records after which the thread starts.
const THREAD_BYTES: usize = 1 << 20;

const AFTER_ERROR: &str = "nothing is pushed after an error";

/// See the module.
#[derive(Debug)]
pub struct Filling {
    batch: Batch,
    batch_bytes: usize,
    /// The number of bytes until the thread starts.
    bytes_left: usize,
    filler: Filler,
}

#[derive(Debug)]
enum Filler {
    /// The caller fills the sorters, until there are enough records.
    First(Vec<Sorter>),
    Thread(Thread),
    /// The caller fills the sorters to the end.
    Own(Vec<Sorter>),
    /// There was an error.
    None,
}

#[derive(Debug)]
struct Thread {
    sender: Option<SyncSender<Batch>>,
    /// Used batches that the thread returns.
    empty: Receiver<Batch>,
    has_spilled: Arc<AtomicBool>,
    handle: Option<JoinHandle<Result<Vec<Sorter>>>>,
}

impl Filling {
    /// Creates a filling of `sorters`.
    pub fn new(sorters: Vec<Sorter>) -> Self {
        let batch_bytes = sorters.first().map_or(1, Sorter::batch_bytes);
        let filler = if statement_threads() > 1 { Filler::First(sorters) } else { Filler::Own(sorters) };
        Self { batch: Batch::default(), batch_bytes, bytes_left: THREAD_BYTES, filler }
    }

    #[cfg(test)]
    pub(super) fn with_thread_from(mut self, bytes: usize) -> Self {
        self.bytes_left = bytes;
        self
    }

    /// Adds a record to the sorter with index `no`, which must exist. Key and value are passed in
    /// parts.
    pub fn push(&mut self, no: usize, key: &[&[u8]], value: &[&[u8]]) -> Result<()> {
        if let Filler::Own(sorters) = &mut self.filler {
            return sorter(sorters, no).push(key, value);
        }
        self.batch.push(no, key, value);
        match self.batch.bytes() < self.batch_bytes {
            true => Ok(()),
            false => self.hand_over(),
        }
    }

    /// Returns the sorters with all their records.
    pub fn finish(mut self) -> Result<Vec<Sorter>> {
        self.hand_over()?;
        match std::mem::replace(&mut self.filler, Filler::None) {
            Filler::First(sorters) | Filler::Own(sorters) => Ok(sorters),
            Filler::Thread(mut thread) => thread.end(),
            Filler::None => unreachable!("{AFTER_ERROR}"),
        }
    }

    fn hand_over(&mut self) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        self.bytes_left = self.bytes_left.saturating_sub(batch.bytes());
        self.filler = match std::mem::replace(&mut self.filler, Filler::None) {
            Filler::First(mut sorters) if self.bytes_left > 0 => {
                fill(&mut sorters, &batch)?;
                Filler::First(sorters)
            }
            Filler::First(sorters) => Filler::Thread(Thread::begin(sorters)?.send(batch)?),
            Filler::Own(sorters) => Filler::Own(sorters),
            Filler::Thread(mut thread) if thread.has_spilled.load(Relaxed) => {
                let mut sorters = thread.end()?;
                fill(&mut sorters, &batch)?;
                Filler::Own(sorters)
            }
            Filler::Thread(thread) => Filler::Thread(thread.send(batch)?),
            Filler::None => unreachable!("{AFTER_ERROR}"),
        };
        if let Filler::Thread(thread) = &self.filler {
            self.batch = thread.empty.try_recv().unwrap_or_default();
        }
        Ok(())
    }
}

impl Thread {
    fn begin(sorters: Vec<Sorter>) -> Result<Self> {
        reach::mark("a thread fills sorters");
        let ((sender, batches), (gives_back, empty)) = (sync_channel(WAITING_MAX), channel());
        let thread = std::thread::Builder::new().name("cheetah-sort".into());
        let has_spilled = Arc::<AtomicBool>::default();
        let notes = Arc::clone(&has_spilled);
        let begun = thread.spawn(move || fill_all(sorters, &batches, &gives_back, &notes));
        let handle = begun.map_err(|error| Error::io("start", "a thread that fills sorters", error))?;
        Ok(Self { sender: Some(sender), empty, has_spilled, handle: Some(handle) })
    }

    /// Waits until there is space for the batch.
    fn send(mut self, batch: Batch) -> Result<Self> {
        match self.sender.as_ref().map(|sender| sender.send(batch)) {
            Some(Ok(())) => Ok(self),
            _ => Err(self.end().expect_err("a thread ends before its time only with an error")),
        }
    }

    fn end(&mut self) -> Result<Vec<Sorter>> {
        self.sender = None;
        let handle = self.handle.take().expect("it ends once");
        handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(handle) = self.handle.take() {
            // The result is no longer needed.
            let _ = handle.join();
        }
    }
}

fn fill_all(
    mut sorters: Vec<Sorter>,
    batches: &Receiver<Batch>,
    empty: &Sender<Batch>,
    has_spilled: &AtomicBool,
) -> Result<Vec<Sorter>> {
    while let Ok(mut batch) = batches.recv() {
        fill(&mut sorters, &batch)?;
        if sorters.iter().any(|sorter| sorter.spilled_bytes() > 0) {
            has_spilled.store(true, Relaxed);
        }
        batch.clear();
        // This fails if the caller has dropped its end of the channel.
        let _ = empty.send(batch);
    }
    Ok(sorters)
}

fn fill(sorters: &mut [Sorter], batch: &Batch) -> Result<()> {
    let mut position = Position::default();
    while let Some((no, key, value)) = batch.record(position) {
        sorter(sorters, no).push(&[key], &[value])?;
        position = batch.behind(position);
    }
    Ok(())
}

fn sorter(sorters: &mut [Sorter], no: usize) -> &mut Sorter {
    sorters.get_mut(no).expect("the caller names existing sorters")
}

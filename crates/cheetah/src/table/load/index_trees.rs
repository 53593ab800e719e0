//! Builds secondary index trees from their sorted entries, several at once if they are large.
//!
//! Invariants
//!   L6  The result is the same as for building one tree after the other: the error of the first
//!       index that has one, with its row. So a failed index stops only the indexes after it.
//!   L7  Helper threads end before the call does. Only the caller's own thread calls its `watch`.

use super::{damaged, refuse, Records, Refused, Watch};
use crate::base::{statement_threads, Error, Result};
use crate::format::page::RecordRef;
use crate::format::varint;
use crate::pool::LentTree;
use crate::sort::{Merge, Sorter};
use crate::table::definitions::handle::Table;
use crate::table::history::visible::read_row;
use crate::table::shared::parts::Core;
use crate::tree::Changed;
use crate::txn::ReadView;
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;

/// Helper threads are used from this many bytes of sorted entries.
const PARALLEL_BYTES_MIN: u64 = 8 << 20;
/// Interval between checks for an interrupt while waiting for helpers.
const WAIT_SLICE: Duration = Duration::from_millis(50);

/// A table with empty trees. Its rows are those that `view` sees, or else the newest ones.
pub(in crate::table) struct Built<'a> {
    pub(in crate::table) table: &'a Arc<Table>,
    pub(in crate::table) view: Option<&'a ReadView>,
}

/// See [`Building`](super::Building). `watch` is called with the number of inserted entries, and 0.
pub(in crate::table) fn build_indexes(
    core: &Core,
    built: &Built<'_>,
    sorters: Vec<(usize, Sorter)>,
    refused: &mut Option<Refused>,
    watch: &Watch<'_>,
) -> Result<()> {
    let bytes: u64 = sorters.iter().map(|(_, sorter)| sorter.bytes()).sum();
    let threads = if bytes < PARALLEL_BYTES_MIN { 1 } else { statement_threads().min(sorters.len()) };
    let shared = Shared {
        core,
        built,
        merges_ahead: bytes >= PARALLEL_BYTES_MIN && 2 * threads <= statement_threads(),
        waiting: Mutex::new(sorters.into()),
        failures: Mutex::default(),
        first_failed: AtomicUsize::new(usize::MAX),
        is_over: AtomicBool::new(false),
        done: AtomicU64::new(0),
        helpers: Mutex::new(0),
        helper_ended: Condvar::new(),
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            *shared.helpers.lock() += 1;
            let thread = std::thread::Builder::new().name("cheetah-build".into());
            let helper = Helper(&shared);
            // Without the thread, the others do its work.
            let _ = thread.spawn_scoped(scope, move || helper.help());
        }
        shared.work(watch);
        shared.wait_for_helpers(watch);
    });
    match shared.failures.into_inner().into_iter().next() {
        None => Ok(()),
        Some((_, (error, row))) => {
            *refused = row;
            Err(error)
        }
    }
}

struct Shared<'a> {
    core: &'a Core,
    built: &'a Built<'a>,
    /// The statement may use two threads per index, one of them for merging.
    merges_ahead: bool,
    /// Indexes not started yet, in order.
    waiting: Mutex<VecDeque<(usize, Sorter)>>,
    failures: Mutex<BTreeMap<usize, (Error, Option<Refused>)>>,
    first_failed: AtomicUsize,
    is_over: AtomicBool,
    done: AtomicU64,
    helpers: Mutex<usize>,
    helper_ended: Condvar,
}

/// Counts as a helper while it exists, even if its thread panics or was never started.
struct Helper<'s, 'a>(&'s Shared<'a>);

impl Helper<'_, '_> {
    fn help(self) {
        self.0.work(&|_, _| false);
    }
}

impl Drop for Helper<'_, '_> {
    fn drop(&mut self) {
        *self.0.helpers.lock() -= 1;
        self.0.helper_ended.notify_all();
    }
}

impl Shared<'_> {
    fn work(&self, watch: &Watch<'_>) {
        loop {
            let Some((index_no, sorter)) = self.waiting.lock().pop_front() else { return };
            let mut refused = None;
            if let Err(error) = self.build(index_no, sorter, &mut refused, watch) {
                self.first_failed.fetch_min(index_no, Relaxed);
                self.failures.lock().insert(index_no, (error, refused));
            }
        }
    }

    fn build(
        &self,
        index_no: usize,
        sorter: Sorter,
        refused: &mut Option<Refused>,
        watch: &Watch<'_>,
    ) -> Result<()> {
        // Progress already counted.
        let told = AtomicU64::new(0);
        let watch = |seen: u64, _| {
            self.done.fetch_add(seen - told.swap(seen, Relaxed), Relaxed);
            self.asks_to_end(watch) || self.first_failed.load(Relaxed) < index_no
        };
        if watch(0, 0) {
            return Err(Error::Interrupted);
        }
        let sorted = if self.merges_ahead { sorter.finish_ahead() } else { sorter.finish() };
        build_index(self.core, self.built, (index_no, sorted?), refused, &watch)
    }

    fn asks_to_end(&self, watch: &Watch<'_>) -> bool {
        if watch(self.done.load(Relaxed), 0) {
            self.is_over.store(true, Relaxed);
        }
        self.is_over.load(Relaxed)
    }

    fn wait_for_helpers(&self, watch: &Watch<'_>) {
        loop {
            let mut helpers = self.helpers.lock();
            if *helpers == 0 {
                return;
            }
            self.helper_ended.wait_for(&mut helpers, WAIT_SLICE);
            drop(helpers);
            self.asks_to_end(watch);
        }
    }
}

fn build_index(
    core: &Core,
    &Built { table, view }: &Built<'_>,
    (index_no, sorted): (usize, Merge),
    refused: &mut Option<Refused>,
    watch: &Watch<'_>,
) -> Result<()> {
    let mut entries = Records::new(core, sorted, watch);
    let tree = Arc::clone(table.tree(index_no)?);
    let is_unique = table.indexes().get(index_no).is_some_and(|index| index.unique);
    let _lent = LentTree::lend(&core.pool, tree.def().id, Arc::clone(table) as _);
    let mut builder = tree.builder();
    // The length of the caller's part of the previous entry's key, if that must be unique.
    let mut last: Option<usize> = None;
    while entries.advance()? {
        let (key, value) = entries.record();
        let Some((&check_unique, payload)) = value.split_first() else { return Err(damaged()) };
        let clustered_len = varint::get(payload).map_or(0, |(len, _)| len as usize);
        let own_len = key.len().checked_sub(clustered_len).ok_or_else(damaged)?;
        let checked = is_unique && check_unique != 0;
        if let Some(last_len) = last.filter(|_| checked) {
            let last_key = builder.last_key();
            if last_key.get(..last_len) == key.get(..own_len) {
                let existing = last_key.get(last_len..).unwrap_or_default();
                let clustered = key.get(own_len..).unwrap_or_default();
                // The row is already in the clustered tree.
                let mut row = Vec::new();
                if !read_row(core, table, clustered, view, &mut row)? {
                    return Err(damaged());
                }
                return refuse(core, table, index_no, existing, (clustered, &row), refused);
            }
        }
        last = checked.then_some(own_len);
        if builder.push(key, RecordRef::frozen(payload))? == Changed::Exists {
            return Err(damaged());
        }
    }
    builder.finish().map(drop)
}

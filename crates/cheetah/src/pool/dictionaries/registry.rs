//! The dictionaries in memory, the queue of background work, and the trees that are lent.
//! Invariants D1 to D5 are at the head of `dictionaries`.

use super::cache::Cache;
use crate::base::{PageId, TreeId};
use crate::format::image::{Dictionary, Primer};
use crate::memory::MemoryBudget;
use parking_lot::{Mutex, MutexGuard};
use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// The length from which on no more primers are added to the queue. The next writer requests the
/// primer again.
const LOADS_DUE_MAX: usize = 64;
/// The number of locks for loading and trials. Threads that miss a dictionary load it under the
/// lock of its page number.
const SHARDS_COUNT: usize = 16;

/// The dictionaries in memory, and the queue of background work.
#[derive(Debug)]
pub(in crate::pool) struct Dictionaries {
    pub(super) to_read: Cache<Dictionary>,
    pub(super) to_write: Cache<Primer>,
    due: Mutex<VecDeque<Due>>,
    loading: [Mutex<()>; SHARDS_COUNT],
    trials: Trials,
    /// Held while a dictionary is made, from before its page exists until it is listed.
    making: Mutex<()>,
}

/// Work for a background thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// The tree has grown, so a trial should be made.
    Trial(TreeId),
    /// Pages are encoded without this dictionary because it is not in memory (D4).
    Load(TreeId, PageId),
}

/// The next trial is due when the tree has grown by this factor, or has doubled if it has no
/// dictionary.
pub(super) const GROWTH: u64 = 4;

/// The trials in progress, and the trees for which background threads may make trials.
#[derive(Default, Debug)]
struct Trials {
    /// Held during a trial of a tree, so that a tree does not receive two dictionaries for the same
    /// reason.
    one: [Mutex<()>; SHARDS_COUNT],
    lent: Mutex<HashMap<TreeId, Arc<Lent>>>,
}

/// The guard that keeps a lent tree from being dropped, or `None` after the loan has ended. The
/// mutex is locked while a background thread makes a trial.
pub(in crate::pool) type Lent = Mutex<Option<Arc<dyn Any + Send + Sync>>>;

impl Dictionaries {
    pub(in crate::pool) fn new(memory: &Arc<MemoryBudget>) -> Self {
        Self {
            to_read: Cache::new(memory),
            to_write: Cache::new(memory),
            due: Mutex::default(),
            loading: Default::default(),
            trials: Trials::default(),
            making: Mutex::default(),
        }
    }

    pub(super) fn ask(&self, due: Due) {
        let mut all = self.due.lock();
        let is_dropped = matches!(due, Due::Load(..)) && (all.len() >= LOADS_DUE_MAX || all.contains(&due));
        match due {
            _ if is_dropped => {}
            // Trials are first in the queue, because pages wait for them.
            Due::Trial(_) => all.push_front(due),
            Due::Load(..) => all.push_back(due),
        }
    }

    /// Takes the next work from the queue.
    pub(super) fn take_due(&self) -> Option<Due> {
        self.due.lock().pop_front()
    }

    /// Lets one thread at a time load a dictionary.
    pub(super) fn load(&self, page: PageId) -> MutexGuard<'_, ()> {
        self.loading[page.0 as usize % SHARDS_COUNT].lock()
    }

    /// Blocks changes to lists and pages of dictionaries.
    pub(super) fn make(&self) -> MutexGuard<'_, ()> {
        self.making.lock()
    }

    /// The lock for trials of the tree. A few other trees share it.
    pub(super) fn trial_of(&self, tree: TreeId) -> &Mutex<()> {
        &self.trials.one[tree.0 as usize % SHARDS_COUNT]
    }

    /// Lends a tree. A tree is lent only once at a time.
    pub(super) fn lend(&self, tree: TreeId, lent: &Arc<Lent>) {
        let before = self.trials.lent.lock().insert(tree, Arc::clone(lent));
        debug_assert!(before.is_none(), "a tree is built by one");
    }

    /// The guard of a lent tree.
    pub(super) fn lent(&self, tree: TreeId) -> Option<Arc<Lent>> {
        self.trials.lent.lock().get(&tree).cloned()
    }

    /// Ends a loan.
    pub(super) fn return_lent(&self, ended: &Arc<Lent>) {
        self.trials.lent.lock().retain(|_, lent| !Arc::ptr_eq(lent, ended));
    }
}

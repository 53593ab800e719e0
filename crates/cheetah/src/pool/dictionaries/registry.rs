//! The dictionaries in memory, the work that is due for others, and the trees that are lent.
//! Invariants: D1 to D5 at the head of the room.

use super::cache::Cache;
use crate::base::{PageId, TreeId};
use crate::format::image::{Dictionary, Primer};
use crate::memory::MemoryBudget;
use parking_lot::{Mutex, MutexGuard};
use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Primers to be loaded are not noted when this number is waiting: they are asked for again.
const LOADS_DUE_MAX: usize = 64;
/// Those who miss a dictionary prepare it one at a time, by its page.
const SHARDS_COUNT: usize = 16;

/// The dictionaries in memory, and the work that is due for others.
#[derive(Debug)]
pub(in crate::pool) struct Dictionaries {
    pub(super) to_read: Cache<Dictionary>,
    pub(super) to_write: Cache<Primer>,
    due: Mutex<VecDeque<Due>>,
    loading: [Mutex<()>; SHARDS_COUNT],
    trials: Trials,
    /// Held from before a dictionary's page is there until it is listed.
    making: Mutex<()>,
}

/// Work for the background.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// The tree has grown: try whether a dictionary pays.
    Trial(TreeId),
    /// Pages are encoded without this dictionary because it is not in memory (D4).
    Load(TreeId, PageId),
}

/// Another one is tried when the tree has grown by this factor; while it has none, when it has
/// doubled.
pub(super) const GROWTH: u64 = 4;

/// Trials that are being made, and for whom the background may make them.
#[derive(Default, Debug)]
struct Trials {
    /// Held over a trial, by tree: it gets no two dictionaries for the same reason.
    one: [Mutex<()>; SHARDS_COUNT],
    lent: Mutex<HashMap<TreeId, Arc<Lent>>>,
}

/// The guard that keeps a lent tree from being dropped, until it is taken back; locked while the
/// background makes a trial of it.
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
            // Pages wait for it.
            Due::Trial(_) => all.push_front(due),
            Due::Load(..) => all.push_back(due),
        }
    }

    /// The next thing to be done.
    pub(super) fn take_due(&self) -> Option<Due> {
        self.due.lock().pop_front()
    }

    /// Lets one thread at a time read a dictionary.
    pub(super) fn load(&self, page: PageId) -> MutexGuard<'_, ()> {
        self.loading[page.0 as usize % SHARDS_COUNT].lock()
    }

    /// Keeps lists and pages of dictionaries as they are.
    pub(super) fn make(&self) -> MutexGuard<'_, ()> {
        self.making.lock()
    }

    /// Held over a trial of the tree, and of a few others.
    pub(super) fn trial_of(&self, tree: TreeId) -> &Mutex<()> {
        &self.trials.one[tree.0 as usize % SHARDS_COUNT]
    }

    /// Lends a tree, which nobody else does.
    pub(super) fn lend(&self, tree: TreeId, lent: &Arc<Lent>) {
        let before = self.trials.lent.lock().insert(tree, Arc::clone(lent));
        debug_assert!(before.is_none(), "a tree is built by one");
    }

    /// The guard that is lent for that tree.
    pub(super) fn lent(&self, tree: TreeId) -> Option<Arc<Lent>> {
        self.trials.lent.lock().get(&tree).cloned()
    }

    /// Ends a loan.
    pub(super) fn return_lent(&self, ended: &Arc<Lent>) {
        self.trials.lent.lock().retain(|_, lent| !Arc::ptr_eq(lent, ended));
    }
}

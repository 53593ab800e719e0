//! What is in memory of dictionaries, within a part of the budget.

use super::memory::{Account, Booked, Memory};
use crate::base::{PageId, TreeId};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

/// Part of the budget that what is read with may take, and what is written with; one is kept in any case.
const BUDGET_PART: usize = 64;
/// So much at least, but no larger a part: a server writes to more than four tables in turn.
const BUDGET_BYTES_MIN: usize = 8 << 20;
const BUDGET_PART_MIN: usize = 16;

/// Things of some size by tree and page, within a part of the memory. Those that nobody has used for long go.
#[derive(Debug)]
pub(super) struct Cache<T> {
    memory: Arc<Memory>,
    kept: RwLock<HashMap<(TreeId, PageId), Kept<T>>>,
}

#[derive(Debug)]
struct Kept<T> {
    what: Arc<T>,
    used: AtomicBool,
    booked: Booked,
}

impl<T> Cache<T> {
    pub(super) fn new(memory: &Arc<Memory>) -> Self {
        Self { memory: Arc::clone(memory), kept: RwLock::default() }
    }

    pub(super) fn get(&self, tree: TreeId, page: PageId) -> Option<Arc<T>> {
        let kept = self.kept.read();
        let found = kept.get(&(tree, page))?;
        if !found.used.load(Relaxed) {
            found.used.store(true, Relaxed);
        }
        Some(Arc::clone(&found.what))
    }

    /// Also returns whether others had to go.
    pub(super) fn keep(&self, tree: TreeId, page: PageId, what: T, bytes: usize) -> (Arc<T>, bool) {
        let booked = self.memory.book(Account::Scratch, bytes);
        let what = Arc::new(what);
        let mut kept = self.kept.write();
        let bytes_max = self.bytes_max();
        let mut gone = vec![kept.remove(&(tree, page))];
        let mut taken = bytes + kept.values().map(|kept| kept.booked.bytes()).sum::<usize>();
        // Once round for those that were not used since the last time, once for any.
        for _ in 0..2 {
            let goes = |kept: &Kept<T>| !kept.used.swap(false, Relaxed);
            while taken > bytes_max {
                let Some(key) = kept.iter().find(|(_, kept)| goes(kept)).map(|(key, _)| *key) else { break };
                let one = kept.remove(&key);
                taken -= one.as_ref().map_or(0, |kept| kept.booked.bytes());
                gone.push(one);
            }
        }
        let entry = Kept { what: Arc::clone(&what), used: AtomicBool::new(true), booked };
        kept.insert((tree, page), entry);
        drop(kept);
        let is_crowded = gone.len() > 1;
        // Given back to the allocator while nobody waits.
        drop(gone);
        (what, is_crowded)
    }

    fn bytes_max(&self) -> usize {
        let budget = self.memory.budget();
        (budget / BUDGET_PART).max(BUDGET_BYTES_MIN.min(budget / BUDGET_PART_MIN))
    }

    /// Whether another one of so many bytes fits beside all that are there.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        let taken = self.kept.read().values().map(|kept| kept.booked.bytes()).sum::<usize>();
        taken + bytes <= self.bytes_max()
    }

    pub(super) fn forget(&self, tree: TreeId) {
        let mut kept = self.kept.write();
        let pages: Vec<_> = kept.keys().filter(|(of, _)| *of == tree).copied().collect();
        let gone: Vec<_> = pages.iter().map(|key| kept.remove(key)).collect();
        drop(kept);
        drop(gone);
    }
}

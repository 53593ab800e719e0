//! A cache of dictionaries within a share of the memory budget. It always keeps at least one
//! dictionary.

use crate::base::{PageId, TreeId};
use crate::memory::{MemoryBudget, MemoryUse, Reservation};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

/// Values by tree and page, within a share of the memory. Values that were not used for a long time
/// are dropped.
#[derive(Debug)]
pub(in crate::pool) struct Cache<T> {
    memory: Arc<MemoryBudget>,
    kept: RwLock<HashMap<(TreeId, PageId), Kept<T>>>,
}

#[derive(Debug)]
struct Kept<T> {
    what: Arc<T>,
    used: AtomicBool,
    reserved: Reservation,
}

impl<T> Cache<T> {
    pub(in crate::pool) fn new(memory: &Arc<MemoryBudget>) -> Self {
        Self { memory: Arc::clone(memory), kept: RwLock::default() }
    }

    pub(in crate::pool) fn get(&self, tree: TreeId, page: PageId) -> Option<Arc<T>> {
        let kept = self.kept.read();
        let found = kept.get(&(tree, page))?;
        if !found.used.load(Relaxed) {
            found.used.store(true, Relaxed);
        }
        Some(Arc::clone(&found.what))
    }

    /// Adds a value. Also returns whether other values were dropped.
    pub(in crate::pool) fn keep(&self, tree: TreeId, page: PageId, what: T, bytes: usize) -> (Arc<T>, bool) {
        let reserved = self.memory.reserve(MemoryUse::Scratch, bytes);
        let what = Arc::new(what);
        let mut kept = self.kept.write();
        let bytes_max = self.bytes_max();
        let mut gone = vec![kept.remove(&(tree, page))];
        let mut taken = bytes + kept.values().map(|kept| kept.reserved.bytes()).sum::<usize>();
        // The first round drops values that were not used since the previous call, and the second
        // round drops any values.
        for _ in 0..2 {
            let goes = |kept: &Kept<T>| !kept.used.swap(false, Relaxed);
            while taken > bytes_max {
                let Some(key) = kept.iter().find(|(_, kept)| goes(kept)).map(|(key, _)| *key) else { break };
                let one = kept.remove(&key);
                taken -= one.as_ref().map_or(0, |kept| kept.reserved.bytes());
                gone.push(one);
            }
        }
        let entry = Kept { what: Arc::clone(&what), used: AtomicBool::new(true), reserved };
        kept.insert((tree, page), entry);
        drop(kept);
        let is_crowded = gone.len() > 1;
        // The values are freed after the lock is released, so that no thread waits while memory is
        // freed.
        drop(gone);
        (what, is_crowded)
    }

    fn bytes_max(&self) -> usize {
        self.memory.shares().dictionaries_bytes_max()
    }

    /// Returns whether a value of `bytes` bytes fits in addition to all others.
    pub(in crate::pool) fn has_room(&self, bytes: usize) -> bool {
        let taken = self.kept.read().values().map(|kept| kept.reserved.bytes()).sum::<usize>();
        taken + bytes <= self.bytes_max()
    }

    pub(in crate::pool) fn forget(&self, tree: TreeId) {
        let mut kept = self.kept.write();
        let pages: Vec<_> = kept.keys().filter(|(of, _)| *of == tree).copied().collect();
        let gone: Vec<_> = pages.iter().map(|key| kept.remove(key)).collect();
        drop(kept);
        drop(gone);
    }
}

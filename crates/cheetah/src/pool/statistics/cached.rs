//! The pages of each tree in memory, counted by a walk over the page table.

use crate::base::{PageId, TreeId};
use crate::pool::frames::Frame;
use crate::pool::Pool;
use std::collections::HashMap;

/// The pages of a tree that are in memory.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Cached {
    /// Number of pages.
    pub pages: u64,
    /// Bytes of the pages.
    pub bytes: u64,
    /// Bytes of the leaves.
    pub leaf_bytes: u64,
    /// Bytes in use in the leaves, without free space.
    pub leaf_used_bytes: u64,
}

impl Cached {
    fn add(&mut self, frame: &Frame) {
        self.pages += 1;
        self.bytes += frame.bytes_count as u64;
        if let Some(used_bytes) = frame.leaf_used_bytes() {
            self.leaf_bytes += frame.bytes_count as u64;
            self.leaf_used_bytes += used_bytes as u64;
        }
    }
}

impl Pool {
    /// Returns the pages of each tree in memory, without trees that have no page in memory. Checks
    /// the page-table entry of every page of the database. Does not block other threads.
    pub fn cached(&self) -> HashMap<TreeId, Cached> {
        let end = self.numbers.lock().end();
        let mut trees = HashMap::<_, Cached>::new();
        for pid in (1..end.0).map(PageId) {
            let Some(entry) = self.table.existing(pid) else { continue };
            let Some(frame) = entry.frame() else { continue };
            trees.entry(frame.tree).or_default().add(frame);
        }
        trees
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Config;
    use crate::format::page::{build_page, PageKind, PageMut, PageView, RecordRef};
    use crate::pool::testing::{Database, TREE};
    use crate::pool::PageClass;

    #[test]
    fn pages_in_memory_are_counted_by_tree_and_leaves_with_what_they_hold() {
        let db = Database::new(&Config::tiny());
        db.add(PageClass::Base, 1);
        db.add(PageClass::Large, 3);
        let leaf = TreeId(17);
        let used = {
            let mtr = db.pool.enter();
            let page = db.pool.allocate(&mtr, leaf, PageClass::Wide);
            let mut bytes = page.write(&mtr);
            build_page(&mut bytes, PageKind::Leaf, 0, leaf, b"", None, PageId::NONE);
            PageMut::new(&mut bytes).insert(0, b"key", &RecordRef::frozen(b"some payload")).unwrap();
            PageView::new(&bytes).used_bytes() as u64
        };
        let cached = db.pool.cached();
        let content = Cached { pages: 2, bytes: 512 + 2048, leaf_bytes: 0, leaf_used_bytes: 0 };
        let tree = Cached { pages: 1, bytes: 1024, leaf_bytes: 1024, leaf_used_bytes: used };
        assert_eq!(cached, HashMap::from([(TREE, content), (leaf, tree)]));
        db.checkpoint().unwrap();
        let disk = db.disk.clone();
        assert_eq!(db.crash(disk).pool.cached(), HashMap::new());
    }
}

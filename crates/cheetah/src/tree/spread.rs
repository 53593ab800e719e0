//! Keys spread evenly over a tree, for samples.
//!
//! Only inner pages are read. If a page was freed or reused meanwhile, the descent ends early: the
//! key of the level above is accurate enough.

use super::Tree;
use crate::base::Result;
use crate::format::page::PageView;

impl Tree {
    /// Returns the `n`th, from 1, of `count` ascending keys that divide the tree into parts with
    /// roughly equal numbers of leaves. Each key is the start of a leaf. In a small tree several
    /// keys are equal. May do I/O.
    pub fn spread_key(&self, n: u32, count: u32) -> Result<Vec<u8>> {
        self.key_at(f64::from(n) / (f64::from(count) + 1.0))
    }

    /// Returns the key at which the leaf at `position` starts. The position is from 0 (the first
    /// leaf) to 1.
    fn key_at(&self, mut position: f64) -> Result<Vec<u8>> {
        let mut key = Vec::new();
        let mut page = self.root_page()?;
        let mut level = None;
        loop {
            let guard = page.read();
            let view = PageView::new(&guard);
            let expected = !view.is_dead()
                && view.tree() == self.def.id
                && level.is_none_or(|level| level == view.level());
            if !expected || view.level() == 0 || view.count() == 0 {
                return Ok(key);
            }
            let place = position * view.count() as f64;
            let slot = (place as usize).min(view.count() - 1);
            view.key_into(slot, &mut key);
            if view.level() == 1 {
                return Ok(key);
            }
            position = place.fract();
            level = Some(view.level() - 1);
            let child = view.child(slot);
            drop(guard);
            match self.pool.fetch(child)? {
                Some(loaded) => page = loaded,
                None => return Ok(key),
            }
        }
    }
}

//! The readable leaves of a tree with damaged pages.
//!
//! Invariants
//!   I1  Each readable leaf is visited once: by a descent from the root or, if a page above the
//!       leaf is damaged, by a scan of all pages of the tree. The scan visits only leaves whose
//!       fences are within the key range of a damaged inner page. The descent reaches no leaf in
//!       such a range.
//!   I2  Leaves that are not visited are in a gap that the result lists.

use super::Tree;
use crate::base::{sound, ErrorKind, PageId, Result};
use crate::format::page::PageView;

/// The maximum number of leaves whose fences are kept to find the gaps between them.
const FENCES_MAX: usize = 1 << 18;

type FencePair = (Vec<u8>, Option<Vec<u8>>);

/// A range of keys that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gap {
    /// The first key of the range.
    pub low: Vec<u8>,
    /// The key after the range; `None` if the range extends to the end of the tree.
    pub high: Option<Vec<u8>>,
    /// A description of the damage.
    pub why: String,
}

struct Walk<'a> {
    tree: &'a Tree,
    on_leaf: &'a mut dyn FnMut(&PageView<'_>) -> Result<()>,
    /// The ranges of unreadable leaves.
    gaps: Vec<Gap>,
    /// The ranges of unreadable pages above the leaves.
    inner_gaps: Vec<Gap>,
}

impl Tree {
    /// Visits each readable leaf and returns the gaps, in the order of keys. The caller must ensure
    /// that no thread changes the tree meanwhile. Blocks for I/O. Fails only if `on_leaf` fails or
    /// the engine has stopped.
    pub fn readable_leaves(&self, on_leaf: &mut dyn FnMut(&PageView<'_>) -> Result<()>) -> Result<Vec<Gap>> {
        let mut walk = Walk { tree: self, on_leaf, gaps: Vec::new(), inner_gaps: Vec::new() };
        walk.visit(self.def.root, None, b"", None)?;
        let inner_gaps = std::mem::take(&mut walk.inner_gaps);
        if sound!(!inner_gaps.is_empty(), "salvage: pass by what hangs on a damaged page") {
            walk.look_at_all(&inner_gaps)?;
        }
        walk.gaps.sort_by(|a, b| a.low.cmp(&b.low));
        Ok(walk.gaps)
    }
}

impl Walk<'_> {
    fn copy_of(&self, page: PageId) -> Result<std::result::Result<Vec<u8>, String>> {
        let bytes = match self.tree.pool.fetch_for_scan(page) {
            Err(error) if error.kind() == ErrorKind::Stopped => return Err(error),
            Err(error) => return Ok(Err(error.to_string())),
            Ok(None) => return Ok(Err(format!("page {page} is free, but its parent names it"))),
            Ok(Some(frame)) => frame.read().to_vec(),
        };
        Ok(match PageView::new(&bytes).verify() {
            Ok(()) => Ok(bytes),
            Err(defect) => Err(format!("page {page}: {defect:?}")),
        })
    }

    /// Visits the leaves under `page`, or `page` itself if it is a leaf. The page should cover the
    /// keys from `low` up to `high`, and be one level below `above`.
    fn visit(&mut self, page: PageId, above: Option<u8>, low: &[u8], high: Option<&[u8]>) -> Result<()> {
        let gap = |why| Gap { low: low.to_vec(), high: high.map(<[u8]>::to_vec), why };
        let bytes = match self.copy_of(page)? {
            Ok(bytes) => bytes,
            Err(why) if above == Some(1) => {
                self.gaps.push(gap(why));
                return Ok(());
            }
            Err(why) => {
                self.inner_gaps.push(gap(why));
                return Ok(());
            }
        };
        let view = PageView::new(&bytes);
        let is_ours = view.tree() == self.tree.def.id
            && !view.is_dead()
            && above.is_none_or(|above| above.checked_sub(1) == Some(view.level()))
            && (view.low(), view.high()) == (low, high);
        if !is_ours {
            let why = format!("page {page} is not the one that its parent names");
            let list = if above == Some(1) { &mut self.gaps } else { &mut self.inner_gaps };
            list.push(gap(why));
            return Ok(());
        }
        if view.is_leaf() {
            return (self.on_leaf)(&view);
        }
        for slot in 0..view.count() {
            let separator = view.key(slot);
            let next = (slot + 1 < view.count()).then(|| view.key(slot + 1));
            self.visit(view.child(slot), Some(view.level()), &separator, next.as_deref().or(high))?;
        }
        Ok(())
    }

    /// Searches all pages of the tree for leaves within `gaps` and visits them. Adds the parts of
    /// `gaps` that they do not cover to `self.gaps`.
    fn look_at_all(&mut self, gaps: &[Gap]) -> Result<()> {
        let mut fences: Vec<Vec<FencePair>> = vec![Vec::new(); gaps.len()];
        let mut fences_count = 0;
        let pool = &self.tree.pool;
        let pages = (PageId::NONE.0 + 1..pool.page_numbers_end().0).map(PageId);
        for page in pages.filter(|page| pool.owner(*page) == Some(self.tree.def.id)) {
            let Ok(bytes) = self.copy_of(page)? else { continue };
            let view = PageView::new(&bytes);
            if !view.is_leaf() || view.is_dead() || view.tree() != self.tree.def.id {
                continue;
            }
            let Some(no) = gaps.iter().position(|gap| lies_in(&view, gap)) else { continue };
            (self.on_leaf)(&view)?;
            fences_count += 1;
            if let Some(fences) = fences.get_mut(no).filter(|_| fences_count <= FENCES_MAX) {
                fences.push((view.low().to_vec(), view.high().map(<[u8]>::to_vec)));
            }
        }
        for (gap, mut fences) in gaps.iter().zip(fences) {
            match fences_count <= FENCES_MAX {
                true => self.gaps.extend(left_of(gap, &mut fences)),
                false => {
                    let why = format!("{}; many leaves within these keys were read", gap.why);
                    self.gaps.push(Gap { why, ..gap.clone() });
                }
            }
        }
        Ok(())
    }
}

fn lies_in(leaf: &PageView<'_>, gap: &Gap) -> bool {
    let ends_within = match (leaf.high(), &gap.high) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(high), Some(end)) => high <= end.as_slice(),
    };
    leaf.low() >= gap.low.as_slice() && ends_within
}

/// Returns the parts of a gap that leaves with these fences do not cover.
fn left_of(gap: &Gap, fences: &mut [FencePair]) -> Vec<Gap> {
    fences.sort();
    let mut left = Vec::new();
    let mut at = Some(gap.low.clone());
    for (low, high) in fences {
        if let Some(from) = at.filter(|from| from < low) {
            left.push(Gap { low: from, high: Some(low.clone()), why: gap.why.clone() });
        }
        at = high.take();
    }
    if let Some(from) = at.filter(|from| Some(from) != gap.high.as_ref()) {
        left.push(Gap { low: from, high: gap.high.clone(), why: gap.why.clone() });
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(low: &[u8], high: Option<&[u8]>) -> Gap {
        Gap { low: low.to_vec(), high: high.map(<[u8]>::to_vec), why: "w".into() }
    }

    #[test]
    fn what_leaves_do_not_cover_is_left_of_a_gap() {
        let fences = |list: &[(&[u8], Option<&[u8]>)]| {
            list.iter().map(|(low, high)| (low.to_vec(), high.map(<[u8]>::to_vec))).collect::<Vec<_>>()
        };
        let all = gap(b"", None);
        assert_eq!(left_of(&all, &mut fences(&[])), [gap(b"", None)]);
        assert_eq!(left_of(&all, &mut fences(&[(b"", None)])), []);
        assert_eq!(left_of(&all, &mut fences(&[(b"c", None), (b"", Some(b"b"))])), [gap(b"b", Some(b"c"))]);
        let part = gap(b"b", Some(b"f"));
        let found = left_of(&part, &mut fences(&[(b"c", Some(b"d"))]));
        assert_eq!(found, [gap(b"b", Some(b"c")), gap(b"d", Some(b"f"))]);
        assert_eq!(left_of(&part, &mut fences(&[(b"b", Some(b"d")), (b"d", Some(b"f"))])), []);
    }
}

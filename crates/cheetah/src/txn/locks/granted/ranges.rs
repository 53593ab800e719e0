//! The ranges of one tree: which owners have what between two keys.
//!
//! A map from the places where something changes ("cuts") to what holds from there to the next one.
//! So a point finds its ranges by one look-up, and adjacent or overlapping ranges of an owner
//! become one by themselves: a scan of any length costs two cuts.
//!
//! Invariants
//!   I1  A cut differs from the one before it; before the first one there is nothing.
//!   I2  In one place each owner stands once, with the highest level it has, in the order of
//!       owners.
//!   I3  In one place no two owners have levels that conflict: where another one has the records, a
//!       new range gets the gap only.

use crate::txn::locks::key::{Cut, KeySpan};
use crate::txn::locks::modes::Level;
use crate::txn::locks::Owner;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Memory of a cut in its map.
const CUT_BYTES: usize = std::mem::size_of::<(Cut, Vec<Cover>)>() * 3 / 2;

/// What an owner has in some place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cover {
    pub(crate) owner: Owner,
    pub(crate) level: Level,
}

/// See the module.
#[derive(Default, Debug)]
pub(crate) struct Ranges {
    cuts: BTreeMap<Cut, Vec<Cover>>,
    bytes: usize,
}

fn cut_bytes(cut: &Cut, covers: &[Cover]) -> usize {
    CUT_BYTES + cut.heap_bytes() + std::mem::size_of_val(covers)
}

impl Ranges {
    pub(crate) fn is_empty(&self) -> bool {
        self.cuts.is_empty()
    }

    /// Memory in use.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Memory that a range needs at most.
    pub(crate) fn bytes_for(&self, span: &KeySpan) -> usize {
        let inside = self.cuts.range(&span.low..&span.high);
        let new = 2 * (CUT_BYTES + span.heap_bytes() + std::mem::size_of_val(self.at(&span.high)));
        new + inside.count() * std::mem::size_of::<Cover>()
    }

    /// What owners have right behind a cut.
    fn at(&self, cut: &Cut) -> &[Cover] {
        self.cuts.range(..=cut).next_back().map_or(&[], |(_, covers)| covers)
    }

    /// What owners have at a key.
    pub(crate) fn covers(&self, key: &[u8]) -> &[Cover] {
        if self.cuts.is_empty() {
            return &[];
        }
        self.at(&Cut::before(key))
    }

    /// Whether `owner` has at least `level` in all of a range.
    pub(crate) fn has(&self, owner: Owner, level: Level, span: &KeySpan) -> bool {
        let has = |covers: &[Cover]| covers.iter().any(|cover| cover.owner == owner && cover.level >= level);
        let inside = (Bound::Excluded(&span.low), Bound::Excluded(&span.high));
        has(self.at(&span.low)) && self.cuts.range(inside).all(|(_, covers)| has(covers))
    }

    /// Gives `owner` a range (I2, I3).
    pub(crate) fn add(&mut self, owner: Owner, level: Level, span: &KeySpan) {
        if self.lengthen(Cover { owner, level }, span) {
            return;
        }
        self.change(span, |covers| {
            let is_free = covers.iter().all(|other| other.owner == owner || !other.level.conflicts(level));
            let level = if is_free { level } else { level.without_records() };
            match covers.binary_search_by_key(&owner.0, |cover| cover.owner.0) {
                Ok(at) => {
                    covers.iter_mut().skip(at).take(1).for_each(|cover| cover.level = cover.level.max(level))
                }
                Err(at) => covers.insert(at, Cover { owner, level }),
            }
        });
    }

    /// Takes everything in a range from `owner`.
    pub(crate) fn remove(&mut self, owner: Owner, span: &KeySpan) {
        self.change(span, |covers| covers.retain(|cover| cover.owner != owner));
    }

    /// Moves the end of a range of the same owner and level that ends where the new one begins, if
    /// there is nothing else in it: the steps of a scan. False when it is not so.
    fn lengthen(&mut self, cover: Cover, span: &KeySpan) -> bool {
        let mut before = self.cuts.range(..=&span.low).rev();
        let is_end = before.next().is_some_and(|(cut, covers)| *cut == span.low && covers.is_empty());
        if !is_end
            || span.high == Cut::Supremum
            || before.next().is_none_or(|(_, covers)| covers[..] != [cover])
        {
            return false;
        }
        let inside = (Bound::Excluded(&span.low), Bound::Included(&span.high));
        if self.cuts.range(inside).next().is_some() {
            return false;
        }
        self.cuts.remove(&span.low);
        self.cuts.insert(span.high.clone(), Vec::new());
        self.bytes = self.bytes + span.high.heap_bytes() - span.low.heap_bytes();
        true
    }

    fn change(&mut self, span: &KeySpan, change: impl Fn(&mut Vec<Cover>)) {
        if span.is_empty() {
            return;
        }
        self.split_at(&span.low);
        self.split_at(&span.high);
        for (_, covers) in self.cuts.range_mut(&span.low..&span.high) {
            self.bytes -= std::mem::size_of_val(covers.as_slice());
            change(covers);
            self.bytes += std::mem::size_of_val(covers.as_slice());
        }
        self.join(span);
    }

    fn split_at(&mut self, cut: &Cut) {
        if *cut != Cut::Supremum && !self.cuts.contains_key(cut) {
            let covers = self.at(cut).to_vec();
            self.bytes += cut_bytes(cut, &covers);
            self.cuts.insert(cut.clone(), covers);
        }
    }

    /// Removes the cuts in a range, and at its end, at which nothing changes (I1).
    fn join(&mut self, span: &KeySpan) {
        let before = (Bound::Unbounded, Bound::Excluded(&span.low));
        let mut last: &[Cover] = self.cuts.range(before).next_back().map_or(&[], |(_, covers)| covers);
        let mut same = Vec::new();
        for (cut, covers) in self.cuts.range(&span.low..=&span.high) {
            if covers == last {
                same.push(cut.clone());
            }
            last = covers;
        }
        for cut in same {
            if let Some(covers) = self.cuts.remove(&cut) {
                self.bytes -= cut_bytes(&cut, &covers);
            }
        }
    }

    /// All ranges, each as long as it can be: owner, level, bounds.
    pub(crate) fn list(&self) -> Vec<(Owner, Level, KeySpan)> {
        let mut open: BTreeMap<u64, (Level, Cut)> = BTreeMap::new();
        let mut list = Vec::new();
        let mut close = |owner: u64, (level, low): (Level, Cut), high: &Cut| {
            list.push((Owner(owner), level, KeySpan { low, high: high.clone() }));
        };
        for (cut, covers) in &self.cuts {
            let goes_on = |owner: &u64, level: Level| {
                covers.iter().any(|cover| cover.owner.0 == *owner && cover.level == level)
            };
            let ended = open.iter().filter(|(owner, range)| !goes_on(owner, range.0));
            let ended = ended.map(|(owner, _)| *owner).collect::<Vec<_>>();
            for owner in ended {
                open.remove(&owner).into_iter().for_each(|range| close(owner, range, cut));
            }
            for cover in covers {
                open.entry(cover.owner.0).or_insert_with(|| (cover.level, cut.clone()));
            }
        }
        for (owner, range) in open {
            close(owner, range, &Cut::Supremum);
        }
        list
    }
}

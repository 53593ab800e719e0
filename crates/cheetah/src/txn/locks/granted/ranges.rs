//! The locked ranges of one tree: the levels that owners hold between two keys.
//!
//! A map of "cuts", the places where the set of locks changes. Each cut maps to the locks from
//! there to the next cut. A lookup of a key therefore finds all ranges that contain the key.
//! Adjacent or overlapping ranges of an owner merge automatically, so a scan of any length needs
//! two cuts.
//!
//! Invariants
//!   I1  The locks of each cut differ from the locks of the previous cut; there are no locks before
//!       the first cut.
//!   I2  At a cut, each owner occurs at most once, with its highest level; owners are sorted.
//!   I3  At a cut, no two owners have conflicting levels: where another owner holds the records, a
//!       new range receives only the gap.
//!   I4  The end of the range that was extended last may be kept outside the map, so that a scan
//!       can move it step by step without changing the map. Only this range is between the previous
//!       cut in the map and the end, and no range is between the end and the next cut. Any
//!       other change first puts the end into the map.

use crate::txn::locks::key::{Cut, KeySpan};
use crate::txn::locks::modes::Level;
use crate::txn::locks::Owner;
use std::collections::BTreeMap;
use std::ops::Bound;

/// The memory of a cut in its map.
const CUT_BYTES: usize = std::mem::size_of::<(Cut, Vec<Cover>)>() * 3 / 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cover {
    pub(crate) owner: Owner,
    pub(crate) level: Level,
}

/// The end of a range that is being extended (I4).
#[derive(Debug)]
struct GrowingEnd {
    cover: Cover,
    cut: Cut,
    /// The next cut after it in the map; `None` if there is none.
    next: Option<Cut>,
}

impl GrowingEnd {
    /// Returns whether it is the end, at `low`, of a range like `cover`.
    fn is_of(&self, cover: Cover, low: &Cut) -> bool {
        self.cover == cover && self.cut == *low
    }

    /// Returns whether `cut` is between the end and the next cut, where no range is.
    fn has_behind(&self, cut: &Cut) -> bool {
        self.cut <= *cut && self.next.as_ref().is_none_or(|next| cut < next)
    }
}

#[derive(Default, Debug)]
pub(crate) struct Ranges {
    cuts: BTreeMap<Cut, Vec<Cover>>,
    growing: Option<GrowingEnd>,
    bytes: usize,
}

fn cut_bytes(cut: &Cut, covers: &[Cover]) -> usize {
    CUT_BYTES + cut.heap_bytes() + std::mem::size_of_val(covers)
}

impl Ranges {
    pub(crate) fn is_empty(&self) -> bool {
        self.cuts.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn bytes_for(&self, span: &KeySpan) -> usize {
        let inside = self.cuts.range(&span.low..&span.high);
        let new = 2 * (CUT_BYTES + span.heap_bytes() + std::mem::size_of_val(self.at(&span.high)));
        let cuts_count = inside.count() + usize::from(self.growing.is_some());
        new + cuts_count * std::mem::size_of::<Cover>()
    }

    fn at(&self, cut: &Cut) -> &[Cover] {
        if self.growing.as_ref().is_some_and(|end| end.has_behind(cut)) {
            return &[];
        }
        self.cuts.range(..=cut).next_back().map_or(&[], |(_, covers)| covers)
    }

    pub(crate) fn covers(&self, key: &[u8]) -> &[Cover] {
        if self.cuts.is_empty() {
            return &[];
        }
        self.at(&Cut::before(key))
    }

    pub(crate) fn has(&self, owner: Owner, level: Level, span: &KeySpan) -> bool {
        let has = |covers: &[Cover]| covers.iter().any(|cover| cover.owner == owner && cover.level >= level);
        if self.growing.as_ref().is_some_and(|end| span.low < end.cut && end.cut < span.high) {
            return false;
        }
        let inside = (Bound::Excluded(&span.low), Bound::Excluded(&span.high));
        has(self.at(&span.low)) && self.cuts.range(inside).all(|(_, covers)| has(covers))
    }

    /// Grants a range to `owner` (I2, I3).
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

    pub(crate) fn remove(&mut self, owner: Owner, span: &KeySpan) {
        self.change(span, |covers| covers.retain(|cover| cover.owner != owner));
    }

    /// Extends a range of the same owner and level over the new range, as the steps of a scan do.
    /// Returns false if the old range does not end where the new one begins, or another lock is in
    /// the new range.
    fn lengthen(&mut self, cover: Cover, span: &KeySpan) -> bool {
        if self.growing.as_ref().is_none_or(|end| !end.is_of(cover, &span.low)) {
            self.put_end_into_map();
            self.growing = self.take_end(cover, &span.low);
        }
        let Some(end) = &mut self.growing else { return false };
        if span.high == Cut::Supremum || end.next.as_ref().is_some_and(|next| *next <= span.high) {
            return false;
        }
        self.bytes = self.bytes + span.high.heap_bytes() - end.cut.heap_bytes();
        end.cut.clone_from(&span.high);
        true
    }

    /// Removes the cut `at` from the map if only a range like `cover` ends there and no range
    /// begins there.
    fn take_end(&mut self, cover: Cover, at: &Cut) -> Option<GrowingEnd> {
        let mut before = self.cuts.range(..=at).rev();
        let is_end = before.next().is_some_and(|(cut, covers)| cut == at && covers.is_empty());
        if !is_end || before.next().is_none_or(|(_, covers)| covers[..] != [cover]) {
            return None;
        }
        self.cuts.remove(at);
        let next = self.cuts.range(at..).next().map(|(cut, _)| cut.clone());
        Some(GrowingEnd { cover, cut: at.clone(), next })
    }

    /// Turns the growing end into a cut in the map (I4).
    fn put_end_into_map(&mut self) {
        if let Some(end) = self.growing.take() {
            self.cuts.insert(end.cut, Vec::new());
        }
    }

    fn change(&mut self, span: &KeySpan, change: impl Fn(&mut Vec<Cover>)) {
        if span.is_empty() {
            return;
        }
        self.put_end_into_map();
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

    pub(crate) fn list(&self) -> Vec<(Owner, Level, KeySpan)> {
        let mut open: BTreeMap<u64, (Level, Cut)> = BTreeMap::new();
        let mut list = Vec::new();
        let mut close = |owner: u64, (level, low): (Level, Cut), high: &Cut| {
            list.push((Owner(owner), level, KeySpan { low, high: high.clone() }));
        };
        let end = self.growing.as_ref().map(|end| (&end.cut, &[][..]));
        let mut cuts =
            self.cuts.iter().map(|(cut, covers)| (cut, &covers[..])).chain(end).collect::<Vec<_>>();
        cuts.sort_unstable_by_key(|(cut, _)| *cut);
        for (cut, covers) in cuts {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::txn::locks::modes::LockMode;
    use cheetah_io::rng::Rng;

    const KEYS: usize = 12;

    /// The expected ranges: the levels of owners between each place and the next.
    #[derive(Default)]
    struct Model([BTreeMap<u64, Level>; 2 * KEYS]);

    impl Model {
        fn add(&mut self, owner: u64, level: Level, places: &std::ops::Range<usize>) {
            for covers in &mut self.0[places.clone()] {
                let is_free = covers.iter().all(|(other, had)| *other == owner || !had.conflicts(level));
                let level = if is_free { level } else { level.without_records() };
                let had = covers.entry(owner).or_insert(level);
                *had = level.max(*had);
            }
        }

        fn has(&self, owner: u64, level: Level, places: &std::ops::Range<usize>) -> bool {
            self.0[places.clone()].iter().all(|covers| covers.get(&owner).is_some_and(|had| *had >= level))
        }
    }

    /// Even places are before keys, odd places after them.
    fn cut(place: usize) -> Cut {
        let key = [place as u8 / 2];
        match place {
            _ if place == 2 * KEYS => Cut::Supremum,
            _ if place % 2 == 0 => Cut::before(&key),
            _ => Cut::high(Bound::Included(&key)),
        }
    }

    fn span(places: &std::ops::Range<usize>) -> KeySpan {
        KeySpan { low: cut(places.start), high: cut(places.end) }
    }

    fn compare(ranges: &Ranges, model: &Model, seed: u64) {
        for key in 0..KEYS {
            let covers = ranges.covers(&[key as u8]);
            let covers = covers.iter().map(|cover| (cover.owner.0, cover.level)).collect::<BTreeMap<_, _>>();
            assert_eq!(covers, model.0[2 * key], "key {key}, seed {seed}");
        }
        let listed = ranges.list();
        let mut covered = [const { Vec::new() }; 2 * KEYS];
        for (owner, level, span) in &listed {
            let inside = (0..2 * KEYS).filter(|place| span.low <= cut(*place) && cut(*place) < span.high);
            inside.for_each(|place| covered[place].push((owner.0, *level)));
        }
        for (place, covers) in covered.iter().enumerate() {
            let covers = covers.iter().copied().collect::<BTreeMap<_, _>>();
            assert_eq!(covers, model.0[place], "place {place}, seed {seed}: {listed:?}");
        }
    }

    /// Mostly steps of scans, each starting where the owner's last range ended.
    #[test]
    fn ranges_are_as_a_model_has_them_whoever_lengthens_his_own() {
        for seed in 0..400 {
            let (mut rng, mut ranges, mut model) = (Rng::new(seed), Ranges::default(), Model::default());
            let mut ends = [0usize; 3];
            for _ in 0..60 {
                let owner = rng.below(3);
                let goes_on = rng.below(4) > 0;
                let from = if goes_on { ends[owner as usize] } else { rng.below(2 * KEYS as u64) as usize };
                let places = from..(from + rng.below(4) as usize).min(2 * KEYS);
                let mode = [LockMode::Shared, LockMode::Exclusive][rng.below(2) as usize];
                let level = if rng.below(5) > 0 { Level::next_key(mode) } else { Level::gap(mode) };
                let has = places.is_empty() || model.has(owner, level, &places);
                assert!(places.is_empty() || ranges.has(Owner(owner), level, &span(&places)) == has);
                if rng.below(8) == 0 {
                    ranges.remove(Owner(owner), &span(&places));
                    model.0[places.clone()].iter_mut().for_each(|covers| {
                        covers.remove(&owner);
                    });
                } else if !places.is_empty() {
                    ranges.add(Owner(owner), level, &span(&places));
                    model.add(owner, level, &places);
                }
                ends[owner as usize] = if places.end < 2 * KEYS { places.end } else { 0 };
                compare(&ranges, &model, seed);
            }
            (0..3).for_each(|owner| ranges.remove(Owner(owner), &span(&(0..2 * KEYS))));
            assert!(ranges.is_empty() && ranges.bytes() == 0, "seed {seed}");
        }
    }
}

//! Compares random requests with an oracle, which keeps plain lists and searches all of them for
//! each request.
//!
//! The keys of an index are divided into places: gaps (even) and records (odd). One key represents
//! each place.

use super::modes::Level;
use super::*;
use std::collections::BTreeMap;

const OWNERS: u64 = 6;
const RECORDS: u64 = 4;
const PLACES: u64 = 2 * RECORDS + 1;
const TABLES: u64 = 2;

fn key(place: u64) -> [u8; 1] {
    [10 * place as u8 + 10]
}

/// Returns the meaning of a level at a place. In a gap, all levels mean the same.
fn at_place(level: Level, place: u64) -> Level {
    if place % 2 == 1 {
        level
    } else {
        Level::GapExclusive
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Want {
    Table(u64, TableMode),
    Record(u64, LockMode),
    /// The places from the first number up to the second (exclusive), and the record among them.
    NextKey(u64, u64, u64, LockMode),
    Insert(u64),
}

#[derive(Default, Debug)]
struct Oracle {
    /// By owner and place: the number of requests in each mode.
    records: BTreeMap<(u64, u64), [u32; 2]>,
    /// By owner and place: the level.
    covers: BTreeMap<(u64, u64), Level>,
    tables: BTreeMap<(u64, u64), u8>,
    /// In the order of requests.
    queue: Vec<(u64, Want)>,
}

impl Oracle {
    fn record_of(&self, owner: u64, place: u64) -> Option<LockMode> {
        match self.records.get(&(owner, place))? {
            [0, 0] => None,
            [_, 0] => Some(S),
            _ => Some(X),
        }
    }

    fn own(&self, owner: u64, place: u64) -> Option<LockMode> {
        let cover = self.covers.get(&(owner, place)).and_then(|level| level.records());
        self.record_of(owner, place).max(cover)
    }

    fn wanted_record(want: &Want) -> Option<(u64, LockMode)> {
        match want {
            Want::Record(place, mode) | Want::NextKey(_, _, place, mode) => Some((*place, *mode)),
            _ => None,
        }
    }

    /// Returns the owners that block `owner`, among the holders and the first `before` entries of
    /// the queue.
    fn blockers(&self, owner: u64, want: &Want, before: usize) -> Vec<u64> {
        let others = (0..OWNERS).filter(|other| *other != owner);
        let queued = self.queue.iter().take(before).filter(|(other, _)| *other != owner);
        match want {
            Want::Table(table, mode) => {
                let set = |owner: u64| self.tables.get(&(owner, *table)).copied().unwrap_or(0);
                if set(owner) & mode.given_by() != 0 {
                    return Vec::new();
                }
                let holders = others.filter(|other| set(*other) & mode.conflicting() != 0);
                let is_before = |(_, other): &&(u64, Want)| match other {
                    Want::Table(of, wanted) => {
                        of == table
                            && wanted.bit() & mode.conflicting() != 0
                            && wanted.conflicting() & set(owner) == 0
                    }
                    _ => false,
                };
                holders.chain(queued.filter(is_before).map(|other| other.0)).collect()
            }
            Want::Insert(place) => {
                let holders = others.filter(|other| self.covers.contains_key(&(*other, *place)));
                let own = self.own(owner, *place);
                let blocks = |(_, other): &&(u64, Want)| match other {
                    Want::NextKey(low, high, at, mode) => {
                        let waits_for_owner = at == place && own.is_some_and(|own| own.conflicts(*mode));
                        (low..high).contains(&place) && !waits_for_owner
                    }
                    _ => false,
                };
                holders.chain(queued.filter(blocks).map(|other| other.0)).collect()
            }
            Want::Record(place, mode) | Want::NextKey(_, _, place, mode) => {
                if self.record_of(owner, *place) >= Some(*mode) {
                    return Vec::new();
                }
                let conflicts =
                    |other: &u64| self.own(*other, *place).is_some_and(|held| held.conflicts(*mode));
                let mut blockers = others.filter(conflicts).collect::<Vec<_>>();
                let own = self.own(owner, *place);
                if own < Some(*mode) {
                    let is_before = |(_, other): &&(u64, Want)| {
                        Self::wanted_record(other).is_some_and(|(of, wanted)| {
                            of == *place
                                && wanted.conflicts(*mode)
                                && !own.is_some_and(|own| own.conflicts(wanted))
                        })
                    };
                    blockers.extend(queued.filter(is_before).map(|other| other.0));
                }
                blockers
            }
        }
    }

    /// Grants a request. Returns whether the owner already held the lock.
    fn give(&mut self, owner: u64, want: &Want) -> bool {
        match want {
            Want::Table(table, mode) => {
                let set = self.tables.entry((owner, *table)).or_default();
                let had = *set & mode.given_by() != 0;
                *set |= if had { 0 } else { mode.bit() };
                had
            }
            Want::Record(place, mode) => {
                let had = self.own(owner, *place) >= Some(*mode);
                if !had || self.record_of(owner, *place).is_some() {
                    self.records.entry((owner, *place)).or_default()[*mode as usize] += 1;
                }
                had
            }
            Want::NextKey(low, high, _, mode) => self.cover(owner, *low, *high, Level::next_key(*mode)),
            Want::Insert(_) => false,
        }
    }

    fn cover(&mut self, owner: u64, low: u64, high: u64, level: Level) -> bool {
        let had = (low..high).all(|place| self.covers.get(&(owner, place)) >= Some(&at_place(level, place)));
        for place in low..high {
            let level = at_place(level, place);
            let cover = self.covers.entry((owner, place)).or_insert(level);
            *cover = (*cover).max(level);
        }
        had
    }

    fn unlock(&mut self, owner: u64, place: u64, mode: LockMode) -> bool {
        let before = self.record_of(owner, place);
        if let Some(counts) = self.records.get_mut(&(owner, place)) {
            counts[mode as usize] = counts[mode as usize].saturating_sub(1);
        }
        let after = self.record_of(owner, place);
        after < before
    }

    fn release(&mut self, owner: u64) {
        self.records.retain(|(of, _), _| *of != owner);
        self.covers.retain(|(of, _), _| *of != owner);
        self.tables.retain(|(of, _), _| *of != owner);
        self.queue.retain(|(of, _)| *of != owner);
    }

    /// Grants everything that can be granted.
    fn advance(&mut self) {
        while let Some(at) = (0..self.queue.len()).find(|at| {
            let (owner, want) = &self.queue[*at];
            self.blockers(*owner, want, *at).is_empty()
        }) {
            let (owner, want) = self.queue.remove(at);
            self.give(owner, &want);
        }
    }

    /// Returns whether `owner` ultimately waits for itself.
    fn is_in_cycle(&self, owner: u64) -> bool {
        let edges = |of: u64| {
            let at = self.queue.iter().position(|(other, _)| *other == of);
            at.map_or_else(Vec::new, |at| self.blockers(of, &self.queue[at].1, at))
        };
        let (mut next, mut seen) = (edges(owner), Vec::new());
        while let Some(of) = next.pop() {
            if of == owner {
                return true;
            }
            if !seen.contains(&of) {
                seen.push(of);
                next.extend(edges(of));
            }
        }
        false
    }

    fn check_invariants(&self) {
        for place in 0..PLACES {
            let holders = (0..OWNERS).filter_map(|owner| self.own(owner, place)).collect::<Vec<_>>();
            assert!(holders.len() <= 1 || !holders.contains(&X), "{place}: {holders:?}");
        }
    }
}

struct Both {
    locks: LockTable,
    oracle: Oracle,
    pending: BTreeMap<u64, PendingLock>,
    random: Random,
    /// Whether locks are compressed. Compressed locks cannot be unlocked one by one, or listed by
    /// key.
    compresses: bool,
}

impl Both {
    fn new(seed: u64, compresses: bool) -> Self {
        let compress_at = if compresses { 2 } else { 1000 };
        let locks = LockTable::new(LockLimits { compress_at, ..LockLimits::default() });
        Self { locks, oracle: Oracle::default(), pending: BTreeMap::new(), random: Random(seed), compresses }
    }

    fn step(&mut self) {
        let owner = self.random.below(OWNERS);
        if self.pending.contains_key(&owner) {
            match self.random.below(8) {
                0 => self.cancel(owner),
                1 => self.release(owner),
                2 => self.convert(owner),
                _ => {}
            }
            return;
        }
        match self.random.below(16) {
            0 | 1 => self.release(owner),
            2 | 3 if !self.compresses => self.unlock(owner),
            4 => self.convert(owner),
            5 | 6 => self.gap(owner),
            _ => self.request(owner),
        }
    }

    fn mode(&mut self) -> LockMode {
        if self.random.one_in(2) {
            S
        } else {
            X
        }
    }

    fn record_place(&mut self) -> u64 {
        2 * self.random.below(RECORDS) + 1
    }

    fn want(&mut self) -> Want {
        let mode = self.mode();
        let place = self.record_place();
        match self.random.below(8) {
            0 | 1 => {
                let at = self.random.below(5) as usize;
                Want::Table(self.random.below(TABLES), TableMode::ALL[at])
            }
            2..=4 => Want::Record(place, mode),
            5 => Want::NextKey(place - 1, place + 1, place, mode),
            6 => Want::NextKey(place, place + 2, place, mode),
            _ => Want::Insert(self.random.below(PLACES)),
        }
    }

    fn request(&mut self, owner: u64) {
        let want = self.want();
        let (low, high, at);
        let lock = match want {
            Want::Table(table, mode) => Lock::Table(TableId(table as u32), mode),
            Want::Record(place, mode) => {
                at = key(place);
                Lock::Record { tree: I, key: &at, mode }
            }
            Want::NextKey(from, to, place, mode) => {
                (low, high, at) = (key(from), key(to), key(place));
                let to = if to == PLACES { Unbounded } else { Excluded(&high[..]) };
                Lock::NextKey { tree: I, range: (Included(&low[..]), to), key: &at, mode }
            }
            Want::Insert(place) => {
                at = key(place);
                Lock::InsertIntention { tree: I, key: &at }
            }
        };
        let wait = match self.random.below(4) {
            0 => Wait::Never,
            _ => Wait::Queue { undo_records_count: self.random.below(10) },
        };
        let is_free = self.oracle.blockers(owner, &want, usize::MAX).is_empty();
        let answer = self.locks.request(Owner(owner), lock, wait);
        match (answer, is_free) {
            // A held lock may still be a new protection of a range against inserts.
            (Ok(Answer::Granted), true) => {
                let had = self.oracle.give(owner, &want);
                assert!(!had || matches!(want, Want::NextKey(..)), "{want:?} was held");
            }
            (Ok(Answer::AlreadyHeld), true) => {
                assert!(self.oracle.give(owner, &want), "{want:?} was not held")
            }
            (Ok(Answer::Refused), false) => assert_eq!(wait, Wait::Never),
            (Ok(Answer::Wait(pending)), false) => {
                self.pending.insert(owner, pending);
                self.oracle.queue.push((owner, want));
                self.note_victims(owner);
            }
            // The failure of a victim may have freed the requested lock.
            (Ok(Answer::Granted), false) => {
                self.oracle.queue.push((owner, want));
                self.note_victims(owner);
                assert!(self.oracle.queue.iter().all(|(other, _)| *other != owner), "{want:?}");
            }
            (Err(Error::Deadlock), false) => {
                self.oracle.queue.push((owner, want));
                assert!(self.oracle.is_in_cycle(owner), "{owner} is in a cycle after {want:?}");
                self.note_victims(owner);
                self.oracle.queue.retain(|(other, _)| *other != owner);
                self.oracle.advance();
            }
            (answer, _) => {
                panic!("{owner} {want:?} {wait:?}: {answer:?}, free: {is_free}: {:?}", self.oracle)
            }
        }
    }

    /// Removes the victims that the table chose from the oracle's queue.
    fn note_victims(&mut self, owner: u64) {
        let is_victim = |pending: &PendingLock| pending.outcome() == Some(Outcome::Deadlock);
        let victims = self.pending.iter().filter(|(_, pending)| is_victim(pending)).map(|(of, _)| *of);
        let victims = victims.filter(|of| self.oracle.queue.iter().any(|(other, _)| other == of));
        let victims = victims.collect::<Vec<_>>();
        for victim in &victims {
            assert!(
                self.oracle.is_in_cycle(*victim),
                "victim {victim} is in a cycle after a request of {owner}"
            );
        }
        self.oracle.queue.retain(|(other, _)| !victims.contains(other));
        self.oracle.advance();
    }

    fn gap(&mut self, owner: u64) {
        let (a, b) = (self.random.below(PLACES), self.random.below(PLACES));
        let (low, high) = (a.min(b), a.max(b) + 1);
        let mode = self.mode();
        let (low_key, high_key) = (key(low), key(high));
        let high_bound = if high == PLACES { Unbounded } else { Excluded(&high_key[..]) };
        let lock = Lock::Gap { tree: I, range: (Included(&low_key[..]), high_bound), mode };
        match self.locks.request(Owner(owner), lock, Wait::Never) {
            Ok(Answer::Granted) => {
                self.oracle.cover(owner, low, high, Level::gap(mode));
            }
            Ok(Answer::AlreadyHeld) => assert!(self.oracle.cover(owner, low, high, Level::gap(mode))),
            other => panic!("{other:?}"),
        }
    }

    fn unlock(&mut self, owner: u64) {
        let (place, mode) = (self.record_place(), self.mode());
        let expected = self.oracle.unlock(owner, place, mode);
        assert_eq!(self.locks.unlock_row(Owner(owner), I, &key(place), mode), expected);
        self.oracle.advance();
    }

    /// Converts an implicit lock as if `owner` had a version of a record. No other owner may have
    /// locked the record.
    fn convert(&mut self, owner: u64) {
        let place = self.record_place();
        let others = (0..OWNERS).filter(|other| *other != owner);
        if others.into_iter().any(|other| self.oracle.own(other, place).is_some()) {
            return;
        }
        if self.compresses && self.oracle.own(owner, place) == Some(X) {
            return;
        }
        let is_active = self.random.one_in(2);
        let converted = self.locks.convert_implicit(Owner(owner), I, &key(place), || is_active).unwrap();
        let had = self.oracle.record_of(owner, place) == Some(X);
        assert_eq!(converted, is_active || had);
        if converted && !had {
            self.oracle.records.entry((owner, place)).or_default()[X as usize] += 1;
        }
        self.note_victims(owner);
    }

    fn cancel(&mut self, owner: u64) {
        if let Some(pending) = self.pending.remove(&owner) {
            assert_eq!(self.locks.cancel(&pending), None);
            self.oracle.queue.retain(|(other, _)| *other != owner);
            self.oracle.advance();
        }
    }

    fn release(&mut self, owner: u64) {
        self.locks.release_all(Owner(owner));
        self.pending.remove(&owner);
        self.oracle.release(owner);
        self.oracle.advance();
    }

    fn compare(&mut self) {
        self.oracle.check_invariants();
        let waiting = |owner: &u64| self.oracle.queue.iter().any(|(other, _)| other == owner);
        let mut victims = Vec::new();
        self.pending.retain(|owner, pending| {
            let outcome = pending.outcome();
            assert_eq!(outcome.is_none(), waiting(owner), "{owner}: {outcome:?} {:?}", self.oracle);
            if outcome == Some(Outcome::Deadlock) {
                victims.push(*owner);
            }
            outcome.is_none()
        });
        let cycle = self.oracle.queue.iter().find(|(owner, _)| self.oracle.is_in_cycle(*owner));
        assert!(cycle.is_none(), "a cycle remains: {:?}", self.oracle);
        if !self.compresses {
            self.compare_listing();
        }
        // A victim is rolled back.
        let has_victims = !victims.is_empty();
        victims.into_iter().for_each(|owner| self.release(owner));
        if has_victims {
            self.compare();
        }
    }

    fn compare_listing(&self) {
        let mut records = BTreeMap::new();
        let mut covers = BTreeMap::new();
        for lock in self.locks.all_locks().into_iter().filter(|lock| !lock.is_waiting) {
            let mode = if lock.mode == TableMode::Shared { S } else { X };
            match lock.on {
                LockedOn::Record { key, .. } => {
                    records.insert((lock.owner.0, u64::from(key[0]) / 10 - 1), mode);
                }
                LockedOn::Range { low, high, has_records, .. } => {
                    let place = |bound: std::ops::Bound<Vec<u8>>| match bound {
                        Included(key) | Excluded(key) => u64::from(key[0]) / 10 - 1,
                        Unbounded => PLACES,
                    };
                    let level = if has_records { Level::next_key(mode) } else { Level::gap(mode) };
                    for at in place(low)..place(high) {
                        covers.insert((lock.owner.0, at), at_place(level, at));
                    }
                }
                _ => {}
            }
        }
        let of = |(owner, place): &(u64, u64)| self.oracle.record_of(*owner, *place);
        let expected = self.oracle.records.keys().filter_map(|at| Some((*at, of(at)?))).collect();
        assert_eq!(records, expected);
        assert_eq!(covers, self.oracle.covers);
    }

    fn drain(&mut self) {
        for owner in (0..OWNERS).cycle().take((OWNERS * OWNERS) as usize) {
            if !self.pending.contains_key(&owner) {
                self.release(owner);
                self.compare();
            }
        }
        assert!(self.pending.is_empty(), "no owner may still wait: {:?}", self.oracle.queue);
        (0..OWNERS).for_each(|owner| self.locks.release_all(Owner(owner)));
        self.locks.is_clean();
    }
}

fn run(seeds: std::ops::Range<u64>, compresses: bool) {
    for seed in seeds {
        let mut both = Both::new(seed, compresses);
        let steps = std::panic::AssertUnwindSafe(|| {
            for _ in 0..300 {
                both.step();
                both.compare();
            }
            both.drain();
        });
        assert!(std::panic::catch_unwind(steps).is_ok(), "seed {seed}, compresses: {compresses}");
    }
}

#[test]
fn random_requests_are_answered_as_an_oracle_answers_them() {
    run(0..150, false);
    for mark in ["locks: victim asks", "locks: victim waits"] {
        assert!(crate::base::reach::count(mark) > 0, "{mark}");
    }
}

#[test]
fn random_requests_with_compression_are_answered_as_an_oracle_answers_them() {
    run(1000..1150, true);
    assert!(crate::base::reach::count("locks: compress") > 0);
}

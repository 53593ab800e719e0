//! The current stalls, in places where the other threads can see them.
//!
//! Invariants
//!   I1  A place belongs to the thread that changed it from `FREE`, until it is `FREE` again.
//!   I2  A reader sees a stall completely, or not at all.
//!   I3  No thread waits for a place. If all places are taken, a stall gets no place and is not
//!       visible.

use super::Reason;
use std::cell::Cell;
use std::sync::atomic::{fence, AtomicU64, Ordering::*};

const FREE: u64 = 0;
const TAKEN: u64 = 1;
const REASON_BITS: u32 = 8;

thread_local! {
    static LAST: Cell<usize> = const { Cell::new(0) };
}

#[derive(Default, Debug)]
struct Place {
    /// The start of the stall; `FREE`; or `TAKEN` while the thread that took the place describes
    /// its stall.
    since_ns: AtomicU64,
    /// The connection in the upper bits, and the reason in the lowest bits.
    whose: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Places(Box<[Place]>);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lasting {
    pub(super) reason: Reason,
    pub(super) connection: u64,
    pub(super) since_ns: u64,
}

/// The place of a stall, if one was free. Dropping this value frees the place.
pub(super) struct Taken<'p>(Option<&'p Place>);

impl Places {
    pub(super) fn new(count: usize) -> Self {
        Self((0..count).map(|_| Place::default()).collect())
    }

    /// Makes a stall visible until the returned value is dropped.
    pub(super) fn take(&self, stall: Lasting) -> Taken<'_> {
        let (last, count) = (LAST.get(), self.0.len());
        let from_last = (0..count).map(|step| (last + step) % count);
        let free = from_last.filter_map(|at| Some((at, self.0.get(at)?))).find(|(_, place)| {
            place.since_ns.load(Relaxed) == FREE
                && place.since_ns.compare_exchange(FREE, TAKEN, Acquire, Relaxed).is_ok()
        });
        let Some((at, place)) = free else { return Taken(None) };
        LAST.set(at);
        // A reader that sees the new owner also sees that the old owner's `since_ns` was replaced
        // (I2).
        fence(Release);
        place.whose.store(stall.connection << REASON_BITS | stall.reason as u64, Relaxed);
        place.since_ns.store(stall.since_ns.max(TAKEN + 1), Release);
        Taken(Some(place))
    }

    pub(super) fn lasting(&self) -> impl Iterator<Item = Lasting> + '_ {
        self.0.iter().filter_map(|place| {
            let since_ns = place.since_ns.load(Acquire);
            if since_ns <= TAKEN {
                return None;
            }
            let whose = place.whose.load(Relaxed);
            fence(Acquire);
            let is_whole = place.since_ns.load(Relaxed) == since_ns;
            let reason = Reason::ALL.get(whose as usize & ((1 << REASON_BITS) - 1)).filter(|_| is_whole)?;
            Some(Lasting { reason: *reason, connection: whose >> REASON_BITS, since_ns })
        })
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.0 {
            place.since_ns.store(FREE, Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stall(reason: Reason, connection: u64, since_ns: u64) -> Lasting {
        Lasting { reason, connection, since_ns }
    }

    #[test]
    fn a_stall_is_seen_until_it_has_ended() {
        let places = Places::new(64);
        let stalls = [stall(Reason::Disk, 0, 17), stall(Reason::RowLock, 1 << 50, u64::MAX)];
        let taken = stalls.map(|stall| places.take(stall));
        assert_eq!(places.lasting().collect::<Vec<_>>(), stalls);
        let [first, second] = taken;
        drop(first);
        assert_eq!(places.lasting().collect::<Vec<_>>(), [stalls[1]]);
        drop(second);
        assert_eq!(places.lasting().count(), 0);
    }

    #[test]
    fn more_stalls_than_places_are_not_seen_and_end_well() {
        let places = Places::new(64);
        let take = |_| places.take(stall(Reason::Memory, 1, 9));
        let mut taken: Vec<_> = (0..64 + 3).map(take).collect();
        assert_eq!(places.lasting().count(), 64);
        taken.truncate(2);
        assert_eq!(places.lasting().count(), 2);
    }

    #[test]
    fn who_looks_while_places_change_their_owners_sees_whole_stalls() {
        let places = Places::new(64);
        std::thread::scope(|scope| {
            for thread in 1..4 {
                let places = &places;
                scope.spawn(move || {
                    for round in 0..20_000 {
                        let reason = Reason::ALL[(round % Reason::ALL.len() as u64) as usize];
                        let _one = places.take(stall(reason, thread << 32 | round, 100 + round));
                    }
                });
            }
            for _ in 0..2_000 {
                for Lasting { reason, connection, since_ns } in places.lasting() {
                    let round = since_ns - 100;
                    assert_eq!(connection & 0xFFFF_FFFF, round);
                    assert_eq!(reason, Reason::ALL[(round % Reason::ALL.len() as u64) as usize]);
                }
            }
        });
        assert_eq!(places.lasting().count(), 0);
    }
}

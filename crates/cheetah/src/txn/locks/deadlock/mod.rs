//! The lock table: which owners wait for each other, and how cycles are broken.
//!
//! A search for a cycle starts at each owner that begins to wait, and whenever a waiter receives a
//! lock because an implicit lock becomes explicit. No owner begins or ends waiting meanwhile: all
//! of that happens under the mutex of [`Waits`]. Waiters release no locks, so a cycle that was
//! found is real. They receive further locks only from implicit ones, so no cycle arises
//! undetected. An owner whose request is queued must request nothing else, not even a range, which
//! is always granted.

pub(super) mod report;
pub(super) mod victims;

use super::grant::{for_each_holder, HeldAs};
use super::lock_table::LockTable;
use super::locked_on::LockedOn;
use super::modes::{LockMode, TableMode};
use super::pending_lock::Outcome;
use super::request::{wanted, Lock, RowRequest, RowWant, Want};
use super::waits::{Waiter, Waits};
use super::Owner;
use crate::base::{reach, TableId};
use report::{Blocking, BlockingKind, Deadlock, DeadlockMember};
use std::collections::HashSet;
use std::sync::Arc;

impl LockTable {
    /// Returns the number of deadlocks so far, and the latest one.
    pub fn deadlocks(&self) -> (u64, Option<Deadlock>) {
        let waits = self.waits.lock();
        (waits.deadlocks_count, waits.latest.clone())
    }

    /// Sets which owner a deadlock must spare. For two owners in one deadlock, `choice` returns the
    /// one that must commit after the other, if the order matters. The other is spared, regardless
    /// of how much work it would lose. `choice` is called while both wait; it must not wait, nor
    /// use this lock table. Only the first call has an effect.
    pub fn set_victim_choice(&self, choice: impl Fn(Owner, Owner) -> Option<Owner> + Send + Sync + 'static) {
        let _ = self.chooser.0.set(Box::new(choice));
    }

    /// Breaks all cycles through the waiter `start`. Returns whether `start` was a victim.
    pub(super) fn resolve_deadlocks(&self, waits: &mut Waits, start: Owner) -> bool {
        let cycles = self.cycles_to_break(waits, start);
        let is_victim = cycles.iter().any(|(_, victim)| *victim == start);
        for (members, victim) in cycles {
            reach::mark(if victim == start { "locks: victim asks" } else { "locks: victim waits" });
            waits.deadlocks_count += 1;
            waits.latest = Some(Deadlock { number: waits.deadlocks_count, members, victim });
            if let Some(waiter) = self.finish(waits, victim, Outcome::Deadlock) {
                self.advance_behind(waits, &waiter.want);
            }
        }
        is_victim
    }

    /// Returns cycles through `start`, each with its victim. Without these victims no cycle
    /// remains, and all of them are needed for that.
    fn cycles_to_break(&self, waits: &Waits, start: Owner) -> Vec<(Vec<DeadlockMember>, Owner)> {
        let (mut cycles, mut victims) = (Vec::new(), Vec::new());
        while let Some(members) = self.cycle(waits, start, &victims) {
            let Some(victim) = self.victim(&members) else { break };
            if victim == start {
                // The victim is in all of the cycles.
                return vec![(members, victim)];
            }
            victims.push(victim);
            cycles.push((members, victim));
        }
        cycles.retain(|(_, victim)| {
            let others = victims.iter().copied().filter(|other| other != victim).collect::<Vec<_>>();
            let is_needed = self.cycle(waits, start, &others).is_some();
            if !is_needed {
                victims = others;
            }
            is_needed
        });
        cycles
    }

    fn victim(&self, members: &[DeadlockMember]) -> Option<Owner> {
        let is_spared = |member: &&DeadlockMember| {
            members.iter().any(|other| self.chooser.spares(member.owner, other.owner))
        };
        let lightest = |members: &mut dyn Iterator<Item = &DeadlockMember>| {
            members.min_by_key(|member| member.weight).map(|member| member.owner)
        };
        lightest(&mut members.iter().filter(|member| !is_spared(member)))
            .or_else(|| lightest(&mut members.iter()))
    }

    /// Returns a cycle of waiters that begins with `start` and contains none of `victims`.
    fn cycle(&self, waits: &Waits, start: Owner, victims: &[Owner]) -> Option<Vec<DeadlockMember>> {
        let mut path = vec![(start, self.edges(waits, start, victims))];
        let mut seen = HashSet::new();
        while let Some((_, rest)) = path.last_mut() {
            let Some(next) = rest.pop() else {
                path.pop();
                continue;
            };
            if next == start {
                let owners = path.iter().map(|(owner, _)| *owner).collect::<Vec<_>>();
                return Some(self.members(waits, &owners));
            }
            if waits.is_waiting(next) && !victims.contains(&next) && seen.insert(next) {
                path.push((next, self.edges(waits, next, victims)));
            }
        }
        None
    }

    fn members(&self, waits: &Waits, owners: &[Owner]) -> Vec<DeadlockMember> {
        let nexts = owners.iter().cycle().skip(1);
        let member = |(owner, next): (&Owner, &Owner)| {
            let waiter = waits.waiter(*owner)?;
            Some(DeadlockMember {
                owner: *owner,
                weight: waiter.undo_records_count + self.owners.locks_count(*owner) as u64,
                waits_for: LockedOn::wanted(&waiter.want),
                blocked_by: self
                    .blockers(waits, waiter)
                    .into_iter()
                    .find(|blocking| blocking.owner == *next)?,
            })
        };
        owners.iter().zip(nexts).filter_map(member).collect()
    }

    /// Returns the owners that would keep `owner` waiting for a lock.
    pub fn blockers_of_request(&self, owner: Owner, lock: Lock<'_>) -> Vec<Owner> {
        let Some(want) = wanted(lock) else { return Vec::new() };
        let waits = self.waits.lock();
        let slot = Arc::default();
        let (turn, undo_records_count) = (waits.now(), 0);
        let waiter = Waiter { turn, owner, undo_records_count, want, upgrades: false, slot };
        self.blocking_owners(&waits, &waiter)
    }

    pub(super) fn blocking_owners(&self, waits: &Waits, waiter: &Waiter) -> Vec<Owner> {
        self.blockers(waits, waiter).into_iter().map(|blocking| blocking.owner).collect()
    }

    /// Returns the owners that a waiter waits for, as far as they matter for cycles without
    /// `victims`: an omitted owner leads only to owners that are included.
    fn edges(&self, waits: &Waits, owner: Owner, victims: &[Owner]) -> Vec<Owner> {
        let Some(waiter) = waits.waiter(owner) else { return Vec::new() };
        let Want::Row(request @ RowRequest { want: RowWant::Record(mode) | RowWant::NextKey(mode, _), .. }) =
            &waiter.want
        else {
            return self.blocking_owners(waits, waiter);
        };
        let holders = self.holders(request, owner);
        // All waiters for this record ultimately wait for its holders.
        if holders.0.is_none() && !holders.1.iter().any(|holder| waits.is_waiting(holder.owner)) {
            return Vec::new();
        }
        let mut edges = Vec::new();
        let before = waits.before_in_record(request.place(), waiter.turn, owner, holders.0, *mode);
        for other in before.rev().filter(|other| !victims.contains(&other.owner)) {
            edges.push(other.owner);
            // It waits for all requests before it, and for all holders.
            if other.closes_queue() && other.record_mode() == Some(LockMode::Exclusive) {
                return edges;
            }
        }
        edges.extend(conflicting(holders.1, *mode).map(|blocking| blocking.owner));
        edges
    }

    /// Returns the mode in which `owner` holds a record, and the other owners' locks on it.
    fn holders(&self, request: &RowRequest, owner: Owner) -> (Option<LockMode>, Vec<Blocking>) {
        let stripe = self.stripes.lock(request.hash);
        let trees = self.tree_shard(request.tree).trees.read();
        let (mut own, mut others) = (None, Vec::new());
        for_each_holder(stripe.get(request.hash), trees.get(request.tree), request, |holder, mode, how| {
            if holder == owner {
                own = own.max(Some(mode));
                return;
            }
            let kind = if how == HeldAs::Range { BlockingKind::Range } else { BlockingKind::Lock };
            others.push(Blocking { owner: holder, mode: mode.into(), kind });
        });
        (own, others)
    }

    pub(super) fn blockers(&self, waits: &Waits, waiter: &Waiter) -> Vec<Blocking> {
        match &waiter.want {
            Want::Table(table, mode) => self.blockers_on_table(waits, waiter, (*table, *mode)),
            Want::Row(request) => match &request.want {
                RowWant::Insert => self.blockers_of_insert(waits, waiter, request),
                RowWant::Record(mode) | RowWant::NextKey(mode, _) => {
                    let (own, others) = self.holders(request, waiter.owner);
                    let before =
                        waits.before_in_record(request.place(), waiter.turn, waiter.owner, own, *mode);
                    conflicting(others, *mode).chain(before.filter_map(earlier)).collect()
                }
            },
        }
    }

    fn blockers_of_insert(&self, waits: &Waits, waiter: &Waiter, request: &RowRequest) -> Vec<Blocking> {
        let own = self.holders(request, waiter.owner).0;
        let trees = self.tree_shard(request.tree).trees.read();
        let shared = trees.get(request.tree);
        let covers = shared.map_or(&[][..], |shared| shared.ranges.covers(request.key.as_slice()));
        let covers = covers.iter().filter(|cover| cover.owner != waiter.owner).map(|cover| Blocking {
            owner: cover.owner,
            mode: cover.level.mode().into(),
            kind: BlockingKind::Range,
        });
        let before = waits.next_keys_around(request, waiter.turn, (waiter.owner, own));
        covers.chain(before.filter_map(earlier)).collect()
    }

    fn blockers_on_table(
        &self,
        waits: &Waits,
        waiter: &Waiter,
        (table, mode): (TableId, TableMode),
    ) -> Vec<Blocking> {
        let shard = self.tables.lock(table);
        let Some(locks) = shard.get(&table) else { return Vec::new() };
        let conflicts = |(owner, held): &(Owner, TableMode)| {
            *owner != waiter.owner && mode.conflicting() & held.bit() != 0
        };
        let holders = locks.holds().filter(conflicts).map(|(owner, mode)| Blocking {
            owner,
            mode,
            kind: BlockingKind::Lock,
        });
        let own = (waiter.owner, locks.modes_of(waiter.owner));
        let before = waits.before_in_table((table, waiter.turn), own, mode);
        holders.chain(before.filter_map(earlier)).collect()
    }
}

fn conflicting(others: Vec<Blocking>, mode: LockMode) -> impl Iterator<Item = Blocking> {
    let conflicting = TableMode::from(mode).conflicting();
    others.into_iter().filter(move |other| conflicting & other.mode.bit() != 0)
}

fn earlier(waiter: &Waiter) -> Option<Blocking> {
    let mode = match &waiter.want {
        Want::Table(_, mode) => *mode,
        Want::Row(request) => request.record_mode()?.into(),
    };
    Some(Blocking { owner: waiter.owner, mode, kind: BlockingKind::EarlierRequest })
}

//! Reports about a deadlock, and about the owners that keep a request waiting.

use crate::txn::locks::locked_on::LockedOn;
use crate::txn::locks::modes::TableMode;
use crate::txn::locks::Owner;
use std::fmt;

/// A cycle of waiters, as it was found.
#[derive(Clone, Debug)]
pub struct Deadlock {
    /// Its ordinal, counted from startup.
    pub number: u64,
    /// Each member waits for the next one, and the last one for the first, which has just begun to
    /// wait.
    pub members: Vec<DeadlockMember>,
    /// The owner whose request failed: of those that need not be spared
    /// (`LockTable::set_victim_choice`), one with the least weight, preferably the one that has
    /// just begun to wait. An owner is not made a victim if another victim already breaks its
    /// cycle.
    pub victim: Owner,
}

/// An owner that waits in a cycle.
#[derive(Clone, Debug)]
pub struct DeadlockMember {
    /// The owner.
    pub owner: Owner,
    /// The work that it would lose: undo records and locks.
    pub weight: u64,
    /// The object that it waits for, and the requested mode.
    pub waits_for: (LockedOn, TableMode),
    /// The lock of the next member on that object.
    pub blocked_by: Blocking,
}

/// A lock or a request that keeps another request waiting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blocking {
    /// The owner of the lock or the request.
    pub owner: Owner,
    /// The mode that is held or requested.
    pub mode: TableMode,
    /// The kind of obstacle.
    pub kind: BlockingKind,
}

/// How an owner keeps a request waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockingKind {
    /// It holds a lock on the record or the table.
    Lock,
    /// It holds a range that contains the key.
    Range,
    /// It made an earlier request.
    EarlierRequest,
}

impl fmt::Display for BlockingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BlockingKind::Lock => "holds it",
            BlockingKind::Range => "holds a range around it",
            BlockingKind::EarlierRequest => "requested it earlier",
        })
    }
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, member) in self.members.iter().enumerate() {
            let DeadlockMember { owner, weight, waits_for: (on, mode), blocked_by } = member;
            writeln!(
                f,
                "({}) owner {}, weight {weight}, waits for {} on {on}",
                at + 1,
                owner.0,
                mode.name()
            )?;
            let Blocking { owner, mode, kind } = blocked_by;
            writeln!(f, "    owner {} {kind}: {}", owner.0, mode.name())?;
        }
        write!(f, "owner {} is rolled back", self.victim.0)
    }
}

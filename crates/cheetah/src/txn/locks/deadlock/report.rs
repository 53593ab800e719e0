//! Reports about a deadlock, and about the owners that keep a request waiting.

use crate::txn::locks::locked_on::LockedOn;
use crate::txn::locks::modes::TableMode;
use crate::txn::locks::Owner;
use std::fmt;

/// A cycle of waiters, as it was found.
#[derive(Clone, Debug)]
pub struct Deadlock {
    /// Its number, counted from the start.
    pub number: u64,
    /// Each waits for the next one, and the last for the first, which has just begun to wait.
    pub members: Vec<DeadlockMember>,
    /// The owner whose request was given up: of those that need not be spared
    /// (`LockTable::set_victim_choice`), and of them with the least weight, the one who has begun
    /// to wait, or else any. An owner that would be given up for nothing, as another victim is in
    /// its cycle too, is no victim.
    pub victim: Owner,
}

/// An owner that waits in a cycle.
#[derive(Clone, Debug)]
pub struct DeadlockMember {
    /// The owner.
    pub owner: Owner,
    /// The work that it would lose: undo records, and locks.
    pub weight: u64,
    /// The object of its wait, and the mode in which it wants it.
    pub waits_for: (LockedOn, TableMode),
    /// The lock of the next one on it.
    pub blocked_by: Blocking,
}

/// The lock, or the request, that keeps a request waiting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blocking {
    /// The owner of the lock or the request.
    pub owner: Owner,
    /// The mode in which it has it, or wants it.
    pub mode: TableMode,
    /// The kind of obstacle.
    pub kind: BlockingKind,
}

/// The ways in which an owner keeps a request waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockingKind {
    /// By a lock of the record or the table.
    Lock,
    /// By a range in which the key lies.
    Range,
    /// By a request that was made before.
    EarlierRequest,
}

impl fmt::Display for BlockingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BlockingKind::Lock => "has it",
            BlockingKind::Range => "has a range around it",
            BlockingKind::EarlierRequest => "has asked for it before",
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

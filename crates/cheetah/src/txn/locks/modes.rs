//! The modes of locks, and which of them conflict: the same as in InnoDB.

/// How a record, a range or a whole table is locked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LockMode {
    /// Other owners may hold the lock in this mode, too.
    Shared,
    /// No other owner may hold the lock.
    Exclusive,
}

impl LockMode {
    pub(super) fn conflicts(self, other: LockMode) -> bool {
        self == LockMode::Exclusive || other == LockMode::Exclusive
    }
}

/// How a table is locked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TableMode {
    /// IS: its owner will lock rows to read them.
    IntentShared,
    /// IX: its owner will lock rows to change them.
    IntentExclusive,
    /// S: no other owner changes a row.
    Shared,
    /// X: no other owner locks anything.
    Exclusive,
    /// AUTO-INC: no other owner takes numbers from the table's counter.
    AutoInc,
}

use TableMode::{AutoInc, Exclusive, IntentExclusive, IntentShared, Shared};

impl From<LockMode> for TableMode {
    fn from(mode: LockMode) -> Self {
        match mode {
            LockMode::Shared => Shared,
            LockMode::Exclusive => Exclusive,
        }
    }
}

impl TableMode {
    pub(super) const ALL: [TableMode; 5] = [IntentShared, IntentExclusive, Shared, Exclusive, AutoInc];

    pub(super) fn bit(self) -> u8 {
        1 << self as u8
    }

    pub(super) fn conflicting(self) -> u8 {
        match self {
            IntentShared => Exclusive.bit(),
            IntentExclusive => Shared.bit() | Exclusive.bit(),
            Shared => IntentExclusive.bit() | Exclusive.bit() | AutoInc.bit(),
            Exclusive => Self::ALL.iter().fold(0, |set, mode| set | mode.bit()),
            AutoInc => Shared.bit() | Exclusive.bit() | AutoInc.bit(),
        }
    }

    /// Returns the modes that include this one.
    pub(super) fn given_by(self) -> u8 {
        match self {
            IntentShared => IntentShared.bit() | IntentExclusive.bit() | Shared.bit() | Exclusive.bit(),
            IntentExclusive => IntentExclusive.bit() | Exclusive.bit(),
            Shared => Shared.bit() | Exclusive.bit(),
            Exclusive => Exclusive.bit(),
            AutoInc => AutoInc.bit() | Exclusive.bit(),
        }
    }

    /// Returns whether this mode includes `other`.
    pub fn gives(self, other: TableMode) -> bool {
        other.given_by() & self.bit() != 0
    }

    /// Returns the name that users of InnoDB know.
    pub fn name(self) -> &'static str {
        match self {
            IntentShared => "IS",
            IntentExclusive => "IX",
            Shared => "S",
            Exclusive => "X",
            AutoInc => "AUTO_INC",
        }
    }
}

/// The parts of a range that an owner holds. Each level includes the lower ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Level {
    /// No record may be inserted there; the mode is for listings only.
    GapShared,
    GapExclusive,
    /// In addition, the records are locked in the mode.
    RecordsShared,
    RecordsExclusive,
}

impl Level {
    pub(super) fn gap(mode: LockMode) -> Self {
        match mode {
            LockMode::Shared => Level::GapShared,
            LockMode::Exclusive => Level::GapExclusive,
        }
    }

    pub(super) fn next_key(mode: LockMode) -> Self {
        match mode {
            LockMode::Shared => Level::RecordsShared,
            LockMode::Exclusive => Level::RecordsExclusive,
        }
    }

    pub(super) fn records(self) -> Option<LockMode> {
        match self {
            Level::GapShared | Level::GapExclusive => None,
            Level::RecordsShared => Some(LockMode::Shared),
            Level::RecordsExclusive => Some(LockMode::Exclusive),
        }
    }

    pub(super) fn mode(self) -> LockMode {
        match self {
            Level::GapShared | Level::RecordsShared => LockMode::Shared,
            Level::GapExclusive | Level::RecordsExclusive => LockMode::Exclusive,
        }
    }

    pub(super) fn conflicts(self, other: Level) -> bool {
        matches!((self.records(), other.records()), (Some(a), Some(b)) if a.conflicts(b))
    }

    pub(super) fn without_records(self) -> Self {
        Level::gap(self.mode())
    }
}

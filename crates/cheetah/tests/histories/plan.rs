//! Plans of random transactions, like those that tests/isolation/plans.py makes for the server. A
//! plan does not depend on the results of its reads.
//!
//! Keys are in groups of three. Two groups are in use at a time. After every 40 transactions a new
//! group replaces one of the two, so that rows are inserted all the time and lists remain short.

use crate::Choice;
use cheetah::testing::db::{Isolation, LockMode};
use cheetah_io::Rng;

/// The number of keys in a group.
pub(crate) const GROUP_KEYS: u64 = 3;
const GROUPS_IN_USE: u64 = 2;
const TXNS_PER_GROUP: u64 = 40;

/// The maximum number of recently written values to search for.
const RECENT_MAX: usize = 24;
/// The maximum number of values in a search.
const SEARCHED_MAX: u64 = 3;

/// How a read finds its rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Via {
    /// One key after the other.
    Keys,
    /// A range of the clustered index.
    Range,
    /// A range of the clustered index, several rows at once.
    Rows,
    /// A range of the clustered index. Only the row of the first key is used, and the locks of
    /// other rows are released.
    Picked,
    /// The index by group and number, and then the rows.
    Numbers,
    /// The index by group, and then the rows.
    Group,
    /// Only the index by group and number, without reading the rows (a covering read).
    Covered,
    /// The full-text index, by a word that all rows of the group have.
    Words,
    /// The full-text index, by words that stand for written values.
    Found,
}

impl Via {
    /// Returns the access path that finds the same rows by the clustered index alone.
    fn by_key(self) -> Self {
        match self {
            Via::Numbers | Via::Group | Via::Covered => Via::Range,
            by_key => by_key,
        }
    }
}

/// A statement that reads.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) keys: Vec<u64>,
    pub(crate) via: Via,
    pub(crate) lock: Option<LockMode>,
    /// The keys and values to search for.
    pub(crate) words: Vec<(u64, u64)>,
}

impl Reading {
    fn of_key(key: u64, lock: Option<LockMode>) -> Self {
        Self { keys: vec![key], via: Via::Keys, lock, words: Vec::new() }
    }
}

/// How a row is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum How {
    /// Inserted, or changed if it exists.
    Upsert,
    /// Changed if it exists.
    Update,
    /// Deleted if it exists, and inserted.
    Replace,
    /// Deleted.
    Delete,
}

/// A statement.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Read(Reading),
    Write { key: u64, value: u64, how: How },
    Savepoint,
    Back,
    Snapshot,
}

/// A transaction.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) level: Isolation,
    pub(crate) steps: Vec<Step>,
    pub(crate) commits: bool,
}

/// Makes plans.
#[derive(Debug)]
pub(crate) struct Planner {
    rng: Rng,
    is_list: bool,
    has_indexes: bool,
    has_words: bool,
    /// The most recent values, and their keys.
    recent: Vec<(u64, u64)>,
    levels: Vec<Isolation>,
    plans_count_max: u64,
    plans_count: u64,
    values_count: u64,
}

impl Planner {
    pub(crate) fn new(choice: &Choice) -> Self {
        let Choice { seed, is_list, has_indexes, has_words, ref levels, txns_count, .. } = *choice;
        Self {
            rng: Rng::new(seed),
            is_list,
            has_indexes,
            has_words,
            recent: Vec::new(),
            levels: levels.clone(),
            plans_count_max: txns_count,
            plans_count: 0,
            values_count: 0,
        }
    }

    /// Returns an upper bound on the number of keys used by all plans together.
    pub(crate) fn keys_count(&self) -> u64 {
        (self.plans_count_max / TXNS_PER_GROUP + GROUPS_IN_USE) * GROUP_KEYS
    }

    /// The next transaction, or `None` after the last one.
    pub(crate) fn plan(&mut self) -> Option<Plan> {
        if self.plans_count == self.plans_count_max {
            return None;
        }
        self.plans_count += 1;
        let level = self.one_of(&self.levels.clone());
        let mut steps = Vec::new();
        if level == Isolation::RepeatableRead && self.rng.chance(0.15) {
            steps.push(Step::Snapshot);
        }
        match self.rng.below(10) {
            0 | 1 => (0..2 + self.rng.below(3)).for_each(|_| steps.push(self.read(None))),
            2 | 3 => self.read_then_write(&mut steps),
            _ => (0..1 + self.rng.below(5)).for_each(|_| steps.push(self.any_step())),
        }
        if self.rng.chance(0.25) {
            self.add_savepoint(&mut steps);
        }
        Some(Plan { level, steps, commits: !self.rng.chance(0.12) })
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.rng.below(choices.len() as u64) as usize]
    }

    fn any_step(&mut self) -> Step {
        let lock = self.one_of(&[None, None, Some(LockMode::Shared), Some(LockMode::Exclusive)]);
        match self.rng.chance(0.5) {
            true => self.read(lock),
            false => self.write(None),
        }
    }

    fn read(&mut self, lock: Option<LockMode>) -> Step {
        let via = match lock {
            None if self.has_words => self.one_of(&[
                Via::Keys,
                Via::Range,
                Via::Rows,
                Via::Group,
                Via::Covered,
                Via::Words,
                Via::Words,
                Via::Found,
                Via::Found,
            ]),
            None => self.one_of(&[Via::Keys, Via::Range, Via::Rows, Via::Numbers, Via::Group, Via::Covered]),
            Some(_) => {
                self.one_of(&[Via::Keys, Via::Range, Via::Picked, Via::Numbers, Via::Group, Via::Covered])
            }
        };
        let via = if self.has_indexes { via } else { via.by_key() };
        let first = self.group() * GROUP_KEYS;
        let mut keys = (first..first + GROUP_KEYS).collect::<Vec<_>>();
        let mut words = Vec::new();
        match via {
            Via::Found => {
                words.extend(self.recent.iter().filter(|(key, _)| keys.contains(key)));
                self.rng.shuffle(&mut words);
                words.truncate(1 + self.rng.below(SEARCHED_MAX) as usize);
            }
            Via::Keys => {
                self.rng.shuffle(&mut keys);
                keys.truncate(1 + self.rng.below(GROUP_KEYS) as usize);
            }
            Via::Picked => {
                let wanted = self.rng.below(GROUP_KEYS) as usize;
                keys.swap(0, wanted);
            }
            _ => {}
        }
        Step::Read(Reading { keys, via, lock, words })
    }

    /// A lost update, write skew, or a row whose lock must survive the rollback of its change.
    fn read_then_write(&mut self, steps: &mut Vec<Step>) {
        let lock = self.one_of(&[None, None, Some(LockMode::Exclusive)]);
        let keys = [self.key(), self.key()];
        for key in keys {
            steps.push(Step::Read(Reading::of_key(key, lock)));
        }
        let key = self.one_of(&keys);
        let write = self.write(Some(key));
        if lock.is_some() && self.rng.chance(0.5) {
            steps.push(self.pick_beside(keys[0], lock));
        }
        if lock.is_some() && self.rng.chance(0.5) {
            steps.extend([Step::Savepoint, write, Step::Back]);
            steps.push(self.any_step());
        } else {
            steps.push(write);
        }
        if self.rng.chance(0.3) {
            steps.push(Step::Read(Reading::of_key(key, None)));
        }
    }

    /// A read that finds the row of `key`, uses another row, and releases the locks that only this
    /// read took.
    fn pick_beside(&mut self, key: u64, lock: Option<LockMode>) -> Step {
        let first = key / GROUP_KEYS * GROUP_KEYS;
        let mut keys = (first..first + GROUP_KEYS).collect::<Vec<_>>();
        keys.rotate_left(((key - first + 1 + self.rng.below(GROUP_KEYS - 1)) % GROUP_KEYS) as usize);
        Step::Read(Reading { keys, via: Via::Picked, lock, words: Vec::new() })
    }

    fn write(&mut self, key: Option<u64>) -> Step {
        self.values_count += 1;
        let how = match self.is_list {
            true => self.one_of(&[How::Upsert, How::Upsert, How::Update, How::Replace]),
            false => self.one_of(&[How::Upsert, How::Update, How::Update, How::Replace, How::Delete]),
        };
        let (key, value) = (key.unwrap_or_else(|| self.key()), self.values_count);
        if self.recent.len() == RECENT_MAX {
            self.recent.remove(0);
        }
        self.recent.push((key, value));
        Step::Write { key, value, how }
    }

    fn group(&mut self) -> u64 {
        self.plans_count / TXNS_PER_GROUP + self.rng.below(GROUPS_IN_USE)
    }

    fn key(&mut self) -> u64 {
        self.group() * GROUP_KEYS + self.rng.below(GROUP_KEYS)
    }

    fn add_savepoint(&mut self, steps: &mut Vec<Step>) {
        let is_fixed = matches!(steps.first(), Some(Step::Snapshot));
        let from = self.rng.below(steps.len() as u64 + 1).max(u64::from(is_fixed));
        let to = from + self.rng.below(steps.len() as u64 + 1 - from);
        steps.insert(from as usize, Step::Savepoint);
        steps.insert(to as usize + 1, Step::Back);
    }
}

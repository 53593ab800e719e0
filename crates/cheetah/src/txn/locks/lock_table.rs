//! The lock table: requests.

use super::deadlock::Chooser;
use super::grant::{Tried, Turn};
use super::key::{hash_key, KeyBytes, Span};
use super::memory::Account;
use super::modes::{Level, LockMode, TableMode};
use super::owners::{piece_bytes, Owners};
use super::shared::Trees;
use super::stripe::Stripes;
use super::tables::Tables;
use super::ticket::{Outcome, Ticket};
use super::waits::{RowRequest, RowWant, Waits, Want};
use super::Owner;
use crate::base::{Error, Result, TableId, TreeId};
use crate::memory::MemoryBudget;
use parking_lot::{Mutex, RwLock};
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

/// Shards of what trees have in common; a power of two. The indexes of a table, numbered one after the other, do not meet.
const TREE_SHARDS_COUNT: usize = 64;

/// A range of keys: its low and its high bound. Without a high bound it reaches to the supremum.
pub type KeyRange<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// What to lock, and how.
#[derive(Clone, Copy, Debug)]
pub enum Lock<'a> {
    /// A table.
    Table(TableId, TableMode),
    /// One record, and not the gap before it.
    Record {
        /// The index.
        tree: TreeId,
        /// The record's key, as stored there.
        key: &'a [u8],
        /// How.
        mode: LockMode,
    },
    /// A record and the range that a scan has passed to get to it: nobody puts a record there. The range holds the key and
    /// touches what the scan has locked already; it becomes one with that.
    NextKey {
        /// The index.
        tree: TreeId,
        /// From where the scan was up to the record, both ways.
        range: KeyRange<'a>,
        /// The record's key.
        key: &'a [u8],
        /// How.
        mode: LockMode,
    },
    /// A range in which nobody puts a record; records in it are not locked. Always granted. The mode is for listings.
    Gap {
        /// The index.
        tree: TreeId,
        /// The range.
        range: KeyRange<'a>,
        /// How.
        mode: LockMode,
    },
    /// The same, with its records: there is none, or they are the owner's own. Becomes one with what a scan locks by
    /// [`NextKey`](Self::NextKey) before and behind it. Always granted; the gap only, where others have keys in it.
    Range {
        /// The index.
        tree: TreeId,
        /// The range.
        range: KeyRange<'a>,
        /// How.
        mode: LockMode,
    },
    /// The intention to put a record there. Waits for the ranges of others in which the key lies, keeps nobody from
    /// anything, and leaves nothing behind: after a wait, ask again.
    InsertIntention {
        /// The index.
        tree: TreeId,
        /// The key.
        key: &'a [u8],
    },
}

/// What to do when somebody is in the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Queue the request.
    Queue {
        /// Undo records that the owner has written: with its locks they tell how much a deadlock's victim would lose.
        undo_records_count: u64,
    },
    /// Refuse it: NOWAIT and SKIP LOCKED, which differ in what they make of that.
    Never,
}

/// The answer to a request.
#[derive(Debug)]
pub enum Answer {
    /// The lock is held, and was not before, or not in that mode.
    Granted,
    /// The owner had it, or more, before.
    AlreadyHeld,
    /// The request is queued.
    Wait(Ticket),
    /// Somebody is in the way of a request that does not wait.
    Refused,
}

/// Bounds of a lock table.
#[derive(Clone, Copy, Debug)]
pub struct LockLimits {
    /// Memory for locks.
    pub bytes_max: usize,
    /// Record locks of one owner on one tree beyond which they are compressed.
    pub compress_at: usize,
}

impl Default for LockLimits {
    /// What an engine with little memory can spare: 64 MiB, some 4 million compressed locks.
    fn default() -> Self {
        Self { bytes_max: 64 << 20, compress_at: 10_000 }
    }
}

/// A shard of [`Trees`].
#[derive(Default, Debug)]
#[repr(align(64))]
pub(super) struct TreeShard {
    pub(super) trees: RwLock<Trees>,
    /// How many trees have something in common. Whoever holds a stripe and reads 0 need not look at the trees: what is
    /// put there afterwards does not bear on the record he asks for, or waits for that stripe.
    pub(super) in_use: AtomicUsize,
    /// How many wait for rows of these trees. Read after something was taken away under `trees`, changed under it.
    pub(super) waiters: AtomicUsize,
}

/// The locks of all tables and rows. See the module.
#[derive(Debug)]
pub struct LockTable {
    pub(super) stripes: Stripes,
    pub(super) tree_shards: Vec<TreeShard>,
    pub(super) tables: Tables,
    pub(super) owners: Owners,
    pub(super) waits: Mutex<Waits>,
    pub(super) account: Account,
    pub(super) chooser: Chooser,
}

impl Default for LockTable {
    fn default() -> Self {
        Self::new(LockLimits::default())
    }
}

impl LockTable {
    /// Without locks, and with a book of its own for their memory.
    pub fn new(limits: LockLimits) -> Self {
        Self::counted(limits, Arc::new(MemoryBudget::new(limits.bytes_max as u64)))
    }

    /// Without locks; their memory counts in `book`.
    pub fn counted(limits: LockLimits, book: Arc<MemoryBudget>) -> Self {
        Self {
            stripes: Stripes::default(),
            tree_shards: (0..TREE_SHARDS_COUNT).map(|_| TreeShard::default()).collect(),
            tables: Tables::default(),
            owners: Owners::new(limits.compress_at),
            waits: Mutex::default(),
            account: Account::new(book, limits.bytes_max),
            chooser: Chooser::default(),
        }
    }

    /// Memory that locks take, and may take, in bytes. Some KiB for each processor are not counted yet.
    pub fn memory_bytes(&self) -> (usize, usize) {
        (self.account.used_bytes(), self.account.limit_bytes())
    }

    /// Asks for a lock. Does not block. `Deadlock` when the request would close a cycle of waiters and its owner is the one to be
    /// given up ([`Deadlock::victim`](super::Deadlock::victim)); `LockTableFull` when there is no room for it. After an error the owner has what it had before.
    pub fn request(&self, owner: Owner, lock: Lock<'_>, wait: Wait) -> Result<Answer> {
        match self.request_once(owner, lock, wait) {
            Err(Error::LockTableFull) => {
                self.compress_all(owner);
                self.request_once(owner, lock, wait)
            }
            answer => answer,
        }
    }

    fn request_once(&self, owner: Owner, lock: Lock<'_>, wait: Wait) -> Result<Answer> {
        match lock {
            Lock::Gap { tree, range, mode } => {
                self.request_range(owner, tree, &Span::new(range), Level::gap(mode))
            }
            Lock::Range { tree, range, mode } => {
                self.request_range(owner, tree, &Span::new(range), Level::next_key(mode))
            }
            other => match wanted(other) {
                Some(want) => self.request_want(owner, &want, wait),
                None => Ok(Answer::AlreadyHeld),
            },
        }
    }

    fn request_want(&self, owner: Owner, want: &Want, wait: Wait) -> Result<Answer> {
        match self.try_want(owner, want, Turn::Now)? {
            Tried::Blocked { .. } => self.request_behind(owner, want, wait),
            tried => Ok(self.answer_of(owner, want, &tried)),
        }
    }

    fn answer_of(&self, owner: Owner, want: &Want, tried: &Tried) -> Answer {
        match (tried, want) {
            (Tried::AlreadyHeld, _) => return Answer::AlreadyHeld,
            (Tried::Granted { is_long: true }, Want::Row(request)) => self.compress(owner, request.tree),
            _ => {}
        }
        Answer::Granted
    }

    /// Once more, with a look at who waits; and queues the request if it must.
    fn request_behind(&self, owner: Owner, want: &Want, wait: Wait) -> Result<Answer> {
        let mut waits = self.waits.lock();
        debug_assert!(!waits.is_waiting(owner), "an owner waits for one thing at a time");
        let turn = match wait {
            Wait::Queue { .. } => Turn::Last(&waits),
            Wait::Never => Turn::At(&waits, waits.now()),
        };
        let tried = self.try_want(owner, want, turn)?;
        let (Tried::Blocked { upgrades }, Wait::Queue { undo_records_count }) = (&tried, wait) else {
            drop(waits);
            let is_blocked = matches!(tried, Tried::Blocked { .. });
            return Ok(if is_blocked { Answer::Refused } else { self.answer_of(owner, want, &tried) });
        };
        let slot = waits.push(owner, undo_records_count, want.clone(), *upgrades);
        self.owners.set_queued(owner, true);
        if self.resolve_deadlocks(&mut waits, owner) {
            return Err(Error::Deadlock);
        }
        let ticket = Ticket { owner, slot };
        Ok(if ticket.is_granted() { Answer::Granted } else { Answer::Wait(ticket) })
    }

    fn request_range(&self, owner: Owner, tree: TreeId, span: &Span, level: Level) -> Result<Answer> {
        if span.is_empty() {
            return Ok(Answer::AlreadyHeld);
        }
        let shard = self.tree_shard(tree);
        let mut trees = shard.trees.write();
        if trees.get(tree).is_some_and(|shared| shared.ranges.has(owner, level, span)) {
            return Ok(Answer::AlreadyHeld);
        }
        self.check_room_for_range(&trees, tree, span)?;
        self.add_range(&mut trees, owner, tree, level, span);
        Ok(Answer::Granted)
    }

    pub(super) fn check_room_for_range(&self, trees: &Trees, tree: TreeId, span: &Span) -> Result<()> {
        if self.account.is_half_empty() {
            return Ok(());
        }
        let inside = trees.get(tree).map_or(0, |shared| shared.ranges.bytes_for(span));
        self.account.check(inside + piece_bytes(span))
    }

    pub(super) fn add_range(&self, trees: &mut Trees, owner: Owner, tree: TreeId, level: Level, span: &Span) {
        let listed_bytes = self.owners.add_piece(owner, tree, span);
        trees.add_range(&self.account, tree, (owner, level), (span, listed_bytes));
        self.tree_shard(tree).in_use.store(trees.len(), Relaxed);
    }

    /// Whether somebody may have a range of the tree, or wait for one. Whoever has put a record there and reads no has come
    /// before any range that was locked without seeing it.
    pub fn has_ranges(&self, tree: TreeId) -> bool {
        let shard = self.tree_shard(tree);
        shard.in_use.load(Relaxed) > 0 || shard.waiters.load(Relaxed) > 0
    }

    /// Takes a queued request back. None when that is done, or else the answer that it has got meanwhile.
    pub fn cancel(&self, ticket: &Ticket) -> Option<Outcome> {
        let mut waits = self.waits.lock();
        if let Some(outcome) = ticket.outcome() {
            return Some(outcome);
        }
        self.withdraw(&mut waits, ticket.owner);
        None
    }

    pub(super) fn tree_shard(&self, tree: TreeId) -> &TreeShard {
        let at = tree.0 as usize % TREE_SHARDS_COUNT;
        self.tree_shards.get(at).expect("the index is a remainder by their number")
    }
}

/// What a lock asks for of which others can keep somebody; they cannot of a range without records.
pub(super) fn wanted(lock: Lock<'_>) -> Option<Want> {
    let row = |tree, key, want| {
        Want::Row(RowRequest { tree, hash: hash_key(tree, key), key: KeyBytes::new(key), want })
    };
    Some(match lock {
        Lock::Gap { .. } | Lock::Range { .. } => return None,
        Lock::Table(table, mode) => Want::Table(table, mode),
        Lock::Record { tree, key, mode } => row(tree, key, RowWant::Record(mode)),
        Lock::InsertIntention { tree, key } => row(tree, key, RowWant::Insert),
        Lock::NextKey { tree, range, key, mode } => {
            let span = Span::new(range);
            debug_assert!(span.contains(key), "{range:?} holds its record {key:?}");
            row(tree, key, RowWant::NextKey(mode, span))
        }
    })
}

//! The map from transaction IDs to outcomes. The map takes 8 bytes for each transaction whose
//! outcome some snapshot may still have to look up. It takes much less if the ends of many
//! transactions look the same to all snapshots.
//!
//! Invariants
//!   I1  An outcome changes once, from active to an end; only a startup makes a frozen transaction
//!       active.
//!   I2  All transactions of a missing chunk before the newest are frozen. A chunk is dropped when
//!       all of its transactions have ended at or before the horizon (durability::H8), even while
//!       older transactions are active. So a single old transaction does not keep the whole map in
//!       memory.
//!   I3  The newest chunk is kept. An ID after it has not been assigned yet: its transaction is
//!       active. No ID is assigned before all shards show its chunk.
//!   I4  A chunk is *alike* if all its transactions have ended and no open snapshot is between the
//!       first and the last of the ends. No snapshot can distinguish these ends, so all count as
//!       the last one. No later snapshot is between them either. So an old snapshot keeps only a
//!       few bytes for thousands of transactions that ended after it.
//!   I5  A horizon that was returned earlier may be between the ends of an alike chunk. Then every
//!       snapshot sees the whole chunk: no snapshot is older than that horizon, and none is between
//!       the ends.
//!
//! Every thread reads through one of several shards, so that readers on many cores do not write to
//! one cache line. A shard is locked exclusively once for each chunk that is added or dropped.
//! `map_model_tests.rs` compiles this file again over loom.

use super::number::Number;
use super::shards::{shard_no, CHUNK_TXNS, SHARDS_COUNT};
use super::sync::{AtomicU64, Mutex, Ordering, RwLock};
use crate::base::{reach, sound, TxnId};
use std::sync::Arc;

/// How a transaction ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Its changes count from its stamp on.
    Committed,
    /// Its changes were rolled back before its stamp was published.
    Aborted,
}

/// The state of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It has not ended.
    Active,
    /// It was committed, with this stamp.
    Committed(u64),
    /// It was rolled back, with this stamp.
    Aborted(u64),
    /// It has ended, and all live and future snapshots see its end.
    Frozen,
}

pub(super) const ACTIVE: u64 = 0;
const FROZEN: u64 = 1;
const COMMITTED: u64 = 2;
const ABORTED: u64 = 3;
const KIND_BITS: u32 = 2;

fn word_of(outcome: Outcome, stamp: u64) -> u64 {
    let kind = match outcome {
        Outcome::Committed => COMMITTED,
        Outcome::Aborted => ABORTED,
    };
    stamp << KIND_BITS | kind
}

fn state_of(word: u64) -> State {
    let stamp = word >> KIND_BITS;
    match word & ((1 << KIND_BITS) - 1) {
        ACTIVE => State::Active,
        FROZEN => State::Frozen,
        COMMITTED => State::Committed(stamp),
        _ => State::Aborted(stamp),
    }
}

impl State {
    /// Returns whether the transaction has ended at or before `stamp`.
    pub fn has_ended_at(self, stamp: u64) -> bool {
        match self {
            State::Active => false,
            State::Committed(end) | State::Aborted(end) => end <= stamp,
            State::Frozen => true,
        }
    }

    /// Returns whether a snapshot at `stamp` sees the transaction's changes.
    pub fn is_seen_at(self, stamp: u64) -> bool {
        !matches!(self, State::Aborted(_)) && self.has_ended_at(stamp)
    }
}

#[derive(Debug)]
enum Words<N> {
    Each(Box<[N]>),
    /// All have ended at the chunk's newest stamp, as far as any snapshot can tell (I4). `aborted`
    /// lists those that were rolled back.
    Alike {
        aborted: Box<[u16]>,
        oldest_stamp: u64,
    },
}

/// The outcomes of consecutive transactions. Only one thread at a time writes: the one that holds
/// the mutex of the commits, or the one that opens the database.
#[derive(Debug)]
pub(super) struct Chunk<N = AtomicU64> {
    no: u64,
    words: Words<N>,
    /// The number of transactions that have not ended.
    active_count: N,
    newest_stamp: N,
}

impl Chunk {
    fn active(no: u64) -> Self {
        Self::new(no, CHUNK_TXNS, ACTIVE)
    }

    fn frozen(no: u64) -> Self {
        Self::new(no, CHUNK_TXNS, FROZEN)
    }
}

impl<N: Number> Chunk<N> {
    pub(super) fn new(no: u64, txns: u64, word: u64) -> Self {
        Self {
            no,
            words: Words::Each((0..txns).map(|_| N::new(word)).collect()),
            active_count: N::new(if word == ACTIVE { txns } else { 0 }),
            newest_stamp: N::new(0),
        }
    }

    fn first(&self) -> u64 {
        self.no * CHUNK_TXNS
    }

    fn end(&self) -> u64 {
        self.first() + CHUNK_TXNS
    }

    fn word(&self, txn: u64) -> &N {
        let Words::Each(words) = &self.words else { unreachable!("I4: all of an alike chunk have ended") };
        words.get((txn % CHUNK_TXNS) as usize).expect("a chunk has all words")
    }

    pub(super) fn state(&self, txn: u64) -> State {
        match &self.words {
            Words::Each(_) => state_of(self.word(txn).get()),
            Words::Alike { aborted, .. } => {
                let at = (txn % CHUNK_TXNS) as u16;
                let stamp = self.newest_stamp.get();
                match aborted.binary_search(&at) {
                    Ok(_) => State::Aborted(stamp),
                    Err(_) => State::Committed(stamp),
                }
            }
        }
    }

    /// Like [`Map::is_committed_for_all`], for a transaction of this chunk.
    fn is_committed_for_all(&self, txn: u64, horizon: u64) -> bool {
        match (self.state(txn), &self.words) {
            (State::Frozen, _) => true,
            (State::Committed(_), Words::Alike { oldest_stamp, .. })
                if sound!(true, "versions: take an alike end for the last one") =>
            {
                *oldest_stamp <= horizon
            }
            (State::Committed(stamp), _) => stamp <= horizon,
            (State::Active | State::Aborted(_), _) => false,
        }
    }

    /// Returns the chunk as an alike one if no snapshot can distinguish its ends. `live` has the
    /// stamps of all open snapshots, sorted, and after them a stamp that all other snapshots see
    /// (I4).
    fn alike(&self, live: &[u64]) -> Option<Self> {
        let Words::Each(words) = &self.words else { return None };
        if self.active_count.get() != 0 {
            return None;
        }
        let newest = self.newest_stamp.get();
        let (mut oldest, mut aborted) = (newest, Vec::new());
        for (word, at) in words.iter().zip(0..) {
            match state_of(word.get()) {
                State::Committed(stamp) => oldest = oldest.min(stamp),
                State::Aborted(stamp) => {
                    oldest = oldest.min(stamp);
                    aborted.push(at);
                }
                State::Active | State::Frozen => return None,
            }
        }
        let next_live = live.get(live.partition_point(|&stamp| stamp < oldest)).copied()?;
        let is_split = sound!(next_live < newest, "versions: merge ends across a snapshot");
        let words = Words::Alike { aborted: aborted.into(), oldest_stamp: oldest };
        let (active_count, newest_stamp) = (N::new(0), N::new(newest));
        (!is_split).then(|| Self { no: self.no, words, active_count, newest_stamp })
    }

    fn bytes(&self) -> usize {
        match &self.words {
            Words::Each(words) => size_of_val(&**words),
            Words::Alike { aborted, .. } => size_of::<Self>() + size_of_val(&**aborted),
        }
    }

    pub(super) fn end_txn(&self, txn: u64, outcome: Outcome, stamp: u64) {
        self.newest_stamp.set(stamp.max(self.newest_stamp.get()));
        self.set_word(txn, word_of(outcome, stamp));
    }

    fn freeze_txn(&self, txn: u64) {
        self.set_word(txn, FROZEN);
    }

    fn set_word(&self, txn: u64, word: u64) {
        let is_active = self.word(txn).get() == ACTIVE;
        debug_assert!(is_active, "I1: transaction {txn} ends once");
        self.word(txn).set(word);
        if is_active {
            self.active_count.set(self.active_count.get() - 1);
        }
    }

    fn revive(&self, txn: u64) {
        if self.word(txn).get() != ACTIVE {
            self.word(txn).set(ACTIVE);
            self.active_count.set(self.active_count.get() + 1);
        }
    }

    pub(super) fn has_ended_by(&self, horizon: u64) -> bool {
        // Read in this order: a reader that sees that the last transaction has ended also sees its
        // stamp.
        let have_all_ended = self.active_count.get() == 0;
        let may_be_asked = self.newest_stamp.get() > horizon;
        have_all_ended && !sound!(may_be_asked, "versions: forget what a snapshot may ask for")
    }
}

type Directory = Arc<Vec<Arc<Chunk>>>;

fn chunk_no(txn: u64) -> u64 {
    txn / CHUNK_TXNS
}

fn find(directory: &[Arc<Chunk>], no: u64) -> Option<&Arc<Chunk>> {
    let newest = directory.last()?;
    if newest.no == no {
        return Some(newest);
    }
    let at = directory.binary_search_by_key(&no, |chunk| chunk.no).ok()?;
    directory.get(at)
}

fn newest_no(directory: &[Arc<Chunk>]) -> u64 {
    directory.last().map_or(0, |chunk| chunk.no)
}

#[repr(align(128))]
#[derive(Debug)]
struct Shard(RwLock<Directory>);

#[derive(Debug)]
struct Swept {
    /// All transactions below this ID have ended at or before a horizon.
    below: u64,
    /// The newest chunk when chunks were last dropped.
    newest_no: u64,
}

#[derive(Debug)]
pub(super) struct Map {
    shards: Box<[Shard]>,
    directory: Mutex<Directory>,
    /// The number of the newest chunk that all shards show (I3).
    shown_no: AtomicU64,
    swept: Mutex<Swept>,
    /// A copy of `swept.below` that is read without the mutex.
    below: AtomicU64,
}

impl Map {
    /// Creates a map in which everything before `next` is frozen.
    pub(super) fn new(next: u64) -> Self {
        let chunk = Chunk::active(chunk_no(next));
        (chunk.first()..next).for_each(|txn| chunk.freeze_txn(txn));
        let newest_no = chunk.no;
        let directory = Arc::new(vec![Arc::new(chunk)]);
        Self {
            shards: (0..SHARDS_COUNT).map(|_| Shard(RwLock::new(Arc::clone(&directory)))).collect(),
            directory: Mutex::new(directory),
            shown_no: AtomicU64::new(newest_no),
            swept: Mutex::new(Swept { below: next, newest_no }),
            below: AtomicU64::new(next),
        }
    }

    pub(super) fn state(&self, txn: TxnId) -> State {
        self.ask(txn, State::Frozen, State::Active, |chunk| chunk.state(txn.0))
    }

    /// Returns whether a transaction was committed and every snapshot sees it. `horizon` must have
    /// been returned earlier; the answer may be that for a later horizon (I5). A frozen transaction
    /// counts as committed.
    pub(super) fn is_committed_for_all(&self, txn: TxnId, horizon: u64) -> bool {
        self.ask(txn, true, false, |chunk| chunk.is_committed_for_all(txn.0, horizon))
    }

    /// Asks `known` about the chunk of a transaction; without a chunk, returns `frozen` or
    /// `active`.
    fn ask<R>(&self, txn: TxnId, frozen: R, active: R, known: impl FnOnce(&Chunk) -> R) -> R {
        if txn.0 < self.visible_below() {
            return frozen;
        }
        let no = chunk_no(txn.0);
        let directory = self.shard().0.read();
        match find(&directory, no) {
            Some(chunk) => known(chunk),
            None if no < newest_no(&directory) => frozen,
            None => active,
        }
    }

    /// Returns an ID below which all transactions are frozen.
    pub(super) fn visible_below(&self) -> u64 {
        self.below.load(Ordering::Acquire)
    }

    pub(super) fn bytes(&self) -> usize {
        let directory = Arc::clone(&self.directory.lock());
        directory.iter().map(|chunk| chunk.bytes()).sum()
    }

    /// Adds the chunk of `txn`, an ID that no other thread knows yet, if it is missing.
    pub(super) fn extend_to(&self, txn: u64) {
        let no = chunk_no(txn);
        if no <= self.shown_no.load(Ordering::Acquire) {
            return;
        }
        let mut directory = self.directory.lock();
        // Adds all chunks in between, too, because their IDs have also been assigned, and a missing
        // chunk means frozen.
        let missing = newest_no(&directory) + 1..=no;
        if !missing.is_empty() {
            let mut grown = directory.to_vec();
            grown.extend(missing.map(|no| Arc::new(Chunk::active(no))));
            self.show(&mut directory, grown);
        }
    }

    pub(super) fn end(&self, txn: TxnId, outcome: Outcome, stamp: u64) {
        let directory = self.shard().0.read();
        let chunk = find(&directory, chunk_no(txn.0)).expect("I2: a chunk with an active transaction stays");
        chunk.end_txn(txn.0, outcome, stamp);
    }

    /// Makes a frozen transaction before the newest chunk's end active, at a startup.
    pub(super) fn revive(&self, txn: u64) {
        let no = chunk_no(txn);
        let mut directory = self.directory.lock();
        if let Err(at) = directory.binary_search_by_key(&no, |chunk| chunk.no) {
            let mut grown = directory.to_vec();
            grown.insert(at, Arc::new(Chunk::frozen(no)));
            self.show(&mut directory, grown);
        }
        find(&directory, no).expect("just added").revive(txn);
        drop(directory);
        let mut swept = self.swept.lock();
        swept.below = swept.below.min(txn);
        self.below.store(swept.below, Ordering::Release);
    }

    /// Makes the IDs from `next` up to `txn` (exclusive) frozen, and `txn` active, at a startup.
    pub(super) fn skip_to(&self, next: u64, txn: u64) {
        self.extend_to(next);
        let mut directory = self.directory.lock();
        if chunk_no(txn) > newest_no(&directory) {
            let mut grown = directory.to_vec();
            grown.push(Arc::new(Chunk::active(chunk_no(txn))));
            self.show(&mut directory, grown);
        }
        for chunk in directory.iter() {
            let skipped = next.max(chunk.first())..txn.min(chunk.end());
            skipped.for_each(|txn| chunk.freeze_txn(txn));
        }
    }

    /// Finds the transactions that have ended at or before `horizon`, drops completely frozen
    /// chunks, and returns [`visible_below`](Self::visible_below), at most `next`. Checks each ID
    /// once. If another thread is sweeping, returns the older answer. `live`: stamps as for
    /// [`Chunk::alike`].
    pub(super) fn sweep(&self, next: u64, horizon: u64, live: impl FnOnce() -> Vec<u64>) -> u64 {
        let Some(mut swept) = self.swept.try_lock() else { return self.visible_below() };
        let directory = Arc::clone(&self.directory.lock());
        let below = frozen_below(&directory, swept.below, next, horizon);
        let newest_no = newest_no(&directory);
        drop(directory);
        let crosses = chunk_no(below) != chunk_no(swept.below) || newest_no != swept.newest_no;
        *swept = Swept { below, newest_no };
        self.below.store(below, Ordering::Release);
        if crosses {
            self.drop_ended(horizon, &live());
        }
        below
    }

    /// Drops chunks that are completely frozen, and converts chunks that have become alike.
    fn drop_ended(&self, horizon: u64, live: &[u64]) {
        let mut directory = self.directory.lock();
        let newest_no = newest_no(&directory);
        let stays = |chunk: &&Arc<Chunk>| chunk.no == newest_no || !chunk.has_ended_by(horizon);
        let mut has_changed = false;
        let mut kept = directory.iter().filter(stays).cloned().collect::<Vec<_>>();
        for chunk in kept.iter_mut().filter(|chunk| chunk.no != newest_no) {
            if let Some(alike) = chunk.alike(live) {
                reach::mark("outcomes merged");
                *chunk = Arc::new(alike);
                has_changed = true;
            }
        }
        if has_changed || kept.len() < directory.len() {
            self.show(&mut directory, kept);
        }
    }

    fn show(&self, directory: &mut Directory, chunks: Vec<Arc<Chunk>>) {
        *directory = Arc::new(chunks);
        if !sound!(true, "versions: give numbers out before all shards show them") {
            self.shown_no.store(newest_no(directory), Ordering::Release);
        }
        for shard in &self.shards {
            *shard.0.write() = Arc::clone(directory);
        }
        self.shown_no.store(newest_no(directory), Ordering::Release);
    }

    fn shard(&self) -> &Shard {
        self.shards.get(shard_no()).expect("a thread's shard is there")
    }
}

/// Returns the first ID from `from` on, before `next`, that is not frozen at `horizon`; `next` if
/// all are frozen.
fn frozen_below(directory: &[Arc<Chunk>], from: u64, next: u64, horizon: u64) -> u64 {
    let mut at = from;
    let passed = directory.partition_point(|chunk| chunk.end() <= from);
    for chunk in directory.iter().skip(passed) {
        // I2: all transactions between chunks are frozen.
        at = at.max(chunk.first());
        let end = chunk.end().min(next);
        if chunk.has_ended_by(horizon) {
            at = at.max(end);
        }
        while at < end && chunk.state(at).has_ended_at(horizon) {
            at += 1;
        }
        if at < chunk.end() {
            break;
        }
    }
    // Another thread with a newer `next` may have advanced further.
    at.min(next).max(from)
}

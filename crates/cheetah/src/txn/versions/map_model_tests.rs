//! The complete map of outcomes under the model checker, with chunks of two transactions and two
//! shards. Chunks are added while IDs are assigned, and dropped while a snapshot may read them.

use super::number;
use super::snapshots::{published_before_slots, register, CLOSED};
use crate::base::model as sync;
use crate::base::TxnId;
use number::Number;
use std::sync::Arc;
use sync::{check, finds, AtomicU64, Mutex, Ordering};

/// Replaces the engine's module.
mod shards {
    use std::cell::Cell;

    pub(super) const CHUNK_TXNS: u64 = 2;
    pub(super) const SHARDS_COUNT: usize = 2;

    loom::thread_local! {
        static SHARD: Cell<usize> = Cell::new(0);
    }

    pub(super) fn shard_no() -> usize {
        SHARD.with(Cell::get)
    }

    pub(super) fn use_shard(no: usize) {
        SHARD.with(|shard| shard.set(no));
    }
}

#[path = "map.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    clippy::duplicate_mod,
    reason = "the engine's own source, over the model checker's primitives"
)]
mod map;

use map::{Map, Outcome, State};

struct World {
    map: Map,
    next_txn: AtomicU64,
    /// The ID that a record contains; 0 for none.
    record: AtomicU64,
    /// The next stamp.
    commits: Mutex<u64>,
    published: AtomicU64,
    slot: AtomicU64,
}

impl World {
    /// Transaction 1 is active, in a chunk with a frozen transaction.
    fn new() -> Arc<Self> {
        Arc::new(Self {
            map: Map::new(1),
            next_txn: AtomicU64::new(2),
            record: AtomicU64::new(0),
            commits: Mutex::new(1),
            published: AtomicU64::new(0),
            slot: AtomicU64::new(CLOSED),
        })
    }

    fn end(&self, txn: u64, outcome: Outcome) {
        let mut next_stamp = self.commits.lock();
        self.map.end(TxnId(txn), outcome, *next_stamp);
        self.published.set(*next_stamp);
        *next_stamp += 1;
    }

    fn write_and_commit(&self) {
        let txn = self.next_txn.fetch_add(1, Ordering::Relaxed);
        self.map.extend_to(txn);
        self.record.store(txn, Ordering::Release);
        self.end(txn, Outcome::Committed);
    }
}

/// Two transactions of a chunk that does not exist yet start and end, while another thread looks at
/// what they write.
fn start_beside_each_other() {
    let world = World::new();
    let writers = [0, 1].map(|shard_no| {
        let world = Arc::clone(&world);
        loom::thread::spawn(move || {
            shards::use_shard(shard_no);
            world.write_and_commit();
        })
    });
    shards::use_shard(1);
    let seen = world.record.load(Ordering::Acquire);
    if seen != 0 {
        assert_ne!(world.map.state(TxnId(seen)), State::Frozen, "I3");
    }
    writers.into_iter().for_each(|writer| writer.join().unwrap());
}

#[test]
fn a_number_is_known_before_it_is_given_out() {
    check(start_beside_each_other);
}

#[test]
fn the_model_finds_a_number_that_is_given_out_too_early() {
    assert!(finds("versions: give numbers out before all shards show them", start_beside_each_other));
}

/// A transaction is rolled back, and its chunk is about to be dropped, while a thread opens a
/// snapshot and looks the transaction up.
fn ask_beside_an_end() {
    let world = World::new();
    world.map.extend_to(2);
    let (ends, reads) = (Arc::clone(&world), Arc::clone(&world));
    let end = loom::thread::spawn(move || ends.end(1, Outcome::Aborted));
    let reader = loom::thread::spawn(move || {
        shards::use_shard(1);
        let stamp = register(&reads.published, &reads.slot);
        let state = reads.map.state(TxnId(1));
        // A snapshot that sees the end finds no records that were rolled back before it.
        assert!(
            stamp >= 1 || state == State::Active || state == State::Aborted(1),
            "H8: {state:?} at {stamp}"
        );
    });
    let horizon = published_before_slots(&world.published).min(world.slot.get());
    world.map.sweep(2, horizon, || vec![horizon]);
    end.join().unwrap();
    reader.join().unwrap();
}

#[test]
fn h8_no_order_of_steps_drops_a_chunk_that_a_snapshot_may_ask_for() {
    check(ask_beside_an_end);
}

#[test]
fn h8_the_model_finds_a_chunk_that_is_dropped_too_early() {
    assert!(finds("versions: forget what a snapshot may ask for", ask_beside_an_end));
}

//! A tree with its model, a `BTreeMap`, and keys of several shapes.

use crate::base::{reach, Config, TreeId};
use crate::format::page::RecordRef;
use crate::leaves::{Expect, Leaves};
use crate::pool::{MiniTransaction, PageClass, Pool};
use crate::tree::{Changed, Cursor, Path, Removed, Tree, TreeDef};
use cheetah_io::rng::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// The shape of keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Keys {
    /// Four random bytes.
    Short,
    /// Any length up to the limit, with only three different bytes, so that many keys are prefixes
    /// of others.
    Long,
    /// A long common prefix, then a number.
    SharedPrefix,
    /// Up to 13 bytes of 0 or 255, to test successors and empty keys.
    Extreme,
}

impl Keys {
    pub(super) const ALL: [Keys; 4] = [Keys::Short, Keys::Long, Keys::SharedPrefix, Keys::Extreme];

    pub(super) fn draw(self, rng: &mut Rng) -> Vec<u8> {
        match self {
            Keys::Short => (rng.below(20_000) as u32).to_be_bytes().to_vec(),
            Keys::Long => {
                let length = 1 + rng.below(KEY_BYTES_MAX as u64) as usize;
                (0..length).map(|_| b'a' + (rng.below(3) as u8)).collect()
            }
            Keys::SharedPrefix => format!("customer/orders/2026/{:08}", rng.below(20_000)).into_bytes(),
            Keys::Extreme => {
                let length = rng.below(14) as usize;
                (0..length).map(|_| if rng.below(2) == 0 { 0 } else { 255 }).collect()
            }
        }
    }
}

pub(super) const KEY_BYTES_MAX: usize = 48;
pub(super) const PAYLOAD_BYTES_MAX: u64 = 90;
/// The number of pages that an operation may allocate.
const ROOM_PAGES: usize = 8;

pub(super) struct Fixture {
    pub(super) pool: Arc<Pool>,
    pub(super) leaves: Leaves,
    pub(super) tree: Arc<Tree>,
    pub(super) path: Path,
    pub(super) model: Model,
}

impl Fixture {
    /// An empty tree of 512-byte pages.
    pub(super) fn tiny() -> Self {
        Self::empty(Leaves::in_memory(&Config::tiny()))
    }

    /// An empty tree in the pool of `leaves`.
    pub(super) fn empty(leaves: Leaves) -> Self {
        let pool = Arc::clone(leaves.pool());
        let tree = {
            let mtr = pool.enter();
            Tree::create(&leaves, &mtr, TreeId(16), PageClass::Base, KEY_BYTES_MAX).unwrap()
        };
        Self { pool, leaves, tree: Arc::new(tree), path: Path::default(), model: Model::new() }
    }

    /// An existing tree of the pool, with the records of `model`.
    pub(super) fn open(leaves: Leaves, def: TreeDef, model: Model) -> Self {
        let pool = Arc::clone(leaves.pool());
        let tree = Tree::open(&leaves, def).unwrap();
        Self { pool, leaves, tree: Arc::new(tree), path: Path::default(), model }
    }

    /// Makes one random change, or sometimes a lookup.
    pub(super) fn step(&mut self, keys: Keys, inserts_of_ten: u64, rng: &mut Rng) {
        let key = self.some_key(keys, rng);
        match rng.below(12) {
            10 if rng.chance(0.5) => self.seek_point(&mut self.tree.cursor(), &key, rng.chance(0.5)),
            10 => self.get(&key),
            11 if rng.chance(0.5) => self.replace(&key, &payload(rng)),
            11 => self.change(&key, Some(&payload(rng))),
            dice if dice >= inserts_of_ten && rng.chance(0.5) => self.change(&key, None),
            0 if rng.chance(0.5) => self.change(&keys.draw(rng), Some(&payload(rng))),
            dice if dice < inserts_of_ten && rng.chance(0.5) => self.put(&keys.draw(rng), &payload(rng)),
            dice if dice < inserts_of_ten => self.insert(&keys.draw(rng), &payload(rng)),
            _ => self.remove(&key),
        }
    }

    pub(super) fn insert(&mut self, key: &[u8], payload: &[u8]) {
        let changed = insert(&self.tree, &mut self.path, key, payload);
        if self.model.contains_key(key) {
            assert_eq!(changed, Changed::Exists);
        } else {
            assert_eq!(changed, Changed::Done);
            self.model.insert(key.to_vec(), payload.to_vec());
        }
    }

    /// Inserts a record unless its key exists. The change may become pending.
    pub(super) fn put(&mut self, key: &[u8], payload: &[u8]) {
        if self.model.contains_key(key) {
            return;
        }
        put(&self.tree, &mut self.path, key, payload);
        self.model.insert(key.to_vec(), payload.to_vec());
    }

    /// Writes or removes the record of a key like a row operation: after a lookup, and without the
    /// leaf if it may stay cold.
    pub(super) fn change(&mut self, key: &[u8], payload: Option<&[u8]>) {
        let Self { tree, path, model, .. } = self;
        let found = tree.look_prepared(key, path, |found| found.map(|found| found.payload.to_vec())).unwrap();
        assert_eq!(found.as_ref(), model.get(key));
        let record = payload.map(RecordRef::frozen);
        if found.is_none() && record.is_none() {
            return;
        }
        tree.prepare_change(key, record, path).unwrap();
        let mtr = enter(tree, path, key, record);
        let small = match (record, found) {
            (Some(record), Some(_)) => {
                assert_eq!(tree.replace(&mtr, path, key, record).unwrap(), Changed::Done);
                false
            }
            (Some(record), None) => {
                assert_eq!(tree.insert(&mtr, path, key, record).unwrap(), Changed::Done);
                false
            }
            (None, _) => tree.remove(&mtr, path, key).unwrap() == (Removed::Gone { small: true }),
        };
        drop(mtr);
        if small {
            tree.merge_if_small(path, key).unwrap();
        }
        match payload {
            Some(payload) => model.insert(key.to_vec(), payload.to_vec()),
            None => model.remove(key),
        };
        self.merge_small_leaves();
    }

    /// Removes a record like redo: without a lookup, and without the leaf if it may stay cold.
    pub(super) fn take_out(&mut self, key: &[u8]) {
        let Self { tree, path, model, .. } = self;
        if !tree.leave_cold(key, Expect::Any, None, path).unwrap() {
            tree.prepare(key, path).unwrap();
        }
        let removed = tree.remove(&enter(tree, path, key, None), path, key).unwrap();
        if removed == (Removed::Gone { small: true }) {
            tree.merge_if_small(path, key).unwrap();
        }
        assert_eq!(removed != Removed::Absent, model.remove(key).is_some());
    }

    /// Merges small leaves like purge.
    pub(super) fn merge_small_leaves(&mut self) {
        while let Some((tree, key)) = self.leaves.next_small_leaf() {
            if tree == self.tree.def().id {
                self.tree.merge_if_small(&mut self.path, &key).unwrap();
            }
        }
    }

    pub(super) fn replace(&mut self, key: &[u8], payload: &[u8]) {
        self.pool.make_room(ROOM_PAGES).unwrap();
        self.tree.prepare(key, &mut self.path).unwrap();
        let mtr = self.pool.enter();
        let changed = self.tree.replace(&mtr, &mut self.path, key, RecordRef::frozen(payload)).unwrap();
        match self.model.get_mut(key) {
            None => assert_eq!(changed, Changed::Absent),
            Some(old) => {
                assert_eq!(changed, Changed::Done);
                *old = payload.to_vec();
            }
        }
    }

    pub(super) fn remove(&mut self, key: &[u8]) {
        let removed = remove(&self.tree, &mut self.path, key);
        assert_eq!(removed, self.model.remove(key).is_some());
    }

    pub(super) fn get(&self, key: &[u8]) {
        assert_eq!(self.found(key).as_ref(), self.model.get(key));
    }

    pub(super) fn found(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.tree.get(key, |record| record.payload.to_vec()).unwrap()
    }

    /// Tests `seek_point`, and then one move of the cursor.
    pub(super) fn seek_point(&self, cursor: &mut Cursor, key: &[u8], forward: bool) {
        let is_there = cursor.seek_point(key).unwrap();
        let mut expected = self.model.range(key.to_vec()..);
        let at = |cursor: &Cursor| Some((cursor.key().to_vec(), cursor.record()?.payload.to_vec()));
        let of_model = |found: Option<(&Vec<u8>, &Vec<u8>)>| found.map(|(k, p)| (k.clone(), p.clone()));
        assert_eq!(at(cursor), of_model(expected.next()));
        assert_eq!(is_there, cursor.valid());
        assert!(!is_there || cursor.is_fresh(), "no other thread changes the tree");
        if !is_there {
            return;
        }
        let here = cursor.key().to_vec();
        let next = match forward {
            true => (cursor.next().unwrap(), expected.next()),
            false => (cursor.prev().unwrap(), self.model.range(..here).next_back()),
        };
        assert_eq!((at(cursor), next.0), (of_model(next.1), next.1.is_some()));
    }

    /// Asserts that the tree is sound and has the records of the model.
    pub(super) fn check(&self) {
        let mut expected = self.model.iter();
        let report = self
            .tree
            .check(&mut |key, record| {
                let (expected_key, payload) = expected.next().expect("no more records than the model has");
                assert_eq!(key, expected_key);
                assert_eq!(record.payload, payload);
            })
            .unwrap();
        assert_eq!(report.problems, Vec::<String>::new());
        assert_eq!(report.records, self.model.len() as u64);
        assert_eq!(report.pages, self.pool.tree_bytes(self.tree.def().id).pages, "no page is lost");
    }

    /// A key of the model, or sometimes a random key of shape `keys`.
    pub(super) fn some_key(&self, keys: Keys, rng: &mut Rng) -> Vec<u8> {
        let drawn = keys.draw(rng);
        if rng.below(4) == 0 {
            return drawn;
        }
        self.model.range(drawn.clone()..).next().map_or(drawn, |(key, _)| key.clone())
    }
}

pub(super) fn insert(tree: &Tree, path: &mut Path, key: &[u8], payload: &[u8]) -> Changed {
    tree.pool().make_room(ROOM_PAGES).unwrap();
    tree.prepare(key, path).unwrap();
    let mtr = tree.pool().enter();
    tree.insert(&mtr, path, key, RecordRef::frozen(payload)).unwrap()
}

/// Inserts a record like a row operation.
pub(super) fn put(tree: &Tree, path: &mut Path, key: &[u8], payload: &[u8]) {
    let record = RecordRef::frozen(payload);
    if !tree.leave_cold(key, Expect::New, Some(&record), path).unwrap() {
        tree.prepare(key, path).unwrap();
    }
    let mtr = enter(tree, path, key, Some(record));
    tree.put(&mtr, path, key, record).unwrap();
}

/// Enters a mini-transaction such that the change inside reads no leaf.
pub(super) fn enter<'t>(
    tree: &'t Tree,
    path: &mut Path,
    key: &[u8],
    record: Option<RecordRef<'_>>,
) -> MiniTransaction<'t> {
    tree.pool().make_room(ROOM_PAGES).unwrap();
    loop {
        let mtr = tree.pool().enter();
        if tree.reserve(&mtr, key, record, path) {
            return mtr;
        }
        drop(mtr);
        tree.prepare(key, path).unwrap();
    }
}

pub(super) fn remove(tree: &Tree, path: &mut Path, key: &[u8]) -> bool {
    tree.pool().make_room(ROOM_PAGES).unwrap();
    tree.prepare(key, path).unwrap();
    let removed = {
        let mtr = tree.pool().enter();
        tree.remove(&mtr, path, key).unwrap()
    };
    if removed == (Removed::Gone { small: true }) {
        tree.merge_if_small(path, key).unwrap();
    }
    removed != Removed::Absent
}

pub(super) fn payload(rng: &mut Rng) -> Vec<u8> {
    let length = if rng.below(8) == 0 { rng.below(PAYLOAD_BYTES_MAX) } else { rng.below(20) };
    (0..length).map(|_| rng.next_u64() as u8).collect()
}

/// Asserts that this process took the rare paths `names`.
pub(super) fn assert_reached(names: &[&str]) {
    for name in names {
        assert!(!cfg!(debug_assertions) || reach::count(name) > 0, "{name} was not reached");
    }
}

//! Tests of the largest keys and records, in pages of several sizes.

use crate::base::{Config, Error, TreeId};
use crate::format::page::{max_key_bytes, max_payload_bytes, RecordRef};
use crate::leaves::Leaves;
use crate::pool::PageClass;
use crate::tree::{Changed, Path, Tree};
use cheetah_io::rng::Rng;
use std::collections::BTreeSet;

/// Inserts records of the largest allowed size and small records in random order.
fn check_largest(page_bytes: u32, class: PageClass, seed: u64) {
    let leaves = Leaves::in_memory(&Config { page_bytes, ..Config::tiny() });
    let key_bytes_max = max_key_bytes(class.bytes(page_bytes));
    let payload_bytes_max = max_payload_bytes(class.bytes(page_bytes), key_bytes_max);
    let tree = Tree::create(&leaves, &leaves.pool().enter(), TreeId(16), class, key_bytes_max).unwrap();
    let mut rng = Rng::new(seed);
    let mut path = Path::default();
    let mut model = BTreeSet::new();
    for _ in 0..1500 {
        let mut key = vec![b'k'; if rng.below(2) == 0 { key_bytes_max } else { 4 }];
        let at = if rng.below(2) == 0 { 0 } else { key.len() - 4 };
        key[at..at + 4].copy_from_slice(&(rng.next_u64() as u32).to_be_bytes());
        let payload = vec![7; if rng.below(2) == 0 { payload_bytes_max } else { 3 }];
        tree.prepare(&key, &mut path).unwrap();
        let changed =
            tree.insert(&leaves.pool().enter(), &mut path, &key, RecordRef::frozen(&payload)).unwrap();
        assert_eq!(changed == Changed::Done, model.insert(key));
    }
    let mut expected = model.iter();
    let report = tree.check(&mut |key, _| assert_eq!(Some(key), expected.next().map(Vec::as_slice))).unwrap();
    assert_eq!((report.problems, report.records), (Vec::new(), model.len() as u64));
}

#[test]
fn records_of_the_largest_size_always_find_room() {
    for seed in 0..4 {
        check_largest(512, PageClass::Base, seed);
        check_largest(512, PageClass::Wide, seed);
        check_largest(4096, PageClass::Base, seed);
    }
    check_largest(16384, PageClass::Wide, 1);
}

#[test]
fn larger_keys_and_records_are_refused() {
    let leaves = Leaves::in_memory(&Config::tiny());
    let tree = Tree::create(&leaves, &leaves.pool().enter(), TreeId(16), PageClass::Base, 20).unwrap();
    let mtr = leaves.pool().enter();
    let mut path = Path::default();
    let long = tree.insert(&mtr, &mut path, &[1; 21], RecordRef::frozen(b""));
    assert!(matches!(long, Err(Error::Limit { limit: 20, .. })));
    let large = tree.insert(&mtr, &mut path, b"k", RecordRef::frozen(&[0; 300]));
    assert!(matches!(large, Err(Error::Limit { .. })));
    drop(mtr);
    assert!(Tree::create(&leaves, &leaves.pool().enter(), TreeId(17), PageClass::Base, 100).is_err());
}

//! Tests of trees built from sorted input.

use super::fixture::{payload, Fixture, Keys};
use crate::format::page::RecordRef;
use crate::tree::Changed;
use cheetah_io::rng::Rng;

fn build(keys: Keys, count: usize) -> Fixture {
    let mut fixture = Fixture::tiny();
    let mut rng = Rng::new(count as u64);
    for _ in 0..count {
        fixture.model.insert(keys.draw(&mut rng), payload(&mut rng));
    }
    let tree = fixture.tree.clone();
    let mut builder = tree.builder();
    for (key, payload) in &fixture.model {
        assert_eq!(builder.push(key, RecordRef::frozen(payload)).unwrap(), Changed::Done);
    }
    assert_eq!(builder.finish().unwrap(), fixture.model.len() as u64);
    fixture
}

#[test]
fn a_built_tree_holds_the_records_and_goes_on_as_any_other() {
    for keys in Keys::ALL {
        for count in [0, 1, 2, 30, 500, 6000] {
            let mut fixture = build(keys, count);
            fixture.check();
            let mut rng = Rng::new(9);
            for _ in 0..500 {
                let key = keys.draw(&mut rng);
                fixture.insert(&key, &payload(&mut rng));
                let key = fixture.some_key(keys, &mut rng);
                fixture.remove(&key);
            }
            fixture.check();
        }
    }
}

#[test]
fn pages_of_a_built_tree_are_nearly_full() {
    let fixture = build(Keys::SharedPrefix, 5000);
    let report = fixture.tree.check(&mut |_, _| {}).unwrap();
    let fill = report.used_bytes as f64 / report.page_bytes as f64;
    assert!(fill > 0.8, "pages are {fill:.2} full");
}

#[test]
fn a_builder_refuses_keys_out_of_order() {
    let fixture = Fixture::tiny();
    let mut builder = fixture.tree.builder();
    assert_eq!(builder.push(b"b", RecordRef::frozen(b"")).unwrap(), Changed::Done);
    assert_eq!(builder.push(b"b", RecordRef::frozen(b"")).unwrap(), Changed::Exists);
    assert!(builder.push(b"a", RecordRef::frozen(b"")).is_err());
}

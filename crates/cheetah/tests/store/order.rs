//! The order of a checkpoint's barriers, as strings. docs/developers/durability.md has the same
//! lists.

use crate::store::{empty_history, Store};
use cheetah::testing::base::PageId;
use cheetah::testing::segment::Stream;
use cheetah_io::sim::SimDisk;
use cheetah_io::Rng;

/// The barriers since the last call, in order.
fn trace(store: &Store) -> Vec<String> {
    store.durable.take_trace().iter().map(|(barrier, path)| format!("{barrier} '{path}'")).collect()
}

#[test]
fn barriers_stand_in_the_order_of_the_documentation() {
    let (disk, mut history) = (SimDisk::new(), empty_history());
    let mut store = Store::open(&disk, &history).unwrap();
    let mut rng = Rng::new(1);
    store.durable.start_trace();
    let mut checkpoint = |store: &mut Store| {
        store.put(PageId(1), vec![1; 100], Stream::Hot).unwrap();
        store.switch_epoch(&disk, &mut rng, &mut history);
        store.commit().unwrap();
    };
    checkpoint(&mut store);
    let first = [
        "segment 'seg/00000001.seg'",
        "directory 'seg'",
        "map 'map-1.log'",
        "map 'map-1.log.copy'",
        "directory ''",
        "control 'CONTROL'",
        "control 'CONTROL'",
    ];
    assert_eq!(trace(&store), first);
    checkpoint(&mut store);
    let later = [
        "segment 'seg/00000001.seg'",
        "map 'map-1.log'",
        "map 'map-1.log.copy'",
        "control 'CONTROL'",
        "control 'CONTROL'",
    ];
    assert_eq!(trace(&store), later);
    assert!(store.map.merge_if_due().unwrap());
    let merge = [
        "map 'map-2.base'",
        "map 'map-2.base.copy'",
        "directory ''",
        "control 'CONTROL'",
        "control 'CONTROL'",
    ];
    assert_eq!(trace(&store), merge);
}

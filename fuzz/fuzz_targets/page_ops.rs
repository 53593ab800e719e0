//! Fuzzes the operations of a page: for any sequence of inserts, replacements and removals, the
//! page behaves like a `BTreeMap`.
#![no_main]

use cheetah::testing::base::{PageId, TreeId};
use cheetah::testing::format::page::{build_page, NoRoom, PageBuf, PageKind, PageMut, PageView, RecordRef};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn apply(page: &mut PageMut<'_>, model: &mut Model, operation: u8, key: &[u8], payload: &[u8]) {
    let record = RecordRef::frozen(payload);
    let done = match (page.view().search(key), operation % 3) {
        (Ok(i), 0) => {
            page.remove(i);
            model.remove(key);
            return;
        }
        (Ok(i), _) => page.replace(i, &record),
        (Err(i), _) => page.insert(i, key, &record),
    };
    match done {
        Ok(()) => drop(model.insert(key.to_vec(), payload.to_vec())),
        Err(NoRoom) => page.compact(),
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut page = PageBuf::new(512);
    build_page(&mut page, PageKind::Leaf, 0, TreeId(16), b"k", Some(b"kz"), PageId::NONE);
    let mut model = Model::new();
    for chunk in bytes.chunks_exact(5) {
        let key = [b"k", &chunk[1..1 + usize::from(chunk[0] >> 6)]].concat();
        if !PageView::new(&page).covers(&key) {
            continue;
        }
        let payload = vec![chunk[3]; usize::from(chunk[4])];
        apply(&mut PageMut::new(&mut page), &mut model, chunk[0], &key, &payload);
    }
    let view = PageView::new(&page);
    assert_eq!(view.verify(), Ok(()));
    assert_eq!(view.count(), model.len());
    for (i, (key, payload)) in model.iter().enumerate() {
        assert_eq!((&view.key(i), view.record(i).payload), (key, payload.as_slice()));
    }
});

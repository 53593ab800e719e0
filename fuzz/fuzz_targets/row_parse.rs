//! A shape and a row from any bytes: refused, or a row that can be taken apart and put together again.
#![no_main]

use cheetah::format::row::{RowShape, RowView};
use cheetah::format::Reader;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut reader = Reader::new(bytes);
    let Ok(shape) = RowShape::decode(&mut reader) else { return };
    let Ok(row) = RowView::parse(&shape, reader.rest()) else { return };
    row.externals().for_each(drop);
    if !shape.is_opaque() {
        let mut copy = Vec::new();
        row.rewrite(&mut copy, |_, _| None);
        assert_eq!(copy, reader.rest());
    }
});

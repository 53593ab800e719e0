//! Fuzzes the decoders of a row-format version and of a row: they reject the input, or the row can
//! be split into its parts and rebuilt unchanged.
#![no_main]

use cheetah::testing::format::row::{RowFormatVersion, RowView};
use cheetah::testing::format::Reader;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut reader = Reader::new(bytes);
    let Ok(row_format) = RowFormatVersion::decode(&mut reader) else { return };
    let Ok(row) = RowView::parse(&row_format, reader.rest()) else { return };
    row.externals().for_each(drop);
    if !row_format.is_opaque() {
        let mut copy = Vec::new();
        row.rewrite(&mut copy, |_, _| None);
        assert_eq!(copy, reader.rest());
    }
});

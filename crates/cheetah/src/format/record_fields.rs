//! Fields that log, undo, catalog and state records share.

use super::bytes::{Defect, Reader};

/// A number that fits 32 bits.
pub(super) fn number_u32(fields: &mut Reader<'_>) -> Result<u32, Defect> {
    u32::try_from(fields.varint()?).map_err(|_| Defect::new("number beyond 32 bits"))
}

/// A count of things that take at least one byte each, so it is bounded by what is left.
pub(super) fn count(fields: &mut Reader<'_>) -> Result<usize, Defect> {
    fields.length(fields.rest().len())
}

/// A string.
pub(super) fn text<'a>(fields: &mut Reader<'a>) -> Result<&'a str, Defect> {
    let bytes = fields.prefixed(usize::MAX)?;
    std::str::from_utf8(bytes).map_err(|_| Defect::new("text is not UTF-8"))
}

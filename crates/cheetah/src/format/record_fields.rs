//! Fields that log, undo, catalog and state records share.

use super::bytes::{put_prefixed, Defect, Reader};
use crate::base::Xid;

pub(super) fn number_u32(fields: &mut Reader<'_>) -> Result<u32, Defect> {
    u32::try_from(fields.varint()?).map_err(|_| Defect::new("number beyond 32 bits"))
}

/// Reads a count of items that take at least one byte each, so that the number of unread bytes
/// limits the count.
pub(super) fn count(fields: &mut Reader<'_>) -> Result<usize, Defect> {
    fields.length(fields.rest().len())
}

/// Reads a string.
pub(super) fn text<'a>(fields: &mut Reader<'a>) -> Result<&'a str, Defect> {
    let bytes = fields.prefixed(usize::MAX)?;
    std::str::from_utf8(bytes).map_err(|_| Defect::new("text is not UTF-8"))
}

/// Appends the length of an XID's bytes, 0 for `None`, and then the bytes: format u64, length of
/// the global part u8, both parts.
pub(super) fn put_xid(out: &mut Vec<u8>, xid: Option<&Xid>) {
    let mut bytes = Vec::new();
    if let Some(xid) = xid {
        bytes.extend_from_slice(&xid.format().to_le_bytes());
        bytes.push(xid.global().len() as u8);
        bytes.extend_from_slice(xid.global());
        bytes.extend_from_slice(xid.branch());
    }
    put_prefixed(out, &bytes);
}

pub(super) fn xid(fields: &mut Reader<'_>) -> Result<Option<Xid>, Defect> {
    let mut fields = Reader::new(fields.prefixed(usize::MAX)?);
    if fields.is_empty() {
        return Ok(None);
    }
    let format = fields.u64()?;
    let global_bytes = fields.u8()?;
    let global = fields.take(global_bytes.into())?;
    let xid = Xid::new(format, global, fields.rest())
        .ok_or(Defect::new("XID with a part of more than 64 bytes"))?;
    Ok(Some(xid))
}

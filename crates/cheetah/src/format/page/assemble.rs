//! Builds a page from columns of records. First each record gets its space, then its bytes are
//! filled in.

use super::layout::*;
use super::write::{NoRoom, PageMut};
use crate::format::varint;

/// The properties of a record that are known before its bytes are written.
#[derive(Clone, Copy, Debug)]
pub(in crate::format) struct Outline {
    pub(in crate::format) flags: RecordFlags,
    pub(in crate::format) versioned: bool,
    pub(in crate::format) suffix_bytes: usize,
    pub(in crate::format) payload_bytes: usize,
}

/// The positions of the parts of each record in the page.
#[derive(Debug)]
pub(in crate::format) struct Places {
    pub(in crate::format) suffixes: Vec<u32>,
    pub(in crate::format) versions: Vec<u32>,
    pub(in crate::format) payloads: Vec<u32>,
}

impl PageMut<'_> {
    /// Gives each record its slot and space, in order, in a page without records, and writes flags
    /// and lengths. The caller fills in the rest and then calls [`Self::set_heads`].
    pub(in crate::format) fn lay_out(&mut self, records: &[Outline]) -> Result<Places, NoRoom> {
        let mut places = Places {
            suffixes: Vec::with_capacity(records.len()),
            versions: Vec::new(),
            payloads: Vec::with_capacity(records.len()),
        };
        let mut at = self.view().heap_start();
        for (i, record) in records.iter().enumerate() {
            let bytes = record_bytes(record.suffix_bytes, record.versioned, record.payload_bytes);
            let slots_end = HEADER_BYTES + (i + 1) * SLOT_BYTES;
            at = at.checked_sub(bytes).filter(|&at| at >= slots_end).ok_or(NoRoom)?;
            put_u16(self.bytes_mut(), HEADER_BYTES + i * SLOT_BYTES, at);
            self.outline_record(at, record, &mut places);
        }
        put_u16(self.bytes_mut(), AT_COUNT, records.len());
        put_u16(self.bytes_mut(), AT_HEAP_START, at);
        Ok(places)
    }

    fn outline_record(&mut self, start: usize, record: &Outline, places: &mut Places) {
        let versioned = if record.versioned { RecordFlags::VERSIONED_BIT } else { 0 };
        let bytes = self.bytes_mut();
        bytes[start] = record.flags.bits() | versioned;
        let mut at = start + 1;
        at += varint::write(&mut bytes[at..], record.suffix_bytes as u64);
        places.suffixes.push(at as u32);
        at += record.suffix_bytes;
        if record.versioned {
            places.versions.push(at as u32);
            at += VERSION_BYTES;
        }
        at += varint::write(&mut bytes[at..], record.payload_bytes as u64);
        places.payloads.push(at as u32);
    }

    /// Computes the heads of all slots. The suffixes of the records must have been written.
    pub(in crate::format) fn set_heads(&mut self, records: &[Outline], places: &Places) {
        let bytes = self.bytes_mut();
        for (i, (record, &start)) in records.iter().zip(&places.suffixes).enumerate() {
            let start = start as usize;
            let head = head_of(&bytes[start..start + record.suffix_bytes]);
            put_u32(bytes, HEADER_BYTES + i * SLOT_BYTES + 2, head);
        }
    }
}

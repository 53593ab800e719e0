//! The first rows of a load, in order of arrival.

use crate::base::Result;
use crate::format::varint;
use crate::sort::Share;
use crate::table::definitions::spec::{NewRow, SecondaryEntry};
use std::ops::Range;

/// Maximum bytes of buffered rows, or the sort memory divided by `KEPT_PART` if that is less.
const KEPT_BYTES_MAX: usize = 1 << 20;
const KEPT_PART: usize = 4;

/// Rows, one after the other; whether their keys ascend; and their share of memory.
#[derive(Debug)]
pub(crate) struct Kept {
    share: Share,
    bytes: Vec<u8>,
    bytes_max: usize,
    last_key: Range<usize>,
    ascends: bool,
}

impl Kept {
    /// `memory_bytes` is the sort memory of all loads together.
    pub(super) fn new(memory_bytes: usize, share: Share) -> Self {
        let bytes_max = KEPT_BYTES_MAX.min(memory_bytes / KEPT_PART);
        let bytes = Vec::with_capacity(share.bytes());
        Self { share, bytes, bytes_max, last_key: 0..0, ascends: true }
    }

    pub(super) fn ascends(&self) -> bool {
        self.ascends
    }

    /// Returns `false` if there is no room for the row.
    pub(super) fn keep(&mut self, row: &NewRow<'_>) -> bool {
        let entry_bytes =
            row.secondary.iter().map(|entry| entry.key.len() + entry.payload.len() + 3 * varint::MAX_BYTES);
        let bytes = row.key.len() + row.row.len() + 3 * varint::MAX_BYTES + entry_bytes.sum::<usize>();
        while self.bytes.capacity() - self.bytes.len() < bytes {
            let more = self.share.piece_bytes();
            if self.bytes.capacity() + more > self.bytes_max || !self.share.take(more) {
                return false;
            }
            let room = self.bytes.capacity() - self.bytes.len();
            self.bytes.reserve_exact(room + more);
        }
        self.put(row);
        true
    }

    fn put(&mut self, row: &NewRow<'_>) {
        let last_key = self.bytes.get(self.last_key.clone()).unwrap_or_default();
        self.ascends &= self.bytes.is_empty() || last_key < row.key;
        self.last_key = put_bytes(&mut self.bytes, row.key);
        put_bytes(&mut self.bytes, row.row);
        varint::put(&mut self.bytes, row.secondary.len() as u64);
        for entry in row.secondary {
            varint::put(&mut self.bytes, (entry.index_no as u64) << 1 | u64::from(entry.check_unique));
            put_bytes(&mut self.bytes, entry.key);
            put_bytes(&mut self.bytes, entry.payload);
        }
    }

    /// Passes all rows to `f`, in order of arrival.
    pub(crate) fn each(&self, f: &mut dyn FnMut(&NewRow<'_>) -> Result<()>) -> Result<()> {
        let mut left = self.bytes.as_slice();
        while !left.is_empty() {
            let (key, row) = (take_bytes(&mut left), take_bytes(&mut left));
            let count = take_number(&mut left);
            let mut secondary = Vec::new();
            for _ in 0..count {
                let word = take_number(&mut left);
                let (key, payload) = (take_bytes(&mut left), take_bytes(&mut left));
                let (index_no, check_unique) = ((word >> 1) as usize, word & 1 != 0);
                secondary.push(SecondaryEntry { index_no, key, payload, check_unique });
            }
            f(&NewRow { key, row, secondary: &secondary })?;
        }
        Ok(())
    }
}

/// Appends the length of `bytes` and then `bytes`; returns the range of these.
fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) -> Range<usize> {
    varint::put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
    out.len() - bytes.len()..out.len()
}

fn take_number(left: &mut &[u8]) -> u64 {
    let (number, used) = varint::get(left).expect("rows are buffered as they were put");
    *left = left.get(used..).unwrap_or_default();
    number
}

fn take_bytes<'b>(left: &mut &'b [u8]) -> &'b [u8] {
    let len = take_number(left) as usize;
    let (bytes, rest) = left.split_at(len);
    *left = rest;
    bytes
}

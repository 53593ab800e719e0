//! Contents of a simulated file: a length and shared blocks, so that a copy of a disk costs nothing
//! until one of the two is written.
//!
//! Invariants
//!   I1  A block that is not present reads as zeroes.
//!   I2  Bytes of present blocks at or after `len` are zero.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Granularity of sharing and of space accounting.
pub(super) const BLOCK_BYTES: u64 = 4096;

type Block = [u8; BLOCK_BYTES as usize];

#[derive(Clone, Default)]
pub(super) struct Content {
    len: u64,
    blocks: Arc<BTreeMap<u64, Arc<Block>>>,
}

impl Content {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn has_block(&self, index: u64) -> bool {
        self.blocks.contains_key(&index)
    }

    pub(super) fn blocks_from(&self, first: u64) -> u64 {
        self.blocks.range(first..).count() as u64
    }

    /// Fills `buf` from `offset`; bytes after the end read as zero.
    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) {
        for (index, within, range) in pieces(offset, buf.len()) {
            let target = &mut buf[range];
            match self.blocks.get(&index) {
                Some(block) => target.copy_from_slice(&block[within..within + target.len()]),
                None => target.fill(0),
            }
        }
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let blocks = Arc::make_mut(&mut self.blocks);
        for (index, within, range) in pieces(offset, bytes.len()) {
            let source = &bytes[range];
            let block = blocks.entry(index).or_insert_with(|| Arc::new([0; BLOCK_BYTES as usize]));
            Arc::make_mut(block)[within..within + source.len()].copy_from_slice(source);
        }
        self.len = self.len.max(offset + bytes.len() as u64);
    }

    pub(super) fn set_len(&mut self, len: u64) {
        if len < self.len {
            let blocks = Arc::make_mut(&mut self.blocks);
            blocks.split_off(&len.div_ceil(BLOCK_BYTES));
            if let Some(last) = blocks.get_mut(&(len / BLOCK_BYTES)) {
                Arc::make_mut(last)[(len % BLOCK_BYTES) as usize..].fill(0);
            }
        }
        self.len = len;
    }

    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len as usize];
        self.read(0, &mut bytes);
        bytes
    }
}

/// Splits `len` bytes at `offset` at block boundaries: (block, offset in it, range of the buffer).
pub(super) fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let within = (at % BLOCK_BYTES) as usize;
        let count = (BLOCK_BYTES as usize - within).min(len - done);
        let range = done..done + count;
        done += count;
        (count > 0).then_some((at / BLOCK_BYTES, within, range))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn contents_behave_like_a_byte_vector() {
        let mut rng = Rng::new(1);
        let (mut content, mut model) = (Content::default(), Vec::<u8>::new());
        for _ in 0..2000 {
            let offset = rng.below(20_000) as usize;
            if rng.chance(0.2) {
                content.set_len(offset as u64);
                model.resize(offset, 0);
            } else {
                let len = 1 + rng.below(9000) as usize;
                let bytes = rng.bytes(len);
                content.write(offset as u64, &bytes);
                model.resize(model.len().max(offset + bytes.len()), 0);
                model[offset..offset + bytes.len()].copy_from_slice(&bytes);
            }
            assert_eq!(content.len(), model.len() as u64);
            assert!(content.to_vec() == model);
        }
    }

    #[test]
    fn a_copy_does_not_see_later_writes() {
        let mut content = Content::default();
        content.write(0, b"old");
        let copy = content.clone();
        content.write(0, b"new");
        assert_eq!(copy.to_vec(), b"old");
    }
}

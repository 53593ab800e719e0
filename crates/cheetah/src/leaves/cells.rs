//! Memory for small lists that grow and are freed. A list is a chain of cells of one size.
//!
//! Lists are freed in another order than they are allocated: as allocations of different sizes,
//! they would fragment the memory of the process (docs/developers/decisions/0021). A block of cells
//! is returned to the system when its last cell is freed.

use crate::base::sound;
use crate::format::page::PageBuf;
use cheetah_io::Blocks;
use std::sync::Arc;

/// The size of a block: a page of the operating system.
const BLOCK_BYTES: usize = 4096;
/// The number of the next cell, and the number of bytes in this cell.
const HEAD_BYTES: usize = 6;
const NO_CELL: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    first: u32,
    last: u32,
}

impl Default for Chain {
    fn default() -> Self {
        Self { first: NO_CELL, last: NO_CELL }
    }
}

#[derive(Default, Debug)]
pub(super) struct Cells<const CELL_BYTES: usize> {
    source: Option<Arc<Blocks>>,
    blocks: Vec<BlockOfCells>,
    count: usize,
    /// Blocks with a free cell, without duplicates, and some blocks that have become full.
    with_room: Vec<usize>,
    /// The indexes of returned blocks.
    gone: Vec<usize>,
}

#[derive(Default, Debug)]
struct BlockOfCells {
    /// `None` after the memory was returned.
    memory: Option<PageBuf>,
    /// A bit for each cell in use.
    used: u64,
    is_listed: bool,
}

impl<const CELL_BYTES: usize> Cells<CELL_BYTES> {
    /// The number of cells in a block, limited by the bits of `used`.
    const OF_BLOCK: usize = {
        assert!(CELL_BYTES > HEAD_BYTES && BLOCK_BYTES / CELL_BYTES <= u64::BITS as usize);
        BLOCK_BYTES / CELL_BYTES
    };

    /// Reserves addresses for the cells of several `Cells`, which can hold `memory_bytes` bytes in
    /// all.
    pub(super) fn reserve(memory_bytes: usize) -> Option<Arc<Blocks>> {
        Blocks::reserve(BLOCK_BYTES, memory_bytes / BLOCK_BYTES + 1)
    }

    /// Without a source, memory comes from the heap.
    pub(super) fn new(source: Option<Arc<Blocks>>) -> Self {
        Self { source, ..Self::default() }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.count * BLOCK_BYTES
    }

    pub(super) fn append(&mut self, chain: &mut Chain, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let used = if chain.last == NO_CELL { CELL_BYTES } else { HEAD_BYTES + self.len_of(chain.last) };
            if used == CELL_BYTES {
                self.grow(chain);
                continue;
            }
            let (part, rest) = bytes.split_at(bytes.len().min(CELL_BYTES - used));
            let cell = self.cell_mut(chain.last);
            cell[used..used + part.len()].copy_from_slice(part);
            let len = (used + part.len() - HEAD_BYTES) as u16;
            cell[4..HEAD_BYTES].copy_from_slice(&len.to_le_bytes());
            bytes = rest;
        }
    }

    pub(super) fn join(&mut self, chain: &mut Chain, other: Chain) {
        if other.first == NO_CELL {
            return;
        }
        if chain.last == NO_CELL {
            *chain = other;
            return;
        }
        self.set_next(chain.last, other.first);
        chain.last = other.last;
    }

    pub(super) fn copy_bytes(&self, chain: Chain, bytes: &mut Vec<u8>) {
        let mut next = chain.first;
        while next != NO_CELL {
            let cell = self.cell(next);
            bytes.extend_from_slice(&cell[HEAD_BYTES..HEAD_BYTES + self.len_of(next)]);
            next = self.next_of(next);
        }
    }

    pub(super) fn free(&mut self, chain: Chain) {
        let mut next = chain.first;
        while next != NO_CELL {
            let number = next;
            next = self.next_of(number);
            let (at, cell) = (number as usize / Self::OF_BLOCK, number as usize % Self::OF_BLOCK);
            let block = &mut self.blocks[at];
            block.used &= !(1 << cell);
            if block.used == 0 {
                block.memory = None;
                self.count -= 1;
                self.gone.push(at);
            } else {
                self.list(at);
            }
        }
    }

    fn grow(&mut self, chain: &mut Chain) {
        let number = self.take();
        let cell = self.cell_mut(number);
        cell[..4].copy_from_slice(&NO_CELL.to_le_bytes());
        cell[4..HEAD_BYTES].fill(0);
        match chain.last {
            NO_CELL => chain.first = number,
            last => self.set_next(last, number),
        }
        chain.last = number;
    }

    fn take(&mut self) -> u32 {
        loop {
            let room =
                self.with_room.last().copied().filter(|_| sound!(true, "cells: take a block for each cell"));
            let at = room.unwrap_or_else(|| self.add_block());
            let block = &mut self.blocks[at];
            let cell = block.used.trailing_ones() as usize;
            if block.memory.is_some() && cell < Self::OF_BLOCK {
                block.used |= 1 << cell;
                return (at * Self::OF_BLOCK + cell) as u32;
            }
            block.is_listed = false;
            self.with_room.pop();
        }
    }

    fn add_block(&mut self) -> usize {
        let memory = self.source.as_ref().and_then(Blocks::take);
        let memory = memory.map_or_else(|| PageBuf::new(BLOCK_BYTES), PageBuf::in_block);
        let at = self.gone.pop().unwrap_or_else(|| {
            self.blocks.push(BlockOfCells::default());
            self.blocks.len() - 1
        });
        self.blocks[at].memory = Some(memory);
        self.count += 1;
        self.list(at);
        at
    }

    fn list(&mut self, at: usize) {
        if !std::mem::replace(&mut self.blocks[at].is_listed, true) {
            self.with_room.push(at);
        }
    }

    fn cell(&self, number: u32) -> &[u8] {
        let (block, at) = (number as usize / Self::OF_BLOCK, number as usize % Self::OF_BLOCK);
        let block = self.blocks[block].memory.as_ref().expect("a chain's cells are in blocks with memory");
        &block[at * CELL_BYTES..(at + 1) * CELL_BYTES]
    }

    fn cell_mut(&mut self, number: u32) -> &mut [u8] {
        let (block, at) = (number as usize / Self::OF_BLOCK, number as usize % Self::OF_BLOCK);
        let block = self.blocks[block].memory.as_mut().expect("a chain's cells are in blocks with memory");
        &mut block[at * CELL_BYTES..(at + 1) * CELL_BYTES]
    }

    fn next_of(&self, number: u32) -> u32 {
        let cell = self.cell(number);
        u32::from_le_bytes([cell[0], cell[1], cell[2], cell[3]])
    }

    fn set_next(&mut self, number: u32, next: u32) {
        self.cell_mut(number)[..4].copy_from_slice(&next.to_le_bytes());
    }

    fn len_of(&self, number: u32) -> usize {
        let cell = self.cell(number);
        usize::from(u16::from_le_bytes([cell[4], cell[5]]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cheetah_io::Rng;

    #[test]
    fn chains_keep_their_bytes_and_blocks_go_back() {
        let mut rng = Rng::new(1);
        let mut cells = Cells::<256>::new(Cells::<256>::reserve(1 << 20));
        let mut chains: Vec<(Chain, Vec<u8>)> = vec![Default::default(); 40];
        for step in 0..20_000 {
            let which = rng.below(40) as usize;
            match rng.below(20) {
                0 => {
                    cells.free(chains[which].0);
                    chains[which] = Default::default();
                }
                1 => {
                    let (other, bytes) = std::mem::take(&mut chains[which]);
                    let target = &mut chains[(which + 1) % 40];
                    cells.join(&mut target.0, other);
                    target.1.extend(bytes);
                }
                _ => {
                    let length = rng.below(60) as usize;
                    let bytes = rng.bytes(length);
                    cells.append(&mut chains[which].0, &bytes);
                    chains[which].1.extend(bytes);
                }
            }
            let (chain, bytes) = &chains[which];
            let mut copied = Vec::new();
            cells.copy_bytes(*chain, &mut copied);
            assert_eq!(copied, *bytes, "step {step}");
        }
        chains.iter().for_each(|(chain, _)| cells.free(*chain));
        let here = cells.blocks.iter().filter(|block| block.memory.is_some()).count();
        assert_eq!((cells.memory_bytes(), here), (0, 0));
        assert!(cells.blocks.len() < 2000, "returned blocks are used again");
    }
}

//! Repairs lengths and checksums of changed bytes, so that a decoder accepts them and decodes the
//! rest.

use cheetah::testing::format::{log_frame, map_block};

/// Writes the CRC-32C of all preceding bytes at offset `at` of a block of `bytes`.
pub(crate) fn block(block: &mut Vec<u8>, bytes: usize, at: usize) {
    block.resize(bytes, 0);
    let crc = crc32c::crc32c(&block[..at]);
    block[at..at + 4].copy_from_slice(&crc.to_le_bytes());
}

/// Repairs the length and the checksum of a chunk.
pub(crate) fn chunk(chunk: &mut Vec<u8>) {
    chunk.resize(chunk.len().max(map_block::CHUNK_HEADER_BYTES), 0);
    let stored = chunk.len() - map_block::CHUNK_HEADER_BYTES;
    chunk[12..16].copy_from_slice(&(stored as u32).to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&[0; 4]), &chunk[..16]);
    let crc = crc32c::crc32c_append(crc, &chunk[map_block::CHUNK_HEADER_BYTES..]);
    chunk[16..20].copy_from_slice(&crc.to_le_bytes());
}

/// Repairs the lengths and checksums of frames.
pub(crate) fn frames(frames: &mut Vec<u8>) {
    let bodies: Vec<_> = frames.chunks(40).map(<[u8]>::to_vec).collect();
    frames.clear();
    let mut chain = 5;
    for body in bodies {
        let kind = body[0].max(1);
        chain = log_frame::put_frame(frames, chain, kind, &body[1..]);
    }
}

//! Change files: pending changes of leaves that a checkpoint saved.
//!
//! Invariants
//!   I1  The checksum of a block continues that of the previous block; the first block's continues
//!       that of the header. A reference to a file contains the file's length and last checksum, so
//!       a missing block or a block of another file is detected.
//!   I2  Blocks of an encrypted file are encrypted with the key that its header names; checksums
//!       cover the stored bytes (E8).
//!   I3  A record is valid as long as the page map has the location in the record as the location
//!       of the page.
//! Layout    docs/developers/format.md, "Change files".
//!
//! ```text
//! header (64 bytes)                    block
//!   0  8  magic "CHEETCHG"               0  4  bytes of its records
//!   8  4  format version                 4  4  bytes stored
//!  12  4  zero                           8  4  crc32c: previous one, bytes 0..8, stored bytes
//!  16 16  database                      12  .  the records, compressed with lz4, or as
//!  32  8  epoch                                they are if lz4 does not shorten them
//!  40 16  name of the key, if encrypted    if encrypted: a nonce of 16 bytes, then
//!                                              the encrypted records
//!  56  .  zero
//!  60  4  crc32c of bytes 0..60
//!
//! record: varint page, varint tree, 8 address of its image, varint bytes and 4 crc32c of that,
//!         1 flags, varint room, varint growth, varint length, the changes
//! ```

use super::bytes::{check_version, ensure, put_prefixed, Defect, Reader};
use super::encryption::{Key, KeyName, KEY_NAME_BYTES, NONCE_BYTES};
use super::record_fields::number_u32;
use super::{varint, ImageRef, Location};
use crate::base::{Epoch, PageId, TreeId};

/// Length of the header.
pub const HEADER_BYTES: usize = 64;
/// Length of a block without its stored bytes.
pub const BLOCK_HEAD_BYTES: usize = 12;
/// The maximum length of the records in a block.
pub const BLOCK_BYTES_MAX: usize = 1 << 20;

const MAGIC: [u8; 8] = *b"CHEETCHG";
const VERSION: u32 = 2;
const PLAIN_VERSION: u32 = 1;
const HEADER_CRC_AT: usize = HEADER_BYTES - 4;
/// A flag of a record: the record has all pending changes of the page.
const BEGINS: u8 = 1;

/// The changes that were pending for a page, or a later part of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SavedChanges<'a> {
    /// The page and its image; the image does not have these changes.
    pub image: ImageRef,
    /// Whether these are all changes that were pending at the checkpoint. If not, they are the
    /// changes since the previous file.
    pub begins: bool,
    /// The number of free bytes in the leaf of the image.
    pub room: usize,
    /// The maximum number of bytes by which the changes make the leaf grow.
    pub growth_bytes: usize,
    /// The changes, encoded by [`encode_buffered`](super::page::encode_buffered).
    pub changes: &'a [u8],
}

impl<'a> SavedChanges<'a> {
    /// Appends the record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let ImageRef { pid, tree, location } = self.image;
        varint::put(out, pid.0);
        varint::put(out, tree.0.into());
        out.extend_from_slice(&location.address().to_le_bytes());
        varint::put(out, location.stored_bytes.into());
        out.extend_from_slice(&location.crc.to_le_bytes());
        out.push(if self.begins { BEGINS } else { 0 });
        varint::put(out, self.room as u64);
        varint::put(out, self.growth_bytes as u64);
        put_prefixed(out, self.changes);
    }

    /// Reads the next record. Works on any bytes.
    pub fn decode(reader: &mut Reader<'a>) -> Result<Self, Defect> {
        let (pid, tree) = (PageId(reader.varint()?), TreeId(number_u32(reader)?));
        let (address, stored_bytes) = (reader.u64()?, number_u32(reader)?);
        let location = Location::of_address(address, stored_bytes, reader.u32()?);
        let flags = reader.u8()?;
        ensure(flags & !BEGINS == 0, "unknown flags of saved changes")?;
        let (room, growth_bytes) = (number_u32(reader)? as usize, number_u32(reader)? as usize);
        let changes = reader.prefixed(usize::MAX)?;
        let image = ImageRef { pid, tree, location };
        Ok(Self { image, begins: flags & BEGINS != 0, room, growth_bytes, changes })
    }
}

/// Returns the header of the file of `epoch`.
pub fn encode_header(database: &[u8; 16], epoch: Epoch, key: Option<KeyName>) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    let version = if key.is_some() { VERSION } else { PLAIN_VERSION };
    header[8..12].copy_from_slice(&version.to_le_bytes());
    header[16..32].copy_from_slice(database);
    header[32..40].copy_from_slice(&epoch.0.to_le_bytes());
    if let Some(key) = key {
        header[40..40 + KEY_NAME_BYTES].copy_from_slice(&key.bytes());
    }
    let crc = crc32c::crc32c(&header[..HEADER_CRC_AT]);
    header[HEADER_CRC_AT..].copy_from_slice(&crc.to_le_bytes());
    header
}

/// Checks that this is the header of the file of `epoch`. Returns the checksum that the first block
/// continues, and the name of the key that encrypts the file.
pub fn check_header(
    header: &[u8; HEADER_BYTES],
    database: &[u8; 16],
    epoch: Epoch,
) -> Result<(u32, Option<KeyName>), Defect> {
    let (covered, crc) = header.split_at(HEADER_CRC_AT);
    let mut reader = Reader::new(covered);
    ensure(reader.array()? == MAGIC, "not a change file")?;
    ensure(crc == crc32c::crc32c(covered).to_le_bytes(), "bad checksum of the header")?;
    let version = reader.u32()?;
    if version != PLAIN_VERSION {
        check_version("change file format", version, VERSION)?;
    }
    ensure(reader.u32()? == 0, "reserved bytes are not zero")?;
    ensure(reader.array()? == *database, "belongs to another database")?;
    ensure(reader.u64()? == epoch.0, "belongs to another epoch")?;
    let key = if version == VERSION { Some(KeyName::decode(&mut reader)?) } else { None };
    Ok((chain_of(header), key))
}

/// The checksum that the first block after a header continues.
pub fn chain_of(header: &[u8; HEADER_BYTES]) -> u32 {
    crc32c::crc32c(header)
}

/// Writes a block with these records into `block`, replacing its content, and returns the block's
/// checksum. `chain` is the checksum of the previous block. `lock` is the key of the file, and a
/// nonce that is used only for this block.
pub fn encode_block(
    records: &[u8],
    chain: u32,
    lock: Option<(&Key, [u8; NONCE_BYTES])>,
    block: &mut Vec<u8>,
) -> u32 {
    let most = lz4_flex::block::get_maximum_output_size(records.len());
    block.clear();
    block.resize(BLOCK_HEAD_BYTES + most, 0);
    let packed =
        lz4_flex::block::compress_into(records, &mut block[BLOCK_HEAD_BYTES..]).unwrap_or(usize::MAX);
    block.truncate(BLOCK_HEAD_BYTES + packed.min(most));
    if packed >= records.len() {
        block.truncate(BLOCK_HEAD_BYTES);
        block.extend_from_slice(records);
    }
    if let Some((key, nonce)) = lock {
        key.apply(&nonce, &mut block[BLOCK_HEAD_BYTES..]);
        block.splice(BLOCK_HEAD_BYTES..BLOCK_HEAD_BYTES, nonce);
    }
    let stored_bytes = (block.len() - BLOCK_HEAD_BYTES) as u32;
    block[..4].copy_from_slice(&(records.len() as u32).to_le_bytes());
    block[4..8].copy_from_slice(&stored_bytes.to_le_bytes());
    let crc = crc_of(&block[..8], &block[BLOCK_HEAD_BYTES..], chain);
    block[8..BLOCK_HEAD_BYTES].copy_from_slice(&crc.to_le_bytes());
    crc
}

/// Returns the number of stored bytes of the block with this head. `limit` is the number of bytes
/// after the head in the file.
pub fn stored_bytes(head: &[u8; BLOCK_HEAD_BYTES], limit: u64) -> Result<usize, Defect> {
    let mut reader = Reader::new(head);
    let (raw, stored) = (reader.u32()?, reader.u32()?);
    ensure(
        raw as usize <= BLOCK_BYTES_MAX && stored <= raw + NONCE_BYTES as u32,
        "impossible length of a block",
    )?;
    ensure(u64::from(stored) <= limit, "a block is longer than its file")?;
    Ok(stored as usize)
}

/// Verifies the checksum of a block, which must continue `chain`, and returns it. Needs no key.
pub fn check_block(head: &[u8; BLOCK_HEAD_BYTES], stored: &[u8], chain: u32) -> Result<u32, Defect> {
    let mut reader = Reader::new(&head[8..]);
    let crc = reader.u32()?;
    ensure(crc == crc_of(&head[..8], stored, chain), "bad checksum of a block")?;
    Ok(crc)
}

/// Decompresses the records of a block that was checked. If the file has a `key`, decrypts the
/// stored bytes in place first.
pub fn open_block(
    head: &[u8; BLOCK_HEAD_BYTES],
    mut stored: &mut [u8],
    key: Option<&Key>,
    records: &mut Vec<u8>,
) -> Result<(), Defect> {
    let raw = Reader::new(head).u32()? as usize;
    ensure(raw <= BLOCK_BYTES_MAX, "impossible length of a block")?;
    if let Some(key) = key {
        let (nonce, closed) =
            stored.split_first_chunk_mut().ok_or(Defect::new("an encrypted block without a nonce"))?;
        key.apply(nonce, closed);
        stored = closed;
    }
    records.clear();
    if stored.len() == raw {
        records.extend_from_slice(stored);
        return Ok(());
    }
    records.resize(raw, 0);
    let unpacked = lz4_flex::block::decompress_into(stored, records).ok();
    ensure(unpacked == Some(raw), "a block cannot be decompressed")
}

fn crc_of(head: &[u8], stored: &[u8], chain: u32) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(chain, head), stored)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::SegmentId;

    fn saved(changes: &[u8]) -> SavedChanges<'_> {
        let location = Location { segment: SegmentId(3), offset: 640, stored_bytes: 900, crc: 77 };
        let image = ImageRef { pid: PageId(5), tree: TreeId(20), location };
        SavedChanges { image, begins: true, room: 4000, growth_bytes: 120, changes }
    }

    #[test]
    fn records_and_blocks_read_back() {
        let header = encode_header(&[7; 16], Epoch(9), None);
        let (chain, key) = check_header(&header, &[7; 16], Epoch(9)).unwrap();
        assert_eq!(key, None);
        let mut records = Vec::new();
        let long = [1; 500];
        [&b"one"[..], &long].map(saved).iter().for_each(|saved| saved.encode(&mut records));
        for records in [&records[..], &records[..40]] {
            let mut block = Vec::new();
            let key = Key::new(1, 2, vec![3; 32].into(), &[7; 16]);
            let mut plain = Vec::new();
            encode_block(records, chain, None, &mut plain);
            let plain = &plain[BLOCK_HEAD_BYTES..];
            for key in [None, Some(&key)] {
                let crc = encode_block(records, chain, key.zip(Some([4; 16])), &mut block);
                let (head, stored) = block.split_first_chunk().unwrap();
                assert_eq!(stored_bytes(head, stored.len() as u64), Ok(stored.len()));
                assert_eq!(stored == plain, key.is_none());
                assert!(check_block(head, stored, chain ^ 1).is_err());
                assert_eq!(check_block(head, stored, chain), Ok(crc));
                let mut unpacked = Vec::new();
                open_block(head, &mut stored.to_vec(), key, &mut unpacked).unwrap();
                assert_eq!(unpacked, records);
            }
        }
        let mut reader = Reader::new(&records);
        assert_eq!(SavedChanges::decode(&mut reader), Ok(saved(b"one")));
        assert_eq!(SavedChanges::decode(&mut reader), Ok(saved(&long)));
        assert!(reader.is_empty());
    }

    #[test]
    fn headers_of_others_are_refused() {
        let key = KeyName { id: 1, version: 2, check: [3; 8] };
        let header = encode_header(&[7; 16], Epoch(9), Some(key));
        assert_eq!(check_header(&header, &[7; 16], Epoch(9)).unwrap().1, Some(key));
        assert!(check_header(&header, &[8; 16], Epoch(9)).is_err());
        assert!(check_header(&header, &[7; 16], Epoch(8)).is_err());
        for at in 0..HEADER_BYTES {
            let mut other = header;
            other[at] ^= 0x10;
            assert!(check_header(&other, &[7; 16], Epoch(9)).is_err(), "byte {at}");
        }
    }
}

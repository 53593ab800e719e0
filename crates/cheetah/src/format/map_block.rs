//! Files of the page map: a header, then blocks; a block holds one epoch and consists of chunks.
//!
//! ```text
//! file header                              chunk header
//! offset size                              offset size
//!      0    8  "CHEETMAP"                       0    2  "MC"
//!      8    4  format version                   2    1  kind: 1 begin, 2 entries, 3 state, 4 end
//!     12    4  kind: 1 base, 2 log              3    1  codec: 0 as is, 1 zstd
//!     16   16  uuid of the database             4    4  number of entries (kind 2), else 0
//!     32    8  ID of the file                    8    4  bytes of the content
//!     40    8  incarnation that created it     12    4  bytes stored after this header
//!     48   12  zero                            16    4  CRC-32C of: the preceding chunk's CRC,
//!     60    4  CRC-32C of bytes 0..60                   bytes 0..16, the stored bytes
//! ```
//! A block consists of a begin chunk, entries chunks, state chunks and an end chunk. The CRC of the
//! first chunk continues the CRC of the file header, so the CRC of an end chunk covers every byte
//! of the file before it. Contents:
//!
//! ```text
//! begin    epoch 8, incarnation 8
//! entries  for each entry varint (page - previous page; the first: page); for each varint
//!          (tree; 0: deleted); for each page that is not deleted: varint segment; varint
//!          offset / 64; varint stored bytes; crc 4
//!          (each item of the list is stored as a column, in this order; pages ascend)
//! state    opaque bytes of the layers above; the states of a block's chunks are one string
//! end      epoch 8, number of entries 8, bytes of state 8
//! ```

use super::bytes::{check_version, codes, ensure, Defect, Reader};
use super::contexts;
use super::location::{Location, MapEntry, ALIGN_BYTES};
use super::varint;
use crate::base::{Epoch, PageId, SegmentId, TreeId};
use zstd::zstd_safe::CParameter;

/// Bytes of the file header.
pub const FILE_HEADER_BYTES: usize = 64;
/// Bytes of a chunk header.
pub const CHUNK_HEADER_BYTES: usize = 20;
/// The maximum length of a chunk's content. A reader needs a buffer of this size.
pub const CONTENT_BYTES_MAX: usize = 128 << 10;
/// The maximum number of entries in a chunk. The longest entry takes 29 bytes.
pub const CHUNK_ENTRIES_MAX: usize = 4096;
/// The version of map files that this engine writes.
pub const VERSION: u32 = 1;

const FILE_MAGIC: &[u8; 8] = b"CHEETMAP";
const CHUNK_MAGIC: &[u8; 2] = b"MC";
const CRC_AT: usize = CHUNK_HEADER_BYTES - 4;

/// A change of the map: the page's new entry, or `None` if the page was deleted.
pub type Change = (PageId, Option<MapEntry>);

/// The kind of a map file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileKind {
    /// One block, with all pages of an epoch.
    Base = 1,
    /// A block for each checkpoint, with the pages that it changed.
    Log = 2,
}

/// The header of a map file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileHeader {
    /// Base or log.
    pub kind: FileKind,
    /// The database that the file belongs to.
    pub uuid: [u8; 16],
    /// The ID in its name.
    pub number: u64,
    /// The startup of the database that created it.
    pub incarnation: u64,
}

impl FileHeader {
    /// The header as bytes.
    pub fn encode(&self) -> [u8; FILE_HEADER_BYTES] {
        let mut bytes = [0; FILE_HEADER_BYTES];
        bytes[0..8].copy_from_slice(FILE_MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&(self.kind as u32).to_le_bytes());
        bytes[16..32].copy_from_slice(&self.uuid);
        bytes[32..40].copy_from_slice(&self.number.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.incarnation.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Parses and checks a header.
    pub fn decode(bytes: &[u8; FILE_HEADER_BYTES]) -> Result<Self, Defect> {
        let mut reader = Reader::new(bytes);
        ensure(&reader.array::<8>()? == FILE_MAGIC, "not a file of the page map (magic)")?;
        let version = reader.u32()?;
        let kind = reader.u32()?;
        let uuid = reader.array::<16>()?;
        let number = reader.u64()?;
        let incarnation = reader.u64()?;
        ensure(reader.take(12)?.iter().all(|b| *b == 0), "reserved bytes of the header are not zero")?;
        ensure(reader.u32()? == crc32c::crc32c(&bytes[..60]), "checksum of the header is wrong")?;
        check_version("page map format", version, VERSION)?;
        let kind = match kind {
            1 => FileKind::Base,
            2 => FileKind::Log,
            _ => return Err(Defect::new("unknown kind of map file")),
        };
        Ok(Self { kind, uuid, number, incarnation })
    }

    /// The header's checksum, which the checksum of the first chunk continues.
    pub fn crc(&self) -> u32 {
        crc32c::crc32c(&self.encode())
    }
}

/// The kind of content of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "named in the module head")]
pub enum ChunkKind {
    Begin,
    Entries,
    State,
    End,
}

codes!(ChunkKind { Begin = 1, Entries = 2, State = 3, End = 4 });

/// The parsed header of a chunk. Its lengths were checked against their limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChunkHeader {
    /// The kind of its content.
    pub kind: ChunkKind,
    compressed: bool,
    entries_count: u32,
    content_bytes: u32,
    stored_bytes: u32,
    /// The checksum of all chunks up to and including this one.
    pub crc: u32,
}

impl ChunkHeader {
    /// Parses a header.
    pub fn decode(bytes: &[u8; CHUNK_HEADER_BYTES]) -> Result<Self, Defect> {
        let mut reader = Reader::new(bytes);
        ensure(&reader.array::<2>()? == CHUNK_MAGIC, "not a chunk of the page map (magic)")?;
        let kind = ChunkKind::from_code(reader.u8()?).ok_or(Defect::new("unknown kind of chunk"))?;
        let codec = reader.u8()?;
        ensure(codec <= 1, "unknown codec of a chunk")?;
        let header = Self {
            kind,
            compressed: codec == 1,
            entries_count: reader.u32()?,
            content_bytes: reader.u32()?,
            stored_bytes: reader.u32()?,
            crc: reader.u32()?,
        };
        ensure(header.content_bytes as usize <= CONTENT_BYTES_MAX, "content of a chunk is too long")?;
        ensure(header.stored_bytes <= header.content_bytes, "a chunk is longer than its content")?;
        ensure(header.entries_count as usize <= CHUNK_ENTRIES_MAX, "too many entries in a chunk")?;
        Ok(header)
    }

    /// The length of the chunk's content as stored after the header.
    pub fn stored_bytes(&self) -> usize {
        self.stored_bytes as usize
    }

    /// Verifies the checksum of `chunk`, which starts with this header, and decompresses its
    /// content into `content`. `crc_before` is the checksum of the previous chunk.
    pub fn open(&self, chunk: &[u8], crc_before: u32, content: &mut Vec<u8>) -> Result<(), Defect> {
        let (header, stored) = chunk.split_at_checked(CHUNK_HEADER_BYTES).ok_or(Defect::new("ends early"))?;
        ensure(stored.len() == self.stored_bytes(), "ends early")?;
        ensure(chain(crc_before, &header[..CRC_AT], stored) == self.crc, "checksum of a chunk is wrong")?;
        content.clear();
        if !self.compressed {
            ensure(self.stored_bytes == self.content_bytes, "lengths of an uncompressed chunk differ")?;
            content.extend_from_slice(stored);
            return Ok(());
        }
        content.resize(self.content_bytes as usize, 0);
        let mut context = contexts::take_decompressor().ok_or(Defect::new("no memory for zstd data"))?;
        let got = context.decompress(content.as_mut_slice(), stored);
        contexts::give_decompressor(context);
        let got = got.map_err(|_| Defect::new("zstd data is bad"))?;
        ensure(got == content.len(), "a chunk decompresses to another length")
    }

    /// Decodes the content of an entries chunk into `entries`.
    pub fn entries(&self, content: &[u8], entries: &mut Vec<Change>) -> Result<(), Defect> {
        decode_entries(content, self.entries_count as usize, entries)
    }
}

fn chain(crc_before: u32, header: &[u8], stored: &[u8]) -> u32 {
    let crc = crc32c::crc32c_append(crc32c::crc32c(&crc_before.to_le_bytes()), header);
    crc32c::crc32c_append(crc, stored)
}

/// Appends a chunk to `out` and returns its checksum.
///
/// # Panics
/// If the content is longer than [`CONTENT_BYTES_MAX`], or there are more than
/// [`CHUNK_ENTRIES_MAX`] entries.
pub fn put_chunk(
    out: &mut Vec<u8>,
    kind: ChunkKind,
    entries_count: usize,
    content: &[u8],
    crc_before: u32,
) -> u32 {
    assert!(content.len() <= CONTENT_BYTES_MAX && entries_count <= CHUNK_ENTRIES_MAX);
    let packed = packed(content).filter(|packed| packed.len() < content.len());
    let stored = packed.as_deref().unwrap_or(content);
    let start = out.len();
    out.extend_from_slice(CHUNK_MAGIC);
    out.extend_from_slice(&[kind.code(), u8::from(packed.is_some())]);
    for number in [entries_count, content.len(), stored.len()] {
        out.extend_from_slice(&(number as u32).to_le_bytes());
    }
    let crc = chain(crc_before, &out[start..], stored);
    out.extend_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(stored);
    crc
}

/// Compresses `content` at level 1. Returns `None` on failure.
fn packed(content: &[u8]) -> Option<Vec<u8>> {
    let mut compressor = contexts::take_compressor();
    // Zero selects the default of the compression level.
    let parameters = [CParameter::CompressionLevel(1), CParameter::MinMatch(0)];
    let set = parameters.into_iter().try_for_each(|parameter| compressor.set_parameter(parameter));
    let packed = set.and_then(|()| compressor.compress(content));
    contexts::give_compressor(compressor);
    packed.ok()
}

/// The content of a begin chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Begin {
    /// The epoch that the block holds.
    pub epoch: Epoch,
    /// The startup of the database that wrote the block.
    pub incarnation: u64,
}

impl Begin {
    /// Encodes it.
    pub fn encode(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.epoch.0.to_le_bytes());
        bytes[8..].copy_from_slice(&self.incarnation.to_le_bytes());
        bytes
    }

    /// Decodes it.
    pub fn decode(content: &[u8]) -> Result<Self, Defect> {
        let mut reader = Reader::new(content);
        let begin = Self { epoch: Epoch(reader.u64()?), incarnation: reader.u64()? };
        reader.finish()?;
        Ok(begin)
    }
}

/// The content of an end chunk, with the totals of the block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// The epoch that the block holds.
    pub epoch: Epoch,
    /// Entries in the block.
    pub entries_count: u64,
    /// Bytes of state in the block.
    pub state_bytes: u64,
}

impl End {
    /// Encodes it.
    pub fn encode(&self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.epoch.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.entries_count.to_le_bytes());
        bytes[16..].copy_from_slice(&self.state_bytes.to_le_bytes());
        bytes
    }

    /// Decodes it.
    pub fn decode(content: &[u8]) -> Result<Self, Defect> {
        let mut reader = Reader::new(content);
        let epoch = Epoch(reader.u64()?);
        let end = Self { epoch, entries_count: reader.u64()?, state_bytes: reader.u64()? };
        reader.finish()?;
        Ok(end)
    }
}

/// Encodes `entries`, which ascend by page, as the content of an entries chunk.
pub fn encode_entries(entries: &[Change], out: &mut Vec<u8>) {
    debug_assert!(entries.windows(2).all(|pair| pair[0].0 < pair[1].0), "E2: entries ascend by page");
    let mut before = 0;
    for (pid, _) in entries {
        varint::put(out, pid.0 - before);
        before = pid.0;
    }
    for (_, entry) in entries {
        varint::put(out, entry.map_or(0, |entry| u64::from(entry.tree.0)));
    }
    let locations = || entries.iter().filter_map(|(_, entry)| entry.map(|entry| entry.location));
    locations().for_each(|location| varint::put(out, u64::from(location.segment.0)));
    locations().for_each(|location| varint::put(out, u64::from(location.offset / ALIGN_BYTES)));
    locations().for_each(|location| varint::put(out, u64::from(location.stored_bytes)));
    locations().for_each(|location| out.extend_from_slice(&location.crc.to_le_bytes()));
}

fn decode_entries(content: &[u8], count: usize, entries: &mut Vec<Change>) -> Result<(), Defect> {
    let mut reader = Reader::new(content);
    entries.clear();
    let mut pid = 0u64;
    for _ in 0..count {
        let step = reader.varint()?;
        let next = pid.checked_add(step).filter(|next| step > 0 && *next <= PageId::MAX.0);
        pid = next.ok_or(Defect::new("pages of a chunk do not ascend"))?;
        entries.push((PageId(pid), None));
    }
    let nowhere = Location { segment: SegmentId(0), offset: 0, stored_bytes: 0, crc: 0 };
    for (_, entry) in entries.iter_mut() {
        let tree = TreeId(varint_u32(&mut reader)?);
        *entry = (tree != TreeId(0)).then_some(MapEntry { tree, location: nowhere });
    }
    let mut locations: Vec<&mut Location> =
        entries.iter_mut().filter_map(|(_, entry)| entry.as_mut().map(|entry| &mut entry.location)).collect();
    for location in &mut locations {
        location.segment = SegmentId(varint_u32(&mut reader)?);
    }
    for location in &mut locations {
        let offset = varint_u32(&mut reader)?.checked_mul(ALIGN_BYTES);
        location.offset = offset.ok_or(Defect::new("offset of an image is too large"))?;
    }
    for location in &mut locations {
        location.stored_bytes = varint_u32(&mut reader)?;
    }
    for location in &mut locations {
        location.crc = reader.u32()?;
    }
    reader.finish()
}

fn varint_u32(reader: &mut Reader<'_>) -> Result<u32, Defect> {
    u32::try_from(reader.varint()?).map_err(|_| Defect::new("a number of an entry is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cheetah_io::Rng;

    fn entries(rng: &mut Rng, count: usize) -> Vec<Change> {
        let mut pid = 0;
        let mut one = |rng: &mut Rng| {
            pid += 1 + rng.below(3) * rng.below(1000);
            let location = Location {
                segment: SegmentId(rng.below(1 << 27) as u32),
                offset: rng.below(1 << 20) as u32 * ALIGN_BYTES,
                stored_bytes: rng.below(1 << 17) as u32,
                crc: rng.next_u64() as u32,
            };
            let tree = TreeId(1 + rng.below(u64::from(u32::MAX)) as u32);
            (PageId(pid), rng.chance(0.8).then_some(MapEntry { tree, location }))
        };
        (0..count).map(|_| one(rng)).collect()
    }

    fn read(chunk: &[u8], crc_before: u32) -> Result<(ChunkHeader, Vec<u8>), Defect> {
        let header: &[u8; CHUNK_HEADER_BYTES] = chunk.first_chunk().ok_or(Defect::new("ends early"))?;
        let header = ChunkHeader::decode(header)?;
        let mut content = Vec::new();
        header.open(chunk, crc_before, &mut content)?;
        Ok((header, content))
    }

    #[test]
    fn entries_round_trip_at_every_size_and_stay_within_a_chunk() {
        let mut rng = Rng::new(1);
        for count in [0, 1, 2, 100, CHUNK_ENTRIES_MAX] {
            let entries = entries(&mut rng, count);
            let (mut content, mut chunk, mut back) = (Vec::new(), Vec::new(), Vec::new());
            encode_entries(&entries, &mut content);
            let crc = put_chunk(&mut chunk, ChunkKind::Entries, count, &content, 17);
            let (header, content) = read(&chunk, 17).unwrap();
            header.entries(&content, &mut back).unwrap();
            assert_eq!((back, header.crc), (entries, crc));
        }
    }

    #[test]
    fn a_chunk_with_any_bit_flipped_or_out_of_its_place_in_the_chain_is_refused() {
        let mut rng = Rng::new(2);
        let (mut content, mut chunk) = (Vec::new(), Vec::new());
        encode_entries(&entries(&mut rng, 20), &mut content);
        put_chunk(&mut chunk, ChunkKind::Entries, 20, &content, 17);
        assert!(read(&chunk, 18).is_err());
        for bit in 0..chunk.len() * 8 {
            let mut bad = chunk.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&bad, 17).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn decoders_survive_any_bytes() {
        let mut rng = Rng::new(3);
        let mut out = Vec::new();
        for _ in 0..20_000 {
            let len = rng.below(200) as usize;
            let bytes = rng.bytes(len);
            let count = rng.below(30) as usize;
            let _ = decode_entries(&bytes, count, &mut out);
            let _ = read(&bytes, 0);
            let mut chunk = Vec::new();
            put_chunk(&mut chunk, ChunkKind::Entries, count, &bytes, 0);
            let (header, content) = read(&chunk, 0).unwrap();
            let _ = header.entries(&content, &mut out);
        }
    }

    #[test]
    fn a_file_header_with_any_bit_flipped_is_refused() {
        let header = FileHeader { kind: FileKind::Log, uuid: [5; 16], number: 3, incarnation: 4 };
        let good = header.encode();
        assert_eq!(FileHeader::decode(&good), Ok(header));
        for bit in 0..FILE_HEADER_BYTES * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(FileHeader::decode(&bad).is_err(), "bit {bit}");
        }
    }
}

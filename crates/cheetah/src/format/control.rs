//! The control block: the identity of a database, and the exact ranges of bytes that make up its
//! page map. The file CONTROL holds two copies of it.
//!
//! ```text
//! offset size
//!      0    8  "CHEETCTL"
//!      8    4  format version of the database
//!     12    4  number of this copy, 0 or 1
//!     16    8  feature bits that an engine may ignore
//!     24    8  feature bits that an engine must know to write
//!     32    8  feature bits that an engine must know to read
//!     40   16  uuid of the database
//!     56    8  sequence: which copy is newer
//!     64    8  incarnation: number of startups of the database
//!     72    8  epoch of the page map
//!     80    8  start of the log: LSN at which redo begins
//!     88    8  next map file ID
//!     96    4  page_bytes
//!    100    4  segment_bytes
//!    104    4  next segment file ID
//!    108    2  1 if the first part is a base, else 0
//!    110    2  number of parts
//!    112  n*32 parts of the map: file 8, start 8, end 8, crc before start 4, crc at end 4
//!         ...  zero
//!   4092    4  CRC-32C of bytes 0..4092
//! ```
//! The positions of the magic, the version, the feature bits, the sequence and the checksum never
//! change, so that an old engine can distinguish a newer format from damage.

use super::bytes::{ensure, Defect, Reader};
use super::encryption::KeyName;
use crate::base::{Epoch, Lsn, SegmentId};

/// Bytes of one copy.
pub const COPY_BYTES: usize = 4096;
/// Copies in CONTROL.
pub const COPIES_COUNT: usize = 2;
/// The maximum number of parts of a map. A new base is written well before the map has this number
/// of parts.
pub const PARTS_MAX: usize = 64;
/// The format version that this engine writes, and the newest that it reads.
pub const VERSION: u32 = 1;
/// The features that this engine knows.
const KNOWN_FEATURES: Features = Features { compatible: 0, write: 0, read: ENCRYPTED };
/// A feature that an engine must know to read the database: some files are encrypted, and the names
/// of the keys follow the parts.
const ENCRYPTED: u64 = 1;
/// The maximum number of key names in a block.
pub const KEYS_MAX: usize = 100;

const MAGIC: &[u8; 8] = b"CHEETCTL";
const PARTS_AT: usize = 112;
const CRC_AT: usize = COPY_BYTES - 4;

/// Sets of features, grouped by what an engine may still do if it does not know a feature.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Features {
    /// An engine that does not know them may still read and write.
    pub compatible: u64,
    /// An engine that does not know them may only read.
    pub write: u64,
    /// An engine that does not know them may neither read nor write.
    pub read: u64,
}

/// A database, and one startup of it. Every file has both in its header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The database.
    pub uuid: [u8; 16],
    /// The startup, counted from 1.
    pub incarnation: u64,
}

/// A range of complete blocks in a map file. The checksums are those of chunks (see `map_block`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapPart {
    /// ID in the file's name.
    pub file: u64,
    /// Position of the first block.
    pub start: u64,
    /// Position after the last block.
    pub end: u64,
    /// The checksum that the first chunk of the first block continues.
    pub start_crc: u32,
    /// The checksum of the last chunk of the last block.
    pub end_crc: u32,
}

impl MapPart {
    /// Its length.
    pub fn bytes(&self) -> u64 {
        self.end - self.start
    }
}

/// See the module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControlBlock {
    /// The features that the database uses.
    pub features: Features,
    /// The database and its startup.
    pub identity: Identity,
    /// Increases with every write of CONTROL.
    pub sequence: u64,
    /// The committed epoch.
    pub epoch: Epoch,
    /// The position at which redo of the log begins.
    pub log_start: Lsn,
    /// No map file has had this ID or a higher one.
    pub next_map_file: u64,
    /// No segment in the page map has had this ID or a higher one.
    pub next_segment: SegmentId,
    /// See `Config`.
    pub page_bytes: u32,
    /// See `Config`.
    pub segment_bytes: u32,
    /// The complete map of an epoch. Without a base, the changes in `logs` start from an empty map.
    pub base: Option<MapPart>,
    /// The changes since the base, oldest first.
    pub logs: Vec<MapPart>,
    /// The names of the keys that encrypt any part of the database.
    pub keys: Vec<KeyName>,
}

/// The reason why a copy cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The copy was torn while it was written, or damaged later.
    Damaged(Defect),
    /// The copy is intact, but a newer engine wrote it. The sequence says whether it is the newer
    /// copy.
    Newer {
        /// Sequence of the copy.
        sequence: u64,
        /// The version or feature that this engine does not know.
        detail: String,
    },
}

impl From<Defect> for Refusal {
    fn from(defect: Defect) -> Self {
        Refusal::Damaged(defect)
    }
}

impl ControlBlock {
    /// All parts of the map, in the order in which they are read.
    pub fn parts(&self) -> impl Iterator<Item = &MapPart> {
        self.base.iter().chain(&self.logs)
    }

    /// Encodes the block as copy number `copy`.
    ///
    /// # Panics
    /// If there are more than [`PARTS_MAX`] parts or [`KEYS_MAX`] keys.
    pub fn encode(&self, copy: u32) -> [u8; COPY_BYTES] {
        let parts_count = self.parts().count();
        assert!(parts_count <= PARTS_MAX, "{parts_count} parts of the map exceed {PARTS_MAX}");
        let mut out = Vec::with_capacity(PARTS_AT + parts_count * 32);
        out.extend_from_slice(MAGIC);
        put_u32s(&mut out, &[VERSION, copy]);
        let read = if self.keys.is_empty() { 0 } else { ENCRYPTED };
        put_u64s(&mut out, &[self.features.compatible, self.features.write, self.features.read | read]);
        out.extend_from_slice(&self.identity.uuid);
        put_u64s(&mut out, &[self.sequence, self.identity.incarnation, self.epoch.0]);
        put_u64s(&mut out, &[self.log_start.0, self.next_map_file]);
        put_u32s(&mut out, &[self.page_bytes, self.segment_bytes, self.next_segment.0]);
        out.extend_from_slice(&u16::from(self.base.is_some()).to_le_bytes());
        out.extend_from_slice(&(parts_count as u16).to_le_bytes());
        debug_assert_eq!(out.len(), PARTS_AT);
        for part in self.parts() {
            put_u64s(&mut out, &[part.file, part.start, part.end]);
            put_u32s(&mut out, &[part.start_crc, part.end_crc]);
        }
        if !self.keys.is_empty() {
            assert!(self.keys.len() <= KEYS_MAX, "{} keys exceed {KEYS_MAX}", self.keys.len());
            out.extend_from_slice(&(self.keys.len() as u16).to_le_bytes());
            self.keys.iter().for_each(|key| out.extend_from_slice(&key.bytes()));
        }
        let mut bytes = [0; COPY_BYTES];
        bytes[..out.len()].copy_from_slice(&out);
        let crc = crc32c::crc32c(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Parses and checks copy number `copy`.
    pub fn decode(bytes: &[u8; COPY_BYTES], copy: u32) -> Result<Self, Refusal> {
        let mut tail = Reader::new(&bytes[CRC_AT..]);
        ensure(&bytes[..8] == MAGIC, "not a control block (magic)")?;
        ensure(tail.u32()? == crc32c::crc32c(&bytes[..CRC_AT]), "checksum is wrong")?;
        let mut reader = Reader::new(&bytes[8..CRC_AT]);
        let version = reader.u32()?;
        let copy_here = reader.u32()?;
        let features = Features { compatible: reader.u64()?, write: reader.u64()?, read: reader.u64()? };
        let uuid = reader.array::<16>()?;
        let sequence = reader.u64()?;
        if let Some(detail) = unknown(version, &features) {
            return Err(Refusal::Newer { sequence, detail });
        }
        ensure(copy_here == copy, "this copy belongs elsewhere in the file")?;
        let mut block = Self::decode_rest(&mut reader, features, uuid, sequence)?;
        if features.read & ENCRYPTED != 0 {
            let count = usize::from(reader.u16()?);
            ensure((1..=KEYS_MAX).contains(&count), "an impossible number of keys")?;
            block.keys = (0..count).map(|_| KeyName::decode(&mut reader)).collect::<Result<_, _>>()?;
            block.features.read &= !ENCRYPTED;
        }
        // `fold` lets the compiler check several bytes at a time; `all` would check them one by
        // one.
        let any = reader.rest().iter().fold(0, |any, byte| any | byte);
        ensure(any == 0, "bytes after the parts are not zero")?;
        Ok(block)
    }

    fn decode_rest(
        reader: &mut Reader<'_>,
        features: Features,
        uuid: [u8; 16],
        sequence: u64,
    ) -> Result<Self, Defect> {
        let mut block = Self {
            features,
            identity: Identity { uuid, incarnation: reader.u64()? },
            sequence,
            epoch: Epoch(reader.u64()?),
            log_start: Lsn(reader.u64()?),
            next_map_file: reader.u64()?,
            page_bytes: reader.u32()?,
            segment_bytes: reader.u32()?,
            next_segment: SegmentId(reader.u32()?),
            base: None,
            logs: Vec::new(),
            keys: Vec::new(),
        };
        let base_count = usize::from(reader.u16()?);
        let parts_count = usize::from(reader.u16()?);
        ensure(base_count <= 1 && base_count <= parts_count, "more bases than one or than parts")?;
        ensure(parts_count <= PARTS_MAX, "too many parts")?;
        for number in 0..parts_count {
            let part = decode_part(reader)?;
            ensure(part.file < block.next_map_file, "a map file with an unassigned ID")?;
            match number < base_count {
                true => block.base = Some(part),
                false => block.logs.push(part),
            }
        }
        Ok(block)
    }
}

fn decode_part(reader: &mut Reader<'_>) -> Result<MapPart, Defect> {
    let part = MapPart {
        file: reader.u64()?,
        start: reader.u64()?,
        end: reader.u64()?,
        start_crc: reader.u32()?,
        end_crc: reader.u32()?,
    };
    ensure(part.start <= part.end, "a part of the map ends before it starts")?;
    Ok(part)
}

fn unknown(version: u32, features: &Features) -> Option<String> {
    if version != VERSION {
        return Some(format!("format version {version}; this engine knows version {VERSION}"));
    }
    let read = features.read & !KNOWN_FEATURES.read;
    let write = features.write & !KNOWN_FEATURES.write;
    (read | write != 0).then(|| format!("unknown features: {read:#x} needed to read, {write:#x} to write"))
}

fn put_u32s(out: &mut Vec<u8>, numbers: &[u32]) {
    numbers.iter().for_each(|n| out.extend_from_slice(&n.to_le_bytes()));
}

fn put_u64s(out: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|n| out.extend_from_slice(&n.to_le_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> ControlBlock {
        let part = |file| MapPart { file, start: 64, end: 64 + file * 10, start_crc: 5, end_crc: 6 };
        ControlBlock {
            features: Features::default(),
            identity: Identity { uuid: [3; 16], incarnation: 8 },
            sequence: 77,
            epoch: Epoch(1 << 33),
            log_start: Lsn(12345),
            next_map_file: 10,
            next_segment: SegmentId(44),
            page_bytes: 16384,
            segment_bytes: 64 << 20,
            base: Some(part(4)),
            logs: vec![part(5), part(9)],
            keys: vec![KeyName { id: 1, version: 7, check: [2; 8] }],
        }
    }

    fn reseal(bytes: &mut [u8; COPY_BYTES]) {
        let crc = crc32c::crc32c(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
    }

    #[test]
    fn a_block_round_trips_with_and_without_a_base() {
        let mut block = sample();
        assert_eq!(ControlBlock::decode(&block.encode(1), 1), Ok(block.clone()));
        block.base = None;
        assert_eq!(ControlBlock::decode(&block.encode(0), 0), Ok(block.clone()));
        block.logs = vec![block.logs[0]; PARTS_MAX];
        assert_eq!(ControlBlock::decode(&block.encode(0), 0), Ok(block));
    }

    #[test]
    fn every_flipped_bit_is_refused() {
        let good = sample().encode(0);
        for bit in 0..COPY_BYTES * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(ControlBlock::decode(&bad, 0), Err(Refusal::Damaged(_))), "bit {bit}");
        }
    }

    #[test]
    fn a_copy_in_the_place_of_the_other_is_refused() {
        assert!(matches!(ControlBlock::decode(&sample().encode(0), 1), Err(Refusal::Damaged(_))));
    }

    #[test]
    fn newer_versions_and_unknown_features_are_told_from_damage() {
        for at in [8, 24, 32] {
            let mut bytes = sample().encode(0);
            bytes[at] ^= 2;
            reseal(&mut bytes);
            let refusal = ControlBlock::decode(&bytes, 0);
            assert!(matches!(refusal, Err(Refusal::Newer { sequence: 77, .. })), "{at}: {refusal:?}");
        }
        let mut bytes = sample().encode(0);
        bytes[16] ^= 2;
        reseal(&mut bytes);
        assert!(ControlBlock::decode(&bytes, 0).is_ok(), "a compatible feature is ignored");
    }
}

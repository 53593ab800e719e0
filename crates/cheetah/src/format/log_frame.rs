//! The log on disk: file headers, frames, and sync marks.
//!
//! Invariants
//!   I1  Every frame's checksum continues that of the previous frame (the *chain*); the first
//!       frame's continues the checksum of the file's header. So a frame is valid only after
//!       exactly the frames that preceded it when it was written. Old bytes of a recycled file, or
//!       bytes after a torn frame, never become part of the chain again.
//!   I2  The header contains the end and the chain of the previous file, so the second of two files
//!       continues the first only where writing moved from the first to the second.
//!   I3  In an encrypted file the key stream at the body's position in the file encrypts each body.
//!       Each position is written once (E4). Checksums cover the stored bytes. Sync marks, and
//!       records that say how a transaction is prepared, are not encrypted, because a snapshot of
//!       the database has other such records at the same positions.
//!   I4  The meaning of the first 12 and the last 4 bytes of a header is the same in all versions.
//! Layout    docs/developers/format.md, "Log files".
//!
//! ```text
//! header (512 bytes)                          frame
//!   0  8  magic "CHEETLOG"                      0  4  length of the body
//!   8  4  format version                        4  4  crc32c: chain, length, kind, body
//!  12  4  zero                                  8  1  kind, 0 is invalid, 255 is a sync mark
//!  16 16  database                              9  .  body
//!  32  8  incarnation                         sync mark (24 bytes of body)
//!  40  8  sequence                              0  8  position of this frame
//!  48  8  start: position of the first frame    8  8  position up to which the log was durable
//!  56  4  chain of the previous file           16  4  chain of the file's header
//!  60 16  name of the key, if encrypted        20  4  crc32c of bytes 0..20
//!  76 16  random bytes, if encrypted
//!  92  .  zero
//! 508  4  crc32c of bytes 0..508
//! ```

use super::bytes::{check_version, ensure, Defect, Reader};
use super::encryption::{KeyName, KeyStream, NONCE_BYTES};
use super::log_record::KIND_PREPARE;
use crate::base::{Error, Lsn};

/// The length of a file header. It is one sector, so that its write is never torn.
pub const HEADER_BYTES: usize = 512;
/// Length of a frame without its body.
pub const FRAME_HEADER_BYTES: usize = 9;
/// The maximum length of a body. A longer value must be logged in parts.
pub const BODY_BYTES_MAX: usize = 1 << 30;
/// Kind of a sync mark; other frames have kinds from 1 to 254.
pub const KIND_SYNC_MARK: u8 = 255;
/// Length of a sync mark frame.
pub const MARK_BYTES: usize = FRAME_HEADER_BYTES + MARK_BODY_BYTES;

const MAGIC: [u8; 8] = *b"CHEETLOG";
/// The newest version, which only encrypted files have.
pub const VERSION: u32 = 3;
/// The version of unencrypted files.
pub const PLAIN_VERSION: u32 = 2;
/// An older version, which only lacks the record kinds 14 and 15.
const OLD_VERSION: u32 = 1;
const MARK_BODY_BYTES: usize = 24;
const HEADER_CRC_AT: usize = HEADER_BYTES - 4;

/// The head of a log file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileHeader {
    /// Version of the file's format.
    pub version: u32,
    /// Identity of the database.
    pub database: [u8; 16],
    /// Number of the startup that wrote the file.
    pub incarnation: u64,
    /// Number of the file, also in its name.
    pub sequence: u64,
    /// Position of its first frame, which is the end of the previous file.
    pub start: Lsn,
    /// The chain at the end of the previous file, or 0 in the first file.
    pub previous_chain: u32,
    /// How its frames are encrypted.
    pub closed: Option<Salt>,
}

/// How the frames of a file are encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Salt {
    /// The key.
    pub key: KeyName,
    /// Random bytes, different for each file.
    pub bytes: [u8; NONCE_BYTES],
}

impl FileHeader {
    /// The bytes on disk.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&self.database);
        bytes.extend_from_slice(&self.incarnation.to_le_bytes());
        bytes.extend_from_slice(&self.sequence.to_le_bytes());
        bytes.extend_from_slice(&self.start.0.to_le_bytes());
        bytes.extend_from_slice(&self.previous_chain.to_le_bytes());
        if let Some(salt) = &self.closed {
            bytes.extend_from_slice(&salt.key.bytes());
            bytes.extend_from_slice(&salt.bytes);
        }
        let mut header = [0; HEADER_BYTES];
        header[..bytes.len()].copy_from_slice(&bytes);
        let crc = crc32c::crc32c(&header[..HEADER_CRC_AT]);
        header[HEADER_CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        header
    }

    /// The chain that the first frame continues: the checksum of the header itself.
    pub fn chain(&self) -> u32 {
        crc32c::crc32c(&self.encode()[..HEADER_CRC_AT])
    }

    /// Reads the header of the file `place`. Fails with `Unsupported` for a newer version, and with
    /// `Corruption` for any other defect.
    pub fn decode(bytes: &[u8; HEADER_BYTES], place: &str) -> Result<Self, Error> {
        let (covered, crc) = bytes.split_at(HEADER_CRC_AT);
        let damaged = |defect: Defect| defect.in_place(format!("{place}, header"));
        let mut reader = Reader::new(covered);
        let magic: [u8; 8] = reader.array().map_err(damaged)?;
        ensure(magic == MAGIC, "not a log file").map_err(damaged)?;
        ensure(crc == crc32c::crc32c(covered).to_le_bytes(), "bad checksum").map_err(damaged)?;
        let version = reader.u32().map_err(damaged)?;
        if ![OLD_VERSION, PLAIN_VERSION].contains(&version) {
            check_version("log format", version, VERSION).map_err(|defect| defect.in_place(place))?;
        }
        Self::fields(version, &mut reader).map_err(damaged)
    }

    fn fields(version: u32, reader: &mut Reader<'_>) -> Result<Self, Defect> {
        ensure(reader.u32()? == 0, "reserved bytes are not zero")?;
        let mut header = Self {
            version,
            database: reader.array()?,
            incarnation: reader.u64()?,
            sequence: reader.u64()?,
            start: Lsn(reader.u64()?),
            previous_chain: reader.u32()?,
            closed: None,
        };
        if version == VERSION {
            header.closed = Some(Salt { key: KeyName::decode(reader)?, bytes: reader.array()? });
        }
        ensure(reader.rest().iter().all(|byte| *byte == 0), "reserved bytes are not zero")?;
        Ok(header)
    }
}

/// The head of a frame that has not been verified yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameHead {
    /// Length of the body.
    pub body_bytes: usize,
    /// Kind.
    pub kind: u8,
    crc: u32,
}

impl FrameHead {
    /// Parses the head. Returns `None` if no frame can start with these bytes.
    pub fn parse(bytes: &[u8; FRAME_HEADER_BYTES]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let (len, crc, kind) = (reader.u32().ok()?, reader.u32().ok()?, reader.u8().ok()?);
        let body_bytes = usize::try_from(len).ok()?;
        (kind != 0 && body_bytes <= BODY_BYTES_MAX).then_some(Self { body_bytes, kind, crc })
    }

    /// Returns the chain after this frame if the frame continues `chain`, and otherwise `None`.
    pub fn verify(&self, chain: u32, body: &[u8]) -> Option<u32> {
        (body.len() == self.body_bytes && checksum(chain, self.kind, body) == self.crc).then_some(self.crc)
    }
}

fn checksum(chain: u32, kind: u8, body: &[u8]) -> u32 {
    let len = body.len() as u32;
    let crc = crc32c::crc32c_append(chain, &len.to_le_bytes());
    let crc = crc32c::crc32c_append(crc, &[kind]);
    crc32c::crc32c_append(crc, body)
}

/// Appends a frame that continues `chain`. Returns the chain after the frame.
pub fn put_frame(out: &mut Vec<u8>, chain: u32, kind: u8, body: &[u8]) -> u32 {
    debug_assert!(kind != 0 && body.len() <= BODY_BYTES_MAX, "I1: a frame can be told from its end");
    let crc = checksum(chain, kind, body);
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend_from_slice(&crc.to_le_bytes());
    out.push(kind);
    out.extend_from_slice(body);
    crc
}

/// Like [`put_frame`], for an encrypted file. `offset` is the frame's position in the file.
pub fn put_closed_frame(
    out: &mut Vec<u8>,
    chain: u32,
    kind: u8,
    body: &[u8],
    stream: &KeyStream,
    offset: u64,
) -> u32 {
    if !is_closed(kind) {
        return put_frame(out, chain, kind, body);
    }
    let at = out.len();
    out.resize(at + FRAME_HEADER_BYTES, 0);
    out.extend_from_slice(body);
    let (head, stored) = out[at..].split_at_mut(FRAME_HEADER_BYTES);
    stream.apply(offset + FRAME_HEADER_BYTES as u64, stored);
    let crc = checksum(chain, kind, stored);
    head[..4].copy_from_slice(&(body.len() as u32).to_le_bytes());
    head[4..8].copy_from_slice(&crc.to_le_bytes());
    head[8] = kind;
    crc
}

/// Returns whether an encrypted file has encrypted bodies in frames of this kind (I3).
pub fn is_closed(kind: u8) -> bool {
    kind != KIND_SYNC_MARK && kind != KIND_PREPARE
}

/// A frame that says up to which position the log was durable when it was written. If the chain
/// breaks before that position, the cause is damage and not the torn end of a crash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SyncMark {
    /// The position of the frame itself, by which a mark is recognized where the chain is broken.
    pub position: Lsn,
    /// Everything before this position was durable.
    pub durable: Lsn,
    /// [`FileHeader::chain`] of the file.
    pub file_chain: u32,
}

impl SyncMark {
    /// The body of the frame.
    pub fn encode(&self) -> [u8; MARK_BODY_BYTES] {
        let mut body = [0; MARK_BODY_BYTES];
        body[..8].copy_from_slice(&self.position.0.to_le_bytes());
        body[8..16].copy_from_slice(&self.durable.0.to_le_bytes());
        body[16..20].copy_from_slice(&self.file_chain.to_le_bytes());
        let crc = crc32c::crc32c(&body[..20]);
        body[20..].copy_from_slice(&crc.to_le_bytes());
        body
    }

    /// Searches `bytes`, in which the chain is broken, for marks of the file with this header
    /// chain. `at` is the position of `bytes[0]`. Returns the highest position that the marks say
    /// was durable.
    pub fn search(bytes: &[u8], at: Lsn, file_chain: u32) -> Option<Lsn> {
        let bodies = bytes.windows(MARK_BODY_BYTES).enumerate().skip(FRAME_HEADER_BYTES);
        let marks = bodies.filter_map(|(offset, body)| {
            let position = Lsn(at.0 + (offset - FRAME_HEADER_BYTES) as u64);
            // This comparison rejects almost every window, so the checksum is seldom computed.
            let (own, rest) = body.split_first_chunk::<8>()?;
            if u64::from_le_bytes(*own) != position.0 {
                return None;
            }
            let durable = Lsn(u64::from_le_bytes(*rest.first_chunk()?));
            (Self { position, durable, file_chain }.encode() == body).then_some(durable)
        });
        marks.max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;

    fn header() -> FileHeader {
        FileHeader {
            version: VERSION,
            database: [7; 16],
            incarnation: 3,
            sequence: 9,
            start: Lsn(1000),
            previous_chain: 0xabcd,
            closed: Some(Salt { key: KeyName { id: 1, version: 5, check: [8; 8] }, bytes: [6; 16] }),
        }
    }

    #[test]
    fn a_header_is_read_back_and_every_flipped_bit_is_noticed() {
        let bytes = header().encode();
        assert_eq!(FileHeader::decode(&bytes, "f").unwrap(), header());
        for bit in 0..HEADER_BYTES * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            let error = FileHeader::decode(&damaged, "f").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption, "bit {bit}");
        }
    }

    #[test]
    fn a_header_of_a_newer_version_is_refused_as_unsupported() {
        let mut bytes = header().encode();
        bytes[8] = 4;
        let crc = crc32c::crc32c(&bytes[..508]);
        bytes[508..].copy_from_slice(&crc.to_le_bytes());
        let error = FileHeader::decode(&bytes, "wal/1.log").unwrap_err();
        assert!(matches!(&error, Error::Unsupported { place, .. } if place == "wal/1.log"), "{error}");
    }

    #[test]
    fn a_frame_is_valid_only_on_its_own_chain() {
        let mut bytes = Vec::new();
        let chain = put_frame(&mut bytes, 5, 1, b"body");
        let head = FrameHead::parse(bytes[..9].try_into().unwrap()).unwrap();
        assert_eq!((head.kind, head.body_bytes), (1, 4));
        assert_eq!(head.verify(5, &bytes[9..]), Some(chain));
        assert_eq!(head.verify(6, &bytes[9..]), None);
        assert_eq!(head.verify(5, b"bodY"), None);
        assert_eq!(FrameHead::parse(&[0; 9]), None, "preallocated zeroes are no frame");
        assert_eq!(FrameHead::parse(&[255; 9]), None, "a length beyond the limit is no frame");
    }

    #[test]
    fn marks_are_found_at_their_own_position_only() {
        let mark = SyncMark { position: Lsn(120), durable: Lsn(80), file_chain: 4 };
        let mut bytes = vec![1; 20];
        put_frame(&mut bytes, 99, KIND_SYNC_MARK, &mark.encode());
        bytes.extend([2; 30]);
        assert_eq!(SyncMark::search(&bytes, Lsn(100), 4), Some(Lsn(80)));
        assert_eq!(SyncMark::search(&bytes, Lsn(101), 4), None);
        assert_eq!(SyncMark::search(&bytes, Lsn(100), 5), None);
        bytes[20 + 9 + 8] ^= 1;
        assert_eq!(SyncMark::search(&bytes, Lsn(100), 4), None);
    }
}

//! The first bytes of a segment file.
//!
//! ```text
//! offset size
//!      0    8  "CHEETSEG"
//!      8    4  format version
//!     12    4  segment
//!     16   16  uuid of the database
//!     32    8  incarnation that created the file
//!     40    1  stream
//!     41   19  zero
//!     60    4  CRC-32C of bytes 0..60
//! ```

use super::bytes::{check_version, ensure, Defect, Reader};
use crate::base::SegmentId;

/// The length of the header. The first image may start directly after it.
pub const HEADER_BYTES: usize = 64;
const MAGIC: &[u8; 8] = b"CHEETSEG";
/// The version of segment files that this engine writes.
pub const VERSION: u32 = 1;

/// The header of a segment file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentHeader {
    /// The database that the file belongs to.
    pub uuid: [u8; 16],
    /// Its own ID.
    pub segment: SegmentId,
    /// The startup of the database that created it.
    pub incarnation: u64,
    /// The stream that the file belongs to.
    pub stream: u8,
}

impl SegmentHeader {
    /// The header as bytes.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.segment.0.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.uuid);
        bytes[32..40].copy_from_slice(&self.incarnation.to_le_bytes());
        bytes[40] = self.stream;
        let crc = crc32c::crc32c(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Parses and checks a header.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, Defect> {
        let mut reader = Reader::new(bytes);
        ensure(&reader.array::<8>()? == MAGIC, "not a segment file (magic)")?;
        let version = reader.u32()?;
        let segment = SegmentId(reader.u32()?);
        let uuid = reader.array::<16>()?;
        let incarnation = reader.u64()?;
        let stream = reader.u8()?;
        ensure(reader.take(19)?.iter().all(|b| *b == 0), "reserved bytes of the header are not zero")?;
        ensure(reader.u32()? == crc32c::crc32c(&bytes[..60]), "checksum of the header is wrong")?;
        check_version("segment format", version, VERSION)?;
        Ok(Self { uuid, segment, incarnation, stream })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_is_refused() {
        let header = SegmentHeader { uuid: [7; 16], segment: SegmentId(9), incarnation: 3, stream: 1 };
        let good = header.encode();
        assert_eq!(SegmentHeader::decode(&good), Ok(header));
        for bit in 0..HEADER_BYTES * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(SegmentHeader::decode(&bad).is_err(), "bit {bit}");
        }
    }
}

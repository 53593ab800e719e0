//! Rows of the statistics table, as bytes. A row has the number of distinct keys of an index, for
//! each number of leading key parts.
//!
//! Layout    docs/developers/format.md, "Statistics".

use super::bytes::{check_version, Defect, Reader};
use super::record_fields::count;
use super::varint;
use crate::base::{Result, TableId};

const VERSION: u8 = 1;

/// Bytes of a key of the statistics table.
pub const KEY_BYTES: usize = 6;

/// The results of the last analysis of an index.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct IndexStatistics {
    /// The number of rows of the table at that time.
    pub rows: u64,
    /// The number of distinct values of the first key part, of the first two key parts, and so on.
    pub distinct: Vec<u64>,
}

impl IndexStatistics {
    /// Appends the bytes of the row.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        varint::put(out, self.rows);
        varint::put(out, self.distinct.len() as u64);
        self.distinct.iter().for_each(|&distinct| varint::put(out, distinct));
    }

    /// Reads a row. Works on any bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        Self::read(&mut Reader::new(bytes)).map_err(|defect| defect.in_place("statistics row"))
    }

    fn read(fields: &mut Reader<'_>) -> std::result::Result<Self, Defect> {
        check_version("statistics row format", fields.u8()?.into(), VERSION.into())?;
        let rows = fields.varint()?;
        let parts = count(fields)?;
        let distinct = (0..parts).map(|_| fields.varint()).collect::<std::result::Result<_, _>>()?;
        fields.finish()?;
        Ok(Self { rows, distinct })
    }
}

/// Key of an index: table ID as u32 and number of the index as u16, both big-endian.
pub fn statistics_key(table: TableId, index_no: u16) -> [u8; KEY_BYTES] {
    super::catalog::piece_key(table, index_no)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> IndexStatistics {
        IndexStatistics { rows: 1 << 40, distinct: vec![3, 500, 1 << 39] }
    }

    #[test]
    fn statistics_read_back() {
        let mut bytes = Vec::new();
        sample().encode(&mut bytes);
        assert_eq!(IndexStatistics::decode(&bytes).unwrap(), sample());
    }

    #[test]
    fn cut_and_altered_rows_are_refused_without_panic() {
        let mut bytes = Vec::new();
        sample().encode(&mut bytes);
        for len in 0..bytes.len() {
            assert!(IndexStatistics::decode(&bytes[..len]).is_err());
        }
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 0xff;
            let _ = IndexStatistics::decode(&other);
        }
    }
}

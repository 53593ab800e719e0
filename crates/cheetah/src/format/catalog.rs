//! Rows of the catalog tree, as bytes: what a table is.
//!
//! Invariants
//!   I1  A definition names its trees and their roots; both are fixed for the life of the table (H9).
//!   I2  The first byte is the version of the layout; a newer one is refused with a clear error.
//!   I3  A definition that does not fit one row is cut into pieces under consecutive keys ([`piece_key`]).
//! Layout    docs/format.md, "Catalog rows".

use super::bytes::{check_version, put_prefixed, Defect, Reader};
use super::image::{Codec, Compression};
use super::record_fields::{count, number_u32, text};
use super::row::RowShape;
use super::varint;
use crate::base::{Error, PageId, Result, TableId, TreeId};

type Parsed<T> = std::result::Result<T, Defect>;

const VERSION: u8 = 1;

/// Most indexes of a table, the clustered one included.
pub const INDEXES_MAX: usize = 65;

/// An index of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexDef {
    /// Its name; the engine gives it no meaning.
    pub name: String,
    /// Whether two rows may not have the same key.
    pub unique: bool,
    /// Longest key in bytes, without the clustered key that a secondary entry carries too.
    pub max_key_bytes: u32,
    /// How the stored row (clustered) or the caller's payload (secondary) is built.
    pub shape: RowShape,
    /// Its tree.
    pub tree: TreeId,
    /// The root of the tree.
    pub root: PageId,
}

/// A table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableDef {
    /// Its number, never reused.
    pub id: TableId,
    /// Its name, unique among tables.
    pub name: String,
    /// How images of its pages are compressed.
    pub compression: Compression,
    /// Whether clustered keys are numbers that the engine gives out.
    pub hidden_key: bool,
    /// The first auto-increment value.
    pub auto_increment: u64,
    /// The caller's own bytes.
    pub extra: Vec<u8>,
    /// Its indexes; the first is the clustered one.
    pub indexes: Vec<IndexDef>,
}

impl TableDef {
    /// Appends the bytes of the definition.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        varint::put(out, self.id.0.into());
        put_prefixed(out, self.name.as_bytes());
        out.push(self.compression.codec.code());
        varint::put(out, zigzag(self.compression.level.into()));
        out.push(u8::from(self.hidden_key));
        varint::put(out, self.auto_increment);
        put_prefixed(out, &self.extra);
        varint::put(out, self.indexes.len() as u64);
        for index in &self.indexes {
            put_prefixed(out, index.name.as_bytes());
            out.push(u8::from(index.unique));
            varint::put(out, index.max_key_bytes.into());
            index.shape.encode(out);
            varint::put(out, index.tree.0.into());
            varint::put(out, index.root.0);
        }
    }

    /// Reads a definition; total on any bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        Self::read(&mut Reader::new(bytes)).map_err(|defect| defect.in_place("catalog row"))
    }

    fn read(fields: &mut Reader<'_>) -> Parsed<Self> {
        check_version("catalog row format", fields.u8()?.into(), VERSION.into())?;
        let mut def = TableDef {
            id: TableId(number_u32(fields)?),
            name: text(fields)?.to_owned(),
            compression: decode_compression(fields)?,
            hidden_key: fields.u8()? != 0,
            auto_increment: fields.varint()?,
            extra: fields.prefixed(usize::MAX)?.to_vec(),
            indexes: Vec::new(),
        };
        for _ in 0..count(fields)? {
            def.indexes.push(decode_index(fields)?);
        }
        fields.finish()?;
        match def.indexes.len() {
            1..=INDEXES_MAX => Ok(def),
            n => Err(Defect::at("wrong number of indexes", n)),
        }
    }
}

/// Key of piece `piece_no` of a table's definition: big-endian table number, then piece number.
pub fn piece_key(table: TableId, piece_no: u16) -> [u8; 6] {
    let [a, b, c, d] = table.0.to_be_bytes();
    let [e, f] = piece_no.to_be_bytes();
    [a, b, c, d, e, f]
}

/// The table and piece number of a catalog key.
pub fn parse_piece_key(key: &[u8]) -> Result<(TableId, u16)> {
    match *key {
        [a, b, c, d, e, f] => Ok((TableId(u32::from_be_bytes([a, b, c, d])), u16::from_be_bytes([e, f]))),
        _ => Err(Error::corrupt("catalog row", format!("key of {} bytes", key.len()))),
    }
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

fn decode_compression(fields: &mut Reader<'_>) -> Parsed<Compression> {
    let code = fields.u8()?;
    let codec = Codec::from_code(code).ok_or(Defect::at("unknown codec", code.into()))?;
    let level = unzigzag(fields.varint()?);
    let level = level.try_into().map_err(|_| Defect::new("impossible compression level"))?;
    Ok(Compression { codec, level })
}

fn decode_index(fields: &mut Reader<'_>) -> Parsed<IndexDef> {
    Ok(IndexDef {
        name: text(fields)?.to_owned(),
        unique: fields.u8()? != 0,
        max_key_bytes: number_u32(fields)?,
        shape: RowShape::decode(fields)?,
        tree: TreeId(number_u32(fields)?),
        root: PageId(fields.varint()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> TableDef {
        let index = |tree, name: &str| IndexDef {
            name: name.into(),
            unique: tree % 2 == 0,
            max_key_bytes: 3072,
            shape: RowShape { null_bytes: 1, fixed: vec![4, 8], var_count: 2 },
            tree: TreeId(tree),
            root: PageId(u64::from(tree) << 8),
        };
        TableDef {
            id: TableId(7),
            name: "db/table".into(),
            compression: Compression { codec: Codec::Zstd, level: -3 },
            hidden_key: true,
            auto_increment: 1 << 50,
            extra: vec![1, 2, 3],
            indexes: vec![index(16, "PRIMARY"), index(17, "name")],
        }
    }

    #[test]
    fn a_definition_reads_back() {
        let mut bytes = Vec::new();
        sample().encode(&mut bytes);
        assert_eq!(TableDef::decode(&bytes).unwrap(), sample());
    }

    #[test]
    fn cut_altered_and_newer_definitions_are_refused_without_panic() {
        let mut bytes = Vec::new();
        sample().encode(&mut bytes);
        for len in 0..bytes.len() {
            assert!(TableDef::decode(&bytes[..len]).is_err());
        }
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 0xff;
            let _ = TableDef::decode(&other);
        }
        bytes[0] = 2;
        assert!(matches!(TableDef::decode(&bytes), Err(Error::Unsupported { .. })));
    }

    #[test]
    fn piece_keys_sort_by_table_and_piece() {
        assert!(piece_key(TableId(1), 300) < piece_key(TableId(2), 0));
        assert_eq!(parse_piece_key(&piece_key(TableId(9), 3)).unwrap(), (TableId(9), 3));
        assert!(parse_piece_key(b"short").is_err());
    }
}

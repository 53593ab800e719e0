//! Rows of the catalog tree, as bytes: the definition of a table.
//!
//! Invariants
//!   I1  A definition names its trees and their roots; both are fixed for the life of the table
//!       (H9).
//!   I2  The first byte is the version of the layout. Decoding fails for a newer version with an
//!       error that says so.
//!   I3  Log records, undo records and statistics refer to an index by its number. An index keeps
//!       its number for life, and the table never assigns it to another index. The position of an
//!       index among the others may change.
//!   I4  A definition is written in the oldest version that can express it, so that older engines
//!       can read it: version 2 if its rows have one row-format version, 3 with several, 4 with
//!       described columns or constraints, 5 with full-text indexes, 6 with encryption settings.
//!       The table of removed words is always written as version 7: queries of an older engine
//!       would find removed words, so that engine must refuse to open the database.
//!   I5  A definition that does not fit in one row is stored in pieces under consecutive keys
//!       ([`piece_key`]).
//! Layout    docs/developers/format.md, "Catalog rows".

use super::bytes::{check_version, codes, ensure, put_prefixed, Defect, Reader};
use super::foreign_key::{Description, ForeignKeyDef};
use super::image::{Codec, Compression};
use super::record_fields::{count, number_u32, text};
use super::removed_words::REMOVED_WORDS;
use super::row::RowFormatVersion;
use super::row_format_versions::{OlderFormatVersion, FORMAT_VERSIONS_MAX};
use super::varint;
use crate::base::{Error, PageId, Result, TableId, TreeId};

type Parsed<T> = std::result::Result<T, Defect>;

const VERSION: u8 = 7;
/// This version has the same fields as [`VERSION`], which is used only for the table of removed
/// words.
const VERSION_OF_ENCRYPTION: u8 = 6;
/// The first version with full-text indexes. It has no encryption settings.
const VERSION_OF_FULLTEXT: u8 = 5;
/// The first version with columns and constraints. It has no full-text indexes.
const VERSION_OF_CONSTRAINTS: u8 = 4;
/// The first version with several row-format versions. It has no columns or constraints.
const VERSION_OF_FORMATS: u8 = 3;
/// This version has only one row-format version.
const VERSION_OF_ONE_FORMAT: u8 = 2;
/// In this version the number of an index is its position, and changes of the definition are not
/// counted.
const VERSION_BEFORE_CHANGES: u8 = 1;

/// Flags of an index.
const UNIQUE: u8 = 1;
const DISABLED: u8 = 2;

/// The maximum number of indexes of a table, including the clustered one.
pub const INDEXES_MAX: usize = 65;

/// An index of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexDef {
    /// Its name, which has no meaning to the engine.
    pub name: String,
    /// Its number in the table (I3).
    pub number: u32,
    /// Whether the index is unique: no two rows have the same key.
    pub unique: bool,
    /// Whether its entries are currently not maintained. Never set for a clustered or unique index.
    pub disabled: bool,
    /// The maximum length of a key in bytes, without the clustered key at the end of a secondary
    /// entry.
    pub max_key_bytes: u32,
    /// The format of the stored row (clustered) or of the caller's payload (secondary).
    pub row_format: RowFormatVersion,
    /// Its tree.
    pub tree: TreeId,
    /// The root of the tree.
    pub root: PageId,
}

/// The encryption setting of a table's pages.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Encryption {
    /// As the database's default says.
    #[default]
    Default,
    /// Encrypted.
    Yes,
    /// Not encrypted.
    No,
}

codes!(Encryption { Default = 0, Yes = 1, No = 2 });

/// Whether the pages of a table are encrypted, and with which key of the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableEncryption {
    /// The setting.
    pub wish: Encryption,
    /// The ID of the key. It is kept even if the pages are not encrypted.
    pub key_id: u32,
}

impl Default for TableEncryption {
    fn default() -> Self {
        Self { wish: Encryption::Default, key_id: 1 }
    }
}

impl TableEncryption {
    /// Returns whether new images of the table's pages are encrypted. `by_default` is the default
    /// of the database.
    pub fn is_on(&self, by_default: bool) -> bool {
        match self.wish {
            Encryption::Default => by_default,
            Encryption::Yes => true,
            Encryption::No => false,
        }
    }

    fn encode(self, out: &mut Vec<u8>) {
        out.push(self.wish.code());
        varint::put(out, self.key_id.into());
    }

    fn decode(fields: &mut Reader<'_>) -> Parsed<Self> {
        let code = fields.u8()?;
        let wish =
            Encryption::from_code(code).ok_or(Defect::at("unknown kind of encryption", code.into()))?;
        Ok(Self { wish, key_id: number_u32(fields)? })
    }
}

/// A full-text index of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FulltextDef {
    /// Its name, which has no meaning to the engine.
    pub name: String,
    /// The name of the table whose rows are its postings.
    pub postings: String,
    /// The caller's own bytes.
    pub extra: Vec<u8>,
}

/// A table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableDef {
    /// Its ID, which is never reused.
    pub id: TableId,
    /// Its name, unique among tables.
    pub name: String,
    /// How images of its pages are compressed.
    pub compression: Compression,
    /// Whether clustered keys are numbers that the engine assigns.
    pub hidden_key: bool,
    /// The first auto-increment value.
    pub auto_increment: u64,
    /// The caller's own bytes.
    pub extra: Vec<u8>,
    /// The bytes that the caller passed with the last change of the definition.
    pub mark: Vec<u8>,
    /// The number of changes of the definition.
    pub changes: u32,
    /// The number that the next index will get (I3).
    pub next_number: u32,
    /// Its indexes. The first is the clustered one, whose `row_format` is the newest row-format
    /// version.
    pub indexes: Vec<IndexDef>,
    /// The row-format versions that older rows may have. A version's position in the list is its
    /// number.
    pub older_formats: Vec<OlderFormatVersion>,
    /// Its columns and keys, if the caller has described them.
    pub description: Description,
    /// The foreign key constraints of which it is the child.
    pub foreign_keys: Vec<ForeignKeyDef>,
    /// The name of the table that this one is a copy of and will replace. Empty if this table is
    /// not a copy.
    pub copy_of: String,
    /// Its full-text indexes.
    pub fulltext: Vec<FulltextDef>,
    /// Whether its pages are encrypted.
    pub encryption: TableEncryption,
}

impl TableDef {
    /// Returns the version in which the definition is written (I4).
    fn version(&self) -> u8 {
        let is_plain = self.description.is_empty() && self.foreign_keys.is_empty() && self.copy_of.is_empty();
        match (is_plain, self.older_formats.is_empty()) {
            _ if self.name == REMOVED_WORDS => VERSION,
            _ if self.encryption != TableEncryption::default() => VERSION_OF_ENCRYPTION,
            _ if !self.fulltext.is_empty() => VERSION_OF_FULLTEXT,
            (true, true) => VERSION_OF_ONE_FORMAT,
            (true, false) => VERSION_OF_FORMATS,
            (false, _) => VERSION_OF_CONSTRAINTS,
        }
    }

    /// Appends the bytes of the definition.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let version = self.version();
        out.push(version);
        varint::put(out, self.id.0.into());
        put_prefixed(out, self.name.as_bytes());
        out.push(self.compression.codec.code());
        varint::put(out, zigzag(self.compression.level.into()));
        out.push(u8::from(self.hidden_key));
        varint::put(out, self.auto_increment);
        put_prefixed(out, &self.extra);
        put_prefixed(out, &self.mark);
        varint::put(out, self.changes.into());
        varint::put(out, self.next_number.into());
        varint::put(out, self.indexes.len() as u64);
        for index in &self.indexes {
            put_prefixed(out, index.name.as_bytes());
            out.push(if index.unique { UNIQUE } else { 0 } | if index.disabled { DISABLED } else { 0 });
            varint::put(out, index.max_key_bytes.into());
            index.row_format.encode(out);
            varint::put(out, index.tree.0.into());
            varint::put(out, index.root.0);
            varint::put(out, index.number.into());
        }
        if version >= VERSION_OF_FORMATS {
            varint::put(out, self.older_formats.len() as u64);
            self.older_formats.iter().for_each(|older| older.encode(out));
        }
        if version >= VERSION_OF_CONSTRAINTS {
            self.description.encode(out);
            varint::put(out, self.foreign_keys.len() as u64);
            self.foreign_keys.iter().for_each(|constraint| constraint.encode(out));
            put_prefixed(out, self.copy_of.as_bytes());
        }
        if version >= VERSION_OF_FULLTEXT {
            varint::put(out, self.fulltext.len() as u64);
            for index in &self.fulltext {
                put_prefixed(out, index.name.as_bytes());
                put_prefixed(out, index.postings.as_bytes());
                put_prefixed(out, &index.extra);
            }
        }
        if version >= VERSION_OF_ENCRYPTION {
            self.encryption.encode(out);
        }
    }

    /// Reads a definition. Works on any bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        Self::read(&mut Reader::new(bytes)).map_err(|defect| defect.in_place("catalog row"))
    }

    fn read(fields: &mut Reader<'_>) -> Parsed<Self> {
        let version = fields.u8()?;
        let is_old = version == VERSION_BEFORE_CHANGES;
        let has_one_format = is_old || version == VERSION_OF_ONE_FORMAT;
        let is_known = (VERSION_OF_FORMATS..VERSION).contains(&version);
        if !has_one_format && !is_known {
            check_version("catalog row format", version.into(), VERSION.into())?;
        }
        let mut def = TableDef {
            id: TableId(number_u32(fields)?),
            name: text(fields)?.to_owned(),
            compression: decode_compression(fields)?,
            hidden_key: fields.u8()? != 0,
            auto_increment: fields.varint()?,
            extra: fields.prefixed(usize::MAX)?.to_vec(),
            mark: Vec::new(),
            changes: 0,
            next_number: 0,
            indexes: Vec::new(),
            older_formats: Vec::new(),
            description: Description::default(),
            foreign_keys: Vec::new(),
            copy_of: String::new(),
            fulltext: Vec::new(),
            encryption: TableEncryption::default(),
        };
        if !is_old {
            def.mark = fields.prefixed(usize::MAX)?.to_vec();
            (def.changes, def.next_number) = (number_u32(fields)?, number_u32(fields)?);
        }
        for position in 0..count(fields)? {
            let mut index = decode_index(fields)?;
            index.number = if is_old { position as u32 } else { number_u32(fields)? };
            def.indexes.push(index);
        }
        if !has_one_format {
            def.read_older_formats(fields, version == VERSION_OF_FORMATS)?;
        }
        if version >= VERSION_OF_CONSTRAINTS {
            def.description = Description::decode(fields, def.indexes.len())?;
            def.foreign_keys =
                (0..count(fields)?).map(|_| ForeignKeyDef::decode(fields)).collect::<Parsed<_>>()?;
            text(fields)?.clone_into(&mut def.copy_of);
            if version >= VERSION_OF_FULLTEXT {
                def.fulltext = (0..count(fields)?).map(|_| decode_fulltext(fields)).collect::<Parsed<_>>()?;
            }
            if version >= VERSION_OF_ENCRYPTION {
                def.encryption = TableEncryption::decode(fields)?;
            }
            ensure(def.version() == version, "a later version than the definition needs")?;
        }
        fields.finish()?;
        if is_old {
            def.next_number = def.indexes.len() as u32;
        }
        def.check_numbers()?;
        match def.indexes.len() {
            1..=INDEXES_MAX => Ok(def),
            n => Err(Defect::at("wrong number of indexes", n)),
        }
    }
}

impl TableDef {
    /// Reads the older row-format versions. `some` says whether there must be at least one.
    fn read_older_formats(&mut self, fields: &mut Reader<'_>, some: bool) -> Parsed<()> {
        let newest =
            self.indexes.first().map(|index| &index.row_format).ok_or(Defect::new("no clustered index"))?;
        let count = fields.length(FORMAT_VERSIONS_MAX - 1)?;
        ensure(count > 0 || !some, "several row-format versions, but no older one")?;
        self.older_formats =
            (0..count).map(|_| OlderFormatVersion::decode(fields, newest)).collect::<Parsed<_>>()?;
        Ok(())
    }

    /// Checks that the indexes have distinct numbers, all below the next one.
    fn check_numbers(&self) -> Parsed<()> {
        let mut numbers: Vec<_> = self.indexes.iter().map(|index| index.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let are_given_out = numbers.last().is_none_or(|&last| last < self.next_number);
        match numbers.len() == self.indexes.len() && are_given_out {
            true => Ok(()),
            false => Err(Defect::new("indexes with duplicate or unassigned numbers")),
        }
    }
}

/// Returns the key of piece `piece_no` of a table's definition: the table ID and the piece number,
/// both big-endian.
pub fn piece_key(table: TableId, piece_no: u16) -> [u8; 6] {
    let [a, b, c, d] = table.0.to_be_bytes();
    let [e, f] = piece_no.to_be_bytes();
    [a, b, c, d, e, f]
}

/// Returns the table ID and piece number of a catalog key.
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
    let (name, flags) = (text(fields)?.to_owned(), fields.u8()?);
    if flags & !(UNIQUE | DISABLED) != 0 {
        return Err(Defect::at("unknown flags of an index", flags.into()));
    }
    Ok(IndexDef {
        name,
        number: 0,
        unique: flags & UNIQUE != 0,
        disabled: flags & DISABLED != 0,
        max_key_bytes: number_u32(fields)?,
        row_format: RowFormatVersion::decode(fields)?,
        tree: TreeId(number_u32(fields)?),
        root: PageId(fields.varint()?),
    })
}

fn decode_fulltext(fields: &mut Reader<'_>) -> Parsed<FulltextDef> {
    let (name, postings) = (text(fields)?.to_owned(), text(fields)?.to_owned());
    Ok(FulltextDef { name, postings, extra: fields.prefixed(usize::MAX)?.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::foreign_key::{ColumnDef, ForeignKeyAction, KeyPartDef};
    use crate::format::row::{build_row, VarValue};
    use crate::format::row_format_versions::{BitRun, FormatChange};

    fn sample() -> TableDef {
        let index = |tree, name: &str| IndexDef {
            name: name.into(),
            number: 20 - tree,
            unique: tree % 2 == 0,
            disabled: tree % 2 == 1,
            max_key_bytes: 3072,
            row_format: RowFormatVersion { null_bytes: 1, fixed: vec![4, 8], var_count: 2 },
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
            mark: vec![9; 16],
            changes: 3,
            next_number: 5,
            indexes: vec![index(16, "PRIMARY"), index(17, "name")],
            older_formats: Vec::new(),
            description: Description::default(),
            foreign_keys: Vec::new(),
            copy_of: String::new(),
            fulltext: Vec::new(),
            encryption: TableEncryption::default(),
        }
    }

    fn sample_with_encryption() -> TableDef {
        let encryption = TableEncryption { wish: Encryption::Yes, key_id: 300 };
        TableDef { encryption, ..sample() }
    }

    fn sample_with_fulltext() -> TableDef {
        let postings = "#fulltext/8".into();
        let index = FulltextDef { name: "words".into(), postings, extra: vec![3, 84] };
        TableDef { fulltext: vec![index], ..sample_with_constraints() }
    }

    fn sample_with_constraints() -> TableDef {
        let column = |name: &str, nullable| ColumnDef { name: name.into(), kind: vec![1, 4], nullable };
        let part = |column, descending| KeyPartDef { column, descending, is_prefix: column == 1 };
        let constraint = ForeignKeyDef {
            name: "of parent".into(),
            columns: vec!["a".into(), "b".into()],
            parent: "db/parent".into(),
            parent_columns: vec!["x".into(), "y".into()],
            on_delete: ForeignKeyAction::Cascade,
            on_update: ForeignKeyAction::SetNull,
            inherited: true,
        };
        let description = Description {
            columns: vec![column("a", false), column("b", true)],
            keys: vec![vec![part(0, false)], vec![part(1, true), part(0, false)]],
        };
        let copy_of = "db/original".into();
        TableDef { description, foreign_keys: vec![constraint], copy_of, ..sample() }
    }

    fn sample_with_formats() -> TableDef {
        let mut defaults = Vec::new();
        build_row(&[1], &[0; 12], &[VarValue::inline(b""), VarValue::inline(b"new")], &mut defaults);
        let change = |vars: &[Option<u16>]| FormatChange {
            bits: vec![BitRun { from: 0, to: 0, count: 3 }],
            fixed: vec![Some(0), None],
            vars: vars.to_vec(),
            defaults: defaults.clone(),
        };
        let first = RowFormatVersion { null_bytes: 1, fixed: vec![4], var_count: 1 };
        let second = RowFormatVersion { null_bytes: 2, fixed: vec![4, 2], var_count: 2 };
        let older_formats = vec![
            OlderFormatVersion { row_format: first, change: change(&[Some(0), None]) },
            OlderFormatVersion { row_format: second, change: change(&[Some(1), Some(0)]) },
        ];
        TableDef { older_formats, ..sample() }
    }

    #[test]
    fn a_definition_reads_back() {
        let mut bytes = Vec::new();
        sample().encode(&mut bytes);
        assert_eq!((TableDef::decode(&bytes).unwrap(), bytes[0]), (sample(), 2));
        bytes.clear();
        sample_with_formats().encode(&mut bytes);
        assert_eq!((TableDef::decode(&bytes).unwrap(), bytes[0]), (sample_with_formats(), 3));
        bytes.clear();
        sample_with_constraints().encode(&mut bytes);
        assert_eq!((TableDef::decode(&bytes).unwrap(), bytes[0]), (sample_with_constraints(), 4));
        bytes.clear();
        sample_with_fulltext().encode(&mut bytes);
        assert_eq!((TableDef::decode(&bytes).unwrap(), bytes[0]), (sample_with_fulltext(), 5));
        bytes.clear();
        sample_with_encryption().encode(&mut bytes);
        assert_eq!((TableDef::decode(&bytes).unwrap(), bytes[0]), (sample_with_encryption(), 6));
        bytes.clear();
        let removed_words = TableDef { name: REMOVED_WORDS.into(), ..sample() };
        removed_words.encode(&mut bytes);
        assert_eq!((TableDef::decode(&bytes).unwrap(), bytes[0]), (removed_words, 7));
    }

    #[test]
    fn cut_altered_and_newer_definitions_are_refused_without_panic() {
        let mut bytes = Vec::new();
        let formats = sample_with_formats().older_formats;
        let encryption = sample_with_encryption().encryption;
        TableDef { older_formats: formats, encryption, ..sample_with_fulltext() }.encode(&mut bytes);
        for len in 0..bytes.len() {
            assert!(TableDef::decode(&bytes[..len]).is_err());
        }
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 0xff;
            let _ = TableDef::decode(&other);
        }
        bytes[0] = 8;
        assert!(matches!(TableDef::decode(&bytes), Err(Error::Unsupported { .. })));
    }

    #[test]
    fn a_definition_of_version_1_has_indexes_numbered_by_their_positions() {
        let mut now = Vec::new();
        let def = TableDef { indexes: sample().indexes.into_iter().take(1).collect(), ..sample() };
        def.encode(&mut now);
        let (mark_at, index_at) = (now.windows(16).position(|bytes| bytes == [9; 16]).unwrap() - 1, 19);
        let mut then = now[..mark_at].to_vec();
        then[0] = 1;
        then.extend_from_slice(&now[mark_at + index_at..now.len() - 1]);
        let read = TableDef::decode(&then).unwrap();
        let index = IndexDef { number: 0, ..def.indexes[0].clone() };
        assert_eq!(
            read,
            TableDef { mark: Vec::new(), changes: 0, next_number: 1, indexes: vec![index], ..def }
        );
    }

    #[test]
    fn numbers_that_were_not_given_out_are_refused() {
        let refused = |change: fn(&mut TableDef)| {
            let (mut def, mut bytes) = (sample(), Vec::new());
            change(&mut def);
            def.encode(&mut bytes);
            assert!(TableDef::decode(&bytes).is_err());
        };
        refused(|def| def.next_number = 4);
        refused(|def| def.indexes[0].number = def.indexes[1].number);
    }

    #[test]
    fn piece_keys_sort_by_table_and_piece() {
        assert!(piece_key(TableId(1), 300) < piece_key(TableId(2), 0));
        assert_eq!(parse_piece_key(&piece_key(TableId(9), 3)).unwrap(), (TableId(9), 3));
        assert!(parse_piece_key(b"short").is_err());
    }
}

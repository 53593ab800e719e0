//! The description of a table's columns and keys, and of the constraints between its rows and those
//! of other tables.
//!
//! Invariants
//!   I1  A description belongs to one version of a definition and is written again with each change
//!       of the definition. It has one key for each index of the definition, in the same order.
//!   I2  Two columns of the same kind encode equal values as equal keys, except for what a key part
//!       adds: the NULL flag of a nullable column, and the direction.
//!   I3  Both sides of a constraint have the same number of columns, at least one.
//! Layout    docs/developers/format.md, "Catalog rows".

use super::bytes::{codes, ensure, put_prefixed, Defect, Reader};
use super::record_fields::{count, number_u32, text};
use super::varint;

type Parsed<T> = std::result::Result<T, Defect>;

const NULLABLE: u8 = 1;
const DESCENDING: u8 = 1;
const PREFIX: u8 = 2;
const INHERITED: u8 = 1;

/// A column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ColumnDef {
    /// Its name.
    pub name: String,
    /// The kind, which is equal for columns whose values can be compared as keys (I2).
    pub kind: Vec<u8>,
    /// Whether it may be NULL.
    pub nullable: bool,
}

/// A part of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyPartDef {
    /// The position of the column.
    pub column: u32,
    /// Whether the part sorts in descending order.
    pub descending: bool,
    /// Whether it holds only the beginning of the column's value.
    pub is_prefix: bool,
}

/// Columns and keys of a definition.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Description {
    /// Its columns. Empty for a table that was not described.
    pub columns: Vec<ColumnDef>,
    /// The parts of the key of each index.
    pub keys: Vec<Vec<KeyPartDef>>,
}

/// What happens to child rows when the parent row is deleted or its columns change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForeignKeyAction {
    /// The operation on the parent row fails.
    Restrict,
    /// The same as `Restrict`.
    NoAction,
    /// The child rows are deleted or changed too.
    Cascade,
    /// The columns of the child rows become NULL.
    SetNull,
}

codes!(ForeignKeyAction { Restrict = 0, NoAction = 1, Cascade = 2, SetNull = 3 });

/// A constraint, as stored in the definition of the child table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForeignKeyDef {
    /// Its name, unique in the database of the child, ignoring case.
    pub name: String,
    /// The child's columns.
    pub columns: Vec<String>,
    /// The name of the parent table.
    pub parent: String,
    /// The parent's columns.
    pub parent_columns: Vec<String>,
    /// The action when the parent row is deleted.
    pub on_delete: ForeignKeyAction,
    /// The action when the parent's columns change.
    pub on_update: ForeignKeyAction,
    /// Whether the table is a copy of another table, which has the constraint.
    pub inherited: bool,
}

impl Description {
    /// Returns whether the table was not described.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        varint::put(out, self.columns.len() as u64);
        for column in &self.columns {
            put_prefixed(out, column.name.as_bytes());
            put_prefixed(out, &column.kind);
            out.push(if column.nullable { NULLABLE } else { 0 });
        }
        varint::put(out, self.keys.len() as u64);
        for parts in &self.keys {
            varint::put(out, parts.len() as u64);
            for part in parts {
                varint::put(out, part.column.into());
                out.push(
                    if part.descending { DESCENDING } else { 0 } | if part.is_prefix { PREFIX } else { 0 },
                );
            }
        }
    }

    /// Reads a description that [`encode`](Self::encode) wrote, of a definition with `indexes`
    /// indexes.
    pub(super) fn decode(fields: &mut Reader<'_>, indexes: usize) -> Parsed<Self> {
        let mut description = Description::default();
        for _ in 0..count(fields)? {
            let (name, kind) = (text(fields)?.to_owned(), fields.prefixed(usize::MAX)?.to_vec());
            let nullable = flags(fields, NULLABLE)? != 0;
            description.columns.push(ColumnDef { name, kind, nullable });
        }
        for _ in 0..count(fields)? {
            let parts = (0..count(fields)?).map(|_| part(fields, description.columns.len()));
            description.keys.push(parts.collect::<Parsed<_>>()?);
        }
        let fits = if description.is_empty() { 0 } else { indexes };
        ensure(description.keys.len() == fits, "a description of other indexes")?;
        Ok(description)
    }
}

fn part(fields: &mut Reader<'_>, columns: usize) -> Parsed<KeyPartDef> {
    let column = number_u32(fields)?;
    ensure((column as usize) < columns, "a key of a column that does not exist")?;
    let flags = flags(fields, DESCENDING | PREFIX)?;
    Ok(KeyPartDef { column, descending: flags & DESCENDING != 0, is_prefix: flags & PREFIX != 0 })
}

fn flags(fields: &mut Reader<'_>, known: u8) -> Parsed<u8> {
    let flags = fields.u8()?;
    match flags & !known {
        0 => Ok(flags),
        _ => Err(Defect::at("unknown flags of a column or constraint", flags.into())),
    }
}

impl ForeignKeyDef {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_prefixed(out, self.name.as_bytes());
        put_prefixed(out, self.parent.as_bytes());
        varint::put(out, self.columns.len() as u64);
        for (column, parent_column) in self.columns.iter().zip(&self.parent_columns) {
            put_prefixed(out, column.as_bytes());
            put_prefixed(out, parent_column.as_bytes());
        }
        out.extend_from_slice(&[self.on_delete.code(), self.on_update.code()]);
        out.push(if self.inherited { INHERITED } else { 0 });
    }

    pub(super) fn decode(fields: &mut Reader<'_>) -> Parsed<Self> {
        let (name, parent) = (text(fields)?.to_owned(), text(fields)?.to_owned());
        let (mut columns, mut parent_columns) = (Vec::new(), Vec::new());
        for _ in 0..count(fields)? {
            columns.push(text(fields)?.to_owned());
            parent_columns.push(text(fields)?.to_owned());
        }
        ensure(!columns.is_empty(), "a constraint without columns")?;
        let (on_delete, on_update) = (action(fields)?, action(fields)?);
        let inherited = flags(fields, INHERITED)? != 0;
        Ok(Self { name, columns, parent, parent_columns, on_delete, on_update, inherited })
    }
}

fn action(fields: &mut Reader<'_>) -> Parsed<ForeignKeyAction> {
    let code = fields.u8()?;
    ForeignKeyAction::from_code(code).ok_or(Defect::at("unknown action of a constraint", code.into()))
}

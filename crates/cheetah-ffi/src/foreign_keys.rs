//! Foreign key constraints: their definitions, the indexes they use, and searches for rows that
//! refer to each other.

use crate::barrier::{answer, entry, value};
use crate::callbacks::{each, Callback};
use crate::codes::*;
use crate::types::*;
use crate::{CheetahCursor, CheetahDb, CheetahTable, CheetahTxn};
use cheetah::server::{
    ColumnDef, Constraints, Description, ForeignKey, ForeignKeyAction, ForeignKeyDef, KeyPartDef, KeySide,
};
use cheetah::Result;

/// A column of a definition. Columns of the same kind have equal keys for equal values, apart from
/// the NULL flag and the direction.
#[repr(C)]
pub struct CheetahColumnDef {
    /// Its name.
    pub name: CheetahBytes,
    /// Its kind: equal for columns that have equal keys for equal values.
    pub kind: CheetahBytes,
    /// Whether it may be NULL.
    pub nullable: u8,
}

/// A part of a key.
#[repr(C)]
pub struct CheetahKeyPartDef {
    /// The position of its column.
    pub column: u32,
    /// Whether it sorts in descending order.
    pub descending: u8,
    /// Whether it contains only a prefix of the value.
    pub is_prefix: u8,
}

/// The key of an index.
#[repr(C)]
pub struct CheetahKeyDef {
    /// Its parts.
    pub parts: *const CheetahKeyPartDef,
    /// The number of parts.
    pub part_count: usize,
}

/// A constraint of a definition.
#[repr(C)]
pub struct CheetahForeignKeyDef {
    /// Its name.
    pub name: CheetahBytes,
    /// The name of the parent.
    pub parent: CheetahBytes,
    /// The child's columns.
    pub columns: *const CheetahBytes,
    /// The parent's columns.
    pub parent_columns: *const CheetahBytes,
    /// The number of columns on each side.
    pub column_count: usize,
    /// A `CheetahForeignKeyAction`.
    pub on_delete: u8,
    /// A `CheetahForeignKeyAction`.
    pub on_update: u8,
    /// Whether the table is a copy of a table that has the constraint.
    pub inherited: u8,
}

/// A renamed column.
#[repr(C)]
pub struct CheetahRenamedColumn {
    /// Its old name.
    pub from: CheetahBytes,
    /// Its new name.
    pub to: CheetahBytes,
}

/// Columns, keys and constraints of a definition.
#[repr(C)]
pub struct CheetahConstraints {
    /// The columns.
    pub columns: *const CheetahColumnDef,
    /// The number of columns.
    pub column_count: usize,
    /// The keys, the key of the clustered index first.
    pub keys: *const CheetahKeyDef,
    /// The number of keys.
    pub key_count: usize,
    /// The constraints in which the table is the child. Existing constraints come first.
    pub foreign_keys: *const CheetahForeignKeyDef,
    /// The number of constraints.
    pub foreign_key_count: usize,
    /// The number of existing constraints.
    pub kept_count: usize,
    /// If the table is a copy, the table that it will replace; otherwise empty.
    pub copy_of: CheetahBytes,
    /// Renamed columns.
    pub renamed: *const CheetahRenamedColumn,
    /// The number of renamed columns.
    pub renamed_count: usize,
    /// Whether parents must exist.
    pub are_checked: u8,
}

fn action_of(code: u8) -> Result<ForeignKeyAction> {
    meaning!("code of an action", code, CheetahForeignKeyAction => ForeignKeyAction {
        Restrict, NoAction, Cascade, SetNull
    })
}

fn code_of(action: ForeignKeyAction) -> u8 {
    number!(action, ForeignKeyAction => CheetahForeignKeyAction { Restrict, NoAction, Cascade, SetNull })
}

impl CheetahColumnDef {
    unsafe fn get(&self) -> ColumnDef {
        // SAFETY: by the contract of the crate what is pointed to is initialised.
        let (name, kind) = unsafe { (self.name.text(), self.kind.get().to_vec()) };
        ColumnDef { name, kind, nullable: self.nullable != 0 }
    }
}

impl CheetahKeyDef {
    unsafe fn get(&self) -> Vec<KeyPartDef> {
        let part = |part: &CheetahKeyPartDef| KeyPartDef {
            column: part.column,
            descending: part.descending != 0,
            is_prefix: part.is_prefix != 0,
        };
        // SAFETY: by the contract of the crate what is pointed to is initialised.
        unsafe { slice(self.parts, self.part_count) }.iter().map(part).collect()
    }
}

impl CheetahForeignKeyDef {
    unsafe fn get(&self) -> Result<ForeignKeyDef> {
        // SAFETY: by the contract of the crate what is pointed to is initialised.
        let (name, parent) = unsafe { (self.name.text(), self.parent.text()) };
        let names = |list: *const CheetahBytes| -> Vec<String> {
            // SAFETY: as above.
            unsafe { slice(list, self.column_count).iter().map(|name| name.text()).collect() }
        };
        let (columns, parent_columns) = (names(self.columns), names(self.parent_columns));
        let (on_delete, on_update) = (action_of(self.on_delete)?, action_of(self.on_update)?);
        let inherited = self.inherited != 0;
        Ok(ForeignKeyDef { name, columns, parent, parent_columns, on_delete, on_update, inherited })
    }
}

impl CheetahConstraints {
    pub(crate) unsafe fn get(&self) -> Result<Constraints> {
        // SAFETY: by the contract of the crate what is pointed to is initialised.
        let (columns, keys, foreign_keys, renamed, copy_of) = unsafe {
            (
                slice(self.columns, self.column_count).iter().map(|column| column.get()).collect(),
                slice(self.keys, self.key_count).iter().map(|key| key.get()).collect(),
                slice(self.foreign_keys, self.foreign_key_count).iter().map(|it| it.get()),
                slice(self.renamed, self.renamed_count).iter().map(|it| (it.from.text(), it.to.text())),
                self.copy_of.text(),
            )
        };
        Ok(Constraints {
            description: Description { columns, keys },
            foreign_keys: foreign_keys.collect::<Result<_>>()?,
            kept_count: self.kept_count,
            are_checked: self.are_checked != 0,
            copy_of: Some(copy_of).filter(|name| !name.is_empty()),
            renamed: renamed.collect(),
        })
    }
}

/// A column of a constraint in an index.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahKeyColumn {
    /// Its position in the table.
    pub column: u32,
    /// Whether it may be NULL.
    pub nullable: u8,
    /// Whether the key part sorts in descending order.
    pub descending: u8,
}

/// The index that a constraint uses on one side.
#[repr(C)]
pub struct CheetahKeySide {
    /// The columns, in the order of the constraint; null if there is no such index.
    pub columns: *const CheetahKeyColumn,
    /// The position of the index.
    pub index_no: u32,
    /// Its name.
    pub index_name: CheetahBytes,
}

/// A constraint, and the indexes that it uses.
#[repr(C)]
pub struct CheetahForeignKey {
    /// Its name.
    pub name: CheetahBytes,
    /// The name of the child.
    pub child: CheetahBytes,
    /// The name of the parent.
    pub parent: CheetahBytes,
    /// The child's columns.
    pub columns: *const CheetahBytes,
    /// The parent's columns.
    pub parent_columns: *const CheetahBytes,
    /// The number of columns on each side.
    pub column_count: usize,
    /// The child's index.
    pub child_key: CheetahKeySide,
    /// The parent's index.
    pub parent_key: CheetahKeySide,
    /// A `CheetahForeignKeyAction`.
    pub on_delete: u8,
    /// A `CheetahForeignKeyAction`.
    pub on_update: u8,
    /// Whether rows of the child are checked: not if it is a copy of a table with the constraint.
    pub is_checked: u8,
}

/// Receives one constraint.
pub type CheetahForeignKeySink =
    unsafe extern "C" fn(context: *mut c_void, constraint: *const CheetahForeignKey);

#[derive(Debug)]
struct Lent {
    constraint: ForeignKey,
    columns: Vec<CheetahBytes>,
    parent_columns: Vec<CheetahBytes>,
    child_key: Vec<CheetahKeyColumn>,
    parent_key: Vec<CheetahKeyColumn>,
}

impl Lent {
    fn new(constraint: ForeignKey) -> Self {
        let key = |side: &Option<KeySide>| {
            let columns = side.iter().flat_map(|side| &side.columns);
            let column = |column: &cheetah::server::KeyColumn| CheetahKeyColumn {
                column: column.column,
                nullable: column.nullable.into(),
                descending: column.descending.into(),
            };
            columns.map(column).collect::<Vec<_>>()
        };
        // The strings do not move in memory when the constraint is moved.
        let names = |list: &[String]| list.iter().map(CheetahBytes::of).collect();
        Self {
            columns: names(&constraint.def.columns),
            parent_columns: names(&constraint.def.parent_columns),
            child_key: key(&constraint.child),
            parent_key: key(&constraint.parent),
            constraint,
        }
    }

    fn get(&self) -> CheetahForeignKey {
        let ForeignKey { def, child_name, child, parent } = &self.constraint;
        let side = |side: &Option<KeySide>, columns: &[CheetahKeyColumn]| CheetahKeySide {
            columns: if side.is_some() { columns.as_ptr() } else { std::ptr::null() },
            index_no: side.as_ref().map_or(0, |side| side.index_no as u32),
            index_name: side.as_ref().map_or(CheetahBytes::EMPTY, |side| CheetahBytes::of(&side.index_name)),
        };
        CheetahForeignKey {
            name: CheetahBytes::of(&def.name),
            child: CheetahBytes::of(child_name),
            parent: CheetahBytes::of(&def.parent),
            columns: self.columns.as_ptr(),
            parent_columns: self.parent_columns.as_ptr(),
            column_count: self.columns.len(),
            child_key: side(child, &self.child_key),
            parent_key: side(parent, &self.parent_key),
            on_delete: code_of(def.on_delete),
            on_update: code_of(def.on_update),
            is_checked: (!def.inherited).into(),
        }
    }
}

/// The constraints of a table, as its child and as its parent.
#[derive(Debug)]
pub struct CheetahForeignKeys([Vec<Lent>; 2]);

impl CheetahForeignKeys {
    /// Returns a handle of a list; null if there are no constraints.
    fn boxed(as_child: Vec<ForeignKey>, as_parent: Vec<ForeignKey>) -> *mut Self {
        if as_child.is_empty() && as_parent.is_empty() {
            return std::ptr::null_mut();
        }
        let lists = [as_child, as_parent].map(|list| list.into_iter().map(Lent::new).collect());
        Box::into_raw(Box::new(Self(lists)))
    }

    fn find(&self, role: u8, no: usize) -> Option<&Lent> {
        self.0.get(usize::from(role))?.get(no)
    }

    /// Returns the index of the other table: the parent's for a child, the child's for a parent.
    fn other_side(&self, role: u8, no: usize) -> Option<&KeySide> {
        let ForeignKey { child, parent, .. } = &self.find(role, no)?.constraint;
        let side = if role == CheetahRole::Child as u8 { parent } else { child };
        side.as_ref()
    }
}

/// Returns the number of changes of definitions since the startup.
#[no_mangle]
pub extern "C" fn cheetah_definition_changes(db: &CheetahDb) -> u64 {
    value(0, || db.0.definition_changes())
}

/// Passes the readable form of a table name to a sink.
pub type CheetahShowName = unsafe extern "C" fn(
    context: *mut c_void,
    name: CheetahBytes,
    sink: CheetahTextSink,
    sink_context: *mut c_void,
);

/// Sets the function that converts table names to readable names. It is called from any thread
/// until the database is closed. It gets the part of the name that follows the database.
#[no_mangle]
pub unsafe extern "C" fn cheetah_show_names_with(
    db: &CheetahDb,
    show: CheetahShowName,
    context: *mut c_void,
) {
    let shower = Callback(show, context);
    let shown = move |name: &str| {
        // SAFETY: the caller's function gets the caller's context, and a sink with its own.
        shower.text(|show, it, sink, to| unsafe { show(it, CheetahBytes::of(name), sink, to) })
    };
    value((), || db.0.show_names_with(shown));
}

/// Records a refusal by a constraint for the status of the engine. A long text is truncated.
#[no_mangle]
pub unsafe extern "C" fn cheetah_note_refused_by_constraint(db: &CheetahDb, text: CheetahBytes) {
    // SAFETY: by the contract of the crate the text is readable.
    let text = unsafe { text.text() };
    value((), || db.0.note_refused_by_constraint(&text));
}

/// Returns the constraints of a table, and the indexes that they use; null if there are none, or
/// after a panic.
#[no_mangle]
pub extern "C" fn cheetah_foreign_keys(db: &CheetahDb, table: &CheetahTable) -> *mut CheetahForeignKeys {
    value(std::ptr::null_mut(), || {
        let as_child = db.0.constraints_of_child(&table.table);
        CheetahForeignKeys::boxed(as_child, db.0.constraints_of_parent(&table.table))
    })
}

/// Lists the constraints that a new definition adds to the child table; null if there are none.
#[no_mangle]
pub unsafe extern "C" fn cheetah_foreign_keys_to_add(
    db: &CheetahDb,
    table: &CheetahTable,
    constraints: &CheetahConstraints,
    list: &mut *mut CheetahForeignKeys,
) -> i32 {
    answer(list, || {
        // SAFETY: by the contract of the crate the arguments are initialised.
        let new = db.0.constraints_to_add(&table.table, &unsafe { constraints.get() }?)?;
        Ok(CheetahForeignKeys::boxed(new, Vec::new()))
    })
}

/// Frees a list of constraints.
#[no_mangle]
pub extern "C" fn cheetah_free_foreign_keys(list: Box<CheetahForeignKeys>) {
    value((), || drop(list));
}

/// Returns the number of constraints in which the table has this `CheetahRole`.
#[no_mangle]
pub extern "C" fn cheetah_foreign_key_count(list: &CheetahForeignKeys, role: u8) -> usize {
    value(0, || list.0.get(usize::from(role)).map_or(0, Vec::len))
}

/// Gets one constraint of the list. Its pointers are valid until the list is freed.
#[no_mangle]
pub extern "C" fn cheetah_foreign_key(
    list: &CheetahForeignKeys,
    role: u8,
    no: usize,
    constraint: &mut CheetahForeignKey,
) {
    value((), || {
        if let Some(lent) = list.find(role, no) {
            *constraint = lent.get();
        }
    });
}

/// Passes all constraints to the sink, ordered by child and name.
#[no_mangle]
pub unsafe extern "C" fn cheetah_list_foreign_keys(
    db: &CheetahDb,
    sink: CheetahForeignKeySink,
    context: *mut c_void,
) -> i32 {
    entry(|| each(sink, context, db.0.constraints().into_iter().map(Lent::new), Lent::get))
}

/// Searches for a row of the other table: the parent for a child, the child for a parent. `key`:
/// the columns of the constraint, encoded as in the other table's index. Locks the row shared.
/// Returns `End` if no row exists, and `NoSuchTable` if the constraints must be loaded again.
#[no_mangle]
pub unsafe extern "C" fn cheetah_find_reference(
    txn: &mut CheetahTxn,
    list: &CheetahForeignKeys,
    role: u8,
    no: usize,
    key: CheetahBytes,
) -> i32 {
    // SAFETY: by the contract of the crate the key is readable.
    let key = unsafe { key.get() };
    entry(|| {
        let Some(side) = list.other_side(role, no) else { return Ok(Code::End) };
        Ok(if txn.0.find_reference(side, key)? { Code::Ok } else { Code::End })
    })
}

/// Opens a cursor over the parent's index of a constraint in which the table is the child. The
/// cursor reads a snapshot. Returns `NoSuchTable` if the constraints must be loaded again.
#[no_mangle]
pub extern "C" fn cheetah_open_parents(
    txn: &mut CheetahTxn,
    list: &CheetahForeignKeys,
    no: usize,
    cursor: &mut *mut CheetahCursor,
) -> i32 {
    entry(|| {
        let Some(side) = list.other_side(CheetahRole::Child as u8, no) else { return Ok(Code::End) };
        *cursor = CheetahCursor::boxed(txn.0.cursor_on_parents(side)?);
        Ok(Code::Ok)
    })
}

/// Opens a cursor over the child's index of a constraint in which the table is the parent. The
/// cursor takes exclusive locks on the rows that it reads.
#[no_mangle]
pub extern "C" fn cheetah_open_children(
    txn: &mut CheetahTxn,
    list: &CheetahForeignKeys,
    no: usize,
    cursor: &mut *mut CheetahCursor,
) -> i32 {
    entry(|| {
        let Some(side) = list.other_side(CheetahRole::Parent as u8, no) else { return Ok(Code::End) };
        *cursor = CheetahCursor::boxed(txn.0.cursor_on_children(side)?);
        Ok(Code::Ok)
    })
}

#[cfg(test)]
mod tests {
    use super::action_of;

    #[test]
    fn unknown_codes_of_an_action_are_refused() {
        assert!((0..=3).all(|code| action_of(code).is_ok()));
        assert!(action_of(4).is_err());
    }
}

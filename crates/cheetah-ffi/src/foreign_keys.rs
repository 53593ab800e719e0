//! Foreign key constraints: their definitions, the indexes they use, and searches for rows that
//! refer to each other.

use crate::barrier::{entry, value};
use crate::codes::*;
use crate::listing::take_text;
use crate::types::*;
use crate::{CheetahCursor, CheetahDb, CheetahTable, CheetahTxn};
use cheetah::server::{
    ColumnDef, Constraints, Description, ForeignKey, ForeignKeyAction, ForeignKeyDef, KeyPartDef, KeySide,
};
use cheetah::Result;
use std::ffi::c_void;

/// A column of a definition. Columns of the same kind have equal keys for equal values, apart from
/// the NULL flag and the direction.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
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
#[derive(Clone, Copy, Debug)]
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
#[derive(Clone, Copy, Debug)]
pub struct CheetahKeyDef {
    /// Its parts.
    pub parts: *const CheetahKeyPartDef,
    /// The number of parts.
    pub part_count: usize,
}

/// A constraint of a definition.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
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
#[derive(Clone, Copy, Debug)]
pub struct CheetahRenamedColumn {
    /// Its old name.
    pub from: CheetahBytes,
    /// Its new name.
    pub to: CheetahBytes,
}

/// Columns, keys and constraints of a definition.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
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

unsafe fn texts(list: *const CheetahBytes, count: usize) -> Vec<String> {
    // SAFETY: by the contract of the crate the values are initialised.
    unsafe { slice(list, count) }.iter().map(|text| unsafe { text.text() }).collect()
}

fn action_of(code: u8) -> Result<ForeignKeyAction> {
    let codes = [
        (CheetahForeignKeyAction::Restrict as u8, ForeignKeyAction::Restrict),
        (CheetahForeignKeyAction::NoAction as u8, ForeignKeyAction::NoAction),
        (CheetahForeignKeyAction::Cascade as u8, ForeignKeyAction::Cascade),
        (CheetahForeignKeyAction::SetNull as u8, ForeignKeyAction::SetNull),
    ];
    meaning("code of an action", code, &codes)
}

fn code_of(action: ForeignKeyAction) -> u8 {
    let code = match action {
        ForeignKeyAction::Restrict => CheetahForeignKeyAction::Restrict,
        ForeignKeyAction::NoAction => CheetahForeignKeyAction::NoAction,
        ForeignKeyAction::Cascade => CheetahForeignKeyAction::Cascade,
        ForeignKeyAction::SetNull => CheetahForeignKeyAction::SetNull,
    };
    code as u8
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
        // SAFETY: as above.
        let (columns, parent_columns) = unsafe {
            (texts(self.columns, self.column_count), texts(self.parent_columns, self.column_count))
        };
        let (on_delete, on_update) = (action_of(self.on_delete)?, action_of(self.on_update)?);
        let inherited = self.inherited != 0;
        Ok(ForeignKeyDef { name, columns, parent, parent_columns, on_delete, on_update, inherited })
    }
}

impl CheetahRenamedColumn {
    unsafe fn get(&self) -> (String, String) {
        // SAFETY: by the contract of the crate the texts are readable.
        unsafe { (self.from.text(), self.to.text()) }
    }
}

impl CheetahConstraints {
    pub(crate) unsafe fn get(&self) -> Result<Constraints> {
        // SAFETY: by the contract of the crate what is pointed to is initialised.
        let (columns, keys, constraints, renamed, copy_of) = unsafe {
            (
                slice(self.columns, self.column_count),
                slice(self.keys, self.key_count),
                slice(self.foreign_keys, self.foreign_key_count),
                slice(self.renamed, self.renamed_count),
                self.copy_of.text(),
            )
        };
        Ok(Constraints {
            description: Description {
                // SAFETY: as above, here and below.
                columns: columns.iter().map(|column| unsafe { column.get() }).collect(),
                // SAFETY: as above.
                keys: keys.iter().map(|key| unsafe { key.get() }).collect(),
            },
            // SAFETY: as above.
            foreign_keys: constraints.iter().map(|it| unsafe { it.get() }).collect::<Result<_>>()?,
            kept_count: self.kept_count,
            are_checked: self.are_checked != 0,
            copy_of: Some(copy_of).filter(|name| !name.is_empty()),
            // SAFETY: as above.
            renamed: renamed.iter().map(|column| unsafe { column.get() }).collect(),
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
#[derive(Clone, Copy, Debug)]
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
#[derive(Clone, Copy, Debug)]
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
    /// Whether rows of the child are checked. They are not if the child is a copy of a table that
    /// has the constraint.
    pub is_checked: u8,
}

/// Receives one constraint.
pub type CheetahForeignKeySink =
    unsafe extern "C" fn(context: *mut c_void, constraint: *const CheetahForeignKey);

/// A constraint, and the arrays to which its C form points.
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
        let names = |list: &[String]| list.iter().map(|name| CheetahBytes::of(name.as_bytes())).collect();
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
            index_name: side
                .as_ref()
                .map_or(CheetahBytes::EMPTY, |side| CheetahBytes::of(side.index_name.as_bytes())),
        };
        CheetahForeignKey {
            name: CheetahBytes::of(def.name.as_bytes()),
            child: CheetahBytes::of(child_name.as_bytes()),
            parent: CheetahBytes::of(def.parent.as_bytes()),
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
    fn find(&self, role: u8, no: usize) -> Option<&Lent> {
        self.0.get(usize::from(role))?.get(no)
    }
}

/// Returns the number of changes of definitions since the startup.
#[no_mangle]
pub unsafe extern "C" fn cheetah_definition_changes(db: *const CheetahDb) -> u64 {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    value(0, || db.0.definition_changes())
}

/// Passes the readable form of a table name to a sink.
pub type CheetahShowName = unsafe extern "C" fn(
    context: *mut c_void,
    name: CheetahBytes,
    sink: CheetahTextSink,
    sink_context: *mut c_void,
);

/// The function that shows names, and its context; called from any thread.
struct NameShower(CheetahShowName, *mut c_void);

// SAFETY: by the contract of `cheetah_show_names_with` the function may be called from any thread.
unsafe impl Send for NameShower {}
// SAFETY: as above.
unsafe impl Sync for NameShower {}

impl NameShower {
    fn show(&self, name: &str) -> String {
        let mut text = String::new();
        // SAFETY: the caller's function gets the caller's context, and a sink with its own.
        unsafe { self.0(self.1, CheetahBytes::of(name.as_bytes()), take_text, (&raw mut text).cast()) };
        text
    }
}

/// Sets the function that converts table names to readable names. It is called from any thread
/// until the database is closed. It gets the part of the name that follows the database.
#[no_mangle]
pub unsafe extern "C" fn cheetah_show_names_with(
    db: *const CheetahDb,
    show: CheetahShowName,
    context: *mut c_void,
) {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    let shower = NameShower(show, context);
    value((), || db.0.show_names_with(move |name| shower.show(name)));
}

/// Records a refusal by a constraint for the status of the engine. A long text is truncated.
#[no_mangle]
pub unsafe extern "C" fn cheetah_note_refused_by_constraint(db: *const CheetahDb, text: CheetahBytes) {
    // SAFETY: by the contract of the crate the handle is open and the text is readable.
    let (db, text) = unsafe { (&*db, text.text()) };
    value((), || db.0.note_refused_by_constraint(&text));
}

/// Returns the constraints of a table, and the indexes that they use; null if it has no
/// constraints, or after a panic.
#[no_mangle]
pub unsafe extern "C" fn cheetah_foreign_keys(
    db: *const CheetahDb,
    table: *const CheetahTable,
) -> *mut CheetahForeignKeys {
    // SAFETY: by the contract of the crate the handles are open.
    let (db, table) = unsafe { (&*db, &*table) };
    value(std::ptr::null_mut(), || {
        let lent = |list: Vec<ForeignKey>| list.into_iter().map(Lent::new).collect::<Vec<_>>();
        let as_child = lent(db.0.constraints_of_child(&table.table));
        let as_parent = lent(db.0.constraints_of_parent(&table.table));
        match as_child.is_empty() && as_parent.is_empty() {
            true => std::ptr::null_mut(),
            false => Box::into_raw(Box::new(CheetahForeignKeys([as_child, as_parent]))),
        }
    })
}

/// Lists the constraints that a new definition adds, in which the table is the child. `list`
/// becomes null if there are none.
#[no_mangle]
pub unsafe extern "C" fn cheetah_foreign_keys_to_add(
    db: *const CheetahDb,
    table: *const CheetahTable,
    constraints: *const CheetahConstraints,
    list: *mut *mut CheetahForeignKeys,
) -> i32 {
    // SAFETY: by the contract of the crate the handles are open, and the arguments are initialised.
    let (db, table, constraints, place) = unsafe { (&*db, &*table, &*constraints, &mut *list) };
    entry(|| {
        // SAFETY: as above.
        let new = db.0.constraints_to_add(&table.table, &unsafe { constraints.get() }?)?;
        let lent: Vec<_> = new.into_iter().map(Lent::new).collect();
        *place = match lent.is_empty() {
            true => std::ptr::null_mut(),
            false => Box::into_raw(Box::new(CheetahForeignKeys([lent, Vec::new()]))),
        };
        Ok(Code::Ok)
    })
}

/// Frees a list of constraints.
#[no_mangle]
pub unsafe extern "C" fn cheetah_free_foreign_keys(list: *mut CheetahForeignKeys) {
    // SAFETY: by the contract of the crate the handle is ours and not used again.
    value((), || drop(unsafe { Box::from_raw(list) }));
}

/// Returns the number of constraints in which the table has this `CheetahRole`.
#[no_mangle]
pub unsafe extern "C" fn cheetah_foreign_key_count(list: *const CheetahForeignKeys, role: u8) -> usize {
    // SAFETY: by the contract of the crate the handle is open.
    let list = unsafe { &*list };
    value(0, || list.0.get(usize::from(role)).map_or(0, Vec::len))
}

/// Gets one constraint of the list. Its pointers are valid until the list is freed.
#[no_mangle]
pub unsafe extern "C" fn cheetah_foreign_key(
    list: *const CheetahForeignKeys,
    role: u8,
    no: usize,
    constraint: *mut CheetahForeignKey,
) {
    // SAFETY: by the contract of the crate the handle is open, and there is room for the answer.
    let (list, place) = unsafe { (&*list, &mut *constraint) };
    value((), || {
        if let Some(lent) = list.find(role, no) {
            *place = lent.get();
        }
    });
}

/// Passes all constraints to the sink, ordered by child and name.
#[no_mangle]
pub unsafe extern "C" fn cheetah_list_foreign_keys(
    db: *const CheetahDb,
    sink: CheetahForeignKeySink,
    context: *mut c_void,
) -> i32 {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    entry(|| {
        for constraint in db.0.constraints() {
            let lent = Lent::new(constraint);
            // SAFETY: the caller's function gets the caller's context.
            unsafe { sink(context, &lent.get()) };
        }
        Ok(Code::Ok)
    })
}

/// Searches for a row of the other table: the parent for a child, the child for a parent. `key`:
/// the columns of the constraint, encoded as in the other table's index. Locks the row shared.
/// Returns `End` if no row exists, and `NoSuchTable` if the constraints must be loaded again.
#[no_mangle]
pub unsafe extern "C" fn cheetah_find_reference(
    txn: *mut CheetahTxn,
    list: *const CheetahForeignKeys,
    role: u8,
    no: usize,
    key: CheetahBytes,
) -> i32 {
    // SAFETY: by the contract of the crate the handles are open and the key is readable.
    let (txn, list, key) = unsafe { (&mut *txn, &*list, key.get()) };
    entry(|| {
        let constraint = list.find(role, no).map(|lent| &lent.constraint);
        let side = constraint.and_then(|it| {
            if role == CheetahRole::Child as u8 {
                it.parent.as_ref()
            } else {
                it.child.as_ref()
            }
        });
        let Some(side) = side else { return Ok(Code::End) };
        Ok(if txn.0.find_reference(side, key)? { Code::Ok } else { Code::End })
    })
}

/// Opens a cursor over the parent's index of a constraint in which the table is the child. The
/// cursor reads a snapshot. Returns `NoSuchTable` if the constraints must be loaded again.
#[no_mangle]
pub unsafe extern "C" fn cheetah_open_parents(
    txn: *mut CheetahTxn,
    list: *const CheetahForeignKeys,
    no: usize,
    cursor: *mut *mut CheetahCursor,
) -> i32 {
    // SAFETY: by the contract of the crate the handles are open.
    let (txn, list, place) = unsafe { (&mut *txn, &*list, &mut *cursor) };
    entry(|| {
        let side = list.find(CheetahRole::Child as u8, no).and_then(|lent| lent.constraint.parent.as_ref());
        let Some(side) = side else { return Ok(Code::End) };
        *place = CheetahCursor::boxed(txn.0.cursor_on_parents(side)?);
        Ok(Code::Ok)
    })
}

/// Opens a cursor over the child's index of a constraint in which the table is the parent. The
/// cursor takes exclusive locks on the rows that it reads.
#[no_mangle]
pub unsafe extern "C" fn cheetah_open_children(
    txn: *mut CheetahTxn,
    list: *const CheetahForeignKeys,
    no: usize,
    cursor: *mut *mut CheetahCursor,
) -> i32 {
    // SAFETY: by the contract of the crate the handles are open.
    let (txn, list, place) = unsafe { (&mut *txn, &*list, &mut *cursor) };
    entry(|| {
        let side = list.find(CheetahRole::Parent as u8, no).and_then(|lent| lent.constraint.child.as_ref());
        let Some(side) = side else { return Ok(Code::End) };
        *place = CheetahCursor::boxed(txn.0.cursor_on_children(side)?);
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

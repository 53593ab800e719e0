//! Foreign keys: the indexes they use, the checks of new definitions, and their changes when tables
//! are renamed.
//!
//! Invariants
//!   F1 to F13 of docs/developers/decisions/0046-foreign-keys.md. Here:
//!   - A foreign key refers to its parent by name. The catalog knows the children of each name.
//!   - Tables whose names begin with `#sql` are the server's own: copies that it fills, and tables
//!     that gave their names to such copies. The foreign keys that a copy has inherited are not in
//!     force: the original remains the child and the parent (F5).

use super::catalog::Catalog;
use super::handle::Table;
use super::tables::{Followed, Tables};
use crate::base::{sound, ConstraintProblem, Error, Result, TableId};
use crate::format::catalog::TableDef;
use crate::format::foreign_key::{ColumnDef, Description, ForeignKeyAction, ForeignKeyDef};
use std::sync::{Arc, Weak};

/// Columns and foreign keys of a table to create or alter.
#[derive(Clone, Default, Debug)]
pub struct Constraints {
    /// Its columns and keys.
    pub description: Description,
    /// All foreign keys of the table; existing ones come first.
    pub foreign_keys: Vec<ForeignKeyDef>,
    /// The number of existing foreign keys.
    pub kept_count: usize,
    /// Whether parents must exist.
    pub are_checked: bool,
    /// The table that this one is a copy of, if any.
    pub copy_of: Option<String>,
    /// Columns that it keeps under new names: pairs of old and new name.
    pub renamed: Vec<(String, String)>,
}

impl Constraints {
    fn new_names(&self, names: &[String]) -> Vec<String> {
        let new = |name: &String| self.renamed.iter().find(|(old, _)| same_name(old, name));
        names.iter().map(|name| new(name).map_or(name, |(_, new)| new).clone()).collect()
    }
}

/// A foreign key, and the indexes that it uses now.
#[derive(Clone, Debug)]
pub struct ForeignKey {
    /// The foreign key.
    pub def: ForeignKeyDef,
    /// The name of the child.
    pub child_name: String,
    /// The child's index, if there is one.
    pub child: Option<KeySide>,
    /// The parent's index; none if the parent or a suitable index is missing.
    pub parent: Option<KeySide>,
}

/// An index that begins with the columns of a foreign key.
#[derive(Clone, Debug)]
pub struct KeySide {
    /// Its table. Weak, so that a copy does not keep the trees of a dropped table on disk.
    table: Weak<Table>,
    /// Its position there.
    pub index_no: usize,
    /// Its name.
    pub index_name: String,
    /// The columns, in the order of the foreign key.
    pub columns: Vec<KeyColumn>,
    /// Whether the columns are the complete clustered key.
    pub is_row_key: bool,
}

impl KeySide {
    /// Its table; `NoSuchTable` if the table was dropped.
    pub fn table(&self) -> Result<Arc<Table>> {
        self.table.upgrade().ok_or_else(|| Error::NoSuchTable("of a constraint".into()))
    }
}

/// A column of a foreign key in an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyColumn {
    /// Its position in the table.
    pub column: u32,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Whether the key part is descending.
    pub descending: bool,
}

/// A table, and its foreign keys from now on.
pub(in crate::table) type Constrained = (Arc<Table>, Vec<ForeignKeyDef>);

/// The tables that prevent a table from being dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Referenced {
    /// None: foreign keys wait for a table with this name.
    Ignored,
    /// Children in any database.
    Refused,
    /// Children in other databases; children in the same database are dropped with it.
    RefusedElsewhere,
}

/// Whether the server uses this name for a copy, or for a table that gave its name to one.
pub(in crate::table) fn is_intermediate(name: &str) -> bool {
    name.rsplit('/').next().is_some_and(|table| table.starts_with("#sql"))
}

fn database_of(name: &str) -> &str {
    name.split_once('/').map_or("", |(database, _)| database)
}

fn same_name(one: &str, other: &str) -> bool {
    one == other || one.to_lowercase() == other.to_lowercase()
}

impl Description {
    fn column(&self, name: &str) -> Option<&ColumnDef> {
        self.columns.iter().find(|column| same_name(&column.name, name))
    }

    fn side(&self, index_no: usize, names: &[String]) -> Option<Vec<KeyColumn>> {
        let parts = self.keys.get(index_no).filter(|parts| parts.len() >= names.len())?;
        let column = |(part, name): (&crate::format::foreign_key::KeyPartDef, &String)| {
            let column = self.columns.get(part.column as usize)?;
            let fits = same_name(&column.name, name) && !part.is_prefix;
            fits.then_some(KeyColumn {
                column: part.column,
                nullable: column.nullable,
                descending: part.descending,
            })
        };
        parts.iter().zip(names).map(column).collect()
    }

    /// Finds the first index that `usable` accepts and that begins with the columns of `names`.
    fn find(&self, names: &[String], usable: impl Fn(usize) -> bool) -> Option<(usize, Vec<KeyColumn>)> {
        (0..self.keys.len())
            .filter(|&index_no| usable(index_no))
            .find_map(|index_no| Some((index_no, self.side(index_no, names)?)))
    }

    fn kinds_fit(&self, names: &[String], other: &Description, other_names: &[String]) -> bool {
        names.iter().zip(other_names).all(|(name, other_name)| {
            match (self.column(name), other.column(other_name)) {
                (Some(one), Some(other)) => one.kind == other.kind,
                _ => false,
            }
        })
    }
}

fn side_of(table: &Arc<Table>, names: &[String]) -> Option<KeySide> {
    let description = &table.def().description;
    let (index_no, columns) = description.find(names, |index_no| !table.is_disabled(index_no))?;
    let is_row_key =
        index_no == 0 && description.keys.first().is_some_and(|parts| parts.len() == columns.len());
    let index_name = table.indexes().get(index_no).map_or_else(String::new, |index| index.name.clone());
    Some(KeySide { table: Arc::downgrade(table), index_no, index_name, columns, is_row_key })
}

/// Finds the indexes that a foreign key of `child` uses now.
fn resolve(tables: &Tables, child: &Arc<Table>, def: ForeignKeyDef) -> ForeignKey {
    let parent = tables.parent(&def.parent).and_then(|parent| {
        let kinds_fit =
            child.def().description.kinds_fit(&def.columns, &parent.def().description, &def.parent_columns);
        kinds_fit.then(|| side_of(&parent, &def.parent_columns)).flatten()
    });
    let side = side_of(child, &def.columns);
    ForeignKey { child_name: child.name(), child: side, parent, def }
}

/// Returns the table's own foreign keys, sorted by name, never those of a half-changed definition:
/// a caller that read the number of changes before may cache the result until that number grows
/// (F14).
pub(crate) fn of_child(catalog: &Catalog, table: &Arc<Table>) -> Vec<ForeignKey> {
    let before = (!sound!(true, "foreign keys: look while definitions change")).then(|| table.foreign_keys());
    let mut list: Vec<_> = catalog.look(|tables| {
        let constraints = before.unwrap_or_else(|| table.foreign_keys());
        constraints.iter().map(|def| resolve(tables, table, def.clone())).collect()
    });
    list.sort_by(|one, other| one.def.name.cmp(&other.def.name));
    list
}

/// Returns the foreign keys that refer to the table in InnoDB's order of processing: by the
/// parent's index, the child's database, and name. Never those of a half-changed definition.
pub(crate) fn of_parent(catalog: &Catalog, table: &Arc<Table>) -> Vec<ForeignKey> {
    let before = (!sound!(true, "foreign keys: look while definitions change")).then(|| table.name());
    let mut list = Vec::new();
    catalog.look(|tables| {
        let name = before.unwrap_or_else(|| table.name());
        for child in tables.children_of(&name) {
            let constraints = child.foreign_keys();
            let of_it = constraints.iter().filter(|def| def.parent == name && !def.inherited);
            list.extend(of_it.map(|def| resolve(tables, &child, def.clone())));
        }
    });
    list.sort_by(|one, other| {
        let key = |it: &'_ ForeignKey| {
            let index_no = it.parent.as_ref().map(|side| side.index_no);
            (index_no, database_of(&it.child_name).to_owned(), it.def.name.clone())
        };
        key(one).cmp(&key(other))
    });
    list
}

/// The foreign keys of a new definition, with the current names of parents and their columns, which
/// may have been renamed since the statement began.
pub(in crate::table) fn kept(table: &Table, new: &Constraints) -> Vec<ForeignKeyDef> {
    let (had, name) = (table.foreign_keys(), table.name());
    let mut list = new.foreign_keys.clone();
    for def in list.iter_mut().take(new.kept_count) {
        let Some(now) = had.iter().find(|it| same_name(&it.name, &def.name)) else { continue };
        def.parent.clone_from(&now.parent);
        // The statement gives the names of the table's own columns.
        if now.parent != name {
            def.parent_columns.clone_from(&now.parent_columns);
        }
    }
    list
}

/// Returns the other tables whose foreign keys name columns of `table` that its new definition
/// renames, with their new foreign keys (F13).
pub(in crate::table) fn after_columns(
    catalog: &Catalog,
    table: &Table,
    constraints: &Constraints,
) -> Vec<Constrained> {
    let name = table.name();
    if !sound!(!constraints.renamed.is_empty(), "foreign keys: children keep old names of columns") {
        return Vec::new();
    }
    let children = catalog.children_of(&name).into_iter().filter(|child| child.id() != table.id());
    let follow = |child: Arc<Table>| {
        let had = child.foreign_keys();
        let mut list = had.as_ref().clone();
        for def in list.iter_mut().filter(|def| def.parent == name) {
            def.parent_columns = constraints.new_names(&def.parent_columns);
        }
        (list != *had).then_some((child, list))
    };
    children.filter_map(follow).collect()
}

/// Whether a foreign key uses the index, which must then be kept.
pub(in crate::table) fn serves(catalog: &Catalog, table: &Arc<Table>, index_no: usize) -> bool {
    let of = |side: &Option<KeySide>| side.as_ref().is_some_and(|side| side.index_no == index_no);
    of_child(catalog, table).iter().any(|it| of(&it.child))
        || of_parent(catalog, table).iter().any(|it| of(&it.parent))
}

pub(crate) fn all(catalog: &Catalog) -> Vec<ForeignKey> {
    let tables = catalog.names().into_iter().filter(|name| !is_intermediate(name));
    tables
        .filter_map(|name| catalog.by_name(&name).ok())
        .flat_map(|table| of_child(catalog, &table))
        .collect()
}

fn refusal(problem: ConstraintProblem, detail: String) -> Error {
    Error::Constraint { problem, detail }
}

/// The error for dropping an index on these columns that a foreign key uses.
fn index_is_needed(table: Option<&Arc<Table>>, columns: &[String]) -> Error {
    let side = table.and_then(|table| side_of(table, columns));
    refusal(ConstraintProblem::IndexIsNeeded, side.map_or_else(String::new, |side| side.index_name))
}

fn listed(names: &[String]) -> String {
    names.join(", ")
}

/// The foreign keys that `table` would get with a new definition, and the indexes they would use.
/// Returns `Constraint` if the definition is not allowed.
pub(crate) fn of_definition(
    catalog: &Catalog,
    table: &Arc<Table>,
    constraints: &Constraints,
) -> Result<Vec<ForeignKey>> {
    let description = &constraints.description;
    let mut def = TableDef {
        description: description.clone(),
        foreign_keys: kept(table, constraints),
        ..table.definition()
    };
    check_with(catalog, &mut def, constraints, Some(table), &|_| true)?;
    let resolved = |def: ForeignKeyDef| {
        let found = catalog.by_name(&def.parent).ok();
        let parent = found.and_then(|parent| side_of(&parent, &def.parent_columns));
        let child = description.find(&def.columns, |_| true).map(|(index_no, columns)| KeySide {
            table: Arc::downgrade(table),
            index_no,
            index_name: String::new(),
            columns,
            is_row_key: false,
        });
        ForeignKey { child_name: table.name(), child, parent, def }
    };
    Ok(def.foreign_keys.into_iter().skip(constraints.kept_count).map(resolved).collect())
}

/// Checks that a table may have the foreign keys of its new definition, and that foreign keys that
/// refer to it still have an index. Gives column names the spelling used in the tables. `old`: the
/// table if it is altered in place. The caller holds the DDL lock.
pub(in crate::table) fn check(
    catalog: &Catalog,
    def: &mut TableDef,
    constraints: &Constraints,
    old: Option<&Arc<Table>>,
) -> Result<()> {
    check_whole(def)?;
    if def.id.is_temporary() {
        return Ok(());
    }
    let kept: Vec<_> = def.indexes.iter().map(|index| !index.disabled).collect();
    let usable = |index_no: usize| kept.get(index_no).is_some_and(|&it| it);
    check_with(catalog, def, constraints, old, &usable)
}

/// Like [`check`]; `usable`: whether an index of the table is kept.
fn check_with(
    catalog: &Catalog,
    def: &mut TableDef,
    constraints: &Constraints,
    old: Option<&Arc<Table>>,
    usable: &dyn Fn(usize) -> bool,
) -> Result<()> {
    let name = constraints.copy_of.clone().unwrap_or_else(|| def.name.clone());
    let before = old.cloned().or_else(|| catalog.by_name(constraints.copy_of.as_deref()?).ok());
    let description = def.description.clone();
    let change = Change { catalog, name: &name, before: before.as_ref(), old, constraints, usable };
    for (no, constraint) in def.foreign_keys.iter_mut().enumerate() {
        change.check_constraint(&description, no, constraint)?;
    }
    if constraints.are_checked || description.is_empty() {
        check_referenced(catalog, &name, constraints, usable)?;
    }
    Ok(())
}

struct Change<'c> {
    catalog: &'c Catalog,
    /// Its name, or its original's if it is a copy.
    name: &'c str,
    /// The current table with this name.
    before: Option<&'c Arc<Table>>,
    /// The same table, if it is altered in place.
    old: Option<&'c Arc<Table>>,
    constraints: &'c Constraints,
    usable: &'c dyn Fn(usize) -> bool,
}

impl Change<'_> {
    fn check_constraint(
        &self,
        description: &Description,
        no: usize,
        constraint: &mut ForeignKeyDef,
    ) -> Result<()> {
        let Self { catalog, name, before, constraints, usable, .. } = *self;
        let is_new = no >= constraints.kept_count;
        let had = before.filter(|_| !is_new);
        let (child_was_served, parent_was_served) =
            had.map_or((false, false), |had| was_served(catalog, had, &constraint.name));
        let may_lack = !is_new && (!child_was_served || !constraints.are_checked);
        check_child(before, description, constraint, is_new, may_lack, usable)?;
        if is_new {
            let others = constraints.foreign_keys.get(..no).unwrap_or_default();
            check_name(catalog, name, None, constraint, others)?;
        }
        match is_new || parent_was_served {
            true => self.check_parent_of(description, is_new, constraint),
            false => Ok(()),
        }
    }

    fn check_parent_of(
        &self,
        description: &Description,
        is_new: bool,
        constraint: &mut ForeignKeyDef,
    ) -> Result<()> {
        let Self { catalog, name, before, old, constraints, usable } = *self;
        let is_own = constraint.parent == name;
        let parent = match is_own {
            // Existing rows refer to the table's present columns.
            true => old.filter(|_| is_new).cloned(),
            false => catalog.by_name(&constraint.parent).ok(),
        };
        let has_to_be_there = is_new && constraints.are_checked && !is_own;
        if parent.is_none() && !is_own && !has_to_be_there {
            return Ok(());
        }
        if !is_new && is_own && description.find(&constraint.parent_columns, usable).is_none() {
            return match constraints.are_checked {
                true => Err(index_is_needed(before, &constraint.parent_columns)),
                false => Ok(()),
            };
        }
        check_parent(parent.as_ref(), description, constraint, has_to_be_there, usable)
    }
}

/// Whether a foreign key of the table had an index in the table, and one in its parent.
fn was_served(catalog: &Catalog, table: &Arc<Table>, name: &str) -> (bool, bool) {
    let had = table.foreign_keys().iter().find(|had| same_name(&had.name, name)).cloned();
    let had = had.map(|had| catalog.look(|tables| resolve(tables, table, had)));
    had.map_or((false, false), |had| (had.child.is_some(), had.parent.is_some()))
}

/// Checks that the catalog record can hold the columns and foreign keys of a definition (I1 and I3
/// of [`crate::format::foreign_key`]). A temporary table, which is not logged, has no foreign keys.
fn check_whole(def: &TableDef) -> Result<()> {
    let add = |detail: &str| Err(refusal(ConstraintProblem::CannotAdd, detail.into()));
    if def.id.is_temporary() && !def.foreign_keys.is_empty() {
        return add("temporary tables cannot have foreign keys");
    }
    let Description { columns, keys } = &def.description;
    if keys.len() != (if columns.is_empty() { 0 } else { def.indexes.len() }) {
        return add("the description does not match the indexes");
    }
    if keys.iter().flatten().any(|part| part.column as usize >= columns.len()) {
        return add("a key part names a column that does not exist");
    }
    let is_odd = |it: &ForeignKeyDef| it.columns.is_empty() || it.columns.len() != it.parent_columns.len();
    match def.foreign_keys.iter().any(is_odd) {
        true => add("a constraint has no columns, or not as many as on its parent's side"),
        false => Ok(()),
    }
}

/// Checks the child's side. `before`: the table before the change; `may_lack`: whether the foreign
/// key may lack an index.
fn check_child(
    before: Option<&Arc<Table>>,
    description: &Description,
    constraint: &mut ForeignKeyDef,
    is_new: bool,
    may_lack: bool,
    usable: &dyn Fn(usize) -> bool,
) -> Result<()> {
    let add = ConstraintProblem::CannotAdd;
    for name in &mut constraint.columns {
        let Some(column) = description.column(name) else {
            return Err(refusal(add, format!("the table has no column '{name}'")));
        };
        name.clone_from(&column.name);
        let sets_null = [constraint.on_delete, constraint.on_update].contains(&ForeignKeyAction::SetNull);
        if sets_null && !column.nullable {
            return Err(refusal(add, format!("SET NULL, but column '{name}' is NOT NULL")));
        }
    }
    if may_lack || description.find(&constraint.columns, usable).is_some() {
        return Ok(());
    }
    let columns = listed(&constraint.columns);
    match is_new {
        true => Err(refusal(add, format!("no index of the table begins with the whole columns {columns}"))),
        false => Err(index_is_needed(before, &constraint.columns)),
    }
}

/// Checks that the name of a foreign key is unique in its database. `renamed`: the table that is to
/// be renamed to `table`.
fn check_name(
    catalog: &Catalog,
    table: &str,
    renamed: Option<&Arc<Table>>,
    constraint: &ForeignKeyDef,
    others: &[ForeignKeyDef],
) -> Result<()> {
    let taken = |list: &[ForeignKeyDef]| list.iter().any(|other| same_name(&other.name, &constraint.name));
    let is_elsewhere = |child: &Arc<Table>| {
        let name = name_before(child);
        let is_same = name == table || renamed.is_some_and(|renamed| renamed.id() == child.id());
        !name.is_empty() && !is_same && database_of(&name) == database_of(table)
    };
    let children = catalog.children();
    let elsewhere = children.iter().filter(|child| is_elsewhere(child));
    if taken(others) || elsewhere.map(|child| child.foreign_keys()).any(|list| taken(&list)) {
        let detail = format!("constraint '{}' exists already in the database", constraint.name);
        return Err(refusal(ConstraintProblem::NameIsTaken, detail));
    }
    Ok(())
}

/// Checks the parent's side. Without a parent in `found`, the table's own new definition is used,
/// unless the parent must exist.
fn check_parent(
    found: Option<&Arc<Table>>,
    own: &Description,
    constraint: &mut ForeignKeyDef,
    has_to_be_there: bool,
    usable: &dyn Fn(usize) -> bool,
) -> Result<()> {
    let add = ConstraintProblem::CannotAdd;
    if found.is_none() && has_to_be_there {
        let detail = format!("the engine has no table '{}' to refer to", constraint.parent);
        return Err(refusal(add, detail));
    }
    let parent = found.map_or(own, |parent| &parent.def().description);
    let kept = |index_no: usize| found.map_or_else(|| usable(index_no), |it| !it.is_disabled(index_no));
    if parent.is_empty() {
        let detail = format!(
            "table '{}' cannot take part in constraints: it is system-versioned, or of a version without \
             them (ALTER TABLE .. FORCE converts it)",
            constraint.parent
        );
        return Err(refusal(add, detail));
    }
    for name in &mut constraint.parent_columns {
        let Some(column) = parent.column(name) else {
            return Err(refusal(add, format!("table '{}' has no column '{name}'", constraint.parent)));
        };
        name.clone_from(&column.name);
    }
    let columns = listed(&constraint.parent_columns);
    if parent.find(&constraint.parent_columns, kept).is_none() {
        let detail =
            format!("no index of table '{}' begins with the whole columns {columns}", constraint.parent);
        return Err(refusal(add, detail));
    }
    match own.kinds_fit(&constraint.columns, parent, &constraint.parent_columns) {
        true => Ok(()),
        false => {
            let detail =
                format!("columns {} and {columns} are of different types", listed(&constraint.columns));
            Err(refusal(add, detail))
        }
    }
}

/// Checks that other tables' foreign keys that refer to `name` have an index in its new definition,
/// if they had one in the old definition, or wait for the table.
fn check_referenced(
    catalog: &Catalog,
    name: &str,
    constraints: &Constraints,
    usable: &dyn Fn(usize) -> bool,
) -> Result<()> {
    let description = &constraints.description;
    let before = catalog.by_name(name).ok();
    let is_other = |child: &Arc<Table>| child.name() != name && !is_intermediate(&child.name());
    for child in catalog.children_of(name).into_iter().filter(is_other) {
        for constraint in child.foreign_keys().iter().filter(|constraint| constraint.parent == name) {
            let was_served =
                before.as_ref().is_some_and(|table| side_of(table, &constraint.parent_columns).is_some());
            let columns = constraints.new_names(&constraint.parent_columns);
            let fits = description.kinds_fit(&columns, &child.def().description, &constraint.columns);
            let served = fits && description.find(&columns, usable).is_some();
            if served || (before.is_some() && !was_served) {
                continue;
            }
            if was_served && fits {
                return Err(index_is_needed(before.as_ref(), &constraint.parent_columns));
            }
            let (constraint, child) = (&constraint.name, child.name());
            let detail = format!(
                "constraint '{constraint}' of table '{child}' has no matching columns or index in it"
            );
            return Err(refusal(ConstraintProblem::CannotAdd, detail));
        }
    }
    Ok(())
}

/// Checks that no child prevents the table from being dropped.
pub(in crate::table) fn check_drop(catalog: &Catalog, name: &str, referenced: Referenced) -> Result<()> {
    if referenced == Referenced::Ignored || is_intermediate(name) {
        return Ok(());
    }
    let keeps = |child: &Arc<Table>| {
        let is_child = child.foreign_keys().iter().any(|it| it.parent == name && !it.inherited);
        let child = child.name();
        is_child
            && child != name
            && (referenced == Referenced::Refused || database_of(&child) != database_of(name))
    };
    match catalog.children_of(name).iter().find(|child| keeps(child)) {
        None => Ok(()),
        Some(child) => {
            let detail = format!("table '{name}' is referenced by table '{}'", child.name());
            Err(refusal(ConstraintProblem::IsReferenced, detail))
        }
    }
}

/// Checks that a table's foreign keys still have unique names after the table is renamed to `to`.
/// `changed`: the result of [`after_rename`].
pub(in crate::table) fn check_rename(
    catalog: &Catalog,
    table: &Arc<Table>,
    to: &str,
    changed: &[Constrained],
) -> Result<()> {
    let from = name_before(table);
    if is_intermediate(to) || from.is_empty() {
        return Ok(());
    }
    let moves = database_of(to) != database_of(&from);
    let had = table.foreign_keys();
    let is_new = |it: &&ForeignKeyDef| moves || !had.iter().any(|before| before.name == it.name);
    let own = changed.first().into_iter().flat_map(|(_, own)| own);
    own.filter(is_new).try_for_each(|it| check_name(catalog, to, Some(table), it, &[]))
}

/// The table's name as users know it: a copy has its original's; empty for any other table with an
/// intermediate name.
fn name_before(table: &Table) -> String {
    let name = table.name();
    if is_intermediate(&name) {
        table.copy_of()
    } else {
        name
    }
}

/// Returns the tables whose foreign keys change when `table` is renamed to `to`, `table` itself
/// first, with their new foreign keys.
pub(in crate::table) fn after_rename(catalog: &Catalog, table: &Arc<Table>, to: &str) -> Vec<Constrained> {
    let from = name_before(table);
    let mut own = table.foreign_keys().as_ref().clone();
    if is_intermediate(to) {
        return vec![(Arc::clone(table), own)];
    }
    own.iter_mut().for_each(|constraint| constraint.inherited = false);
    if let Some(followed) = catalog.followed(table.id()).filter(|followed| followed.from == to) {
        return come_back(catalog, (Arc::clone(table), own), &followed);
    }
    // ALTER TABLE .. RENAME: a copy gets another name than its original's.
    let of_partition = to.split("#P#").next() == Some(from.as_str());
    if from.is_empty() || from == to || of_partition {
        return vec![(Arc::clone(table), own)];
    }
    let generated = (generated_name(catalog, &from), generated_name(catalog, to));
    for constraint in &mut own {
        if let Some(number) = constraint.name.strip_prefix(generated.0.as_str()) {
            constraint.name = format!("{}{number}", generated.1);
        }
    }
    follow(&mut own, &from, to);
    let mut changed = vec![(Arc::clone(table), own)];
    for child in catalog.children_of(&from).into_iter().filter(|child| child.id() != table.id()) {
        let mut list = child.foreign_keys().as_ref().clone();
        follow(&mut list, &from, to);
        changed.push((child, list));
    }
    changed
}

fn follow(list: &mut [ForeignKeyDef], from: &str, to: &str) {
    for constraint in list.iter_mut().filter(|constraint| constraint.parent == from) {
        to.clone_into(&mut constraint.parent);
    }
}

/// Returns the foreign keys that refer to a table again when it gets its old name back, after they
/// had followed its copy to another name. The table's own foreign keys come first.
fn come_back(catalog: &Catalog, renamed: Constrained, followed: &Followed) -> Vec<Constrained> {
    let mut changed = vec![renamed];
    for (id, _) in &followed.constraints {
        if changed.iter().all(|(table, _)| table.id() != *id) {
            let child = catalog.by_id(*id).map(|child| (child.foreign_keys().as_ref().clone(), child));
            changed.extend(child.map(|(list, child)| (child, list)));
        }
    }
    for (table, list) in &mut changed {
        let id = table.id();
        let comes = |it: &&mut ForeignKeyDef| {
            let is_it = |(child, name): &(TableId, String)| *child == id && *name == it.name;
            it.parent == followed.to && followed.constraints.iter().any(is_it)
        };
        list.iter_mut().filter(comes).for_each(|it| it.parent.clone_from(&followed.from));
    }
    changed
}

/// The name prefix of foreign keys that were given no name.
fn generated_name(catalog: &Catalog, table: &str) -> String {
    format!("{}_ibfk_", catalog.shown(table.rsplit('/').next().unwrap_or(table)))
}

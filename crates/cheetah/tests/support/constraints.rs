//! Tables with the same description and constraints between them, and a model of changes of these
//! constraints.

use super::steps;
use super::*;
use cheetah::testing::base::reach;
use cheetah::testing::format::foreign_key::{
    ColumnDef, Description, ForeignKeyAction, ForeignKeyDef, KeyPartDef,
};
use cheetah::testing::table::{Alteration, AlteredIndex, Constraints, ForeignKey, IndexFrom, KeySide};
use cheetah_io::Rng;
use ForeignKeyAction::{Cascade, NoAction, Restrict};

/// The columns and keys of tables of [`spec`]. The name of a row consists of the parent's key and
/// of the row's position.
pub fn description() -> Description {
    let column = |(name, kind, nullable): (&str, u8, bool)| ColumnDef {
        name: name.into(),
        kind: vec![kind],
        nullable,
    };
    let columns =
        [("id", 1, false), ("of", 1, true), ("place", 1, true), ("number", 1, false), ("text", 2, true)];
    let part = |&column: &u32| KeyPartDef { column, descending: false, is_prefix: false };
    let keys = [&[0][..], &[1, 2], &[3]];
    let keys = keys.map(|parts| parts.iter().map(part).collect()).into();
    Description { columns: columns.map(column).into(), keys }
}

/// The constraint that `column` references this column of the parent.
pub fn refers(name: &str, column: &str, (parent, parent_column): (&str, &str)) -> ForeignKeyDef {
    ForeignKeyDef {
        name: name.into(),
        columns: vec![column.into()],
        parent: parent.into(),
        parent_columns: vec![parent_column.into()],
        on_delete: Cascade,
        on_update: NoAction,
        inherited: false,
    }
}

/// New constraints of a table with this description.
pub fn with(foreign_keys: &[ForeignKeyDef]) -> Constraints {
    let (description, foreign_keys) = (description(), foreign_keys.to_vec());
    Constraints {
        description,
        foreign_keys,
        kept_count: 0,
        are_checked: true,
        copy_of: None,
        renamed: Vec::new(),
    }
}

pub fn create(db: &Db, name: &str, foreign_keys: &[ForeignKeyDef]) -> Arc<Table> {
    db.create_table_with(&spec(name), &with(foreign_keys)).unwrap()
}

/// Alters a table so that only these indexes remain.
pub fn alter(db: &Db, name: &str, indexes: &[usize], constraints: Option<Constraints>) -> Result<()> {
    let table = db.table(name)?;
    let kept =
        |&no: &usize| AlteredIndex { name: table.indexes()[no].name.clone(), from: IndexFrom::Kept(no) };
    let (indexes, extra, mark) = (indexes.iter().map(kept).collect(), table.extra().to_vec(), vec![1]);
    db.alter_tables(&[Alteration { constraints, extra, mark, ..Alteration::of_indexes(table, indexes) }])
}

/// A row with a position among the children of a parent.
pub fn child(number: u64, parent: u64, place: u64) -> Row {
    let name = [parent.to_be_bytes(), place.to_be_bytes()].concat();
    Row { number, name, text: Vec::new() }
}

/// A constraint as a line of text, with its supporting indexes.
fn line(child: &str, def: &ForeignKeyDef, own: Option<&str>, parent: Option<(&str, &str)>) -> String {
    let ForeignKeyDef { name, columns, parent: refers_to, parent_columns, on_delete, on_update, .. } = def;
    format!(
        "{child} {name}: {columns:?} by {own:?} to {refers_to} {parent_columns:?} by {parent:?}, \
         {on_delete:?} {on_update:?}"
    )
}

fn lines(list: &[ForeignKey]) -> Vec<String> {
    let of = |it: &ForeignKey| {
        let side = |side: &Option<KeySide>| {
            side.as_ref().map(|side| (side.table().unwrap().name(), side.index_name.clone()))
        };
        let (own, parent) = (side(&it.child), side(&it.parent));
        assert!(own.iter().all(|(child, _)| *child == it.child_name));
        let parent = parent.as_ref().map(|(name, index)| (name.as_str(), index.as_str()));
        line(&it.child_name, &it.def, own.as_ref().map(|(_, index)| index.as_str()), parent)
    };
    list.iter().map(of).collect()
}

const NAMES: [&str; 5] = ["db/a", "db/b", "db/c", "db/d", "other/a"];

/// For each table, whether it has a description, and the constraints of which the table is the
/// child.
#[derive(Clone, Default)]
pub struct Model {
    tables: BTreeMap<String, (bool, Vec<ForeignKeyDef>)>,
    constraints_made: u64,
}

impl Model {
    fn is_described(&self, name: &str) -> bool {
        self.tables.get(name).is_some_and(|table| table.0)
    }

    /// Each constraint, with its parent.
    fn lines(&self) -> Vec<(String, String)> {
        let index = |columns: &[String]| match columns[0].as_str() {
            "id" => "PRIMARY",
            "of" => "name",
            _ => "number",
        };
        let mut lines = Vec::new();
        for (name, (is_described, list)) in &self.tables {
            let mut list = list.clone();
            list.sort_by(|one, other| one.name.cmp(&other.name));
            for def in list {
                let parent = (def.parent.as_str(), index(&def.parent_columns));
                let parent = (*is_described && self.is_described(&def.parent)).then_some(parent);
                let line = line(name, &def, is_described.then(|| index(&def.columns)), parent);
                lines.push((def.parent, line));
            }
        }
        lines
    }

    /// Random constraints to tables that have a description or do not exist.
    fn some(&mut self, child: &str, rng: &mut Rng) -> Vec<ForeignKeyDef> {
        let parents: Vec<_> = NAMES
            .into_iter()
            .filter(|name| !self.tables.contains_key(*name) || self.is_described(name))
            .collect();
        let count = if parents.is_empty() { 0 } else { rng.below(3) };
        let one = |_| {
            self.constraints_made += 1;
            let (table, number) = (child.rsplit('/').next().unwrap(), self.constraints_made);
            let name = if rng.chance(0.5) { format!("{table}_ibfk_{number}") } else { format!("C{number}") };
            let column = ["of", "number"][rng.below(2) as usize];
            let parent = parents[rng.below(parents.len() as u64) as usize];
            let def = refers(&name, column, (parent, ["id", "number"][rng.below(2) as usize]));
            ForeignKeyDef { on_update: [Restrict, Cascade][rng.below(2) as usize], ..def }
        };
        (0..count).map(one).collect()
    }

    /// Renames a table. Older handles remain valid, and have the new names.
    fn rename(&mut self, db: &Db, from: &str, to: &str) {
        let before: Vec<_> = self.tables.keys().map(|name| db.table(name).unwrap()).collect();
        db.rename_table(from, to).unwrap();
        let short = |name: &str| format!("{}_ibfk_", name.rsplit('/').next().unwrap());
        let mut renamed = self.tables.remove(from).unwrap();
        for def in &mut renamed.1 {
            def.name = def.name.replace(&short(from), &short(to));
        }
        self.tables.insert(to.into(), renamed);
        let all = self.tables.values_mut().flat_map(|table| &mut table.1);
        all.filter(|def| def.parent == from).for_each(|def| def.parent = to.into());
        for table in before {
            assert_eq!(*table.foreign_keys(), self.tables[&table.name()].1);
            assert!(!table.is_dropped() && db.begin().count(&table).is_ok());
        }
    }
}

impl steps::Model for Model {
    /// Makes one change of the catalog, or a change that affects no constraint.
    fn step(&mut self, db: &Db, rng: &mut Rng) {
        let name = NAMES[rng.below(5) as usize];
        if !self.tables.contains_key(name) {
            let new = self.some(name, rng);
            let constraints = Constraints { are_checked: false, ..with(&new) };
            db.create_table_with(&spec(name), &constraints).unwrap();
            self.tables.insert(name.into(), (true, new));
            return;
        }
        match rng.below(10) {
            0..=3 => {
                let free: Vec<_> =
                    NAMES.into_iter().filter(|name| !self.tables.contains_key(*name)).collect();
                if !free.is_empty() {
                    self.rename(db, name, free[rng.below(free.len() as u64) as usize]);
                }
            }
            4..=5 => {
                let mut list = self.tables[name].1.clone();
                list.retain(|_| rng.chance(0.7));
                let kept_count = list.len();
                list.extend(self.some(name, rng));
                let constraints = Constraints { kept_count, are_checked: false, ..with(&list) };
                alter(db, name, &[0, 1, 2], Some(constraints)).unwrap();
                self.tables.insert(name.into(), (true, list));
            }
            6 => {
                alter(db, name, &[0, 1, 2], None).unwrap();
                self.tables.get_mut(name).unwrap().0 = false;
            }
            7 => load(db, &db.truncate_table(name).unwrap()),
            8 => {
                let (table, mut txn) = (db.truncate_table(name).unwrap(), db.begin());
                (0..9).for_each(|no| insert(&mut txn, &table, no, &child(no, no, no)).unwrap());
                txn.commit().unwrap();
            }
            _ => {
                db.drop_table(name).unwrap();
                self.tables.remove(name);
            }
        }
    }

    /// Checks the tables and constraints.
    fn check(&self, db: &Db) -> std::result::Result<(), String> {
        let (now, names) = (lines(&db.constraints()), db.table_names());
        let expected: Vec<_> = self.lines().into_iter().map(|(_, line)| line).collect();
        if now != expected || !names.iter().eq(self.tables.keys()) {
            return Err(format!("{now:#?} of {names:?}, expected {expected:#?}"));
        }
        for (name, (is_described, _)) in &self.tables {
            let table = db.table(name).unwrap();
            let (mut of_it, mut expected) = (lines(&db.constraints_of_parent(&table)), self.lines());
            expected.retain(|(parent, _)| parent == name);
            of_it.sort_unstable();
            expected.sort_by(|one, other| one.1.cmp(&other.1));
            if !of_it.iter().eq(expected.iter().map(|(_, line)| line)) {
                return Err(format!("{of_it:#?} reference {name}, expected {expected:#?}"));
            }
            let expected = if *is_described { description() } else { Description::default() };
            if table.def().description != expected {
                return Err(format!("{name} is described as {:?}", table.def().description));
            }
            check(db, &table).unwrap().map_err(|findings| format!("{name}: {findings:?}"))?;
        }
        Ok(())
    }
}

/// Loads rows into an empty table that other sessions see. The loaded table replaces the empty
/// table.
pub fn load(db: &Db, table: &Arc<Table>) {
    let taken = reach::count("a load takes its place");
    let mut txn = db.begin();
    let mut to = txn.begin_load_to_commit(table).unwrap().unwrap();
    for no in 0..100u64 {
        let row = Row { text: vec![7; 200], ..child(no, no % 5, no) };
        let [name, number] = row.keys();
        let secondary = [(1, &name, &b"p"[..]), (2, &number, b"")]
            .map(|(index_no, key, payload)| SecondaryEntry { index_no, key, payload, check_unique: true });
        let (key, row) = (no.to_be_bytes(), row.stored());
        txn.load(&mut to, &NewRow { key: &key, row: &row, secondary: &secondary }).unwrap();
    }
    txn.finish_load(&mut to).unwrap();
    txn.commit().unwrap();
    assert!(reach::count("a load takes its place") > taken || !cfg!(debug_assertions));
}

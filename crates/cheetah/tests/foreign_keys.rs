//! Foreign keys. They survive power cuts and follow renamed tables and columns. Invalid foreign
//! keys are refused. No transaction commits a child without a parent
//! (docs/developers/decisions/0046-foreign-keys.md).

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::planted::plant;
use cheetah::testing::base::{reach, ConstraintProblem, Error, Result};
use cheetah::testing::db::{Db, Isolation, Read, SeekMode, Transaction};
use cheetah::testing::format::foreign_key::{Description, ForeignKeyAction, ForeignKeyDef};
use cheetah::testing::table::{Constraints, ForeignKey, KeySide, Referenced, Table};
use cheetah_io::sim::{explore, CrashPolicy, Image, Plan, SimDisk};
use cheetah_io::Rng;
use std::sync::Arc;
use std::thread;
use support::constraints::{alter, child, create, load, refers, with, Model};
use support::families::{family, orphans, sides, work, Generations};
use support::steps::survives;
use support::*;
use ConstraintProblem::{CannotAdd, IndexIsNeeded, IsReferenced, NameIsTaken};

#[test]
fn constraints_are_those_of_before_or_after_every_change_whenever_power_is_cut() {
    (1..=20).try_for_each(|seed| survives::<Model>(seed, 16)).unwrap();
    assert!(reach::count("catalog change redone") > 0 || !cfg!(debug_assertions));
    let bug = plant("ddl: return before the log is durable");
    assert!((1..=20).any(|seed| survives::<Model>(seed, 16).is_err()) && bug.reached_count() > 0);
}

#[test]
fn rows_go_with_their_parents_whenever_power_is_cut() {
    (1..=20).try_for_each(|seed| survives::<Generations>(seed, 16)).unwrap();
    for bug in [
        "log: skip the sync of a commit",
        "commit: lose the last change",
        "savepoint: leave the first change",
    ] {
        let planted = plant(bug);
        let caught = (1..=20).any(|seed| survives::<Generations>(seed, 16).is_err());
        assert!(caught && planted.reached_count() > 0, "{bug}");
    }
}

#[test]
fn a_parent_of_many_children_is_renamed_and_they_follow() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    create(&db, "db/p", &[]);
    for no in 0..150 {
        create(&db, &format!("db/c{no}"), &[refers(&format!("C{no}"), "of", ("db/p", "id"))]);
    }
    db.rename_table("db/p", "db/q").unwrap();
    for db in [&db, &open(&disk.crash(CrashPolicy::SyncedOnly, 1)).unwrap()] {
        let list = db.constraints_of_parent(&db.table("db/q").unwrap());
        assert_eq!(list.iter().filter(|it| it.child.is_some() && it.parent.is_some()).count(), 150);
    }
}

/// Reads constraints while another thread renames the parent. Returns the number of reads, at most
/// 1, in which a side was missing although no definition changed during the read.
fn half_changed(renames: usize) -> usize {
    let db = open(&SimDisk::new()).unwrap();
    let parent = create(&db, "db/p", &[]);
    let child = create(&db, "db/c", &[refers("C", "of", ("db/p", "id"))]);
    let (mut missing, names) = (0, ["db/p", "db/q"]);
    thread::scope(|scope| {
        let renaming = scope.spawn(|| {
            for no in 0..renames {
                db.rename_table(names[no % 2], names[(no + 1) % 2]).unwrap();
            }
        });
        while missing == 0 && !renaming.is_finished() {
            let changes = db.definition_changes();
            let lists = [db.constraints_of_child(&child), db.constraints_of_parent(&parent)];
            let is_whole = lists.iter().all(|list| list.len() == 1 && list[0].parent.is_some());
            missing += usize::from(!is_whole && db.definition_changes() == changes);
        }
    });
    missing
}

#[test]
fn f14_constraints_are_seen_as_before_or_after_a_change() {
    assert_eq!(half_changed(3000), 0);
    let planted = plant("foreign keys: look while definitions change");
    assert!((0..200).any(|_| half_changed(3000) > 0) && planted.reached_count() > 0);
}

/// Asserts that the result is a refusal with this problem and this part of the message.
#[track_caller]
fn refused<T>(result: Result<T>, expected: ConstraintProblem, part: &str) {
    match result.map(drop) {
        Err(Error::Constraint { problem, detail }) if problem == expected && detail.contains(part) => {}
        other => panic!("{other:?} in place of {expected:?}, '{part}'"),
    }
}

#[test]
fn constraints_that_cannot_be_are_refused() {
    let (_disk, db) = family();
    let described = |name: &str, change: &dyn Fn(&mut Description)| {
        let mut constraints = with(&[]);
        change(&mut constraints.description);
        db.create_table_with(&spec(name), &constraints).unwrap();
    };
    db.create_table(&spec("db/plain")).unwrap();
    described("db/short", &|it| it.keys[1][0].is_prefix = true);
    described("db/words", &|it| it.keys[2][0].column = 4);
    let new = |def: ForeignKeyDef| with(&[def]);
    let sets_null =
        ForeignKeyDef { on_update: ForeignKeyAction::SetNull, ..refers("n", "number", ("db/p", "id")) };
    let mut short = new(refers("n", "of", ("db/p", "id")));
    short.description.keys[1][0].is_prefix = true;
    for (constraints, part) in [
        (new(refers("n", "of", ("db/none", "id"))), "no table 'db/none'"),
        (new(refers("n", "of", ("db/words", "text"))), "of different types"),
        (new(refers("n", "place", ("db/p", "id"))), "no index of the table begins with"),
        (short, "no index of the table begins with"),
        (new(refers("n", "of", ("db/p", "place"))), "no index of table 'db/p' begins with"),
        (new(refers("n", "of", ("db/short", "of"))), "no index of table 'db/short' begins with"),
        (new(refers("n", "of", ("db/n", "place"))), "no index of table 'db/n' begins with"),
        (new(refers("n", "none", ("db/p", "id"))), "the table has no column 'none'"),
        (new(refers("n", "of", ("db/p", "none"))), "'db/p' has no column 'none'"),
        (new(sets_null), "SET NULL, but column 'number' is NOT NULL"),
        (new(refers("n", "of", ("db/plain", "id"))), "'db/plain' cannot take part"),
    ] {
        refused(db.create_table_with(&spec("db/n"), &constraints), CannotAdd, part);
        refused(alter(&db, "db/short", &[0, 1, 2], Some(constraints.clone())), CannotAdd, "");
        let has_to_wait = Constraints { are_checked: false, ..constraints };
        let waits = db.create_table_with(&spec("db/n"), &has_to_wait);
        assert_eq!(waits.is_ok(), part.contains("db/none"), "{part}");
        drop(waits.map(|_| db.drop_table("db/n").unwrap()));
    }
    // A constraint whose parent does not exist yet accepts only a suitable parent.
    let waits = Constraints { are_checked: false, ..new(refers("n", "OF", ("db/none", "ID"))) };
    let table = db.create_table_with(&spec("db/n"), &waits).unwrap();
    let parent =
        || db.constraints_of_child(&table)[0].parent.as_ref().map(|side| side.table().unwrap().name());
    assert_eq!((table.foreign_keys()[0].columns[0].as_str(), parent()), ("of", None));
    refused(db.create_table(&spec("db/none")), CannotAdd, "constraint 'n' of table 'db/n'");
    let mut other = with(&[]);
    other.description.columns[0].kind = vec![3];
    refused(db.create_table_with(&spec("db/none"), &other), CannotAdd, "has no matching columns or index");
    other.are_checked = false;
    db.create_table_with(&spec("db/none"), &other).unwrap();
    assert_eq!(parent(), None);
    // The constraint remains unresolved when its child changes.
    for are_checked in [false, true] {
        let kept = Constraints { kept_count: 1, are_checked, ..waits.clone() };
        alter(&db, "db/n", &[0, 1, 2], Some(kept)).unwrap();
    }
    db.drop_table("db/none").unwrap();
    create(&db, "db/none", &[]);
    let table = db.table("db/n").unwrap();
    assert!(db.constraints_of_child(&table)[0].parent.is_some());
}

#[test]
fn a_name_of_a_constraint_is_one_of_its_database() {
    let (_disk, db) = family();
    let new = |name: &str| refers(name, "number", ("db/p", "id"));
    let taken = |name: &str, list: &[ForeignKeyDef]| {
        refused(db.create_table_with(&spec(name), &with(list)), NameIsTaken, "exists already");
    };
    taken("db/d", &[new("C_IBFK_1")]);
    taken("db/d", &[new("one"), new("ONE")]);
    let kept = refers("c_ibfk_1", "of", ("db/p", "id"));
    let both = |name| Constraints { kept_count: 1, ..with(&[kept.clone(), new(name)]) };
    refused(alter(&db, "db/c", &[0, 1, 2], Some(both("C_ibfk_1"))), NameIsTaken, "C_ibfk_1");
    let to_add = db.constraints_to_add(&db.table("db/c").unwrap(), &both("two")).unwrap();
    let sides = to_add.iter().map(|it| (it.def.name.as_str(), it.child.is_some(), it.parent.is_some()));
    assert_eq!(sides.collect::<Vec<_>>(), [("two", true, true)]);
    let of_c = db.constraints_to_add(&db.table("db/c").unwrap(), &both("c_ibfk_1"));
    refused(of_c, NameIsTaken, "c_ibfk_1");
    create(&db, "other/d", &[new("c_ibfk_1")]);
    refused(db.rename_table("other/d", "db/d"), NameIsTaken, "c_ibfk_1");
    // The name that a rename generates may be in use, too.
    create(&db, "db/e", &[new("D_ibfk_1")]);
    refused(db.rename_table("db/c", "db/d"), NameIsTaken, "d_ibfk_1");
    db.rename_table("db/c", "db/f").unwrap();
    taken("db/d", &[new("F_ibfk_1")]);
    create(&db, "db/d", &[new("c_ibfk_1")]);
    // ALTER TABLE .. RENAME by copy checks names in the same way. A table does not conflict with
    // its own constraints.
    create(&db, "other/f", &[new("named")]);
    create(&db, "db/g", &[new("Named"), new("g_ibfk_1")]);
    copy(&db, "db/g", &db.table("db/g").unwrap().foreign_keys()).unwrap();
    db.rename_table("db/g", BACKUP).unwrap();
    refused(db.rename_table(COPY, "other/g"), NameIsTaken, "Named");
    refused(db.rename_table(COPY, "db/D"), NameIsTaken, "D_ibfk_1");
    db.rename_table(COPY, "db/G").unwrap();
    db.drop_table(BACKUP).unwrap();
    db.rename_table("db/G", "db/g").unwrap();
    assert_eq!(db.table("db/g").unwrap().foreign_keys()[1].name, "g_ibfk_1");
}

#[test]
fn children_keep_their_parent_and_indexes_that_serve() {
    let (_disk, db) = family();
    let own = [refers("own", "of", ("db/p", "number")), refers("self", "of", ("db/s", "number"))];
    create(&db, "db/s", &own);
    db.drop_table("db/c").unwrap();
    create(&db, "other/c", &[refers("c", "of", ("db/p", "id"))]);
    for (referenced, by) in [(Referenced::Refused, "'db/s'"), (Referenced::RefusedElsewhere, "'other/c'")] {
        refused(db.drop_table_unless("db/p", referenced), IsReferenced, by);
        refused(db.truncate_table_unless("db/p", referenced), IsReferenced, by);
    }
    db.drop_table("other/c").unwrap();
    // A table can be emptied although its own rows refer to it.
    db.truncate_table_unless("db/s", Referenced::Refused).unwrap();
    let kept = |are_checked| Constraints { kept_count: 2, are_checked, ..with(&own) };
    let without = |no: usize, mut constraints: Constraints| {
        constraints.description.keys.remove(no);
        Some(constraints)
    };
    // The needed index belongs to the child, to the parent, or to a table that is both.
    refused(alter(&db, "db/s", &[0, 2], without(1, kept(true))), IndexIsNeeded, "name");
    refused(alter(&db, "db/p", &[0, 1], without(2, with(&[]))), IndexIsNeeded, "number");
    refused(alter(&db, "db/s", &[0, 1], without(2, kept(true))), IndexIsNeeded, "number");
    let unchecked = || Constraints { are_checked: false, ..with(&[]) };
    let serves = || {
        let list = db.constraints_of_child(&db.table("db/s").unwrap());
        list.iter().map(|it| (it.child.is_some(), it.parent.is_some())).collect::<Vec<_>>()
    };
    assert_eq!(serves(), [(true, true), (true, true)]);
    alter(&db, "db/p", &[0, 1], without(2, unchecked())).unwrap();
    assert_eq!(serves(), [(true, false), (true, true)]);
    alter(&db, "db/s", &[0, 1], without(2, kept(false))).unwrap();
    assert_eq!(serves(), [(true, false), (true, false)]);
    let mut only_rows = kept(false);
    only_rows.description.keys.truncate(1);
    alter(&db, "db/s", &[0], Some(only_rows.clone())).unwrap();
    assert_eq!(serves(), [(false, false), (false, false)]);
    // Later changes do not require an index that no longer supports a constraint.
    alter(&db, "db/s", &[0], Some(Constraints { are_checked: true, ..only_rows })).unwrap();
    db.drop_table_unless("db/p", Referenced::RefusedElsewhere).unwrap();
    db.drop_table_unless("db/s", Referenced::Refused).unwrap();
}

const COPY: &str = "db/#sql-alter-1";
const BACKUP: &str = "db/#sql-backup-1";

/// Creates a copy of a table. `list` has those of the table's constraints that the copy inherits.
fn copy(db: &Db, original: &str, list: &[ForeignKeyDef]) -> Result<Arc<Table>> {
    let inherited = list.iter().map(|def| ForeignKeyDef { inherited: true, ..def.clone() });
    let foreign_keys = inherited.collect::<Vec<_>>();
    let (kept_count, copy_of) = (foreign_keys.len(), Some(original.into()));
    db.create_table_with(&spec(COPY), &Constraints { foreign_keys, kept_count, copy_of, ..with(&[]) })
}

/// The constraints as the child and the parent see them, without their columns.
fn seen(db: &Db, child: &str, parent: &str) -> (Vec<String>, Vec<String>) {
    let of_child = db.constraints_of_child(&db.table(child).unwrap());
    let of_parent = db.constraints_of_parent(&db.table(parent).unwrap());
    let name =
        |side: &Option<KeySide>| side.as_ref().map_or("nothing".into(), |side| side.table().unwrap().name());
    let to = |it: &ForeignKey| format!("{} to {} in {}", it.def.name, it.def.parent, name(&it.parent));
    let by = |it: &ForeignKey| format!("{} of {} in {}", it.def.name, it.child_name, name(&it.child));
    (of_child.iter().map(to).collect(), of_parent.iter().map(by).collect())
}

fn one(text: &str) -> Vec<String> {
    vec![text.into()]
}

#[test]
fn a_copy_of_a_child_keeps_nobody_and_its_original_does_until_it_goes() {
    let (disk, db) = family();
    let constraint = refers("c_ibfk_1", "of", ("db/p", "id"));
    let found = |parent: &str| {
        let side = db.constraints_of_parent(&db.table(parent).unwrap())[0].child.clone().unwrap();
        db.begin().find_reference(&side, &1u64.to_be_bytes()).unwrap()
    };
    let keeps = |parent: &str, child: &str| {
        refused(db.drop_table_unless(parent, Referenced::Refused), IsReferenced, child);
        refused(db.truncate_table_unless(parent, Referenced::Refused), IsReferenced, child);
    };
    copy(&db, "db/c", std::slice::from_ref(&constraint)).unwrap();
    assert_eq!(seen(&db, COPY, "db/p").1, one("c_ibfk_1 of db/c in db/c"));
    keeps("db/p", "'db/c'");
    db.rename_table("db/c", BACKUP).unwrap();
    assert_eq!(seen(&db, BACKUP, "db/p").1, one(&format!("c_ibfk_1 of {BACKUP} in {BACKUP}")));
    assert!(found("db/p") && db.constraints().is_empty());
    keeps("db/p", BACKUP);
    // Both constraints follow their parent at every rename.
    db.rename_table("db/p", "db/q").unwrap();
    keeps("db/q", BACKUP);
    for db in [&db, &open(&disk.crash(CrashPolicy::SyncedOnly, 1)).unwrap()] {
        let backup = one(&format!("c_ibfk_1 of {BACKUP} in {BACKUP}"));
        assert_eq!(seen(db, COPY, "db/q"), (one("c_ibfk_1 to db/q in db/q"), backup));
        assert!(db.table(COPY).unwrap().foreign_keys()[0].inherited);
    }
    assert!(found("db/q"));
    db.rename_table(COPY, "db/c").unwrap();
    db.drop_table(BACKUP).unwrap();
    for db in [&db, &open(&disk.crash(CrashPolicy::SyncedOnly, 1)).unwrap()] {
        let expected = (one("c_ibfk_1 to db/q in db/q"), one("c_ibfk_1 of db/c in db/c"));
        assert_eq!(seen(db, "db/c", "db/q"), expected);
        assert!(!db.table("db/c").unwrap().foreign_keys()[0].inherited);
    }
    // The parent's name in the statement may be out of date when the copy is made.
    let copied = copy(&db, "db/c", &[constraint]).unwrap();
    assert_eq!(copied.foreign_keys()[0].parent, "db/q");
    db.rename_table("db/c", BACKUP).unwrap();
    db.rename_table(COPY, "db/k").unwrap();
    db.drop_table(BACKUP).unwrap();
    let expected = (one("k_ibfk_1 to db/q in db/q"), one("k_ibfk_1 of db/k in db/k"));
    assert_eq!(seen(&db, "db/k", "db/q"), expected);
    copy(&db, "db/k", &db.table("db/k").unwrap().foreign_keys()).unwrap();
    db.drop_table("db/k").unwrap();
    db.truncate_table_unless("db/q", Referenced::Refused).unwrap();
    db.drop_table(COPY).unwrap();
    // A constraint that only the copy has protects its parent at once.
    let copied = Constraints { copy_of: Some("db/k".into()), ..with(&[refers("new", "of", ("db/q", "id"))]) };
    db.create_table_with(&spec(COPY), &copied).unwrap();
    assert_eq!(seen(&db, COPY, "db/q").1, one(&format!("new of {COPY} in {COPY}")));
    keeps("db/q", COPY);
}

/// An ALTER TABLE .. RENAME by copy fails after its last rename. The server reverts the renames;
/// then power is cut.
fn take_a_renamed_copy_back() -> std::result::Result<(), String> {
    let (disk, db) = family();
    let waits = Constraints { are_checked: false, ..with(&[refers("waits", "of", ("db/r", "id"))]) };
    db.create_table_with(&spec("db/w"), &waits).unwrap();
    let own = refers("own", "of", ("db/p", "id"));
    alter(&db, "db/p", &[0, 1, 2], Some(with(std::slice::from_ref(&own)))).unwrap();
    copy(&db, "db/p", &[own]).unwrap();
    db.rename_table("db/p", BACKUP).unwrap();
    db.rename_table(COPY, "db/r").unwrap();
    let to = |name: &str| db.constraints_of_child(&db.table(name).unwrap())[0].def.parent.clone();
    assert_eq!([to("db/c"), to("db/w"), to("db/r"), to(BACKUP)], ["db/r"; 4]);
    db.checkpoint().unwrap();
    db.drop_table("db/r").unwrap();
    db.rename_table(BACKUP, "db/p").unwrap();
    for db in [&db, &open(&disk.crash(CrashPolicy::SyncedOnly, 1)).unwrap()] {
        let to = |name: &str| {
            let it = db.constraints_of_child(&db.table(name).unwrap()).remove(0);
            (it.def.parent, it.parent.map(|side| side.table().unwrap().name()))
        };
        let is_back = ("db/p".to_owned(), Some("db/p".to_owned()));
        let seen = [to("db/c"), to("db/p"), to("db/w")];
        if seen != [is_back.clone(), is_back, ("db/r".into(), None)] {
            return Err(format!("{seen:?}"));
        }
    }
    // When the original is dropped, the engine forgets which constraints followed its renames.
    copy(&db, "db/p", &[]).unwrap();
    db.rename_table("db/p", BACKUP).unwrap();
    db.rename_table(COPY, "db/s").unwrap();
    db.drop_table(BACKUP).unwrap();
    create(&db, "db/p", &[]);
    db.rename_table("db/p", BACKUP).unwrap();
    db.rename_table(BACKUP, "db/p").unwrap();
    assert_eq!(to("db/c"), "db/s");
    Ok(())
}

#[test]
fn constraints_come_back_from_a_copy_whose_new_name_is_given_up() {
    take_a_renamed_copy_back().unwrap();
}

#[test]
fn a_rename_that_is_logged_without_its_constraints_is_caught() {
    let bug = plant("foreign keys: log a rename without the constraints that follow");
    assert!(take_a_renamed_copy_back().is_err() && bug.reached_count() > 0);
}

#[test]
fn names_that_nobody_has_given_follow_what_people_call_the_table() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    db.show_names_with(|name| name.replace("@0024", "$"));
    create(&db, "db/p", &[]);
    let list = [refers("c$_ibfk_7", "of", ("db/p", "id")), refers("c@0024_ibfk_2", "of", ("db/p", "id"))];
    create(&db, "db/c@0024", &list);
    let names = |db: &Db, table: &str| {
        let list = db.constraints_of_child(&db.table(table).unwrap());
        list.into_iter().map(|it| it.def.name).collect::<Vec<_>>()
    };
    db.rename_table("db/c@0024", "db/d@0024@0024").unwrap();
    let renamed = ["c@0024_ibfk_2", "d$$_ibfk_7"];
    assert_eq!(names(&db, "db/d@0024@0024"), renamed);
    // Redo does not know table names as users write them.
    let db = open(&disk.crash(CrashPolicy::SyncedOnly, 1)).unwrap();
    assert_eq!(names(&db, "db/d@0024@0024"), renamed);
    db.show_names_with(|name| name.replace("@0024", "$"));
    copy(&db, "db/d@0024@0024", &db.table("db/d@0024@0024").unwrap().foreign_keys()).unwrap();
    db.rename_table("db/d@0024@0024", BACKUP).unwrap();
    db.rename_table(COPY, "db/e@0024").unwrap();
    assert_eq!(names(&db, "db/e@0024"), ["c@0024_ibfk_2", "e$_ibfk_7"]);
}

/// The names of the two columns of `db/p` that constraints reference. One of these constraints
/// belongs to `db/p` itself.
type Names = [&'static str; 2];
const NAMES: [Names; 5] =
    [["id", "number"], ["key", "number"], ["number", "key"], ["Number", "id"], ["id", "number"]];

fn named(names: Names) -> Constraints {
    let mut constraints = with(&[refers("self", "of", ("db/p", names[0]))]);
    for (no, name) in [0, 3].into_iter().zip(names) {
        constraints.description.columns[no].name = name.into();
    }
    constraints
}

fn rename_columns(db: &Db, before: Names, after: Names) -> Result<()> {
    let renamed = before.iter().zip(after).map(|(&from, to)| (from.into(), to.into())).collect();
    alter(db, "db/p", &[0, 1, 2], Some(Constraints { kept_count: 1, renamed, ..named(after) }))
}

/// Creates a parent, children that reference each of its columns, and a copy of a child.
fn children_by_name(db: &Db) {
    db.create_table_with(&spec("db/p"), &named(NAMES[0])).unwrap();
    create(db, "db/c", &[refers("first", "of", ("db/p", "id"))]);
    create(
        db,
        "db/d",
        &[refers("second", "number", ("db/p", "number")), refers("of_c", "of", ("db/c", "id"))],
    );
    copy(db, "db/c", &db.table("db/c").unwrap().foreign_keys()).unwrap();
}

/// Checks that all referencing tables use these column names.
fn are_called(db: &Db, names: Names) -> std::result::Result<(), String> {
    let table = |name: &str| db.table(name).map_err(|error| error.to_string());
    let description = table("db/p")?.def().description.clone();
    let mut seen = vec![description.columns[0].name.clone(), description.columns[3].name.clone()];
    for name in ["db/p", "db/c", "db/d", COPY] {
        let list = db.constraints_of_child(&table(name)?);
        seen.extend(list.iter().map(|it| it.def.parent_columns.join(",")));
        if list.iter().any(|it| it.child.is_none() || it.parent.is_none()) {
            return Err(format!("'{name}' has a constraint without a supporting index: {list:?}"));
        }
    }
    let [first, second] = names;
    match seen == [first, second, first, first, "id", second, first] {
        true => Ok(()),
        false => Err(format!("{seen:?} instead of {names:?}")),
    }
}

#[test]
fn children_know_columns_by_their_new_names_whenever_power_is_cut() {
    for seed in 1..=4 {
        let workload = |disk: &SimDisk| {
            let (db, mut rng) = (open(disk).unwrap(), Rng::new(seed));
            children_by_name(&db);
            let handle = db.table("db/c").unwrap();
            disk.acknowledge(1);
            for step in 1..NAMES.len() {
                rename_columns(&db, NAMES[step - 1], NAMES[step]).unwrap();
                disk.acknowledge(step as u64 + 1);
                are_called(&db, NAMES[step]).unwrap();
                assert!(!handle.is_dropped() && db.begin().count(&handle).is_ok());
                if rng.chance(0.3) {
                    db.checkpoint().unwrap();
                }
            }
        };
        let judge = |image: &Image| {
            let db = open(&image.disk).map_err(|error| error.to_string())?;
            let Some(done) = (image.acknowledged as usize).checked_sub(1) else { return Ok(()) };
            let before = are_called(&db, NAMES[done]);
            before.or_else(|before| match NAMES.get(done + 1) {
                Some(&names) => are_called(&db, names).map_err(|after| format!("{before}\nnor {after}")),
                None => Err(before),
            })
        };
        let explored = explore(&Plan::quick(seed, 30), &SimDisk::new(), workload, judge);
        explored.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    }
}

#[test]
fn children_that_keep_old_names_of_columns_are_caught() {
    let db = open(&SimDisk::new()).unwrap();
    children_by_name(&db);
    let bug = plant("foreign keys: children keep old names of columns");
    rename_columns(&db, NAMES[0], NAMES[1]).unwrap();
    assert!(are_called(&db, NAMES[1]).is_err() && bug.reached_count() > 0);
}

#[test]
fn a_statement_that_began_before_a_column_was_renamed_has_the_new_name() {
    let db = open(&SimDisk::new()).unwrap();
    children_by_name(&db);
    rename_columns(&db, NAMES[0], NAMES[1]).unwrap();
    let old = Constraints { kept_count: 1, ..with(&[refers("first", "of", ("db/p", "id"))]) };
    assert!(db.constraints_to_add(&db.table("db/c").unwrap(), &old).unwrap().is_empty());
    alter(&db, "db/c", &[0, 1, 2], Some(old)).unwrap();
    are_called(&db, NAMES[1]).unwrap();
    // The new name also finds the supporting index.
    let mut without = Constraints { kept_count: 1, ..named(NAMES[0]) };
    without.renamed = vec![("key".into(), "id".into())];
    without.description.keys.remove(2);
    refused(alter(&db, "db/p", &[0, 1], Some(without)), IndexIsNeeded, "number");
    are_called(&db, NAMES[1]).unwrap();
}

#[test]
fn a_parent_serves_while_its_copy_takes_its_place() {
    let (disk, db) = family();
    let kid = db.table("db/c").unwrap();
    let found = |key: u64| {
        let side = db.constraints_of_child(&kid)[0].parent.clone().unwrap();
        db.begin().find_reference(&side, &key.to_be_bytes()).unwrap()
    };
    let mut short = Constraints { copy_of: Some("db/p".into()), ..with(&[]) };
    short.description.keys[0][0].is_prefix = true;
    refused(db.create_table_with(&spec(COPY), &short), IndexIsNeeded, "PRIMARY");
    for (name, is_taken_back) in [("db/p", true), ("db/p", false), ("db/r", false)] {
        let (table, mut txn) = (copy(&db, "db/p", &[]).unwrap(), db.begin());
        [1, 2].iter().for_each(|&no| insert(&mut txn, &table, no, &child(no, 0, 0)).unwrap());
        txn.commit().unwrap();
        db.rename_table("db/p", BACKUP).unwrap();
        assert_eq!(seen(&db, "db/c", COPY), (one(&format!("c_ibfk_1 to db/p in {BACKUP}")), vec![]));
        assert!(found(1));
        if is_taken_back {
            db.rename_table(BACKUP, "db/p").unwrap();
            db.drop_table(COPY).unwrap();
            assert!(found(1) && !found(2));
            continue;
        }
        db.rename_table(COPY, name).unwrap();
        db.drop_table(BACKUP).unwrap();
        assert!(found(1) && found(2));
        for db in [&db, &open(&disk.crash(CrashPolicy::SyncedOnly, 1)).unwrap()] {
            let expected = (one(&format!("c_ibfk_1 to {name} in {name}")), one("c_ibfk_1 of db/c in db/c"));
            assert_eq!(seen(db, "db/c", name), expected);
        }
    }
}

/// A later rename of a former copy must not end an ALTER TABLE of its original. This is so after a
/// restart, and also after a load replaced the copy.
#[test]
fn a_table_that_was_a_copy_once_leaves_the_children_of_its_original_alone() {
    let (disk, db) = family();
    let emptied = copy(&db, "db/p", &[]).unwrap();
    db.rename_table(COPY, "db/r").unwrap();
    let again = with(&[refers("c_ibfk_1", "of", ("db/p", "id"))]);
    alter(&db, "db/c", &[0, 1, 2], Some(again)).unwrap();
    db.checkpoint().unwrap();
    let restarted = open(&disk.crash(CrashPolicy::SyncedOnly, 1)).unwrap();
    load(&db, &emptied);
    for db in [restarted, db] {
        db.rename_table("db/r", BACKUP).unwrap();
        db.rename_table(BACKUP, "db/r").unwrap();
        assert_eq!(seen(&db, "db/c", "db/p").1, one("c_ibfk_1 of db/c in db/c"));
    }
}

#[test]
fn nobody_commits_a_child_without_a_parent() {
    for level in [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable] {
        let mut all = [0; 4];
        for seed in 1..=6 {
            let (orphans, outcomes, _) = work(seed, level, None);
            assert_eq!(orphans, [0; 0], "seed {seed} at {level:?}");
            (0..4).for_each(|no| all[no] += outcomes[no]);
        }
        assert!(all.iter().all(|&count| count > 10), "the test proves nothing: {all:?} at {level:?}");
    }
}

#[test]
fn a_search_that_looks_at_the_snapshot_is_caught() {
    for level in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
        let mut reached_count = 0;
        let caught = (1..=40).any(|seed| {
            let (orphans, _, reached) = work(seed, level, Some("foreign keys: look at the snapshot"));
            reached_count += reached;
            !orphans.is_empty()
        });
        assert!(reached_count > 0 && caught, "{level:?}: reached {reached_count} times");
    }
}

/// Deletes a parent. The search for its children waits for the row of a child, while the child's
/// entry moves backward. Returns the resulting orphans, and the number of times the bug was
/// reached.
fn move_a_child_that_is_waited_for(level: Isolation, bug: Option<&'static str>) -> (Vec<u64>, u64) {
    let (_disk, db) = family();
    let (kid, parent) = sides(&db);
    let [mut mover, mut remover] = [db.begin(), db.begin()].map(|mut txn| {
        txn.set_isolation(level);
        txn.set_lock_wait(60_000_000_000);
        txn
    });
    let end = |txn: &mut Transaction, done: Result<bool>| match done {
        Ok(true) => txn.commit().unwrap(),
        Ok(false) | Err(Error::Deadlock) => txn.rollback().unwrap(),
        Err(error) => panic!("{error}"),
    };
    let row = read_as(&mut mover, &kid.table().unwrap(), 1, Read::Exclusive).unwrap().unwrap();
    let reached = std::thread::scope(|scope| {
        let remover = scope.spawn(|| {
            let planted = bug.map(plant);
            delete(&mut remover, &parent.table().unwrap(), 1, &child(1, 0, 0)).unwrap();
            let found = remover.find_reference(&kid, &1u64.to_be_bytes());
            end(&mut remover, found.map(|found| !found));
            planted.map_or(0, |bug| bug.reached_count())
        });
        let waits = || db.status().iter().any(|&(name, count)| name == "lock_waits_current" && count > 0);
        until("the search waits", waits);
        let moved = update(&mut mover, &kid.table().unwrap(), 1, &row, 1, &child(1, 1, 3));
        end(&mut mover, moved.map(|()| true));
        remover.join().unwrap()
    });
    (orphans(&db), reached)
}

#[test]
fn a_child_that_moves_back_while_it_is_waited_for_is_found() {
    for level in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
        assert_eq!(move_a_child_that_is_waited_for(level, None).0, [0; 0], "{level:?}");
    }
}

#[test]
fn a_search_that_locks_no_ranges_is_caught() {
    let bug = Some("foreign keys: lock no ranges");
    let (orphans, reached) = move_a_child_that_is_waited_for(Isolation::ReadCommitted, bug);
    assert_eq!(orphans, [1]);
    assert!(reached > 0);
}

/// A search for children uses an old handle.
#[test]
fn a_table_that_was_emptied_is_told_and_one_that_was_loaded_is_found() {
    let (_disk, db) = family();
    let find = |side: &KeySide| db.begin().find_reference(side, &1u64.to_be_bytes());
    let (before, _) = sides(&db);
    assert!(find(&before).unwrap());
    db.truncate_table("db/c").unwrap();
    assert!(matches!(find(&before), Err(Error::NoSuchTable(_))));
    let (empty, _) = sides(&db);
    assert!(!find(&empty).unwrap());
    let held = empty.table().unwrap();
    load(&db, &held);
    assert!(find(&empty).unwrap() && held.has_moved());
    drop(held);
    assert!(matches!(find(&empty), Err(Error::NoSuchTable(_))), "a side does not keep its old table");
    assert!(!sides(&db).0.table().unwrap().has_moved());
}

#[test]
fn rows_that_have_changed_since_the_snapshot_are_references_under_snapshot_isolation() {
    for (own, of_parent) in [("of", "id"), ("number", "number")] {
        let db = open(&SimDisk::new()).unwrap();
        let parents = create(&db, "db/p", &[]);
        let children = create(&db, "db/c", &[refers("c", own, ("db/p", of_parent))]);
        let (mut first, mut second) = (db.begin(), db.begin());
        for key in 1..=2 {
            insert(&mut first, &parents, key, &child(key, 0, 0)).unwrap();
            insert(&mut first, &children, key, &child(key, key, 5)).unwrap();
        }
        first.commit().unwrap();
        second.set_isolation(Isolation::RepeatableRead);
        second.set_snapshot_isolation(true);
        second.take_snapshot().unwrap();
        update(&mut first, &parents, 1, &child(1, 0, 0), 1, &child(1, 7, 7)).unwrap();
        update(&mut first, &children, 1, &child(1, 1, 5), 1, &child(1, 1, 3)).unwrap();
        delete(&mut first, &parents, 2, &child(2, 0, 0)).unwrap();
        delete(&mut first, &children, 2, &child(2, 2, 5)).unwrap();
        insert(&mut first, &parents, 3, &child(3, 0, 0)).unwrap();
        insert(&mut first, &children, 3, &child(3, 3, 5)).unwrap();
        first.commit().unwrap();
        let changed = read_as(&mut second, &parents, 1, Read::Shared);
        assert!(matches!(changed, Err(Error::RecordChanged)), "{changed:?}");
        let (of_child, of_parent) = sides(&db);
        for side in [&of_parent, &of_child] {
            let found = [1u64, 2, 3].map(|key| second.find_reference(side, &key.to_be_bytes()).unwrap());
            assert_eq!(found, [true, false, true]);
        }
        let mut cursor = second.cursor_on_children(&of_child).unwrap();
        let mut found = cursor.seek(SeekMode::First, b"").unwrap();
        let mut keys = Vec::new();
        while found {
            keys.push(u64::from_be_bytes(cursor.clustered_key().try_into().unwrap()));
            found = cursor.next().unwrap();
        }
        assert_eq!(keys, [1, 3]);
    }
}

//! The catalog in memory: tables by name, ID and parent, and the next IDs. [`super::catalog`] has
//! the invariants (I1 to I7) and the lock.

use super::foreign_keys::{is_intermediate, Constrained};
use super::handle::Table;
use super::shadow_name;
use crate::base::{Error, Result, TableId, TreeId, TxnId};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Weak};

/// A tree of a dropped table or index, or one that is being built.
#[derive(Debug)]
pub(super) struct Dropped {
    pub(super) tree: TreeId,
    /// The handle that may still read its pages, or that builds it.
    pub(super) table: Weak<Table>,
}

/// The tables, under their lock.
#[derive(Default, Debug)]
pub(super) struct Tables {
    pub(super) by_name: BTreeMap<String, Arc<Table>>,
    pub(super) by_id: HashMap<TableId, Arc<Table>>,
    pub(super) dropped: Vec<Dropped>,
    pub(super) next_table: TableId,
    pub(super) next_tree: TreeId,
    /// Tables that loads fill for transactions ([`super::shadow`]).
    pub(super) shadow: BTreeMap<TxnId, Vec<TableId>>,
    /// Tables replaced by a commit with this stamp, kept because older snapshots may need them.
    pub(super) replaced: Vec<(u64, Arc<Table>)>,
    /// The tables that have foreign keys, by the names of their parents.
    pub(super) children: BTreeMap<String, BTreeSet<TableId>>,
    /// Tables whose copies are about to take their names, by name.
    pub(super) away: BTreeMap<String, Arc<Table>>,
    /// Foreign keys that have followed copies to other names than their originals', by original.
    pub(super) followed: HashMap<TableId, Followed>,
}

/// Foreign keys that have followed a copy to another name than its original's. If the statement
/// then fails, the original gets its name back, and they follow it (I6).
#[derive(Clone, Debug)]
pub(super) struct Followed {
    /// The original's name, which they referred to.
    pub(super) from: String,
    pub(super) to: String,
    /// The child and the name of each.
    pub(super) constraints: Vec<(TableId, String)>,
}

/// Each ID is used once, so that an old object is never mistaken for a new one.
fn numbers_used_up(what: &'static str, limit: u64) -> Error {
    Error::Limit { what, actual: limit, limit }
}

impl Tables {
    /// The tables, including copies, with a foreign key whose parent has this name.
    pub(super) fn children_of(&self, parent: &str) -> Vec<Arc<Table>> {
        let ids = self.children.get(parent).into_iter().flatten();
        ids.filter_map(|id| self.by_id.get(id).cloned()).collect()
    }

    /// Returns the table with this name, or the table that gave this name to a copy (I5).
    pub(super) fn parent(&self, name: &str) -> Option<Arc<Table>> {
        self.by_name.get(name).or_else(|| self.away.get(name)).cloned()
    }

    /// `Limit` after the last ID.
    pub(super) fn next_table(&mut self) -> Result<TableId> {
        let next = self.next_table;
        if next.is_temporary() {
            return Err(numbers_used_up("tables created so far", u64::from(TableId::TEMPORARY.0)));
        }
        self.next_table.0 += 1;
        Ok(next)
    }

    /// `Limit` after the last ID.
    pub(super) fn next_tree(&mut self) -> Result<TreeId> {
        let next = self.next_tree;
        let after = next.0.checked_add(1);
        let after = after.ok_or_else(|| numbers_used_up("indexes created so far", u64::from(u32::MAX)))?;
        self.next_tree = TreeId(after);
        Ok(next)
    }

    /// Adds a table. Returns `Corruption` if a table with the same name exists.
    pub(super) fn add(&mut self, table: Arc<Table>) -> Result<()> {
        self.next_table = self.next_table.max(TableId(table.id().ordinal().0 + 1));
        for index in table.indexes() {
            self.next_tree = self.next_tree.max(TreeId(index.tree.0 + 1));
        }
        let name = table.name();
        if self.by_name.contains_key(&name) {
            return Err(Error::corrupt("catalog", format!("two tables are called '{name}'")));
        }
        if let Some((txn, _)) = shadow_name::parse(&name) {
            self.shadow.entry(txn).or_default().push(table.id());
        }
        self.link(&table);
        self.away.remove(&name);
        self.by_name.insert(name, Arc::clone(&table));
        self.by_id.insert(table.id(), table);
        Ok(())
    }

    /// With `takes_its_place`, the new name is permanent; otherwise the table may be about to give
    /// its name to a copy (I5).
    pub(super) fn rename(&mut self, table: &Arc<Table>, name: &str, takes_its_place: bool, stamp: u64) {
        let before = table.name();
        self.by_name.remove(&before);
        if !takes_its_place && !is_intermediate(&before) {
            self.away.insert(before, Arc::clone(table));
        }
        if takes_its_place {
            table.has_its_place();
            self.away.remove(name);
            self.away.retain(|_, away| away.id() != table.id());
        }
        table.rename_at(stamp, name);
        self.by_name.insert(name.to_owned(), Arc::clone(table));
    }

    pub(super) fn constrain(&mut self, changed: &[Constrained]) {
        for (table, constraints) in changed {
            self.unlink(table);
            table.set_foreign_keys(constraints.clone());
            self.link(table);
        }
    }

    /// Notes the foreign keys that follow a copy which gets another name than its original's, or
    /// forgets them when the original gets its name back (I6). `followers` still have the old ones.
    pub(super) fn note_followers(&mut self, renamed: &Table, name: &str, followers: &[Constrained]) {
        let from = renamed.copy_of();
        self.followed.remove(&renamed.id());
        let original = self.away.get(&from).map(|original| original.id());
        let Some(original) = original.filter(|_| !is_intermediate(name) && name != from) else { return };
        let mut constraints = Vec::new();
        for (child, _) in followers {
            let had = child.foreign_keys();
            let of_original = had.iter().filter(|constraint| constraint.parent == from);
            constraints.extend(of_original.map(|constraint| (child.id(), constraint.name.clone())));
        }
        self.followed.insert(original, Followed { from, to: name.to_owned(), constraints });
    }

    pub(super) fn link(&mut self, table: &Table) {
        for constraint in table.foreign_keys().iter() {
            self.children.entry(constraint.parent.clone()).or_default().insert(table.id());
        }
    }

    pub(super) fn unlink(&mut self, table: &Table) {
        for constraint in table.foreign_keys().iter() {
            if let Some(ids) = self.children.get_mut(&constraint.parent) {
                ids.remove(&table.id());
                if ids.is_empty() {
                    self.children.remove(&constraint.parent);
                }
            }
        }
    }

    pub(super) fn show(&mut self, table: &Table) {
        self.shadow.retain(|_, ids| {
            ids.retain(|id| *id != table.id());
            !ids.is_empty()
        });
    }
}

pub(super) fn dropped_trees(table: &Arc<Table>) -> impl Iterator<Item = Dropped> + '_ {
    table.indexes().iter().map(|index| Dropped { tree: index.tree, table: Arc::downgrade(table) })
}

pub(super) fn fences(tables: &Tables) -> impl Iterator<Item = (&Arc<Table>, &str)> {
    tables.by_name.values().filter_map(|table| Some((table, table.quarantine_reason()?)))
}

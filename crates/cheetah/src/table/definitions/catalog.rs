//! The catalog: the definitions of all tables, in memory ([`super::tables`]) and in the catalog
//! tree ([`super::definition_pieces`]).
//!
//! Invariants
//!   I1  Tree and memory change inside one mini-transaction, so an epoch has both parts of a change
//!       or neither.
//!   I2  A name and an ID belong to one table. IDs of tables and trees are never reused.
//!   I3  Trees of a dropped table are on the list of dropped trees from the drop until their last
//!       page is freed (durability::M10), and their pages are freed only when no handle of the
//!       table exists any more. Trees of a load are on the list, too, until they are assigned to a
//!       table: trees left by a crash or an error are freed in the same way.
//!   I4  `children` has each table under the names of the parents of its foreign keys, and
//!       `changes` grows before any reader can see a change. A reader that must see a change
//!       completely or not at all reads names, foreign keys and parents with [`Catalog::look`]
//!       ([`Tables`] under their lock).
//!   I5  A table that gave its name to a copy is in `away` until the name is taken or the table is
//!       dropped: meanwhile it serves as the parent for foreign keys that refer to that name.
//!   I6  The foreign keys that followed a copy to a new name (ALTER TABLE .. RENAME) are remembered
//!       until the original is dropped, or gets its name back and they return to it. This state is
//!       only in memory: log records of renames contain the changed foreign keys for redo.
//!   I7  A temporary table is in memory only. An epoch lists its trees as dropped, so startup frees
//!       what a crash leaves of them.
//! Locks     `ddl`, held over a complete change, taken before the gate; `tables`, briefly, inside
//!           mini-transactions and outside.

use super::definition_pieces::{
    create_tree, open_tree, put_definition, read_definitions, readable_definitions, remove_definition,
};
use super::foreign_keys::{is_intermediate, Constrained};
use super::handle::{class_of, open_trees, stored_key_bytes_max, Table};
use super::shadow_name;
use super::spec::IndexSpec;
use super::tables::{dropped_trees, fences, Dropped, Followed, Tables};
use crate::base::{opaque, sound, Error, PageId, Result, TableId, TreeId, TxnId};
use crate::format::catalog::{piece_key, Encryption, IndexDef, TableDef, TableEncryption};
use crate::format::row_format_versions::marked_format;
use crate::format::state::{QuarantinedTable, State, TableState};
use crate::keys::Closing;
use crate::leaves::{KeyPart, Leaves};
use crate::pool::{self, MiniTransaction};
use crate::tree::{Path, Tree};
use crate::txn::{Slot, Versions};
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Release};
use std::sync::{Arc, OnceLock, Weak};

#[derive(Debug)]
pub(crate) struct Catalog {
    leaves: Leaves,
    tree: Arc<Tree>,
    ddl: Mutex<()>,
    tables: RwLock<Tables>,
    /// Transactions with shadow tables; usually 0, and then no commit looks for them.
    shadow_count: AtomicUsize,
    /// The number of changes since startup.
    changes: AtomicU64,
    show_name: ShowNames,
}

/// Converts the name of a table to the form that users know.
pub(crate) type ShowName = Box<dyn Fn(&str) -> String + Send + Sync>;

#[derive(Default)]
struct ShowNames(OnceLock<ShowName>);

opaque!(ShowNames);

impl Catalog {
    pub(crate) fn create(leaves: &Leaves, mtr: &MiniTransaction<'_>) -> Result<Self> {
        let tree = create_tree(leaves, mtr)?;
        let tables = Tables { next_table: TableId(1), next_tree: TreeId::FIRST_USER, ..Tables::default() };
        Ok(Self::with(leaves, tree, tables))
    }

    /// Opens the catalog of an epoch, and reads all definitions.
    pub(crate) fn open(leaves: &Leaves, state: &State) -> Result<Self> {
        let tree = open_tree(leaves, state)?;
        let definitions = read_definitions(&tree)?;
        let catalog = Self::of_definitions(leaves, state, tree, definitions)?;
        for QuarantinedTable { table, reason } in &state.quarantined {
            let unknown =
                || Error::corrupt("epoch state", format!("it quarantines table {table}, which is unknown"));
            catalog.by_id(*table).ok_or_else(unknown)?.quarantine(reason.clone());
        }
        Ok(catalog)
    }

    /// Like [`open`](Self::open), but keeps only the tables whose definitions can be read, for
    /// copying a damaged database. Damage is reported to `note`.
    pub(crate) fn open_damaged(leaves: &Leaves, state: &State, note: &mut dyn FnMut(String)) -> Result<Self> {
        let tree = open_tree(leaves, state)?;
        let definitions = match read_definitions(&tree) {
            Err(error) if error.is_of_unreadable_bytes() => readable_definitions(&tree, note)?,
            definitions => definitions?,
        };
        let catalog = Self::of_definitions(leaves, state, tree, definitions)?;
        for QuarantinedTable { table, reason } in &state.quarantined {
            if let Some(table) = catalog.by_id(*table) {
                table.quarantine(reason.clone());
            }
        }
        Ok(catalog)
    }

    fn of_definitions(
        leaves: &Leaves,
        state: &State,
        tree: Arc<Tree>,
        definitions: Vec<TableDef>,
    ) -> Result<Self> {
        let dropped = state.dropped_trees.iter().map(|&tree| Dropped { tree, table: Weak::new() });
        let mut tables = Tables {
            dropped: dropped.collect(),
            next_table: state.next_table,
            next_tree: state.next_tree,
            ..Tables::default()
        };
        let counters: HashMap<_, _> = state.tables.iter().map(|table| (table.table, *table)).collect();
        for def in definitions {
            if def.id.is_temporary() {
                return Err(Error::corrupt(
                    "catalog",
                    format!("'{}' has the ID of a temporary table", def.name),
                ));
            }
            let counters = counters.get(&def.id).copied().unwrap_or_default();
            register(leaves, &def);
            tables.add(Arc::new(Table::new(def.clone(), open_trees(leaves, &def)?, counters)))?;
        }
        Ok(Self::with(leaves, tree, tables))
    }

    fn with(leaves: &Leaves, tree: Arc<Tree>, tables: Tables) -> Self {
        let shadow_count = AtomicUsize::new(tables.shadow.len());
        Self {
            leaves: leaves.clone(),
            tree,
            ddl: Mutex::new(()),
            tables: RwLock::new(tables),
            shadow_count,
            changes: AtomicU64::new(0),
            show_name: ShowNames::default(),
        }
    }

    /// The number of changes since startup. Once it has grown, cached results about foreign keys
    /// may be out of date.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Acquire)
    }

    /// Reads the tables while no definition changes (I4). `look` must not call the catalog.
    pub(super) fn look<T>(&self, look: impl FnOnce(&Tables) -> T) -> T {
        look(&self.tables.read())
    }

    pub(crate) fn children_of(&self, parent: &str) -> Vec<Arc<Table>> {
        self.look(|tables| tables.children_of(parent))
    }

    /// The foreign keys that have followed a table's copy, while the table may get its name back.
    pub(super) fn followed(&self, original: TableId) -> Option<Followed> {
        self.tables.read().followed.get(&original).cloned()
    }

    /// Only the first call has an effect.
    pub(crate) fn show_names_with(&self, show: ShowName) {
        let _ = self.show_name.0.set(show);
    }

    /// Returns the name of a table for users: the part after the database.
    pub(super) fn shown(&self, table: &str) -> String {
        self.show_name.0.get().map_or_else(|| table.to_owned(), |show| show(table))
    }

    /// The tables, including copies, that have foreign keys.
    pub(crate) fn children(&self) -> Vec<Arc<Table>> {
        let tables = self.tables.read();
        let ids: BTreeSet<_> = tables.children.values().flatten().collect();
        ids.into_iter().filter_map(|id| tables.by_id.get(id).cloned()).collect()
    }

    /// Changes the state in memory (I4).
    fn change<T>(&self, change: impl FnOnce(&mut Tables) -> T) -> T {
        let mut tables = self.tables.write();
        self.changes.fetch_add(1, Release);
        change(&mut tables)
    }

    /// Serializes changes of the catalog. Must be taken outside mini-transactions, and held from
    /// the first check until the change is done.
    pub(crate) fn lock_ddl(&self) -> MutexGuard<'_, ()> {
        self.ddl.lock()
    }

    pub(crate) fn by_name(&self, name: &str) -> Result<Arc<Table>> {
        let tables = self.tables.read();
        tables.by_name.get(name).cloned().ok_or_else(|| Error::NoSuchTable(name.to_owned()))
    }

    pub(crate) fn by_id(&self, id: TableId) -> Option<Arc<Table>> {
        self.tables.read().by_id.get(&id).cloned()
    }

    /// Calls `f` with the table with this ID, which is not dropped or altered meanwhile; with
    /// `None` if the table was dropped, or is quarantined.
    pub(crate) fn using<T>(&self, id: TableId, f: impl FnOnce(Option<&Arc<Table>>) -> T) -> T {
        loop {
            let Some(table) = self.by_id(id) else { return f(None) };
            if let Ok(_usage) = table.use_it() {
                return f(Some(&table));
            }
            if self.by_id(id).is_some_and(|now| Arc::ptr_eq(&now, &table)) {
                return f(None);
            }
        }
    }

    pub(crate) fn by_tree(&self, tree: TreeId) -> Option<(Arc<Table>, usize)> {
        let tables = self.tables.read();
        let index_no = |table: &Arc<Table>| table.indexes().iter().position(|index| index.tree == tree);
        tables.by_id.values().find_map(|table| Some((Arc::clone(table), index_no(table)?)))
    }

    /// `stamp` is about to be published.
    pub(crate) fn count_committed(&self, versions: &Versions, slot: &Slot, stamp: u64) {
        slot.for_each_count(|table, difference| {
            if let Some(table) = self.by_id(table) {
                table.counts().add(versions, stamp, difference);
            }
        });
    }

    pub(crate) fn restore_counts(&self, open: &[Arc<Slot>]) {
        for table in self.tables.read().by_id.values() {
            table.note_written();
            table.restore_count(open.iter().filter_map(|slot| slot.rows_of(table.id())).sum());
        }
    }

    pub(crate) fn by_prefix(&self, prefix: &str) -> Vec<Arc<Table>> {
        let tables = self.tables.read();
        let from = tables.by_name.range(prefix.to_owned()..);
        from.take_while(|(name, _)| name.starts_with(prefix)).map(|(_, table)| Arc::clone(table)).collect()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.tables.read().by_name.keys().cloned().collect()
    }

    pub(crate) fn ids(&self) -> Vec<TableId> {
        self.tables.read().by_id.keys().copied().collect()
    }

    pub(crate) fn quarantined(&self) -> Vec<(String, String)> {
        fences(&self.tables.read()).map(|(table, reason)| (table.name(), reason.into())).collect()
    }

    pub(crate) fn snapshot(&self, state: &mut State) {
        let tables = self.tables.read();
        state.catalog_root = self.tree.def().root;
        state.next_table = tables.next_table;
        state.next_tree = tables.next_tree;
        if !sound!(true, "temporary: forget their numbers") {
            let last = tables.by_id.keys().filter(|id| !id.is_temporary()).max();
            state.next_table = last.map_or(TableId(1), |last| TableId(last.0 + 1));
        }
        let (temporary, lasting): (Vec<_>, Vec<_>) =
            tables.by_name.values().partition(|table| table.id().is_temporary());
        state.tables = lasting.iter().map(|table| table.counters()).collect();
        state.quarantined = fences(&tables)
            .filter(|(table, _)| !table.id().is_temporary())
            .map(|(table, reason)| QuarantinedTable { table: table.id(), reason: reason.into() })
            .collect();
        let dropped = tables.dropped.iter().map(|dropped| dropped.tree);
        let temporary = temporary.iter().filter(|_| sound!(true, "temporary: forget their trees"));
        let temporary = temporary.flat_map(|table| table.indexes()).map(|index| index.tree);
        state.dropped_trees = dropped.chain(temporary).collect();
    }

    /// Assigns IDs to a definition and its trees. Returns `Limit` if all IDs have been used.
    pub(crate) fn number(&self, def: &mut TableDef) -> Result<()> {
        let mut tables = self.tables.write();
        def.id = def.id.numbered(tables.next_table()?);
        def.indexes.iter_mut().try_for_each(|index| {
            index.tree = tables.next_tree()?;
            Ok(())
        })
    }

    pub(crate) fn prepare(&self, table: TableId, path: &mut Path) -> Result<()> {
        self.tree.prepare(&piece_key(table, 0), path)
    }

    /// Creates the trees of a numbered definition, and adds the table for readers that see `stamp`.
    pub(crate) fn create_table(
        &self,
        mtr: &MiniTransaction<'_>,
        path: &mut Path,
        mut def: TableDef,
        stamp: u64,
    ) -> Result<Arc<Table>> {
        let trees = self.create_trees(mtr, &mut def)?;
        put_definition(&self.tree, mtr, path, &def)?;
        let table = Arc::new(Table::new(def, trees, TableState::default()));
        table.set_known_since(stamp);
        self.change(|tables| -> Result<()> {
            tables.add(Arc::clone(&table))?;
            self.shadow_count.store(tables.shadow.len(), Release);
            Ok(())
        })?;
        Ok(table)
    }

    /// Notes the roots of the new trees in `def`.
    fn create_trees(&self, mtr: &MiniTransaction<'_>, def: &mut TableDef) -> Result<Vec<Arc<Tree>>> {
        let mut trees = Vec::new();
        for index_no in 0..def.indexes.len() {
            let key_bytes_max = stored_key_bytes_max(def, index_no);
            let class = class_of(self.leaves.pool(), key_bytes_max)?;
            let Some(index) = def.indexes.get_mut(index_no) else { break };
            let tree = Arc::new(Tree::create(&self.leaves, mtr, index.tree, class, key_bytes_max)?);
            index.root = tree.def().root;
            trees.push(tree);
        }
        register(&self.leaves, def);
        Ok(trees)
    }

    /// Creates trees for a load of `table`. They are on the list of dropped trees, and are freed
    /// when the returned table, which is not in the catalog, is released, unless
    /// [`replace_trees`](Self::replace_trees) assigns them to the table.
    pub(crate) fn create_trees_for_load(
        &self,
        mtr: &MiniTransaction<'_>,
        table: &Table,
    ) -> Result<Arc<Table>> {
        let mut def = table.definition();
        {
            let mut tables = self.tables.write();
            for index in &mut def.indexes {
                index.tree = tables.next_tree()?;
            }
        }
        let trees = self.create_trees(mtr, &mut def)?;
        let loaded = Arc::new(Table::new(def, trees, TableState::default()));
        if sound!(true, "load: forget the trees that are being built") {
            self.tables.write().dropped.extend(dropped_trees(&loaded));
        }
        Ok(loaded)
    }

    /// Like [`create_trees_for_load`](Self::create_trees_for_load), for new indexes of `table`,
    /// which [`alter_table`](Self::alter_table) assigns to it. The first index of the returned
    /// table is the clustered index of `table`; the new ones follow.
    pub(crate) fn create_indexes_to_build(
        &self,
        mtr: &MiniTransaction<'_>,
        table: &Table,
        specs: &[IndexSpec],
    ) -> Result<Arc<Table>> {
        let clustered = table.clustered_def().clone();
        let mut def = TableDef { name: table.name(), indexes: vec![clustered], ..table.def().clone() };
        let mut trees = vec![Arc::clone(table.clustered())];
        for IndexSpec { name, unique, max_key_bytes, row_format } in specs {
            let (id, number) = (self.tables.write().next_tree()?, def.next_number);
            let (name, row_format, root) = (name.clone(), row_format.clone(), PageId::NONE);
            let (unique, max_key_bytes) = (*unique, *max_key_bytes);
            def.indexes.push(IndexDef {
                name,
                number,
                unique,
                disabled: false,
                max_key_bytes,
                row_format,
                tree: id,
                root,
            });
            def.next_number += 1;
            let key_bytes_max = stored_key_bytes_max(&def, trees.len());
            let class = class_of(self.leaves.pool(), key_bytes_max)?;
            let tree = Arc::new(Tree::create(&self.leaves, mtr, id, class, key_bytes_max)?);
            if let Some(index) = def.indexes.last_mut() {
                index.root = tree.def().root;
            }
            trees.push(tree);
        }
        register(&self.leaves, &def);
        let built = Arc::new(Table::new(def, trees, TableState::default()));
        if sound!(true, "build: forget the trees that are being built") {
            self.tables.write().dropped.extend(dropped_trees(&built).skip(1));
        }
        Ok(built)
    }

    /// Makes `loaded`, with its trees, the handle of a table. The old trees replace the new ones on
    /// the list of dropped trees. The caller must ensure that no thread uses the table.
    pub(crate) fn replace_trees(
        &self,
        mtr: &MiniTransaction<'_>,
        path: &mut Path,
        table: &Arc<Table>,
        loaded: &Arc<Table>,
    ) -> Result<()> {
        let name = table.name();
        remove_definition(&self.tree, mtr, path, table.id())?;
        let foreign_keys = table.foreign_keys().as_ref().clone();
        loaded.set_foreign_keys(foreign_keys);
        loaded.rename(&name);
        put_definition(&self.tree, mtr, path, &loaded.definition())?;
        let is_built = |dropped: &Dropped| loaded.indexes().iter().any(|index| index.tree == dropped.tree);
        self.change(|tables| {
            tables.dropped.retain(|dropped| !is_built(dropped));
            tables.dropped.extend(dropped_trees(table));
            tables.by_name.insert(name, Arc::clone(loaded));
            tables.by_id.insert(table.id(), Arc::clone(loaded));
        });
        Ok(())
    }

    /// Moves its trees to the list of dropped trees. The caller ensures that no thread uses it.
    pub(crate) fn drop_table(
        &self,
        mtr: &MiniTransaction<'_>,
        path: &mut Path,
        table: &Arc<Table>,
    ) -> Result<()> {
        remove_definition(&self.tree, mtr, path, table.id())?;
        self.change(|tables| {
            tables.unlink(table);
            tables.by_name.remove(&table.name());
            tables.by_id.remove(&table.id());
            tables.away.retain(|_, away| away.id() != table.id());
            tables.followed.remove(&table.id());
            tables.dropped.extend(dropped_trees(table));
            // No snapshot finds the table it replaced any more.
            tables.replaced.retain(|(_, replaced)| !replaced.has_given_way_to(table));
            tables.show(table);
            self.shadow_count.store(tables.shadow.len(), Release);
        });
        Ok(())
    }

    /// Writes to the catalog tree, with prepared paths, that the shadow table `loaded` replaces
    /// `table`. [`put_in_place`](Self::put_in_place) must follow in the same mini-transaction.
    pub(crate) fn write_place(
        &self,
        mtr: &MiniTransaction<'_>,
        paths: &mut [Path; 2],
        table: &Table,
        loaded: &Table,
    ) -> Result<()> {
        let [path, loaded_path] = paths;
        remove_definition(&self.tree, mtr, path, table.id())?;
        remove_definition(&self.tree, mtr, loaded_path, loaded.id())?;
        let foreign_keys = table.foreign_keys().as_ref().clone();
        let def = TableDef { name: table.name(), foreign_keys, ..loaded.def().clone() };
        put_definition(&self.tree, mtr, loaded_path, &def)
    }

    /// Gives `loaded` the name of `table`, whose trees are freed once no snapshot needs it any more
    /// and no handle of it exists.
    pub(crate) fn put_in_place(&self, table: &Arc<Table>, loaded: &Arc<Table>, stamp: u64) {
        let (name, hidden) = (table.name(), loaded.name());
        self.change(|tables| {
            tables.show(loaded);
            self.shadow_count.store(tables.shadow.len(), Release);
            tables.by_name.remove(&hidden);
            tables.unlink(table);
            tables.by_id.remove(&table.id());
            tables.dropped.extend(dropped_trees(table));
            tables.replaced.push((stamp, Arc::clone(table)));
            loaded.rename(&name);
            loaded.set_foreign_keys(table.foreign_keys().as_ref().clone());
            tables.link(loaded);
            tables.by_name.insert(name, Arc::clone(loaded));
        });
    }

    /// Releases replaced tables that no snapshot up to `horizon` needs.
    pub(crate) fn forget_replaced(&self, horizon: u64) {
        if self.tables.read().replaced.is_empty() {
            return;
        }
        self.tables.write().replaced.retain(|(stamp, _)| *stamp > horizon);
    }

    /// The shadow tables of a transaction, each with the table to replace, if that exists.
    pub(crate) fn shadow_of(&self, txn: TxnId) -> Vec<(Arc<Table>, Option<Arc<Table>>)> {
        if self.shadow_count.load(Acquire) == 0 {
            return Vec::new();
        }
        let tables = self.tables.read();
        let table = |id: &TableId| {
            let table = Arc::clone(tables.by_id.get(id)?);
            let target =
                shadow_name::parse(&table.name()).and_then(|(_, target)| tables.by_id.get(&target).cloned());
            Some((table, target))
        };
        tables.shadow.get(&txn).into_iter().flatten().filter_map(table).collect()
    }

    pub(crate) fn loaders_of(&self, id: TableId) -> Vec<TxnId> {
        let tables = self.tables.read();
        let names = tables.shadow.values().flatten().filter_map(|id| Some(tables.by_id.get(id)?.name()));
        names
            .filter_map(|name| shadow_name::parse(&name))
            .filter(|(_, target)| *target == id)
            .map(|it| it.0)
            .collect()
    }

    pub(crate) fn shadow_txns(&self) -> Vec<TxnId> {
        self.tables.read().shadow.keys().copied().collect()
    }

    /// Renames the first of `changed`, and sets the foreign keys of all of them, along one path for
    /// each. Their handles stay valid. Snapshots older than `stamp` use the previous name.
    pub(crate) fn rename_table(
        &self,
        mtr: &MiniTransaction<'_>,
        paths: &mut [Path],
        name: &str,
        changed: &[Constrained],
        stamp: u64,
    ) -> Result<()> {
        let takes_its_place = !is_intermediate(name);
        for (no, (path, (table, constraints))) in paths.iter_mut().zip(changed).enumerate() {
            remove_definition(&self.tree, mtr, path, table.id())?;
            let mut def = table.definition_with_constraints(constraints);
            if no == 0 {
                name.clone_into(&mut def.name);
                if takes_its_place {
                    def.copy_of.clear();
                }
            }
            put_definition(&self.tree, mtr, path, &def)?;
        }
        self.change(|tables| {
            let Some(((renamed, _), followers)) = changed.split_first() else { return };
            tables.note_followers(renamed, name, followers);
            tables.constrain(changed);
            tables.rename(renamed, name, takes_its_place, stamp);
        });
        Ok(())
    }

    /// The tables' handles stay valid. `paths` has a path for each.
    pub(crate) fn set_constraints(
        &self,
        mtr: &MiniTransaction<'_>,
        paths: &mut [Path],
        changed: &[Constrained],
    ) -> Result<()> {
        for (path, (table, constraints)) in paths.iter_mut().zip(changed) {
            remove_definition(&self.tree, mtr, path, table.id())?;
            put_definition(&self.tree, mtr, path, &table.definition_with_constraints(constraints))?;
        }
        self.change(|tables| tables.constrain(changed));
        Ok(())
    }

    /// Replaces the definition of a table with one that has the same ID. Adds trees that it no
    /// longer has to the list of dropped trees, and removes its new trees, which exist, from that
    /// list. The caller must ensure that no thread uses the table. Earlier handles become invalid.
    pub(crate) fn alter_table(
        &self,
        mtr: &MiniTransaction<'_>,
        path: &mut Path,
        table: &Arc<Table>,
        def: &TableDef,
        stamp: u64,
    ) -> Result<()> {
        let name = table.name();
        let mut def = TableDef { name: name.clone(), ..def.clone() };
        // Trees recreated by redo may have other roots than those in the log.
        for index in &mut def.indexes {
            let same = table.trees().iter().find(|known| known.def().id == index.tree);
            index.root = same.map_or(index.root, |known| known.def().root);
        }
        remove_definition(&self.tree, mtr, path, table.id())?;
        put_definition(&self.tree, mtr, path, &def)?;
        register(&self.leaves, &def);
        let opened = open_trees(&self.leaves, &def)?;
        let known = |tree: Arc<Tree>| {
            let same = table.trees().iter().find(|known| known.def().id == tree.def().id);
            same.map_or(tree, Arc::clone)
        };
        let constraints = def.foreign_keys.clone();
        // New posting tables have no older versions (durability::M2).
        let is_known = |name: &str| table.fulltext().iter().any(|known| known.postings == name);
        for index in def.fulltext.iter().filter(|index| !is_known(&index.postings)) {
            if sound!(true, "full text: show words to older snapshots") {
                self.by_name(&index.postings)?.set_known_since(stamp);
            }
        }
        let altered = Arc::new(table.altered(def, opened.into_iter().map(known).collect(), stamp));
        let has = |table: &Table, tree: TreeId| table.indexes().iter().any(|index| index.tree == tree);
        self.change(|tables| {
            tables.dropped.retain(|dropped| !has(&altered, dropped.tree));
            tables.dropped.extend(dropped_trees(table).filter(|dropped| !has(&altered, dropped.tree)));
            tables.unlink(table);
            altered.set_foreign_keys(constraints);
            tables.link(&altered);
            tables.by_name.insert(name, Arc::clone(&altered));
            tables.by_id.insert(altered.id(), altered);
        });
        Ok(())
    }

    /// The dropped trees whose pages can be freed now.
    pub(crate) fn trees_to_free(&self) -> HashSet<TreeId> {
        let tables = self.tables.read();
        let free = |dropped: &&Dropped| dropped.table.strong_count() == 0;
        tables.dropped.iter().filter(free).map(|dropped| dropped.tree).collect()
    }

    /// Whether a tree is dropped and its pages can be freed now.
    pub(crate) fn may_be_freed(&self, tree: TreeId) -> bool {
        let tables = self.tables.read();
        tables.dropped.iter().any(|dropped| dropped.tree == tree && dropped.table.strong_count() == 0)
    }

    /// The trees of all tables, and the dropped trees that are not freed yet.
    pub(crate) fn trees(&self) -> HashSet<TreeId> {
        let tables = self.tables.read();
        let used = tables.by_id.values().flat_map(|table| table.indexes()).map(|index| index.tree);
        used.chain(tables.dropped.iter().map(|dropped| dropped.tree)).collect()
    }

    /// The number of dropped trees whose pages are not all freed.
    pub(crate) fn dropped_trees_count(&self) -> usize {
        self.tables.read().dropped.len()
    }

    pub(crate) fn tree_is_free(&self, tree: TreeId) {
        debug_assert_eq!(
            self.leaves.pool().tree_bytes(tree).pages,
            0,
            "I3: a tree is on the list until its last page is free"
        );
        self.tables.write().dropped.retain(|dropped| dropped.tree != tree);
        self.leaves.forget_tree(tree);
    }
}

/// Tells the pool how pages of a table are encoded.
fn register(leaves: &Leaves, def: &TableDef) {
    for (index_no, index) in def.indexes.iter().enumerate() {
        let older = if index_no == 0 { def.older_formats.as_slice() } else { &[] };
        let tree = pool::TreeDef {
            id: index.tree,
            row_format: marked_format(older, &index.row_format),
            compression: def.compression,
            closing: closing_of(def),
        };
        leaves.register_tree(tree, if index_no > 0 { KeyPart::BeforeRowKey } else { KeyPart::Whole });
    }
}

pub(in crate::table) fn closing_of(def: &TableDef) -> Closing {
    let TableEncryption { wish, key_id } = def.encryption;
    match wish {
        Encryption::Default => Closing::ByDefault(key_id),
        Encryption::Yes => Closing::With(key_id),
        Encryption::No => Closing::Never,
    }
}

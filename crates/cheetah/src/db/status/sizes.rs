//! Sizes of tables and indexes: for views, for SHOW TABLE STATUS, and for the optimizer.

use crate::base::{Result, TableId, TreeId};
use crate::db::Db;
use crate::format::catalog::IndexDef;
use crate::format::image::Compression;
use crate::pool::{Cached, PageClass, PageCounts};
use crate::table::shared::parts::Core;
use crate::table::{Estimate, Table, TableSpec};
use crate::tree::Tree;
use std::collections::HashMap;
use std::ops::AddAssign;
use std::sync::Arc;

/// The sizes of an index.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct IndexStats {
    /// Including pages of large values.
    pub pages: u64,
    /// Approximate number of leaves.
    pub leaf_pages: u64,
    /// Bytes of the pages' images on disk.
    pub stored_bytes: u64,
    /// Bytes of all pages in memory, that is, uncompressed. For a page that was not in memory since
    /// startup this is a guess, which is too low for large values that compress well.
    pub logical_bytes: u64,
    /// The same total, for the pages that have an image.
    pub stored_logical_bytes: u64,
    /// The index's share of the file bytes that are in no page's newest image, and will be freed.
    pub free_bytes: u64,
    /// The index's share of the files: stored and free bytes. The sum of all tables ([`Db::sizes`])
    /// omits the bytes that still wait in tails.
    pub allocated_bytes: u64,
    /// Levels of the tree.
    pub depth: u64,
}

/// Sizes, and the part of them in memory.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sizes {
    /// The sizes, wherever the pages are.
    pub stats: IndexStats,
    /// The part in memory.
    pub cached: Cached,
}

/// Adds up several indexes; the depth is that of the deepest.
impl AddAssign for Sizes {
    fn add_assign(&mut self, other: Self) {
        let (stats, cached) = (&mut self.stats, &mut self.cached);
        stats.pages += other.stats.pages;
        stats.leaf_pages += other.stats.leaf_pages;
        stats.stored_bytes += other.stats.stored_bytes;
        stats.logical_bytes += other.stats.logical_bytes;
        stats.stored_logical_bytes += other.stats.stored_logical_bytes;
        stats.free_bytes += other.stats.free_bytes;
        stats.allocated_bytes += other.stats.allocated_bytes;
        stats.depth = stats.depth.max(other.stats.depth);
        cached.pages += other.cached.pages;
        cached.bytes += other.cached.bytes;
        cached.leaf_bytes += other.cached.leaf_bytes;
        cached.leaf_used_bytes += other.cached.leaf_used_bytes;
    }
}

/// A table with the sizes of its indexes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableSizes {
    /// Its name.
    pub name: String,
    /// The number of its rows, including those of open transactions.
    pub rows: u64,
    /// The next auto-increment value.
    pub auto_increment: u64,
    /// How it is compressed.
    pub compression: Compression,
    /// The names and sizes of its indexes. The first, the clustered one, includes large values.
    pub indexes: Vec<(String, Sizes)>,
}

impl Table {
    /// The sizes of its indexes, in order. Reads little from disk.
    pub fn stats(&self) -> Result<Vec<IndexStats>> {
        let _usage = self.use_it()?;
        self.trees().iter().enumerate().map(|(index_no, tree)| index_stats(index_no, tree)).collect()
    }

    /// The approximate number of entries of an index whose stored key is at or after `low` and
    /// before `high`; `None` is no bound. Reads no page but the root.
    pub fn records_in_range(&self, index_no: usize, low: Option<&[u8]>, high: Option<&[u8]>) -> Result<u64> {
        let _usage = self.use_it()?;
        self.tree(index_no)?.count_between(low.unwrap_or_default(), high, self.row_count())
    }
}

fn index_stats(index_no: usize, tree: &Arc<Tree>) -> Result<IndexStats> {
    let pool = tree.pool();
    let bytes = pool.tree_bytes(tree.def().id);
    let smallest = tree.def().class;
    // Only the first index has large values. All pages of another have the size class of its tree.
    let logical = |counts: PageCounts| match index_no {
        0 => counts.bytes(pool.page_bytes(), smallest),
        _ => counts.total() * smallest.bytes(pool.page_bytes()) as u64,
    };
    let free_bytes = pool.segments().free_share(bytes.stored_bytes);
    Ok(IndexStats {
        pages: bytes.pages,
        leaf_pages: tree.leaf_pages_estimate()?,
        stored_bytes: bytes.stored_bytes,
        logical_bytes: logical(bytes.by_class),
        stored_logical_bytes: logical(bytes.stored_by_class),
        free_bytes,
        allocated_bytes: bytes.stored_bytes + free_bytes,
        depth: tree.depth()? as u64,
    })
}

/// The bytes in the files that belong to no table: the catalog, the undo log, tables being dropped,
/// and the page map.
const ENGINE: &str = "#engine";

impl Db {
    /// Begins to estimate the size of a table with this definition, from rows that the caller adds.
    /// The table need not exist. Fails with `Limit` for a table that could not be created.
    pub fn estimate(&self, spec: &TableSpec) -> Result<Estimate> {
        Estimate::new(&self.0.core, spec)
    }

    /// The sizes of all usable tables by name, including the engine's own, and, last, of the engine
    /// itself. The allocated bytes add up to the bytes of the files, without logs. Reads little
    /// from disk, but visits every entry of the page table, one for each page of the database.
    pub fn sizes(&self) -> Vec<TableSizes> {
        let core = &self.0.core;
        let cached = core.pool.cached();
        let of = |id: TableId| {
            let table = core.catalog.by_id(id)?;
            let stats = table.stats().ok()?;
            let sizes = |(index, stats): (&IndexDef, IndexStats)| {
                let cached = cached.get(&index.tree).copied().unwrap_or_default();
                (index.name.clone(), Sizes { stats, cached })
            };
            let sizes = TableSizes {
                name: table.name(),
                rows: table.row_count(),
                auto_increment: table.auto_increment(),
                compression: table.def().compression,
                indexes: table.indexes().iter().zip(stats).map(sizes).collect(),
            };
            Some((table, sizes))
        };
        // Tables dropped meanwhile, and quarantined ones, are left out. By ID, because a name may
        // move from one table to another.
        let mut found: Vec<_> = core.catalog.ids().into_iter().filter_map(of).collect();
        found.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
        share_files(core, found, &cached)
    }
}

/// Divides the files' bytes among the tables in proportion to their stored bytes, which it reads
/// again for all tables at about the same moment.
fn share_files(
    core: &Core,
    found: Vec<(Arc<Table>, TableSizes)>,
    cached: &HashMap<TreeId, Cached>,
) -> Vec<TableSizes> {
    let mut tables = Vec::with_capacity(found.len() + 1);
    for (table, mut sizes) in found {
        for (index, (_, sizes)) in table.indexes().iter().zip(&mut sizes.indexes) {
            sizes.stats.stored_bytes = core.pool.tree_bytes(index.tree).stored_bytes;
        }
        tables.push(sizes);
    }
    let (file_bytes, live_bytes) = core.upkeep.file_and_live_bytes();
    let stored = |tables: &[TableSizes]| {
        tables.iter().flat_map(|table| &table.indexes).map(|(_, s)| s.stats.stored_bytes).sum::<u64>()
    };
    tables.push(engine_sizes(core, live_bytes.saturating_sub(stored(&tables)), cached));
    let (all, mut before, mut given) = (stored(&tables), 0, 0);
    for (_, sizes) in tables.iter_mut().flat_map(|table| &mut table.indexes) {
        let stats = &mut sizes.stats;
        before += stats.stored_bytes;
        let upto =
            (u128::from(file_bytes) * u128::from(before)).checked_div(all.into()).unwrap_or_default() as u64;
        stats.allocated_bytes = upto - given;
        stats.free_bytes = stats.allocated_bytes.saturating_sub(stats.stored_bytes);
        given = upto;
    }
    if let Some((_, engine)) = tables.last_mut().and_then(|table| table.indexes.last_mut()) {
        let map_bytes = core.checkpointer.map_file_bytes() + core.leaves.change_file_bytes();
        engine.stats.free_bytes += file_bytes - given;
        engine.stats.stored_bytes += map_bytes;
        engine.stats.allocated_bytes += file_bytes - given + map_bytes;
    }
    tables
}

fn engine_sizes(core: &Core, stored_bytes: u64, cached: &HashMap<TreeId, Cached>) -> TableSizes {
    let mut all =
        Sizes { stats: IndexStats { depth: 1, ..IndexStats::default() }, cached: Cached::default() };
    for tree in [TreeId::CATALOG, TreeId::UNDO] {
        let bytes = core.pool.tree_bytes(tree);
        let logical = |counts: PageCounts| counts.bytes(core.pool.page_bytes(), PageClass::Base);
        let (logical_bytes, stored_logical_bytes) = (logical(bytes.by_class), logical(bytes.stored_by_class));
        let stats =
            IndexStats { pages: bytes.pages, logical_bytes, stored_logical_bytes, ..IndexStats::default() };
        all += Sizes { stats, cached: cached.get(&tree).copied().unwrap_or_default() };
    }
    all.stats.stored_bytes = stored_bytes;
    TableSizes {
        name: ENGINE.to_owned(),
        rows: 0,
        auto_increment: 1,
        compression: Compression::default(),
        indexes: vec![("(all)".to_owned(), all)],
    }
}

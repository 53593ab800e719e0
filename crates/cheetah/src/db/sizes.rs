//! Sizes of tables and indexes: for views, for SHOW TABLE STATUS, and for the optimizer.

use super::Db;
use crate::base::Result;
use crate::format::catalog::IndexDef;
use crate::format::image::Compression;
use crate::pool::{Cached, PageCounts};
use crate::table::{Estimate, Table, TableSpec};
use crate::tree::Tree;
use std::ops::AddAssign;
use std::sync::Arc;

/// Sizes of an index.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct IndexStats {
    /// Pages, those of large values included.
    pub pages: u64,
    /// About how many of them are leaves.
    pub leaf_pages: u64,
    /// Bytes of their images on disk.
    pub stored_bytes: u64,
    /// Bytes that all pages take in memory, that is, uncompressed. Of pages that were not in memory since the opening, the
    /// size is guessed: of large values that compress well, it is too low.
    pub logical_bytes: u64,
    /// The same of those pages that have an image.
    pub stored_logical_bytes: u64,
    /// Its share of what in the files is no page's newest image, and will be given back.
    pub free_bytes: u64,
    /// Levels of the tree.
    pub depth: u64,
}

/// Sizes, and what of them is in memory.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sizes {
    /// Sizes.
    pub stats: IndexStats,
    /// What is in memory.
    pub cached: Cached,
}

/// Of several indexes together; the depth is that of the deepest.
impl AddAssign for Sizes {
    fn add_assign(&mut self, other: Self) {
        let (stats, cached) = (&mut self.stats, &mut self.cached);
        stats.pages += other.stats.pages;
        stats.leaf_pages += other.stats.leaf_pages;
        stats.stored_bytes += other.stats.stored_bytes;
        stats.logical_bytes += other.stats.logical_bytes;
        stats.stored_logical_bytes += other.stats.stored_logical_bytes;
        stats.free_bytes += other.stats.free_bytes;
        stats.depth = stats.depth.max(other.stats.depth);
        cached.pages += other.cached.pages;
        cached.bytes += other.cached.bytes;
        cached.leaf_bytes += other.cached.leaf_bytes;
        cached.leaf_used_bytes += other.cached.leaf_used_bytes;
    }
}

/// A table and the sizes of its indexes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableSizes {
    /// Its name.
    pub name: String,
    /// Its rows, those of open transactions included.
    pub rows: u64,
    /// The next auto-increment value.
    pub auto_increment: u64,
    /// How it is compressed.
    pub compression: Compression,
    /// Names and sizes of its indexes; the first is the clustered one, to which the large values belong.
    pub indexes: Vec<(String, Sizes)>,
}

impl Table {
    /// Sizes of its indexes, in order. Reads little from disk.
    pub fn stats(&self) -> Result<Vec<IndexStats>> {
        let _usage = self.use_it()?;
        self.trees().iter().enumerate().map(|(index_no, tree)| index_stats(index_no, tree)).collect()
    }

    /// About how many entries of an index have a stored key from `low` on and before `high`; `None` is the end on
    /// that side. Reads little from disk.
    pub fn records_in_range(&self, index_no: usize, low: Option<&[u8]>, high: Option<&[u8]>) -> Result<u64> {
        let _usage = self.use_it()?;
        self.tree(index_no)?.count_between(low.unwrap_or_default(), high)
    }
}

fn index_stats(index_no: usize, tree: &Arc<Tree>) -> Result<IndexStats> {
    let pool = tree.pool();
    let bytes = pool.tree_bytes(tree.def().id);
    let smallest = tree.def().class;
    // Large values are in the first index only: pages of others are known to have the size of their tree's.
    let logical = |counts: PageCounts| match index_no {
        0 => counts.bytes(pool.page_bytes(), smallest),
        _ => counts.total() * smallest.bytes(pool.page_bytes()) as u64,
    };
    Ok(IndexStats {
        pages: bytes.pages,
        leaf_pages: tree.leaf_pages_estimate()?,
        stored_bytes: bytes.stored_bytes,
        logical_bytes: logical(bytes.by_class),
        stored_logical_bytes: logical(bytes.stored_by_class),
        free_bytes: pool.free_share(bytes.stored_bytes),
        depth: tree.depth()? as u64,
    })
}

impl Db {
    /// Begins to find out what a table like that would weigh, from rows that the caller brings; it need not exist. `Limit` for a table that
    /// could not be created.
    pub fn estimate(&self, spec: &TableSpec) -> Result<Estimate> {
        Estimate::new(&self.0.core, spec)
    }

    /// Sizes of all tables that can be used, by name, the engine's own included. Reads little from disk, and looks at
    /// every entry of the page table, one for each page of the database.
    pub fn sizes(&self) -> Vec<TableSizes> {
        let core = &self.0.core;
        let cached = core.pool.cached();
        let of = |name: String| {
            let table = core.catalog.by_name(&name).ok()?;
            let stats = table.stats().ok()?;
            let sizes = |(index, stats): (&IndexDef, IndexStats)| {
                let cached = cached.get(&index.tree).copied().unwrap_or_default();
                (index.name.clone(), Sizes { stats, cached })
            };
            Some(TableSizes {
                name,
                rows: table.row_count(),
                auto_increment: table.auto_increment(),
                compression: table.def().compression,
                indexes: table.indexes().iter().zip(stats).map(sizes).collect(),
            })
        };
        // One that has been dropped meanwhile, or is fenced, is left out.
        core.catalog.names().into_iter().filter_map(of).collect()
    }
}

//! The costs of compression: images compressed and decompressed, for the server's views.

use crate::db::Db;
use crate::pool::{ImageWork, IMAGE_BYTES_CLASSES};

/// The images of an index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexImageWork {
    /// The name of its table.
    pub table: String,
    /// Its name.
    pub index: String,
    /// The images compressed and decompressed.
    pub work: ImageWork,
}

impl Db {
    /// Returns the images compressed and decompressed, of all pages, since the database was opened
    /// or the counters were reset, by maximum length. The last class has all longer images. Resets
    /// the counters to zero if `restart`. Does not block.
    pub fn image_work(&self, restart: bool) -> Vec<(u32, ImageWork)> {
        IMAGE_BYTES_CLASSES.into_iter().zip(self.0.core.pool.image_work(restart)).collect()
    }

    /// Like [`image_work`](Self::image_work), for each index of each table, with separate counters.
    /// Large values count for the first index.
    pub fn image_work_of_indexes(&self, restart: bool) -> Vec<IndexImageWork> {
        let core = &self.0.core;
        let mut list = Vec::new();
        for table in core.catalog.names() {
            // The table may have been dropped meanwhile.
            let Ok(open) = core.catalog.by_name(&table) else { continue };
            list.extend(open.indexes().iter().map(|index| IndexImageWork {
                table: table.clone(),
                index: index.name.clone(),
                work: core.pool.tree_image_work(index.tree, restart),
            }));
        }
        list
    }
}

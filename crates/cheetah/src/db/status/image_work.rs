//! The costs of compression: images made and read back, for the views of the server.

use crate::db::Db;
use crate::pool::{ImageWork, IMAGE_BYTES_CLASSES};

/// The images of an index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexImageWork {
    /// The name of its table.
    pub table: String,
    /// Its name.
    pub index: String,
    /// Those made and read back.
    pub work: ImageWork,
}

impl Db {
    /// Images made and read back since the database was opened or the counters were restarted, of
    /// all pages, by the bytes that they have at most; the last ones are all that are longer than
    /// those before. The counters start at zero again if `restart`. Does not block.
    pub fn image_work(&self, restart: bool) -> Vec<(u32, ImageWork)> {
        IMAGE_BYTES_CLASSES.into_iter().zip(self.0.core.pool.image_work(restart)).collect()
    }

    /// As [`image_work`](Self::image_work), of each index of each table, counted by itself; large
    /// values are in the first index.
    pub fn image_work_of_indexes(&self, restart: bool) -> Vec<IndexImageWork> {
        let core = &self.0.core;
        let mut list = Vec::new();
        for table in core.catalog.names() {
            // It may have been dropped meanwhile.
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

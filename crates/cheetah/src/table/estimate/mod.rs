//! Estimates the size of a table in each format: converts a sample of its rows to pages and images,
//! as a load would.
//!
//! The rows may come from any engine. The caller supplies *runs* of neighbouring rows, in key
//! order, from positions all over each index. The bytes per row in a run follow from the run's leaf
//! pages and the large values of its rows. The total is the mean of all runs, and its error follows
//! from the differences between runs (cluster sampling with probabilities proportional to size:
//! Cochran, Sampling Techniques, 3rd edition, 1977, 9A).
//!
//! Invariants
//!   I1  The code that makes pages and images of tables also makes those of the sample.
//!   I2  A run over a whole index gives the exact size of the index: its error is 0.
//!   I3  Memory does not grow with the table: the estimate keeps a page, the rows of one run, and a
//!       few pages and numbers for each run.
//! Errors    A row that causes an error does not count in the bytes, but may in the mean times.

mod dictionary_saving;
mod run;
mod scales;

use crate::base::{Error, PageId, Result};
use crate::format::catalog::TableDef;
use crate::format::image::Compression;
use crate::format::page::max_payload_bytes;
use crate::format::row::{Locator, LOCATOR_BYTES};
use crate::format::varint;
use crate::pool::PageClass;
use crate::table::definitions::ddl::definition;
use crate::table::definitions::format_words::offered;
use crate::table::definitions::handle::{class_of, stored_key_bytes_max};
use crate::table::definitions::spec::TableSpec;
use crate::table::rows::large::page_capacity;
use crate::table::rows::stored_row::{choose_moves, find_values, rebuild, Value};
use crate::table::shared::parts::Core;
use run::{IndexSample, Total};
use scales::Scales;
use std::sync::Arc;

const RUNS: u32 = 40;
/// Measured pieces of a large value: the pieces of a long value are similar.
const PIECES_MAX: usize = 4;
/// Half the width of a 95 percent confidence interval, in standard errors.
const ERRORS_TO_95: f64 = 1.96;

/// A sample of a table, and its size so far.
#[derive(Debug)]
pub struct Estimate {
    core: Arc<Core>,
    def: TableDef,
    scales: Scales,
    indexes: Vec<IndexSample>,
    values: Vec<Value>,
    row: Vec<u8>,
    /// Rows and entries so far, used as hidden keys.
    rows: u64,
}

/// The estimated size of a table in one format.
#[derive(Clone, PartialEq, Debug)]
pub struct Weight {
    /// Codec and level.
    pub compression: Compression,
    /// The KEY_BLOCK_SIZE that selects it, in KiB; `None` if no KEY_BLOCK_SIZE selects it.
    pub key_block_size: Option<u64>,
    /// Rows of the table: counted if the sample has the whole table, otherwise the caller's number.
    pub rows: u64,
    /// Rows in the sample of the clustered index.
    pub sampled_rows: u64,
    /// Bytes of the images of all pages after a load, without other contents of the file.
    pub bytes: u64,
    /// The half width of the 95 percent confidence interval of `bytes`, as a fraction of `bytes`,
    /// if `rows` is right; `None` if there is only one run.
    pub error: Option<f64>,
    /// Pages measured.
    pub pages: u64,
    /// The mean time to encode the image of a page.
    pub encode_ns: u64,
    /// The mean time to decode the image of a page.
    pub decode_ns: u64,
}

impl Estimate {
    /// Begins an estimate for a table with this definition; its name and compression do not matter.
    /// Returns `Limit` for a table that could not be created.
    pub(crate) fn new(core: &Arc<Core>, spec: &TableSpec) -> Result<Self> {
        let def = definition(core, spec)?;
        let page_bytes = core.pool.page_bytes();
        let mut indexes = Vec::with_capacity(def.indexes.len());
        for (index_no, index) in def.indexes.iter().enumerate() {
            let key_bytes_max = stored_key_bytes_max(&def, index_no);
            let class = class_of(&core.pool, key_bytes_max)?;
            indexes.push(IndexSample::new(class.bytes(page_bytes), key_bytes_max, index.row_format.clone()));
        }
        let scales = Scales::new(
            Arc::clone(&core.clock),
            page_bytes,
            offered().map(|(_, compression)| compression).collect(),
        );
        let (values, row) = (Vec::new(), Vec::new());
        Ok(Self { core: Arc::clone(core), def, scales, indexes, values, row, rows: 0 })
    }

    /// The number of runs wanted per index.
    pub fn runs_wanted(&self) -> u32 {
        RUNS
    }

    /// Begins a run: the next rows or entries of the index are neighbours, from a new position.
    /// `from_start`: from the start of the index.
    pub fn start_run(&mut self, index_no: usize, from_start: bool) -> Result<()> {
        let Self { scales, indexes, .. } = self;
        index_of(indexes, index_no)?.start(scales, from_start);
        Ok(())
    }

    /// Notes that the run has reached the end of the index.
    pub fn reach_end(&mut self, index_no: usize) -> Result<()> {
        index_of(&mut self.indexes, index_no)?.reach_end();
        Ok(())
    }

    /// Adds a row to the run, with its large values inline. The key is ignored if the engine
    /// generates hidden keys. Returns whether the run wants more, or `Limit` for a row that the
    /// table could not have.
    pub fn add_row(&mut self, key: &[u8], row: &[u8]) -> Result<bool> {
        let hidden = self.rows.to_be_bytes();
        let key = if self.def.hidden_key { hidden.as_slice() } else { key };
        self.rows += 1;
        let (large, large_pages) = self.build_row(row)?;
        let large_bytes = row.len().saturating_sub(self.row.len()) as u64;
        let Self { scales, indexes, row, .. } = self;
        let clustered = index_of(indexes, 0)?;
        if !clustered.add(scales, key, row)? {
            return Ok(false);
        }
        Ok(clustered.add_large(&large, large_pages, large_bytes))
    }

    /// Adds an entry, followed by the clustered key, to the run of a secondary index. That key is
    /// ignored if the engine generates hidden keys. Returns whether the run wants more.
    pub fn add_entry(
        &mut self,
        index_no: usize,
        key: &[u8],
        clustered: &[u8],
        payload: &[u8],
    ) -> Result<bool> {
        let hidden = self.rows.to_be_bytes();
        let clustered = if self.def.hidden_key { hidden.as_slice() } else { clustered };
        self.rows += 1;
        let stored_key = [key, clustered].concat();
        let mut stored = Vec::with_capacity(payload.len() + varint::MAX_BYTES);
        varint::put(&mut stored, clustered.len() as u64);
        stored.extend_from_slice(payload);
        index_of(&mut self.indexes, index_no)?.add(&mut self.scales, &stored_key, &stored)
    }

    /// The size of a table of `rows` rows in each format that it can have, the least dense first.
    /// Returns `Limit` if there is no memory to try dictionaries.
    pub fn weigh(&mut self, rows: u64) -> Result<Vec<Weight>> {
        let Self { scales, indexes, .. } = self;
        indexes.iter_mut().for_each(|index| index.finish(scales));
        let counted = indexes.first().and_then(IndexSample::counted);
        let rows = counted.unwrap_or(rows);
        let sampled_rows = indexes.first().map_or(0, IndexSample::sampled_rows);
        let weight = |(no, (key_block_size, compression))| {
            let totals: Result<Vec<_>> =
                indexes.iter_mut().map(|index| index.total(scales, no, rows)).collect();
            let total = Total::sum(totals?.into_iter());
            let (pages, encode_ns, decode_ns) = scales.times(no);
            Ok(Weight {
                compression,
                key_block_size,
                rows,
                sampled_rows,
                bytes: total.bytes.round() as u64,
                error: total.relative_error().map(|error| error * ERRORS_TO_95),
                pages,
                encode_ns,
                decode_ns,
            })
        };
        offered().enumerate().map(weight).collect()
    }

    /// Builds the stored row in `self.row`. Returns the image sizes, with each compression, and the
    /// page count of the large values that move out of it.
    fn build_row(&mut self, row: &[u8]) -> Result<(Vec<f64>, u64)> {
        let Self { core, def, scales, indexes, values, row: stored, rows } = self;
        let row_format = def.indexes.first().map(|index| &index.row_format);
        let (Some(row_format), Some(clustered)) = (row_format, indexes.first_mut()) else {
            return Ok((Vec::new(), 0));
        };
        let key_bytes_max = stored_key_bytes_max(def, 0);
        let page_bytes = class_of(&core.pool, key_bytes_max)?.bytes(core.pool.page_bytes());
        let bytes_max = max_payload_bytes(page_bytes, key_bytes_max);
        stored.clear();
        let mut large = vec![0.0; scales.count()];
        if row.len() <= bytes_max {
            stored.extend_from_slice(row);
            return Ok((large, 0));
        }
        let mut pages = 0;
        find_values(row_format, row, values)?;
        choose_moves(row_format, row, values, bytes_max)?;
        for value in values.iter().filter(|value| value.moves) {
            let bytes = row.get(value.at.clone()).unwrap_or_default();
            let pieces: Vec<_> = bytes.chunks(page_capacity(&core.pool, PageClass::Large)).collect();
            let step = pieces.len().div_ceil(PIECES_MAX).max(1);
            let weighed = pieces.len().div_ceil(step) as f64;
            pages += pieces.len() as u64;
            for piece in pieces.iter().step_by(step) {
                let fits = |class: &PageClass| page_capacity(&core.pool, *class) >= piece.len();
                let class = PageClass::ALL.into_iter().find(fits).unwrap_or(PageClass::Large);
                scales.weigh_content(
                    class.bytes(core.pool.page_bytes()),
                    piece,
                    pieces.len() as f64 / weighed,
                    &mut large,
                    clustered.sample().large(),
                );
            }
        }
        let locator =
            |value: &Value| Locator { value_bytes: value.at.len() as u64, first_page: PageId(*rows) };
        let locators: Vec<_> = values.iter().map(|value| locator(value).encode()).collect();
        let missing = || Error::corrupt("large values of a row", "a value that was not measured");
        rebuild(row_format, row, values, stored, |no, _| {
            locators.get(no).map(<[u8; LOCATOR_BYTES]>::as_slice).ok_or_else(missing)
        })?;
        Ok((large, pages))
    }
}

fn index_of(indexes: &mut [IndexSample], index_no: usize) -> Result<&mut IndexSample> {
    let limit = indexes.len() as u64 - 1;
    indexes.get_mut(index_no).ok_or(Error::Limit { what: "index number", actual: index_no as u64, limit })
}

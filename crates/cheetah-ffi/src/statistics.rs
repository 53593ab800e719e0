//! Sizes and counters of the engine for the server's views.

use crate::barrier::{answer, entry};
use crate::callbacks::each;
use crate::types::*;
use crate::CheetahDb;
use cheetah::server::{ImageWork, PoolStatus, Sizes, FORMAT_VERSION};

/// Sizes of one or more indexes.
#[repr(C)]
pub struct CheetahSizes {
    /// The number of pages.
    pub pages: u64,
    /// The approximate number of leaves.
    pub leaf_pages: u64,
    /// Levels of the deepest tree.
    pub depth: u64,
    /// Bytes of all pages before compression.
    pub logical_bytes: u64,
    /// Bytes before compression of the pages on disk.
    pub stored_logical_bytes: u64,
    /// Bytes of these pages on disk.
    pub stored_bytes: u64,
    /// The share of the space in the files that will be freed.
    pub free_bytes: u64,
    /// The share of the files, without data that is still in tails.
    pub allocated_bytes: u64,
    /// Bytes of pages in memory.
    pub cached_bytes: u64,
    /// Bytes of leaves in memory.
    pub leaf_bytes: u64,
    /// Bytes in use in these leaves.
    pub leaf_used_bytes: u64,
}

/// A table and its sizes. Its strings are valid only during the call.
#[repr(C)]
pub struct CheetahTableSizes {
    /// Its name.
    pub name: CheetahBytes,
    /// The number of rows.
    pub rows: u64,
    /// The number of indexes, including the clustered index.
    pub index_count: u64,
    /// The next auto-increment value.
    pub auto_increment: u64,
    /// Sizes of the clustered index, including the large values.
    pub data: CheetahSizes,
    /// Total sizes of the secondary indexes.
    pub secondary: CheetahSizes,
    /// The level of its codec.
    pub compression_level: i32,
    /// A `CheetahCompression`.
    pub compression: u8,
    /// The format version of its pages.
    pub format_version: u8,
}

/// An index and its sizes. Its strings are valid only during the call.
#[repr(C)]
pub struct CheetahIndexSizes {
    /// The name of its table.
    pub table: CheetahBytes,
    /// Its name.
    pub index: CheetahBytes,
    /// Its sizes.
    pub sizes: CheetahSizes,
    /// The level of its codec.
    pub compression_level: i32,
    /// A `CheetahCompression`.
    pub compression: u8,
}

/// Encoding and decoding of images of pages. Its strings are valid only during the call.
#[repr(C)]
pub struct CheetahImageWork {
    /// The maximum size of these images; 0: all images of an index.
    pub image_bytes_max: u64,
    /// The table of the index.
    pub table: CheetahBytes,
    /// The index.
    pub index: CheetahBytes,
    /// The number of images encoded.
    pub encodes: u64,
    /// Time spent encoding.
    pub encode_ns: u64,
    /// The number of images decoded.
    pub decodes: u64,
    /// Time spent decoding.
    pub decode_ns: u64,
}

/// Statistics of the buffer pool. `size_pages` and `free_pages` count memory in pages of the
/// smallest size.
#[repr(C)]
pub struct CheetahPoolStats {
    /// Pages that fit into the memory for frames.
    pub size_pages: u64,
    /// Pages that still fit before others must be evicted.
    pub free_pages: u64,
    /// Pages in memory.
    pub pages: u64,
    /// Pages in memory that are evicted first, unless they are used again.
    pub leaving_pages: u64,
    /// Pages in memory that were changed and not yet written.
    pub dirty_pages: u64,
    /// Pages requested since the startup.
    pub gets: u64,
    /// Pages read.
    pub reads: u64,
    /// New pages.
    pub creates: u64,
    /// Pages written.
    pub writes: u64,
    /// Pages read ahead, before they were requested.
    pub reads_ahead: u64,
    /// Pages read ahead that were evicted without being requested.
    pub ahead_wasted: u64,
    /// `reads` per thousand seconds, since the last output of the status.
    pub reads_per_1000_s: u64,
    /// `creates` per thousand seconds, since the last output of the status.
    pub creates_per_1000_s: u64,
    /// `writes` per thousand seconds, since the last output of the status.
    pub writes_per_1000_s: u64,
    /// `reads_ahead` per thousand seconds, since the last output of the status.
    pub reads_ahead_per_1000_s: u64,
    /// `ahead_wasted` per thousand seconds, since the last output of the status.
    pub ahead_wasted_per_1000_s: u64,
    /// Requests per thousand that found their page in memory, since the last output of the status.
    pub hits_per_1000: u64,
    /// 1 if `hits_per_1000` is valid: at least one page was requested.
    pub has_hits: u8,
}

/// Receives one table.
pub type CheetahTableSizesSink = unsafe extern "C" fn(context: *mut c_void, table: *const CheetahTableSizes);
/// Receives one index.
pub type CheetahIndexSizesSink = unsafe extern "C" fn(context: *mut c_void, index: *const CheetahIndexSizes);
/// The predicted cache misses with a given amount of memory.
#[repr(C)]
pub struct CheetahCurvePoint {
    /// The memory, in percent of the present memory.
    pub percent: u64,
    /// The memory in bytes.
    pub memory_bytes: u64,
    /// Page reads per million requests.
    pub misses_per_million: u64,
    /// Page reads per thousand seconds.
    pub reads_per_1000_s: u64,
}

/// Receives one point.
pub type CheetahCurvePointSink = unsafe extern "C" fn(context: *mut c_void, point: *const CheetahCurvePoint);
/// Receives one item.
pub type CheetahImageWorkSink = unsafe extern "C" fn(context: *mut c_void, work: *const CheetahImageWork);

impl CheetahImageWork {
    fn new(image_bytes_max: u32, table: &str, index: &str, work: ImageWork) -> Self {
        Self {
            image_bytes_max: image_bytes_max.into(),
            table: CheetahBytes::of(&table),
            index: CheetahBytes::of(&index),
            encodes: work.encodes,
            encode_ns: work.encode_ns,
            decodes: work.decodes,
            decode_ns: work.decode_ns,
        }
    }
}

/// Passes the counters of encoded and decoded images to the sink, one item for each maximum image
/// size. If `restart` is 1, resets the counters to zero.
#[no_mangle]
pub unsafe extern "C" fn cheetah_list_image_work(
    db: &CheetahDb,
    restart: u8,
    sink: CheetahImageWorkSink,
    context: *mut c_void,
) -> i32 {
    entry(|| {
        each(sink, context, db.0.image_work(restart == 1), |(bytes_max, work)| {
            CheetahImageWork::new(*bytes_max, "", "", *work)
        })
    })
}

/// Like `cheetah_list_image_work`, with one item for each index.
#[no_mangle]
pub unsafe extern "C" fn cheetah_list_index_image_work(
    db: &CheetahDb,
    restart: u8,
    sink: CheetahImageWorkSink,
    context: *mut c_void,
) -> i32 {
    entry(|| {
        each(sink, context, db.0.image_work_of_indexes(restart == 1), |index| {
            CheetahImageWork::new(0, &index.table, &index.index, index.work)
        })
    })
}

impl From<PoolStatus> for CheetahPoolStats {
    fn from(status: PoolStatus) -> Self {
        let (stats, flow, recent) = (status.stats, status.stats.flow, status.recent);
        Self {
            size_pages: stats.size_pages,
            free_pages: stats.free_pages,
            pages: stats.pages,
            leaving_pages: stats.leaving_pages,
            dirty_pages: stats.dirty_pages,
            gets: flow.gets,
            reads: flow.reads,
            creates: flow.creates,
            writes: flow.writes,
            reads_ahead: flow.reads_ahead,
            ahead_wasted: flow.ahead_wasted,
            reads_per_1000_s: status.per_1000_s(recent.reads),
            creates_per_1000_s: status.per_1000_s(recent.creates),
            writes_per_1000_s: status.per_1000_s(recent.writes),
            reads_ahead_per_1000_s: status.per_1000_s(recent.reads_ahead),
            ahead_wasted_per_1000_s: status.per_1000_s(recent.ahead_wasted),
            hits_per_1000: recent.hits_per_1000().unwrap_or_default(),
            has_hits: recent.hits_per_1000().is_some().into(),
        }
    }
}

/// Gets the statistics of the buffer pool.
#[no_mangle]
pub extern "C" fn cheetah_pool_stats(db: &CheetahDb, stats: &mut CheetahPoolStats) -> i32 {
    answer(stats, || Ok(db.0.pool_status().into()))
}

/// Passes the predicted misses with more or less memory to the sink. Passes nothing if too few
/// pages were requested for a prediction.
#[no_mangle]
pub unsafe extern "C" fn cheetah_list_cache_curve(
    db: &CheetahDb,
    sink: CheetahCurvePointSink,
    context: *mut c_void,
) -> i32 {
    entry(|| {
        each(sink, context, db.0.cache_curve(), |point| CheetahCurvePoint {
            percent: point.percent,
            memory_bytes: point.memory_bytes,
            misses_per_million: point.misses_per_million,
            reads_per_1000_s: point.reads_per_1000_s,
        })
    })
}

impl From<Sizes> for CheetahSizes {
    fn from(Sizes { stats, cached }: Sizes) -> Self {
        Self {
            pages: stats.pages,
            leaf_pages: stats.leaf_pages,
            depth: stats.depth,
            logical_bytes: stats.logical_bytes,
            stored_logical_bytes: stats.stored_logical_bytes,
            stored_bytes: stats.stored_bytes,
            free_bytes: stats.free_bytes,
            allocated_bytes: stats.allocated_bytes,
            cached_bytes: cached.bytes,
            leaf_bytes: cached.leaf_bytes,
            leaf_used_bytes: cached.leaf_used_bytes,
        }
    }
}

/// Passes all usable tables with their sizes to the sink.
#[no_mangle]
pub unsafe extern "C" fn cheetah_list_table_sizes(
    db: &CheetahDb,
    sink: CheetahTableSizesSink,
    context: *mut c_void,
) -> i32 {
    entry(|| {
        each(sink, context, db.0.sizes(), |table| {
            let mut sizes = table.indexes.iter().map(|(_, sizes)| *sizes);
            let data = sizes.next().unwrap_or_default();
            let mut secondary = Sizes::default();
            sizes.for_each(|sizes| secondary += sizes);
            CheetahTableSizes {
                name: CheetahBytes::of(&table.name),
                rows: table.rows,
                index_count: table.indexes.len() as u64,
                auto_increment: table.auto_increment,
                data: data.into(),
                secondary: secondary.into(),
                compression_level: table.compression.level,
                compression: table.compression.codec.code(),
                format_version: FORMAT_VERSION,
            }
        })
    })
}

/// Passes all indexes of usable tables with their sizes to the sink.
#[no_mangle]
pub unsafe extern "C" fn cheetah_list_index_sizes(
    db: &CheetahDb,
    sink: CheetahIndexSizesSink,
    context: *mut c_void,
) -> i32 {
    entry(|| {
        for table in db.0.sizes() {
            each(sink, context, &table.indexes, |(index, sizes)| CheetahIndexSizes {
                table: CheetahBytes::of(&table.name),
                index: CheetahBytes::of(index),
                sizes: (*sizes).into(),
                compression_level: table.compression.level,
                compression: table.compression.codec.code(),
            })?;
        }
        Ok(())
    })
}

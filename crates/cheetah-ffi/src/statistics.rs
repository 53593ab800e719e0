//! The work and the contents of the engine, in numbers, for the views of the server.

use crate::barrier::entry;
use crate::codes::*;
use crate::types::*;
use crate::CheetahDb;
use cheetah::server::{ImageWork, PoolStatus, Sizes, FORMAT_VERSION};
use std::ffi::c_void;

/// Sizes of one index or of several.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahSizes {
    /// Pages.
    pub pages: u64,
    /// Of them leaves, about.
    pub leaf_pages: u64,
    /// Levels of the deepest tree.
    pub depth: u64,
    /// Bytes of all pages before compression.
    pub logical_bytes: u64,
    /// Of those that are on disk.
    pub stored_logical_bytes: u64,
    /// Their bytes on disk.
    pub stored_bytes: u64,
    /// The share of what in the files will be given back.
    pub free_bytes: u64,
    /// The share of the files, without what still waits in tails.
    pub allocated_bytes: u64,
    /// Bytes of pages in memory.
    pub cached_bytes: u64,
    /// Of them those of leaves.
    pub leaf_bytes: u64,
    /// Of these, those in use.
    pub leaf_used_bytes: u64,
}

/// A table and its sizes. Texts are there during the call only.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahTableSizes {
    /// Its name.
    pub name: CheetahBytes,
    /// Its rows.
    pub rows: u64,
    /// Its indexes, the clustered one included.
    pub index_count: u64,
    /// The next auto-increment value.
    pub auto_increment: u64,
    /// The clustered index, with the large values.
    pub data: CheetahSizes,
    /// The others together.
    pub secondary: CheetahSizes,
    /// The level that its codec works at.
    pub compression_level: i32,
    /// A `CheetahCompression`.
    pub compression: u8,
    /// The version of the format in which its pages are written.
    pub format_version: u8,
}

/// An index and its sizes. Texts are there during the call only.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahIndexSizes {
    /// The name of its table.
    pub table: CheetahBytes,
    /// Its name.
    pub index: CheetahBytes,
    /// Its sizes.
    pub sizes: CheetahSizes,
    /// The level that its codec works at.
    pub compression_level: i32,
    /// A `CheetahCompression`.
    pub compression: u8,
}

/// Images made of pages, and read back. Texts are there during the call only.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahImageWork {
    /// The bytes that these images have at most; 0: those of an index.
    pub image_bytes_max: u64,
    /// The table of the index.
    pub table: CheetahBytes,
    /// The index.
    pub index: CheetahBytes,
    /// Images made.
    pub encodes: u64,
    /// Time that it took.
    pub encode_ns: u64,
    /// Images read back.
    pub decodes: u64,
    /// Time that it took.
    pub decode_ns: u64,
}

/// The buffer pool. Memory is counted in pages of the smallest size, pages one by one.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahPoolStats {
    /// Pages that the memory for frames has room for.
    pub size_pages: u64,
    /// Pages that still fit before others have to leave.
    pub free_pages: u64,
    /// Pages in memory.
    pub pages: u64,
    /// Of them those that leave first, unless they are used again.
    pub leaving_pages: u64,
    /// Of them those that have changed and are not written.
    pub dirty_pages: u64,
    /// Pages asked for since the startup.
    pub gets: u64,
    /// Pages read.
    pub reads: u64,
    /// New pages.
    pub creates: u64,
    /// Pages written.
    pub writes: u64,
    /// Pages read before anybody asked for them.
    pub reads_ahead: u64,
    /// Of them those that left memory without anybody asking.
    pub ahead_wasted: u64,
    /// `reads` since the last output of the status, in a thousand seconds.
    pub reads_per_1000_s: u64,
    /// Likewise.
    pub creates_per_1000_s: u64,
    /// Likewise.
    pub writes_per_1000_s: u64,
    /// Likewise.
    pub reads_ahead_per_1000_s: u64,
    /// Likewise.
    pub ahead_wasted_per_1000_s: u64,
    /// Of a thousand pages asked for since then, how many were in memory.
    pub hits_per_1000: u64,
    /// 1 when `hits_per_1000` means something: somebody has asked.
    pub has_hits: u8,
}

/// Takes one table.
pub type CheetahTableSizesSink = unsafe extern "C" fn(context: *mut c_void, table: *const CheetahTableSizes);
/// Takes one index.
pub type CheetahIndexSizesSink = unsafe extern "C" fn(context: *mut c_void, index: *const CheetahIndexSizes);
/// The misses of the cache with a size of memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahCurvePoint {
    /// The memory, in percent of what there is.
    pub percent: u64,
    /// The same in bytes.
    pub memory_bytes: u64,
    /// Of a million pages asked for, how many would be read.
    pub misses_per_million: u64,
    /// Pages read in a thousand seconds.
    pub reads_per_1000_s: u64,
}

/// Takes one point.
pub type CheetahCurvePointSink = unsafe extern "C" fn(context: *mut c_void, point: *const CheetahCurvePoint);
/// Takes one of them.
pub type CheetahImageWorkSink = unsafe extern "C" fn(context: *mut c_void, work: *const CheetahImageWork);

impl CheetahImageWork {
    fn new(image_bytes_max: u32, table: &str, index: &str, work: ImageWork) -> Self {
        Self {
            image_bytes_max: image_bytes_max.into(),
            table: CheetahBytes::of(table.as_bytes()),
            index: CheetahBytes::of(index.as_bytes()),
            encodes: work.encodes,
            encode_ns: work.encode_ns,
            decodes: work.decodes,
            decode_ns: work.decode_ns,
        }
    }
}

/// Tells the images made and read back, by their length. The counters start at zero again if
/// `restart` is 1.
#[no_mangle]
pub unsafe extern "C" fn cheetah_list_image_work(
    db: *mut CheetahDb,
    restart: u8,
    sink: CheetahImageWorkSink,
    context: *mut c_void,
) -> i32 {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    entry(|| {
        for (image_bytes_max, work) in db.0.image_work(restart == 1) {
            let told = CheetahImageWork::new(image_bytes_max, "", "", work);
            // SAFETY: the caller's function gets the caller's context.
            unsafe { sink(context, &told) };
        }
        Ok(Code::Ok)
    })
}

/// As `cheetah_list_image_work`, by index.
#[no_mangle]
pub unsafe extern "C" fn cheetah_list_index_image_work(
    db: *mut CheetahDb,
    restart: u8,
    sink: CheetahImageWorkSink,
    context: *mut c_void,
) -> i32 {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    entry(|| {
        for index in db.0.image_work_of_indexes(restart == 1) {
            let told = CheetahImageWork::new(0, &index.table, &index.index, index.work);
            // SAFETY: the caller's function gets the caller's context.
            unsafe { sink(context, &told) };
        }
        Ok(Code::Ok)
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

/// Tells the buffer pool in numbers.
#[no_mangle]
pub unsafe extern "C" fn cheetah_pool_stats(db: *mut CheetahDb, stats: *mut CheetahPoolStats) -> i32 {
    // SAFETY: by the contract of the crate the handle is open, and there is room for the numbers.
    let (db, stats) = unsafe { (&*db, &mut *stats) };
    entry(|| {
        *stats = db.0.pool_status().into();
        Ok(Code::Ok)
    })
}

/// Tells what the cache would miss with more or less memory; nothing when too little was asked for.
#[no_mangle]
pub unsafe extern "C" fn cheetah_list_cache_curve(
    db: *mut CheetahDb,
    sink: CheetahCurvePointSink,
    context: *mut c_void,
) -> i32 {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    entry(|| {
        for point in db.0.cache_curve() {
            let told = CheetahCurvePoint {
                percent: point.percent,
                memory_bytes: point.memory_bytes,
                misses_per_million: point.misses_per_million,
                reads_per_1000_s: point.reads_per_1000_s,
            };
            // SAFETY: the caller's function gets the caller's context.
            unsafe { sink(context, &told) };
        }
        Ok(Code::Ok)
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

/// Tells all tables that can be used, with their sizes.
#[no_mangle]
pub unsafe extern "C" fn cheetah_list_table_sizes(
    db: *mut CheetahDb,
    sink: CheetahTableSizesSink,
    context: *mut c_void,
) -> i32 {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    entry(|| {
        for table in db.0.sizes() {
            let mut sizes = table.indexes.iter().map(|(_, sizes)| *sizes);
            let data = sizes.next().unwrap_or_default();
            let mut secondary = Sizes::default();
            sizes.for_each(|sizes| secondary += sizes);
            let told = CheetahTableSizes {
                name: CheetahBytes::of(table.name.as_bytes()),
                rows: table.rows,
                index_count: table.indexes.len() as u64,
                auto_increment: table.auto_increment,
                data: data.into(),
                secondary: secondary.into(),
                compression_level: table.compression.level,
                compression: table.compression.codec.code(),
                format_version: FORMAT_VERSION,
            };
            // SAFETY: the caller's function gets the caller's context.
            unsafe { sink(context, &told) };
        }
        Ok(Code::Ok)
    })
}

/// Tells all their indexes.
#[no_mangle]
pub unsafe extern "C" fn cheetah_list_index_sizes(
    db: *mut CheetahDb,
    sink: CheetahIndexSizesSink,
    context: *mut c_void,
) -> i32 {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    entry(|| {
        for table in db.0.sizes() {
            for (index, sizes) in &table.indexes {
                let told = CheetahIndexSizes {
                    table: CheetahBytes::of(table.name.as_bytes()),
                    index: CheetahBytes::of(index.as_bytes()),
                    sizes: (*sizes).into(),
                    compression_level: table.compression.level,
                    compression: table.compression.codec.code(),
                };
                // SAFETY: the caller's function gets the caller's context.
                unsafe { sink(context, &told) };
            }
        }
        Ok(Code::Ok)
    })
}

//! What the engine has done and holds, in numbers, for the views of the server.

use crate::barrier::entry;
use crate::types::*;
use crate::CheetahDb;
use cheetah::db::PoolStatus;
use cheetah::pool::ImageWork;
use std::ffi::c_void;

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
    /// Pages asked for since the opening.
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

/// Tells the images made and read back, by their length. The counters start at zero again if `restart` is 1.
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

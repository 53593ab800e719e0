//! What the engine has done and holds, in numbers, for the views of the server.

use crate::barrier::entry;
use crate::types::*;
use crate::CheetahDb;
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

//! The stages of threads, and their work for a statement, for the server to show.

use crate::barrier::value;
use crate::codes::CheetahStage;
use cheetah::server::page_work::{self, PageWork};
use cheetah::server::stages::{self, Before, Begun, Observer, Stage};

/// The caller's state before a stage; its words mean nothing here.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahStageBefore {
    /// The caller's.
    pub first: u64,
    /// The caller's.
    pub second: u64,
    /// The caller's.
    pub third: u64,
}

/// Is told that the calling thread begins a stage (a `CheetahStage`); it gets the content of
/// `before` back at the end. Returns the number of the connection whose thread it is, or 0.
pub type CheetahStageBegins = unsafe extern "C" fn(stage: u8, before: *mut CheetahStageBefore) -> u64;
/// Is told that the stage has ended.
pub type CheetahStageEnds = unsafe extern "C" fn(stage: u8, before: *const CheetahStageBefore);

/// Returns the number of the connection whose thread calls, or 0.
pub type CheetahConnection = unsafe extern "C" fn() -> u64;

struct Callbacks {
    begins: CheetahStageBegins,
    ends: CheetahStageEnds,
    connection: CheetahConnection,
}

fn code_of(stage: Stage) -> u8 {
    let code = match stage {
        Stage::RowLock => CheetahStage::RowLock,
        Stage::TableLock => CheetahStage::TableLock,
        Stage::LogSpace => CheetahStage::LogSpace,
        Stage::Memory => CheetahStage::Memory,
        Stage::RollingBack => CheetahStage::RollingBack,
    };
    code as u8
}

impl Observer for Callbacks {
    fn begin(&self, stage: Stage) -> Begun {
        let mut before = CheetahStageBefore { first: 0, second: 0, third: 0 };
        // SAFETY: the caller's function needs nothing but a place of ours.
        let connection = unsafe { (self.begins)(code_of(stage), &mut before) };
        Begun { connection, before: [before.first, before.second, before.third] }
    }

    fn end(&self, stage: Stage, before: &Before) {
        let [first, second, third] = *before;
        let before = CheetahStageBefore { first, second, third };
        // SAFETY: as above.
        unsafe { (self.ends)(code_of(stage), &before) };
    }

    fn connection(&self) -> u64 {
        // SAFETY: the caller's function needs nothing.
        unsafe { (self.connection)() }
    }
}

/// Has these functions called, in the threads of all databases of the process, as long as it runs.
/// If it is called again, the first functions stay.
#[no_mangle]
pub unsafe extern "C" fn cheetah_observe_stages(
    begins: CheetahStageBegins,
    ends: CheetahStageEnds,
    connection: CheetahConnection,
) {
    value((), || stages::observe(Callbacks { begins, ends, connection }));
}

/// Work of a thread with pages.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahPageWork {
    /// Pages asked for, in memory or not.
    pub pages_accessed: u64,
    /// Pages changed.
    pub pages_updated: u64,
    /// Images read from disk.
    pub pages_read: u64,
    /// Time that this took.
    pub read_ns: u64,
    /// Pages that other threads were asked to read ahead.
    pub pages_prefetched: u64,
    /// Older versions of rows that were read back.
    pub versions_read: u64,
}

impl CheetahPageWork {
    fn of(work: PageWork) -> Self {
        let PageWork { pages_accessed, pages_updated, pages_read, read_ns, pages_prefetched, versions_read } =
            work;
        Self { pages_accessed, pages_updated, pages_read, read_ns, pages_prefetched, versions_read }
    }

    fn get(&self) -> PageWork {
        let Self { pages_accessed, pages_updated, pages_read, read_ns, pages_prefetched, versions_read } =
            *self;
        PageWork { pages_accessed, pages_updated, pages_read, read_ns, pages_prefetched, versions_read }
    }
}

/// The calling thread counts what it does with pages until `cheetah_end_page_work`, which gets what
/// is put into `since`. Counts may be nested.
#[no_mangle]
pub unsafe extern "C" fn cheetah_begin_page_work(since: *mut CheetahPageWork) {
    // SAFETY: by the contract of the crate the place is the caller's.
    let since = unsafe { &mut *since };
    value((), || *since = CheetahPageWork::of(page_work::begin()));
}

/// Puts what the thread has done since `since` into `done`, and ends that count.
#[no_mangle]
pub unsafe extern "C" fn cheetah_end_page_work(since: *const CheetahPageWork, done: *mut CheetahPageWork) {
    // SAFETY: by the contract of the crate both places are the caller's.
    let (since, done) = unsafe { (&*since, &mut *done) };
    value((), || *done = CheetahPageWork::of(page_work::end(since.get())));
}

//! The stages of threads, and the page work of statements, for the server's views.

use crate::barrier::value;
use crate::codes::*;
use cheetah::server::page_work::{self, PageWork};
use cheetah::server::stages::{self, Before, Begun, Observer, Stage};

/// The caller's state before a stage. The engine does not interpret its words.
#[repr(C)]
pub struct CheetahStageBefore {
    /// Set by the caller.
    pub first: u64,
    /// Set by the caller.
    pub second: u64,
    /// Set by the caller.
    pub third: u64,
}

/// Called when the calling thread begins a stage (a `CheetahStage`). The function for the end of
/// the stage gets the content of `before`. Returns the ID of the thread's connection, or 0.
pub type CheetahStageBegins = unsafe extern "C" fn(stage: u8, before: *mut CheetahStageBefore) -> u64;
/// Called when the stage ends.
pub type CheetahStageEnds = unsafe extern "C" fn(stage: u8, before: *const CheetahStageBefore);

/// Returns the ID of the calling thread's connection, or 0.
pub type CheetahConnection = unsafe extern "C" fn() -> u64;

struct Callbacks {
    begins: CheetahStageBegins,
    ends: CheetahStageEnds,
    connection: CheetahConnection,
}

fn code_of(stage: Stage) -> u8 {
    number!(stage, Stage => CheetahStage { RowLock, TableLock, LogSpace, Memory, RollingBack })
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

/// Sets the functions to call at stages, in the threads of all databases of the process, until the
/// process ends. Later calls have no effect.
#[no_mangle]
pub extern "C" fn cheetah_observe_stages(
    begins: CheetahStageBegins,
    ends: CheetahStageEnds,
    connection: CheetahConnection,
) {
    value((), || stages::observe(Callbacks { begins, ends, connection }));
}

/// The work of a thread on pages.
#[repr(C)]
pub struct CheetahPageWork {
    /// Pages requested, in memory or not.
    pub pages_accessed: u64,
    /// Pages changed.
    pub pages_updated: u64,
    /// Images read from disk.
    pub pages_read: u64,
    /// Time spent reading images.
    pub read_ns: u64,
    /// Pages that the thread requested other threads to read ahead.
    pub pages_prefetched: u64,
    /// Older versions of rows that were read.
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

/// Begins counting the calling thread's work on pages, until `cheetah_end_page_work` is called with
/// the same `since`. Counts may be nested.
#[no_mangle]
pub extern "C" fn cheetah_begin_page_work(since: &mut CheetahPageWork) {
    value((), || *since = CheetahPageWork::of(page_work::begin()));
}

/// Puts the thread's work since `since` into `done`, and ends this count.
#[no_mangle]
pub extern "C" fn cheetah_end_page_work(since: &CheetahPageWork, done: &mut CheetahPageWork) {
    value((), || *done = CheetahPageWork::of(page_work::end(since.get())));
}

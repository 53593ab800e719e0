//! A full buffer that a thread sorts and writes as a run while the sorter fills another buffer.
//!
//! Invariants
//!   W1  The thread ends before the drop of this value returns.

use super::buffer::{Buffer, Part};
use super::memory::Writer;
use super::runs::{Run, RunFile};
use crate::base::{Error, Result};
use std::thread::JoinHandle;

#[derive(Debug)]
pub(super) struct Writing {
    thread: Option<JoinHandle<Written>>,
    bytes_before: u64,
}

/// The result of the thread.
struct Written {
    buffer: Buffer,
    file: RunFile,
    run: Result<Run>,
}

impl Writing {
    pub(super) fn begin(mut buffer: Buffer, mut file: RunFile, writer: Writer) -> Result<Self> {
        let bytes_before = file.bytes();
        let thread = std::thread::Builder::new().name("cheetah-sort".into()).spawn(move || {
            let run = write_run(buffer.whole(), &mut file);
            drop(writer);
            Written { buffer, file, run }
        });
        let thread = thread.map_err(|error| Error::io("start", "a thread that writes sorted runs", error))?;
        Ok(Self { thread: Some(thread), bytes_before })
    }

    /// The length of the file before the run.
    pub(super) fn bytes_before(&self) -> u64 {
        self.bytes_before
    }

    /// Waits until the run was written.
    pub(super) fn end(mut self) -> Result<(Buffer, RunFile, Run)> {
        let thread = self.thread.take().expect("it is taken once");
        let Written { buffer, file, run } =
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((buffer, file, run?))
    }
}

pub(super) fn write_run(mut part: Part<'_>, file: &mut RunFile) -> Result<Run> {
    part.sort();
    part.each(|key, value| file.push(key, value))?;
    file.end_run()
}

impl Drop for Writing {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // The result is no longer needed.
            let _ = thread.join();
        }
    }
}

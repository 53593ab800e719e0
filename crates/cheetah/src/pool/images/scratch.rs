//! Shared memory for encoding, decoding and moving images, so that hundreds of threads need no
//! separate memory.
//!
//! Workspaces are few and large: their number is limited, and a thread that finds none free waits.
//! A thread with a workspace only computes, so the wait is short, and allowed inside
//! mini-transactions and under latches. Buffers hold one image each. Buffers are small but held
//! during I/O, so no thread waits for one.

use crate::format::image::{max_image_bytes, Workspace};
use crate::memory::{MemoryBudget, MemoryUse};
use crate::pool::PageClass;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;

/// Minimum and maximum number of workspaces. With two, one preempted thread does not block all
/// others.
const WORKSPACES_MIN: usize = 2;
const WORKSPACES_MAX: usize = 64;
/// The estimated memory of a workspace. A workspace that was used with a high compression level or
/// a dictionary takes more. The excess is counted when the workspace is returned.
const WORKSPACE_BYTES: usize = 512 << 10;
/// Minimum and maximum number of buffers kept.
const BUFFERS_KEPT_MIN: usize = 4;
const BUFFERS_KEPT_MAX: usize = 64;

/// See the module.
#[derive(Debug)]
pub(in crate::pool) struct Scratch {
    workspaces: Mutex<Workspaces>,
    returned: Condvar,
    workspaces_max: usize,
    buffers: Mutex<Vec<Vec<u8>>>,
    buffer_bytes: usize,
    buffers_kept: usize,
    memory: Arc<MemoryBudget>,
}

#[derive(Default, Debug)]
struct Workspaces {
    /// Each workspace with the bytes counted for it.
    free: Vec<(Workspace, usize)>,
    count: usize,
}

impl Scratch {
    pub(in crate::pool) fn new(memory: &Arc<MemoryBudget>, page_bytes: u32) -> Self {
        let affordable = memory.shares().scratch_bytes_max() / WORKSPACE_BYTES;
        let buffer_bytes = max_image_bytes(PageClass::Large.bytes(page_bytes));
        let buffers_kept = memory.shares().scratch_bytes_max() / buffer_bytes;
        Self {
            workspaces: Mutex::default(),
            returned: Condvar::new(),
            workspaces_max: affordable.clamp(WORKSPACES_MIN, WORKSPACES_MAX),
            buffers: Mutex::default(),
            buffer_bytes,
            buffers_kept: buffers_kept.clamp(BUFFERS_KEPT_MIN, BUFFERS_KEPT_MAX),
            memory: memory.clone(),
        }
    }

    /// Runs `f` with an empty buffer whose capacity is enough for any image.
    pub(in crate::pool) fn with_buffer<T>(&self, f: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        f(&mut TakenBuffer { buffer: self.take_buffer(), scratch: self }.buffer)
    }

    fn take_buffer(&self) -> Vec<u8> {
        let kept = self.buffers.lock().pop();
        kept.unwrap_or_else(|| {
            self.memory.add(MemoryUse::Scratch, self.buffer_bytes);
            Vec::with_capacity(self.buffer_bytes)
        })
    }

    fn give_buffer(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        buffer.shrink_to(self.buffer_bytes);
        let mut kept = self.buffers.lock();
        if kept.len() < self.buffers_kept {
            kept.push(buffer);
        } else {
            self.memory.subtract(MemoryUse::Scratch, self.buffer_bytes);
        }
    }

    /// Runs `f` with a workspace. `f` must not wait or do I/O. Waits while all workspaces are in
    /// use.
    pub(in crate::pool) fn with_workspace<T>(&self, f: impl FnOnce(&mut Workspace) -> T) -> T {
        let (workspace, counted_bytes) = self.take_workspace();
        f(&mut Taken { workspace, counted_bytes, scratch: self }.workspace)
    }

    fn take_workspace(&self) -> (Workspace, usize) {
        let mut workspaces = self.workspaces.lock();
        loop {
            if let Some(workspace) = workspaces.free.pop() {
                return workspace;
            }
            if workspaces.count < self.workspaces_max {
                workspaces.count += 1;
                self.memory.add(MemoryUse::Scratch, WORKSPACE_BYTES);
                return (Workspace::default(), WORKSPACE_BYTES);
            }
            self.returned.wait(&mut workspaces);
        }
    }
}

/// A workspace that is returned on drop, even after a panic, because a lost workspace would never
/// be replaced.
struct Taken<'a> {
    workspace: Workspace,
    counted_bytes: usize,
    scratch: &'a Scratch,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let bytes = self.workspace.memory_bytes().max(WORKSPACE_BYTES);
        let memory = &self.scratch.memory;
        memory.add(MemoryUse::Scratch, bytes.saturating_sub(self.counted_bytes));
        memory.subtract(MemoryUse::Scratch, self.counted_bytes.saturating_sub(bytes));
        self.scratch.workspaces.lock().free.push((std::mem::take(&mut self.workspace), bytes));
        self.scratch.returned.notify_one();
    }
}

/// A buffer that is returned on drop, even after a panic.
struct TakenBuffer<'a> {
    buffer: Vec<u8>,
    scratch: &'a Scratch,
}

impl Drop for TakenBuffer<'_> {
    fn drop(&mut self) {
        self.scratch.give_buffer(std::mem::take(&mut self.buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Epoch, PageId, TreeId, TxnId};
    use crate::format::image::{Codec, Compression, Encoding};
    use crate::format::page::{build_content, PageBuf, PageKind};
    use crate::format::row::RowFormatVersion;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn threads_share_a_fixed_number_of_workspaces() {
        let scratch = Scratch::new(&Arc::new(MemoryBudget::new(1 << 20)), 512);
        let inside = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        scratch.with_workspace(|_| {
                            assert!(inside.fetch_add(1, Ordering::SeqCst) < WORKSPACES_MIN);
                            std::thread::yield_now();
                            inside.fetch_sub(1, Ordering::SeqCst);
                        });
                    }
                });
            }
        });
        assert!(scratch.memory.used(MemoryUse::Scratch) <= WORKSPACES_MIN * WORKSPACE_BYTES);
    }

    #[test]
    fn a_workspace_that_has_grown_is_counted() {
        let scratch = Scratch::new(&Arc::new(MemoryBudget::new(1 << 20)), 512);
        let row_format = RowFormatVersion::opaque();
        let mut page = PageBuf::new(64 << 10);
        let text: Vec<u8> = (0..8000u32).flat_map(|i| format!("{} ", i * i % 977).into_bytes()).collect();
        build_content(&mut page, PageKind::Blob, TreeId(16), PageId::NONE, 0).append_content(&text).unwrap();
        for (level, grown) in [(1, false), (19, true)] {
            let compression = Compression { codec: Codec::Zstd, level };
            let how = Encoding {
                row_format: &row_format,
                compression,
                freeze_below: TxnId(0),
                dictionary: None,
                lock: None,
            };
            scratch.with_workspace(|workspace| {
                workspace.encode(&page, PageId(1), Epoch(1), &how, &mut Vec::new());
            });
            assert_eq!(scratch.memory.used(MemoryUse::Scratch) > WORKSPACE_BYTES, grown);
        }
    }

    #[test]
    fn buffers_are_kept_and_counted_up_to_a_fixed_number() {
        fn nested(scratch: &Scratch, depth: usize) {
            scratch.with_buffer(|buffer| {
                buffer.resize(depth * 1000, 0);
                if depth > 0 {
                    nested(scratch, depth - 1);
                }
            });
        }
        let scratch = Scratch::new(&Arc::new(MemoryBudget::new(1 << 20)), 512);
        nested(&scratch, 9);
        let kept: usize = scratch.buffers.lock().iter().map(Vec::capacity).sum();
        assert_eq!(kept, scratch.memory.used(MemoryUse::Scratch));
        assert_eq!(kept, scratch.buffers_kept * scratch.buffer_bytes);
        scratch.with_buffer(|buffer| assert!(buffer.is_empty()));
    }
}

//! Shared memory for encoding, decoding and moving images, so that hundreds of threads need no
//! separate memory.
//!
//! The number of workspaces is limited, and a thread that finds none free waits. A thread with a
//! workspace only computes, so the wait is short, and allowed inside mini-transactions and under
//! latches. Workspaces for encoding are few and large. Those for decoding are smaller and more,
//! because each lookup whose leaf has no frame needs one: a thread that is preempted while it
//! decodes must not stop others. Buffers hold one image each. Buffers are small but held during
//! I/O, so no thread waits for one.

use crate::format::image::{max_image_bytes, Workspace};
use crate::memory::{MemoryBudget, MemoryUse};
use crate::pool::PageClass;
use crate::segment::ImageBuffer;
use cheetah_io::aligned::ALIGN_BYTES;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;

/// Minimum and maximum number of workspaces. With two, one preempted thread does not block all
/// others.
const WORKSPACES_MIN: usize = 2;
const WORKSPACES_MAX: usize = 64;
/// The estimated memory of a workspace for encoding. A workspace that was used with a high
/// compression level or a dictionary takes more. The excess is counted when it is returned.
const ENCODER_BYTES: usize = 512 << 10;
/// The estimated memory of a workspace for decoding. The excess is counted like that of an encoder.
const DECODER_BYTES: usize = 112 << 10;
/// Minimum and maximum number of idle buffers for images that are read.
const READ_KEPT_MIN: usize = 4;
const READ_KEPT_MAX: usize = 64;
/// The maximum number of idle buffers for images that are made. A thread that makes an image only
/// computes and copies, so few are in use.
const MADE_KEPT_MAX: usize = 4;

/// See the module.
#[derive(Debug)]
pub(in crate::pool) struct Scratch {
    encoders: Workspaces,
    decoders: Workspaces,
    /// Buffers for images that are read.
    read: Kept<ImageBuffer>,
    /// Buffers for images that are made.
    made: Kept<Vec<u8>>,
    memory: Arc<MemoryBudget>,
}

/// Idle buffers of one kind.
#[derive(Debug)]
struct Kept<B> {
    idle: Mutex<Vec<B>>,
    count_max: usize,
    /// The memory counted for each buffer, idle or not.
    bytes: usize,
}

/// The workspaces of one kind.
#[derive(Debug)]
struct Workspaces {
    idle: Mutex<Idle>,
    returned: Condvar,
    count_max: usize,
    /// The estimated memory of each.
    bytes: usize,
}

#[derive(Default, Debug)]
struct Idle {
    /// Each workspace with the bytes counted for it.
    free: Vec<(Workspace, usize)>,
    /// The number of all workspaces, idle or not.
    count: usize,
}

impl Workspaces {
    fn new(bytes: usize, affordable_bytes: usize) -> Self {
        let count_max = (affordable_bytes / bytes).clamp(WORKSPACES_MIN, WORKSPACES_MAX);
        Self { idle: Mutex::default(), returned: Condvar::new(), count_max, bytes }
    }

    fn take(&self, memory: &MemoryBudget) -> (Workspace, usize) {
        let mut idle = self.idle.lock();
        loop {
            if let Some(workspace) = idle.free.pop() {
                return workspace;
            }
            if idle.count < self.count_max {
                idle.count += 1;
                memory.add(MemoryUse::Scratch, self.bytes);
                return (Workspace::default(), self.bytes);
            }
            self.returned.wait(&mut idle);
        }
    }
}

impl Scratch {
    pub(in crate::pool) fn new(memory: &Arc<MemoryBudget>, page_bytes: u32) -> Self {
        let affordable_bytes = memory.shares().scratch_bytes_max();
        let image_bytes = |class: PageClass| max_image_bytes(class.bytes(page_bytes));
        let read_bytes = image_bytes(PageClass::Base) + 2 * ALIGN_BYTES;
        let read_max = (affordable_bytes / read_bytes).clamp(READ_KEPT_MIN, READ_KEPT_MAX);
        Self {
            encoders: Workspaces::new(ENCODER_BYTES, affordable_bytes),
            decoders: Workspaces::new(DECODER_BYTES, affordable_bytes),
            read: Kept::new(read_bytes, read_max),
            made: Kept::new(image_bytes(PageClass::Large), MADE_KEPT_MAX),
            memory: memory.clone(),
        }
    }

    /// Runs `f` with an empty buffer for an image that is read. The buffer grows if the page is
    /// larger than the usual class.
    pub(in crate::pool) fn with_image<T>(&self, f: impl FnOnce(&mut ImageBuffer) -> T) -> T {
        f(&mut self.read.take(&self.memory).buffer)
    }

    /// Runs `f` with an empty buffer whose capacity is enough for any image.
    pub(in crate::pool) fn with_buffer<T>(&self, f: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        f(&mut self.made.take(&self.memory).buffer)
    }

    /// Runs `f` with a workspace for encoding. `f` must not wait or do I/O. Waits while all of them
    /// are in use.
    pub(in crate::pool) fn with_encoder<T>(&self, f: impl FnOnce(&mut Workspace) -> T) -> T {
        self.with(&self.encoders, f)
    }

    /// Like [`with_encoder`](Self::with_encoder), for decoding.
    pub(in crate::pool) fn with_decoder<T>(&self, f: impl FnOnce(&mut Workspace) -> T) -> T {
        self.with(&self.decoders, f)
    }

    fn with<T>(&self, workspaces: &Workspaces, f: impl FnOnce(&mut Workspace) -> T) -> T {
        let (workspace, counted_bytes) = workspaces.take(&self.memory);
        f(&mut Taken { workspace, counted_bytes, workspaces, memory: &self.memory }.workspace)
    }
}

/// A workspace that is returned on drop, even after a panic, because a lost workspace would never
/// be replaced.
struct Taken<'a> {
    workspace: Workspace,
    counted_bytes: usize,
    workspaces: &'a Workspaces,
    memory: &'a MemoryBudget,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let bytes = self.workspace.memory_bytes().max(self.workspaces.bytes);
        self.memory.add(MemoryUse::Scratch, bytes.saturating_sub(self.counted_bytes));
        self.memory.subtract(MemoryUse::Scratch, self.counted_bytes.saturating_sub(bytes));
        self.workspaces.idle.lock().free.push((std::mem::take(&mut self.workspace), bytes));
        self.workspaces.returned.notify_one();
    }
}

/// A buffer of images.
trait Buffer: Default {
    fn with_capacity(bytes: usize) -> Self;

    /// Empties it, and frees memory beyond `bytes` bytes.
    fn reset(&mut self, bytes: usize);
}

impl Buffer for Vec<u8> {
    fn with_capacity(bytes: usize) -> Self {
        Vec::with_capacity(bytes)
    }

    fn reset(&mut self, bytes: usize) {
        self.clear();
        self.shrink_to(bytes);
    }
}

impl Buffer for ImageBuffer {
    fn with_capacity(bytes: usize) -> Self {
        Self::with_capacity(bytes)
    }

    fn reset(&mut self, bytes: usize) {
        self.reset(bytes);
    }
}

impl<B: Buffer> Kept<B> {
    fn new(bytes: usize, count_max: usize) -> Self {
        Self { idle: Mutex::default(), count_max, bytes }
    }

    fn take<'a>(&'a self, memory: &'a MemoryBudget) -> TakenBuffer<'a, B> {
        let idle = self.idle.lock().pop();
        let buffer = idle.unwrap_or_else(|| {
            memory.add(MemoryUse::Scratch, self.bytes);
            B::with_capacity(self.bytes)
        });
        TakenBuffer { buffer, kept: self, memory }
    }
}

/// A buffer that is returned on drop, even after a panic.
struct TakenBuffer<'a, B: Buffer> {
    buffer: B,
    kept: &'a Kept<B>,
    memory: &'a MemoryBudget,
}

impl<B: Buffer> Drop for TakenBuffer<'_, B> {
    fn drop(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.reset(self.kept.bytes);
        let mut idle = self.kept.idle.lock();
        if idle.len() < self.kept.count_max {
            idle.push(buffer);
        } else {
            self.memory.subtract(MemoryUse::Scratch, self.kept.bytes);
        }
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
                        scratch.with_encoder(|_| {
                            assert!(inside.fetch_add(1, Ordering::SeqCst) < WORKSPACES_MIN);
                            std::thread::yield_now();
                            inside.fetch_sub(1, Ordering::SeqCst);
                        });
                    }
                });
            }
        });
        assert!(scratch.memory.used(MemoryUse::Scratch) <= WORKSPACES_MIN * ENCODER_BYTES);
    }

    #[test]
    fn decoding_waits_for_no_encoder_and_needs_less_memory() {
        let scratch = Scratch::new(&Arc::new(MemoryBudget::new(64 << 20)), 16 << 10);
        assert!(scratch.decoders.count_max >= 8, "{scratch:?}");
        fn nested(scratch: &Scratch, depth: usize) {
            match depth {
                0 => scratch.with_decoder(|_| scratch.with_decoder(|_| ())),
                _ => scratch.with_encoder(|_| nested(scratch, depth - 1)),
            }
        }
        nested(&scratch, scratch.encoders.count_max);
        let used = scratch.memory.used(MemoryUse::Scratch);
        assert_eq!(used, scratch.encoders.count_max * ENCODER_BYTES + 2 * DECODER_BYTES);
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
            scratch.with_encoder(|workspace| {
                workspace.encode(&page, PageId(1), Epoch(1), &how, &mut Vec::new());
            });
            assert_eq!(scratch.memory.used(MemoryUse::Scratch) > ENCODER_BYTES, grown);
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
        let kept: usize = scratch.made.idle.lock().iter().map(Vec::capacity).sum();
        assert_eq!(kept, scratch.memory.used(MemoryUse::Scratch));
        assert_eq!(kept, MADE_KEPT_MAX * scratch.made.bytes);
        scratch.with_buffer(|buffer| assert!(buffer.is_empty()));
    }

    #[test]
    fn a_buffer_that_a_large_page_has_grown_is_kept_small() {
        let scratch = Scratch::new(&Arc::new(MemoryBudget::new(1 << 20)), 16 << 10);
        scratch.with_image(|image| image.set(&vec![7; 60 << 10]));
        let kept: usize = scratch.read.idle.lock().iter().map(|image| image.memory_bytes()).sum();
        assert!(kept < scratch.read.bytes + 2 * ALIGN_BYTES, "{kept}");
        scratch.with_image(|image| assert!(image.is_empty()));
    }
}

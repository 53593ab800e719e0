//! Memory for encoding and decoding.

use super::compression::Contexts;
use crate::base::opaque;

/// Buffers and contexts that encoding and decoding reuse. They take about 512 KiB once both were
/// used, another 512 KiB once dictionaries were used, and up to 2 MiB if a table's level is high.
/// The caller keeps the workspace: a workspace in each thread would use more memory than a small
/// buffer pool.
#[derive(Default)]
pub struct Workspace {
    pub(super) raw: Vec<u8>,
    pub(super) contexts: Contexts,
    /// The decrypted content of an encrypted image.
    pub(super) opened: Vec<u8>,
}

impl Workspace {
    /// The memory that it uses now.
    pub fn memory_bytes(&mut self) -> usize {
        self.raw.capacity() + self.opened.capacity() + self.contexts.memory_bytes()
    }
}

opaque!(Workspace);

//! Files and directories for the engine.
//!
//! Paths are relative to the root of the disk, with `/` between their parts and without `.` or
//! `..`. Durability follows POSIX strictly: [`File::sync_data`] makes content and length of a file
//! durable, but its *name* is durable only after [`Disk::sync_dir`] of its directory.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The only directory of a disk in which other disks may be created.
pub const SNAPSHOTS: &str = "snapshots";

/// The largest unit that a disk fails to read.
const SECTOR_BYTES: u64 = 4096;

/// One of several reads.
#[derive(Debug)]
pub struct ReadRequest<'b> {
    /// The position in the file.
    pub offset: u64,
    /// The buffer to fill.
    pub bytes: &'b mut [u8],
    /// The result, like that of [`File::read_at`].
    pub result: io::Result<()>,
}

impl<'b> ReadRequest<'b> {
    /// Creates a read that was not performed yet.
    pub fn new(offset: u64, bytes: &'b mut [u8]) -> Self {
        Self { offset, bytes, result: Ok(()) }
    }
}

/// An open file. All methods block for the I/O that they do.
#[expect(clippy::len_without_is_empty, reason = "a length that can fail has no use for it")]
pub trait File: Send + Sync {
    /// Fills `buf` from `offset`. Fails with `UnexpectedEof` if the file ends before that.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()>;
    /// The unit of reads in bytes. A read of whole blocks into aligned memory
    /// ([`ALIGN_BYTES`](crate::aligned::ALIGN_BYTES)) is not copied.
    fn block_bytes(&self) -> usize {
        1
    }
    /// Performs several reads, in any order, and returns when all have ended. Each read has its own
    /// result, and a failed read does not affect the others.
    fn read_many(&self, reads: &mut [ReadRequest<'_>]) {
        for read in reads {
            read.result = self.read_at(read.offset, read.bytes);
        }
    }
    /// Writes all of `buf` at `offset`, growing the file if necessary. Not durable until
    /// [`File::sync_data`].
    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<()>;
    /// Makes contents and length durable. After a failure it is unknown which bytes are durable, so
    /// the caller must not retry.
    fn sync_data(&self) -> io::Result<()>;
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Truncates the file to `len` bytes, or extends it with zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Reserves disk blocks for bytes `0..len` and grows the file to at least `len` bytes.
    fn allocate(&self, len: u64) -> io::Result<()>;
    /// Bytes of disk blocks that the file occupies.
    fn allocated_bytes(&self) -> io::Result<u64>;
    /// A hint to start writing back dirty bytes of the range, without waiting.
    fn start_writeback(&self, _offset: u64, _len: u64) {}
    /// A hint to drop the durable bytes of the file from the system's page cache.
    fn leave_cache(&self) {}
}

/// Fills `bytes` from `offset` of a file. Sectors that cannot be read become zeros, so the caller
/// must verify the bytes with checksums.
pub fn read_sectors(file: &dyn File, offset: u64, bytes: &mut [u8]) {
    if file.read_at(offset, bytes).is_ok() {
        return;
    }
    let mut done = 0;
    while done < bytes.len() {
        let place = offset + done as u64;
        let length = (SECTOR_BYTES - place % SECTOR_BYTES) as usize;
        let end = bytes.len().min(done + length);
        if file.read_at(place, &mut bytes[done..end]).is_err() {
            bytes[done..end].fill(0);
        }
        done = end;
    }
}

/// Holds the exclusive right to a directory until dropped.
pub trait DirLock: Send + Sync {}

/// A directory tree with files.
pub trait Disk: Send + Sync {
    /// Creates a file, open for reading and writing. Fails with `AlreadyExists` if it exists.
    fn create(&self, path: &str) -> io::Result<Arc<dyn File>>;
    /// Opens a file for reading and writing. Fails with `NotFound` if it does not exist.
    fn open(&self, path: &str) -> io::Result<Arc<dyn File>>;
    /// Like [`Disk::open`], for a durable file that is only read from now on. Reads bypass the
    /// system's page cache if possible.
    fn open_uncached(&self, path: &str) -> io::Result<Arc<dyn File>> {
        self.open(path)
    }
    /// Like [`Disk::open`], for a file that must not change: opened for reading only, if possible.
    fn open_to_read(&self, path: &str) -> io::Result<Arc<dyn File>> {
        self.open(path)
    }
    /// Renames a file, replacing a file with the new name. `sync_dir` of the directory makes it
    /// durable.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file. Open handles stay usable.
    fn unlink(&self, path: &str) -> io::Result<()>;
    /// Names (without the directory) of the entries of a directory, sorted.
    fn list(&self, dir: &str) -> io::Result<Vec<String>>;
    /// Creates a directory. It is not an error if the directory exists.
    fn create_dir(&self, dir: &str) -> io::Result<()>;
    /// Makes creations, renames and removals inside `dir` durable. `""` is the root.
    fn sync_dir(&self, dir: &str) -> io::Result<()>;
    /// Takes the exclusive lock of the disk through the file `path`. Fails with `WouldBlock` if
    /// another process holds it.
    fn lock(&self, path: &str) -> io::Result<Box<dyn DirLock>>;
    /// Bytes that can still be written.
    fn free_bytes(&self) -> io::Result<u64>;
    /// Bytes of the disk, used or not.
    fn total_bytes(&self) -> io::Result<u64>;
    /// A hint to write files that are later created in `dir` in place, even if the file system
    /// normally writes each change to a new location. Then writes to allocated space need no more
    /// space.
    fn write_in_place(&self, _dir: &str) {}
    /// Returns whether the file system frees the space of removed files later.
    fn frees_later(&self) -> bool {
        false
    }
    /// Makes the file system free the space of removed files now.
    fn free_now(&self) -> io::Result<()> {
        Ok(())
    }
    /// Creates the directory `path`, durably, as the root of another disk, for copies of files.
    /// Fails with `AlreadyExists` if the path exists, and with `InvalidInput` if the path is not
    /// absolute, or is inside this disk or inside `outside_of`. It may be inside this disk's
    /// directory `snapshots`.
    fn create_disk(&self, path: &Path, outside_of: &Path) -> io::Result<Arc<dyn Disk>>;
    /// The operating system's path of the file `path`, or of the disk's root directory for `""`.
    fn system_path(&self, path: &str) -> io::Result<PathBuf>;
    /// Gives the file `path` a second name, on a disk that [`create_disk`](Self::create_disk)
    /// created. Fails if that is impossible, for example on another file system.
    fn link(&self, path: &str, target: &dyn Disk, target_path: &str) -> io::Result<()>;
    /// Creates a file in `target` that shares its blocks with the file `path` until one of them is
    /// written. Fails if the file system does not support that.
    fn clone_file(&self, path: &str, target: &dyn Disk, target_path: &str) -> io::Result<Arc<dyn File>>;
    /// Removes an empty directory. `""` is the root itself.
    fn remove_dir(&self, dir: &str) -> io::Result<()>;
}

//! Reads that bypass the page cache of the system (`O_DIRECT`).
//!
//! The system reads only whole blocks, into memory with a certain alignment. Callers may request
//! any bytes: the other parts of a read go through a buffer.
//!
//! Invariants
//!   I1  The file is only read. The requested bytes should have been synced: a read of bytes that
//!       are only in the page cache waits until they are written.
//!   I2  A short read means the end of the file (`UnexpectedEof`) only if the file really ends
//!       there.

use crate::aligned::{AlignedBytes, ALIGN_BYTES};
use crate::disk::File;
use parking_lot::Mutex;
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// The image of a page usually fits.
const BUFFER_BYTES: usize = 32 << 10;
const BUFFERS_KEPT: usize = 16;

#[derive(Default, Debug)]
pub(crate) struct Buffers(Mutex<Vec<AlignedBytes>>);

impl Buffers {
    /// Runs `f` with [`BUFFER_BYTES`] aligned bytes, whose content is arbitrary.
    fn with<T>(&self, f: impl FnOnce(&mut [u8]) -> T) -> T {
        let kept = self.0.lock().pop();
        let mut buffer = kept.unwrap_or_else(|| {
            let mut buffer = AlignedBytes::with_capacity(BUFFER_BYTES);
            buffer.resize(BUFFER_BYTES);
            buffer
        });
        let result = f(&mut buffer);
        let mut all = self.0.lock();
        if all.len() < BUFFERS_KEPT {
            all.push(buffer);
        }
        result
    }
}

/// A file whose reads bypass the page cache.
pub(crate) struct DirectFile {
    file: fs::File,
    /// Reads begin and end at multiples of this power of two, at most [`ALIGN_BYTES`].
    block_bytes: usize,
    buffers: Arc<Buffers>,
}

impl DirectFile {
    /// Returns `None` if the file system does not support reads that bypass the page cache.
    pub(crate) fn open(path: &Path, buffers: &Arc<Buffers>) -> io::Result<Option<Self>> {
        let file = match open_direct(path) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(None),
            other => other?,
        };
        let block_bytes = block_bytes(&file);
        Ok(block_bytes.map(|block_bytes| Self { file, block_bytes, buffers: buffers.clone() }))
    }

    /// Reads whole blocks into aligned memory. Fails if the file has fewer than `needed` bytes
    /// there.
    fn read_blocks(&self, offset: u64, bytes: &mut [u8], needed: usize) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match self.file.read_at(&mut bytes[done..], offset + done as u64) {
                Ok(count) => {
                    done += count;
                    if count == 0 || count % self.block_bytes != 0 {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        match done < needed {
            true => Err(self.too_few(offset + done as u64)),
            false => Ok(()),
        }
    }

    /// The error of a short read that ended at `end`: `UnexpectedEof` only if the file ends there.
    fn too_few(&self, end: u64) -> io::Error {
        match self.len() {
            Ok(len) if end < len => io::Error::other(format!("a read ended at {end} of {len} bytes")),
            Ok(_) => io::ErrorKind::UnexpectedEof.into(),
            Err(error) => error,
        }
    }

    fn aligned_bytes(&self, offset: u64, buf: &[u8]) -> usize {
        let is_aligned = offset % self.block_bytes as u64 == 0 && buf.as_ptr().addr() % ALIGN_BYTES == 0;
        if is_aligned {
            buf.len() / self.block_bytes * self.block_bytes
        } else {
            0
        }
    }

    /// Reads at most one buffer of bytes. Returns their number.
    fn read_through_buffer(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let skipped = (offset % self.block_bytes as u64) as usize;
        self.buffers.with(|buffer| {
            let count = buf.len().min(buffer.len() - skipped);
            let blocks = (skipped + count).next_multiple_of(self.block_bytes);
            self.read_blocks(offset - skipped as u64, &mut buffer[..blocks], skipped + count)?;
            buf[..count].copy_from_slice(&buffer[skipped..skipped + count]);
            Ok(count)
        })
    }
}

impl File for DirectFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let mut done = self.aligned_bytes(offset, buf);
        self.read_blocks(offset, &mut buf[..done], done)?;
        while done < buf.len() {
            done += self.read_through_buffer(offset + done as u64, &mut buf[done..])?;
        }
        Ok(())
    }

    fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    fn write_at(&self, _offset: u64, _buf: &[u8]) -> io::Result<()> {
        Err(only_read())
    }

    fn sync_data(&self) -> io::Result<()> {
        Err(only_read())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_len(&self, _len: u64) -> io::Result<()> {
        Err(only_read())
    }

    fn allocate(&self, _len: u64) -> io::Result<()> {
        Err(only_read())
    }

    fn allocated_bytes(&self) -> io::Result<u64> {
        crate::posix::allocated_bytes(&self.file)
    }
}

fn only_read() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "the file was opened for reading only")
}

#[cfg(target_os = "linux")]
fn open_direct(path: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    fs::OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path)
}

#[cfg(not(target_os = "linux"))]
fn open_direct(_path: &Path) -> io::Result<fs::File> {
    Err(io::ErrorKind::InvalidInput.into())
}

/// The number of bytes at whose multiples reads must begin and end; [`ALIGN_BYTES`] if the system
/// does not report it. `None` if the file does not support reads that bypass the page cache, or
/// needs memory with a larger alignment than ours.
#[cfg(target_os = "linux")]
fn block_bytes(file: &fs::File) -> Option<usize> {
    use rustix::fs::{statx, AtFlags, StatxFlags};
    let asked = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN);
    let told = asked.ok().filter(|told| told.stx_mask & StatxFlags::DIOALIGN.bits() != 0);
    let Some(told) = told else { return Some(ALIGN_BYTES) };
    let aligned = |bytes: u32| (bytes as usize).is_power_of_two() && bytes as usize <= ALIGN_BYTES;
    let is_known = aligned(told.stx_dio_offset_align) && aligned(told.stx_dio_mem_align);
    is_known.then_some(told.stx_dio_offset_align as usize)
}

#[cfg(not(target_os = "linux"))]
fn block_bytes(_file: &fs::File) -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Tests nothing if the file system has no direct reads.
    #[test]
    fn any_bytes_of_a_file_are_read() {
        let path = std::env::temp_dir().join(format!("cheetah-direct-{}", std::process::id()));
        let mut rng = Rng::new(3);
        let content = rng.bytes(3 * BUFFER_BYTES + 1000);
        fs::write(&path, &content).unwrap();
        fs::File::open(&path).unwrap().sync_all().unwrap();
        let opened = DirectFile::open(&path, &Arc::default()).unwrap();
        fs::remove_file(&path).unwrap();
        let Some(file) = opened else {
            println!("skipped: no reads past the page cache in {}", std::env::temp_dir().display());
            return;
        };
        assert_eq!(file.len().unwrap(), content.len() as u64);
        for round in 0..2000 {
            let len = 1 + rng.below([50, 5000, 4 * BUFFER_BYTES as u64][round % 3]) as usize;
            let mut offset = rng.below(content.len() as u64 + 100) as usize;
            if rng.below(3) == 0 {
                offset = offset / ALIGN_BYTES * ALIGN_BYTES;
            }
            let mut bytes = AlignedBytes::with_capacity(len + 1);
            bytes.resize(len + 1);
            let buf = &mut bytes[round % 2..][..len];
            match content.get(offset..offset + len) {
                Some(expected) => {
                    file.read_at(offset as u64, buf).unwrap();
                    assert!(buf == expected, "{offset}+{len}");
                }
                None => {
                    let error = file.read_at(offset as u64, buf).unwrap_err();
                    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{offset}+{len}");
                }
            }
        }
        assert_eq!(file.write_at(0, b"x").unwrap_err().kind(), io::ErrorKind::Unsupported);
        assert!(file.buffers.0.lock().len() == 1);
    }
}

//! The real disk: files under a root directory, accessed by POSIX system calls.
//!
//! Invariants
//!   I1  A path from the engine never leaves the root: it has no empty part, no `.` and no `..`,
//!       and is not absolute. (Symbolic links that an administrator created are followed, so a log
//!       directory may be on another device.)
//!   I2  `sync_data` and `sync_dir` return only after the kernel reports the data as stable. Errors
//!       are returned, and never retried here.
//! Errors    The errors of the system, unchanged, so that "no space" and "not found" keep their
//!           kind.

use crate::direct::{Buffers, DirectFile};
use crate::disk::{DirLock, Disk, File, SNAPSHOTS};
use rustix::fs::{FallocateFlags, FlockOperation, IFlags};
use rustix::io::Errno;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The mode of files: the server's group may read and write them, like the files of other engines.
const FILE_MODE: u32 = 0o660;
const DIR_MODE: u32 = 0o770;
/// The magic numbers of btrfs, bcachefs and ZFS, which free the space of removed files only when
/// they commit, seconds later.
const FREES_LATER: [u64; 3] = [0x9123_683e, 0xca45_1a4e, 0x2fc1_2fc1];

/// A directory of the real file system.
#[derive(Debug)]
pub struct PosixDisk {
    root: PathBuf,
    buffers: Arc<Buffers>,
}

impl PosixDisk {
    /// Opens the disk whose root is `root`. If `root` does not exist, creates it and its missing
    /// parents, durably.
    pub fn open(root: &Path) -> io::Result<Self> {
        create_directory(root)?;
        Ok(Self { root: root.canonicalize()?, buffers: Arc::default() })
    }

    /// The real path of `path`, or `InvalidInput` if it would leave the root (I1).
    fn resolve(&self, path: &str) -> io::Result<PathBuf> {
        if path.split('/').any(|part| part.is_empty() || part == "." || part == "..") || path.contains('\0') {
            return Err(invalid(&format!("not a path inside the disk: {path:?}")));
        }
        Ok(self.root.join(path))
    }

    fn resolve_dir(&self, dir: &str) -> io::Result<PathBuf> {
        if dir.is_empty() {
            return Ok(self.root.clone());
        }
        self.resolve(dir)
    }

    /// Returns `parent` without symbolic links if another disk may be created in it.
    fn parent_of_disk(&self, parent: &Path, outside_of: &Path) -> io::Result<PathBuf> {
        let snapshots = self.root.join(SNAPSHOTS);
        let above = parent.parent().and_then(|above| above.canonicalize().ok());
        if parent.file_name() == snapshots.file_name() && above.is_some_and(|above| above == self.root) {
            create_directory(&snapshots)?;
        }
        let parent = parent.canonicalize()?;
        let is_inside = |directory: &Path| parent.starts_with(directory);
        if parent != snapshots && (is_inside(&self.root) || is_inside(&outside_of.canonicalize()?)) {
            return Err(invalid(&format!("{} is inside the data directory", parent.display())));
        }
        Ok(parent)
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

impl Disk for PosixDisk {
    fn create(&self, path: &str) -> io::Result<Arc<dyn File>> {
        let path = self.resolve(path)?;
        let file =
            fs::OpenOptions::new().read(true).write(true).create_new(true).mode(FILE_MODE).open(path)?;
        Ok(Arc::new(PosixFile(file)))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn File>> {
        let file = fs::OpenOptions::new().read(true).write(true).open(self.resolve(path)?)?;
        Ok(Arc::new(PosixFile(file)))
    }

    fn open_uncached(&self, path: &str) -> io::Result<Arc<dyn File>> {
        match DirectFile::open(&self.resolve(path)?, &self.buffers)? {
            Some(file) => Ok(Arc::new(file)),
            None => self.open(path),
        }
    }

    fn open_to_read(&self, path: &str) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(PosixFile(fs::File::open(self.resolve(path)?)?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.resolve(from)?, self.resolve(to)?)
    }

    fn unlink(&self, path: &str) -> io::Result<()> {
        fs::remove_file(self.resolve(path)?)
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.resolve_dir(dir)?)? {
            // The engine has no files whose names are not UTF-8.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn create_dir(&self, dir: &str) -> io::Result<()> {
        let path = self.resolve(dir)?;
        match fs::DirBuilder::new().mode(DIR_MODE).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            other => other,
        }
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        sync_directory(&self.resolve_dir(dir)?)
    }

    fn lock(&self, path: &str) -> io::Result<Box<dyn DirLock>> {
        let path = self.resolve(path)?;
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(FILE_MODE)
            .open(path)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Box::new(PosixLock { _file: file })),
            Err(errno) => Err(errno.into()),
        }
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(&self.root)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn total_bytes(&self) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(&self.root)?;
        Ok(stat.f_blocks.saturating_mul(stat.f_frsize))
    }

    fn write_in_place(&self, dir: &str) {
        let Ok(dir) = self.resolve_dir(dir).and_then(fs::File::open) else { return };
        // Among the common file systems, only btrfs supports this flag.
        if let Ok(flags) = rustix::fs::ioctl_getflags(&dir) {
            let _ = rustix::fs::ioctl_setflags(&dir, flags | IFlags::NOCOW);
        }
    }

    fn frees_later(&self) -> bool {
        let magic = rustix::fs::statfs(&self.root).map_or(0, |stat| stat.f_type as u64);
        FREES_LATER.contains(&(magic & 0xffff_ffff))
    }

    fn free_now(&self) -> io::Result<()> {
        let root = fs::File::open(&self.root)?;
        rustix::fs::syncfs(&root).map_err(io::Error::from)
    }

    fn create_disk(&self, path: &Path, outside_of: &Path) -> io::Result<Arc<dyn Disk>> {
        let (Some(parent), Some(name), true) = (path.parent(), path.file_name(), path.is_absolute()) else {
            return Err(invalid("not the absolute path of a directory"));
        };
        let parent = self.parent_of_disk(parent, outside_of)?;
        let root = parent.join(name);
        fs::DirBuilder::new().mode(DIR_MODE).create(&root)?;
        sync_directory(&parent)?;
        Ok(Arc::new(Self { root, buffers: Arc::default() }))
    }

    fn system_path(&self, path: &str) -> io::Result<PathBuf> {
        self.resolve_dir(path)
    }

    fn link(&self, path: &str, target: &dyn Disk, target_path: &str) -> io::Result<()> {
        fs::hard_link(self.resolve(path)?, target.system_path(target_path)?)
    }

    fn clone_file(&self, path: &str, target: &dyn Disk, target_path: &str) -> io::Result<Arc<dyn File>> {
        let source = fs::File::open(self.resolve(path)?)?;
        let file = target.create(target_path)?;
        let opened = fs::OpenOptions::new().write(true).open(target.system_path(target_path)?);
        match opened.and_then(|opened| share_blocks(&source, &opened)) {
            Ok(()) => Ok(file),
            Err(error) => {
                let _ = target.unlink(target_path);
                Err(error)
            }
        }
    }

    fn remove_dir(&self, dir: &str) -> io::Result<()> {
        fs::remove_dir(self.resolve_dir(dir)?)
    }
}

#[cfg(target_os = "linux")]
fn share_blocks(source: &fs::File, target: &fs::File) -> io::Result<()> {
    rustix::fs::ioctl_ficlone(target, source).map_err(io::Error::from)
}

#[cfg(not(target_os = "linux"))]
fn share_blocks(_source: &fs::File, _target: &fs::File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Creates a directory with its missing parents; the entry of each is durable in its parent.
fn create_directory(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    create_directory(parent)?;
    match fs::DirBuilder::new().mode(DIR_MODE).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    sync_directory(parent)
}

fn sync_directory(path: &Path) -> io::Result<()> {
    fs::File::open(path)?.sync_all()
}

struct PosixFile(fs::File);

impl File for PosixFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(buf, offset)
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        self.0.write_all_at(buf, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        loop {
            match rustix::fs::fallocate(&self.0, FallocateFlags::empty(), 0, len) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => continue,
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => return self.grow_to(len),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn allocated_bytes(&self) -> io::Result<u64> {
        allocated_bytes(&self.0)
    }

    fn start_writeback(&self, offset: u64, len: u64) {
        start_writeback(&self.0, offset, len);
    }

    fn leave_cache(&self) {
        leave_cache(&self.0);
    }
}

pub(crate) fn allocated_bytes(file: &fs::File) -> io::Result<u64> {
    // `st_blocks` counts units of 512 bytes on every system, regardless of the block size.
    Ok(file.metadata()?.blocks().saturating_mul(512))
}

impl PosixFile {
    /// Used on file systems that cannot reserve blocks. Only sets the length.
    fn grow_to(&self, len: u64) -> io::Result<()> {
        if self.len()? < len {
            self.0.set_len(len)?;
        }
        Ok(())
    }
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe wrapper of sync_file_range exists")]
fn start_writeback(file: &fs::File, offset: u64, len: u64) {
    use std::os::fd::AsRawFd;
    let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) else { return };
    // SAFETY: the descriptor is open for as long as `file` is borrowed; the call takes no pointers.
    // It only starts writeback and promises nothing, so its result does not matter.
    unsafe {
        libc::sync_file_range(file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE);
    }
}

#[cfg(not(target_os = "linux"))]
fn start_writeback(_file: &fs::File, _offset: u64, _len: u64) {}

#[cfg(target_os = "linux")]
fn leave_cache(file: &fs::File) {
    // The result does not matter, because the system frees the memory anyway when it is needed.
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
}

#[cfg(not(target_os = "linux"))]
fn leave_cache(_file: &fs::File) {}

/// The lock is held as long as the file is open.
struct PosixLock {
    _file: fs::File,
}

impl DirLock for PosixLock {}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is removed when its test ends, even if the test fails.
    struct Folder(PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn disk(name: &str) -> (Folder, PosixDisk) {
        let root = std::env::temp_dir().join(format!("cheetah-posix-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let disk = PosixDisk::open(&root).unwrap();
        (Folder(root), disk)
    }

    #[test]
    fn what_is_written_is_read_back() {
        let (_folder, disk) = disk("rw");
        disk.create_dir("wal").unwrap();
        disk.create_dir("wal").unwrap();
        let file = disk.create("wal/1").unwrap();
        file.write_at(10, b"hello").unwrap();
        file.sync_data().unwrap();
        disk.sync_dir("wal").unwrap();
        let mut buf = [9; 15];
        disk.open("wal/1").unwrap().read_at(0, &mut buf).unwrap();
        assert_eq!(&buf, b"\0\0\0\0\0\0\0\0\0\0hello");
        assert_eq!(file.read_at(11, &mut [0; 5]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(disk.create("wal/1").err().unwrap().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(disk.open("wal/2").err().unwrap().kind(), io::ErrorKind::NotFound);
        disk.rename("wal/1", "wal/2").unwrap();
        assert_eq!(disk.list("wal").unwrap(), ["2"]);
        disk.unlink("wal/2").unwrap();
        assert_eq!(file.len().unwrap(), 15);
    }

    #[test]
    fn several_reads_have_results_of_their_own() {
        use crate::disk::ReadRequest;
        let (_folder, disk) = disk("many");
        let file = disk.create("a").unwrap();
        file.write_at(0, b"0123456789").unwrap();
        let mut buffers = [[0; 3]; 3];
        let reads = [7, 8, 0].into_iter().zip(&mut buffers);
        let mut reads: Vec<_> = reads.map(|(offset, buffer)| ReadRequest::new(offset, buffer)).collect();
        file.read_many(&mut reads);
        let results: Vec<_> = reads.iter().map(|read| read.result.is_ok()).collect();
        assert_eq!(results, [true, false, true]);
        assert_eq!((&buffers[0], &buffers[2]), (b"789", b"012"));
    }

    #[test]
    fn allocate_grows_and_never_shrinks() {
        let (_folder, disk) = disk("allocate");
        let file = disk.create("a").unwrap();
        file.allocate(8192).unwrap();
        assert_eq!(file.len().unwrap(), 8192);
        file.allocate(100).unwrap();
        assert_eq!(file.len().unwrap(), 8192);
        file.set_len(10).unwrap();
        assert_eq!(file.len().unwrap(), 10);
        file.start_writeback(0, 10);
        assert!(disk.free_bytes().unwrap() > 0);
    }

    #[test]
    fn no_path_leaves_the_root() {
        let (_folder, disk) = disk("paths");
        for path in ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/", "a\0b"] {
            assert_eq!(disk.create(path).err().unwrap().kind(), io::ErrorKind::InvalidInput, "{path:?}");
            assert_eq!(disk.unlink(path).err().unwrap().kind(), io::ErrorKind::InvalidInput, "{path:?}");
        }
    }

    #[test]
    fn another_disk_is_outside_or_among_the_snapshots() {
        let (folder, database) = disk("other");
        let data = folder.0.join("data");
        let root = data.join("db");
        let disk = PosixDisk::open(&root).unwrap();
        drop(database);
        let kind = |path: &Path| disk.create_disk(path, &data).err().map(|error| error.kind());
        assert_eq!(kind(Path::new("relative")), Some(io::ErrorKind::InvalidInput));
        assert_eq!(kind(&data.join("inside")), Some(io::ErrorKind::InvalidInput));
        assert_eq!(kind(&root.join("inside")), Some(io::ErrorKind::InvalidInput));
        assert_eq!(kind(&folder.0.join("data/../data/db/inside")), Some(io::ErrorKind::InvalidInput));
        assert_eq!(kind(&folder.0.join("missing/one")), Some(io::ErrorKind::NotFound));
        assert_eq!(kind(&folder.0.join("outside")), None);
        assert_eq!(kind(&folder.0.join("outside")), Some(io::ErrorKind::AlreadyExists));
        std::os::unix::fs::symlink(&data, folder.0.join("link")).unwrap();
        assert_eq!(kind(&folder.0.join("link/inside")), Some(io::ErrorKind::InvalidInput));
        assert_eq!(kind(&root.join("snapshots/one")), None);
        assert_eq!(kind(&root.join("snapshots/one/two")), Some(io::ErrorKind::InvalidInput));
    }

    #[test]
    fn a_linked_file_has_two_names_and_a_disk_can_be_removed_again() {
        let (folder, disk) = disk("links");
        let file = disk.create("a").unwrap();
        file.write_at(0, b"hello").unwrap();
        let root = folder.0.join("snapshots/one");
        let target = disk.create_disk(&root, &folder.0).unwrap();
        target.create_dir("seg").unwrap();
        disk.link("a", &*target, "seg/b").unwrap();
        disk.unlink("a").unwrap();
        let mut bytes = [0; 5];
        target.open("seg/b").unwrap().read_at(0, &mut bytes).unwrap();
        assert_eq!(&bytes, b"hello");
        if let Ok(cloned) = target.clone_file("seg/b", &*target, "c") {
            assert_eq!(cloned.len().unwrap(), 5);
            target.unlink("c").unwrap();
        }
        assert!(target.remove_dir("seg").is_err());
        target.unlink("seg/b").unwrap();
        target.remove_dir("seg").unwrap();
        target.remove_dir("").unwrap();
        assert!(!root.exists());
    }

    #[test]
    fn the_lock_excludes_a_second_holder_until_dropped() {
        let (_folder, disk) = disk("lock");
        let lock = disk.lock("LOCK").unwrap();
        assert_eq!(disk.lock("LOCK").err().unwrap().kind(), io::ErrorKind::WouldBlock);
        drop(lock);
        disk.lock("LOCK").unwrap();
    }
}

//! An overlay: a disk that reads from a disk below, which it never changes, and writes to one
//! above.
//!
//! Invariants
//!   I1  The disk below does not change: its files are opened for reading only, and its directories
//!       are not modified. Before a file is written, it is copied to the disk above. Sectors that
//!       cannot be read are zeros in the copy.
//!   I2  All handles of a file see the same bytes, even those opened before it was copied.
//!   I3  No write is durable. After a crash the user starts again.
//!   I4  A file that was not written is closed with its last handle, because there may be more
//!       files than a process may have open.
//! Locks     `names`, then `now` of one file, then `written`.

use crate::disk::{read_sectors, DirLock, Disk, File};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

const COPY_BYTES: usize = 1 << 20;

/// See the module.
pub struct OverlayDisk {
    below: Arc<dyn Disk>,
    above: Arc<Above>,
    names: Mutex<Names>,
    written: Arc<Written>,
}

/// Files of the disk below that were written. They are kept even if they are not open.
type Written = Mutex<Vec<Arc<OverlayFile>>>;

/// The disk above, and the names of the files created there, which are removed on drop.
struct Above {
    disk: Arc<dyn Disk>,
    made: Mutex<Vec<String>>,
}

impl Above {
    fn create(&self) -> io::Result<Arc<dyn File>> {
        let mut made = self.made.lock();
        let name = format!("written-{}", made.len());
        let file = self.disk.create(&name)?;
        made.push(name);
        Ok(file)
    }
}

impl Drop for Above {
    fn drop(&mut self) {
        // Errors are ignored, because a leftover file only wastes space.
        for name in self.made.get_mut() {
            let _ = self.disk.unlink(name);
        }
    }
}

#[derive(Default)]
struct Names {
    /// Created and renamed files; `None` for removed files.
    files: BTreeMap<String, Option<Arc<OverlayFile>>>,
    /// Files of the disk below that are open or were written.
    open: BTreeMap<String, Weak<OverlayFile>>,
    directories: BTreeSet<String>,
}

impl std::fmt::Debug for OverlayDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "an overlay of {} files", self.names.lock().files.len())
    }
}

impl OverlayDisk {
    /// Creates a disk that reads from `below` and writes to files in the root of `above`. `above`
    /// must be empty, and is empty again once the disk and its files were dropped.
    pub fn new(below: Arc<dyn Disk>, above: Arc<dyn Disk>) -> Self {
        let above = Arc::new(Above { disk: above, made: Mutex::default() });
        Self { below, above, names: Mutex::default(), written: Arc::default() }
    }

    fn find(&self, names: &mut Names, path: &str) -> io::Result<Arc<OverlayFile>> {
        match names.files.get(path) {
            Some(Some(file)) => return Ok(Arc::clone(file)),
            Some(None) => return Err(not_found(path)),
            None => {}
        }
        if let Some(file) = names.open.get(path).and_then(Weak::upgrade) {
            return Ok(file);
        }
        let below = self.below.open_to_read(path)?;
        let file = self.file(below, false);
        names.open.insert(path.to_owned(), Arc::downgrade(&file));
        Ok(file)
    }

    fn file(&self, file: Arc<dyn File>, is_above: bool) -> Arc<OverlayFile> {
        let (above, written) = (Arc::clone(&self.above), Arc::downgrade(&self.written));
        Arc::new(OverlayFile { above, written, now: RwLock::new(Source { file, is_above }) })
    }

    fn is_there(&self, names: &mut Names, path: &str) -> io::Result<bool> {
        match self.find(names, path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn not_found(path: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("no such file: {path}"))
}

fn directory_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

impl Disk for OverlayDisk {
    fn create(&self, path: &str) -> io::Result<Arc<dyn File>> {
        let mut names = self.names.lock();
        if self.is_there(&mut names, path)? {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{path} exists")));
        }
        let file = self.file(self.above.create()?, true);
        names.files.insert(path.to_owned(), Some(Arc::clone(&file)));
        Ok(Arc::new(Handle(file)))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(Handle(self.find(&mut self.names.lock(), path)?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut names = self.names.lock();
        let file = self.find(&mut names, from)?;
        names.files.insert(from.to_owned(), None);
        names.files.insert(to.to_owned(), Some(file));
        Ok(())
    }

    fn unlink(&self, path: &str) -> io::Result<()> {
        let mut names = self.names.lock();
        self.find(&mut names, path)?;
        names.files.insert(path.to_owned(), None);
        Ok(())
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let names = self.names.lock();
        let mut found: BTreeSet<String> = match self.below.list(dir) {
            Ok(below) => below.into_iter().collect(),
            Err(_) if names.directories.contains(dir) => BTreeSet::new(),
            Err(error) => return Err(error),
        };
        for (path, file) in names.files.iter().filter(|(path, _)| directory_of(path) == dir) {
            let name = path.rsplit('/').next().unwrap_or(path).to_owned();
            match file {
                Some(_) => drop(found.insert(name)),
                None => drop(found.remove(&name)),
            }
        }
        Ok(found.into_iter().collect())
    }

    fn create_dir(&self, dir: &str) -> io::Result<()> {
        self.names.lock().directories.insert(dir.to_owned());
        Ok(())
    }

    fn sync_dir(&self, _dir: &str) -> io::Result<()> {
        Ok(())
    }

    /// Locks nothing. To exclude other processes, the caller must lock the disk below.
    fn lock(&self, _path: &str) -> io::Result<Box<dyn DirLock>> {
        Ok(Box::new(Unlocked))
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.above.disk.free_bytes()
    }

    fn total_bytes(&self) -> io::Result<u64> {
        self.above.disk.total_bytes()
    }

    fn create_disk(&self, path: &Path, _outside_of: &Path) -> io::Result<Arc<dyn Disk>> {
        Err(no_copies(&path.display().to_string()))
    }

    fn system_path(&self, path: &str) -> io::Result<PathBuf> {
        Err(no_copies(path))
    }

    fn link(&self, path: &str, _target: &dyn Disk, _target_path: &str) -> io::Result<()> {
        Err(no_copies(path))
    }

    fn clone_file(&self, path: &str, _target: &dyn Disk, _target_path: &str) -> io::Result<Arc<dyn File>> {
        Err(no_copies(path))
    }

    /// A directory of the disk below is not removed (I1), but an empty directory does no harm.
    fn remove_dir(&self, dir: &str) -> io::Result<()> {
        self.names.lock().directories.remove(dir);
        Ok(())
    }
}

/// A file of this disk may be on either disk, so the system has no path for it.
fn no_copies(path: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("{path}: a file of an overlay disk cannot be copied"))
}

struct Unlocked;

impl DirLock for Unlocked {}

struct OverlayFile {
    above: Arc<Above>,
    written: Weak<Written>,
    now: RwLock<Source>,
}

struct Source {
    file: Arc<dyn File>,
    is_above: bool,
}

impl OverlayFile {
    fn now(&self) -> Arc<dyn File> {
        Arc::clone(&self.now.read().file)
    }

    /// Returns the file on the disk above for writing. Copies the file there first if necessary.
    fn to_write(self: &Arc<Self>) -> io::Result<Arc<dyn File>> {
        let mut now = self.now.write();
        if !now.is_above {
            let copy = self.above.create()?;
            copy_into(&*now.file, &*copy)?;
            *now = Source { file: copy, is_above: true };
            if let Some(written) = self.written.upgrade() {
                written.lock().push(Arc::clone(self));
            }
        }
        Ok(Arc::clone(&now.file))
    }
}

fn copy_into(from: &dyn File, to: &dyn File) -> io::Result<()> {
    let len = from.len()?;
    let mut bytes = vec![0; COPY_BYTES.min(usize::try_from(len).unwrap_or(COPY_BYTES))];
    let mut at = 0;
    while at < len {
        let count = (len - at).min(COPY_BYTES as u64) as usize;
        read_sectors(from, at, &mut bytes[..count]);
        to.write_at(at, &bytes[..count])?;
        at += count as u64;
    }
    Ok(())
}

struct Handle(Arc<OverlayFile>);

impl File for Handle {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.0.now().read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        self.0.to_write()?.write_at(offset, buf)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        self.0.now().len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.to_write()?.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.0.to_write()?.allocate(len)
    }

    fn allocated_bytes(&self) -> io::Result<u64> {
        self.0.now().allocated_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::SimDisk;

    fn overlay(below: &SimDisk) -> OverlayDisk {
        OverlayDisk::new(Arc::new(below.clone()), Arc::new(SimDisk::new()))
    }

    fn text(disk: &dyn Disk, path: &str) -> String {
        let file = disk.open(path).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(0, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn what_nobody_has_open_is_closed_unless_it_was_written() {
        let below = SimDisk::new();
        ["a", "b"].iter().for_each(|path| below.put(path, b"below").unwrap());
        let disk = overlay(&below);
        assert_eq!((text(&disk, "a"), text(&disk, "b")), ("below".into(), "below".into()));
        disk.open("b").unwrap().write_at(0, b"A").unwrap();
        let kept = |path: &str| disk.names.lock().open[path].upgrade().is_some();
        assert_eq!((kept("a"), kept("b")), (false, true));
        assert_eq!((text(&disk, "a"), text(&disk, "b")), ("below".into(), "Aelow".into()));
    }

    #[test]
    fn a_sector_that_cannot_be_read_keeps_no_file_from_being_written() {
        let below = SimDisk::new();
        below.put("a", &[7; 3 * 4096 + 5]).unwrap();
        below.make_unreadable("a", 4096..4097);
        let disk = overlay(&below);
        let file = disk.open("a").unwrap();
        file.write_at(1, b"above").unwrap();
        let mut bytes = vec![1; file.len().unwrap() as usize];
        file.read_at(0, &mut bytes).unwrap();
        let mut expected = vec![7; 3 * 4096 + 5];
        expected[1..6].copy_from_slice(b"above");
        expected[4096..2 * 4096].fill(0);
        assert!(bytes == expected);
    }

    #[test]
    fn what_is_written_is_read_back_and_nothing_changes_below() {
        let below = SimDisk::new();
        below.create_dir("d").unwrap();
        below.put("d/a", b"below").unwrap();
        below.put("d/b", b"other").unwrap();
        let operations = below.operations();
        let disk = overlay(&below);
        let before = disk.open("d/a").unwrap();
        disk.open("d/a").unwrap().write_at(1, b"ABOVE").unwrap();
        assert_eq!(text(&disk, "d/a"), "bABOVE");
        assert_eq!(before.len().unwrap(), 6, "I2");
        disk.rename("d/a", "d/c").unwrap();
        disk.unlink("d/b").unwrap();
        assert_eq!(disk.create("d/c").err().unwrap().kind(), io::ErrorKind::AlreadyExists);
        disk.create("d/e").unwrap().allocate(10).unwrap();
        assert_eq!(disk.list("d").unwrap(), ["c", "e"]);
        assert_eq!(disk.open("d/a").err().unwrap().kind(), io::ErrorKind::NotFound);
        disk.create_dir("new").unwrap();
        assert!(disk.list("new").unwrap().is_empty());
        assert_eq!(below.operations(), operations, "I1");
        assert_eq!(text(&disk, "d/c"), "bABOVE", "it stays without a handle");
        drop(disk);
        assert_eq!((text(&below, "d/a"), text(&below, "d/b")), ("below".into(), "other".into()));
    }
}

//! The directory of a snapshot while it is being written.

use crate::base::{opaque, sound, Error, Health, Result};
use crate::durable::pins::Pin;
use crate::durable::Durable;
use crate::format::control::ControlBlock;
use crate::format::manifest::{self, Made, Manifest, ManifestFile};
use crate::page_map;
use cheetah_io::{Clock, Disk, File};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

pub(super) const DIRECTORIES: [&str; 3] = ["seg", "chg", "wal"];
const COPY_BYTES: u64 = 1 << 20;
/// The interval at which a pause checks whether to stop.
const LOOK_EVERY_NS: u64 = 50_000_000;

/// How fast files are copied, and whether to stop.
#[derive(Clone, Copy)]
pub struct Pace<'a> {
    /// The clock for pauses.
    pub clock: &'a dyn Clock,
    /// The maximum rate.
    pub bytes_per_second: u64,
    /// Whether to stop.
    pub interrupted: &'a dyn Fn() -> bool,
}

opaque!(Pace<'_>);

/// The size of a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[expect(missing_docs, reason = "named by their unit")]
pub struct Written {
    pub files_count: u64,
    pub bytes: u64,
    /// Bytes copied, not linked or cloned.
    pub copied_bytes: u64,
}

pub(super) struct Target<'a> {
    pin: &'a Pin,
    /// Has its own health, so that its errors do not stop the engine (durability::Z7).
    durable: Durable,
    path: String,
    pace: Pace<'a>,
    due_ns: u64,
    files: Vec<ManifestFile>,
    /// To remove after an error.
    created: Vec<String>,
}

impl<'a> Target<'a> {
    pub(super) fn create(pin: &'a Pin, path: &Path, outside_of: &Path, pace: Pace<'a>) -> Result<Self> {
        let disk = pin.durable().disk().create_disk(path, outside_of);
        let disk = disk.map_err(|error| refused(path, error))?;
        let durable = Durable::new(disk, Arc::new(Health::default()));
        let path = path.display().to_string();
        let due_ns = pace.clock.now_ns();
        Ok(Self { pin, durable, path, pace, due_ns, files: Vec::new(), created: Vec::new() })
    }

    pub(super) fn disk(&self) -> &dyn Disk {
        self.durable.disk()
    }

    /// Converts an error for the caller: only errors in the engine's own files stop the engine.
    pub(super) fn own(&self, error: Error) -> Error {
        match error {
            Error::Fatal(reason) if self.pin.durable().health().check().is_ok() => {
                Error::Io { op: "sync", path: self.path.clone(), source: std::io::Error::other(reason) }
            }
            other => other,
        }
    }

    pub(super) fn written(&self) -> Written {
        let bytes = |made: &dyn Fn(Made) -> bool| {
            self.files.iter().filter(|file| made(file.made)).map(|file| file.bytes).sum()
        };
        Written {
            files_count: self.files.len() as u64,
            bytes: bytes(&|_| true),
            copied_bytes: bytes(&|made| made == Made::Copied),
        }
    }

    pub(super) fn create_directories(&self) -> Result<()> {
        for directory in DIRECTORIES {
            let created = self.disk().create_dir(directory);
            created.map_err(|error| self.io("create", directory, error))?;
        }
        self.durable.directory_barrier("")
    }

    pub(super) fn sync_directories(&self) -> Result<()> {
        if !sound!(true, "backup: write CONTROL before its files are durable") {
            return Ok(());
        }
        DIRECTORIES.iter().chain(&[""]).try_for_each(|directory| self.durable.directory_barrier(directory))
    }

    /// Links, clones or copies a file (durability::Z4): all of it if it is no longer written,
    /// otherwise its first `bytes` bytes.
    pub(super) fn take(&mut self, path: &str, bytes: u64, is_final: bool) -> Result<()> {
        self.go_on()?;
        if sound!(!is_final, "backup: link what is still written") {
            return match self.clone_file(path, Some(bytes))? {
                true => Ok(()),
                false => self.copy(path, bytes, &[]),
            };
        }
        if self.link(path)? || self.clone_file(path, None)? {
            return Ok(());
        }
        let bytes = self.open_source(path)?.len().map_err(|error| Error::io("read", path, error))?;
        self.copy(path, bytes, &[])
    }

    /// Returns false if the file cannot be linked.
    fn link(&mut self, path: &str) -> Result<bool> {
        if self.pin.durable().disk().link(path, self.disk(), path).is_err() {
            return Ok(false);
        }
        self.created.push(path.to_owned());
        let opened = self.disk().open(path).and_then(|file| file.len());
        let bytes = opened.map_err(|error| self.io("open", path, error))?;
        self.files.push(ManifestFile { path: path.to_owned(), bytes, crc: None, made: Made::Linked });
        Ok(true)
    }

    /// Returns false if the file cannot be cloned. `bytes`: the length to keep.
    fn clone_file(&mut self, path: &str, bytes: Option<u64>) -> Result<bool> {
        let Ok(file) = self.pin.durable().disk().clone_file(path, self.disk(), path) else {
            return Ok(false);
        };
        self.created.push(path.to_owned());
        let cut = bytes.map_or_else(|| file.len(), |bytes| file.set_len(bytes).map(|()| bytes));
        let bytes = cut.map_err(|error| self.io("cut", path, error))?;
        self.make_durable(&*file, path)?;
        self.files.push(ManifestFile { path: path.to_owned(), bytes, crc: None, made: Made::Cloned });
        Ok(true)
    }

    /// Appends `behind` to the first `bytes` bytes of the file. Durable on return.
    pub(super) fn copy(&mut self, path: &str, bytes: u64, behind: &[u8]) -> Result<()> {
        let source = self.open_source(path)?;
        let target = self.create_file(path)?;
        let (mut at, mut crc, mut buffer) = (0, 0, Vec::new());
        while at < bytes {
            self.go_on()?;
            let count = (bytes - at).min(COPY_BYTES);
            buffer.resize(count as usize, 0);
            source.read_at(at, &mut buffer).map_err(|error| Error::io("read", path, error))?;
            crc = crc32c::crc32c_append(crc, &buffer);
            self.write(&*target, path, at, &buffer)?;
            target.start_writeback(at, count);
            at += count;
            self.pause(count)?;
        }
        self.write(&*target, path, at, behind)?;
        self.finish(&*target, path, at + behind.len() as u64, crc32c::crc32c_append(crc, behind))
    }

    /// Durable on return.
    pub(super) fn put_control(&mut self, control: &ControlBlock) -> Result<()> {
        let (path, bytes) = (page_map::CONTROL_PATH, page_map::control_bytes(control));
        let file = self.create_file(path)?;
        self.write(&*file, path, 0, &bytes)?;
        if sound!(true, "backup: write MANIFEST before CONTROL is durable") {
            self.durable.snapshot_barrier(&*file, path)?;
            self.durable.directory_barrier("")?;
        }
        let (bytes, crc) = (bytes.len() as u64, Some(crc32c::crc32c(&bytes)));
        self.files.push(ManifestFile { path: path.to_owned(), bytes, crc, made: Made::Copied });
        Ok(())
    }

    /// Durable on return: the manifest completes the snapshot.
    pub(super) fn put_manifest(&mut self, manifest: Manifest) -> Result<()> {
        let is_behind = self.files.last().is_some_and(|file| file.path == page_map::CONTROL_PATH);
        debug_assert!(is_behind, "Z5: MANIFEST comes behind CONTROL");
        let bytes = Manifest { files: self.files.clone(), ..manifest }.encode();
        let file = self.create_file(manifest::PATH)?;
        self.write(&*file, manifest::PATH, 0, &bytes)?;
        self.durable.snapshot_barrier(&*file, manifest::PATH)?;
        self.durable.directory_barrier("")
    }

    /// Removes everything created so far. Errors are ignored, because nothing needs the files; but
    /// while the directory remains, further attempts fail.
    pub(super) fn remove(&self) {
        self.created.iter().for_each(|path| drop(self.disk().unlink(path)));
        DIRECTORIES.iter().chain(&[""]).for_each(|directory| drop(self.disk().remove_dir(directory)));
    }

    fn open_source(&self, path: &str) -> Result<Arc<dyn File>> {
        self.pin.durable().disk().open(path).map_err(|error| Error::io("open", path, error))
    }

    fn create_file(&mut self, path: &str) -> Result<Arc<dyn File>> {
        let file = self.disk().create(path).map_err(|error| self.io("create", path, error))?;
        self.created.push(path.to_owned());
        Ok(file)
    }

    fn write(&self, file: &dyn File, path: &str, at: u64, bytes: &[u8]) -> Result<()> {
        file.write_at(at, bytes).map_err(|error| self.io("write", path, error))
    }

    fn finish(&mut self, file: &dyn File, path: &str, bytes: u64, crc: u32) -> Result<()> {
        self.make_durable(file, path)?;
        file.leave_cache();
        let (path, crc) = (path.to_owned(), Some(crc));
        self.files.push(ManifestFile { path, bytes, crc, made: Made::Copied });
        Ok(())
    }

    fn make_durable(&self, file: &dyn File, path: &str) -> Result<()> {
        match sound!(true, "backup: write CONTROL before its files are durable") {
            true => self.durable.snapshot_barrier(file, path),
            false => Ok(()),
        }
    }

    /// Fails if the caller interrupts the copying, or if the snapshot had to be abandoned.
    fn go_on(&self) -> Result<()> {
        match (self.pace.interrupted)() {
            true => Err(Error::Interrupted),
            false => self.pin.check(),
        }
    }

    /// Pauses for the time of `bytes` bytes at the maximum rate.
    fn pause(&mut self, bytes: u64) -> Result<()> {
        let Pace { clock, bytes_per_second, .. } = self.pace;
        let cost_ns = bytes.saturating_mul(1_000_000_000) / bytes_per_second.max(1);
        self.due_ns = self.due_ns.max(clock.now_ns().saturating_sub(LOOK_EVERY_NS)) + cost_ns;
        loop {
            let left_ns = self.due_ns.saturating_sub(clock.now_ns());
            if left_ns == 0 {
                return Ok(());
            }
            self.go_on()?;
            clock.sleep_ns(left_ns.min(LOOK_EVERY_NS));
        }
    }

    fn io(&self, op: &'static str, path: &str, error: std::io::Error) -> Error {
        Error::io(op, format!("{}/{path}", self.path), error)
    }
}

/// Says why the directory cannot be created, and what to do.
fn refused(path: &Path, error: std::io::Error) -> Error {
    let detail = match error.kind() {
        ErrorKind::AlreadyExists => {
            "it exists already; name a directory that does not, or remove this one (without a MANIFEST it is an \
             unfinished snapshot)"
                .to_owned()
        }
        ErrorKind::InvalidInput => format!(
            "{error}; give the absolute path of a new directory, outside the data directory or in #cheetah/snapshots"
        ),
        ErrorKind::NotFound => "the directory above it does not exist; create it first".to_owned(),
        ErrorKind::PermissionDenied => format!("{error}; the server's user must be allowed to write there"),
        _ => return Error::io("create", path.display().to_string(), error),
    };
    Error::Unsupported { place: path.display().to_string(), detail }
}

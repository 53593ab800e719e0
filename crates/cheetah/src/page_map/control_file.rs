//! The file CONTROL with its two copies of the control block.
//!
//! The intact copy with the higher sequence is valid. P2 of the module `page_map` says why a
//! damaged copy never hides an epoch. A copy that the disk cannot read counts as damaged. If only
//! one copy is valid, a write begins with the other copy: if the valid copy were overwritten first
//! and torn, no valid copy would remain.

use crate::base::{sound, Error, Result};
use crate::durable::Durable;
use crate::format::control::{ControlBlock, Refusal, COPIES_COUNT, COPY_BYTES};
use cheetah_io::File;
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// The path of the file.
pub const PATH: &str = "CONTROL";
const NEW_PATH: &str = "CONTROL.new";
/// Directories that are empty or missing while a database is being created.
const FOLDERS: [&str; 3] = ["seg", "wal", "chg"];

/// Returns all bytes of the file, with both copies.
pub fn control_bytes(block: &ControlBlock) -> Vec<u8> {
    (0..COPIES_COUNT as u32).flat_map(|copy| block.encode(copy)).collect()
}

pub(super) struct ControlFile {
    file: Arc<dyn File>,
    /// The highest sequence that either copy may have.
    sequence: u64,
    /// The index of a copy that is durable, intact and up to date. It is never overwritten first.
    good_copy: usize,
}

impl ControlFile {
    /// Opens the file and returns it with its valid block, or returns `None` if there is no
    /// database yet.
    pub(super) fn open(durable: &Durable) -> Result<Option<(Self, ControlBlock)>> {
        let file = match durable.disk().open(PATH) {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::NotFound => {
                check_nothing_is_there(durable)?;
                return Ok(None);
            }
            Err(e) => return Err(Error::io("open", PATH, e)),
        };
        let copies = [read_copy(&*file, 0), read_copy(&*file, 1)];
        let (good_copy, block) = choose(copies)?;
        Ok(Some((Self { file, sequence: block.sequence, good_copy }, block)))
    }

    /// Creates the file with both copies. The file gets its name only once both copies are durable.
    pub(super) fn create(durable: &Durable, block: &ControlBlock) -> Result<Self> {
        let disk = durable.disk();
        match disk.unlink(NEW_PATH) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(Error::io("unlink", NEW_PATH, e)),
            _ => {}
        }
        let file = disk.create(NEW_PATH).map_err(|e| Error::io("create", NEW_PATH, e))?;
        for copy in 0..COPIES_COUNT {
            write_copy(&*file, copy, block)?;
        }
        durable.control_barrier(&*file, NEW_PATH)?;
        disk.rename(NEW_PATH, PATH).map_err(|e| Error::io("rename", NEW_PATH, e))?;
        durable.directory_barrier("")?;
        Ok(Self { file, sequence: block.sequence, good_copy: 0 })
    }

    /// Writes the block, with a new sequence, first to the copy that may be damaged and then to the
    /// other copy (P2). After an error either the old or the new block may be valid at the next
    /// startup.
    pub(super) fn write(&mut self, durable: &Durable, block: &mut ControlBlock) -> Result<()> {
        self.sequence += 1;
        block.sequence = self.sequence;
        let (first, second) = (1 - self.good_copy, self.good_copy);
        write_copy(&*self.file, first, block)?;
        if sound!(true, "control: write both copies under one barrier") {
            durable.control_barrier(&*self.file, PATH)?;
        }
        self.good_copy = first;
        write_copy(&*self.file, second, block)?;
        durable.control_barrier(&*self.file, PATH)?;
        self.good_copy = second;
        Ok(())
    }
}

fn write_copy(file: &dyn File, copy: usize, block: &ControlBlock) -> Result<()> {
    let bytes = block.encode(copy as u32);
    file.write_at((copy * COPY_BYTES) as u64, &bytes).map_err(|e| Error::io("write", PATH, e))
}

/// The reason why a copy is not valid.
enum Flaw {
    Refused(Refusal),
    /// The disk could not read the copy.
    Unread(io::Error),
}

/// A copy, or the reason why it is not valid.
type CopyRead = std::result::Result<ControlBlock, Flaw>;

fn read_copy(file: &dyn File, copy: usize) -> CopyRead {
    let mut bytes = [0; COPY_BYTES];
    match file.read_at((copy * COPY_BYTES) as u64, &mut bytes) {
        // The file is truncated. The copy is treated as damaged, as if it were all zeros.
        Err(e) if e.kind() == ErrorKind::UnexpectedEof => bytes = [0; COPY_BYTES],
        read => read.map_err(Flaw::Unread)?,
    }
    ControlBlock::decode(&bytes, copy as u32).map_err(Flaw::Refused)
}

fn choose(copies: [CopyRead; COPIES_COUNT]) -> Result<(usize, ControlBlock)> {
    let mut best: Option<(usize, ControlBlock)> = None;
    let mut newer: Option<(u64, String)> = None;
    let (mut defects, mut unread) = (Vec::new(), None);
    for (number, copy) in copies.into_iter().enumerate() {
        match copy {
            Ok(block) if best.as_ref().is_none_or(|(_, best)| block.sequence > best.sequence) => {
                best = Some((number, block));
            }
            Ok(_) => {}
            Err(Flaw::Refused(Refusal::Newer { sequence, detail })) => newer = Some((sequence, detail)),
            Err(Flaw::Refused(Refusal::Damaged(defect))) => defects.push(defect.to_string()),
            Err(Flaw::Unread(error)) => unread = Some(error),
        }
    }
    if let Some((sequence, detail)) = newer {
        if best.as_ref().is_none_or(|(_, best)| sequence >= best.sequence) {
            return Err(Error::newer(PATH, detail));
        }
    }
    match (best, unread) {
        (Some(best), _) => Ok(best),
        // The result is an I/O error and not damage, because the copy may be readable later.
        (None, Some(error)) => Err(Error::io("read", PATH, error)),
        (None, None) => {
            let detail = format!("both copies are damaged ({}); restore a backup", defects.join("; "));
            Err(Error::corrupt(PATH, detail))
        }
    }
}

/// Fails if files of another database exist, because creating a database would remove them.
fn check_nothing_is_there(durable: &Durable) -> Result<()> {
    for folder in FOLDERS {
        let names = match durable.disk().list(folder) {
            Ok(names) => names,
            Err(e) if e.kind() == ErrorKind::NotFound => continue,
            Err(e) => return Err(Error::io("list", folder, e)),
        };
        if let Some(name) = names.first() {
            let detail = format!(
                "CONTROL is missing but {folder}/{name} exists; restore CONTROL, or empty the directory to start again"
            );
            return Err(Error::corrupt(PATH, detail));
        }
    }
    Ok(())
}

//! Change files contain pending changes that a checkpoint saved, so that the checkpoint need not
//! read and write their leaves.
//!
//! The files are `chg/<epoch>.chg`, one for each checkpoint that saved changes. The state of an
//! epoch lists the files that belong to it. A file is written once, and synced before the page map
//! commits an epoch whose state lists it. The file is unlinked once the newest epoch does not list
//! it. The parent's modules `save` and `restore` define the meaning of the records.
//!
//! Invariants
//!   F1  [`Writer::finish`] makes the file and its name durable before it returns the
//!       [`ListedFile`].
//!   F2  Reading returns all records of a listed file, in order, or an error.
//!   F3  Parity is stored after the bytes that a state lists. Reading uses it to repair damage, and
//!       accepts only bytes with the checksums of the file.
//! Errors    `DiskFull` and `Io` while a file is written; then no epoch lists the file. `Fatal` if
//!           a sync fails.

use crate::base::{sound, Epoch, Error, Result, TreeId};
use crate::durable::Durable;
use crate::format::change_file::{chain_of, encode_block, encode_header, SavedChanges, BLOCK_BYTES_MAX};
use crate::format::encryption::Key;
use crate::format::parity::{parity_at, parity_bytes_of, Parity};
use crate::format::state::ListedFile;
use crate::keys::Keys;
use cheetah_io::File;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::Arc;

mod reading;
#[cfg(test)]
mod tests;

pub use reading::{read, Reading};

/// The place that background errors name for damage of change files.
pub const PLACE: &str = "change files";
const DIRECTORY: &str = "chg";
/// The length of the records at which a block is written.
const BLOCK_BYTES: usize = 64 << 10;
/// The number of bytes after which the file is synced, because one long sync at the end would delay
/// concurrent commits.
const SYNC_BYTES: u64 = 8 << 20;

/// Path of the file of an epoch.
pub fn path_of(epoch: Epoch) -> String {
    format!("{DIRECTORY}/{}.chg", epoch.0)
}

/// A file that is being written.
pub struct Writer {
    durable: Arc<Durable>,
    file: Arc<dyn File>,
    path: String,
    epoch: Epoch,
    end: u64,
    synced: u64,
    chain: u32,
    parity: Parity,
    trees: BTreeSet<TreeId>,
    keys: Arc<Keys>,
    key: Option<Arc<Key>>,
    records: Vec<u8>,
    block: Vec<u8>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} bytes", self.path, self.end)
    }
}

impl Writer {
    /// Creates the file of an epoch.
    pub fn create(durable: &Arc<Durable>, keys: &Arc<Keys>, epoch: Epoch) -> Result<Self> {
        let (durable, path) = (Arc::clone(durable), path_of(epoch));
        let disk = durable.disk();
        let file = disk.create(&path).map_err(|error| Error::io("create", &path, error))?;
        let key = keys.system();
        keys.note_change_file(epoch, key.as_ref().map(|key| key.name()));
        let header = encode_header(keys.database(), epoch, key.as_ref().map(|key| key.name()));
        let mut writer = Self {
            durable,
            file,
            path,
            epoch,
            end: 0,
            synced: 0,
            chain: chain_of(&header),
            parity: Parity::default(),
            trees: BTreeSet::new(),
            keys: Arc::clone(keys),
            key,
            records: Vec::new(),
            block: header.to_vec(),
        };
        writer.append_block()?;
        Ok(writer)
    }

    /// Bytes that the file occupies on disk so far.
    pub fn bytes(&self) -> u64 {
        parity_at(self.end) + self.parity.bytes().len() as u64
    }

    /// Adds a record, and writes a block if there are enough records. Blocks for I/O.
    pub fn push(&mut self, saved: &SavedChanges<'_>) -> Result<()> {
        self.trees.insert(saved.image.tree);
        saved.encode(&mut self.records);
        match self.records.len() >= BLOCK_BYTES {
            true => self.write_block(),
            false => Ok(()),
        }
    }

    fn write_block(&mut self) -> Result<()> {
        assert!(self.records.len() <= BLOCK_BYTES_MAX, "a page has few changes");
        let nonce = self.key.as_ref().map(|_| self.keys.nonce()).transpose()?;
        let chain = encode_block(&self.records, self.chain, self.key.as_deref().zip(nonce), &mut self.block);
        self.append_block()?;
        self.chain = chain;
        self.records.clear();
        if self.end - self.synced > SYNC_BYTES {
            self.durable.change_file_barrier(&*self.file, &self.path)?;
            self.synced = self.end;
        }
        Ok(())
    }

    fn append_block(&mut self) -> Result<()> {
        self.write(self.end, &self.block)?;
        self.file.start_writeback(self.end, self.block.len() as u64);
        if sound!(true, "change files: forget parity") {
            self.parity.add(self.end, &self.block);
        }
        self.end += self.block.len() as u64;
        Ok(())
    }

    fn write(&self, at: u64, bytes: &[u8]) -> Result<()> {
        self.file.write_at(at, bytes).map_err(|error| Error::io("write", &self.path, error))
    }

    /// Writes the remaining records, and makes the file and its name durable. Blocks for I/O.
    pub fn finish(mut self) -> Result<ListedFile> {
        if !self.records.is_empty() {
            self.write_block()?;
        }
        self.write(parity_at(self.end), self.parity.bytes())?;
        if sound!(true, "saving: list a file that is not durable") {
            self.durable.change_file_barrier(&*self.file, &self.path)?;
            self.durable.directory_barrier(DIRECTORY)?;
        }
        let trees = self.trees.into_iter().collect();
        Ok(ListedFile { epoch: self.epoch, bytes: self.end, chain: self.chain, trees })
    }
}

/// Bytes that a listed file occupies on disk.
pub fn bytes_on_disk(listed: &ListedFile) -> u64 {
    parity_at(listed.bytes) + parity_bytes_of(listed.bytes) as u64
}

/// Removes the file of an epoch, if there is one.
pub fn remove(durable: &Durable, epoch: Epoch) -> Result<()> {
    let path = path_of(epoch);
    match durable.let_go(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("unlink", &path, error)),
        _ => Ok(()),
    }
}

/// Paths of all existing files. Reads the directory.
pub fn paths(durable: &Durable) -> Result<Vec<String>> {
    let names = durable.disk().list(DIRECTORY).map_err(|error| Error::io("list", DIRECTORY, error))?;
    Ok(names.iter().map(|name| format!("{DIRECTORY}/{name}")).collect())
}

/// Creates the directory durably, and unlinks all files except `listed`, which a crash or an
/// abandoned epoch has left. Called by startup.
pub fn prepare(durable: &Durable, listed: &[ListedFile]) -> Result<()> {
    durable.disk().create_dir(DIRECTORY).map_err(|error| Error::io("create", DIRECTORY, error))?;
    durable.directory_barrier("")?;
    let names = durable.disk().list(DIRECTORY).map_err(|error| Error::io("list", DIRECTORY, error))?;
    for name in names {
        let path = format!("{DIRECTORY}/{name}");
        if listed.iter().all(|file| path_of(file.epoch) != path) {
            durable.disk().unlink(&path).map_err(|error| Error::io("unlink", path, error))?;
        }
    }
    Ok(())
}

/// Creates an empty file for each listed file that is missing, so that the file counts as damaged.
/// Used to copy a damaged database.
pub fn replace_missing(durable: &Durable, listed: &[ListedFile]) -> Result<()> {
    for path in listed.iter().map(|file| path_of(file.epoch)) {
        match durable.disk().open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                durable.disk().create(&path).map_err(|error| Error::io("create", &path, error))?;
            }
            _ => {}
        }
    }
    Ok(())
}
